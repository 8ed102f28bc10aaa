"""``cheesebench report``: what a run came to, computed from its log."""

from __future__ import annotations

import argparse
from pathlib import Path

from cheesebench.commands.common import write_output
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.plugin_manager import installed_plugins


def run(options: argparse.Namespace) -> int:
    """Judge the run's trials and write the report."""
    reporter = installed_plugins().reporter(options.format)
    from cheesebench.statistics import summarise_lives

    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        summary = summarise_lives(log.manifest, log.plans(), log.lives_and_gaps, log.calls.by_cell())
    write_output(reporter.render(summary), options.output)
    return 0
