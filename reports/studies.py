"""The results of a study: a table of settings by protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cheesebench.reports import cells
from cheesebench.statistics.published import published_ablation
from cheesebench.statistics.wording import percent

if TYPE_CHECKING:
    from cheesebench.statistics import RunSummary

#: Column of a study of the paper, under the paper's rules.
PUBLISHED = "published (Qwen2.5-VL-7B, 15 trials)"
#: The same where the models are what varies.
PUBLISHED_MODEL = "published (15 trials)"
HOW = "Mean pass rate over the protocols with its standard error, and the pass rate of each."


def study_name(summary: RunSummary) -> str:
    """Return the name of a run's study; empty if it has none."""
    return str(cells.mapping(summary.manifest.get("options")).get("study") or "")


def settings_table(summary: RunSummary) -> tuple[Sequence[str], list[list[str]]]:
    """Return headers and rows of a table with one row for each model, view and variant (not yet escaped)."""
    protocols = list(dict.fromkeys(cell.plan.protocol for cell in summary.cells))
    published = published_ablation(study_name(summary), (cell.plan for cell in summary.cells))
    rows = []
    for model in summary.models:
        rates = {cell.plan.protocol: cells.rate(cell) for cell in cells.cells_of(summary, model)}
        overall = cells.NOTHING
        if model.overall is not None:
            overall = cells.mean(model.overall)
        theirs = published.get(model.variant.partition("=")[2] or model.model)
        beside = [] if not published else [cells.NOTHING if theirs is None else percent(theirs)]
        rows.append([*cells.whose(model), overall, *beside, *(rates.get(name, cells.NOTHING) for name in protocols)])
    of_models = any(model.model in published for model in summary.models)
    header = PUBLISHED_MODEL if of_models else PUBLISHED
    return ("model", "setting", "mean", *([header] if published else []), *protocols), rows
