"""The cognitive profile and the curves of a text report, drawn with block characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cheesebench.reports import cells as words
from cheesebench.reports.escaping import fenced
from cheesebench.reports.glyphs import bar, columns
from cheesebench.statistics.wording import number, percent, plural, shown_value

if TYPE_CHECKING:
    from cheesebench.statistics import CellResult, ModelSummary
    from cheesebench.statistics.summary import ConditionCurve

_LABEL = 24
_TITLE = 60
_VALUE = 12
#: Up to this many sessions, columns are wide and carry their numbers.
_NUMBERED = 15


def profile(model: ModelSummary, cells: Sequence[CellResult]) -> list[str]:
    """Return the pass rate by cognitive dimension for model, rodent and random; empty without a rate."""
    if not model.profile:
        return []
    lines = []
    for dimension, average in model.profile.items():
        own = [cell for cell in cells if cell.plan.dimension == dimension]
        rows = [
            ("model", average.mean),
            ("rodent", words.rodent_mean(own)),
            ("random", words.chance_mean(own)),
        ]
        label = fenced(dimension or "(no dimension)", _LABEL)
        for name, value in rows:
            if value is None:
                continue
            error = f" ± {percent(average.standard_error)} (SE)" if name == "model" else ""
            lines.append(f"{label}  {name:<6}  {bar(value, 25)}  {percent(value):>6}{error}")
            label = " " * _LABEL
        lines.append("")
    return ["### Cognitive profile", _block(lines)]


def learning_curves(cells: Sequence[CellResult]) -> list[str]:
    """Return the pass rate by session for model, rodent and random; empty without a curve."""
    curves = [_curve(cell) for cell in cells if cell.curve]
    if not curves:
        return []
    return ["### Learning curves", _block([line for curve in curves for line in (*curve, "")])]


def condition_curves(cells: Sequence[CellResult]) -> list[str]:
    """Return each measure that is given by a variable, value by value; empty without one."""
    curves = [(cell, curve) for cell in cells for curve in cell.conditions]
    if not curves:
        return []
    return ["### Measures by condition", _block([line for one in curves for line in (*_conditions(*one), "")])]


def _conditions(cell: CellResult, curve: ConditionCurve) -> list[str]:
    title = fenced(cell.plan.title or cell.plan.protocol, _TITLE).rstrip()
    lines = [f"{title}, {fenced(curve.measure, _TITLE).rstrip()} by {fenced(curve.variable, _TITLE).rstrip()}"]
    means = [measure.mean for _, measure in curve.points]
    largest = max(means) if min(means) >= 0 else 0.0  # negative numbers are no lengths
    for value, measure in curve.points:
        drawn = f"{bar(measure.mean / largest, 25)}  " if largest else ""
        spread = "" if measure.sd is None else f" ± {number(measure.sd)}"
        label = fenced(shown_value(value), _VALUE)
        lines.append(f"{label}  {drawn}{number(measure.mean)}{spread}  ({plural(measure.n, 'trial')})")
    return lines


def _curve(cell: CellResult) -> list[str]:
    by_session = cell.curve_unit == "session"
    rates = {point.session: point.rate for point in cell.curve}
    rodents = words.rodent_rate(cell)
    animals = () if rodents is None else rodents.curve
    last = max(max(rates), len(animals) if by_session else 0)
    sessions = range(1, last + 1)
    width = 3 if last <= _NUMBERED else 1
    title = fenced(cell.plan.title or cell.plan.protocol, _TITLE).rstrip()
    unit = "session" if by_session else f"groups of {cell.curve_unit}"
    lines = [f"{title}, pass rate (%) by {unit}"]
    if width > 1:
        lines.append("         " + " ".join(f"{number:^3}" for number in sessions))
    lines.append(_row("model", [rates.get(number) for number in sessions], width))
    if animals:
        values = [animals[k] if k < len(animals) else None for k in range(last)] if by_session else list(animals)
        spread = " ".join(f"{100 * sd:.0f}" for sd in rodents.curve_sd) if rodents else ""
        lines.append(
            _row("rodent", values, width)
            + (f"  ± {spread} (SD between animals)" if spread else "")
            + ("" if by_session else "  (by session)")
        )
    if cell.plan.chance is not None:
        lines.append(_row("random", [cell.plan.chance] * last, width))
    return lines


def _row(name: str, values: Sequence[float | None], width: int) -> str:
    percentages = [round(100 * value) for value in values if value is not None]
    if len(set(percentages)) == 1:
        numbers = f"{percentages[0]}"
    elif width == 1:
        numbers = f"{percentages[0]} → {percentages[-1]}"
    else:
        numbers = " ".join("·" if value is None else f"{100 * value:.0f}" for value in values).rstrip(" ·")
    return f"{name:<6}   {columns(values, width)}   {numbers}"


def _block(lines: Sequence[str]) -> str:
    """Return a fenced code block without trailing blank lines."""
    text = "\n".join(line.rstrip() for line in lines).rstrip("\n")
    return f"```text\n{text}\n```"
