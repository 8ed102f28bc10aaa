"""``cheesebench test``: runs the tests that authors declare in their protocols."""

from __future__ import annotations

import argparse

from cheesebench.commands import FINDINGS, common
from cheesebench.errors import ProtocolError
from cheesebench.functions import protocol_files
from cheesebench.plugin_manager import installed_plugins
from cheesebench.terminal import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.describe(
        parser,
        "Prints one line for each entry under 'tests:'. The exit code is 1 if a test fails or a file has errors.",
        "my_maze.protocol.yaml",
        "-q my_protocols/",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        default=["."],
        help=f"{common.PROTOCOL}, or a directory of them (default: this directory)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="show only failures")


def run(options: argparse.Namespace) -> int:
    """Print the result of each test, then a summary. Return FINDINGS if a test failed
    or a file has errors.
    """
    catalogue, plugins = common.installed_catalogue(), installed_plugins()
    view = next(iter(plugins.views.values()))
    played = failed = broken = 0
    for path in protocol_files(catalogue, options.files):
        try:
            specification = catalogue.load(path)
            paradigm = plugins.compile(specification)
        except ProtocolError as error:
            broken += 1
            print(error)
            continue
        for report in paradigm.own_tests(view):
            played += 1
            failed += not report.passed
            if not (report.passed and options.quiet):
                print(printable(str(report)))
    errors = f", {common.counted(broken, 'file')} with errors" if broken else ""
    print(f"{common.counted(played, 'test')}: {failed} failed{errors}")
    return FINDINGS if failed or broken else 0
