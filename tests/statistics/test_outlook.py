"""How many more subjects would decide, and a difference from a published rate."""

from __future__ import annotations

import numpy as np
import pytest

from cheesebench.records import GOAL, ReferenceValue, sets_until
from cheesebench.statistics.beside import difference_limits
from cheesebench.statistics.betting import Scores
from cheesebench.statistics.outlook import MOST_NEEDED, POWER, Outlook, outlook
from cheesebench.statistics.question import Question

QUESTION = Question(ReferenceValue(value=0.8), -0.1, -0.2)


def seen(mean: float, subjects: int, distinct: float = 1.0) -> Outlook | None:
    own = np.full(subjects, mean)
    return outlook(
        QUESTION,
        Scores(own, own, np.full(subjects, distinct), np.arange(subjects), subjects),
        GOAL,
    )


@pytest.mark.parametrize("mean", [0.0, 0.3, 0.8, 1.0])
def test_the_smallest_set_that_probably_decides_is_named(mean: float) -> None:
    found = seen(mean, 4)
    assert found is not None
    assert found.decides
    assert found.subjects in sets_until(MOST_NEEDED)
    assert 4 < found.subjects < 200
    assert POWER <= found.chance <= 1


def test_the_nearer_to_the_bars_the_more_subjects() -> None:
    needed = [seen(mean, 12) for mean in (1.0, 0.85, 0.75)]
    numbers = [found.subjects for found in needed if found is not None]
    assert len(numbers) == 3
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]


def test_copies_are_no_evidence() -> None:
    whole, half = seen(1.0, 4), seen(1.0, 4, 0.5)
    assert whole is not None
    assert half is not None
    assert half.subjects > whole.subjects


def test_there_is_none_of_too_few_or_too_many_or_only_copies() -> None:
    assert seen(1.0, 1) is None
    assert seen(1.0, 2) is not None
    assert seen(0.65, MOST_NEEDED) is None
    assert seen(1.0, 4, 0.0) is None


def test_a_difference_has_the_limits_of_newcombe() -> None:
    """His table II, method 10: 56 of 70 and 48 of 80, and 9 of 10 and 3 of 10."""
    assert difference_limits(56 / 70, 70, 48 / 80, 80) == pytest.approx(
        (0.0524, 0.3339), abs=5e-5
    )
    assert difference_limits(9 / 10, 10, 3 / 10, 10) == pytest.approx(
        (0.1705, 0.8090), abs=5e-5
    )
    low, high = difference_limits(48 / 80, 80, 56 / 70, 70)
    assert (low, high) == pytest.approx((-0.3339, -0.0524), abs=5e-5)


@pytest.mark.parametrize("animals", [0.5, 0.8, 0.95])
def test_no_result_of_fewer_subjects_passes(animals: float) -> None:
    question = Question(ReferenceValue(value=animals), -0.1, -0.1)
    least = question.fewest(GOAL)
    assert least is not None
    perfect = np.ones(least)
    assert question.play(perfect, perfect, goal=GOAL).passed
    random = np.random.default_rng(0)
    few = 1 - random.uniform(0, 0.3, (2000, least - 1)) * random.integers(
        0, 2, (2000, least - 1)
    )
    assert not question.play(few, few, goal=GOAL).passed.any()
