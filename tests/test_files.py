"""Tables as they are read, drafts that are removed, and bytes of regular files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from cheesebench.files import (
    BLOCK,
    LONGEST_ROW,
    TableError,
    draft_directory,
    read_bytes,
    read_columns,
    remove_drafts,
    strict_json,
    write_whole,
    written_whole,
)
from tests.stored import check_stored


def table(text: str | bytes) -> tuple[int, list[str], list[int], list[list[str]]]:
    """Return the header's line and names, the rows' lines, and the columns."""
    content = text.encode() if isinstance(text, str) else text
    (line, names), blocks = read_columns(content)
    lines, columns = list[int](), [list[str]() for _ in names]
    for numbers, cells in blocks:
        lines += numbers
        for column, more in zip(columns, cells, strict=True):
            column += more
    return line, names, lines, columns


def test_a_table_is_read_in_columns_with_the_lines_of_its_rows() -> None:
    assert table("a,b\n1,2\n3,4\n") == (1, ["a", "b"], [2, 3], [["1", "3"], ["2", "4"]])
    found = table('\ufeff\n ,\n a ,"b",,\n"x\ny", 2 \n\n , \n\u200b5\u00ad,6,,\n')
    assert found == (3, ["a", "b"], [4, 8], [["x\ny", "5"], ["2", "6"]])
    assert table(",b\n1,2\n") == (1, ["", "b"], [2], [["1"], ["2"]])
    assert table("a\n") == (1, ["a"], [], [[]])
    rows = "".join(f"{n},x\n" for n in range(2 * BLOCK + 1))
    _, _, lines, columns = table(f"a,b\n{rows}")
    assert lines == list(range(2, 2 * BLOCK + 3))
    assert columns[0] == [str(n) for n in range(2 * BLOCK + 1)]


#: What is no table.
NO_TABLES = (
    "", "\n , \n", "a;b\n", "a\tb\n", "a|b\n", "a,b,a\n", "\na,A\n", "a,b\n1\n", "a,b,c\n1,2\n", "a,b\n# x\n",
    "a,b\n1;2\n", "a,b\n1,2,,3\n", "a,,c\n1,,3\n1,x,3\n", 'a,b\n1,"2\n', 'a,b\n1,2\n"x"y,2\n',
    f"a,b\n1,{'x' * 140_000}\n", b"a,b\n1,2\n3,\xff\n", b"a,b\r\n1,\0\n",
)  # fmt: skip


def test_what_is_no_table_is_said_with_its_place() -> None:
    lines = []
    for text in NO_TABLES:
        with pytest.raises(TableError) as caught:
            table(text)
        lines += [f"{text[:30]!r}", f"  {caught.value}"]
    check_stored("no_tables.txt", "\n".join([*lines, ""]))


def test_a_row_without_end_is_refused() -> None:
    row = ",".join(["x" * 100_000] * 21)
    assert len(row) < LONGEST_ROW + 10**5
    with pytest.raises(
        TableError,
        match=r"line 2, column 1: The row has more than 2,097,152 characters. Give",
    ):
        table(f"a,b\n{row}\n")
    two = ",".join(["x" * 100_000] * 12)
    names = ",".join(f"c{n}" for n in range(12))
    assert table(f"{names}\n{two}\n{two}\n")[2] == [2, 3]


def test_only_old_drafts_are_removed(tmp_path: Path) -> None:
    name, other = f".{'0a' * 8}.draft", f".{'1b' * 8}.draft"
    (tmp_path / name).touch()
    (tmp_path / other / "sub").mkdir(parents=True)
    (tmp_path / ".mine.draft").touch()
    fresh = tmp_path / f".{'2c' * 8}.draft"
    fresh.touch()
    day = time.time() - 86_401
    for path in (name, other, ".mine.draft"):
        os.utime(tmp_path / path, (day, day))
    almost = time.time() - 86_000
    os.utime(fresh, (almost, almost))
    remove_drafts(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [fresh.name, ".mine.draft"]
    )
    (tmp_path / name).symlink_to(tmp_path)
    os.utime(tmp_path / name, (day, day), follow_symlinks=False)
    with draft_directory(tmp_path / "new") as draft:
        assert draft.is_dir()
        assert draft.stat().st_mode & 0o777 == 0o700
        (draft / "file").touch()
    assert list((tmp_path / "new").iterdir()) == []
    with draft_directory(tmp_path):
        assert not (tmp_path / name).is_symlink()
    assert fresh.exists()


def test_files_are_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, b"abcdef")
    assert read_bytes(path, 4) == b"abcd"
    write_whole(path, "äb")
    assert read_bytes(path, 9) == "äb".encode()
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        read_bytes(tmp_path, 4)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is not a file"):
        read_bytes(tmp_path / "pipe", 4)


def test_a_block_that_fails_leaves_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def fail() -> None:
        with written_whole(path) as file:
            file.write("half")
            assert len(list(tmp_path.glob(".*.draft"))) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    with written_whole(path, newline="") as file:
        file.write("new\r\n")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new\r\n"
    assert path.stat().st_mode & 0o777 == 0o640


def test_json_has_null_for_what_is_not_finite() -> None:
    found = strict_json(
        {1: [float("nan"), (float("inf"), 2.5)], "ä": {"x": -float("inf")}},
        sort_keys=True,
    )
    assert found == '{"1": [null, [null, 2.5]], "\\u00e4": {"x": null}}'
