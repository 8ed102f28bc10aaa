"""Settings of an editor: kept, extended, or left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.commands.schema import SETTING, with_schema
from cheesebench.errors import OptionError
from cheesebench.protocol.schema import schema_text

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]

OURS = {".vscode/s.json": "*.protocol.yaml"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", {SETTING: OURS}),
        ('{"a": "ä"}', {"a": "ä", SETTING: OURS}),
        (
            json.dumps({SETTING: {"x.json": "*.x", ".vscode/s.json": "*.y"}}),
            {SETTING: {"x.json": "*.x", **OURS}},
        ),
    ],
)
def test_other_settings_are_kept(before: str, after: dict[str, object]) -> None:
    text = with_schema(before, ".vscode/s.json")
    assert json.loads(text) == after
    assert text.endswith("}\n")
    assert ("ä" in text) == ("ä" in before)


@pytest.mark.parametrize(
    "before", ["// mine\n{}", "[]", "3", json.dumps({SETTING: []})]
)
def test_what_cannot_be_read_is_not_changed(before: str) -> None:
    with pytest.raises(OptionError) as found:
        with_schema(before, ".vscode/s.json")
    said = f'Add "{SETTING}": {{".vscode/s.json": "*.protocol.yaml"}} to it'
    assert said in str(found.value)


def test_schema_is_printed_or_written(run: Run, here: Path) -> None:
    assert run("schema").out == schema_text()
    assert run("schema", "--output", "s.json").out == ""
    assert (here / "s.json").read_text(encoding="utf-8") == schema_text()
