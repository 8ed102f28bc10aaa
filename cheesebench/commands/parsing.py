"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from typing import Any

from cheesebench.options import BY_KEY

#: Help of an argument that is a protocol.
PROTOCOL = "a protocol's name (as in 'cheesebench list') or a *.protocol.yaml file"


def describe(parser: argparse.ArgumentParser, description: str, *examples: str) -> None:
    """Add a description and example arguments to the command's help; line breaks of the description are kept."""
    width = shutil.get_terminal_size().columns - 2  # as argparse
    lines = f"{parser.description or ''} {description}".strip().splitlines()
    parser.description = "\n".join(textwrap.fill(line, width, break_on_hyphens=False) for line in lines)
    parser.epilog = "examples:\n" + "\n".join(f"  {parser.prog} {example}".rstrip() for example in examples)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add run options as declared in ``cheesebench.options``."""
    for name in names:
        add_option(parser, name)


def add_option(parser: argparse.ArgumentParser, name: str, **changes: Any) -> None:
    """Add a run option as declared; ``changes`` overrides keywords of ``add_argument``."""
    option = BY_KEY[name.replace("-", "_")]
    default: Any = list(option.default) if isinstance(option.default, tuple) else option.default
    keywords: dict[str, Any] = {"dest": option.key, "default": default, **option.arguments(), **changes}
    parser.add_argument(option.short, **keywords)


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a run, and ``--results``."""
    parser.add_argument("run_id", metavar="RUN", help="the id of a run, its directory, its run.sqlite, or latest")
    add_option(parser, "results")


def add_baselines(parser: argparse.ArgumentParser) -> None:
    """Add where baselines are."""
    parser.add_argument(
        "--baselines", metavar="DIR", default="baselines", help="directory of the baselines (default: baselines)"
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add where the result goes."""
    parser.add_argument("--output", metavar="PATH", help="write the output to this file (default: standard output)")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def add_life(parser: argparse.ArgumentParser) -> None:
    """Add ``--seed`` and ``--subject``."""
    parser.add_argument("--seed", metavar="N", type=whole_number, default=0, help="seed of the subject (default: 0)")
    parser.add_argument(
        "--subject", metavar="N", type=whole_number, default=0, help="number of the subject (default: 0)"
    )


def add_trial(parser: argparse.ArgumentParser) -> None:
    """Add ``--trial``."""
    parser.add_argument(
        "--trial",
        metavar="N",
        type=positive_number,
        default=1,
        help="begin in this trial; in earlier trials the subject stays still",
    )


def positive_number(text: str) -> int:
    """Return a whole number from 1; argparse says so where it is none."""
    if (number := whole_number(text)) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return number


def proportion(text: str) -> float:
    """Return a number from 0 to 1; argparse says so where it is none."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 0 to 1")
    return number


def whole_number(text: str) -> int:
    """Return a whole number from 0; argparse says so where it is none."""
    # 63 bits: more than any seed needs, and nothing overflows.
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0")
    return int(text)


def port_number(text: str) -> int:
    """Return the number of a port, 0 for any free one; argparse says so where it is none."""
    if (number := whole_number(text)) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port: ports go up to 65535")
    return number
