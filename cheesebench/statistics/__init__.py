"""From records to numbers and verdicts: pure functions that never see an environment or a model."""

from __future__ import annotations

from cheesebench.statistics.summary import (
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

__all__ = [
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
    "to_plain",
]
