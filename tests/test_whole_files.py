"""Files appear whole, in place of the old ones, with the permissions that their owner
wants.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cheesebench.files import read_bytes, write_whole, written_whole


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    fifo, file = tmp_path / "fifo", tmp_path / "file"
    os.mkfifo(fifo)
    file.write_bytes(b"abc")
    assert read_bytes(file, 2) == b"ab"
    for strange in (fifo, tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError):  # noqa: PT011
            read_bytes(strange, 2)


def permissions(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "new.md", "é")
    finally:
        os.umask(before)
    assert (tmp_path / "new.md").read_bytes() == "é".encode()
    assert permissions(tmp_path / "new.md") == 0o640


def test_an_old_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    path, other, link = (
        tmp_path / "report.md",
        tmp_path / "other.md",
        tmp_path / "link.md",
    )
    path.write_text("old")
    path.chmod(0o600)
    os.link(path, other)
    link.symlink_to(path.name)
    write_whole(link, "new")
    assert (path.read_text(), other.read_text()) == ("new", "old")
    assert link.is_symlink()
    assert permissions(path) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["link.md", "other.md", "report.md"]


def test_the_old_content_stays_where_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("old")

    def half() -> None:
        with written_whole(path) as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"bytes")
        assert os.read(reader, 100) == b"bytes"
    finally:
        os.close(reader)


@pytest.mark.parametrize("into", [">> told.txt", "| cat > told.txt"])
def test_standard_output_is_written_to(tmp_path: Path, into: str) -> None:
    code = (
        "from cheesebench.files import write_whole; write_whole('/dev/stdout', 'it\\n')"
    )
    command = f'({shlex.quote(sys.executable)} -c "{code}"; echo then) {into}'
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / "told.txt").read_text() == "it\nthen\n"
    assert os.listdir(tmp_path) == ["told.txt"]


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_whole(tmp_path / "missing" / "report.md", "text")
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, "text")
