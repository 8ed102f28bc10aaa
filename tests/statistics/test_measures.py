"""Outcomes, measures, strategy and learning curve of lives that can be counted by
eye.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cheesebench.interfaces import Value
from cheesebench.records import CellPlan, TrialRecord
from cheesebench.statistics.measures import Moments, Tally, by_condition
from cheesebench.statistics.sample import (
    SubjectCount,
    draw_sample,
    learning_curve,
    trials_by_subject,
)

MakeLife = Callable[..., list[TrialRecord]]
MakePlan = Callable[..., CellPlan]


def test_taxonomy(life: MakeLife) -> None:
    unscored = replace(life(1, "+")[0], success=None)
    assert Tally([*life(0, "++-t!$"), unscored]).taxonomy(not_run=3) == {
        "success": 2,
        "wrong choice": 1,
        "timeout": 1,
        "unparsed": 0,
        "truncated reply": 0,
        "unscored": 1,
        "infrastructure": 1,
        "budget": 1,
        "not run": 3,
    }


@pytest.mark.parametrize("number", [float("nan"), float("-inf"), 1e200, -(10**60)])
def test_what_cannot_be_reckoned_with_is_no_measurement(
    life: MakeLife, number: float
) -> None:
    records = [
        replace(record, measures={"latency": value}, reward=value)
        for record, value in zip(life(0, "+++"), (1.0, number, 3.0), strict=True)
    ]
    (latency,) = Tally(records).own_measures()
    assert (latency.mean, latency.n) == (2.0, 2)
    assert all(
        measure.sd is None or measure.sd < 10
        for measure in Tally(records).strategy_measures()
    )


def test_a_failure_without_one_reply_that_could_be_read_is_no_choice(
    life: MakeLife,
) -> None:
    failed = life(0, "-")[0]
    tallies = [
        {"calls": 4, "unparsed": 4, "truncated": 4},
        {"calls": 4, "unparsed": 4, "truncated": 1},
        {"calls": 4, "unparsed": 3, "truncated": 0},
        {"calls": 0},
    ]
    tally = Tally(replace(failed, tally=counts) for counts in tallies)
    counts = tally.taxonomy(0)
    assert (counts["truncated reply"], counts["unparsed"], counts["wrong choice"]) == (
        1,
        1,
        2,
    )
    assert tally.agent_counts() == {"calls": 12, "unparsed": 11, "truncated": 5}


def test_a_timeout_that_is_the_success_is_a_success(life: MakeLife) -> None:
    stayed = replace(life(0, "+")[0], outcome="timeout")
    assert Tally([stayed]).taxonomy(0)["success"] == 1


def test_raw_outcomes_by_falling_count(life: MakeLife) -> None:
    assert list(Tally(life(0, "t-+t-t!")).raw_outcomes().items()) == [
        ("timeout", 3),
        ("error", 2),
        ("correct", 1),
    ]


def test_own_measures_are_those_that_are_numbers(life: MakeLife) -> None:
    records = life(0, "+-+")
    values: list[dict[str, Value]] = [
        {"latency": 2, "visited": ["n", "s"], "direct": True, "where": "north"},
        {"latency": 4.0, "visited": [], "direct": False, "where": None},
        {"latency": None, "visited": [], "direct": True, "where": "south"},
    ]
    records = [
        replace(r, measures=value) for r, value in zip(records, values, strict=True)
    ]
    latency, direct = Tally(records).own_measures()
    assert (latency.name, latency.mean, latency.n) == ("latency", 3, 2)
    assert (direct.name, direct.n) == ("direct", 3)
    assert direct.mean == pytest.approx(2 / 3)
    assert (direct.sd, direct.subjects) == (None, 1)


def test_a_measure_is_spread_between_subjects_not_trials(life: MakeLife) -> None:
    latencies = [(1, 3), (5,), (5, 7, 9)]  # Means of 2, 5 and 7.
    records = [
        replace(record, measures={"latency": float(steps)})
        for subject, own in enumerate(latencies)
        for record, steps in zip(life(subject, "+" * len(own)), own, strict=True)
    ]
    (latency,) = Tally(records).own_measures()
    assert (latency.n, latency.subjects) == (6, 3)
    assert latency.mean == pytest.approx(14 / 3)
    assert latency.sd == pytest.approx((19 / 3) ** 0.5)


def strategy_of(actions: str, life: MakeLife) -> dict[str, float]:
    record = replace(
        life(0, "+")[0],
        actions=actions,
        path_length=3,
        bumps=1,
        steps=len(actions),
        reward=0.5,
    )
    return {
        measure.name: measure.mean for measure in Tally([record]).strategy_measures()
    }


def test_strategy_of_one_trial_by_hand(life: MakeLife) -> None:
    found = strategy_of("FF.FLRSFF.", life)
    # F F F L R S F F: the waited steps are not the agent's.
    assert found == {
        "action_entropy_bits": pytest.approx(5 / 8 * 0.6780719 + 3 / 8 * 3),
        "forward_share": 5 / 8,
        "turn_share": 2 / 8,
        "stay_share": 1 / 8,
        "repeat_share": pytest.approx(3 / 7),
        "path_length": 3,
        "bumps": 1,
        "steps": 10,
        "reward": 0.5,
    }


def test_entropy_has_its_extremes(life: MakeLife) -> None:
    assert strategy_of("FLRS", life)["action_entropy_bits"] == 2
    assert strategy_of("SSSS", life)["action_entropy_bits"] == 0


def test_a_trial_without_own_actions_has_no_shares(life: MakeLife) -> None:
    assert set(strategy_of("...", life)) == {"path_length", "bumps", "steps", "reward"}


def test_moments_are_those_of_the_numbers_together() -> None:
    numbers = [1e9 + x for x in (4, 7, 13, 16)]
    moments = Moments()
    for number in numbers:
        moments.add(number)
    assert (moments.n, moments.mean) == (4, 1e9 + 10)
    assert moments.sd == pytest.approx(30**0.5)


def condensed(plan: CellPlan, records: list[TrialRecord]) -> tuple[SubjectCount, ...]:
    return draw_sample(plan, trials_by_subject(records).values()).per_subject


def test_curve_by_session_counts_what_the_reference_is_about(
    plan: MakePlan, life: MakeLife
) -> None:
    records = [
        replace(r, session=1 + r.trial // 2)
        for s, run in enumerate(["-+++", "--!+"])
        for r in life(s, run)
    ]
    records = [
        replace(r, compared=not (r.subject == 0 and r.trial == 3)) for r in records
    ]
    unit, points = learning_curve(condensed(plan(), records), ())
    assert unit == "session"
    assert [(point.session, point.rate, point.trials) for point in points] == [
        (1, 0.25, 4),
        (2, 1.0, 2),
    ]
    assert all(0 <= point.low < point.rate <= point.high <= 1 for point in points)


def test_curve_of_a_single_session_goes_by_trials(
    plan: MakePlan, life: MakeLife
) -> None:
    unit, points = learning_curve(condensed(plan(), life(0, "----+-+-++")), ())
    assert unit == "2 trials"
    assert [point.rate for point in points] == [0, 0, 0.5, 0.5, 1]


def test_no_curve_without_scored_trials(plan: MakePlan, life: MakeLife) -> None:
    assert learning_curve(condensed(plan(), life(0, "!!")), ()) == ("session", ())


def test_measures_outside_the_judged_trials_are_named_by_their_block(
    plan: MakePlan, life: MakeLife
) -> None:
    """A probe of the memory has no part in the pass rate, and must not be lost."""
    blocks = ["training", "training", "test", "test", "probe", "probe"]
    measures: list[dict[str, Value]] = [
        {"latency": float(number)} for number in range(6)
    ]
    measures[5] |= {"place": 1, "kind": "place"}
    records = [
        replace(record, block=block, measures=own)
        for record, block, own in zip(life(0, "++++--"), blocks, measures, strict=True)
    ]
    tally = draw_sample(plan(estimand="block:test"), [records]).tally
    assert [(one.name, one.mean, one.n) for one in tally.own_measures()] == [
        ("latency", 2.5, 2),
        ("latency in training", 0.5, 2),
        ("latency in probe", 4.5, 2),
        ("place in probe", 1.0, 1),
    ]
    (kinds,) = tally.class_shares()
    assert (kinds.name, dict(kinds.counts)) == ("kind in probe", {"place": 1})
    assert tally.taxonomy(0)["success"] == 2
    late = draw_sample(plan(estimand="last:3"), [records]).tally
    named = [one.name for one in late.own_measures()]
    assert named == ["latency", "place", "latency in training"], "a part is no block"


def test_a_set_is_no_condition_and_nothing_is_no_value(life: MakeLife) -> None:
    record = replace(
        life(0, "+")[0],
        variables={"side": "left", "baits": ["a", "b"]},
        counters={"visits": 3},
        measures={"right": 0.5, "choice": "near", "late": None, "delay": 2.0},
    )
    names = ["right", "choice", "late"]
    found = by_condition(
        record,
        [(name, by) for name in names for by in ("side", "baits", "visits", "delay")]
        + [("right", "absent"), ("absent", "side")],
    )
    assert [(one.measure, one.variable, one.value, value) for one, value in found] == [
        ("right", "side", "left", 0.5),
        ("right", "visits", 3, 0.5),
        ("right", "delay", 2.0, 0.5),
        ("choice", "side", "left", "near"),
        ("choice", "visits", 3, "near"),
        ("choice", "delay", 2.0, "near"),
        ("right", "absent", None, 0.5),
    ]
