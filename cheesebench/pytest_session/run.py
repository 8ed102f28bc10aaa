"""The run of a session, from its options to its log; used by the collection, running and reporting hooks."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.chat import Server
from cheesebench.errors import CheeseBenchError, ComparisonError, OptionError
from cheesebench.experiment.contestants import replayed_models
from cheesebench.experiment.language_models import (
    LanguageModels,
    connected,
    probe,
    start_servers,
    stop_after_failure,
    stop_servers,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import claim, locate
from cheesebench.experiment.looks import is_finished
from cheesebench.experiment.manifest import describe_protocols, new_run_id
from cheesebench.experiment.provenance import made_here
from cheesebench.experiment.records import CellCalls, CellPlan, TrialRecord
from cheesebench.experiment.resume import check_resumable
from cheesebench.experiment.scheduling import Progress
from cheesebench.experiment.session import RunSession
from cheesebench.experiment.shards import KEY as SHARD
from cheesebench.experiment.shards import describe_shard
from cheesebench.family import CellRequest
from cheesebench.options import BY_KEY
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import BaseSpecification, Catalogue
from cheesebench.pytest_session.comparing import read_comparing
from cheesebench.pytest_session.progress import tell_uncaptured, teller
from cheesebench.pytest_session.settings import read_settings, results_directory
from cheesebench.statistics.course import CellCourse

#: Seconds between two looks at the keyboard (and two redraws) while a cell is waited for.
SLICE = 0.2
#: Seconds without any reply after which a line says so, and until the next such line.
SILENCE, REMINDER = 60.0, 240.0
#: Key of what the controller of pytest-xdist hands to its workers.
WORKER_INPUT = "cheesebench"

Cell = tuple[CellPlan, BaseSpecification]


class Run:
    """One run. A worker of pytest-xdist has its controller's run, and runs some cells of it."""

    def __init__(self, config: pytest.Config, plugins: PluginManager) -> None:
        self.config = config
        self.plugins = plugins
        handed: Mapping[str, Any] | None = getattr(config, "workerinput", {}).get(WORKER_INPUT)
        self.is_worker = handed is not None
        self._handed = handed or {}
        self._existing: Path | None = None
        recorded, replayed, ours = None, None, True
        resume, results = config.getoption(BY_KEY["resume"].destination), results_directory(config)
        if resume is not None:
            self._existing = locate(results, resume)
            with RunLog.open_read_only(self._existing) as log:
                manifest = log.manifest
                recorded, ours = manifest["options"], made_here(manifest)
        #: The run whose replies are given once more, in place of calls.
        self.source: RunLog | None = None
        replay = _replayed(config)
        if replay is not None and resume is None:
            self.source = RunLog.open_read_only(locate(results, replay))
            recorded = self.source.manifest["options"]
            replayed = replayed_models(plugins, self.source.plans())
        self.settings = read_settings(config, plugins, recorded, replayed, ours)
        self.catalogue = Catalogue(plugins.protocol_directories, plugins.families)
        #: What this run is to be compared with; a worker leaves that to its controller.
        self._stopped_by = read_comparing(config, self.settings.results)
        self.comparing = None if self.is_worker else self._stopped_by
        self.log: RunLog | None = None
        self._lock: sqlite3.Connection | None = None
        self._runner: RunSession | None = None
        self._servers: dict[str, Server] = {}
        #: Of how many seconds without a reply it was told last.
        self._silence_said = 0.0
        #: With ``--shard``: the cells of all shards.
        self.whole: Sequence[Cell] = []
        self._base_urls: dict[str, str] = dict(self._handed.get("base_urls", {}))

    @property
    def is_controller(self) -> bool:
        """Whether this is the controller of pytest-xdist, which collects and runs nothing itself."""
        return not self.is_worker and bool(self.config.pluginmanager.hasplugin("dsession"))

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
        plans = [plan for plan in whole if not plan.in_words]
        for control in self.settings.controls if plans else ():
            if all(plan.control != control for plan in plans):
                raise OptionError(
                    f"--control {control}: these protocols have nothing that it removes. Name a state, zone or "
                    "landmarks of one of them."
                )
        if self.is_worker:
            self.log = RunLog.open(Path(self._handed["log"]))
        elif self._existing is not None:
            self._lock = claim(self._existing)
            self.log = RunLog.open(self._existing)
            self.log.check_pages()
        else:
            run_id = self.settings.run_id or new_run_id()
            self.log = RunLog.create(
                self.settings.results,
                run_id,
                cells,
                options=self.settings.recorded,
                # A replay makes no calls; its manifest must not vouch for what somebody else may have written.
                signed=bool(self.settings.language) and self.source is None,
                plugins=self.plugins.strangers(),
            )
            self._lock = claim(self.log.path)
        if self.settings.shard is not None and self.whole and self._existing is None:
            self.log.add_to_manifest(
                {
                    "protocols": describe_protocols(specification for _, specification in self.whole),
                    SHARD: describe_shard(self.settings.shard, whole),
                }
            )
        if self._existing is not None:
            try:
                check_resumable(self.log, cells, self.settings.seed)
            except CheeseBenchError:
                self.close()  # nothing was run: the old run is not reported again
                raise
        elif self.is_worker:
            self.log.add_cells(cells)
        if self.source is not None:
            check_resumable(self.source, cells, self.settings.seed, "replayed")
        if not self.is_worker:
            self._reach_models(cells)

    def _reach_models(self, cells: Sequence[Cell]) -> None:
        """Start the servers that are needed, and make one test call to every model before anything runs."""
        assert self.log is not None
        models = {} if self.source is not None else dict(self.settings.language)
        if cells and self._existing is not None:
            # Models whose cells are all finished need no server.
            open_models = {plan.model for plan, _ in cells if not is_finished(self.log, plan, self.course_of)}
            models = {name: model for name, model in models.items() if name in open_models}
        if not models:
            return
        try:
            self._servers = start_servers(models, self.log.directory, teller(self.config))
            self._base_urls |= {name: server.base_url for name, server in self._servers.items()}
            probe(connected(models, self._base_urls), self.log.directory)
        except BaseException:
            directory = self.log.directory
            servers, self._servers = self._servers, {}
            stop_after_failure(servers, teller(self.config))
            self.close()
            self._forget(directory)
            raise

    def _forget(self, directory: Path) -> None:
        """Remove the directory of a new run that could not begin, unless a server has left a log there."""
        if self._existing is None and not self.is_worker and not any(directory.glob("*.log")):
            shutil.rmtree(directory, ignore_errors=True)

    def start(self, cells: Sequence[Cell]) -> None:
        """Start running the cells in the background; a worker starts each cell when its item is run."""
        assert self.log is not None
        settings = self.settings
        language = None
        if settings.language:
            options = settings.calls
            if self.is_worker:
                # Workers share the account: each gets its share of the calls in flight.
                share = max(1, options.concurrency // int(self._handed["workers"]))
                options = replace(options, concurrency=share, shared=True, began=float(self._handed["began"]))
            models = connected(settings.language, self._base_urls)
            language = LanguageModels(self.log, models, options, self.source)
        self._runner = RunSession(
            self.log,
            self.plugins,
            cells,
            seed=settings.seed,
            processes=self._processes(),
            executor=settings.executor,
            executor_options=settings.executor_options,
            language=language,
            course_of=self.course_of,
            ahead=settings.ahead,
        )
        try:
            self._runner.connect()
        except BaseException:
            directory = self.log.directory
            self.close()
            self._forget(directory)
            raise
        if not self.is_worker:
            self._runner.start()

    def _processes(self) -> int | None:
        if self.settings.processes is not None or not self.is_worker:
            return self.settings.processes
        return max(1, (os.cpu_count() or 1) // int(self._handed["workers"]))

    def hand_over(self, workers: int) -> dict[str, Any]:
        """Return the data that a pytest-xdist worker needs."""
        assert self.log is not None
        return {
            "log": str(self.log.path),
            "workers": workers,
            "base_urls": self._base_urls,
            "began": self.settings.calls.began,
        }

    def plans(self, specification: BaseSpecification, model: str) -> Iterable[CellPlan]:
        """Return the plans of all cells of a model on a protocol. Raises UnsuitableError if it cannot be run on it."""
        settings = self.settings
        request = CellRequest(
            model=model,
            plugins=self.plugins,
            design=settings.designs[model],
            language=settings.language.get(model),
            views=settings.views,
            controls=settings.controls,
            study=settings.study,
            temperatures=settings.temperatures,
            generations=settings.generations,
            against=settings.against,
        )
        return self.plugins.family(specification).cells(specification, request)

    def course_of(self, plan: CellPlan) -> CellCourse:
        """Return the course of a cell (when it stops), taking the comparison with a baseline into account."""
        if self._stopped_by is None:
            return CellCourse(plan)
        if self.is_controller and self.log is not None:  # it knows the cells from the log only
            with contextlib.suppress(ComparisonError):
                self._stopped_by.check(self.log.plans(), self.settings.seed)
        return self._stopped_by.course_of(plan)

    def as_logged(self, plan: CellPlan) -> CellPlan:
        """Return the plan of a cell as the run has it: a resumed run is judged by what it was started with."""
        assert self.log is not None
        return next((known for known in self.log.plans() if known.key == plan.key), plan)

    def wait(self, plan: CellPlan, waiting: Callable[[Progress], None]) -> None:
        """Wait until a cell is finished; ``waiting`` is called every SLICE seconds until it is."""
        assert self._runner is not None
        try:
            while not self._runner.wait(plan, SLICE):
                waiting(self._runner.progress(plan))
                self._say_silence(self._runner.silence())
        except KeyboardInterrupt:
            self.stop_sending()
            raise

    def stop_sending(self) -> None:
        """Make no further call: the session ends, and what is not sent need not be paid for."""
        if self._runner is not None:
            self._runner.stop_sending()

    def _say_silence(self, silence: tuple[str, float, str] | None) -> None:
        """Write a line when nothing has been answered for a minute, and again for as long as that lasts."""
        model, seconds, fault = silence or ("", 0.0, "")
        if seconds < SILENCE:
            self._silence_said = 0.0
        elif seconds >= self._silence_said + (REMINDER if self._silence_said else 0.0):
            self._silence_said = seconds
            said = f" ({fault})" if fault else ""
            tell_uncaptured(self.config, f"cheesebench: no reply from '{model}' for {seconds:.0f} s{said}; waiting.")

    def trials_by_subject(self, plan: CellPlan) -> Iterator[list[TrialRecord]]:
        """Yield the trials of a finished cell, subject by subject."""
        assert self.log is not None
        return self.log.trials_by_subject(plan)

    def calls(self, plan: CellPlan) -> CellCalls | None:
        """Return the totals of a cell's calls to its model; None if there were none."""
        assert self.log is not None
        return self.log.calls.of_cell(plan)

    def causes(self, plan: CellPlan) -> tuple[str, ...]:
        """Return why trials of a cell could not be run."""
        assert self.log is not None
        return self.log.causes(plan).get(plan.key, ())

    def stop(self) -> None:
        """Stop running; finished trials stay in the log."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def close(self) -> None:
        """Stop, and close the log."""
        self.stop()
        servers, self._servers = self._servers, {}
        try:
            stop_servers(servers)
        finally:
            if self.log is not None:
                self.log.close()
                self.log = None
            if self._lock is not None:
                self._lock.close()
                self._lock = None


def _replayed(config: pytest.Config) -> str | None:
    """Return the run that ``--model replay:RUN`` names, None without it."""
    given: list[str] = [
        name.strip() for part in config.getoption(BY_KEY["model"].destination) or () for name in part.split(",")
    ]
    runs = [name.partition(":")[2] for name in given if name.startswith("replay:")]
    if not runs:
        return None
    if len(given) > 1 or not runs[0]:
        raise OptionError(f"--model {','.join(given)}: give 'replay:RUN' alone, with one run.")
    return runs[0]
