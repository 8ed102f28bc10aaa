"""The SQLite file of a run log: creating and opening it, and explaining its errors."""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from cheesebench.errors import RunLogError, did_you_mean
from cheesebench.experiment.confined import check_beside, check_plain
from cheesebench.experiment.log_schema import APPLICATION_ID, SCHEMA
from cheesebench.experiment.records import FORMAT
from cheesebench.experiment.rows import EVENT_COLUMNS, TRIAL_COLUMNS
from cheesebench.redaction import quoted

FILE_NAME = "run.sqlite"
#: Names the latest run on a command line.
LATEST = "latest"
#: Lies beside it, and is locked by the session that runs the run.
LOCK_NAME = "session.lock"
#: Seconds that a claim waits: whoever looks whether a run is claimed (``is_claimed``) holds the lock for a moment.
_CLAIM_PATIENCE = 0.5
#: Pages of the write-ahead log (32 MB) after which it is brought into the file: everybody waits for the disk then.
CHECKPOINT = 8000
#: Bytes of a row, of what is written and of what a stranger has written; replies come in at most 4 MB (MAX_BODY), and
#: the manifest has all protocols.
LONGEST_ROW = 32 * 2**20
#: What is raised where values are not what was once written.
NOT_AS_WRITTEN = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
#: Seconds that a writer waits for its turn before it gives up.
BUSY_TIMEOUT = 120.0

LIFE = "model = ? AND protocol = ? AND view = ? AND variant = ? AND subject = ?"
_SEALED_TRIAL = (*TRIAL_COLUMNS, "seal")
SELECT_TRIALS = f"SELECT {', '.join(_SEALED_TRIAL)} FROM trials"
INSERT_TRIAL = (
    f"INSERT OR REPLACE INTO trials ({', '.join(_SEALED_TRIAL)}) VALUES ({', '.join('?' * len(_SEALED_TRIAL))})"
)
SELECT_EVENTS = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE {LIFE} AND trial = ? ORDER BY position"
INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_JOURNAL = (
    "INSERT INTO journal (time, kind, text, model, protocol, view, variant, subject) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


@contextmanager
def errors_explained(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and the operating system about ``path`` to RunLogErrors with a remedy."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise RunLogError(_explanation(error, path)) from error


@contextmanager
def damage_explained(path: Path) -> Iterator[None]:
    """Turn what goes wrong while rows of ``path`` are read into records into a RunLogError: it is damaged."""
    try:
        with errors_explained(path):
            yield
    except NOT_AS_WRITTEN as error:
        raise damaged(path, str(error)) from error


def damaged(path: Path, seen: str) -> RunLogError:
    """Return the error that says that a log is damaged, by what is ``seen``."""
    return RunLogError(f"{path} is damaged: {quoted(seen, 120)}. Use an undamaged copy, or start a new run.")


def _explanation(error: Exception, path: Path) -> str:
    text = str(error)
    resume = f"then continue with --resume {path.parent.name}; every finished trial is kept"
    if "is full" in text:
        return f"{path}: the disk is full. Make room, {resume}."
    if "disk I/O" in text:
        return f"{path}: the disk cannot be written to ({text}). Make room or repair it, {resume}."
    if "readonly" in text or "read-only" in text or "unable to open" in text:
        return f"{path}: the run log cannot be written ({text}). Make the directory writable, {resume}."
    if "locked" in text:
        return f"{path}: another process has held the run log for {BUSY_TIMEOUT:.0f} s. End it, {resume}."
    if "too big" in text:
        return f"{path}: a row in it is larger than {LONGEST_ROW // 2**20} MB. Give another run, or start a new one."
    if "malformed" in text or "no such" in text or "decode" in text or "not a database" in text:
        return f"{path} is not a run log, or it is damaged ({text}). Give another run, or start a new one."
    return f"{path}: {text}. Check the file and its disk, {resume}."


def make_directory(results: Path, run_id: str) -> Path:
    """Create ``results/run_id`` and return it, absolute; RunLogError if it exists or cannot be."""
    directory = results.absolute() / run_id
    try:
        results.mkdir(parents=True, exist_ok=True)
        # Replies of models and prompts are private: on a shared machine only their owner may read them.
        directory.mkdir(mode=0o700)
        # Those that SQLite puts beside it have the mode of the log, wherever the directory is copied to.
        (directory / FILE_NAME).touch(mode=0o600)
    except FileExistsError:
        if not results.is_dir():
            raise RunLogError(f"{results} is not a directory. Choose another --results.") from None
        raise RunLogError(
            f"Run '{run_id}' already exists in {results}; --resume {run_id} to continue it, or choose another --run-id."
        ) from None
    except OSError as error:
        raise RunLogError(
            f"No run can be written to {results} ({error.strerror}). Make it writable, or choose another --results."
        ) from error
    return directory


def claim(path: Path) -> sqlite3.Connection:
    """Return a lock on the run log ``path``, to be closed at the end of the session; it ends with the process, too.

    Two sessions that continue the same run would pay for the same calls, and mix their replies. RunLogError names
    the remedy where another one has it.
    """
    with errors_explained(path):
        check_plain(path.parent)
        check_beside(path.with_name(LOCK_NAME))
        lock = sqlite3.connect(
            path.with_name(LOCK_NAME), timeout=_CLAIM_PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            lock.close()
            if "locked" not in str(error):
                raise
            raise RunLogError(
                f"Another process is running '{path.parent.name}'. Wait for it to end, or stop it; then continue "
                f"with --resume {path.parent.name}."
            ) from None
        return lock


def is_claimed(path: Path) -> bool:
    """Return whether a session is running the run of the log ``path``, in any process."""
    lock = path.absolute().with_name(LOCK_NAME)
    if not lock.is_file():
        return False
    check_beside(lock)
    try:
        with closing(sqlite3.connect(f"{lock.as_uri()}?mode=ro", uri=True, timeout=0)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:  # whatever else is wrong with it: nobody has locked it
        return "locked" in str(error)
    return False


def find_runs(results: Path) -> dict[str, Path]:
    """Return the run logs right below a directory by the name of their folder, the latest first.

    The time is that of the last change, so that what goes on is at the top.
    """
    found = {path.parent.name: path.absolute() for path in results.glob(f"*/{FILE_NAME}")}
    return dict(sorted(found.items(), key=lambda item: (_changed(item[1]), item[0]), reverse=True))


def _changed(path: Path) -> float:
    times = []
    for file in (path, path.with_name(f"{FILE_NAME}-wal")):
        try:
            times.append(file.stat().st_mtime)
        except OSError:
            continue
    return max(times, default=0.0)


def locate(results: Path, run: str, *, exact: bool = False) -> Path:
    """Return the file of a run, given by its id in ``results`` or by the path of its directory or file.

    ``latest`` is the run that was changed last, unless one has that name, or a record is to name it (``exact``).
    Raises RunLogError, with a suggestion, if there is none.
    """
    for candidate in (results / run, Path(run)):
        if candidate.is_dir():
            candidate = candidate / FILE_NAME
        if candidate.is_file():
            return candidate.absolute()
    runs = find_runs(results)
    if run == LATEST and runs and not exact:
        return next(iter(runs.values()))
    latest = f" The latest is '{next(iter(runs))}'." if runs else " That directory has no runs."
    raise RunLogError(f"There is no run '{run}' in {results}.{did_you_mean(run, runs) or latest}")


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Return a connection in autocommit mode; ``mode`` as in SQLite's URIs (``ro``, ``rw``, ``rwc``)."""
    check_beside(path)
    if not mode.startswith("ro"):
        check_plain(path.parent)
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_ROW)
        if not mode.startswith("ro"):
            # A committed transaction survives a crash of any process; only a power failure can lose the last ones.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Return a read-only connection; the log may be in use and in a read-only directory."""
    try:
        return connect(path, "ro")
    except sqlite3.OperationalError:
        # Reading in WAL mode needs two files beside the log. Where they cannot be created, and nobody writes, it is
        # read without them; what a killed process has left in the journal needs a copy.
        if not path.with_name(f"{path.name}-wal").exists():
            return connect(path, "ro&immutable=1")
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


def connect_at_rest(path: Path) -> sqlite3.Connection:
    """Return a read-only connection to a log that nobody runs; nothing is written beside it where that can be avoided.

    A session that ended left no write-ahead log. One that was killed did, and SQLite needs a file beside it to read it.
    """
    if path.with_name(f"{path.name}-wal").exists():
        return connect_read_only(path)
    return connect(path, "ro&immutable=1")


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RunLogError unless the file is a run log of a format that this version reads."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise RunLogError(f"{path} is an SQLite file but not a run log. Give the directory of a run.")
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
    objects = {row for row in _objects(connection) if row[0] in ("trigger", "view") or row in _expected()}
    if objects != _expected():
        raise damaged(path, "its tables are not those of a run log")


_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"


#: A comment in SQL. Neither strings nor other comments are told apart, because the tables of a log have none. SQLite
#: stops reading at a NUL, so that it ends what is taken for a comment.
_COMMENT = re.compile(r"--[^\n\0]*")
_BLANKS = re.compile(r"[ \t\n\f\r]+")


def _objects(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """Yield type, name and SQL of every table and index; comments are left out, because they may be reworded."""
    for kind, name, sql in connection.execute(_OBJECTS):
        yield kind, name, _BLANKS.sub(" ", _COMMENT.sub("", sql or ""))


@cache
def _expected() -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return frozenset(_objects(connection))


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RunLogError if SQLite finds pages of the log damaged."""
    [(said,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
    if said != "ok":
        raise damaged(path, said)
    [(pages,)], [(size,)] = (connection.execute(f"PRAGMA {name}").fetchall() for name in ("page_count", "page_size"))
    ahead = path.with_name(f"{path.name}-wal")
    if not (ahead.exists() and ahead.stat().st_size) and path.stat().st_size < pages * size:
        raise damaged(path, "its end is missing")  # which SQLite would read as zeros
