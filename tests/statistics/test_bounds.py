"""Gaffke's bounds: exact where something exact is known, the same by every way of computing them, and monotone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cheesebench.statistics import bounds
from cheesebench.statistics.bounds import mean_limits, p_value, p_values, resized

RATES = st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=1, max_size=14)
MEANS = st.floats(0.02, 0.98)


@pytest.mark.parametrize(("passed", "subjects"), [(7, 10), (0, 5), (5, 5), (1, 2), (30, 41)])
def test_all_or_none_subjects_have_the_limits_of_clopper_and_pearson(passed: int, subjects: int) -> None:
    rates = [1.0] * passed + [0.0] * (subjects - passed)
    exact = stats.binomtest(passed, subjects).proportion_ci(0.95, method="exact")
    assert mean_limits(rates, 0.025) == pytest.approx((exact.low, exact.high), abs=1e-8)


def test_the_p_value_is_the_probability_that_it_is_said_to_be() -> None:
    rates = [0.2, 0.55, 0.9, 0.9, 1.0, 0.4]
    shares = np.random.default_rng(1).dirichlet(np.ones(7), 200_000)
    for mean in (0.3, 0.45, 0.6):
        drawn = (shares[:, :6] @ np.array(rates) <= mean).mean()
        assert p_value(rates, mean) == pytest.approx(drawn, abs=0.005)


@settings(deadline=None)
@given(RATES, MEANS)
def test_one_data_set_and_many_are_computed_alike(rates: list[float], mean: float) -> None:
    many = p_values(np.array([rates, [1 - rate for rate in rates]]), np.array([mean, 1 - mean]))
    assert many == pytest.approx([p_value(rates, mean), p_value([1 - rate for rate in rates], 1 - mean)], abs=1e-9)


@settings(deadline=None)
@given(RATES, MEANS, st.data())
def test_one_more_pass_never_hurts(rates: list[float], mean: float, data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(rates) - 1))
    better = [min(1.0, rate + 0.05) if number == which else rate for number, rate in enumerate(rates)]
    assert p_value(better, mean) <= p_value(rates, mean) + 1e-12
    low, high = mean_limits(rates, 0.05)
    more_low, more_high = mean_limits(better, 0.05)
    assert low <= more_low + 1e-9
    assert high <= more_high + 1e-9


def test_beyond_so_many_subjects_the_approximation_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    rates = (random.binomial(20, random.beta(4, 1, 120)) / 20).tolist()
    mean = sum(rates) / len(rates)
    shifts = (0.065, 0.05, 0.03, 0.0)
    approximate = [p_value(rates, mean - shift) for shift in shifts]
    monkeypatch.setattr(bounds, "EXACT_SUBJECTS", 200)
    exact = [p_value(rates, mean - shift) for shift in shifts]
    assert exact[0] < 0.01 < exact[2] < exact[3]
    assert approximate == pytest.approx(exact, rel=0.04)


def test_the_ends() -> None:
    assert mean_limits([0.0, 0.0], 0.05) == pytest.approx((0.0, 1 - 0.05**0.5))
    assert p_value([0.5], 1.0) == 1
    assert p_value([0.5], 0.0) == 0
    assert p_values([[0.5]], 0.0) == 0
    assert p_values([[0.0]], 0.0) == 1
    assert p_value([0.3, 0.3], 0.3) == 1, "nothing is above it"


@settings(deadline=None)
@given(RATES, st.integers(1, 40))
def test_resized_samples_keep_the_mean_and_the_range(rates: list[float], subjects: int) -> None:
    found = resized(rates, subjects).tolist()
    assert len(found) == subjects
    assert sum(found) / subjects == pytest.approx(sum(rates) / len(rates))
    assert np.diff(found).min(initial=0) >= -1e-12
    assert min(rates) <= found[0] <= found[-1] <= max(rates)
    assert resized(rates, len(rates)).tolist() == sorted(rates)
