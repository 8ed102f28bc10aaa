"""A badge (SVG) for a README: how many paradigms a model passes, in the colour of its worst verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cheesebench.reports import cells as words
from cheesebench.reports.escaping import clean
from cheesebench.statistics import Verdict

if TYPE_CHECKING:
    from cheesebench.statistics import RunSummary

LABEL = "as good as the rodent"
#: Colours with enough contrast for white letters (4.5 : 1 and more).
COLOURS = {
    Verdict.PASS: "#1a7f37",
    Verdict.FAIL: "#b42318",
    Verdict.INCONCLUSIVE: "#8a5a00",
    Verdict.ERROR: "#57606a",
}
#: Pixels of a letter on average, at a size of 11, and beside the text.
LETTER, EDGE = 6.4, 6


def render(summary: RunSummary) -> str:
    """Return the badge; of several models (or views) it names the number of those that pass everything."""
    models = summary.models
    if len(models) == 1:
        own = words.cells_of(summary, models[0])
        passed = sum(cell.verdict is Verdict.PASS for cell in own)
        said, gate = f"{passed} of {len(own)}", models[0].gate
    else:
        passed = sum(model.gate is Verdict.PASS for model in models)
        said = f"{passed} of {len(models)} models" if models else "not run"
        gates = [model.gate for model in models]
        worst = (Verdict.FAIL, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.PASS)
        gate = next((one for one in worst if one in gates), Verdict.ERROR)
    return _badge(LABEL, said, COLOURS[gate])


def _badge(label: str, said: str, colour: str) -> str:
    from markupsafe import escape

    label, said = escape(clean(label)), escape(clean(said))
    left, right = (round(len(text) * LETTER + 2 * EDGE) for text in (label, said))
    width = left + right
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{label}: {said}">'
        f"<title>{label}: {said}</title>"
        f'<clipPath id="r"><rect width="{width}" height="20" rx="4"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#24292f"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{left / 2}" y="14" textLength="{left - 2 * EDGE}" lengthAdjust="spacingAndGlyphs">{label}</text>'
        f'<text x="{left + right / 2}" y="14" textLength="{right - 2 * EDGE}" lengthAdjust="spacingAndGlyphs">{said}'
        "</text></g></svg>\n"
    )
