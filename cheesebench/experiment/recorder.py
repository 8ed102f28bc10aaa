"""Writes the reports of jobs into the run log, each trial as a row."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cheesebench.errors import PluginError, RunLogError
from cheesebench.executor import Job, Report
from cheesebench.experiment import log_file
from cheesebench.records import TrialRecord
from cheesebench.redaction import quoted, redact

if TYPE_CHECKING:
    from pathlib import Path

    from cheesebench.interfaces import TaskEvent
    from cheesebench.records import CellPlan

#: The digests of a log's rows are added modulo this number.
DIGESTS = 2**256


class LogWriter:
    """Writes the growing parts of a run log: trials, and the journal."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        #: Whether ``--resume`` can continue the run of this log, which error messages
        #: then say.
        self._resumable = False
        self._lock = threading.RLock()
        #: Change of the digest in the current transaction.
        self._change = 0

    def _count(self, change: int) -> None:
        self._change += change

    def _errors_explained(self) -> AbstractContextManager[None]:
        return log_file.errors_explained(self.path, resumable=self._resumable)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the ``with`` block as one transaction, while other processes wait to
        write. A nested transaction is part of the outer one.
        """
        with self._lock, self._errors_explained():
            nested = self._connection.in_transaction
            if nested:
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            self._change = 0
            try:
                yield self._connection
                if self._change:
                    [(total,)] = self._connection.execute("SELECT total FROM digest")
                    total = f"{(int(total, 16) + self._change) % DIGESTS:064x}"
                    self._connection.execute("UPDATE digest SET total = ?", (total,))
                self._connection.execute("COMMIT")
            except BaseException:
                # After some errors (such as a full disk) SQLite has already rolled
                # back.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def write_trial(self, record: TrialRecord, events: Sequence[TaskEvent]) -> None:
        """Write a finished trial in one transaction.

        The trial replaces a missing one. If the log already has the trial, both must be
        equal, because a resumed life is replayed from its first trial. Otherwise the
        RunLogError names the difference.
        """
        key = (*record.key, record.subject, record.trial)
        with self.transaction():
            where = f"WHERE {log_file.LIFE} AND trial = ?"
            row = self._connection.execute(
                f"{log_file.SELECT_TRIALS} {where}", key
            ).fetchone()
            with log_file.damage_explained(self.path):
                recorded = None if row is None else log_file.trial_from_row(row)
            if recorded is not None and not recorded.missing:
                known = self._connection.execute(log_file.SELECT_EVENTS, key).fetchall()
                fired = [(one.step, one.state, one.event) for one in events]
                # A comment in the protocol's file moves the lines of its rules.
                _check_same(recorded, record, [row[:3] for row in known] == fired)
                return
            self._connection.execute(
                log_file.INSERT_TRIAL, log_file.trial_to_row(record)
            )
            self._connection.executemany(
                log_file.INSERT_EVENT,
                [
                    (*key, position, *row)
                    for position, row in enumerate(log_file.events_to_rows(events))
                ],
            )

    def write_missing(
        self,
        plan: CellPlan,
        subject: int,
        cause: str,
        missing: str = "infrastructure",
        tally: Mapping[str, int] | None = None,
    ) -> int:
        """Record a subject's unfinished trials as missing, and ``cause`` in the
        journal. The first of these trials has the ``tally``.

        Return the number of finished trials.
        """
        life = (*plan.key, subject)
        with self.transaction():
            done: int = self._connection.execute(
                f"SELECT count(*) FROM trials WHERE {log_file.LIFE} AND missing = ''",
                life,
            ).fetchone()[0]
            lost = [
                missing_trial(plan, subject, trial, missing)
                for trial in range(done, plan.trials)
            ]
            lost[:1] = [replace(first, tally=dict(tally or {})) for first in lost[:1]]
            self._connection.executemany(
                log_file.INSERT_TRIAL, map(log_file.trial_to_row, lost)
            )
            self._note("error", cause, plan, subject)
        return done

    def write_life(self, plan: CellPlan, subject: int, trials: int) -> None:
        """Record that a subject is complete after this many trials. They may be fewer
        than planned, because ``until`` can shorten a schedule.
        """
        life = (*plan.key, subject)
        with self.transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO lives VALUES (?, ?, ?, ?, ?, ?)",
                (*life, trials),
            )
            # An earlier failed attempt may have recorded missing trials beyond the end
            # of the schedule.
            self._connection.execute(
                f"DELETE FROM trials WHERE {log_file.LIFE} AND trial >= ?",
                (*life, trials),
            )

    def note(
        self,
        kind: str,
        text: str,
        plan: CellPlan | None = None,
        subject: int | None = None,
    ) -> None:
        with self.transaction():
            self._note(kind, text, plan, subject)

    def _note(
        self, kind: str, text: str, plan: CellPlan | None, subject: int | None
    ) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        key = (None, None, None, None) if plan is None else plan.key
        self._connection.execute(
            log_file.INSERT_JOURNAL,
            (time, kind, redact(text), *key, subject),
        )


def missing_trial(plan: CellPlan, subject: int, trial: int, cause: str) -> TrialRecord:
    model, protocol, view, variant = plan.key
    block, session, compared = plan.place_of(trial)
    return TrialRecord(
        model=model,
        protocol=protocol,
        view=view,
        variant=variant,
        subject=subject,
        trial=trial,
        block=block,
        session=session,
        compared=compared,
        missing=cause,
    )


def _check_same(recorded: TrialRecord, lived: TrialRecord, same_events: bool) -> None:
    names = [
        name
        for name in log_file.TRIAL_COLUMNS
        if getattr(recorded, name) != getattr(lived, name)
    ]
    if not names and same_events:
        return
    where = f"trial {lived.trial + 1} of subject {lived.subject} ({lived.model} on {lived.protocol}, {lived.view})"
    if names:
        was, now = (quoted(repr(getattr(one, names[0]))) for one in (recorded, lived))
        seen = f"{names[0]} was {was} and is now {now}"
    else:
        seen = "different rules fired than before"
    raise RunLogError(
        f"The run cannot be continued: {where} came out differently when replayed; {seen}. The agent or the program "
        "has changed, or draws its own random numbers. Start a new run, or change the agent so that it acts in the "
        "recorded trials as it did."
    )


#: ``WRITE_AFTER_SECONDS``: maximum number of seconds that a report waits to be written.
#: ``WRITE_AT_REPORTS``: as soon as this many reports wait, they are written.
WRITE_AFTER_SECONDS, WRITE_AT_REPORTS = 0.02, 500

#: A report with its outcome: the number of finished trials of its job, or the error
#: that prevented its writing.
Outcome = tuple[Report, int | Exception]


class Recorder:
    """Writes the reports of jobs in the order of their arrival.

    All methods are called in one event loop. After the transaction of a report,
    ``written`` is called with the job, the report, the subject's number of finished
    trials, and the error that prevented the writing (or None). After such an error,
    nothing more of that job is written. ``stopped`` makes the last report of a job that
    an error has ended.
    """

    def __init__(
        self,
        log: LogWriter,
        written: Callable[[Job, Report, int, Exception | None], None],
        stopped: Callable[[int, BaseException], Report],
    ) -> None:
        self._log = log
        self._stopped = stopped
        self._written = written
        self._waiting: list[tuple[Job, Report]] = []
        self._timer: asyncio.TimerHandle | None = None
        #: Number of finished trials of each running job.
        self._trials: dict[Job, int] = {}
        #: Jobs whose further reports are not written.
        self._refused: set[Job] = set()

    def add(self, job: Job, report: Report) -> None:
        """Queue a report. Reports are written in the order in which they were added."""
        self._waiting.append((job, report))
        if len(self._waiting) >= WRITE_AT_REPORTS:
            self.flush()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(WRITE_AFTER_SECONDS, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        outcomes = self._write_together(waiting)
        for (job, _), (report, outcome) in zip(waiting, outcomes, strict=True):
            self._tell(job, report, outcome)
        for job in [job for job, report in waiting if report.ended]:
            self.drop(job)

    def _tell(self, job: Job, report: Report, outcome: int | Exception) -> None:
        if isinstance(outcome, Exception):
            self._refused.add(job)
            self._written(job, report, self._trials.get(job, 0), outcome)
        elif job not in self._refused or report.missing:
            self._written(job, report, outcome, None)

    def drop(self, job: Job) -> None:
        self._trials.pop(job, None)
        self._refused.discard(job)

    def _write_together(self, reports: Sequence[tuple[Job, Report]]) -> list[Outcome]:
        """Write reports in one transaction or, if that fails, one by one. If nothing
        can be written (the disk is full, say), each report has the error.
        """
        before = dict(self._trials)
        try:
            done = self._write(reports)
        except Exception as error:
            self._trials = before
            # No report can be written, for example because the disk is full.
            if isinstance(error.__cause__, sqlite3.OperationalError):
                return [(report, error) for _, report in reports]
            # An error in one report must not affect others.
            return [self._write_alone(job, report) for job, report in reports]
        return [
            (report, trials) for (_, report), trials in zip(reports, done, strict=True)
        ]

    def _write(self, reports: Sequence[tuple[Job, Report]]) -> list[int]:
        """Write reports in one transaction. Return, for each report, the number of
        finished trials of its job.
        """
        with self._log.transaction():
            return [self._write_one(job, report) for job, report in reports]

    def _write_alone(self, job: Job, report: Report) -> Outcome:
        before = self._trials.get(job, 0)
        try:
            return report, self._write([(job, report)])[0]
        except Exception as error:
            self._trials[job] = before
            if isinstance(error, RunLogError | PluginError):
                self._refused.add(job)
                return report, error
            # A value that cannot be stored (such as a plugin's measure that is not
            # JSON) ends the subject like any other error.
            ended = self._write_alone(job, self._stopped(before, error))
            self._refused.add(job)
            return ended

    def _write_one(self, job: Job, report: Report) -> int:
        log, plan, subject = self._log, job.plan, job.subject
        trials = self._trials.get(job, 0)
        if job in self._refused:
            return trials
        for record, events in report.trials:
            _check_next(record, job, trials)
            log.write_trial(record, events)
            trials = max(trials, record.trial + 1)
        for kind, text in report.notes:
            log.note(kind, text, plan, subject)
        if report.missing:
            trials = log.write_missing(
                plan, subject, report.cause, report.missing, report.tally
            )
        elif report.ended:
            log.write_life(plan, subject, trials)
        self._trials[job] = trials
        return trials


def _check_next(record: TrialRecord, job: Job, trials: int) -> None:
    """Raise PluginError if a record belongs to another job, or skips a trial."""
    plan, subject = job.plan, job.subject
    is_own = (record.key, record.subject) == (plan.key, subject)
    if not is_own or record.trial > trials:
        raise PluginError(
            f"The executor has reported trial {record.trial + 1} of subject {record.subject} "
            f"({record.model} on {record.protocol}) where trial {trials + 1} of subject {subject} ({plan.model} on "
            f"{plan.protocol}) was next. Report each trial of a job, in order."
        )
