"""Limits of the animals' number: two groups of subjects are compared, and the animals are one of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.intervals import newcombe
from cheesebench.statistics.reference_limits import has_interval, reference_limits
from cheesebench.statistics.spending import ALPHA

MICE = ReferenceValue(value=0.663, sd=0.131, n_animals=35)


def test_the_limits_of_a_group_are_those_of_its_mean() -> None:
    # As printed beside the data: 95 % CI of the mean by t with 34 degrees of freedom.
    assert reference_limits(MICE, 0.025) == pytest.approx((0.618, 0.708), abs=5e-4)
    expected = stats.t.interval(0.9, 34, loc=0.663, scale=0.131 / np.sqrt(35))
    assert reference_limits(MICE, ALPHA) == pytest.approx(expected)


def test_a_number_of_animals_or_a_spread_alone_is_a_point() -> None:
    for animals in (
        ReferenceValue(value=0.8, n_animals=12),
        ReferenceValue(value=0.8, sd=0.1),
        ReferenceValue(value=0.8, sd=0.1, n_animals=1),
    ):
        assert not has_interval(animals)
        assert reference_limits(animals, ALPHA) == (0.8, 0.8)


def test_animals_that_all_did_the_same_are_as_many_draws() -> None:
    low, high = reference_limits(ReferenceValue(value=1.0, sd=0.0, n_animals=10), 0.025)
    # Wilson for 10 of 10, as in any table.
    assert (low, high) == pytest.approx((0.7225, 1.0), abs=1e-4)


def test_a_given_interval_is_used_before_the_spread() -> None:
    both = ReferenceValue(value=0.8, interval=(0.6, 0.9), sd=0.01, n_animals=35)
    assert reference_limits(both, 0.025) == pytest.approx((0.6, 0.9))


@given(
    value=st.floats(0, 1),
    sd=st.floats(0, 0.5),
    n=st.integers(2, 1000),
    tails=st.tuples(st.floats(1e-6, 0.5), st.floats(1e-6, 0.5)),
)
def test_limits_hold_the_value_and_widen_with_confidence(
    value: float, sd: float, n: int, tails: tuple[float, float]
) -> None:
    animals = ReferenceValue(value=value, sd=sd, n_animals=n)
    narrow, wide = (reference_limits(animals, tail) for tail in sorted(tails, reverse=True))
    ascending = np.array([0, wide[0], narrow[0], value, narrow[1], wide[1], 1])
    assert (np.diff(ascending) >= -1e-12).all()  # but for rounding


@pytest.mark.parametrize(("first", "second"), [(12, 35), (35, 7), (40, 40)])
def test_two_groups_are_compared_as_by_welch(first: int, second: int) -> None:
    """Where both are groups with a spread, Newcombe's method gives about the interval of Welch's test."""
    rng = np.random.default_rng(1)
    model, animals = rng.normal(0.6, 0.1, first), rng.normal(0.65, 0.12, second)
    sides = [
        ReferenceValue(value=float(group.mean()), sd=float(group.std(ddof=1)), n_animals=len(group))
        for group in (model, animals)
    ]
    ours = newcombe(
        sides[0].value, reference_limits(sides[0], ALPHA), sides[1].value, reference_limits(sides[1], ALPHA)
    )
    welch = stats.ttest_ind(model, animals, equal_var=False).confidence_interval(0.9)
    assert np.array(ours, dtype=float) == pytest.approx((welch.low, welch.high), abs=0.006)


@pytest.mark.parametrize(("animals", "spread"), [(7, 0.08), (19, 0.2), (35, 0.13)])
def test_a_group_at_the_margin_is_rarely_let_through(animals: int, spread: float) -> None:
    """The animals are drawn anew in each of many experiments; the model is exactly a margin worse."""
    rng = np.random.default_rng(2)
    runs, subjects, margin = 4000, 20, 0.1
    groups = rng.normal(0.65, spread, (runs, animals))
    models = rng.normal(0.65 - margin, spread, (runs, subjects))
    passes = fails = 0
    for group, model in zip(groups, models, strict=True):
        rodent, own = (
            ReferenceValue(value=float(np.clip(one.mean(), 0, 1)), sd=float(one.std(ddof=1)), n_animals=len(one))
            for one in (group, model)
        )
        low, high = newcombe(own.value, reference_limits(own, ALPHA), rodent.value, reference_limits(rodent, ALPHA))
        passes += bool(low > -margin)
        fails += bool(high < -margin)
    assert max(passes, fails) / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
