"""Draws the board as an SVG image for a talk, with a row for each model and for the
animals, and a column for each paradigm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from cheesebench.reports.cells import clean
from cheesebench.reports.matrix import matrix

if TYPE_CHECKING:
    from cheesebench.reports.matrix import Matrix, Row
    from cheesebench.statistics import RunSummary

#: Sizes in pixels. ``COLUMN``: width of a column. ``LINE``: height of a row. ``HEAD``:
#: height of the head, whose names are slanted, and width of the space to the right into
#: which the last name reaches. ``EDGE``: width of the margin.
COLUMN, LINE, HEAD, EDGE = 84, 44, 110, 16
#: Width of a letter of a model's name, in pixels.
LETTER = 9
#: Fill and text colour of a field, by verdict. The text is dark on a pale fill, so it
#: can also be read in print.
COLOURS = {
    "PASS": ("#dcf2e0", "#17692e"),
    "FAIL": ("#fbe3df", "#a8201a"),
    "INCONCLUSIVE": ("#fbf0cf", "#7a5200"),
    "ERROR": ("#ece5f8", "#5d3a9b"),
}
_PLAIN = ("#ffffff", "#1d2126")


def render(summary: RunSummary) -> str:
    """Return the image. The best model comes first, and the animals last."""
    found = matrix(summary)
    rows = [row for row in found.rows if row.kind in ("model", "rodent")]
    names = [clean(row.whose) for row in rows]
    left = EDGE + LETTER * max(map(len, names), default=0) + 12
    width = left + COLUMN * (2 + len(found.columns)) + HEAD
    height = HEAD + LINE * len(rows) + 2 * EDGE
    said = "; ".join(_said(row, found) for row in rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label={quoteattr(said)} font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for place, column in enumerate(["PASS", found.mean_name, *found.columns]):
        at = (left + COLUMN * (place + 0.5), HEAD - 8)
        name = escape(clean(column).replace("_", " "))
        parts.append(
            f'<text x="{at[0]}" y="{at[1]}" font-size="14" fill="#5b626c" transform="rotate(-30 {at[0]} {at[1]})">{name}</text>'
        )
    for down, (row, name) in enumerate(zip(rows, names, strict=True)):
        top = HEAD + LINE * down
        parts.append(_text(EDGE, top, name, weight=600, anchor="start", size=16))
        parts += _fields(row, left, top)
        if row.kind == "rodent":
            parts.append(
                f'<rect x="{EDGE}" y="{top}" width="{width - HEAD - EDGE}" height="2" fill="#a8620b"/>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _fields(row: Row, left: int, top: int) -> list[str]:
    whole = [(row.passed if row.gate else "", ""), (row.mean_shown, "")]
    fields = [(one.shown, one.verdict or "") for one in row.fields]
    parts = []
    for place, (shown, verdict) in enumerate([*whole, *fields]):
        fill, ink = COLOURS.get(str(verdict), _PLAIN)
        x = left + COLUMN * place
        parts.append(
            f'<rect x="{x}" y="{top}" width="{COLUMN - 2}" height="{LINE - 2}" rx="4" fill="{fill}"/>'
        )
        *name, number = clean(shown).rsplit(" ", 1) if place > 1 else [clean(shown)]
        text = number if not name or "%" not in number else clean(shown)
        mark = clean(shown)[:1] if verdict else ""
        label = text if not mark or text.startswith(mark) else f"{mark} {text}"
        parts.append(
            _text(
                x + COLUMN / 2 - 1,
                top,
                label,
                weight=600 if place < 2 else 400,
                ink=ink,
            )
        )
    return parts


def _text(
    x: float,
    top: float,
    text: str,
    *,
    weight: int = 400,
    anchor: str = "middle",
    size: int = 15,
    ink: str = "#1d2126",
) -> str:
    return (
        f'<text x="{x}" y="{top + LINE / 2 + 4}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{ink}">{escape(text)}</text>'
    )


def _said(row: Row, found: Matrix) -> str:
    fields = ", ".join(
        f"{name} {clean(field.shown)}"
        for name, field in zip(found.columns, row.fields, strict=True)
    )
    return f"{clean(row.whose)}: {row.passed if row.gate else ''} {fields}"
