"""Small drawings in table cells: a rate with its interval, and the shares of outcomes; geometry in SVG units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.reports import cells as words
from cheesebench.statistics import TAXONOMY
from cheesebench.statistics.reference_limits import has_interval, reference_limits
from cheesebench.statistics.wording import bar, percent

if TYPE_CHECKING:
    from cheesebench.experiment.records import CellPlan
    from cheesebench.statistics import CellResult

#: Width of every drawing; a proportion of 0 is at 0, of 1 at WIDTH.
WIDTH = 200.0


@dataclass(frozen=True, slots=True)
class IntervalStrip:
    """A cell's rate and interval drawn over the animals' rate; every number is an x coordinate."""

    text: str
    """The same in words, for screen readers."""
    rate: float | None
    interval: tuple[float, float] | None
    reference: float | None
    rodents: tuple[float, float] | None
    """The interval of the animals' rate, if the protocol gives one or their spread."""
    margin: tuple[float, float] | None
    """From reference - margin to reference: the range that counts as equally good."""
    chance: float | None


def interval_strip(cell: CellResult) -> IntervalStrip:
    """Return the drawing of a row of the verdict table."""
    animals, judged = cell.plan.reference, cell.judged
    ends = None if animals is None or not has_interval(animals) else reference_limits(animals, 0.025)
    good = None
    if animals is not None:
        good = (animals.value + bar(cell.plan), animals.value)
    mean, limits = (cell.rate, cell.interval) if cell.plan.measured is None else (None, None)
    if judged is not None:
        mean, limits = judged.mean, judged.interval
    shown = [mean, *(limits or ()), *(ends or ()), *(good or ())]
    place = _axis(cell.plan, [value for value in shown if value is not None])
    chance = None if cell.plan.measured is not None else cell.plan.chance
    spoken = [
        f"{'rate ' if judged is None else ''}{words.rate(cell)}",
        f"95 % interval {words.interval(cell)}",
        f"{words.reference_name([cell])} {words.reference(cell)}",
        f"margin {words.margin(cell)}{' points' if cell.plan.measured is None else ''}",
        f"random {words.floor(cell)}",
    ]
    return IntervalStrip(
        text=", ".join(spoken),
        rate=None if mean is None else place(mean),
        interval=_places(place, limits),
        reference=None if animals is None else place(animals.value),
        rodents=_places(place, ends),
        margin=_places(place, good and (min(good), max(good))),
        chance=None if chance is None else place(chance),
    )


def _places(place: Callable[[float], float], limits: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if limits is None else (place(limits[0]), place(limits[1]))


def _axis(plan: CellPlan, shown: Sequence[float]) -> Callable[[float], float]:
    """Return where a value is drawn: from 0 to 100 %, over a measure's range, or from the least that is shown."""
    if plan.measured is None:
        return _x
    low, high = plan.measured.range or (min(shown, default=0.0), max(shown, default=1.0))
    return lambda value: _x((value - low) / ((high - low) or 1.0))


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a bar: ``kind`` is its index in the taxonomy (for the colour), ``text`` its label."""

    kind: int
    x: float
    width: float
    text: str


def outcome_bar(cell: CellResult) -> list[Share]:
    """Return the outcomes of a cell's trials as parts of one bar."""
    total = sum(cell.outcomes.values())
    parts: list[Share] = []
    done = 0
    for name, count in cell.outcomes.items():
        if count:
            kind = TAXONOMY.index(name) if name in TAXONOMY else len(TAXONOMY)
            x, width = _x(done / total), _x(count / total)
            parts.append(Share(kind, x, width, f"{name}: {count} ({percent(count / total)})"))
            done += count
    return parts


def _x(proportion: float) -> float:
    return round(WIDTH * min(max(proportion, 0.0), 1.0), 2)
