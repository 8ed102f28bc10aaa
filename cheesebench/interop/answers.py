"""The verdict on one task. A judged cell becomes such a verdict, too."""

from __future__ import annotations

from dataclasses import dataclass

from cheesebench.statistics import CellResult


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVerdict:
    """The answer on one task. The names of columns, where they differ, are attributes,
    too. Scores are proportions, or in the unit of the ``limits`` given to ``verdict``
    or of the measure that a protocol judges.

    * ``answer`` (column ``verdict``): for two models ``better``, ``worse``, ``no loss
      of ...`` or ``undecided``; for a value or the animals a verdict (``PASS``, ...);
      None for a control of a run, which makes no claim.
    * ``rate``: the mean over ``subjects`` of their means. ``against`` (column
      ``reference``): the number that it is compared with: the other model's mean, the
      given value, or the animals' value. It is None for a cell without a reference,
      even if the verdict is about chance.
    * ``interval``: the 95 % interval, of the difference if ``of_difference`` (there are
      two models), otherwise of the mean.
    * ``p_value``: the p value of this task alone, the largest that missing scores or
      trials could have given; against a value or the animals it is 1 / evidence.
      ``adjusted_p`` (column ``p_holm``): the same for two models after Holm's
      correction over tasks, which decides; otherwise None.
    * ``seen_p`` and ``seen_interval`` (columns ``p_seen``, ``seen_low``,
      ``seen_high``): ``p_value`` and ``interval`` without the imagined pair; None if no
      pair is imagined.
    * ``detectable``: the difference of two models that this number of pairs would
      detect with a power of 80 %; None if it cannot be estimated, and for runs, a value
      or the animals.
    * ``model``: the model of a run, or of another log that names one. ``other_model``:
      the second model, if it is named. ``protocol``: the protocol, if the log is a
      run's.
    """

    task: str
    answer: str | None
    reason: str
    subjects: int
    rate: float | None
    against: float | None
    interval: tuple[float, float] | None
    of_difference: bool = False
    p_value: float | None = None
    adjusted_p: float | None = None
    detectable: float | None = None
    seen_p: float | None = None
    seen_interval: tuple[float, float] | None = None
    model: str | None = None
    other_model: str | None = None
    protocol: str | None = None

    @property
    def verdict(self) -> str | None:
        return self.answer

    @property
    def reference(self) -> float | None:
        return self.against

    @property
    def p_holm(self) -> float | None:
        return self.adjusted_p


def answer_of(cell: CellResult, task: str) -> TaskVerdict:
    """Return a judged cell's verdict in the form of a TaskVerdict."""
    reference, judged = cell.plan.reference, cell.judged
    return TaskVerdict(
        task=task,
        answer=cell.verdict and cell.verdict.value,
        reason=cell.reason,
        subjects=cell.subjects,
        rate=cell.rate if judged is None else judged.mean,
        against=None if reference is None else reference.value,
        interval=cell.interval if judged is None else judged.interval,
        p_value=None if cell.game is None else cell.game.p_value,
        model=cell.plan.model,
        protocol=cell.plan.label,
    )
