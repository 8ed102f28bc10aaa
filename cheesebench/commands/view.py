"""``cheesebench view``: shows the runs of a results directory in the browser, even
while they are in progress.
"""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path

from cheesebench.commands.common import add_option, describe, port_number
from cheesebench.errors import OptionError
from cheesebench.plugin_manager import installed_plugins
from cheesebench.server import http_guard
from cheesebench.server.view import Viewer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Serves pages on this machine alone, until Ctrl-C. They show all runs, comparisons of two runs, and trends. Each run "
        "is shown live, with cost, time left, the latest replies, and a player for trials. The pages change nothing. "
        "Their address holds a secret: whoever has it can read the runs.",
        "",
        "--results results --port 8765",
    )
    add_option(parser, "results")
    parser.add_argument(
        "--port",
        metavar="N",
        type=port_number,
        default=0,
        help="listen on this port (default: any free port)",
    )
    parser.add_argument("--open", action="store_true", help="open the browser, too")


def run(options: argparse.Namespace) -> int:
    results = Path(options.results)
    if not results.is_dir():
        raise OptionError(
            f"There is no directory {results}. Name the directory that holds the runs: --results DIR."
        )
    guard = http_guard.RequestGuard(token=http_guard.new_token(), port=options.port)

    def begun(port: int) -> None:
        print(f"{guard.url(port)}\nCtrl-C stops the server.", flush=True)
        if options.open:
            webbrowser.open(guard.url(port))

    http_guard.serve(Viewer(results, installed_plugins()).serving(guard), begun)
    return 0
