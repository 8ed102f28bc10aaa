"""Which subjects of a cell remain to be run, by the log alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from cheesebench.experiment.log import RunLog
from cheesebench.experiment.unfinished import (
    JudgeSet,
    is_finished,
    left_to_run,
    present_set,
)
from cheesebench.records import CellPlan, SetResult, TrialRecord


@pytest.fixture
def log(stranger: ModuleType, tmp_path: Path) -> Iterator[RunLog]:
    cells = stranger.cells(["walker"], subjects=12)
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        yield log


def ended(log: RunLog, plan: CellPlan, subjects: Iterable[int]) -> None:
    for subject in subjects:
        log.write_life(plan, subject, plan.trials)


def judge(decided: bool, subjects: int = 0) -> JudgeSet:
    def judged(_: CellPlan, lives: Iterable[Sequence[TrialRecord]]) -> SetResult:
        return SetResult(subjects, decided, False, 12, "")

    return judged


def test_all_planned_subjects_are_run(log: RunLog) -> None:
    [plan] = log.plans()
    assert left_to_run(log, plan, None) == list(range(12))
    ended(log, plan, [0, 2, 11])
    # Without sets, no judge is asked.
    for judged in (None, judge(True)):
        left = left_to_run(log, plan, judged)
        assert left == [1, *range(3, 11)]
        assert not is_finished(log, plan, judged)
    ended(log, plan, range(12))
    assert left_to_run(log, plan, None) == []
    assert is_finished(log, plan, None)


def test_a_set_is_run_after_the_other_until_the_cell_is_decided(log: RunLog) -> None:
    [plan] = log.plans()
    plan = dataclasses.replace(plan, sequential=True)
    assert left_to_run(log, plan, judge(False)) == list(range(6))
    ended(log, plan, [0, 1, 2, 3, 5])
    assert left_to_run(log, plan, judge(False)) == [4]
    # It is decided by a set that has an unfinished subject: this one is run again.
    assert left_to_run(log, plan, judge(True, 6)) == [4]
    ended(log, plan, [4])
    assert left_to_run(log, plan, judge(False)) == [6, 7, 8, 9]
    assert left_to_run(log, plan, judge(True, 6)) == []
    assert is_finished(log, plan, judge(True, 6))
    assert present_set(log, plan, judge(True, 6), range(6)).asked == 6
    ended(log, plan, [6, 7, 8, 9])
    assert left_to_run(log, plan, judge(False)) == [10, 11]
    ended(log, plan, [10, 11])
    assert is_finished(log, plan, judge(False))


def test_whom_the_budget_cut_off_is_not_needed_by_a_decided_cell(
    log: RunLog,
) -> None:
    [plan] = log.plans()
    plan = dataclasses.replace(plan, sequential=True)
    ended(log, plan, range(4))
    log.write_missing(plan, 4, "The budget is spent.", "budget")
    log.write_missing(plan, 5, "A worker died.")
    assert left_to_run(log, plan, judge(True, 6)) == [5]
    assert left_to_run(log, plan, judge(False)) == [4, 5]
