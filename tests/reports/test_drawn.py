"""Everything that the figures draw, with its place and colour."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cheesebench.behaviour import Behaviour, Track
from cheesebench.errors import UnknownNameError
from cheesebench.interfaces import Ground, Scene, Tile
from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import ReferenceValue, Variant
from cheesebench.reports import behaviour_figures, drawing, figures
from cheesebench.reports.behaviour_figures import Lived, lived
from cheesebench.reports.figures import _groups
from cheesebench.statistics import summarise_run
from cheesebench.summaries import summarise_log
from tests.reports.conftest import plan_of, trials_of
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


def room() -> Ground:
    """A room with a landmark in the north, two holes, an area of four squares, and
    one of three, which is too small to be drawn.
    """
    kinds: dict[str, Any] = {"#": "wall", "A": "landmark"}
    tiles = tuple(
        tuple(Tile(kinds.get(glyph, "floor"), glyph) for glyph in row)
        for row in ("###A###", "#.....#", "#o...o#", "#.....#", "#######")
    )
    area, small = {(0, 3), (1, 3), (0, 4), (1, 4)}, {(2, 5), (3, 5), (4, 5)}
    zones = {"area": frozenset(area), "small": frozenset(small)}
    return Ground(Scene(tiles), -1, 2, zones, centre=(2.0, 4.0))


def walked(number: int, tracks: list[Track], **changes: object) -> Lived:
    plan = plan_of("a_room", **changes)
    [group] = _groups([summarise_run({}, [plan], trials_of(plan, 0.5))])
    return Lived(
        number, group, group.cells[0], Behaviour(plan, "session"), room(), tracks
    )


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
        "measures": behaviour_figures.compared_measures(lives),
        "strategies": behaviour_figures.strategies(lives),
        "occupancy": behaviour_figures.maps(lives, single=False),
        "tracks": behaviour_figures.maps(lives, single=True),
    }
    check_stored("figures.lives.txt", joined(drawn))


def test_what_maps_of_a_room_draw() -> None:
    """A track with a jump, a probe in which nothing pays, and a room that is turned."""
    goals = frozenset({(4, 4)})
    way = ((0, 3), (1, 3), (3, 5), (4, 5))
    tracks = [
        Track(0, 1, 0, False, way, goals),
        Track(0, 2, 4, True, way[:2], goals, 180),
        Track(1, 2, 5, True, way[2:], frozenset({(0, 4)}), 180),
        Track(0, 3, 8, None, way[1:3], goals),
    ]
    plans: tuple[dict[str, Any], ...] = (
        {"blocks": (("training", 2, 4, True), ("probe", 1, 2, False))},
        {},
    )
    lives = [
        walked(number, tracks, idle=(3,), trials=10, **plan)
        for number, plan in enumerate(plans)
    ]
    assert [list(one.panels) for one in lives] == [
        ["session 1", "session 2", "session 3, probe"],
        ["session 1", "session 2", "session 3, nothing pays"],
    ]
    assert walked(0, tracks[-1:], idle=(3,)).panels == {"session 3": 3}
    drawn = {
        "occupancy": behaviour_figures.maps(lives[:1], single=False),
        "tracks": behaviour_figures.maps(lives, single=True),
        "nothing": behaviour_figures.maps([walked(0, [])], single=True),
    }
    check_stored("figures.maps.txt", joined(drawn))


def test_what_the_figure_of_many_conditions_draws() -> None:
    graphs = [f"maps_{graph}" for graph in ("line", "star")]
    rates: dict[str, float | str] = {"path": 1.0, "edges": 0.0, "lost": "budget"}
    cells = [
        (plan_of(graph, variant=Variant.parse(f"{domain}-{name}"), subjects=1), rate)
        for graph in graphs
        for domain in ("rooms", "ties", "towns", "trees", "jobs")
        for name, rate in rates.items()
        if (graph, name) != ("maps_star", "edges")
    ]
    trials = [
        one
        for plan, rate in cells
        for one in (
            trials_of(plan, 0.0, missing=rate)
            if isinstance(rate, str)
            else trials_of(plan, rate)
        )
    ]
    groups = _groups([summarise_run({}, [plan for plan, _ in cells], trials)])
    drawn = {"conditions": behaviour_figures.conditions(groups)}
    check_stored("figures.conditions.txt", joined(drawn))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: behaviour_figures.took([], "latency"),
        lambda: behaviour_figures.compared_measures([]),
        lambda: behaviour_figures.conditions([]),
    ],
)
def test_nothing_is_drawn_of_nothing(draw: Callable[[], object]) -> None:
    assert draw() is None


def test_panels_that_are_left_over_are_not_seen() -> None:
    found = behaviour_figures._panels("abcde", str.upper)
    assert found is not None
    figure, panels = found
    assert [one.get_title() for one in panels.values()] == ["A", "B", "C", "D", "E"]
    assert [one.get_visible() for one in figure.axes] == [True] * 5 + [False] * 3


def three(rate: float = 0.5, **changes: object) -> list[drawing.Group]:
    """Two models in three dimensions; the second lacks the last one."""
    plans = [
        plan_of(name, model=model, dimension=f"{name} learning", **changes)
        for model, names in (
            ("walker", ("pool", "maze", "cage")),
            ("crawler", ("pool", "maze")),
        )
        for name in names
    ]
    trials = [one for plan in plans for one in trials_of(plan, rate)]
    return _groups([summarise_run({}, plans, trials)])


def test_what_profiles_and_curves_with_a_spread_draw() -> None:
    spread = ReferenceValue(value=0.8, curve=(0.4, 0.8), curve_sd=(0.1, 0.2))
    groups = three(reference=spread)
    nobody = {
        (number, cell.plan.protocol): Behaviour(cell.plan, "session")
        for number, group in enumerate(groups)
        for cell in group.cells
    }
    drawn = {
        "profile": figures.profile(groups),
        "profile of a model": figures.profile(three(reference=None)[:1]),
        "too few": figures.profile(groups[1:]),
        "curves": figures.curves(groups, nobody),
        "no animals": figures.curves(three(reference=None)[:1], nobody),
        "no sizes": figures.scaling(groups, {"walker": 7.0, "crawler": 7.0}),
    }
    check_stored("figures.profile.txt", joined(drawn))


def test_a_figure_is_as_wide_as_it_is_asked_to_be() -> None:
    figure = drawing.new(8.0, 6.0)
    text = figure.text(0, 0, "a", fontsize=10)
    sizes = list[object]()
    for width, across, high in ((6.0, 6.0, 4.5), (12.0, 12.0, 9.0), (1.0, 1.0, 2.0)):
        figures._resize(figure, width)
        sizes.append(text.get_fontsize())
        assert figure.get_size_inches() == pytest.approx((across, high))
    assert sizes == [7.5, 7.5, 3.75]


def test_an_unknown_figure_is_told_with_the_likely_one() -> None:
    with pytest.raises(UnknownNameError, match=r"figure 'forrest'.*forest"):
        figures.render_figures(
            [], installed_plugins(), {}, ("svg",), only=("profile", "forrest")
        )
