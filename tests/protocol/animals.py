"""A little maze with a file of animals beside it."""

from __future__ import annotations

from pathlib import Path

from cheesebench.diagnostics import Diagnostic
from cheesebench.protocol import Specification
from cheesebench.protocol.csv_files import COLUMNS
from tests.arenas import examine

MAZE = """version: 1
paradigm: maze
dimension: d
arena: {map: "SZ", legend: {S: box, Z: goal}}
start: {at: box}
trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}
success: last == found
"""


HEADER = ",".join(COLUMNS)


FOUR = "schedule: {one: {sessions: 2, trials: 4}}\n"


NAMED = "reference: [{measure: success, animals: animals.csv, status: counted}]\n"


TWO_MICE = f"{HEADER},sex\nm1,1,4,1,F\nm1,2,4,3,F\n\nm2,1,4,2,M\nm2,2,2,2,M\n"


LATENCY = (
    FOUR
    + "measures: {latency: steps}\nreference: [{measure: latency, animals: animals.csv, status: x}]\n"
)


def written(
    folder: Path, keys: str, csv: str | bytes = ""
) -> tuple[Specification | None, list[Diagnostic]]:
    """Load the little maze with these keys and a file of animals beside it."""
    (folder / "animals.csv").write_bytes(
        csv if isinstance(csv, bytes) else csv.encode()
    )
    path = folder / "maze.protocol.yaml"
    path.write_text(MAZE + keys, encoding="utf-8")
    return examine(path)


def loaded(folder: Path, keys: str, csv: str = "") -> Specification:
    specification, found = written(folder, keys, csv)
    assert specification is not None, found
    return specification


def found_in(folder: Path, keys: str, csv: str) -> list[tuple[int, str]]:
    return [(one.code, one.sentence) for one in written(folder, keys, csv)[1]]
