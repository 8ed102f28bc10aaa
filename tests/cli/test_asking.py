"""The first questions to a model, and what its answers say of its manner."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench.chat import (
    ChatReply,
    ChatRequest,
    Message,
    ModelEntry,
    ServerFacts,
    Usage,
)
from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.calling import SubjectStoppedError
from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.log import RunLog
from cheesebench.family import LanguageModel
from cheesebench.planning.asking import (
    QUESTIONS,
    TIMEOUT,
    Questioner,
    _density,
    _summed,
    _tokens_of,
    first_answers,
    next_requests,
)
from cheesebench.planning.earlier import DENSITY, PICTURED
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification, with_arena
from cheesebench.records import CellPlan
from cheesebench.testing.fake_server import FakeServer

SAID = ("ACTIONS: F, F, F, F", "ACTIONS: L, R, F", "What now?")


def request(text: str = "go", *pictures: bytes) -> ChatRequest:
    parts: tuple[str | bytes, ...] = (text, *pictures)
    return ChatRequest(model="m", messages=(Message(role="user", parts=parts),))


def reply(text: str = "", prompt: int = 0, completion: int = 0) -> ChatReply:
    return ChatReply(text=text, usage=Usage(prompt=prompt, completion=completion))


class Connection:
    """Answers in turn, and keeps the requests."""

    def __init__(self) -> None:
        self.heard: list[ChatRequest] = []

    async def complete(self, one: ChatRequest) -> ChatReply:
        self.heard.append(one)
        return reply(SAID[len(self.heard) % 3], completion=len(self.heard))


def questioner(most: int = 3) -> tuple[Questioner, Connection]:
    connection: Any = Connection()
    plan: Any = None
    return Questioner(plan, connection, asyncio.Semaphore(1), most), connection


def test_a_subject_stops_when_enough_was_asked() -> None:
    asker, connection = questioner(2)

    async def ask() -> None:
        for trial in range(3):
            await asker.ask(trial, request())

    with pytest.raises(SubjectStoppedError, match="all questions have been asked"):
        asyncio.run(ask())
    assert [one.timeout for one in connection.heard] == [TIMEOUT, TIMEOUT]
    assert len(asker.asked) == 2
    assert asker.asked[0][0] == request()
    assert asker.seconds > 0


def test_replies_are_read_by_the_agent_s_counts() -> None:
    asker, _ = questioner()
    for actions, calls, unparsed in (
        ((0, 0, 1), 1, 0), ((), 2, 1), ((3,), 3, 2), ((), 4, 2),
        ((0, 1), 1, 0), ((3,), 2, 1), ((1,), 2, 0), ((2,), 0, 0),
    ):  # fmt: skip
        asker.read_as(actions, lambda c=calls, u=unparsed: {"calls": c, "unparsed": u})  # type: ignore[misc]
    assert asker.silent == 3
    assert asker.named == [3, 2, 1, 1]
    asker.read_as([1], dict)
    assert asker.named == [3, 2, 1, 1, 1]


def test_the_manner_is_the_mean_of_all_answers() -> None:
    one, other = questioner()[0], questioner()[0]
    one.asked = [
        (request("x" * 100), reply("y", 130, 10)),
        (request("x" * 50), reply("abcd")),
    ]
    other.asked = [(request("x", b"png"), reply("y", 999, 7))]
    one.named, other.named, one.silent, one.seconds, other.seconds = (
        [1, 4],
        [4],
        1,
        3.0,
        6.0,
    )
    found = _summed([one, other], ServerFacts(slots=None, context=4096))
    assert (found.replies, found.asked, found.context) == (3, True, 4096)
    assert found.reply == (10 + 4 * DENSITY + 7) / 3
    assert found.acts == pytest.approx(2 / 3)
    assert found.actions == 3
    assert found.seconds == 9.0 / 3 / 2
    assert found.density == 130 / (100 * PICTURED)
    assert _summed([one, other], ServerFacts(slots=1)).seconds == 3.0
    one.named = other.named = []
    assert _summed([one, other], ServerFacts()).actions is None
    with pytest.raises(
        CheeseBenchError, match="Nothing was asked, because these cells"
    ):
        _summed(questioner()[:1], ServerFacts())
    assert _density([(request(), reply())]) == DENSITY
    assert _tokens_of(reply("äb", completion=0)) == 3 * DENSITY


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(lambda call: SAID[call.number % 3]) as server:
        yield server


def cells_of(
    here: Path, server: FakeServer, *views: str
) -> tuple[list[tuple[CellPlan, Specification]], LanguageModel]:
    specification = with_arena(Catalogue().load(here / "little.protocol.yaml"))
    entry = ModelEntry(name="tiny", backend="openai", id="tiny-1", images=True)
    plugins = installed_plugins()
    model = language_model(
        plugins, entry, settings={"actions": 4}, base_url=server.base_url
    )
    design = find_design("cohort", 2)
    settings = model.settings
    return [
        (
            plan_cell(
                specification, "tiny", view, design, agent="llm", settings=settings
            ),
            specification,
        )
        for view in views
    ], model


@pytest.mark.parametrize(("views", "asked"), [(1, 6), (2, 6), (4, 8)])
def test_each_cell_asks_its_part_of_the_first_questions(
    here: Path, server: FakeServer, views: int, asked: int
) -> None:
    names = list(installed_plugins().views)[:views]
    cells, model = cells_of(here, server, *names)
    told: list[str] = []
    found = first_answers(installed_plugins(), cells, {"tiny": model}, told.append)
    assert (QUESTIONS, found["tiny"].replies) == (6, asked)
    assert len(server.calls) >= asked
    assert 0 < found["tiny"].acts < 1


def test_the_next_request_of_a_run_is_what_its_next_subject_asks(
    here: Path, server: FakeServer
) -> None:
    cells, _ = cells_of(here, server, "ascii_2d", "topdown_2d")
    plugins = installed_plugins()
    with RunLog.create(here / "results", "r", cells, options={"seed": 0}) as log:
        due = [(cell, 1) for cell in reversed(cells)]
        found = next_requests(plugins, log, due, 0)
        assert list(found) == ["tiny"]
        [question] = found["tiny"]
        assert question.plan is not None
        assert (question.plan.view, question.subject) == ("topdown_2d", 1)
        assert (question.trial, question.call) == (0, 0)
        seen = question.request.messages[-1].parts
        assert any(isinstance(part, bytes) for part in seen)
        assert next_requests(plugins, log, [], 0) == {}


def test_answers_in_the_log_are_not_asked_for_again(here: Path) -> None:
    said = ", ".join(f'"{one}"' for one in SAID)
    (here / "replies.yaml").write_text(
        f"seed: 1\nreplies:\n  - say: [{said}]\n", encoding="utf-8"
    )
    cheesebench.run(
        "scripted:replies.yaml", ["little.protocol.yaml"], design="cohort", subjects=1, seed=0, run_id="asked",
        progress=False,
    )  # fmt: skip
    specification = with_arena(Catalogue().load(here / "little.protocol.yaml"))
    plugins = installed_plugins()
    with RunLog.open_read_only(here / "results" / "asked") as log:
        [plan] = log.plans()
        cell = plan, specification
        assert next_requests(plugins, log, [(cell, 0)], 0) == {plan.model: []}
        longer = dataclasses.replace(plan, trials=9)
        [question] = next_requests(plugins, log, [((longer, specification), 1)], 0)[
            plan.model
        ]
        assert (question.subject, question.trial, question.call) == (1, 0, 0)
        # A request that differs from the log ends the search.
        other = {**plan.settings, "temperature": 1.5}
        varied = dataclasses.replace(plan, settings=other)
        assert next_requests(plugins, log, [((varied, specification), 0)], 0) == {
            plan.model: []
        }
