"""Figures show results properly: measures in panels of their own, animals by kind and
with their intervals, arenas with holes, zones and a legend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cheesebench.amounts import percent
from cheesebench.behaviour import Behaviour
from cheesebench.commands.common import load_protocol
from cheesebench.interfaces import Ground
from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import CellPlan, Measured, ReferenceValue, Reported
from cheesebench.reports import behaviour_figures, figures
from cheesebench.reports.cells import forest_labels
from cheesebench.reports.drawing import Group
from cheesebench.reports.html import (
    _ends,
    forest_axis,
    forest_row,
    render,
)
from cheesebench.statistics import RunSummary
from cheesebench.summaries import summarise_log
from tests.reports.html.conftest import make_log, maze

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MakePlan = Callable[..., CellPlan]
MakeRun = Callable[..., RunSummary]

pytest.importorskip("matplotlib")


def groups_of(summary: RunSummary) -> list[Group]:
    return [
        Group(one.model, one, [c for c in summary.cells if c.plan.model == one.model])
        for one in summary.models
    ]


def legend(axes: Iterable[Axes]) -> set[str]:
    return {
        label for one in axes for label in one.get_legend_handles_labels()[1] if label
    }


def test_a_measure_has_a_panel_and_animals_are_marked_by_kind(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    measured = Measured(name="latency", better="lower", range=(0.0, 100.0))
    plans = [
        make_plan("told"),
        make_plan(
            "seen",
            reference=ReferenceValue(value=0.7, sd=0.1, n_animals=20, source="x"),
        ),
        make_plan("like", reference=ReferenceValue(value=0.6, kind="analogy")),
        make_plan(
            "swim",
            margin=5.0,
            reference=ReferenceValue(
                value=30.0, sd=4.0, n_animals=16, measured=measured, source="x"
            ),
        ),
    ]
    drawn = figures.paradigms(groups_of(make_run([(plan, 0.5) for plan in plans])))
    assert drawn is not None
    figure, said = drawn
    rates, latency = figure.axes
    assert legend([rates]) == {
        "walker",
        "rodent, declared",
        "rodent, measured",
        "rodent, analogy",
    }
    assert latency.get_ylabel() == "latency"
    assert latency.get_ylim()[1] > 30
    assert [tick.get_text() for tick in rates.get_xticklabels()] == [
        "told",
        "seen",
        "like",
    ]
    # The error bars of the model, and the interval of the animals that have one.
    assert [len(axes.collections) for axes in (rates, latency)] == [2, 2]
    assert "swim latency" in said
    assert "30 (" in said
    assert rates.yaxis.get_major_formatter()(0.5, 0) == "50 %"


def test_sessions_are_whole_numbers(make_plan: MakePlan, make_run: MakeRun) -> None:
    plan = make_plan("pool", trials=8)
    nobody = {(0, "pool"): Behaviour(plan, "session")}
    drawn = figures.curves(groups_of(make_run([(plan, 0.5)])), nobody)
    assert drawn is not None
    (axes,) = drawn[0].axes
    assert all(float(tick).is_integer() for tick in axes.get_xticks())
    assert legend([axes]) == {"walker", "rodent, declared (by session)"}


def test_one_number_of_animals_is_drawn_over_the_judged_sessions(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    animals = ReferenceValue(value=0.8)
    plan = make_plan("pool", reference=animals, estimand="last:8")
    nobody = {(0, "pool"): Behaviour(plan, "session")}
    drawn = figures.curves(groups_of(make_run([(plan, 0.5)])), nobody)
    assert drawn is not None
    (axes,) = drawn[0].axes
    (line,) = [one for one in axes.lines if one.get_linestyle() == "--"]
    assert np.asarray(line.get_xdata()) == pytest.approx([3.7, 5.3])
    assert np.asarray(line.get_ydata()) == pytest.approx([0.8, 0.8])


@contextmanager
def _lived(tmp_path: Path) -> Iterator[list[behaviour_figures.Lived]]:
    log, plugins = make_log(tmp_path, [maze(tmp_path)])
    with log:
        summary = summarise_log(log)
        yield list(
            behaviour_figures.lived(groups_of(summary), [(summary, log)], plugins)
        )


@pytest.mark.parametrize("single", [True, False])
def test_a_model_is_a_pair_of_columns_and_colours_are_named(
    tmp_path: Path, single: bool
) -> None:
    with _lived(tmp_path) as lived:
        drawn = behaviour_figures.maps(lived, single=single)
    assert drawn is not None
    names = legend(drawn[0].axes)
    ends = {"passed", "failed", "neither"}
    assert names & ends if single else "most time" in names
    assert ("start" in names) == single
    assert len(drawn[0].axes) == 2 * len(lived)
    assert drawn[0].axes[0].get_title().startswith(lived[0].group.label)


def test_every_model_is_inside_the_axes(make_plan: MakePlan, make_run: MakeRun) -> None:
    """Including one that is drawn later and takes longer."""
    plan = make_plan("pool", trials=4)
    (group,) = groups_of(make_run([(plan, 0.5)]))
    lived = [
        behaviour_figures.Lived(
            number,
            group,
            group.cells[0],
            Behaviour(plan, "session", {"latency": {0: {1: slow, 2: slow / 2}}}),
            None,
            [],
        )
        for number, slow in enumerate((9.0, 36.0, 20.0))
    ]
    drawn = behaviour_figures.took(lived, "latency")
    assert drawn is not None
    (axes,) = drawn[0].axes
    low, high = axes.get_ylim()
    assert low == 0
    assert high >= 36
    assert len(axes.lines) == 6


def test_differences_stand_beside_the_margin_of_their_protocol(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    plans = [make_plan("far_one", margin=0.1), make_plan("near", margin=0.2)]
    cells = [(plans[0], 0.2), (plans[1], 0.8)]
    summary = make_run(cells)
    drawn = behaviour_figures.forest(groups_of(summary))
    assert drawn is not None
    figure, said = drawn
    (axes,) = figure.axes
    assert [one.get_text() for one in axes.get_yticklabels()] == ["far one", "near"]
    assert axes.get_ylim() == (1.5, -0.5)
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    margins = [float(np.asarray(line.get_xdata())[0]) for line in dashed]
    assert margins == pytest.approx([-10, -20])
    marked = [line for line in axes.lines if line.get_marker() not in ("None", "")]
    at = [
        (float(np.asarray(line.get_xdata())[0]), float(np.asarray(line.get_ydata())[0]))
        for line in marked
    ]
    differences = [100 * (cell.difference or 0) for cell in summary.cells]
    assert [x for x, _ in at] == pytest.approx(differences)
    assert [y for _, y in at] == [0, 1]
    # One name for all rows of a model.
    assert legend([axes]) == {"walker"}
    assert said.count("walker on ") == 2
    assert behaviour_figures.forest([]) is None
    twice = behaviour_figures.forest(groups_of(summary) * 2)
    assert twice is not None
    rows = {
        float(np.asarray(line.get_ydata())[0])
        for line in twice[0].axes[0].lines
        if line.get_marker() not in ("None", "")
    }
    assert rows == {-0.2, 0.2, 0.8, 1.2}


def test_shares_of_strategies_are_stacked_to_one(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    plan = make_plan("pool", trials=4)
    (group,) = groups_of(make_run([(plan, 0.5)]))
    counts = {1: Counter(serial=3, direct_way=1), 2: Counter(direct_way=4)}
    behaviour = Behaviour(plan, "session", strategies={"search": counts})
    lived = behaviour_figures.Lived(0, group, group.cells[0], behaviour, None, [])
    drawn = behaviour_figures.strategies([lived])
    assert drawn is not None
    figure, said = drawn
    (axes,) = figure.axes
    bars = {
        str(container.get_label()): [
            (bar.get_y(), bar.get_height()) for bar in container
        ]
        for container in axes.containers
    }
    assert bars == {
        "direct way": [(0, 0.25), (0, 1)],
        "serial": [(0.25, 0.75), (1, 0)],
    }
    assert "direct_way 62.5 %, serial 37.5 %" in said
    assert behaviour_figures.strategies([]) is None


def test_the_best_of_views_has_a_bar_for_each_protocol(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    cells = [
        (make_plan(name, view=view), rate)
        for name, rates in (("pool", (0.3, 0.7)), ("a_maze", (0.5, 0.2)))
        for view, rate in zip(("ascii_2d", "ascii_3d"), rates, strict=True)
    ]
    summary = make_run(cells)
    drawn = behaviour_figures.best_of_views([summary])
    assert drawn is not None
    figure, said = drawn
    (axes,) = figure.axes
    (bars,) = [
        one for one in axes.containers if len(one) == 2 and one.get_label() == "walker"
    ]
    rates = {(c.plan.protocol, c.plan.view): c.rate for c in summary.cells}
    best = [rates["pool", "ascii_3d"], rates["a_maze", "ascii_2d"]]
    assert [bar.get_height() for bar in bars] == best
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars] == pytest.approx([0, 1])
    assert [one.get_text() for one in axes.get_xticklabels()] == ["pool", "a maze"]
    assert (
        f"walker {percent(sum(map(float, filter(None, best))) / 2)}, cross-fitted "
        in said
    )
    alone = replace(summary.best_of_views[0], cross_fitted=None)
    drawn = behaviour_figures.best_of_views([replace(summary, best_of_views=(alone,))])
    assert drawn is not None
    assert "cross-fitted" not in drawn[1]
    assert behaviour_figures.best_of_views([]) is None


def test_arenas_have_their_holes_and_zones() -> None:
    plugins = installed_plugins()

    def ground(name: str) -> Ground:
        found = plugins.compile(load_protocol(name)).ground()
        assert found is not None
        return found

    barnes, pool = ground("barnes_maze"), ground("morris_water_maze")
    assert len(barnes.holes) == 18
    assert not pool.holes
    assert len(pool.zones["inner"]) == 21
    sides = list(behaviour_figures._outline(frozenset({(0, 0), (1, 0)})))
    assert len(sides) == 6
    assert len(behaviour_figures._alone(barnes.holes)) == 18
    assert behaviour_figures._alone(frozenset({(0, 0), (1, 0), (4, 4)})) == [(4, 4)]


def measured_lives(
    run: RunSummary,
) -> tuple[Group, list[behaviour_figures.Lived]]:
    """Return the group of a run, and a life of its first cell."""
    (group,) = groups_of(run)
    (cell,) = group.cells
    curves = {"alternation": {0: {1: 0.6, 2: 0.5}}}
    did = Behaviour(cell.plan, cell.curve_unit, curves)
    return group, [behaviour_figures.Lived(0, group, cell, did, None, [])]


@pytest.mark.parametrize(
    ("kind", "spread", "marked", "marker", "fill"),
    [
        ("measured", True, "measured", "D", "#444444"),
        ("declared", False, "declared", "D", "white"),
        ("analogy", False, "analogy", "^", "white"),
        ("analogy", True, "analogy", "^", "white"),
    ],
)
@pytest.mark.parametrize(
    ("changes", "span"),
    [
        ({"trials": 8, "estimand": "last:4"}, [1.7, 2.3]),
        # Without sessions, the axis has groups of trials.
        ({"trials": 4}, [0.7, 2.3]),
    ],
)
def test_one_number_of_animals_is_drawn_as_for_rates_beside_a_measure(
    make_plan: MakePlan, make_run: MakeRun, kind: Any, spread: bool, marked: str, marker: str, fill: str,
    changes: Any, span: list[float],
) -> None:  # fmt: skip
    measured = Measured(name="alternation", range=(0.0, 1.0))
    animals = ReferenceValue(value=0.7, measured=measured, kind=kind)
    if spread:
        animals = replace(animals, sd=0.1, n_animals=10)
    plan = make_plan("arms", reference=animals, **changes)
    _, lived = measured_lives(make_run([(plan, 0.5)]))
    drawn = behaviour_figures.compared_measures(lived)
    assert drawn is not None
    (axes,) = drawn[0].axes
    assert legend([axes]) == {"walker", f"rodent, {marked}"}
    (line,) = [one for one in axes.lines if one.get_linestyle() == "--"]
    assert np.asarray(line.get_xdata()) == pytest.approx(span)
    (mark,) = [one for one in axes.lines if one.get_label() == f"rodent, {marked}"]
    assert (mark.get_marker(), mark.get_color()) == (marker, fill)
    assert np.asarray(mark.get_xdata()) == pytest.approx(span[1:])
    assert len(axes.collections) == spread, "the interval of the animals"


def test_a_verdict_on_a_measure_has_the_curve_of_that_measure(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    measured = Measured(name="alternation", range=(0.0, 1.0))
    animals = ReferenceValue(value=0.7, measured=measured, curve=(0.72, 0.66))
    plan = make_plan("arms", trials=8, reference=animals)
    group, lived = measured_lives(make_run([(plan, 0.5)]))
    drawn = behaviour_figures.compared_measures(lived)
    assert drawn is not None
    figure, said = drawn
    (axes,) = figure.axes
    assert legend([axes]) == {"walker", "rodent, declared (by session)"}
    assert axes.get_title() == "arms, alternation"
    assert "walker on arms, alternation: 0.6, 0.5. Rodents: arms, alternation 0.7 (declared)." in said  # fmt: skip
    did = lived[0].behaviour
    # The pass rate of such a protocol is nothing that is judged.
    assert figures.curves([group], {(0, "arms"): did}) is None


def test_figures_have_the_printed_sign_where_less_is_better(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    measured = Measured(name="latency", better="lower", range=(0.0, 100.0))
    animals = ReferenceValue(value=30.0, measured=measured)
    plan = make_plan("swim", reference=animals, margin=5.0)
    summary = make_run([(plan, 0.5)])
    (cell,) = summary.cells
    assert cell.difference is not None
    assert cell.difference > 5, "the model is slower than the animals"
    drawn = behaviour_figures.forest(groups_of(summary))
    assert drawn is not None
    figure, said = drawn
    (axes,) = figure.axes
    (marked,) = (one for one in axes.lines if one.get_marker() not in ("None", ""))
    (dashed,) = (one for one in axes.lines if one.get_linestyle() == "--")
    ends = [float(np.asarray(one.get_xdata())[0]) for one in (marked, dashed)]
    assert ends == pytest.approx([cell.difference, 5])
    assert "right of 0 where less is better" in axes.get_xlabel()
    assert f"swim +{cell.difference:.3g} (" in said
    assert "(less is better)" in said
    axis = forest_axis([cell])
    row = forest_row(cell, axis)
    assert row.difference is not None
    assert row.zero == row.margin[0] < row.margin[1] < row.difference
    assert row.text.endswith("margin +5, less is better")
    page = render(summary)
    # No row is a rate: the legend has one direction, and the axis the measure's unit.
    legend = "margin: where less is better, PASS lies left of its right edge, FAIL right of it."
    assert legend in page
    assert forest_labels([cell], (-0.4, 0.2)) == ("difference, latency", "-40", "+20")
    assert "<span>difference, latency</span>" in page
    assert "difference, points" not in page


def test_the_axis_of_a_measure_is_in_its_unit(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    measured = Measured(name="presses", better="lower", range=(0.0, 12.0))
    animals = ReferenceValue(value=3.8, measured=measured)
    counted = make_plan("lever", reference=animals, margin=1.0)
    summary = make_run([(counted, 0.5), (make_plan("pool"), 0.5)])
    axis = (-0.4, 0.2)
    by_name = {cell.plan.protocol: cell for cell in summary.cells}
    lever, pool = by_name["lever"], by_name["pool"]
    assert forest_labels([lever], axis) == ("difference, presses", "-4.8", "+2.4")
    assert forest_labels([pool], axis) == ("difference, points", "-40", "+20")
    assert forest_labels([lever, pool], axis) == (
        "difference, points (measures: % of range)", "-40", "+20",
    )  # fmt: skip
    assert "left of it. Where less is better, PASS lies" in render(summary)


def test_bars_have_their_single_subjects_as_dots(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    groups = groups_of(make_run([(make_plan("pool"), 0.5)]))
    [group] = groups
    drawn = figures.paradigms(groups, {(group.label, "pool"): [0.0, 0.25, 1.0]})
    assert drawn is not None
    [axes], alt = drawn[0].axes, drawn[1]
    [dots] = [line for line in axes.lines if line.get_label() == "single subject"]
    assert str(dots.get_ydata()) == "[0.   0.25 1.  ]"
    assert "Dots are single subjects." in alt


def test_a_chart_in_words_skips_points_without_a_mean() -> None:
    said = _ends("Mean latency", [None, 3.0, 5.0, None])
    assert said == "Mean latency 3 at first, 5 at last."


def test_the_margin_of_a_comparison_with_chance_lies_above_chance(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    plan = make_plan("pool", against="chance", margin=0.1, chance=0.25)
    summary = make_run([(plan, 0.5)])
    (cell,) = summary.cells
    drawn = behaviour_figures.forest(groups_of(summary))
    assert drawn is not None
    figure, said = drawn
    (dashed,) = (one for one in figure.axes[0].lines if one.get_linestyle() == "--")
    assert float(np.asarray(dashed.get_xdata())[0]) == pytest.approx(10)
    assert figure.axes[0].get_xlabel().startswith("difference from chance in points")
    assert said.startswith("Differences from chance with their bounds.")
    row = forest_row(cell, forest_axis([cell]))
    assert row.zero == row.margin[0] < row.margin[1]
    page = render(summary)
    assert "FAIL left of its right edge." in page
    assert "> at chance</span>" in page


def test_a_measure_beside_the_verdict_is_drawn_with_its_animals(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    animals = ReferenceValue(value=0.7, curve=(0.72, 0.66))
    found = Reported(measure="alternation", animals=animals)
    plan = make_plan("arms", trials=8, reported=(found,))
    _, lived = measured_lives(make_run([(plan, 0.5)]))
    drawn = behaviour_figures.compared_measures(lived)
    assert drawn is not None
    assert legend(drawn[0].axes) == {"walker", "rodent, declared (by session)"}
    assert "Rodents: arms, alternation 0.7 (declared)." in drawn[1]
