"""Condenses a cell's trials to its sample: the trials that enter the estimand (the
quantity that the verdict is about), missing trials, and exact copies of subjects.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import NamedTuple, Protocol, TypeVar

from cheesebench.interfaces import Value
from cheesebench.records import CellPlan, TrialRecord, sets_until
from cheesebench.statistics.betting import Scores
from cheesebench.statistics.intervals import rate_limits
from cheesebench.statistics.measures import Tally
from cheesebench.statistics.question import Scale, scale_of
from cheesebench.statistics.summary import CurvePoint

#: Maximum number of points on the learning curve of a schedule with one session. Each
#: point is a group of trials.
CURVE_PARTS = 5


class Numbered(NamedTuple):
    """One subject on a curve. Each field has one number per scored trial: the number of
    the trial's point, its score (``Scale``: 1 or 0 for a pass rate), and whether it
    enters the estimand (1 or 0).
    """

    points: Sequence[int] = ()
    scores: Sequence[float] = ()
    enters: Sequence[int] = ()


def learning_curve(
    subjects: Iterable[SubjectCount], idle: Collection[int]
) -> tuple[str, tuple[CurvePoint, ...]]:
    """Return the unit of the learning curve and its points. A point is a session or, if
    the schedule has only one, a group of trials.

    The curve has all scored trials that the reference covers, whatever the estimand. If
    a point is a session, the ``idle`` sessions are left out.
    """
    return _curve((one.numbered() for one in subjects), idle)


def _curve(
    subjects: Iterable[Numbered], idle: Collection[int]
) -> tuple[str, tuple[CurvePoint, ...]]:
    name, numbered = points_of(subjects, idle)
    counts: dict[int, list[tuple[float, int]]] = {}
    for one in numbered:
        for number, scores in scores_by_point(one).items():
            counts.setdefault(number, []).append((sum(scores), len(scores)))
    judged = _judged_points(numbered)
    return name, tuple(
        _point(number, counts[number], number in judged) for number in sorted(counts)
    )


def _judged_points(numbered: Iterable[Numbered]) -> set[int]:
    """Return the points with a trial that enters the estimand."""
    return {
        at
        for one in numbered
        for at, enters in zip(one.points, one.enters, strict=True)
        if enters
    }


def points_of(
    subjects: Iterable[Numbered], idle: Collection[int]
) -> tuple[str, list[Numbered]]:
    """Return the unit of a curve and, for each subject, the points of its scored
    trials. ``subjects`` has the trials' sessions in place of the points.

    If a point is a session, the ``idle`` sessions, in which nothing can succeed, are
    left out.
    """
    scored = list(subjects)
    longest = max((len(one.scores) for one in scored), default=0)
    if longest <= 1 or _has_sessions(scored):
        return "session", [_without(idle, one) for one in scored]
    size = math.ceil(longest / CURVE_PARTS)
    return ("1 trial" if size == 1 else f"{size} trials"), [
        one._replace(points=[k // size + 1 for k in range(len(one.scores))])
        for one in scored
    ]


def _has_sessions(scored: Iterable[Numbered]) -> bool:
    return len({session for one in scored for session in one.points}) > 1


def _without(idle: Collection[int], one: Numbered) -> Numbered:
    kept = [row for row in zip(*one, strict=True) if row[0] not in idle]
    return Numbered(*zip(*kept, strict=True)) if kept else Numbered()


def scores_by_point(one: Numbered) -> dict[int, list[float]]:
    """Return the scores of a subject's trials, keyed by the number of the point on the
    curve.
    """
    found: dict[int, list[float]] = {}
    for number, score in zip(one.points, one.scores, strict=True):
        found.setdefault(number, []).append(score)
    return found


def _point(
    number: int, subjects: Sequence[tuple[float, int]], judged: bool
) -> CurvePoint:
    """Return a point of the curve. ``subjects`` has, for each subject, the sum of its
    scores and the number of its trials in this point.
    """
    passed, sizes = zip(*subjects, strict=True)
    low, high = rate_limits(passed, sizes)
    rate = fmean(own / size for own, size in subjects)
    return CurvePoint(number, rate, low, high, sum(sizes), judged)


#: The trials of one subject, in order.
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

#: Maximum number of planned trials for which a cell that is not sequential keeps the
#: digest after each trial. These digests show whether an unfinished life is a copy.
MOST_KEPT = 10_000


class SubjectScore(NamedTuple):
    """The score of one subject, for a verdict or for a comparison of two runs. Only
    trials that enter the estimand count.
    """

    total: float
    """Sum of the trials' scores (``Scale``): 1 for each passed trial or, for a measure,
    a number from 0 to 1.
    """
    scored: int
    missing: int = 0
    digest: str = ""
    """See ``SubjectCount.digest``."""
    distinct: bool = True
    """False for an exact copy of an earlier subject, and for an incomplete or absent
    subject that did not act.
    """

    def rate(self, fill: bool | None = None) -> float:
        """Return the mean score. Missing trials are left out if ``fill`` is None, and
        otherwise count as passed (True) or failed (False).

        At least one trial must count.
        """
        if fill is None:
            return self.total / self.scored
        return (self.total + fill * self.missing) / (self.scored + self.missing)


def scores_of(subjects: Iterable[SubjectScore]) -> Scores:
    """Return the scores of all subjects with at least one trial that counts. The trial
    may be missing.
    """
    import numpy as np

    every = tuple(subjects)
    counts = [
        (number, one) for number, one in enumerate(every) if one.scored + one.missing
    ]
    rows = [one for _, one in counts]
    distinct = np.cumsum([one.distinct for one in rows]) / np.arange(1, len(rows) + 1)
    return Scores(
        np.array([one.rate(False) for one in rows]),
        np.array([one.rate(True) for one in rows]),
        distinct,
        np.array([number for number, _ in counts], dtype=np.int64),
        len(every),
    )


@dataclass(frozen=True, slots=True)
class SubjectCount:
    """One subject's trials, condensed to what a verdict needs.

    ``results``, ``sessions``, ``passes`` and ``enters`` have one number for each trial
    that they cover, in order.
    """

    subject: int
    distinct: bool
    """False for an exact copy of an earlier subject, and for an incomplete subject that
    did not act (``Copies.is_new``).
    """
    digest: str
    """Hash of the subject's trials, which is equal for exact copies; empty if there is
    no action to compare (``has_acted``).
    """
    entered: int
    """Number of trials that enter the estimand, including missing ones."""
    missing: int
    results: bytes
    """Success (1 or 0) of every scored trial that enters the estimand."""
    sessions: tuple[int, ...]
    """Session of every scored trial that is comparable with the reference, whatever the
    estimand.
    """
    passes: bytes
    """Success (1 or 0) of each trial of ``sessions``."""
    enters: bytes = b""
    """Whether each trial of ``sessions`` enters the estimand (1 or 0)."""
    scores: tuple[float, ...] = ()
    """Score of every trial that enters the estimand and has one, if the verdict
    concerns a measure.
    """
    measured: Numbered = field(default_factory=Numbered)
    """Every trial that is comparable with the reference and has a value, by its
    session, if the verdict concerns a measure.
    """
    outside: int = 0
    """Number of measured values beyond the range that the protocol declares."""
    first: bool | None = None
    """Success in the first trial of the life; None if that trial was not scored, or the
    reference does not cover it.
    """
    answers: tuple[Value, ...] = ()
    """The subject's value for each of the plan's ``answers``."""
    begun: bool = True
    """False if the run, or its budget, ended before the subject's first trial."""

    def numbered(self, *, of_measure: bool = False) -> Numbered:
        """Return the subject's trials for a curve of the pass rate or of the measure,
        by session.
        """
        if of_measure:
            return self.measured
        return Numbered(self.sessions, self.passes, self.enters)


@dataclass(frozen=True, slots=True)
class Sample:
    """The condensed trials of one cell."""

    per_subject: tuple[SubjectCount, ...]
    """Every subject with a record, in numerical order, copies included."""
    tally: Tally
    """Counts over all trials that enter the estimand, and the measures of other trials
    by block.
    """
    absent: int
    """Number of planned subjects without any record."""
    absent_trials: int
    """Number of trials that each absent subject is taken to lack in the estimand: the
    largest number of any subject or, if that is 0, the planned number.
    """
    tallies: Mapping[int, Tally] = field(default_factory=dict)
    """For each set of a sequential cell that further subjects follow: the number of
    subjects up to its end -> the tally over these subjects.
    """
    measured: bool = False
    """Whether the verdict is about a measure."""

    @property
    def seen(self) -> int:
        """Number of subjects with a record, copies included."""
        return len(self.per_subject)

    @property
    def begun(self) -> int:
        """Number of subjects with a trial that was run or tried, copies included."""
        return sum(one.begun for one in self.per_subject)

    @property
    def copies(self) -> int:
        """Number of exact copies of other subjects. They count in the rate, but not as
        further evidence.
        """
        return sum(bool(one.digest) and not one.distinct for one in self.per_subject)

    @property
    def entered(self) -> int:
        """Number of trials that enter the estimand, including missing ones."""
        return sum(one.entered for one in self.per_subject)

    @property
    def missing(self) -> int:
        """Number of missing trials that enter the estimand, without the trials of
        absent subjects.
        """
        return sum(one.missing for one in self.per_subject)

    def subjects(self) -> tuple[SubjectScore, ...]:
        """Return all subjects for a verdict on the pass rate. All trials of an absent
        subject count as missing.
        """
        return self._planned(self._by_number(of_measure=False))

    def judged(self) -> tuple[SubjectScore, ...]:
        """Return all subjects for the cell's verdict on its measure or pass rate. All
        trials of an absent subject count as missing.
        """
        return self._planned(self.by_number())

    def by_number(self) -> dict[int, SubjectScore]:
        """Return, for the cell's verdict, the score of each subject that has a
        record.
        """
        return self._by_number(of_measure=self.measured)

    def _by_number(self, *, of_measure: bool) -> dict[int, SubjectScore]:
        found = {}
        for one in self.per_subject:
            own: Sequence[float] = one.scores if of_measure else one.results
            found[one.subject] = SubjectScore(
                sum(own), len(own), one.missing, one.digest, one.distinct
            )
        return found

    def _planned(self, found: Mapping[int, SubjectScore]) -> tuple[SubjectScore, ...]:
        absent = SubjectScore(0, 0, self.absent_trials, distinct=False)
        planned = range(self.seen + self.absent)
        beyond = (found[number] for number in found if number not in planned)
        return (*(found.get(number, absent) for number in planned), *beyond)

    @property
    def not_run(self) -> int:
        """Number of trials of absent subjects. These trials are missing, too."""
        return self.absent * self.absent_trials

    def left_out(self, idle: Collection[int]) -> Collection[int]:
        """Return the idle sessions that the curve of the judged quantity leaves out. A
        measure that is judged in an idle session, such as a probe, is on the curve.
        """
        measured = (one.numbered(of_measure=True) for one in self.per_subject)
        return {*idle} - _judged_points(measured)

    def measured_curve(self, plan: CellPlan) -> tuple[str, tuple[CurvePoint, ...]]:
        """Return the unit and the points of the curve of the judged measure, like
        ``learning_curve``, in the measure's unit. A single subject has the whole range
        for an interval. Items have no curve.
        """
        if plan.items:
            return "session", ()
        scale = scale_of(plan)
        numbered = [one.numbered(of_measure=True) for one in self.per_subject]
        unit, points = _curve(numbered, self.left_out(plan.idle))
        alone = sum(one.distinct for one in self.per_subject if one.scores) <= 1

        def measured(point: CurvePoint) -> CurvePoint:
            ends = (0.0, 1.0) if alone else (point.low, point.high)
            low, high = scale.range_of(ends)
            return replace(point, rate=scale.value(point.rate), low=low, high=high)

        return unit, tuple(map(measured, points))

    def up_to(self, number: int) -> Sample:
        """Return the sample of the first ``number`` subjects of a sequential cell.
        ``number`` is the end of a set, or the number of all subjects.
        """
        kept = tuple(one for one in self.per_subject if one.subject < number)
        return replace(
            self,
            per_subject=kept,
            tally=self.tallies.get(number, self.tally),
            absent=number - len(kept),
        )


def draw_sample(plan: CellPlan, trials: Iterable[SubjectRecords]) -> Sample:
    """Return the sample of a cell. ``trials`` yields the trials of each subject, in the
    order of the subjects' numbers, and is read once.

    Trials that were never reached are not missing, because ``until`` may shorten the
    schedule. But all trials of a planned subject without any record are missing. Raises
    ValueError if the plan's estimand is malformed.
    """
    copies, kept = Copies(), plan.sequential or plan.subjects * plan.trials <= MOST_KEPT
    sets = sets_until(plan.subjects) if plan.sequential else ()
    found: list[SubjectCount] = []
    tally, tallies = Tally(split=plan.split, by=plan.by), dict[int, Tally]()
    scale, planned_trials = scale_of(plan), _judged_trials(plan)
    for records in trials:
        # A sequential cell is described by its subjects up to the set that decided.
        tallies |= {
            one: deepcopy(tally)
            for one in sets
            if one <= records[0].subject and one not in tallies
        }
        entering = enter_estimand(plan.estimand, records)
        if not planned_trials:  # The planned trials end before the judged block.
            entering = _with_missing(records, entering)
        tally.add_life(records, entering)
        whole = not any(record.missing for record in records)
        digests = (
            prefixes(records) if kept else list(filter(None, [signature(records)]))
        )
        digest, new = (
            digests[-1] if digests else "",
            copies.is_new(digests, whole=whole),
        )
        found.append(_count(plan, scale, records, entering, digest, new))
    typical = max((one.entered for one in found), default=0)
    typical = typical or planned_trials or plan.trials
    # A sequential cell is planned up to the end of the set with its last subject.
    last = found[-1].subject + 1 if found else 1
    planned = (
        next(one for one in (*sets, plan.subjects, last) if one >= last)
        if plan.sequential
        else plan.subjects
    )
    absent = max(0, planned - len(found))
    is_measured = scale.measured is not None
    return Sample(tuple(found), tally, absent, typical, tallies, measured=is_measured)


def _count(
    plan: CellPlan,
    scale: Scale,
    records: SubjectRecords,
    entering: SubjectRecords,
    digest: str,
    distinct: bool,
) -> SubjectCount:
    scores = map(scale.score_of, entering if scale.measured is not None else ())
    scored = [r for r in _scored(records) if r.compared]
    judged = {r.trial for r in entering}
    return SubjectCount(
        subject=records[0].subject,
        distinct=distinct,
        digest=digest,
        entered=len(entering),
        missing=sum(bool(r.missing) for r in entering),
        results=bytes(bool(r.success) for r in _scored(entering)),
        sessions=tuple(r.session for r in scored),
        passes=bytes(bool(r.success) for r in scored),
        enters=bytes(r.trial in judged for r in scored),
        scores=tuple(score for score in scores if score is not None),
        measured=_numbered(scale, records, judged),
        outside=sum(map(scale.is_outside, entering)),
        first=scored[0].success if scored and scored[0].trial == 0 else None,
        answers=_answers(plan, records),
        begun=_has_begun(records),
    )


def _numbered(
    scale: Scale, records: SubjectRecords, judged: Collection[int]
) -> Numbered:
    if scale.measured is None:
        return Numbered()
    rows = [
        (record.session, score, int(record.trial in judged))
        for record in records
        if record.compared and (score := scale.score_of(record)) is not None
    ]
    return Numbered(*zip(*rows, strict=True)) if rows else Numbered()


def _has_begun(records: SubjectRecords) -> bool:
    return any(record.missing not in ("not run", "budget") for record in records)


def _scored(records: SubjectRecords) -> list[TrialRecord]:
    return [r for r in records if not r.missing and r.success is not None]


def _answers(plan: CellPlan, records: SubjectRecords) -> tuple[Value, ...]:
    # A value that holds for life is in the record of every trial, so one record
    # suffices.
    drawn = next((r.variables for r in records if r.variables), {})
    return tuple(drawn.get(name) for name in plan.answers)


def trials_by_subject(
    trials: Iterable[TrialRecord],
) -> dict[int, tuple[TrialRecord, ...]]:
    """Group trials by subject, both in ascending order."""
    grouped: dict[int, list[TrialRecord]] = {}
    for record in sorted(trials, key=lambda record: (record.subject, record.trial)):
        grouped.setdefault(record.subject, []).append(record)
    return {subject: tuple(records) for subject, records in grouped.items()}


def signature(records: SubjectRecords) -> str:
    """Return a digest of the draws, actions and outcomes of all trials, or "" if the
    subject is idle. The digest is equal for exact copies.

    Draws and outcomes are included, because the same actions in another world, or with
    other results, are independent data. A deterministic agent makes copies if nothing
    is drawn.
    """
    if not any(map(has_acted, records)):
        return ""
    digest = hashlib.blake2b(digest_size=10)
    for record in records:
        digest.update(trial_bytes(record))
    return digest.hexdigest()


def prefixes(records: SubjectRecords) -> list[str]:
    """Return a digest after each trial, over all trials so far. The list begins with
    the first trial in which the subject acted, and ends before the first missing trial.
    """
    digest = hashlib.blake2b(digest_size=10)
    found: list[str] = []
    for record in records:
        if record.missing:
            break
        digest.update(trial_bytes(record))
        if found or has_acted(record):
            found.append(digest.hexdigest())
    return found


class Copies:
    """Detects exact copies of subjects. An unfinished subject is a copy of any subject
    that began in the same way.
    """

    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._broken: set[str] = set()

    def is_new(self, digests: Sequence[str], *, whole: bool) -> bool:
        """Return whether a subject with these digests (``prefixes``) is further
        evidence rather than a copy of an earlier subject.

        An idle subject is evidence only if it is complete: an unfinished one might have
        become a copy.
        """
        if not digests:
            return whole
        new = digests[-1] not in self._begun and self._broken.isdisjoint(digests)
        self._begun.update(digests)
        if not whole:
            self._broken.add(digests[-1])
        return new


def has_acted(record: TrialRecord) -> bool:
    """Return whether a subject acted in a trial, or succeeded by doing nothing.

    Subjects that only stay and fail (because the model never names an action) are no
    copies of one another: the start of a trial may have been drawn, and is not
    recorded.
    """
    return bool(record.actions.strip("S.")) or (
        bool(record.actions) and bool(record.success)
    )


def trial_bytes(r: TrialRecord) -> bytes:
    """Return the bytes of a trial that enter its subject's signature."""
    drawn = sorted(r.variables.items())
    return repr((r.trial, r.actions, drawn, r.outcome, r.success, r.missing)).encode()


def enter_estimand(estimand: str, records: Sequence[Entering]) -> tuple[Entering, ...]:
    """Return the trials of one subject that enter the pass rate, or the mean of the
    judged measure.

    Only trials that the reference is about (``compared``) enter. ``last:K`` takes the
    last K compared trials. With ``block:NAME``, a missing trial enters unless it is
    known to belong to another block.

    Raises:
        ValueError: If ``estimand`` is not ``all``, ``last:K`` or ``block:NAME`` (or
            ``block:NAME,NAME``).
    """
    kind, _, argument = estimand.partition(":")
    compared = tuple(record for record in records if record.compared)
    if kind == "all" and not argument:
        return compared
    if kind == "last" and argument.strip().isdecimal() and int(argument):
        return compared[-int(argument) :]
    if kind == "block" and argument.strip():
        names = _named(argument)
        return tuple(
            r for r in compared if r.block in names or (r.missing and not r.block)
        )
    raise ValueError(
        f"The estimand is '{estimand}'; it must be 'all', 'last:K' or 'block:NAME'."
    )


def _with_missing(
    records: SubjectRecords, entering: SubjectRecords
) -> tuple[TrialRecord, ...]:
    """Return the trials that enter, and all missing trials, so that a breakdown is
    reported.
    """
    judged = {record.trial for record in entering}
    return tuple(r for r in records if r.missing or r.trial in judged)


def _judged_trials(plan: CellPlan) -> int:
    """Return how many of a subject's planned trials enter the estimand."""
    kind, _, argument = plan.estimand.partition(":")
    names = _named(argument) if kind == "block" and plan.blocks else None
    places = map(plan.place_of, range(plan.trials))
    number = sum(
        compared and (names is None or block in names) for block, _, compared in places
    )
    return min(number, int(argument)) if kind == "last" else number


def _named(argument: str) -> list[str]:
    return [name.strip() for name in argument.split(",")]
