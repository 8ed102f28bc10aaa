"""Figures of behaviour and verdicts: differences with margins, curves, strategies, maps
of the floor, controls, conditions of dialogues, and the best of several views.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeVar

from cheesebench.amounts import number, per_hundred, percent
from cheesebench.behaviour import Behaviour, Room, Track, behaviour, tracks
from cheesebench.reports import cells as words
from cheesebench.reports import drawing
from cheesebench.reports.matrix import grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cheesebench.experiment.log import RunLog
    from cheesebench.interfaces import Ground
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import Reported
    from cheesebench.statistics import CellResult, RunSummary

K = TypeVar("K")
#: A figure and its alternative text, or None if there is nothing to draw.
Drawn = tuple["Figure", str] | None
#: Maximum number of steps of each cell that are replayed for its maps. Replaying them
#: takes about a second. Whole subjects are replayed, from the first one.
MOST_STEPS = 20_000
#: Size of the map of an arena, in inches.
MAP = 1.25
#: Minimum number of squares of a zone whose outline is drawn. A smaller spot needs no
#: outline.
LEAST_ZONE = 4
#: ``SHADES``: colours of squares by kind. ``SOLID``: colour of squares of all other
#: kinds. ``ZONE``: colour of the outlines of zones. ``HEAT``: colour of the time spent
#: on a square.
SHADES = {"void": "white", "landmark": "white", "floor": "#f3f1ea", "door": "#f7e8cd"}
SOLID, ZONE, HEAT = "#8a929c", "#6f8fb8", "#b3430b"
#: Colour and name of a track, by the success of its trial.
ENDS = {
    True: ("#2b8a4b", "passed"),
    False: ("#c4483b", "failed"),
    None: ("#1f5fbf", "neither"),
}


@dataclass(frozen=True, eq=False)
class Lived:
    """A cell of a group, with the behaviour of its subjects."""

    number: int
    """Number of the group, which decides its colour and mark."""
    group: drawing.Group
    cell: CellResult
    behaviour: Behaviour
    ground: Ground | None
    """The floor of the maze, or None if there is no map."""
    tracks: Sequence[Track]

    @property
    def panels(self) -> Mapping[str, int]:
        """Session of each map, by title: the first and the last session in which a
        trial can succeed, and the very last session. If no trial can succeed, the first
        and the last session.
        """
        plan, sessions = self.cell.plan, sorted({one.session for one in self.tracks})
        trained = [one for one in sessions if one not in plan.idle] or sessions
        shown = {f"session {one}": one for one in (trained[0], trained[-1])}
        if sessions[-1] not in trained:
            block = next(t for t in self.tracks if t.session == sessions[-1])
            name = plan.place_of(block.trial)[0] or "nothing pays"
            shown[f"session {sessions[-1]}, {name}"] = sessions[-1]
        return shown

    @property
    def compared(self) -> list[Reported]:
        """The animals' values of measures that the model has, one of each measure."""
        found = self.cell.plan.animals_by_measure
        return [one for name, one in found.items() if self.behaviour.mean(name)]

    @property
    def title(self) -> str:
        return drawing.plain(
            f"{self.cell.plan.protocol.replace('_', ' ')}\n{self.group.label}"
        )


def lived(
    groups: Sequence[drawing.Group],
    runs: Sequence[tuple[RunSummary, RunLog]],
    plugins: PluginManager,
) -> Sequence[Lived]:
    """Return the behaviour of the subjects of every cell. ``groups`` are in the order
    of the runs and of their models.
    """
    logs = [log for summary, log in runs for _ in summary.models]
    found = []
    for place, (group, log) in enumerate(zip(groups, logs, strict=True)):
        for cell in group.cells:
            own = [
                track
                for life in tracks(log, plugins, cell.plan, MOST_STEPS)
                for track in life
            ]
            floor = Room.floor(log, plugins, cell.plan) if own else None
            did = behaviour(cell, log.trials_by_subject(cell.plan))
            found.append(Lived(place, group, cell, did, floor, own))
    return found


def forest(groups: Sequence[drawing.Group]) -> Drawn:
    """Draw the differences from the animals (or from chance) with their bounds and
    margins, so that the verdicts can be seen. Cells without a difference are left out.
    """
    judged = [
        (n, g, c)
        for n, g in enumerate(groups)
        for c in g.cells
        if c.difference is not None
    ]
    names = list(dict.fromkeys(cell.plan.protocol for *_, cell in judged))
    if not names:
        return None
    figure = drawing.new(
        drawing.WIDTH * 0.8, max(2.0, 0.6 + len(names) * (0.22 + 0.16 * len(groups)))
    )
    axes = figure.add_subplot()
    said, labelled = [], set[int]()
    for count, group, cell in judged:
        place = names.index(cell.plan.protocol)
        row = place + (count - (len(groups) - 1) / 2) * 0.8 / len(groups)
        low, middle, high = (
            100 * words.proportion(cell.plan, end or 0.0)
            for end in (cell.difference_low, cell.difference, cell.difference_high)
        )
        span = sorted((low, high))
        colour = drawing.colour(count, len(groups))
        axes.plot(span, (row, row), color=colour, linewidth=1.6, solid_capstyle="butt")
        mark, label = (
            drawing.MARKS[count % len(drawing.MARKS)],
            None if count in labelled else group.label,
        )
        axes.plot(
            middle,
            row,
            mark,
            color=colour,
            markersize=5,
            label=label and drawing.plain(label),
        )
        labelled.add(count)
        bar, zero = (
            100 * words.proportion(cell.plan, end)
            for end in words.margin_ends(cell.plan)
        )
        axes.fill_betweenx(
            (place - 0.45, place + 0.45),
            bar,
            zero,
            color=drawing.RODENT,
            alpha=0.15,
            linewidth=0,
        )
        axes.plot(
            (bar, bar),
            (place - 0.45, place + 0.45),
            color=drawing.RODENT,
            linewidth=0.8,
            linestyle="--",
        )
        said.append(
            f"{group.label} on {cell.plan.protocol} {words.difference(cell)}, {cell.verdict or 'no verdict'}"
            f"{' (less is better)' * words.less_is_better(cell.plan)}"
        )
    axes.axvline(0, color=drawing.RODENT, linewidth=1)
    axes.set_yticks(
        range(len(names)), [drawing.plain(name.replace("_", " ")) for name in names]
    )
    axes.set_ylim(len(names) - 0.5, -0.5)
    origin = {"standard": "the rodent or chance", "chance": "chance"}.get(
        words.standard_name([cell for *_, cell in judged]), "the rodent"
    )
    axes.set_xlabel(
        f"difference from {origin} in points (or % of a measure's range), with its bounds; shaded: margin"
        + "\n(right of 0 where less is better, and against chance)"
        * any(words.less_is_better(cell.plan) for *_, cell in judged)
    )
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    return figure, f"Differences from {origin} with their bounds. {'; '.join(said)}."


def took(all_lived: Sequence[Lived], name: str) -> Drawn:
    """Draw latency or path length by session, with a panel for each protocol. Cells
    with fewer than two points are left out. Up to 30 subjects of each cell are thin
    lines under its mean.
    """
    own = [one for one in all_lived if len(one.behaviour.mean(name)) > 1]
    panels = _panels(
        list(dict.fromkeys(one.cell.plan.protocol for one in own)),
        lambda p: p.replace("_", " "),
    )
    if panels is None:
        return None
    figure, by_name = panels
    count, said = len({one.number for one in all_lived}), []
    for one in own:
        axes, mean = by_name[one.cell.plan.protocol], one.behaviour.mean(name)
        colour = drawing.colour(one.number, count)
        for line in list(one.behaviour.curves[name].values())[:30]:
            axes.plot(
                list(line), list(line.values()), color=colour, linewidth=0.4, alpha=0.35
            )
        mark = drawing.MARKS[one.number % len(drawing.MARKS)]
        label = drawing.plain(one.group.label)
        axes.plot(
            list(mean),
            list(mean.values()),
            color=colour,
            marker=mark,
            markersize=3,
            label=label,
        )
        said.append(
            f"{one.group.label} on {one.cell.plan.protocol}: {', '.join(map(number, mean.values()))}"
        )
    # The limit is set at the end, because an axis with a fixed limit no longer grows
    # with its contents.
    for axes in by_name.values():
        axes.set_ylim(bottom=0)
        drawing.whole_ticks(axes)
    drawing.shared_legend(figure)
    figure.supxlabel("session (or group of trials)", fontsize="small")
    units = {one.behaviour.units.get(name, name) for one in own}
    figure.supylabel(" or ".join(sorted(units)), fontsize="small")
    return figure, f"{name.capitalize()} by session. {'; '.join(said)}."


def compared_measures(all_lived: Sequence[Lived]) -> Drawn:
    """Draw each measure that animals have a value of by session, with the animals'
    curve or number. Up to 30 subjects of each cell are thin lines under its mean.
    """
    own = [(one, found) for one in all_lived for found in one.compared]
    panels = _panels(
        list(dict.fromkeys(_panel(*pair) for pair in own)),
        lambda panel: f"{panel[0]}, {panel[1]}".replace("_", " "),
    )
    if panels is None:
        return None
    figure, by_panel = panels
    count = len({one.number for one in all_lived})
    for one, found in own:
        _measure_by_session(by_panel[_panel(one, found)], one, found.measure, count)
    # The animals are drawn once in each panel, beside all models.
    for one, found in {_panel(*pair): pair for pair in reversed(own)}.values():
        axes, points = by_panel[_panel(one, found)], one.behaviour.mean(found.measure)
        drawing.animals_by_session(axes, one.cell, points, found.animals)
        drawing.whole_ticks(axes)
    drawing.shared_legend(figure)
    figure.supxlabel("session (or group of trials)", fontsize="small")
    return figure, _said_of_measures(own)


def _panel(one: Lived, found: Reported) -> tuple[str, str]:
    return one.cell.plan.protocol, found.measure


def _said_of_measures(own: Sequence[tuple[Lived, Reported]]) -> str:
    models = (
        f"{one.group.label} on {', '.join(_panel(one, found))}: "
        + ", ".join(map(number, one.behaviour.mean(found.measure).values()))
        for one, found in own
    )
    animals = (
        f"{', '.join(_panel(one, found))} {words.animals_value(found)}"
        for one, found in own
    )
    said = f"{'; '.join(models)}. Rodents: {'; '.join(dict.fromkeys(animals))}."
    return f"Measures that animals have a value of, by session. {said}"


def _measure_by_session(axes: Axes, one: Lived, name: str, count: int) -> None:
    shade, mean = drawing.colour(one.number, count), one.behaviour.mean(name)
    for line in list(one.behaviour.curves[name].values())[:30]:
        axes.plot([*line], [*line.values()], color=shade, linewidth=0.4, alpha=0.35)
    axes.plot(
        [*mean],
        [*mean.values()],
        color=shade,
        marker=drawing.MARKS[one.number % len(drawing.MARKS)],
        markersize=3,
        label=drawing.plain(one.group.label),
    )


def strategies(all_lived: Sequence[Lived]) -> Drawn:
    """Draw the shares of each categorical measure's values by session, as stacked
    bars.
    """
    own = [(one, name) for one in all_lived for name in one.behaviour.strategies]
    panels = _panels(
        own,
        lambda pair: f"{pair[0].title}, {drawing.plain(pair[1].replace('_', ' '))}",
    )
    if panels is None:
        return None
    figure, by_pair = panels
    kinds = list(
        dict.fromkeys(
            k
            for one, name in own
            for c in one.behaviour.strategies[name].values()
            for k in sorted(c)
        )
    )
    said = []
    for one, name in own:
        counts = one.behaviour.strategies[name]
        points, base = sorted(counts), dict.fromkeys(counts, 0.0)
        for kind in kinds:
            shares = [
                counts[point][kind] / sum(counts[point].values()) for point in points
            ]
            if any(shares):
                shade = drawing.colour(kinds.index(kind), len(kinds))
                label = drawing.plain(kind.replace("_", " "))
                by_pair[one, name].bar(
                    points,
                    shares,
                    bottom=[base[p] for p in points],
                    color=shade,
                    label=label,
                )
                base = {
                    point: base[point] + share
                    for point, share in zip(points, shares, strict=True)
                }
        total = sum(counts.values(), Counter[str]())
        shown = ", ".join(
            f"{kind} {percent(n / sum(total.values()))}"
            for kind, n in total.most_common()
        )
        said.append(f"{one.group.label} on {one.cell.plan.protocol}, {name}: {shown}")
    for axes in by_pair.values():
        axes.set_ylim(0, 1.02)
        drawing.rates_on(axes.yaxis)
        drawing.whole_ticks(axes)
    drawing.shared_legend(figure)
    figure.supxlabel("session", fontsize="small")
    figure.supylabel("share of the trials", fontsize="small")
    return figure, f"Strategies by session. {'; '.join(said)}."


def maps(all_lived: Sequence[Lived], *, single: bool) -> Drawn:
    """Draw the floor of every cell with recorded tracks in the sessions of
    ``Lived.panels``, with a row of maps for each protocol.

    The maps show how long all subjects spent on each square or, with ``single``, the
    tracks of the first subject.
    """
    walked = [one for one in all_lived if one.tracks and one.ground is not None]
    if not walked:
        return None
    names = list(dict.fromkeys(one.cell.plan.protocol for one in walked))
    groups = list(dict.fromkeys(one.number for one in walked))
    wide = max(len(one.panels) for one in walked)
    across = wide * len(groups)
    figure = drawing.new(MAP * across + 1.6, MAP * len(names) + 0.5)
    grid_of = figure.subplots(len(names), across, squeeze=False)
    for axes in grid_of.flat:
        axes.set_axis_off()
    for one in walked:
        down = names.index(one.cell.plan.protocol)
        left = wide * groups.index(one.number)
        for side, (title, session) in enumerate(one.panels.items()):
            axes = grid_of[down][left + side]
            _map(axes, one, session, single=single)
            above = "" if down or side else f"{_in_lines(one.group.label)}\n"
            axes.set_title(f"{above}{title}", fontsize="xx-small", pad=2)
    for down, name in enumerate(names):
        _beside(grid_of[down][0], drawing.plain(name.replace("_", " ")))
    drawing.shared_legend(figure)
    where = ", ".join(
        f"{one.group.label} on {one.cell.plan.protocol}" for one in walked
    )
    return figure, f"{_frame(walked, single=single)}: {where}."


def _frame(walked: Sequence[Lived], *, single: bool) -> str:
    """Return what the maps show, in which sessions, and how they are turned."""
    said = "Tracks of the first subject" if single else "Time on each square"
    said += " in the first and the last session in which a trial can succeed"
    if any(set(one.panels.values()) & set(one.cell.plan.idle) for one in walked):
        said += ", and in the last of all sessions, in which no trial can succeed"
    turned = [
        one.cell.plan.protocol
        for one in walked
        if one.ground is not None and one.ground.centre is not None
    ]
    if turned:
        said += (
            f". {', '.join(dict.fromkeys(turned))}: trials are turned back, so that the landmarks are where they are in "
            "the room"
        )
        said += (
            ""
            if single
            else ", and then turned so that all subjects have the first subject's goal"
        )
    return said


def _map(axes: Axes, one: Lived, session: int, *, single: bool) -> None:
    assert one.ground is not None
    room = Room(one.ground, one.tracks)
    own = [track for track in one.tracks if track.session == session]
    if not single:
        _floor(axes, one.ground, room.occupancy(own))
        goals = {room.goals(track, together=True) for track in own}
        _goals(axes, goals if len(goals) == 1 else ())
        return
    own = [track for track in own if track.subject == own[0].subject]
    _floor(axes, one.ground, {})
    for track in own:
        _walk(axes, track, room.squares(track))
    _goals(axes, map(room.goals, own))


def _in_lines(name: str) -> str:
    return "\n".join(map(drawing.plain, textwrap.wrap(name, 20)))


def _beside(axes: Axes, text: str) -> None:
    """Write a name beside a row of drawings."""
    axes.text(
        -0.08,
        0.5,
        text.replace(" ", "\n", 1),
        transform=axes.transAxes,
        ha="right",
        va="center",
        fontsize="x-small",
    )


def _floor(axes: Axes, floor: Ground, spent: Mapping[tuple[int, int], int]) -> None:
    from matplotlib.colors import to_rgb

    rows = [
        [to_rgb(SHADES.get(tile.kind, SOLID)) for tile in row]
        for row in floor.scene.tiles
    ]
    heat, most = to_rgb(HEAT), max(spent.values(), default=1)
    for (x, y), steps in spent.items():
        share = math.sqrt(steps / most)
        red, green, blue = (
            share * hot + (1 - share) * under
            for hot, under in zip(
                heat, rows[y - floor.top][x - floor.left], strict=True
            )
        )
        rows[y - floor.top][x - floor.left] = (red, green, blue)
    left, top = floor.left - 0.5, floor.top - 0.5
    axes.imshow(
        rows,
        extent=(left, left + len(rows[0]), top + len(rows), top),
        interpolation="nearest",
    )
    if spent:
        axes.plot([], [], "s", color=HEAT, label="most time")
    _places(axes, floor)


def _places(axes: Axes, floor: Ground) -> None:
    """Draw single marked squares (holes, cups), the outlines of zones that are not too
    small, and landmarks. Marked squares side by side are an area, such as an arm, and
    are not drawn, unless their glyphs tell them apart.
    """
    from matplotlib.collections import LineCollection

    signs = floor.signs
    for (across, down), glyph in signs.items():
        _glyph(axes, across, down, glyph)
    if alone := _alone(floor.holes - signs.keys()):
        x, y = zip(*alone, strict=True)
        axes.plot(
            x,
            y,
            "o",
            markerfacecolor="none",
            markeredgecolor=SOLID,
            markersize=3,
            markeredgewidth=0.7,
            label="marked square (hole, cup)",
        )
    areas = [one for one in floor.zones.values() if len(one) >= LEAST_ZONE]
    if areas:
        sides = list(chain.from_iterable(map(_outline, areas)))
        axes.add_collection(
            LineCollection(sides, colors=ZONE, linewidths=0.6, label="zone")
        )
    for down, row in enumerate(floor.scene.tiles):
        for across, tile in enumerate(row):
            if tile.kind == "landmark":
                _glyph(axes, across + floor.left, down + floor.top, tile.glyph)


def _glyph(axes: Axes, x: int, y: int, glyph: str) -> None:
    axes.text(x, y, drawing.plain(glyph), ha="center", va="center", fontsize="xx-small")


def _alone(marked: frozenset[tuple[int, int]]) -> list[tuple[int, int]]:
    return [
        (x, y)
        for x, y in sorted(marked)
        if not marked & {(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)}
    ]


def _outline(
    squares: frozenset[tuple[int, int]],
) -> Iterable[tuple[tuple[float, float], tuple[float, float]]]:
    """Yield the sides of squares between the inside and the outside of an area."""
    for x, y in sorted(squares):
        for across, down in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            if (x + across, y + down) not in squares:
                middle = (x + across / 2, y + down / 2)
                wide, high = abs(down) / 2, abs(across) / 2
                yield (
                    (middle[0] - wide, middle[1] - high),
                    (middle[0] + wide, middle[1] + high),
                )


def _walk(axes: Axes, track: Track, squares: Sequence[tuple[int, int]]) -> None:
    """Draw a track, with gaps where the subject was moved. ``squares`` are the track's
    squares in the room.
    """
    shade, label = ENDS[track.success]
    parts = [[squares[0]]]
    for (before, after), square in zip(
        pairwise(track.squares), squares[1:], strict=True
    ):
        if max(abs(before[0] - after[0]), abs(before[1] - after[1])) > 1:
            parts.append([])
        parts[-1].append(square)
    for part in parts:
        axes.plot(
            *zip(*part, strict=True), color=shade, linewidth=0.9, alpha=0.8, label=label
        )
    axes.plot(
        *squares[0], "o", color="black", markersize=2, linestyle="", label="start"
    )


def _goals(axes: Axes, goals: Iterable[frozenset[tuple[int, int]]]) -> None:
    for square in sorted(set(chain.from_iterable(goals))):
        axes.plot(
            *square,
            "s",
            markerfacecolor="none",
            markeredgecolor=drawing.RODENT,
            markersize=5,
            linestyle="",
            label="goal",
        )


def controls(summaries: Sequence[RunSummary]) -> Drawn:
    """Draw the pass rate of every control beside the pass rate of its plain cell, and
    the highest rate without the ability, if it is proved and the control takes the
    ability away. Pairs with an unknown rate are left out.
    """
    pairs = [one for summary in summaries for one in summary.controls]
    rated = [(one, one.plain.rate, one.control.rate) for one in pairs]
    known = [
        (one, plain, lesioned)
        for one, plain, lesioned in rated
        if plain is not None and lesioned is not None
    ]
    if not known:
        return None
    figure = drawing.new(drawing.WIDTH * 0.8, max(2.0, 0.9 + 0.24 * len(known)))
    axes = figure.add_subplot()
    blue, red = drawing.COLOURS[:2]
    names, said = [], []
    for row, (one, plain, lesioned) in enumerate(known):
        axes.plot(
            (plain, lesioned), (row, row), color="#bbbbbb", linewidth=1.2, zorder=1
        )
        plan = one.control.plan
        names.append(
            drawing.plain(
                f"{plan.protocol.replace('_', ' ')}, {plan.control}, {plan.model}"
            )
        )
        said.append(f"{words.title(one)}: {percent(plain)} against {percent(lesioned)}")
    rows = range(len(known))
    # The circle lies on the square and is smaller, so that equal rates show both.
    axes.plot(
        [plain for _, plain, _ in known],
        rows,
        "o",
        color=blue,
        markersize=4.5,
        zorder=3,
        label="plain",
    )
    axes.plot(
        [rate for *_, rate in known],
        rows,
        "s",
        color=red,
        markersize=7,
        zorder=2,
        label="control",
    )
    proved = [
        (row, highest)
        for row, (one, *_) in enumerate(known)
        if (highest := one.highest_without) is not None
    ]
    if proved:
        axes.plot(
            [without for _, without in proved],
            [row for row, _ in proved],
            "|",
            color=drawing.RODENT,
            label="highest rate without the ability",
        )
    axes.set_yticks(rows, names, fontsize="x-small")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    drawing.rates_on(axes.xaxis)
    axes.set_xlabel("pass rate")
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    return (
        figure,
        f"Pass rates of plain cells against their controls. {'; '.join(said)}.",
    )


def conditions(groups: Sequence[drawing.Group]) -> Drawn:
    """Draw the rates of a dialogue with many cells as a heat map of conditions by
    graphs, with a panel for each model.
    """
    found = [
        (group, by_graph)
        for group in groups
        if (by_graph := grid(group.cells)) is not None
    ]
    if not found:
        return None
    figure = drawing.new(0.4 + 5.4 * len(found), 6.5)
    panels = figure.subplots(1, len(found), squeeze=False, sharey=True).flat
    said = []
    for axes, (group, by_graph) in zip(panels, found, strict=True):
        rates = [
            [math.nan if shade is None else 100 * shade.rate for shade in row]
            for row in by_graph.rows
        ]
        image = axes.imshow(rates, cmap="cividis", vmin=0, vmax=100, aspect="auto")
        for at, row in enumerate(rates):
            for across, rate in enumerate(row):
                shade = "white" if rate < 55 else "black"
                axes.text(
                    across,
                    at,
                    "" if math.isnan(rate) else per_hundred(rate / 100),
                    color=shade,
                    ha="center",
                    va="center",
                )
            known = [
                f"{name} {per_hundred(rate / 100)}"
                for name, rate in zip(by_graph.graphs, row, strict=True)
                if rate == rate
            ]
            said.append(
                f"{group.label}, {by_graph.conditions[at]}: {', '.join(known) or 'no rate'}"
            )
        axes.set_xticks(
            range(len(by_graph.graphs)),
            map(drawing.plain, by_graph.graphs),
            rotation=30,
            ha="right",
        )
        axes.set_yticks(
            range(len(by_graph.conditions)), map(drawing.plain, by_graph.conditions)
        )
        axes.set_title(drawing.plain(group.label), fontsize="small")
    figure.colorbar(
        image,
        ax=figure.axes,
        label="mean rate over the domains of a graph, %",
        shrink=0.6,
    )
    return figure, f"Rates in percent by condition and graph. {'; '.join(said)}."


def best_of_views(summaries: Sequence[RunSummary]) -> Drawn:
    """Draw the rate of the best view for each model and protocol with several views (as
    in Figure 3 of the CheeseBench paper), and the animals' rate.
    """
    found = [best for summary in summaries for best in summary.best_of_views]
    names = list(
        dict.fromkeys(choice.protocol for best in found for choice in best.protocols)
    )
    if not names:
        return None
    figure = drawing.new(max(drawing.WIDTH, 0.25 * len(names) * (len(found) + 2)))
    axes, width, said = figure.add_subplot(), 0.8 / len(found), []
    for count, best in enumerate(found):
        places = [
            names.index(one.protocol) + (count - (len(found) - 1) / 2) * width
            for one in best.protocols
        ]
        label = drawing.plain(", ".join(filter(None, (best.model, best.variant))))
        heights = [one.best for one in best.protocols]
        axes.bar(
            places,
            heights,
            width * 0.9,
            color=drawing.colour(count, len(found)),
            label=label,
        )
        said.append(
            f"{label} {percent(best.best)}"
            + (
                ""
                if best.cross_fitted is None
                else f", cross-fitted {percent(best.cross_fitted)}"
            )
        )
    animals = {
        c.plan.protocol: words.rodent_rate(c)
        for summary in summaries
        for c in summary.cells
    }
    for place, name in enumerate(names):
        if (rodents := animals.get(name)) is not None:
            drawing.animals_beside_bars(axes, place, rodents)
    axes.set_xticks(
        range(len(names)),
        [drawing.plain(n.replace("_", " ")) for n in names],
        rotation=20,
        ha="right",
    )
    axes.set_ylabel("pass rate of the best view (biased upward)")
    axes.set_ylim(0, 1.02)
    drawing.rates_on(axes.yaxis)
    drawing.shared_legend(figure)
    return figure, f"Best of several views, with the rodents. {'; '.join(said)}."


def _panels(
    keys: Sequence[K], title: Callable[[K], str], share: bool = False, size: float = 2.8
) -> tuple[Figure, Mapping[K, Axes]] | None:
    """Return a figure with a panel for each key, and the panels by key, or None without
    keys.
    """
    if not keys:
        return None
    across = min(4, len(keys))
    down = math.ceil(len(keys) / across)
    figure = drawing.new(size * across + 1.4, size * 0.9 * down + 0.4)
    panels: Iterable[Axes] = figure.subplots(
        down, across, squeeze=False, sharey=share
    ).flat
    found = {}
    for axes, key in zip(
        list(panels), [*keys, *[None] * (across * down - len(keys))], strict=True
    ):
        if key is None:
            axes.set_visible(False)
        else:
            axes.set_title(title(key), fontsize="x-small")
            found[key] = axes
    return figure, found
