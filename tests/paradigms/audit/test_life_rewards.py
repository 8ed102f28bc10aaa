"""Rewards must rank subjects like the verdict: over a life, failing must not earn more
than passing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.interfaces import AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import audit
from tests.arenas import examine_text

Plant = Callable[..., ArenaParadigm]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ((), "ok"),
        # The wrong arm pays more, so running into any arm earns more than being right.
        (
            (
                (
                    "- {enter: arm, end: error}",
                    "- {enter: arm, reward: 1.2, end: error}",
                ),
            ),
            "FAIL",
        ),
    ],
)
def test_a_subject_that_fails_earns_no_more(
    plant: Plant, changes: tuple[tuple[str, str], ...], verdict: str
) -> None:
    settings = AuditSettings(trials=400, parts=("chance", "rewards"), effort=0.05)
    found = {one.rule: one for one in audit(plant(*changes), [], settings)}
    row = found["reward over a life"]
    assert row.verdict == verdict, row.text
    assert ("pay success more" in row.text) == (verdict == "FAIL")


#: A trial lasts until its limit, and one lick at the sweet bottle is preference enough.
TWO_BOTTLES = """
version: 1
paradigm: sucrose
arena:
  map: |
    #########
    ##X###Y##
    #...S...#
    #########
  legend: {X: {solid: left}, Y: {solid: right}, S: middle}
draw:
  side: {per: subject, of: {sweet: [left, right], plain: [right, left]}}
start: {at: middle, face: random}
trial:
  limit: 40
  start: drink
  states:
    drink:
      rules:
        - {press: sweet, reward: 1, count: good}
        - {press: plain, count: bad}
schedule: {before: {trials: 4}, test: {trials: 4}}
estimand: {block: test}
measures: {preference: good / (good + bad)}
reference:
  - {measure: preference, value: 0.86, sd: 0.06, n_animals: 16, better: higher, margin: 0.1, range: [0, 1], status: made up}
"""


def test_who_stops_after_a_success_is_not_the_best_of_those_that_pass() -> None:
    specification, found = examine_text(TWO_BOTTLES, "sucrose.protocol.yaml")
    assert specification is not None, found
    brief = AuditSettings(trials=60, parts=("chance", "rewards"), effort=0.05)
    rows = {one.rule: one for one in audit(ArenaParadigm(specification), [], brief)}
    row = rows["reward over a life"]
    assert row.numbers["passing"] < row.numbers["failing"]  # type: ignore[operator]
    assert row.verdict == "undecided", row.text
    assert "no effort can prove that passing pays less" in row.text
