"""From records to numbers and verdicts: pure functions that never see an environment or a model."""

from __future__ import annotations

from cheesebench.statistics.judgement import judge, judge_sample
from cheesebench.statistics.paired import compare_paired
from cheesebench.statistics.run import summarise_run, summarise_subjects
from cheesebench.statistics.sample import draw_sample
from cheesebench.statistics.summary import (
    TAXONOMY,
    Average,
    BestOfViews,
    CellResult,
    ClassShares,
    ControlResult,
    CurvePoint,
    Flags,
    Gain,
    Measure,
    ModelSummary,
    PairedComparison,
    PairedPoint,
    PublishedRow,
    RunSummary,
    SplitRate,
    Verdict,
    ViewChoice,
    to_plain,
)
from cheesebench.statistics.views import best_of_views

__all__ = [
    "TAXONOMY",
    "Average",
    "BestOfViews",
    "CellResult",
    "ClassShares",
    "ControlResult",
    "CurvePoint",
    "Flags",
    "Gain",
    "Measure",
    "ModelSummary",
    "PairedComparison",
    "PairedPoint",
    "PublishedRow",
    "RunSummary",
    "SplitRate",
    "Verdict",
    "ViewChoice",
    "best_of_views",
    "compare_paired",
    "draw_sample",
    "judge",
    "judge_sample",
    "summarise_run",
    "summarise_subjects",
    "to_plain",
]
