"""``cheesebench film``: writes a recorded trial as a moving picture, for a talk or a
pull request.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench import filming
from cheesebench.commands.common import (
    add_cell,
    add_recorded_trial,
    add_run,
    choose_cell,
    describe,
    positive_number,
    write_bytes,
)
from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.plugin_manager import installed_plugins

if TYPE_CHECKING:
    from cheesebench.records import CellPlan, TrialRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "The trial is replayed from the run's log and checked against it. Subjects count from 0, trials from 1. The "
        "film starts again when it has ended.",
        "20250131-093000-ab12 --output trial.gif",
        "20250131-093000-ab12 --protocol barnes_maze --subject 3 --trial 20 --output learned.gif",
    )
    add_run(parser)
    add_cell(parser)
    add_recorded_trial(parser, " (default: its last one)")
    parser.add_argument(
        "--speed",
        metavar="N",
        type=positive_number,
        default=5,
        help="steps a second (default: 5)",
    )
    parser.add_argument(
        "--output",
        metavar="GIF",
        required=True,
        help="the file to write, such as x.gif",
    )


def run(options: argparse.Namespace) -> int:
    plugins = installed_plugins()
    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        plan = choose_cell(log.plans(), options)
        filming.check(plan, options.output)
        record = _record(log, plan, options)
        content = filming.film_of(log, plugins, plan, record, options.speed)
    write_bytes(content, options.output)
    print(
        f"{plan.label}, {plan.model}, subject {record.subject}, trial {record.trial + 1}: {record.outcome}"
    )
    return 0


def _record(log: RunLog, plan: CellPlan, options: argparse.Namespace) -> TrialRecord:
    run = [one for one in log.trials(plan, options.subject) if not one.missing]
    found = [one for one in run if options.trial in (None, one.trial + 1)]
    if not found:
        which = f"trial {options.trial} of " if run else ""
        raise RunLogError(
            f"The run has no {which}subject {options.subject} of {plan.model} on {plan.label}. Name another --subject or --trial."
        )
    return found[-1]
