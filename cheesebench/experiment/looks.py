"""Looks: the numbers of subjects at which a sequential cell is judged, and who says how far it goes.

What a look says is a matter of the statistics, which are above this layer; whoever starts a session hands them in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from cheesebench.experiment.records import SETTLED

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, End, TrialRecord


class Course(Protocol):
    """How far one sequential cell goes, while its subjects live: it is given their trials, and says what is needed.

    It is pure: the same trials give the same answers, in whatever order the subjects were faster.
    """

    @property
    def look(self) -> int:
        """Subjects of the look that is under way: 0 to ``look`` - 1."""
        ...

    @property
    def following(self) -> int | None:
        """Subjects of the next look; None after the last."""
        ...

    @property
    def needed(self) -> int:
        """Subjects with which the cell is expected to be decided, as far as the last look could tell."""
        ...

    @property
    def over(self) -> bool:
        """Whether no more subjects are needed, or none would help in this session."""
        ...

    @property
    def standing(self) -> str:
        """What the last complete look has said, for the journal."""
        ...

    def see(self, record: TrialRecord) -> None:
        """Take notice of a trial that is in the log; one that was seen before is left alone."""
        ...

    def end(self, subject: int, how: End) -> None:
        """Take notice that a subject has no more trials, and why."""
        ...

    def reopen(self) -> None:
        """Wait again for those that broke off, unless the look is decided whatever they would have done."""
        ...

    def wanted(self) -> list[int]:
        """Return the subjects that the look still waits for."""
        ...

    def cut(self) -> tuple[list[int], int] | None:
        """Return the subjects of the look that may be stopped after so many trials each, because it is decided.

        None as long as what they still have to do could matter.
        """
        ...

    def settle(self, trials: int) -> None:
        """Take notice that those subjects were stopped after so many trials."""
        ...

    def advance(self) -> bool:
        """Judge the look, none of whose subjects is waited for; return whether there is a further one to go on to."""
        ...


def load_course(course: Course, log: RunLog, plan: CellPlan) -> None:
    """Have a course see all that the log holds of its cell, and go on to the look that is not complete.

    Who broke off is waited for again, unless only a budget was spent and the look is decided all the same.
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
    """Tell whether a cell of a log needs no further subject."""
    if not plan.looks or course_of is None:
        return len(log.completed_subjects(plan)) >= plan.subjects
    course = course_of(plan)
    load_course(course, log, plan)
    return course.over


#: What makes the course of a cell that has looks.
CourseOf = Callable[["CellPlan"], Course]
