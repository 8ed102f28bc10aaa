"""The file of a run log: its tables, functions that read and write rows, and functions
that open logs safely, even hostile ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from cheesebench import interrupts
from cheesebench.errors import (
    NOT_AS_WRITTEN,
    CheeseBenchError,
    OptionError,
    RunLogError,
    did_you_mean,
    raised_where,
)
from cheesebench.interfaces import TaskEvent
from cheesebench.records import (
    FORMAT,
    CellPlan,
    TrialRecord,
    Variant,
)
from cheesebench.redaction import quoted

#: Marks the file as a run log in SQLite's header ("CHZB").
APPLICATION_ID = 0x43485A42

_LIFE_KEY = """\
    model TEXT NOT NULL,  -- name of the model or agent, as in --model
    protocol TEXT NOT NULL,  -- name of the protocol, with @edition if that is not the default one
    view TEXT NOT NULL,  -- the view in which the subject sees the arena
    variant TEXT NOT NULL,  -- what a study or a control changes (empty for the plain cell)
    subject INTEGER NOT NULL,  -- from 0"""

# Without rowids, rows are stored in key order, independent of the order in which
# subjects finish. Trials, events and lives hold no times, so the same run gives the
# same rows.
SCHEMA = f"""
CREATE TABLE manifest (  -- the origin of the run
    key TEXT PRIMARY KEY,  -- format, run_id, created, versions, git, options (with the seed), plugins (of third parties), protocols (resolved texts and hashes), signature (of the user who made the run)
    value TEXT NOT NULL  -- JSON
) STRICT, WITHOUT ROWID;
CREATE TABLE cells (  -- the planned cells
    position INTEGER PRIMARY KEY,  -- order of the plan
    model TEXT NOT NULL,  -- name of the model or agent, as in --model
    protocol TEXT NOT NULL,  -- name of the protocol, with @edition if that is not the default one
    view TEXT NOT NULL,  -- the view in which the subject sees the arena
    variant TEXT NOT NULL,  -- what a study or a control changes (empty for the plain cell)
    plan TEXT NOT NULL,  -- JSON: the protocol's hash, design, numbers of subjects and trials, estimand, reference, margin, agent and settings of a language model
    UNIQUE (model, protocol, view, variant)
) STRICT;
CREATE TABLE trials (  -- the trials: one row each, written in one transaction when the trial has finished, or could not be run
{_LIFE_KEY}
    trial INTEGER NOT NULL,  -- number of the trial in the life, from 0
    block TEXT NOT NULL,  -- block of the schedule
    session INTEGER NOT NULL,  -- number of the session in the life, from 1
    outcome TEXT,  -- the protocol's name for how the trial ended (timeout at the step limit)
    success INTEGER,  -- 1 or 0 (NULL if the protocol declares no success, or the trial is missing)
    compared INTEGER NOT NULL,  -- 1 if the reference is about this kind of trial
    reward REAL NOT NULL,  -- sum of all rewards of the trial
    steps INTEGER NOT NULL,  -- number of steps, including steps on which the subject only waited
    path_length INTEGER NOT NULL,  -- number of steps to another square
    bumps INTEGER NOT NULL,  -- number of FORWARDs that did not move the subject
    actions TEXT NOT NULL,  -- one letter for each step: F, L, R, S, or a full stop if the subject was frozen and not asked
    counters TEXT NOT NULL,  -- JSON: counters of the protocol
    measures TEXT NOT NULL,  -- JSON: measures of the protocol
    variables TEXT NOT NULL,  -- JSON: values of the protocol's variables at the end
    tally TEXT NOT NULL,  -- JSON: what the agent counted (calls, unparsed, ...)
    missing TEXT NOT NULL,  -- why the trial was not run: infrastructure or budget (empty if it was run)
    PRIMARY KEY (model, protocol, view, variant, subject, trial)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (  -- the rules that fired
{_LIFE_KEY}
    trial INTEGER NOT NULL,  -- number of the trial in the life, from 0
    position INTEGER NOT NULL,  -- order within the trial
    step INTEGER NOT NULL,  -- step of the trial, from 1
    state TEXT NOT NULL,  -- the state in which the rule fired
    event TEXT NOT NULL,  -- the rule's trigger in the words of the protocol, with what caused it in brackets
    source TEXT NOT NULL,  -- file and line of the rule
    PRIMARY KEY (model, protocol, view, variant, subject, trial, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE lives (  -- the subjects that are finished
{_LIFE_KEY}
    trials INTEGER NOT NULL,  -- number of trials of the complete life (a subject without a row is not finished)
    PRIMARY KEY (model, protocol, view, variant, subject)
) STRICT, WITHOUT ROWID;
CREATE TABLE calls (  -- the calls to models: one row each, written as soon as the reply arrives, so that no reply is paid for twice
{_LIFE_KEY}
    trial INTEGER NOT NULL,  -- number of the trial in the life, from 0
    call INTEGER NOT NULL,  -- number of the call in the trial, from 0
    digest TEXT NOT NULL,  -- digest of the whole prompt and all parameters, which must be the same in a resumed run
    system TEXT NOT NULL,  -- the system prompt, as a key of texts
    asked TEXT NOT NULL,  -- the last message of the prompt (earlier messages come from earlier calls: cheesebench show prints them)
    reply TEXT NOT NULL,  -- the reply without its reasoning
    reasoning TEXT NOT NULL,  -- the part that the server (or a tag) marks as reasoning
    finish TEXT NOT NULL,  -- how the reply ended: stop, length (cut off at the token limit), unread (the server could not read the tool call) or other
    fault TEXT NOT NULL,  -- why there is no reply, if the call was refused because of its content
    served_by TEXT NOT NULL,  -- the model that the server names
    prompt_tokens INTEGER NOT NULL,  -- prompt tokens as the server counts them, cached ones included
    completion_tokens INTEGER NOT NULL,  -- reply tokens, reasoning included
    cached_tokens INTEGER NOT NULL,  -- prompt tokens that came from a cache
    reasoning_tokens INTEGER NOT NULL,  -- reply tokens that are reasoning
    cost REAL,  -- cost in dollars (NULL if no price is known)
    seconds REAL NOT NULL,  -- duration of the attempt that was answered
    attempts INTEGER NOT NULL,  -- number of attempts, retries included
    written_tokens INTEGER NOT NULL,  -- prompt tokens that were put into a cache, if this has a price of its own
    malformed INTEGER NOT NULL  -- number of attempts whose answer was not a usable reply: no JSON, the wrong shape, a tool call
) STRICT;
CREATE UNIQUE INDEX calls_by_life ON calls (model, protocol, view, variant, subject, trial, call);
CREATE TABLE texts (  -- long texts that many calls share
    digest TEXT PRIMARY KEY,  -- digest of the text
    text TEXT NOT NULL  -- the text as it was sent
) STRICT, WITHOUT ROWID;
CREATE TABLE journal (  -- what happened to the run
    id INTEGER PRIMARY KEY,  -- number of the entry, in order of time
    time TEXT NOT NULL,  -- time in UTC
    kind TEXT NOT NULL,  -- created, started, anew, set, finished, closed, server, retry, unread, warning, error, traceback
    text TEXT NOT NULL,  -- text for people
    model TEXT,  -- model of the cell that the entry concerns, if any
    protocol TEXT,  -- protocol of that cell
    view TEXT,  -- view of that cell
    variant TEXT,  -- variant of that cell
    subject INTEGER  -- subject that the entry concerns, if any
) STRICT;
CREATE TABLE digest (  -- the digest of the whole log, which every transaction updates
    total TEXT NOT NULL  -- sum of the digests of all rows above, modulo 2 to the power of 256, in hexadecimal
) STRICT;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""  # noqa: E501  # a line is a column


#: ``MOST_OF_LIFE``: maximum number of trials of a life. ``MOST_TRIALS``: maximum number
#: of trials of a cell. Both are far above any real number. There must be a limit,
#: because the trials that an unfinished life lacks are filled in.
MOST_OF_LIFE, MOST_TRIALS = 10**5, 10**7

#: Keys that every manifest has, with their types.
MANIFEST: Mapping[str, Any] = {
    "format": int,
    "run_id": str,
    "created": str,
    "versions": dict[str, str],
    "git": dict[str, str | bool] | None,
    "options": dict[str, Any],
    "plugins": dict[str, str],
    "protocols": dict[str, dict[str, str]],
}


def checked_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest unchanged. Raise ValueError, with the reason, unless it has
    everything that readers need.
    """
    for key, kind in MANIFEST.items():
        if key not in manifest:
            raise ValueError(f"the manifest has no {key}")
        _adapter(kind).validate_python(manifest[key], strict=True)
    if not isinstance(manifest["options"].get("seed"), int):
        # Without the seed, no trial can be replayed.
        raise ValueError("the manifest's options have no seed")
    return dict(manifest)


@lru_cache(maxsize=4096)
def read_plan(text: str) -> CellPlan:
    """Return the plan that a JSON object describes. Raise an error of
    ``NOT_AS_WRITTEN`` if the text does not describe a plan.
    """
    values = json.loads(text)
    variant = Variant.parse(values.pop("variant"))
    plan: CellPlan = replace(
        _adapter(CellPlan).validate_json(json.dumps(values), strict=True),
        variant=variant,
    )
    if min(plan.subjects, plan.trials) < 0 or not fits(plan):
        raise ValueError(f"a plan has {plan.subjects} subjects of {plan.trials} trials")
    if set("/\\") & set(plan.protocol) or plan.protocol.endswith(".yaml"):
        # Else a stranger's run could make us read a file that it names.
        raise ValueError("a plan's protocol is a file")
    return plan


def fits(plan: CellPlan) -> bool:
    """Return whether a log may have a cell with this many trials."""
    return (
        plan.trials <= MOST_OF_LIFE
        and plan.subjects * max(plan.trials, 1) <= MOST_TRIALS
    )


def check_fits(plan: CellPlan) -> None:
    """Raise OptionError for a cell with more trials than a log may have."""
    if not fits(plan):
        raise OptionError(
            f"{plan.label} by {plan.model}: {plan.subjects:,} subject{'s' * (plan.subjects != 1)} of {plan.trials:,} "
            f"trial{'s' * (plan.trials != 1)}, more than a log can hold ({MOST_TRIALS:,} trials of a cell, "
            f"{MOST_OF_LIFE:,} of a subject). Give fewer --subjects, or shorten the schedule."
        )


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


#: Columns of the table ``trials``, in the order of the record's fields.
TRIAL_COLUMNS = tuple(field.name for field in dataclasses.fields(TrialRecord))
EVENT_COLUMNS = tuple(field.name for field in dataclasses.fields(TaskEvent))
_BOOLEANS = frozenset({"success", "compared"})
_NAMES = ("model", "protocol", "view", "variant", "block", "outcome")
_MAPPINGS = frozenset({"counters", "measures", "variables", "tally"})


def row_digest(table: str, values: Iterable[Any]) -> int:
    """Return the digest of a row. It is the same for values to be written and for the
    same values as SQLite returns them.
    """
    parts = [table.encode()]
    for value in values:
        if isinstance(value, str):
            content = value.encode(errors="surrogatepass")
            parts += [b"text %d " % len(content), content]
        elif value is None:
            parts.append(b"null ")
        else:  # SQLite stores 1.0 as 1, and -0.0 as 0, to save space.
            parts.append(b"number %r " % (float(value) + 0.0))
    return int.from_bytes(
        hashlib.blake2b(b"".join(parts), digest_size=32).digest(), "big"
    )


@cache
def tables() -> Mapping[str, tuple[str, ...]]:
    """Return the columns of every table that enters the log's digest."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table'"
            )
        ]
        columns = {
            name: tuple(
                row[1] for row in connection.execute(f"PRAGMA table_info({name})")
            )
            for name in names
        }
        return {name: listed for name, listed in columns.items() if name != "digest"}


def watch(connection: sqlite3.Connection, count: Callable[[int], None]) -> None:
    """Call ``count`` with the digest of each row that this connection writes, and with
    minus the digest of each row that it removes.

    The triggers are temporary: they belong to the connection, and the file has none.
    """
    connection.execute("PRAGMA temp_store = MEMORY")
    # A row that is replaced must count as removed, too.
    connection.execute("PRAGMA recursive_triggers = ON")

    @interrupts.called_by_c
    def written(table: str, *values: object) -> None:
        count(row_digest(table, values))

    @interrupts.called_by_c
    def removed(table: str, *values: object) -> None:
        count(-row_digest(table, values))

    connection.create_function("row_written", -1, written)
    connection.create_function("row_removed", -1, removed)
    for table, columns in tables().items():
        for event, row, function in (
            ("INSERT", "NEW", "row_written"),
            ("DELETE", "OLD", "row_removed"),
        ):
            values = ", ".join(
                [f"'{table}'", *(f"{row}.{column}" for column in columns)]
            )
            connection.execute(
                f"CREATE TEMP TRIGGER {function}_{table} AFTER {event} ON main.{table} "
                f"BEGIN SELECT {function}({values}); END"
            )


def to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def trial_to_row(record: TrialRecord) -> tuple[Any, ...]:
    return tuple(
        to_json(dict(getattr(record, name)))
        if name in _MAPPINGS
        else getattr(record, name)
        for name in TRIAL_COLUMNS
    )


def trial_from_row(row: Sequence[Any]) -> TrialRecord:
    values = dict(zip(TRIAL_COLUMNS, row, strict=True))
    for name in _MAPPINGS:
        values[name] = _mapping(values[name])
    if (
        not 0 <= values["trial"] <= MOST_OF_LIFE
        or not 0 <= values["session"] <= MOST_OF_LIFE
    ):
        raise ValueError("an impossible trial")
    for name in _NAMES:
        values[name] = values[name] and sys.intern(values[name])
    for name in _BOOLEANS:
        if values[name] is not None:
            values[name] = bool(values[name])
    return TrialRecord(**values)


@lru_cache(maxsize=4096)
def _mapping(text: str) -> Mapping[str, Any]:
    """Return a JSON object. Equal texts mostly share one object, which saves memory if
    a large run is read. Raise ValueError for other JSON.
    """
    mapping = json.loads(text)
    if not isinstance(mapping, dict):
        raise ValueError("a trial's values are invalid")
    return mapping


def events_to_rows(events: Iterable[TaskEvent]) -> list[tuple[Any, ...]]:
    return [(event.step, event.state, event.event, event.source) for event in events]


def plan_to_json(plan: CellPlan) -> str:
    return to_json(dataclasses.asdict(plan) | {"variant": str(plan.variant)})


def dump_line(record: TrialRecord, events: Sequence[TaskEvent]) -> str:
    """Return a trial and its events as one line of canonical JSON."""
    values = {name: getattr(record, name) for name in TRIAL_COLUMNS}
    values |= {name: dict(values[name]) for name in _MAPPINGS}
    values["events"] = events_to_rows(events)
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


#: Suffixes of the files that SQLite creates beside a database.
_BESIDE = ("-journal", "-wal", "-shm")
#: The last bytes of a rollback journal that names another file, which SQLite would
#: delete after a rollback. Only a transaction over several databases writes such a
#: name, so a run log never has one.
_NAMES_A_FILE = bytes.fromhex("d9d505f920a163d7")


def check_plain(directory: Path) -> None:
    """Raise RunLogError unless ``directory`` holds only plain files and directories.

    A write through a link would change a file elsewhere. Opening a FIFO for writing
    blocks until a process reads it, possibly forever.
    """
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # Another process of the run has removed the file.
            continue
        if stat.S_ISLNK(mode):
            raise RunLogError(
                f"{quoted(str(path), 300)} is a symbolic link, and what is written to a run stays in its directory. "
                "Remove the link, or put the file itself there."
            )
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise _strange(path, "is not a plain file")


def check_beside(path: Path) -> None:
    """Raise RunLogError if opening the database ``path`` would make SQLite block, or
    delete another file.
    """
    for suffix in _BESIDE:
        beside = path.with_name(path.name + suffix)
        if beside.exists() and not beside.is_file():
            raise _strange(beside, "is not a plain file")
    journal = path.with_name(path.name + _BESIDE[0])
    if journal.is_file() and _end(journal) == _NAMES_A_FILE:
        raise _strange(journal, "would make SQLite delete another file")


def _end(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(_NAMES_A_FILE)))
        return file.read()


def _strange(path: Path, what: str) -> RunLogError:
    return RunLogError(
        f"{quoted(str(path), 300)} {what}. A run never leaves such a file: "
        f"remove {quoted(path.name, 100)}, or use another copy of the run."
    )


def inside(directory: Path, name: str) -> Path:
    """Return the path of a file or directory ``name`` in a run's directory, for
    writing. Raise RunLogError for a link or another special file in either directory
    (``check_plain``).
    """
    check_plain(directory)
    path = directory / name
    check_plain(path)
    return path


FILE_NAME = "run.sqlite"
#: The name that stands for the latest run on a command line.
LATEST = "latest"
#: The name of the file beside the log that the session locks while it runs.
LOCK_NAME = "session.lock"
#: Seconds to wait for the lock, because ``is_claimed`` holds it for a moment.
_CLAIM_PATIENCE = 0.5
#: The write-ahead log is merged into the file when it has this many pages (32 MB). The
#: process that merges it waits for the disk, and writes nothing else in the meantime.
CHECKPOINT = 8000
#: Maximum size of a row in bytes, for writing and for reading. The longest row is
#: usually the manifest's, which contains all protocols.
LONGEST_ROW = 32 * 2**20
#: Seconds that a writer waits for its turn before it fails.
BUSY_TIMEOUT = 120.0

LIFE = "model = ? AND protocol = ? AND view = ? AND variant = ? AND subject = ?"
SELECT_TRIALS = f"SELECT {', '.join(TRIAL_COLUMNS)} FROM trials"
INSERT_TRIAL = f"INSERT OR REPLACE INTO trials ({', '.join(TRIAL_COLUMNS)}) VALUES ({', '.join('?' * len(TRIAL_COLUMNS))})"
SELECT_EVENTS = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE {LIFE} AND trial = ? ORDER BY position"
INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_JOURNAL = "INSERT INTO journal (time, kind, text, model, protocol, view, variant, subject) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


@contextmanager
def errors_explained(path: Path, *, resumable: bool = False) -> Iterator[None]:
    """Convert errors of SQLite and of the operating system to a RunLogError about
    ``path``, with a remedy: to try again or, if ``resumable``, to resume the run.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise RunLogError(_explanation(error, path, resumable=resumable)) from error


@contextmanager
def damage_explained(path: Path) -> Iterator[None]:
    """Convert errors in the ``with`` block, which turns rows into records, to a
    RunLogError that says that the file ``path`` is damaged.
    """
    try:
        with errors_explained(path):
            yield
    except NOT_AS_WRITTEN as error:
        raise damaged(path, str(error)) from error


#: The logs that this process has opened. The last one opened is at the end.
OPENED: dict[Path, None] = {}


def unreadable(error: Exception) -> str:
    """Return the message for a log whose contents no run can have written."""
    logs = " or ".join(map(str, list(OPENED)[:-4:-1]))
    return (
        f"{logs} cannot be read: {quoted(raised_where(error))}. The log was changed, or CheeseBench has a bug: "
        "'cheesebench report RUN --verify' tells which."
    )


def damaged(path: Path, seen: str) -> RunLogError:
    return RunLogError(
        f"{path} is damaged: {quoted(seen, 120)}. Use an undamaged copy, or start a new run."
    )


#: Explanations of errors, each with some words. An error gets the first explanation
#: with a word that the error's text contains.
_EXPLANATIONS = (
    (("is full", "No space"), "{path}: the disk is full. Make room, {again}."),
    (
        ("disk I/O",),
        "{path}: the disk cannot be read or written ({text}). Make room or repair it, {again}.",
    ),
    (
        ("readonly", "ead-only", "unable to open", "Permission denied"),
        "{path}: it cannot be opened or written ({text}). Make the file and its directory readable and writable, {again}.",
    ),
    (
        ("locked",),
        "{path}: another process has locked it for too long. End that process, {again}.",
    ),
    (
        ("too big",),
        "{path}: a row in it is larger than {most} MB. Name another run, or start a new one.",
    ),
    (
        ("malformed", "no such", "decode", "not a database"),
        "{path} is not a run log, or it is damaged ({text}). Name another run, or start a new one.",
    ),
    (("",), "{path}: {text}. Check the file and its disk, {again}."),
)


def _explanation(error: Exception, path: Path, *, resumable: bool) -> str:
    text = str(error)
    name = path.parent.name
    going_on = f"then continue with --resume {name}; every finished trial is kept"
    meant = next(
        meaning
        for words, meaning in _EXPLANATIONS
        if any(word in text for word in words)
    )
    return meant.format(
        path=path,
        text=text,
        again=going_on if resumable else "then try again",
        most=LONGEST_ROW // 2**20,
    )


def make_directory(results: Path, run_id: str) -> Path:
    """Create ``results/run_id`` and return its absolute path. Raise RunLogError if it
    exists or cannot be created.
    """
    directory = results.absolute() / run_id
    try:
        results.mkdir(parents=True, exist_ok=True)
        check_new(directory)
        # Prompts and replies are private. On a shared machine only their owner may read
        # them.
        directory.mkdir(mode=0o700)
        # The files that SQLite creates beside the log get the log's mode, even if the
        # directory is copied.
        (directory / FILE_NAME).touch(mode=0o600)
    except FileExistsError:
        if not results.is_dir():
            raise RunLogError(
                f"{results} is not a directory. Choose another --results."
            ) from None
        check_new(directory)
        raise
    except OSError as error:
        raise RunLogError(
            f"No run can be written to {results} ({error.strerror}). Make it writable, or choose another --results."
        ) from error
    return directory


def check_new(directory: Path) -> None:
    """Raise RunLogError if the directory already exists. But if it holds a run without
    results, whose calls were refused or whose server failed, remove it.
    """
    if directory.is_dir() and not directory.is_symlink() and _is_empty(directory):
        shutil.rmtree(directory)
    if directory.exists() or directory.is_symlink():
        name = directory.name
        if not (directory / FILE_NAME).exists():
            raise RunLogError(
                f"{directory} holds no run, because it has no {FILE_NAME}. Delete it, or choose another --run-id."
            )
        raise RunLogError(
            f"Run '{name}' already exists in {directory.parent}; continue it with --resume {name}, or choose another "
            "--run-id."
        )


def _is_empty(directory: Path) -> bool:
    """Return whether a directory holds a run without a result, although a model was
    called or a server was started. A run that a session has open does not count.
    """
    path = directory / FILE_NAME
    if not path.is_file():
        return False
    try:
        with (
            closing(claim(path)),
            closing(
                sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
            ) as connection,
        ):
            answered = "SELECT 1 FROM calls WHERE fault = '' UNION SELECT 1 FROM trials WHERE missing = ''"
            asked = (
                any(directory.glob("*.log"))
                or connection.execute("SELECT 1 FROM calls").fetchone() is not None
            )
            return asked and connection.execute(answered).fetchone() is None
    except (RunLogError, sqlite3.Error):
        return False


def claim(path: Path) -> sqlite3.Connection:
    """Return a lock on the run log ``path``. The session must close it at its end; if
    the process ends, the lock ends, too.

    Two sessions that continue the same run would pay for the same calls, and mix their
    replies. If another session holds the lock, RunLogError is raised, with a remedy.
    """
    with errors_explained(path):
        check_plain(path.parent)
        check_beside(path.with_name(LOCK_NAME))
        lock = sqlite3.connect(
            path.with_name(LOCK_NAME),
            timeout=_CLAIM_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
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
    """Return whether a session, in any process, is running the run whose log is
    ``path``.
    """
    lock = path.absolute().with_name(LOCK_NAME)
    if not lock.is_file():
        return False
    check_beside(lock)
    try:
        with closing(
            sqlite3.connect(f"{lock.as_uri()}?mode=ro", uri=True, timeout=0)
        ) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        # Any other error means that the file cannot be read, not that it is locked.
        return "locked" in str(error)
    return False


def find_runs(results: Path) -> dict[str, Path]:
    """Return the run logs in the folders of a directory, by folder name. The latest run
    comes first.

    The last entries of their journals decide the order, because reading a log changes
    its file times. Unreadable logs come last.
    """
    found = {
        path.parent.name: path.absolute() for path in results.glob(f"*/{FILE_NAME}")
    }
    return dict(
        sorted(
            found.items(),
            key=lambda item: (_last_entry(item[1]), item[0]),
            reverse=True,
        )
    )


def _last_entry(path: Path) -> str:
    files = [path, path.with_name(f"{FILE_NAME}-wal")]
    try:
        stamps = [
            (status.st_mtime_ns, status.st_size)
            for status in (file.stat() for file in files if file.is_file())
        ]
        return _read_last_entry(path, tuple(stamps))
    except OSError:
        return ""


@lru_cache(maxsize=1000)
def _read_last_entry(path: Path, stamps: tuple[tuple[int, int], ...]) -> str:
    """Return the UTC time of the last journal entry, or "" if there is none, or the log
    cannot be read. If a file changes, its ``stamps`` change too, so the cached time is
    not reused.
    """
    try:
        with closing(connect(path, "ro")) as log:
            [time] = log.execute(
                "SELECT time FROM journal ORDER BY id DESC LIMIT 1"
            ).fetchone() or [""]
        return datetime.fromisoformat(time).astimezone(UTC).isoformat()
    except (sqlite3.Error, CheeseBenchError, TypeError, ValueError, OverflowError):
        return ""


def locate(results: Path, run: str, *, exact: bool = False) -> Path:
    """Return the file of a run. ``run`` is its id in ``results``, or the path of its
    directory or file.

    ``latest`` is the run with the latest journal entry, unless a run has that name, or
    the result is to be recorded (``exact``). Raise RunLogError, with a suggestion, if
    there is no such run.
    """
    for candidate in (results / run, Path(run)):
        if candidate.is_dir():
            candidate = candidate / FILE_NAME
        if candidate.is_file():
            return candidate.absolute()
    if Path(run).is_absolute():
        raise RunLogError(f"There is no run at {run}. Check the path.")
    runs = find_runs(results)
    if run == LATEST and runs and not exact:
        return next(iter(runs.values()))
    latest = (
        f" The latest is '{next(iter(runs))}'."
        if runs
        else " That directory has no runs."
    )
    raise RunLogError(
        f"There is no run '{run}' in {results}.{did_you_mean(run, runs) or latest}"
    )


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Return a connection in autocommit mode. ``mode`` is a mode of SQLite's URIs
    (``ro``, ``rw`` or ``rwc``).
    """
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
        connection.execute("PRAGMA trusted_schema = OFF")
        if sys.version_info >= (3, 12):
            connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        if not mode.startswith("ro"):
            # A committed transaction survives the crash of any process. Only a power
            # failure can lose the latest ones.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """Return a read-only connection.

    If there is no write-ahead log, as after the end of a session, reading creates no
    file beside the log.
    """
    if not (path.with_name(f"{path.name}-wal").exists() or is_claimed(path)):
        return connect(path, "ro&immutable=1")
    try:
        return connect(path, "ro")
    except sqlite3.OperationalError:
        # Reading in WAL mode needs two files beside the log. If they cannot be created,
        # a copy of the log and its write-ahead log is read instead.
        with tempfile.TemporaryDirectory(prefix="cheesebench-") as temporary:
            copy = Path(temporary, path.name)
            for suffix in ("", "-wal"):
                if Path(f"{path}{suffix}").exists():
                    shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
            memory = sqlite3.connect(
                ":memory:", isolation_level=None, check_same_thread=False
            )
            with closing(connect(copy)) as source:
                source.backup(memory)
            memory.execute("PRAGMA query_only = ON")
            return memory


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RunLogError unless this version can read the format of the file."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise RunLogError(
            f"{path} is an SQLite file but not a run log. Name another run, or start a new one."
        )
    number = connection.execute("PRAGMA user_version").fetchone()[0]
    if number < FORMAT:
        raise RunLogError(
            f"{path} was written by an older CheeseBench (format {number}; this one reads {FORMAT}). "
            "Read the log with the version that its manifest names, or start a new run."
        )
    if number > FORMAT:
        raise RunLogError(
            f"{path} was written by a newer CheeseBench (format {number}; this one reads {FORMAT}). "
            "Upgrade with: pip install --upgrade pytest-cheesebench"
        )
    check_schema(connection, path, SCHEMA)


def check_schema(connection: sqlite3.Connection, path: Path, schema: str) -> None:
    """Raise RunLogError for a file that lacks a table or an index of ``schema``, or has
    a trigger or a view, whose SQL would run when the log is used.
    """
    expected = _expected(schema)
    if {
        row
        for row in _objects(connection)
        if row[0] in ("trigger", "view") or row in expected
    } != expected:
        raise damaged(path, "its tables differ from the tables of a run")


_OBJECTS = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"


#: Matches a comment in SQL. Strings need no special care, because the SQL of a log's
#: tables contains none. SQLite stops reading at a NUL character, so this character ends
#: a comment here, too.
_COMMENT = re.compile(r"--[^\n\0]*")
_BLANKS = re.compile(r"[ \t\n\f\r]+")


def _objects(connection: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """Yield the type, name and SQL of every table, index, trigger and view. Comments
    are removed, because versions may word them differently.
    """
    for kind, name, sql in connection.execute(_OBJECTS):
        yield kind, name, _BLANKS.sub(" ", _COMMENT.sub("", sql or ""))


@cache
def _expected(schema: str) -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        return frozenset(_objects(connection))


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RunLogError if SQLite reports damaged pages in the log, or if the end of
    the file is missing.
    """
    [(said,)] = connection.execute("PRAGMA quick_check(1)").fetchall()
    if said != "ok":
        raise damaged(path, said)
    [(pages,)], [(size,)] = (
        connection.execute(f"PRAGMA {name}").fetchall()
        for name in ("page_count", "page_size")
    )
    ahead = path.with_name(f"{path.name}-wal")
    if (
        not (ahead.exists() and ahead.stat().st_size)
        and path.stat().st_size < pages * size
    ):
        # Otherwise SQLite would read zeros beyond the end of the file.
        raise damaged(path, "its end is missing")
