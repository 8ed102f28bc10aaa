"""Right, or wrong in a way that has a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.paradigms.dialogue.answers import (
    OUTCOMES,
    Answer,
    Lexicon,
    Score,
    read_answer,
    score,
)
from cheesebench.paradigms.dialogue.specification import DialogueSpecification


def scored(garden: DialogueSpecification, condition: str, reply: str) -> Score:
    spec = garden.conditions[condition]
    lexicon = Lexicon(
        garden.domains["numbers"].names, garden.domains["numbers"].wording.nouns
    )
    return score(
        read_answer(reply, lexicon, spec.form), spec, spec.items[0], garden.world
    )


@pytest.mark.parametrize(
    ("condition", "reply"),
    [
        ("plain", "Answer: 1, 2, 3, 5"),
        ("plain", "Answer: room 1, room 4, room 3, room 5"),
        ("loose", "Answer: 1, 2, 3, 5"),
        ("loose", "Answer: 2, 3, 5"),
        ("first", "Answer: 4"),
        ("first", "Answer: room 1, room 2"),
        ("near", "Answer: 2, 3, 5"),
        ("cut", "Answer: 1, 4, 6, 5"),
        ("groups", "Answer: 3 groups"),
    ],
)
def test_right(garden: DialogueSpecification, condition: str, reply: str) -> None:
    result = scored(garden, condition, reply)
    assert result.success, result
    assert result.outcome == "correct"


@pytest.mark.parametrize(
    ("condition", "reply", "outcome", "measures"),
    [
        ("plain", "", "no answer", {"no_answer": 1, "hallucinated_fraction": None}),
        (
            "plain",
            "Answer: 1, 2, 3, 5 or 1, 4, 3, 5",
            "several answers",
            {"several_answers": 1},
        ),
        ("first", "Answer: 2 or 4", "several answers", {"several_answers": 1}),
        ("first", "Answer: 2, 3, 5", "wrong form", {"wrong_form": 1}),
        ("first", "Answer: 2 and 4", "wrong form", {"wrong_form": 1}),
        ("first", "Answer: 5", "hallucinated edge", {"first_illegal_step": 1}),
        ("plain", "Answer: 1, 2, cellar, 5", "unknown node", {"unknown_nodes": 1}),
        ("plain", "Answer: Ada, Ben", "unknown node", {"unknown_nodes": 2}),
        (
            "plain",
            "Answer: 2, 3, 5",
            "wrong start",
            {"wrong_start": 1, "wrong_goal": 0},
        ),
        (
            "plain",
            "Answer: 1, 2, 5",
            "hallucinated edge",
            {"hallucinated_edges": 1, "hallucinated_fraction": 0.5},
        ),
        (
            "plain",
            "Answer: 1, 3, 2, 5",
            "hallucinated edge",
            {"hallucinated_edges": 2, "first_illegal_step": 1},
        ),
        (
            "plain",
            "Answer: 1, 2, 3, 4, 1, 2, 3, 5",
            "loop",
            {"loop": 1, "excess_length": 4},
        ),
        (
            "plain",
            "Answer: 1, 4, 6",
            "wrong goal",
            {"wrong_goal": 1, "hallucinated_edges": 0},
        ),
        (
            "plain",
            "Answer: 1, 2, 3",
            "wrong goal",
            {"wrong_goal": 1, "excess_length": None},
        ),
        (
            "cut",
            "Answer: 1, 2, 3, 4, 6, 5",
            "too long",
            {"excess_length": 2, "loop": 0},
        ),
        (
            "cut",
            "Answer: 1, 2, 3, 5",
            "hallucinated edge",
            {"blocked_edge": 1, "first_illegal_step": 3},
        ),
        ("plain", "Answer: 1, 4, 6, 5", "hallucinated edge", {"blocked_edge": 0}),
        ("groups", "Answer: 4", "wrong number", {"error": 1}),
        ("groups", "Answer: 2 or 3", "several answers", {"several_answers": 1}),
    ],
)
def test_wrong_in_a_way_that_has_a_name(
    garden: DialogueSpecification,
    condition: str,
    reply: str,
    outcome: str,
    measures: dict[str, object],
) -> None:
    result = scored(garden, condition, reply)
    assert not result.success
    assert result.outcome == outcome
    assert {name: result.measures[name] for name in measures} == measures


nodes = st.lists(st.sampled_from(["1", "2", "3", "4", "5", "6", "7", None]), max_size=9)


@given(
    nodes,
    st.booleans(),
    st.sampled_from(["plain", "first", "loose", "near", "cut", "gate"]),
)
def test_every_answer_has_one_outcome_and_flags_that_fit(
    garden: DialogueSpecification, said: list[str | None], several: bool, name: str
) -> None:
    condition = garden.conditions[name]
    result = score(
        Answer(tuple(said), several), condition, condition.items[0], garden.world
    )
    assert result.outcome in OUTCOMES
    assert result.success == (result.outcome == "correct")
    illegal = result.measures["hallucinated_edges"]
    assert isinstance(illegal, int)
    assert (illegal > 0) == (result.measures["first_illegal_step"] is not None)
    if result.success:
        assert not several
        assert not illegal
        assert not result.measures["loop"]
        assert result.measures["excess_length"] in (0, None)
