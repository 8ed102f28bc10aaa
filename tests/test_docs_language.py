"""The pages on the language cover every key."""

from __future__ import annotations

from pathlib import Path

import pytest

from cheesebench.protocol.documents import (
    Arena,
    Block,
    DocumentModel,
    Draw,
    Effects,
    MeasureBy,
    ProtocolDocument,
    Range,
    Rule,
    State,
    Trial,
    Until,
)
from cheesebench.protocol.expressions import (
    ARITHMETIC,
    BUILT_INS,
    FUNCTIONS,
    HISTORY,
    SEQUENCES,
)

DOCS = Path(__file__).parents[1] / "docs"
ROW = "give them a row in the table of docs/language.md"


@pytest.mark.parametrize(
    "model",
    [
        ProtocolDocument,
        Arena,
        Draw,
        Range,
        Trial,
        State,
        Rule,
        Effects,
        Block,
        Until,
        MeasureBy,
    ],
)
def test_the_language(model: type[DocumentModel]) -> None:
    page = (DOCS / "language.md").read_text(encoding="utf-8")
    assert [
        key for key in _keys(model) if f"`{key}" not in page and f"{key}:" not in page
    ] == []


def test_names_and_functions() -> None:
    page = (DOCS / "language.md").read_text(encoding="utf-8")
    assert [
        name
        for name in (*FUNCTIONS, *ARITHMETIC, *SEQUENCES, *HISTORY)
        if f"`{name}(" not in page
    ] == [], ROW
    assert [name for name in BUILT_INS if f"`{name}`" not in page] == [], ROW


def _keys(model: type[DocumentModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
