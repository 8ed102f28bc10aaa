from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cheesebench
from cheesebench.chat import ChatReply
from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import (
    check_end,
    check_resumable,
    film,
    films,
    rebuild_call,
    rebuild_calls,
    recorded_paradigm,
    recorded_protocol,
    replay,
    replay_calls,
)
from cheesebench.experiment.subjects import create_agent
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.records import CallRecord, CellPlan, Frame
from tests.cli.conftest import MAZE


def test_every_trial_of_a_run_can_be_filmed(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"])
    plan, specification = next(iter(cells.items()))
    view = plugins.view("ascii_2d")
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 4}) as log:
        stranger.run(log, cells, seed=4, processes=0)
        for record in log.trials(plan):
            frames = film(log, plugins.compile(specification), view, record)
            assert "".join(frame.action for frame in frames) == record.actions
            assert sum(frame.reward for frame in frames) == record.reward
            assert frames[0].observation.startswith(">")
            assert frames[-1].observation.endswith(">") == (record.outcome == "found")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"reward": 5.0},
            "Trial 2 of subject 0 .* differs from the record: reward was 5.0",
        ),
        ({"variables": {}}, "variables was {} and is now"),
        ({"actions": "FF"}, "it does not end with its last action"),
        ({"actions": "F" * 40}, "it ends before its last action"),
        ({"missing": "infrastructure"}, "was not run"),
    ],
)
def test_a_record_that_does_not_come_out_is_refused(
    stranger: ModuleType,
    plugins: PluginManager,
    tmp_path: Path,
    changes: dict[str, object],
    message: str,
) -> None:
    cells = stranger.cells(["walker"], subjects=1)
    plan, specification = next(iter(cells.items()))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        stranger.run(log, cells, processes=0)
        records = log.trials(plan)
    records[1] = dataclasses.replace(records[1], **changes)  # type: ignore[arg-type]
    life = plugins.compile(specification).environment(plugins.view("ascii_2d"), 1, 0)
    with pytest.raises(RunLogError, match=message):
        replay(life, records)


def test_a_life_has_an_end(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"], subjects=1)
    plan, specification = next(iter(cells.items()))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        stranger.run(log, cells, processes=0)
        records = log.trials(plan)
    life = plugins.compile(specification).environment(plugins.view("ascii_2d"), 1, 0)
    with pytest.raises(RunLogError, match="the schedule ends before it"):
        replay(life, [*records, records[-1]])


SAID = 'seed: 1\nreplies:\n  - say: ["ACTIONS: F, F, F, F", "LEARNINGS: east\\nACTIONS: L, R, F", "What now?"]\n'


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunLog]:
    """The log of a scripted model in ``little``: one subject, ten calls."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "little.protocol.yaml").write_text(MAZE, encoding="utf-8")
    (tmp_path / "replies.yaml").write_text(SAID, encoding="utf-8")
    cheesebench.run(
        "scripted:replies.yaml", ["little.protocol.yaml"], design="cohort", subjects=1, seed=0, run_id="asked",
        progress=False,
    )  # fmt: skip
    with RunLog.open_read_only(tmp_path / "results" / "asked") as log:
        yield log


def filmed(log: RunLog) -> tuple[CellPlan, Any, list[list[Frame]]]:
    """Return the plan, the agent at the beginning of its life, and all films."""
    [plan] = log.plans()
    plugins = installed_plugins()
    paradigm = recorded_paradigm(log, plugins, plan)
    view = plugins.view("ascii_2d")
    life = paradigm.environment(view, 0, 0)
    agent = create_agent(plugins.model_agent("llm"), view, plan, 0, 0)
    return plan, agent, list(films(life, log.trials(plan)))


def test_a_film_says_where_the_subject_is_and_what_would_pay(asked: RunLog) -> None:
    _, _, (first, *_) = filmed(asked)
    assert [frame.action for frame in first] == ["", ".", ".", "F", "F", "F", "F"]
    assert next(frame.at for frame in first if frame.at)[:2] == (1, 1)
    assert [frame.at and frame.at[:2] for frame in first[3:]] == [
        (2, 1),
        (3, 1),
        (4, 1),
        (5, 1),
    ]
    assert first[-2].goals == {(5, 1)}
    assert [frame.reward for frame in first] == [0, 0, 0, 0, 0, 0, 1]
    assert {frame.placed for frame in first} == {False}
    assert [frame.foreseen for frame in first] == [
        True,
        True,
        True,
        True,
        True,
        True,
        True,
    ]


def test_calls_are_repeated_on_a_film(asked: RunLog) -> None:
    plan, agent, all_frames = filmed(asked)
    steps, learnt = [], []
    for trial, frames in enumerate(all_frames):
        calls = [one for one in asked.calls.of_life(plan, 0) if one.trial == trial]
        found = replay_calls(agent, frames, calls, "change")
        assert [one.record for one in found] == calls
        steps.append([one.step for one in found])
        learnt.append([one.learnings for one in found])
    assert steps == [[2], [2, 5, 6], [2, 5, 6], [2, 5, 6]]
    assert [one[-1] for one in learnt] == ["", "east", "east", "east"]


def test_another_agent_than_in_the_run_is_told(asked: RunLog) -> None:
    def repeated(
        trial: int, change: Callable[[list[CallRecord]], list[CallRecord]]
    ) -> str:
        plan, agent, all_frames = filmed(asked)
        for number, frames in enumerate(all_frames[: trial + 1]):
            calls = [one for one in asked.calls.of_life(plan, 0) if one.trial == number]
            with (
                pytest.raises(RunLogError)
                if number == trial
                else contextlib.nullcontext() as caught
            ):
                replay_calls(
                    agent, frames, change(calls) if number == trial else calls, "change"
                )
        assert caught is not None
        return str(caught.value).partition(",")[0]

    other = ChatReply(text="ACTIONS: R")
    assert repeated(0, lambda calls: []) == "After a trial without calls"
    assert repeated(1, lambda calls: calls[:-1]) == "After call 2 of trial 2"
    assert repeated(1, lambda calls: [*calls, calls[-1]]) == "After call 3 of trial 2"

    def changed(calls: list[CallRecord]) -> list[CallRecord]:
        return [dataclasses.replace(calls[0], reply=other), *calls[1:]]

    assert repeated(1, changed) == "After call 1 of trial 2"


def test_calls_are_rebuilt_with_their_prompts(asked: RunLog) -> None:
    [plan] = asked.plans()
    plugins = installed_plugins()
    found = rebuild_calls(asked, plugins, plan, 0, (2, 2))
    assert [(one.record.trial, one.record.call) for one in found] == [
        (0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip
    assert [one.actions for one in found] == [
        (0, 0, 0, 0), (1, 2, 0), (3,), (0, 0, 0, 0), (1, 2, 0), (3,), (0, 0, 0, 0),
    ]  # fmt: skip
    assert [one.unparsed for one in found] == [
        False,
        False,
        True,
        False,
        False,
        True,
        False,
    ]
    assert found[0].messages == found[0].request.messages
    one = rebuild_call(asked, plugins, plan, 0, 1, 1)
    assert (one.actions, one.unparsed) == ((3,), True)
    for wanted, where in (
        ((9, 0), "Call 1 of trial 10"),
        ((0, 1), "Call 2 of trial 1"),
    ):
        with pytest.raises(RunLogError) as caught:
            rebuild_call(asked, plugins, plan, 0, *wanted)
        assert str(caught.value) == (
            f"{where} of subject 0 (scripted:replies.yaml on little, ascii_2d) is not in this run's log. List its calls with "
            "`cheesebench show RUN`."
        )


def test_a_prompt_that_is_not_the_recorded_one_is_told(asked: RunLog) -> None:
    [plan] = asked.plans()
    for settings in ({"temperature": 1.5}, {"history": "nonsense"}):
        other = dataclasses.replace(plan, settings={**plan.settings, **settings})
        with pytest.raises(
            RunLogError,
            match=r"Call \d of trial \d of subject 0 .* cannot be rebuilt as recorded",
        ):
            rebuild_call(asked, installed_plugins(), other, 0, 1, 0)


def test_the_protocol_is_read_from_the_run(asked: RunLog) -> None:
    [plan] = asked.plans()
    assert recorded_protocol(asked, plan).sha256 == plan.sha256
    for other, why in (
        (dataclasses.replace(plan, sha256="0"), "its meaning has changed"),
        (dataclasses.replace(plan, protocol="gone"), ""),
    ):
        with pytest.raises(RunLogError) as caught:
            recorded_protocol(asked, other)
        said = str(caught.value)
        assert said.startswith(
            f"The protocol '{other.protocol}' cannot be read as in the run ({why}"
        )
        assert "()" not in said


def test_trials_that_were_lost_at_the_end_are_told(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"], subjects=1)
    plan, specification = next(iter(cells.items()))
    paradigm = plugins.compile(specification)
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        stranger.run(log, cells, processes=0)
        life = log.trials(plan)
        check_end(log, plugins, plan, paradigm, life)
        with pytest.raises(
            RunLogError, match=r"is the last one recorded, but the schedule goes on"
        ):
            check_end(log, plugins, plan, paradigm, life[:-1])
        missing = [*life[:1], dataclasses.replace(life[1], missing="budget")]
        check_end(log, plugins, plan, paradigm, missing)
        whole = dataclasses.replace(plan, trials=2)
        check_end(log, plugins, whole, paradigm, life[:2])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"model": "m"}, "the model 'm' is not part of it (only walker, talker)"),
        ({"view": "w"}, "the view 'w' is not part of it (only ascii_2d)"),
        ({"sha256": "f" * 64}, "the protocol 'corridor' has changed (was "),
        ({"agent": "llm"}, "walker was asked by 'none' and is now asked by 'llm'"),
        ({"settings": {"x": 1}}, "x of walker was None and is now 1"),
        ({"design": "smoke"}, "the design of corridor was cohort and is now smoke"),
        ({"subjects": 9}, "the number of subjects of corridor was 3 and is now 9"),
        ({"trials": 4}, "the number of trials of corridor was 6 and is now 4"),
    ],
)  # fmt: skip
def test_only_the_same_run_goes_on(
    stranger: ModuleType, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    cells = stranger.cells(["walker", "talker"])
    (plan, specification), other = cells.items()
    changed = [(dataclasses.replace(plan, **changes), specification), other]
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        if not said:
            check_resumable(log, changed, 1)
            check_resumable(log, dict(changed[:1]), 1)
            with pytest.raises(RunLogError) as caught:
                check_resumable(log, changed, 2, "replayed")
            assert str(caught.value).startswith(
                "Run 'r1' cannot be replayed: the seed was 1 and is now 2. Use the"
            )
            return
        with pytest.raises(RunLogError) as caught:
            check_resumable(log, changed, 1)
        assert f"Run 'r1' cannot be continued: {said}" in str(caught.value)


def test_a_cell_that_only_is_not_among_the_others(
    stranger: ModuleType, tmp_path: Path
) -> None:
    walker = stranger.cells(["walker"], names=["corridor"])
    talker = stranger.cells(["talker"], names=["hall"])
    mixed = stranger.cells(["walker"], names=["hall"])
    with (
        RunLog.create(
            tmp_path, "r1", [*walker.items(), *talker.items()], options={"seed": 1}
        ) as log,
        pytest.raises(
            RunLogError, match="walker on hall in ascii_2d is not part of it"
        ),
    ):
        check_resumable(log, mixed, 1)
