"""The pages on the language leave no key of theirs out."""

from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.paradigms.dialogue.language.documents import Condition, DialogueDocument, Edit, Graph
from cheesebench.protocol.arena_documents import Arena, Model
from cheesebench.protocol.documents import Effects, MeasureBy, ProtocolDocument, Rule, State, Trial
from cheesebench.protocol.draw_documents import Draw, Range
from cheesebench.protocol.features import ARITHMETIC, BUILT_INS, FUNCTIONS, HISTORY, SEQUENCES
from cheesebench.protocol.schedule_documents import Block, Until

DOCS = Path(__file__).parents[1] / "docs"
#: Keys that dialogues share with all protocols, and that do nothing of their own there.
ROW = "give them a row in the table of docs/language.md"
SHARED = set(ProtocolDocument.model_fields) & set(DialogueDocument.model_fields)


@pytest.mark.parametrize(
    "model", [ProtocolDocument, Arena, Draw, Range, Trial, State, Rule, Effects, Block, Until, MeasureBy]
)
def test_the_language(model: type[Model]) -> None:
    page = (DOCS / "language.md").read_text(encoding="utf-8")
    assert [key for key in _keys(model) if f"`{key}" not in page and f"{key}:" not in page] == []


def test_names_and_functions() -> None:
    page = (DOCS / "language.md").read_text(encoding="utf-8")
    assert [name for name in (*FUNCTIONS, *ARITHMETIC, *SEQUENCES, *HISTORY) if f"`{name}(" not in page] == [], ROW
    assert [name for name in BUILT_INS if f"`{name}`" not in page] == [], ROW


@pytest.mark.parametrize("model", [DialogueDocument, Graph, Edit, Condition])
def test_dialogues(model: type[Model]) -> None:
    page = (DOCS / "cogeval.md").read_text(encoding="utf-8")
    assert [key for key in set(_keys(model)) - SHARED if f"`{key}" not in page and f"{key}:" not in page] == []


def _keys(model: type[Model]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
