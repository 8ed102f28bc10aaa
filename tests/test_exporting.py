"""The tables of a run for other programs, whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cheesebench.exporting import TABLES, Source, write_csv
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
