"""``list``: the installed protocols."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]


def test_list_names_all_that_is_installed(run: Run) -> None:
    result = run("list")
    assert result.code == 0
    plugins = installed_plugins()
    lines = [
        f"{what}: {', '.join(named)}"
        for what, named in (
            ("views", plugins.views),
            ("report formats", plugins.reporters),
            ("executors", plugins.executors),
        )
    ]
    protocols = Catalogue(plugins.protocol_directories).names()
    text = " ".join(result.out.split())
    for name in (
        *protocols,
        *plugins.agents,
        *plugins.respondents,
        *plugins.model_agents,
        *plugins.backends,
        *lines,
    ):
        assert name in text
    assert "cannot be loaded" not in text


@pytest.mark.usefixtures("wide")
def test_list_describes_a_protocol_and_goes_on_past_broken_ones(
    run: Run, strangers: Path, maze: str
) -> None:
    (strangers / "little.protocol.yaml").write_text(maze, encoding="utf-8")
    (strangers / "bad.protocol.yaml").write_text(
        maze.replace("limit: 9", "limit: never ever"), encoding="utf-8"
    )
    result = run("list")
    assert result.code == 0
    lines = result.out.splitlines()
    (little,) = [line.split() for line in lines if line.startswith("little ")]
    assert little == [
        "little",
        "patience",
        "4",
        "x",
        "9",
        "75",
        "%",
        "declared",
        "–",
        "not",
        "validated",
    ]
    assert [line for line in lines if "bad.protocol.yaml has 1 error:" in line]
    assert (
        "The plugin broken cannot be loaded: RuntimeError: out of\\x1b[2J cheese (broken.py:1)"
        in lines
    )
    assert any(line.startswith("t_maze ") for line in lines)


@pytest.mark.parametrize("width", ["60", "80", "120"])
@pytest.mark.parametrize("command", ["list", "models", "plugins", "study"])
def test_a_list_fits_the_terminal_and_loses_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    narrow = run(command).out
    assert max(map(len, narrow.splitlines())) <= int(width)
    monkeypatch.setenv("COLUMNS", "1000")
    whole = run(command).out

    def letters(text: str) -> Counter[str]:
        """Count the visible characters, without blanks and the lines below headings,
        whose lengths vary.
        """
        return Counter(
            "".join(line for line in text.splitlines() if set(line) - set("- "))
        ) - Counter({" ": len(text)})

    assert letters(narrow) == letters(whole)


def test_where_a_terminal_s_width_is_unknown_it_is_80(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((0, 0)))
    assert max(map(len, run("models").out.splitlines())) <= 80


def test_list_for_programs(run: Run, strangers: Path, maze: str) -> None:
    (strangers / "little.protocol.yaml").write_text(maze, encoding="utf-8")
    (strangers / "bad.protocol.yaml").write_text("- nothing", encoding="utf-8")
    found = json.loads(run("list", "--json").out)
    (little,) = [
        protocol for protocol in found["protocols"] if protocol["name"] == "little"
    ]
    assert little == {
        "name": "little",
        "edition": "default",
        "title": "Little",
        "dimension": "patience",
        "trials": 4,
        "limit": 9,
        "reference": 0.75,
        "ability": None,
        "random": 0.125,
        "construct": None,
        "validity": "not validated",
        "file": "site/strange_protocols/little.protocol.yaml",
    }
    assert [broken["file"] for broken in found["broken_protocols"]] == [
        "site/strange_protocols/bad.protocol.yaml"
    ]
    assert list(found["broken_plugins"]) == ["broken"]
    assert {"name": "random", "memory": "none"}.items() <= found["agents"][0].items()
    (openai,) = [
        backend for backend in found["backends"] if backend["name"] == "openai"
    ]
    assert "api_key_env" in openai["options"]
    plugins = installed_plugins()
    assert found["views"] == list(plugins.views)
    assert found["report_formats"] == list(plugins.reporters)
    assert [executor["name"] for executor in found["executors"]] == list(
        plugins.executors
    )
