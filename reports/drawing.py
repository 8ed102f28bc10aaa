"""The common parts of all figures: palette, sizes, groups, and legends."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.amounts import percent
from cheesebench.reports import cells as words
from cheesebench.statistics.question import animals_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from cheesebench.records import ReferenceValue
    from cheesebench.statistics import CellResult, ModelSummary

#: Okabe and Ito's palette (2008), made for colour-blind readers, too. In print without
#: colours, the marks help.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
RODENT = "#444444"
#: Default width and height of a figure, in inches.
WIDTH, HEIGHT = 10.0, 4.5


@dataclass(frozen=True)
class Group:
    """One model in one view and variant, with a unique label."""

    label: str
    model: ModelSummary
    cells: Sequence[CellResult]

    @property
    def mean(self) -> tuple[float, float, float] | None:
        """Mean pass rate over the protocols, and its 95 % limits, or None if there is
        no rate.
        """
        overall = self.model.overall
        return None if overall is None else (overall.mean, *overall.interval)


def new(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    # pyplot is not used, because it keeps figures in memory and may look for a display.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def shared_legend(figure: Figure) -> None:
    """Draw one legend for all panels."""
    named = {
        label: line
        for axes in figure.axes
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        named.values(),
        named.keys(),
        loc="outside right upper",
        fontsize="small",
        frameon=False,
    )


#: Marker and fill of the animals' number, by the kind of the number.
ANIMALS = {
    "measured": ("D", RODENT),
    "declared": ("D", "white"),
    "analogy": ("^", "white"),
}


def animals_kind(found: ReferenceValue) -> str:
    """Return a key of ``ANIMALS``: what kind of number the animals' value is."""
    if found.kind == "analogy":
        return "analogy"
    return "measured" if animals_interval(found) else "declared"


def animals(axes: Axes, span: tuple[float, float], found: ReferenceValue) -> None:
    """Draw the animals' number as a line over ``span``, with a marker and, if known,
    the 95 % interval at its right end. The marker shows the number's kind, which the
    legend names.
    """
    axes.plot(
        span,
        (found.value, found.value),
        color=RODENT,
        linewidth=0.9,
        linestyle="--",
        zorder=3,
    )
    kind, place = animals_kind(found), span[1]
    marker, fill = ANIMALS[kind]
    if interval := animals_interval(found):
        axes.vlines(
            place,
            *interval,
            color=RODENT,
            linewidth=3,
            alpha=0.5,
            zorder=3,
        )
    axes.plot(
        place,
        found.value,
        marker,
        color=fill,
        markeredgecolor=RODENT,
        markersize=7,
        linestyle="none",
        zorder=4,
        label=f"rodent, {kind}",
    )


def animals_beside_bars(axes: Axes, place: float, found: ReferenceValue) -> None:
    """Draw the animals' number across the bars at ``place``, with its marker right of
    them.
    """
    animals(axes, (place - 0.42, place + 0.46), found)


def animals_by_session(
    axes: Axes,
    cell: CellResult,
    points: Collection[int],
    found: ReferenceValue | None,
) -> None:
    """Draw the animals beside a cell: their curve, if ``points``, the places on the
    axis, are sessions and a curve is known. Otherwise their number, over the sessions
    that it covers (or over all points), because it holds only for them.
    """
    has_sessions = cell.curve_unit == "session"
    if found is None:
        return
    if found.curve and has_sessions:
        _animals_curve(axes, found)
        return
    judged = found.over or [point.session for point in cell.curve if point.judged]
    held = judged if judged and has_sessions else points
    if held:
        animals(axes, (min(held) - 0.3, max(held) + 0.3), found)


def _animals_curve(axes: Axes, found: ReferenceValue) -> None:
    """Draw the animals' curve by session, with the standard deviation between them if
    it is known.
    """
    sessions = range(1, len(found.curve) + 1)
    label = f"rodent, {animals_kind(found)} (by session)"
    axes.plot(sessions, found.curve, color=RODENT, linestyle="--", label=label)
    if found.curve_sd:
        pairs = list(zip(found.curve, found.curve_sd, strict=True))
        axes.fill_between(
            sessions,
            [mean - sd for mean, sd in pairs],
            [mean + sd for mean, sd in pairs],
            color=RODENT,
            alpha=0.15,
            label="between rodents (SD)",
        )


def said_of_animals(cells: Iterable[CellResult]) -> str:
    """Return the animals' numbers as a sentence of an alternative text, or ""."""
    said = {
        cell.plan.protocol: f"{cell.plan.protocol.replace('_', ' ')} {words.reference(cell)}"
        for cell in cells
        if cell.plan.reference is not None
    }
    return f" Rodents: {', '.join(said.values())}." if said else ""


def rates_on(axis: Axis) -> None:
    """Label an axis of pass rates in percent."""
    axis.set_major_formatter(lambda value, _: percent(value))


def whole_ticks(axes: Axes) -> None:
    """Put the x axis's ticks only at whole numbers, because it has sessions."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))


def bars(
    axes: Axes,
    places: Sequence[float],
    width: float,
    found: Sequence[tuple[float, tuple[float, float] | None]],
    colour: str | tuple[float, ...],
    label: str,
) -> None:
    """Draw values as bars, with their intervals."""
    heights = [value for value, _ in found]
    spans = [span or (value, value) for value, span in found]
    axes.bar(places, heights, width * 0.9, color=colour, label=label)
    axes.errorbar(
        places,
        heights,
        [
            [
                max(0.0, value - low)
                for value, (low, _) in zip(heights, spans, strict=True)
            ],
            [
                max(0.0, high - value)
                for value, (_, high) in zip(heights, spans, strict=True)
            ],
        ],
        fmt="none",
        ecolor="black",
        elinewidth=0.8,
        capsize=2,
    )


def dots(axes: Axes, place: float, width: float, values: Sequence[float]) -> None:
    """Draw single subjects, in their order, across the bar at ``place``."""
    if not values:
        return
    room = 0.7 * width / len(values)
    places = [
        place + (one - (len(values) - 1) / 2) * room for one in range(len(values))
    ]
    axes.plot(
        places,
        values,
        "o",
        color="black",
        markersize=1.5,
        alpha=0.5,
        zorder=3,
        clip_on=False,
        label="single subject",
    )


def colour(number: int, count: int) -> str | tuple[float, ...]:
    """Return the colour of one of ``count`` series. Each series has its own colour."""
    if count <= len(COLOURS):
        return COLOURS[number]
    import matplotlib

    return tuple(matplotlib.colormaps["turbo"]((number + 0.5) / count))


def plain(text: str) -> str:
    """Return text with ``$`` escaped, because matplotlib would parse it
    as a formula.
    """
    return words.clean(text).replace("$", r"\$")
