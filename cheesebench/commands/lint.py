"""``cheesebench lint``: prints errors, warnings and notes about protocol files."""

from __future__ import annotations

import argparse
from collections import Counter

from cheesebench.commands import FINDINGS
from cheesebench.commands.common import PROTOCOL, counted, describe
from cheesebench.functions import lint

_NOUNS = {"error": "error", "warning": "warning", "info": "note"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Prints every error, warning and note with its position and a remedy. The exit code is 1 if there are errors.",
        "my_maze.protocol.yaml",
        "--strict -q my_protocols/",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        default=["."],
        help=f"{PROTOCOL}, or a directory of them (default: this directory)",
    )
    parser.add_argument(
        "--strict", action="store_true", help="treat warnings as errors"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="do not print notes")


def run(options: argparse.Namespace) -> int:
    """Print the findings of every file, then a summary. Return FINDINGS if they count
    as a failure.
    """
    inspected = lint(options.files)
    found: Counter[str] = Counter()
    for diagnostics in inspected.values():
        for diagnostic in diagnostics:
            found[diagnostic.severity] += 1
            if not (options.quiet and diagnostic.severity == "info"):
                print(diagnostic)
    counts = ", ".join(
        counted(found[severity], noun) for severity, noun in _NOUNS.items()
    )
    print(f"{counted(len(inspected), 'file')}: {counts}")
    return FINDINGS if found["error"] or (options.strict and found["warning"]) else 0
