"""Does a simulated animal that follows a reference exactly pass the verdict against that reference?

Animals with the declared curve and spread are simulated and judged by the same rule as models. If they fail too often,
or pass too rarely, then the reference and the pass rate measure different things, or the reference is too uncertain for
the margin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.intervals import ICC_FLOOR
from cheesebench.statistics.merit import measured_scale
from cheesebench.statistics.power import Cohort, fixed_verdicts, like_the_animals, verdict_chances
from cheesebench.statistics.summary import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cheesebench.statistics.intervals import Floats

    Booleans = NDArray[np.bool_]

#: Number of subjects at which the declared animal must pass, and all numbers at which it must not fail.
MOST, COHORTS = 60, (10, 60)
#: Maximum probability of FAIL, and minimum probability of PASS.
MAY_FAIL, MUST_PASS = 0.05, 0.80
#: Simulated experiments: a standard error of .7 points at .05 and of 1.3 at .8.
RUNS = 1000
_GRID = 512

#: Takes rates of shape ``[runs, subjects]``, reference and margin; returns for each run whether it is PASS, and FAIL.
Judge = Callable[["Floats", ReferenceValue, float], "tuple[Booleans, Booleans]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAnimal:
    """How often the declared animal fails and passes, as proportions of simulated experiments."""

    fails: Mapping[int, float]
    """By number of subjects."""
    passes: float
    """At ``MOST`` subjects."""
    mean: float
    """Its true pass rate over the trials that are compared."""
    icc: float

    @property
    def is_at_fault(self) -> bool:
        """Whether it fails too often or passes too rarely, by more than three standard errors of the simulation."""
        rare = max(self.fails.values()) > MAY_FAIL + 3 * _error(MAY_FAIL)
        return rare or self.passes < MUST_PASS - 3 * _error(MUST_PASS)


def _error(share: float) -> float:
    return float((share * (1 - share) / RUNS) ** 0.5)


def simulate(
    reference: ReferenceValue,
    sessions: Mapping[int, int],
    margin: float,
    *,
    seed: int,
    judge: Judge | None = None,
    runs: int = RUNS,
) -> DeclaredAnimal:
    """Return the verdicts of simulated animals that follow a reference exactly.

    ``sessions`` maps the number (from 1) of each session that enters the pass rate to its number of trials. In sessions
    beyond the curve, or without a curve, the animal's rate is ``value``. Animals differ by a beta distribution whose
    standard deviation is the reference's ``sd`` minus sampling variation, or that has an ICC of 0.3 if there is no
    ``sd``; each animal keeps its rank from session to session. ``judge`` defaults to the fixed-sample rule.
    """
    import numpy as np

    rates = np.array([_rate(reference, session) for session in sessions])
    trials = np.array(list(sessions.values()))
    mean = float(rates @ trials / trials.sum())
    icc = _icc(reference, rates, trials, mean)
    random = np.random.default_rng(seed)
    fails, passes = {}, 0.0
    for subjects in COHORTS:
        own = _passed(rates, trials, icc, (runs, subjects), random) / trials.sum()
        passing, failing = (judge or fixed_verdicts)(own, reference, margin)
        fails[subjects] = float(failing.mean())
        if subjects == MOST:
            passes = float(passing.mean())
    return DeclaredAnimal(fails=fails, passes=passes, mean=mean, icc=icc)


def simulate_measured(reference: ReferenceValue, margin: float, *, seed: int, runs: int = RUNS) -> DeclaredAnimal:
    """Return the same for a reference on a measure; the animals' own means are spread as the reference says."""
    assert reference.measured is not None
    scale = measured_scale(reference.measured, reference.sd or 0.0)
    animals, own_margin = scale.merits(reference), margin / abs(scale.unit)
    fails, passes = {}, 0.0
    for subjects in COHORTS:
        cohort = like_the_animals(animals, scale, Cohort(subjects=subjects, trials=1))
        chances = verdict_chances(animals.value, cohort, animals, own_margin, seed=seed, runs=runs)
        fails[subjects] = chances[Verdict.FAIL]
        if subjects == MOST:
            passes = chances[Verdict.PASS]
    return DeclaredAnimal(fails=fails, passes=passes, mean=reference.value, icc=ICC_FLOOR)


def _rate(reference: ReferenceValue, session: int) -> float:
    return reference.curve[session - 1] if session <= len(reference.curve) else reference.value


def _icc(reference: ReferenceValue, rates: Floats, trials: Floats, mean: float) -> float:
    """Return the share of the variance of one trial that is between animals."""
    import numpy as np

    if reference.sd is None or not 0 < mean < 1:
        return ICC_FLOOR
    by_chance = float(((rates * (1 - rates)) * trials).sum() / trials.sum() ** 2)
    return float(np.clip((reference.sd**2 - by_chance) / (mean * (1 - mean)), 0.0, 0.95))


def _passed(
    rates: Floats, trials: Floats, icc: float, shape: tuple[int, int], random: np.random.Generator
) -> NDArray[np.int64]:
    """Return the passed trials of each animal of each experiment, over all sessions."""
    import numpy as np
    from scipy.special import betaincinv

    rank = random.uniform(size=shape)
    total = np.zeros(shape, dtype=np.int64)
    grid = (np.arange(_GRID) + 0.5) / _GRID
    for rate, count in zip(rates, trials, strict=True):
        own = np.full(shape, rate)
        if 0 < icc < 1 and 0 < rate < 1:
            spread = (1 - icc) / icc
            # The inverse is slow to compute: interpolate it on a grid.
            own = np.clip(np.interp(rank, grid, betaincinv(rate * spread, (1 - rate) * spread, grid)), 0, 1)
        total += random.binomial(int(count), own)
    return total
