"""Reference limits, the p value as inverse of the bound, and the number of subjects that settles it."""

from __future__ import annotations

import pytest

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.comparison import (
    ALPHA,
    Counts,
    Scenarios,
    p_inferior,
    reference_limits,
    subjects_to_settle,
)


def counts_of(passed: tuple[int, ...], trials: tuple[int, ...]) -> Counts:
    return Counts(passed, trials, (True,) * len(trials))


POINT = ReferenceValue(value=0.8)


def test_reference_limits_by_what_the_protocol_gives() -> None:
    assert reference_limits(POINT, ALPHA) == (0.8, 0.8)
    given = ReferenceValue(value=0.8, interval=(0.6, 0.9), n_animals=3)
    assert reference_limits(given, 0.025) == pytest.approx((0.6, 0.9))
    # One-sided 5 %: 1.6449 / 1.9600 of the way.
    assert reference_limits(given, ALPHA) == pytest.approx((0.63216, 0.88392), abs=1e-5)
    # Wilson for 8 of 10, as in any table.
    animals = ReferenceValue(value=0.8, n_animals=10)
    assert reference_limits(animals, 0.025) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_p_value_is_where_the_bound_meets_the_margin() -> None:
    scenarios = Scenarios((counts_of((9, 12, 10, 8, 11), (20,) * 5),), "subject")

    def upper(tail: float) -> float:
        return scenarios.difference_limits(POINT, tail)[1]

    p = p_inferior(upper, 0.1)
    assert 0.001 < p < 0.05
    assert upper(p) == pytest.approx(-0.1, abs=1e-6)
    assert upper(ALPHA) < -0.1, "so p < .05 and FAIL agree"


def test_p_value_of_a_model_that_is_no_worse_is_one() -> None:
    scenarios = Scenarios((counts_of((15, 16), (20, 20)),), "trial")
    assert p_inferior(lambda tail: scenarios.difference_limits(POINT, tail)[1], 0.1) == 1


def test_missing_trials_widen_to_both_extremes() -> None:
    valid, failed, passed = counts_of((40,), (50,)), counts_of((40,), (60,)), counts_of((50,), (60,))
    both = Scenarios((valid, failed, passed), "trial").difference_limits(POINT, ALPHA)
    assert both[0] == Scenarios((failed,), "trial").difference_limits(POINT, ALPHA)[0]
    assert both[1] == Scenarios((passed,), "trial").difference_limits(POINT, ALPHA)[1]


@pytest.mark.parametrize("unit", ["trial", "subject"])
def test_subjects_to_settle_is_the_least_number_that_does(unit: str) -> None:
    # At a rate of .75 in every subject (ICC 0), repeat the same subject until the verdict comes.
    needed = subjects_to_settle(
        counts_of((15, 15), (20, 20)), 0.0, "trial" if unit == "trial" else "subject", POINT, 0.1
    )
    assert needed is not None

    def low(subjects: int) -> float:
        counts = counts_of((15,) * subjects, (20,) * subjects)
        return Scenarios((counts,), "trial" if unit == "trial" else "subject").difference_limits(POINT, ALPHA)[0]

    assert low(needed) > -0.1
    assert low(needed - 1) <= -0.1


def test_no_number_settles_a_rate_at_the_margin_or_a_vague_reference() -> None:
    assert subjects_to_settle(counts_of((14,), (20,)), None, "subject", POINT, 0.1) is None
    vague = ReferenceValue(value=0.8, interval=(0.4, 1.0))
    assert subjects_to_settle(counts_of((15, 16), (20, 20)), 0.0, "subject", vague, 0.1) is None
