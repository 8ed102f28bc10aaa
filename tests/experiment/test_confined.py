"""Hostile run directories: links that lead out of them, and files that SQLite obeys."""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from cheesebench.api import open_run
from cheesebench.cli import main
from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import LOCK_NAME, claim, is_claimed
from cheesebench.server.people import FILE_NAME as SEATS
from cheesebench.server.people import ParticipantStore

MAGIC = bytes.fromhex("d9d505f920a163d7")


@pytest.fixture
def run(stranger: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a run without any trial."""
    monkeypatch.chdir(tmp_path)
    with RunLog.create(
        Path("results"),
        "theirs",
        stranger.cells(["walker"]).items(),
        options={"seed": 1, "design": "cohort"},
    ) as log:
        return log.directory


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("mine", encoding="utf-8")
    return path


WRITERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a resumed run, its report": ("report.md", RunLog.open),
    "a resumed run, the log": ("run.sqlite-wal", RunLog.open),
    "a resumed run, its lock": (LOCK_NAME, lambda run: claim(run / "run.sqlite")),
    "a run of people": (SEATS, ParticipantStore),
    "the page of a notebook": ("report.html", lambda run: open_run(run).html()),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_nobody_writes_through_a_link_in_a_run(
    run: Path, precious: Path, writer: str
) -> None:
    name, write = WRITERS[writer]
    (run / name).symlink_to(precious)
    with pytest.raises(RunLogError, match="is a symbolic link"):
        write(run)
    assert precious.read_text(encoding="utf-8") == "mine"
    (run / name).unlink()
    (run / name).symlink_to(run.parent / "new")
    with pytest.raises(RunLogError, match="is a symbolic link"):
        write(run)
    assert not (run.parent / "new").exists()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("report.html", ["report", "--html"]),
        ("export", ["export", "--csv", "--table=trials"]),
        ("export/trials.csv", ["export", "--csv", "--table=trials"]),
    ],
)
def test_no_command_writes_through_a_link_in_a_run(
    run: Path,
    precious: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    arguments: list[str],
) -> None:
    target = run / name
    target.parent.mkdir(exist_ok=True)
    elsewhere = precious.parent / "elsewhere"
    elsewhere.mkdir()
    target.symlink_to(elsewhere if name == "export" else precious)
    assert main([arguments[0], str(run), *arguments[1:]]) == 2
    told = capsys.readouterr().err
    assert "is a symbolic link" in told
    assert told.count("\n") == 1
    assert precious.read_text(encoding="utf-8") == "mine"
    assert list(elsewhere.iterdir()) == []
    target.unlink()
    assert main([arguments[0], str(run), *arguments[1:]]) == 0


def test_a_log_that_is_a_link_can_be_read(run: Path) -> None:
    # Tools that store large files elsewhere leave a link in their place.
    (run / "run.sqlite").rename(run.parent / "kept")
    (run / "run.sqlite").symlink_to(run.parent / "kept")
    with RunLog.open_read_only(run) as log:
        assert log.run_id == "theirs"


def journal(path: Path, victim: Path) -> None:
    """Write a rollback journal that SQLite believes, as if it ended a transaction over
    ``victim``'s databases.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        [(size,)], [(pages,)] = (
            connection.execute(f"PRAGMA {name}").fetchall()
            for name in ("page_size", "page_count")
        )
    name = os.fsencode(victim)
    header = (MAGIC + struct.pack(">IIIII", 0, 1, pages, 512, size)).ljust(512, b"\0")
    end = (
        struct.pack(">I", 2**30 // size + 1)
        + name
        + struct.pack(">II", len(name), sum(name))
        + MAGIC
    )
    path.with_name(f"{path.name}-journal").write_bytes(header + end)


@pytest.mark.parametrize("name", ["run.sqlite", LOCK_NAME, SEATS])
def test_a_journal_deletes_no_other_file(run: Path, precious: Path, name: str) -> None:
    path = run / name
    if name != "run.sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE t (x)")
    journal(path, precious)
    opened: dict[str, Callable[[], object]] = {
        "run.sqlite": lambda: RunLog.open(run),
        LOCK_NAME: lambda: claim(run / "run.sqlite"),
    }
    with pytest.raises(RunLogError, match="would make SQLite delete another file"):
        opened.get(name, lambda: ParticipantStore(run))()
    assert precious.exists()
    # Without our check, the attack works.
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT * FROM sqlite_master").fetchall()
    assert not precious.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
def test_nobody_waits_for_a_fifo_beside_a_log(run: Path, suffix: str) -> None:
    os.mkfifo(run / f"run.sqlite{suffix}")
    for opened in (RunLog.open, RunLog.open_read_only):
        with pytest.raises(RunLogError, match="is not a plain file"):
            opened(run)
    (run / LOCK_NAME).touch()
    os.mkfifo(run / f"{LOCK_NAME}{suffix}")
    with pytest.raises(RunLogError, match="is not a plain file"):
        is_claimed(run / "run.sqlite")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.parametrize("writer", WRITERS)
def test_nobody_waits_for_a_fifo_to_write_to(run: Path, writer: str) -> None:
    name, write = WRITERS[writer]
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with pytest.raises(RunLogError, match=f"{name} is not a plain file"):
        write(run)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_no_command_waits_for_a_fifo_to_write_to(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, arguments in (
        ("report.html", ["report", "--html"]),
        ("export/trials.csv", ["export", "--csv"]),
    ):
        (run / name).parent.mkdir(exist_ok=True)
        os.mkfifo(run / name)
        assert main([arguments[0], str(run), *arguments[1:]]) == 2
        told = capsys.readouterr().err
        assert f"{name} is not a plain file" in told
        assert told.count("\n") == 1
        (run / name).unlink()


@pytest.mark.parametrize(
    "content", [b"no database", b"SQLite format 3\0" + bytes(4096)]
)
def test_a_lock_that_is_damaged_is_no_claim(run: Path, content: bytes) -> None:
    (run / LOCK_NAME).write_bytes(content)
    assert not is_claimed(run / "run.sqlite")
