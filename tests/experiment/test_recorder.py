"""The recorder: what is written of each report, when, and what errors take along."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType

import pytest

from cheesebench.errors import PluginError, RunLogError
from cheesebench.executor import Job, Report
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.recorder import (
    WRITE_AT_REPORTS,
    Recorder,
    missing_trial,
)
from cheesebench.interfaces import TaskEvent
from tests.experiment.recorded import record

EVENTS = [TaskEvent(1, "run", "enter", "p:3"), TaskEvent(2, "run", "leave", "p:4")]


@pytest.fixture
def log(stranger: ModuleType, tmp_path: Path) -> Iterator[RunLog]:
    cells = stranger.cells(["walker"], subjects=3)
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        yield log


@dataclass
class Desk:
    """A recorder, and what it has told."""

    log: RunLog
    told: list[tuple[int, int, str]] = field(default_factory=list)
    recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        def written(job: Job, _: Report, trials: int, error: Exception | None) -> None:
            self.told.append((job.subject, trials, "" if error is None else str(error)))

        def stopped(trials: int, error: BaseException) -> Report:
            cause = f"after {trials}: {type(error).__name__}"
            return Report(ended=True, missing="infrastructure", cause=cause)

        self.recorder = Recorder(self.log, written, stopped)

    def job(self, subject: int) -> Job:
        [plan] = self.log.plans()
        specification = None
        return Job(plan=plan, specification=specification, seed=1, subject=subject)  # type: ignore[arg-type]

    def trial(self, subject: int, trial: int, **changes: object) -> Report:
        [plan] = self.log.plans()
        return Report(trials=[(record(plan, subject, trial, **changes), EVENTS)])

    def write(self, *reports: tuple[Job, Report]) -> list[tuple[int, int, str]]:
        """Write reports at once, and return what is told of them."""

        async def add() -> None:
            for job, report in reports:
                self.recorder.add(job, report)
            self.recorder.flush()

        self.told.clear()
        asyncio.run(add())
        return self.told


@pytest.fixture
def desk(log: RunLog) -> Desk:
    return Desk(log)


def rows(log: RunLog) -> list[tuple[int, int, str]]:
    return [(one.subject, one.trial, one.missing) for one in log.trials()]


def journal(log: RunLog, kind: str) -> list[tuple[int | None, str]]:
    return [(entry.subject, entry.text) for entry in log.journal(kind=kind)]


def test_reports_are_written_in_order_and_told_with_the_number_of_trials(
    log: RunLog, desk: Desk
) -> None:
    one, two = desk.job(0), desk.job(1)
    notes = Report(notes=[("traceback", "line 1"), ("retry", "line 2")])
    told = desk.write(
        (one, desk.trial(0, 0)), (two, desk.trial(1, 0)), (one, desk.trial(0, 1)),
        (one, notes),
    )  # fmt: skip
    assert told == [(0, 1, ""), (1, 1, ""), (0, 2, ""), (0, 2, "")]
    assert rows(log) == [(0, 0, ""), (0, 1, ""), (1, 0, "")]
    assert journal(log, "traceback") == [(0, "line 1")]
    assert journal(log, "retry") == [(0, "line 2")]
    query = "SELECT subject, trial, position, event FROM events ORDER BY 1, 2, 3"
    assert log.select(query, ()) == [
        (subject, trial, position, event)
        for subject, trial in ((0, 0), (0, 1), (1, 0))
        for position, event in enumerate(["enter", "leave"])
    ]
    # The number goes on in the next report, and a trial that is repeated adds none.
    assert desk.write((one, desk.trial(0, 0)), (one, desk.trial(0, 2))) == [
        (0, 2, ""),
        (0, 3, ""),
    ]
    assert desk.write((one, Report(ended=True))) == [(0, 3, "")]
    [plan] = log.plans()
    assert log.completed_subjects(plan) == {0: 3}
    # A job that has ended is forgotten: another of this subject begins anew.
    assert desk.write((one, Report())) == [(0, 0, "")]


def test_an_ended_life_has_no_trials_beyond_its_end(log: RunLog, desk: Desk) -> None:
    [plan] = log.plans()
    job = desk.job(2)
    lost = Report(ended=True, missing="budget", cause="no money", tally={"calls": 4})
    assert desk.write((job, desk.trial(2, 0)), (job, lost)) == [(2, 1, ""), (2, 1, "")]
    assert rows(log) == [(2, 0, "")] + [(2, n, "budget") for n in range(1, plan.trials)]
    assert [one.tally for one in log.trials()][1:3] == [{"calls": 4}, {}]
    assert journal(log, "error") == [(2, "no money")]
    assert log.completed_subjects(plan) == {}
    again = desk.job(2)
    trials = [(again, desk.trial(2, number)) for number in range(2)]
    desk.write(*trials, (again, Report(ended=True)))
    assert rows(log) == [(2, 0, ""), (2, 1, "")]
    assert log.completed_subjects(plan) == {2: 2}


def test_an_error_of_one_job_keeps_the_others(log: RunLog, desk: Desk) -> None:
    one, two = desk.job(0), desk.job(1)
    skipping = desk.trial(1, 2)
    told = desk.write(
        (one, desk.trial(0, 0)), (two, desk.trial(1, 0)), (two, skipping),
        (two, desk.trial(1, 1)), (one, desk.trial(0, 1)),
    )  # fmt: skip
    said = (
        "The executor has reported trial 3 of subject 1 (walker on corridor) where trial 2 of subject 1 (walker on "
        "corridor) was next. Report each trial of a job, in order."
    )
    assert told == [(0, 1, ""), (1, 1, said), (0, 2, "")]
    assert rows(log) == [(0, 0, ""), (0, 1, ""), (1, 0, "")]
    # Nothing more of that job is written or told, but its end.
    assert desk.write((two, desk.trial(1, 1))) == []
    lost = Report(ended=True, missing="infrastructure", cause="gone")
    assert desk.write((two, lost)) == [(1, 1, "")]
    assert rows(log) == [(0, 0, ""), (0, 1, ""), (1, 0, "")]
    # Then it is forgotten.
    assert desk.write((two, desk.trial(1, 0))) == [(1, 1, "")]


@pytest.mark.parametrize("other", ["model", "subject"])
def test_a_trial_of_another_job_is_refused(desk: Desk, other: str) -> None:
    changes: dict[str, object] = {other: "runner" if other == "model" else 1}
    [plan] = desk.log.plans()
    strange = replace(record(plan, 0, 0), **changes)  # type: ignore[arg-type]
    [(_, trials, said)] = desk.write((desk.job(0), Report(trials=[(strange, ())])))
    assert trials == 0
    assert "was next" in said


def test_a_trial_that_comes_out_differently_is_refused(log: RunLog, desk: Desk) -> None:
    desk.write((desk.job(0), desk.trial(0, 0)))
    [(_, trials, said)] = desk.write((desk.job(0), desk.trial(0, 0, steps=4)))
    assert trials == 0
    assert (
        "trial 1 of subject 0 (walker on corridor, ascii_2d) came out differently when replayed; steps was 3 and is now 4."
        in said
    )
    [(report, _)] = desk.trial(0, 0).trials
    with pytest.raises(RunLogError, match="different rules fired than before"):
        log.write_trial(report, EVENTS[::-1])


def test_a_value_that_cannot_be_stored_ends_its_subject(
    log: RunLog, desk: Desk
) -> None:
    [plan] = log.plans()
    one, two = desk.job(0), desk.job(1)
    strange = desk.trial(0, 1, measures={"n": 1j})
    told = desk.write(
        (one, desk.trial(0, 0)), (one, strange), (one, desk.trial(0, 1)),
        (two, desk.trial(1, 0)),
    )  # fmt: skip
    assert told == [(0, 1, ""), (1, 1, "")]
    assert journal(log, "error") == [(0, "after 1: TypeError")]
    lost = [(0, number, "infrastructure") for number in range(1, plan.trials)]
    assert rows(log) == [(0, 0, ""), *lost, (1, 0, "")]


def test_where_nothing_can_be_written_each_report_has_the_error(desk: Desk) -> None:
    desk.write((desk.job(0), desk.trial(0, 0)))
    with sqlite3.connect(desk.log.path) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON trials BEGIN SELECT RAISE(ROLLBACK, 'x'); END"
        )
    one, two = desk.job(1), desk.job(2)
    told = desk.write((one, desk.trial(1, 0)), (two, desk.trial(2, 0)))
    assert [(subject, trials) for subject, trials, _ in told] == [(1, 0), (2, 0)]
    assert all(error for _, _, error in told)
    assert rows(desk.log) == [(0, 0, "")]


def test_reports_wait_a_moment_or_until_there_are_many(log: RunLog, desk: Desk) -> None:
    async def wait() -> None:
        job = desk.job(0)
        desk.recorder.add(job, desk.trial(0, 0))
        desk.recorder.add(job, desk.trial(0, 1))
        assert (desk.told, rows(log)) == ([], [])
        while len(desk.told) < 2:
            await asyncio.sleep(0.01)
        assert len(rows(log)) == 2
        desk.recorder.add(job, desk.trial(0, 2))
        for _ in range(WRITE_AT_REPORTS - 2):
            desk.recorder.add(job, Report())
        assert len(desk.told) == 2
        desk.recorder.add(job, Report())
        assert len(desk.told) == 2 + WRITE_AT_REPORTS
        desk.recorder.flush()
        assert len(desk.told) == 2 + WRITE_AT_REPORTS

    asyncio.run(wait())
    assert WRITE_AT_REPORTS == 500


def test_a_missing_trial_stands_where_it_was_planned(log: RunLog) -> None:
    [plan] = log.plans()
    plan = replace(plan, blocks=(("first", 1, 2, True), ("later", 2, 2, False)))
    found = missing_trial(plan, 1, 4, "budget")
    own = {"block": "later", "session": 3, "compared": False, "subject": 1}
    expected = {**own, "trial": 4, "missing": "budget", "success": None, "steps": 0}
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.key == plan.key


def test_a_transaction_that_fails_leaves_nothing_and_a_nested_one_is_a_part(
    log: RunLog,
) -> None:
    [plan] = log.plans()

    def write(then: Callable[[], None]) -> None:
        with log.transaction():
            log.note("kept", "outer")
            log.write_trial(record(plan, 0, 0), EVENTS)
            then()

    with pytest.raises(PluginError):
        write(fail)
    assert (rows(log), journal(log, "kept")) == ([], [])
    write(lambda: log.note("kept", "inner", plan, 2))
    assert journal(log, "kept") == [(None, "outer"), (2, "inner")]
    log.close()
    with RunLog.open(log.path) as again:
        assert rows(again) == [(0, 0, "")]


def fail() -> None:
    raise PluginError("enough")
