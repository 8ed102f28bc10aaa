"""How many subjects would decide an undecided cell, and with what probability."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from cheesebench.records import sets_until
from cheesebench.statistics.betting import LEAST_SUBJECTS, bets, wealth

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cheesebench.statistics.question import Question

    Floats = NDArray[np.float64]

    class Scores(Protocol):
        """Subjects so far, as ``sample.Scores`` has them."""

        @property
        def low(self) -> Floats: ...
        @property
        def high(self) -> Floats: ...
        @property
        def distinct(self) -> Floats: ...


#: Probability with which the number of subjects that is named decides.
POWER = 0.8
#: Largest number of subjects that is named.
MOST_NEEDED = 1000
#: Future means that are tried, equally probable each.
_FUTURES = 200


@dataclass(frozen=True, slots=True)
class Outlook:
    """The least number of subjects that decides with a probability of ``POWER`` at
    least, or ``MOST_NEEDED``.
    """

    subjects: int
    chance: float
    """Probability that so many subjects decide, given those seen so far."""

    @property
    def decides(self) -> bool:
        return self.chance >= POWER


def outlook(question: Question, scores: Scores, goal: float) -> Outlook | None:
    """Return what more subjects would do; None if there are no more, or none to judge
    by.
    """
    numbers = [one for one in sets_until(MOST_NEEDED) if one > len(scores.low)]
    if len(scores.low) < LEAST_SUBJECTS or not numbers or not scores.distinct[-1]:
        return None

    def chance(number: int) -> float:
        return _chance(question, scores, number, goal)

    at = min(bisect_left(numbers, POWER, key=chance), len(numbers) - 1)
    return Outlook(numbers[at], chance(numbers[at]))


def _chance(question: Question, scores: Scores, number: int, goal: float) -> float:
    """Return how often ``number`` subjects would decide, if the others are like these.

    The mean over all of them is normal about the mean so far, and the scores are moved
    to it.
    """
    import numpy as np

    seen, distinct = len(scores.low), float(scores.distinct[-1])
    growth = (number - seen) / (number * seen * distinct)
    winning, losing = question.claims(
        _moved(scores.low, growth), _moved(scores.high, growth)
    )
    ends = [
        wealth(
            bets(
                own, np.broadcast_to(bar, own.shape)[..., -1:], distinct * number / seen
            )
        )[..., -1]
        for own, bar in (*winning, *losing)
    ]
    passes = np.min(ends[: len(winning)], axis=0) >= goal
    fails = np.mean(ends[len(winning) :], axis=0) >= goal
    return float((passes | fails).mean())


def _moved(scores: Floats, growth: float) -> Floats:
    """Return the scores as often as there are futures, with the means of these: their
    successes are scaled, or their failures.
    """
    import numpy as np
    from scipy.special import ndtri

    mean = float(scores.mean())
    # One subject more may differ entirely: equal scores show no spread.
    spread = max(float(scores.var()), max(mean, 1 - mean) ** 2 / (len(scores) + 1))
    deviates = ndtri((np.arange(_FUTURES) + 0.5) / _FUTURES)
    means = np.clip(mean + deviates * (spread * growth) ** 0.5, 0, 1)[:, None]
    # Neither is used where it would divide by nothing.
    fewer, more = scores / (mean or 1), (1 - scores) / (1 - mean or 1)
    return np.asarray(np.where(means <= mean, fewer * means, 1 - more * (1 - means)))
