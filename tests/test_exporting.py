"""The tables of a run for other programs, whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cheesebench import exporting
from cheesebench.exporting import TABLES, Kind, Source, cell, write_csv, write_parquet
from tests.interop.test_shared import Run, asked, walked
from tests.stored import check_stored

__all__ = ["asked", "walked"]
#: Rows of each table that are stored.
SHOWN = 25


@pytest.mark.parametrize("kind", ["walked", "asked"])
def test_tables_are_compared_with_what_is_stored(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    run: Run = request.getfixturevalue(kind)
    source, parts = Source(*run, observations=True), list[str]()
    assert source.seed == 3
    for name, table in TABLES.items():
        path = tmp_path / f"{name}.csv"
        number = write_csv(path, table.header, source.rows(table))
        lines = path.read_text("utf-8").splitlines()
        if name == "calls":  # A call takes its own time.
            lines = [re.sub(r"\b\d+\.\d+(e-\d+)?\b", "SECONDS", one) for one in lines]
        parts += [f"== {name}: {number}, {len(lines)} lines", *lines[:SHOWN]]
    check_stored(f"tables.{kind}.txt", "\n".join(parts) + "\n")


#: Two subjects of a table with all types, and nothing in each column.
HEADER: dict[str, Kind] = {
    "name": "text",
    "trial": "integer",
    "rate": "number",
    "passed": "truth",
}
SUBJECTS: list[list[list[Any]]] = [
    [["=1", 1, 0.5, True], [None, 2, None, False]],
    [["bc", None, 2.0, None]],
]


@pytest.mark.parametrize(
    ("rows", "text", "groups"),
    [
        (50, 100, [3]),
        (2, 100, [2, 1]),
        (1, 100, [2, 1, 0]),
        (50, 2, [2, 1, 0]),
        (50, 5, [3]),
    ],
)
def test_a_table_as_parquet_is_written_in_groups(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
    text: int,
    groups: list[int],
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(exporting, "GROUP", rows)
    monkeypatch.setattr(exporting, "GROUP_TEXT", text)
    path = tmp_path / "table.parquet"
    assert write_parquet(path, HEADER, SUBJECTS) == 3
    with parquet.ParquetFile(path) as file:
        assert [str(one.type) for one in file.schema_arrow] == [
            "string",
            "int64",
            "double",
            "bool",
        ]
        assert [
            file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)
        ] == groups
        table = file.read().to_pydict()
    whole = [row for rows_of_one in SUBJECTS for row in rows_of_one]
    assert list(zip(*table.values(), strict=True)) == [tuple(row) for row in whole]
    assert list(table) == list(HEADER)


def test_a_table_without_rows_has_its_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert write_parquet(tmp_path / "a.parquet", HEADER, []) == 0
    assert parquet.read_table(tmp_path / "a.parquet").column_names == list(HEADER)
    assert write_csv(tmp_path / "a.csv", HEADER, []) == 0
    assert (tmp_path / "a.csv").read_text() == "name,trial,rate,passed\n"


def test_a_value_as_a_cell() -> None:
    values: list[Any] = [
        None,
        True,
        False,
        3,
        0.1,
        "=1",
        " +1",
        "a-1",
        "-1",
        ("a", "b"),
        ("=a",),
    ]
    assert [cell(value) for value in values] == [
        "", "true", "false", "3", "0.1", "'=1", "' +1", "a-1", "'-1", "a|b", "'=a",
    ]  # fmt: skip
