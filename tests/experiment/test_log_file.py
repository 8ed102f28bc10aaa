"""The file of a run log: its limits, errors, directories, locks and format."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cheesebench.chat import ChatReply, FaultKind
from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment import log_file
from cheesebench.experiment.log import RunLog
from cheesebench.records import FORMAT, CallRecord, CellPlan, Variant
from tests.experiment.recorded import record


@pytest.fixture
def log(stranger: ModuleType, tmp_path: Path) -> Iterator[RunLog]:
    cells = stranger.cells(["walker"], subjects=3)
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        yield log


def sized(plan: CellPlan, subjects: int, trials: int) -> CellPlan:
    return dataclasses.replace(plan, subjects=subjects, trials=trials)


@pytest.mark.parametrize(
    ("subjects", "trials", "fits"),
    [(1, 10**5, True), (1, 10**5 + 1, False), (100, 10**5, True), (101, 10**5, False), (10**7, 0, True), (10**7 + 1, 0, False)],
)  # fmt: skip
def test_a_log_holds_so_many_trials(
    log: RunLog, subjects: int, trials: int, fits: bool
) -> None:
    [plan] = log.plans()
    large = sized(plan, subjects, trials)
    assert log_file.fits(large) is fits
    if fits:
        log_file.check_fits(large)
        assert log_file.read_plan(log_file.plan_to_json(large)) == large
        return
    with pytest.raises(OptionError) as caught:
        log_file.check_fits(large)
    said = str(caught.value)
    assert said.startswith(f"corridor by walker: {subjects:,} subject")
    assert f" of {trials:,} trials" in said
    assert "(10,000,000 trials of a cell, 100,000 of a subject)" in said
    with pytest.raises(ValueError, match=r"a plan has "):
        log_file.read_plan(log_file.plan_to_json(large))


def test_a_plan_is_written_and_read_back(log: RunLog) -> None:
    [plan] = log.plans()
    varied = dataclasses.replace(
        plan, variant=Variant((("history", "1"),), "yoked:r"), settings={"x": [1, None]}
    )
    assert log_file.read_plan(log_file.plan_to_json(varied)) == varied
    for subjects in (-1, 0):
        text = log_file.plan_to_json(sized(plan, subjects, 1))
        if subjects:
            with pytest.raises(ValueError, match=r"a plan has -1 subjects of 1 trials"):
                log_file.read_plan(text)
        else:
            assert log_file.read_plan(text).subjects == 0


@pytest.mark.parametrize("name", ["/etc/passwd", "..\\a", "mine.protocol.yaml"])
def test_a_plan_cannot_name_a_file_to_be_read(log: RunLog, name: str) -> None:
    [plan] = log.plans()
    text = log_file.plan_to_json(dataclasses.replace(plan, protocol=name))
    with pytest.raises(ValueError, match="a plan's protocol is a file"):
        log_file.read_plan(text)


def test_a_manifest_has_what_its_readers_need(log: RunLog) -> None:
    manifest = dict(log.manifest)
    assert log_file.checked_manifest(manifest) == manifest
    for key in log_file.MANIFEST:
        without = {name: value for name, value in manifest.items() if name != key}
        with pytest.raises(ValueError, match=f"the manifest has no {key}"):
            log_file.checked_manifest(without)
    for options in ({}, {"seed": "1"}):
        with pytest.raises(ValueError, match=r"the manifest's options have no seed"):
            log_file.checked_manifest({**manifest, "options": options})


def test_a_digest_tells_values_and_tables_apart() -> None:
    digests = [
        log_file.row_digest(table, values)
        for table, values in (
            ("trials", ("a", "b")), ("trials", ("ab",)), ("trials", ("a", None)), ("trials", ("a", 1)), ("trials", ("a", "1")),
            ("events", ("a", "b")), ("trials", ("a", 1.5)), ("trials", ("\udcff",)),
        )
    ]  # fmt: skip
    assert len(set(digests)) == len(digests)
    assert all(0 <= one < 2**256 for one in digests)
    assert log_file.row_digest("t", (1.0, -0.0)) == log_file.row_digest("t", (1, 0))


def test_a_trial_becomes_a_row_and_a_record_again(log: RunLog) -> None:
    [plan] = log.plans()
    one = record(plan, 1, 2, success=None, compared=False)
    row = log_file.trial_to_row(one)
    found = log_file.trial_from_row(
        [1 if value is True else 0 if value is False else value for value in row]
    )
    assert found == one
    assert (found.success, found.compared) == (None, False)
    assert found.model is log_file.trial_from_row(row).model
    for name, value in (
        ("trial", -1), ("trial", 10**5 + 1), ("session", -1), ("session", 10**5 + 1), ("counters", "[]"), ("counters", "{"),
    ):  # fmt: skip
        wrong = list(row)
        wrong[log_file.TRIAL_COLUMNS.index(name)] = value
        with pytest.raises(ValueError):  # noqa: PT011
            log_file.trial_from_row(wrong)
    last = list(row)
    for name in ("trial", "session"):
        last[log_file.TRIAL_COLUMNS.index(name)] = 10**5
    assert log_file.trial_from_row(last).trial == 10**5
    line = json.loads(log_file.dump_line(one, ()))
    assert (line["events"], line["trial"], line["measures"]["endless"]) == (
        [],
        2,
        math.inf,
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (sqlite3.OperationalError("database or disk is full"), "the disk is full. Make room, "),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full. Make room, "),
        (sqlite3.OperationalError("disk I/O error"), "the disk cannot be read or written (disk I/O error). "),
        (sqlite3.OperationalError("attempt to write a readonly database"), "it cannot be opened or written (attempt"),
        (PermissionError(errno.EACCES, "Permission denied"), "it cannot be opened or written ("),
        (sqlite3.OperationalError("database is locked"), "another process has locked it for too long. End that process, "),
        (sqlite3.DataError("string or blob too big"), "a row in it is larger than 32 MB. Name another run, or start a new one."),
        (sqlite3.DatabaseError("file is not a database"), "is not a run log, or it is damaged (file is"),
        (sqlite3.Error("strange"), "strange. Check the file and its disk, "),
    ],
)  # fmt: skip
def test_errors_are_explained_with_what_to_do(
    tmp_path: Path, error: Exception, said: str
) -> None:
    path = tmp_path / "r1" / "run.sqlite"
    for resumable, again in (
        (True, "then continue with --resume r1; every finished trial is kept."), (False, "then try again."),
    ):  # fmt: skip
        with (
            pytest.raises(RunLogError) as caught,
            log_file.errors_explained(path, resumable=resumable),
        ):
            raise error
        assert said in str(caught.value)
        assert caught.value.__cause__ is error
        if said.endswith(", "):
            assert str(caught.value).endswith(f"{said}{again}")


def test_damage_is_said_with_what_was_seen(tmp_path: Path) -> None:
    for error in (
        ValueError("bad \x1b"),
        KeyError("x"),
        sqlite3.OperationalError("disk I/O error"),
    ):
        with pytest.raises(RunLogError) as caught, log_file.damage_explained(tmp_path):
            raise error
        damaged = f"{tmp_path} is damaged: "
        assert str(caught.value).startswith(damaged) is not isinstance(
            error, sqlite3.Error
        )
        assert "\x1b" not in str(caught.value)


def test_a_run_has_only_plain_files(tmp_path: Path) -> None:
    directory = tmp_path / "r"
    (directory / "sub").mkdir(parents=True)
    (directory / "file").touch()
    log_file.check_plain(directory)
    assert log_file.inside(directory, "new") == directory / "new"
    log_file.check_plain(tmp_path / "nowhere")
    (directory / "sub" / "link").symlink_to(tmp_path)
    log_file.check_plain(directory)
    with pytest.raises(
        RunLogError,
        match=r"link is a symbolic link, and what is written to a run stays",
    ):
        log_file.inside(directory, "sub")
    os.mkfifo(directory / "pipe")
    with pytest.raises(
        RunLogError,
        match=r"pipe is not a",
    ):
        log_file.check_plain(directory)


def test_nothing_beside_a_log_makes_sqlite_wait_or_delete(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    journal = tmp_path / "run.sqlite-journal"
    log_file.check_beside(path)
    journal.write_bytes(b"x" * 100)
    log_file.check_beside(path)
    journal.write_bytes(b"x" * 100 + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(
        RunLogError, match=r"run.sqlite-journal would make SQLite delete another file"
    ):
        log_file.check_beside(path)
    journal.write_bytes(b"")
    os.mkfifo(tmp_path / "run.sqlite-wal")
    with pytest.raises(RunLogError, match=r"run.sqlite-wal is not a"):
        log_file.check_beside(path)


def test_a_new_run_has_a_directory_of_its_own(tmp_path: Path) -> None:
    directory = log_file.make_directory(tmp_path / "a" / "results", "r1")
    assert directory == tmp_path / "a" / "results" / "r1"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "run.sqlite").stat().st_mode & 0o777 == 0o600
    with pytest.raises(
        RunLogError,
        match=r"Run 'r1' already exists in .*; continue it with --resume r1, or choose",
    ):
        log_file.make_directory(tmp_path / "a" / "results", "r1")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "comment.md").touch()
    for name in ("link", "half"):
        with pytest.raises(
            RunLogError,
            match=rf"{name} holds no run, because it has no run\.sqlite\. Delete it, or choose another --run-id\.$",
        ):
            log_file.check_new(tmp_path / name)
    (tmp_path / "file").touch()
    with pytest.raises(
        RunLogError, match=r"file is not a directory. Choose another --results."
    ):
        log_file.make_directory(tmp_path / "file", "r1")
    with pytest.raises(
        RunLogError,
        match=r"No run can be written to .* \(Not a directory\). Make it writable",
    ):
        log_file.make_directory(tmp_path / "file" / "below", "r1")


@pytest.mark.parametrize(
    ("fault", "missing", "log_of_calls", "empty"),
    [("refused", None, False, True), ("", None, False, False), (None, None, False, False), (None, None, True, True),
     ("refused", "", False, False)],
)  # fmt: skip
def test_only_a_run_whose_calls_were_all_refused_is_replaced(
    log: RunLog, fault: str | None, missing: str | None, log_of_calls: bool, empty: bool
) -> None:
    [plan] = log.plans()
    if fault is not None:
        values = (*plan.key, 0, 0, 0, *[""] * 6, fault, "", *[0] * 4, 0.0, 0.0, 1, 0, 0)
        with log.transaction() as connection:
            connection.execute(
                f"INSERT INTO calls VALUES ({', '.join('?' * 24)})", values
            )
    if missing is not None:
        log.write_trial(record(plan, 0, 0, missing=missing), ())
    if log_of_calls:
        (log.directory / "server.log").touch()
    log.close()
    if empty:
        log_file.check_new(log.directory)
        assert not log.directory.exists()
    else:
        with pytest.raises(RunLogError, match=r"already exists"):
            log_file.check_new(log.directory)


def test_one_session_at_a_time_runs_a_log(log: RunLog) -> None:
    assert not log_file.is_claimed(log.path)
    with closing(log_file.claim(log.path)):
        assert log_file.is_claimed(log.path)
        with pytest.raises(RunLogError) as caught:
            log_file.claim(log.path)
        assert str(caught.value) == (
            "Another process is running 'r1'. Wait for it to end, or stop it; then continue with --resume r1."
        )
    assert not log_file.is_claimed(log.path)
    log.path.with_name("session.lock").write_bytes(b"x" * 5000)
    assert not log_file.is_claimed(log.path)


def test_a_run_is_found_by_id_path_or_as_the_latest(
    log: RunLog, stranger: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = log.directory.parent
    monkeypatch.chdir(results)
    cells = stranger.cells(["walker"], subjects=3)
    RunLog.create(results, "r0", cells.items(), options={"seed": 1}).close()
    (results / "torn").mkdir()
    (results / "torn" / "run.sqlite").write_bytes(b"no log")
    runs = log_file.find_runs(results)
    assert list(runs) == ["r0", "r1", "torn"]
    log.note("later", "x")
    assert list(log_file.find_runs(results)) == ["r1", "r0", "torn"]
    for name in ("r1", str(log.directory), str(log.path)):
        assert log_file.locate(results, name) == log.path
    assert log_file.locate(Path("elsewhere"), "r1") == log.path.absolute()
    assert log_file.locate(results, "latest") == log.path
    for wrong, exact, said in (
        ("latest", True, f"There is no run 'latest' in {results}. The latest is 'r1'."),
        ("torm", False, f"There is no run 'torm' in {results}. Did you mean 'torn'?"),
        ("/nowhere", False, "There is no run at /nowhere. Check the path."),
    ):  # fmt: skip
        with pytest.raises(RunLogError) as caught:
            log_file.locate(results, wrong, exact=exact)
        assert str(caught.value) == said
    with pytest.raises(
        RunLogError,
        match=r"There is no run 'latest' in empty. That directory has no runs.",
    ):
        log_file.locate(Path("empty"), "latest")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "PRAGMA application_id = 3",
            "is an SQLite file but not a run log. Name another run, or start a new one.",
        ),
        (
            f"PRAGMA user_version = {FORMAT - 1}",
            "was written by an older CheeseBench (format ",
        ),
        (
            f"PRAGMA user_version = {FORMAT + 1}",
            "was written by a newer CheeseBench (format ",
        ),
        ("CREATE VIEW v AS SELECT 1", "its tables differ from the tables of a run"),
        ("DROP TABLE texts", "its tables differ from the tables of a run"),
        ("CREATE TABLE more (a)", ""),
    ],
)
def test_only_the_present_format_is_read(
    log: RunLog, statement: str, said: str
) -> None:
    log.close()
    with closing(sqlite3.connect(log.path)) as connection:
        connection.execute(statement)
        connection.commit()
        if not said:
            log_file.check_format(connection, log.path)
            return
        with pytest.raises(RunLogError) as caught:
            log_file.check_format(connection, log.path)
        assert said in str(caught.value)


def test_pages_and_the_end_of_a_file_are_checked(log: RunLog) -> None:
    log.close()
    size = log.path.stat().st_size
    with closing(log_file.connect(log.path, "ro")) as connection:
        log_file.check_pages(connection, log.path)
        os.truncate(log.path, size - 1)
        with pytest.raises(RunLogError, match=r"its end is missing"):
            log_file.check_pages(connection, log.path)


def test_a_log_is_read_without_a_trace_beside_it(log: RunLog) -> None:
    log.note("kept", "text")
    with closing(log_file.connect_read_only(log.path)) as connection:
        texts = connection.execute(
            "SELECT text FROM journal WHERE kind = 'kept'"
        ).fetchall()
        assert texts == [("text",)]
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("DELETE FROM journal")
    log.close()
    before = {path.name for path in log.directory.iterdir()}
    with closing(log_file.connect_read_only(log.path)) as connection:
        found: Any = connection.execute("SELECT count(*) FROM cells").fetchone()
        assert found == (1,)
    assert {path.name for path in log.directory.iterdir()} == before
    with pytest.raises(sqlite3.OperationalError):
        log_file.connect(log.directory / "gone.sqlite")


def test_a_run_without_a_result_is_empty_once_something_was_paid(
    stranger: ModuleType, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"], subjects=3)

    def made(
        name: str, *, fault: FaultKind | None = None, server: bool = False
    ) -> bool:
        """Return whether a run with a call, or with a server's log, is empty."""
        with RunLog.create(tmp_path, name, cells.items(), options={"seed": 1}) as log:
            [plan] = log.plans()
            directory = log.path.parent
            if server:
                (directory / "server.log").touch()
            else:
                reply = ChatReply(text="hm")
                call = CallRecord(
                    trial=0, call=0, digest="0", system="", asked="?", reply=reply, fault=fault,
                )  # fmt: skip
                log.calls.write(plan, 0, call)
        with closing(log_file.claim(log.path)):
            assert not log_file._is_empty(directory), "a session has it open"
        return log_file._is_empty(directory)

    assert made("served", server=True)
    assert made("refused", fault="content_filter")
    assert not made("answered")
    with RunLog.create(tmp_path, "bare", cells.items(), options={"seed": 1}) as log:
        pass
    assert not log_file._is_empty(log.path.parent), "nothing was asked"
    (tmp_path / "other").mkdir()
    assert not log_file._is_empty(tmp_path / "other")
