"""Data of the page's charts, as JSON values, rates in percent; tables repeat the numbers for screen readers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cheesebench.reports import cells as words
from cheesebench.reports.escaping import clean
from cheesebench.statistics.wording import number, percent, shown_value

if TYPE_CHECKING:
    from cheesebench.statistics import CellResult, ControlResult, ModelSummary
    from cheesebench.statistics.summary import ConditionCurve

#: Fewer dimensions than this make no area.
LEAST_DIMENSIONS = 3

Chart = dict[str, Any]


def radar(model: ModelSummary, cells: Sequence[CellResult]) -> Chart | None:
    """Return the pass rate by cognitive dimension for model, rodent and random; None without data."""
    if not model.profile:
        return None
    names = list(model.profile)
    by_dimension = [[cell for cell in cells if cell.plan.dimension == name] for name in names]
    return {
        "kind": "radar" if len(names) >= LEAST_DIMENSIONS else "bars",
        "labels": [clean(name) or "(no dimension)" for name in names],
        "model": [_percent(model.profile[name].mean) for name in names],
        "errors": [_percent(model.profile[name].standard_error) for name in names],
        "rodent": [_percent(words.rodent_mean(own)) for own in by_dimension],
        "random": [_percent(words.chance_mean(own)) for own in by_dimension],
    }


def curve(cell: CellResult) -> Chart | None:
    """Return the learning curve with its interval, the animals' curve with its spread, and the random agent's rate.

    None for a single point.
    """
    if len(cell.curve) < 2:
        return None
    by_session = cell.curve_unit == "session"
    rodents = words.rodent_rate(cell)
    reference = rodents if by_session else None
    animals, spread = ((), ()) if reference is None else (reference.curve, reference.curve_sd)
    last = max(max(point.session for point in cell.curve), len(animals))
    points = {point.session: point for point in cell.curve}
    sessions = range(1, last + 1)
    return {
        "kind": "curve",
        "unit": "session" if by_session else f"groups of {clean(cell.curve_unit)}",
        "labels": list(sessions),
        "model": [_percent(points[n].rate) if n in points else None for n in sessions],
        "low": [_percent(points[n].low) if n in points else None for n in sessions],
        "high": [_percent(points[n].high) if n in points else None for n in sessions],
        "rodent": [_percent(animals[n - 1]) if n <= len(animals) else None for n in sessions] if animals else [],
        "rodent_low": _edge(animals, spread, sessions, -1),
        "rodent_high": _edge(animals, spread, sessions, 1),
        "reference": None if rodents is None else _percent(rodents.value),
        "chance": _percent(cell.plan.chance),
    }


def by_condition(curve: ConditionCurve) -> Chart:
    """Return a measure by the values of a variable, in the measure's own unit; names are not joined by a line."""
    return {
        "kind": "conditions",
        "name": clean(curve.measure),
        "labels": [clean(shown_value(value)) for value, _ in curve.points],
        "joined": not any(isinstance(value, str) for value, _ in curve.points),
        "means": [round(measure.mean, 6) for _, measure in curve.points],
    }


def condition_in_words(curve: ConditionCurve) -> str:
    """Return a sentence for whoever does not see the curve."""
    points = ", ".join(f"{number(measure.mean)} at {shown_value(value)}" for value, measure in curve.points)
    return f"Mean of {curve.measure} by {curve.variable}: {points}."


def _edge(animals: Sequence[float], spread: Sequence[float], sessions: Sequence[int], sign: int) -> list[float | None]:
    """Return the animals' mean plus ``sign`` standard deviations in each session; empty without a spread."""
    if not spread:
        return []
    edge = [min(1.0, max(0.0, mean + sign * sd)) for mean, sd in zip(animals, spread, strict=True)]
    return [_percent(edge[n - 1]) if n <= len(edge) else None for n in sessions]


def pair(result: ControlResult) -> Chart | None:
    """Return the curves of a control and of its plain cell; None without points."""
    if not result.points:
        return None
    return {
        "kind": "pair",
        "labels": [point.session for point in result.points],
        "plain": [_percent(point.plain) for point in result.points],
        "control": [_percent(point.control) for point in result.points],
    }


def together(cells: Sequence[CellResult], names: Sequence[str]) -> Chart | None:
    """Return the learning curves of several models on one protocol; ``names`` are theirs. None for fewer than two."""
    curves = [(cell, name) for cell, name in zip(cells, names, strict=True) if len(cell.curve) > 1]
    if len(curves) < 2 or len({cell.curve_unit for cell, _ in curves}) > 1:
        return None
    first = curves[0][0]
    by_session = first.curve_unit == "session"
    reference = words.rodent_rate(first)
    animals = reference.curve if reference is not None and by_session else ()
    last = max(len(animals), *(point.session for cell, _ in curves for point in cell.curve))
    sets, said = [], []
    for cell, name in curves:
        rates = {point.session: point.rate for point in cell.curve}
        sets.append({"name": clean(name), "rates": [_percent(rates.get(n)) for n in range(1, last + 1)]})
        said.append(f"{name} {percent(cell.curve[0].rate)} at first, {percent(cell.curve[-1].rate)} at last")
    return {
        "kind": "together",
        "title": clean(first.plan.title or first.plan.protocol),
        "unit": "session" if by_session else f"groups of {clean(first.curve_unit)}",
        "labels": list(range(1, last + 1)),
        "models": sets,
        "rodent": [_percent(rate) for rate in animals],
        "reference": None if reference is None else _percent(reference.value),
        "chance": _percent(first.plan.chance),
        "text": clean("; ".join(said)),
    }


def settings(models: Sequence[ModelSummary]) -> Chart | None:
    """Return the mean rate of each model by the setting that a study varies; None for fewer than two settings."""
    where = [clean(words.whose(model)[1]) for model in models]
    labels = list(dict.fromkeys(where))
    if len(labels) < 2:
        return None
    sets = []
    for name in dict.fromkeys(model.model for model in models):
        own = {at: one.overall for at, one in zip(where, models, strict=True) if one.model == name}
        rates = [None if (mean := own.get(label)) is None else mean.mean for label in labels]
        spread = [0.0 if (mean := own.get(label)) is None else 1.96 * mean.standard_error for label in labels]
        pairs = list(zip(rates, spread, strict=True))
        sets.append(
            {
                "name": clean(name),
                "rates": [_percent(rate) for rate in rates],
                "low": [None if rate is None else _percent(max(0.0, rate - half)) for rate, half in pairs],
                "high": [None if rate is None else _percent(min(1.0, rate + half)) for rate, half in pairs],
            }
        )
    said = [
        f"{one['name']}: {', '.join(f'{label} {rate} %' for label, rate in zip(labels, one['rates'], strict=True))}"
        for one in sets
    ]
    return {
        "kind": "settings",
        "labels": labels,
        "models": sets,
        "text": f"Mean pass rate by setting. {'; '.join(said)}.",
    }


def curve_in_words(cell: CellResult) -> str:
    """Return a sentence for whoever does not see the curve."""
    first, last = cell.curve[0], cell.curve[-1]
    said = f"Pass rate {percent(first.rate)} at first, {percent(last.rate)} at last, over {len(cell.curve)} points"
    if cell.plan.measured is not None:
        return f"{said}."
    return f"{said}; {words.reference_name([cell])} {words.reference(cell)}, random {words.floor(cell)}."


def radar_in_words(chart: Chart) -> str:
    """Return the radar chart as a sentence, for screen readers."""
    parts = [f"{name} {value:g} %" for name, value in zip(chart["labels"], chart["model"], strict=True)]
    return f"Pass rate by cognitive dimension: {', '.join(parts)}."


def _percent(proportion: float | None) -> float | None:
    return None if proportion is None else round(100 * proportion, 2)
