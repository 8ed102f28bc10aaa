"""The sequential rule: judge after few subjects, and go on only where they do not decide.

A cell is judged at fixed numbers of subjects, its *looks*. A look at S uses the subjects 0 to S - 1, whoever finished
first, and judges them by the bound of the fixed rule with a tail of its own (``spending``), so that a PASS or a FAIL is
wrong with ``ALPHA`` at the most over all looks together. The interval of a cell is the one of the look where it stopped
(a repeated confidence interval: Jennison and Turnbull 1989, J R Stat Soc B 51:305).

All of it is pure: whoever runs subjects asks ``next_look`` how many it needs, ``decide`` what they say, and while they
live ``is_settled`` whether what they still have to do could matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from cheesebench.statistics.bounds import p_values, resized
from cheesebench.statistics.comparison import Question, SubjectTrials, scenarios
from cheesebench.statistics.spending import looks_until, tails
from cheesebench.statistics.summary import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

#: From so many subjects on, a cell is given up that cannot be expected to be decided.
FUTILE_FROM = 24
#: Standard errors by which the rate may still change for the better (or worse) when that is asked.
FUTILE_ERRORS = 1.5

__all__ = ["Decision", "Standing", "decide", "futile", "is_settled", "looks_until", "next_look", "what_it_still_needs"]


class Standing(StrEnum):
    """What a look says."""

    PASS = "PASS"
    FAIL = "FAIL"
    GO_ON = "go on"
    """Not decided: the next look may decide it."""
    FUTILE = "futile"
    """Not decided, and even the last look cannot be expected to decide it: INCONCLUSIVE."""
    EXHAUSTED = "exhausted"
    """Not decided at the last look: INCONCLUSIVE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a look at the first ``subjects`` subjects says, and by which numbers."""

    standing: Standing
    subjects: int
    most: int
    """Subjects of the last look."""
    tail: float
    """What each of the limits below leaves outside."""
    rate: float | None
    """Mean of the subjects' rates over the trials that were run; None without any."""
    interval: tuple[float, float]
    """Of the rate, whatever the open trials would have been."""
    difference: tuple[float, float]
    """Of model - reference."""

    @property
    def verdict(self) -> Verdict:
        """PASS, FAIL, or INCONCLUSIVE (as yet, where it goes on)."""
        return Verdict(self.standing) if self.standing in ("PASS", "FAIL") else Verdict.INCONCLUSIVE

    @property
    def final(self) -> bool:
        """Whether no subject is needed any more."""
        return self.standing is not Standing.GO_ON


def next_look(looks: Sequence[int], subjects: int) -> int | None:
    """Return the first look at more than so many subjects; None after the last."""
    return next((look for look in looks if look > subjects), None)


def decide(question: Question, subjects: Sequence[SubjectTrials], look: int, looks: tuple[int, ...]) -> Decision:
    """Return what a look says; ``subjects`` are those from 0 on in the order of their numbers, at least ``look``.

    Their ``open`` trials count as failed where a PASS is asked for, and as passed where a FAIL is.

    Raises:
        ValueError: If ``look`` is none of ``looks``, or there are fewer subjects.
    """
    if look not in looks or len(subjects) < look:
        raise ValueError(f"There is no look at {look} of {len(subjects)} subjects; the looks are {looks}.")
    tail = tails(looks)[looks.index(look)]
    found = scenarios(subjects[:look])
    if found is None:
        standing = Standing.EXHAUSTED if look == looks[-1] else Standing.GO_ON
        return Decision(
            standing=standing,
            subjects=look,
            most=looks[-1],
            tail=tail,
            rate=None,
            interval=(0.0, 1.0),
            difference=(-1.0, 1.0),
        )
    difference = found.difference_limits(question.reference, tail)
    verdict = question.verdict(difference) if found.valid.subjects > 1 else Verdict.INCONCLUSIVE
    if verdict is not Verdict.INCONCLUSIVE:
        standing = Standing(verdict.value)
    elif look == looks[-1]:
        standing = Standing.EXHAUSTED
    else:
        complete = not any(subject.open for subject in subjects[:look])
        hopeless = complete and bool(futile(question, found.valid.rates, look, looks))
        standing = Standing.FUTILE if hopeless else Standing.GO_ON
    return Decision(
        standing=standing,
        subjects=look,
        most=looks[-1],
        tail=tail,
        rate=found.valid.rate,
        interval=found.limits(tail),
        difference=difference,
    )


def is_settled(question: Question, subjects: Sequence[SubjectTrials], look: int, looks: tuple[int, ...]) -> bool:
    """Tell whether a look is PASS or FAIL whatever becomes of the ``open`` trials of its subjects.

    Every bound rises with every pass, so that no assignment of passes lies beyond "all failed" and "all passed", and
    a life that turns out shorter does not either. ``distinct`` of a subject that has not finished must be True only
    if its life already differs from all others: a copy that is yet to become one could still change the decision.
    """
    if any(subject.open and not subject.distinct for subject in subjects[:look]):
        return False
    return decide(question, subjects, look, looks).verdict is not Verdict.INCONCLUSIVE


def what_it_still_needs(
    question: Question, subjects: Sequence[SubjectTrials], look: int, looks: tuple[int, ...]
) -> int | None:
    """Return the look that would decide, if more subjects were spread as those up to ``look``; None if none would.

    It is what an undecided cell is expected to need, for reports and for whoever spends money on the nearest first.
    """
    found = scenarios(subjects[:look])
    if found is None:
        return None
    share = found.valid.subjects / len(found.valid.distinct)
    for later, tail in zip(looks, tails(looks), strict=True):
        if later > look:
            imagined = resized(found.valid.rates, max(1, round(share * later))).tolist()
            if question.verdict_of(imagined, tail) is not Verdict.INCONCLUSIVE:
                return later
    return None


def futile(question: Question, rates: ArrayLike, look: int, looks: tuple[int, ...]) -> NDArray[np.bool_]:
    """Tell whether not even the last look would decide, with the rate ``FUTILE_ERRORS`` further to either side.

    ``rates`` has shape ``[..., subjects]``, the result ``[...]``.
    """
    import numpy as np

    own = np.asarray(rates, dtype=float)
    count = own.shape[-1]
    if look < FUTILE_FROM or count < 2:
        return np.zeros(own.shape[:-1], dtype=bool)
    shift = FUTILE_ERRORS * own.std(axis=-1, ddof=1)[..., None] / count**0.5
    at_last, tail = resized(own, max(1, round(count * looks[-1] / look))), tails(looks)[-1]
    better, worse = np.clip(at_last + shift, 0, 1), np.clip(at_last - shift, 0, 1)
    above, below = question.bars(better.mean(axis=-1), tail)[0], question.bars(worse.mean(axis=-1), tail)[1]
    return np.asarray((p_values(better, above) >= tail) & (p_values(1 - worse, 1 - below) >= tail))
