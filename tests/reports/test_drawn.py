"""Everything that the figures draw, with its place and colour."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cheesebench.reports import behaviour_figures, figures
from cheesebench.reports.behaviour_figures import lived
from cheesebench.reports.figures import _groups
from cheesebench.summaries import summarise_log
from tests.reports.html.conftest import make_log, maze
from tests.reports.test_rich_run import rich_run
from tests.stored import check_stored

pytest.importorskip("matplotlib")
from matplotlib.collections import Collection

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What is said of an artist, in this order, where it has it.
FACTS = (
    "label", "text", "position", "xydata", "segments", "offsets", "xy", "width",
    "height", "color", "facecolor", "edgecolor", "linestyle", "linewidth", "linewidths",
    "marker", "markersize", "fontsize", "ha", "va", "rotation", "hatch", "zorder",
    "alpha",
)  # fmt: skip


def told(value: Any) -> str:
    if isinstance(value, str) or value is None:
        return repr(value)
    if np.ma.isMaskedArray(value):
        value = value.filled(np.nan)
    try:
        flat = np.asarray(value, float).ravel()
    except (TypeError, ValueError):
        if isinstance(value, list | tuple):
            return f"({' '.join(map(told, value))})"
        return repr(value)
    return " ".join(f"{float(one) + 0.0:.4g}" for one in flat)


def facts(artist: Artist) -> str:
    found = [(fact, getattr(artist, f"get_{fact}", None)) for fact in FACTS]
    said = {fact: told(get()) for fact, get in found if get is not None}
    if said["label"].startswith("'_"):  # It depends on the version of matplotlib.
        del said["label"]
    if isinstance(artist, Collection):
        said["paths"] = told([np.ravel(p.vertices) for p in artist.get_paths()])
    return f"    {'; '.join(f'{fact} {text}' for fact, text in said.items())}"


def on_axes(axes: Axes) -> Iterator[str]:
    yield f"  {axes.get_title()!r} {axes.get_xlabel()!r} {axes.get_ylabel()!r}"
    yield f"    x {told(axes.get_xlim())}, y {told(axes.get_ylim())}"
    for axis in (axes.xaxis, axes.yaxis):
        labels = [one.get_text() for one in axis.get_ticklabels()]
        yield f"    ticks {told(axis.get_ticklocs())} {labels}"
    for group in (axes.lines, axes.patches, axes.collections, axes.texts):
        yield from map(facts, group)
    for image in axes.images:
        yield f"    image {told(image.get_extent())}: {told(image.get_array())}"
    legend = axes.get_legend()
    if legend is not None:
        yield f"    legend {[one.get_text() for one in legend.get_texts()]}"


def film(figure: Figure) -> str:
    figure.draw_without_rendering()
    lines = [f"  size {told(figure.get_size_inches())}"]
    lines += map(facts, figure.texts)
    for legend in figure.legends:
        lines.append(f"  legend {[one.get_text() for one in legend.get_texts()]}")
    for axes in figure.axes:
        lines += on_axes(axes)
    return "\n".join(lines)


SIZES = {"walker": 7.0, "provider/swimmer": 70.0}


def test_what_the_figures_of_a_summary_draw() -> None:
    summary = rich_run()
    groups = _groups([summary])
    drawn = {
        "forest": behaviour_figures.forest(groups),
        "paradigms": figures.paradigms(groups),
        "best of views": behaviour_figures.best_of_views([summary]),
        "profile": figures.profile(groups),
        "conditions": behaviour_figures.conditions(groups),
        "controls": behaviour_figures.controls([summary]),
        "scaling": figures.scaling(groups, SIZES),
        "settings": figures.settings(groups),
    }
    check_stored("figures.summary.txt", joined(drawn))


def joined(drawn: dict[str, behaviour_figures.Drawn]) -> str:
    parts = [
        f"{name}: nothing" if found is None else f"{name}: {found[1]}\n{film(found[0])}"
        for name, found in drawn.items()
    ]
    return "\n".join(parts) + "\n"


def test_what_the_figures_of_lives_draw(tmp_path: Path) -> None:
    log, plugins = make_log(tmp_path, [maze(tmp_path), maze(tmp_path, "pool")])
    with log:
        summary = summarise_log(log)
        groups = _groups([summary])
        lives = list(lived(groups, [(summary, log)], plugins))
    did = {(one.number, one.cell.plan.protocol): one.behaviour for one in lives}
    drawn = {
        "curves": figures.curves(groups, did),
        "latency": behaviour_figures.took(lives, "latency"),
        "path length": behaviour_figures.took(lives, "path length"),
        "measures": behaviour_figures.judged_measures(lives),
        "strategies": behaviour_figures.strategies(lives),
        "occupancy": behaviour_figures.maps(lives, single=False),
        "tracks": behaviour_figures.maps(lives, single=True),
    }
    check_stored("figures.lives.txt", joined(drawn))
