"""Reading and writing files: strict JSON, files that appear only when complete, and CSV
tables.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """Return at most ``most`` bytes of a file.

    Raises:
        OSError: also if the file is not a regular file, because reading it could block
            forever.
        ValueError: if the file name is invalid.
    """
    with open(
        os.open(
            path,
            os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0),
        ),
        "rb",
    ) as file:
        mode = os.fstat(file.fileno()).st_mode
        data: bytes | None = file.read(most) if stat.S_ISREG(mode) else None
    if data is None:
        raise (
            OSError(errno.EISDIR, "Is a directory")
            if stat.S_ISDIR(mode)
            else OSError(errno.EINVAL, "it is not a file")
        )
    return data


def strict_json(value: object, **how: Any) -> str:
    """Return ``value`` as ASCII JSON, with null for numbers that are not finite.
    ``how`` has arguments for ``json.dumps``.
    """
    return json.dumps(_finite(value), allow_nan=False, **how)


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return (
        [_finite(item) for item in value] if isinstance(value, list | tuple) else value
    )


@contextmanager
def written_whole(
    path: str | os.PathLike[str], mode: str = "w", **how: Any
) -> Iterator[IO[Any]]:
    """Open a file for writing, as UTF-8 unless ``mode`` is ``"wb"``. It appears at
    ``path`` when the block is left.

    The file has the permissions of the file that it replaces; a new one has those that
    the umask gives. A symbolic link stays, and its target is replaced. Another name of
    the old file (a hard link) keeps the old content. A target that cannot be replaced,
    such as ``/dev/stdout`` or a file in a directory that is not writable, is written
    to directly.

    Raises:
        OSError: if the file cannot be written. The old content is then still there.
    """
    how = {"encoding": None if "b" in mode else "utf-8", **how}
    target = Path(os.path.realpath(path))
    old = Path(path).stat().st_mode if Path(path).exists() else None
    # /dev/stdout is written to directly, even if it leads to a file.
    stands_for_another = os.path.abspath(path).startswith(("/dev/", "/proc/"))
    writable = os.access(target, os.W_OK) and os.access(target.parent, os.W_OK)
    if stands_for_another or (old is not None and not (stat.S_ISREG(old) and writable)):
        with Path(path).open(mode, **how) as file:
            yield file
        return
    draft = target.with_name(f".{secrets.token_hex(8)}.draft")
    try:
        with draft.open(mode.replace("w", "x"), **how) as file:
            if old is not None:
                draft.chmod(stat.S_IMODE(old))
            yield file
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


#: Age in seconds from which a draft counts as left behind by a killed process.
_LEFT_BEHIND = 86_400.0


def remove_drafts(directory: Path) -> None:
    """Remove the drafts in a directory that have not been written to for a day."""
    for path in directory.glob(".*.draft"):
        with suppress(OSError):
            stale = path.lstat().st_mtime < time.time() - _LEFT_BEHIND
            if not stale or not re.fullmatch(r"\.[0-9a-f]{16}\.draft", path.name):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


@contextmanager
def draft_directory(parent: Path) -> Iterator[Path]:
    """Make a temporary directory, for files that are moved elsewhere when complete. It
    is removed at the end of the block.
    """
    parent.mkdir(parents=True, exist_ok=True)
    remove_drafts(parent)
    draft = parent / f".{secrets.token_hex(8)}.draft"
    draft.mkdir(mode=0o700)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    with written_whole(path, "w" if isinstance(content, str) else "wb") as file:
        file.write(content)


#: How spreadsheets, R and pandas write a missing value, in lower case.
MISSING_CELLS = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "none", "null"))
#: Number of a table's rows that are read at once.
BLOCK = 300


class TableError(ValueError):
    """A table cannot be read: where, why, and a remedy (may be empty)."""

    def __init__(self, line: int, column: int, said: str, remedy: str = "") -> None:
        super().__init__(f"line {line}, column {column}: {said} {remedy}".rstrip())
        self.line, self.column, self.said, self.remedy = line, column, said, remedy


def read_columns(
    text: str,
) -> tuple[tuple[int, list[str]], Iterator[tuple[Sequence[int], list[list[str]]]]]:
    """Return the header of a CSV table (its line number and the column names), and an
    iterator over blocks of BLOCK rows. A block has the line numbers of its rows, and
    its cells as a list for each column.

    Cells are stripped of blanks. Spreadsheets leave rows without content, and empty
    cells beyond the last column; they are ignored. Raises TableError for anything else
    that is not a table.
    """
    rows = _lines(text)
    names = next((one for one in rows if _has_content(one[1])), (1, []))
    header = [cell.strip() for cell in names[1]]
    _check_columns(header)
    return (names[0], header), _blocks(rows, len(header))


#: Plain words for messages of ``csv``.
_CSV_SAYS = {
    "unexpected end of data": "a quote is never closed",
    f"field larger than field limit ({csv.field_size_limit()})": "a cell is too long (is a quote never closed?)",
}


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table, each with the line in which it begins."""
    reader, line = (
        csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True),
        1,
    )
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        said = _CSV_SAYS.get(str(error), str(error))
        raise TableError(line, 1, f"This is not valid CSV: {said}.") from None


def _blocks(
    rows: Iterator[tuple[int, list[str]]], width: int
) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    while block := [*islice(rows, BLOCK)]:
        lines, cells = zip(*block, strict=True)
        if {*map(len, cells)} == {width}:
            columns = _stripped(cells)
            if all(map(any, zip(*columns, strict=True))):
                yield lines, columns
                continue
        block = [one for one in block if _has_content(one[1])]
        for line, row in block:
            _check_width(line, row, width)
        if block:
            lines, cells = zip(*block, strict=True)
            yield lines, _stripped([row[:width] for row in cells])


def _stripped(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the columns of these rows, stripped of blanks."""
    return [[*map(str.strip, column)] for column in zip(*rows, strict=True)]


def _has_content(row: Sequence[str]) -> bool:
    return bool("".join(row).strip())


def _check_width(line: int, row: list[str], width: int) -> None:
    if len(row) < width or any(map(str.strip, row[width:])):
        raise TableError(
            line,
            min(len(row), width) + 1,
            f"The row has {len(row)} cells, but the first line names {width} columns.",
            "Give each column one cell; write decimals with a point, or put the cell in quotes.",
        )


def _check_columns(names: list[str]) -> None:
    if not any(names):
        raise TableError(
            1,
            1,
            "The first line is empty.",
            "Name the columns there, with commas between them.",
        )
    if len(names) == 1 and (sign := re.search("[;\t]", names[0])):
        what = "semicolons" if sign[0] == ";" else "tabs"
        said = "The first line names only one column."
        raise TableError(1, 1, said, f"Separate the cells by commas, not by {what}.")
    seen: set[str] = set()
    for column, name in enumerate(names, 1):
        if name in seen:
            said = f"There are two columns '{name[:60]}'."
            raise TableError(1, column, said, "Rename one.")
        seen |= {name} - {""}
