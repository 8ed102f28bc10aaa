"""Parts of a new file: its name, its parent, and the first steps to take."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.commands.new import (
    _first_trials,
    _next,
    _played,
    check_name,
    edition_text,
    protocol_text,
)
from cheesebench.errors import OptionError, PluginError
from cheesebench.interfaces import BaseSpecification
from cheesebench.protocol import Catalogue, with_arena


@pytest.mark.parametrize("name", ["a", "my_maze2", "x" * 60])
def test_a_name_is_accepted(name: str) -> None:
    check_name("a paradigm", name)


@pytest.mark.parametrize("name", ["", "2mazes", "my-maze", "x" * 61])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(OptionError, match="cannot be the name of a paradigm"):
        check_name("a paradigm", name)


def parent(**changes: Any) -> BaseSpecification:
    text = protocol_text("maze", "my_maze")
    found, _ = Catalogue().inspect_text(text, "my_maze.protocol.yaml")
    assert found is not None
    return replace(found, **changes)


def test_an_edition_extends_its_parent() -> None:
    text = edition_text("slow", parent())
    assert "extends: my_maze" in text
    assert "edition: slow" in text
    with pytest.raises(OptionError, match="'default' is the parent's own edition"):
        edition_text("default", parent())
    with pytest.raises(OptionError, match=r"my-maze\.protocol\.yaml has a name that"):
        edition_text("slow", parent(path="lab/my-maze.protocol.yaml"))
    quoted = edition_text("slow", parent(document=SimpleNamespace(title="Rat's maze")))
    assert "'Rat''s maze, slow'" in quoted


def test_a_chamber_s_tests_play_trials_of_both_kinds() -> None:
    text = protocol_text("chamber", "my_box")
    specification, found = Catalogue().inspect_text(text, "my_box.protocol.yaml")
    assert specification is not None, found
    assert _first_trials(text, "light", ("on", "off")) != [1, 1]
    with pytest.raises(PluginError, match="error"):
        _first_trials("version: 1", "light", ("on", "off"))


def test_the_next_steps_begin_with_lint_and_end_with_the_slowest() -> None:
    steps = list(_next(parent(), "a.protocol.yaml"))
    assert [step.split()[:2] for step in steps] == [
        ["cheesebench", "lint"],
        ["cheesebench", "trace"],
        ["cheesebench", "test"],
        ["pytest", "--model"],
        ["cheesebench", "audit"],
    ]
    assert all("a.protocol.yaml" in step for step in steps)
    dialogue = cast(Any, SimpleNamespace(family="dialogue", document=None))
    assert [step.split()[0] for step in _next(dialogue, "b")] == [
        "cheesebench",
        "pytest",
    ]


def test_trace_plays_the_first_test(tmp_path: Path) -> None:
    path = tmp_path / "my_maze.protocol.yaml"
    path.write_text(protocol_text("maze", "my_maze"), encoding="utf-8")
    specification = with_arena(Catalogue().load(path))
    first = specification.document.tests[0]
    said = _played(specification)
    assert said.endswith(f"--actions {said.split()[-1]}")
    assert ("--seed" in said) == (first.seed != 0)
    assert ("--subject" in said) == (first.subject != 0)
    assert ("--trial" in said) == (first.trial != 1)
