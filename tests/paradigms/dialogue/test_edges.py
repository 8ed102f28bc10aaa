"""Lists of all edges: read, and right only if nothing is missing
and nothing invented.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cheesebench.paradigms.dialogue.life import GraphParadigm
from cheesebench.paradigms.dialogue.specification import DialogueSpecification
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue

ALL = "(room 1, room 2), (room 2, room 3), (room 1, room 4), (room 4, room 3), (room 3, room 5), (room 4, room 6)"


def result(
    garden: DialogueSpecification, reply: str
) -> tuple[bool | None, str, dict[str, Any]]:
    dialogue = GraphParadigm(garden).dialogue("numbers", "map")
    question = dialogue.begin_trial()
    assert question is not None
    assert "List every one of them" in question or "List every tie" in question
    assert dialogue.answer(reply) is None
    found = dialogue.result()
    return found.success, found.outcome, dict(found.measures)


@pytest.mark.parametrize(
    "reply",
    [
        f"Answer: {ALL}",
        f"The doors are these.\n**Answer:**\n{ALL.replace('), (', ')' + chr(10) + '(')}",
        "Answer: (2, door, 1), (3, door, 2), (4, door, 1), (3, door, 4), (5, door, 3), (6, door, 4)",
        "Answer: 1-2, 2-3, 1-4, 4-3, 3-5, 4-6",
        "Answer:\n1. room 1 - room 2\n2. room 2 - room 3\n3. room 1 - room 4\n4. 4 - 3\n5. 3 - 5\n6. 4 - 6",
        f"Answer: {ALL}, (room 2, room 1)",
        f"Answer: {ALL}\nuser: And (1, 6)?",
    ],
)
def test_all_edges(garden: DialogueSpecification, reply: str) -> None:
    assert result(garden, reply)[:2] == (True, "correct")


@pytest.mark.parametrize(
    ("reply", "outcome", "flags"),
    [
        (
            "",
            "no answer",
            {"no_answer": 1, "missing_edges": 6, "hallucinated_fraction": None},
        ),
        ("I cannot say.", "no answer", {"no_answer": 1}),
        (
            f"Answer: {ALL.replace(', (room 4, room 6)', '')}",
            "missing edge",
            {"missing_edges": 1},
        ),
        (
            f"Answer: {ALL}, (room 1, room 6)",
            "hallucinated edge",
            {"hallucinated_edges": 1, "missing_edges": 0},
        ),
        (
            f"Answer: {ALL};".replace("), (", "; ").strip("()"),
            "correct",
            {"missing_edges": 0},
        ),
        (
            "Answer: 1-2, 2-3, 1-4, 4-3, 3-5, 4-cellar",
            "unknown node",
            {"unknown_nodes": 1, "missing_edges": 1},
        ),
        ("Answer: (1, 2), (1, 2, 3)", "unknown node", {"unknown_nodes": 1}),
    ],
)
def test_flags(
    garden: DialogueSpecification, reply: str, outcome: str, flags: dict[str, Any]
) -> None:
    _, found, measures = result(garden, reply)
    assert found == outcome
    assert measures.items() >= flags.items()


def test_an_edge_that_leads_one_way_is_listed_that_way(
    garden: DialogueSpecification,
) -> None:
    plugins = installed_plugins()
    line = Catalogue(plugins.protocol_directories).find("cogeval_n7line")
    assert isinstance(line, DialogueSpecification)
    for reply, right in (
        ("(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6)", True),
        ("(1, 0), (0, 2)", False),
    ):
        dialogue = GraphParadigm(line).dialogue("ordered_rooms", "listEdges")
        dialogue.begin_trial()
        dialogue.answer(f"Answer: {reply.replace('0', 'the lobby')}")
        assert dialogue.result().success is right


@pytest.mark.parametrize(
    "name", ["shortest-path-oracle", "random-walk", "greedy-reward"]
)
def test_baselines_answer_it(garden: DialogueSpecification, name: str) -> None:
    dialogue = GraphParadigm(garden).dialogue("people", "map")
    question = dialogue.begin_trial()
    assert question is not None
    dialogue.answer(
        installed_plugins().respondent(name).reply(dialogue.puzzle, question, 1)
    )
    assert dialogue.result().success == (name == "shortest-path-oracle")
    assert dialogue.result().outcome != "no answer"
    assert garden.conditions["map"].chance() == 0


def test_subjects_take_turns_at_pairs(garden: DialogueSpecification) -> None:
    condition = garden.conditions["turns"]
    assert len(condition.items) == 5
    asked = [condition.asked_of(subject) for subject in range(5)]
    assert {len(items) for items in asked} == {2}
    every = [(item.start, item.goals) for items in asked for item in items]
    assert all(every.count(pair) == 2 for pair in every), (
        "five subjects with two each ask every pair twice"
    )
    assert len({item.start for items in asked[:2] for item in items}) > 2, (
        "the first pairs begin at different places"
    )
    dialogue = GraphParadigm(garden).dialogue("numbers", "turns", 1)
    questions = []
    while question := dialogue.begin_trial():
        questions.append(question)
        dialogue.answer("Answer: 1")
    assert len(questions) == 2
    assert condition.chance(1) != condition.chance(5), (
        "the chance level depends on the questions"
    )
    own = [replace(condition, items=one, each=0).chance() for one in (*asked, *asked)]
    for subjects in (1, 3, 5, 8):
        expected = sum(own[:subjects]) / subjects
        assert condition.chance(subjects) == pytest.approx(expected)


def test_a_model_is_told_what_the_protocol_says(garden: DialogueSpecification) -> None:
    assert (
        GraphParadigm(garden).dialogue("numbers", "plain").system == "You are a guide."
    )
