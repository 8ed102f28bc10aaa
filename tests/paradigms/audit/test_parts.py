"""The parts of an audit, and the condition of success that it lends a protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cheesebench.interfaces import AuditFinding, AuditPart, AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import _judging, audit, first_seed
from cheesebench.protocol import expressions as ex

Plant = Callable[..., ArenaParadigm]

SUCCESS = ("success: last == correct\n", "")


def judged(better: str) -> tuple[str, str]:
    """Return a change: the verdict is about the latency."""
    about = f"measure: latency, value: 9, better: {better}, margin: 2, range: [0, 40]"
    return (
        "reference: [{measure: success, value: 0.9,",
        f"measures: {{latency: steps}}\nreference: [{{{about},",
    )


def limits(success: Any, measure: Any) -> list[tuple[str, float]]:
    """Return the signs and limits of a condition on a measure."""
    assert isinstance(success, ex.Binary)
    if success.operator == "and":
        return [*limits(success.left, measure), *limits(success.right, measure)]
    assert success.left == measure
    assert isinstance(success.right, ex.Number)
    return [(success.operator, success.right.value)]


@pytest.mark.parametrize(
    ("better", "asked"),
    [
        ("lower", [("<=", 11.0)]),
        ("higher", [(">=", 7.0)]),
        ("alike", [(">=", 7.0), ("<=", 11.0)]),
    ],
)
def test_a_trial_passes_if_its_measure_is_what_is_asked_of_the_mean(
    plant: Plant, better: str, asked: list[tuple[str, float]]
) -> None:
    paradigm = plant(SUCCESS, judged(better))
    lent = _judging(paradigm)
    measure = paradigm.specification.measures["latency"]
    assert limits(lent.specification.success, measure) == asked
    assert paradigm.specification.success is None


def test_who_has_a_condition_keeps_it(plant: Plant) -> None:
    for paradigm in (plant(), plant(judged("lower"))):
        assert _judging(paradigm) is paradigm


def findings(
    paradigm: ArenaParadigm, *parts: AuditPart, progress: Any = None
) -> list[AuditFinding]:
    settings = AuditSettings(trials=20, seed=0, parts=parts, progress=progress)
    return list(audit(paradigm, (), settings))


def test_parts_come_in_their_order_and_each_is_announced(plant: Plant) -> None:
    said: list[str] = []
    found = findings(plant(), "same-event", "limit", "animal", progress=said.append)
    assert said == ["part 1 of 2, limit", "part 2 of 2, same-event"]
    assert [one.rule for one in found][:1] == ["step limit"]
    assert findings(plant(), "animal") == []


def test_without_success_the_audit_says_how_trials_pass(plant: Plant) -> None:
    [found] = findings(plant(SUCCESS, judged("lower")), "animal")
    assert (found.rule, found.verdict) == ("success", "note")
    assert "a trial passes if its latency is at most 11" in found.text


def test_seeds_are_far_apart_but_the_first() -> None:
    seeds = [first_seed(seed) for seed in range(5)]
    assert seeds[0] == 0
    assert min(abs(a - b) for a in seeds for b in seeds if a != b) > 10**6
    assert max(seeds) < 2**40


#: Two orders of six things in each trial, of which the first is seen.
TOO_MANY = (
    (
        "start: {at",
        "  one: {per: trial, order: random, permute: [A, B, C, D, E, F], into: [a, b, c, d, e, f]}\n"
        "  two: {per: trial, order: random, permute: [A, B, C, D, E, F], into: [u, v, w, x, y, z]}\n"
        "start: {at",
    ),
    ("choice:\n", "choice:\n      show: {left: a, right: u}\n"),
)
CONSTRUCT = "construct: {name: memory, kind: memory, abolished_by: [{lesion: blind, at_most: 0.5}]}\n"


def test_too_many_ways_to_begin_are_undecided_at_once_with_the_reason(
    plant: Plant,
) -> None:
    said: list[str] = []
    paradigm = plant(*TOO_MANY, ("checks:", f"{CONSTRUCT}checks:"))
    found = findings(paradigm, "solvable", "lesions", progress=said.append)
    verdicts = {one.rule: one.verdict for one in found}
    assert verdicts == {
        "solvable": "ok",
        "decidable": "undecided",
        "construct": "note",
        "lesion: intact": "undecided",
        "lesion: blind": "undecided",
        "lesion: pose-only": "note",
        "lesion: anhedonia": "note",
        "lesion: amnesia=trial": "note",
        "lesion: memoryless": "note",
    }
    texts = {one.rule: one.text for one in found}
    assert "= 8,294,400 ways" in texts["lesion: intact"]
    assert "no effort can prove" in texts["lesion: blind"]
    assert said[0].startswith("the lesions will stay undecided: chance has ")
    assert said[-1].endswith("searched 5 of 6, now lesion memoryless")


def test_progress_says_what_is_searched(plant: Plant) -> None:
    said: list[str] = []
    findings(plant(), "lesions", progress=said.append)
    assert "chance has 16 ways in a trial" in said[0]
    assert said[2] == "searched 0 of 6, now lesion intact"
    assert said[3].startswith("lesion intact: found 1.00")
    assert said[3].endswith("; searched 1 of 6, now lesion blind")
