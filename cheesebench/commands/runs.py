"""``cheesebench runs``: the runs of a results directory, with what they came to."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from cheesebench.commands.common import table
from cheesebench.commands.parsing import add_json, add_option, describe
from cheesebench.errors import OptionError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "The latest first, one line each: model, date, cost, verdicts. A run may still be going on.",
        "",
        "--model random",
        "--results results --json",
    )
    add_option(parser, "results")
    parser.add_argument("--model", metavar="NAME", help="only runs of this model")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the runs."""
    from cheesebench.server.overview import Overview, RunLine, to_json

    results = Path(options.results)
    if not results.is_dir():
        raise OptionError(f"There is no directory {results}. Name the one that holds the runs: --results DIR.")
    matching = [line for line in Overview(results).lines() if options.model is None or options.model in line.models]
    if options.json:
        print(json.dumps([to_json(line) for line in matching], indent=2))
        return 0
    if not matching:
        whose = "" if options.model is None else f" of '{options.model}'"
        print(f"{results} holds no runs{whose}.")
        return 0

    def row(line: RunLine) -> list[str]:
        if line.problem:
            return [line.run_id, "", "", "unreadable", "", "", line.problem]
        date = line.created[:16].replace("T", " ")
        cost = f"${line.cost:.2f}" if line.cost else ""
        trials = f"{line.done:,}" if not line.left or line.status != "running" else f"{line.done:,} + {line.left:,}"
        return [line.run_id, date, ", ".join(line.models), line.status, trials, cost, line.verdict_text]

    print(table(("run", "UTC", "models", "", "trials", "cost", "verdicts"), map(row, matching)))
    return 0
