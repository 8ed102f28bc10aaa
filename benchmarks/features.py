"""Lists the features of the project, their users, and their size.

``python benchmarks/features.py`` prints a table of ``features.toml``; ``--write`` puts
it into ``features.md``. Each file that ships, and each file of tests, belongs to the
first feature that names it; it is an error if no feature names a file.
"""

from __future__ import annotations

import argparse
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from size import ROOT, lines, tracked
from tabulate import tabulate

FILE = Path(__file__).with_suffix(".toml")
PAGE = Path(__file__).with_suffix(".md")
SHIPS = ("cheesebench", "paradigms", "plugins", "protocols", "reports")
#: Features for maintainers only, which are not part of the product.
BESIDE = ("fuzz", "website")
HEAD = """# Features

What the project can do, for whom, and how much of it that is: Python files and lines, and lines of tests. Made by
`python benchmarks/features.py --write` from [features.toml](features.toml).

"""


class Row(NamedTuple):
    """A feature with its size."""

    feature: str
    whom: str
    files: int
    lines: int
    tests: int


def features() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))[
        "feature"
    ]
    return found


def owners(paths: Iterable[Path], key: str) -> dict[str, list[Path]]:
    """Return the files of each feature. Raise LookupError for a file that belongs to
    none.
    """
    found: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        owner = next(
            (
                one["name"]
                for one in features()
                if any(fnmatch(name, pattern) for pattern in one[key])
            ),
            None,
        )
        if owner is None:
            raise LookupError(f"{name} belongs to no feature: name it in {FILE.name}")
        found[owner].append(path)
    return found


def rows() -> list[Row]:
    """Return the features, the largest first."""
    files = owners(tracked(*(f"{name}/*.py" for name in SHIPS + BESIDE)), "files")
    tests = owners(tracked("tests/*.py"), "tests")
    found = [
        Row(
            one["name"],
            one["for"],
            len(files[one["name"]]),
            lines(files[one["name"]]),
            lines(tests[one["name"]]),
        )
        for one in features()
    ]
    return sorted(found, key=lambda row: -row.lines)


def table(found: Sequence[Row]) -> str:
    heads = ("feature", "for", "files", "lines", "lines of tests")
    return tabulate(found, heads, tablefmt="github", intfmt=",")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    text = table(rows())
    if parser.parse_args().write:
        PAGE.write_text(f"{HEAD}{text}\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
