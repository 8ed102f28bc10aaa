"""The order of a conversation: begin, answer each question, read the result."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.chat import ChatReply, ChatRequest
from cheesebench.commands.common import installed_catalogue
from cheesebench.dialogue import RespondentSpec
from cheesebench.errors import RunLogError, StepAfterEndError, UnknownNameError
from cheesebench.family import Asker, Design, RecordedRun
from cheesebench.paradigms.dialogue.life import (
    MAX_SHOWN,
    GraphDialogue,
    GraphParadigm,
    plan_dialogue,
    respond,
    talk,
    watch,
)
from cheesebench.paradigms.dialogue.specification import DialogueSpecification
from cheesebench.plugins.agents.respondents import (
    greedy_reward,
    random_walk,
    shortest_path_oracle,
)
from cheesebench.protocol import Catalogue
from cheesebench.records import CallRecord, CellPlan, TrialRecord
from tests.paradigms.dialogue.conftest import TEXT
from tests.stored import check_stored


def test_an_answer_belongs_to_an_open_question(garden: DialogueSpecification) -> None:
    dialogue = GraphParadigm(garden).dialogue("numbers", "gate")
    with pytest.raises(StepAfterEndError, match="Begin the next trial before"):
        dialogue.answer("Answer: 1")
    assert dialogue.begin_trial() is not None
    with pytest.raises(StepAfterEndError, match="Answer its questions first"):
        dialogue.result()
    # The question of this condition comes after those of the two before it.
    assert dialogue.answer("Answer: 1") is not None
    assert dialogue.answer("Answer: 1") is not None
    with pytest.raises(StepAfterEndError, match="Answer its questions first"):
        dialogue.result()
    assert dialogue.answer("Answer: 7") is None
    found = dialogue.result()
    with pytest.raises(StepAfterEndError, match="Begin the next trial before"):
        dialogue.answer("Answer: 1, 2, 3, 5")
    assert dialogue.result() == found


def test_every_item_is_one_trial_that_begins_anew(
    garden: DialogueSpecification,
) -> None:
    paradigm, trials = GraphParadigm(garden), 0
    dialogue = paradigm.dialogue("numbers", "turns")
    while dialogue.begin_trial() is not None:
        with pytest.raises(StepAfterEndError):
            dialogue.result()
        assert dialogue.answer("") is None
        trials += 1
    assert trials == len(garden.conditions["turns"].asked_of(0)) > 1


@pytest.mark.parametrize(
    ("domain", "condition", "said"),
    [
        ("numbrs", "plain", "no domain 'numbrs'. Did you mean 'numbers'"),
        ("people", "plane", "no condition 'plane'. Did you mean 'plain'"),
    ],
)
def test_an_unknown_name_is_named(
    domain: str, condition: str, said: str, garden: DialogueSpecification
) -> None:
    with pytest.raises(UnknownNameError, match=said):
        GraphParadigm(garden).dialogue(domain, condition)


#: Variables that say which dialogue it is.
PLACE = ("graph", "domain", "condition", "group")


def replies(dialogue: GraphDialogue, question: str, turn: int) -> list[str]:
    """Return replies to a question: right ones and wrong ones, in several forms."""
    puzzle = dialogue.puzzle
    oracle, greedy, walk = (
        reply(puzzle, question, turn)
        for reply in (shortest_path_oracle, greedy_reward, random_walk)
    )
    bare = oracle.removeprefix("Answer: ")
    return [
        oracle,
        f"Let me think: {bare}. So I go on.\n**Answer:** {bare}.",
        greedy,
        walk,
        f"First {bare}, but then again\n\nAnswer: {bare}, {bare}",
        "I do not know.",
        "Answer: 3",
    ]


def film(specification: DialogueSpecification) -> Iterator[str]:
    """Yield the first questions of each condition, and what each reply is worth."""
    paradigm = GraphParadigm(specification)
    for domain, condition in product(specification.domains, specification.conditions):
        for number in range(7):
            dialogue = paradigm.dialogue(domain, condition, number)
            question = dialogue.begin_trial()
            turn = 0
            while question is not None:
                if number == 0:
                    yield f"{specification.name} {domain} {condition}"
                    yield question if specification.name == "garden" else ""
                said = replies(dialogue, question, turn)[number]
                question, turn = dialogue.answer(said), turn + 1
            found = dialogue.result()
            told = {**found.measures, **found.counters, **found.variables}
            kept = {
                name: one for name, one in told.items() if one and name not in PLACE
            }
            yield f"  {found.outcome} {found.success} {kept}"


def test_dialogues_are_compared_with_what_is_stored(
    garden: DialogueSpecification,
) -> None:
    catalogue = installed_catalogue()
    known = [garden]
    for name in ("n7tree", "n16cluster"):
        one = catalogue.load(catalogue.folders["cogeval"] / f"{name}.protocol.yaml")
        assert isinstance(one, DialogueSpecification)
        known.append(one)
    lines = [line for one in known for line in film(one)]
    check_stored("dialogues.txt", "\n".join(lines) + "\n")


def test_a_result_is_of_one_session_and_shows_a_bounded_answer(
    garden: DialogueSpecification,
) -> None:
    dialogue = GraphParadigm(garden).dialogue("numbers", "plain")
    dialogue.begin_trial()
    dialogue.answer(f"Answer: {', '.join(['1', '2'] * 150)}")
    found = dialogue.result()
    assert found.session == 1
    assert len(str(found.variables["answer"])) == MAX_SHOWN == 200
    assert str(found.variables["answer"]).startswith("1 2 1 2")


def test_a_further_question_without_a_change_describes_nothing_again() -> None:
    text = TEXT + "  again: {after: plain, ask: groups}\n"
    specification, found = Catalogue().inspect_text(text, "garden.protocol.yaml")
    assert isinstance(specification, DialogueSpecification), found
    dialogue = GraphParadigm(specification).dialogue("numbers", "again")
    first = dialogue.begin_trial()
    second = dialogue.answer("Answer: 1")
    assert first is not None
    assert second is not None
    assert "\n\n" in first
    assert "\n\n" not in second


SETTINGS = {
    "id": "m", "served": {"top_k": 3}, "dropped": (), "temperature": 0.5, "max_tokens": 9, "history": 4,
}  # fmt: skip


def planned(garden: DialogueSpecification, condition: str, **settings: Any) -> CellPlan:
    design = Design(name="few", subjects=2)
    agent = "llm" if settings else ""
    return plan_dialogue(
        garden,
        "m",
        "numbers",
        condition,
        design,
        agent=agent,
        settings=settings or None,
    )


class Guide(Asker):
    """Answers what it is told to, in turns, and keeps what it was asked."""

    plan = cast(CellPlan, None)

    def __init__(self, *replies: ChatReply) -> None:
        self.replies, self.requests = replies, list[tuple[int, ChatRequest]]()

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        self.requests.append((trial, request))
        return self.replies[(len(self.requests) - 1) % len(self.replies)]


def talked(
    garden: DialogueSpecification, plan: CellPlan, guide: Guide, subject: int = 0
) -> list[TrialRecord]:
    async def whole() -> list[TrialRecord]:
        paradigm = GraphParadigm(garden)
        return [one async for one, _ in talk(paradigm, plan, 3, subject, guide)]

    return asyncio.run(whole())


def test_a_model_sees_its_own_replies_and_nothing_else(
    garden: DialogueSpecification,
) -> None:
    guide = Guide(
        ChatReply(text="one"), ChatReply(text="", finish="length"), ChatReply(text=" ")
    )
    plan = planned(garden, "gate", **SETTINGS)
    [record] = talked(garden, plan, guide)
    assert record.steps == 3
    assert dict(record.tally) == {"calls": 3, "truncated": 1, "empty": 1}
    assert record.variables["temperature"] == 0.5
    last = guide.requests[-1][1]
    assert [message.role for message in last.messages] == [
        "system", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert [last.messages[n].parts for n in (0, 2, 4)] == [
        ("You are a guide.",),
        ("one",),
        ("",),
    ]
    requests = [request for _, request in guide.requests]
    assert [len(request.messages) for request in requests] == [2, 4, 6]
    assert {(one.model, one.sampling.temperature, one.sampling.max_tokens) for one in requests} == {("m", 0.5, 9)}  # fmt: skip
    assert [dict(one.extra) for one in requests] == [{"top_k": 3}] * 3
    seeds = {one.sampling.seed for one in requests}
    assert len(seeds) == 3
    assert None not in seeds
    assert len({one.conversation for one in requests}) == 1
    other = Guide(ChatReply(text="one"))
    talked(garden, plan, other, subject=1)
    assert other.requests[0][1].conversation != requests[0].conversation
    assert len(requests[0].conversation) == 16
    bare = Guide(ChatReply(text="one"))
    talked(garden, planned(garden, "plain", **{**SETTINGS, "dropped": ("seed",)}), bare)
    assert bare.requests[0][1].sampling.seed is None


def test_each_item_begins_a_conversation(garden: DialogueSpecification) -> None:
    guide = Guide(ChatReply(text="Answer: 1"))
    plan = planned(garden, "turns", **SETTINGS)
    records = talked(garden, plan, guide)
    assert [record.trial for record in records] == list(range(plan.trials))
    assert [trial for trial, _ in guide.requests] == list(range(plan.trials))
    assert {len(request.messages) for _, request in guide.requests} == {2}
    more = talked(
        garden, dataclasses.replace(plan, trials=99), Guide(ChatReply(text="x"))
    )
    assert len(more) == plan.trials


def answering(
    reply: Callable[[Any, str, int], str] = lambda puzzle, question, seed: "Answer: 1",
) -> RespondentSpec:
    return RespondentSpec("m", reply)


def test_a_baseline_answers_each_question_with_a_seed_of_its_own(
    garden: DialogueSpecification,
) -> None:
    seen: list[tuple[str, int]] = []

    def reply(puzzle: Any, question: str, seed: int) -> str:
        seen.append((question, seed))
        return "Answer: 1"

    plan, paradigm = planned(garden, "gate"), GraphParadigm(garden)
    [(record, events)] = respond(paradigm, answering(reply), plan, 3, 0)
    assert (record.steps, dict(record.tally), events) == (3, {}, ())
    assert "temperature" not in record.variables
    assert len({seed for _, seed in seen}) == 3
    assert max(seed for _, seed in seen) < 2**63
    first, seen[:] = list(seen), []
    list(respond(paradigm, answering(reply), plan, 3, 0))
    assert seen == first
    seen.clear()
    list(respond(paradigm, answering(reply), plan, 3, 1))
    assert [question for question, _ in seen] == [question for question, _ in first]
    assert {seed for _, seed in seen}.isdisjoint(seed for _, seed in first)
    turns = dataclasses.replace(planned(garden, "turns"), trials=99)
    assert len(list(respond(paradigm, answering(), turns, 3, 0))) == len(
        garden.conditions["turns"].asked_of(0)
    )


def logged(
    records: Sequence[TrialRecord], calls: Sequence[CallRecord] = ()
) -> RecordedRun:
    found = SimpleNamespace(of_life=lambda plan, subject: calls)
    return cast(
        RecordedRun,
        SimpleNamespace(
            calls=found,
            trials=lambda plan, subject: records,
            manifest={"options": {"seed": 3}},
        ),
    )


def test_a_conversation_is_watched_with_its_recorded_answers(
    garden: DialogueSpecification,
) -> None:
    replies = [ChatReply(text=f"Answer: {n}") for n in (1, 2, 3)]
    plan, paradigm = planned(garden, "gate", **SETTINGS), GraphParadigm(garden)
    records = talked(garden, plan, Guide(*replies))
    refused = CallRecord(
        trial=0, call=0, digest="", system="", asked="", reply=ChatReply(text="no"),
        fault="content_filter",
    )  # fmt: skip
    calls = [refused] + [
        dataclasses.replace(refused, call=n, reply=one, fault=None)
        for n, one in enumerate(replies, 1)
    ]
    plugins = cast(Any, SimpleNamespace())
    [found] = watch(logged(records, calls), plugins, paradigm, plan, {0: {0}})
    assert found.record == records[0]
    assert [call.step for call in found.calls] == [0, 1, 2, 3]
    frames = list(found.frames)
    assert len(frames) == 4
    assert [frame.action for frame in frames] == ["", "?", "?", "?"]
    assert frames[0].observation == frames[1].observation
    assert [frame.reward for frame in frames] == [0.0, 0.0, 0.0, records[0].reward]
    assert (
        list(watch(logged(records, calls), plugins, paradigm, plan, {0: set()})) == []
    )
    with pytest.raises(RunLogError, match=r"only 2 of the answers in trial 1 of subj"):
        list(watch(logged(records, calls[:-1]), plugins, paradigm, plan, {0: {0}}))
    changed = [dataclasses.replace(records[0], reward=5.0)]
    with pytest.raises(RunLogError):
        list(watch(logged(changed, calls), plugins, paradigm, plan, {0: {0}}))
    lost = [dataclasses.replace(records[0], missing="budget")]
    assert list(watch(logged(lost), plugins, paradigm, plan, {0: {0}})) == []


def test_a_baseline_that_is_watched_answers_again(
    garden: DialogueSpecification,
) -> None:
    plan, paradigm = planned(garden, "turns"), GraphParadigm(garden)
    respondent = answering(lambda puzzle, question, seed: f"Answer: {seed % 6 + 1}")
    records = [record for record, _ in respond(paradigm, respondent, plan, 3, 1)]
    plugins = cast(Any, SimpleNamespace(respondent=lambda name: respondent))
    found = list(watch(logged(records), plugins, paradigm, plan, {1: {0, 1}}))
    assert [one.record for one in found] == records[:2]
    assert [list(one.calls) for one in found] == [[], []]


def test_a_plan_keeps_what_dialogues_read(garden: DialogueSpecification) -> None:
    plan = planned(garden, "plain")
    bare = dataclasses.replace(plan, settings={})
    with pytest.raises(RunLogError, match="has no domain, so the log is damaged"):
        next(respond(GraphParadigm(garden), cast(Any, None), bare, 3, 1))
    assert dict(plan.settings) == {
        "domain": "numbers",
        "condition": "plain",
        "group": "Traversal",
    }
    asked = planned(garden, "plain", **SETTINGS).settings
    assert "history" not in asked
    assert asked["temperature"] == 0.5
