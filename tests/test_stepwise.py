"""Trials that are replayed and explained, and planned cells, of stepwise families."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.chat import ModelEntry
from cheesebench.errors import UnknownNameError
from cheesebench.experiment.cells import find_design, language_model
from cheesebench.experiment.controls import control_cell
from cheesebench.experiment.replay import recorded_paradigm
from cheesebench.family import CellRequest, Design, WatchedTrial
from cheesebench.records import CellPlan
from cheesebench.stepwise import StepwiseFamily, _Conversation, film_text, watch
from tests.interop.test_shared import Run, asked, walked
from tests.reports.html.conftest import make_log, maze

__all__ = ["asked", "walked"]


def arena(run: Run) -> StepwiseFamily[Any, Any]:
    family = run[1].families["arena"]
    assert isinstance(family, StepwiseFamily)
    return family


def watched(
    run: Run, wanted: dict[int, set[int]], plan: CellPlan | None = None
) -> list[WatchedTrial]:
    log, plugins = run
    plan = plan or log.plans()[0]
    return list(watch(log, plugins, plugins.view(plan.view), plan, wanted))


def test_only_the_wanted_trials_are_yielded(walked: Run) -> None:
    log, _ = walked
    found = watched(walked, {2: {1, 3}, 0: {0}})
    assert [(one.record.subject, one.record.trial) for one in found] == [
        (2, 1),
        (2, 3),
        (0, 0),
    ]
    for one in found:
        # The first frame is the situation before the first action.
        assert len(one.frames) == one.record.steps + 1
        assert (one.calls, one.note, one.differs) == ([], "", False)
    assert found[0].record == log.trials(log.plans()[0], 2)[1]


def test_the_calls_of_a_language_model_are_beside_its_trial(asked: Run) -> None:
    log, _ = asked
    plan = log.plans()[0]
    found = watched(asked, {1: set(range(plan.trials))})
    assert len(found) == plan.trials
    for one in found:
        assert [call.record for call in one.calls] == list(
            log.calls.of_trial(plan, 1, one.record.trial)
        )
        assert (one.note, one.differs) == ("", False)
    # The first call comes before the first step, each other one later.
    steps = [[call.step for call in one.calls] for one in found]
    assert any(len(of_trial) > 1 for of_trial in steps)
    assert all(of_trial == sorted(of_trial) for of_trial in steps)


@pytest.mark.parametrize("control", ["amnesia=trial", "memoryless"])
def test_the_replies_of_a_subject_that_forgets_are_not_shown(
    asked: Run, control: str
) -> None:
    log, plugins = asked
    plan = control_cell(log.plans()[0], control, _specification(asked))
    talk = _Conversation(log, plugins, plan, 0, plugins.view(plan.view))
    assert talk.calls(log.trials()[0], ()) == []
    assert not talk.differs
    assert talk.problem == (
        "The model's replies are not shown: the control makes this subject forget, so they cannot be replayed."
    )


def test_without_the_agent_the_replies_are_not_shown(asked: Run) -> None:
    plan = dataclasses.replace(asked[0].plans()[0], agent="gone")
    (found,) = watched(asked, {0: {0}}, plan)
    assert found.calls == []
    assert not found.differs
    assert found.note.startswith(
        "The model's replies are not shown: There is no agent 'gone'"
    )


def test_replies_that_lead_to_another_trial_are_told(asked: Run) -> None:
    log, _ = asked
    plan = log.plans()[0]
    other = dataclasses.replace(
        plan, settings={**plan.settings, "actions": 1, "history": 3}
    )
    first, second = watched(asked, {0: {0, 1}}, other)
    assert first.differs
    assert first.calls == []
    assert first.note.startswith("The model's replies are not shown: ")
    # What follows one that differs differs, too.
    assert (second.differs, second.calls, second.note) == (True, [], first.note)


def test_the_film_of_a_trial_has_a_heading(
    walked: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, plugins = walked
    plan = log.plans()[0]
    paradigm = recorded_paradigm(log, plugins, plan)
    record = log.trials(plan, 1)[2]
    monkeypatch.setenv("COLUMNS", "60")
    text = film_text(log, paradigm, plugins.view("ascii_2d"), record)
    heading, empty, *lines = text.splitlines()
    assert heading == (
        f"A failed trial: subject 1, trial 3, {record.outcome} after {record.steps} steps."
    )
    assert empty == ""
    # A CI service would take a line at the margin for a command.
    assert all(line.startswith("  ") or not line for line in lines)
    assert max(map(len, lines)) <= 60
    one = dataclasses.replace(record, steps=1)
    assert film_text(log, paradigm, plugins.view("ascii_2d"), one).startswith(
        f"A failed trial: subject 1, trial 3, {record.outcome} after 1 step."
    )


def test_a_trial_that_cannot_be_replayed_says_why(walked: Run) -> None:
    log, plugins = walked
    plan = log.plans()[0]
    records = log.trials(plan, 1)[:3]
    changed = SimpleNamespace(
        plans=log.plans,
        manifest=log.manifest,
        directory=log.directory,
        trials=lambda *_: [*records[:2], dataclasses.replace(records[2], reward=9.0)],
    )
    text = film_text(
        changed,
        recorded_paradigm(log, plugins, plan),
        plugins.view("ascii_2d"),
        records[2],
    )
    heading, reason = text.splitlines()
    assert heading.startswith("A failed trial: subject 1, trial 3")
    assert "reward" in reason


def test_a_plan_has_what_protocol_request_and_design_say(walked: Run) -> None:
    log, plugins = walked
    recorded = log.plans()[0]
    specification = _specification(walked)
    design = find_design("cohort", 3)
    request = CellRequest(model="walker", plugins=plugins, design=design)
    plan = arena(walked).plan(specification, request, "words", 7, title="Another")
    assert (plan.model, plan.protocol, plan.view) == ("walker", "little", "words")
    assert (plan.title, plan.dimension) == ("Another", recorded.dimension)
    assert (plan.sha256, plan.design) == (recorded.sha256, "cohort")
    assert (plan.subjects, plan.trials, plan.memory) == (3, 7, "none")
    assert (plan.claims, plan.agent, dict(plan.settings)) == (True, "", {})


@pytest.mark.parametrize(("limit", "trials"), [(None, 7), (3, 3), (9, 7)])
def test_a_design_limits_the_trials(
    walked: Run, limit: int | None, trials: int
) -> None:
    design = Design(name="few", subjects=2, trials=limit, claims=False)
    request = CellRequest(model="walker", plugins=walked[1], design=design)
    plan = arena(walked).plan(_specification(walked), request, "words", 7)
    assert (plan.trials, plan.subjects, plan.claims) == (trials, 2, False)


def test_the_plan_of_a_language_model_has_its_agent(asked: Run) -> None:
    log, plugins = asked
    recorded = log.plans()[0]
    entry = ModelEntry(name="lab/walks", backend="walks", id="w")
    language = language_model(plugins, entry, settings={"actions": 4, "history": 1})
    request = CellRequest(
        model="lab/walks",
        plugins=plugins,
        design=find_design("cohort", 2),
        language=language,
    )
    plan = arena(asked).plan(
        _specification(asked), request, "ascii_2d", recorded.trials
    )
    assert (plan.agent, plan.settings) == (recorded.agent, recorded.settings)
    assert plan.memory == language.agent.memory


def test_controls_that_a_protocol_cannot_have_are_left_out(walked: Run) -> None:
    log, plugins = walked
    specification, plain = _specification(walked), log.plans()[0]
    request = CellRequest(
        model="walker",
        plugins=plugins,
        design=find_design("cohort", 3),
        controls=("memoryless", "hide=landmarks"),
    )
    found = list(arena(walked).with_controls(plain, specification, request))
    assert found[0] is plain
    assert [plan.control for plan in found[1:]] == ["memoryless"]


def test_an_explanation_is_drawn_as_text_or_says_which_view_is_gone(
    walked: Run,
) -> None:
    log, plugins = walked
    family, specification = arena(walked), _specification(walked)
    record = log.trials(log.plans()[0], 0)[0]
    text = family.explain(log, plugins, specification, record)
    assert text.startswith("A failed trial: subject 0, trial 1, ")
    gone = dataclasses.replace(record, view="gone")
    with pytest.raises(UnknownNameError) as missing:
        plugins.view("gone")
    assert family.explain(log, plugins, specification, gone) == str(missing.value)


def _specification(run: Run) -> Any:
    log, plugins = run
    return recorded_paradigm(log, plugins, log.plans()[0]).specification


def test_the_trial_of_a_view_of_pictures_is_drawn_as_text(tmp_path: Path) -> None:
    little = maze(tmp_path)
    log, plugins = make_log(tmp_path, [little], subjects=1, view="topdown_2d")
    record = log.trials()[0]
    text = arena((log, plugins)).explain(log, plugins, little, record)
    assert text.startswith("A failed trial: subject 0, trial 1, ")
    assert "#######" in text
    log.close()
