"""Numbers beside one another are comparable: means over the same protocols, one colour
for each outcome, finished cells.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import cheesebench.reports
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import claim
from cheesebench.records import (
    AbilityScale,
    CellPlan,
    ReferenceValue,
    Reported,
    Variant,
)
from cheesebench.reports import cells, figures, html, markdown, text
from cheesebench.reports.matrix import grid, matrix
from cheesebench.statistics import RunSummary
from cheesebench.statistics.summary import TAXONOMY
from cheesebench.summaries import summarise_log
from tests.reports.html.conftest import make_log, maze

MakePlan = Callable[..., CellPlan]
MakeRun = Callable[..., RunSummary]


def test_means_are_compared_over_the_same_protocols_or_not_at_all(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    rated = [(make_plan("pool", chance=0.1), 0.5), (make_plan("cage", chance=0.3), 0.5)]
    unrated = make_plan("maze", reference=rated[0][0].reference, chance=1.0)
    summary = make_run([*rated, (unrated, "infrastructure")])
    own = cells.cells_of(summary, summary.models[0])
    assert cells.averaged_over(own) == "over 2 of 3 protocols"
    assert "Mean pass rate over 2 of 3 protocols" in markdown.render(summary)
    assert "mean pass rate over 2 of 3 protocols" in html.render(summary)
    mean = matrix(summary).rows[0].mean_shown
    assert mean.endswith(" % (2 of 3)"), "beside it stand means over all three"
    assert "(2 of 3)" in markdown.render(summary)
    bare = make_run([*rated, (make_plan("maze", reference=None), 0.5)])
    assert cells.rodent_mean(cells.cells_of(bare, bare.models[0])) is None


def test_the_mean_of_a_dialogue_is_over_cells_of_one_protocol(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    asked, missing = (
        dataclasses.replace(
            make_plan("graph", chance=0.1), variant=Variant(condition=name)
        )
        for name in ("rooms-path", "rooms-groups")
    )
    summary = make_run([(asked, 0.5), (missing, "infrastructure")])
    own = cells.cells_of(summary, summary.models[0])
    assert cells.averaged_over(own) == "over 1 of 2 cells"


def test_every_outcome_has_a_colour_of_its_own() -> None:
    style = (Path(cheesebench.reports.__path__[0]) / "static" / "page.css").read_text(
        encoding="utf-8"
    )
    for scheme in re.findall(r"--kind-0: [^\n]*", style):
        colours = dict(re.findall(r"--kind-(\d+): (#\w+)", scheme))
        # One more colour for all other outcomes.
        assert set(map(int, colours)) == set(range(len(TAXONOMY) + 1))
        assert len(set(colours.values())) == len(colours)
    assert set(map(int, re.findall(r"\.kind-(\d+) { fill", style))) == set(
        range(len(TAXONOMY) + 1)
    )


def test_a_running_run_is_reported_by_its_finished_cells(tmp_path: Path) -> None:
    log, plugins = make_log(tmp_path, [maze(tmp_path)])
    with log, claim(log.path):
        whole = len(log.plans())
        more = dataclasses.replace(log.plans()[0], model="later")
        log.add_cells([(more, maze(tmp_path))])
        summary = summarise_log(log)
        assert [cell.plan.protocol for cell in summary.cells] == [
            plan.protocol for plan in log.plans()[:whole]
        ]
        for report in (
            text.render(summary),
            markdown.render(summary),
            html.render_run(summary, log, plugins),
        ):
            assert f"In progress: {whole} of {whole + 1} cells finished" in report
            assert "? INCONCLUSIVE" in report
            assert "% of trials missing" not in report
    with RunLog.open_read_only(log.path) as again:
        assert "in_progress" not in summarise_log(again).manifest


@pytest.mark.filterwarnings("error")
def test_ten_models_have_ten_colours_and_curves_in_every_format(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    models = [f"model-{number}" for number in range(10)]
    logs = [
        make_log(tmp_path / model, [maze(tmp_path, "pool")], model) for model in models
    ]
    runs = [(summarise_log(log), log) for log, _ in logs]
    plugins = logs[0][1]
    files = figures.render_figures(runs, plugins, {}, ("svg", "pdf"))
    for name in (
        "forest",
        "paradigms",
        "curves",
        "latency",
        "path_length",
        "occupancy",
        "tracks",
    ):
        assert {f"{name}.svg", f"{name}.pdf"} <= set(files)
    bars = set(re.findall(r"fill: (#\w+)", files["paradigms.svg"].decode())) - {
        "#ffffff",
        "#000000",
    }
    assert len(bars) >= len(models)
    assert all(model in files["curves.svg"].decode() for model in models)
    assert b"model-9 on pool: " in files["figures.md"], "the alt text has the rates"
    assert files == figures.render_figures(runs, plugins, {}, ("svg", "pdf")), (
        "the same runs give the same files"
    )
    for log, _ in logs:
        log.close()


def test_hundreds_of_conditions_are_a_grid(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    names = [f"maps_{graph}" for graph in ("line", "star", "tree")]
    plans = [
        make_plan(
            name, variant=Variant.parse(f"{domain}-{condition}"), subjects=1, trials=2
        )
        for name in names
        for domain in ("rooms", "ties")
        for condition in ("path", "detour", "reward", "shortcut", "edges")
    ]
    report = text.render(
        make_run(
            [(plan, 1.0 if "path" in str(plan.variant) else 0.0) for plan in plans]
        )
    )
    assert len(report.splitlines()) < 20, report
    assert re.search(r"^ +line +star +tree$", report, re.MULTILINE)
    assert re.search(r"^path +\S 100 % +\S 100 % +\S 100 %$", report, re.MULTILINE)


def test_a_grid_has_a_row_for_each_condition_at_each_temperature(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    plans = [
        make_plan(
            "maps_line",
            variant=Variant.parse(f"{domain}-{condition}-t{temperature}"),
            subjects=1,
            trials=2,
        )
        for domain in ("rooms", "ties")
        for condition in ("path", "detour", "reward", "shortcut", "edges")
        for temperature in ("0", "0.5", "1e-05")
    ]
    run = make_run(
        [(plan, 1.0 if "path" in str(plan.variant) else 0.0) for plan in plans]
    )
    found = grid(run.cells)
    assert found is not None
    assert found.conditions[:3] == ("path-t0", "path-t0.5", "path-t1e-05")
    assert [row[0] and row[0].rate for row in found.rows] == [1.0] * 3 + [0.0] * 12


def test_a_mean_ability_is_over_the_same_protocols_in_every_row(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    """A model that lacks a protocol has none, the animals have that of the others, and
    no rate stands in this column.
    """
    scale = AbilityScale(without=0.25, ideal=1.0)
    plans = [
        make_plan(protocol, model=model, ability=scale)
        for model, protocols in (("walker", ("pool", "cage")), ("jumper", ("pool",)))
        for protocol in protocols
    ]
    found = matrix(make_run([(plan, 0.9) for plan in plans]))
    shown = {row.name: row.mean_shown for row in found.rows}
    assert found.mean_name == "mean ability"
    assert shown["jumper"] == cells.NOTHING
    assert [row.name for row in found.rows] == ["walker", "jumper", "rodent"]
    assert float(shown["rodent"]) == pytest.approx((0.8 - 0.25) / 0.75, abs=0.01)
    assert (
        "over 2 protocols; a model that lacks one of them has no mean."
        in found.notes[0]
    )
    [unproved] = [one for one in found.notes if "alidated" in one]
    assert unproved.startswith(
        "Not validated (pool, cage): the protocol names no lesions"
    )


def test_models_without_the_abilities_are_ranked_by_their_rates(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    scale = AbilityScale(without=0.5, ideal=1.0)
    rates = {"waiter": 0.0, "crawler": 0.3, "walker": 0.9}
    found = matrix(
        make_run(
            [
                (make_plan(protocol, model=model, ability=scale), rate)
                for model, rate in rates.items()
                for protocol in ("pool", "cage")
            ]
        )
    )
    assert [(row.name, row.mean_shown) for row in found.rows[:3]] == [
        ("walker", "0.82"),
        ("crawler", "0.00"),
        ("waiter", "0.00"),
    ]


def test_measures_have_the_animals_value_beside_the_models(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    animals = ReferenceValue(value=35.0, sd=8.0, n_animals=12, kind="measured")
    reported = (
        Reported(measure="latency", animals=animals),
        Reported(
            measure="latency",
            animals=ReferenceValue(value=50.0),
            where="block == probe",
            sessions=(2,),
        ),
    )
    summary = make_run([(make_plan(reported=reported), 0.5)])
    said = "35 ± 8 (n = 12); 50 (declared, session 2, where block == probe)"
    assert f" {said} " in markdown.render(summary).replace("\\", "")
    assert f'<td class="n">{said}</td>' in html.render(summary)
    assert re.search(
        rf"pool: latency [\d.]+ ± [\d.]+; rodent {re.escape(said)}",
        " ".join(text.render(summary).split()),
    )
    sources = markdown.render(summary).split("### Sources")[1]
    assert "latency 35; 12 animals, SD 8" in sources


def test_a_value_of_a_block_that_is_not_judged_is_in_its_row(
    make_plan: MakePlan, make_run: MakeRun
) -> None:
    blocks = (("trained", 4, 4, True), ("probe", 1, 4, True))
    found = Reported(
        measure="latency", animals=ReferenceValue(value=9.0), sessions=(5,)
    )
    plan = make_plan(reported=(found,), blocks=blocks)
    (cell,) = make_run([(plan, 0.5)]).cells
    (latency,) = cell.measures
    elsewhere = dataclasses.replace(latency, name="latency in probe")
    cell = dataclasses.replace(cell, measures=(latency, elsewhere))
    assert cells.animals_of(cell, "latency") == cells.NOTHING
    assert cells.animals_of(cell, "latency in probe") == "9 (declared, session 5)"
