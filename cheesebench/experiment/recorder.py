"""Writes the reports of all jobs to the run log, many in one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cheesebench.errors import PluginError, RunLogError
from cheesebench.experiment.jobs import stopped

if TYPE_CHECKING:
    from cheesebench.executor import Job, Report
    from cheesebench.experiment.log import RunLog

#: Seconds that a finished trial may wait for others to be written with it; and how many may wait.
INTERVAL, MOST = 0.02, 500


class Recorder:
    """Writes what jobs report, in the order in which it is reported. All methods are called in one event loop.

    ``written`` is called for every report after its transaction, with the number of the subject's trials that are
    done and the error that kept it from being written (if any). After such an error no more is written of that job.
    """

    def __init__(self, log: RunLog, written: Callable[[Job, Report, int, Exception | None], None]) -> None:
        self._log = log
        self._written = written
        self._waiting: list[tuple[Job, Report]] = []
        self._timer: asyncio.TimerHandle | None = None
        #: Finished trials of running jobs, and jobs for which nothing more is written.
        self._trials: dict[Job, int] = {}
        self._refused: set[Job] = set()

    def add(self, job: Job, report: Report) -> None:
        """Queue a report for writing; reports are written in the order in which they were added."""
        self._waiting.append((job, report))
        if len(self._waiting) >= MOST:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self.flush)

    def flush(self) -> None:
        """Write all queued reports."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        before = dict(self._trials)
        results: list[tuple[Report, int | Exception]]
        try:
            results = [(report, trials) for (_, report), trials in zip(waiting, self._write(waiting), strict=True)]
        except Exception as error:
            self._trials = before
            if isinstance(error.__cause__, sqlite3.OperationalError):  # a full disk: nothing can be written
                results = [(report, error) for _, report in waiting]
            else:  # an error in one report must not affect others
                results = [self._write_alone(job, report) for job, report in waiting]
        for (job, _), (report, outcome) in zip(waiting, results, strict=True):
            if isinstance(outcome, Exception):
                self._refused.add(job)
                self._written(job, report, self._trials.get(job, 0), outcome)
            elif job not in self._refused or report.missing:
                self._written(job, report, outcome, None)
        for job in [job for job, report in waiting if report.ended]:
            self.drop(job)

    def drop(self, job: Job) -> None:
        """Forget a job that has ended."""
        self._trials.pop(job, None)
        self._refused.discard(job)

    def _write(self, reports: Sequence[tuple[Job, Report]]) -> list[int]:
        """Write reports in one transaction; return, after each, its job's number of finished trials."""
        with self._log.transaction():
            return [self._write_one(job, report) for job, report in reports]

    def _write_alone(self, job: Job, report: Report) -> tuple[Report, int | Exception]:
        """Write one report; return it with the job's number of finished trials, or with the error."""
        before = self._trials.get(job, 0)
        try:
            return report, self._write([(job, report)])[0]
        except Exception as error:
            self._trials[job] = before
            if isinstance(error, RunLogError | PluginError):
                self._refused.add(job)
                return report, error
            # Values that cannot be stored (a plugin's measure that is not JSON) end the subject like any other error.
            ended = self._write_alone(job, stopped(before, error))
            self._refused.add(job)
            return ended

    def _write_one(self, job: Job, report: Report) -> int:
        log, plan, subject = self._log, job.plan, job.subject
        trials = self._trials.get(job, 0)
        if job in self._refused:
            return trials
        for record, events in report.trials:
            if (record.key, record.subject) != (plan.key, subject) or record.trial > trials:
                raise PluginError(
                    f"The executor has reported trial {record.trial} of subject {record.subject} "
                    f"({record.model} on {record.protocol}) where trial {trials} of subject {subject} ({plan.model} on "
                    f"{plan.protocol}) was next. Report each trial of a job, in order."
                )
            log.write_trial(record, events)
            trials = max(trials, record.trial + 1)
        for kind, text in report.notes:
            log.note(kind, text, plan, subject)
        if report.missing:
            trials = log.write_missing(plan, subject, report.cause, report.missing)
        elif report.ended:
            log.write_life(plan, subject, trials)
        self._trials[job] = trials
        return trials
