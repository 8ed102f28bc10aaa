"""Which trials of a cell are looked at: the estimand, what is missing from it, and copies of subjects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.statistics.measures import Tally

#: The trials of one subject in the order of life.
Life = Sequence[TrialRecord]


@dataclass(frozen=True, slots=True)
class LifeCount:
    """One subject's life, condensed: all that a verdict needs of it.

    ``results``, ``sessions`` and ``passes`` have one number for every trial they are about, in the order of life.
    """

    subject: int
    distinct: bool
    """Whether it is no exact copy of an earlier subject's."""
    mark: str
    """``signature`` of the life."""
    entered: int
    """Trials that enter the estimand, missing ones included."""
    missing: int
    results: bytes
    """1 or 0 for every trial that enters the estimand and has a success."""
    sessions: tuple[int, ...]
    """Session of every scored trial that the reference is about, whatever the estimand."""
    passes: bytes
    """1 or 0 for each of those."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The trials of one cell, condensed: subjects in the order of their numbers."""

    lives: tuple[LifeCount, ...]
    """Every subject with a record, copies included."""
    tally: Tally
    """Of all trials that enter the estimand."""
    absent: int
    """Subjects of the plan without any record."""
    absent_trials: int
    """Trials that each absent subject would have put into the estimand (an upper bound)."""

    @property
    def seen(self) -> int:
        """Subjects with a record, copies included."""
        return len(self.lives)

    @property
    def copies(self) -> int:
        """Subjects that are exact copies of another: they count in the rate, but are no further evidence."""
        return sum(not life.distinct for life in self.lives)

    @property
    def entered(self) -> int:
        """Trials that enter the estimand, missing ones included."""
        return sum(life.entered for life in self.lives)

    @property
    def missing(self) -> int:
        """Missing trials among those (absent subjects left no trial)."""
        return sum(life.missing for life in self.lives)


def draw_sample(plan: CellPlan, trials: Iterable[Life]) -> Sample:
    """Return the sample of a cell; ``trials`` are its lives by rising subject, and none is kept.

    Trials that were never reached are not missing, because ``until`` may shorten a life; but a planned
    subject without a single record is missing whole.
    """
    known: set[str] = set()
    found: list[LifeCount] = []
    tally = Tally(split=plan.split)
    for life in trials:
        entering = enter_estimand(plan.estimand, life)
        for record in entering:
            tally.add(record)
        mark = signature(life)
        found.append(_count(life, entering, mark, mark not in known))
        known |= {mark} if mark else set()
    typical = max((life.entered for life in found), default=0) or _planned_trials(plan)
    return Sample(tuple(found), tally, max(0, plan.subjects - len(found)), typical)


def _count(life: Life, entering: Life, mark: str, distinct: bool) -> LifeCount:
    scored = [r for r in life if r.compared and not r.missing and r.success is not None]
    return LifeCount(
        subject=life[0].subject,
        distinct=distinct,
        mark=mark,
        entered=len(entering),
        missing=sum(bool(r.missing) for r in entering),
        results=bytes(r.success for r in entering if not r.missing and r.success is not None),
        sessions=tuple(r.session for r in scored),
        passes=bytes(bool(r.success) for r in scored),
    )


def lives(trials: Iterable[TrialRecord]) -> dict[int, tuple[TrialRecord, ...]]:
    """Group trials by subject, both in rising order."""
    grouped: dict[int, list[TrialRecord]] = {}
    for record in sorted(trials, key=lambda record: (record.subject, record.trial)):
        grouped.setdefault(record.subject, []).append(record)
    return {subject: tuple(life) for subject, life in grouped.items()}


def signature(life: Life) -> str:
    """Return what exact copies share, a digest of actions and ends of all trials; "" if the subject never acted.

    The ends belong to it: the same moves with other results have met other draws, and are data of their own.
    Deterministic agents live such copies.
    """
    if not any(record.actions for record in life):
        return ""
    digest = hashlib.blake2b(digest_size=10)
    for r in life:
        digest.update(repr((r.trial, r.actions, r.outcome, r.success, r.missing)).encode())
    return digest.hexdigest()


def enter_estimand(estimand: str, life: Life) -> tuple[TrialRecord, ...]:
    """Return the trials of one life that the pass rate is taken over.

    Only trials that the reference is about (``compared``) enter; ``last:K`` takes the last K of *those*. A
    missing trial enters unless its block is known to be another.

    Raises:
        ValueError: If ``estimand`` is not ``all``, ``last:K`` or ``block:NAME`` (or ``block:NAME,NAME``).
    """
    kind, _, argument = estimand.partition(":")
    compared = tuple(record for record in life if record.compared)
    if kind == "all" and not argument:
        return compared
    if kind == "last" and argument.strip().isdecimal() and int(argument):
        return compared[-int(argument) :]
    if kind == "block" and argument.strip():
        names = [name.strip() for name in argument.split(",")]
        return tuple(r for r in compared if r.block in names or (r.missing and not r.block))
    raise ValueError(f"The estimand is '{estimand}'; it can be 'all', 'last:K' or 'block:NAME'.")


def _planned_trials(plan: CellPlan) -> int:
    kind, _, argument = plan.estimand.partition(":")
    return min(plan.trials, int(argument)) if kind == "last" else plan.trials
