"""Prints the table of CogEval's public scores that ``cheesebench cogeval-stats
--scores`` and ``benchmarks/papers.py`` read, from a clone of the public conversations
(https://github.com/cogeval/cogmaps, MIT):

    python benchmarks/cogeval_scores.py cogmaps/conversations > scores.csv

The table has a row for each graph, domain, condition, model and temperature, under the
names in the folders and files of the conversations. No conversation is in this project.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

COLUMNS = ("graph", "domain", "condition", "model", "temperature", "successes", "total")
#: Models whose names in the files differ from the paper's tables.
MODELS = {"xlarge": "cohere-xlarge", "chat": "cohere-chat", "gpt-3.5-turbo": "gpt-35-turbo"}  # fmt: skip

Cell = tuple[str, str, str, str, str]


def graded(path: Path, names: tuple[str, ...]) -> Iterator[tuple[Cell, bool]]:
    """Yield the grades of a conversation; ``names`` are those of its folders."""
    told: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8-sig"))
    model = str(told["model"]).replace("/", ":").rpartition(":")[2]
    for condition, grade in (told.get("scores") or {}).items():
        cell = (
            *names[:2],
            condition,
            MODELS.get(model, model),
            f"{told['temperature']:g}",
        )
        yield cell, grade["score"] > 0


def scores(folder: Path) -> dict[Cell, list[int]]:
    """Return the numbers of right answers and of all answers for each cell."""
    found: dict[Cell, list[int]] = {}
    for path in sorted(folder.glob("*/*/*/*/*.json")):
        for cell, right in graded(path, path.relative_to(folder).parts):
            counts = found.setdefault(cell, [0, 0])
            counts[0] += right
            counts[1] += 1
    return found


def write(folder: Path, to: TextIO) -> None:
    table = csv.writer(to, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows([*cell, *counts] for cell, counts in sorted(scores(folder).items()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("conversations", type=Path, metavar="FOLDER")
    folder = parser.parse_args().conversations
    if not folder.is_dir():
        raise SystemExit(f"There is no folder {folder}. Name the folder 'conversations' of a copy.")  # fmt: skip
    write(folder, sys.stdout)


if __name__ == "__main__":
    main()
