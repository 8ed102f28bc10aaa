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
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    The file has the permissions of the file that it replaces; a new file gets its
    permissions from the umask. A symbolic link stays, and its target is replaced.
    Another name of the old file (a hard link) keeps the old content. A target that
    cannot be replaced, such as ``/dev/stdout`` or a file in a directory that is not
    writable, is written to directly.

    Raises:
        OSError: if the file cannot be written. The old content is then still there,
            unless the target was written to directly.
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
    """Make a temporary directory in ``parent`` (made if necessary), for files that are
    moved elsewhere when complete. It is removed at the end of the block.
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
    content: bytes,
) -> tuple[tuple[int, list[str]], Iterator[tuple[Sequence[int], list[list[str]]]]]:
    """Return the header of a CSV table (its line number and the column names), and an
    iterator over blocks of BLOCK rows. A block has the line numbers of its rows, and
    its cells as a list for each column.

    Cells are stripped of blanks, and have no invisible characters. Rows without content
    and empty cells beyond the last column are ignored, because spreadsheets leave them
    behind. A column without a name must be empty, except the first one, because pandas
    writes the index there. Raise TableError for anything else that is not a table.
    """
    _check_text(content)
    rows = _lines(content)
    line, names = next((one for one in rows if _has_content(one[1])), (1, []))
    header = [cell.strip() for cell in names]
    while header and not header[-1]:
        header.pop()
    _check_columns(line, header)
    return (line, header), _blocks(rows, header)


#: Invisible characters that editors leave behind: zero-width spaces, word joiners, byte
#: order marks, soft hyphens.
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u2060\ufeff\u00ad"))


def _check_text(content: bytes) -> None:
    """Raise TableError, with the place, for bytes that are not text."""
    try:
        content.decode()
        end = content.find(b"\0")
    except UnicodeDecodeError as error:
        end = error.start
    if end >= 0:
        lines = re.split(b"\r\n?|\n", content[:end])
        said = f"The file is not text in UTF-8 (byte 0x{content[end]:02x})."
        raise TableError(
            len(lines), lines[-1].count(b",") + 1, said, "Save it as text in UTF-8."
        )


#: Maximum number of characters of a row. In memory, its cells take up to thirty times
#: as many bytes.
LONGEST_ROW = 2**21
#: Messages of ``csv`` in plain words, each with its remedy.
_CSV_SAYS = {
    "unexpected end of data": ("a quote is never closed", "Close or remove it."),
    "',' expected after '\"'": (
        "there is text after a closing quote",
        "Write a quote within a quoted cell twice.",
    ),
    f"field larger than field limit ({csv.field_size_limit()})": (
        "a cell is too long (is a quote never closed?)",
        "Close the quote, or shorten the cell.",
    ),
}
#: Matches a valid cell and the comma after it.
_SOUND_CELL = re.compile(r' *(?:"(?:[^"]|"")*+"|[^",\r\n][^,\r\n]*+|),')


def _texts(content: bytes) -> Iterable[str]:
    """Return the lines of a file without invisible characters."""
    texts = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
    return texts if content.isascii() else (one.translate(_INVISIBLE) for one in texts)


def _lines(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table, each with the line in which it begins. Raise
    TableError for invalid CSV, and for a row that would fill the memory.
    """
    line, size = 1, 0

    def bounded() -> Iterator[str]:
        nonlocal size
        for text in _texts(content):
            size += len(text)
            if size > LONGEST_ROW:
                said = f"The row has more than {LONGEST_ROW:,} characters."
                raise TableError(line, 1, said, "Give each row a line of its own.")
            yield text

    reader = csv.reader(bounded(), skipinitialspace=True, strict=True)
    try:
        for cells in reader:
            yield line, cells
            line, size = reader.line_num + 1, 0
    except csv.Error as error:
        said, remedy = _CSV_SAYS.get(str(error), (str(error), ""))
        column, start = _broken_cell(content, line)
        said = f"This is not valid CSV: {said}, in {start!r}."
        raise TableError(line, column, said, remedy) from None


def _broken_cell(content: bytes, line: int) -> tuple[int, str]:
    """Return the number of the first cell from this line on that is not valid CSV, and
    how it begins.
    """
    rest = "".join(islice(_texts(content), line - 1, None))
    column, start, most = 1, 0, csv.field_size_limit()
    while (cell := _SOUND_CELL.match(rest, start)) and cell.end() - start <= most:
        column, start = column + 1, cell.end()
    return column, rest[start : start + 20]


def _blocks(
    rows: Iterator[tuple[int, list[str]]], header: Sequence[str]
) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    width = len(header)
    nameless = [n for n, name in enumerate(header) if n and not name]
    while block := [*islice(rows, BLOCK)]:
        lines, cells = zip(*block, strict=True)
        if {*map(len, cells)} == {width} and not nameless:
            columns = _stripped(cells)
            if all(map(any, zip(*columns, strict=True))):
                yield lines, columns
                continue
        if block := _sound(block, width, nameless):
            lines, cells = zip(*block, strict=True)
            yield lines, _stripped([row[:width] for row in cells])


def _sound(
    block: Sequence[tuple[int, list[str]]], width: int, nameless: Sequence[int]
) -> list[tuple[int, list[str]]]:
    """Return the rows that have content. Raise TableError for one that is invalid."""
    found = [one for one in block if _has_content(one[1])]
    for line, row in found:
        _check_width(line, row, width)
        _check_nameless(line, row, nameless)
    return found


def _stripped(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the columns of these rows, stripped of blanks."""
    return [[*map(str.strip, column)] for column in zip(*rows, strict=True)]


def _has_content(row: Sequence[str]) -> bool:
    return bool("".join(row).strip())


def _check_width(line: int, row: list[str], width: int) -> None:
    beyond = [n for n, cell in enumerate(row[width:], width) if cell.strip()]
    if len(row) >= width and not beyond:
        return
    shown, few = ",".join(row)[:60], len(row) < width
    raise TableError(
        line,
        len(row) + 1 if few else beyond[0] + 1,
        f"The row has {len(row)} cell{'s' * (len(row) != 1)}, but the first line names {width} column{'s' * (width != 1)}: "
        f"{shown!r}.",
        _how_to_divide(shown)
        if few
        else "Give each column one cell; write decimals with a point, or put the cell in quotes.",
    )


def _how_to_divide(row: str) -> str:
    """Return the remedy for a row with too few cells."""
    if row.startswith("#"):
        return "Remove the comment."
    return _not_by(row) or "Give each column one cell."


def _not_by(row: str) -> str:
    """Return the remedy for cells that are separated by another sign, or ""."""
    sign = re.search("[;\t|]", row)
    what = {";": "semicolons", "\t": "tabs", "|": "bars"}
    return f"Separate the cells by commas, not by {what[sign[0]]}." if sign else ""


def _check_nameless(line: int, row: Sequence[str], nameless: Sequence[int]) -> None:
    for n in nameless:
        if row[n].strip():
            said = f"The cell {row[n][:60]!r} is in a column without a name."
            raise TableError(
                line,
                n + 1,
                said,
                "Name the column in the first line, or empty the cell.",
            )


def _check_columns(line: int, names: list[str]) -> None:
    if not names:
        raise TableError(
            line,
            1,
            "The first line is empty.",
            "Name the columns there, with commas between them.",
        )
    if len(names) == 1 and (remedy := _not_by(names[0])):
        said = "The first line names only one column."
        raise TableError(line, 1, said, remedy)
    seen: dict[str, str] = {}
    for column, name in enumerate(names, 1):
        other = seen.get(name.casefold())
        seen[name.casefold()] = name
        if name and other is not None:
            what = f"There are two columns '{name[:60]}'."
            if other != name:
                what = f"The columns '{other[:60]}' and '{name[:60]}' differ only in capitals."
            raise TableError(line, column, what, "Rename one.")
