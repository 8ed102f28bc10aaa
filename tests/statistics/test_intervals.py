"""The parts against published and hand-computed values, and invariants of the interval
of a rate.
"""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from cheesebench.statistics.intervals import (
    clustering,
    mean_limits,
    quantile,
    rate_limits,
    t_interval,
    wilson,
)

Z = quantile(0.025, None)


@pytest.mark.parametrize(
    ("passed", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_is_as_in_newcombe_1998a_table_1(
    passed: int, n: int, low: float, high: float
) -> None:
    limits = wilson(passed / n, n, Z)
    assert [round(float(limit), 4) for limit in limits] == [low, high]


@given(st.floats(0, 1), st.floats(0.5, 1e5), st.floats(0.1, 8))
def test_wilson_is_that_of_statsmodels(rate: float, n: float, z: float) -> None:
    alpha = 2 * float(stats.norm.sf(z))
    theirs = proportion_confint(rate * n, n, alpha=alpha, method="wilson")
    assert np.asarray(wilson(rate, n, z)) == pytest.approx(
        np.asarray(theirs), rel=1e-9, abs=1e-12
    )


def test_quantiles_are_those_of_the_tables() -> None:
    assert quantile(0.025, None) == pytest.approx(1.95996, abs=1e-5)
    assert quantile(0.05, 9) == pytest.approx(1.83311, abs=1e-5)
    assert quantile(0.025, 1) == pytest.approx(12.7062, abs=1e-4)


def test_icc_by_hand() -> None:
    # 3 and 1 of 4: between = 2 * 4 * .25**2 = .5, within = 1.5 / 6 = .25, (.5 - .25) /
    # (.5 + 3 * .25) = .2
    assert clustering([3, 1], [4, 4])[0] == pytest.approx(0.2)
    assert clustering([4, 0], [4, 4])[0] == 1
    assert clustering([2, 2, 2], [4, 4, 4])[0] == 0, "negative estimates are clipped"
    assert clustering([4, 4], [4, 4])[0] == 0, (
        "without any variation there is nothing to tell"
    )
    assert clustering([1, 0], [1, 1])[0] == 0, "one trial each: nothing to tell"


@given(
    st.lists(st.lists(st.booleans(), min_size=2, max_size=8), min_size=2, max_size=6)
)
def test_f_test_is_scipys(lives: list[list[bool]]) -> None:
    rates = {sum(life) / len(life) for life in lives}
    if rates <= {0.0, 1.0}:
        return  # No variation within subjects: scipy's F is infinite or undefined.
    found = clustering([sum(life) for life in lives], [len(life) for life in lives])[1]
    if len(rates) == 1:
        assert found == pytest.approx(1), (
            "F is 0, for which scipy's rounding may give nan"
        )
        return
    expected = stats.f_oneway(*[np.asarray(life, dtype=float) for life in lives]).pvalue
    assert found == pytest.approx(float(expected), abs=1e-9)


def test_one_subject_has_wilsons_interval_over_its_trials() -> None:
    assert rate_limits([15], [20]) == tuple(map(float, wilson(0.75, 20, Z)))


def test_subjects_count_alike_whatever_their_numbers_of_trials() -> None:
    assert rate_limits([1, 20, 5], [2, 40, 10]) == rate_limits([1, 1, 1], [2, 2, 2])


def test_the_t_interval_is_scipys() -> None:
    values = [0.1, 0.4, 0.35, 0.2]
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert t_interval(values) == pytest.approx((low, high))
    assert t_interval([0.1]) is None


@given(st.integers(2, 30), st.integers(2, 40), st.data())
def test_one_more_pass_raises_both_limits_of_trials(
    subjects: int, m: int, data: st.DataObject
) -> None:
    passed = data.draw(st.integers(0, subjects * m - 1))
    fewer, more = (
        wilson(passed / (subjects * m), subjects * m, Z),
        wilson((passed + 1) / (subjects * m), subjects * m, Z),
    )
    assert fewer[0] < more[0]
    assert fewer[1] < more[1]


Estimate = tuple[float, float, float]
shares = st.floats(0, 1)
estimates = st.tuples(shares, shares, shares).map(
    lambda three: (sorted(three)[1], min(three), max(three))
)


@given(st.lists(estimates, min_size=1, max_size=12), st.randoms())
def test_a_mean_has_limits_within_those_of_its_estimates(
    own: list[Estimate], random: Random
) -> None:
    mean, *ends = (sum(side) / len(own) for side in zip(*own, strict=True))
    low, high = mean_limits(own)
    tolerance = 1e-12
    assert ends[0] - tolerance <= low <= mean + tolerance
    assert mean - tolerance <= high <= ends[1] + tolerance
    assert mean_limits([own[0]]) == pytest.approx(own[0][1:], abs=tolerance)
    shuffled = random.sample(own, len(own))
    assert mean_limits(shuffled) == (low, high), "names and order change nothing"
    mirrored = [(1 - rate, 1 - most, 1 - least) for rate, least, most in own]
    assert mean_limits(mirrored) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize("passes", [0.95, 0.98, 0.9, 0.5])
@pytest.mark.parametrize("subjects", [3, 6])
def test_limits_of_a_mean_hold_near_a_rate_of_1(passes: float, subjects: int) -> None:
    """Nine protocols, all near 1: a rate of 1 has no distance above, so limits of which
    the sides add up apart are too low in one run of ten.
    """

    @cache
    def limits_of(*own: int) -> tuple[float, float]:
        return rate_limits(own, [1] * subjects)

    random, missed = np.random.default_rng(4), 0
    for _ in range(400):
        drawn = (random.random((9, subjects)) < passes).astype(int).tolist()
        low, high = mean_limits(
            [(sum(own) / subjects, *limits_of(*own)) for own in drawn]
        )
        missed += not low <= passes <= high
    assert missed <= 0.05 * 400
