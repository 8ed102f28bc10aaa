"""Power of a design: probabilities of the verdicts at a true rate, by simulating the decision rule.

Simulated runs are judged by the same code as real ones (``bounds``), not by an approximation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.comparison import Question
from cheesebench.statistics.intervals import ICC_FLOOR
from cheesebench.statistics.means import RATES, Means
from cheesebench.statistics.merit import Scale
from cheesebench.statistics.sequential import futile
from cheesebench.statistics.spending import ALPHA
from cheesebench.statistics.summary import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Simulated runs for each probability: a standard error of 1.1 points at most.
RUNS = 2000
#: Simulated runs where a number of subjects is sought.
SEARCH_RUNS = 800
#: Most subjects for which runs are simulated, in memory; there, chances are next to 0 or 1.
MOST_SIMULATED = 5000
#: The power that designs are usually asked for.
WANTED = 0.8
#: No design with more subjects than this is proposed.
MOST_SUBJECTS = 1000

Chances = Mapping[Verdict, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """``subjects`` with ``trials`` each that enter the pass rate, and their intraclass correlation.

    For a measure, ``spread`` is the standard deviation of the subjects' own means, and ``means`` tests their mean.
    """

    subjects: int
    trials: int
    icc: float = ICC_FLOOR
    spread: float | None = None
    means: Means = RATES


def like_the_animals(animals: ReferenceValue, scale: Scale, cohort: Cohort) -> Cohort:
    """Return the cohort with subjects that differ as the animals do, if the verdict is about a measure.

    ``animals`` is in merits. Where their spread is not known, it is that of rates with the cohort's ICC.
    """
    if scale.measured is None:
        return cohort
    assumed = (cohort.icc * max(0.0, animals.value * (1 - animals.value))) ** 0.5
    return replace(cohort, means=scale.means, spread=assumed if animals.sd is None else animals.sd)


def verdict_chances(
    rate: float, cohort: Cohort, reference: ReferenceValue, margin: float, *, seed: int, runs: int = RUNS
) -> Chances:
    """Return the probability of each verdict when the model's true rate is ``rate``.

    Subjects differ by a beta distribution with the cohort's ICC.
    """
    found = _observed(rate, cohort, runs, seed)
    decided = fixed_verdicts(found, reference, margin, means=cohort.means)
    passes, fails = (float(flags.mean()) for flags in decided)
    return {Verdict.PASS: passes, Verdict.FAIL: fails, Verdict.INCONCLUSIVE: max(0.0, 1 - passes - fails)}


def sequential_chances(
    rate: float,
    cohort: Cohort,
    looks: tuple[int, ...],
    reference: ReferenceValue,
    margin: float,
    *,
    seed: int,
    runs: int = SEARCH_RUNS,
) -> tuple[Chances, float]:
    """Return the probability of each verdict of the sequential rule, and the mean number of subjects that it takes.

    ``cohort.subjects`` are those of the last of the ``looks``.
    """
    import numpy as np

    found = _observed(rate, cohort, runs, seed)
    question = Question(reference, -margin, -margin, cohort.means)
    open_ones = np.arange(runs)
    passed, failed, stopped = np.zeros(runs, dtype=bool), np.zeros(runs, dtype=bool), np.full(runs, looks[-1])
    for look, tail in zip(looks, cohort.means.tails(looks), strict=True):
        seen = found[open_ones, :look]
        passes, fails = fixed_verdicts(seen, reference, margin, tail, means=cohort.means)
        passed[open_ones[passes]] = failed[open_ones[fails]] = True
        over = passes | fails
        if look < looks[-1]:
            over |= futile(question, seen, look, looks)
        stopped[open_ones[over]] = look
        open_ones = open_ones[~over]
        if not len(open_ones):
            break
    chances = {Verdict.PASS: float(passed.mean()), Verdict.FAIL: float(failed.mean())}
    return {**chances, Verdict.INCONCLUSIVE: max(0.0, 1 - sum(chances.values()))}, float(stopped.mean())


def fixed_verdicts(
    rates: Floats, reference: ReferenceValue, margin: float, tail: float = ALPHA, *, means: Means = RATES
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return PASS and FAIL flags of shape ``[...]`` for subjects with these rates, of shape ``[..., subjects]``."""
    import numpy as np

    if rates.shape[-1] < 2:
        never = np.zeros(rates.shape[:-1], dtype=bool)
        return never, never
    above, below = Question(reference, -margin, -margin, means).bars(rates.mean(axis=-1), tail)
    return means.p_values(rates, above, above=True) < tail, means.p_values(rates, below, above=False) < tail


def _observed(rate: float, cohort: Cohort, runs: int, seed: int) -> Floats:
    """Return the rates of the subjects of simulated runs, of shape ``[runs, subjects]``."""
    import numpy as np

    random = np.random.default_rng(seed)
    shape = (runs, cohort.subjects)
    if cohort.spread is not None:
        return _means_with_spread(random, rate, cohort, shape)
    own = np.full(shape, min(max(rate, 0.0), 1.0))
    if 0 < rate < 1 and 0 < cohort.icc < 1:
        spread = (1 - cohort.icc) / cohort.icc
        own = random.beta(rate * spread, (1 - rate) * spread, shape)
    return np.asarray(random.binomial(cohort.trials, own) / cohort.trials)


def _means_with_spread(random: np.random.Generator, mean: float, cohort: Cohort, shape: tuple[int, int]) -> Floats:
    """Return subjects' means: normal without bounds, else by a beta distribution with that mean and spread."""
    import numpy as np

    assert cohort.spread is not None
    if cohort.means is not RATES:
        return random.normal(mean, cohort.spread, shape)
    mean = min(max(mean, 0.0), 1.0)
    variance = mean * (1 - mean)
    if not cohort.spread or not variance:
        return np.full(shape, mean)
    # More spread than all-or-none subjects have is impossible.
    concentration = max(variance / cohort.spread**2 - 1, 1e-3)
    return random.beta(mean * concentration, (1 - mean) * concentration, shape)


def disagreement(chances: Chances) -> float:
    """Return the probability that two runs of the same model get different verdicts."""
    return max(0.0, 1 - sum(chance**2 for chance in chances.values()))


def subjects_for_power(
    cohort: Cohort, reference: ReferenceValue, margin: float, *, seed: int, power: float = WANTED
) -> int | None:
    """Return the number of subjects with which a model exactly as good as the rodent passes with probability ``power``.

    None if ``MOST_SUBJECTS`` are not enough (the animals' own interval may be too wide for the margin).
    """

    def enough(subjects: int) -> bool:
        more = replace(cohort, subjects=subjects)
        # The same seed for all, so that only the number of subjects differs.
        chances = verdict_chances(reference.value, more, reference, margin, seed=seed, runs=SEARCH_RUNS)
        return chances[Verdict.PASS] >= power

    few, many = 1, 2
    while not enough(many):
        if many >= MOST_SUBJECTS:
            return None
        few, many = many, min(many * 2, MOST_SUBJECTS)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if enough(middle) else (middle, many)
    return many
