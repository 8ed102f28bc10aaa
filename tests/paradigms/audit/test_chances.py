"""Chance as it is measured and stated, and blind policies under a measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cheesebench.interfaces import AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.chances import (
    _of_measure,
    _of_trials,
    _ranked,
    _under_the_measure,
    _under_the_rodent,
    audit_blind,
    audit_chances,
    audit_limit,
    ceiling,
    under,
)
from cheesebench.paradigms.arena.audit.runs import Runner, Tally

Plant = Callable[..., ArenaParadigm]
#: A verdict on a measure that is at least 28 of 40.
MEASURED = (
    "reference: [{measure: success, value: 0.9,",
    "measures: {much: steps}\n"
    "reference: [{measure: much, value: 30, better: higher, margin: 2, range: [0, 40],",
)
TRIALS = AuditSettings(trials=16, seed=0)


def tally(name: str, *means: float, lives: tuple[tuple[int, int], ...] = ()) -> Tally:
    return Tally(name, list(lives), list(means))


def test_a_blind_policy_passes_if_its_whole_interval_does(plant: Plant) -> None:
    about = plant(MEASURED).specification.judged
    assert about is not None
    # The means 30, 32 and 34: 2.576 x 2 / sqrt(3) = 2.974 to both sides.
    surely, once, none = tally("hops", 30, 32, 34), tally("runs", 39), tally("rests")
    found = _under_the_measure(about, [surely, once, none])
    assert found.verdict == "FAIL"
    assert found.numbers == {
        "hops": pytest.approx({"mean": 32, "low": 29.026, "high": 34.974}, abs=1e-3),
        "runs": {"mean": 39, "low": 0, "high": 40},
    }
    assert found.text.startswith(
        "mean much, with 99 % intervals: hops 32 [29, 35], runs 39 [0, 40]; the verdict asks for at least 28. A"
    )
    unsure = _under_the_measure(about, [once])
    assert unsure.verdict == "undecided"
    assert unsure.text.endswith(
        "asks for at least 28; a mean passes, but its interval is wide: raise --trials"
    )
    assert _under_the_measure(about, [tally("hops", 26, 27)]).verdict == "ok"
    empty = _under_the_measure(about, [none])
    assert (empty.verdict, empty.numbers) == ("note", {})
    assert empty.text == "no trial has a value of much"


def test_means_are_told_if_the_verdict_is_about_them(plant: Plant) -> None:
    measured = plant(MEASURED).specification
    assert _of_measure(tally("hops", 30, 32), measured).startswith("; mean much 31 [")
    assert _of_measure(tally("hops"), measured) == ""
    assert _of_measure(tally("hops"), plant().specification) == ""


def test_where_no_trial_counts_nothing_is_judged() -> None:
    assert _of_trials(tally("hops", lives=((3, 4),))).endswith("of 4 trials")
    none = tally("hops", lives=((0, 0),))
    none.outcomes.update(["left", "left", "right"])
    assert "counts none of the 3 trials" in _of_trials(none)


def test_few_trials_settle_only_what_is_far_above() -> None:
    assert under([tally("a", lives=((90, 100),))], 0.5) == ("FAIL", "")
    assert under([tally("a", lives=((50, 100),))], 0.5) == ("ok", "")
    assert under([tally("a", lives=((1, 100),))], 0.5) == ("ok", "")
    verdict, remark = under(
        [tally("a", lives=((5, 10),)), tally("b", lives=((20, 40),))], 0.5
    )
    assert verdict == "note"
    assert "after 10 judged trials" in remark
    assert "at least 100 are needed" in remark


def test_the_best_is_who_succeeds_most_and_then_earns_most() -> None:
    poor, rich = (tally(name, lives=((1, 2),)) for name in ("poor", "rich"))
    best, busy = tally("best", lives=((2, 2),)), tally("busy", lives=((1, 2),))
    rich.reward, busy.reward = 1.0, 2.0
    busy.outcomes.update(["left"] * 4)
    assert [one.name for one in _ranked([poor, busy, rich, best])] == [
        "best",
        "rich",
        "busy",
        "poor",
    ]


def test_the_rodent_is_less_its_margin(plant: Plant) -> None:
    (found,) = _under_the_rodent(plant().specification, tally("a", lives=((9, 10),)))
    assert (found.verdict, found.numbers["most"]) == ("note", pytest.approx(0.8))
    (found,) = _under_the_rodent(plant().specification, tally("a", lives=((100, 100),)))
    assert (found.verdict, found.numbers["policy"]) == ("FAIL", "a")
    without = plant(
        ("reference: [{measure: success, value: 0.9, status: made up}]\n", "")
    )
    (found,) = _under_the_rodent(without.specification, tally("a"))
    assert (found.verdict, found.numbers) == ("note", {})


def stated(plant: Plant, *changes: tuple[str, str]) -> list[tuple[str, str, str]]:
    paradigm = plant(*changes)
    with Runner(paradigm, 1) as runner:
        tallies: list[Tally] = []
        found = list(audit_chances(paradigm, TRIALS, runner, tallies))
    assert [one.name for one in tallies] == ["uniform", "event-random"]
    return [(one.rule, one.verdict, one.text) for one in found]


NO_TRIAL = (
    "success: last == correct",
    "estimand: {where: last == timeout and steps < 2}\nsuccess: last == correct",
)


def test_a_stated_chance_is_compared_with_what_is_measured(plant: Plant) -> None:
    def of(chance: str) -> tuple[str, str]:
        return "checks:", f"chance: {{{chance}, how: by hand}}\nchecks:"

    uniform, missing, events = stated(plant)
    assert [uniform[:2], events[:2]] == [
        ("chance: uniform", "note"),
        ("chance: event-random", "note"),
    ]
    assert missing[:2] == ("chance: as stated", "note")
    assert "no chance is stated; write chance: {value: " in missing[2]
    _, wrong, _ = stated(plant, of("value: 0.99, trials: 1000"))
    assert wrong[1] == "FAIL"
    assert wrong[2].startswith("stated .99 of 1000 trials, measured ")
    value = uniform[2].split()[0]
    _, right, _ = stated(plant, of(f"value: {float(value)}, trials: 16"))
    assert right[1] == "ok"
    _, nothing, _ = stated(plant, NO_TRIAL)
    assert nothing[1:] == (
        "note",
        "not judged: the estimand counts none of the 160 trials of complete lives",
    )
    assert len(stated(plant, MEASURED, ("success: last == correct\n", ""))) == 2


def test_a_limit_that_varies_is_not_varied(plant: Plant) -> None:
    fixed, drawn = (
        plant(),
        plant(
            ("limit: 40", "limit: most"),
            ("draw:\n", "draw:\n  most: {of: {most: [30, 40]}}\n"),
        ),
    )
    with Runner(fixed, 1) as runner:
        (found,) = audit_limit(fixed, TRIALS, runner)
    assert list(found.numbers) == ["20", "40", "80"]
    with Runner(drawn, 1) as runner:
        (found,) = audit_limit(drawn, TRIALS, runner)
    assert (found.verdict, found.numbers) == ("note", {})
    assert "the variable 'most'" in found.text


@pytest.mark.parametrize(
    ("rows", "most", "why"),
    [
        ("{lesion: {hide: arm}, at_most: 0.4}", 0.4, "what 'hide=arm' leaves"),
        ("{lesion: anhedonia, at_most: 0.4}", 0.25, "the default ceiling"),
        (
            "{lesion: {hide: arm}, at_most: 0.45}, {lesion: blind, at_most: 0.3}",
            0.3,
            "what 'blind' leaves",
        ),
        ("{lesion: blind, at_most: 0.1}", 0.25, "the default ceiling"),
    ],
)
def test_a_construct_says_what_the_blind_may_reach(
    plant: Plant, rows: str, most: float, why: str
) -> None:
    change = (
        "checks: [{at: choice, hidden: side, chance: 0.5}]\n",
        f"construct: {{name: attention, kind: strategy, abolished_by: [{rows}]}}\n",
    )
    found = ceiling(plant(change).specification)
    assert found[0] == most
    assert found[1].startswith(why)


def test_the_blind_are_judged_by_what_the_verdict_is_about(plant: Plant) -> None:
    few = replace(TRIALS, trials=8)
    quick = ("limit: 40", "limit: 5"), ("sessions: 2, trials: 10", "trials: 1")
    paradigm = plant(MEASURED, *quick)
    chances = [tally("uniform")]
    with Runner(paradigm, 1) as runner:
        ceiling_, rodent = audit_blind(paradigm, few, runner, chances)
    # Each policy is tried once, and the finalists once more.
    finalists = ceiling_.numbers["finalists"]
    assert isinstance(finalists, dict)
    assert len(finalists) == 3
    assert ceiling_.numbers["policies"] == len(chances)
    assert ceiling_.numbers["policy"] == next(iter(finalists))
    assert {"uniform", "cycle S"} <= set(rodent.numbers)
    assert rodent.text.startswith("mean much, ")


@pytest.mark.parametrize(
    ("value", "margin", "verdict"), [(0.3, 0.1, "FAIL"), (-0.2, 0.1, "ok")]
)
def test_the_blind_are_chosen_by_a_low_measure_beside_a_success(
    plant: Plant, value: float, margin: float, verdict: str
) -> None:
    # Who does nothing never succeeds and makes no error.
    about = (
        "measures: {errors: last == error}\nreference: [{measure: errors, "
        f"value: {value}, better: lower, margin: {margin}, range: [-1, 1], kind: invented, status: made up}}]"
    )
    old = "reference: [{measure: success, value: 0.9, status: made up}]"
    few = replace(TRIALS, trials=40)
    with Runner(plant((old, about)), 1) as runner:
        *_, rodent = audit_blind(runner.paradigm, few, runner, [])
    assert rodent.verdict == verdict
    assert "cycle S 0 [0, 0]" in rodent.text
