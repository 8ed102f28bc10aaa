"""The interval rule and the verdict, validated by simulation from fixed seeds.

Subjects are beta-binomial: the mean of their beta(a, b) distribution is the true rate, 1 / (1 + a + b) the
true ICC. What is asserted is what 10 000 simulated experiments per case truly give (standard error .002),
less a few standard errors.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.comparison import ALPHA, TAIL, reference_limits
from cheesebench.statistics.intervals import newcombe, rate_limits
from cheesebench.statistics.summary import Unit

EXPERIMENTS = 10_000
TRIALS = 20
RATES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
ICCS = (0.0, 0.1, 0.3, 0.5)

Drawn = tuple[NDArray[np.float64], NDArray[np.int64]]


def draw(subjects: int, icc: float, rate: float, seed: int, trials: int = TRIALS) -> Drawn:
    """Return the true rates and passed trials of every subject, each of shape [EXPERIMENTS, subjects]."""
    random, shape = (
        np.random.default_rng([seed, subjects, int(100 * icc), int(100 * rate)]),
        (EXPERIMENTS, subjects),
    )
    if icc == 0:
        own = np.full(shape, rate)
    else:
        total = 1 / icc - 1
        own = random.beta(rate * total, (1 - rate) * total, shape)
    return own, random.binomial(trials, own)


def coverage(subjects: int, icc: float, rate: float, unit: Unit = "subject") -> float:
    """Return how often the 95 % interval holds the true rate."""
    _, passed = draw(subjects, icc, rate, seed=1)
    low, high = rate_limits(passed, np.full(passed.shape, TRIALS), TAIL, unit)
    return float(((low <= rate) & (rate <= high)).mean())


@pytest.mark.parametrize("icc", ICCS)
@pytest.mark.parametrize(("subjects", "at_least"), [(3, 0.98), (5, 0.94), (10, 0.94), (20, 0.94)])
def test_interval_covers_the_population_rate(subjects: int, icc: float, at_least: float) -> None:
    covered = {rate: coverage(subjects, icc, rate) for rate in RATES}
    assert min(covered.values()) >= at_least, covered


@pytest.mark.parametrize("icc", ICCS)
def test_interval_of_one_subject_covers_that_subject(icc: float) -> None:
    covered = {}
    for rate in RATES:
        own, passed = draw(1, icc, rate, seed=2)
        low, high = rate_limits(passed, np.full(passed.shape, TRIALS), TAIL, "subject")
        covered[rate] = float(((low <= own[:, 0]) & (own[:, 0] <= high)).mean())
    assert min(covered.values()) >= 0.915, covered


def test_interval_of_one_subject_says_nothing_of_the_population() -> None:
    """Why it is labelled "this subject only"."""
    assert coverage(1, 0.3, 0.5) < 0.5


def test_trials_as_the_unit_would_be_pseudoreplication() -> None:
    """Why subjects are the unit: nominal 95 % over trials covers about half the time."""
    assert coverage(10, 0.3, 0.5, "trial") < 0.6
    assert min(coverage(10, 0.0, rate, "trial") for rate in RATES) >= 0.93, "right where nothing is remembered"


def wrong_verdicts(
    subjects: int, icc: float, reference: ReferenceValue, unit: Unit, trials: int = TRIALS
) -> tuple[float, float]:
    """Return how often a model exactly at reference - margin gets PASS, and FAIL."""
    margin = 0.1
    _, passed = draw(subjects, icc, reference.value - margin, 3, trials)
    limits = rate_limits(passed, np.full(passed.shape, trials), ALPHA, unit)
    rate = passed.sum(axis=-1) / (subjects * trials)
    low, high = newcombe(rate, limits, reference.value, reference_limits(reference, ALPHA))
    return float((low > -margin).mean()), float((high < -margin).mean())


@pytest.mark.parametrize("trials", [12, 20, 100])
@pytest.mark.parametrize("icc", ICCS)
@pytest.mark.parametrize("subjects", [3, 5, 10, 20])
def test_a_model_at_the_margin_passes_in_about_five_percent(subjects: int, icc: float, trials: int) -> None:
    """The worst of all is .063 (10 subjects of 100 trials, ICC .5, reference .9); the mean is .027."""
    wrong = [
        wrong_verdicts(subjects, icc, ReferenceValue(value=value), "subject", trials)
        for value in (0.7, 0.75, 0.8, 0.85, 0.9)
    ]
    assert max(passed for passed, _ in wrong) <= 0.065, wrong
    assert max(failed for _, failed in wrong) <= 0.055, wrong


@pytest.mark.parametrize("subjects", [3, 10, 20])
def test_agents_without_memory_at_the_margin_do_as_well(subjects: int) -> None:
    """Wilson's one-sided error is not exact for few trials: .065 at 60 trials and a reference of .8."""
    wrong = [
        wrong_verdicts(subjects, 0.0, ReferenceValue(value=value), "trial") for value in (0.7, 0.75, 0.8, 0.85, 0.9)
    ]
    assert max(max(pair) for pair in wrong) <= 0.07, wrong


def test_an_uncertain_reference_makes_wrong_verdicts_rarer() -> None:
    for value in (0.7, 0.8):
        declared = wrong_verdicts(10, 0.1, ReferenceValue(value=value), "subject")
        measured = wrong_verdicts(10, 0.1, ReferenceValue(value=value, n_animals=12), "subject")
        assert measured[0] < declared[0]
        assert measured[1] < declared[1]
