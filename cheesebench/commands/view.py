"""``cheesebench view``: the runs of a results directory in the browser, also while they go on."""

from __future__ import annotations

import argparse
from pathlib import Path

from cheesebench.commands.parsing import add_option, describe, port_number
from cheesebench.errors import OptionError
from cheesebench.plugin_manager import installed_plugins


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Serves pages on this machine alone, until Ctrl-C: all runs; each run live, "
        "with cost, time left, the last replies, and a player for every trial; comparisons of two runs; trends. "
        "Nothing can be changed there. The address holds a secret: whoever has it can read the runs.",
        "",
        "--results results --port 8765",
    )
    add_option(parser, "results")
    parser.add_argument("--port", metavar="N", type=port_number, default=0, help="listen here (default: any free port)")
    parser.add_argument("--open", action="store_true", help="also open the browser")


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from cheesebench.server.door import Door, new_token, serve
    from cheesebench.server.view import Viewer

    results = Path(options.results)
    if not results.is_dir():
        raise OptionError(f"There is no directory {results}. Name the one that holds the runs: --results DIR.")
    door = Door(token=new_token(), port=options.port)

    def begun(port: int) -> None:
        print(f"{door.url(port)}\nCtrl-C ends it.", flush=True)
        if options.open:
            import webbrowser

            webbrowser.open(door.url(port))

    serve(Viewer(results, installed_plugins()).serving(door), begun)
    return 0
