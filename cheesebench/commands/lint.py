"""``cheesebench lint``: errors, warnings and notes about protocol files."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from cheesebench.commands import FINDINGS
from cheesebench.commands.common import counted, find_protocol, installed_catalogue
from cheesebench.commands.parsing import PROTOCOL, describe
from cheesebench.errors import OptionError
from cheesebench.protocol import SUFFIX, Catalogue
from cheesebench.protocol.source import real_path

_NOUNS = {"error": "error", "warning": "warning", "info": "note"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Prints every error, warning and note with its position and a remedy. The exit code is 1 if there are errors.",
        "my_maze.protocol.yaml",
        "--strict -q my_protocols/",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"{PROTOCOL}, or a directory of them")
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print notes")


def run(options: argparse.Namespace) -> int:
    """Print the findings of every file, then a summary; return FINDINGS when they are to fail."""
    catalogue = installed_catalogue()
    paths = list(protocol_files(catalogue, options.files))
    found: Counter[str] = Counter()
    for path in paths:
        for diagnostic in catalogue.inspect(path)[1]:
            found[diagnostic.severity] += 1
            if not (options.quiet and diagnostic.severity == "info"):
                print(diagnostic)
    counts = ", ".join(counted(found[severity], noun) for severity, noun in _NOUNS.items())
    print(f"{counted(len(paths), 'file')}: {counts}")
    return FINDINGS if found["error"] or (options.strict and found["warning"]) else 0


def protocol_files(catalogue: Catalogue, names: Iterable[str]) -> Iterator[Path]:
    """Yield the files that are meant, each once; directories are searched to the bottom."""
    seen: set[Path] = set()
    for name in names:
        directory = Path(name)
        found = sorted(directory.rglob(f"*{SUFFIX}")) if directory.is_dir() else [find_protocol(catalogue, name)]
        if not found:
            raise OptionError(f"There is no file *{SUFFIX} in the directory {name}. Name another.")
        for path in found:
            if real_path(path) not in seen:
                seen.add(real_path(path))
                yield path
