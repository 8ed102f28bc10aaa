"""The file under the run log: its schema, how it is created and opened, what its errors mean to a person."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cheesebench.errors import RunLogError, did_you_mean
from cheesebench.experiment.records import FORMAT
from cheesebench.experiment.rows import EVENT_COLUMNS, TRIAL_COLUMNS

FILE_NAME = "run.sqlite"
#: Lies beside it, and is locked by the session that runs the run.
LOCK_NAME = "session.lock"
#: Marks the file as a run log in SQLite's header ("CHZB").
APPLICATION_ID = 0x43485A42
#: Bytes of a page of a new file.
PAGE_SIZE = 16384
#: Seconds that a writer waits for its turn before it gives up.
BUSY_TIMEOUT = 120.0

_LIFE_KEY = (
    "model TEXT NOT NULL, protocol TEXT NOT NULL, view TEXT NOT NULL, variant TEXT NOT NULL, subject INTEGER NOT NULL"
)
# Without rowids the rows lie in the order of their keys, whichever subject finished first; and nothing in
# trials, events and lives tells when it was written: the same run gives the same rows.
SCHEMA = f"""
CREATE TABLE manifest (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cells (
    position INTEGER PRIMARY KEY, model TEXT NOT NULL, protocol TEXT NOT NULL, view TEXT NOT NULL,
    variant TEXT NOT NULL, plan TEXT NOT NULL, UNIQUE (model, protocol, view, variant)
);
CREATE TABLE trials (
    {_LIFE_KEY}, trial INTEGER NOT NULL, block TEXT NOT NULL, session INTEGER NOT NULL, outcome TEXT,
    success INTEGER, compared INTEGER NOT NULL, reward REAL NOT NULL, steps INTEGER NOT NULL,
    path_length INTEGER NOT NULL, bumps INTEGER NOT NULL, actions TEXT NOT NULL, counters TEXT NOT NULL,
    measures TEXT NOT NULL, variables TEXT NOT NULL, tally TEXT NOT NULL, missing TEXT NOT NULL,
    PRIMARY KEY (model, protocol, view, variant, subject, trial)
) WITHOUT ROWID;
CREATE TABLE events (
    {_LIFE_KEY}, trial INTEGER NOT NULL, position INTEGER NOT NULL, step INTEGER NOT NULL,
    state TEXT NOT NULL, event TEXT NOT NULL, source TEXT NOT NULL,
    PRIMARY KEY (model, protocol, view, variant, subject, trial, position)
) WITHOUT ROWID;
CREATE TABLE lives (
    {_LIFE_KEY}, trials INTEGER NOT NULL, PRIMARY KEY (model, protocol, view, variant, subject)
) WITHOUT ROWID;
CREATE TABLE calls (
    {_LIFE_KEY}, trial INTEGER NOT NULL, call INTEGER NOT NULL, digest TEXT NOT NULL, system TEXT NOT NULL,
    asked TEXT NOT NULL, reply TEXT NOT NULL, reasoning TEXT NOT NULL, finish TEXT NOT NULL, fault TEXT NOT NULL,
    served_by TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL, cost REAL, seconds REAL NOT NULL,
    attempts INTEGER NOT NULL
);
CREATE UNIQUE INDEX calls_by_life ON calls (model, protocol, view, variant, subject, trial, call);
CREATE TABLE texts (digest TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE journal (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
    model TEXT, protocol TEXT, view TEXT, variant TEXT, subject INTEGER
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""

LIFE = "model = ? AND protocol = ? AND view = ? AND variant = ? AND subject = ?"
SELECT_TRIALS = f"SELECT {', '.join(TRIAL_COLUMNS)} FROM trials"
INSERT_TRIAL = (
    f"INSERT OR REPLACE INTO trials ({', '.join(TRIAL_COLUMNS)}) VALUES ({', '.join('?' * len(TRIAL_COLUMNS))})"
)
SELECT_EVENTS = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE {LIFE} AND trial = ? ORDER BY position"
INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_JOURNAL = (
    "INSERT INTO journal (time, kind, text, model, protocol, view, variant, subject) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


@contextmanager
def errors_explained(path: Path) -> Iterator[None]:
    """Turn what SQLite and the operating system say about ``path`` into a RunLogError with a remedy."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise RunLogError(_explanation(error, path)) from error


def _explanation(error: Exception, path: Path) -> str:
    text = str(error)
    resume = f"then continue with --resume {path.parent.name}; every finished trial is kept"
    if "is full" in text:
        return f"{path}: the disk is full. Make room, {resume}."
    if "disk I/O" in text:
        return f"{path}: the disk refuses to be written ({text}). Make room or mend it, {resume}."
    if "readonly" in text or "read-only" in text or "unable to open" in text:
        return f"{path}: the run log cannot be written ({text}). Make the directory writable, {resume}."
    if "locked" in text:
        return f"{path}: another process has held the run log for {BUSY_TIMEOUT:.0f} s. End it, {resume}."
    if "malformed" in text or "not a database" in text:
        return f"{path} is no run log, or a damaged one ({text}). Give another run, or start a new one."
    return f"{path}: {text}. Look at the file and its disk, {resume}."


def make_directory(results: Path, run_id: str) -> Path:
    """Create ``results/run_id`` and return it, absolute; RunLogError if it exists or cannot be."""
    directory = results.absolute() / run_id
    try:
        results.mkdir(parents=True, exist_ok=True)
        directory.mkdir()
    except FileExistsError:
        if not results.is_dir():
            raise RunLogError(
                f"{results} is not a directory, no run can be written there. Choose another place."
            ) from None
        raise RunLogError(
            f"Run '{run_id}' already exists in {results}; --resume {run_id} to continue it, "
            "or choose another --cheese-run-id."
        ) from None
    except OSError as error:
        raise RunLogError(
            f"No run can be written to {results} ({error.strerror}). Make it writable, "
            "or choose another place for results."
        ) from error
    return directory


def claim(path: Path) -> sqlite3.Connection:
    """Return a lock on the run log ``path``, to be closed at the end of the session; it ends with the process, too.

    Two sessions that continue the same run would pay for the same calls, and mix their replies. RunLogError names
    the remedy where another one has it.
    """
    with errors_explained(path):
        lock = sqlite3.connect(path.with_name(LOCK_NAME), timeout=0, isolation_level=None, check_same_thread=False)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if "locked" not in str(error):
                raise
            raise RunLogError(
                f"Run '{path.parent.name}' is being run by another process. Wait for its end, or end it; then continue "
                f"with --resume {path.parent.name}."
            ) from None
        return lock


def locate(results: Path, run: str) -> Path:
    """Return the file of a run, given by its id in ``results`` or by the path of its directory or file.

    Raises RunLogError with the nearest id when there is none.
    """
    for candidate in (results / run, Path(run)):
        if candidate.is_dir():
            candidate = candidate / FILE_NAME
        if candidate.is_file():
            return candidate.absolute()
    runs = sorted(path.parent.name for path in results.glob(f"*/{FILE_NAME}"))
    latest = f" The latest is '{runs[-1]}'." if runs else f" {results} holds no runs."
    raise RunLogError(f"There is no run '{run}' in {results}.{did_you_mean(run, runs) or latest}")


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Return a connection in autocommit mode; ``mode`` as in SQLite's URIs (``ro``, ``rw``, ``rwc``)."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if mode != "ro":
            # A finished transaction survives the death of any process; only a power cut can take the last.
            connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Return a connection that reads, also a log that is being written, also in a read-only directory."""
    try:
        return connect(path, "ro")
    except sqlite3.OperationalError:
        # Reading WAL needs two files beside the log. Where they cannot be made, a copy is read.
        with tempfile.TemporaryDirectory(prefix="cheesebench-") as temporary:
            copy = Path(temporary, path.name)
            for suffix in ("", "-wal"):
                if Path(f"{path}{suffix}").exists():
                    shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
            memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            with closing(connect(copy)) as source:
                source.backup(memory)
            memory.execute("PRAGMA query_only = ON")
            return memory


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RunLogError unless the file is a run log of a format that this version reads."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise RunLogError(f"{path} is an SQLite file but no run log. Give the directory of a run.")
    number = connection.execute("PRAGMA user_version").fetchone()[0]
    if number < FORMAT:
        raise RunLogError(
            f"{path} was written by an older CheeseBench (format {number}; this one reads {FORMAT}). "
            "Read it with the version that its manifest names, or run it again."
        )
    if number > FORMAT:
        raise RunLogError(
            f"{path} was written by a newer CheeseBench (format {number}; this one reads {FORMAT}). "
            "Upgrade with: pip install --upgrade pytest-cheesebench"
        )
