"""``--cheese-compare``: the run of this session against a baseline or an earlier run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cheesebench.baselines import DIRECTORY, count_run, find_counted
from cheesebench.errors import OptionError
from cheesebench.statistics.counts import CountedRun, count_cell
from cheesebench.statistics.runs import ComparisonReporter, RunComparison, compare_runs, match_runs

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan
    from cheesebench.plugin_manager import PluginManager

#: Options of pytest that the baseline comes from.
_BASELINE, _FAIL = "cheesebench_compare", "cheesebench_compare_fail"


class Comparing:
    """What this session's run is compared with, if it is. Raises CheeseBenchErrors for what cannot be compared."""

    def __init__(self, config: pytest.Config, baseline: CountedRun) -> None:
        self._baseline = baseline
        self.fails_if_worse = config.getoption(_FAIL) == "worse"

    def check(self, plans: Iterable[CellPlan], seed: int) -> None:
        """Refuse, before anything is run, what could not be compared afterwards."""
        cells = tuple(count_cell(plan, ()) for plan in plans)
        match_runs(CountedRun(name="this run", seed=seed, cells=cells), self._baseline)

    def compare(self, log: RunLog) -> RunComparison:
        """Return the finished run against the baseline."""
        return compare_runs(count_run(log), self._baseline)


def read_comparing(config: pytest.Config, results: Path) -> Comparing | None:
    """Return what the command line wants to be compared with; None for nothing."""
    name = config.getoption(_BASELINE)
    if name is None:
        if config.getoption(_FAIL) is not None:
            raise OptionError("--compare-fail has nothing to compare with: add --cheese-compare BASELINE.")
        return None
    return Comparing(config, find_counted(results, name, config.rootpath / DIRECTORY))


def shown(plugins: PluginManager, comparison: RunComparison, name: str) -> str:
    """Return a comparison as the reporter of that name shows it."""
    reporter = plugins.reporter(name)
    if isinstance(reporter, ComparisonReporter):
        return reporter.render_comparison(comparison)
    return ""  # somebody has put a reporter of their own in the place of ours
