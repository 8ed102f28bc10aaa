"""A run beside a published model: like with like, or refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cheesebench.errors import UnknownNameError
from cheesebench.experiment.records import CellPlan, TrialRecord, Variant
from cheesebench.statistics import summarise_run
from cheesebench.statistics.against_published import check_against, difference_limits, steps_of, trials_of, why_not
from cheesebench.statistics.published import published

MakePlan = Callable[..., CellPlan]
MakeLife = Callable[..., list[TrialRecord]]
NAME = "gpt-5.2"
AS_PUBLISHED = {"history": "5", "actions": 8, "temperature": 0.7, "prompt": "default"}


@pytest.fixture
def alike(plan: MakePlan) -> CellPlan:
    made = plan(protocol="t_maze@paper", view="ascii_2d", design="paper", subjects=1)
    return replace(made, settings=AS_PUBLISHED)


def test_what_is_alike_is_compared(alike: CellPlan) -> None:
    assert why_not(NAME, alike, 200) == ""
    assert why_not(NAME, replace(alike, settings={}), 200) == "", "programs have no settings"
    assert why_not("qwen2.5-vl-7b", alike, 500) == ""


@pytest.mark.parametrize(
    ("changes", "steps", "reason"),
    [
        ({"protocol": "t_maze"}, 200, "other rules"),
        ({"protocol": "hall"}, 200, "other rules"),
        ({"view": "topdown_2d"}, 200, "not in 'topdown_2d'"),
        ({"design": "cohort"}, 200, "Run --design paper"),
        ({"subjects": 4}, 200, "as one subject; this run has 4"),
        ({"variant": Variant(control="reward-shuffled")}, 200, "controls"),
        ({}, 500, "at most 200 steps"),
        ({"settings": {**AS_PUBLISHED, "history": "3-7"}}, 200, "--history 5; this run has 3-7"),
        ({"settings": {**AS_PUBLISHED, "temperature": 0}}, 200, "--temperature 0.7; this run has 0"),
        ({"settings": {**AS_PUBLISHED, "prompt": "cot"}}, 200, "--prompt default; this run has cot"),
        (
            {"settings": {**AS_PUBLISHED, "prompt": "You act.\nReply."}},
            200,
            "default; this run has a prompt of its own.",
        ),
        ({"settings": {**AS_PUBLISHED, "learnings": 0}}, 200, "learnings=500; this run has 0"),
        ({"settings": {**AS_PUBLISHED, "observations": "changes"}}, 200, "observations=full; this run has changes"),
    ],
)
def test_what_is_not_is_refused_with_the_reason(
    alike: CellPlan, changes: dict[str, object], steps: int, reason: str
) -> None:
    assert reason in why_not(NAME, replace(alike, **changes), steps)  # type: ignore[arg-type]


def test_a_model_that_nobody_published_is_asked_about() -> None:
    for name in published()["models"]:
        check_against(name)
    with pytest.raises(UnknownNameError, match=r"Did you mean 'gpt-5\.2'\?"):
        check_against("gpt-5.3")
    with pytest.raises(UnknownNameError, match="Known: claude"):
        check_against("somebody")


def test_every_published_model_says_its_trials() -> None:
    for name, model in published()["models"].items():
        each = trials_of(model, 40)
        assert each == (40 if steps_of(model) is None else model["trials"] / 27), name


@pytest.mark.parametrize(("name", "trials"), [("gpt-5.2", 10), ("qwen2.5-vl-7b", 40)])
def test_as_many_trials_are_compared_as_were_published(alike: CellPlan, life: MakeLife, name: str, trials: int) -> None:
    plan = replace(alike, trials=40, memory="life")
    records = [
        replace(record, protocol=plan.protocol, view=plan.view, model=plan.model)
        for record in life(0, "-" * 8 + "+" * 32)
    ]
    found = summarise_run({"options": {"against": name}}, [plan], records)
    assert found.cells[0].rate == 0.8
    (beside,) = found.contrasts
    assert (beside.trials, beside.published_trials) == (trials, trials)
    assert beside.rate == (trials - 8) / trials, "a subject that learns is better later on"
    assert summarise_run({"options": {}}, [plan], records).contrasts == ()


@pytest.mark.parametrize("changes", [{"view": "x"}, {"trials": 0}])
def test_a_log_of_what_was_never_published_is_compared_with_nothing(
    alike: CellPlan, life: MakeLife, changes: dict[str, Any]
) -> None:
    plan = replace(alike, **changes)
    records = [replace(one, protocol=plan.protocol, view=plan.view, model=plan.model) for one in life(0, "+-+-")]
    assert summarise_run({"options": {"against": "qwen2.5-vl-7b"}}, [plan], records).contrasts == ()


def test_the_interval_is_newcombe_s() -> None:
    # Newcombe 1998, Stat Med 17:873, table II, cases (a), (d) and (h), method 10.
    for counts, limits in (
        ((56, 70, 48, 80), (0.0524, 0.3339)),
        ((9, 10, 3, 10), (0.1705, 0.8090)),
        ((10, 10, 0, 10), (0.6075, 1.0)),
    ):
        a, m, b, n = counts
        assert difference_limits(a / m, m, b / n, n) == pytest.approx(limits, abs=1e-4)
