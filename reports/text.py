"""The verdict table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cheesebench.reports import cells, controls, studies
from cheesebench.reports.escaping import clean

if TYPE_CHECKING:
    from cheesebench.statistics import ControlResult, ModelSummary, RunSummary

_HEADERS = ("", "protocol", "rate", "95 %", "rodent", "random", "n", "remarks")


def render(summary: RunSummary) -> str:
    """Return one table for each model and view, and what it comes to."""
    if not summary.models:
        return "No cell was run.\n"
    parts = [_model(summary, model) for model in summary.models]
    parts += [_control(result) for result in summary.controls]
    if studies.study_name(summary):
        parts.append(_study(summary))
    return "\n\n".join(parts) + "\n"


def _model(summary: RunSummary, model: ModelSummary) -> str:
    from tabulate import tabulate

    own = cells.cells_of(summary, model)
    rows = [
        [
            cells.marked(cell.verdict),
            clean(cell.plan.label),
            cells.rate(cell),
            cells.interval(cell),
            cells.reference(cell),
            cells.floor(cell),
            cell.n_text,
            ", ".join(cells.remarks(cell)),
        ]
        for cell in own
    ]
    alignment = ("left", "left", "right", "right", "left", "right", "left", "left")
    table = tabulate(rows, headers=_HEADERS, tablefmt="simple", disable_numparse=True, colalign=alignment)
    gate = f"{cells.marked(model.gate)}: {clean(model.gate_reason)}"
    reasons = [
        f"{cells.marked(cell.verdict)} {clean(cell.plan.label)}: {clean(cell.reason)}"
        for cell in own
        if cell.verdict in ("INCONCLUSIVE", "ERROR") and cell.plan.claims
    ]
    totals = cells.call_totals(own)
    calls = ""
    if totals.calls:
        numbers = zip(cells.CALL_HEADERS, cells.call_numbers(totals), strict=True)
        calls = "Calls: " + ", ".join(f"{value} {name}" for name, value in numbers if value not in (cells.NOTHING, "0"))
    parts = [f"{clean(' in '.join(cells.whose(model)))} ({cells.counts(own)})", table, "\n".join(reasons), calls, gate]
    return "\n\n".join(part for part in parts if part)


def _study(summary: RunSummary) -> str:
    from tabulate import tabulate

    headers, rows = studies.settings_table(summary)
    # A terminal has no room for a column for each protocol; the Markdown report has.
    short = [[clean(value) for value in row[:3]] for row in rows]
    table = tabulate(short, headers=headers[:3], tablefmt="simple", disable_numparse=True)
    return f"Study {clean(studies.study_name(summary))}: mean pass rate over the protocols\n\n{table}"


def _control(result: ControlResult) -> str:
    from tabulate import tabulate

    table = tabulate(
        controls.rows(result),
        headers=controls.headers(result),
        tablefmt="simple",
        disable_numparse=True,
        colalign=["right"] * len(controls.headers(result)),
    )
    return f"Control {clean(controls.title(result))}\n\n{table}\n{clean(' '.join(controls.sentences(result)))}"
