"""Reads the CSV files that a protocol names into its tree, so that its text and its
hash contain the data.

For security, a protocol can only name files in its own folder.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cheesebench.diagnostics import Diagnostics, Position, listed
from cheesebench.errors import did_you_mean
from cheesebench.files import TableError, read_bytes, read_columns
from cheesebench.protocol import documents as doc
from cheesebench.source import Node, real_path, scalar

#: Code of all findings about such files.
UNREADABLE = 225
#: Maximum columns of a table, and characters of a cell.
MAX_COLUMNS, MAX_CELL = 50, 100


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of CSV file, for findings: noun, example of a name, size limit, and the
    remedy for a larger file.
    """

    noun: str
    example: str
    keep: str
    most_bytes: int


TABLE = Kind("table", "trials.csv", f"Keep at most {doc.MAX_ROWS} rows.", 256 * 1024)


def embed_tables(root: Node, diagnostics: Diagnostics) -> Node:
    """Return the tree, in which the table of each file named by a draw under ``of``
    replaces its name.
    """
    draws = root.child("draw")
    if draws is None or not isinstance(draws.value, Mapping):
        return root
    resolved = {
        name: _with_table(draw, diagnostics) for name, draw in draws.value.items()
    }
    if all(resolved[name] is draw for name, draw in draws.value.items()):
        return root
    assert isinstance(root.value, Mapping)
    return dataclasses.replace(
        root, value={**root.value, "draw": dataclasses.replace(draws, value=resolved)}
    )


def _with_table(draw: Node, diagnostics: Diagnostics) -> Node:
    of = draw.child("of") if isinstance(draw.value, Mapping) else None
    if of is None or not isinstance(of.value, str):
        return draw
    text = read_beside(of.value, of.position, TABLE, diagnostics)
    if text is None:
        return draw
    table = _table(text, str(Path(of.position.file).parent / of.value), diagnostics)
    assert isinstance(draw.value, Mapping)
    return (
        draw
        if table is None
        else dataclasses.replace(draw, value={**draw.value, "of": table})
    )


def read_beside(
    name: str, position: Position, kind: Kind, diagnostics: Diagnostics
) -> str | None:
    """Return the text of the CSV file ``name``, relative to the protocol that names it;
    None with errors.
    """
    folder = real_path(Path(position.file)).parent
    try:
        path = real_path(folder / name)
    except (OSError, ValueError, RuntimeError):
        # The name is too long, is not text, or leads into a circle of links.
        path = folder
    if (
        path.suffix != ".csv"
        or Path(name).is_absolute()
        or not path.is_relative_to(folder)
    ):
        sentence = f"'{name}' is not a CSV file in the protocol's folder."
        remedy = f"Put it beside the protocol and give only its name, such as {kind.example}."
        diagnostics.error(UNREADABLE, position, sentence, remedy)
        return None
    try:
        content = read_bytes(path, kind.most_bytes + 1)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why, hint = "it is not UTF-8", "Save it as text in UTF-8."
        if isinstance(error, OSError):
            files = (
                file for many in ("*.csv", "*/*.csv") for file in folder.glob(many)
            )
            known = {str(file.relative_to(folder)) for file in files} - {name}
            why = error.strerror or "it is not a file"
            hint = (
                did_you_mean(name, sorted(known)).strip()
                or "Put it beside the protocol."
            )
        diagnostics.error(
            UNREADABLE,
            position,
            f"The {kind.noun} '{name}' cannot be read: {why}.",
            hint,
        )
        return None
    if len(content) > kind.most_bytes:
        sentence = f"The {kind.noun} '{name}' has more than {kind.most_bytes} bytes."
        diagnostics.error(UNREADABLE, position, sentence, kind.keep)
        return None
    return text


def _table(text: str, file: str, diagnostics: Diagnostics) -> Node | None:
    """Return a mapping of columns to lists of cells with their positions; None with
    errors.
    """
    before = len(diagnostics.errors)
    columns: dict[str, list[Node]] = {}
    header: list[str] = []
    for number, (line, cells) in enumerate(_strict(text, file, diagnostics)):
        position = Position(file, line, 1)
        if number > doc.MAX_ROWS:
            diagnostics.error(
                UNREADABLE,
                position,
                f"There are more than {doc.MAX_ROWS} rows.",
                TABLE.keep,
            )
            return None
        if not number:
            header, columns = cells, {name: [] for name in cells}
            if not _check_header(header, position, diagnostics):
                return None
            continue
        for node, column in zip(
            _cells(cells, header, position, diagnostics), header, strict=True
        ):
            columns[column].append(node)
    top = Position(file, 1, 1)
    if len(diagnostics.errors) == before and not any(columns.values()):
        sentence, remedy = (
            "The file has no rows.",
            "Add one under the names of the columns.",
        )
        diagnostics.error(UNREADABLE, top, sentence, remedy)
    if len(diagnostics.errors) > before:
        return None
    return Node(
        {name: Node(cells, top) for name, cells in columns.items()},
        top,
        dict.fromkeys(columns, top),
    )


def _strict(
    text: str, file: str, diagnostics: Diagnostics
) -> Iterator[tuple[int, list[str]]]:
    """Yield header and rows of a table with their line numbers. Text that is not a
    table is an error at its line.
    """
    try:
        header, blocks = read_columns(text)
        yield header
        for lines, columns in blocks:
            yield from zip(lines, map(list, zip(*columns, strict=True)), strict=True)
    except TableError as error:
        where = Position(file, error.line, error.column)
        diagnostics.error(UNREADABLE, where, error.said, error.remedy)


def _check_header(
    header: list[str], position: Position, diagnostics: Diagnostics
) -> bool:
    bad = next((name for name in header if not doc.is_name(name)), None)
    if not header or bad is not None:
        sentence = (
            "The first line is empty."
            if not header
            else f"'{bad:.60}' cannot be the name of a column."
        )
        remedy = "The first line names the columns, with commas between them: letters, digits and _."
    elif len(header) > MAX_COLUMNS:
        sentence, remedy = (
            f"There are more than {MAX_COLUMNS} columns.",
            "Keep those that become variables.",
        )
    else:
        return True
    diagnostics.error(UNREADABLE, position, sentence, remedy)
    return False


def _cells(
    cells: list[str], header: list[str], position: Position, diagnostics: Diagnostics
) -> Iterator[Node]:
    """Yield the cells of a row, read like values of a protocol."""
    for name, cell in zip(header, map(str.strip, cells), strict=True):
        if not cell:
            diagnostics.error(
                UNREADABLE,
                position,
                f"The cell of '{name}' is empty.",
                "Write 'none' for no value.",
            )
        elif len(cell) > MAX_CELL or not cell.isprintable():
            sentence = f"The cell of '{name}' is longer than {MAX_CELL} letters, or cannot be printed."
            diagnostics.error(
                UNREADABLE, position, sentence, "Write a number, or a name."
            )
        yield Node(scalar(cell, position, diagnostics), position)


#: Columns of the animals for a pass rate; then for any other measure.
COLUMNS = ("animal", "session", "trials", "passed")
MEASURED = ("animal", "session", "value")
#: Maximum size of a file in bytes, and maximum number of its rows.
MAX_BYTES, MAX_ANIMAL_ROWS = 1_000_000, 10_000
ANIMALS = Kind(
    "animal data file",
    "animals.csv",
    "Keep one row for each animal and session.",
    MAX_BYTES,
)
#: Longest name of an animal.
MAX_NAME = 100
#: Largest number of trials in a row, and of a session.
MAX_NUMBER = 1_000_000

#: An animal, a session (from 1), its trials in the session and the trials passed; for a
#: measure, its value instead of the last two.
Row = tuple[str, int, int, int] | tuple[str, int, float]
#: A row with its position in the file.
_Placed = tuple[Row, Position]


def columns_of(measure: str) -> tuple[str, ...]:
    """Return the columns of the animals behind a reference on ``measure``."""
    return COLUMNS if measure == "success" else MEASURED


def embed_animals(root: Node, diagnostics: Diagnostics) -> Node:
    """Return the tree, in which the rows of each file named by a reference replace its
    name.
    """
    references = root.child("reference")
    if references is None or not isinstance(references.value, list | tuple):
        return root
    resolved = [_with_animals(reference, diagnostics) for reference in references.value]
    if resolved == references.value:
        return root
    assert isinstance(root.value, Mapping)
    return dataclasses.replace(
        root,
        value={
            **root.value,
            "reference": dataclasses.replace(references, value=resolved),
        },
    )


def _with_animals(reference: Node, diagnostics: Diagnostics) -> Node:
    animals = reference.child("animals")
    if animals is None or not isinstance(animals.value, str):
        return reference
    columns, most = _counted(reference)
    if not columns:
        return reference  # the missing measure is reported elsewhere
    only = reference.child("only")
    chosen = {} if only is None else only.plain()
    rows = read_animals(
        animals.value,
        animals.position,
        columns,
        diagnostics,
        chosen if isinstance(chosen, Mapping) else {},
    )
    if rows is None:
        return reference
    node = Node(
        [
            Node([Node(cell, place) for cell in row], place)
            for row, place in (rows if most is None else _passed(rows, most))
        ],
        animals.position,
    )
    assert isinstance(reference.value, Mapping)
    kept = {key: value for key, value in reference.value.items() if key != "only"}
    return dataclasses.replace(reference, value={**kept, "animals": node})


def _counted(reference: Node) -> tuple[tuple[str, ...], float | None]:
    """Return the columns of a reference's animals, and, if trials are counted, the
    largest value that passes. There are no columns if the reference makes no sense.
    """
    measure, counts = reference.child("measure"), reference.child("counts")
    columns = columns_of("success" if measure is None else str(measure.value))
    if counts is None:
        return columns, None
    counted, limit = counts.child("measure"), counts.child("at_most")
    most = None if limit is None else _finite(limit.value)
    if counted is None or most is None or columns != COLUMNS:
        return (), None
    return (*MEASURED[:2], str(counted.value)), most


def _passed(trials: Iterable[_Placed], most: float) -> list[_Placed]:
    found: dict[tuple[str, int], list[bool]] = {}
    places: dict[tuple[str, int], Position] = {}
    for (animal, session, value, *_), place in trials:
        found.setdefault((animal, session), []).append(value <= most)
        places.setdefault((animal, session), place)
    return [
        ((*key, len(passed), sum(passed)), places[key]) for key, passed in found.items()
    ]


def read_animals(
    name: str,
    position: Position,
    columns: tuple[str, ...],
    diagnostics: Diagnostics,
    only: Mapping[str, object] | None = None,
) -> list[_Placed] | None:
    """Return the rows of the file ``name``, relative to the protocol that names it,
    with their positions; None with errors (225).

    ``only`` has the values that other columns must have in rows that count.
    """
    text = read_beside(name, position, ANIMALS, diagnostics)
    if text is None:
        return None
    before = len(diagnostics.errors)
    rows = list(
        _rows(
            text,
            str(Path(position.file).parent / name),
            columns,
            diagnostics,
            only or {},
        )
    )
    return rows if len(diagnostics.errors) == before else None


def _rows(
    text: str,
    file: str,
    columns: tuple[str, ...],
    diagnostics: Diagnostics,
    only: Mapping[str, object],
) -> Iterator[_Placed]:
    lines = _strict(text, file, diagnostics)
    before = len(diagnostics.errors)
    _, header = next(lines, (0, []))
    where = _where(header, (*columns, *only), file, diagnostics)
    groups = _Groups(header, only)
    if len(diagnostics.errors) > before or where is None:
        return
    seen: set[tuple[str, int]] = set()
    number = 0
    keep = "Keep one row for each animal and session."
    for number, (line, cells) in enumerate(lines, 1):
        position = Position(file, line, 1)
        if number > MAX_ANIMAL_ROWS:
            sentence = f"There are more than {MAX_ANIMAL_ROWS} rows."
            diagnostics.error(UNREADABLE, position, sentence, keep)
            return
        if not groups.counts(cells):
            continue
        given = [cells[n] for n in where[: len(columns)]]
        row = row_of(given, columns)
        if row is None:
            wrong = f"'{','.join(cells)[:100]}' is not a valid row{why_not(given, columns)}."
            remedy = f"Write {SAID.get(columns, SAID[MEASURED])}."
            diagnostics.error(UNREADABLE, position, wrong, remedy)
        elif row[:2] in seen and columns in SAID:
            sentence = f"Session {row[1]} of '{row[0]}' appears twice."
            diagnostics.error(UNREADABLE, position, sentence, keep)
        else:
            seen.add(row[:2])
            yield row, position
    if len(diagnostics.errors) == before:
        groups.report(Position(file, 1, 1), diagnostics, empty=not number)


#: Columns that distinguish animals which should not be pooled.
_GROUPS = ("group", "genotype", "treatment", "condition", "lesion", "drug")


class _Groups:
    """The rows of a table that count, and its groups."""

    def __init__(self, header: list[str], only: Mapping[str, object]) -> None:
        self._only = {
            header.index(name): str(value)
            for name, value in only.items()
            if name in header
        }
        self._found: dict[str, dict[str, None]] = {
            name: {} for name in header if name.lower() in _GROUPS and name not in only
        }
        self._header = header
        self._taken = 0

    def counts(self, cells: list[str]) -> bool:
        """Return whether a row counts."""
        if any(cells[n] != value for n, value in self._only.items()):
            return False
        self._taken += 1
        for name, found in self._found.items():
            found[cells[self._header.index(name)]] = None
        return True

    def report(self, top: Position, diagnostics: Diagnostics, *, empty: bool) -> None:
        """Report that no row counts (225), or that rows of several groups do (332)."""
        if empty:
            remedy = "Add one row for each animal and session."
            diagnostics.error(UNREADABLE, top, "The file has no rows.", remedy)
        elif self._only and not self._taken:
            named = ", ".join(
                f"{self._header[n]}: {value}" for n, value in self._only.items()
            )
            diagnostics.error(
                UNREADABLE,
                top,
                f"No row has {named[:100]}.",
                "Write a value that the table has.",
            )
        for name, found in self._found.items():
            if len(found) > 1:
                groups = ", ".join(list(found)[:5])
                sentence = (
                    f"Animals of several groups are pooled ({name}: {groups[:100]})."
                )
                remedy = f"Name the one that is meant: only: {{{name}: {next(iter(found))[:40]}}}."
                diagnostics.warning(332, top, sentence, remedy)


def _where(
    header: list[str], columns: tuple[str, ...], file: str, diagnostics: Diagnostics
) -> list[int] | None:
    """Return the index of each column in a header; None with errors."""
    if not header:
        return None
    missing = [name for name in columns if name not in header]
    if not missing:
        return [header.index(name) for name in columns]
    sentence = f"There is no column {listed(missing)}."
    remedy = _how_to_name(columns, header, missing)
    diagnostics.error(UNREADABLE, Position(file, 1, 1), sentence, remedy)
    return None


def _how_to_name(
    columns: tuple[str, ...], header: list[str], missing: list[str]
) -> str:
    if len(header) == 1 and all(name in header[0] for name in columns):
        return "Separate the cells by commas, not by blanks."
    if {*missing} <= {name.lower() for name in header}:
        return f"Write the names in lower case: {','.join(columns)}."
    return f"The first line names the columns: {','.join(columns)}."


#: The cells of a row, for a remedy.
SAID = {
    COLUMNS: "the animal, the session (from 1), the trials (at least 1) and the trials passed",
    MEASURED: "the animal, the session (from 1) and its value, a number",
}


#: Numbers of a row by column: description, whether they are whole, and their minimum.
#: Those of a counting measure are never below 0.
_NUMBERS = {
    "session": (True, 1),
    "trials": (True, 1),
    "passed": (True, 0),
    "value": (False, -math.inf),
}
_COUNT = (False, 0)


def row_of(cells: object, columns: tuple[str, ...]) -> Row | None:
    if not isinstance(cells, list | tuple) or len(cells) != len(columns):
        return None
    animal, *given = cells
    name = str(animal)
    if not isinstance(animal, str | int) or not 0 < len(name) <= MAX_NAME:
        return None
    if not name.isprintable() or why_not(cells, columns):
        return None
    session, *numbers = map(_number, columns[1:], given)
    return (name, session, *numbers)  # type: ignore[return-value]  # by the columns


def why_not(cells: Sequence[object], columns: tuple[str, ...]) -> str:
    """Return why the first invalid number of a row is invalid, as the end of a
    sentence; empty if all are valid.
    """
    for name, cell in zip(columns[1:], cells[1:], strict=True):
        whole, least = _NUMBERS.get(name, _COUNT)
        number, shown = _number(name, cell), f": '{str(cell)[:20]}' ({name}) is"
        if number is None:
            return f"{shown} {_no_number(str(cell), whole)}"
        if number < least:
            count = ", as no count is (leave out what is missing)" * (not whole)
            return f"{shown} below {least}{count}"
    if columns != COLUMNS:
        return ""
    trials, passed = (_whole(cell) or 0 for cell in cells[2:])
    return f": {passed} passed of {trials} trials" if passed > trials else ""


def _no_number(cell: str, whole: bool) -> str:
    if whole and re.fullmatch(r"0?\.\d+", cell):
        return "a share, not a whole number"
    return "no whole number" if whole else "not a number"


def _number(column: str, cell: object) -> float | None:
    whole, _ = _NUMBERS.get(column, _COUNT)
    return _whole(cell) if whole else _finite(cell)


def _finite(number: object) -> float | None:
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float | str)
        or len(str(number)) > MAX_NAME
        or not str(number).isascii()
    ):
        return None
    try:
        value = math.nan if "_" in str(number) else float(number)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _whole(number: object) -> int | None:
    # pandas writes whole numbers as 1.0 if any value of their column is missing.
    if isinstance(number, str) and re.fullmatch(r"[0-9]{1,7}(\.0{1,9})?", number):
        number = int(number.partition(".")[0])
    whole = (
        isinstance(number, int)
        and not isinstance(number, bool)
        and 0 <= number <= MAX_NUMBER
    )
    return number if whole and isinstance(number, int) else None
