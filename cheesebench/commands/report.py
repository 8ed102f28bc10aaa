"""``cheesebench report``: the results of a run, computed from its log."""

from __future__ import annotations

import argparse
from pathlib import Path

from cheesebench.commands.common import write_output
from cheesebench.commands.parsing import add_option, add_output, add_run, describe
from cheesebench.errors import OptionError
from cheesebench.experiment.confined import inside
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.plugin_manager import installed_plugins


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Everything is computed from the run's log; the run may still be in progress.",
        "20250131-093000-ab12",
        "20250131-093000-ab12 --html",
        "results/20250131-093000-ab12 --format json --output run.json",
    )
    add_run(parser)
    parser.add_argument(
        "--format", metavar="NAME", help="markdown (default), html, json, text, matrix, comment, badge, ..."
    )
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="the same as --format json")
    about = (
        "write a page with every result and every trial, to watch in a browser (default: report.html beside the log)"
    )
    add_option(parser, "html", nargs="?", const="", help=about)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Judge the run's trials and write the report."""
    if options.html is not None and (options.format is not None or options.output is not None):
        raise OptionError("--html names its own format and file. Remove --format and --output.")
    plugins = installed_plugins()
    name = "html" if options.html is not None else options.format or "markdown"
    plugins.reporter(name)  # an unknown one is reported before anything is computed
    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        from cheesebench.statistics import summarise_subjects

        log.check_pages()  # sums over calls are made without a look at each
        summary = summarise_subjects(
            log.manifest, log.plans(), log.trials_by_subject, log.calls.by_cell(), log.causes()
        )
        text = plugins.report(name, summary, log)
        output = options.output
        if options.html is not None:
            # Without a path: beside the log.
            output = options.html or str(inside(log.directory, "report.html"))
    write_output(text, output)
    if options.html is not None:
        write_output(f"{output}\n", None)
    return 0
