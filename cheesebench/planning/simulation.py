"""Simulates cells for ``cheesebench plan`` and for audits of references. The simulated
cells are judged by the same code as real cells.

A simulated subject keeps its rank: in each session, its rate is the same quantile of a
beta distribution around the session's mean. The means follow the animals' learning
curve if the protocol gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cheesebench.records import GOAL, CellPlan, ReferenceValue
from cheesebench.statistics.betting import Games
from cheesebench.statistics.question import Question, measured_scale, scale_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Intraclass correlation (ICC) that is assumed if none is known, except for an agent
#: without memory.
ICC_FLOOR = 0.3
#: Number of simulated runs: the standard error of a share of them is at most 1.6
#: points. ``subjects_needed`` simulates half as many.
RUNS = 1000
#: Cells with more subjects than this are not simulated, to save memory. Their
#: probabilities would be almost 0 or 1.
MOST_SIMULATED = 2000
#: All runs are first played up to this number of subjects. Most runs are decided by
#: then, so only the others are played on.
_SHORT = 30
_GRID = 512
#: ``subjects_needed`` searches up to this number of subjects.
MOST_NEEDED = 300

#: Numbers of subjects: animals that follow the reference must pass with ``MOST``
#: subjects, and must not fail with any number in ``COHORTS``.
MOST, COHORTS = 120, (10, 120)
#: ``MAY_FAIL`` is the maximum probability of a FAIL, ``MUST_PASS`` the minimum
#: probability of a PASS.
MAY_FAIL, MUST_PASS = 0.05, 0.80


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """The scores of simulated subjects.

    ``sessions`` has the rate and the number of trials of each judged session. ``icc``
    is the share of a single trial's variance that lies between subjects. For a measure
    there is one session, and ``spread`` is the standard deviation of the subjects'
    means.
    """

    sessions: tuple[tuple[float, int], ...]
    icc: float = ICC_FLOOR
    spread: float | None = None

    @property
    def mean(self) -> float:
        """Mean score of all trials."""
        trials = sum(count for _, count in self.sessions)
        return sum(rate * count for rate, count in self.sessions) / trials

    def at(self, mean: float) -> Subjects:
        """Return subjects with another mean. For a lower mean the success rate of every
        session is scaled down, for a higher mean its failure rate.
        """
        now, mean = self.mean, min(1.0, max(0.0, mean))
        if mean <= now:
            sessions = tuple(
                (rate * mean / now if now else 0.0, count)
                for rate, count in self.sessions
            )
        else:
            sessions = tuple(
                (1 - (1 - rate) * (1 - mean) / (1 - now), count)
                for rate, count in self.sessions
            )
        return Subjects(sessions=sessions, icc=self.icc, spread=self.spread)

    def draw(self, shape: tuple[int, int], seed: int) -> Floats:
        """Return the scores of simulated subjects. ``shape`` is [runs, subjects]."""
        import numpy as np
        from scipy.special import betaincinv

        random = np.random.default_rng(seed)
        if self.spread is not None:
            variance = self.mean * (1 - self.mean)
            if not self.spread or not variance:
                return np.full(shape, self.mean)
            # The spread is largest if each subject either always or never succeeds. A
            # larger one is taken as that.
            concentration = max(variance / self.spread**2 - 1, 1e-3)
            return random.beta(
                self.mean * concentration, (1 - self.mean) * concentration, shape
            )
        rank, passed = random.uniform(size=shape), np.zeros(shape)
        grid = (np.arange(_GRID) + 0.5) / _GRID
        for rate, count in self.sessions:
            own = np.full(shape, rate)
            if 0 < self.icc < 1 and 0 < rate < 1:
                spread = (1 - self.icc) / self.icc
                # The quantile function is slow, so it is interpolated on a grid.
                own = np.clip(
                    np.interp(
                        rank, grid, betaincinv(rate * spread, (1 - rate) * spread, grid)
                    ),
                    0,
                    1,
                )
            passed += random.binomial(count, own)
        return np.asarray(passed / sum(count for _, count in self.sessions))


#: Where an intraclass correlation comes from: the user, an agent that remembers
#: nothing, the animals' rows, or ``ICC_FLOOR``.
Basis = Literal["given", "no memory", "animals", "assumed"]


def clustering_of(
    plan: CellPlan, given: float | None, animals: float | None
) -> tuple[float, Basis]:
    """Return the intraclass correlation of simulated subjects that are as good as the
    animals of a plan, and where it comes from. ``animals`` is the animals' own, or None
    if it is unknown.
    """
    if given is not None:
        return given, "given"
    if plan.memory == "none":
        return 0.0, "no memory"
    if animals is not None and plan.measured is None:
        return animals, "animals"
    return ICC_FLOOR, "assumed"


def subjects_like_animals(
    plan: CellPlan, sessions: Mapping[int, int], icc: float
) -> Subjects:
    """Return subjects that follow the animals of a plan. ``sessions`` maps each judged
    session to its number of trials.
    """
    assert plan.reference is not None
    return _like(
        scale_of(plan).scores(plan.reference),
        sessions,
        icc,
        of_measure=plan.measured is not None,
    )


def _like(
    animals: ReferenceValue,
    sessions: Mapping[int, int],
    icc: float,
    *,
    of_measure: bool,
) -> Subjects:
    if of_measure:
        spread = (
            (icc * animals.value * (1 - animals.value)) ** 0.5
            if animals.sd is None
            else animals.sd
        )
        return Subjects(sessions=((animals.value, 1),), icc=icc, spread=spread)
    rates = tuple(
        (
            animals.curve[number - 1]
            if number <= len(animals.curve)
            else animals.value,
            count,
        )
        for number, count in sessions.items()
    )
    return Subjects(sessions=rates, icc=icc)


@dataclass(frozen=True, slots=True)
class Simulated:
    """The results of simulated runs of a cell: the shares of runs that PASS and that
    FAIL.
    """

    passes: float
    fails: float
    counted: NDArray[np.int64]
    """Number of subjects that each run takes."""

    @property
    def disagree(self) -> float:
        """Probability that two runs get different verdicts."""
        return 1 - self.passes**2 - self.fails**2 - (1 - self.passes - self.fails) ** 2


def simulate(
    question: Question,
    subjects: Subjects,
    most: int,
    *,
    seed: int,
    goal: float = GOAL,
    sequential: bool = True,
) -> Simulated:
    """Return the results of ``RUNS`` simulated runs of at most ``most`` subjects."""
    import numpy as np

    scores = subjects.draw((RUNS, most), seed)
    passed, failed, counted = (
        np.zeros(RUNS, dtype=bool),
        np.zeros(RUNS, dtype=bool),
        np.full(RUNS, most),
    )
    left = np.arange(RUNS)
    for number in dict.fromkeys((min(_SHORT, most), most)):
        seen = scores[left, :number]
        found: Games = question.play(
            seen, seen, goal=goal, most=most if sequential else None
        )
        passed[left], failed[left] = found.passed, found.failed
        if sequential:
            counted[left] = found.counted
        left = left[~(found.passed | found.failed | found.stale)]
        if not len(left):
            break
    return Simulated(float(passed.mean()), float(failed.mean()), counted)


def subjects_needed(
    question: Question, subjects: Subjects, *, seed: int, goal: float
) -> int | None:
    """Return how many such subjects a run needs so that a share ``MUST_PASS`` of
    simulated runs is a PASS, or None if it needs more than ``MOST_NEEDED``.
    """
    import numpy as np

    scores = subjects.draw((RUNS // 2, MOST_NEEDED), seed)
    found = question.play(scores, scores, goal=goal)
    decided = np.where(found.passed, found.decided, MOST_NEEDED + 1)
    needed = int(np.quantile(decided, MUST_PASS, method="higher"))
    return needed if needed <= MOST_NEEDED else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredAnimal:
    """The shares of FAIL and of PASS in simulated experiments with animals that follow
    a reference exactly.
    """

    fails: Mapping[int, float]
    """Share of FAIL for each number of subjects in ``COHORTS``."""
    passes: float
    """Share of PASS with ``MOST`` subjects."""
    mean: float
    """True pass rate (or mean of the measure) of these animals over the compared
    trials.
    """
    icc: float

    @property
    def is_at_fault(self) -> bool:
        """Whether animals fail too often or pass too rarely, by more than three
        standard errors of the simulation.

        If so, the animals differ too much for the margin, or the reference and the pass
        rate (if the verdict is about it) measure different things.
        """
        rare = max(self.fails.values()) > MAY_FAIL + 3 * _error(MAY_FAIL)
        return rare or self.passes < MUST_PASS - 3 * _error(MUST_PASS)


def _error(share: float) -> float:
    return float((share * (1 - share) / RUNS) ** 0.5)


def declared_animal(
    reference: ReferenceValue, sessions: Mapping[int, int], margin: float, *, seed: int
) -> DeclaredAnimal:
    """Return the verdicts on simulated animals that follow a reference exactly.

    Without a curve, and in sessions beyond it, the animals' rate is ``value``. The
    animals' rates have a beta distribution. Its standard deviation is the reference's
    ``sd`` without the part that is due to chance (for a measure, the whole ``sd``).
    Without ``sd``, ``ICC_FLOOR`` is assumed.
    """
    measured = reference.measured
    scale = None if measured is None else measured_scale(measured)
    animals = reference if scale is None else scale.scores(reference)
    own_margin = margin if scale is None else margin / abs(scale.unit)
    like = _like(animals, sessions, ICC_FLOOR, of_measure=measured is not None)
    if measured is None:
        like = Subjects(sessions=like.sessions, icc=_icc(animals, like))
    question = Question(
        animals,
        -own_margin,
        -own_margin,
        measured is not None and measured.better == "alike",
    )
    found = {
        one: simulate(question, like, one, seed=seed, sequential=False)
        for one in COHORTS
    }
    mean = like.mean if scale is None else scale.value(like.mean)
    fails = {one: run.fails for one, run in found.items()}
    return DeclaredAnimal(
        fails=fails, passes=found[MOST].passes, mean=mean, icc=like.icc
    )


def margin_that_suffices(
    reference: ReferenceValue, sessions: Mapping[int, int], margin: float, *, seed: int
) -> float | None:
    """Return about the smallest margin, above one that is too small, with which animals
    that follow the reference are not at fault, or None if eight times as much is too
    small.
    """
    low, high = margin, 8 * margin
    if declared_animal(reference, sessions, high, seed=seed).is_at_fault:
        return None
    while high > 1.03 * low:
        middle = (low * high) ** 0.5
        if declared_animal(reference, sessions, middle, seed=seed).is_at_fault:
            low = middle
        else:
            high = middle
    return high


def _icc(animals: ReferenceValue, like: Subjects) -> float:
    """Return the share of a single trial's variance that lies between animals."""
    if animals.sd is None or not 0 < like.mean < 1:
        return ICC_FLOOR
    trials = sum(count for _, count in like.sessions)
    by_chance = (
        sum(rate * (1 - rate) * count for rate, count in like.sessions) / trials**2
    )
    return min(
        0.95, max(0.0, (animals.sd**2 - by_chance) / (like.mean * (1 - like.mean)))
    )
