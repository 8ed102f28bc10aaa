"""Rows of a draw from a CSV file beside the protocol: read into it, bounded, and never
from elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.diagnostics import Diagnostic
from cheesebench.protocol import Specification
from cheesebench.protocol.csv_files import MAX_CELL, MAX_COLUMNS, TABLE
from cheesebench.protocol.documents import MAX_ROWS
from tests.arenas import TWO_ARMS, examine

PROTOCOL = (
    "version: 1\nparadigm: choice\n"
    + TWO_ARMS
    + """\
draw: {trials: {order: cycle, of: trials.csv}}
start: {at: box, face: N}
trial:
  limit: wait
  start: run
  states: {run: {show: {food: glyph}, rules: [{enter: arm, if: it == food, reward: 1, end: found}]}}
schedule: {only: {trials: 4}}
success: last == found
"""
)
GOOD = 'food,wait,glyph,part\nleft, 9,*,easy\n\nright,12.0,"o",hard\n'


def written(
    folder: Path, csv: str | bytes = GOOD, text: str = PROTOCOL
) -> tuple[Specification | None, list[str]]:
    """Load the protocol with this table beside it."""
    (folder / "trials.csv").write_bytes(csv if isinstance(csv, bytes) else csv.encode())
    path = folder / "choice.protocol.yaml"
    path.write_text(text, encoding="utf-8")
    specification, found = examine(path)
    return specification, [said(one) for one in found if one.severity == "error"]


def said(one: Diagnostic) -> str:
    position = one.position
    return f"{Path(position.file).name}:{position.line} E{one.code} {one.sentence} {one.remedy}"


def test_columns_become_variables_as_if_they_were_written_out(tmp_path: Path) -> None:
    found, errors = written(tmp_path)
    assert found is not None, errors
    (draw,) = found.draws
    assert draw.columns == ("food", "wait", "glyph", "part")
    assert draw.rows == (("left", 9, "*", "easy"), ("right", 12.0, "o", "hard"))
    inline = (
        "{food: [left, right], wait: [9, 12.0], glyph: ['*', o], part: [easy, hard]}"
    )
    same, errors = written(tmp_path, text=PROTOCOL.replace("trials.csv", inline))
    assert same is not None, errors
    assert (same.sha256, same.text) == (found.sha256, found.text), (
        "the resolved protocol has the rows"
    )


def test_another_cell_is_another_protocol(tmp_path: Path) -> None:
    first, other = (
        written(tmp_path)[0],
        written(tmp_path, GOOD.replace("12.0", "13"))[0],
    )
    assert first is not None
    assert other is not None
    assert first.sha256 != other.sha256
    # Spelling does not affect the identity: quotes, blanks, a byte order mark, Windows
    # line ends.
    again = written(
        tmp_path,
        b"\xef\xbb\xbf" + GOOD.replace('"o"', "o").replace("\n", "\r\n").encode(),
    )[0]
    assert again is not None
    assert again.sha256 == first.sha256


def test_an_edition_reads_the_table_of_its_parent_s_folder(tmp_path: Path) -> None:
    written(tmp_path)
    path = tmp_path / "choice.short.protocol.yaml"
    path.write_text(
        "version: 1\nextends: choice\nparadigm: choice\nedition: short\nschedule: {only: {trials: 2}}\n"
    )
    found, errors = examine(path)
    assert found is not None, errors
    assert len(found.draws[0].rows) == 2


WRONG = {
    "no header": ("", "trials.csv:1 E225 The first line is empty."),
    "no rows": ("food,wait,glyph\n", "trials.csv:1 E225 The file has no rows."),
    "semicolons": ("food;wait;glyph\nleft;9;o\n", "Separate the cells by commas, not by semicolons."),
    "no name": ("food,wait,7up\nleft,9,o\n", "'7up' cannot be the name of a column."),
    "twice": ("food,wait,food\nleft,9,left\n", "trials.csv:1 E225 There are two columns 'food'. Rename one."),
    "ragged": ("food,wait,glyph\nleft,9,o\nleft,9\n", "trials.csv:3 E225 The row has 2 cells, but the first"),
    "an empty cell": ("food,wait,glyph\nleft,,o\n", "trials.csv:2 E225 The column 'wait' is empty in this line."),
    "a long cell": (f"food,wait,glyph\nleft,9,{'o' * (MAX_CELL + 1)}\n", "trials.csv:2 E225 The column 'glyph' has a value"),
    "an escape": ("food,wait,glyph\nleft,9,\x1b[2J\n", "trials.csv:2 E225 The column 'glyph' has a value that is not printable."),
    "a large number": (f"food,wait,glyph\nleft,{'9' * 16},o\n", "trials.csv:2 E111 The number 999"),
    "many columns": (",".join(f"c{n}" for n in range(MAX_COLUMNS + 1)), f"There are more than {MAX_COLUMNS} columns."),
    "many rows": ("food\n" + "left\n" * (MAX_ROWS + 1), f"trials.csv:{MAX_ROWS + 2} E225 There are more than"),
    "large": (b"food\n" + b"left  \n" * TABLE.most_bytes, f"has more than {TABLE.most_bytes} bytes. Keep at most"),
    "binary": (b"\x89PNG\r\n\xff", "trials.csv:1 E225 The file is not text in UTF-8 (byte 0x89). Save it"),
    "zeros": (b"\x00" * 99, "The file is not text in UTF-8 (byte 0x00)."),
    "a missing value": ("food,wait,glyph\nleft,NA,o\n", "trials.csv:2 E225 The column 'wait' has 'NA' in this line."),
    "a missing name": ("food,wait,glyph\nleft,9,o\nNone,9,o\n", "trials.csv:3 E225 The column 'food' has 'None' in this"),
    "YAML's nothing": ("food,wait,glyph\nleft,~,o\n", "trials.csv:2 E225 The column 'wait' has '~' in this line."),
    "YAML's number": ("food,wait,glyph\nleft,0x1,o\n", "The column 'wait' has the number '0x1', which is not decimal."),
    "a word": ("food,wait,glyph\nleft,9,o\nleft,inf,o\nleft,9,o\n", "trials.csv:3 E203 The column 'wait' mixes numbers"),
    "an open quote": ('food,wait,glyph\nleft,9,"' + "o\n" * 140_000, "has more than"),
    "an unknown zone": ("food,wait,glyph\nleft,9,o\nrigth,9,o\n", "trials.csv:3 E201 The column 'food' holds zones"),
}  # fmt: skip


@pytest.mark.parametrize(("csv", "expected"), WRONG.values(), ids=list(WRONG))
def test_each_mistake_has_one_message_with_its_line(
    csv: str | bytes, expected: str, tmp_path: Path
) -> None:
    found, errors = written(tmp_path, csv)
    assert found is None
    assert len(errors) == 1, errors
    assert expected in errors[0]


@pytest.mark.parametrize(
    "name",
    [
        "../trials.csv",
        "/etc/passwd",
        "trials.txt",
        "goals",
        "link.csv",
        "loop.csv",
        '""',
    ],
)
def test_a_table_is_in_the_folder_of_the_protocol(name: str, tmp_path: Path) -> None:
    (tmp_path / "trials.csv").write_text(GOOD)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.csv").symlink_to(tmp_path / "trials.csv")
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    found, errors = written(folder, text=PROTOCOL.replace("trials.csv", name))
    assert found is None
    assert len(errors) == 1, errors
    assert "choice.protocol.yaml:11 E225" in errors[0]
    assert "root:" not in errors[0]


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("folder.csv", "pipe.csv", "trails.csv"):
        found, errors = written(tmp_path, text=PROTOCOL.replace("trials.csv", name))
        assert found is None
        assert len(errors) == 1
        assert f"The table '{name}' cannot be read" in errors[0]
    assert "Did you mean 'trials.csv'?" in errors[0]


@given(
    csv=st.binary(max_size=60)
    | st.text(max_size=60).map(
        lambda text: ("food,wait,glyph\n" + text).encode("utf-8", "replace")
    )
)
def test_no_table_breaks_the_reader(
    csv: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    found, errors = written(tmp_path_factory.mktemp("any"), csv)
    assert (found is None) == bool(errors)
