"""The fixed rule validated by simulation from fixed seeds: a model at the margin is rarely judged wrongly.

Subjects are beta-binomial (the mean of their distribution is the true rate, 1 / (1 + a + b) the true ICC), or pass
all or nothing. ``benchmarks/verdict_errors.py`` has the large grid, ``test_sequential_independent`` its own players.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.bounds import p_values
from cheesebench.statistics.comparison import TAIL
from cheesebench.statistics.intervals import quantile, rate_limits, wilson
from cheesebench.statistics.power import fixed_verdicts

EXPERIMENTS = 4000
TRIALS = 20
RATES = (0.05, 0.2, 0.5, 0.8, 0.95)
ICCS = (0.0, 0.1, 0.3, 0.5)
#: Two standard errors of a probability of .05.
NOISE = 2 * (0.05 * 0.95 / EXPERIMENTS) ** 0.5

Floats = NDArray[np.float64]


def draw(subjects: int, icc: float, rate: float, seed: int, trials: int = TRIALS) -> tuple[Floats, Floats]:
    """Return the true and the observed rates of every subject, each of shape [EXPERIMENTS, subjects]."""
    random = np.random.default_rng([seed, subjects, int(100 * icc), int(100 * rate)])
    shape = (EXPERIMENTS, subjects)
    own = np.full(shape, rate)
    if icc:
        total = 1 / icc - 1
        own = random.beta(rate * total, (1 - rate) * total, shape)
    return own, random.binomial(trials, own) / trials


@pytest.mark.parametrize("icc", ICCS)
@pytest.mark.parametrize("subjects", [2, 3, 5, 10, 20])
def test_interval_covers_the_population_rate(subjects: int, icc: float) -> None:
    for rate in RATES:
        _, found = draw(subjects, icc, rate, seed=1)
        # The interval holds the rate where neither p value at the rate is below the tail.
        outside = (p_values(found, rate) < TAIL) | (p_values(1 - found, 1 - rate) < TAIL)
        assert outside.mean() <= 0.05 + NOISE, (rate, subjects, icc)


@pytest.mark.parametrize("icc", ICCS)
def test_interval_of_one_subject_covers_that_subject(icc: float) -> None:
    covered = {}
    for rate in RATES:
        own, found = draw(1, icc, rate, seed=2)
        low, high = wilson(found[:, 0], TRIALS, quantile(TAIL, None))
        covered[rate] = float(((low <= own[:, 0]) & (own[:, 0] <= high)).mean())
    assert min(covered.values()) >= 0.915, covered
    assert rate_limits([15], [20], TAIL) == tuple(map(float, wilson(0.75, 20, quantile(TAIL, None))))


def test_trials_as_the_unit_would_be_pseudoreplication() -> None:
    """Why subjects are the unit: nominal 95 % over trials covers about half the time."""
    _, found = draw(10, 0.3, 0.5, seed=1)
    low, high = wilson(found.mean(axis=1), 10 * TRIALS, quantile(TAIL, None))
    assert ((low <= 0.5) & (high >= 0.5)).mean() < 0.6


@pytest.mark.parametrize("trials", [1, 20, 100])
@pytest.mark.parametrize("icc", [0.02, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("subjects", [2, 5, 10, 20, 60])
def test_a_model_at_the_margin_is_judged_wrongly_in_five_percent_at_the_most(
    subjects: int, icc: float, trials: int
) -> None:
    for value in (0.3, 0.7, 0.9, 0.95):
        _, found = draw(subjects, icc, value - 0.1, 3, trials)
        for wrong in fixed_verdicts(found, ReferenceValue(value=value), 0.1):
            assert wrong.mean() <= 0.05 + NOISE, (value, subjects, icc, trials)


@pytest.mark.parametrize("subjects", [2, 5, 10, 20, 60])
def test_so_are_subjects_that_learn_or_do_not(subjects: int) -> None:
    random = np.random.default_rng(4)
    for value in (0.3, 0.7, 0.9, 0.95):
        learnt = random.random((EXPERIMENTS, subjects)) < (value - 0.15) / 0.9
        found = random.binomial(40, np.where(learnt, 0.95, 0.05)) / 40
        for wrong in fixed_verdicts(found, ReferenceValue(value=value), 0.1):
            assert wrong.mean() <= 0.05 + NOISE, (value, subjects)


def test_an_uncertain_reference_makes_wrong_verdicts_rarer() -> None:
    for value in (0.7, 0.8):
        _, found = draw(40, 0.1, value - 0.1, 5)
        declared = fixed_verdicts(found, ReferenceValue(value=value), 0.1)
        measured = fixed_verdicts(found, ReferenceValue(value=value, sd=0.2, n_animals=12), 0.1)
        assert measured[0].sum() < declared[0].sum()
        assert measured[1].sum() < declared[1].sum()
