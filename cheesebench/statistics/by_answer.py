"""Tests whether a result holds for each answer: subjects are grouped by the right
answer that each was given for life.

A rule that prefers one answer does well with subjects for whom this answer is right,
and badly with the others. The answers are assigned at random, so all reassignments are
equally likely unless the answer matters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.interfaces import Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: A remark is made if the p value is at most ``LEVEL`` and the gap is at least
#: ``LEAST_GAP``.
LEVEL, LEAST_GAP = 0.01, 0.25
#: ``FEWEST``: minimum number of subjects for a remark. ``FEWEST_OF_LEVEL``: minimum
#: number of subjects with each answer.
FEWEST, FEWEST_OF_LEVEL = 6, 2
#: Up to this number of reassignments, all of them are counted. Beyond it, ``MOST - 1``
#: of them are drawn at random.
MOST = 10_000
#: Gaps that differ by no more than this count as equal.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRate:
    """The subjects whose right answer is ``value``."""

    value: Value
    rate: float
    """Mean of these subjects' scores over the judged trials, from 0 to 1. The score of
    a measure is its place in the declared range (``Scale``).
    """
    subjects: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ByAnswer:
    """The subjects of a cell grouped by one answer."""

    answer: str
    rates: tuple[AnswerRate, ...]
    """The groups, ordered by the value of the answer."""
    gap: float
    """Largest mean of a group minus the smallest."""
    p_value: float | None = None
    """Share of reassignments with a gap at least as large; None if there are too few
    subjects, in all or in one group.
    """

    @property
    def is_uneven(self) -> bool:
        """Whether the result depends on the answer."""
        return (
            self.p_value is not None
            and self.p_value <= LEVEL
            and self.gap >= LEAST_GAP - ROUNDING
        )


def by_answer(
    answer: str, subjects: Sequence[tuple[Value, float]], seed: object
) -> ByAnswer | None:
    """Group subjects by their answer. ``subjects`` has each subject's answer and score.
    Return None if there are fewer than two different answers.

    The p value is valid for any stopping rule that depends on scores only. ``seed`` is
    the run's seed. It decides which reassignments are drawn if there are more than
    ``MOST``.
    """
    levels = sorted(
        {value for value, _ in subjects}, key=lambda one: (str(type(one)), one)
    )
    if len(levels) < 2:
        return None
    own = {
        level: [score for value, score in subjects if value == level]
        for level in levels
    }
    rates = tuple(
        AnswerRate(value=level, rate=sum(scores) / len(scores), subjects=len(scores))
        for level, scores in own.items()
    )
    means = [one.rate for one in rates]
    gap = max(means) - min(means)
    sizes = [one.subjects for one in rates]
    enough = len(subjects) >= FEWEST and min(sizes) >= FEWEST_OF_LEVEL
    scores = [score for scores in own.values() for score in scores]
    return ByAnswer(
        answer=answer,
        rates=rates,
        gap=gap,
        p_value=p_value(scores, sizes, f"{seed}|{answer}") if enough else None,
    )


def p_value(scores: Sequence[float], sizes: Sequence[int], seed: str) -> float:
    """Return the share of reassignments whose gap is at least as large as the real gap.
    If more than ``MOST`` reassignments are possible, the share is estimated from random
    ones.

    ``scores`` has the subjects of the first group, then the subjects of the second
    group, and so on. ``sizes`` has the sizes of the groups.
    """
    import numpy as np

    values = np.asarray(scores, dtype=float)
    real = np.repeat(np.arange(len(sizes)), sizes)
    at_least = _gaps(values, real[None], len(sizes))[0] - ROUNDING
    if relabelings(sizes) <= MOST:
        labels = np.array(list(_all(Counter(real.tolist()))))
        return float((_gaps(values, labels, len(sizes)) >= at_least).mean())
    rng = np.random.default_rng(list(seed.encode()))
    labels = rng.permuted(np.tile(real, (MOST - 1, 1)), axis=1)
    larger = int((_gaps(values, labels, len(sizes)) >= at_least).sum())
    return (1 + larger) / MOST


def relabelings(sizes: Sequence[int]) -> int:
    """Return the number of ways to divide subjects into groups of these sizes."""
    ways, rest = 1, sum(sizes)
    for size in sizes:
        ways *= math.comb(rest, size)
        rest -= size
    return ways


def _gaps(
    scores: NDArray[np.float64], labels: NDArray[np.int64], levels: int
) -> NDArray[np.float64]:
    """Return the gap for each row of labels (reassignments x subjects)."""
    import numpy as np

    means = np.stack(
        [
            ((own := labels == level) @ scores) / own.sum(axis=1)
            for level in range(levels)
        ]
    )
    gaps: NDArray[np.float64] = means.max(axis=0) - means.min(axis=0)
    return gaps


def _all(left: Counter[int]) -> Iterator[tuple[int, ...]]:
    """Yield each distinct order of the remaining labels."""
    if not any(left.values()):
        yield ()
        return
    for label in list(left):
        if left[label]:
            left[label] -= 1
            for rest in _all(left):
                yield (label, *rest)
            left[label] += 1
