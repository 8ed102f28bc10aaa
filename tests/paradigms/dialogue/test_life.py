"""The order of a conversation: begin, answer each question, read the result."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from cheesebench.commands.common import installed_catalogue
from cheesebench.errors import StepAfterEndError, UnknownNameError
from cheesebench.paradigms.dialogue.life import GraphDialogue, GraphParadigm
from cheesebench.paradigms.dialogue.specification import DialogueSpecification
from cheesebench.plugins.agents.respondents import (
    greedy_reward,
    random_walk,
    shortest_path_oracle,
)
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
