"""What a verdict asks of a cell: scores, bars, and the subjects that it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cheesebench.records import CellPlan, Measured, ReferenceValue, TrialRecord
from cheesebench.statistics.question import (
    PASS_RATE,
    Question,
    measured_scale,
    question_of,
)

Plan = Callable[..., CellPlan]


def test_the_score_of_a_trial(life: Callable[..., list[TrialRecord]]) -> None:
    passed, failed, missing = life(0, "+-!")
    assert [PASS_RATE.score_of(one) for one in (passed, failed, missing)] == [
        1,
        0,
        None,
    ]
    assert PASS_RATE.score_of(replace(passed, success=None)) is None


@pytest.mark.parametrize(
    ("better", "scores"),
    # A range from 10 to 60: 0 is its worse end, and beyond the ends there is nothing.
    [("higher", [0, 0, 0.4, 1, 1, None]), ("lower", [1, 1, 0.6, 0, 0, None])],
)
def test_the_score_of_a_measure(
    better: Any, scores: list[float | None], life: Callable[..., list[TrialRecord]]
) -> None:
    scale = measured_scale(Measured(name="l", better=better, range=(10.0, 60.0)))
    [record] = life(0, "+")
    found = [
        scale.score_of(replace(record, measures={} if value is None else {"l": value}))
        for value in (0, 10, 30, 60, 99, None)
    ]
    assert found == [None if one is None else pytest.approx(one) for one in scores]


def test_too_few_subjects_are_told_with_how_many_it_takes(plan: Plan) -> None:
    question = question_of(plan())
    assert question is not None
    least = question.fewest(plan().goal)
    assert least is not None
    assert least > 2
    enough, few = plan(subjects=least), plan(subjects=least - 1)
    said = (
        f"No result of {least - 1} subjects can PASS on {few.label} (at least {least})."
    )
    assert Question.too_few([few, enough]) == said
    one = plan(subjects=1, protocol="other")
    both = Question.too_few([one, few, replace(few, protocol="third")])
    assert both.count("No result of") == 2
    assert f"No result of 1 subject can PASS on {one.label} (at least {least})." in both
    assert f"{few.label} (at least {least}), " in both
    assert Question.too_few([plan(None, subjects=1)]) == ""


def test_what_is_asked(plan: Plan) -> None:
    assert question_of(plan(None)) is None
    assert question_of(plan(claims=False)) is None
    of_animals = question_of(plan(0.8, margin=0.1))
    assert of_animals is not None
    assert (of_animals.reference.value, of_animals.passes, of_animals.fails) == (
        0.8,
        -0.1,
        -0.1,
    )
    of_chance = question_of(plan(None, chance=0.25, against="chance", margin=0.2))
    assert of_chance is not None
    assert (of_chance.reference.value, of_chance.passes, of_chance.fails) == (
        0.25,
        0.0,
        0.2,
    )


@pytest.mark.parametrize("better", ["higher", "alike"])
def test_where_animals_are_a_sample_some_means_are_never_decided(
    better: Any, plan: Plan
) -> None:
    assert Question(ReferenceValue(value=0.8), -0.1, -0.1).open_zones() == ()
    animals = ReferenceValue(
        value=0.5,
        sd=0.1,
        n_animals=16,
        measured=Measured(name="l", better=better, range=(0.0, 1.0)),
    )
    question = question_of(plan(animals, margin=0.2))
    assert question is not None
    zones = question.open_zones()
    assert len(zones) == (2 if better == "alike" else 1)
    # The error of the animals' mean lies on both sides of the bar.
    assert zones[0][0] < 0.3 < zones[0][1] < 0.5
    for low, high in zones[1:]:
        assert low == pytest.approx(1 - zones[0][1])
        assert high == pytest.approx(1 - zones[0][0])
