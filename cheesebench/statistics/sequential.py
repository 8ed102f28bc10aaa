"""The sequential rule: judge after few subjects, and continue only if they do not decide.

A cell is judged at fixed numbers of subjects, its *looks*. A look at S uses the subjects 0 to S - 1, in whatever order
they finished, and applies the bounds of the fixed rule with a tail probability of its own (``spending``), so that the
error probabilities of PASS and of FAIL are at most ``ALPHA`` over all looks together. The interval of a cell is that of
the look where it stopped (a repeated confidence interval: Jennison and Turnbull 1989, J R Stat Soc B 51:305).

All functions are pure. The scheduler asks ``next_look`` how many subjects it needs, ``decide`` for the decision at a
look, and, while subjects run, ``is_settled`` whether their remaining trials could still matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from cheesebench.statistics.bounds import resized
from cheesebench.statistics.comparison import Question, SubjectTrials, scenarios
from cheesebench.statistics.spending import looks_until
from cheesebench.statistics.summary import Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

#: From this many subjects on, a cell stops if no decision can be expected any more.
FUTILE_FROM = 24
#: No decision can be expected if the last look would not decide even with a rate this many standard errors away.
FUTILE_ERRORS = 1.5

__all__ = ["Decision", "Standing", "decide", "futile", "is_settled", "looks_until", "next_look", "what_it_still_needs"]


class Standing(StrEnum):
    """The outcome of a look."""

    PASS = "PASS"
    FAIL = "FAIL"
    GO_ON = "go on"
    """Not decided: the next look may decide it."""
    FUTILE = "futile"
    """Not decided, and even the last look is not expected to decide it: INCONCLUSIVE."""
    EXHAUSTED = "exhausted"
    """Not decided at the last look: INCONCLUSIVE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The outcome of a look at the first ``subjects`` subjects, with its numbers."""

    standing: Standing
    subjects: int
    most: int
    """Subjects of the last look."""
    tail: float
    """Tail probability of each of the limits below."""
    rate: float | None
    """Mean of the subjects' rates over the trials that were run; None without trials."""
    interval: tuple[float, float]
    """Of the rate, for any result of the open trials."""
    difference: tuple[float, float]
    """Of model - reference."""

    @property
    def verdict(self) -> Verdict:
        """PASS, FAIL, or INCONCLUSIVE (for now, if it continues)."""
        return Verdict(self.standing) if self.standing in ("PASS", "FAIL") else Verdict.INCONCLUSIVE

    @property
    def final(self) -> bool:
        """Whether no more subjects are needed."""
        return self.standing is not Standing.GO_ON


def next_look(looks: Sequence[int], subjects: int) -> int | None:
    """Return the first look at more than ``subjects`` subjects; None after the last."""
    return next((look for look in looks if look > subjects), None)


def decide(question: Question, subjects: Sequence[SubjectTrials], look: int, looks: tuple[int, ...]) -> Decision:
    """Return what a look says; ``subjects`` are those from 0 on in the order of their numbers, at least ``look``.

    Their ``open`` trials count as failed where a PASS is asked for, and as passed where a FAIL is.

    Raises:
        ValueError: If ``look`` is none of ``looks``, or there are fewer subjects.
    """
    if look not in looks or len(subjects) < look:
        raise ValueError(f"There is no look at {look} of {len(subjects)} subjects; the looks are {looks}.")
    tail = question.means.tails(looks)[looks.index(look)]
    found = scenarios(subjects[:look], question.means)
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
    """Return whether a look is PASS or FAIL whatever the results of its subjects' open trials.

    Bounds are monotone in every pass, so "all failed" and "all passed" are the extremes, also for a schedule that ends
    early. For an unfinished subject, ``distinct`` may be True only if its trials already differ from all others:
    otherwise it could still turn out to be a copy, which would change the decision.
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
    found = scenarios(subjects[:look], question.means)
    if found is None:
        return None
    share = found.valid.subjects / len(found.valid.distinct)
    for later, tail in zip(looks, question.means.tails(looks), strict=True):
        if later > look:
            imagined = resized(found.valid.rates, max(1, round(share * later))).tolist()
            if question.verdict_of(imagined, tail) is not Verdict.INCONCLUSIVE:
                return later
    return None


def futile(question: Question, rates: ArrayLike, look: int, looks: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return whether even the last look would not decide if the rate shifted by ``FUTILE_ERRORS`` standard errors.

    ``rates`` has shape ``[..., subjects]``, the result ``[...]``.
    """
    import numpy as np

    own = np.asarray(rates, dtype=float)
    count = own.shape[-1]
    if look < FUTILE_FROM or count < 2:
        return np.zeros(own.shape[:-1], dtype=bool)
    shift = FUTILE_ERRORS * own.std(axis=-1, ddof=1)[..., None] / count**0.5
    means = question.means
    at_last, tail = resized(own, max(1, round(count * looks[-1] / look))), means.tails(looks)[-1]
    better, worse = (np.clip(at_last + sign * shift, means.lowest, means.highest) for sign in (1, -1))
    above, below = question.bars(better.mean(axis=-1), tail)[0], question.bars(worse.mean(axis=-1), tail)[1]
    passing, failing = means.p_values(better, above, above=True), means.p_values(worse, below, above=False)
    return np.asarray((passing >= tail) & (failing >= tail))
