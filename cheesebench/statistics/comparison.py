"""The non-inferiority question in numbers: bounds on model - reference, p value, subjects needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.intervals import (
    ICC_FLOOR,
    degrees_of_freedom,
    newcombe,
    quantile,
    rate_limits,
    shrinkage,
    wilson,
)
from cheesebench.statistics.summary import Unit

if TYPE_CHECKING:
    from cheesebench.statistics.intervals import Floats

#: One-sided error probability of PASS and of FAIL.
ALPHA = 0.05
#: Each tail of the two-sided 95 % interval.
TAIL = 0.025
#: No design with more subjects than this is proposed.
MOST_SUBJECTS = 10_000


@dataclass(frozen=True, slots=True)
class Counts:
    """Passed trials and trials of each subject that has any; ``distinct`` is False for copies of another one."""

    passed: tuple[int, ...]
    trials: tuple[int, ...]
    distinct: tuple[bool, ...]

    @property
    def evidence(self) -> tuple[int, ...]:
        """Trials of the distinct subjects."""
        return tuple(trials for trials, own in zip(self.trials, self.distinct, strict=True) if own)

    @property
    def rate(self) -> float:
        """Pooled over trials."""
        return sum(self.passed) / sum(self.trials)


@dataclass(frozen=True, slots=True)
class Scenarios:
    """The valid trials, and where some are missing, what all of those failed and all passed would give."""

    possible: tuple[Counts, ...]
    unit: Unit

    @property
    def valid(self) -> Counts:
        """The trials that were run."""
        return self.possible[0]

    def limits(self, tail: float) -> tuple[float, float]:
        """Return the limits of the rate that hold in every scenario."""
        return _envelope([self._limits(counts, tail) for counts in self.possible])

    def _limits(self, counts: Counts, tail: float) -> tuple[Floats, Floats]:
        return rate_limits(counts.passed, counts.trials, tail, self.unit, counts.distinct)

    def difference_limits(self, reference: ReferenceValue, tail: float) -> tuple[float, float]:
        """Return the limits of model - reference that hold in every scenario."""
        animals = reference_limits(reference, tail)
        return _envelope([newcombe(c.rate, self._limits(c, tail), reference.value, animals) for c in self.possible])


def _envelope(pairs: Sequence[tuple[Floats, Floats]]) -> tuple[float, float]:
    return min(float(low) for low, _ in pairs), max(float(high) for _, high in pairs)


def has_interval(reference: ReferenceValue) -> bool:
    """Tell whether the reference has an uncertainty of its own, rather than being *declared* as a point."""
    return reference.interval is not None or bool(reference.n_animals)


def reference_limits(reference: ReferenceValue, tail: float) -> tuple[float, float]:
    """Return the limits of the reference that each leave ``tail`` outside.

    Its 95 % interval is rescaled from the normal quantile of 2.5 % to that of ``tail``; without one, Wilson
    over the animals; without those, the point itself.
    """
    if reference.interval is not None:
        scale = quantile(tail, None) / quantile(TAIL, None)
        low, high = reference.interval
        return reference.value - scale * (reference.value - low), reference.value + scale * (high - reference.value)
    if reference.n_animals:
        lower, upper = wilson(reference.value, reference.n_animals, quantile(tail, None))
        return float(lower), float(upper)
    return reference.value, reference.value


def p_inferior(upper: Callable[[float], float], margin: float) -> float:
    """Return the one-sided p value of "worse than reference - margin", by inverting the bound.

    ``upper`` maps a tail probability to the upper bound of the difference. The p value is the smallest
    tail at which that bound is below -margin; above one half it is given as 1: nothing depends on it there.
    """
    low, high = 1e-12, 0.5
    if upper(high) >= -margin:
        return 1.0
    if upper(low) < -margin:
        return low
    # Bisection on a logarithmic scale: 50 halvings of 12 decades are far below any printed digit.
    for _ in range(50):
        middle = (low * high) ** 0.5
        if upper(middle) < -margin:
            high = middle
        else:
            low = middle
    return high


def subjects_to_settle(
    counts: Counts,
    icc: float | None,
    unit: Unit,
    reference: ReferenceValue,
    margin: float,
    bounds: tuple[float, float] | None = None,
) -> int | None:
    """Return how many subjects of as many trials would give PASS or FAIL at the observed rate, ICC and share of copies.

    ``bounds``: PASS is above the first, FAIL below the second (by default both are -margin).
    Where one subject shows no ICC, ``ICC_FLOOR`` is assumed. None: not even ``MOST_SUBJECTS`` would.
    """
    share = len(counts.evidence) / len(counts.trials)
    per_subject = share * sum(counts.evidence) / len(counts.evidence)
    effect, _ = shrinkage(counts.rate, ICC_FLOOR if icc is None else icc, counts.evidence)
    effective = per_subject if unit == "trial" else per_subject / float(effect)
    animals = reference_limits(reference, ALPHA)

    passes, fails = bounds or (-margin, -margin)

    def settled(subjects: int) -> bool:
        z = quantile(ALPHA, degrees_of_freedom(max(1, round(share * subjects)), unit))
        limits = wilson(counts.rate, effective * subjects, z)
        low, high = newcombe(counts.rate, limits, reference.value, animals)
        return bool(low > passes or high < fails)

    # Bisection: the bounds only narrow as subjects are added.
    few, many = 1, MOST_SUBJECTS
    if not settled(many):
        return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if settled(middle) else (middle, many)
    return many
