"""Computes numbers and verdicts from records. The functions are pure, and need neither
an environment nor a model.
"""

from __future__ import annotations

from cheesebench.statistics.judgement import judge, judge_sample
from cheesebench.statistics.run import summarise_run, summarise_subjects
from cheesebench.statistics.sample import draw_sample
from cheesebench.statistics.summary import (
    TAXONOMY,
    CellResult,
    ControlResult,
    CurvePoint,
    Gain,
    Measure,
    ModelSummary,
    PairedComparison,
    RunSummary,
    Verdict,
    to_plain,
)

__all__ = [
    "TAXONOMY",
    "CellResult",
    "ControlResult",
    "CurvePoint",
    "Gain",
    "Measure",
    "ModelSummary",
    "PairedComparison",
    "RunSummary",
    "Verdict",
    "draw_sample",
    "judge",
    "judge_sample",
    "summarise_run",
    "summarise_subjects",
    "to_plain",
]
