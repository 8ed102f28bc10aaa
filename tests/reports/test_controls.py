"""Controls are shown beside their plain cells, and affect no verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from cheesebench.experiment.controls import control_cell
from cheesebench.plugin_manager import PluginManager
from cheesebench.records import CellPlan, TrialRecord
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


def test_no_gate_and_no_profile_has_controls(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    run = summary(make_plan, make_trials)
    assert [model.variant for model in run.models] == [""]
    assert [cell.plan.control for cell in run.cells] == ["", "cue-off\x1b|"]
    assert run.cells[1].verdict == "INCONCLUSIVE"
    [result] = run.controls
    assert 0.5 < (result.comparison.difference or 0) < 0.9
    assert result.control is run.cells[1]
