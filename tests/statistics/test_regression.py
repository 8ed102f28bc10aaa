"""Has a model become worse than its baseline? The rule over pairs, and how often it is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from benchmarks.verdict_errors import pairs, regression
from cheesebench.statistics.regression import LOSS, PAIR_LOOKS, Change, RegressionLook, flip_p_values, regression_look


def judged(differences: Sequence[float], most: int) -> RegressionLook:
    """Return the look at pairs of which no trial is open."""
    return regression_look(differences, differences, most)


DIFFERENCES = st.lists(st.integers(-20, 20).map(lambda k: k / 20), min_size=2, max_size=10)


@settings(deadline=None, max_examples=30)
@given(DIFFERENCES)
def test_sign_flips_are_those_of_scipy(differences: list[float]) -> None:
    test = permutation_test(
        (np.array(differences),),
        lambda sample, axis: np.round(np.mean(sample, axis=axis), 9),
        permutation_type="samples",
        alternative="less",
        vectorized=True,
        n_resamples=9999,
    )
    assert float(flip_p_values(differences)) == pytest.approx(float(test.pvalue))


@settings(deadline=None, max_examples=30)
@given(DIFFERENCES, st.data())
def test_a_pair_that_is_worse_never_looks_better(differences: list[float], data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(differences) - 1))
    lower = [max(-1.0, d - 0.1) if number == which else d for number, d in enumerate(differences)]
    assert flip_p_values(lower) <= flip_p_values(differences) + 1e-12


def test_many_pairs_are_sampled_from_a_fixed_seed() -> None:
    random = np.random.default_rng(1)
    values = random.normal(-0.05, 0.2, (3, 13))
    exact = [
        np.mean([sum(itertools.compress(row, flips)) >= 0 for flips in itertools.product((0, 1), repeat=13)])
        for row in values
    ]
    found = flip_p_values(values)
    assert found == pytest.approx(exact, abs=0.02)
    assert (found == flip_p_values(values)).all()
    assert float(flip_p_values([-0.5] * 40)) == pytest.approx(1e-4), "never 0: what was found is one of the flips"


def test_an_unchanged_model_is_cleared_and_a_broken_one_caught() -> None:
    same = judged([0.0] * 60, 60)
    assert (same.change, same.pairs) == (Change.NOT_WORSE, 18)
    broken = judged([-0.3] * 60, 60)
    assert (broken.change, broken.pairs) == (Change.WORSE, 10)
    assert broken.difference == pytest.approx(-0.3)
    slightly = judged([-0.3, 0.0] * 30, 60)
    assert slightly.change is Change.WORSE, "less than the loss, and still more than chance explains"


def test_few_pairs_say_nothing() -> None:
    assert judged([0.0] * 4, 60).change is Change.GO_ON
    assert judged([0.0] * 4, 4).change is Change.UNDECIDED
    assert judged([-1.0], 1).change is Change.UNDECIDED
    assert judged([0.1, -0.1] * 3, 6).change is Change.UNDECIDED


def test_what_comes_after_the_deciding_look_does_not_count() -> None:
    assert judged([-0.9] * 10 + [0.9] * 50, 60).change is Change.WORSE
    assert PAIR_LOOKS[0] == 6


@settings(deadline=None, max_examples=15)
@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 2)), min_size=6, max_size=6))
def test_open_trials_decide_nothing_that_could_be_otherwise(rows: list[tuple[int, int]]) -> None:
    lowest, highest = [d / 4 - 0.25 * k for d, k in rows], [d / 4 for d, _ in rows]
    lowest = [max(-1.0, d) for d in lowest]
    found = regression_look(lowest, highest, 6).change
    if found in (Change.WORSE, Change.NOT_WORSE):
        choices = [sorted({low, (low + high) / 2, high}) for low, high in zip(lowest, highest, strict=True)]
        assert {judged(d, 6).change for d in itertools.product(*choices)} == {found}


@pytest.mark.parametrize("kind", ["beta", "bimodal"])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_errors_and_power(kind: str, correlation: float) -> None:
    random = np.random.default_rng(4)
    runs = 300
    noise = 2.5 * (0.05 * 0.95 / runs) ** 0.5
    worse, cleared, _ = regression(pairs(kind, 0.9, 0.0, correlation, (runs, 60), random))
    assert worse.mean() <= 0.05 + noise
    assert cleared.mean() >= 0.95 - noise
    worse, cleared, _ = regression(pairs(kind, 0.9, LOSS, correlation, (runs, 60), random))
    assert cleared.mean() <= 0.05 + noise
    assert worse.mean() >= 0.95 - noise
