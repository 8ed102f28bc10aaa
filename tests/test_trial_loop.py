"""The loop of a trial: when it drops the rest of a plan, whom it tells, and how it
handles faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cheesebench.errors import PluginError
from cheesebench.interfaces import RUNNING
from cheesebench.trial_loop import (
    NOT_ITS_OWN,
    AgentFaultError,
    Interrupts,
    TrialLoop,
    agents_own,
    foresight,
)

FORWARD, LEFT = 0, 1
ENDED = RUNNING + 1


class Script:
    """An environment that plays steps: observation, reward, and further events.

    ``waits``: the subject is not free before the next step; ``put``: it was moved;
    ``ends``; ``foresees``: the observation after the subject's own movement alone.
    """

    def __init__(self, *steps: dict[str, Any]) -> None:
        self.steps = list(steps)
        self.waiting = self.placed = False
        self.taken: list[int] = []

    def foreseen(self, action: int) -> str | None:
        found: str | None = self.steps[0].get(
            "foresees", self.steps[0].get("shows", ".")
        )
        return found

    def step(self, action: int) -> tuple[str, float, int]:
        now = self.steps.pop(0)
        self.taken.append(action)
        self.waiting, self.placed = now.get("waits", False), now.get("put", False)
        status = ENDED if now.get("ends") else RUNNING
        return now.get("shows", "."), now.get("reward", 0.0), status


class Listener:
    """An agent that is told of interruptions, and may keep its plan."""

    def __init__(self, drops: bool = True) -> None:
        self.drops = drops
        self.heard: list[str] = []

    def interrupted(self) -> bool:
        self.heard.append("interrupted")
        return self.drops

    def freed(self, observation: str) -> None:
        self.heard.append(f"freed at {observation}")


def played(
    *steps: dict[str, Any],
    interrupts: Interrupts = "change",
    listener: Listener | None = None,
    **how: Any,
) -> str:
    """Return the letters of the executed steps of a plan of eight actions."""
    life = Script(*steps, *({} for _ in range(20)))
    loop = TrialLoop(
        life, "start", lambda *seen: None,
        interrupts=interrupts, listener=(lambda: listener) if listener else None, **how,
    )  # fmt: skip
    loop.act([FORWARD] * 8)
    assert loop.done["steps"] == len(loop.letters)
    return "".join(loop.letters)


def rewards(*values: float) -> list[dict[str, Any]]:
    return [{"reward": value} for value in values]


@pytest.mark.parametrize(
    ("steps", "taken"),
    [
        ([], 8),
        (rewards(1), 1),
        (rewards(0, 1), 2),
        (rewards(*[-1] * 8), 8),
        (rewards(-1, -1, -1), 4),
        # A single unusual reward is an event: the step after it drops no plan.
        (rewards(0, 0, -5, 0, 0), 3),
        (rewards(-5, 0, 0), 2),
        # A price that comes twice is the usual one from then on.
        (rewards(-1, 0, 0, -1), 2),
        (rewards(-1, -1, 0), 3),
        (rewards(0, -1), 2),
        ([{"shows": "door", "foresees": "wall"}], 1),
        ([{"shows": "door", "foresees": None}], 8),
        ([{"put": True}], 1),
        ([{}, {"ends": True}], 2),
    ],
)
def test_what_is_unusual_drops_the_plan(
    steps: list[dict[str, Any]], taken: int
) -> None:
    assert played(*steps) == "F" * taken


@pytest.mark.parametrize(
    ("interrupts", "put", "surprise"),
    [("never", 8, 8), ("boundary", 1, 8), ("change", 1, 1)],
)
def test_interrupts_say_which_events_count(
    interrupts: Interrupts, put: int, surprise: int
) -> None:
    assert played({"put": True}, interrupts=interrupts) == "F" * put
    for step in ({"reward": 1.0}, {"shows": "door", "foresees": "wall"}):
        assert played(step, interrupts=interrupts) == "F" * surprise


def test_frozen_steps_are_waited_for_and_end_a_plan() -> None:
    steps: list[dict[str, Any]] = [{"waits": True}, {"waits": True}, {}]
    assert played(*steps) == "F.."
    # An agent that is never interrupted continues to act, in vain.
    assert played(*steps, interrupts="never") == "F" * 8


def test_an_agent_may_keep_its_plan_but_not_beyond_the_trial() -> None:
    keeps = Listener(drops=False)
    steps = [*rewards(0, 1, 0), {"ends": True}]
    assert played(*steps, listener=keeps) == "FFFF"
    assert keeps.heard == ["interrupted", "interrupted"]
    drops = Listener()
    assert played({"waits": True}, {"shows": "there"}, listener=drops) == "F."
    assert drops.heard == ["interrupted", "freed at there"]


def test_what_drops_is_asked_until_the_trial_ends() -> None:
    asked: list[str] = []

    def drops(observation: str) -> bool:
        asked.append(observation)
        return observation == "stop"

    steps: list[dict[str, Any]] = [{"shows": "go"}, {"shows": "stop"}]
    assert played(*steps, drops=drops) == "FF"
    assert asked == ["go", "stop"]
    asked.clear()
    assert played({"shows": "stop", "ends": True}, drops=drops) == "F"
    assert asked == []


def test_observe_is_told_every_step_and_its_fault_is_the_agents() -> None:
    seen: list[tuple[int, float, str, bool]] = []
    life = Script({"shows": "a", "reward": 0.5}, {"shows": "b", "ends": True})
    loop = TrialLoop(life, "start", lambda *step: seen.append(step))
    loop.act([LEFT, FORWARD, FORWARD])
    assert seen == [(LEFT, 0.5, "a", False), (FORWARD, 0.0, "b", True)]
    assert (loop.done, loop.ended) == (
        {"actions": "LF", "steps": 2, "reward": 0.5},
        True,
    )

    def fails(*step: object) -> None:
        raise OSError("dead")

    failing = TrialLoop(Script({}), "start", fails)
    with pytest.raises(AgentFaultError, match="dead"):
        failing.act([FORWARD])


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (5, "not a list of actions"),
        ([], "returned no action"),
        ([7], "returned the action 7"),
        (["F"], "returned the action 'F'"),
        ("FORWARD", "returned the action 'FORWARD'"),
    ],
)
def test_a_plan_that_is_none_is_the_agents_fault(plan: Any, said: str) -> None:
    loop = TrialLoop(Script({}), "start", lambda *seen: None, agent="mine")
    with pytest.raises(AgentFaultError, match=f"'mine' {said}|'mine'.*{said}"):
        loop.act(plan)


@pytest.mark.parametrize(
    "result",
    [("seen", None), (None, 0.0, RUNNING), ("seen", 0.0, None)],
)
def test_an_environment_that_returns_something_else_is_named(result: Any) -> None:
    class Odd(Script):
        def step(self, action: int) -> Any:
            return result

    with pytest.raises(
        PluginError, match=r"environment of lab: step returned something other"
    ):
        TrialLoop(Odd(), "start", lambda *seen: None, protocol="lab").act([FORWARD])


def test_who_is_free_again_is_told_once_and_nothing_follows_the_end() -> None:
    told = Listener(drops=False)
    life = Script({"put": True}, {}, {}, {"waits": True, "ends": True}, {})
    loop = TrialLoop(
        life, "start", lambda *seen: None, interrupts="boundary", listener=lambda: told
    )
    loop.act([FORWARD])
    loop.act([FORWARD])
    assert told.heard == ["interrupted", "freed at ."]
    loop.act([FORWARD] * 4)
    assert ("".join(loop.letters), len(life.steps)) == ("FFFF", 1)


def raising(error: BaseException) -> Iterator[int]:
    """Yield an action, then raise."""
    yield FORWARD
    raise error


@pytest.mark.parametrize("kind", NOT_ITS_OWN)
def test_what_is_not_the_agent_s_own_passes(kind: type[BaseException]) -> None:
    error = kind("stop")

    def observe(*step: object) -> None:
        raise error

    with pytest.raises(kind) as found, agents_own():
        raise error
    assert found.value is error
    with pytest.raises(kind) as found:
        TrialLoop(Script({}), "start", observe).act([FORWARD])
    assert found.value is error


@pytest.mark.parametrize("error", [OSError("dead"), SystemExit("dead")])
def test_what_the_agent_raises_is_its_fault(error: BaseException) -> None:
    with pytest.raises(AgentFaultError, match="dead") as found, agents_own():
        raise error
    assert found.value.__cause__ is error
    loop = TrialLoop(Script({}), "start", lambda *seen: None)
    with pytest.raises(AgentFaultError, match="dead"):
        loop.act(raising(error))
    assert loop.letters == []


def test_any_iterable_is_a_plan() -> None:
    loop = TrialLoop(Script({}, {}), "start", lambda *seen: None)
    loop.act(action for action in (LEFT, FORWARD))
    assert loop.letters == ["L", "F"]


def test_a_subject_that_is_held_at_the_start_waits() -> None:
    life = Script({"waits": True}, {"shows": "free", "reward": 0.5}, {})
    life.waiting = True
    loop = TrialLoop(life, "start", lambda *seen: None)
    assert (loop.letters, life.taken) == (["."] * 2, [3, 3])
    assert (loop.observation, loop.reward, loop.ended) == ("free", 0.5, False)


@pytest.mark.parametrize("kind", [TypeError, ValueError, KeyError])
def test_what_an_environment_raises_is_not_the_result_of_a_step(
    kind: type[Exception],
) -> None:
    class Broken(Script):
        def step(self, action: int) -> Any:
            raise kind("within")

    with pytest.raises(kind, match="within"):
        TrialLoop(Broken(), "start", lambda *seen: None).act([FORWARD])


def test_only_who_knows_where_it_stands_foresees() -> None:
    class Bare:
        waiting = False

        def step(self, action: int) -> tuple[str, float, int]:
            return ".", 0.0, RUNNING

    assert foresight(Script({"foresees": "wall"}), FORWARD) == "wall"
    assert foresight(Bare(), FORWARD) is None
