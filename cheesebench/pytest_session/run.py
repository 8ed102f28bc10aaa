"""The run of a session: from its options to its log. What collects, runs and reports asks it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.experiment.manifest import new_run_id
from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.experiment.resume import check_resumable
from cheesebench.experiment.session import Progress, RunSession
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, Specification
from cheesebench.pytest_session.settings import read_settings, results_directory

#: Seconds between two looks at the keyboard (and two redraws) while a cell is waited for.
SLICE = 0.2
#: Key of what the controller of pytest-xdist hands to its workers.
WORKER_INPUT = "cheesebench"

Cell = tuple[CellPlan, Specification]


class Run:
    """One run. A worker of pytest-xdist has its controller's run, and runs some cells of it."""

    def __init__(self, config: pytest.Config, plugins: PluginManager) -> None:
        self.config = config
        self.plugins = plugins
        handed: Mapping[str, Any] | None = getattr(config, "workerinput", {}).get(WORKER_INPUT)
        self.is_worker = handed is not None
        self._handed = handed or {}
        self._existing: Path | None = None
        recorded = None
        resume = config.getoption("cheesebench_resume")
        if resume is not None:
            self._existing = locate(results_directory(config), resume)
            with RunLog.open_read_only(self._existing) as log:
                recorded = log.manifest["options"]
        self.settings = read_settings(config, plugins, recorded)
        self.catalogue = Catalogue(plugins.protocol_directories)
        self.log: RunLog | None = None
        self._runner: RunSession | None = None

    @property
    def is_controller(self) -> bool:
        """Whether this is the controller of pytest-xdist, which collects and runs nothing itself."""
        return not self.is_worker and bool(self.config.pluginmanager.hasplugin("dsession"))

    def open(self, cells: Sequence[Cell]) -> None:
        """Open the log, new or resumed; pytest-xdist's controller does not know the cells and gives none."""
        if self.is_worker:
            self.log = RunLog.open(Path(self._handed["log"]))
        elif self._existing is not None:
            self.log = RunLog.open(self._existing)
        else:
            run_id = self.settings.run_id or new_run_id()
            self.log = RunLog.create(self.settings.results, run_id, cells, options=self.settings.recorded)
        if self._existing is not None:
            try:
                check_resumable(self.log, cells, self.settings.seed)
            except CheeseBenchError:
                self.close()  # nothing was run: the old run is not reported again
                raise
        elif self.is_worker:
            self.log.add_cells(cells)

    def start(self, cells: Sequence[Cell]) -> None:
        """Begin to run the cells in the background; a worker begins each when it is asked for its result."""
        assert self.log is not None
        self._runner = RunSession(self.log, self.plugins, cells, seed=self.settings.seed, processes=self._processes())
        if not self.is_worker:
            self._runner.start()

    def _processes(self) -> int | None:
        if self.settings.processes is not None or not self.is_worker:
            return self.settings.processes
        return max(1, (os.cpu_count() or 1) // int(self._handed["workers"]))

    def hand_over(self, workers: int) -> dict[str, Any]:
        """Return what a worker of pytest-xdist must be told."""
        assert self.log is not None
        return {"log": str(self.log.path), "workers": workers}

    def as_logged(self, plan: CellPlan) -> CellPlan:
        """Return the plan of a cell as the run has it: a resumed run is judged by what it was started with."""
        assert self.log is not None
        return next((known for known in self.log.plans() if known.key == plan.key), plan)

    def wait(self, plan: CellPlan, waiting: Callable[[Progress], None]) -> None:
        """Wait until a cell is finished; ``waiting`` is called every SLICE seconds until it is."""
        assert self._runner is not None
        while not self._runner.wait(plan, SLICE):
            waiting(self._runner.progress(plan))

    def lives(self, plan: CellPlan) -> Iterator[list[TrialRecord]]:
        """Yield the trials of a finished cell, one subject after the other."""
        assert self.log is not None
        return self.log.lives_and_gaps(plan)

    def stop(self) -> None:
        """Stop running; what is finished stays in the log."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def close(self) -> None:
        """Stop, and close the log."""
        self.stop()
        if self.log is not None:
            self.log.close()
            self.log = None
