"""CSV files that a protocol names: they are read into its tree, so that its text and its hash contain the data.

For security, a protocol can only name files in its own folder.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cheesebench.errors import did_you_mean
from cheesebench.protocol.diagnostics import Diagnostics, Position
from cheesebench.protocol.draw_documents import MAX_ROWS
from cheesebench.protocol.source import Node, real_path, scalar
from cheesebench.protocol.values import is_name

#: Code of all findings about such files.
UNREADABLE = 225
#: Most columns of a table, and most letters of a cell.
MAX_COLUMNS, MAX_CELL = 50, 100


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file is to a protocol, in findings: noun, an example of a name, the remedy if it has too many bytes."""

    noun: str
    example: str
    keep: str
    most_bytes: int


TABLE = Kind("table", "trials.csv", f"Keep at most {MAX_ROWS} rows.", 256 * 1024)


def embed_tables(root: Node, diagnostics: Diagnostics) -> Node:
    """Return the tree with the table of each file that a draw names under ``of`` in place of its name."""
    draws = root.child("draw")
    if draws is None or not isinstance(draws.value, Mapping):
        return root
    resolved = {name: _embedded(draw, diagnostics) for name, draw in draws.value.items()}
    if all(resolved[name] is draw for name, draw in draws.value.items()):
        return root
    assert isinstance(root.value, Mapping)
    return dataclasses.replace(root, value={**root.value, "draw": dataclasses.replace(draws, value=resolved)})


def _embedded(draw: Node, diagnostics: Diagnostics) -> Node:
    of = draw.child("of") if isinstance(draw.value, Mapping) else None
    if of is None or not isinstance(of.value, str):
        return draw
    text = read_beside(of.value, of.position, TABLE, diagnostics)
    if text is None:
        return draw
    table = _table(text, str(Path(of.position.file).parent / of.value), diagnostics)
    assert isinstance(draw.value, Mapping)
    return draw if table is None else dataclasses.replace(draw, value={**draw.value, "of": table})


def read_beside(name: str, position: Position, kind: Kind, diagnostics: Diagnostics) -> str | None:
    """Return the text of the CSV file ``name``, relative to the protocol in which it stands; None with errors."""
    folder = real_path(Path(position.file)).parent
    try:
        path = real_path(folder / name)
    except (OSError, ValueError, RuntimeError):  # too long, no text, or a circle of links
        path = folder
    if path.suffix != ".csv" or Path(name).is_absolute() or not path.is_relative_to(folder):
        sentence = f"'{name}' is not a CSV file in the protocol's folder."
        remedy = f"Put it beside the protocol and give only its name, such as {kind.example}."
        diagnostics.error(UNREADABLE, position, sentence, remedy)
        return None
    try:
        if path.exists() and not path.is_file():
            raise OSError(0, "it is not a file")
        with path.open("rb") as file:
            content = file.read(kind.most_bytes + 1)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why, hint = "it is not UTF-8", "Save it as text in UTF-8."
        if isinstance(error, OSError):
            files = (file for many in ("*.csv", "*/*.csv") for file in folder.glob(many))
            known = {str(file.relative_to(folder)) for file in files} - {name}
            why = error.strerror or "it is not a file"
            hint = did_you_mean(name, sorted(known)).strip() or "Put it beside the protocol."
        diagnostics.error(UNREADABLE, position, f"The {kind.noun} '{name}' cannot be read: {why}.", hint)
        return None
    if len(content) > kind.most_bytes:
        sentence = f"The {kind.noun} '{name}' has more than {kind.most_bytes} bytes."
        diagnostics.error(UNREADABLE, position, sentence, kind.keep)
        return None
    return text


def _table(text: str, file: str, diagnostics: Diagnostics) -> Node | None:
    """Return a mapping of columns to lists of their cells, each where it stands in the file; None with errors."""
    before = len(diagnostics.errors)
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    columns: dict[str, list[Node]] = {}
    try:
        header = [name.strip() for name in next(reader, [])]
        columns = {name: [] for name in header}
        if not _check_header(header, Position(file, 1, 1), diagnostics):
            return None
        for number, cells in enumerate(filter(None, reader), 1):
            position = Position(file, reader.line_num, 1)
            if number > MAX_ROWS:
                diagnostics.error(UNREADABLE, position, f"There are more than {MAX_ROWS} rows.", TABLE.keep)
                return None
            if len(cells) != len(header):
                sentence = f"The row has {len(cells)} cells, and the first line names {len(header)} columns."
                diagnostics.error(UNREADABLE, position, sentence, "Give each column one cell.")
                continue
            for node, column in zip(_cells(cells, header, position, diagnostics), header, strict=True):
                columns[column].append(node)
    except csv.Error as error:
        diagnostics.error(UNREADABLE, Position(file, reader.line_num, 1), f"This is not valid CSV: {error}.", "")
    top = Position(file, 1, 1)
    if len(diagnostics.errors) == before and not any(columns.values()):
        diagnostics.error(UNREADABLE, top, "The file has no rows.", "Add one under the names of the columns.")
    if len(diagnostics.errors) > before:
        return None
    return Node({name: Node(cells, top) for name, cells in columns.items()}, top, dict.fromkeys(columns, top))


def _check_header(header: list[str], position: Position, diagnostics: Diagnostics) -> bool:
    bad = next((name for name in header if not is_name(name)), None)
    if not header or bad is not None:
        sentence = "The first line is empty." if not header else f"'{bad:.60}' cannot be the name of a column."
        remedy = "The first line names the columns, with commas between them: letters, digits and _."
    elif len({*header}) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        sentence, remedy = f"There are two columns '{twice}'.", "Rename one."
    elif len(header) > MAX_COLUMNS:
        sentence, remedy = f"There are more than {MAX_COLUMNS} columns.", "Keep those that become variables."
    else:
        return True
    diagnostics.error(UNREADABLE, position, sentence, remedy)
    return False


def _cells(cells: list[str], header: list[str], position: Position, diagnostics: Diagnostics) -> Iterator[Node]:
    """Yield the cells of a row, read as the values of a protocol are."""
    for name, cell in zip(header, map(str.strip, cells), strict=True):
        if not cell:
            diagnostics.error(UNREADABLE, position, f"The cell of '{name}' is empty.", "Write 'none' for no value.")
        elif len(cell) > MAX_CELL or not cell.isprintable():
            sentence = f"The cell of '{name}' is longer than {MAX_CELL} letters, or cannot be printed."
            diagnostics.error(UNREADABLE, position, sentence, "Write a number, or a name.")
        yield Node(scalar(cell, position, diagnostics), position)
