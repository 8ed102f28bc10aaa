"""Findings about references."""

from __future__ import annotations

import pytest

from tests.protocol.short import SCORED, Check, Findings, trial

ERRORS = {
    "rate above 1": ("E217", SCORED + "reference: [«{measure: success, value: 80, status: x}]"),
    "a spread in percent": (
        "E217", SCORED + "reference: [{measure: success, value: 0.84, sd: «6, n_animals: 8, status: x}]"
    ),
    "an error in percent": (
        "E217", SCORED + "reference: [{measure: success, value: 0.84, sem: «2.4, n_animals: 8, status: x}]"
    ),
    "interval backwards": ("E217", SCORED + "reference: [«{measure: success, value: 1, interval: [1, 0], status: x}]"),
    "two spreads": (
        "E226",
        SCORED + "reference: [{measure: success, value: 1, sd: 0, «sem: 0, n_animals: 4, status: x}]",
    ),
    "spread without animals": ("E226", SCORED + "reference: [{measure: success, value: 1, «sd: 0.1, status: x}]"),
    "negative spread": ("E226", SCORED + "reference: [«{measure: success, value: 1, sd: -1, n_animals: 4, status: x}]"),
    "spreads without a curve": (
        "E226", SCORED + "reference: [{measure: success, value: 1, curve: [1], «curve_sd: [0, 0], status: x}]"
    ),
    "a curve over sessions of which there may be fewer": (
        "E226", "schedule: {one: {trials: 4, until: {outcome: found, count: 2}, repeat: {at_most: 3, trials: 8}}}\n"
        + SCORED + "reference: [{measure: success, «curve: [0, 1, 1], status: x}]"
    ),
    "no number": ("E226", SCORED + "reference: [«{measure: success, status: x}]"),
    "curve that is too short": (
        "E226", "schedule: {one: {sessions: 2}}\n" + SCORED + "reference: [«{measure: success, curve: [1], status: x}]"
    ),
    "animals and what is computed": (
        "E226", SCORED + "reference: [{measure: success, animals: [[m, 1, 4, 1]], «n_animals: 4, status: x}]"
    ),
    "animals of a measure with trials": (
        "E225", "measures: {m: steps}\nreference: [{measure: m, animals: [«[m, 1, 4, 1]], status: x}]"
    ),
    "an animal that passed too often": (
        "E225", SCORED + "reference: [{measure: success, animals: [«[m, 1, 4, 5]], status: x}]"
    ),
    "an animal twice": (
        "E225", SCORED + "reference: [{measure: success, «animals: [[m, 1, 4, 1], [m, 1, 4, 2]], status: x}]"
    ),
    "no animal": ("E225", SCORED + "reference: [{measure: success, «animals: [], status: x}]"),
    "animals outside": ("E225", SCORED + "reference: [{measure: success, animals: «../a.csv, status: x}]"),
    "animals nowhere": ("E225", SCORED + "reference: [{measure: success, animals: «a.csv, status: x}]"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


WARNINGS = {
    "an asymptote for all trials": (
        "W325", "schedule: {one: {sessions: 2}}\n" + SCORED
        + "reference: [{measure: success, value: «1, curve: [0, 1], status: x}]"
    ),
    "the last session for all trials": (
        "W325", "schedule: {one: {sessions: 2}}\n" + SCORED
        + "reference: [{measure: success, over: «last, curve: [0, 1], status: x}]"
    ),
    "a curve that is too long": (
        "W326", SCORED + "reference: [{measure: success, curve: «[0, 1], status: x}]"
    ),
    "a curve with a session for which no trials are left": (
        "W326", "schedule: {one: {trials: 4, repeat: {at_most: 3, trials: 6}}}\n" + SCORED
        + "reference: [{measure: success, curve: «[0, 1, 1], status: x}]"
    ),
    "animals with gaps": (
        "W326", "schedule: {one: {sessions: 2}}\n" + SCORED
        + "reference: [{measure: success, animals: «[[m, 1, 40, 20], [n, 1, 40, 21], [o, 1, 40, 20], [p, 1, 40, 21]], status: x}]"
    ),
    "one animal": ("W333", SCORED + "reference: [{measure: success, animals: «[[m, 1, 4, 1]], status: x}]"),
    "too few animals": (
        "W334", SCORED + "reference: [{measure: success, animals: «[[m, 1, 4, 1], [n, 1, 4, 4]], status: x}]"
    ),
    "animals in percent": (
        "W335", SCORED + "measures: {quick: steps < 5}\nreference: [«{measure: quick, value: 71, status: x}]"
    ),
    "a counter of one event in percent": (
        "W335", trial("{enter: goal, count: early, end: found}")
        + "measures: {share: early}\nreference: [«{measure: share, value: 29.5, status: x}]"
    ),
    "a variable of 0 and 1 in percent": (
        "W335", "vars: {early: 0}\n" + trial("{enter: goal, set: {early: 1}, end: found}")
        + "measures: {share: early}\nreference: [«{measure: share, value: 29.5, status: x}]"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), WARNINGS.values(), ids=list(WARNINGS))
def test_a_warning_stands_where_its_cause_is(
    code: str, text: str, check_warning: Check
) -> None:
    check_warning(code, text)


@pytest.mark.parametrize(
    "text",
    [
        trial("{enter: goal, count: early}, {act: STAY, end: found}"),
        "vars: {early: 0}\n" + trial("{enter: goal, set: {early: early + 1}}, {act: STAY, end: found}"),
    ],
)  # fmt: skip
def test_what_may_count_further_is_no_share(text: str, findings: Findings) -> None:
    reference = "reference: [{measure: share, value: 29.5, status: x}]"
    found = findings(f"{text}measures: {{share: early}}\n{reference}")
    assert not [one for one in found if one.startswith(("W335", "E"))]
