"""``cheesebench report``: computes the results of a run from its log, and reports
them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cheesebench.board import board
from cheesebench.commands.common import (
    add_option,
    add_output,
    describe,
    write_output,
)
from cheesebench.errors import OptionError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import inside, locate
from cheesebench.hookspecs import RunReporter, RunsReporter
from cheesebench.plugin_manager import installed_plugins
from cheesebench.summaries import summarise_log, summarise_logs
from cheesebench.verification import rows_only, verify


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Everything is computed from the run's log, which may still grow. Several runs make one leaderboard with a row for "
        "each model. Their logs must be complete and unchanged, and their rules the same.",
        "20250131-093000-ab12",
        "20250131-093000-ab12 --html",
        "20250131-093000-ab12 --verify",
        "monday tuesday wednesday --html leaderboard.html --verify",
        "monday tuesday wednesday --output board.svg",
        "results/20250131-093000-ab12 --format json --output run.json",
        "monday tuesday --board --output board.md",
    )
    runs = "the id of a run, its directory, its run.sqlite, or latest"
    parser.add_argument("runs", metavar="RUN", nargs="+", help=runs)
    add_option(parser, "results")
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="markdown (default), html, json, text, matrix, board, comment, badge, ...",
    )
    parser.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json",
    )
    about = (
        "write a page with every result and a player for the trials, for a browser (default: report.html beside the "
        "log or, for several runs, board.html in this directory)"
    )
    add_option(parser, "html", nargs="?", const="", help=about)
    about = "check first that the log is unchanged and complete, and that every trial is the same when it is replayed"
    parser.add_argument("--verify", action="store_true", help=about)
    about = "make a board of these runs by the rules of docs/leaderboard.md; a run that breaks a rule is refused"
    parser.add_argument("--board", action="store_true", help=about)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    if options.board:
        return _board(options)
    plugins = installed_plugins()
    name = _format(options)
    # An unknown format is reported before anything is computed.
    reporter = plugins.reporter(name)
    several = len(set(options.runs)) > 1
    one_run = isinstance(reporter, RunReporter)
    if several and one_run and not isinstance(reporter, RunsReporter):
        raise OptionError(
            f"The format '{name}' shows only one run. Name one run, or another format."
        )
    with _opened(options) as logs:
        # This verifies every row and, on request, replays the trials.
        checked = [
            verify(one) if options.verify else rows_only(one, ranked=several)
            for one in logs
        ]
        summary = summarise_logs(logs) if several else summarise_log(logs[0])
        if isinstance(reporter, RunsReporter):
            text = reporter.render_runs(summary, logs, plugins)
        else:
            text = plugins.report(name, summary, logs[0])
        output = _page(options, logs) if options.html is not None else options.output
    if output is not None and Path(output).is_file():
        checked.append(f"{output} replaces the previous file.")
    write_output(text, output)
    if options.html is not None:
        write_output(f"{output}\n", None)
    print("\n".join(checked), file=sys.stderr)
    return 0


def _format(options: argparse.Namespace) -> str:
    """Return the name of the requested format. Raise OptionError if an option
    contradicts ``--html``.
    """
    if options.html is not None:
        if options.format not in (None, "html"):
            raise OptionError(
                f"--html and --format {options.format} name two formats. Remove one of them."
            )
        if options.html and options.output:
            raise OptionError(
                f"--html {options.html} and --output {options.output} name two files. Remove one of them."
            )
        return "html"
    # An output that ends in .svg is an image.
    is_image = Path(options.output or "").suffix.lower() == ".svg"
    return options.format or ("board" if is_image else "markdown")


def _page(options: argparse.Namespace, logs: Sequence[RunLog]) -> str:
    """Return the path of an HTML page. By default, the page of one run is beside its
    log, and a page of several runs in the working directory.
    """
    beside = "board.html"
    if len(logs) == 1:
        beside = str(inside(logs[0].directory, "report.html"))
    return options.html or options.output or beside


@contextmanager
def _opened(options: argparse.Namespace) -> Iterator[list[RunLog]]:
    results = Path(options.results)
    with ExitStack() as stack:
        yield [
            stack.enter_context(RunLog.open_read_only(locate(results, name)))
            for name in dict.fromkeys(options.runs)
        ]


def _board(options: argparse.Namespace) -> int:
    if options.html is not None or options.format is not None:
        raise OptionError("--board has its own format. Remove --format and --html.")
    with _opened(options) as logs:
        text = board(logs)
    write_output(text, options.output)
    return 0
