"""Reaches a verdict by betting. The wealth of a game grows while subjects do better
than a bar. A mirrored game bets that they do worse.

Several bets share the wealth (``STAKES``). Each bet stakes the same part of its own
wealth on every subject, in the order of the subjects' numbers. A subject with the score
x, from 0 to 1, multiplies a bet's wealth by ``1 - stake + stake * x / bar``. If the
model's mean is at most the bar, no bet gains on average. So the probability that the
wealth ever grows ``GOAL``-fold is at most ``1 / GOAL``, for any distribution of
subjects and any stopping rule (Ville 1939; Waudby-Smith and Ramdas 2024, J R Stat Soc B
86:1).

PASS means that the wealth against the bar, usually reference - margin, has reached the
goal. The FAIL game is its mirror image: it plays failures (1 - x) against 1 - bar.
Reports call the growth of the wealth the evidence.

``scores`` have the shape ``[..., subjects]``; leading axes are independent runs, so
``cheesebench plan`` can simulate with the code that judges. numpy is imported on first
use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from cheesebench.records import sets_until

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

#: The bets of a game. Key: the share of its wealth that the bet stakes on each subject.
#: Value: the bet's share of the initial wealth. Small stakes detect small differences,
#: after many subjects.
STAKES = {
    0.25: 0.2475,
    0.5: 0.2475,
    0.75: 0.2475,
    0.95: 0.2475,
    0.12: 0.002,
    0.06: 0.002,
    0.03: 0.002,
    0.015: 0.002,
    0.007: 0.002,
}
#: The growth of wealth that excludes a mean from the 95 % interval. Each limit of the
#: interval may be wrong in 1 of 40 cases.
LIMIT = 40.0
#: Minimum number of subjects for a verdict. A single subject is no evidence about a
#: model.
LEAST_SUBJECTS = 2
#: Number of scores from which a sequential cell can be stale. A stale cell stops at
#: the end of a set, because no bet has ever grown by the factor ``DOUBLED``.
STALE_FROM = 50
#: Factor by which at least one bet must have grown at some time. Otherwise the cell is
#: stale.
DOUBLED = 2.0
#: Up to this number of subjects, a bar that depends on the mean is tested after each
#: subject. Beyond it, the bar is tested whenever the number has grown by 2 %. It is
#: also the number of factors that are multiplied before a logarithm is taken.
EVERY = 200
#: ``PRECISION``: width at which the search for a limit ends. ``_MANY``: number of
#: subjects from which the search tries one bar at a time instead of seven.
PRECISION = 1e-6
_MANY = 10_000
_MOST_LOG = 700.0
#: Bets for a number of subjects that is known beforehand. Each bet has a factor for its
#: stake and a share of the wealth. The factor 1 suits scores of 0 and 1, and larger
#: factors suit scores that vary less.
TUNED = ((1.0, 0.8), (3.0, 0.1), (9.0, 0.1))


class Scores(NamedTuple):
    """The scores of a cell's subjects, in the order of the subjects' numbers."""

    low: Floats
    """Mean score of each subject, with missing trials counted as failed."""
    high: Floats
    """Mean score of each subject, with missing trials counted as passed."""
    distinct: Floats
    """The share of distinct subjects among the first n, for each n."""
    numbers: Counts
    """The number of each subject. A subject without a trial that counts is left out."""
    subjects: int
    """The number of all subjects, including subjects that are left out."""

    def stale_at(self, most: int | None) -> int:
        """Return the number of subjects after which a sequential cell of at most
        ``most`` subjects is stale if it has no scores. It is larger than ``subjects``
        if the cell is not stale yet, or its number of subjects is fixed (None).
        """
        sets = () if most is None else sets_until(most)[:-1]
        ends = (one for one in sets if STALE_FROM <= one <= self.subjects)
        return next(ends, self.subjects + 1)


def bets(scores: ArrayLike, bar: ArrayLike, distinct: ArrayLike = 1.0) -> Floats:
    """Return the wealth of each bet after each subject, as a multiple of its initial
    wealth: shape ``[stakes, ..., subjects]``.

    ``bar`` is a number, or an array with the shape ``[..., 1]`` or ``[..., subjects]``.
    With one bar per subject, the wealth after n subjects comes from a game that is
    played against the n-th bar from the first subject on. ``distinct`` is the share of
    distinct subjects among the first n. The wealth is raised to this power, because
    copies are no evidence. Against a bar below 0 the wealth is infinite, and against a
    bar of 1 or more it never grows. The wealth is 0 after a subject at which the bar is
    not tested (``EVERY``).
    """
    import numpy as np

    values, bars = np.asarray(scores, dtype=float), np.asarray(bar, dtype=float)
    stakes = np.array([*STAKES]).reshape(-1, *[1] * values.ndim)
    safe = np.clip(bars, 1e-12, None)
    count = values.shape[-1]
    if bars.ndim == 0 or bars.shape[-1] == 1:
        logs = np.cumsum(np.log1p(stakes * (values / safe - 1)), axis=-1)
    else:
        logs = np.full((len(STAKES), *values.shape), -np.inf)
        for n in _times(count):
            ratio = values[..., :n] / safe[..., n - 1 : n]
            for at, stake in enumerate(STAKES):
                # A product of at most EVERY factors stays within the range of floats.
                # One logarithm per product is faster than one per factor.
                parts = np.multiply.reduceat(
                    1 - stake + stake * ratio, range(0, n, EVERY), axis=-1
                )
                logs[at, ..., n - 1] = np.log(parts).sum(axis=-1)
    # Where no bar is tested, no power is taken: minus infinity times 0 is no number.
    np.multiply(logs, distinct, out=logs, where=np.isfinite(logs))
    money = np.exp(np.minimum(logs, _MOST_LOG))
    return np.asarray(
        np.where(bars < 0, np.inf, np.where(bars >= 1, np.minimum(money, 1.0), money))
    )


def _times(count: int) -> list[int]:
    found = list(range(1, min(count, EVERY) + 1))
    while found[-1] < count:
        found.append(min(count, found[-1] + max(1, found[-1] // 50)))
    return found


def wealth(each: Floats) -> Floats:
    """Return the wealth of all bets together after each subject, as a multiple of the
    initial wealth. It is 0 for fewer than ``LEAST_SUBJECTS`` subjects, which decide
    nothing.
    """
    import numpy as np

    found: Floats = np.tensordot([*STAKES.values()], each, axes=1)
    found[..., : LEAST_SUBJECTS - 1] = 0.0
    return found


def limits(
    low: ArrayLike, high: ArrayLike, goal: float = LIMIT, distinct: ArrayLike = 1.0
) -> tuple[float, float]:
    """Return the smallest and the largest mean that the games do not exclude: neither
    game's wealth against this mean ever reached ``goal``. If the mean of the scores
    lies outside, the range is extended to it.

    ``low`` and ``high`` are the scores of one run with its missing trials counted as
    failed, and as passed. With a probability of at least ``1 - 2 / goal``, the interval
    holds at every number of subjects. If subjects get worse or better during the run,
    their mean may leave the range that earlier subjects left possible.
    """
    import numpy as np

    def least(scores: ArrayLike) -> float:
        values, bottom, top = np.asarray(scores, dtype=float), 0.0, 1.0
        points = 7 if len(values) < _MANY else 1
        while top - bottom > PRECISION:
            tried = np.linspace(bottom, top, points + 2)[1:-1]
            each = np.broadcast_to(values, (points, len(values)))
            reached = wealth(bets(each, tried[:, None], distinct)).max(axis=-1)
            below = int((reached >= goal).sum())  # The wealth falls as the bar rises.
            bottom, top = (
                (tried[below - 1] if below else bottom),
                (tried[below] if below < points else top),
            )
        return float(bottom)

    if np.asarray(low).shape[-1] < LEAST_SUBJECTS:
        return 0.0, 1.0
    worst, best = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    ends = least(worst), 1 - least(1 - best)
    return min(*ends, float(worst.mean())), max(*ends, float(best.mean()))


def final_wealth(scores: ArrayLike, bar: float) -> float:
    """Return the logarithm of the final wealth of bets on "the mean is above ``bar``",
    for a fixed number of subjects in any order.

    If the mean is at most the bar, the result exceeds log(goal) with a probability of
    at most 1 / goal (Markov). The result falls as the bar rises.
    """
    return _final(*_counted(scores), bar)


def _counted(scores: ArrayLike) -> tuple[Floats, Counts]:
    import numpy as np

    return np.unique(np.asarray(scores, dtype=float), return_counts=True)


def _final(values: Floats, counts: Counts, bar: float) -> float:
    import numpy as np
    from scipy.special import logsumexp

    tuned = (2 * np.log(LIMIT) / counts.sum() * bar / (1 - bar)) ** 0.5
    stakes = [min(max(STAKES), multiple * tuned) for multiple, _ in TUNED]
    logs = [counts @ np.log1p(stake * (values / bar - 1)) for stake in stakes]
    return float(logsumexp(logs, b=[share for _, share in TUNED]))


def final_limits(low: ArrayLike, high: ArrayLike) -> tuple[float, float]:
    """Return the 95 % limits of the mean by ``final_wealth``. ``low`` and ``high`` are
    as in ``limits``.
    """
    import numpy as np
    from scipy.optimize import brentq

    def least(scores: Floats) -> float:
        own = _counted(scores)

        def excess(bar: float) -> float:
            return _final(*own, bar) - float(np.log(LIMIT))

        ends = 1e-9, 1 - 1e-9
        return float(brentq(excess, *ends, xtol=1e-9)) if excess(ends[0]) > 0 else 0.0

    if np.size(low) < LEAST_SUBJECTS:
        return 0.0, 1.0
    return least(np.asarray(low, dtype=float)), 1 - least(1 - np.asarray(high))


@dataclass(frozen=True, slots=True)
class Games:
    """The results of both games in many runs. Each array has the shape ``[...]``."""

    passing: Floats
    """Largest wealth against the PASS bar, over the subjects that count."""
    failing: Floats
    """Largest wealth against the FAIL bar, over the subjects that count."""
    passing_at_stop: Floats
    """Wealth against the PASS bar where the run stops: a sequential run after
    ``decided`` subjects, other runs after all subjects. Unlike the largest wealth, this
    wealth is an e-value.
    """
    failing_at_stop: Floats
    passed: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    stale: NDArray[np.bool_]
    """Whether a sequential run stopped because no bet had ever doubled."""
    decided: NDArray[np.int64]
    """Number of scores after which the run was decided or stale, or else the number of
    all scores.
    """
    counted: NDArray[np.int64]
    """Number of subjects up to the end of the set that decided the run (or made it
    stale), or else of its last set. If the number of subjects is fixed, all count.
    """


def _first_idle(played: Sequence[Floats], numbers: Counts) -> Counts:
    """Return, for each run, the first of these numbers of scores up to which no bet had
    ever doubled, or 0 if there is none.
    """
    import numpy as np

    found: Counts = np.zeros(played[0].shape[1:-1], dtype=np.int64)
    if len(numbers):
        best = np.max([one.max(axis=0) for one in played], axis=0)
        for number in numbers[::-1]:
            found = np.where(best[..., :number].max(axis=-1) < DOUBLED, number, found)
    return found


def play(
    winning: Sequence[tuple[Floats, ArrayLike]],
    losing: Sequence[tuple[Floats, ArrayLike]],
    *,
    goal: float,
    most: int | None = None,
    numbers: ArrayLike | None = None,
    subjects: int | None = None,
    distinct: ArrayLike = 1.0,
) -> Games:
    """Play both games. ``winning`` has the scores and the bar of each claim for PASS,
    and ``losing`` of each claim for FAIL. For a claim that the mean is low, these are 1
    - score and 1 - bar.

    If PASS makes several claims, all must hold, and its wealth is the minimum over
    them. If FAIL makes several claims, one suffices, and its wealth is the mean over
    them. ``most`` is the planned number of subjects of a sequential run, or None if the
    number of subjects is fixed. ``numbers`` has the number of each subject, in
    increasing order, and ``subjects`` is how many were run. Both are needed if subjects
    without a score are left out, because sets count them, too.
    """
    import numpy as np

    played = [bets(scores, bar, distinct) for scores, bar in (*winning, *losing)]
    each = [wealth(one) for one in played]
    held = [
        np.min(each[: len(winning)], axis=0),
        np.mean(each[len(winning) :], axis=0),
    ]
    count = held[0].shape[-1]
    run, never = count if subjects is None else subjects, count + 1
    first = [
        np.where((one >= goal).any(axis=-1), (one >= goal).argmax(axis=-1) + 1, never)
        for one in held
    ]
    own = np.arange(count) if numbers is None else np.asarray(numbers)
    sets = np.array([run] if most is None else sets_until(most))
    # Number of scores up to the end of each set.
    ends = np.searchsorted(own, sets)
    complete = (sets < sets[-1]) & (sets <= run)
    idle = _first_idle(played, ends[complete & (ends >= STALE_FROM)])
    stale = idle > 0
    end = np.where(stale, idle, count)
    decided = np.minimum(np.minimum(*first), end)
    passed, failed = (
        (first[0] < first[1]) & (first[0] <= end),
        (first[1] < first[0]) & (first[1] <= end),
    )
    last = np.searchsorted(ends, decided)
    inside = np.arange(1, count + 1) <= ends[last][..., None]
    largest = [np.where(inside, one, 0.0).max(axis=-1) for one in held]
    # A run with a fixed number of subjects does not stop early.
    stop = decided if most is not None else np.full_like(decided, count)
    at_stop = [
        np.take_along_axis(one, stop[..., None] - 1, axis=-1)[..., 0] for one in held
    ]
    return Games(
        largest[0],
        largest[1],
        at_stop[0],
        at_stop[1],
        passed,
        failed,
        stale & ~passed & ~failed,
        decided,
        sets[last],
    )
