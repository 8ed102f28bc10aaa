"""The driver: runs the subjects of all cells, and writes their trials into the log."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cheesebench import interrupts
from cheesebench.errors import PluginError, RunLogError, cause_of
from cheesebench.executor import Job, Report, WorkerDiedError
from cheesebench.experiment import (
    calling,
    executors,
    recorder,
    scheduler,
    unfinished,
)
from cheesebench.experiment.controls import yokes_of
from cheesebench.experiment.observers import Observers
from cheesebench.experiment.subjects import stopped
from cheesebench.interface_checks import shown

if TYPE_CHECKING:
    from cheesebench.experiment.controls import Yokes
    from cheesebench.experiment.language_models import LanguageModels
    from cheesebench.experiment.log import RunLog
    from cheesebench.interfaces import BaseSpecification
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellKey, CellPlan, TrialRecord


@dataclass(frozen=True, slots=True)
class Progress:
    """Numbers of finished and planned trials of a cell. If ``until`` ends a schedule
    early, fewer trials are planned from then on.

    ``note`` describes the calls to models over all cells. It is empty if there are
    none. In a sequential cell, the numbers count the subjects up to its present set:
    ``subjects`` of at most ``most`` subjects. ``subjects`` is None in other cells.
    ``to_come`` is the number of remaining trials if no set decides early.
    """

    done: int
    planned: int
    note: str = ""
    subjects: int | None = None
    most: int = 0
    to_come: int = 0


@dataclass(slots=True, eq=False)
class CellRun:
    """A cell of a session: its plan, its workplace, and its progress."""

    plan: CellPlan
    specification: BaseSpecification
    schedule: scheduler.CellSchedule
    started: bool = False
    yokes: Yokes | None = None
    place: executors.Workplace | None = None
    #: Jobs of the running subjects, by subject.
    jobs: dict[int, Job] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


def _cell_run(plan: CellPlan, specification: BaseSpecification) -> CellRun:
    schedule = scheduler.CellSchedule(
        key=plan.key,
        subjects=plan.subjects,
        trials=plan.trials,
        most_calls=specification.most_calls,
        asks_model=bool(plan.agent),
    )
    return CellRun(plan, specification, schedule)


#: Seconds that ``close`` waits for the background thread after the time for calls in
#: flight.
THREAD_SECONDS = 10.0
#: Seconds that calls in flight may take when a session ends early, because their
#: replies are paid for.
LANDING_SECONDS = 5.0
#: Seconds between the checks of ``finish`` that the background thread is alive.
POLL_SECONDS = 10.0
#: Seconds to wait, after subjects were queued, before free places are filled with
#: subjects that run ahead. Subjects of other cells may be about to begin.
AHEAD_AFTER_SECONDS = 0.5


class RunSession:
    """Runs the cells of a run in the background, from ``start`` until ``close``.

    ``cells`` are the plans of a log with their specifications, and ``seed`` is the
    run's seed. ``processes`` is the number of processes for agents' jobs (None means
    one per processor, and 0 means threads of this process). ``executor`` names the
    executor of these jobs, which gets ``executor_options``. Subjects start in the order
    in which their cells were started, except that a language model's longest lives come
    first. A cell whose agent, view or family only this process can load (from a plugin
    in a conftest.py) does not leave it. ``language`` holds the language models. If it
    is None, cells that need one cannot be run. ``judge`` decides whether a
    sequential cell needs another set. If it is None, all subjects are run. ``ahead``
    lets subjects of the next set run early if a model's server is free of charge and
    has spare capacity. After the time limit of ``budget``, no subject of an agent
    begins.

    Trials that are already in the log are kept. Complete lives are skipped. Other lives
    are replayed from their first trial and compared with the record. Before the rest of
    an agent's cell, one complete life is replayed, too: the agent may have changed.

    The trials that finish within a fiftieth of a second are written in one transaction.
    Observers (``cheesebench_trial_finished``) are called in the background thread, one
    at a time.
    """

    def __init__(
        self,
        log: RunLog,
        plugins: PluginManager,
        cells: Mapping[CellPlan, BaseSpecification]
        | Iterable[tuple[CellPlan, BaseSpecification]],
        *,
        seed: int,
        processes: int | None = None,
        executor: str = executors.DEFAULT_EXECUTOR,
        executor_options: Mapping[str, str] | None = None,
        language: LanguageModels | None = None,
        judge: unfinished.JudgeSet | None = None,
        ahead: bool = False,
        budget: calling.Budget | None = None,
    ) -> None:
        pairs = cells.items() if isinstance(cells, Mapping) else cells
        self._cells: dict[CellKey, CellRun] = {
            plan.key: _cell_run(plan, specification) for plan, specification in pairs
        }
        self._log = log
        self._seed = seed
        self._language = language
        self._judge = judge
        self._budget = budget
        self._admission = self._admission_within_budget()
        self._places = executors.Workplaces(
            plugins,
            language,
            log.directory,
            executor,
            processes,
            # With a budget in dollars or tokens, no subject runs ahead, because its
            # calls may prove unnecessary.
            ahead=ahead and self._admission is None,
            options=executor_options or {},
        )
        self._recorder = recorder.Recorder(log, self._on_written, stopped)
        self._observers = Observers(plugins.hook.cheesebench_trial_finished)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing, self._hurry = asyncio.Event(), asyncio.Event()
        self._closed = False

    def _admission_within_budget(self) -> scheduler.Admission | None:
        if self._language is None or not self._language.budget.counts_tokens:
            return None
        budget = self._language.budget
        asking = [c.schedule for c in self._cells.values() if c.schedule.asks_model]
        return scheduler.Admission(asking, lambda: budget.share_of(budget.spent))

    def start(self, plans: Iterable[CellPlan] | None = None) -> None:
        """Queue cells (None means all). Cells that were queued before are ignored."""
        loop = self._running_loop()
        cells = (
            self._cells.values()
            if plans is None
            else [self._cells[plan.key] for plan in plans]
        )
        loop.call_soon_threadsafe(self._begin, list(cells))

    def connect(self) -> None:
        """Start the executor and connect to the models of all unfinished cells. Raise
        the errors of the executor and of the backends.
        """
        loop = self._running_loop()
        cells = [
            (cell.plan, cell.specification)
            for cell in self._cells.values()
            if unfinished.left_to_run(self._log, cell.plan, self._judge)
        ]
        asyncio.run_coroutine_threadsafe(self._places.start(cells), loop).result()
        if self._language is not None:
            models = dict.fromkeys(plan.model for plan, _ in cells if plan.agent)
            asyncio.run_coroutine_threadsafe(
                self._language.connect(models), loop
            ).result()

    def wait(self, plan: CellPlan, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for a cell, and start it if necessary.
        Return whether it is finished.

        Trials that could not be run are in the log as missing. Raise the error that
        stopped the cell, such as a RunLogError if the log could not be written, or
        contradicts a replayed trial.
        """
        cell = self._cells[plan.key]
        if not cell.over.is_set():
            self.start([plan])
        over = cell.over.wait(timeout)
        if not over and self._thread is not None and not self._thread.is_alive():
            raise RunLogError(
                "The scheduler has stopped. Continue the run with --resume, and please report this."
            )
        if cell.error is not None:
            raise cell.error
        return over

    def finish(self) -> None:
        """Start all cells, and wait until the last one is finished. Raise the errors
        of ``wait``.
        """
        self.start()
        for cell in self._cells.values():
            while not self.wait(cell.plan, POLL_SECONDS):
                pass

    def progress(self, plan: CellPlan) -> Progress:
        schedule = self._cells[plan.key].schedule
        note = self._language.state() if self._language is not None else ""
        done, planned = schedule.progress()
        left = planned - done
        if not schedule.sequential:
            return Progress(done, planned, note, to_come=left)
        left += (plan.subjects - schedule.asked) * plan.trials
        return Progress(done, planned, note, schedule.asked, plan.subjects, left)

    def silence(self) -> tuple[str, float, str] | None:
        """Return the model that has been silent for longest, its seconds of silence,
        and the text of its last fault. Return None if no model has been connected.
        """
        return None if self._language is None else self._language.silence()

    def stop_sending(self) -> None:
        """Make no further call to a model, because the session will be closed soon. Any
        thread may call this method.
        """
        if self._language is not None:
            self._language.stop_sending()

    def close(self) -> None:
        """Stop the run: start nothing more, drop running trials, and keep finished
        trials.

        Calls in flight have LANDING_SECONDS to return and be recorded, or less if
        Ctrl-C is pressed again.
        """
        if self._closed:
            return
        self._closed = True
        if self._loop is None or self._thread is None:
            return
        self.stop_sending()
        self._loop.call_soon_threadsafe(self._closing.set)
        try:
            with interrupts.heard():
                self._thread.join(LANDING_SECONDS + THREAD_SECONDS)
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(self._hurry.set)
            self._thread.join(THREAD_SECONDS)
        # Errors are ignored: a full disk has been reported already, and must not hide
        # why the session ends.
        with contextlib.suppress(RunLogError):
            over = sum(map(self._is_finished, self._cells.values()))
            self._log.note("closed", f"cells finished: {over} of {len(self._cells)}")

    def _is_finished(self, cell: CellRun) -> bool:
        """Return whether a resumed run has nothing to continue in a cell."""
        if cell.error is not None or not cell.over.is_set():
            return False
        asked, complete = range(cell.schedule.asked), scheduler.SubjectState.COMPLETE
        whole = all(cell.schedule.state(subject) is complete for subject in asked)
        return whole or unfinished.is_finished(self._log, cell.plan, self._judge)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._closed:
            raise RuntimeError("the session is closed")
        if self._loop is None:
            ready = threading.Event()
            self._thread = threading.Thread(
                target=lambda: asyncio.run(self._main(ready)),
                name="cheesebench-session",
                daemon=True,
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
            await self._language.land(LANDING_SECONDS, self._hurry)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._recorder.flush()
        await self._places.close()
        if self._language is not None:
            await self._language.close()

    def _begin(self, cells: Iterable[CellRun]) -> None:
        for cell in cells:
            if cell.started or self._closing.is_set():
                continue
            cell.started = True
            try:
                self._take_up(cell)
            except Exception as error:
                # The error may come from a plugin's hook. The caller that waits for
                # this cell gets it.
                self._fail(cell, error)
                continue
            self._go_on(cell)

    def _take_up(self, cell: CellRun) -> None:
        """Bring a cell to its state in the log."""
        log, plan, schedule = self._log, cell.plan, cell.schedule
        complete = log.completed_subjects(plan)
        if plan.sequential and self._judge is not None:
            schedule.sequential = True
            present = unfinished.present_set(log, plan, self._judge, complete)
            given_up = set(range(present.asked)) - set(complete) - set(present.to_run)
            needed = max(present.result.needed, present.asked)
            schedule.begin(complete, present.asked, needed, given_up)
        else:
            schedule.begin(complete, plan.subjects, plan.subjects)
        due = schedule.due()
        log.note_killed(plan, due)
        log.note_started(plan, len(due), schedule.asked)
        # A language model needs no witness: its replies are in the log.
        if not plan.agent:
            schedule.call_witness()
        cell.yokes = yokes_of(plan, log.directory.parent)
        cell.place = self._places.of(plan, cell.specification)

    def _go_on(self, cell: CellRun) -> None:
        """Start the subjects that a cell needs next. Finish the cell if it needs
        none.
        """
        try:
            while not cell.schedule.due():
                if not self._begin_set(cell):
                    self._finish(cell)
                    return
        except Exception as error:
            self._fail(cell, error)
            return
        if self._admission is not None and cell.schedule.sequential and cell.plan.agent:
            self._admission.add(cell.schedule, self._spent(cell.plan))
            # Admission waits until the other cells that begin now have been added, too.
            asyncio.get_running_loop().call_soon(self._admit)
        else:
            self._enqueue(cell)

    def _begin_set(self, cell: CellRun) -> bool:
        """Judge the completed set. Return whether another one begins."""
        schedule = cell.schedule
        if not schedule.sequential or self._judge is None:
            return False
        lives = (
            life
            for life in self._log.trials_by_subject(cell.plan)
            if life[0].subject < schedule.asked
        )
        result, following = self._judge(cell.plan, lives), schedule.following
        self._log.note("set", result.text, cell.plan)
        if result.decided or result.futile or following is None:
            return False
        schedule.begin_set(following, result.needed)
        return True

    def _spent(self, plan: CellPlan) -> float | None:
        """Return the share of the budget that a cell has spent, or None if it has made
        no calls.
        """
        calls = self._log.calls.of_cell(plan)
        if calls is None or self._language is None:
            return None
        return self._language.budget.share_of(calls.totals)

    def _admit(self) -> None:
        """Start the sets that the budget has room for."""
        admission = None if self._closing.is_set() else self._admission
        while admission is not None and (found := admission.take()) is not None:
            self._enqueue(self._cells[found.key])

    def _enqueue(self, cell: CellRun) -> None:
        place = cell.place
        assert place is not None
        place.queue.put(cell.schedule)
        for subject, job in cell.jobs.items():
            if not cell.schedule.is_ahead(subject):  # The subject is needed now.
                place.ahead.discard(job)
        self._fill(place)
        if place.queue.runs_ahead:
            asyncio.get_running_loop().call_later(
                AHEAD_AFTER_SECONDS, self._run_ahead, place
            )

    def _fill(self, place: executors.Workplace) -> None:
        """Start the subjects that a workplace has room for."""
        if not self._closing.is_set():
            self._start(place, place.queue.start())

    def _run_ahead(self, place: executors.Workplace) -> None:
        """Start subjects of next sets while there is spare capacity."""
        if not self._closing.is_set():
            self._start(place, place.queue.start_ahead())

    def _start(
        self,
        place: executors.Workplace,
        subjects: Iterable[tuple[scheduler.CellSchedule, int]],
    ) -> None:
        for schedule, subject in subjects:
            cell = self._cells[schedule.key]
            task = asyncio.create_task(self._run(place, cell, subject))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(
        self, place: executors.Workplace, cell: CellRun, subject: int
    ) -> None:
        try:
            await self._run_subject(place, cell, subject)
        finally:
            place.queue.end(cell.schedule, subject)
        self._fill(place)
        self._run_ahead(place)

    async def _run_subject(
        self, place: executors.Workplace, cell: CellRun, subject: int
    ) -> None:
        try:
            job = self._job(cell, subject)
        except RunLogError as error:
            self._fail(cell, error)
            self._end_subject(cell, subject)
            return
        cell.jobs[subject] = job
        if cell.schedule.is_ahead(subject):
            place.ahead.add(job)
        reports = _Reports(job, cell.schedule, self._places.executor, self._on_report)
        try:
            try:
                if (over := self._time_is_over(cell.plan)) is not None:
                    # The cause names no trial, because the subject was in none. So no
                    # trial of it will count as run anew.
                    reports.take(replace(stopped(0, over), cause=str(over)))
                    return
                await place.runner.run(job, reports.take)
                reports.check_ended()
            except (WorkerDiedError, calling.BudgetSpentError) as end:
                reports.take(stopped(reports.trials, end))
        except Exception as error:
            # A bug is raised in the test that waits for this cell, not in this
            # background thread.
            self._recorder.flush()
            self._fail(cell, error)
        finally:
            place.ahead.discard(job)
            if not (reports.ended or reports.are_late):
                self._recorder.flush()
                self._recorder.drop(job)
                self._end_subject(cell, subject)

    def _time_is_over(self, plan: CellPlan) -> calling.BudgetSpentError | None:
        """Return why no further subject of an agent may begin, or None if it may."""
        try:
            if self._budget is not None and not plan.agent:
                self._budget.check_time()
        except calling.BudgetSpentError as over:
            return over
        return None

    def _job(self, cell: CellRun, subject: int) -> Job:
        return Job(
            plan=cell.plan,
            specification=cell.specification,
            seed=self._seed,
            subject=subject,
            yoke=None if cell.yokes is None else cell.yokes(subject),
        )

    def _on_report(self, job: Job, report: Report) -> None:
        cell = self._cells[job.plan.key]
        witnessed = job.subject == cell.schedule.witness
        ends_set = report.ended and cell.schedule.end(job.subject)
        if witnessed and report.missing:  # All of its trials stay in the log.
            self._recorder.flush()
            self._recorder.drop(job)
            if report.missing != "budget":
                self._fail(cell, _not_replayed(job, report))
        else:
            self._recorder.add(job, report)
        if report.ended:
            cell.jobs.pop(job.subject, None)
        if ends_set:
            self._after_set(cell)

    def _end_subject(self, cell: CellRun, subject: int) -> None:
        """Record that a subject has ended without its last report."""
        cell.jobs.pop(subject, None)
        if cell.schedule.end(subject):
            self._after_set(cell)

    def _after_set(self, cell: CellRun) -> None:
        if self._closing.is_set():
            return
        self._recorder.flush()
        if not cell.over.is_set():
            self._go_on(cell)

    def _on_written(
        self, job: Job, report: Report, trials: int, error: Exception | None
    ) -> None:
        cell = self._cells[job.plan.key]
        if error is not None:
            self._fail(cell, error)
            return
        if cell.schedule.state(job.subject) is scheduler.SubjectState.STOPPED:
            return
        cell.schedule.set_trials(job.subject, trials)
        if report.ended and not report.missing:
            cell.schedule.set_complete(job.subject)
        if report.ended:
            asyncio.get_running_loop().call_soon(self._admit)
        for record, _ in report.trials if self._observers else ():
            self._show(record, cell.plan)

    def _show(self, record: TrialRecord, plan: CellPlan) -> None:
        # A failed observer only gets a warning, because neither the run nor another
        # observer depends on it.
        for text in self._observers.show(plan=plan, record=record):
            with contextlib.suppress(RunLogError):
                self._log.note("warning", text, plan, record.subject)

    def _finish(self, cell: CellRun) -> None:
        try:
            self._log.note("finished", f"{cell.schedule.done} trials", cell.plan)
        except RunLogError as error:
            self._fail(cell, error)
        self._decide(cell)
        for subject in cell.schedule.ahead():
            self._stop_subject(cell, subject)

    def _stop_subject(self, cell: CellRun, subject: int) -> None:
        """Stop a subject that runs ahead. Its later reports are not recorded."""
        cell.schedule.stop(subject)
        job = cell.jobs.pop(subject, None)
        if job is not None and cell.place is not None:
            self._recorder.drop(job)
            cell.place.stop(job)

    def _fail(self, cell: CellRun, error: Exception) -> None:
        cell.error = error
        with contextlib.suppress(RunLogError):
            self._log.note("error", cause_of(error), cell.plan)
        self._decide(cell)

    def _decide(self, cell: CellRun) -> None:
        """Start no further subject of a cell, and wake the callers that wait for it."""
        cell.schedule.decided = True
        cell.over.set()
        self._admit()


def _not_replayed(job: Job, report: Report) -> RunLogError:
    """Return the error for a complete subject whose replay ended early."""
    plan = job.plan
    where = f"subject {job.subject} ({plan.model} on {plan.protocol}, {plan.view})"
    return RunLogError(
        f"The run cannot be continued: {where} has all of its trials, but when replayed, it {report.cause.rstrip('.')}. "
        "The agent or the program has changed. Start a new run, or change the agent so that it acts in the recorded "
        "trials as it did."
    )


class _Reports:
    """The reports of a job. They are passed on to ``deliver`` until the last one has
    come, or the cell is decided without this subject.
    """

    def __init__(
        self,
        job: Job,
        schedule: scheduler.CellSchedule,
        executor: str,
        deliver: Callable[[Job, Report], None],
    ) -> None:
        self._job = job
        self._schedule = schedule
        self._executor = executor
        self._deliver = deliver
        self.ended = False
        #: Number of reported trials.
        self.trials = 0

    @property
    def are_late(self) -> bool:
        """Whether the cell was decided without this subject."""
        return self._schedule.state(self._job.subject) is scheduler.SubjectState.STOPPED

    def take(self, report: Report) -> None:
        sent: object = report
        if not isinstance(sent, Report):
            said = f"run reported {shown(sent)}. Pass on the reports of run_job"
            raise PluginError(f"The executor '{self._executor}': {said}.")
        if self.ended or self.are_late:
            return
        self.ended = report.ended
        numbers = [record.trial + 1 for record, _ in report.trials]
        self.trials = max([self.trials, *numbers])
        self._deliver(self._job, report)

    def check_ended(self) -> None:
        """Raise PluginError if the last report is missing."""
        if not (self.ended or self.are_late):
            raise PluginError(
                f"The executor '{self._executor}' ended a job without its last report. Pass on the reports of run_job."
            )
