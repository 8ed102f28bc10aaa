from __future__ import annotations

import copy
import dataclasses
import itertools
import random
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from cheesebench.chat import ChatReply, Usage
from cheesebench.errors import OptionError, PluginError
from cheesebench.experiment.calling import SubjectStoppedError
from cheesebench.experiment.controls import UnrewardedSubject
from cheesebench.experiment.subjects import (
    LesionedAgent,
    SilenceWatch,
    agent_seed,
    call_seed,
    first_observation,
    interrupts_of,
    run_subject,
)
from cheesebench.interfaces import STAY, AgentContext, AgentSpec, TaskEvent
from cheesebench.lesions import Lesion
from cheesebench.plugin_manager import PluginManager
from cheesebench.records import CellPlan, TrialRecord


def variant(agent: Any, **members: object) -> Any:
    """Return a kind of ``agent`` with other members."""
    return type("Variant", (agent,), members)


def lived(
    stranger: ModuleType, agent: Any, seed: int = 1, subject: int = 0
) -> list[tuple[TrialRecord, Sequence[TaskEvent]]]:
    plan, specification = next(iter(stranger.cells(["walker"]).items()))
    view = PluginManager().view("ascii_2d")
    return list(
        run_subject(
            stranger.Corridor(specification),
            view,
            AgentSpec("walker", agent),
            plan,
            seed,
            subject,
        )
    )


def test_a_life_is_lived_until_its_schedule_is_over(stranger: ModuleType) -> None:
    trials = lived(stranger, stranger.Walker)
    assert [record.trial for record, _ in trials] == list(range(len(trials)))
    # Three in a row end the schedule early.
    assert [record.outcome for record, _ in trials][-3:] == ["found"] * 3
    for record, events in trials:
        assert record.steps == len(record.actions)
        assert record.counters == {"pauses": len(events)}
        assert record.measures["latency"] == record.steps
        moves = record.path_length
        # Every step costs .1, and the last one pays by the length.
        assert record.actions.count("F") >= moves
        if record.outcome == "found":
            assert record.reward == pytest.approx(
                0.1 * moves - 0.1 * (record.steps - 1)
            )


def test_waiting_is_done_for_the_agent_who_sees_it(stranger: ModuleType) -> None:
    seen: list[tuple[int, float, bool]] = []

    def observe(
        self: Any, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        seen.append((action, reward, ended))

    forward = variant(
        stranger.Walker, act=lambda self, observation: (0,), observe=observe
    )
    record, events = lived(stranger, forward)[0]
    middle = events[0].step
    assert record.actions == "F" * middle + ".." + "F" * (record.steps - middle - 2)
    assert seen[middle : middle + 2] == [(STAY, -0.1, False)] * 2
    assert [ended for _, _, ended in seen[: record.steps]] == [False] * (
        record.steps - 1
    ) + [True]


def test_what_is_left_of_a_plan_is_dropped_with_the_trial(stranger: ModuleType) -> None:
    planner = variant(stranger.Walker, act=lambda self, observation: [0] * 1000)
    for record, _ in lived(stranger, planner):
        assert record.outcome == "found"
        # A plan is executed completely, including the two steps in which nothing moves.
        assert record.actions == "F" * (record.path_length + 2)


def test_numbers_of_numpy_are_actions_too(stranger: ModuleType) -> None:
    array = variant(stranger.Walker, act=lambda self, observation: np.array([0, 0]))
    assert {record.outcome for record, _ in lived(stranger, array)} == {"found"}


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ((7,), "returned the action 7. Actions are 0 \\(FORWARD\\)"),
        ((0, -1), "returned the action -1"),
        ((1.5,), "returned the action 1.5"),
        ((1.0,), "returned the action 1.0"),
        ("F", "returned the action 'F'"),
        (([0],), "returned the action \\[0\\]"),
        ((None,), "returned the action None"),
        ((), "returned no action"),
        (3, "returned 3, not a list of actions such as \\[0\\]"),
        (np.int64(3), "returned .*3\\)?, not a list of actions such as \\[0\\]"),
        (None, "returned None, not a list"),
    ],
)
def test_what_is_no_action_is_the_agents_fault(
    stranger: ModuleType, answer: object, complaint: str
) -> None:
    with pytest.raises(PluginError, match=f"The agent 'walker' {complaint}"):
        lived(stranger, variant(stranger.Answers, answer=answer))


def test_a_cut_off_life_has_the_planned_trials(stranger: ModuleType) -> None:
    trials = lived(
        stranger, variant(stranger.Walker, act=lambda self, observation: (STAY,))
    )
    assert [(record.outcome, record.steps) for record, _ in trials] == [
        ("timeout", stranger.LIMIT)
    ] * 6


def test_every_subject_has_a_seed_of_its_own(stranger: ModuleType) -> None:
    plans: list[CellPlan] = list(
        stranger.cells(["walker", "slow"], names=["corridor", "hall"])
    )
    seeds = {
        agent_seed(p, seed, subject)
        for p, seed, subject in itertools.product(plans, (1, 2), (0, 1))
    }
    assert len(seeds) == 16
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_seed_never_changes(stranger: ModuleType) -> None:
    plan = next(iter(stranger.cells(["walker"])))
    # A published run must be repeatable with every later version.
    assert (
        agent_seed(dataclasses.replace(plan, sha256="0" * 64), 1, 2)
        == 7494628756938841982
    )


def test_the_agent_is_told_nothing_but_seed_and_view(stranger: ModuleType) -> None:
    contexts: list[AgentContext] = []

    def create(context: AgentContext) -> Any:
        contexts.append(context)
        return stranger.Walker(context)

    lived(stranger, create)
    plan = next(iter(stranger.cells(["walker"])))
    assert contexts == [AgentContext(seed=agent_seed(plan, 1, 0), view="ascii_2d")]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (
            {"environment": lambda self, view, seed, subject: None},
            "environment returned None. Return a SubjectEnv",
        ),
        (
            {"begin_trial": lambda self: None},
            "begin_trial returned None, for trial 1. Return the first observation, as",
        ),
        (
            {"begin_trial": lambda self: 3},
            "begin_trial returned 3, an int, for trial 1.",
        ),
        (
            {"step": lambda self, action: ("", 0)},
            "step returned something other than observation, reward and status (not",
        ),
        (
            {"step": lambda self, action: None},
            "step returned something other than observation, reward and status (cann",
        ),
        (
            {"step": lambda self, action: ("", None, 1)},
            "step returned something other than observation, reward and stat",
        ),
        ({"step": lambda self, action: int("x")}, "invalid literal for int()"),
        (
            {"result": lambda self: {}},
            "result returned {}, a dict. Return a TrialResult.",
        ),
        (
            {"result": lambda self, of: {}},
            "whose 'result' takes (of). Write 'def result(self)'.",
        ),
    ],
)
def test_what_a_family_s_environment_gets_wrong_is_said(
    stranger: ModuleType, members: Any, said: str
) -> None:
    plan, specification = next(iter(stranger.cells(["walker"]).items()))
    corridor = stranger.Corridor(specification)
    if "environment" in members:
        corridor = variant(stranger.Corridor, **members)(specification)
    else:
        life = corridor.environment(None, 1, 0)
        kind = variant(type(life), **members)
        corridor = variant(
            stranger.Corridor,
            environment=lambda self, view, seed, subject: _become(life, kind),
        )(specification)
    agent = AgentSpec("walker", stranger.Walker)
    with pytest.raises((PluginError, ValueError)) as found:
        list(run_subject(corridor, PluginManager().view("ascii_2d"), agent, plan, 1, 0))
    assert said in str(found.value)
    assert isinstance(found.value, PluginError) == ("invalid" not in said)


def _become(life: Any, kind: type) -> Any:
    life.__class__ = kind
    return life


def reply(text: str = "", **changes: Any) -> ChatReply:
    return ChatReply(text=text, **changes)


@pytest.mark.parametrize(
    ("one", "is_empty"),
    [
        (reply(), True),
        (reply(" \n"), True),
        (reply("x"), False),
        (reply(reasoning="hm"), False),
        (reply(reasoning=" "), True),
        (reply(finish="unread"), False),
        (reply(finish="length"), True),
        (reply(finish="length", usage=Usage(reasoning=5)), False),
        (reply(usage=Usage(reasoning=5)), True),
    ],
)
def test_ten_empty_replies_in_a_row_stop_a_subject(
    one: ChatReply, is_empty: bool
) -> None:
    watch = SilenceWatch()
    for _ in range(9):
        watch.see(reply())
    if not is_empty:
        watch.see(one)
        for _ in range(9):
            watch.see(reply())
    with pytest.raises(
        SubjectStoppedError, match="10 empty replies in a row: the server"
    ):
        watch.see(reply() if not is_empty else one)


def test_calls_have_seeds_of_31_bits_that_never_change() -> None:
    seeds = [call_seed(7, number) for number in range(1, 200)]
    assert seeds[:3] == [1898198857, 34254676, 415841792]
    assert len(set(seeds)) == 199
    assert 2**30 < max(seeds) < 2**31
    assert call_seed(8, 1) != seeds[0]


@pytest.mark.parametrize(
    ("agent", "settings", "when"),
    [
        ("", {}, "never"),
        ("llm", {}, "change"),
        ("llm", {"interrupt": "change", "history": 0}, "change"),
        ("llm", {"interrupt": "never", "history": 3}, "never"),
        ("llm", {"interrupt": "never", "history": 0}, "boundary"),
        ("llm", {"interrupt": "never"}, "never"),
    ],
)
def test_when_the_rest_of_a_plan_is_dropped(
    stranger: ModuleType, agent: str, settings: dict[str, object], when: str
) -> None:
    [plan] = stranger.cells(["walker"])
    assert (
        interrupts_of(dataclasses.replace(plan, agent=agent, settings=settings)) == when
    )


class Life:
    def __init__(self, *observations: object) -> None:
        self.left = list(observations)

    def begin_trial(self) -> object:
        return self.left.pop(0)


def test_a_trial_begins_with_an_observation(stranger: ModuleType) -> None:
    [plan] = stranger.cells(["walker"])
    life: Any = Life("here", None, None, 3)
    assert first_observation(life, plan, 0) == "here"
    assert first_observation(life, plan, 1) is None
    for trial, seen in ((0, "None, for trial 1."), (4, "3, an int, for trial 5.")):
        with pytest.raises(PluginError, match=f"begin_trial returned {seen}"):
            first_observation(life, plan, trial)


class Counting:
    """An agent that counts its steps, and draws."""

    def __init__(self, seed: int) -> None:
        self.random, self.steps, self.seed = random.Random(seed), 0, seed
        self.draws = np.random.default_rng(seed)
        self.begun: list[str] = []

    def begin_trial(self, observation: str) -> None:
        self.begun.append(observation)

    def tally(self) -> dict[str, int]:
        return {"steps": self.steps}


class Observed:
    """An environment in a state."""

    def __init__(self, state: str) -> None:
        self.state = state


def lesioned(name: str) -> LesionedAgent[Any]:
    return LesionedAgent(Counting, 5, Lesion.parse(name))


def life_in(state: str) -> Any:
    life: Any = UnrewardedSubject(Observed(state))  # type: ignore[arg-type]
    return life


def test_an_agent_forgets_when_a_state_is_entered() -> None:
    one = lesioned("amnesia=choice")
    one.begin_trial(life_in("wait"), 0, "first")
    first = one.agent
    first.steps = 3
    drawn = copy.deepcopy(first.random).random(), copy.deepcopy(first.draws).random()
    assert not one._forgets(life_in("wait"), "seen")
    assert one._forgets(life_in("choice"), "second")
    assert one.agent is not first
    assert (one.agent.begun, one.agent.steps) == (["second"], 0)
    assert (one.agent.random.random(), one.agent.draws.random()) != drawn
    assert one.tally() == {"steps": 3}
    one.agent.steps = 2
    assert one.tally() == {"steps": 5}
    assert not one._forgets(life_in("choice"), "again"), "once in a trial"
    one.begin_trial(life_in("choice"), 1, "third")
    assert one.tally() == {"steps": 2}
    assert not one._forgets(life_in("choice"), "it has begun there")


@pytest.mark.parametrize(
    ("name", "anew", "at_each_step"),
    [
        ("intact", False, False),
        ("blind", False, False),
        ("amnesia=trial", True, False),
        ("memoryless", True, True),
    ],
)
def test_an_agent_is_made_anew_between_trials_or_steps(
    name: str, anew: bool, at_each_step: bool
) -> None:
    one = lesioned(name)
    first = one.agent
    assert first.seed == 5
    one.begin_trial(life_in("a"), 0, "x")
    assert one.agent is first
    one.begin_trial(life_in("a"), 1, "y")
    assert (one.agent is not first) is anew
    if anew:
        assert one.agent.seed not in (5, lesioned(name).agent.seed)
        assert one.agent.begun == ["y"]
    if at_each_step:
        second = one.agent
        assert one._forgets(life_in("a"), "z")
        assert one.agent.seed not in (5, second.seed)
    assert one._forgetful is at_each_step


def test_what_has_no_state_cannot_be_forgotten() -> None:
    life: Any = object()
    with pytest.raises(
        OptionError,
        match="--control memoryless: this environment does not expose its states",
    ):
        lesioned("memoryless").begin_trial(life, 0, "x")
    one = lesioned("amnesia=choice")
    one.agent.random = (number for number in [1])
    with pytest.raises(
        OptionError,
        match=r"so it cannot return to the beginning of a trial. Use --control memoryless",
    ):
        one.begin_trial(life_in("a"), 0, "x")
