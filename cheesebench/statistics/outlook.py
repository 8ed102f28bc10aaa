"""Estimates how many subjects would decide an undecided cell, and with what
probability.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.records import sets_until
from cheesebench.statistics.betting import LEAST_SUBJECTS, Scores, bets, wealth

if TYPE_CHECKING:
    from cheesebench.statistics.betting import Floats
    from cheesebench.statistics.question import Question

#: Minimum probability of a verdict with the recommended number of subjects.
POWER = 0.8
#: Largest number of subjects that is recommended. The search ends there.
MOST_NEEDED = 1000
#: Number of possible future means, all equally probable, over which a forecast is
#: averaged.
_FUTURES = 200


@dataclass(frozen=True, slots=True)
class Outlook:
    """The smallest number of subjects with which a decision has a probability of at
    least ``POWER``, or ``MOST_NEEDED`` if there is no such number. Only the ends of
    sets (``sets_until``) are tried.
    """

    subjects: int
    chance: float
    """Probability of a decision with this number of subjects, given the subjects seen
    so far.
    """

    @property
    def decides(self) -> bool:
        return self.chance >= POWER


def outlook(question: Question, scores: Scores, goal: float) -> Outlook | None:
    """Forecast what more subjects would do. Return None if fewer than
    ``LEAST_SUBJECTS`` or at least ``MOST_NEEDED`` subjects have been seen, or none of
    them is distinct.
    """
    numbers = [one for one in sets_until(MOST_NEEDED) if one > scores.subjects]
    if len(scores.low) < LEAST_SUBJECTS or not numbers or not scores.distinct[-1]:
        return None

    def chance(number: int) -> float:
        return _chance(question, scores, number, goal)

    at = min(bisect_left(numbers, POWER, key=chance), len(numbers) - 1)
    return Outlook(numbers[at], chance(numbers[at]))


def _chance(question: Question, scores: Scores, number: int, goal: float) -> float:
    """Return the probability that ``number`` subjects decide, if new subjects are like
    the subjects seen.

    The future mean over all subjects is assumed to be normally distributed about the
    mean so far, and the scores are moved to each such mean. New subjects have a score
    as often as the subjects seen.
    """
    import numpy as np

    seen, distinct = len(scores.low), float(scores.distinct[-1])
    times = number / scores.subjects
    growth = (times - 1) / (times * seen * distinct)
    winning, losing = question.claims(
        _moved(scores.low, growth), _moved(scores.high, growth)
    )
    ends = [
        wealth(bets(own, np.broadcast_to(bar, own.shape)[..., -1:], distinct * times))[
            ..., -1
        ]
        for own, bar in (*winning, *losing)
    ]
    passes = np.min(ends[: len(winning)], axis=0) >= goal
    fails = np.mean(ends[len(winning) :], axis=0) >= goal
    return float((passes | fails).mean())


def _moved(scores: Floats, growth: float) -> Floats:
    """Return a copy of the scores for each possible future, scaled to the future mean.
    Failures shrink to raise the mean, and successes shrink to lower it.
    """
    import numpy as np
    from scipy.special import ndtri

    mean = float(scores.mean())
    # Equal scores show no spread: allow for one more subject that differs entirely.
    spread = max(float(scores.var()), max(mean, 1 - mean) ** 2 / (len(scores) + 1))
    deviates = ndtri((np.arange(_FUTURES) + 0.5) / _FUTURES)
    means = np.clip(mean + deviates * (spread * growth) ** 0.5, 0, 1)[:, None]
    # If a divisor is 0, all its dividends are 0, too, and 1 replaces the divisor.
    fewer, more = scores / (mean or 1), (1 - scores) / (1 - mean or 1)
    return np.asarray(np.where(means <= mean, fewer * means, 1 - more * (1 - means)))
