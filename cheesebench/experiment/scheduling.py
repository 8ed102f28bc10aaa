"""The driver's state of cells and queues, and the order of cells when a budget may end the run."""

from __future__ import annotations

import asyncio
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from cheesebench.experiment.numbered import NumberCounts, NumberSet

if TYPE_CHECKING:
    from cheesebench.executor import Job, Report
    from cheesebench.experiment.budget import Budget
    from cheesebench.experiment.controls import Yokes
    from cheesebench.experiment.looks import Course
    from cheesebench.experiment.records import CallTotals, CellKey, CellPlan
    from cheesebench.protocol import BaseSpecification

#: Part of what is left of a budget that verdicts may be expected to cost together: an expectation may be too low.
CAUTION = 0.8


@dataclass(frozen=True, slots=True)
class Progress:
    """Finished and planned trials of a cell (fewer are planned once ``until`` has ended a schedule early).

    ``note`` is the state of calls to models over all cells; empty without calls. For a sequential cell, the numbers are
    those of the current look, at ``look`` of at most ``most`` subjects.
    """

    done: int
    planned: int
    note: str = ""
    look: int | None = None
    most: int = 0


class Runs(Protocol):
    """Runs jobs: an executor, or a ModelWorker."""

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """See ``Executor``."""


@dataclass(slots=True, eq=False)
class WorkQueue:
    """A queue of subjects, and the tasks that serve it, each with one job at a time.

    ``runs_ahead``: subjects of the next looks may be run with spare capacity.
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
    #: One entry for subjects of a cell that were queued together: a cell may have a million.
    queue: asyncio.PriorityQueue[Entry] = field(default_factory=asyncio.PriorityQueue)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def busy(self) -> int:
        """Subjects that are running or queued."""
        return self.running + self.waiting

    def put(self, cell: CellRun, subjects: Sequence[int], *, speculative: bool, first: int, number: int) -> None:
        """Queue subjects of a cell; the smallest ``first``, then ``number``, comes first, ``speculative`` ones last."""
        self.subjects += len(subjects)
        self.waiting += len(subjects)
        self.speculative_subjects += speculative * len(subjects)
        self.queue.put_nowait((speculative, first, number, cell, iter(subjects)))

    async def take(self) -> tuple[bool, CellRun, int]:
        """Wait for the next subject; return whether it is speculative, its cell, and its number."""
        while True:
            entry = await self.queue.get()
            speculative, _, _, cell, subjects = entry
            for subject in subjects:
                self.queue.put_nowait(entry)  # it comes first again
                self.waiting -= 1
                return speculative, cell, subject


#: Whether it is speculative, what runs first, a number that no other entry has, the cell, and the subjects left.
Entry = tuple[bool, int, int, "CellRun", Iterator[int]]


@dataclass(slots=True, eq=False)
class CellRun:
    """A cell of a session and its progress."""

    plan: CellPlan
    specification: BaseSpecification
    started: bool = False
    yokes: Yokes | None = None
    queue: WorkQueue | None = None
    #: Decides when it stops, if it has looks.
    course: Course | None = None
    #: Subjects that it waits for; those of the next look that already run; those whose job has ended in this session;
    #: those that were stopped.
    open: NumberSet = field(default_factory=NumberSet)
    ahead: NumberSet = field(default_factory=NumberSet)
    ended: NumberSet = field(default_factory=NumberSet)
    closed: NumberSet = field(default_factory=NumberSet)
    jobs: dict[int, Job] = field(default_factory=dict)
    checking: bool = False
    #: Finished trials by subject; and the number of trials of complete subjects.
    trials: NumberCounts = field(default_factory=NumberCounts)
    lengths: NumberCounts = field(default_factory=NumberCounts)
    over: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None

    @property
    def subjects(self) -> int:
        """Number of subjects that it needs, as far as known."""
        return self.plan.subjects if self.course is None else self.course.look

    @property
    def needed(self) -> int:
        """Number of subjects with which it is expected to be decided."""
        return self.subjects if self.course is None else max(self.course.needed, self.course.look)

    def wanted(self) -> Sequence[int]:
        """Return the subjects to run now."""
        if self.course is None:
            found = (s for s in range(self.plan.subjects) if s not in self.lengths and s not in self.ended)
            return array("q", found)
        for subject in self.course.wanted():
            if subject in self.ended:
                self.course.end(subject, "broken")  # its last report could not be written
        return self.course.wanted()

    def has_begun(self, subject: int) -> bool:
        """Return whether a subject is running, has ended, or was stopped."""
        return subject in self.jobs or subject in self.ended or subject in self.closed

    def next_ahead(self) -> int | None:
        """Return the first subject of the next look that could run ahead; None if there is none."""
        course = self.course
        if course is None or course.over or course.following is None or not self.open:
            return None
        possible = range(course.look, course.following)
        return next(
            (s for s in possible if s not in self.ahead and s not in self.lengths and not self.has_begun(s)), None
        )

    def trials_to(self, subjects: int) -> int:
        """Return the maximum number of trials left until this many subjects are complete."""
        done = sum(min(trials, self.plan.trials) for subject, trials in self.trials.items() if subject < subjects)
        return max(0, subjects * self.plan.trials - done)


class Ration:
    """Whose look begins next while a budget is being spent: that of the cell nearest to a verdict.

    What a trial costs is what the cell's own have cost so far; before it has any, what the others have, in proportion
    to the calls that a trial can take at the most. Cells begin side by side as long as the budget is expected to last
    for the verdicts of all of them; otherwise one after the other.
    """

    def __init__(self, budget: Budget, spent: Callable[[CellPlan], CallTotals | None]) -> None:
        self._budget = budget
        self._spent = spent
        self._waiting: list[CellRun] = []
        #: Share of the budget that a trial of each cell costs.
        self._own: dict[CellKey, float] = {}

    def add(self, cell: CellRun) -> None:
        """Add a cell that is waiting to begin a look."""
        self._waiting.append(cell)
        totals, trials = self._spent(cell.plan), cell.trials.total
        if totals is not None and trials:
            self._own[cell.plan.key] = self._budget.share_of(totals) / trials

    def take(self, cells: Iterable[CellRun]) -> CellRun | None:
        """Return the waiting cell that is to begin its look now; None if none is."""
        self._waiting = [cell for cell in self._waiting if not cell.over.is_set()]
        if not self._waiting:
            return None
        agents = [cell for cell in cells if cell.plan.agent]
        share = self._budget.share_of(self._budget.spent)
        done = sum(cell.trials.total * cell.specification.most_calls for cell in agents)
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
