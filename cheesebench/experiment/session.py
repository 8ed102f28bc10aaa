"""The driver: runs the subjects of all cells of a run and alone writes the run log.

It is longer than 400 lines because its one class is a single state machine in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from array import array
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cheesebench.errors import PluginError, RunLogError, cause_of
from cheesebench.executor import Job, Report, WorkerDiedError
from cheesebench.experiment.controls import yokes_of
from cheesebench.experiment.language_models import LanguageModels, ModelWorker
from cheesebench.experiment.looks import CourseOf, is_finished, load_course
from cheesebench.experiment.numbered import NumberCounts
from cheesebench.experiment.observers import Observers
from cheesebench.experiment.queues import DEFAULT_EXECUTOR, Queues
from cheesebench.experiment.recorder import Recorder
from cheesebench.experiment.scheduling import CellRun, Progress, Ration, WorkQueue

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CallTotals, CellKey, CellPlan, TrialRecord
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import BaseSpecification

#: Seconds that ``close`` waits for the background thread.
CLOSE_PATIENCE = 10.0
#: Seconds that calls in flight have when a session ends early: what they bring is paid for.
GRACE = 5.0
#: Seconds between two looks, while a run is waited for, at whether it still goes on.
LOOK = 10.0
#: Seconds that pass before subjects live ahead: those of other cells may be about to begin.
AHEAD = 0.5


class RunSession:
    """Runs the cells of a run in the background, from ``start`` until ``close``.

    ``cells`` are the plans of a log with their specifications, ``seed`` is the run's seed, ``processes`` the
    number of jobs at a time (default: one for each processor; 0: everything in threads of this process).
    ``executor`` names where jobs are done, with ``executor_options``. Subjects are taken up in the order in which their
    cells were started. A cell whose agent, view or family comes from a plugin that a new process cannot load by itself
    (a conftest.py) is run in threads.

    ``language`` holds the language models; without it, cells that need one cannot be run.

    ``course_of`` says how far cells with looks go; without it, all of their subjects are run. ``ahead`` lets subjects
    of the next look live early where a model's server has capacity to spare and costs nothing.

    Everything that the log holds already counts: complete lives are skipped, others are lived again from their
    first trial and compared with what was recorded. A finished trial is written within a fiftieth of a second, with
    others in one transaction. Observers (``cheesebench_trial_finished``) are called in the background thread, singly.
    """

    def __init__(
        self,
        log: RunLog,
        plugins: PluginManager,
        cells: Mapping[CellPlan, BaseSpecification] | Iterable[tuple[CellPlan, BaseSpecification]],
        *,
        seed: int,
        processes: int | None = None,
        executor: str = DEFAULT_EXECUTOR,
        executor_options: Mapping[str, str] | None = None,
        language: LanguageModels | None = None,
        course_of: CourseOf | None = None,
        ahead: bool = False,
    ) -> None:
        pairs = cells.items() if isinstance(cells, Mapping) else cells
        self._cells: dict[CellKey, CellRun] = {plan.key: CellRun(plan, text) for plan, text in pairs}
        self._log = log
        self._plugins = plugins
        self._seed = seed
        self._language = language
        self._course_of = course_of
        self._ration: Ration | None = None
        if language is not None and language.budget.counts_tokens:
            self._ration = Ration(language.budget, self._spent)
        # Where a budget is to be kept, nothing is asked that may not be needed.
        ahead, given = ahead and self._ration is None, executor_options or {}
        self._queues = Queues(plugins, language, log.directory, executor, processes, ahead=ahead, options=given)
        self._recorder = Recorder(log, self._on_written)
        self._numbers = itertools.count()
        self._observers = Observers(plugins.hook.cheesebench_trial_finished)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing, self._hurry = asyncio.Event(), asyncio.Event()
        self._closed = False

    def start(self, plans: Iterable[CellPlan] | None = None) -> None:
        """Queue cells (default: all); cells that were queued before are ignored."""
        loop = self._running_loop()
        cells = self._cells.values() if plans is None else [self._cells[plan.key] for plan in plans]
        loop.call_soon_threadsafe(self._begin, list(cells))

    def connect(self) -> None:
        """Connect to the models and the executor of all unfinished cells; raises whatever a backend raises."""
        loop = self._running_loop()
        cells = [cell for cell in self._cells.values() if not is_finished(self._log, cell.plan, self._course_of)]
        asyncio.run_coroutine_threadsafe(self._queues.start(cells), loop).result()
        if self._language is not None:
            models = dict.fromkeys(cell.plan.model for cell in cells if cell.plan.agent)
            asyncio.run_coroutine_threadsafe(self._language.connect(models), loop).result()

    def wait(self, plan: CellPlan, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for a cell, starting it if necessary; return whether it is finished.

        Trials that could not be run are in the log as missing. Raises RunLogError if the log could not be written, or
        contradicts a replayed trial.
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

    def finish(self) -> None:
        """Start all cells, and wait until the last is finished; raises what ``wait`` raises."""
        self.start()
        for cell in self._cells.values():
            while not self.wait(cell.plan, LOOK):
                pass

    def progress(self, plan: CellPlan) -> Progress:
        """Return the progress of a cell."""
        cell = self._cells[plan.key]
        lengths = cell.lengths
        note = self._language.state() if self._language is not None else ""
        course = cell.course
        if course is None:
            return Progress(cell.trials.total, lengths.total + (plan.subjects - len(lengths)) * plan.trials, note)
        planned = sum(lengths.get(subject, plan.trials) for subject in range(course.look))
        done = sum(cell.trials.get(subject, 0) for subject in range(course.look))
        return Progress(done, planned, note, course.look, plan.subjects)

    def silence(self) -> tuple[str, float, str] | None:
        """Return the model that has not answered for longest, for how many seconds, and what its last fault said."""
        return None if self._language is None else self._language.silence()

    def stop_sending(self) -> None:
        """Make no further call to a model; the session is to be closed soon. From any thread."""
        if self._language is not None:
            self._language.stop_sending()

    def close(self) -> None:
        """Stop: what has not started never will, running trials are dropped, finished ones stay.

        Nothing is sent any more; replies that are on their way have GRACE seconds to arrive and be recorded, or until
        somebody presses Ctrl-C again.
        """
        if self._closed:
            return
        self._closed = True
        if self._loop is None or self._thread is None:
            return
        self.stop_sending()
        self._loop.call_soon_threadsafe(self._closing.set)
        try:
            self._thread.join(GRACE + CLOSE_PATIENCE)
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(self._hurry.set)
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
        if self._language is not None:
            await self._language.land(GRACE, self._hurry)
        tasks = self._queues.tasks()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._recorder.flush()
        await self._queues.close()
        if self._language is not None:
            await self._language.close()

    def _begin(self, cells: Iterable[CellRun]) -> None:
        for cell in cells:
            if cell.started or self._closing.is_set():
                continue
            cell.started, plan = True, cell.plan
            try:
                cell.lengths = NumberCounts(self._log.completed_subjects(plan))
                cell.trials = NumberCounts(cell.lengths)
                if plan.looks and self._course_of is not None:
                    cell.course = self._course_of(plan)
                    load_course(cell.course, self._log, plan)
                self._log.note("started", f"{len(cell.wanted())} of {cell.subjects} subjects to run", plan)
                cell.yokes = yokes_of(plan, self._log.directory.parent)
                cell.queue = self._queues.of(cell)
            except Exception as error:
                # Including errors of a plugin's hook: they are raised to the caller that waits for this cell.
                self._fail(cell, error)
                continue
            self._go_on(cell)

    def _go_on(self, cell: CellRun) -> None:
        """Start the subjects that a cell needs next; finish the cell if it needs none."""
        course = cell.course
        try:
            if course is not None:
                self._stop_settled(cell)
            while not (wanted := cell.wanted()):
                going = course is not None and not course.over and course.advance()
                if course is not None and course.standing:
                    self._log.note("look", course.standing, cell.plan)
                if not going:
                    self._finish(cell)
                    return
        except Exception as error:
            self._fail(cell, error)
            return
        if self._ration is not None and course is not None and cell.plan.agent:
            self._ration.add(cell)
            asyncio.get_running_loop().call_soon(self._admit)  # when the cells that begin with it are there, too
        else:
            self._enqueue(cell, wanted)

    def _spent(self, plan: CellPlan) -> CallTotals | None:
        calls = self._log.calls.of_cell(plan)
        return None if calls is None else calls.totals

    def _admit(self) -> None:
        """Start the looks that the budget has room for."""
        ration = None if self._closing.is_set() else self._ration
        while ration is not None and (cell := ration.take(self._cells.values())) is not None:
            self._enqueue(cell, cell.wanted())

    def _enqueue(self, cell: CellRun, subjects: Iterable[int], speculative: bool = False) -> None:
        queue, plan = cell.queue, cell.plan
        assert queue is not None
        due = array("q")
        for subject in subjects:
            (cell.ahead if speculative else cell.open).add(subject)
            if not speculative and subject in cell.ahead:  # it is needed now
                cell.ahead.discard(subject)
                if subject in cell.jobs:
                    queue.speculative_jobs.discard(cell.jobs[subject])
                    continue
            due.append(subject)
        # A run with calls takes as long as its longest subject, so long ones begin first; others are in order.
        first = -plan.trials if plan.agent and not speculative else 0
        queue.put(cell, due, speculative=speculative, first=first, number=next(self._numbers))
        # Subjects that run ahead must not occupy tasks that others need.
        while len(queue.tasks) < min(queue.limit + queue.speculative_subjects, queue.subjects):
            queue.tasks.append(asyncio.create_task(self._serve(queue)))
        if queue.runs_ahead and not speculative:
            asyncio.get_running_loop().call_later(AHEAD, self._run_ahead, queue)

    def _run_ahead(self, queue: WorkQueue) -> None:
        """Begin subjects of next looks, as long as there is capacity to spare."""
        while not self._closing.is_set() and queue.busy < queue.limit:
            cells = [(len(cell.ahead), at, cell) for at, cell in enumerate(self._cells.values()) if cell.queue is queue]
            most = min(((ahead, at, cell) for ahead, at, cell in cells if cell.next_ahead() is not None), default=None)
            if most is None:
                return
            subject = most[2].next_ahead()
            assert subject is not None
            self._enqueue(most[2], [subject], speculative=True)

    def _stop_settled(self, cell: CellRun) -> None:
        """Stop the subjects of a look that is decided whatever they would still do."""
        course, plan = cell.course, cell.plan
        # An agent that acts by itself costs nothing, and its lives are whole.
        cut = course.cut() if course is not None and plan.agent else None
        if course is None or cut is None:
            return
        self._recorder.flush()
        subjects, trials = cut
        for subject in subjects:
            self._abandon(cell, subject)
            cell.trials[subject] = trials
            cell.lengths.pop(subject, None)
        self._log.write_settled(plan, subjects, trials)
        course.settle(trials)
        text = f"{len(subjects)} subjects stopped after {trials} trials: the look at {course.look} is decided"
        self._log.note("settled", text, plan)

    def _abandon(self, cell: CellRun, subject: int) -> None:
        """Stop a subject; later reports about it are not recorded."""
        cell.closed.add(subject)
        cell.open.discard(subject)
        cell.ahead.discard(subject)
        job = cell.jobs.pop(subject, None)
        if job is not None and cell.queue is not None and isinstance(cell.queue.runs, ModelWorker):
            self._recorder.drop(job)
            cell.queue.runs.stop(job)

    async def _serve(self, queue: WorkQueue) -> None:
        while True:
            speculative, cell, subject = await queue.take()
            if cell.error is None and not cell.over.is_set() and not cell.has_begun(subject):
                queue.running += 1
                try:
                    await self._run(queue, cell, subject)
                finally:
                    queue.running -= 1
            queue.speculative_subjects -= speculative
            if queue.runs_ahead:
                self._run_ahead(queue)

    async def _run(self, queue: WorkQueue, cell: CellRun, subject: int) -> None:
        ended = False

        def report(message: Report) -> None:
            nonlocal ended
            if not ended and subject not in cell.closed:
                ended = message.ended
                self._on_report(job, message)

        try:
            job = Job(
                plan=cell.plan,
                specification=cell.specification,
                seed=self._seed,
                subject=subject,
                yoke=None if cell.yokes is None else cell.yokes(subject),
            )
        except RunLogError as error:
            self._fail(cell, error)
            self._close_subject(cell, subject)
            return
        cell.jobs[subject] = job
        if subject in cell.ahead:
            queue.speculative_jobs.add(job)
        try:
            try:
                await queue.runs.run(job, report)
                if not ended and subject not in cell.closed:
                    who = f"The executor '{self._queues.executor}'"
                    raise PluginError(f"{who} ended a job without its last report. Pass on those of run_job.")
            except WorkerDiedError as death:
                report(Report(ended=True, missing="infrastructure", cause=str(death)))
        except Exception as error:
            # Raise a bug in the test that waits for this cell, not in this background thread.
            self._recorder.flush()
            self._fail(cell, error)
        finally:
            queue.speculative_jobs.discard(job)
            if not ended and subject not in cell.closed:
                self._recorder.flush()
                self._recorder.drop(job)
                self._close_subject(cell, subject)

    def _on_report(self, job: Job, report: Report) -> None:
        self._recorder.add(job, report)
        if report.ended:
            self._close_subject(self._cells[job.plan.key], job.subject)

    def _close_subject(self, cell: CellRun, subject: int) -> None:
        counts = subject in cell.open
        cell.open.discard(subject)
        cell.ahead.discard(subject)
        cell.jobs.pop(subject, None)
        cell.ended.add(subject)
        if counts and not cell.open and not self._closing.is_set():
            self._recorder.flush()
            if not cell.over.is_set():
                self._go_on(cell)

    def _on_written(self, job: Job, report: Report, trials: int, error: Exception | None) -> None:
        """Take notice of a report that is written now, or that could not be."""
        cell = self._cells[job.plan.key]
        if error is not None:
            self._fail(cell, error)
            return
        if job.subject in cell.closed:
            return
        cell.trials[job.subject] = trials
        if report.ended and not report.missing:
            cell.lengths[job.subject] = trials
        course = cell.course
        if course is not None:
            for record, _ in report.trials:
                course.see(record)
            if report.ended:
                course.end(job.subject, "broken" if report.missing else "complete")
            if job.plan.agent and not cell.checking:
                cell.checking = True
                asyncio.get_running_loop().call_soon(self._check, cell)
        for record, _ in report.trials if self._observers else ():
            self._show(record, cell.plan)

    def _check(self, cell: CellRun) -> None:
        """Stop subjects that can no longer change the decision, and start looks that the budget has room for."""
        cell.checking = False
        if self._closing.is_set() or cell.over.is_set():
            return
        if cell.open:
            try:
                self._stop_settled(cell)
            except RunLogError as error:
                self._fail(cell, error)
                return
            if not cell.open:
                self._go_on(cell)
        self._admit()

    def _show(self, record: TrialRecord, plan: CellPlan) -> None:
        # An observer looks on; neither the run nor another observer depends on it.
        for text in self._observers.show(plan=plan, record=record):
            with contextlib.suppress(RunLogError):
                self._log.note("warning", text, plan, record.subject)

    def _finish(self, cell: CellRun) -> None:
        try:
            self._log.note("finished", f"{cell.trials.total} trials", cell.plan)
        except RunLogError as error:
            self._fail(cell, error)
        cell.over.set()
        for subject in list(cell.ahead):
            self._abandon(cell, subject)
        self._admit()

    def _fail(self, cell: CellRun, error: Exception) -> None:
        cell.error = error
        with contextlib.suppress(RunLogError):
            self._log.note("error", cause_of(error), cell.plan)
        cell.over.set()
        self._admit()
