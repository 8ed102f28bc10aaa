"""One run of models through protocols, from its settings to its log. pytest and the
Python interface share this code.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.amounts import rounded
from cheesebench.errors import CheeseBenchError, OptionError
from cheesebench.experiment import language_models, provenance, unfinished
from cheesebench.experiment.cells import familywise
from cheesebench.experiment.earlier import Earlier
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import check_fits, claim
from cheesebench.experiment.observers import Observers
from cheesebench.experiment.replay import check_resumable
from cheesebench.experiment.session import RunSession
from cheesebench.experiment.shards import describe_shard
from cheesebench.interfaces import BaseSpecification
from cheesebench.lesions import Lesion
from cheesebench.planning import rehearse, told
from cheesebench.planning.asking import next_requests
from cheesebench.protocol import Catalogue
from cheesebench.records import CellPlan
from cheesebench.statistics.judgement import judge_set

if TYPE_CHECKING:
    from cheesebench.chat import Server
    from cheesebench.experiment.session import Progress
    from cheesebench.experiment.settings import Settings
    from cheesebench.family import LanguageModel
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellCalls, TrialRecord
    from cheesebench.statistics import RunSummary

#: Seconds between checks for Ctrl-C (and redraws) while a cell is awaited.
POLL_SECONDS = 0.2
#: A line reports the silence if no reply has come for ``SILENT_SECONDS``, and again
#: every ``SILENT_AGAIN_SECONDS``.
SILENT_SECONDS, SILENT_AGAIN_SECONDS = 60.0, 240.0

Cell = tuple[CellPlan, BaseSpecification]


class ModelRun:
    """One run. Call ``open``, ``session``, ``wait`` for every cell, and ``close``.

    ``tell`` is called with lines for people, and ``tell_at_once`` with the lines that
    appear while a cell is awaited. ``shared`` is the log of a run that another process
    has opened. That process reports and compares; this one runs only some of the cells.
    ``servers`` has the base URLs of servers that are already started, by model.
    """

    def __init__(
        self,
        settings: Settings,
        plugins: PluginManager,
        earlier: Earlier,
        tell: Callable[[str], None] = lambda line: None,
        *,
        tell_at_once: Callable[[str], None] | None = None,
        shared: Path | None = None,
        servers: Mapping[str, str] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings
        self.plugins = plugins
        self.source = earlier.source
        self.catalogue = Catalogue(plugins.protocol_directories, plugins.families)
        self.log: RunLog | None = None
        #: The language models of the session; None if there are none, or not yet.
        self.language: language_models.LanguageModels | None = None
        #: The cells of all shards, if ``--shard`` is given.
        self.whole: Sequence[Cell] = []
        self._tell = tell
        self._tell_at_once = tell_at_once or tell
        self._shared = shared
        self._check = check
        self._existing = earlier.existing
        #: Number of trials that a resumed run had in its log.
        self.recorded = 0
        #: Number of replies that a resumed run had, without those of cells that were
        #: begun anew.
        self.replies = 0
        self._lock: sqlite3.Connection | None = None
        self._runner: RunSession | None = None
        self._servers: dict[str, Server] = {}
        #: How long the silence was, in seconds, when it was last reported.
        self._silence_said = 0.0
        #: Base URLs of started servers, by model.
        self._base_urls: dict[str, str] = dict(servers or {})

    @property
    def is_worker(self) -> bool:
        """Whether another process has opened the run and reports it."""
        return self._shared is not None

    def of_shard(self, cells: Sequence[Cell]) -> list[Cell]:
        if self.settings.shard is None:
            return list(cells)
        self.whole = cells
        mine = {
            plan.key for plan in self.settings.shard.part([plan for plan, _ in cells])
        }
        return [
            (plan, specification) for plan, specification in cells if plan.key in mine
        ]

    def open(self, cells: Sequence[Cell]) -> None:
        """Open a new log or the resumed one. Unless this is a worker, start the servers
        and test the models (``_reach_models``). Raise CheeseBenchError for cells that
        do not fit the options or the log, and for a server or a model that does not
        work.
        """
        cells = self._with_goals(cells)
        self._check_controls(self.whole or cells)
        for plan, _ in cells:
            check_fits(plan)
        self.log = self._open_log(cells)
        self._describe_shard(self.log)
        if self._existing is not None:
            try:
                check_resumable(self.log, cells, self.settings.seed)
            except CheeseBenchError:
                self.close()  # Nothing was run, so the old run is not reported again.
                raise
        if self.source is not None:
            check_resumable(self.source, cells, self.settings.seed, "replayed")
        if not self.is_worker:
            with self.nothing_left_behind():
                self._begin_anew(cells)
                self.replies = self.log.calls.in_cells()
                self._reach_models(cells)

    def _check_controls(self, cells: Sequence[Cell]) -> None:
        for control in self.settings.controls if cells else ():
            if all(plan.control != control for plan, _ in cells):
                specification = cells[0][1]
                why = specification.obstacle(Lesion.parse(control))
                raise OptionError(
                    f"--control {control}: these protocols have nothing for it to remove. In {specification.name} {why}."
                )

    def _with_goals(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells with the evidence that each verdict needs. With
        ``--familywise``, this grows in proportion to the number of a model's cells.
        """
        if not self.settings.familywise:
            return list(cells)
        goals = {
            plan.key: plan.goal
            for plan in familywise([plan for plan, _ in self.whole or cells])
        }
        return [
            (replace(plan, goal=goals[plan.key]), specification)
            for plan, specification in cells
        ]

    def _open_log(self, cells: Sequence[Cell]) -> RunLog:
        if self._shared is not None:
            self.log = log = RunLog.open(self._shared)
            if self._existing is None:
                log.add_cells(cells)
            return log
        if self._existing is not None:
            self._lock = claim(self._existing)
            self.log = log = RunLog.open(self._existing)
            log.verify()
            lives = log.trial_counts().values()
            self.recorded = sum(run for one in lives for run, _ in one.values())
            return log
        self.log = log = RunLog.create(
            self.settings.results,
            self.settings.run_id or provenance.new_run_id(),
            cells,
            options=self.settings.recorded,
            # A replay makes no calls, so its manifest must not vouch for the replies.
            signed=bool(self.settings.language) and self.source is None,
            plugins=self.plugins.strangers(),
        )
        self._lock = claim(log.path)
        return log

    def _describe_shard(self, log: RunLog) -> None:
        """Record the cells of all shards in the manifest of a shard's new run."""
        if self.settings.shard is None or not self.whole or self._existing is not None:
            return
        whole = [plan for plan, _ in self._with_goals(self.whole)]
        shard = describe_shard(self.settings.shard, whole)
        protocols = provenance.describe_protocols(text for _, text in self.whole)
        log.add_to_manifest({"protocols": protocols, **shard})

    def _begin_anew(self, cells: Sequence[Cell]) -> None:
        """In a resumed run, begin the cells anew in which no reply named an action."""
        assert self.log is not None
        for plan, _ in cells if self._existing is not None else ():
            unfinished.begin_anew(self.log, plan)

    def _reach_models(self, cells: Sequence[Cell]) -> None:
        """Start the servers, and test the models that are needed (``probe``), before
        anything runs. If the budget is spent, make no call.
        """
        assert self.log is not None
        settings, left = self.settings, self._next_subjects(cells)
        # A replay needs no servers, and a resumed run none for finished cells.
        waiting = {plan.model for (plan, _), _ in left}
        models = {
            name: model
            for name, model in settings.language.items()
            if self.source is None and (self._existing is None or name in waiting)
        }
        if not models:
            return
        self._servers = language_models.start_servers(
            models, self.log.directory, self._tell
        )
        language_models.record_servers(self.log, self._servers)
        self._base_urls |= {
            name: server.base_url for name, server in self._servers.items()
        }
        if language_models.budget_of(self.log, settings.calls).is_spent:
            return  # The budget does not allow even a test call.
        contexts = language_models.probe(
            language_models.connected(models, self._base_urls),
            self.log.directory,
            next_requests(self.plugins, self.log, left, settings.seed),
            timeout=settings.calls.patience.request,
            counts=settings.calls.limits.counts_tokens,
            keep=partial(language_models.record_answer, self.log, models),
            check=self._check,
        )
        self._warn_of_contexts(cells, models, contexts)

    def _next_subjects(self, cells: Sequence[Cell]) -> list[tuple[Cell, int]]:
        """Return the unfinished cells of language models, each with the subject that
        runs next.
        """
        assert self.log is not None
        own = [cell for cell in cells if cell[0].model in self.settings.language]
        left = [
            (cell, unfinished.left_to_run(self.log, cell[0], judge_set)) for cell in own
        ]
        return [(cell, subjects[0]) for cell, subjects in left if subjects]

    def _warn_of_contexts(
        self,
        cells: Sequence[Cell],
        models: Mapping[str, LanguageModel],
        contexts: Mapping[str, int],
    ) -> None:
        """Write a warning for every model whose longest prompt exceeds its server's
        context.
        """
        for name, context in contexts.items():
            found = [
                (rehearse(self.plugins, plan, specification, models[name])[1], plan)
                for plan, specification in cells
                if plan.model == name
            ]
            longest, plan = max(found, key=lambda one: one[0])
            if short := told.too_short(plan, longest, context):
                self._tell(f"WARNING: {short}")

    @contextmanager
    def nothing_left_behind(self) -> Iterator[None]:
        """Close everything if a run cannot begin, and remove its directory if the
        directory is new and holds no ``*.log`` file.
        """
        try:
            yield
        except BaseException:
            assert self.log is not None
            directory = self.log.directory
            servers, self._servers = self._servers, {}
            language_models.stop_after_failure(servers, self._tell)
            self.close()
            is_new = self._existing is None and not self.is_worker
            if is_new and not any(directory.glob("*.log")):
                shutil.rmtree(directory, ignore_errors=True)
            raise

    def session(self, cells: Sequence[Cell]) -> RunSession:
        """Return the session that will run these cells."""
        assert self.log is not None
        settings, cells = self.settings, self._with_goals(cells)
        if settings.language:
            models = language_models.connected(settings.language, self._base_urls)
            self.language = language_models.LanguageModels(
                self.log, models, settings.calls, self.source
            )
        self._runner = RunSession(
            self.log,
            self.plugins,
            cells,
            seed=settings.seed,
            processes=settings.processes,
            executor=settings.executor,
            executor_options=settings.executor_options,
            language=self.language,
            judge=judge_set,
            ahead=settings.ahead,
            budget=language_models.budget_of(self.log, settings.calls),
        )
        return self._runner

    def start_all(self) -> None:
        """Start all cells that have not started."""
        assert self._runner is not None
        self._runner.start()

    def as_logged(self, plan: CellPlan) -> CellPlan:
        """Return the recorded plan of a cell, or ``plan`` if there is none. A resumed
        run is judged by its original plan.
        """
        assert self.log is not None
        return next(
            (known for known in self.log.plans() if known.key == plan.key), plan
        )

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to run."""
        log = self.log
        return log is not None and all(
            not unfinished.left_to_run(log, plan, judge_set) for plan in log.plans()
        )

    def is_over(self, plan: CellPlan) -> bool:
        assert self._runner is not None
        try:
            return self._runner.wait(plan, 0)
        except Exception:  # The error is reported where the cell is awaited.
            return True

    def progress(self, plan: CellPlan) -> Progress:
        assert self._runner is not None
        return self._runner.progress(plan)

    def wait(self, plan: CellPlan, waiting: Callable[[Progress], None]) -> None:
        """Wait until a cell is finished. Every POLL_SECONDS, call ``waiting`` with its
        progress, and write pending messages. On Ctrl-C, make no further calls.
        """
        assert self._runner is not None
        try:
            while not self._runner.wait(plan, POLL_SECONDS):
                waiting(self._runner.progress(plan))
                self.mention_silence()
            self.mention_news()
        except KeyboardInterrupt:
            self.stop_sending()
            raise

    def stop_sending(self) -> None:
        """Make no further calls, because the session is ending."""
        if self._runner is not None:
            self._runner.stop_sending()

    def pause(self) -> None:
        """Write pending messages, and wait POLL_SECONDS. The cells keep running."""
        self.mention_silence()
        time.sleep(POLL_SECONDS)

    def mention_silence(self) -> None:
        """Write a line if no reply has come for SILENT_SECONDS, and repeat it while the
        silence lasts. Also write what ``mention_news`` has.
        """
        self.mention_news()
        assert self._runner is not None
        model, seconds, said = self._runner.silence() or ("", 0.0, "")
        if seconds < SILENT_SECONDS:
            self._silence_said = 0.0
            return
        again = SILENT_AGAIN_SECONDS if self._silence_said else 0.0
        if seconds >= self._silence_said + again:
            self._silence_said = seconds
            self._tell_at_once(
                f"cheesebench: no reply from '{model}' for {rounded(seconds, 0)} s{said}"
            )

    def mention_news(self) -> None:
        """Write the lines about retried calls that have come since the last time."""
        for line in self.language.news() if self.language is not None else ():
            self._tell_at_once(f"cheesebench: {line}")

    def trials_by_subject(self, plan: CellPlan) -> Iterator[list[TrialRecord]]:
        assert self.log is not None
        return self.log.trials_by_subject(plan)

    def calls(self, plan: CellPlan) -> CellCalls | None:
        assert self.log is not None
        return self.log.calls.of_cell(plan)

    def causes(self, plan: CellPlan) -> tuple[str, ...]:
        assert self.log is not None
        return self.log.causes(plan).get(plan.key, ())

    def tell_finished(self, log: RunLog, summary: RunSummary) -> list[str]:
        """Call the hook ``cheesebench_run_finished``. Return a sentence for each
        observer that failed, in this call or during the run.
        """
        failed = [
            entry.text
            for entry in log.journal(kind="warning")
            if entry.text.startswith(Observers.FAILED)
        ]
        observers = Observers(self.plugins.hook.cheesebench_run_finished)
        failed += observers.show(summary=summary)
        return [f"{text[:1].upper()}{text[1:]}." for text in failed]

    def stop(self) -> None:
        """Stop running; finished trials stay in the log."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def close(self) -> None:
        self.stop()
        servers, self._servers = self._servers, {}
        try:
            language_models.stop_servers(servers)
        finally:
            if self.log is not None:
                self.log.close()
                self.log = None
            if self._lock is not None:
                self._lock.close()
                self._lock = None
            if self.source is not None:
                self.source.close()
