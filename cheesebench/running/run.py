"""One run of models through protocols, from its settings to its log: the same for pytest and for Python."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cheesebench.chat import Server
from cheesebench.errors import CheeseBenchError, OptionError
from cheesebench.experiment.contestants import LanguageModel, replayed_models
from cheesebench.experiment.language_models import (
    CallOptions,
    LanguageModels,
    base_urls,
    connected,
    probe,
    start_servers,
    stop_after_failure,
    stop_servers,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import claim, locate
from cheesebench.experiment.log_types import check_fits
from cheesebench.experiment.looks import is_finished
from cheesebench.experiment.manifest import describe_protocols, new_run_id
from cheesebench.experiment.provenance import made_here
from cheesebench.experiment.records import CellCalls, CellPlan, TrialRecord
from cheesebench.experiment.resume import check_resumable
from cheesebench.experiment.scheduling import Progress
from cheesebench.experiment.selection import cells_of
from cheesebench.experiment.session import RunSession
from cheesebench.experiment.shards import KEY as SHARD
from cheesebench.experiment.shards import describe_shard
from cheesebench.family import CellRequest
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import BaseSpecification, Catalogue
from cheesebench.running.settings import Settings
from cheesebench.statistics.course import CellCourse

#: Seconds between two looks at the keyboard (and two redraws) while a cell is waited for.
SLICE = 0.2
#: Seconds without any reply after which a line says so, and until the next such line.
SILENCE, REMINDER = 60.0, 240.0

Cell = tuple[CellPlan, BaseSpecification]


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What an earlier run says about this one: the one that is resumed, or whose replies are given once more."""

    existing: Path | None = None
    """The log that is continued."""
    source: RunLog | None = None
    """The run whose replies are given once more, in place of calls."""
    recorded: Mapping[str, Any] | None = None
    """Its options."""
    replayed: Mapping[str, LanguageModel] | None = None
    """Its language models."""
    made_here: bool = True
    """Whether it was made by this user on this machine."""


def read_earlier(plugins: PluginManager, results: Path, resume: str | None, models: Iterable[str]) -> Earlier:
    """Return what an earlier run in ``results`` says: ``resume``, or that of ``replay:RUN`` among the models."""
    if resume is not None:
        existing = locate(results, resume)
        with RunLog.open_read_only(existing) as log:
            manifest = log.manifest
            return Earlier(existing=existing, recorded=manifest["options"], made_here=made_here(manifest))
    replay = _replayed([name.strip() for part in models for name in part.split(",")])
    if replay is None:
        return Earlier()
    source = RunLog.open_read_only(locate(results, replay, exact=True))
    return Earlier(
        source=source, recorded=source.manifest["options"], replayed=replayed_models(plugins, source.plans())
    )


class ModelRun:
    """One run: ``open``, ``start``, ``wait`` for every cell, ``close``. ``tell`` is called with lines for people."""

    is_worker = False

    def __init__(
        self,
        settings: Settings,
        plugins: PluginManager,
        earlier: Earlier | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        earlier = earlier or Earlier()
        self.settings = settings
        self.plugins = plugins
        self.source = earlier.source
        self.catalogue = Catalogue(plugins.protocol_directories, plugins.families)
        self.log: RunLog | None = None
        self._tell = tell
        self._existing = earlier.existing
        self._lock: sqlite3.Connection | None = None
        self._runner: RunSession | None = None
        self._language: LanguageModels | None = None
        self._servers: dict[str, Server] = {}
        #: Of how many seconds without a reply it was told last.
        self._silence_said = 0.0
        self._base_urls: dict[str, list[str]] = {}
        #: With ``--shard``: the cells of all shards.
        self.whole: Sequence[Cell] = []

    def of_shard(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells of this run's shard: all of them, unless it is one."""
        if self.settings.shard is None:
            return list(cells)
        self.whole = cells
        mine = {plan.key for plan in self.settings.shard.part([plan for plan, _ in cells])}
        return [(plan, specification) for plan, specification in cells if plan.key in mine]

    def open(self, cells: Sequence[Cell]) -> None:
        """Open the log, new or resumed, and reach the models."""
        plans = [plan for plan, _ in self.whole or cells if not plan.in_words]
        for control in self.settings.controls if plans else ():
            if all(plan.control != control for plan in plans):
                raise OptionError(
                    f"--control {control}: these protocols have nothing that it removes. Name a state, zone or "
                    "landmarks of one of them."
                )
        for plan, _ in cells:
            check_fits(plan)
        self._open_log(cells)
        assert self.log is not None
        if self.settings.shard is not None and self.whole and self._existing is None:
            self.log.add_to_manifest(
                {
                    "protocols": describe_protocols(specification for _, specification in self.whole),
                    SHARD: describe_shard(self.settings.shard, [plan for plan, _ in self.whole]),
                }
            )
        if self._existing is not None:
            try:
                check_resumable(self.log, cells, self.settings.seed)
            except CheeseBenchError:
                self.close()  # nothing was run: the old run is not reported again
                raise
        if self.source is not None:
            check_resumable(self.source, cells, self.settings.seed, "replayed")
        if not self.is_worker:
            self._reach_models(cells)

    def _open_log(self, cells: Sequence[Cell]) -> None:
        if self._existing is not None:
            self._lock = claim(self._existing)
            self.log = RunLog.open(self._existing)
            self.log.check_pages()
            return
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
            self._servers = start_servers(models, self.log.directory, self._tell)
            self._base_urls |= base_urls(models, self._servers)
            probe(connected(models, self._base_urls), self.log.directory, self._tell)
        except BaseException:
            directory = self.log.directory
            servers, self._servers = self._servers, {}
            stop_after_failure(servers, self._tell)
            self.close()
            self._forget(directory)
            raise

    def _forget(self, directory: Path) -> None:
        """Remove the directory of a new run that could not begin, unless something has left a log there."""
        if self._existing is None and not self.is_worker and not any(directory.glob("*.log")):
            shutil.rmtree(directory, ignore_errors=True)

    def start(self, cells: Sequence[Cell]) -> None:
        """Start running the cells in the background; a worker starts each cell when it is waited for."""
        assert self.log is not None
        settings = self.settings
        if settings.language:
            self._language = LanguageModels(self.log, self._models(), self._call_options(), self.source)
        self._runner = RunSession(
            self.log,
            self.plugins,
            cells,
            seed=settings.seed,
            processes=self._processes(),
            executor=settings.executor,
            executor_options=settings.executor_options,
            language=self._language,
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

    def _models(self) -> dict[str, LanguageModel]:
        return connected(self.settings.language, self._base_urls)

    def _call_options(self) -> CallOptions:
        return self.settings.calls

    def _processes(self) -> int | None:
        return self.settings.processes

    def plans(self, specification: BaseSpecification, model: str) -> list[CellPlan]:
        """Return the plans of all cells of a model on a protocol.

        Raises UnsuitableError if it cannot be run on it, PluginError if its family is wrong.
        """
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
        return cells_of(specification, request)

    def course_of(self, plan: CellPlan) -> CellCourse:
        """Return the course of a cell: when it stops."""
        return CellCourse(plan)

    def as_logged(self, plan: CellPlan) -> CellPlan:
        """Return the plan of a cell as the run has it: a resumed run is judged by what it was started with."""
        assert self.log is not None
        return next((known for known in self.log.plans() if known.key == plan.key), plan)

    def is_over(self, plan: CellPlan) -> bool:
        """Return whether a cell is finished, or could not be."""
        assert self._runner is not None
        try:
            return self._runner.wait(plan, 0)
        except Exception:  # whoever waits for it is told
            return True

    def progress(self, plan: CellPlan) -> Progress:
        """Return how far a cell has come."""
        assert self._runner is not None
        return self._runner.progress(plan)

    def wait(self, plan: CellPlan, waiting: Callable[[Progress], None]) -> None:
        """Wait until a cell is finished; ``waiting`` is called every SLICE seconds until it is."""
        assert self._runner is not None
        try:
            while not self._runner.wait(plan, SLICE):
                waiting(self._runner.progress(plan))
                self.mention_silence()
            self.mention_news()
        except KeyboardInterrupt:
            self.stop_sending()
            raise

    def stop_sending(self) -> None:
        """Make no further call: the session ends, and what is not sent need not be paid for."""
        if self._runner is not None:
            self._runner.stop_sending()

    def mention_silence(self) -> None:
        """Write a line when nothing has been answered for a minute, and again for as long as that lasts."""
        self.mention_news()
        assert self._runner is not None
        model, seconds, fault = self._runner.silence() or ("", 0.0, "")
        if seconds < SILENCE:
            self._silence_said = 0.0
        elif seconds >= self._silence_said + (REMINDER if self._silence_said else 0.0):
            self._silence_said = seconds
            said = f" ({fault})" if fault else ""
            self._tell_at_once(f"cheesebench: no reply from '{model}' for {seconds:.0f} s{said}; waiting.")

    def mention_news(self) -> None:
        """Write a line for every model server that has died or come back."""
        for line in self._language.news() if self._language is not None else ():
            self._tell_at_once(f"cheesebench: {line}")

    def _tell_at_once(self, line: str) -> None:
        self._tell(line)

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
            if self.source is not None:
                self.source.close()


def _replayed(given: Sequence[str]) -> str | None:
    """Return the run that ``--model replay:RUN`` names, None without it."""
    runs = [name.partition(":")[2] for name in given if name.startswith("replay:")]
    if not runs:
        return None
    if len(given) > 1 or not runs[0]:
        raise OptionError(f"--model {','.join(given)}: give 'replay:RUN' alone, with one run.")
    return runs[0]
