"""Charts, comparisons and single trials as the page has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from cheesebench.behaviour import Behaviour, behaviour
from cheesebench.experiment.controls import control_cell
from cheesebench.experiment.log import RunLog
from cheesebench.plugin_manager import PluginManager
from cheesebench.records import ReferenceValue, Reported, Variant
from cheesebench.reports import html
from cheesebench.reports.cells import curves
from cheesebench.reports.player import Shelf
from cheesebench.statistics import RunSummary, summarise_run
from cheesebench.statistics.comparison import CountedRun, RunComparison, compare_runs
from cheesebench.statistics.summary import TAXONOMY
from tests.reports.conftest import plan_of, trials_of
from tests.reports.html.test_page import Outline
from tests.reports.html.test_trials import unpacked
from tests.statistics.test_comparison import EVEN, cell

Run = tuple[RunLog, PluginManager]


def summary(*plans: Any, rate: float = 0.6) -> RunSummary:
    trials = [one for plan in plans for one in trials_of(plan, rate)]
    return summarise_run({}, list(plans), trials)


def test_a_study_has_a_chart_of_its_settings() -> None:
    plans = [
        plan_of("pool", model=model, variant=Variant.parse(f"history={history}"))
        for model, history in (("walker", 1), ("walker", 8), ("crawler", 1))
    ]
    models = summary(*plans).models
    walker, later, crawler = (one.overall for one in models)
    assert walker is not None
    assert later is not None
    assert crawler is not None
    chart = html.settings(models)
    assert chart is not None
    assert (chart["kind"], chart["labels"]) == (
        "settings",
        ["ascii_2d, history=1", "ascii_2d, history=8"],
    )
    first, second = chart["models"]
    assert first == {
        "name": "walker",
        "rates": [round(100 * one.mean, 6) for one in (walker, later)],
        "low": [round(100 * one.interval[0], 6) for one in (walker, later)],
        "high": [round(100 * one.interval[1], 6) for one in (walker, later)],
    }
    assert second["rates"] == [round(100 * crawler.mean, 6), None]
    assert (second["low"][1], second["high"][1]) == (None, None)
    assert chart["text"].startswith("Mean pass rate by setting. walker: ascii_2d, ")
    assert chart["text"].endswith("history=8 no mean.")
    assert html.settings(models[:1]) is None


def test_strategies_are_shares_of_the_trials_of_a_session() -> None:
    counts = {2: Counter(direct=3, serial=1), 1: Counter(serial=4), 3: Counter(far=1)}
    lived = Behaviour(plan_of(), "session", strategies={"search": counts})
    assert html.stacked(lived, "search") == {
        "kind": "stacked",
        "labels": [1, 2, 3],
        "models": [
            {"name": "serial", "rates": [100.0, 25.0, 0.0]},
            {"name": "direct", "rates": [0.0, 75.0, 0.0]},
            {"name": "far", "rates": [0.0, 0.0, 100.0]},
        ],
    }
    drawn = list[Any]()

    def draw(chart: Any) -> int:
        drawn.append(chart)
        return 7

    [found] = html._strategies(lived, draw)
    assert (found["name"], found["chart"]) == ("search", 7)
    assert drawn == [html.stacked(lived, "search")]
    assert found["text"].startswith("serial 100 % at first, 0 % at last, direct 0 %")
    asked = Behaviour(plan_of(items=True), "session", strategies={"search": counts})
    assert html._strategies(asked, lambda _: 7) == []
    assert html._strategies(None, lambda _: 7) == []


def test_time_is_drawn_from_two_points_on() -> None:
    one = Behaviour(plan_of(), "session", {"latency": {0: {1: 4.0}}})
    assert html.took(one, "latency") is None
    curves = {"latency": {0: {1: 4.0, 3: 2.0}, 1: {1: 8.0}}}
    assert html.took(Behaviour(plan_of(), "session", curves), "latency") == {
        "kind": "took",
        "name": "latency",
        "labels": [1, 2, 3],
        "means": [6.0, None, 2.0],
        "subjects": [[4.0, None, 2.0], [8.0, None, None]],
        "rodent": [],
    }


@pytest.mark.parametrize(
    ("curve", "unit", "drawn"),
    [
        ((3.0, 2.5), "session", [3.0, 2.5, None]),
        ((3.0, 2.5), "2 trials", [2.0, None, 2.0]),
        ((), "session", [2.0, None, 2.0]),
    ],
)
def test_a_measure_is_drawn_beside_its_animals(
    curve: tuple[float, ...], unit: str, drawn: list[float | None]
) -> None:
    animals = ReferenceValue(value=2.0, curve=curve)
    lived = Behaviour(plan_of(), unit, {"licks": {0: {1: 4.0, 3: 2.0}}})
    chart = html.took(lived, "licks", animals)
    assert chart is not None
    assert chart["rodent"] == drawn


def test_a_second_measure_and_its_animals_are_on_the_page() -> None:
    plan = plan_of(
        reported=(Reported(measure="licks", animals=ReferenceValue(value=2.0)),)
    )
    [cell] = summary(plan).cells
    curves = {name: {0: {1: 4.0, 2: 2.0}} for name in ("licks", "latency")}
    lived = Behaviour(plan, "session", curves, units={})
    charts = html._took(cell, lived, lambda _: 0)
    assert [(one["name"], one["unit"], one["rodent"]) for one in charts] == [
        ("licks", "", [2.0, 2.0]),
        ("latency", "", []),
    ]
    assert charts[0]["text"] == "Mean licks 4 at first, 2 at last. Rodents: 2."


def test_a_latency_of_the_protocol_goes_before_ours() -> None:
    plan = plan_of()
    lives = [
        [replace(one, measures=own) for one in trials_of(plan, 0.5) if not one.subject]
        for own in ({"latency": 7.5}, {})
    ]
    means = []
    for life in lives:
        [cell] = summarise_run({}, [plan], life).cells
        lived = behaviour(cell, [life])
        means.append(set(lived.mean("latency").values()) == {7.5})
        assert ("latency" in lived.units) != means[-1]
    assert means == [True, False]


def test_titles_that_two_protocols_share_are_told_apart() -> None:
    base, edition = plan_of(title="Maze"), plan_of(title="Maze", protocol="maze@dark")
    other = plan_of(title="Field", protocol="field")
    titles = [one.plan.title for one in summary(base, edition, other).cells]
    assert titles == [f"Maze ({base.protocol})", "Maze (maze@dark)", "Field"]
    # Two models on one protocol share it as they should.
    both = summary(base, plan_of(title="Maze", model="other"))
    assert {one.plan.title for one in both.cells} == {"Maze"}


def test_code_in_notes_is_an_element() -> None:
    assert html._coded("see `a < b` & c") == "see <code>a &lt; b</code> &amp; c"


def test_the_spread_of_animals_lies_around_their_curve() -> None:
    animals = ReferenceValue(value=0.8, curve=(0.1, 0.5, 0.9), curve_sd=(0.2, 0.1, 0.3))
    [one] = summary(plan_of(reference=animals)).cells
    chart = html.curve(curves(one)[0])
    assert chart is not None
    assert chart["rodent"] == [10.0, 50.0, 90.0, None, None]
    assert chart["rodent_low"] == [0.0, 40.0, 60.0, None, None]
    assert chart["rodent_high"] == [30.0, 60.0, 100.0, None, None]
    [plain] = summary(plan_of()).cells
    told = html.curve(curves(plain)[0])
    assert told is not None
    assert told["rodent_low"] == told["rodent_high"] == []
    [single] = summary(plan_of(trials=1)).cells
    assert html.curve(curves(single)[0]) is None


def test_a_control_without_points_has_no_chart() -> None:
    plain = plan_of()
    [found] = summary(plain, control_cell(plain, "cue-off")).controls
    chart = html.pair(found)
    assert chart is not None
    assert chart["labels"] == [1, 2, 3, 4, 5]
    assert chart["plain"] == [round(100 * one.plain, 6) for one in found.points]
    assert chart["control"] == [round(100 * one.control, 6) for one in found.points]
    assert html.pair(replace(found, points=())) is None


def test_curves_of_several_units_are_not_drawn_together() -> None:
    first, second = (
        one
        for cell in summary(plan_of(), plan_of("maze")).cells
        for one in curves(cell)
    )
    assert html.together([first, second], ["one", "other"]) is not None
    other = [first, replace(second, unit="5 trials")]
    assert html.together(other, ["one", "other"]) is None
    short = [first, replace(second, points=second.points[:1])]
    assert html.together(short, ["one", "other"]) is None


def test_outcomes_are_shares_of_a_bar() -> None:
    [one] = summary(plan_of()).cells
    outcomes = {"success": 5, "timeout": 0, "odd": 15}
    first, second = html.outcome_bar(replace(one, outcomes=outcomes))
    assert first == html.Share(0, 0.0, html.WIDTH / 4, "success: 5 (25 %)")
    assert (second.x, second.width) == (html.WIDTH / 4, html.WIDTH * 3 / 4)
    assert second.text == "odd: 15 (75 %)"
    assert second.kind == len(TAXONOMY)


PLAN: dict[str, Any] = {"view": "ascii_2d", "model": "walker"}


def compared(missing: int = 0) -> RunComparison:
    """One protocol is worse, one undecided, one the same."""
    new = (
        cell([2] * 20, "worse", **PLAN),
        cell([4, 16] * 3, "open", missing=missing, **PLAN),
        cell(EVEN, "same", **PLAN),
    )
    old = (
        cell(EVEN, "worse", **PLAN),
        cell(EVEN[:6], "open", **PLAN),
        cell(EVEN, "same", **PLAN),
    )
    return compare_runs(
        CountedRun(name="new", seed=0, cells=new),
        CountedRun(name="old", seed=0, cells=old),
    )


def test_what_was_lost_is_linked_to_a_failed_trial() -> None:
    names = {
        plan_of(name).key: f"#{name}" for name in ("worse", "open", "same", "other")
    }
    failed: dict[Any, Any] = dict.fromkeys(names, (3, 5))
    links = html._lost(compared(), 0, names, failed)
    worse = {"title": "Maze", "link": "#worse", "subject": 3, "trial": 5}
    assert links == [worse, worse | {"link": "#open"}]
    assert html._lost(compared(missing=2), 0, names, failed) == [worse]
    failed[plan_of("worse").key] = None
    [link] = html._lost(compared(), 0, names, failed)
    assert link["link"] == "#open"


@pytest.mark.parametrize(
    ("gate", "kind"),
    [("GREEN", "pass"), ("RED", "fail"), ("INTERRUPTED", "error"), ("COULD NOT RUN", "error"), ("", "")],
)  # fmt: skip
def test_a_comparison_is_the_first_section(gate: str, kind: str) -> None:
    found = replace(
        compared(missing=2),
        gate=gate,
        decision="The run fails.",
        remedy="Run `pytest --lf` again.",
    )
    told = html._compared(found, {}, {})
    [model] = told["models"]
    assert (told["gate_kind"], told["gate"], model["kind"]) == (kind, gate, "worse")
    assert told["remedy"] == [
        ("Run ", False),
        ("pytest --lf", True),
        (" again.", False),
    ]
    assert model["reasons"][-1].startswith("12 trials of these subjects could not be")
    words = Outline(html.render(replace(summary(plan_of()), compared=found))).words
    for part in ("The run fails.", "pytest --lf", "new against old", "worse"):
        assert part in words
    [kept] = html._compared(compare_same(), {}, {})["models"]
    assert (kept["kind"], kept["reasons"]) == ("kept", [])


def compare_same() -> RunComparison:
    run = CountedRun(name="new", seed=0, cells=(cell(EVEN, **PLAN),))
    return compare_runs(run, replace(run, name="old"))


def data(page: str, kind: str) -> str:
    return next(text for _, a, text in Outline(page).raw if a.get("type") == kind)


def test_the_page_of_a_subject_has_its_trials_and_a_link_back(run: Run) -> None:
    log, plugins = run
    plan = log.plans()[0]
    page = html.render_subject(log, plugins, plan, 1, "../back")
    assert {a.get("href") for tag, a in Outline(page).tags if tag == "a"} >= {"../back"}
    assert "20250131-093000-ab12" in page
    shown = unpacked(data(page, "application/octet-stream"))["trials"]
    places = sorted((one["subject"], one["trial"]) for one in shown)
    assert places == [(1, trial) for trial in range(1, 9)]
    small = html.render_subject(log, plugins, plan, 1, largest=2000)
    assert len(small) < len(page)


def test_the_page_of_a_trial_has_only_this_trial(run: Run) -> None:
    log, plugins = run
    plan = log.plans()[0]
    page = html.render_trial(log, plugins, plan, 2, 3)
    [shown] = unpacked(data(page, "application/octet-stream"))["trials"]
    assert (shown["subject"], shown["trial"]) == (2, 4)
    assert "A little maze (walker in ascii_2d), subject 2, trial 4" in page
    shelf = Shelf(plan, problem="a\x00b")
    assert html.entry(shelf, "#")["problem"] == "a\ufffdb"
