from __future__ import annotations

import dataclasses
import math
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cheesebench.chat import (
    AnswerForm,
    ChatReply,
    ChatRequest,
    Message,
    Sampling,
    Usage,
)
from cheesebench.errors import RunLogError
from cheesebench.experiment import log_file
from cheesebench.experiment.log import RunLog, digest, readable
from cheesebench.experiment.log_file import (
    FILE_NAME,
    claim,
    find_runs,
    locate,
    row_digest,
)
from cheesebench.interfaces import TaskEvent
from cheesebench.records import FORMAT, CallRecord, CallTotals, CellCalls
from tests.experiment.recorded import record

EVENTS = (
    TaskEvent(3, "run", "enter middle", "x.yaml:4"),
    TaskEvent(9, "run", "after 2", "x.yaml:5"),
)


@pytest.mark.skipif(sys.platform == "win32", reason="no modes here")
def test_a_log_is_for_its_owner_alone(log: RunLog) -> None:
    files = [log.directory, *log.directory.iterdir()]
    assert {path.name for path in files} >= {"r1", FILE_NAME, f"{FILE_NAME}-wal"}
    assert [path for path in files if path.stat().st_mode & 0o077] == []


def test_what_was_written_is_read_back_exactly(log: RunLog) -> None:
    plan = log.plans()[0]
    written = [
        record(plan, 0, 0),
        record(plan, 0, 1, success=False, outcome="timeout", compared=False),
        record(plan, 1, 0, success=None),
    ]
    for trial in written:
        log.write_trial(trial, EVENTS if trial.trial == 0 else ())
    assert log.trials(plan) == written
    assert log.trials(plan, 1) == written[2:]
    assert list(log.trials(plan)[0].counters) == ["z", "a"]  # the protocol's order
    assert log.events(written[0]) == EVENTS
    assert log.events(written[1]) == ()
    with RunLog.open_read_only(log.directory) as reader:
        assert reader.trials() == written
        assert reader.plans() == log.plans()
        assert reader.manifest == log.manifest


def test_plans_keep_their_order_and_everything_in_them(
    log: RunLog, stranger: ModuleType
) -> None:
    assert log.plans() == list(stranger.cells(["walker", "moody"], subjects=2))
    assert log.manifest["format"] == FORMAT
    assert log.manifest["options"] == {"seed": 1, "design": "cohort"}
    assert log.run_id == "r1"


def test_the_dump_does_not_depend_on_the_order_of_writing(
    stranger: ModuleType, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker", "moody"], subjects=2)
    trials = [
        record(plan, subject, trial)
        for plan in cells
        for subject in range(2)
        for trial in range(5)
    ]
    dumps = []
    for run_id in ("ordered", "shuffled"):
        with RunLog.create(tmp_path, run_id, cells.items(), options={}) as log:
            for trial in trials:
                log.write_trial(trial, EVENTS)
            dumps.append(list(log.dump()))
        random.Random(0).shuffle(trials)
    assert dumps[0] == dumps[1]
    assert len(dumps[0]) == len(trials)


def test_a_trial_that_comes_out_differently_is_refused_by_name(log: RunLog) -> None:
    plan = log.plans()[0]
    log.write_trial(record(plan, 1, 4), EVENTS)
    # Writing the same record again changes nothing, nor do comments in the protocol.
    log.write_trial(record(plan, 1, 4), EVENTS)
    moved = [
        dataclasses.replace(one, source="corridor.protocol.yaml:99") for one in EVENTS
    ]
    log.write_trial(record(plan, 1, 4), moved)
    with pytest.raises(
        RunLogError,
        match=r"trial 5 of subject 1 .* outcome was 'found' and is now 'timeout'",
    ):
        log.write_trial(record(plan, 1, 4, outcome="timeout"), EVENTS)
    with pytest.raises(RunLogError, match="different rules fired"):
        log.write_trial(record(plan, 1, 4), EVENTS[:1])
    assert log.trials(plan) == [record(plan, 1, 4)]
    assert log.events(record(plan, 1, 4)) == EVENTS


def test_missing_trials_are_filled_up_and_replaced(log: RunLog) -> None:
    plan = log.plans()[0]
    log.write_trial(record(plan, 0, 0), EVENTS)
    assert log.write_missing(plan, 0, "the cause") == 1
    assert [(r.trial, r.missing, r.success) for r in log.trials(plan)] == [
        (0, "", True),
        *((trial, "infrastructure", None) for trial in range(1, plan.trials)),
    ]
    assert [(entry.kind, entry.text, entry.subject) for entry in log.journal(plan)] == [
        ("error", "the cause", 0)
    ]
    log.write_trial(record(plan, 0, 1), EVENTS)
    log.write_life(plan, 0, 2)
    # The life ended after two trials, so the missing ones never existed.
    assert log.trials(plan) == [record(plan, 0, 0), record(plan, 0, 1)]
    assert log.completed_subjects(plan) == {0: 2}


def test_cells_can_be_added(log: RunLog, stranger: ModuleType) -> None:
    before = log.plans()
    more = stranger.cells(["walker"], names=["corridor", "hall"])
    log.add_cells(more.items())
    assert [plan.key for plan in log.plans()] == [
        *(plan.key for plan in before),
        ("walker", "hall", "ascii_2d", ""),
    ]
    assert set(log.manifest["protocols"]) == {"corridor", "hall"}


def test_an_existing_run_is_left_alone(log: RunLog) -> None:
    with pytest.raises(
        RunLogError,
        match=r"'r1' already exists in .*; continue it with --resume r1, or choose another",
    ):
        RunLog.create(log.directory.parent, "r1", [], options={})
    assert len(log.plans()) == 2


def test_results_cannot_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    for place in (tmp_path / "results", tmp_path / "results" / "deeper"):
        with pytest.raises(
            RunLogError,
            match=r"(not a directory|Not a directory).* [Cc]hoose another --results",
        ):
            RunLog.create(place, "r1", [], options={})


def test_a_run_that_is_not_there_is_answered_with_the_nearest(log: RunLog) -> None:
    results = log.directory.parent
    assert (
        locate(results, "r1")
        == locate(results, str(log.directory))
        == locate(results, str(log.path))
        == log.path
    )
    with pytest.raises(
        RunLogError, match=r"There is no run 'r11' in .* Did you mean 'r1'\?"
    ):
        locate(results, "r11")
    with pytest.raises(RunLogError, match=r"There is no run 'r1' in .* has no runs"):
        locate(results / "nowhere", "r1")


def test_latest_is_the_run_with_the_latest_entry_unless_one_has_that_name(
    tmp_path: Path,
) -> None:
    paths = {}
    for name in ("week3", "monday", "april"):
        RunLog.create(tmp_path, name, [], options={}).close()
        paths[name] = tmp_path / name / "run.sqlite"
    assert locate(tmp_path, "latest") == paths["april"]
    with RunLog.open_read_only(paths["monday"]) as log:
        # Reading changes file times, so these files are newer than those of the latest
        # run.
        os.utime(paths["monday"], (2e9, 2e9))
        assert log.plans() == []
        assert locate(tmp_path, "latest") == paths["april"]
    with RunLog.open(paths["week3"]) as log:
        log.note("warning", "something happens in an old run")
        assert locate(tmp_path, "latest") == paths["week3"]
    with pytest.raises(
        RunLogError, match=r"There is no run 'nobody' in .* The latest is 'week3'"
    ):
        locate(tmp_path, "nobody")
    with pytest.raises(RunLogError, match="There is no run 'latest'"):
        locate(tmp_path, "latest", exact=True)
    paths["week3"].write_bytes(b"damaged")
    assert list(find_runs(tmp_path)) == ["april", "monday", "week3"]
    RunLog.create(tmp_path, "latest", [], options={}).close()
    RunLog.create(tmp_path, "newer", [], options={}).close()
    assert locate(tmp_path, "latest").parent.name == "latest"


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100:] = random.Random(0).randbytes(len(content) - 100)
    path.write_bytes(content)


def text(path: Path) -> None:
    path.write_text(
        "this is no database, but it is long enough to be looked at. " * 100
    )


def other_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE something (x)")


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (damaged, "not a run log, or it is damaged"),
        (text, "not a run log, or it is damaged"),
        (other_database, "is an SQLite file but not a run log"),
        (newer, f"newer CheeseBench \\(format {FORMAT + 1}; .* Upgrade"),
        (Path.unlink, "There is no run log"),
    ],
)
@pytest.mark.parametrize("opened", [RunLog.open, RunLog.open_read_only])
def test_a_file_that_is_no_run_log_is_said_to_be_none(
    log: RunLog, harm: object, message: str, opened: object
) -> None:
    log.close()
    assert callable(harm)
    assert callable(opened)
    harm(log.path)
    with pytest.raises(RunLogError, match=message):
        opened(log.directory)


def test_a_full_disk_keeps_what_was_finished(log: RunLog) -> None:
    plan = log.plans()[0]
    pages = log._connection.execute("PRAGMA page_count").fetchone()[0]
    log._connection.execute(f"PRAGMA max_page_count = {pages + 3}")
    written = []
    with pytest.raises(  # noqa: PT012
        RunLogError,
        match=r"the disk is full. Make room, then continue with --resume r1",
    ):
        for trial in range(1000):
            log.write_trial(record(plan, 0, trial), EVENTS)
            written.append(trial)
    assert written
    log._connection.execute(f"PRAGMA max_page_count = {pages + 1000}")
    log.write_trial(record(plan, 0, len(written)), EVENTS)
    assert [r.trial for r in log.trials(plan)] == [*written, len(written)]


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A private directory, with this process not being root during the test (root may
    write everywhere).
    """
    if not hasattr(os, "geteuid"):
        pytest.skip("no users here")
    with tempfile.TemporaryDirectory() as directory:
        user = os.geteuid()
        if user == 0:
            os.chown(directory, 65534, -1)
            os.seteuid(65534)
        try:
            yield Path(directory)
        finally:
            os.seteuid(user)


def test_a_directory_that_cannot_be_written(unprivileged: Path) -> None:
    unprivileged.chmod(0o555)
    with pytest.raises(
        RunLogError,
        match=r"No run can be written to .*Permission denied.* Make it writable",
    ):
        RunLog.create(unprivileged, "r1", [], options={})


def test_only_a_run_that_is_written_is_to_be_resumed(
    stranger: ModuleType, unprivileged: Path
) -> None:
    log = RunLog.create(
        unprivileged, "r1", stranger.cells(["walker"]).items(), options={}
    )
    log.close()
    log.path.chmod(0o000)
    with pytest.raises(
        RunLogError, match=r"Make the file and its directory readable"
    ) as read:
        RunLog.open_read_only(log.path)
    assert "--resume" not in str(read.value)
    log.path.chmod(0o400)
    with (
        RunLog.open(log.path) as log,
        pytest.raises(RunLogError, match=r"writable.* continue with --resume r1"),
    ):
        log.note("error", "cannot be written")


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_run_in_a_read_only_directory_can_be_read(
    stranger: ModuleType, unprivileged: Path, interrupted: bool
) -> None:
    cells = stranger.cells(["walker"])
    log = RunLog.create(unprivileged, "r1", cells.items(), options={})
    plan = next(iter(cells))
    log.write_trial(record(plan, 0, 0), EVENTS)
    if interrupted:
        # The leftovers of a killed process: everything is in the journal file, and its
        # index may be gone.
        left = {path.name: path.read_bytes() for path in log.directory.iterdir()}
        log.close()
        for name, content in left.items():
            if not name.endswith("-shm"):
                (log.directory / name).write_bytes(content)
        assert (log.directory / f"{FILE_NAME}-wal").stat().st_size > 0
    log.close()
    for path in (*log.directory.iterdir(), log.directory):
        path.chmod(0o555)
    try:
        with RunLog.open_read_only(log.directory) as reader:
            assert reader.trials() == [record(plan, 0, 0)]
            [(_, _, file)] = reader.select("PRAGMA database_list")
            assert bool(file) != interrupted, (
                "a log of gigabytes must not be copied into memory"
            )
            with pytest.raises(RunLogError, match=r"readable and writable.*try again"):
                reader.note("error", "cannot be written")
    finally:
        log.directory.chmod(0o755)


def test_reading_leaves_nothing_beside_a_run_that_has_ended(
    stranger: ModuleType, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"])
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "r1", cells.items(), options={}) as log:
        log.write_trial(record(plan, 0, 0), EVENTS)
        with RunLog.open_read_only(log.directory) as reader:
            log.write_trial(record(plan, 0, 1), EVENTS)
            assert len(reader.trials()) == 2, "a run in progress"
    before = {path.name for path in log.directory.iterdir()}
    with RunLog.open_read_only(log.directory) as reader:
        assert len(reader.trials()) == 2
        assert {path.name for path in log.directory.iterdir()} == before
    assert {path.name for path in log.directory.iterdir()} == before
    with closing(claim(log.path)), RunLog.open_read_only(log.directory) as reader:
        with RunLog.open(log.directory) as log:
            log.write_trial(record(plan, 0, 2), EVENTS)
        assert len(reader.trials()) == 3, "somebody runs it"


WRITER = """
import sys
from pathlib import Path
from cheesebench.experiment.log import RunLog, digest, readable
from cheesebench.records import TrialRecord
from cheesebench.interfaces import TaskEvent
with RunLog.open(Path(sys.argv[1])) as log:
    for trial in range(300):
        key = dict(model="m", protocol="p", view="v", subject=int(sys.argv[2]), trial=trial)
        log.write_trial(TrialRecord(**key, outcome="found"), [TaskEvent(1, "s", "e", "f:1")])
"""


def test_several_processes_write_one_log(log: RunLog) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(log.path), str(subject)])
        for subject in (0, 1, 1)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    assert [(r.subject, r.trial) for r in log.trials()] == [
        (s, t) for s in (0, 1) for t in range(300)
    ]
    assert all(len(log.events(r)) == 1 for r in log.trials())


def test_what_an_unfinished_life_has_not_reached_is_missing(log: RunLog) -> None:
    plan = log.plans()[0]
    for trial in range(plan.trials):
        log.write_trial(record(plan, 0, trial), ())
    log.write_life(plan, 0, plan.trials)
    log.write_trial(record(plan, 1, 0), ())
    found = [one for one in log.trials_and_gaps() if one.model == plan.model]
    gaps = [(one.subject, one.trial) for one in found if one.missing == "not run"]
    assert gaps == [(1, trial) for trial in range(1, plan.trials)]
    assert len(found) == 2 * plan.trials


def test_trials_are_counted_by_cell_and_subject(log: RunLog) -> None:
    walker, moody = log.plans()
    for subject, trials in ((0, 2), (1, 1)):
        for trial in range(trials):
            log.write_trial(record(walker, subject, trial), ())
    log.write_trial(record(moody, 0, 0), ())
    assert log.trial_counts() == {
        walker.key: {0: (2, 0), 1: (1, 0)},
        moody.key: {0: (1, 0)},
    }
    log.write_missing(walker, 1, "the cause")
    counts = log.trial_counts()[walker.key]
    assert counts[0] == (2, 0)
    assert counts[1] == (1, walker.trials - 1)


def test_of_a_run_that_was_killed_the_subjects_in_a_trial_are_named(
    log: RunLog,
) -> None:
    plan, other = log.plans()
    log.write_trial(record(plan, 1, 0), ())

    def noted() -> list[tuple[int | None, str]]:
        log.note_killed(plan, [0, 1, 2])
        return [(one.subject, one.text) for one in log.journal(plan, "error")]

    assert noted() == []  # it has not been started
    assert log.resumes(plan) == 0
    log.note("started", "", plan)
    assert log.resumes(plan) == 0
    # Subject 1 had finished a trial; one more may have been in its first one.
    assert noted() == [
        (1, "stopped in trial 2: the run was killed"),
        (0, "stopped in trial 1: the run was killed"),
    ]
    log.note("closed", "")
    assert len(noted()) == 2  # it ended in its own way
    log.note("started", "", plan)
    assert log.resumes(plan) == 1
    log.note_started(plan, 0, 3)
    assert log.resumes(plan) == 1  # nothing was left to run
    log.note_started(plan, 10, 10)
    assert log.resumes(plan) == 2
    assert log.resumes(other) == 0
    assert len(noted()) == 4


def call(number: int, **usage: int) -> CallRecord:
    reply = ChatReply(text="ACTIONS: STAY", usage=Usage(**usage))
    return CallRecord(
        trial=0, call=number, digest=f"{number}", system="s", asked="a", reply=reply
    )


def changed(log: RunLog, statement: str) -> None:
    with closing(sqlite3.connect(log.path, isolation_level=None)) as connection:
        connection.execute(statement)


@pytest.fixture
def filled(log: RunLog) -> RunLog:
    """A log with two complete lives and a call."""
    plan = log.plans()[0]
    for subject in range(2):
        for trial in range(plan.trials):
            log.write_trial(record(plan, subject, trial), EVENTS)
        log.write_life(plan, subject, plan.trials)
    log.calls.write(plan, 0, call(0, prompt=9, cached=4))
    return log


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE calls SET reply = CAST(zeroblob(13) AS TEXT)",
        "UPDATE calls SET completion_tokens = completion_tokens + 1",
        "DELETE FROM calls",
        "UPDATE texts SET text = 's2'",
        "UPDATE trials SET success = NULL WHERE trial = 1",
        "UPDATE events SET step = step + 1 WHERE trial = 0",
        "DELETE FROM lives WHERE subject = 1",
        "DELETE FROM trials WHERE subject = 1",
        "INSERT INTO journal (time, kind, text) VALUES ('', 'warning', '')",
        "UPDATE cells SET plan = replace(plan, '0.1', '0.9')",
        "UPDATE manifest SET value = '{}' WHERE key = 'options'",
        "UPDATE digest SET total = '0'",
        "UPDATE digest SET total = 'x'",
        "DELETE FROM digest",
    ],
)
@pytest.mark.parametrize("opened", [RunLog.open, RunLog.open_read_only])
def test_what_was_changed_behind_our_back_is_told(
    filled: RunLog, statement: str, opened: Callable[[Path], RunLog]
) -> None:
    with opened(filled.path) as log:
        log.verify()
    changed(filled, statement)
    with (
        opened(filled.path) as log,
        pytest.raises(
            RunLogError,
            match=r"run\.sqlite is damaged: .*\. Use an undamaged copy, or start",
        ),
    ):
        log.verify()


def test_the_digest_is_of_whatever_is_written(filled: RunLog) -> None:
    """Trials that are missing and replaced, lives that end early, calls that are asked
    again, entries, failures.
    """
    plan = filled.plans()[1]
    filled.write_trial(record(plan, 0, 0), EVENTS)
    filled.write_missing(plan, 0, "the cause")
    filled.write_trial(record(plan, 0, 1), EVENTS)
    filled.write_life(plan, 0, 2)
    filled.calls.write(plan, 0, dataclasses.replace(call(0), fault="content_filter"))
    filled.calls.write(plan, 0, call(0))
    filled.add_to_manifest({"shard": 1})
    rows = filled.verify()
    with pytest.raises(RunLogError), filled.transaction():  # noqa: PT012
        filled.note("warning", "never written")
        raise RunLogError("no")
    with pytest.raises(RunLogError, match="came out differently"):
        filled.write_trial(record(plan, 0, 1, outcome="timeout"), EVENTS)
    assert filled.verify() == rows
    with RunLog.open(filled.path) as other:
        other.note("warning", "one more")
    assert filled.verify() == rows + 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM trials WHERE subject = 1 AND trial = 0",
        "DELETE FROM trials WHERE subject = 1 AND trial = (SELECT max(trial) FROM trials)",
    ],
)
def test_a_life_without_one_of_its_trials_is_never_read(
    filled: RunLog, statement: str
) -> None:
    changed(filled, statement)
    with pytest.raises(RunLogError, match=r"run\.sqlite is damaged: .*are missing"):
        filled.trials_and_gaps()


@pytest.mark.parametrize(
    ("text", "where", "read"),
    [
        ("calls SET reply", "1", lambda log: log.calls.find(log.plans()[0], 0, 0, 0)),
        ("trials SET variables", "subject + trial = 0", RunLog.trials),
        ("cells SET plan", "1", RunLog.plans),
        ("manifest SET value", "key = 'created'", lambda log: log.manifest),
        ("journal SET text", "id = 1", RunLog.journal),
    ],
)
def test_a_row_without_end_is_not_read(
    filled: RunLog,
    text: str,
    where: str,
    read: Callable[[RunLog], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_file, "LONGEST_ROW", 2**20)
    with RunLog.open_read_only(filled.path) as log:
        read(log)
    changed(filled, f"UPDATE {text} = printf('%.*c', {2**20 + 1}, 'x') WHERE {where}")
    with (
        RunLog.open_read_only(filled.path) as log,
        pytest.raises(RunLogError, match=r"larger than 1 MB\. Name another"),
    ):
        read(log)


def _rewrite_schema(log: RunLog, table: str, old: str, new: str) -> None:
    with closing(sqlite3.connect(log.path)) as connection:
        [(sql,)] = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = ?", (table,)
        ).fetchall()
        assert old in sql
        connection.execute("PRAGMA writable_schema = ON")
        statement = "UPDATE sqlite_master SET sql = ? WHERE name = ?"
        connection.execute(statement, (sql.replace(old, new, 1), table))
        connection.commit()


@pytest.mark.parametrize("opened", [RunLog.open, RunLog.open_read_only])
def test_a_log_whose_comments_were_worded_otherwise_is_read(
    filled: RunLog, opened: Callable[[Path], RunLog]
) -> None:
    before = list(filled.dump())
    _rewrite_schema(
        filled,
        "journal",
        "  -- what happened to the run",
        "\t-- all that's happened;\n  -- in time",
    )
    with opened(filled.path) as log:
        assert list(log.dump()) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("steps INTEGER NOT NULL", "steps INTEGER"),
        ("steps INTEGER NOT NULL", "steps INTEGER -- NOT NULL"),
        (
            ") STRICT",
            ") --\0\nSTRICT",
        ),  # SQLite reads up to the NUL, so values may have any type
        ("TEXT NOT NULL", "TEXT\N{NO-BREAK SPACE}NOT NULL"),
    ],
)
def test_what_only_looks_like_a_comment_is_no_reworded_one(
    filled: RunLog, old: str, new: str
) -> None:
    _rewrite_schema(filled, "trials", old, new)
    with pytest.raises(RunLogError, match=r"damaged"):
        RunLog.open_read_only(filled.path)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE journal",
        "ALTER TABLE calls DROP COLUMN attempts",
        "DROP INDEX calls_by_life",
        "CREATE TRIGGER more AFTER INSERT ON journal BEGIN DELETE FROM trials; END",
        "CREATE VIEW everything AS SELECT * FROM trials",
    ],
)
@pytest.mark.parametrize("opened", [RunLog.open, RunLog.open_read_only])
def test_a_log_with_other_tables_is_refused(
    filled: RunLog, statement: str, opened: Callable[[Path], RunLog]
) -> None:
    changed(filled, "CREATE INDEX by_hand ON trials (outcome)")
    opened(filled.path).close()  # an additional index changes nothing
    changed(filled, statement)
    with pytest.raises(
        RunLogError, match=r"its tables differ from the tables of a run"
    ):
        opened(filled.path)


def test_pages_that_sqlite_cannot_read_are_found_before_a_run_goes_on(
    filled: RunLog,
) -> None:
    filled.check_pages()
    filled.close()
    content = bytearray(filled.path.read_bytes())
    content[8192:8292] = bytes(100)
    filled.path.write_bytes(content)
    with pytest.raises(RunLogError, match="damaged"), RunLog.open(filled.path) as log:
        log.check_pages()


def test_an_end_that_is_cut_off_is_found_before_a_run_goes_on(filled: RunLog) -> None:
    filled.close()
    with closing(sqlite3.connect(filled.path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        # An empty page, which is never missed.
        connection.execute("CREATE TABLE last (x)")
        connection.execute("DROP TABLE last")
        connection.commit()
    content = filled.path.read_bytes()
    filled.path.write_bytes(content[:-100])
    with pytest.raises(RunLogError, match="damaged"), RunLog.open(filled.path) as log:
        log.check_pages()


def test_a_call_that_is_asked_again_while_the_latest_are_read_is_left_out(
    filled: RunLog,
) -> None:
    plan = filled.plans()[0]
    filled.calls.write(plan, 1, call(0))
    latest = filled.calls.latest(9)
    assert next(latest)[1] == 1
    changed(filled, "DELETE FROM calls WHERE subject = 0")
    assert list(latest) == []


@pytest.mark.parametrize(
    "value", [1, 1.0, True, -0.0, 0.0, None, "", "1", math.inf, 2**53 + 1, "\udcff"]
)
def test_a_digest_is_the_same_before_and_after_sqlite(value: object) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (i ANY, r REAL) STRICT")
        stored = (
            value.encode(errors="replace").decode() if isinstance(value, str) else value
        )
        number = None if isinstance(value, str) else value
        connection.execute("INSERT INTO t VALUES (?, ?)", (stored, number))
        [row] = connection.execute("SELECT * FROM t").fetchall()
    assert row_digest("t", row) == row_digest("t", (stored, number))
    assert row_digest("t", ("a", "b")) != row_digest("t", ("ab", "")), (
        "where a value ends counts, too"
    )
    assert (
        row_digest("t", (0,))
        != row_digest("t", (None,))
        != row_digest("t", ("",))
        != row_digest("u", ("",))
    )


def told(trial: int, number: int, fault: Any = None, **changes: Any) -> CallRecord:
    """Return a call whose numbers all differ."""
    usage = Usage(prompt=100, completion=20, cached=30, reasoning=4, written=5)
    reply = ChatReply(
        text=f"reply {trial}.{number}",
        reasoning="so",
        finish="stop",
        usage=usage,
        model=changes.pop("model", "served"),
    )
    return CallRecord(
        trial=trial,
        call=number,
        digest=f"{trial}.{number}",
        system=changes.pop("system", "be a mouse"),
        asked="?",
        reply=reply,
        fault=fault,
        cost=0.25,
        seconds=1.5,
        attempts=3,
        malformed=2,
    )


def test_calls_are_read_back_by_subject_and_trial(log: RunLog) -> None:
    plan, other = log.plans()
    calls, written = log.calls, [told(0, 0), told(0, 1), told(1, 0, system="again")]
    calls.write(plan, 1, *reversed(written))
    calls.write(other, 0, told(0, 0, model="else"))
    assert list(calls.of_life(plan, 1)) == written
    assert list(calls.of_trial(plan, 1, 0)) == written[:2]
    assert calls.find(plan, 1, 1, 0) == written[2]
    assert calls.find(plan, 1, 1, 1) is None
    assert [calls.count(plan, subject) for subject in (0, 1)] == [0, 3]
    assert (calls.subjects(plan), calls.subjects(other)) == ([1], [0])
    # The newest come first.
    assert [(key, subject) for key, subject, _ in calls.latest(2)] == [
        (other.key, 0),
        (plan.key, 1),
    ]
    assert [one for _, _, one in calls.latest(9)][1:] == written
    assert (calls.served_by(plan.model, 9), calls.served_by(other.model, 9)) == (
        {"served"},
        {"else"},
    )
    assert calls.served_by(plan.model, 0) == set()


def test_replies_of_unfinished_subjects_are_to_be_repeated(log: RunLog) -> None:
    plan, other = log.plans()
    log.calls.write(plan, 0, told(0, 0), told(0, 1, fault="refused"))
    log.calls.write(plan, 1, told(0, 0), told(0, 1))
    assert (log.calls.to_repeat(plan), log.calls.to_repeat(other)) == (3, 0)
    log.write_life(plan, 1, plan.trials)
    assert log.calls.to_repeat(plan) == 1
    assert log.calls.has_reply(plan.model)
    log.calls.write(other, 0, told(0, 0, fault="refused"))
    assert not log.calls.has_reply(other.model)


def test_only_a_refused_call_is_replaced(log: RunLog) -> None:
    plan = log.plans()[0]
    log.calls.write(plan, 0, told(0, 0, fault="refused"), told(0, 1))
    log.calls.write(plan, 0, told(0, 0))
    assert [one.fault for one in log.calls.of_life(plan, 0)] == [None, None]
    with pytest.raises(RunLogError):
        log.calls.write(plan, 0, told(0, 1))


def test_calls_are_added_up_by_cell(log: RunLog) -> None:
    plan, other = log.plans()
    log.calls.write(plan, 0, told(0, 0), told(0, 1, fault="refused", model="b"))
    log.calls.write(plan, 1, told(0, 0, model=""))
    log.calls.write(other, 0, told(0, 0))
    log.write_trial(
        dataclasses.replace(record(plan, 0, 0), tally={"calls": 2, "x": 1}), ()
    )
    log.write_trial(dataclasses.replace(record(plan, 1, 0), tally={"calls": 1}), ())
    for text in ("first", "second"):
        log.note("unread", text, plan)
    three = CallTotals(
        calls=3,
        attempts=9,
        prompt=300,
        completion=60,
        cached=90,
        reasoning=12,
        cost=0.75,
        seconds=4.5,
        written=15,
        malformed=6,
    )
    assert log.calls.of_cell(plan) == CellCalls(
        totals=three,
        served_by=("b", "served"),
        answered=2,
        unread="first",
        counts={"calls": 3, "x": 1},
    )
    found = log.calls.by_cell()
    assert list(found) == [other.key, plan.key] or list(found) == [plan.key, other.key]
    assert found[plan.key] == log.calls.of_cell(plan)
    assert found[other.key].totals == told(0, 0).totals
    assert log.calls.totals() == three + told(0, 0).totals


def test_a_reply_is_read_as_it_is_stored(log: RunLog) -> None:
    usual = ChatReply(text="F", reasoning="", model="m")
    assert log.calls.as_recorded(usual) is usual
    odd = ChatReply(
        text="a\udcff", reasoning="b\udcff", model="c\udcff", finish="length"
    )
    stored = ChatReply(text="a?", reasoning="b?", model="c?", finish="length")
    assert log.calls.as_recorded(odd) == stored


def test_a_digest_covers_all_that_may_change_a_reply() -> None:
    def form(**changes: Any) -> AnswerForm:
        given: dict[str, Any] = {"schema": {"a": 1, "b": 2}}
        return AnswerForm(name="act", description="how", **(given | changes))

    usual = ChatRequest(
        model="m",
        messages=(Message("user", ("one", "two")),),
        sampling=Sampling(temperature=0.5),
        extra={"a": 1, "b": 2},
        form=form(),
    )
    same = [
        dataclasses.replace(usual, extra={"b": 2, "a": 1}, timeout=3.0),
        dataclasses.replace(usual, form=form(schema={"b": 2, "a": 1})),
        dataclasses.replace(usual, conversation="c"),
    ]
    assert {digest(one) for one in same} == {digest(usual)}
    others: list[dict[str, Any]] = [
        {"model": "n"},
        {"messages": (Message("user", ("onetwo",)),)},
        {"messages": (Message("assistant", ("one", "two")),)},
        {"messages": (Message("user", ("one", b"two")),)},
        {"sampling": Sampling(temperature=0.6)},
        {"extra": {"a": 1}},
        {"form": None},
        {"form": form(schema={"a": 2, "b": 2})},
        {"form": form(by_tool=False)},
    ]
    found = {digest(dataclasses.replace(usual, **one)) for one in others}
    assert len(found | {digest(usual)}) == len(others) + 1
    assert {len(one) for one in found} == {32}
    assert readable(Message("user", ("see ", b"png", "!"))) == "see [picture]!"


def test_causes_are_of_the_last_start_and_the_most_frequent_comes_first(
    log: RunLog,
) -> None:
    plan, other = log.plans()
    log.note("error", "an old fault", plan)
    assert log.causes() == {plan.key: ("an old fault",)}
    log.note("started", "again", plan)
    assert log.causes() == {}
    log.note("error", "stopped in trial 3: no answer", plan)
    log.note("error", "stopped in trial 4: HTTP 503", plan)
    log.note("error", "stopped in trial 5: HTTP 503", plan)
    log.note("warning", "not a cause", plan)
    log.note("error", "of no cell")
    log.note("error", "dead", other)
    found = ("HTTP 503", "stopped in trial 3: no answer")
    assert log.causes() == {plan.key: found, other.key: ("dead",)}
    assert log.causes(other) == {other.key: ("dead",)}
    # A start that is refused changes nothing, but says why.
    log.note("started", "again", plan)
    refused = "The run cannot be continued: it is of another version."
    log.note("error", refused, plan)
    assert log.causes(plan) == {plan.key: (found[0], found[1], refused)}
    log.note("started", "again", plan)
    log.note("error", "new", plan)
    assert log.causes(plan) == {plan.key: ("new",)}


def test_causes_that_differ_only_in_identifiers_times_and_counts_are_one(
    log: RunLog,
) -> None:
    plan, other = log.plans()
    for number in range(20):
        text = f"stopped in trial {number % 2 + 1}: malformed: It is empty, tried 7 times. The answer begins: {{c{number}"
        log.note("error", text, plan)
    log.note("error", "stopped in trial 3: http://a:1 answers 500: id c1", plan)
    log.note("error", "stopped in trial 3: http://a:1 answers 502: id c1", plan)
    log.note("error", "stopped in trial 3: http://a:2 answers 500: id c2", plan)
    assert log.causes(plan)[plan.key] == (
        "malformed: It is empty, tried 7 times",
        *(
            f"stopped in trial 3: http://a:{rest}"
            for rest in (
                "1 answers 500: id c1",
                "1 answers 502: id c1",
                "2 answers 500: id c2",
            )
        ),
    )
    log.note("error", "stopped in trial 3: refused, tried 18 times", other)
    log.note("error", "stopped in trial 3: refused, tried 19 times", other)
    gone = "stopped in trial 3: refused, tried 18 times; there was no reply at all for 5 minutes"
    log.note("error", gone, other)
    assert log.causes(other) == {other.key: ("refused, tried 18 times",)}
    log.note("started", "again", other)
    log.note("error", f"server: `{'long ' * 90}` <b>, tried 7 times", other)
    [shown] = log.causes(other)[other.key]
    assert re.fullmatch(r"server: '(long )+\[\.\.\.\], tried 7 times", shown)
    assert len(shown) < 270


@pytest.mark.parametrize(
    "added",
    [
        ". Set the limit with --reply-tokens N.",
        ", tried 3 times. Raise the limit at the provider, or resume the run later.",
        ", tried 9 times; there was no reply at all for 15 minutes",
    ],
)
def test_a_cause_is_cut_between_words_and_never_in_what_follows_a_server_s_words(
    log: RunLog, added: str
) -> None:
    plan, _ = log.plans()
    log.note("error", f"bad request: {'(much) ' * 60}{added}", plan)
    [shown] = log.causes(plan)[plan.key]
    assert re.fullmatch(r"bad request: (\(much\) )+\[\.\.\.\].*", shown)
    assert shown.endswith(added.removeprefix("."))


def test_the_journal_is_read_by_cell_and_kind(log: RunLog) -> None:
    plan, other = log.plans()
    log.note("warning", "one", plan)
    log.note("error", "two", other)
    log.note("warning", "three")
    texts = [entry.text for entry in log.journal()]
    assert texts[-3:] == ["one", "two", "three"]
    assert [entry.text for entry in log.journal(plan)] == ["one"]
    assert [entry.text for entry in log.journal(kind="warning")] == ["one", "three"]
    assert [entry.text for entry in log.journal(other, "error")] == ["two"]
    assert log.journal(other, "warning") == []
    [entry] = log.journal(plan)
    assert (entry.kind, entry.model, entry.subject) == ("warning", plan.model, None)
