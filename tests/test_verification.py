"""What a verified log must agree with: its protocol, its options and its agent."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.errors import RunLogError
from cheesebench.experiment.provenance import versions
from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import CallTotals, CellCalls, TrialRecord
from cheesebench.verification import (
    _check_agent,
    _is_language_model,
    _is_shipped,
    _told,
    _uncalled,
    calls_by_cell,
    rows_only,
)
from tests.reports.conftest import plan_of


def trial(number: int, actions: str, missing: str = "") -> TrialRecord:
    return TrialRecord(
        model="m", protocol="p", view="v", subject=3, trial=number, missing=missing, actions=actions
    )  # fmt: skip


def test_an_agent_acts_again_as_it_did() -> None:
    life = [trial(0, "FF"), trial(1, "L"), trial(2, "", "budget")]
    again = [(trial(0, "FF"), ()), (trial(1, "L"), ()), (trial(2, "RR"), ())]
    _check_agent(life, again)
    with pytest.raises(RunLogError, match=r"^Trial 2 of subject 3 \(m on p\) is not"):
        _check_agent(life, [again[0], (trial(1, "R"), ())])


@pytest.mark.parametrize(
    ("model", "agent", "shipped", "language"),
    [
        ("random", "", True, False),
        ("random-walk", "", False, False),
        ("openai/gpt-4.1", "llm", False, True),
        ("nobody-knows", "llm", False, True),
        ("nobody-knows", "", False, False),
    ],
)
def test_which_models_act_again_and_which_are_called(
    model: str, agent: str, shipped: bool, language: bool
) -> None:
    plan, plugins = plan_of(model=model, agent=agent), installed_plugins()
    assert _is_shipped(plan, plugins) == shipped
    assert _is_language_model(plan, plugins) == language


def log(
    *plans: Any, called: dict[Any, CellCalls] | None = None, missing: str = ""
) -> Any:
    """Return a log in which each subject has one trial."""
    calls = called or {}
    return SimpleNamespace(
        path="run.sqlite",
        manifest={"versions": versions()},
        plans=lambda: plans,
        calls=SimpleNamespace(by_cell=lambda: calls),
        trials_by_subject=lambda plan: iter([[trial(0, "F", missing)]]),
        verify=lambda: 1234,
    )


ASKED = plan_of(model="openai/gpt-4.1", agent="llm", settings={"id": "gpt-4.1"})


def test_a_language_model_with_trials_was_called() -> None:
    totals = CellCalls(totals=CallTotals(calls=1))
    assert _uncalled(log(ASKED)) == [ASKED]
    assert _uncalled(log(ASKED, called={ASKED.key: totals})) == []
    assert _uncalled(log(ASKED, missing="budget")) == []
    assert calls_by_cell(log(ASKED)) == {ASKED.key: CellCalls()}
    assert calls_by_cell(log(ASKED, called={ASKED.key: totals})) == {ASKED.key: totals}
    said = rows_only(log(ASKED))
    assert said.startswith("The 1,234 rows of run.sqlite are as they were written. Its")
    assert said.endswith("; there are trials without one call to openai/gpt-4.1.")
    assert rows_only(log(plan_of(model="random"))).endswith("--verify does that).")
    with pytest.raises(
        RunLogError, match=r"has trials of openai/gpt-4\.1 on \w+, but not one"
    ):
        rows_only(log(ASKED), ranked=True)


def test_a_model_that_was_asked_for_by_another_name_is_told() -> None:
    other = replace(ASKED, settings={"id": "gpt-5"})
    unknown = plan_of(model="nobody-knows", agent="llm", settings={"id": "x"})
    assert _told(log(ASKED, unknown, plan_of())) == ""
    said = " In the log, openai/gpt-4.1 stands for 'gpt-5', here for 'gpt-4.1'."
    assert _told(log(other, replace(other, view="v"))) == said
