"""The answer for one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Answer = Literal[
    "better", "worse", "indistinguishable", "PASS", "FAIL", "INCONCLUSIVE", "ERROR"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVerdict:
    """The answer on one task; scores are proportions, ``rate`` is the mean of the
    subjects' means.
    """

    task: str
    answer: Answer
    reason: str
    subjects: int
    rate: float | None
    against: float | None
    """The other model's mean, the value, or the animals'."""
    interval: tuple[float, float] | None
    """95 % interval, of the difference of two models, or of the mean."""
    p_value: float | None = None
    """P value for two models, after Holm's correction."""
    detectable: float | None = None
    """The difference of two models that this number of pairs would show with a power of
    80 %.
    """
