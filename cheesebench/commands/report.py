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
    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        manifest, plans, trials = log.manifest, log.plans(), log.trials_and_gaps()
    from cheesebench.statistics import summarise_run

    write_output(reporter.render(summarise_run(manifest, plans, trials)), options.output)
    return 0
