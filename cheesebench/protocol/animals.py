"""Reads a CSV file of animals beside a protocol into its tree, so that the protocol's text contains the data.

The file has one row for each animal and session, with the columns ``animal,session,trials,passed``; further columns
are ignored.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from cheesebench.protocol.csv_files import Kind, read_beside
from cheesebench.protocol.diagnostics import Diagnostics, Position, listed
from cheesebench.protocol.source import Node

COLUMNS = ("animal", "session", "trials", "passed")
#: Largest file, in bytes, and most rows.
MAX_BYTES, MAX_ROWS = 1_000_000, 10_000
ANIMALS = Kind("animal data file", "animals.csv", "Keep one row for each animal and session.", MAX_BYTES)
#: Longest name of an animal.
MAX_NAME = 100
#: Largest number of trials in a row, and of a session.
MAX_NUMBER = 1_000_000

#: An animal, a session (from 1), trials of the animal in it, and how many of those it passed.
Row = tuple[str, int, int, int]


def embed_animals(root: Node, diagnostics: Diagnostics) -> Node:
    """Return the tree with the rows of each file that a reference names in place of its name."""
    references = root.child("reference")
    if references is None or not isinstance(references.value, list | tuple):
        return root
    resolved = [_embedded(reference, diagnostics) for reference in references.value]
    if resolved == references.value:
        return root
    assert isinstance(root.value, Mapping)
    return dataclasses.replace(root, value={**root.value, "reference": dataclasses.replace(references, value=resolved)})


def _embedded(reference: Node, diagnostics: Diagnostics) -> Node:
    animals = reference.child("animals")
    if animals is None or not isinstance(animals.value, str):
        return reference
    assert isinstance(reference.value, Mapping)
    rows = read_animals(animals.value, animals.position, diagnostics)
    if rows is None:
        return reference
    position = animals.position
    node = Node([Node([Node(cell, position) for cell in row], position) for row in rows], position)
    return dataclasses.replace(reference, value={**reference.value, "animals": node})


def read_animals(name: str, position: Position, diagnostics: Diagnostics) -> list[Row] | None:
    """Return the rows of the file ``name``, relative to the protocol in which it stands; None with errors (225)."""
    text = read_beside(name, position, ANIMALS, diagnostics)
    if text is None:
        return None
    before = len(diagnostics.errors)
    rows = list(_rows(text, str(Path(position.file).parent / name), diagnostics))
    return rows if len(diagnostics.errors) == before else None


def _rows(text: str, file: str, diagnostics: Diagnostics) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip() for name in next(reader, [])]
    if missing := [name for name in COLUMNS if name not in header]:
        hint = f"The first line names the columns: {','.join(COLUMNS)}."
        if len(header) == 1 and all(name in header[0] for name in COLUMNS):
            hint = f"Separate the cells by commas, not by {'semicolons' if ';' in header[0] else 'blanks'}."
        diagnostics.error(225, Position(file, 1, 1), f"There is no column {listed(missing)}.", hint)
        return
    where = [header.index(name) for name in COLUMNS]
    seen: set[tuple[str, int]] = set()
    try:
        for cells in reader:
            if not cells:
                continue
            position = Position(file, reader.line_num, 1)
            if len(seen) == MAX_ROWS:
                sentence = f"There are more than {MAX_ROWS} rows."
                diagnostics.error(225, position, sentence, "Keep one row for each animal and session.")
                return
            given = [cells[n].strip() if n < len(cells) else "" for n in where]
            row = row_of(given)
            if row is None:
                shown = ",".join(cells)[:100]
                remedy = "Write the animal, the session (from 1), the trials (at least 1) and the trials passed."
                diagnostics.error(225, position, f"'{shown}' is not a valid row{why_not(given)}.", remedy)
            elif row[:2] in seen:
                sentence = f"Session {row[1]} of '{row[0]}' appears twice."
                diagnostics.error(225, position, sentence, "Keep one row for each animal and session.")
            else:
                seen.add(row[:2])
                yield row
    except csv.Error as error:
        diagnostics.error(225, Position(file, reader.line_num, 1), f"This is not valid CSV: {error}.", "")
    if reader.line_num <= 1:
        diagnostics.error(
            225, Position(file, 1, 1), "The file has no rows.", "Add one row for each animal and session."
        )


def row_of(cells: object) -> Row | None:
    """Return four values as a row, or None if they are not valid."""
    if not isinstance(cells, list | tuple) or len(cells) != len(COLUMNS):
        return None
    animal, *numbers = cells
    if not (isinstance(animal, str | int) and 0 < len(str(animal)) <= MAX_NAME and str(animal).isprintable()):
        return None
    counts = [_whole(number) for number in numbers]
    session, trials, passed = counts
    if session is None or trials is None or passed is None or not (session >= 1 and 0 <= passed <= trials >= 1):
        return None
    return str(animal), session, trials, passed


def why_not(cells: object) -> str:
    """Return the end of a sentence on a row that is not valid: the first cell that is wrong; empty if unclear."""
    if not isinstance(cells, list | tuple) or len(cells) != len(COLUMNS):
        return ""
    for name, cell in zip(COLUMNS[1:], cells[1:], strict=True):
        if (number := _whole(cell)) is None:
            what = "a share, not a whole number" if re.fullmatch(r"0?\.\d+|1\.0+", str(cell)) else "no whole number"
            return f": '{str(cell)[:20]}' ({name}) is {what}"
        if number < 1 and name != "passed":
            return f": '{cell}' ({name}) is below 1"
    trials, passed = _whole(cells[2]), _whole(cells[3])
    more = trials is not None and passed is not None and passed > trials
    return f": {passed} passed of {trials} trials" if more else ""


def _whole(number: object) -> int | None:
    if isinstance(number, str) and number.isascii() and number.isdecimal() and len(number) <= len(str(MAX_NUMBER)):
        number = int(number)
    whole = isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= MAX_NUMBER
    return number if whole and isinstance(number, int) else None
