"""The verdict on one task. A judged cell becomes such a verdict, too."""

from __future__ import annotations

from dataclasses import dataclass

from cheesebench.statistics import CellResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVerdict:
    """The answer on one task. Scores are proportions, or in the unit of the ``limits``
    given to ``verdict`` or of the measure that a protocol judges. ``rate`` is the mean
    of the subjects' means.
    """

    task: str
    answer: str
    """For two models ``better``, ``worse``, ``no loss of ...`` or ``undecided``. For a
    value or the animals a verdict (``PASS``, ...).
    """
    reason: str
    subjects: int
    rate: float | None
    against: float | None
    """The number that the rate is compared with: the other model's mean, the given
    value, or the animals' value.
    """
    interval: tuple[float, float] | None
    """95 % interval: of the difference if there are two models, otherwise of the
    mean.
    """
    of_difference: bool = False
    """Whether ``interval`` is the interval of the difference of two models."""
    p_value: float | None = None
    """P value of this task alone. Against a value or the animals it is 1 / evidence."""
    adjusted_p: float | None = None
    """P value for two models after Holm's correction over tasks, which decides;
    otherwise None.
    """
    detectable: float | None = None
    """The difference of two models that this number of pairs would detect with a power
    of 80 %; None if it cannot be estimated, and for runs, a value or the animals.
    """
    model: str | None = None
    """The model of a run, or of another log that names one."""
    other_model: str | None = None
    """The model of the second run; None unless two runs are compared."""
    protocol: str | None = None
    """The protocol, if the log is a run's; otherwise None."""


def answer_of(cell: CellResult, task: str) -> TaskVerdict:
    """Return the verdict of a cell against its animals."""
    reference, judged = cell.plan.reference, cell.judged
    return TaskVerdict(
        task=task,
        answer=cell.verdict.value,
        reason=cell.reason,
        subjects=cell.subjects,
        rate=cell.rate if judged is None else judged.mean,
        against=None if reference is None else reference.value,
        interval=cell.interval if judged is None else judged.interval,
        p_value=None if cell.game is None else cell.game.p_value,
        model=cell.plan.model,
        protocol=cell.plan.label,
    )
