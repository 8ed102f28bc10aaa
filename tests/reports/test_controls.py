"""Controls are shown beside their plain cells, and affect no verdict."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest

from cheesebench.experiment.controls import control_cell
from cheesebench.plugin_manager import PluginManager
from cheesebench.records import (
    AbilityScale,
    CellPlan,
    LesionClaim,
    Measured,
    ReferenceValue,
    TrialRecord,
)
from cheesebench.reports import behaviour_figures, cells, html
from cheesebench.statistics import RunSummary, summarise_run

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]


def summary(make_plan: MakePlan, make_trials: MakeTrials) -> RunSummary:
    plain = make_plan("pool")
    control = control_cell(plain, "cue-off\x1b|")
    trials = make_trials(plain, 0.9) + [
        dataclasses.replace(record, variant=str(control.variant))
        for record in make_trials(control, 0.2)
    ]
    return summarise_run({"options": {}}, [plain, control], trials)


def test_the_paired_curve_is_in_text_and_markdown(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    run = summary(make_plan, make_trials)
    reporters = PluginManager().reporters
    for name in ("text", "markdown"):
        report = reporters[name].render(run)
        assert "cue-off" in report
        assert "\x1b" not in report
        assert "plain − control" in report
        assert "10 paired subjects" in " ".join(report.split())
        assert "more than chance explains" in report
        assert report.count("From first to last") == 1
    assert (
        "\\|"
        in reporters["markdown"].render(run).split("## Controls")[1].splitlines()[4]
    )


def test_without_a_curve_of_pass_rates_there_is_no_empty_table(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    run = summary(make_plan, make_trials)
    run = dataclasses.replace(
        run,
        controls=tuple(dataclasses.replace(one, points=()) for one in run.controls),
    )
    for name in ("text", "markdown"):
        report = PluginManager().reporters[name].render(run)
        assert "cue-off" in report
        assert "plain − control" not in report.split("## Controls")[-1]


def test_a_session_in_which_nothing_succeeds_ends_no_gain(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    """The same sessions as in the curves count: a probe is no last session."""
    plain = make_plan("pool", idle=(5,), estimand="last:8")
    control = control_cell(plain, "cue-off")
    trials = [
        dataclasses.replace(
            record,
            variant=str(cell.variant),
            success=record.session < (4 if cell is control else 5),
        )
        for cell in (plain, control)
        for record in make_trials(cell, 0.5)
    ]
    [result] = summarise_run({"options": {}}, [plain, control], trials).controls
    gains = [result.gain_plain, result.gain_control, result.gain_difference]
    assert [gain and gain.mean for gain in gains] == [0, -1, 1]
    assert [point.session for point in result.points] == [1, 2, 3, 4]
    judged = {point.session: point.judged for point in result.plain.curve}
    assert judged == {1: False, 2: False, 3: False, 4: True}, "8 of 20 trials"


def test_a_control_of_a_measure_is_in_its_unit(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    measured = Measured(name="latency", better="lower", range=(0.0, 100.0))
    animals = ReferenceValue(value=30.0, measured=measured)
    plain = make_plan("swim", reference=animals, margin=5.0, estimand="last:8")
    control = control_cell(plain, "cue-off")
    trials = [
        dataclasses.replace(
            record,
            variant=str(cell.variant),
            success=None,
            measures={"latency": 20.0 * record.session if cell is control else 20.0},
        )
        for cell in (plain, control)
        for record in make_trials(cell, 0.5)
    ]
    run = summarise_run({"options": {}}, [plain, control], trials)
    [result] = run.controls
    assert [one.plain for one in result.points] == pytest.approx([20] * 5)
    control_means = [one.control for one in result.points]
    assert control_means == pytest.approx([20, 40, 60, 80, 100])
    assert result.points[-1].difference == pytest.approx(-80)
    gains = [result.gain_plain, result.gain_control, result.gain_difference]
    assert [gain and gain.mean for gain in gains] == pytest.approx([0, 80, -80])
    row = cells.rows(result)[-1]
    assert (row[1], row[3], row[5]) == ("20", "100", "-80")
    said = " ".join(cells.sentences(result))
    assert "plain 0 (" in said
    assert "control +80 (" in said
    assert "points" not in said
    assert cells.control_numbers(result) == ("20", "90", "-70")
    page = html.render(run)
    shown = re.findall(
        r'<td class="n" data-label="(plain|control|difference)">([^<]*)</td>', page
    )
    assert shown == [("plain", "20"), ("control", "90"), ("difference", "-70")]


def test_a_doubt_about_a_control_is_none_about_its_plain_cell(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    plain = make_plan("pool")
    cells_of = {"": plain, ", control=cue-off": control_cell(plain, "cue-off")}
    run = summarise_run({"options": {}}, list(cells_of.values()), [])
    for named, doubted in cells_of.items():
        found = dataclasses.replace(
            run,
            cells=tuple(
                dataclasses.replace(one, warnings=("odd",) * (one.plan == doubted))
                for one in run.cells
            ),
        )
        where = f"walker in {plain.view}{named}"
        assert f"<li><b>pool</b> ({where}): odd</li>" in html.render(found)
        report = PluginManager().reporters["markdown"].render(found)
        assert f"- **pool** ({where}): odd" in report.splitlines()


def test_no_gate_and_no_profile_has_controls(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    run = summary(make_plan, make_trials)
    assert [model.variant for model in run.models] == [""]
    assert [cell.plan.control for cell in run.cells] == ["", "cue-off\x1b|"]
    assert run.cells[1].verdict is None
    assert [row["verdict"] for row in run.rows()] == ["INCONCLUSIVE", None]
    [result] = run.controls
    assert 0.5 < (result.comparison.difference or 0) < 0.9
    assert result.control is run.cells[1]


def test_the_figure_has_a_row_for_each_control(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    pytest.importorskip("matplotlib")
    run = summary(make_plan, make_trials)
    [result] = run.controls
    scale = AbilityScale(without=0.25, ideal=1.0)
    scaled = dataclasses.replace(
        result.plain, plan=dataclasses.replace(result.plain.plan, ability=scale)
    )
    lost, silent = (
        dataclasses.replace(
            result.control,
            plan=dataclasses.replace(
                result.control.plan,
                lesion=LesionClaim(words="without landmarks", at_most=at_most),
            ),
        )
        for at_most in (0.3, None)
    )
    # A construct without a claim about these subjects predicts no loss.
    other, without = (
        dataclasses.replace(
            run,
            controls=(dataclasses.replace(result, plain=scaled, control=control),),
        )
        for control in (lost, silent)
    )
    for runs, rows, bars in [
        ([run], 1, 0),
        ([run, other], 2, 1),
        ([other], 1, 1),
        ([without], 1, 0),
    ]:
        drawn = behaviour_figures.controls(runs)
        assert drawn is not None
        figure, said = drawn
        (axes,) = figure.axes
        assert len(axes.get_yticklabels()) == rows
        drawn_as = {str(line.get_marker()): line for line in axes.lines}
        at = {mark: list(line.get_xdata()) for mark, line in drawn_as.items()}  # type: ignore[arg-type]
        assert at["o"] == [result.plain.rate] * rows
        assert at["s"] == [result.control.rate] * rows
        assert at.get("|", []) == [0.25] * bars
        # Equal rates show both marks: the smaller one lies on the larger one.
        circle, square = drawn_as["o"], drawn_as["s"]
        assert circle.get_zorder() > square.get_zorder()
        assert circle.get_markersize() < square.get_markersize()
        assert said.count("91 % against ") == rows
        # The first row is at the top, and each kind of mark is named once.
        assert axes.get_ylim() == (rows - 0.5, -0.5)
        names = axes.get_legend_handles_labels()[1]
        assert (
            names
            == ["plain", "control", "highest rate without the ability"][
                : 2 + (bars > 0)
            ]
        )
        assert "\x1b" not in axes.get_yticklabels()[0].get_text()
    assert behaviour_figures.controls([]) is None
