"""``cheesebench merge``: makes one run from the shards that several sessions ran."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cheesebench.commands import FINDINGS
from cheesebench.commands.common import (
    add_option,
    counted,
    describe,
    one_line,
    shown_path,
    write_output,
)
from cheesebench.experiment import unfinished
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.experiment.provenance import check_run_id
from cheesebench.experiment.shards import merge_runs
from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import CellPlan
from cheesebench.statistics.judgement import judge_set
from cheesebench.summaries import summarise_log

#: Maximum number of missing cells that are named.
_NAMED = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "The shards (pytest --shard 1/8, ...) may be given in any order. The merged run can be judged, reported, "
        "compared and resumed like any other. The exit code is 1 if a shard is missing or a cell unfinished.",
        "results/part-1 results/part-2",
        "parts/*/ --run-id tuesday",
    )
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="+",
        help="the id of a shard's run, its directory, or its file",
    )
    add_option(parser, "results")
    add_option(parser, "run-id")


def run(options: argparse.Namespace) -> int:
    results = Path(options.results)
    if options.run_id is not None:
        check_run_id(options.run_id)
    shards = [locate(results, name) for name in options.runs]
    plugins, texts, left = installed_plugins(), list[str](), list[CellPlan]()

    def complete(log: RunLog) -> None:
        summary = summarise_log(log)
        report = plugins.report("markdown", summary, log)
        write_output(report, str(log.directory / "report.md"))
        texts.append(plugins.report("text", summary, log))
        left.extend(
            plan for plan in log.plans() if unfinished.left_to_run(log, plan, judge_set)
        )

    merged = merge_runs(shards, results, options.run_id, complete)
    write_output(texts[0], None)
    directory = merged.path.parent
    absent = {plan.key for cells in merged.missing.values() for plan in cells}
    waiting = [plan for plan in left if plan.key not in absent]
    lines = [
        *(
            f"Missing: shard {shard} ({_cells(cells)})."
            for shard, cells in merged.missing.items()
        ),
        *([f"Unfinished: {_cells(waiting)}."] if waiting else []),
    ]
    if lines:
        lines.append(
            "To run the rest here: pytest with the options of the shards, without --shard and with "
            f"--resume {directory.name}"
        )
    parts = f"{counted(merged.parts, 'shard')}, {counted(merged.cells, 'cell')}"
    print(
        f"Run: {one_line(shown_path(directory))} ({parts})",
        *lines,
        sep="\n",
        file=sys.stderr,
    )
    return FINDINGS if lines else 0


def _cells(plans: Sequence[CellPlan]) -> str:
    names = [f"{plan.label} in {plan.view} by {plan.model}" for plan in plans]
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{counted(len(names), 'cell')}: {one_line(', '.join(names[:_NAMED]))}{more}"
