"""Decides which subject of a session runs next, but does not run it.

Nothing here waits, reads or writes. The driver (``session``) reports what has happened,
and asks what to start.
"""

from __future__ import annotations

import heapq
import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from cheesebench.records import CellKey, sets_until


class SubjectState(Enum):
    """The state of a subject in a cell. A subject that is yet to be queued has none."""

    QUEUED = auto()
    RUNNING = auto()
    ENDED = auto()
    """The job is over. Trials may be missing, or not yet written."""
    COMPLETE = auto()
    """All trials are in the log."""
    STOPPED = auto()
    """The cell was decided while the subject ran ahead."""


#: States of a subject that has not ended.
_OPEN = (SubjectState.QUEUED, SubjectState.RUNNING)


@dataclass(slots=True, eq=False)
class CellSchedule:
    """The subjects of a cell.

    The first ``asked`` subjects are needed now: all of them or, in a sequential cell,
    the subjects up to the present set. A later subject that is started *runs ahead*.
    """

    key: CellKey
    #: Maximum number of subjects.
    subjects: int
    #: Maximum number of trials of each subject.
    trials: int
    #: Maximum number of calls of each trial.
    most_calls: int = 0
    #: Whether the agent asks a language model.
    asks_model: bool = False
    #: Whether the subjects run in sets, after each of which the cell may be decided.
    sequential: bool = False
    #: Number of subjects needed now.
    asked: int = 0
    #: Number of subjects that the verdict is expected to need.
    needed: int = 0
    #: Whether the cell is decided or has failed, so that no further subject will be
    #: started.
    decided: bool = False
    #: A complete subject that is run once more before any other, to see that its trials
    #: come out as recorded, or None.
    witness: int | None = None
    #: Number of finished trials of all subjects.
    done: int = 0
    #: Number of finished trials of complete subjects.
    done_by_complete: int = 0
    #: Number of complete subjects.
    complete: int = 0
    _states: dict[int, SubjectState] = field(default_factory=dict)
    _trials: dict[int, int] = field(default_factory=dict)
    #: How many of the first ``asked`` subjects are queued or running.
    _awaited: int = 0

    def begin(
        self,
        complete: dict[int, int],
        asked: int,
        needed: int,
        given_up: Iterable[int] = (),
    ) -> None:
        """Take over the results of earlier sessions: the complete subjects with their
        numbers of trials, and the subjects that must not be run again.
        """
        self.asked, self.needed = asked, needed
        for subject, trials in complete.items():
            self.set_trials(subject, trials)
            self.set_complete(subject)
        for subject in given_up:
            self._states[subject] = SubjectState.ENDED

    def state(self, subject: int) -> SubjectState | None:
        return self._states.get(subject)

    def is_ahead(self, subject: int) -> bool:
        return subject >= self.asked

    @property
    def awaits(self) -> bool:
        """Whether one of the first ``asked`` subjects is queued or running."""
        return self._awaited > 0

    @property
    def following(self) -> int | None:
        """Number of subjects up to and including the next set, or None if no set
        follows.
        """
        sets = sets_until(self.subjects) if self.sequential else ()
        return next((one for one in sets if one > self.asked), None)

    def call_witness(self) -> None:
        """Run one of the complete subjects before any other, if there is one and any
        other is due.
        """
        asked = range(self.asked if self.due() else 0)
        complete = SubjectState.COMPLETE
        self.witness = next((s for s in asked if self._states.get(s) is complete), None)

    def due(self) -> Sequence[int]:
        """Return the subjects to run: the witness or, without one, the first ``asked``
        subjects without the subjects that have ended.
        """
        if self.witness is not None:
            return array("q", [self.witness])
        return array("q", (s for s in range(self.asked) if self._is_due(s)))

    def _is_due(self, subject: int) -> bool:
        state = self._states.get(subject)
        return state is None or state in _OPEN

    def ahead(self) -> list[int]:
        """Return the subjects that run ahead."""
        beyond = range(self.asked, self.following or self.asked)
        return [s for s in beyond if self._runs(s)]

    def next_ahead(self) -> int | None:
        """Return the first subject of the next set that could run ahead, or None if
        there is none.
        """
        if self.decided or not self.awaits:
            return None
        beyond = range(self.asked, self.following or self.asked)
        return next((s for s in beyond if s not in self._states), None)

    def begin_set(self, asked: int, needed: int) -> None:
        """Ask for the subjects of another set, after the subjects of the present set
        have ended.
        """
        self.asked, self.needed = asked, max(needed, asked)

    def queue_due(self) -> Sequence[int]:
        """Await every needed subject. Queue and return the subjects that are not yet
        running.
        """
        due = self.due()
        self._awaited = len(due)
        queued = array("q", (s for s in due if not self._runs(s)))
        for subject in queued:
            self._states[subject] = SubjectState.QUEUED
        return queued

    def _runs(self, subject: int) -> bool:
        return self._states.get(subject) is SubjectState.RUNNING

    def start_ahead(self) -> int | None:
        """Start and return the first subject of the next set that could run ahead.
        Return None if there is none.
        """
        subject = self.next_ahead()
        if subject is not None:
            self._states[subject] = SubjectState.RUNNING
        return subject

    def start(self, subject: int) -> bool:
        """Start a queued subject if it is still needed. Return whether it is."""
        if self.decided or self._states.get(subject) is not SubjectState.QUEUED:
            return False
        self._states[subject] = SubjectState.RUNNING
        return True

    def end(self, subject: int) -> bool:
        """Record that a subject's job is over. Return whether the present set has
        ended.
        """
        if self._states.get(subject) not in _OPEN:
            return False
        witnessed = subject == self.witness
        self._states[subject] = (
            SubjectState.COMPLETE if witnessed else SubjectState.ENDED
        )
        if witnessed:
            self.witness = None
        if self.is_ahead(subject):
            return False
        self._awaited -= 1
        return not self._awaited

    def stop(self, subject: int) -> None:
        self._states[subject] = SubjectState.STOPPED

    def set_trials(self, subject: int, trials: int) -> None:
        if subject == self.witness:  # All of its trials are counted.
            return
        self.done += trials - self._trials.get(subject, 0)
        self._trials[subject] = trials

    def set_complete(self, subject: int) -> None:
        """Record that all trials of a subject are in the log."""
        if self._states.get(subject) is SubjectState.COMPLETE:
            return
        self._states[subject] = SubjectState.COMPLETE
        self.complete += 1
        self.done_by_complete += self._trials[subject]

    def progress(self) -> tuple[int, int]:
        """Return the numbers of finished and planned trials. In a sequential cell, only
        the first ``asked`` subjects count.
        """
        if not self.sequential:
            left = (self.subjects - self.complete) * self.trials
            return self.done, self.done_by_complete + left
        asked = range(self.asked)
        done = sum(self._trials.get(subject, 0) for subject in asked)
        return done, sum(map(self._length, asked))

    def _length(self, subject: int) -> int:
        is_complete = self._states.get(subject) is SubjectState.COMPLETE
        return self._trials[subject] if is_complete else self.trials

    def trials_to(self, subjects: int) -> int:
        """Return how many more trials are needed, at most, until this many subjects are
        complete.
        """
        done = sum(
            min(trials, self.trials)
            for subject, trials in self._trials.items()
            if subject < subjects
        )
        return max(0, subjects * self.trials - done)


#: The subjects of a cell that were queued together (there may be a million). The sort
#: key comes first: long lives precede short ones (only if models are called), and then
#: earlier batches precede later ones.
Batch = tuple[int, int, CellSchedule, Iterator[int]]


class Queue:
    """The queued subjects of the cells that share an executor, or a model.

    At most ``limit`` of the cells' first ``asked`` subjects run at a time. With
    ``runs_ahead``, subjects of the cells' next sets fill the free places.
    """

    def __init__(self, limit: int, *, runs_ahead: bool = False) -> None:
        self.limit = limit
        self.runs_ahead = runs_ahead
        #: Cells that were queued at least once.
        self._cells: dict[CellSchedule, None] = {}
        self._batches: list[Batch] = []
        self._numbers = itertools.count()
        #: The running subjects, each with its cell.
        self._running: set[tuple[CellSchedule, int]] = set()

    def put(self, cell: CellSchedule) -> None:
        """Queue the subjects that a cell needs now."""
        self._cells[cell] = None
        # A run with calls takes as long as its longest subject, so subjects with long
        # lives begin first. Subjects without calls keep their order.
        longest = -cell.trials if cell.asks_model else 0
        batch = longest, next(self._numbers), cell, iter(cell.queue_due())
        heapq.heappush(self._batches, batch)

    def start(self) -> Iterator[tuple[CellSchedule, int]]:
        """Yield every subject to start now. Each counts as running from then on."""
        needed = sum(not cell.is_ahead(subject) for cell, subject in self._running)
        for found in itertools.islice(self._queued(), max(0, self.limit - needed)):
            self._running.add(found)
            yield found

    def start_ahead(self) -> Iterator[tuple[CellSchedule, int]]:
        """Yield the subjects of next sets to start now, which fill the spare
        capacity.
        """
        while self.runs_ahead and self._spare():
            cells = [cell for cell in self._cells if cell.next_ahead() is not None]
            if not cells:
                return
            cell = min(cells, key=lambda one: len(one.ahead()))
            if (subject := cell.start_ahead()) is not None:
                self._running.add((cell, subject))
                yield cell, subject

    def end(self, cell: CellSchedule, subject: int) -> None:
        """Free the place of a subject."""
        self._running.discard((cell, subject))

    def _spare(self) -> bool:
        return not self._batches and len(self._running) < self.limit

    def _queued(self) -> Iterator[tuple[CellSchedule, int]]:
        """Start queued subjects in order, and yield each."""
        while self._batches:
            *_, cell, subjects = self._batches[0]
            for subject in subjects:
                if cell.start(subject):
                    yield cell, subject
            heapq.heappop(self._batches)


#: Maximum share of the remaining budget that cells side by side may be expected to cost
#: until their verdicts. It is below 1, because costs may be higher than expected. A
#: cell that runs alone may cost more.
CAUTION = 0.8


class Admission:
    """Decides which cell begins its next set while a budget is being spent: the one
    nearest to a verdict.

    ``spent`` returns the spent share of the budget (0 to 1). The expected cost of a
    trial is the mean over the cell's own trials so far. Before the cell's first trial,
    it is estimated from all cells, in proportion to the maximum number of calls per
    trial. Cells run side by side as long as the budget is expected to last for all
    their verdicts, otherwise one after another.
    """

    def __init__(
        self, cells: Sequence[CellSchedule], spent: Callable[[], float]
    ) -> None:
        self._cells = cells
        self._spent = spent
        self._waiting: list[CellSchedule] = []
        #: For each cell, the mean share of the budget that one of its trials costs.
        self._own: dict[CellSchedule, float] = {}

    def add(self, cell: CellSchedule, spent: float | None) -> None:
        """Let a cell wait for its next set. ``spent`` is the share of the budget that
        its trials have cost, or None if it makes no calls.
        """
        self._waiting.append(cell)
        if spent is not None and cell.done:
            self._own[cell] = spent / cell.done

    def take(self) -> CellSchedule | None:
        """Return the cell whose next set begins now. Return None if no cell waits, or
        if the rest of the budget may not suffice for that cell and the cells that have
        begun.
        """
        self._waiting = [cell for cell in self._waiting if not cell.decided]
        if not self._waiting:
            return None
        spent = self._spent()
        calls = sum(cell.done * cell.most_calls for cell in self._cells)
        # Until a cell's own cost is known, every call is assumed to cost the same.
        call = spent / calls if calls else 1.0
        best = min(self._waiting, key=lambda cell: self._expected(cell, call))
        begun = [cell for cell in self._cells if cell.awaits and not cell.decided]
        if begun:
            verdicts = sum(self._expected(cell, call) for cell in (*begun, best))
            if not calls or verdicts > CAUTION * (1 - spent):
                return None
        self._waiting.remove(best)
        return best

    def _expected(self, cell: CellSchedule, call: float) -> float:
        """Return the share of the budget that a cell is expected to cost until its
        verdict. ``call`` is the share of a call, used if no cost of the cell is known.
        """
        trial = self._own.get(cell, call * cell.most_calls)
        return trial * cell.trials_to(cell.needed)
