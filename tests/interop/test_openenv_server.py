"""Episodes of the OpenEnv server, without its network: lives, prompts, rewards and
mistakes. (``tests/real_interop`` has the real package and the network.)
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from cheesebench.errors import CheeseBenchError, OptionError, UnknownNameError
from cheesebench.interop.hosted import Hosted, Turns, hosted

GO, WAIT = "ACTIONS: FORWARD, FORWARD", '{"actions": ["STAY"], "learnings": "it is"}'


class Action(BaseModel, extra="forbid"):
    pass


class Observation(BaseModel):
    done: bool = False
    reward: float | None = None
    metadata: dict[str, Any] = {}


class State(BaseModel):
    episode_id: str | None = None
    step_count: int = 0


class Environment:
    pass


class App:
    def __init__(self, make: Any, action: type, observation: type, **more: Any) -> None:
        self.made, self.kinds, self.more = make, (action, observation), more
        self.handlers: dict[type, Any] = {}

    def add_exception_handler(self, kind: type, handler: Any) -> None:
        self.handlers[kind] = handler

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send(scope)


#: What the server takes from packages that only the extra has.
PARTS: dict[str, dict[str, Any]] = {
    "fastapi": {},
    "fastapi.responses": {"JSONResponse": lambda content, status: (content, status)},
    "openenv": {},
    "openenv.core": {},
    "openenv.core.env_server": {"create_fastapi_app": App},
    "openenv.core.env_server.interfaces": {"Environment": Environment},
    "openenv.core.env_server.types": {
        "Action": Action,
        "Observation": Observation,
        "State": State,
    },
}
NAME = "cheesebench.interop.openenv_server"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name, parts in PARTS.items():
            module = ModuleType(name)
            vars(module).update(parts)
            patch.setitem(sys.modules, name, module)
        patch.delitem(sys.modules, NAME, raising=False)
        yield importlib.import_module(NAME)
        sys.modules.pop(NAME, None)


@pytest.fixture(scope="module")
def cells() -> list[Hosted]:
    return hosted(["t_maze", "dnms"], subjects=2)


def begin(server: Any, cells: list[Hosted], **options: Any) -> Any:
    usual = {"episode": "life", "reward": "success", "seed": 7}
    return server.CheeseBench(server.Served(cells, **{**usual, **options}))


def test_lives_are_numbered_across_sessions_and_cycle_through_protocols(
    server: Any, cells: list[Hosted]
) -> None:
    served = server.Served(cells, episode="life", reward="success", seed=7)
    lives = [served.next_life() for _ in range(5)]
    assert lives == [
        ("t_maze", 0),
        ("dnms", 0),
        ("t_maze", 1),
        ("dnms", 1),
        ("t_maze", 2),
    ]
    first, second = server.CheeseBench(served), server.CheeseBench(served)
    first.reset()
    second.reset()
    states = [(one.state.protocol, one.state.subject) for one in (first, second)]
    assert states == [("dnms", 2), ("t_maze", 3)]
    assert served.begun == {"dnms": 1, "t_maze": 1}


def test_a_life_for_training_has_a_seed_that_no_run_draws(
    server: Any, cells: list[Hosted]
) -> None:
    one = begin(server, cells)
    for split, added in (("test", 0), ("train", 2**128)):
        shown = one.reset(split=split, subject=1, protocol="dnms", seed=3)
        wanted = Turns(cells[1], 3 + added, 1).request
        assert wanted is not None
        assert [message["content"] for message in shown.messages] == [
            message.text for message in wanted.messages
        ]
        assert shown.messages[0]["role"] == wanted.messages[0].role
        assert shown.prompt == wanted.messages[-1].text
    assert one._served.begun == {"dnms": 1}, "a life of the test is none of training"
    state = one.state
    assert (state.split, state.seed, state.subject, state.trial) == ("train", 3, 1, 0)
    assert one.reset(seed=3, episode_id="e").done is False
    assert one.state.episode_id == "e"


def test_an_episode_is_a_whole_life_with_each_trial_and_its_reward(
    server: Any, cells: list[Hosted]
) -> None:
    by_success, by_protocol = (
        begin(server, cells, reward=reward) for reward in ("success", "protocol")
    )
    wanted = Turns(cells[0], 5, 1)
    ended, sums, steps = [], [0.0, 0.0], 0
    shown = [
        one.reset(split="test", seed=5, subject=1, protocol="t_maze")
        for one in (by_success, by_protocol)
    ]
    while not shown[0].done:
        assert wanted.request is not None
        assert shown[0].prompt == wanted.request.messages[-1].text
        reply = (GO, WAIT, "I do not know.")[steps % 3]
        wanted.reply(reply)
        wanted.go_on()
        steps += 1
        for number, one in enumerate((by_success, by_protocol)):
            shown[number] = one.step(server.Reply(text=reply))
            sums[number] += shown[number].reward
        ended += shown[0].trials
        assert by_success.state.step_count == steps
        assert by_success.state.trial == len(wanted.records)
    told = [
        (one.trial + 1, one.outcome, one.success, one.reward) for one in wanted.records
    ]
    assert [
        (one["trial"], one["outcome"], one["success"], one["reward"]) for one in ended
    ] == told
    assert sums == [
        sum(bool(one.success) for one in wanted.records),
        pytest.approx(sum(one.reward for one in wanted.records)),
    ]
    assert len(told) == 22
    with pytest.raises(OptionError, match="No prompt is pending"):
        by_success.step(server.Reply(text=GO))


def test_an_episode_is_a_trial_and_reset_goes_on(
    server: Any, cells: list[Hosted]
) -> None:
    one = begin(server, cells, episode="trial")
    for trial in range(3):
        shown = one.reset(episode_id=f"e{trial}")
        assert (one.state.episode_id, one.state.trial) == (f"e{trial}", trial)
        assert one.state.protocol == "t_maze"
        assert shown.trials == []
        while not shown.done:
            shown = one.step(server.Reply(actions=["FORWARD", "FORWARD"]))
        assert [end["trial"] for end in shown.trials] == [trial + 1]
    # With an option, it is another life.
    one.reset(subject=0)
    assert (one.state.subject, one.state.trial) == (0, 0)


def test_a_reply_is_text_or_the_call_of_the_tool(server: Any) -> None:
    assert server.Reply(text=GO).said == GO
    assert server.Reply(actions=["STAY"]).said == '{"actions": ["STAY"]}'
    both = server.Reply(actions=["STAY"], learnings="it is", text="unread")
    assert both.said == WAIT


def test_a_silent_model_ends_the_episode(server: Any, cells: list[Hosted]) -> None:
    silent = hosted(["t_maze"], settings={"unparsed": "retry-with-feedback"})
    one = begin(server, silent)
    one.reset()
    for _ in range(9):
        assert not one.step(server.Reply()).done
    last = one.step(server.Reply())
    assert (last.done, last.reward) == (True, 0.0)
    assert "10 empty replies in a row" in last.metadata["stopped"]
    with pytest.raises(OptionError):
        one.step(server.Reply())


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"protocoll": "dnms"}, UnknownNameError, "'protocol'"),
        ({"protocol": "dnm"}, UnknownNameError, "'dnms'"),
        ({"protocol": 3}, UnknownNameError, "3"),
        ({"split": "tests"}, UnknownNameError, "'test'"),
        ({"subject": -1}, OptionError, "subject=-1"),
        ({"subject": True}, OptionError, "subject=True"),
        ({"seed": "7"}, OptionError, "seed='7'"),
        ({"seed": 2**128}, OptionError, "seed=3402"),
    ],
)
def test_an_impossible_life_is_refused(
    server: Any,
    cells: list[Hosted],
    options: dict[str, Any],
    kind: type[Exception],
    said: str,
) -> None:
    with pytest.raises(kind, match=said):
        begin(server, cells).reset(**options)
    begin(server, cells).reset(subject=0, seed=2**128 - 1)


def test_an_action_must_have_a_name_of_the_tool(
    server: Any, cells: list[Hosted]
) -> None:
    one = begin(server, cells)
    with pytest.raises(OptionError, match="No prompt is pending"):
        one.step(server.Reply(text=GO))
    one.reset()
    with pytest.raises(UnknownNameError, match="FORWARD"):
        one.step(server.Reply(actions=["FORWRD"]))


def test_a_client_learns_what_is_wrong_with_its_action(server: Any) -> None:
    """OpenEnv tells a client only "Invalid message" of an error of pydantic."""
    for values, error, said in (
        ({"actions": "JUMP"}, OptionError, r"actions='JUMP': Input should be a valid list\."),
        ({"actions": [3]}, OptionError, r"actions=3: Input should be a valid string\."),
        ({"action": ["STAY"]}, UnknownNameError, "'action'. Did you mean 'actions'"),
        (["STAY"], OptionError, r"step=\['STAY'\]: Input should be"),
    ):  # fmt: skip
        with pytest.raises(error, match=said):
            server.Reply.model_validate(values)


def test_the_application_reports_mistakes_and_forgives_who_leaves(
    server: Any, cells: list[Hosted]
) -> None:
    served = server.Served(cells, episode="life", reward="success", seed=7)
    made: list[App] = []

    def create(*arguments: Any, **more: Any) -> App:
        made.append(App(*arguments, **more))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "create_fastapi_app", create)
        app = served.app(5)
    [inner] = made
    assert inner.kinds == (server.Reply, server.Prompt)
    assert inner.more["max_concurrent_envs"] == 5
    assert inner.made()._served is served
    handler = inner.handlers[CheeseBenchError]
    content, status = asyncio.run(handler(None, OptionError("No.")))
    assert (content, status) == ({"detail": "No."}, 400)
    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    async def gone(message: object) -> None:
        raise BrokenPipeError

    asyncio.run(app("hello", None, send))
    assert sent == ["hello"]

    async def unruly(scope: object, receive: object, send: Any) -> None:
        with suppress(OSError):
            await send(scope)
        raise RuntimeError("the connection is closed")

    asyncio.run(server.forgiving(unruly)("x", None, gone))
    with pytest.raises(RuntimeError):
        asyncio.run(server.forgiving(unruly)("x", None, send))
