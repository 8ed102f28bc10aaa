"""A comment for a pull request: the matrix first, everything else folded away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cheesebench.reports import cells as words
from cheesebench.reports import matrix
from cheesebench.reports.escaping import clean, escape
from cheesebench.statistics import Verdict

if TYPE_CHECKING:
    from cheesebench.statistics import RunSummary

#: By this a job finds its own comment again, to change it instead of writing another one.
MARK = "<!-- cheesebench -->"
#: Characters that a comment on GitHub may have, with room for the comparison that may follow.
LARGEST = 60_000
#: Cells of which it says why their numbers are doubtful; the report has all of them.
MOST_DOUBTFUL = 40


def render(summary: RunSummary) -> str:
    """Return the comment in Markdown."""
    if not summary.models:
        return f"{MARK}\n**CheeseBench**: no cell was run.\n"
    heads = [
        f"**{words.MARKS[model.gate]} {escape(clean(' in '.join(words.whose(model))))}**: "
        f"{words.counts(words.cells_of(summary, model))}"
        for model in summary.models
    ]
    parts = [
        MARK,
        f"### {words.question(summary.cells).capitalize()}?",
        "  \n".join(heads),
        matrix.render(summary).rstrip(),
    ]
    undecided = [
        f"- {words.marked(cell.verdict)} **{escape(clean(cell.plan.label))}** ({escape(clean(cell.plan.model))}): "
        f"{escape(clean(cell.reason))}"
        for cell in summary.cells
        if cell.verdict is not Verdict.PASS and not cell.plan.control
    ]
    # Not folded away: without these a number looks better than it is.
    doubtful = [
        f"- **{escape(clean(cell.plan.label))}** ({escape(clean(cell.plan.model))}): "
        f"{escape(clean('; '.join(cell.warnings)))}"
        for cell in summary.cells
        if cell.warnings and not cell.plan.control
    ]
    if len(doubtful) > MOST_DOUBTFUL:
        doubtful[MOST_DOUBTFUL:] = [f"- and {len(doubtful) - MOST_DOUBTFUL} more"]
    if doubtful:
        parts.append("Doubtful, whatever the verdict:\n\n" + "\n".join(doubtful))
    run = escape(clean(summary.manifest.get("run_id") or "a run"))
    end = f"Run `{run}`; the whole report is its `report.md`."
    details = _folded("What did not pass, and why", undecided, LARGEST - sum(map(len, parts)) - len(end))
    return "\n\n".join(filter(None, (*parts, details, end))) + "\n"


def _folded(title: str, lines: list[str], room: int) -> str:
    """Return lines in a part that can be opened, as many as there is room for."""
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 200:
            kept.append(f"- and {len(lines) - len(kept)} more")
            break
        kept.append(line)
    body = "\n".join(kept)
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>" if kept else ""
