"""Small drawings in table cells: a rate with its interval, and the shares of outcomes; geometry in SVG units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.reports import cells as words
from cheesebench.statistics import TAXONOMY
from cheesebench.statistics.reference_limits import has_interval, reference_limits
from cheesebench.statistics.wording import percent

if TYPE_CHECKING:
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
    animals, reference, rodents = cell.plan.reference, None, None
    if animals is not None:
        reference = _x(animals.value)
        if has_interval(animals):
            low, high = reference_limits(animals, 0.025)
            rodents = (_x(low), _x(high))
    spoken = [
        f"rate {words.rate(cell)}",
        f"95 % interval {words.interval(cell)}",
        f"{words.reference_name([cell])} {words.reference(cell)}",
        f"margin {words.margin(cell)} points",
        f"random {words.floor(cell)}",
    ]
    return IntervalStrip(
        text=", ".join(spoken),
        rate=None if cell.rate is None else _x(cell.rate),
        interval=None if cell.interval is None else (_x(cell.interval[0]), _x(cell.interval[1])),
        reference=reference,
        rodents=rodents,
        margin=None if animals is None else (_x(animals.value - cell.plan.margin), _x(animals.value)),
        chance=None if cell.plan.chance is None else _x(cell.plan.chance),
    )


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
