"""Figures and tables for a paper, from one or more runs: matplotlib, a colour-blind-safe palette, alt texts."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.experiment.records import Variant
from cheesebench.reports import cells as words
from cheesebench.reports.escaping import clean, escape
from cheesebench.reports.markdown import table
from cheesebench.statistics.wording import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cheesebench.statistics import CellResult, ModelSummary, RunSummary

#: Okabe and Ito's palette (2008): told apart with any colour vision, and in grey by the marks that go with it.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
RODENT = "#444444"
#: Inches; a page of two columns holds it in full width.
WIDTH, HEIGHT = 10.0, 4.5
DOTS_PER_INCH = 150
Z95 = 1.959964


@dataclass(frozen=True)
class Group:
    """One model in one view and variant, with a unique label."""

    label: str
    model: ModelSummary
    cells: Sequence[CellResult]

    @property
    def mean(self) -> tuple[float, float] | None:
        """Mean pass rate over the protocols and its standard error; None without a rate."""
        overall = self.model.overall
        return None if overall is None else (overall.mean, overall.standard_error)


def render(summary: RunSummary) -> str:
    """Return the tables as Markdown."""
    return _page(_groups([summary]), {})


def render_figures(
    summaries: Sequence[RunSummary], sizes: Mapping[str, float], formats: Sequence[str]
) -> Mapping[str, bytes]:
    """Return file name -> content: every figure in every format (``svg``, ``png``), and ``figures.md`` with them all.

    ``sizes`` maps models to billions of parameters. A figure for which the runs have nothing is left out.
    """
    groups = _groups(summaries)
    drawn = {
        "paradigms": paradigms(groups),
        "profile": profile(groups),
        "scaling": scaling(groups, sizes),
        "settings": settings(groups),
    }
    files: dict[str, bytes] = {}
    shown = {}
    for name, found in drawn.items():
        if found is None:
            continue
        figure, alt = found
        for suffix in formats:
            files[f"{name}.{suffix}"] = _save(figure, suffix, name, alt)
        shown[f"{name}.{formats[0]}"] = alt
    files["figures.md"] = _page(groups, shown).encode()
    return files


def _groups(summaries: Sequence[RunSummary]) -> list[Group]:
    several_views = len({model.view for summary in summaries for model in summary.models}) > 1
    labelled = []
    for summary in summaries:
        for model in summary.models:
            parts = [model.model, model.view if several_views else "", model.variant]
            labelled.append((", ".join(filter(None, parts)), summary, model))
    labels = [label for label, _, _ in labelled]
    return [
        Group(
            clean(label if labels.count(label) == 1 else f"{label} ({summary.manifest.get('run_id')})"),
            model,
            words.cells_of(summary, model),
        )
        for label, summary, model in labelled
    ]


def _figure(width: float = WIDTH, height: float = HEIGHT) -> Figure:
    # Not pyplot, which keeps figures alive and may look for a display.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Figure, suffix: str, title: str, alt: str) -> bytes:
    import matplotlib

    content = io.BytesIO()
    metadata: dict[str, str | None] = {"Title": title, "Description": alt}
    if suffix == "svg":
        metadata["Date"] = None  # so that the same runs give the same bytes
    with matplotlib.rc_context({"svg.hashsalt": "cheesebench", "svg.fonttype": "none"}):
        figure.savefig(content, format=suffix, dpi=DOTS_PER_INCH, metadata=metadata, bbox_inches="tight")
    return content.getvalue()


def paradigms(groups: Sequence[Group]) -> tuple[Figure, str] | None:
    """Draw the pass rate of every group on every protocol, with 95 % intervals and the animals as diamonds."""
    titles = {c.plan.protocol: c.plan.protocol.replace("_", " ") for group in groups for c in group.cells}
    if not titles:
        return None
    figure = _figure(max(WIDTH, 0.25 * len(titles) * (len(groups) + 2)))
    axes = figure.add_subplot()
    width = 0.8 / len(groups)
    said = []
    for number, group in enumerate(groups):
        rated = {cell.plan.protocol: cell for cell in group.cells if cell.rate is not None}
        places = [list(titles).index(name) + (number - (len(groups) - 1) / 2) * width for name in rated]
        rates = [cell.rate or 0.0 for cell in rated.values()]
        spans = [cell.interval or (cell.rate, cell.rate) for cell in rated.values()]
        below = [max(0.0, rate - float(low or 0.0)) for rate, (low, _) in zip(rates, spans, strict=True)]
        above = [max(0.0, float(high or 0.0) - rate) for rate, (_, high) in zip(rates, spans, strict=True)]
        axes.bar(places, rates, width * 0.9, color=COLOURS[number % len(COLOURS)], label=_plain(group.label))
        axes.errorbar(places, rates, [below, above], fmt="none", ecolor="black", elinewidth=0.8, capsize=2)
        rated_text = ", ".join(f"{titles[name]} {percent(cell.rate or 0.0)}" for name, cell in rated.items())
        said.append(f"{group.label}: {rated_text or 'no rate'}")
    rated_plans = [cell.plan for group in groups for cell in group.cells if cell.plan.measured is None]
    references = {plan.protocol: plan.reference for plan in rated_plans if plan.reference is not None}
    for name, animals in references.items():
        place = list(titles).index(name)
        if animals.interval is not None:
            axes.vlines(place, *animals.interval, color=RODENT, linewidth=3, alpha=0.5)
        label = "rodent" if name == next(iter(references)) else None
        axes.plot(place, animals.value, "D", color="white", markeredgecolor=RODENT, markersize=8, label=label)
    axes.set_xticks(range(len(titles)), [_plain(title) for title in titles.values()], rotation=20, ha="right")
    axes.set_ylabel("pass rate")
    axes.set_ylim(0, 1.02)
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    rodent = ", ".join(f"{titles[name]} {percent(animals.value)}" for name, animals in references.items())
    return figure, f"Pass rates by paradigm. {'; '.join(said)}." + (f" Rodents: {rodent}." if rodent else "")


def profile(groups: Sequence[Group]) -> tuple[Figure, str] | None:
    """Draw the mean pass rate of every group by cognitive dimension, around a circle (at least three dimensions)."""
    dimensions = list({cell.plan.dimension: None for group in groups for cell in group.cells})
    if len(dimensions) < 3:
        return None
    figure = _figure(7.0, 5.0)
    axes = figure.add_subplot(projection="polar")
    angles = [2 * math.pi * number / len(dimensions) for number in range(len(dimensions))]
    closed = [*angles, angles[0]]
    animals = [_rodent_mean(groups, dimension) for dimension in dimensions]
    said = []
    known_animals = [value for value in animals if value is not None]
    if len(known_animals) == len(dimensions):
        axes.plot(closed, [*known_animals, known_animals[0]], color=RODENT, linestyle="--", label="rodent")
    for number, group in enumerate(groups):
        values = [group.model.profile[d].mean if d in group.model.profile else math.nan for d in dimensions]
        colour, mark = COLOURS[number % len(COLOURS)], MARKS[number % len(MARKS)]
        axes.plot(closed, [*values, values[0]], color=colour, marker=mark, markersize=5, label=_plain(group.label))
        points = [(d, v) for d, v in zip(dimensions, values, strict=True) if not math.isnan(v)]
        said.append(f"{group.label}: " + ", ".join(f"{d} {percent(v)}" for d, v in points))
    axes.set_xticks(angles, [_plain(dimension).replace(" ", "\n", 1) for dimension in dimensions], fontsize="small")
    axes.tick_params(axis="x", pad=18)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75, 1.0], ["25 %", "50 %", "75 %", "100 %"], fontsize="x-small")
    figure.legend(loc="outside right upper", fontsize="small", frameon=False)
    return figure, f"Mean pass rate by cognitive dimension. {'; '.join(said)}."


def _rodent_mean(groups: Sequence[Group], dimension: str) -> float | None:
    own = {
        cell.plan.protocol: cell.plan.reference.value
        for group in groups
        for cell in group.cells
        if cell.plan.dimension == dimension and cell.plan.reference is not None and cell.plan.measured is None
    }
    return sum(own.values()) / len(own) if own else None


def scaling(groups: Sequence[Group], sizes: Mapping[str, float]) -> tuple[Figure, str] | None:
    """Draw the mean pass rate against billions of parameters (at least two sizes)."""
    sized = [(sizes[g.model.model], *g.mean, g) for g in groups if g.model.model in sizes and g.mean]
    points = sorted(sized, key=lambda point: point[0])
    if len({size for size, *_ in points}) < 2:
        return None
    figure = _figure(7.0)
    axes = figure.add_subplot()
    lines: dict[str, list[tuple[float, float, float]]] = {}
    for size, mean, error, group in points:
        lines.setdefault(", ".join(filter(None, (group.model.view, group.model.variant))), []).append(
            (size, mean, error)
        )
    for number, (label, line) in enumerate(lines.items()):
        _line(axes, number, label, [size for size, *_ in line], [point[1:] for point in line])
    for size, mean, _, group in points:
        axes.annotate(
            _plain(group.model.model), (size, mean), xytext=(4, 6), textcoords="offset points", fontsize="x-small"
        )
    _reference_lines(axes, [group for *_, group in points])
    axes.set_xscale("log")
    known_sizes = sorted({size for size, *_ in points})
    axes.set_xticks(known_sizes, [f"{size:g}" for size in known_sizes])
    axes.minorticks_off()
    axes.set_xlabel("parameters (billions)")
    said = "; ".join(f"{group.model.model} ({size:g} billion) {percent(mean)}" for size, mean, _, group in points)
    return figure, f"Mean pass rate by number of parameters. {said}."


def settings(groups: Sequence[Group]) -> tuple[Figure, str] | None:
    """Draw one panel for each setting that was varied: mean pass rate with 95 % intervals at every level."""
    panels: dict[str, dict[str, list[tuple[str, float, float]]]] = {}
    for group in groups:
        levels = dict(Variant.parse(group.model.variant).settings)
        for axis, level in levels.items():
            others = [f"{name}={value}" for name, value in levels.items() if name != axis]
            label = ", ".join([group.model.model, group.model.view, *others])
            if group.mean is not None:
                panels.setdefault(axis, {}).setdefault(label, []).append((level, *group.mean))
    if not panels:
        return None
    figure = _figure(5.0 * len(panels) + 1.0)
    said = []
    for axes, (axis, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True):
        names = list(dict.fromkeys(level for line in lines.values() for level, *_ in line))
        for number, (label, line) in enumerate(lines.items()):
            x = [names.index(level) for level, *_ in line]
            _line(axes, number, label, x, [point[1:] for point in line])
            said.append(f"{axis} ({label}): " + ", ".join(f"{level} {percent(mean)}" for level, mean, _ in line))
        _reference_lines(axes, groups)
        axes.set_xticks(range(len(names)), [_plain(name) for name in names])
        axes.set_xlabel(_plain(axis))
        axes.legend(fontsize="x-small", frameon=False)
    return figure, f"Mean pass rate by setting. {'; '.join(said)}."


def _line(axes: Axes, number: int, label: str, x: Sequence[float], means: Sequence[tuple[float, float]]) -> None:
    """Draw means with 95 % intervals; ``means`` are pairs of mean and standard error."""
    axes.errorbar(
        x,
        [mean for mean, _ in means],
        [Z95 * error for _, error in means],
        color=COLOURS[number % len(COLOURS)],
        marker=MARKS[number % len(MARKS)],
        capsize=3,
        label=_plain(label),
    )


def _reference_lines(axes: Axes, groups: Sequence[Group]) -> None:
    """Draw the animals' and the random agent's mean over the protocols of the first group."""
    own = groups[0].cells
    for value, label, style in ((words.rodent_mean(own), "rodent", "--"), (words.chance_mean(own), "random", ":")):
        if value is not None:
            axes.axhline(value, color=RODENT, linestyle=style, linewidth=1, label=label)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("mean pass rate")


def _plain(text: str) -> str:
    """Return text with ``$`` escaped, which matplotlib would parse as a formula."""
    return clean(text).replace("$", r"\$")


def _page(groups: Sequence[Group], shown: Mapping[str, str]) -> str:
    blocks = ["# Figures and tables"]
    blocks += [f"![{escape(alt)}]({name})" for name, alt in shown.items()]
    protocols = {cell.plan.protocol: cell for group in groups for cell in group.cells}
    rows = []
    for group in groups:
        rates = {cell.plan.protocol: f"{words.rate(cell)} ({words.interval(cell)})" for cell in group.cells}
        mean = words.NOTHING if group.model.overall is None else words.mean(group.model.overall)
        rows.append((group.label, mean, *(rates.get(name, words.NOTHING) for name in protocols)))
    rodent = words.rodent_mean(protocols.values())
    mean = words.NOTHING if rodent is None else percent(rodent)
    rows.append(("rodent", mean, *(words.reference(cell) for cell in protocols.values())))
    chance = words.chance_mean(protocols.values())
    mean = words.NOTHING if chance is None else percent(chance)
    rows.append(("random (stated)", mean, *(words.floor(cell) for cell in protocols.values())))
    blocks += [
        "Pass rates with 95 % intervals; the mean is over the protocols, with its standard error.",
        table(("", "mean ± se", *map(escape, protocols)), rows),
    ]
    return "\n\n".join(blocks) + "\n"
