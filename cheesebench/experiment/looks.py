"""Looks: the numbers of subjects at which a sequential cell is judged, and the interface that decides when it stops.

Decisions are made by the statistics, which are in a higher layer and are passed in when a session is created.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from cheesebench.experiment.records import SETTLED

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, End, TrialRecord


class Course(Protocol):
    """Decides how far one sequential cell goes while it runs, based on the trials of its subjects.

    It is deterministic: the same trials give the same answers, in whatever order they arrive.
    """

    @property
    def look(self) -> int:
        """Number of subjects of the current look (subjects 0 to ``look`` - 1)."""
        ...

    @property
    def following(self) -> int | None:
        """Number of subjects of the next look; None after the last."""
        ...

    @property
    def needed(self) -> int:
        """Number of subjects with which the cell is expected to be decided, according to the last look."""
        ...

    @property
    def over(self) -> bool:
        """Whether no more subjects are needed, or none would help in this session."""
        ...

    @property
    def standing(self) -> str:
        """Outcome of the last complete look, for the journal."""
        ...

    def see(self, record: TrialRecord) -> None:
        """Add a recorded trial; trials that were already added are ignored."""
        ...

    def end(self, subject: int, how: End) -> None:
        """Record that a subject has no more trials, and why."""
        ...

    def reopen(self) -> None:
        """Wait again for broken subjects, unless the look is decided without them."""
        ...

    def wanted(self) -> list[int]:
        """Return the subjects that the current look still waits for."""
        ...

    def cut(self) -> tuple[list[int], int] | None:
        """Return the subjects of the look to stop, and after how many trials each, if the look is already decided.

        None while their remaining trials could matter.
        """
        ...

    def settle(self, trials: int) -> None:
        """Record that those subjects were stopped after this many trials."""
        ...

    def advance(self) -> bool:
        """Judge the completed look; return whether there is a further look to run."""
        ...


def load_course(course: Course, log: RunLog, plan: CellPlan) -> None:
    """Load all records of a cell into its course, and advance to the first incomplete look.

    Broken subjects are run again, unless only a budget was spent and the look is decided without them.
    """
    complete = log.completed_subjects(plan)
    for life in log.recorded_subjects(plan):
        subject = life[0].subject
        missing = next((record.missing for record in life if record.missing), "")
        for record in life:
            course.see(record)
        if subject in complete:
            course.end(subject, "complete")
        elif missing == SETTLED:
            course.end(subject, "settled")
        elif missing == "budget":
            course.end(subject, "broken")
    while True:
        course.reopen()
        if course.wanted() or not course.advance():
            return


def is_finished(log: RunLog, plan: CellPlan, course_of: CourseOf | None) -> bool:
    """Return whether a cell of a log needs no further subjects."""
    if not plan.looks or course_of is None:
        return len(log.completed_subjects(plan)) >= plan.subjects
    course = course_of(plan)
    load_course(course, log, plan)
    return course.over


#: Creates the course of a cell with looks.
CourseOf = Callable[["CellPlan"], Course]
