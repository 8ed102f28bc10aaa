"""The learning curve of a cell: pass rate by session, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cheesebench.statistics.sample import SubjectCount
from cheesebench.statistics.summary import CurvePoint

#: A schedule of one session is cut into this many groups of trials for the learning curve.
CURVE_PARTS = 5
#: One subject: the number of a point and 1 or 0 for each scored trial.
Numbered = tuple[Sequence[int], Sequence[int]]


def learning_curve(subjects: Iterable[SubjectCount]) -> tuple[str, tuple[CurvePoint, ...]]:
    """Return the unit of the curve and its points: by session, or by groups of trials in a schedule of one session.

    Every scored trial that the reference is about enters, whatever the estimand.
    """
    name, numbered = points_of(subjects)
    return name, _points(numbered)


def points_of(subjects: Iterable[SubjectCount]) -> tuple[str, list[Numbered]]:
    """Return the unit of the curve, and for each subject the point that each of its scored trials belongs to."""
    scored: list[Numbered] = [(one.sessions, one.passes) for one in subjects]
    longest = max((len(passes) for _, passes in scored), default=0)
    if len({session for sessions, _ in scored for session in sessions}) > 1 or longest <= 1:
        return "session", scored
    size = math.ceil(longest / CURVE_PARTS)
    return ("1 trial" if size == 1 else f"{size} trials"), [
        ([k // size + 1 for k in range(len(passes))], passes) for _, passes in scored
    ]


def _points(numbered: Sequence[Numbered]) -> tuple[CurvePoint, ...]:
    from cheesebench.statistics.intervals import rate_limits

    # Number of the point -> passed trials and trials of each subject that has any there.
    counts: dict[int, list[tuple[int, int]]] = {}
    for numbers, passes in numbered:
        own: dict[int, tuple[int, int]] = {}
        for number, success in zip(numbers, passes, strict=True):
            passed, trials = own.get(number, (0, 0))
            own[number] = (passed + success, trials + 1)
        for number, pair in own.items():
            counts.setdefault(number, []).append(pair)
    points = []
    for number in sorted(counts):
        passes, sizes = zip(*counts[number], strict=True)
        low, high = rate_limits(passes, sizes, 0.025)
        rate = sum(own / size for own, size in zip(passes, sizes, strict=True)) / len(sizes)
        points.append(CurvePoint(number, rate, low, high, sum(sizes)))
    return tuple(points)
