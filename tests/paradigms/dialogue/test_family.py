"""The family of dialogues: which files are its own, and which cells a request makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.errors import UnsuitableError
from cheesebench.family import CellRequest, Design, LanguageModel, Study
from cheesebench.paradigms.dialogue.family import DialogueFamily
from cheesebench.paradigms.dialogue.life import GraphParadigm
from cheesebench.paradigms.dialogue.specification import DialogueSpecification
from cheesebench.plugin_manager import installed_plugins
from tests.arenas import examine_text

FAMILY = DialogueFamily()


def request(model: str = "some-model", **changes: Any) -> CellRequest:
    design = Design(name="few", subjects=2)
    return CellRequest(
        model=model, plugins=installed_plugins(), design=design, **changes
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "random"}, "The agent 'random' acts in arenas, but 'garden' is a"),
        ({"study": Study("s", "A study")}, "Remove --study."),
        ({"against": "gpt-4"}, "'garden' is a dialogue. The results published for"),
        ({"controls": ("anhedonia",)}, "which has no controls. Remove --control."),
    ],
)
def test_what_dialogues_do_not_have_is_refused(
    garden: DialogueSpecification, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(UnsuitableError) as caught:
        list(FAMILY.cells(garden, request(**changes)))
    assert said in str(caught.value)


def test_each_condition_in_each_domain_is_a_cell(garden: DialogueSpecification) -> None:
    cells = list(FAMILY.cells(garden, request()))
    assert len(cells) == len(garden.conditions) * len(garden.domains) == 18
    assert len({cell.key for cell in cells}) == 18
    assert {cell.model for cell in cells} == {"some-model"}
    kept = [dict(cell.settings) for cell in cells]
    assert all(one.keys() == {"domain", "condition", "group"} for one in kept)
    assert {one["domain"] for one in kept} == {"numbers", "people"}


def language(**settings: Any) -> LanguageModel:
    nothing = cast(Any, None)
    agent = cast(Any, SimpleNamespace(name="llm"))
    return LanguageModel(entry=nothing, backend=nothing, agent=agent, settings=settings)


def test_each_of_several_temperatures_is_a_variant(
    garden: DialogueSpecification,
) -> None:
    def cells(*temperatures: float) -> list[Any]:
        model = language(temperature=0.5)
        return list(
            FAMILY.cells(garden, request(language=model, temperatures=temperatures))
        )

    one, two = cells(0.2), cells(0.2, 0.9)
    assert (len(one), len(two)) == (18, 36)
    assert {cell.settings["temperature"] for cell in one} == {0.5}
    assert [cell.settings["temperature"] for cell in two] == [0.2] * 18 + [0.9] * 18
    assert len({cell.key for cell in two}) == 36
    assert {cell.agent for cell in two} == {"llm"}


def test_a_dialogue_has_a_row(garden: DialogueSpecification) -> None:
    found = FAMILY.listing(garden)
    assert found.by_folder
    assert found.row["dialogue"] == "garden"
    assert found.row["nodes / edges"] == "6 / 6"
    assert found.row["domains x conditions"] == "2 x 9"
    assert (found.values["nodes"], found.values["edges"]) == (6, 6)
    assert found.values["domains"] == ["numbers", "people"]
    assert isinstance(FAMILY.compile(garden), GraphParadigm)


@pytest.mark.parametrize(
    ("text", "dialogue"),
    [
        ("arena: {graph: {}}", True),
        ("arena: {map: '#'}", False),
        ("conditions: {}", True),
        ("arena: {}\nconditions: {}", True),
        ("arena: {map: '#'}\nconditions: {}", False),
        ("title: x", False),
    ],
)
def test_a_graph_or_a_key_of_dialogues_makes_a_file_a_dialogue(
    text: str, dialogue: bool
) -> None:
    _, found = examine_text(f"version: 1\nparadigm: p\n{text}\n")
    told = "\n".join(map(str, found))
    assert ("states" not in told and "trial" not in told) is dialogue
