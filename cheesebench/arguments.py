"""Arguments that several commands share; light at import."""

from __future__ import annotations

import argparse
from collections.abc import Callable

#: Adds a command to the parser: name, summary, description, examples.
Command = Callable[..., argparse.ArgumentParser]


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the run that is meant, and where runs are."""
    parser.add_argument("run_id", metavar="RUN", help="the id of a run, its directory, or its run.sqlite")
    parser.add_argument("--results", metavar="DIR", default="results", help="where the runs are (default: results)")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add where the result goes."""
    parser.add_argument("--output", metavar="PATH", help="write it to this file (default: standard output)")


def positive_number(text: str) -> int:
    """Return a whole number from 1; argparse says so where it is none."""
    if (number := whole_number(text)) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from 1")
    return number


def proportion(text: str) -> float:
    """Return a number from 0 to 1; argparse says so where it is none."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 0 to 1")
    return number


def whole_number(text: str) -> int:
    """Return a whole number from 0; argparse says so where it is none."""
    # 63 bits: more than any seed needs, and nothing overflows.
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from 0")
    return int(text)
