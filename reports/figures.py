"""Figures and tables for a paper, from one or more runs. The figures are drawn with
matplotlib, in a palette for any colour vision, and have alternative texts.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from cheesebench.amounts import percent
from cheesebench.errors import UnknownNameError
from cheesebench.records import Variant
from cheesebench.reports import behaviour_figures as lives
from cheesebench.reports import cells as words
from cheesebench.reports import drawing
from cheesebench.reports.markdown import table
from cheesebench.statistics.comparison import count_cell
from cheesebench.statistics.wording import abilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cheesebench.behaviour import Behaviour
    from cheesebench.experiment.log import RunLog
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.statistics import CellResult, RunSummary

DOTS_PER_INCH = 150
#: Letters in a line of a note below a figure.
NOTE_WIDTH = 90


def render(summary: RunSummary) -> str:
    return _page(_groups([summary]), {})


def render_figures(
    runs: Sequence[tuple[RunSummary, RunLog]],
    plugins: PluginManager,
    sizes: Mapping[str, float],
    formats: Sequence[str],
    width: float | None = None,
    dpi: int = DOTS_PER_INCH,
    only: Sequence[str] = (),
) -> Mapping[str, bytes]:
    """Return the contents of files by name: every figure (or only those named in
    ``only``) in every format (``svg``, ``png``, ``pdf``), and ``figures.md``, which
    shows each figure in the first format.

    ``sizes`` maps models to billions of parameters. Figures without data are left out.
    ``width`` is in inches (default: each figure has a width of its own). Raise
    UnknownNameError for an unknown name in ``only``.
    """
    groups = _groups([summary for summary, _ in runs])
    drawings = _drawings(groups, runs, plugins, sizes)
    unknown = [name for name in only if name not in drawings]
    if unknown:
        raise UnknownNameError("figure", unknown[0], drawings)
    files: dict[str, bytes] = {}
    shown = {}
    for name in only or drawings:
        found = drawings[name]()
        if found is None:
            continue
        figure, alt = _noted(*found, _notes(name, groups, runs))
        if width is not None:
            _resize(figure, width)
        for suffix in formats:
            files[f"{name}.{suffix}"] = _save(figure, suffix, name, alt, dpi)
        shown[f"{name}.{formats[0]}"] = alt
    files["figures.md"] = _page(groups, shown).encode()
    return files


def _notes(
    name: str,
    groups: Sequence[drawing.Group],
    runs: Sequence[tuple[RunSummary, RunLog]],
) -> list[str]:
    """Return what a reader of a figure must know of the runs, as sentences."""
    said = [summary.unfinished for summary, _ in runs]
    if name == "forest":
        said += [words.worst_case([cell for group in groups for cell in group.cells])]
    return [*filter(None, said)]


def _noted(figure: Figure, alt: str, notes: Sequence[str]) -> tuple[Figure, str]:
    """Return a figure and its alternative text, both with notes below."""
    if notes:
        lines = textwrap.fill(" ".join(notes), NOTE_WIDTH)
        figure.text(0.01, 0, lines, va="top", fontsize="x-small")
    return figure, " ".join((alt, *notes))


def _drawings(
    groups: Sequence[drawing.Group],
    runs: Sequence[tuple[RunSummary, RunLog]],
    plugins: PluginManager,
    sizes: Mapping[str, float],
) -> Mapping[str, Callable[[], lives.Drawn]]:
    """Return the functions that draw the figures, by name. Trials are replayed once,
    and only if needed.
    """
    summaries = [summary for summary, _ in runs]
    lived = cache(partial(lives.lived, groups, runs, plugins))
    return {
        "forest": lambda: lives.forest(groups),
        "paradigms": lambda: paradigms(groups, _single_subjects(groups, runs)),
        "best_of_views": lambda: lives.best_of_views(summaries),
        "profile": lambda: profile(groups),
        "curves": lambda: curves(
            groups,
            {(one.number, one.cell.plan.protocol): one.behaviour for one in lived()},
        ),
        "measures": lambda: lives.compared_measures(lived()),
        "latency": lambda: lives.took(lived(), "latency"),
        "path_length": lambda: lives.took(lived(), "path length"),
        "strategies": lambda: lives.strategies(lived()),
        "occupancy": lambda: lives.maps(lived(), single=False),
        "tracks": lambda: lives.maps(lived(), single=True),
        "conditions": lambda: lives.conditions(groups),
        "controls": lambda: lives.controls(summaries),
        "scaling": lambda: scaling(groups, sizes),
        "settings": lambda: settings(groups),
    }


#: The rate (or measure) of each subject of a cell, by the group's label and the
#: protocol.
Singles = Mapping[tuple[str, str], Sequence[float]]


def _single_subjects(
    groups: Sequence[drawing.Group], runs: Sequence[tuple[RunSummary, RunLog]]
) -> Singles:
    found = {}
    for group in groups:
        for cell in group.cells:
            [log] = [log for summary, log in runs if cell in summary.cells][:1]
            counts = count_cell(cell.plan, log.trials_by_subject(cell.plan))
            found[group.label, cell.plan.protocol] = [
                counts.scale.value(one.rate())
                for number, one in counts.subjects.items()
                if one.scored and number < cell.subjects
            ]
    return found


def _groups(summaries: Sequence[RunSummary]) -> list[drawing.Group]:
    several_views = (
        len({model.view for summary in summaries for model in summary.models}) > 1
    )
    labelled = []
    for summary in summaries:
        for model in summary.models:
            parts = [model.model, model.view if several_views else "", model.variant]
            labelled.append((", ".join(filter(None, parts)), summary, model))
    labels = [label for label, _, _ in labelled]
    return [
        drawing.Group(
            words.clean(
                label
                if labels.count(label) == 1
                else f"{label} ({summary.manifest.get('run_id')})"
            ),
            model,
            words.cells_of(summary, model),
        )
        for label, summary, model in labelled
    ]


def _resize(figure: Figure, width: float) -> None:
    """Make a figure ``width`` inches wide. Texts shrink with it, to no less than half
    their size, but do not grow. The figure is at least 2 inches high.
    """
    from matplotlib.text import Text

    own = figure.get_size_inches()
    ratio = width / own[0]
    for text in figure.findobj(Text):
        text.set_fontsize(text.get_fontsize() * max(0.5, min(ratio, 1.0)))
    figure.set_size_inches(width, max(2.0, ratio * own[1]))


def _save(figure: Figure, suffix: str, title: str, alt: str, dpi: int) -> bytes:
    import matplotlib

    content = io.BytesIO()
    # Without dates, the same runs give the same bytes.
    metadata: dict[str, str | None] = {
        "Title": title,
        "Subject" if suffix == "pdf" else "Description": alt,
    }
    metadata |= {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})
    with matplotlib.rc_context({"svg.hashsalt": "cheesebench", "svg.fonttype": "none"}):
        figure.savefig(
            content, format=suffix, dpi=dpi, metadata=metadata, bbox_inches="tight"
        )
    return content.getvalue()


def paradigms(
    groups: Sequence[drawing.Group], singles: Singles = MappingProxyType({})
) -> tuple[Figure, str] | None:
    """Draw the result of every group on every protocol, with 95 % intervals, single
    subjects as dots, and the animals. Pass rates share a panel. A protocol whose
    verdict is about a measure has a panel of its own. Return None without cells.
    """
    by_panel: dict[str, dict[str, CellResult]] = {}
    for group in groups:
        for cell in group.cells:
            panel = cell.plan.protocol if words.measured_name(cell) else ""
            by_panel.setdefault(panel, {})[cell.plan.protocol] = cell
    if not by_panel:
        return None
    # The panel of pass rates has an empty name, and comes first.
    panels = sorted(by_panel)
    widths = [max(1, len(by_panel[panel])) for panel in panels]
    room = 0.25 * sum(widths) * (len(groups) + 2) + 1.2 * (len(panels) - 1)
    figure = drawing.new(max(drawing.WIDTH, room))
    axes = figure.subplots(1, len(panels), squeeze=False, width_ratios=widths)[0]
    for panel, one in zip(panels, axes, strict=True):
        _panel(one, groups, by_panel[panel], singles)
    drawing.shared_legend(figure)
    said = [f"{group.label}: {_said(group)}" for group in groups]
    animals = drawing.said_of_animals(
        cell for panel in panels for cell in by_panel[panel].values()
    )
    dots = " Dots are single subjects." if singles else ""
    return figure, f"Results by paradigm. {'; '.join(said)}.{dots}{animals}"


def _title(protocol: str) -> str:
    return protocol.replace("_", " ")


def _said(group: drawing.Group) -> str:
    found = [
        f"{_title(cell.plan.protocol)} {words.rate(cell)}"
        for cell in group.cells
        if _value(cell) is not None
    ]
    return ", ".join(found) or "no rate"


def _value(cell: CellResult) -> tuple[float, tuple[float, float] | None] | None:
    """Return the judged rate or measure of a cell, with its interval, or None without a
    result.
    """
    if cell.is_unfinished:
        return None
    if cell.plan.measured is not None:
        found = cell.judged
        return None if found is None else (found.mean, found.interval)
    return None if cell.rate is None else (cell.rate, cell.interval)


def _panel(
    axes: Axes,
    groups: Sequence[drawing.Group],
    cells: Mapping[str, CellResult],
    singles: Singles,
) -> None:
    """Draw the bars of some protocols with their single subjects, and the animals'
    numbers. ``cells`` has one cell of each protocol.
    """
    names, width = list(cells), 0.8 / len(groups)
    for number, group in enumerate(groups):
        shift = (number - (len(groups) - 1) / 2) * width
        own = {
            names.index(cell.plan.protocol) + shift: value
            for cell in group.cells
            if cell.plan.protocol in cells and (value := _value(cell)) is not None
        }
        shade, label = drawing.colour(number, len(groups)), drawing.plain(group.label)
        drawing.bars(axes, list(own), width, list(own.values()), shade, label)
        for place in own:
            name = names[round(place - shift)]
            drawing.dots(axes, place, width, singles.get((group.label, name), ()))
    for place, cell in enumerate(cells.values()):
        if cell.plan.reference is not None:
            drawing.animals_beside_bars(axes, place, cell.plan.reference)
    _label(axes, names, words.measured_name(cells[names[0]]))


def _label(axes: Axes, names: Sequence[str], measure: str) -> None:
    labels = [drawing.plain(_title(name)) for name in names]
    axes.set_xticks(range(len(names)), labels, rotation=20, ha="right")
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylabel(drawing.plain(measure.replace("_", " ")) or "pass rate")
    if not measure:
        axes.set_ylim(0, 1.02)
        drawing.rates_on(axes.yaxis)


def profile(groups: Sequence[drawing.Group]) -> tuple[Figure, str] | None:
    """Draw the mean pass rate of every group by cognitive dimension, around a circle.
    Return None for fewer than three dimensions.
    """
    dimensions = list(
        {cell.plan.dimension: None for group in groups for cell in group.cells}
    )
    if len(dimensions) < 3:
        return None
    figure = drawing.new(7.0, 5.0)
    axes = figure.add_subplot(projection="polar")
    angles = [
        2 * math.pi * number / len(dimensions) for number in range(len(dimensions))
    ]
    closed = [*angles, angles[0]]
    animals = [_rodent_mean(groups, dimension) for dimension in dimensions]
    said = []
    known_animals = [value for value in animals if value is not None]
    if len(known_animals) == len(dimensions):
        axes.plot(
            closed,
            [*known_animals, known_animals[0]],
            color=drawing.RODENT,
            linestyle="--",
            label="rodent",
        )
    for number, group in enumerate(groups):
        values = [
            group.model.profile[d].mean if d in group.model.profile else math.nan
            for d in dimensions
        ]
        shade, mark = (
            drawing.colour(number, len(groups)),
            drawing.MARKS[number % len(drawing.MARKS)],
        )
        axes.plot(
            closed,
            [*values, values[0]],
            color=shade,
            marker=mark,
            markersize=5,
            label=drawing.plain(group.label),
        )
        points = [
            (d, v) for d, v in zip(dimensions, values, strict=True) if not math.isnan(v)
        ]
        said.append(
            f"{group.label}: " + ", ".join(f"{d} {percent(v)}" for d, v in points)
        )
    axes.set_xticks(
        angles,
        [drawing.plain(dimension).replace(" ", "\n", 1) for dimension in dimensions],
        fontsize="small",
    )
    axes.tick_params(axis="x", pad=18)
    axes.set_ylim(0, 1)
    axes.set_yticks(
        [0.25, 0.5, 0.75, 1.0], ["25 %", "50 %", "75 %", "100 %"], fontsize="x-small"
    )
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    figure.supxlabel("means of pass rates: a drawing, not a finding", fontsize="small")
    return (
        figure,
        f"Mean pass rate by cognitive dimension: a drawing, not a finding. {'; '.join(said)}.",
    )


def curves(
    groups: Sequence[drawing.Group], lived: Mapping[tuple[int, str], Behaviour]
) -> tuple[Figure, str] | None:
    """Draw the pass rate by session, with a panel for each protocol on which some group
    has at least two sessions. Protocols whose verdict is about a measure are left out.
    Return None if no protocol is left.

    Single subjects are thin lines under the mean. ``lived`` has their behaviour, by the
    number of the group and by protocol.
    """
    own = [
        (number, group, cell)
        for number, group in enumerate(groups)
        for cell in group.cells
        if cell.curve_unit == "session"
        and len(cell.curve) > 1
        and cell.plan.measured is None
    ]
    protocols = list(dict.fromkeys(cell.plan.protocol for *_, cell in own))
    if not protocols:
        return None
    across = min(3, len(protocols))
    down = math.ceil(len(protocols) / across)
    figure = drawing.new(3.4 * across + 1.6, 2.6 * down + 0.4)
    panels = list(figure.subplots(down, across, squeeze=False, sharey=True).flat)
    by_protocol = dict(zip(protocols, panels, strict=False))
    for axes in panels[len(protocols) :]:
        axes.set_visible(False)
    for number, group, cell in own:
        axes = by_protocol[cell.plan.protocol]
        one_by_one = lived[number, cell.plan.protocol].curves.get("pass rate", {})
        colour = drawing.colour(number, len(groups))
        _subjects(axes, list(one_by_one.values()), colour)
        axes.plot(
            [point.session for point in cell.curve],
            [point.rate for point in cell.curve],
            color=colour,
            marker=drawing.MARKS[number % len(drawing.MARKS)],
            markersize=3,
            label=drawing.plain(group.label),
        )
    for protocol, axes in by_protocol.items():
        cell = next(cell for *_, cell in own if cell.plan.protocol == protocol)
        drawing.animals_by_session(
            axes,
            cell,
            [one.session for one in cell.curve],
            cell.plan.reference,
        )
        axes.set_title(drawing.plain(_title(protocol)), fontsize="small")
        axes.set_ylim(0, 1.02)
        drawing.rates_on(axes.yaxis)
        drawing.whole_ticks(axes)
    about = "session (animals may have more or fewer trials in a session)"
    figure.supxlabel(about, fontsize="small")
    figure.supylabel("pass rate", fontsize="small")
    drawing.shared_legend(figure)
    said = [
        f"{group.label} on {cell.plan.protocol}: "
        + ", ".join(percent(point.rate) for point in cell.curve)
        for _, group, cell in own
    ]
    animals = drawing.said_of_animals(cell for *_, cell in own)
    return figure, f"Pass rate by session. {'; '.join(said)}.{animals}"


#: Maximum number of subjects that are drawn one by one. More lines would blur.
MOST_LINES = 30


def _subjects(
    axes: Axes,
    lines: Sequence[Mapping[int, float]],
    colour: str | tuple[float, ...],
) -> None:
    for line in lines[:MOST_LINES]:
        axes.plot(list(line), list(line.values()), color=colour, lw=0.4, alpha=0.3)


def _rodent_mean(groups: Sequence[drawing.Group], dimension: str) -> float | None:
    own = {
        cell.plan.protocol: cell
        for group in groups
        for cell in group.cells
        if cell.plan.dimension == dimension
    }
    references = [words.rodent_rate(cell) for cell in own.values()]
    return words.complete_mean(
        [None if reference is None else reference.value for reference in references]
    )


def scaling(
    groups: Sequence[drawing.Group], sizes: Mapping[str, float]
) -> tuple[Figure, str] | None:
    """Draw the mean pass rate against billions of parameters. Return None for fewer
    than two sizes with a mean.
    """
    sized = [
        (sizes[g.model.model], *g.mean, g)
        for g in groups
        if g.model.model in sizes and g.mean
    ]
    points = sorted(sized, key=lambda point: point[0])
    if len({size for size, *_ in points}) < 2:
        return None
    figure = drawing.new(7.0)
    axes = figure.add_subplot()
    lines: dict[str, list[tuple[float, float, float, float]]] = {}
    for size, mean, low, high, group in points:
        lines.setdefault(
            ", ".join(filter(None, (group.model.view, group.model.variant))), []
        ).append((size, mean, low, high))
    for number, (label, line) in enumerate(lines.items()):
        _line(
            axes,
            number,
            len(lines),
            label,
            [size for size, *_ in line],
            [point[1:] for point in line],
        )
    for size, mean, _, _, group in points:
        axes.annotate(
            drawing.plain(group.model.model),
            (size, mean),
            xytext=(4, 6),
            textcoords="offset points",
            fontsize="x-small",
        )
    _reference_lines(axes, [group for *_, group in points])
    axes.set_xscale("log")
    axes.margins(x=0.2)  # The margin keeps the names at the right end inside the frame.
    known_sizes = sorted({size for size, *_ in points})
    axes.set_xticks(known_sizes, [f"{size:g}" for size in known_sizes])
    axes.minorticks_off()
    axes.set_xlabel("parameters (billions)")
    said = "; ".join(
        f"{group.model.model} ({size:g} billion) {percent(mean)}"
        for size, mean, _, _, group in points
    )
    return figure, f"Mean pass rate by number of parameters. {said}."


def settings(groups: Sequence[drawing.Group]) -> tuple[Figure, str] | None:
    """Draw one panel for each setting that was varied: the mean pass rate with its 95 %
    interval at every level. Return None if no group with a varied setting has a mean.
    """
    panels: dict[str, dict[str, list[tuple[str, float, float, float]]]] = {}
    for group in groups:
        levels = dict(Variant.parse(group.model.variant).settings)
        for axis, level in levels.items():
            others = [
                f"{name}={value}" for name, value in levels.items() if name != axis
            ]
            label = ", ".join([group.model.model, group.model.view, *others])
            if group.mean is not None:
                panels.setdefault(axis, {}).setdefault(label, []).append(
                    (level, *group.mean)
                )
    if not panels:
        return None
    figure = drawing.new(5.0 * len(panels) + 1.0)
    said = []
    for axes, (axis, lines) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        names = list(
            dict.fromkeys(level for line in lines.values() for level, *_ in line)
        )
        for number, (label, line) in enumerate(lines.items()):
            x = [names.index(level) for level, *_ in line]
            _line(axes, number, len(lines), label, x, [point[1:] for point in line])
            said.append(
                f"{axis} ({label}): "
                + ", ".join(f"{level} {percent(mean)}" for level, mean, *_ in line)
            )
        _reference_lines(axes, groups)
        axes.set_xticks(range(len(names)), [drawing.plain(name) for name in names])
        axes.set_xlabel(drawing.plain(axis))
        axes.legend(fontsize="x-small", frameon=False)
    return figure, f"Mean pass rate by setting. {'; '.join(said)}."


def _line(
    axes: Axes,
    number: int,
    count: int,
    label: str,
    x: Sequence[float],
    means: Sequence[tuple[float, float, float]],
) -> None:
    """Draw line ``number`` of ``count`` lines: means with 95 % intervals. ``means`` has
    the mean, the lower and the upper limit of each point.
    """
    axes.errorbar(
        x,
        [mean for mean, *_ in means],
        [
            [mean - low for mean, low, _ in means],
            [high - mean for mean, _, high in means],
        ],
        color=drawing.colour(number, count),
        marker=drawing.MARKS[number % len(drawing.MARKS)],
        capsize=3,
        label=drawing.plain(label),
    )


def _reference_lines(axes: Axes, groups: Sequence[drawing.Group]) -> None:
    """Draw the animals' mean over the protocols of the first group, if it is known, and
    label the axis of rates.
    """
    value = words.rodent_mean(groups[0].cells)
    if value is not None:
        axes.axhline(
            value, color=drawing.RODENT, linestyle="--", linewidth=1, label="rodent"
        )
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("mean pass rate")
    drawing.rates_on(axes.yaxis)


def _rates_of(group: drawing.Group, protocols: Collection[str]) -> tuple[str, ...]:
    """Return a model's row: its mean if it covers all protocols, and its rate on each
    of them.
    """
    rates = {}
    for cell in group.cells:
        said = (f"{words.rate(cell)} ({words.interval(cell)})", abilities(cell))
        rates[cell.plan.protocol] = ", ".join(filter(None, said))
    averaged = {cell.plan.protocol for cell in words.averaged(group.cells)}
    overall = group.model.overall
    is_whole = overall is not None and averaged == {*protocols}
    mean = words.mean(overall) if overall is not None and is_whole else words.NOTHING
    return group.label, mean, *(rates.get(name, words.NOTHING) for name in protocols)


def _page(groups: Sequence[drawing.Group], shown: Mapping[str, str]) -> str:
    blocks = ["# Figures and tables"]
    blocks += [f"![{words.escape(alt)}]({name})" for name, alt in shown.items()]
    protocols = {cell.plan.protocol: cell for group in groups for cell in group.cells}
    rows = [_rates_of(group, protocols) for group in groups]
    references = [words.rodent_rate(cell) for cell in protocols.values()]
    rodent = words.complete_mean(
        [None if reference is None else reference.value for reference in references]
    )
    mean = words.NOTHING if rodent is None else percent(rodent)
    rows.append(
        ("rodent", mean, *(words.reference(cell) for cell in protocols.values()))
    )
    blocks += [
        "Pass rates (or the measures of verdicts) with 95 % intervals. The mean is over all protocols.",
        table(("", "mean", *map(words.escape, protocols)), rows),
        *(
            words.escape(note)
            for note in words.ability_footnotes(list(protocols.values()))
        ),
        *(
            words.escape(f"{group.label}: {ability}")
            for group in groups
            if (ability := words.mean_ability(group.model, group.cells))
        ),
    ]
    return "\n\n".join(blocks) + "\n"
