"""The recipe of docs/cogeval.md is a protocol that loads, runs, and can be answered."""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.cogeval_scores import write
from cheesebench.paradigms.dialogue import documents as doc
from cheesebench.paradigms.dialogue.answers import OUTCOMES
from cheesebench.paradigms.dialogue.cogeval_stats import read_scores
from cheesebench.paradigms.dialogue.life import GraphParadigm
from cheesebench.paradigms.dialogue.specification import (
    SLOTS,
    DialogueSpecification,
    shipped_scenes,
)
from cheesebench.paradigms.dialogue.statistics import read_published
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


def test_scores_are_counted_from_public_conversations(tmp_path: Path) -> None:
    folder = tmp_path / "conversations"
    told = [
        ("n7line/ordRooms/valuePath/bard/a.json", "bard", 0, {"valuePath": 1.0}),
        ("n7line/ordRooms/valuePath/bard/b.json", "bard", 0.0, {"valuePath": 0.0}),
        ("n7line/ordRooms/valuePath/x/a.json", "cohere:xlarge", 0.5, {"valuePath": 3.0}),
        ("n7line/ordRooms/valuePath/x/b.json", "replicate:llama/alpaca-7b", 1, {}),
    ]  # fmt: skip
    for name, model, temperature, grades in told:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        scores = {key: {"score": grade} for key, grade in grades.items()}
        row = {"model": model, "temperature": temperature, "scores": scores}
        path.write_text(json.dumps(row), encoding="utf-8")
    table = tmp_path / "scores.csv"
    with table.open("w", encoding="utf-8") as file:
        write(folder, file)
    assert table.read_text(encoding="utf-8").splitlines()[1:] == [
        "n7line,ordRooms,valuePath,bard,0,1,2",
        "n7line,ordRooms,valuePath,cohere-xlarge,0.5,1,1",
    ]
    published = read_published(Path(__file__).parents[1] / "protocols" / "cogeval")
    assert [one.total for one in read_scores(table, published)] == [2, 1]
