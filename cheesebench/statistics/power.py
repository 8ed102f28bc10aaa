"""What a design can be expected to say: probabilities of the verdicts at a true rate, by simulation of the rule itself.

The runs are drawn, the verdicts are not approximated: they come from the code that judges (``intervals``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.comparison import ALPHA, reference_limits
from cheesebench.statistics.intervals import ICC_FLOOR, newcombe, rate_limits
from cheesebench.statistics.summary import Unit, Verdict

#: Simulated runs for each probability: a standard error of 1.1 points at most.
RUNS = 2000
#: The power that designs are usually asked for.
WANTED = 0.8
#: No design with more subjects than this is proposed.
MOST_SUBJECTS = 1000

Chances = Mapping[Verdict, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """``subjects`` with ``trials`` each that enter the pass rate; ``icc`` is how alike a subject's trials are."""

    subjects: int
    trials: int
    icc: float = ICC_FLOOR
    unit: Unit = "subject"


def verdict_chances(
    rate: float, cohort: Cohort, reference: ReferenceValue, margin: float, *, seed: int, runs: int = RUNS
) -> Chances:
    """Return the probability of each verdict when the model's true rate is ``rate``.

    Subjects differ by a beta distribution with the cohort's ICC; where the trial is the unit they do not differ.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    shape = (runs, cohort.subjects)
    own = np.full(shape, min(max(rate, 0.0), 1.0))
    if cohort.unit == "subject" and 0 < rate < 1 and 0 < cohort.icc < 1:
        spread = (1 - cohort.icc) / cohort.icc
        own = random.beta(rate * spread, (1 - rate) * spread, shape)
    passed = random.binomial(cohort.trials, own)
    limits = rate_limits(passed, np.full(shape, cohort.trials), ALPHA, cohort.unit)
    found = passed.sum(axis=-1) / (cohort.subjects * cohort.trials)
    low, high = newcombe(found, limits, reference.value, reference_limits(reference, ALPHA))
    passes, fails = float((low > -margin).mean()), float((high < -margin).mean())
    return {Verdict.PASS: passes, Verdict.FAIL: fails, Verdict.INCONCLUSIVE: max(0.0, 1 - passes - fails)}


def disagreement(chances: Chances) -> float:
    """Return the probability that two runs of the same model come to different verdicts."""
    return max(0.0, 1 - sum(chance**2 for chance in chances.values()))


def subjects_for_power(
    cohort: Cohort, reference: ReferenceValue, margin: float, *, seed: int, power: float = WANTED
) -> int | None:
    """Return how many subjects a model that is exactly as good as the rodent needs to PASS with that probability.

    None: not even ``MOST_SUBJECTS`` are enough (the animals' own interval may be too wide for the margin).
    """

    def enough(subjects: int) -> bool:
        more = Cohort(subjects=subjects, trials=cohort.trials, icc=cohort.icc, unit=cohort.unit)
        # The same seed for all: what is compared differs by the number of subjects alone.
        return verdict_chances(reference.value, more, reference, margin, seed=seed)[Verdict.PASS] >= power

    few, many = 1, 2
    while not enough(many):
        if many >= MOST_SUBJECTS:
            return None
        few, many = many, min(many * 2, MOST_SUBJECTS)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many
