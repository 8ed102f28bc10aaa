"""From records to numbers and verdicts: pure functions that never see an environment or a model."""

from __future__ import annotations

from cheesebench.statistics.judgement import judge
from cheesebench.statistics.paired import compare_paired
from cheesebench.statistics.run import summarise_run
from cheesebench.statistics.summary import (
    TAXONOMY,
    Average,
    BestOfViews,
    CellResult,
    CurvePoint,
    Flags,
    Measure,
    ModelSummary,
    PairedComparison,
    RunSummary,
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
    "CurvePoint",
    "Flags",
    "Measure",
    "ModelSummary",
    "PairedComparison",
    "RunSummary",
    "Verdict",
    "ViewChoice",
    "best_of_views",
    "compare_paired",
    "judge",
    "summarise_run",
    "to_plain",
]
