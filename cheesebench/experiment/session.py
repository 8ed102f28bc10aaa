"""The driver: runs the subjects of all cells of a run and alone writes the run log."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sqlite3
import threading
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from cheesebench.errors import (
    CheeseBenchError,
    OptionError,
    PluginError,
    RunLogError,
    cause_of,
    did_you_mean,
)
from cheesebench.executor import (
    Executor,
    ExecutorContext,
    ExecutorSpec,
    Job,
    Report,
    StartedExecutor,
    WorkerDiedError,
)
from cheesebench.experiment.controls import yokes_of
from cheesebench.experiment.language_models import LanguageModels, ModelWorker
from cheesebench.experiment.subjects import ParadigmCache, stopped
from cheesebench.interface_checks import blaming, checked, shown
from cheesebench.interrupts import heard
from cheesebench.records import SetResult, sets_until
from cheesebench.redaction import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from pluggy import HookCaller, HookImpl

    from cheesebench.experiment.calling import Budget
    from cheesebench.experiment.controls import Yokes
    from cheesebench.experiment.log import RunLog
    from cheesebench.interfaces import BaseSpecification
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CallTotals, CellKey, CellPlan, TrialRecord

#: Judges a sequential cell by the trials of each of its subjects, by rising subject.
#: The statistics, a higher layer, have it; it is passed in when a session is created.
JudgeSet = Callable[["CellPlan", Iterable[Sequence["TrialRecord"]]], SetResult]


def is_finished(log: RunLog, plan: CellPlan, judge: JudgeSet | None) -> bool:
    complete = log.completed_subjects(plan)
    if not plan.sequential or judge is None:
        return len(complete) >= plan.subjects
    return not _first_wanted(log, plan, judge, complete)[1]


def _first_wanted(
    log: RunLog, plan: CellPlan, judge: JudgeSet, complete: Container[int]
) -> tuple[int, list[int], SetResult]:
    """Return the set that a sequential cell stands at, and its subjects that are to be
    run; none if it is decided.

    Subjects that broke off are run again, unless it was the budget and the cell is
    decided without them.
    """
    result = judge(plan, log.trials_by_subject(plan))
    for number in sets_until(plan.subjects):
        wanted = [subject for subject in range(number) if subject not in complete]
        if result.decided and number >= result.subjects:
            spent = {
                records[0].subject
                for records in log.recorded_subjects(plan)
                if records[-1].missing == "budget"
            }
            return (
                number,
                [subject for subject in wanted if subject not in spent],
                result,
            )
        if wanted:
            break
    return number, wanted, result


#: What a sentence about one that failed begins with.
OBSERVER = "the observer "


class Observers:
    """The implementations of a hook; one that has raised is named once, and not called
    again.
    """

    def __init__(self, hook: HookCaller) -> None:
        self._hook = hook
        self._failed: set[str] = set()

    def __bool__(self) -> bool:
        return any(
            one.plugin_name not in self._failed for one in self._hook.get_hookimpls()
        )

    def show(self, **what: Any) -> Iterator[str]:
        """Call all that have not failed yet; yield a sentence for each that fails
        now.
        """
        for one in reversed(self._hook.get_hookimpls()):
            if one.plugin_name in self._failed:
                continue
            try:
                one.function(*(what[name] for name in one.argnames))
            except (Exception, SystemExit) as error:  # a plugin may raise anything
                self._failed.add(one.plugin_name)
                yield f"{_name(one)}: {type(error).__name__}: {quoted(str(error))}; it is not called any more"


def _name(one: HookImpl) -> str:
    return f"{OBSERVER}'{quoted(one.plugin_name.removeprefix('pytest:'), 200)}' failed in {one.function.__name__}"


#: Part of what is left of a budget that verdicts may be expected to cost together: an
#: expectation may be too low.
CAUTION = 0.8


@dataclass(frozen=True, slots=True)
class Progress:
    """Finished and planned trials of a cell (fewer are planned once ``until`` has ended
    a schedule early).

    ``note`` is the state of calls to models over all cells; empty without calls. For a
    sequential cell, the numbers are those of the current set, of ``subjects`` of at
    most ``most`` subjects. ``to_come`` are the trials that are left if no set decides.
    """

    done: int
    planned: int
    note: str = ""
    subjects: int | None = None
    most: int = 0
    to_come: int = 0


class Runs(Protocol):
    """Runs jobs: an executor, or a ModelWorker."""

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """See ``Executor``."""


@dataclass(slots=True, eq=False)
class WorkQueue:
    """A queue of subjects, and the tasks that serve it, each with one job at a time.

    ``runs_ahead``: subjects of the next set may be run with spare capacity.
    """

    runs: Runs
    limit: int
    runs_ahead: bool = False
    #: Their jobs, which have lower priority than all others.
    speculative_jobs: set[Job] = field(default_factory=set)
    #: Number of subjects queued so far, which is the maximum useful number of tasks.
    subjects: int = 0
    #: Number of subjects that run ahead, or are queued for that.
    speculative_subjects: int = 0
    running: int = 0
    waiting: int = 0
    #: One entry for subjects of a cell that were queued together: a cell may have a
    #: million.
    queue: asyncio.PriorityQueue[Entry] = field(default_factory=asyncio.PriorityQueue)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def busy(self) -> int:
        """Subjects that are running or queued."""
        return self.running + self.waiting

    def put(
        self,
        cell: CellRun,
        subjects: Sequence[int],
        *,
        speculative: bool,
        first: int,
        number: int,
    ) -> None:
        """Queue subjects of a cell; the smallest ``first``, then ``number``, comes
        first, ``speculative`` ones last.
        """
        self.subjects += len(subjects)
        self.waiting += len(subjects)
        self.speculative_subjects += speculative * len(subjects)
        self.queue.put_nowait((speculative, first, number, cell, iter(subjects)))

    async def take(self) -> tuple[bool, CellRun, int]:
        """Wait for the next subject; return whether it is speculative, its cell, and
        its number.
        """
        while True:
            entry = await self.queue.get()
            speculative, _, _, cell, subjects = entry
            for subject in subjects:
                self.queue.put_nowait(entry)  # it comes first again
                self.waiting -= 1
                return speculative, cell, subject


#: Whether it is speculative, what runs first, a number that no other entry has, the
#: cell, and the subjects left.
Entry = tuple[bool, int, int, "CellRun", Iterator[int]]


@dataclass(slots=True, eq=False)
class CellRun:
    """A cell of a session and its progress."""

    plan: CellPlan
    specification: BaseSpecification
    started: bool = False
    yokes: Yokes | None = None
    queue: WorkQueue | None = None
    #: Subjects that are asked for: of a sequential cell those up to the present set,
    #: and what it is expected to need.
    asked: int = 0
    needed: int = 0
    #: Whether more sets may follow.
    sequential: bool = False
    #: Subjects that it waits for; those of the next set that already run; those whose
    #: job has ended in this session; those that were stopped because the cell was
    #: decided.
    open: set[int] = field(default_factory=set)
    ahead: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)
    jobs: dict[int, Job] = field(default_factory=dict)
    #: Finished trials by subject; and the number of trials of complete subjects.
    trials: dict[int, int] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None

    @property
    def following(self) -> int | None:
        """Number of subjects of the next set; None after the last."""
        sets = sets_until(self.plan.subjects) if self.sequential else ()
        return next((one for one in sets if one > self.asked), None)

    def wanted(self) -> Sequence[int]:
        return array(
            "q",
            (
                s
                for s in range(self.asked)
                if s not in self.lengths and s not in self.ended
            ),
        )

    def has_begun(self, subject: int) -> bool:
        """Return whether a subject is running, has ended, or was stopped."""
        return subject in self.jobs or subject in self.ended or subject in self.closed

    def next_ahead(self) -> int | None:
        """Return the first subject of the next set that could run ahead; None if there
        is none.
        """
        following = self.following
        if self.over.is_set() or following is None or not self.open:
            return None
        possible = range(self.asked, following)
        return next(
            (
                s
                for s in possible
                if s not in self.ahead
                and s not in self.lengths
                and not self.has_begun(s)
            ),
            None,
        )

    def trials_to(self, subjects: int) -> int:
        """Return the maximum number of trials left until this many subjects are
        complete.
        """
        done = sum(
            min(trials, self.plan.trials)
            for subject, trials in self.trials.items()
            if subject < subjects
        )
        return max(0, subjects * self.plan.trials - done)


class SetScheduler:
    """Decides which cell begins its next set while a budget is being spent: the one
    nearest to a verdict.

    The expected cost of a trial is the mean of the cell's own trials so far; before the
    first one, that of the other cells, scaled by the most calls that a trial can take.
    Cells begin side by side as long as the budget is expected to last for all of their
    verdicts, otherwise one after another.
    """

    def __init__(
        self, budget: Budget, spent: Callable[[CellPlan], CallTotals | None]
    ) -> None:
        self._budget = budget
        self._spent = spent
        self._waiting: list[CellRun] = []
        #: Share of the budget that a trial of each cell costs.
        self._own: dict[CellKey, float] = {}

    def add(self, cell: CellRun) -> None:
        self._waiting.append(cell)
        totals, trials = self._spent(cell.plan), sum(cell.trials.values())
        if totals is not None and trials:
            self._own[cell.plan.key] = self._budget.share_of(totals) / trials

    def take(self, cells: Iterable[CellRun]) -> CellRun | None:
        self._waiting = [cell for cell in self._waiting if not cell.over.is_set()]
        if not self._waiting:
            return None
        agents = [cell for cell in cells if cell.plan.agent]
        share = self._budget.share_of(self._budget.spent)
        done = sum(
            sum(cell.trials.values()) * cell.specification.most_calls for cell in agents
        )
        # Before anything is known, every call costs the same.
        each = share / done if done else 1.0

        def expected(cell: CellRun, subjects: int) -> float:
            trial = self._own.get(cell.plan.key, each * cell.specification.most_calls)
            return trial * cell.trials_to(subjects)

        best = min(self._waiting, key=lambda cell: expected(cell, cell.needed))
        alive = [cell for cell in agents if cell.open and not cell.over.is_set()]
        if alive:
            verdicts = sum(expected(cell, cell.needed) for cell in (*alive, best))
            if not done or verdicts > CAUTION * (1 - share):
                return None
        self._waiting.remove(best)
        return best


#: Subjects that talk to a model at a time, for each call that may be in flight. Not
#: many more: a server keeps the beginning of every conversation in its cache, as long
#: as there is room.
OVERSUBSCRIPTION = 1.25
#: The executor where none is named, and the one for what only this process can load.
DEFAULT_EXECUTOR, IN_PROCESS = "local", "threads"


class Queues:
    """The queues of the cells of a session, created on first use.

    ``processes`` (None: one for each processor), ``executor`` and its ``options`` are
    those of the session; ``ahead`` lets subjects of free models run ahead.
    """

    def __init__(
        self,
        plugins: PluginManager,
        language: LanguageModels | None,
        directory: Path,
        executor: str,
        processes: int | None,
        *,
        ahead: bool,
        options: Mapping[str, str],
    ) -> None:
        self._plugins = plugins
        self._language = language
        self._ahead = ahead
        #: Name of the executor.
        self.executor = executor if processes != 0 else IN_PROCESS
        self._context = ExecutorContext(
            plugins=plugins,
            directory=directory,
            processes=max(usable_processors() if processes is None else processes, 1),
            processes_given=processes is not None,
            options=options,
        )
        self._executors: dict[str, tuple[Executor, WorkQueue]] = {}
        self._conversations: dict[str, WorkQueue] = {}
        #: For conversations, which share this thread.
        self._paradigms = ParadigmCache(plugins)

    def of(self, cell: CellRun) -> WorkQueue:
        plan = cell.plan
        if plan.agent:
            return self._conversations.get(plan.model) or self._conversation(plan.model)
        spec = self._plugins.executor(self.executor)
        if not spec.in_process and not is_process_safe(
            self._plugins, plan, cell.specification
        ):
            if spec.elsewhere:
                raise PluginError(
                    f"--executor {spec.name}: what '{plan.model}' on {plan.protocol} needs comes from a conftest.py or "
                    "from -p, which no other machine can load. Install it as a package on all of them, or use "
                    f"--executor {DEFAULT_EXECUTOR}."
                )
            spec = self._plugins.executor(IN_PROCESS)
        if spec.name not in self._executors:
            who = f"The executor '{spec.name}'"
            with blaming(f"{who}: create"):
                executor = checked(
                    spec.create(self._context), Executor, f"{who}: create returned"
                )
                capacity: object = executor.capacity
            if not isinstance(capacity, int) or capacity < 1:
                raise PluginError(
                    f"{who} has capacity {capacity!r}. Give a whole number from 1."
                )
            self._executors[spec.name] = (
                executor,
                WorkQueue(executor, executor.capacity),
            )
        return self._executors[spec.name][1]

    async def start(self, cells: Iterable[CellRun]) -> None:
        """Start the executor if it does the jobs of these cells elsewhere; a
        CheeseBenchError says what is wrong.
        """
        cells = [cell for cell in cells if not cell.plan.agent]
        if not cells or not self._plugins.executor(self.executor).elsewhere:
            return
        try:
            for cell in cells:
                self.of(cell)
            for executor, _ in self._executors.values():
                if isinstance(executor, StartedExecutor):
                    await executor.start()
        except CheeseBenchError:
            raise
        except Exception as error:  # of a plugin
            raise PluginError(
                f"--executor {self.executor}: {type(error).__name__}: {error}"
            ) from error

    def _conversation(self, model: str) -> WorkQueue:
        if self._language is None:
            raise PluginError(
                f"The session has no language models, so '{model}' cannot be run."
            )
        worker = ModelWorker(self._language, self._plugins, self._paradigms)
        # Slightly more subjects than calls in flight: while one computes, another can
        # call.
        limit = int(OVERSUBSCRIPTION * self._language.options.concurrency)
        ahead = self._ahead and self._language.is_free(model)
        queue = self._conversations[model] = WorkQueue(
            worker, limit, ahead, speculative_jobs=worker.speculative
        )
        return queue

    def tasks(self) -> list[asyncio.Task[None]]:
        queues = [
            *(queue for _, queue in self._executors.values()),
            *self._conversations.values(),
        ]
        return [task for queue in queues for task in queue.tasks]

    async def close(self) -> None:
        """Close all executors, even if one of them fails to close."""
        await asyncio.gather(
            *(executor.close() for executor, _ in self._executors.values()),
            return_exceptions=True,
        )


def check_options(spec: ExecutorSpec, options: Mapping[str, str]) -> None:
    """Raise OptionError for an option that an executor does not have."""
    for name in options:
        if name not in spec.options:
            known = (
                f"It has {', '.join(spec.options)}." if spec.options else "It has none."
            )
            hint = did_you_mean(name, spec.options) or f" {known}"
            raise OptionError(
                f"--executor-option {name}: the executor '{spec.name}' has no such option.{hint}"
            )


def is_process_safe(
    plugins: PluginManager, plan: CellPlan, specification: BaseSpecification
) -> bool:
    """Return whether a new process can load everything that a cell needs: agent, view
    and family.
    """
    hooks = plugins.hook
    # Only the family knows which hook supplies the agent, so require it of every hook
    # that has one of this name.
    agents = {
        _origin(hook, plan.model)
        for hook in (hooks.cheesebench_agents, hooks.cheesebench_respondents)
    }
    needed = [
        agents - {""} or {""},
        {_origin(hooks.cheesebench_families, specification.family)},
    ]
    if plan.view in plugins.views:  # families without an arena have other views
        needed.append({_origin(hooks.cheesebench_views, plan.view)})
    return all(origins <= plugins.reloadable for origins in needed)


def _origin(hook: HookCaller, name: str) -> str:
    """Return the name of the plugin that supplies ``name`` through a hook, or an empty
    string.
    """
    # The last plugin takes precedence, as in the plugin manager.
    for implementation in reversed(hook.get_hookimpls()):
        supplied: Any = implementation.function()
        if any(item.name == name for item in supplied or ()):
            return implementation.plugin_name
    return ""


def usable_processors() -> int:
    """Return how many processors this process may use (a container may have fewer than
    the machine).
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


#: Seconds that a finished trial may wait for others to be written with it; and how many
#: may wait.
INTERVAL, MOST = 0.02, 500


class Recorder:
    """Writes what jobs report, in the order in which it is reported. All methods are
    called in one event loop.

    ``written`` is called for every report after its transaction, with the number of the
    subject's trials that are done and the error that kept it from being written (if
    any). After such an error no more is written of that job.
    """

    def __init__(
        self, log: RunLog, written: Callable[[Job, Report, int, Exception | None], None]
    ) -> None:
        self._log = log
        self._written = written
        self._waiting: list[tuple[Job, Report]] = []
        self._timer: asyncio.TimerHandle | None = None
        #: Finished trials of running jobs, and jobs for which nothing more is written.
        self._trials: dict[Job, int] = {}
        self._refused: set[Job] = set()

    def add(self, job: Job, report: Report) -> None:
        """Queue a report for writing; reports are written in the order in which they
        were added.
        """
        self._waiting.append((job, report))
        if len(self._waiting) >= MOST:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        before = dict(self._trials)
        results: list[tuple[Report, int | Exception]]
        try:
            results = [
                (report, trials)
                for (_, report), trials in zip(
                    waiting, self._write(waiting), strict=True
                )
            ]
        except Exception as error:
            self._trials = before
            if isinstance(
                error.__cause__, sqlite3.OperationalError
            ):  # a full disk: nothing can be written
                results = [(report, error) for _, report in waiting]
            else:  # an error in one report must not affect others
                results = [self._write_alone(job, report) for job, report in waiting]
        for (job, _), (report, outcome) in zip(waiting, results, strict=True):
            if isinstance(outcome, Exception):
                self._refused.add(job)
                self._written(job, report, self._trials.get(job, 0), outcome)
            elif job not in self._refused or report.missing:
                self._written(job, report, outcome, None)
        for job in [job for job, report in waiting if report.ended]:
            self.drop(job)

    def drop(self, job: Job) -> None:
        self._trials.pop(job, None)
        self._refused.discard(job)

    def _write(self, reports: Sequence[tuple[Job, Report]]) -> list[int]:
        """Write reports in one transaction; return, after each, its job's number of
        finished trials.
        """
        with self._log.transaction():
            return [self._write_one(job, report) for job, report in reports]

    def _write_alone(self, job: Job, report: Report) -> tuple[Report, int | Exception]:
        """Write one report; return it with the job's number of finished trials, or with
        the error.
        """
        before = self._trials.get(job, 0)
        try:
            return report, self._write([(job, report)])[0]
        except Exception as error:
            self._trials[job] = before
            if isinstance(error, RunLogError | PluginError):
                self._refused.add(job)
                return report, error
            # Values that cannot be stored (a plugin's measure that is not JSON) end the
            # subject like any other error.
            ended = self._write_alone(job, stopped(before, error))
            self._refused.add(job)
            return ended

    def _write_one(self, job: Job, report: Report) -> int:
        log, plan, subject = self._log, job.plan, job.subject
        trials = self._trials.get(job, 0)
        if job in self._refused:
            return trials
        for record, events in report.trials:
            if (record.key, record.subject) != (
                plan.key,
                subject,
            ) or record.trial > trials:
                raise PluginError(
                    f"The executor has reported trial {record.trial} of subject {record.subject} "
                    f"({record.model} on {record.protocol}) where trial {trials} of subject {subject} ({plan.model} on "
                    f"{plan.protocol}) was next. Report each trial of a job, in order."
                )
            log.write_trial(record, events)
            trials = max(trials, record.trial + 1)
        for kind, text in report.notes:
            log.note(kind, text, plan, subject)
        if report.missing:
            trials = log.write_missing(
                plan, subject, report.cause, report.missing, report.tally
            )
        elif report.ended:
            log.write_life(plan, subject, trials)
        self._trials[job] = trials
        return trials


#: Seconds that ``close`` waits for the background thread.
CLOSE_PATIENCE = 10.0
#: Seconds that calls in flight have when a session ends early: what they bring is paid
#: for.
GRACE = 5.0
#: Seconds between two polls, while a run is waited for, whether it still runs.
LOOK = 10.0
#: Seconds that pass before subjects live ahead: those of other cells may be about to
#: begin.
AHEAD = 0.5


class RunSession:
    """Runs the cells of a run in the background, from ``start`` until ``close``.

    ``cells`` are the plans of a log with their specifications, ``seed`` is the run's
    seed, ``processes`` the number of jobs at a time (default: one for each processor;
    0: everything in threads of this process). ``executor`` names where jobs are done,
    with ``executor_options``. Subjects are taken up in the order in which their cells
    were started. A cell whose agent, view or family comes from a plugin that a new
    process cannot load by itself (a conftest.py) is run in threads.

    ``language`` holds the language models; without it, cells that need one cannot be
    run.

    ``judge`` says whether a sequential cell needs another set; without it, all subjects
    are run. ``ahead`` lets subjects of the next set live early where a model's server
    has capacity to spare and costs nothing.

    Everything that the log holds already counts: complete lives are skipped, others are
    lived again from their first trial and compared with what was recorded. A finished
    trial is written within a fiftieth of a second, with others in one transaction.
    Observers (``cheesebench_trial_finished``) are called in the background thread,
    singly.
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
        executor: str = DEFAULT_EXECUTOR,
        executor_options: Mapping[str, str] | None = None,
        language: LanguageModels | None = None,
        judge: JudgeSet | None = None,
        ahead: bool = False,
    ) -> None:
        pairs = cells.items() if isinstance(cells, Mapping) else cells
        self._cells: dict[CellKey, CellRun] = {
            plan.key: CellRun(plan, text) for plan, text in pairs
        }
        self._log = log
        self._plugins = plugins
        self._seed = seed
        self._language = language
        self._judge = judge
        self._set_scheduler: SetScheduler | None = None
        if language is not None and language.budget.counts_tokens:
            self._set_scheduler = SetScheduler(language.budget, self._spent)
        # Where a budget is to be kept, nothing is asked that may not be needed.
        ahead, given = ahead and self._set_scheduler is None, executor_options or {}
        self._queues = Queues(
            plugins,
            language,
            log.directory,
            executor,
            processes,
            ahead=ahead,
            options=given,
        )
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
        cells = (
            self._cells.values()
            if plans is None
            else [self._cells[plan.key] for plan in plans]
        )
        loop.call_soon_threadsafe(self._begin, list(cells))

    def connect(self) -> None:
        """Connect to the models and the executor of all unfinished cells; raises
        whatever a backend raises.
        """
        loop = self._running_loop()
        cells = [
            cell
            for cell in self._cells.values()
            if not is_finished(self._log, cell.plan, self._judge)
        ]
        asyncio.run_coroutine_threadsafe(self._queues.start(cells), loop).result()
        if self._language is not None:
            models = dict.fromkeys(cell.plan.model for cell in cells if cell.plan.agent)
            asyncio.run_coroutine_threadsafe(
                self._language.connect(models), loop
            ).result()

    def wait(self, plan: CellPlan, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds for a cell, starting it if necessary; return
        whether it is finished.

        Trials that could not be run are in the log as missing. Raises RunLogError if
        the log could not be written, or contradicts a replayed trial.
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
        """Start all cells, and wait until the last is finished; raises what ``wait``
        raises.
        """
        self.start()
        for cell in self._cells.values():
            while not self.wait(cell.plan, LOOK):
                pass

    def progress(self, plan: CellPlan) -> Progress:
        cell = self._cells[plan.key]
        lengths = cell.lengths
        note = self._language.state() if self._language is not None else ""
        if not cell.sequential:
            planned = (
                sum(lengths.values()) + (plan.subjects - len(lengths)) * plan.trials
            )
            done = sum(cell.trials.values())
            return Progress(done, planned, note, to_come=planned - done)
        planned = sum(
            lengths.get(subject, plan.trials) for subject in range(cell.asked)
        )
        done = sum(cell.trials.get(subject, 0) for subject in range(cell.asked))
        to_come = planned - done + (plan.subjects - cell.asked) * plan.trials
        return Progress(done, planned, note, cell.asked, plan.subjects, to_come)

    def silence(self) -> tuple[str, float, str] | None:
        """Return the model that has not answered for longest, for how many seconds, and
        what its last fault said.
        """
        return None if self._language is None else self._language.silence()

    def stop_sending(self) -> None:
        """Make no further call to a model; the session is to be closed soon. From any
        thread.
        """
        if self._language is not None:
            self._language.stop_sending()

    def close(self) -> None:
        """Stop: what has not started never will, running trials are dropped, finished
        ones stay.

        Nothing is sent any more; replies that are on their way have GRACE seconds to
        arrive and be recorded, or until Ctrl-C is pressed again.
        """
        if self._closed:
            return
        self._closed = True
        if self._loop is None or self._thread is None:
            return
        self.stop_sending()
        self._loop.call_soon_threadsafe(self._closing.set)
        try:
            with heard():
                self._thread.join(GRACE + CLOSE_PATIENCE)
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(self._hurry.set)
            self._thread.join(CLOSE_PATIENCE)
        over = sum(cell.over.is_set() for cell in self._cells.values())
        # A full disk was reported where it was met; it must not hide why the session
        # ends.
        with contextlib.suppress(RunLogError):
            self._log.note("closed", f"{over} of {len(self._cells)} cells are finished")

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
                cell.lengths = self._log.completed_subjects(plan)
                cell.trials = dict(cell.lengths)
                cell.asked = cell.needed = plan.subjects
                if plan.sequential and self._judge is not None:
                    cell.sequential = True
                    cell.asked, wanted, result = _first_wanted(
                        self._log, plan, self._judge, cell.lengths
                    )
                    cell.needed = max(result.needed, cell.asked)
                    for subject in (
                        set(range(cell.asked)) - set(cell.lengths) - set(wanted)
                    ):
                        cell.ended.add(subject)
                self._log.note_killed(plan, cell.wanted())
                self._log.note(
                    "started",
                    f"{len(cell.wanted())} of {cell.asked} subjects to run",
                    plan,
                )
                cell.yokes = yokes_of(plan, self._log.directory.parent)
                cell.queue = self._queues.of(cell)
            except Exception as error:
                # Including errors of a plugin's hook: they are raised to the caller
                # that waits for this cell.
                self._fail(cell, error)
                continue
            self._go_on(cell)

    def _go_on(self, cell: CellRun) -> None:
        """Start the subjects that a cell needs next; finish the cell if it needs
        none.
        """
        try:
            while not (wanted := cell.wanted()):
                if not self._begin_set(cell):
                    self._finish(cell)
                    return
        except Exception as error:
            self._fail(cell, error)
            return
        if self._set_scheduler is not None and cell.sequential and cell.plan.agent:
            self._set_scheduler.add(cell)
            asyncio.get_running_loop().call_soon(
                self._admit
            )  # when the cells that begin with it are there, too
        else:
            self._enqueue(cell, wanted)

    def _begin_set(self, cell: CellRun) -> bool:
        """Judge the set that is complete; return whether another one begins."""
        if not cell.sequential or self._judge is None:
            return False
        lives = (
            life
            for life in self._log.trials_by_subject(cell.plan)
            if life[0].subject < cell.asked
        )
        result, following = self._judge(cell.plan, lives), cell.following
        self._log.note("set", result.text, cell.plan)
        if result.decided or result.futile or following is None:
            return False
        cell.asked, cell.needed = following, max(result.needed, following)
        return True

    def _spent(self, plan: CellPlan) -> CallTotals | None:
        calls = self._log.calls.of_cell(plan)
        return None if calls is None else calls.totals

    def _admit(self) -> None:
        """Start the sets that the budget has room for."""
        scheduler = None if self._closing.is_set() else self._set_scheduler
        while (
            scheduler is not None
            and (cell := scheduler.take(self._cells.values())) is not None
        ):
            self._enqueue(cell, cell.wanted())

    def _enqueue(
        self, cell: CellRun, subjects: Iterable[int], speculative: bool = False
    ) -> None:
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
        # A run with calls takes as long as its longest subject, so long ones begin
        # first; others are in order.
        first = -plan.trials if plan.agent and not speculative else 0
        queue.put(
            cell, due, speculative=speculative, first=first, number=next(self._numbers)
        )
        # Subjects that run ahead must not occupy tasks that others need.
        while len(queue.tasks) < min(
            queue.limit + queue.speculative_subjects, queue.subjects
        ):
            queue.tasks.append(asyncio.create_task(self._serve(queue)))
        if queue.runs_ahead and not speculative:
            asyncio.get_running_loop().call_later(AHEAD, self._run_ahead, queue)

    def _run_ahead(self, queue: WorkQueue) -> None:
        """Begin subjects of next sets, as long as there is capacity to spare."""
        while not self._closing.is_set() and queue.busy < queue.limit:
            cells = [
                (len(cell.ahead), at, cell)
                for at, cell in enumerate(self._cells.values())
                if cell.queue is queue
            ]
            most = min(
                (
                    (ahead, at, cell)
                    for ahead, at, cell in cells
                    if cell.next_ahead() is not None
                ),
                default=None,
            )
            if most is None:
                return
            subject = most[2].next_ahead()
            assert subject is not None
            self._enqueue(most[2], [subject], speculative=True)

    def _abandon(self, cell: CellRun, subject: int) -> None:
        """Stop a subject; later reports about it are not recorded."""
        cell.closed.add(subject)
        cell.open.discard(subject)
        cell.ahead.discard(subject)
        job = cell.jobs.pop(subject, None)
        if (
            job is not None
            and cell.queue is not None
            and isinstance(cell.queue.runs, ModelWorker)
        ):
            self._recorder.drop(job)
            cell.queue.runs.stop(job)

    async def _serve(self, queue: WorkQueue) -> None:
        while True:
            speculative, cell, subject = await queue.take()
            if (
                cell.error is None
                and not cell.over.is_set()
                and not cell.has_begun(subject)
            ):
                queue.running += 1
                try:
                    await self._run(queue, cell, subject)
                finally:
                    queue.running -= 1
            queue.speculative_subjects -= speculative
            if queue.runs_ahead:
                self._run_ahead(queue)

    async def _run(self, queue: WorkQueue, cell: CellRun, subject: int) -> None:
        ended, trials = False, 0

        def report(message: Report) -> None:
            nonlocal ended, trials
            sent: object = message
            if not isinstance(sent, Report):
                said = f"run reported {shown(sent)}. Pass on the reports of run_job"
                raise PluginError(f"The executor '{self._queues.executor}': {said}.")
            if not ended and subject not in cell.closed:
                ended = message.ended
                trials = max(
                    [trials, *(record.trial + 1 for record, _ in message.trials)]
                )
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
                    raise PluginError(
                        f"{who} ended a job without its last report. Pass on those of run_job."
                    )
            except WorkerDiedError as death:
                report(stopped(trials, death))
        except Exception as error:
            # Raise a bug in the test that waits for this cell, not in this background
            # thread.
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

    def _on_written(
        self, job: Job, report: Report, trials: int, error: Exception | None
    ) -> None:
        cell = self._cells[job.plan.key]
        if error is not None:
            self._fail(cell, error)
            return
        if job.subject in cell.closed:
            return
        cell.trials[job.subject] = trials
        if report.ended and not report.missing:
            cell.lengths[job.subject] = trials
        if report.ended:
            asyncio.get_running_loop().call_soon(self._admit)
        for record, _ in report.trials if self._observers else ():
            self._show(record, cell.plan)

    def _show(self, record: TrialRecord, plan: CellPlan) -> None:
        # An observer looks on; neither the run nor another observer depends on it.
        for text in self._observers.show(plan=plan, record=record):
            with contextlib.suppress(RunLogError):
                self._log.note("warning", text, plan, record.subject)

    def _finish(self, cell: CellRun) -> None:
        try:
            self._log.note("finished", f"{sum(cell.trials.values())} trials", cell.plan)
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
