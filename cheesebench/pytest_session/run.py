"""The run of a session of pytest: what its command line, its terminal and pytest-xdist add to a run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import ComparisonError
from cheesebench.experiment.contestants import LanguageModel
from cheesebench.experiment.language_models import CallOptions
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.records import CellPlan
from cheesebench.options import BY_KEY
from cheesebench.plugin_manager import PluginManager
from cheesebench.pytest_session.comparing import read_comparing
from cheesebench.pytest_session.progress import tell_uncaptured, teller
from cheesebench.pytest_session.settings import read_options, results_directory, usual_protocols
from cheesebench.running.run import Cell, ModelRun, read_earlier
from cheesebench.running.settings import read_settings
from cheesebench.running.tally import Tally
from cheesebench.statistics.course import CellCourse

#: Key of what the controller of pytest-xdist hands to its workers.
WORKER_INPUT = "cheesebench"
#: A file in the run's directory that is there while the workers of pytest-xdist are to end before their cells do.
HALT = "halt"


class Run(ModelRun):
    """One run. A worker of pytest-xdist has its controller's run, and runs some cells of it."""

    def __init__(self, config: pytest.Config, plugins: PluginManager) -> None:
        self.config = config
        handed: Mapping[str, Any] | None = getattr(config, "workerinput", {}).get(WORKER_INPUT)
        self.is_worker = handed is not None
        self._handed = handed or {}
        resume = config.getoption(BY_KEY["resume"].destination)
        if resume is not None:  # to a worker, the latest run may be another one by now
            resume = self._handed.get("log", resume)
        models = config.getoption(BY_KEY["model"].destination) or ()
        earlier = read_earlier(plugins, results_directory(config), resume, models)
        replays = earlier.replayed is not None
        options = read_options(config, earlier.recorded, replays, earlier.made_here)
        directory = config.invocation_params.dir
        settings = read_settings(options, plugins, directory, usual_protocols(config), earlier.replayed)
        super().__init__(settings, plugins, earlier, teller(config))
        #: What this run is to be compared with; a worker leaves that to its controller.
        self._stopped_by = read_comparing(config, settings.results, self._handed.get("baseline"), earlier.existing)
        self.comparing = None if self.is_worker else self._stopped_by
        #: How far the whole run is; None before it is started, and where the cells are spread over workers.
        self.tally: Tally | None = None
        self._base_urls |= self._handed.get("base_urls", {})

    @property
    def is_controller(self) -> bool:
        """Whether this is the controller of pytest-xdist, which collects and runs nothing itself."""
        return not self.is_worker and bool(self.config.pluginmanager.hasplugin("dsession"))

    @property
    def needs_one_worker(self) -> bool:
        """Whether all cells go to one worker of pytest-xdist, because they share a budget."""
        limits = self.settings.calls.limits
        return bool(self.settings.language) and (limits.cost is not None or limits.tokens is not None)

    @property
    def has_all_cells(self) -> bool:
        """Whether this is the worker that runs all cells, or none: see ``one_worker``."""
        return bool(self._handed.get("one_worker"))

    def open(self, cells: Sequence[Cell]) -> None:
        """Open the log, new or resumed; pytest-xdist's controller does not know the cells and gives none."""
        whole = [plan for plan, _ in self.whole or cells]
        if self._stopped_by is not None and cells:
            # Of a worker's cells the controller says at the end that they cannot be compared.
            try:
                self._stopped_by.check(whole, self.settings.seed)
            except ComparisonError:
                if not self.is_worker:
                    raise
        super().open(cells)

    def start(self, cells: Sequence[Cell]) -> None:
        """Start running the cells in the background."""
        super().start(cells)
        if not self.is_worker:
            self.tally = Tally(self, [plan for plan, _ in cells])

    def start_all(self) -> None:
        """Start all cells in a worker that has them all; those that were started before are ignored."""
        assert self._runner is not None
        self._runner.start()

    def _open_log(self, cells: Sequence[Cell]) -> None:
        if not self.is_worker:
            super()._open_log(cells)
            return
        self.log = RunLog.open(Path(self._handed["log"]))
        if self._existing is None:
            self.log.add_cells(cells)

    def _call_options(self) -> CallOptions:
        options = self.settings.calls
        if not self.is_worker:
            return options
        # Workers share the account: each gets its share of the calls in flight.
        workers = 1 if self.has_all_cells else int(self._handed["workers"])
        share = max(1, options.concurrency // workers)
        return replace(options, concurrency=share, processes=workers, began=float(self._handed["began"]))

    def _models(self) -> dict[str, LanguageModel]:
        models = super()._models()
        if not self.is_worker:
            return models
        # Each worker deals for itself; where each begins elsewhere, the servers have equal shares.
        worker = int(self.config.workerinput["workerid"].removeprefix("gw"))  # type: ignore[attr-defined]
        return {
            name: replace(model, base_urls=urls[worker % len(urls) :] + urls[: worker % len(urls)]) if urls else model
            for name, model in models.items()
            for urls in [model.base_urls]
        }

    def _processes(self) -> int | None:
        if self.settings.processes is not None or not self.is_worker or self.has_all_cells:
            return self.settings.processes
        return max(1, (os.cpu_count() or 1) // int(self._handed["workers"]))

    def hand_over(self, workers: int, one_worker: bool) -> dict[str, Any]:
        """Return the data that a pytest-xdist worker needs; ``one_worker``: all cells go to the same one."""
        assert self.log is not None
        self.call_off_halt()
        return {
            "log": str(self.log.path),
            "baseline": str(self._stopped_by.path) if self._stopped_by is not None else None,
            "workers": workers,
            "one_worker": one_worker,
            "base_urls": self._base_urls,
            "began": self.settings.calls.began,
        }

    @property
    def is_halted(self) -> bool:
        """Whether the controller wants this worker to end now."""
        return self.is_worker and (Path(self._handed["log"]).parent / HALT).exists()

    def halt_workers(self) -> None:
        """Have the workers end before their cells do; pytest-xdist itself waits until each has finished its test."""
        assert self.log is not None
        with contextlib.suppress(OSError):  # on a full disk they end as late as pytest-xdist has it
            (self.log.directory / HALT).touch()

    def call_off_halt(self) -> None:
        """Forget that the workers were to end, in this session or in one that was killed."""
        if self.log is not None:
            with contextlib.suppress(OSError):
                (self.log.directory / HALT).unlink(missing_ok=True)

    def course_of(self, plan: CellPlan) -> CellCourse:
        """Return the course of a cell (when it stops), taking the comparison with a baseline into account."""
        if self._stopped_by is None:
            return super().course_of(plan)
        if self.is_controller and self.log is not None:  # it knows the cells from the log only
            with contextlib.suppress(ComparisonError):
                self._stopped_by.check(self.log.plans(), self.settings.seed)
        return self._stopped_by.course_of(plan)

    def _tell_at_once(self, line: str) -> None:
        tell_uncaptured(self.config, line)
