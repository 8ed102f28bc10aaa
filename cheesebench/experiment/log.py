"""The run log: one SQLite file per run, which several processes may write at once.

It is longer than 400 lines because its one class is the only way to the tables."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from cheesebench.errors import RunLogError
from cheesebench.experiment import log_file, log_schema, provenance, rows
from cheesebench.experiment.call_log import CallLog
from cheesebench.experiment.log_types import checked_manifest, read_json, read_plan
from cheesebench.experiment.manifest import check_run_id, describe_protocols, describe_run
from cheesebench.experiment.records import SETTLED, CellKey, CellPlan, TrialRecord
from cheesebench.interfaces import TaskEvent
from cheesebench.redaction import quoted, redact

if TYPE_CHECKING:
    from cheesebench.protocol import BaseSpecification

#: Rows that are read at once where there may be many.
AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """A journal entry with its time (UTC, ISO 8601); ``kind`` is ``created``, ``error``, ..."""

    time: str
    kind: str
    text: str
    model: str | None = None
    protocol: str | None = None
    view: str | None = None
    variant: str | None = None
    subject: int | None = None


class RunLog:
    """One run: its manifest, its cells, and every trial that was finished.

    Make one with ``create``, ``open`` or ``open_read_only``. Any number of processes may have the same log
    open and write to it; an instance may be used from several threads. Every method raises RunLogError, with
    a remedy, when the file cannot be read or written.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        #: The calls to models.
        self.calls = CallLog(self)

    @classmethod
    def create(
        cls,
        results: Path,
        run_id: str,
        cells: Iterable[tuple[CellPlan, BaseSpecification]],
        *,
        options: Mapping[str, Any],
        signed: bool = False,
        plugins: Mapping[str, str] | None = None,
    ) -> Self:
        """Create ``results/run_id/run.sqlite`` for ``cells``; ``options`` (JSON values) go into it.

        With ``signed`` it says that this user made it on this machine, where that can be said. ``plugins`` are those
        that are not ours, with their versions.
        """
        cells = list(cells)
        specifications = {plan.protocol: specification for plan, specification in cells}
        manifest = describe_run(check_run_id(run_id), specifications.values(), options, plugins)
        log = cls.write_new(results, manifest, [plan for plan, _ in cells], signed=signed)
        log.note("created", f"{len(cells)} cells")
        return log

    @classmethod
    def write_new(cls, results: Path, manifest: Mapping[str, Any], plans: Iterable[CellPlan], *, signed: bool) -> Self:
        """Create the log of the run that a manifest describes, with these cells."""
        if signed and (signature := provenance.signature(manifest)) is not None:
            manifest = {**manifest, provenance.SIGNATURE: signature}
        path = log_file.make_directory(results, check_run_id(manifest["run_id"])) / log_file.FILE_NAME
        with log_file.errors_explained(path):
            connection = log_file.connect(path, "rwc")
            connection.execute("PRAGMA journal_mode = WAL")
        log = cls(path, connection)
        with log.transaction():
            for statement in filter(str.strip, log_schema.SCHEMA.split(";")):
                connection.execute(statement)
            connection.executemany(
                "INSERT INTO manifest VALUES (?, ?, ?)", [_manifest_row(key, value) for key, value in manifest.items()]
            )
            log._insert_cells(plans)
        return log

    def add_cells(self, cells: Iterable[tuple[CellPlan, BaseSpecification]]) -> None:
        """Add cells that the run was created without; those that it has already stay as they are."""
        cells = list(cells)
        specifications = {plan.protocol: specification for plan, specification in cells}
        with self.transaction():
            known = self.manifest["protocols"]
            protocols = describe_protocols(specifications.values()) | known
            if protocols != known:
                self.add_to_manifest({"protocols": protocols})
            self._insert_cells(plan for plan, _ in cells)

    def add_to_manifest(self, entries: Mapping[str, Any]) -> None:
        """Add entries to the manifest, or replace them."""
        with self.transaction() as connection:
            rows = [_manifest_row(key, value) for key, value in entries.items()]
            connection.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?, ?)", rows)

    def _insert_cells(self, plans: Iterable[CellPlan]) -> None:
        self._connection.executemany(
            "INSERT OR IGNORE INTO cells (model, protocol, view, variant, plan, seal) VALUES (?, ?, ?, ?, ?, ?)",
            [(*row, rows.seal(row)) for row in ((*plan.key, rows.plan_to_json(plan)) for plan in plans)],
        )

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a run for writing (this repairs an interrupted one); ``path`` is its directory or its file."""
        return cls._open(path, log_file.connect)

    @classmethod
    def open_read_only(cls, path: Path) -> Self:
        """Open a run for reading; it may be in progress, and may be in a read-only directory."""
        return cls._open(path, log_file.connect_read_only)

    @classmethod
    def open_at_rest(cls, path: Path) -> Self:
        """Open a run that has ended for reading, writing nothing beside it."""
        return cls._open(path, log_file.connect_at_rest)

    @classmethod
    def _open(cls, path: Path, connect: Any) -> Self:
        path = path.absolute()
        if path.is_dir():
            path = path / log_file.FILE_NAME
        if not path.is_file():
            raise RunLogError(f"There is no run log {path}. Give the directory of a run.")
        with log_file.damage_explained(path):
            connection = connect(path)
            try:
                log_file.check_format(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    @property
    def directory(self) -> Path:
        """The run's own directory."""
        return self.path.parent

    @property
    def run_id(self) -> str:
        """The run's id from its manifest."""
        return str(self.manifest["run_id"])

    @property
    def manifest(self) -> dict[str, Any]:
        """Which program, protocols and options the run was started with; see ``manifest.describe_run``."""
        found = self.select("SELECT key, value, seal FROM manifest")
        with log_file.damage_explained(self.path):
            manifest = {key: read_json(value) for key, value in map(rows.unsealed, found)}
            return checked_manifest(manifest)

    def plans(self) -> list[CellPlan]:
        """Return the cells in the order in which they were planned."""
        found = self.select("SELECT model, protocol, view, variant, plan, seal FROM cells ORDER BY position")
        with log_file.damage_explained(self.path):
            return [read_plan(rows.unsealed(row)[-1]) for row in found]

    def trials(self, plan: CellPlan | None = None, subject: int | None = None) -> list[TrialRecord]:
        """Return the records (of one cell, of one subject of it) in the order of their keys."""
        where, values = _selection(plan, subject)
        order = "ORDER BY model, protocol, view, variant, subject, trial"
        with self._lock, log_file.damage_explained(self.path):
            found = self._connection.execute(f"{log_file.SELECT_TRIALS}{where} {order}", values)
            return [rows.trial_from_row(row) for row in found]

    def trials_and_gaps(self) -> list[TrialRecord]:
        """Return all records of all cells as ``trials_by_subject`` has them: for runs that fit into memory."""
        return [record for plan in self.plans() for life in self.trials_by_subject(plan) for record in life]

    def trials_by_subject(self, plan: CellPlan) -> Iterator[list[TrialRecord]]:
        """Yield the trials of a cell, one subject after the other: only one life is in memory at a time.

        A life that is unfinished gets a missing record for every planned trial that it has not reached. This is
        what a run is judged by: a subject that was interrupted has not finished early. A cell with looks may never
        need the subjects that have not begun, so that these are left out there.
        """
        complete, begun = self.completed_subjects(plan), dict.fromkeys(self._begun(plan))
        planned = range(0 if plan.looks else plan.subjects)
        for subject in chain(planned, (one for one in begun if one not in planned)):
            life = self.trials(plan, subject) if subject in begun else []
            self._check_whole(plan, subject, life, complete.get(subject))
            if subject not in complete and subject < plan.subjects:
                first = life[-1].trial + 1 if life else 0
                life += [_missing(plan, subject, trial, "not run") for trial in range(first, plan.trials)]
            if life:
                yield life

    def _check_whole(self, plan: CellPlan, subject: int, life: Sequence[TrialRecord], complete: int | None) -> None:
        """Raise RunLogError if trials are lost: those before another, or the last ones of a complete life."""
        if [record.trial for record in life] == list(range(len(life))) and complete in (None, len(life)):
            return
        raise log_file.damaged(self.path, f"trials of subject {subject} ({plan.model} on {plan.protocol}) are missing")

    def recorded_subjects(self, plan: CellPlan) -> Iterator[list[TrialRecord]]:
        """Yield the recorded trials of a cell, subject by subject."""
        for subject in self._begun(plan):
            yield self.trials(plan, subject)

    def _begun(self, plan: CellPlan) -> list[int]:
        where, values = _selection(plan, None)
        return [subject for (subject,) in self.select(f"SELECT DISTINCT subject FROM trials{where} ORDER BY 1", values)]

    def trial_counts(self) -> dict[CellKey, dict[int, tuple[int, int]]]:
        """Return by cell and subject how many of its trials were run, and how many are missing."""
        query = "SELECT model, protocol, view, variant, subject, sum(missing = ''), sum(missing != '') FROM trials"
        found: dict[CellKey, dict[int, tuple[int, int]]] = {}
        for model, protocol, view, variant, subject, *counts in self.select(f"{query} GROUP BY 1, 2, 3, 4, 5"):
            found.setdefault((model, protocol, view, variant), {})[subject] = (counts[0], counts[1])
        return found

    def events(self, record: TrialRecord) -> tuple[TaskEvent, ...]:
        """Return the rules that fired in a trial, in order."""
        found = self.select(log_file.SELECT_EVENTS, (*record.key, record.subject, record.trial))
        return tuple(TaskEvent(*row) for row in found)

    def completed_subjects(self, plan: CellPlan) -> dict[int, int]:
        """Return the complete subjects of a cell, with their numbers of trials."""
        where, values = _selection(plan, None)
        return dict(self.select(f"SELECT subject, trials FROM lives{where} ORDER BY subject", values))

    def journal(self, plan: CellPlan | None = None, kind: str | None = None) -> list[JournalEntry]:
        """Return what happened (to one cell; of one kind), in order."""
        where, values = _selection(plan, None)
        if kind is not None:
            where, values = (f"{where} AND" if where else " WHERE") + " kind = ?", (*values, kind)
        columns = "time, kind, text, model, protocol, view, variant, subject"
        names = columns.split(", ")
        found = self.select(f"SELECT {columns} FROM journal{where} ORDER BY id", values)
        return [JournalEntry(**dict(zip(names, row, strict=True))) for row in found]

    def causes(self, plan: CellPlan | None = None) -> dict[CellKey, tuple[str, ...]]:
        """Return why trials of each cell could not be run, since it was started last, most frequent first."""
        found: dict[CellKey, Counter[str]] = {}
        where, values = _selection(plan, None)
        where = (f"{where} AND" if where else " WHERE") + " kind IN ('started', 'error') AND variant IS NOT NULL"
        for kind, text, *key in self.stream(
            f"SELECT kind, text, model, protocol, view, variant FROM journal{where} ORDER BY id", values
        ):
            cell = cast("CellKey", tuple(map(str, key)))
            if kind == "started":
                found.pop(cell, None)
            else:
                found.setdefault(cell, Counter())[quoted(text)] += 1
        return {key: tuple(text for text, _ in texts.most_common()) for key, texts in found.items()}

    def dump(self) -> Iterator[str]:
        """Yield every trial with its events as a line of canonical JSON, for byte-by-byte comparison of runs."""
        for row in self.stream(f"{log_file.SELECT_TRIALS} ORDER BY model, protocol, view, variant, subject, trial"):
            with log_file.damage_explained(self.path):
                record = rows.trial_from_row(row)
            yield rows.dump_line(record, self.events(record))

    def write_trial(self, record: TrialRecord, events: Sequence[TaskEvent]) -> None:
        """Write a finished trial in one transaction.

        A trial that is missing so far is replaced. If it is there already it must be the same (a resumed life
        is replayed from its first trial); RunLogError names the difference otherwise.
        """
        key = (*record.key, record.subject, record.trial)
        with self.transaction():
            where = f"WHERE {log_file.LIFE} AND trial = ?"
            row = self._connection.execute(f"{log_file.SELECT_TRIALS} {where}", key).fetchone()
            with log_file.damage_explained(self.path):
                recorded = None if row is None else rows.trial_from_row(row)
            if recorded is not None and not recorded.missing:
                known = self._connection.execute(log_file.SELECT_EVENTS, key).fetchall()
                _check_same(recorded, record, known == rows.events_to_rows(events))
                return
            self._connection.execute(log_file.INSERT_TRIAL, rows.trial_to_row(record))
            self._connection.executemany(
                log_file.INSERT_EVENT,
                [(*key, position, *row) for position, row in enumerate(rows.events_to_rows(events))],
            )

    def write_missing(self, plan: CellPlan, subject: int, cause: str, missing: str = "infrastructure") -> int:
        """Record a subject's unfinished trials as missing, with ``cause`` in the journal.

        Returns the number of finished trials.
        """
        life = (*plan.key, subject)
        with self.transaction():
            done: int = self._connection.execute(
                f"SELECT count(*) FROM trials WHERE {log_file.LIFE} AND missing = ''", life
            ).fetchone()[0]
            self._connection.executemany(
                log_file.INSERT_TRIAL,
                [rows.trial_to_row(_missing(plan, subject, trial, missing)) for trial in range(done, plan.trials)],
            )
            self._note("error", cause, plan, subject)
        return done

    def write_settled(self, plan: CellPlan, subjects: Iterable[int], trials: int) -> None:
        """Record that subjects were stopped after ``trials`` trials, because later ones could not change the verdict.

        Later trials that are already recorded are deleted (calls are kept): how many there are depends on timing.
        """
        with self.transaction():
            for subject in subjects:
                life = (*plan.key, subject)
                for table in ("trials", "events"):
                    self._connection.execute(
                        f"DELETE FROM {table} WHERE {log_file.LIFE} AND trial >= ?", (*life, trials)
                    )
                self._connection.execute(f"DELETE FROM lives WHERE {log_file.LIFE}", life)
                self._connection.executemany(
                    log_file.INSERT_TRIAL,
                    [
                        rows.trial_to_row(_missing(plan, subject, trial, SETTLED))
                        for trial in range(trials, plan.trials)
                    ],
                )

    def write_life(self, plan: CellPlan, subject: int, trials: int) -> None:
        """Record that a subject is complete after this many trials (``until`` may shorten a schedule)."""
        life = (*plan.key, subject)
        with self.transaction():
            self._connection.execute("INSERT OR REPLACE INTO lives VALUES (?, ?, ?, ?, ?, ?)", (*life, trials))
            # An earlier failed attempt may have recorded missing trials beyond the end of the schedule.
            self._connection.execute(f"DELETE FROM trials WHERE {log_file.LIFE} AND trial >= ?", (*life, trials))

    def check_pages(self) -> None:
        """Raise RunLogError if the file is damaged, or a call in it; takes seconds for each gigabyte."""
        with self._lock, log_file.errors_explained(self.path):
            log_file.check_pages(self._connection, self.path)
        self.calls.check()

    def note(self, kind: str, text: str, plan: CellPlan | None = None, subject: int | None = None) -> None:
        """Add a journal entry."""
        with self.transaction():
            self._note(kind, text, plan, subject)

    def _note(self, kind: str, text: str, plan: CellPlan | None, subject: int | None) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        key = (None, None, None, None) if plan is None else plan.key
        self._connection.execute(
            log_file.INSERT_JOURNAL,
            (time, kind, redact(text), *key, subject),
        )

    def select(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return the rows of a query."""
        with self._lock, log_file.errors_explained(self.path):
            return self._connection.execute(query, values).fetchall()

    def stream(self, query: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query of any size; few are in memory at a time."""
        with self._lock, log_file.errors_explained(self.path):
            cursor = self._connection.execute(query, values)
        while True:
            with self._lock, log_file.errors_explained(self.path):
                found = cursor.fetchmany(AT_ONCE)
            if not found:
                return
            yield from found

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a block as one transaction; other processes wait. A nested transaction is part of the outer one."""
        with self._lock, log_file.errors_explained(self.path):
            nested = self._connection.in_transaction
            if nested:
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite has already rolled back by itself after some errors (a full disk).
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all that a block reads be of one moment, whatever another process writes meanwhile."""
        with self._lock, log_file.errors_explained(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file; the log cannot be used after that."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _manifest_row(key: str, value: Any) -> tuple[str, str, int]:
    row = (key, rows.to_json(value))
    return (*row, rows.seal(row))


def _missing(plan: CellPlan, subject: int, trial: int, cause: str) -> TrialRecord:
    model, protocol, view, variant = plan.key
    return TrialRecord(
        model=model, protocol=protocol, view=view, variant=variant, subject=subject, trial=trial, missing=cause
    )


def _selection(plan: CellPlan | None, subject: int | None) -> tuple[str, tuple[Any, ...]]:
    if plan is None:
        return "", ()
    if subject is None:
        return " WHERE model = ? AND protocol = ? AND view = ? AND variant = ?", plan.key
    return f" WHERE {log_file.LIFE}", (*plan.key, subject)


def _check_same(recorded: TrialRecord, lived: TrialRecord, same_events: bool) -> None:
    names = [name for name in rows.TRIAL_COLUMNS if getattr(recorded, name) != getattr(lived, name)]
    if not names and same_events:
        return
    where = f"trial {lived.trial} of subject {lived.subject} ({lived.model} on {lived.protocol}, {lived.view})"
    if names:
        was, now = (quoted(repr(getattr(one, names[0]))) for one in (recorded, lived))
        seen = f"{names[0]} was {was} and is now {now}"
    else:
        seen = "different rules fired than before"
    raise RunLogError(
        f"The run cannot be continued: {where} came out differently when replayed; {seen}. The agent or the program "
        "has changed, or draws its own random numbers. Start a new run."
    )
