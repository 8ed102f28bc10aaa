"""Every report says whether the construct was validated, and which lesions contradict
it.
"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable
from typing import Any

import pytest

from cheesebench.plugin_manager import PluginManager
from cheesebench.pytest_session.ci import case_properties
from cheesebench.records import (
    AbilityScale,
    CellPlan,
    Construct,
    LesionClaim,
    Measured,
    ReferenceValue,
    TrialRecord,
    Variant,
)
from cheesebench.statistics import RunSummary, summarise_run

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]
CONSTRUCT = Construct(
    name="spatial memory",
    abolished_by=(("hide=landmarks", 0.25), ("blind", 0.2)),
    leaves=("amnesia=trial", 1.0),
)
SENTENCE = "trials succeed without landmarks, but at most 25 % should: this is not spatial memory."


def run_of(make_plan: MakePlan, make_trials: MakeTrials) -> RunSummary:
    """A validated protocol with a lesion that does not abolish, one that is only
    declared, one without a construct.
    """
    plain = make_plan(
        "pool", construct=dataclasses.replace(CONSTRUCT, status="validated")
    )
    claim = LesionClaim(words="without landmarks", at_most=0.25)
    control = dataclasses.replace(
        plain, variant=Variant(control="hide=landmarks"), claims=False, lesion=claim
    )
    bounded = dataclasses.replace(
        CONSTRUCT, leaves=("pose-only", 0.5), leaves_at_most=True
    )
    others = [
        make_plan("ring", construct=CONSTRUCT),
        make_plan("cage"),
        make_plan("well", construct=bounded),
    ]
    plans = [plain, control, *others]
    trials = [
        dataclasses.replace(record, variant=str(plan.variant))
        for plan in plans
        for record in make_trials(plan, 0.9)
    ]
    return summarise_run({"options": {}}, plans, trials)


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_reports_say_what_was_validated(
    make_plan: MakePlan, make_trials: MakeTrials, name: str
) -> None:
    report = " ".join(
        PluginManager().reporters[name].render(run_of(make_plan, make_trials)).split()
    )
    for said in (
        "validated",
        "construct not measured",
        "not validated",
        "contradicted by a lesion",
    ):
        assert said in report
    assert report.count(SENTENCE) >= 2, "beside the verdict, and with the control"
    if name != "text":
        assert (
            "which must be abolished by lesions: hide=landmarks (may leave at most 25 %), blind (may leave at most 20 %)"
            in report
        )
        assert (
            "among the lesions that the construct does not name, amnesia=trial leaves 100 %"
            in report
        )
        assert "the construct does not name, pose-only leaves at most 50 %" in report
        assert "names no lesions that can show what it measures" in report


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_a_pass_says_what_it_does_not_exclude(
    make_plan: MakePlan, make_trials: MakeTrials, name: str
) -> None:
    construct = dataclasses.replace(CONSTRUCT, passed_by=("one bit of memory", 0.75))
    animals = ReferenceValue(value=0.7, source="x", training="training: animals 6 + 4")
    plan = make_plan("pool", construct=construct, reference=animals, margin=0.1)

    def report(rate: float) -> str:
        run = summarise_run({"options": {}}, [plan], make_trials(plan, rate))
        text = PluginManager().reporters[name].render(run)
        return html.unescape(" ".join(text.split()))

    said = "A PASS does not exclude a subject with one bit of memory: the best one found reaches 75 %, and PASS begins at 60 %"
    assert said in report(1.0)
    assert said not in report(0.0)
    assert "animals 6 + 4" in report(0.0)


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_what_a_lesioned_subject_reaches_has_its_unit(
    make_plan: MakePlan, make_trials: MakeTrials, name: str
) -> None:
    construct = dataclasses.replace(CONSTRUCT, status="failed", failed=("blind", 0.91))
    measured = Measured(name="alternation", better="higher", range=(0.0, 1.0))
    animals = ReferenceValue(value=0.66, sd=0.05, n_animals=20, measured=measured)
    plan = make_plan("pool", construct=construct, reference=animals, margin=0.2)
    trials = [
        dataclasses.replace(one, measures={"alternation": 0.8})
        for one in make_trials(plan, 1.0)
    ]
    run = summarise_run({"options": {}}, [plan], trials)
    report = html.unescape(
        " ".join(PluginManager().reporters[name].render(run).split())
    )
    assert "the lesion blind reaches a mean alternation of 0.91" in report


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_a_pass_whose_construct_fails_its_audit_is_qualified(
    make_plan: MakePlan, make_trials: MakeTrials, name: str
) -> None:
    construct = dataclasses.replace(CONSTRUCT, status="failed", failed=("blind", 0.875))
    animals = ReferenceValue(value=0.7, source="x")
    plan = make_plan("pool", construct=construct, reference=animals, margin=0.1)
    run = summarise_run({"options": {}}, [plan], make_trials(plan, 1.0))
    report = html.unescape(
        " ".join(PluginManager().reporters[name].render(run).split())
    )
    assert "The protocol passed, but its construct fails its audit." in report
    said = f"This PASS does not show {CONSTRUCT.name}: in the audit, a subject with the lesion blind reaches 87.5 %"
    assert said in report


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_numbers_that_are_not_of_animals_in_this_task_are_told_apart(
    make_plan: MakePlan, make_trials: MakeTrials, name: str
) -> None:
    """A declared number, and one of another task, never count as animals."""
    rats = ReferenceValue(value=0.8, sd=0.04, n_animals=10, kind="measured")
    plans = [
        dataclasses.replace(
            make_plan(label, reference=animals, margin=0.3),
            ability=AbilityScale(without=0.5, ideal=1.0),
        )
        for label, animals in {
            "pool": rats,
            "ring": dataclasses.replace(rats, kind="analogy"),
            "star": ReferenceValue(value=0.8),
        }.items()
    ]
    trials = [one for plan in plans for one in make_trials(plan, 0.95)]
    run = summarise_run({"options": {}}, plans, trials)
    report = html.unescape(
        " ".join(PluginManager().reporters[name].render(run).split())
    )
    assert (
        "PASS: 1 of 1 against animals of which the same or nearly the same event was counted, 2 of 2"
        in report
    )
    assert "(rodent 0.60, 1 declared; PASS from" in report
    assert name != "text" or report.count("(80 %)") == 2


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_a_construct_that_its_lesions_cannot_show_is_not_validated(
    make_plan: MakePlan, make_trials: MakeTrials, name: str
) -> None:
    plan = make_plan(
        "pool", construct=dataclasses.replace(CONSTRUCT, doubt="'blind' may leave 1.")
    )
    run = summarise_run({"options": {}}, [plan], make_trials(plan, 0.9))
    report = html.unescape(
        " ".join(PluginManager().reporters[name].render(run).split())
    )
    assert "not validated" in report
    assert "construct not measured" not in report
    assert "'blind' may leave 1" in report or name == "text"
    assert (
        dict(case_properties(run.cells[0]))["cheesebench.validity"] == "not validated"
    )


@pytest.mark.parametrize("name", ["text", "markdown", "html"])
def test_an_audit_whose_other_rules_failed_is_not_called_validated(
    make_plan: MakePlan, make_trials: MakeTrials, name: str
) -> None:
    construct = dataclasses.replace(
        CONSTRUCT, status="validated", also_failed=("declared animal",)
    )
    plan = make_plan("pool", construct=construct)
    run = summarise_run({"options": {}}, [plan], make_trials(plan, 0.9))
    report = html.unescape(
        " ".join(PluginManager().reporters[name].render(run).split())
    )
    assert "lesions validated, audit failed" in report
    assert "The audit failed: declared animal" in report or name == "text"


def test_a_badge_without_the_part_memory_says_so(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    construct = dataclasses.replace(
        CONSTRUCT, status="validated", is_memory_searched=False
    )
    plan = make_plan("pool", construct=construct)
    run = summarise_run({"options": {}}, [plan], make_trials(plan, 0.9))
    for name in ("text", "markdown", "html"):
        report = " ".join(PluginManager().reporters[name].render(run).split())
        assert "validated, memory not searched" in report


def test_the_json_report_has_it_too(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    cells: Any = run_of(make_plan, make_trials).to_dict()["cells"]
    first, control, declared, bare, _ = cells
    assert first["plan"]["construct"]["status"] == "validated"
    assert first["contradicted"] == control["contradicted"]
    assert declared["plan"]["construct"]["status"] == "declared"
    assert bare["plan"]["construct"] is None


def test_junit_has_properties_for_programs(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    first, control, declared, bare, _ = (
        {
            name.removeprefix("cheesebench."): value
            for name, value in case_properties(cell)
        }
        for cell in run_of(make_plan, make_trials).cells
    )
    assert (first["construct"], first["validity"]) == ("spatial memory", "validated")
    assert first["abolished_by"] == "hide=landmarks 0.25,blind 0.2"
    assert (control["lesion"], control["lesion_at_most"]) == ("hide=landmarks", "0.25")
    assert control["contradicted"].endswith(SENTENCE)
    assert declared["validity"] == "declared"
    assert bare["validity"] == "not validated"
    assert "construct" not in bare


def test_the_animals_spread_is_drawn(
    make_plan: MakePlan, make_trials: MakeTrials
) -> None:
    mice = ReferenceValue(
        value=0.66,
        sd=0.13,
        n_animals=35,
        curve=(0.2, 0.6, 0.7, 0.8, 0.9),
        curve_sd=(0.25,) * 5,
    )
    plan = make_plan("pool", reference=mice)
    run = summarise_run({"options": {}}, [plan], make_trials(plan, 0.9))
    reporters = PluginManager().reporters
    assert "± 25 25 25 25 25 (SD between animals)" in reporters["markdown"].render(run)
    page = reporters["html"].render(run)
    for report in (page, reporters["markdown"].render(run)):
        assert "66 %; 35 animals, SD 13 %" in report
    assert "standard deviation between animals" in page
    assert '"rodent_low": [0.0, 35.0' in page or '"rodent_low":[0.0,35.0' in page
    assert "20&nbsp;% ± 25&nbsp;% (SD)" in page
