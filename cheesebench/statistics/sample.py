"""The sample of a cell: the trials that enter the estimand, missing trials, and exact copies of subjects."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from cheesebench.experiment.records import SETTLED, CellPlan, TrialRecord
from cheesebench.statistics.comparison import SubjectTrials
from cheesebench.statistics.measures import Tally
from cheesebench.statistics.merit import Scale, scale_of

#: The trials of one subject in order.
SubjectRecords = Sequence[TrialRecord]


class _Entering(Protocol):
    """The attributes of a trial that the estimand needs."""

    @property
    def compared(self) -> bool: ...

    @property
    def block(self) -> str: ...

    @property
    def missing(self) -> str: ...


Entering = TypeVar("Entering", bound=_Entering)

#: Trials of a cell up to which it is kept how each life began, to tell what a life that was stopped is a copy of.
MOST_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class SubjectCount:
    """One subject's trials, condensed to what a verdict needs.

    ``results``, ``sessions`` and ``passes`` have one number for each trial concerned, in order.
    """

    subject: int
    distinct: bool
    """False for an exact copy of an earlier subject, and for one that was stopped before it did anything."""
    digest: str
    """Of its trials (``Lives.name``, or ``signature`` with many subjects): equal for exact copies."""
    entered: int
    """Trials that enter the estimand, missing and settled ones included."""
    missing: int
    settled: int
    """Trials that were not run because they could not change the verdict."""
    results: bytes
    """1 or 0 for every trial that enters the estimand and has a success."""
    sessions: tuple[int, ...]
    """Session of every scored trial that is comparable with the reference, whatever the estimand."""
    passes: bytes
    """1 or 0 for each of those."""
    merits: tuple[float, ...] = ()
    """Merit (``merit``) of every trial that enters the estimand and has one, if the verdict is about a measure."""
    outside: int = 0
    """Number of those beyond the range that the protocol declares."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The trials of one cell, condensed: subjects in the order of their numbers."""

    per_subject: tuple[SubjectCount, ...]
    """Every subject with a record, copies included."""
    tally: Tally
    """Of all trials that enter the estimand."""
    absent: int
    """Subjects of the plan without any record."""
    absent_trials: int
    """Trials that each absent subject would have put into the estimand (an upper bound)."""
    tallies: Mapping[int, Tally] = field(default_factory=dict)
    """For the looks of a sequential cell: the tally of the subjects below that number."""
    measured: bool = False
    """Whether the verdict is about a measure."""

    @property
    def seen(self) -> int:
        """Subjects with a record, copies included."""
        return len(self.per_subject)

    @property
    def copies(self) -> int:
        """Number of exact copies of other subjects: counted in the rate, but not as further evidence."""
        return sum(bool(one.digest) and not one.distinct for one in self.per_subject)

    @property
    def entered(self) -> int:
        """Trials that enter the estimand, missing and settled ones included."""
        return sum(one.entered for one in self.per_subject)

    @property
    def missing(self) -> int:
        """Missing trials among those (absent subjects have none)."""
        return sum(one.missing for one in self.per_subject)

    @property
    def settled(self) -> int:
        """Settled trials among those."""
        return sum(one.settled for one in self.per_subject)

    def subjects(self) -> tuple[SubjectTrials, ...]:
        """Return what a verdict on the pass rate needs of every subject; an absent one is open throughout."""
        return self._subjects([one.results for one in self.per_subject])

    def judged(self) -> tuple[SubjectTrials, ...]:
        """Return what the cell's verdict needs of every subject: by its measure, or by its pass rate."""
        return self._subjects([one.merits for one in self.per_subject]) if self.measured else self.subjects()

    def _subjects(self, merits: Iterable[Sequence[float]]) -> tuple[SubjectTrials, ...]:
        counted = [
            SubjectTrials(sum(own), len(own), one.missing + one.settled, one.distinct)
            for one, own in zip(self.per_subject, merits, strict=True)
        ]
        return (*counted, *[SubjectTrials(0, 0, self.absent_trials, distinct=False)] * self.absent)

    @property
    def not_run(self) -> int:
        """Trials of subjects that never began; they are missing, too."""
        return self.absent * self.absent_trials

    def up_to(self, look: int) -> Sample:
        """Return the sample of the first ``look`` subjects; ``look`` is one of the plan's looks."""
        kept = tuple(one for one in self.per_subject if one.subject < look)
        return replace(self, per_subject=kept, tally=self.tallies.get(look, self.tally), absent=look - len(kept))


def draw_sample(plan: CellPlan, trials: Iterable[SubjectRecords]) -> Sample:
    """Return the sample of a cell; ``trials`` has the trials of each subject, by rising subject; they are read once.

    Trials that were never reached are not missing, because ``until`` may shorten the schedule; but a planned
    subject without a single record is missing whole.
    """
    lives, kept = Lives(), bool(plan.looks) or plan.subjects * plan.trials <= MOST_KEPT
    found: list[SubjectCount] = []
    tally, tallies = Tally(split=plan.split, by=plan.by), dict[int, Tally]()
    scale = scale_of(plan)
    for records in trials:
        # What a sequential cell is described by are the subjects that it was judged by.
        tallies |= {look: deepcopy(tally) for look in plan.looks if look <= records[0].subject and look not in tallies}
        entering = enter_estimand(plan.estimand, records)
        for record in entering:
            tally.add(record)
        whole = not any(record.missing for record in records)
        digest = lives.name(prefixes(records), whole=whole) if kept else signature(records)
        found.append(_count(records, entering, digest, lives.is_new(digest, whole=whole), scale))
    typical = max((one.entered for one in found), default=0) or _planned_trials(plan)
    absent = max(0, plan.subjects - len(found))
    return Sample(tuple(found), tally, absent, typical, tallies, measured=scale.measured is not None)


def _count(
    records: SubjectRecords, entering: SubjectRecords, digest: str, distinct: bool, scale: Scale
) -> SubjectCount:
    merits = [scale.merit_of(r) for r in entering] if scale.measured is not None else []
    scored = [r for r in records if r.compared and not r.missing and r.success is not None]
    return SubjectCount(
        subject=records[0].subject,
        distinct=distinct,
        digest=digest,
        entered=len(entering),
        missing=sum(r.missing not in ("", SETTLED) for r in entering),
        settled=sum(r.missing == SETTLED for r in entering),
        results=bytes(r.success for r in entering if not r.missing and r.success is not None),
        sessions=tuple(r.session for r in scored),
        passes=bytes(bool(r.success) for r in scored),
        merits=tuple(merit for merit in merits if merit is not None),
        outside=sum(map(scale.is_outside, entering)),
    )


def trials_by_subject(trials: Iterable[TrialRecord]) -> dict[int, tuple[TrialRecord, ...]]:
    """Group trials by subject, both in ascending order."""
    grouped: dict[int, list[TrialRecord]] = {}
    for record in sorted(trials, key=lambda record: (record.subject, record.trial)):
        grouped.setdefault(record.subject, []).append(record)
    return {subject: tuple(records) for subject, records in grouped.items()}


def signature(records: SubjectRecords) -> str:
    """Return a digest of draws, actions and outcomes of all trials, equal for exact copies; "" if the subject is idle.

    Draws and outcomes are included: the same actions in another world, or with other results, are independent data.
    Copies occur for deterministic agents if nothing is drawn.
    """
    if not any(map(has_acted, records)):
        return ""
    digest = hashlib.blake2b(digest_size=10)
    for record in records:
        digest.update(trial_bytes(record))
    return digest.hexdigest()


def prefixes(records: SubjectRecords) -> list[str]:
    """Return digests of the first trials: after each one that was run, from the first action on."""
    digest = hashlib.blake2b(digest_size=10)
    found: list[str] = []
    for record in records:
        if record.missing:
            break
        digest.update(trial_bytes(record))
        if found or has_acted(record):
            found.append(digest.hexdigest())
    return found


class Lives:
    """Names lives by what was done in them: exact copies have the same name.

    A life that was stopped is taken for a copy of an earlier one that began in the same way, and the next one that
    begins like it for a copy of it: nobody knows whether it would have gone on differently. Otherwise a subject would
    become evidence by being stopped.
    """

    def __init__(self) -> None:
        self._begun: dict[str, str] = {}
        self._whole: dict[str, str] = {}
        self._stopped: dict[str, str] = {}
        self._seen: set[str] = set()

    def name(self, digests: Sequence[str], *, whole: bool) -> str:
        """Return the name of the next life from its ``prefixes``; empty for an idle one, which is no copy."""
        if not digests:
            return ""
        last = digests[-1]
        name = (self._whole if whole else self._begun).get(last)
        if name is None:
            stopped = next((digest for digest in digests if digest in self._stopped), None)
            name = last if stopped is None else self._stopped.pop(stopped)  # only one can be what that was
        (self._whole if whole else self._stopped)[last] = name
        for digest in digests:
            self._begun.setdefault(digest, name)
        return name

    def is_new(self, name: str, *, whole: bool) -> bool:
        """Return whether a life of this name is seen for the first time, so that it is further evidence.

        An idle one is, if it is whole: one that was stopped may have been about to do the same as another.
        """
        if not name:
            return whole
        new = name not in self._seen
        self._seen.add(name)
        return new


def has_acted(record: TrialRecord) -> bool:
    """Tell whether a subject did something in a trial, or succeeded by doing nothing.

    Subjects that only ever stay and fail (a model without a word that is an action) are not each other's copies: where
    a trial starts is drawn, too, and is in no record.
    """
    return bool(record.actions.strip("S.")) or (bool(record.actions) and bool(record.success))


def trial_bytes(r: TrialRecord) -> bytes:
    """Return what a trial contributes to its subject's signature."""
    drawn = sorted(r.variables.items())
    return repr((r.trial, r.actions, drawn, r.outcome, r.success, r.missing)).encode()


def enter_estimand(estimand: str, records: Sequence[Entering]) -> tuple[Entering, ...]:
    """Return the trials of one subject that the pass rate is taken over.

    Only trials that the reference is about (``compared``) enter; ``last:K`` takes the last K of *those*. A
    missing trial enters unless its block is known to be another.

    Raises:
        ValueError: If ``estimand`` is not ``all``, ``last:K`` or ``block:NAME`` (or ``block:NAME,NAME``).
    """
    kind, _, argument = estimand.partition(":")
    compared = tuple(record for record in records if record.compared)
    if kind == "all" and not argument:
        return compared
    if kind == "last" and argument.strip().isdecimal() and int(argument):
        return compared[-int(argument) :]
    if kind == "block" and argument.strip():
        names = [name.strip() for name in argument.split(",")]
        return tuple(r for r in compared if r.block in names or (r.missing and not r.block))
    raise ValueError(f"The estimand is '{estimand}'; it must be 'all', 'last:K' or 'block:NAME'.")


def _planned_trials(plan: CellPlan) -> int:
    kind, _, argument = plan.estimand.partition(":")
    return min(plan.trials, int(argument)) if kind == "last" else plan.trials
