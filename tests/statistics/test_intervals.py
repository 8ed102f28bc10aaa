"""The pieces against published and hand-computed values, and the interval of a rate against what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from cheesebench.statistics.intervals import (
    clustering,
    newcombe,
    quantile,
    rate_limits,
    shrinkage,
    wilson,
)

Z = quantile(0.025, None)


@pytest.mark.parametrize(
    ("passed", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_is_as_in_newcombe_1998a_table_1(passed: int, n: int, low: float, high: float) -> None:
    limits = wilson(passed / n, n, Z)
    assert [round(float(limit), 4) for limit in limits] == [low, high]


@given(st.floats(0, 1), st.floats(0.5, 1e5), st.floats(0.1, 8))
def test_wilson_is_that_of_statsmodels(rate: float, n: float, z: float) -> None:
    alpha = 2 * float(stats.norm.sf(z))
    theirs = proportion_confint(rate * n, n, alpha=alpha, method="wilson")
    assert np.asarray(wilson(rate, n, z)) == pytest.approx(np.asarray(theirs), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("a", "m", "b", "n", "low", "high"),
    [
        (56, 70, 48, 80, 0.0524, 0.3339),
        (9, 10, 3, 10, 0.1705, 0.8090),
        (6, 7, 2, 7, 0.0582, 0.8062),
        (5, 56, 0, 29, -0.0381, 0.1926),
        (10, 10, 0, 20, 0.6791, 1.0),
    ],
)
def test_difference_is_as_in_newcombe_1998b_table_2(a: int, m: int, b: int, n: int, low: float, high: float) -> None:
    first, second = wilson(a / m, m, Z), wilson(b / n, n, Z)
    limits = newcombe(a / m, first, b / n, (float(second[0]), float(second[1])))
    assert [round(float(limit), 4) for limit in limits] == [low, high]


def test_quantiles_are_those_of_the_tables() -> None:
    assert quantile(0.025, None) == pytest.approx(1.95996, abs=1e-5)
    assert quantile(0.05, 9) == pytest.approx(1.83311, abs=1e-5)
    assert quantile(0.025, 1) == pytest.approx(12.7062, abs=1e-4)


def test_icc_by_hand() -> None:
    # 3 and 1 of 4: between = 2 * 4 * .25**2 = .5, within = 1.5 / 6 = .25, (.5 - .25) / (.5 + 3 * .25) = .2
    assert float(clustering([3, 1], [4, 4]).icc) == pytest.approx(0.2)
    assert float(clustering([4, 0], [4, 4]).icc) == 1
    assert float(clustering([2, 2, 2], [4, 4, 4]).icc) == 0, "negative estimates are clipped"
    assert float(clustering([4, 4], [4, 4]).icc) == 0, "without any variation there is nothing to tell"
    assert float(clustering([1, 0], [1, 1]).icc) == 0, "one trial each: nothing to tell"


@given(st.lists(st.lists(st.booleans(), min_size=2, max_size=8), min_size=2, max_size=6))
def test_f_test_is_scipys(lives: list[list[bool]]) -> None:
    rates = {sum(life) / len(life) for life in lives}
    if rates <= {0.0, 1.0}:
        return  # No variation within subjects: scipy's F is infinite or undefined.
    found = float(clustering([sum(life) for life in lives], [len(life) for life in lives]).p_value)
    if len(rates) == 1:
        assert found == pytest.approx(1), "F is 0, for which scipy's rounding may give nan"
        return
    expected = stats.f_oneway(*[np.asarray(life, dtype=float) for life in lives]).pvalue
    assert found == pytest.approx(float(expected), abs=1e-9)


def test_design_effect() -> None:
    assert float(shrinkage(0.1, [20] * 10).design_effect) == pytest.approx(2.9)
    assert float(shrinkage(0.1, [20] * 10).effective_n) == pytest.approx(200 / 2.9)
    # Unequal lives: the mean weighted by trials is (10**2 + 30**2) / 40 = 25.
    assert float(shrinkage(0.5, [10, 30]).design_effect) == pytest.approx(13)


def test_whole_rule_by_hand() -> None:
    # Ten subjects pass all trials: as ten coins, .025 ** (1 / 10), however many trials there were.
    for trials in (1, 20):
        low, high = rate_limits([trials] * 10, [trials] * 10, 0.025)
        assert low == pytest.approx(0.025**0.1)
        assert high == 1


def test_one_subject_has_wilsons_interval_over_its_trials() -> None:
    assert rate_limits([15], [20], 0.025) == tuple(map(float, wilson(0.75, 20, Z)))


def test_subjects_count_alike_whatever_their_numbers_of_trials() -> None:
    assert rate_limits([1, 20, 5], [2, 40, 10], 0.05) == rate_limits([1, 1, 1], [2, 2, 2], 0.05)


def test_copies_are_in_the_rate_but_no_further_evidence() -> None:
    passed, trials = [20] * 6 + [10] * 6, [20] * 12
    distinct = [True] * 6 + [True] + [False] * 5
    low, high = rate_limits(passed, trials, 0.05, distinct)
    assert low < 0.75 < high
    without = rate_limits(passed, trials, 0.05)
    assert low < without[0]
    assert without[1] < high


COUNTS = st.lists(
    st.integers(1, 40).flatmap(lambda m: st.tuples(st.integers(0, m), st.just(m))), min_size=1, max_size=12
)


def limits_of(counts: list[tuple[int, int]], tail: float) -> tuple[float, float]:
    return rate_limits([x for x, _ in counts], [m for _, m in counts], tail)


@settings(deadline=None)
@given(COUNTS, st.floats(0.001, 0.4), st.randoms(use_true_random=False))
def test_limits_lie_in_order_in_the_unit_interval_whatever_the_order_of_subjects(
    counts: list[tuple[int, int]], tail: float, random: object
) -> None:
    low, high = limits_of(counts, tail)
    rate = sum(x / m for x, m in counts) / len(counts)
    assert 0 <= low <= rate + 1e-9
    assert rate - 1e-9 <= high <= 1
    assert low < high, "never without width, not even at 0 or 100 %"
    shuffled = counts[::-1]
    getattr(random, "shuffle")(shuffled)  # noqa: B009 - hypothesis gives its Random no public type
    assert limits_of(shuffled, tail) == pytest.approx((low, high), abs=1e-8)


@settings(deadline=None)
@given(COUNTS)
def test_failing_mirrors_passing(counts: list[tuple[int, int]]) -> None:
    low, high = limits_of(counts, 0.025)
    mirrored = limits_of([(m - x, m) for x, m in counts], 0.025)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-8)


@settings(deadline=None)
@given(COUNTS, st.floats(0.01, 0.4))
def test_smaller_tails_are_wider(counts: list[tuple[int, int]], tail: float) -> None:
    low, high = limits_of(counts, tail)
    wide_low, wide_high = limits_of(counts, tail / 2)
    assert wide_low <= low
    assert high <= wide_high


@settings(deadline=None)
@given(st.integers(2, 30), st.integers(2, 40), st.data())
def test_one_more_pass_raises_both_limits_of_trials(subjects: int, m: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(0, subjects * m - 1))
    fewer, more = (
        wilson(passed / (subjects * m), subjects * m, Z),
        wilson((passed + 1) / (subjects * m), subjects * m, Z),
    )
    assert fewer[0] < more[0]
    assert fewer[1] < more[1]


def test_a_quantile_beyond_all_numbers_claims_nothing() -> None:
    limits = wilson(0.5, 1000, quantile(1e-9, 1))
    assert [float(limit) for limit in limits] == [0, 1]
