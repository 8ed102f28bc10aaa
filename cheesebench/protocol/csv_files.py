"""Reads the CSV files that a protocol names into the tree of the protocol, so that the
protocol's text and hash cover the data.

For security, a protocol can only name files in its own folder or below.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from cheesebench.diagnostics import Diagnostics, Position, listed
from cheesebench.errors import did_you_mean
from cheesebench.files import MISSING_CELLS, TableError, read_bytes, read_columns
from cheesebench.protocol import documents as doc
from cheesebench.redaction import quoted
from cheesebench.source import Node, real_path, scalar

#: Code of the errors about CSV files.
UNREADABLE = 225
#: ``MAX_COLUMNS`` limits the columns of a table, ``MAX_CELL`` the characters of a cell.
MAX_COLUMNS, MAX_CELL = 50, 100


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of CSV file. For findings it has a noun, an example of a file name, the
    remedy if the file is too large (``keep``) and the remedy if it has no rows
    (``add``). Files are limited in bytes and in rows.
    """

    noun: str
    example: str
    keep: str
    add: str
    most_bytes: int
    most_rows: int


TABLE = Kind(
    "table",
    "trials.csv",
    f"Keep at most {doc.MAX_ROWS} rows, and only the columns that become variables.",
    "Add a row under the names of the columns.",
    256 * 1024,
    doc.MAX_ROWS,
)


#: The number of a line of a table, and its cells.
_Line = tuple[int, Sequence[str]]


@dataclass(slots=True)
class _File:
    """A CSV file beside a protocol, and whether it is free of errors so far."""

    path: str
    content: bytes
    kind: Kind
    diagnostics: Diagnostics
    sound: bool = True

    def error(self, sentence: str, remedy: str, line: int, column: int = 1) -> None:
        self.sound = False
        place = Position(self.path, line, column)
        self.diagnostics.error(UNREADABLE, place, sentence, remedy)

    def rows(self) -> tuple[_Line, Iterator[_Line]]:
        """Return the line with the names of the columns, and the rows. Raise
        TableError if the file is not a table of this kind, possibly only while the rows
        are iterated.
        """
        header, blocks = read_columns(self.content)
        pairs = (
            zip(lines, zip(*columns, strict=True), strict=True)
            for lines, columns in blocks
        )
        return header, self._bounded(chain.from_iterable(pairs))

    def _bounded(self, rows: Iterable[_Line]) -> Iterator[_Line]:
        number, most = 0, self.kind.most_rows
        for number, (line, cells) in enumerate(rows, 1):
            if number > most:
                said = f"There are more than {most} rows."
                raise TableError(line, 1, said, self.kind.keep)
            yield line, cells
        if not number:
            raise TableError(1, 1, "The file has no rows.", self.kind.add)


def _read(
    node: Node, kind: Kind, diagnostics: Diagnostics, read: Callable[[_File], Node]
) -> Node | None:
    """Return the result of ``read`` for the CSV file that a node names. Report errors
    and return None if there are any.
    """
    name, place = str(node.value), node.position
    try:
        content = _content_of(name, real_path(Path(place.file)).parent, kind)
    except TableError as error:
        diagnostics.error(UNREADABLE, place, error.said, error.remedy)
        return None
    file = _File(str(Path(place.file).parent / name), content, kind, diagnostics)
    try:
        found = read(file)
    except TableError as error:
        file.error(error.said, error.remedy, error.line, error.column)
        return None
    return found if file.sound else None


def _content_of(name: str, folder: Path, kind: Kind) -> bytes:
    """Return the content of the CSV file ``name`` in a protocol's folder. Raise
    TableError if the name is invalid, or the file cannot be read or is too large.
    """
    what = f"The {kind.noun} '{name}'"
    try:
        path = real_path(folder / name)
    except (OSError, ValueError, RuntimeError):
        # The name may be too long or not be text, or its links may form a circle.
        path = folder
    is_inside = path.is_relative_to(folder) and not Path(name).is_absolute()
    if path.suffix != ".csv" or not is_inside:
        said = f"'{name}' is not a CSV file in the protocol's folder."
        remedy = f"Put it beside the protocol and give only its name, such as {kind.example}."
        raise TableError(1, 1, said, remedy)
    try:
        content = read_bytes(path, kind.most_bytes + 1)
    except OSError as error:
        files = (one for many in ("*.csv", "*/*.csv") for one in folder.glob(many))
        known = {str(one.relative_to(folder)) for one in files} - {name}
        said = f"{what} cannot be read: {error.strerror or 'it is not a file'}."
        hint = did_you_mean(name, sorted(known)).strip()
        raise TableError(1, 1, said, hint or "Put it beside the protocol.") from None
    if len(content) > kind.most_bytes:
        raise TableError(
            1, 1, f"{what} has more than {kind.most_bytes} bytes.", kind.keep
        )
    return content


def _with(node: Node, name: str, value: Node) -> Node:
    """Return the mapping ``node`` with ``value`` under ``name``."""
    assert isinstance(node.value, Mapping)
    return dataclasses.replace(node, value={**node.value, name: value})


def embed_tables(root: Node, diagnostics: Diagnostics) -> Node:
    """Return the tree with tables instead of the file names that draws have under
    ``of``. A file with an error is reported, and its name stays.
    """
    draws = root.child("draw")
    if draws is None or not isinstance(draws.value, Mapping):
        return root
    resolved = {
        name: _with_table(draw, diagnostics) for name, draw in draws.value.items()
    }
    return _with(root, "draw", dataclasses.replace(draws, value=resolved))


def _with_table(draw: Node, diagnostics: Diagnostics) -> Node:
    of = draw.child("of")
    if of is None or not isinstance(of.value, str):
        return draw
    table = _read(of, TABLE, diagnostics, _table)
    return draw if table is None else _with(draw, "of", table)


def _table(file: _File) -> Node:
    """Return a node that maps the name of each column to its cells."""
    (line, header), rows = file.rows()
    _check_names(line, header)
    columns: dict[str, list[Node]] = {name: [] for name in header if name}
    for line, cells in rows:
        for column, (name, cell) in enumerate(zip(header, cells, strict=True), 1):
            if name:
                place = Position(file.path, line, column)
                columns[name].append(_cell(file, place, name, cell))
    top = Position(file.path, 1, 1)
    return Node(
        {name: Node(cells, top) for name, cells in columns.items()},
        top,
        dict.fromkeys(columns, top),
    )


def _check_names(line: int, header: Sequence[str]) -> None:
    bad = next((name for name in header if name and not doc.is_name(name)), None)
    if bad is not None:
        said = f"'{bad:.60}' cannot be the name of a column."
        remedy = (
            "The first line must name the columns, with commas between the names. A name has letters, digits and _, and "
            "does not begin with a digit."
        )
        raise TableError(line, header.index(bad) + 1, said, remedy)
    if len(header) > MAX_COLUMNS:
        said = f"There are more than {MAX_COLUMNS} columns."
        raise TableError(line, 1, said, "Keep the columns that become variables.")


def _cell(file: _File, place: Position, name: str, cell: str) -> Node:
    """Return a cell, read in the same way as a value in a protocol. Report an empty or
    missing value, and a number that is not decimal, because tables from elsewhere mean
    something else by these than YAML does. Also report a value that is too long or
    cannot be printed.
    """
    if cell != "none" and cell.lower() in MISSING_CELLS | {"~"}:
        what = f"has '{cell}'" if cell else "is empty"
        said = f"The column '{name}' {what} in this line."
        remedy = "Write a number or, in a column of names, 'none' for no name."
        file.error(said, remedy, place.line, place.column)
        return Node(cell, place)
    if re.fullmatch("0[ox][0-9A-Fa-f]+", cell):
        said = f"The column '{name}' has the number '{cell}', which is not decimal."
        file.error(said, "Write a decimal number.", place.line, place.column)
    elif len(cell) > MAX_CELL or not cell.isprintable():
        what = (
            f"longer than {MAX_CELL} characters"
            if len(cell) > MAX_CELL
            else "not printable"
        )
        said = f"The column '{name}' has a value that is {what}."
        file.error(said, "Write a number, or a name.", place.line, place.column)
    return Node(scalar(cell, place, file.diagnostics), place)


#: The columns of a file of animals: ``COLUMNS`` for a pass rate, ``MEASURED`` for any
#: other measure. With ``counts``, the name of its measure replaces ``value``.
COLUMNS = ("animal", "session", "trials", "passed")
MEASURED = ("animal", "session", "value")
ANIMALS = Kind(
    "animal data file",
    "animals.csv",
    "Keep one row for each animal and session (with 'counts', for each trial).",
    "Add one row for each animal and session (with 'counts', for each trial).",
    1_000_000,
    10_000,
)
#: Maximum length, in characters, of an animal's name and of a number.
MAX_NAME = 100
#: The highest number that a row may have for a session, its trials, or trials passed.
MAX_NUMBER = 1_000_000

#: An animal, a session (from 1), how many trials the animal had in it, and how many of
#: them it passed. For a measure, the measure's value replaces the last two.
Row = tuple[str, int, int, int] | tuple[str, int, float]
#: A row with its position in the file.
_Placed = tuple[Row, Position]


def columns_of(measure: str) -> tuple[str, ...]:
    """Return the columns of the file of animals for a reference on ``measure``."""
    return COLUMNS if measure == "success" else MEASURED


def embed_animals(root: Node, diagnostics: Diagnostics) -> Node:
    """Return the tree with rows instead of the file names that references have under
    ``animals``. A file with an error is reported, and its name stays.
    """
    references = root.child("reference")
    if references is None or not isinstance(references.value, list | tuple):
        return root
    resolved = [_with_animals(reference, diagnostics) for reference in references.value]
    return _with(root, "reference", dataclasses.replace(references, value=resolved))


def _with_animals(reference: Node, diagnostics: Diagnostics) -> Node:
    animals = reference.child("animals")
    if animals is None or not isinstance(animals.value, str):
        return reference
    columns, most = _counted(reference)
    if not columns:
        return reference  # Mistakes in ``counts`` are reported elsewhere.
    only = reference.child("only")
    chosen = (
        only if only and isinstance(only.value, Mapping) else Node({}, animals.position)
    )
    place = animals.position

    def read(file: _File) -> Node:
        rows = _animals(file, columns, chosen)
        counted = rows if most is None else _passed(rows, most)
        return Node(
            [Node([Node(c, at) for c in row], at) for row, at in counted], place
        )

    node = _read(animals, ANIMALS, diagnostics, read)
    if node is None:
        return reference
    assert isinstance(reference.value, Mapping)
    kept = {key: value for key, value in reference.value.items() if key != "only"}
    return _with(dataclasses.replace(reference, value=kept), "animals", node)


def _counted(reference: Node) -> tuple[tuple[str, ...], float | None]:
    """Return the columns that a reference's file of animals must have and, with
    ``counts``, the largest value of a passed trial. Return no columns if ``counts`` is
    invalid.
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


def _animals(file: _File, columns: tuple[str, ...], only: Node) -> list[_Placed]:
    """Return the valid rows of a file of animals with their positions, and report the
    invalid rows. Only rows with the values in ``only`` (by column) count.
    """
    (line, header), rows = file.rows()
    where = _where(line, header, columns)
    groups = _Groups(file, header, only)
    found: dict[object, _Placed] = {}
    odd = _OddRows(file)
    for line, cells in rows:
        if not groups.counts(cells):
            continue
        given = [cells[n] for n in where]
        row = row_of(given, columns)
        key = row and (row[:2] if columns in SAID else line)
        if row is None:
            number, why = _first_wrong(given, columns)
            place = Position(file.path, line, where[number] + 1)
            wrong = f"'{quoted(','.join(cells), 100)}' is not a valid row{why}"
            odd.add(
                why.partition(" (")[2], place, wrong, _remedy_of_row(given, columns)
            )
        elif key in found:
            place = Position(file.path, line, where[1] + 1)
            twice = f"Session {row[1]} of '{row[0]}' appears twice"
            odd.add("twice", place, twice, file.kind.keep)
        else:
            found[key] = row, Position(file.path, line, where[-1] + 1)
    odd.report()
    if file.sound:
        groups.report()
    return list(found.values())


class _OddRows:
    """Collects invalid rows, so that a mistake in many rows is one finding."""

    def __init__(self, file: _File) -> None:
        self._file = file
        self._found: dict[str, list[tuple[Position, str, str]]] = {}

    def add(self, kind: str, place: Position, sentence: str, remedy: str) -> None:
        self._found.setdefault(kind, []).append((place, sentence, remedy))

    def report(self) -> None:
        """Report the first row with each mistake, and how many other rows have it."""
        for (place, sentence, remedy), *others in self._found.values():
            are = "is" if len(others) == 1 else "are"
            more = f", and {len(others)} more {are} like it" if others else ""
            self._file.error(f"{sentence}{more}.", remedy, place.line, place.column)


#: Names of columns that usually divide animals into groups, which should not be pooled.
_GROUPS = ("group", "genotype", "treatment", "condition", "lesion", "drug")


def _remedy_of_row(given: Sequence[str], columns: tuple[str, ...]) -> str:
    if any(cell.lower() in MISSING_CELLS for cell in given[2:]):
        return "Remove the row: a session that was not measured has no row."
    if columns == COLUMNS and _may_be_percent(given):
        return "If that is in percent, write how many trials passed: of 20 trials, 50 % are 10."
    return f"Write {SAID.get(columns, SAID[MEASURED])}."


def _may_be_percent(given: Sequence[str]) -> bool:
    """Return whether a row has more passes than trials, as if they were percent."""
    trials, passed = _whole(given[2]), _finite(given[3])
    return trials is not None and passed is not None and trials < passed <= 100


class _Groups:
    """Decides which rows of a file of animals count, and collects the groups of animals
    in these rows. ``only`` is the node of the values that rows must have, by column.
    """

    def __init__(self, file: _File, header: Sequence[str], only: Node) -> None:
        self._file, self._header, self._node = file, header, only
        self._only = {str(key): str(value) for key, value in only.plain().items()}
        self._found: dict[str, dict[str, None]] = {
            name: {}
            for name in header
            if name.lower() in _GROUPS and name not in self._only
        }
        #: The values that the table has in each column of ``only``, in order.
        self._values: dict[str, dict[str, None]] = {}
        for name in self._only:
            if name in header:
                self._values[name] = {}
            else:
                known = did_you_mean(name, header).strip()
                self._wrong(
                    only.key_position(name),
                    f"'{Path(file.path).name}' has no column '{name[:40]}'.",
                    known or f"Its columns are {listed(header)}.",
                )
        self._taken = 0

    def _wrong(self, place: Position, sentence: str, remedy: str) -> None:
        self._file.sound = False
        self._file.diagnostics.error(UNREADABLE, place, sentence[:200], remedy)

    def counts(self, cells: Sequence[str]) -> bool:
        """Return whether a row counts. Note its values and, if it counts, its
        groups.
        """
        given = {name: cells[self._header.index(name)] for name in self._values}
        for name, cell in given.items():
            self._values[name][cell] = None
        if any(cell != self._only[name] for name, cell in given.items()):
            return False
        self._taken += 1
        for name, found in self._found.items():
            found[cells[self._header.index(name)]] = None
        return True

    def report(self) -> None:
        """Report a file in which no row counts (225). Warn (332) of rows that are left
        out because of their spelling, and of several groups whose rows count.
        """
        if self._only and not self._taken:
            self._report_nothing()
        for name, values in self._values.items():
            self._report_spellings(name, self._only[name], values)
        for name, found in self._found.items():
            if len(found) > 1:
                groups = ", ".join(list(found)[:5])
                said = f"Animals of several groups are pooled ({name}: {groups[:100]})."
                one = next(iter(found))[:40]
                self._warn(said, f"Name the right group: 'only: {{{name}: {one}}}'.")

    def _report_spellings(self, name: str, meant: str, values: Iterable[str]) -> None:
        spelt = [one for one in values if one != meant and _alike(one, meant)]
        if spelt and meant in values:
            said = f"'{spelt[0][:40]}' and '{meant[:40]}' are two groups ({name}), and only '{meant[:40]}' counts."
            self._warn(said, "Spell the name of a group the same way in every row.")

    def _report_nothing(self) -> None:
        table = Path(self._file.path).name
        for name, values in self._values.items():
            if (meant := self._only[name]) not in values:
                known = did_you_mean(meant, values).strip()
                some = ", ".join(list(values)[:5])[:100]
                self._wrong(
                    self._node.find((name,)).position,
                    f"In '{table}', no row has {name}: {meant[:40]}.",
                    known or f"The column has {some}.",
                )
                return
        named = ", ".join(f"{name}: {value}" for name, value in self._only.items())
        self._wrong(
            self._node.position,
            f"In '{table}', no row has {named[:100]} together.",
            "Choose values that a row has.",
        )

    def _warn(self, sentence: str, remedy: str) -> None:
        place = Position(self._file.path, 1, 1)
        self._file.diagnostics.warning(332, place, sentence, remedy)


def _alike(one: str, other: str) -> bool:
    """Return whether two names differ only in case or spaces."""
    return "".join(one.split()).casefold() == "".join(other.split()).casefold()


#: Matches names of columns that probably have shares of trials.
_PER_HUNDRED = re.compile(r"%|perc|pct", re.IGNORECASE)
_PERCENT = re.compile(r"%|perc|pct|rate|share|accuracy|correct", re.IGNORECASE)


def _share_of(header: Sequence[str]) -> str:
    """Return the name of the first column that probably has shares of trials, or ""."""
    # A table of as many columns has numbers of trials, too, under another name.
    is_whole = len(header) >= len(COLUMNS)
    return next(filter((_PER_HUNDRED if is_whole else _PERCENT).search, header), "")


def _where(line: int, header: Sequence[str], columns: tuple[str, ...]) -> list[int]:
    """Return the indices of the columns in a header. Raise TableError if one of them is
    missing.
    """
    missing = [name for name in columns if name not in header]
    if missing:
        said = f"Missing column{'s' * (len(missing) > 1)}: {listed(missing)}."
        raise TableError(line, 1, said, _how_to_name(columns, header, missing))
    return [header.index(name) for name in columns]


def _how_to_name(
    columns: tuple[str, ...], header: Sequence[str], missing: list[str]
) -> str:
    if len(header) == 1 and all(name in header[0] for name in columns):
        return "Separate the cells by commas, not by blanks."
    share = _share_of(header)
    if share and columns[:4] == COLUMNS and {*missing} & {*COLUMNS[2:]}:
        return (
            f"'{share[:40]}' does not say of how many trials it is a share. Write how many trials there were and how many "
            "passed, or write 'value', 'sd' and 'n_animals' instead of 'animals'."
        )
    if {*missing} <= {name.lower() for name in header}:
        return f"Write the names in lower case: {','.join(columns)}."
    said = f"The first line must name the columns: {','.join(columns)}"
    return f"{said} (here: {','.join(header)[:80]})."


#: The cells of a row in words, by the columns of the file. Remedies contain them. A
#: measure under ``counts`` has the words for ``MEASURED``.
SAID = {
    COLUMNS: "the animal, the session (from 1), the trials (at least 1) and the trials passed",
    MEASURED: "the animal, the session (from 1) and the value, a number",
}


#: The numbers of a row, by column: whether they must be whole, and their minimum.
#: ``_COUNT`` has the same for a measure under ``counts``.
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
    if _first_wrong(cells, columns)[1]:
        return None
    animal, *given = cells
    session, *numbers = map(_number, columns[1:], given)
    return (str(animal), session, *numbers)  # type: ignore[return-value]  # the columns decide the length


def _first_wrong(cells: Sequence[object], columns: tuple[str, ...]) -> tuple[int, str]:
    """Return the index of the first invalid cell of a row, and why it is invalid, as
    the end of a sentence. The reason is "" if all cells are valid.
    """
    if why := _no_name(cells[0]):
        return 0, why
    for n, (name, cell) in enumerate(zip(columns[1:], cells[1:], strict=True), 1):
        whole, least = _NUMBERS.get(name, _COUNT)
        number = _number(name, cell)
        if number is None or number < least:
            shown = f": '{quoted(str(cell), 20)}' ({name}) is"
            if number is None:
                return n, f"{shown} {_no_number(str(cell), whole)}"
            count = (
                ", as no value under 'counts' can be (leave out what is missing)"
                * (not whole)
            )
            return n, f"{shown} below {least}{count}"
    if columns != COLUMNS:
        return 0, ""
    trials, passed = (_whole(cell) or 0 for cell in cells[2:])
    some = f"{trials} trial{'s' * (trials != 1)}"
    return 3, f": {passed} passed of {some}" if passed > trials else ""


def _no_name(animal: object) -> str:
    """Return why this cannot be the name of an animal, as the end of a sentence, or ""
    if it can.
    """
    name = str(animal)
    if not isinstance(animal, str | int) or name.lower() in MISSING_CELLS:
        return f": '{name[:20]}' (animal) is not a name"
    if len(name) > MAX_NAME:
        return f": the name (animal) has more than {MAX_NAME} characters"
    if not name.isprintable():
        return ": the name (animal) has a line break, or another character that cannot be printed"
    return ""


def _no_number(cell: str, whole: bool) -> str:
    if whole and re.fullmatch(r"0?\.\d+", cell):
        return "a share, not a whole number"
    if re.fullmatch(r"-[0-9.]+", cell):
        return "below 0"
    if whole and cell.isdecimal():
        return f"above {MAX_NUMBER}"
    return "not a whole number" if whole else "not a number"


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
    if isinstance(number, str) and (value := _finite(number)) is not None:
        number = int(value) if value.is_integer() else number
    whole = (
        isinstance(number, int)
        and not isinstance(number, bool)
        and 0 <= number <= MAX_NUMBER
    )
    return number if whole and isinstance(number, int) else None
