"""The order of a conversation: begin, answer each question, read the result."""

from __future__ import annotations

import pytest

from cheesebench.errors import StepAfterEndError, UnknownNameError
from cheesebench.paradigms.dialogue.life import GraphParadigm
from cheesebench.paradigms.dialogue.specification import DialogueSpecification


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
