"""Finds the subjects of a cell that remain to be run, according to the run log."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.experiment.calling import is_given_up
from cheesebench.records import SetResult, sets_until

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.records import CellPlan, TrialRecord

#: A function that judges a sequential cell by the trials of its subjects, one subject
#: after the other. It belongs to the statistics, a higher layer, so it is passed in
#: when a session is created.
JudgeSet = Callable[["CellPlan", Iterable[Sequence["TrialRecord"]]], SetResult]


def is_finished(log: RunLog, plan: CellPlan, judge: JudgeSet | None) -> bool:
    """Return whether every subject that the cell needs was run to its end."""
    return not left_to_run(log, plan, judge)


def left_to_run(log: RunLog, plan: CellPlan, judge: JudgeSet | None) -> Sequence[int]:
    """Return the subjects that a resumed run runs next, in order. There are none if the
    cell is finished.
    """
    complete = log.completed_subjects(plan)
    if not plan.sequential or judge is None:
        return [one for one in range(plan.subjects) if one not in complete]
    return present_set(log, plan, judge, complete).to_run


def is_over(log: RunLog, plan: CellPlan, judge: JudgeSet) -> bool:
    """Return whether a resumed run has nothing to continue in a cell: it is finished,
    or none of its replies named an action, so that it is begun anew.
    """
    return is_given_up(log, plan) or not left_to_run(log, plan, judge)


def begin_anew(log: RunLog, plan: CellPlan) -> None:
    """Begin a cell anew if it was given up. Its rows are set aside in the log, not
    deleted. The model gets no second result by this, because the cell has none: no
    reply in it named an action.
    """
    if is_given_up(log, plan):
        log.begin_anew(plan)


@dataclass(frozen=True, slots=True)
class PresentSet:
    """The present set of a sequential cell."""

    asked: int
    """Number of subjects up to the end of the set."""
    to_run: Sequence[int]
    """Subjects that are still to be run."""
    result: SetResult
    """The verdict on the trials in the log."""


def present_set(
    log: RunLog, plan: CellPlan, judge: JudgeSet, complete: Container[int]
) -> PresentSet:
    """Return the present set of a sequential cell.

    Interrupted subjects are run again. Subjects that the budget cut off are not, if the
    cell is decided without them.
    """
    result = judge(plan, log.trials_by_subject(plan))
    for asked in sets_until(plan.subjects):
        to_run = [subject for subject in range(asked) if subject not in complete]
        if result.decided and asked >= result.subjects:
            cut_off = _cut_off(log, plan)
            to_run = [subject for subject in to_run if subject not in cut_off]
            break
        if to_run:
            break
    return PresentSet(asked, to_run, result)


def _cut_off(log: RunLog, plan: CellPlan) -> set[int]:
    return {
        records[0].subject
        for records in log.recorded_subjects(plan)
        if records[-1].missing == "budget"
    }
