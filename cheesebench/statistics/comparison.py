"""The non-inferiority test: bounds on model - reference, p value, number of subjects needed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.bounds import resized
from cheesebench.statistics.intervals import ICC_FLOOR, newcombe, quantile, rate_limits
from cheesebench.statistics.means import RATES, Means, Student
from cheesebench.statistics.reference_limits import has_interval, reference_limits
from cheesebench.statistics.spending import ALPHA
from cheesebench.statistics.summary import Verdict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from cheesebench.statistics.bounds import Floats

#: Each tail of the two-sided 95 % interval.
TAIL = 0.025
#: No design with more subjects than this is proposed.
MOST_SUBJECTS = 1000
#: A number of subjects that "would settle it" does so with this probability, if rate and spread stay what they are.
POWER = 0.8


class SubjectTrials(NamedTuple):
    """One subject's trials that enter the verdict."""

    passed: float
    """Sum of their merits (``merit``); for a pass rate, the number of passed trials."""
    scored: int
    open: int = 0
    """Trials without a result: missing, settled or still to be run."""
    distinct: bool = True
    """False for an exact copy of another subject."""

    def rate(self, passing: bool) -> float:
        """Return the pass rate if all open trials passed (True) or failed (False)."""
        return (self.passed + passing * self.open) / (self.scored + self.open)


@dataclass(frozen=True)
class Counts:
    """Sum of merits (passed trials) and trials of each subject that has any; ``distinct`` is False for exact copies."""

    passed: tuple[float, ...]
    trials: tuple[int, ...]
    distinct: tuple[bool, ...]

    @property
    def subjects(self) -> int:
        """Number of distinct subjects: copies are not evidence."""
        return sum(self.distinct)

    @property
    def rate(self) -> float:
        """Mean of the subjects' own rates."""
        return sum(self.own) / len(self.own)

    @cached_property
    def own(self) -> tuple[float, ...]:
        """The rate of each subject, copies included."""
        return tuple(passed / trials for passed, trials in zip(self.passed, self.trials, strict=True))

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """The rates of all subjects, resized to the number of distinct ones."""
        return self.own if all(self.distinct) else tuple(resized(self.own, self.subjects).tolist())


@dataclass(frozen=True, slots=True)
class Scenarios:
    """The valid trials, and where some are missing, what all of those failed and all passed would give.

    A bound rises with every pass, so that whatever the missing trials would have been lies between these two.
    """

    possible: tuple[Counts, ...]
    means: Means = RATES
    unknown: bool = False
    """Some trials are missing, and without bounds they could have been anything: there are no limits."""

    @property
    def valid(self) -> Counts:
        """The trials that were run."""
        return self.possible[0]

    def limits(self, tail: float) -> tuple[float, float]:
        """Return the limits of the rate that hold in every scenario."""
        if self.means is not RATES:
            return (-math.inf, math.inf) if self.unknown else self.means.limits(self.valid.rates, tail)
        intervals = [rate_limits(c.passed, c.trials, tail, c.distinct) for c in self.possible]
        return min(low for low, _ in intervals), max(high for _, high in intervals)

    def difference_limits(self, reference: ReferenceValue, tail: float) -> tuple[float, float]:
        """Return the limits of model - reference that hold in every scenario."""
        if self.unknown:
            return -math.inf, math.inf
        animals, limits = reference_limits(reference, tail), self.means.limits
        intervals = [newcombe(c.rate, limits(c.rates, tail), reference.value, animals) for c in self.possible]
        return min(float(low) for low, _ in intervals), max(float(high) for _, high in intervals)


def scenarios(subjects: Iterable[SubjectTrials], means: Means = RATES) -> Scenarios | None:
    """Return the scenarios of these subjects, whose means are tested by ``means``; None if no subject has a result."""
    rows = list(subjects)
    valid = [row for row in rows if row.scored]
    if not valid:
        return None
    possible = [_counts([(row.passed, row.scored, row.distinct) for row in valid])]
    is_open = any(row.open for row in rows)
    if is_open and means is RATES:
        run = [row for row in rows if row.scored + row.open]
        for passing in (0, 1):
            filled = [(row.passed + passing * row.open, row.scored + row.open, row.distinct) for row in run]
            possible.append(_counts(filled))
    return Scenarios(tuple(possible), means, unknown=is_open and means is not RATES)


def _counts(rows: Sequence[tuple[float, int, bool]]) -> Counts:
    passed, trials, distinct = zip(*rows, strict=True)
    # If no distinct subject has a result, one of its copies takes its place.
    return Counts(passed, trials, distinct if any(distinct) else (True, *distinct[1:]))


@dataclass(frozen=True, slots=True)
class Question:
    """The hypothesis of a verdict: PASS if model - reference is above ``passes``, FAIL if it is below ``fails``.

    All numbers are merits (``merit``): pass rates, or a measure on its scale from worse to better.
    """

    reference: ReferenceValue
    passes: float
    fails: float
    means: Means = RATES

    def verdict(self, difference: tuple[float, float]) -> Verdict:
        """Return the verdict that the limits of model - reference give."""
        low, high = difference
        return Verdict.PASS if low > self.passes else Verdict.FAIL if high < self.fails else Verdict.INCONCLUSIVE

    def verdict_of(self, rates: Sequence[float], tail: float) -> Verdict:
        """Return the verdict that the subjects' rates give; INCONCLUSIVE for fewer than two subjects."""
        if len(rates) < 2:
            return Verdict.INCONCLUSIVE
        above, below = self.bars(sum(rates) / len(rates), tail)
        if self.means.p_value(rates, float(above), above=True) < tail:
            return Verdict.PASS
        failing = self.means.p_value(rates, float(below), above=False)
        return Verdict.FAIL if failing < tail else Verdict.INCONCLUSIVE

    def bars(self, rate: ArrayLike, tail: float) -> tuple[Floats, Floats]:
        """Return the bar that a rate's lower limit must exceed for PASS, and its upper limit must stay below for FAIL.

        This is Newcombe's interval solved for the limit. Computing a p value at this bar is much faster than computing
        the limit itself.
        """
        import numpy as np

        animals, value = reference_limits(self.reference, tail), self.reference.value
        difference = np.asarray(rate, dtype=float) - value
        up, down = difference - self.passes, self.fails - difference
        above = np.sqrt(np.maximum(0, up**2 - max(0.0, animals[1] - value) ** 2))
        below = np.sqrt(np.maximum(0, down**2 - max(0.0, value - animals[0]) ** 2))
        return difference + value - above * (up > 0), difference + value + below * (down > 0)


def p_inferior(found: Scenarios, question: Question) -> float:
    """Return the one-sided p value of FAIL: the smallest tail with which it would be one, in every scenario.

    Above one half it is given as 1: nothing depends on it there.
    """

    def failing(counts: Counts, tail: float) -> float:
        _, below = question.bars(counts.rate, tail)
        return question.means.p_value(counts.rates, float(below), above=False)

    def of(counts: Counts) -> float:
        if not has_interval(question.reference):
            return failing(counts, ALPHA)  # the bar is the same for every tail
        low, high = 1e-12, 0.5
        if failing(counts, high) >= high:
            return 1.0
        # Bisection on a logarithmic scale: 40 halvings of 12 decades are far below any printed digit.
        for _ in range(40):
            middle = (low * high) ** 0.5
            low, high = (low, middle) if failing(counts, middle) < middle else (middle, high)
        return high

    if found.unknown:
        return 1.0
    found_p = max(map(of, found.possible))
    return found_p if found_p < 0.5 else 1.0


def subjects_to_settle(counts: Counts, question: Question) -> int | None:
    """Return the number of subjects (of as many trials) with which PASS or FAIL has probability ``POWER``.

    Further subjects are assumed to be distributed like the observed ones, with the same share of copies; for a single
    subject, an ICC of ``ICC_FLOOR`` is assumed. None if even ``MOST_SUBJECTS`` would not decide.
    """
    share = counts.subjects / len(counts.distinct)
    rates = counts.rates
    mean, count = sum(rates) / len(rates), len(rates)
    if count > 1:
        spread = (sum((rate - mean) ** 2 for rate in rates) / (count - 1)) ** 0.5
    elif isinstance(question.means, Student):
        spread = question.means.least_sd
    else:
        trials = sum(counts.trials) / len(counts.trials)
        spread = (mean * (1 - mean) * (ICC_FLOOR + (1 - ICC_FLOOR) / trials)) ** 0.5

    lowest, highest = question.means.lowest, question.means.highest
    pool = rates if count > 1 else (max(lowest, mean - spread), min(highest, mean + spread))

    def settled(subjects: int) -> bool:
        evidence = max(1, round(share * subjects))
        # In one run of five, the mean of that many subjects deviates by more than this on a given side.
        shift = quantile(1 - POWER, None) * spread / evidence**0.5
        imagined = resized(pool, evidence).tolist()
        return any(
            question.verdict_of([min(highest, max(lowest, rate + sign * shift)) for rate in imagined], ALPHA) is verdict
            for sign, verdict in ((-1, Verdict.PASS), (1, Verdict.FAIL))
        )

    few, many = 1, 2
    while not settled(many):
        if many >= MOST_SUBJECTS:
            return None
        few, many = many, min(2 * many, MOST_SUBJECTS)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if settled(middle) else (middle, many)
    return many
