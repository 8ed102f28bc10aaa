"""The scheduler: all subjects of all cells of a run, several at a time, into the run log."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cheesebench.errors import PluginError, RunLogError
from cheesebench.experiment.jobs import Compiled, Job, Report
from cheesebench.experiment.language_models import Conversation, LanguageModels
from cheesebench.experiment.workers import Worker, WorkerDiedError, WorkerProcess, WorkerThread, loads_elsewhere

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellKey, CellPlan
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import AnySpecification

#: Seconds that ``close`` waits for the background thread.
CLOSE_PATIENCE = 10.0
#: Subjects that talk to a model at a time, for each call that may be in flight. Not many more: a server keeps the
#: beginning of every conversation in its cache, as long as there is room.
SPARE = 1.25


@dataclass(frozen=True, slots=True)
class Progress:
    """Trials of a cell that are done, and that are planned (fewer once ``until`` has cut a life short).

    ``note`` says how the calls to models go, of all cells together; empty where there are none.
    """

    done: int
    planned: int
    note: str = ""


@dataclass(slots=True)
class _Line:
    """A queue of subjects, and the workers that serve it."""

    limit: int
    #: Subjects that were ever queued: no more workers than that are of use.
    subjects: int = 0
    queue: asyncio.PriorityQueue[tuple[int, int, _Cell, int]] = field(default_factory=asyncio.PriorityQueue)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


@dataclass(slots=True)
class _Cell:
    plan: CellPlan
    specification: AnySpecification
    started: bool = False
    #: Subjects whose life is not over yet.
    open: set[int] = field(default_factory=set)
    #: Trials that are done, by subject; and the number of trials of those lives that are complete.
    trials: dict[int, int] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class RunSession:
    """Runs the cells of a run in the background, from ``start`` until ``close``.

    ``cells`` are the plans of a log with their specifications, ``seed`` is the run's seed, ``processes`` the
    number of worker processes (default: one for each processor; 0: everything in threads of this process).
    Subjects are taken up in the order in which their cells were started. A cell whose agent, view or family comes
    from a plugin that a new process cannot load by itself (a conftest.py) is run in threads.

    ``language`` holds the language models; without it, cells that need one cannot be run.

    Everything that the log holds already counts: complete lives are skipped, others are lived again from their
    first trial and compared with what was recorded. Observers (``cheesebench_trial_finished``) are called in this
    process, one at a time, in the background thread.
    """

    def __init__(
        self,
        log: RunLog,
        plugins: PluginManager,
        cells: Mapping[CellPlan, AnySpecification] | Iterable[tuple[CellPlan, AnySpecification]],
        *,
        seed: int,
        processes: int | None = None,
        language: LanguageModels | None = None,
    ) -> None:
        pairs = cells.items() if isinstance(cells, Mapping) else cells
        self._cells: dict[CellKey, _Cell] = {plan.key: _Cell(plan, text) for plan, text in pairs}
        self._log = log
        self._plugins = plugins
        self._seed = seed
        processes = _processors() if processes is None else processes
        self._elsewhere = _Line(limit=processes)
        self._here = _Line(limit=max(processes, 1))
        self._talking: dict[str, _Line] = {}
        self._language = language
        #: What conversations live in: they share this thread, workers have their own.
        self._compiled = Compiled(plugins)
        self._numbers = itertools.count()
        self._observed = bool(plugins.hook.cheesebench_trial_finished.get_hookimpls())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing = asyncio.Event()
        self._closed = False

    def start(self, plans: Iterable[CellPlan] | None = None) -> None:
        """Queue cells (all of them by default); a cell that was queued before is left alone."""
        loop = self._running_loop()
        keys = list(self._cells) if plans is None else [plan.key for plan in plans]
        for key in keys:
            loop.call_soon_threadsafe(self._begin, self._cells[key])

    def connect(self) -> None:
        """Open the way to every model that has anything to do; raises whatever a backend raises."""
        if self._language is None:
            return
        models = dict.fromkeys(
            cell.plan.model
            for cell in self._cells.values()
            if cell.plan.agent and len(self._log.lives(cell.plan)) < cell.plan.subjects
        )
        asyncio.run_coroutine_threadsafe(self._language.connect(models), self._running_loop()).result()

    def wait(self, plan: CellPlan, timeout: float) -> bool:
        """Wait ``timeout`` seconds at most for a cell (starting it if need be); return whether it is finished.

        Trials that could not be run are in the log as missing. Raises RunLogError when the log could not be
        written, or contradicts what was lived again.
        """
        cell = self._cells[plan.key]
        if not cell.over.is_set():
            self.start([plan])
        over = cell.over.wait(timeout)
        if not over and self._thread is not None and not self._thread.is_alive():
            raise RunLogError("The scheduler has stopped. Continue the run with --resume, and please report this.")
        if cell.error is not None:
            raise cell.error
        return over

    def progress(self, plan: CellPlan) -> Progress:
        """Return how far a cell is."""
        cell = self._cells[plan.key]
        lengths = cell.lengths
        planned = sum(lengths.get(subject, plan.trials) for subject in range(plan.subjects))
        note = self._language.state() if self._language is not None else ""
        return Progress(done=sum(dict(cell.trials).values()), planned=planned, note=note)

    def close(self) -> None:
        """Stop at once: what has not started never will, running trials are dropped, finished ones stay."""
        if self._closed:
            return
        self._closed = True
        if self._loop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(CLOSE_PATIENCE)
        over = sum(cell.over.is_set() for cell in self._cells.values())
        # A full disk was reported where it was met; it must not hide why the session ends.
        with contextlib.suppress(RunLogError):
            self._log.note("closed", f"{over} of {len(self._cells)} cells are finished")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._closed:
            raise RuntimeError("the session is closed")
        if self._loop is None:
            ready = threading.Event()
            self._thread = threading.Thread(
                target=lambda: asyncio.run(self._main(ready)), name="cheesebench-session", daemon=True
            )
            self._thread.start()
            ready.wait()
        assert self._loop is not None
        return self._loop

    # Everything below runs in the background thread.

    async def _main(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        ready.set()
        await self._closing.wait()
        lines = [self._elsewhere, self._here, *self._talking.values()]
        tasks = [task for line in lines for task in line.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._language is not None:
            await self._language.close()

    def _begin(self, cell: _Cell) -> None:
        if cell.started or self._closing.is_set():
            return
        cell.started = True
        plan = cell.plan
        try:
            cell.lengths = self._log.lives(plan)
            cell.trials = dict(cell.lengths)
            cell.open = set(range(plan.subjects)) - set(cell.lengths)
            self._log.note("started", f"{len(cell.open)} of {plan.subjects} subjects to run", plan)
            line = self._line(cell)
        except Exception as error:
            # Also what a plugin's hook raises: whoever waits for this cell must hear of it.
            self._fail(cell, error)
            return
        if not cell.open:
            cell.over.set()
            return
        for subject in sorted(cell.open):
            # A run of calls is as long as its longest life, so long lives begin first; other work takes turns.
            first = -plan.trials if plan.agent else 0
            line.queue.put_nowait((first, next(self._numbers), cell, subject))
        line.subjects += len(cell.open)
        while len(line.tasks) < min(line.limit, line.subjects):
            line.tasks.append(asyncio.create_task(self._serve(line, self._worker(line))))

    def _line(self, cell: _Cell) -> _Line:
        """Return the queue that a cell belongs to."""
        plan = cell.plan
        if plan.agent:
            if self._language is None:
                raise PluginError(f"The session was given no language models, so '{plan.model}' cannot be run.")
            # Some more than there are calls in flight: while a subject makes up its mind, another one has its place.
            limit = int(SPARE * self._language.options.concurrency)
            return self._talking.setdefault(plan.model, _Line(limit=limit))
        elsewhere = self._elsewhere.limit > 0 and loads_elsewhere(self._plugins, plan, cell.specification)
        return self._elsewhere if elsewhere else self._here

    def _worker(self, line: _Line) -> Worker:
        if line is self._elsewhere:
            return WorkerProcess(self._log.directory)
        if line is self._here:
            return WorkerThread(self._plugins)
        assert self._language is not None
        return Conversation(self._language, self._plugins, self._log, self._compiled)

    async def _serve(self, line: _Line, worker: Worker) -> None:
        try:
            while True:
                _, _, cell, subject = await line.queue.get()
                if cell.error is None:
                    await self._run(worker, cell, subject)
        finally:
            await worker.stop()

    async def _run(self, worker: Worker, cell: _Cell, subject: int) -> None:
        job = Job(
            plan=cell.plan,
            specification=cell.specification,
            seed=self._seed,
            subject=subject,
            log=self._log.path,
            wants_records=self._observed,
        )
        try:
            try:
                await worker.do(job, lambda report: self._hear(cell, subject, report))
            except WorkerDiedError as death:
                cell.trials[subject] = self._log.write_missing(cell.plan, subject, str(death))
        except Exception as error:
            # A bug must end in the test that waits for this cell, not in a thread that nobody looks at.
            self._fail(cell, error)
        cell.open.discard(subject)
        if not cell.open and not cell.over.is_set():
            self._finish(cell)

    def _hear(self, cell: _Cell, subject: int, report: Report) -> None:
        cell.trials[subject] = report.trials
        if report.complete:
            cell.lengths[subject] = report.trials
        if report.record is not None and self._observed:
            try:
                self._plugins.hook.cheesebench_trial_finished(plan=cell.plan, record=report.record)
            except Exception as error:
                # An observer looks on; the run does not depend on it.
                self._observed = False
                text = f"an observer raised {type(error).__name__}: {error}; observers are not called any more"
                with contextlib.suppress(RunLogError):
                    self._log.note("error", text, cell.plan, subject)
        if report.error:
            self._fail(cell, RunLogError(report.error))

    def _finish(self, cell: _Cell) -> None:
        try:
            self._log.note("finished", f"{sum(cell.trials.values())} trials", cell.plan)
        except RunLogError as error:
            self._fail(cell, error)
        cell.over.set()

    def _fail(self, cell: _Cell, error: Exception) -> None:
        cell.error = error
        with contextlib.suppress(RunLogError):
            self._log.note("error", str(error), cell.plan)
        cell.over.set()


def _processors() -> int:
    """Return how many processors this process may use (a container may have fewer than the machine)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
