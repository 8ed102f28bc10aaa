"""``cheesebench new-plugin``: create a complete package for a backend, an agent, a view and the like."""

from __future__ import annotations

import argparse
from pathlib import Path

from cheesebench.author.packages import KINDS, distribution, plugin_files
from cheesebench.author.writing import write_files
from cheesebench.commands.common import one_line
from cheesebench.commands.parsing import describe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "The package can be installed as it is, registers itself by its entry point, and passes its own tests.",
        "backend my-server",
        "agent my-mouse --output work/my-mouse",
        "view my-eyes",
    )
    parser.add_argument("kind", metavar="KIND", choices=KINDS, help=f"{', '.join(KINDS[:-1])} or {KINDS[-1]}")
    parser.add_argument("name", metavar="NAME", help="its name, as in --model NAME or --view NAME")
    parser.add_argument("--output", metavar="DIR", help="the directory to write (default: cheesebench-NAME)")


def run(options: argparse.Namespace) -> int:
    """Write the package and print the next steps."""
    texts = plugin_files(options.kind, options.name)
    directory = Path(options.output or distribution(options.name))
    write_files(directory, texts)
    for name in texts:
        print(one_line(directory / name))
    print(f"\nNext: cd {one_line(directory)} && pip install -e . && pytest && cheesebench plugins")
    return 0
