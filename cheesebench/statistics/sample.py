"""Which trials of a cell are looked at: the estimand, what is missing from it, and copies of subjects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cheesebench.experiment.records import CellPlan, TrialRecord

Lives = Mapping[int, tuple[TrialRecord, ...]]


@dataclass(frozen=True, slots=True)
class Sample:
    """The trials of one cell by subject (rising), each in the order of life."""

    lives: Lives
    """All trials."""
    distinct: frozenset[int]
    """Subjects that are no exact copy of an earlier one."""
    entering: Lives
    """The trials that enter the estimand, missing ones included."""
    seen: int
    """Subjects with a record, copies included."""
    absent: int
    """Subjects of the plan without any record."""
    absent_trials: int
    """Trials that each absent subject would have put into the estimand (an upper bound)."""

    @property
    def copies(self) -> int:
        """Subjects that are exact copies of another: they count in the rate, but are no further evidence."""
        return self.seen - len(self.distinct)

    @property
    def records(self) -> tuple[TrialRecord, ...]:
        """All trials that enter the estimand, missing ones included."""
        return tuple(record for life in self.entering.values() for record in life)


def draw_sample(plan: CellPlan, trials: Iterable[TrialRecord]) -> Sample:
    """Return the sample of a cell; ``trials`` (in any order) are all of this cell.

    Trials that were never reached are not missing, because ``until`` may shorten a life; but a planned
    subject without a single record is missing whole.
    """
    everybody = lives(trials)
    entering = {subject: enter_estimand(plan.estimand, life) for subject, life in everybody.items()}
    typical = max((len(life) for life in entering.values()), default=0) or _planned_trials(plan)
    absent = max(0, plan.subjects - len(everybody))
    return Sample(everybody, distinct_subjects(everybody), entering, len(everybody), absent, typical)


def lives(trials: Iterable[TrialRecord]) -> dict[int, tuple[TrialRecord, ...]]:
    """Group trials by subject, both in rising order."""
    grouped: dict[int, list[TrialRecord]] = {}
    for record in sorted(trials, key=lambda record: (record.subject, record.trial)):
        grouped.setdefault(record.subject, []).append(record)
    return {subject: tuple(life) for subject, life in grouped.items()}


def signature(life: Sequence[TrialRecord]) -> tuple[object, ...] | None:
    """Return what exact copies share: actions and ends of all trials; None if the subject never acted.

    The ends belong to it: the same moves with other results have met other draws, and are data of their own.
    """
    if not any(record.actions for record in life):
        return None
    return tuple((r.trial, r.actions, r.outcome, r.success, r.missing) for r in life)


def distinct_subjects(everybody: Lives) -> frozenset[int]:
    """Return the subjects whose life does not repeat an earlier one exactly (deterministic agents do that)."""
    known: set[tuple[object, ...]] = set()
    distinct = set()
    for subject, life in everybody.items():
        mark = signature(life)
        if mark is None or mark not in known:
            distinct.add(subject)
        if mark is not None:
            known.add(mark)
    return frozenset(distinct)


def enter_estimand(estimand: str, life: Sequence[TrialRecord]) -> tuple[TrialRecord, ...]:
    """Return the trials of one life that the pass rate is taken over.

    Only trials that the reference is about (``compared``) enter; ``last:K`` takes the last K of *those*. A
    missing trial enters unless its block is known to be another.

    Raises:
        ValueError: If ``estimand`` is not ``all``, ``last:K`` or ``block:NAME``.
    """
    kind, _, argument = estimand.partition(":")
    compared = tuple(record for record in life if record.compared)
    if kind == "all" and not argument:
        return compared
    if kind == "last" and argument.strip().isdecimal() and int(argument):
        return compared[-int(argument) :]
    if kind == "block" and argument.strip():
        name = argument.strip()
        return tuple(r for r in compared if r.block == name or (r.missing and not r.block))
    raise ValueError(f"The estimand is '{estimand}'; it can be 'all', 'last:K' or 'block:NAME'.")


def _planned_trials(plan: CellPlan) -> int:
    kind, _, argument = plan.estimand.partition(":")
    return min(plan.trials, int(argument)) if kind == "last" else plan.trials
