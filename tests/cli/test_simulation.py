"""Simulated subjects and cells: their means, spreads, shares and faults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cheesebench.planning import simulation
from cheesebench.planning.simulation import (
    ICC_FLOOR,
    DeclaredAnimal,
    Simulated,
    Subjects,
    clustering_of,
    declared_animal,
    simulate,
    subjects_like_animals,
    subjects_needed,
)
from cheesebench.records import CellPlan, Measured, ReferenceValue
from cheesebench.statistics.question import Question

CURVE = Subjects(sessions=((0.25, 4), (0.5, 2), (1.0, 2)), icc=0.3)
RATE = ReferenceValue(value=0.75)


def plan(reference: ReferenceValue, **changes: Any) -> CellPlan:
    named: dict[str, Any] = {"memory": "life"} | changes
    return CellPlan(
        model="m", protocol="p", view="v", title="", dimension="", species="", sha256="0", design="cohort",
        subjects=10, trials=20, reference=reference, **named,
    )  # fmt: skip


def test_another_mean_scales_successes_down_and_failures_down() -> None:
    assert CURVE.mean == 0.5
    lower = CURVE.at(0.25)
    assert lower.sessions == ((0.125, 4), (0.25, 2), (0.5, 2))
    higher = CURVE.at(0.75)
    assert higher.sessions == ((0.625, 4), (0.75, 2), (1.0, 2))
    assert (lower.icc, CURVE.at(0.5)) == (0.3, CURVE)
    assert [CURVE.at(one).mean for one in (-1.0, 2.0)] == [0.0, 1.0]
    never = Subjects(sessions=((0.0, 3),), spread=0.5)
    assert (never.at(0.0), never.at(1.0).mean) == (never, 1.0)


def test_drawn_scores_have_the_mean_and_the_share_between_subjects() -> None:
    for icc, shared in ((0.0, 0.0), (0.3, 0.3), (1.0, 0.0)):
        subjects = Subjects(sessions=((0.6, 10),), icc=icc)
        drawn = subjects.draw((200, 50), 4)
        assert drawn.shape == (200, 50)
        assert drawn.mean() == pytest.approx(0.6, abs=0.01)
        within = 0.6 * 0.4 * (1 - shared) / 10
        assert drawn.var() == pytest.approx(0.6 * 0.4 * shared + within, rel=0.06)
        assert np.array_equal(drawn, subjects.draw((200, 50), 4))
        assert set(np.unique(np.round(drawn * 10, 9))) <= set(range(11))
    both = Subjects(sessions=((0.0, 5), (1.0, 15)), icc=0.3).draw((3, 4), 1)
    assert np.array_equal(both, np.full((3, 4), 0.75))


def test_drawn_scores_of_a_measure_have_its_spread() -> None:
    subjects = Subjects(sessions=((0.4, 1),), spread=0.1)
    drawn = subjects.draw((200, 50), 4)
    assert drawn.mean() == pytest.approx(0.4, abs=0.01)
    assert drawn.std() == pytest.approx(0.1, rel=0.05)
    for alike in (
        replace(subjects, spread=0.0),
        Subjects(sessions=((1.0, 1),), spread=0.2),
    ):
        assert np.array_equal(alike.draw((2, 3), 4), np.full((2, 3), alike.mean))
    widest = replace(subjects, spread=0.6).draw((200, 50), 4)
    assert widest.std() == pytest.approx(0.49, abs=0.01)


def test_subjects_follow_the_animals_of_a_plan() -> None:
    curve = replace(RATE, curve=(0.5, 0.6))
    found = subjects_like_animals(plan(curve), {1: 4, 2: 5, 3: 6}, 0.2)
    assert found == Subjects(sessions=((0.5, 4), (0.6, 5), (0.75, 6)), icc=0.2)
    latency = ReferenceValue(
        value=2.0, sd=1.0, measured=Measured(name="t", better="lower", range=(0.0, 8.0))
    )
    assert subjects_like_animals(plan(latency), {}, ICC_FLOOR) == Subjects(
        sessions=((0.75, 1),), icc=ICC_FLOOR, spread=0.125
    )
    unknown = subjects_like_animals(plan(replace(latency, sd=None)), {}, 0.2)
    assert unknown.spread == pytest.approx((0.2 * 0.75 * 0.25) ** 0.5)


@pytest.mark.parametrize(
    ("changes", "given", "animals", "found"),
    [
        ({}, None, None, (ICC_FLOOR, "assumed")),
        ({}, None, 0.05, (0.05, "animals")),
        ({}, None, 0.0, (0.0, "animals")),
        ({}, 0.2, 0.05, (0.2, "given")),
        ({"memory": "none"}, None, 0.05, (0.0, "no memory")),
        ({"memory": "none"}, 0.2, None, (0.2, "given")),
    ],
)
def test_where_the_clustering_of_subjects_comes_from(
    changes: dict[str, Any], given: float | None, animals: float | None, found: object
) -> None:
    assert clustering_of(plan(RATE, **changes), given, animals) == found


def test_subjects_differ_in_a_measure_by_its_spread_not_by_animals_clustering() -> None:
    of_measure = replace(RATE, measured=Measured(name="t", better="lower"))
    assert clustering_of(plan(of_measure), None, 0.05) == (ICC_FLOOR, "assumed")


QUESTION = Question(RATE, -0.1, -0.1, False)


def test_runs_are_simulated_until_they_are_decided() -> None:
    good = simulate(QUESTION, Subjects(sessions=((0.95, 20),), icc=0.1), 40, seed=2)
    bad = simulate(QUESTION, Subjects(sessions=((0.2, 20),), icc=0.1), 40, seed=2)
    assert good.passes > 0.97
    assert good.fails < 0.01
    assert bad.fails > 0.97
    assert bad.passes == 0.0
    assert set(good.counted) <= {6, 10, 14, 18, 24, 30, 40}
    fixed = simulate(
        QUESTION,
        Subjects(sessions=((0.95, 20),), icc=0.1),
        40,
        seed=2,
        sequential=False,
    )
    assert set(fixed.counted) == {40}
    assert len(fixed.counted) == simulation.RUNS == 1000
    assert fixed.passes > 0.9
    few = simulate(QUESTION, Subjects(sessions=((0.95, 20),)), 4, seed=2)
    assert set(few.counted) == {4}
    stricter = simulate(
        QUESTION, Subjects(sessions=((0.95, 20),), icc=0.1), 40, seed=2, goal=2000
    )
    assert stricter.counted.mean() > good.counted.mean()


def test_two_runs_disagree_as_often_as_their_verdicts_differ() -> None:
    found = Simulated(0.5, 0.25, np.array([1]))
    assert found.disagree == pytest.approx(1 - 0.25 - 0.0625 - 0.0625)
    assert Simulated(1.0, 0.0, np.array([1])).disagree == 0.0


def test_the_subjects_that_are_needed_are_searched_up_to_a_limit() -> None:
    def needed(rate: float, goal: float = 20.0) -> int | None:
        subjects = Subjects(sessions=((rate, 20),), icc=0.1)
        return subjects_needed(QUESTION, subjects, seed=2, goal=goal)

    many, few = needed(0.75), needed(0.95)
    assert many is not None
    assert few is not None
    assert 3 < few < 15 < many < simulation.MOST_NEEDED == 300
    more = needed(0.95, 1e9)
    assert more is not None
    assert more > few
    assert needed(0.3) is None


def test_declared_animals_are_at_fault_beyond_three_standard_errors() -> None:
    def animal(passes: float, *fails: float) -> DeclaredAnimal:
        shares = dict(zip(simulation.COHORTS, fails, strict=True))
        return DeclaredAnimal(fails=shares, passes=passes, mean=0.5, icc=0.3)

    # 0.05 + 3 * 0.00689, and 0.8 - 3 * 0.01265
    assert not animal(0.77, 0.07, 0.0).is_at_fault
    assert animal(0.77, 0.0, 0.071).is_at_fault
    assert animal(0.76, 0.0, 0.0).is_at_fault
    assert (simulation.MOST, simulation.COHORTS) == (120, (10, 120))


@pytest.fixture
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate 150 runs, which is quicker."""
    monkeypatch.setattr(simulation, "RUNS", 150)


@pytest.mark.usefixtures("fewer")
def test_animals_that_follow_a_reference_are_simulated() -> None:
    found = declared_animal(RATE, {1: 20}, 0.1, seed=1)
    assert (found.mean, found.icc, found.is_at_fault) == (0.75, ICC_FLOOR, False)
    assert set(found.fails) == {10, 120}
    assert found.passes > 0.8
    assert max(found.fails.values()) < 0.05
    sd = replace(RATE, sd=0.2, n_animals=10)
    # 0.04 of the variance of a rate, without the 0.75 * 0.25 / 20 that is due to chance
    by_chance = 0.75 * 0.25 / 20
    expected = (0.04 - by_chance) / (0.75 * 0.25)
    assert declared_animal(sd, {1: 20}, 0.1, seed=1).icc == pytest.approx(expected)
    assert declared_animal(replace(sd, sd=0.01), {1: 20}, 0.1, seed=1).icc == 0.0
    assert declared_animal(replace(sd, sd=0.9), {1: 20}, 0.1, seed=1).icc == 0.95
    always = declared_animal(replace(sd, value=1.0), {1: 20}, 0.1, seed=1)
    assert (always.icc, always.mean) == (ICC_FLOOR, 1.0)


@pytest.mark.usefixtures("fewer")
@pytest.mark.parametrize("better", ["lower", "higher", "alike"])
def test_animals_of_a_measure_are_simulated_in_its_unit(better: Any) -> None:
    measured = Measured(name="t", better=better, range=(0.0, 8.0))
    latency = ReferenceValue(value=2.0, sd=0.5, n_animals=12, measured=measured)
    found = declared_animal(latency, {}, 1.0, seed=1)
    assert found.mean == pytest.approx(2.0)
    assert not found.is_at_fault
    assert declared_animal(latency, {}, 0.01, seed=1).is_at_fault
