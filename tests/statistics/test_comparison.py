"""Reference limits, the p value as inverse of the bound, and the number of subjects that settles it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.comparison import (
    Counts,
    Question,
    Scenarios,
    SubjectTrials,
    p_inferior,
    scenarios,
    subjects_to_settle,
)
from cheesebench.statistics.power import fixed_verdicts
from cheesebench.statistics.reference_limits import reference_limits
from cheesebench.statistics.spending import ALPHA


def counts_of(passed: tuple[int, ...], trials: tuple[int, ...]) -> Counts:
    return Counts(passed, trials, (True,) * len(trials))


POINT = ReferenceValue(value=0.8)


def test_reference_limits_by_what_the_protocol_gives() -> None:
    assert reference_limits(POINT, ALPHA) == (0.8, 0.8)
    given = ReferenceValue(value=0.8, interval=(0.6, 0.9), n_animals=3)
    assert reference_limits(given, 0.025) == pytest.approx((0.6, 0.9))
    # One-sided 5 %: 1.6449 / 1.9600 of the way.
    assert reference_limits(given, ALPHA) == pytest.approx((0.63216, 0.88392), abs=1e-5)
    # A number of animals says nothing about how they differ.
    assert reference_limits(ReferenceValue(value=0.8, n_animals=10), ALPHA) == (0.8, 0.8)


QUESTION = Question(POINT, -0.1, -0.1)
VAGUE = ReferenceValue(value=0.8, interval=(0.75, 0.85))


@pytest.mark.parametrize("reference", [POINT, VAGUE])
def test_p_value_is_where_the_bound_meets_the_margin(reference: ReferenceValue) -> None:
    scenarios = Scenarios((counts_of((9, 12, 10, 8, 11, 10, 9, 12, 8, 9, 11, 10), (20,) * 12),))
    question = Question(reference, -0.1, -0.1)
    p = p_inferior(scenarios, question)
    assert 0.001 < p < 0.2
    assert scenarios.difference_limits(reference, p)[1] == pytest.approx(-0.1, abs=1e-6)


def test_p_value_of_a_model_that_is_no_worse_is_one() -> None:
    assert p_inferior(Scenarios((counts_of((15, 16), (20, 20)),)), QUESTION) == 1


def test_missing_trials_widen_to_both_extremes() -> None:
    rows = [SubjectTrials(14, 20, 4), SubjectTrials(15, 20), SubjectTrials(0, 0, 20)]
    found = scenarios(rows)
    assert found is not None
    low, high = found.difference_limits(POINT, ALPHA)
    failed, passed = counts_of((14, 15, 0), (24, 20, 20)), counts_of((18, 15, 20), (24, 20, 20))
    assert low == Scenarios((failed,)).difference_limits(POINT, ALPHA)[0]
    assert high == Scenarios((passed,)).difference_limits(POINT, ALPHA)[1]
    assert found.valid.rate == pytest.approx((0.7 + 0.75) / 2)
    assert scenarios([SubjectTrials(0, 0, 20)]) is None


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(0, 20), min_size=2, max_size=14),
    st.floats(0.2, 1.0),
    st.sampled_from([None, 0.05, 0.15]),
    st.sampled_from([0.005, 0.05]),
)
def test_a_bar_is_the_limit_solved_for(passes: list[int], value: float, half: float | None, tail: float) -> None:
    """The verdict by p values at the bars is the verdict by limits."""
    interval = None if half is None else (value - half, value + half)
    question = Question(ReferenceValue(value=value, interval=interval), -0.1, -0.1)
    counts = counts_of(tuple(passes), (20,) * len(passes))
    limits = Scenarios((counts,)).difference_limits(question.reference, tail)
    near = min(abs(limit + 0.1) for limit in limits)
    assert near < 1e-7 or question.verdict_of(counts.rates, tail) is question.verdict(limits)


def test_about_so_many_subjects_do_settle_it() -> None:
    """With so many like those that were seen, a verdict comes in about four of five runs; with half in far fewer."""
    random = np.random.default_rng(7)
    for seen in ((18, 19, 16, 20, 17, 18, 12, 19), (11, 6, 9, 14, 10, 8), (17, 18, 15, 17, 16, 18, 14, 17, 15, 18)):
        needed = subjects_to_settle(counts_of(seen, (20,) * len(seen)), QUESTION)
        assert needed is not None

        def decided(subjects: int, seen: tuple[int, ...] = seen) -> float:
            rates = random.choice(np.array(seen) / 20, (2000, subjects))
            return float(np.mean(np.logical_or(*fixed_verdicts(rates, POINT, 0.1))))

        assert 0.7 <= decided(needed) <= 0.95, (seen, needed)
        assert decided(needed // 2) < 0.5, (seen, needed)


def test_no_number_settles_a_rate_at_the_margin_or_a_vague_reference() -> None:
    assert subjects_to_settle(counts_of((14,), (20,)), QUESTION) is None
    vague = Question(ReferenceValue(value=0.8, interval=(0.4, 1.0)), -0.1, -0.1)
    assert subjects_to_settle(counts_of((15, 16), (20, 20)), vague) is None


def test_one_subject_is_taken_to_be_one_of_many_that_differ() -> None:
    alone = subjects_to_settle(counts_of((19,), (20,)), QUESTION)
    assert alone is not None
    assert alone > 9, "which is what subjects that never fail need"
