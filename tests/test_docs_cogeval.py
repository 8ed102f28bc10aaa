"""The recipe of docs/cogeval.md is a protocol that loads, runs, and can be answered."""

from __future__ import annotations

import re
from pathlib import Path

from cheesebench.paradigms.dialogue import documents as doc
from cheesebench.paradigms.dialogue.answers import OUTCOMES
from cheesebench.paradigms.dialogue.life import GraphParadigm
from cheesebench.paradigms.dialogue.specification import (
    SLOTS,
    DialogueSpecification,
    shipped_scenes,
)
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue

PAGE = (Path(__file__).parents[1] / "docs" / "cogeval.md").read_text(encoding="utf-8")


def recipe() -> DialogueSpecification:
    found = re.search(
        r"<!-- test: file: harbour.protocol.yaml -->\n```yaml\n(.*?)```",
        PAGE,
        re.DOTALL,
    )
    assert found
    specification, problems = Catalogue().inspect_text(
        found[1], "harbour.protocol.yaml"
    )
    assert isinstance(specification, DialogueSpecification), problems
    assert not problems
    return specification


def test_the_recipe_can_be_asked_and_answered() -> None:
    plugins = installed_plugins()
    specification = recipe()
    compiled = GraphParadigm(specification)
    oracle = plugins.respondent("shortest-path-oracle")
    for domain, condition in specification.variants:
        dialogue = compiled.dialogue(domain, condition)
        question = dialogue.begin_trial()
        while question is not None:
            assert "{" not in question
            question = dialogue.answer(oracle.reply(dialogue.puzzle, question, 0))
        assert dialogue.result().success


def test_the_recipe_says_it_in_its_own_words() -> None:
    dialogue = GraphParadigm(recipe()).dialogue("quays", "flood")
    first = dialogue.begin_trial()
    assert first is not None
    assert "You can walk from the harbour gate to North Quay and South Quay." in first
    assert "At the Old Mole the fishers give away 50 herrings." in first
    second = dialogue.answer("Answer: gate, South Quay, Old Mole")
    assert second is not None
    assert "between the harbour gate and South Quay is overgrown" in second
    assert (
        dialogue.answer("I walk: harbour gate -> North Quay -> Long Pier -> Old Mole.")
        is None
    )
    assert dialogue.result().success


def test_the_page_names_every_sentence_scene_and_outcome() -> None:
    for sentence in (
        field.alias or name for name, field in doc.Scene.model_fields.items()
    ):
        assert re.search(rf"\b{sentence}\b", PAGE), sentence
    assert all(f"{{{slot}}}" in PAGE for slots in SLOTS.values() for slot in slots)
    assert all(re.search(rf"\b{scene}\b", PAGE) for scene in shipped_scenes())
    assert all(
        outcome in PAGE
        for outcome in OUTCOMES
        if outcome not in ("correct", "wrong path")
    )
