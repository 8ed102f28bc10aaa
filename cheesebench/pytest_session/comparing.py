"""``--compare``: the run of this session against a baseline or an earlier run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cheesebench.baselines import DIRECTORY, count_run, locate_counted, read_counted
from cheesebench.errors import OptionError
from cheesebench.experiment.log_file import FILE_NAME
from cheesebench.options import BY_KEY
from cheesebench.pytest_session.settings import read_options
from cheesebench.statistics.counts import CountedRun, count_cell
from cheesebench.statistics.course import Baseline, CellCourse
from cheesebench.statistics.runs import ComparisonReporter, RunComparison, compare_runs, match_runs

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellKey, CellPlan
    from cheesebench.plugin_manager import PluginManager


class Comparing:
    """The baseline that this session's run is compared with. Methods raise ComparisonError if they do not match."""

    def __init__(self, path: Path, *, fails_if_worse: bool, only: bool) -> None:
        self.path = path
        self._baseline = read_counted(path)
        self.fails_if_worse = fails_if_worse
        #: Whether the comparison alone decides the exit status.
        self._only = only
        self._cells: dict[CellKey, Baseline] = {}

    @property
    def run_id(self) -> str | None:
        """The run that it is; None if it is a baseline's file."""
        return self.path.parent.name if self.path.name == FILE_NAME else None

    def check(self, plans: Iterable[CellPlan], seed: int) -> None:
        """Raise ComparisonError, before anything is run, if the cells cannot be compared with the baseline."""
        cells = tuple(count_cell(plan, ()) for plan in plans)
        pairs, _ = match_runs(CountedRun(name="this run", seed=seed, cells=cells), self._baseline)
        together = Counter((one.model, other.model, one.view, one.variant) for one, other in pairs)
        for one, other in pairs if self.fails_if_worse else ():
            tests = together[one.model, other.model, one.view, one.variant]
            key = (one.model, one.protocol, one.view, one.variant)
            self._cells[key] = Baseline(subjects=other.subjects, tests=tests, only=self._only)

    def course_of(self, plan: CellPlan) -> CellCourse:
        """Return the course of a sequential cell; it continues until the comparison is decided, too."""
        return CellCourse(plan, self._cells.get(plan.key))

    def compare(self, log: RunLog) -> RunComparison:
        """Return the comparison of the finished run with the baseline."""
        return compare_runs(count_run(log), self._baseline)


def read_comparing(config: pytest.Config, results: Path, found: str | None, continued: Path | None) -> Comparing | None:
    """Return what the command line wants to be compared with; None for nothing.

    ``found`` is the file that the controller has found, for a worker: to that the run itself would be the latest.
    ``continued`` is the run that is resumed.
    """
    options = read_options(config)
    name, fail = options.value("compare"), options.given["compare_fail"]
    if name is None:
        if fail is not None:
            spelling = options.spelling("compare_fail")
            raise OptionError(f"{spelling} needs a baseline: add {BY_KEY['compare'].short} BASELINE.")
        return None
    path = Path(found) if found else locate_counted(results, name, config.rootpath / DIRECTORY)
    if continued is not None and path.samefile(continued):
        raise OptionError(
            f"{options.spelling('compare')} {name}: that is the run that is continued. Name the baseline."
        )
    return Comparing(path, fails_if_worse=fail == "worse", only=bool(options.value("exit_zero")))


def shown(plugins: PluginManager, comparison: RunComparison, name: str) -> str:
    """Return a comparison as rendered by the reporter of that name; empty if it cannot render comparisons."""
    reporter = plugins.reporter(name)
    if isinstance(reporter, ComparisonReporter):
        return reporter.render_comparison(comparison)
    return ""  # a plugin has replaced our reporter
