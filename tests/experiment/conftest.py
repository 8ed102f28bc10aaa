"""A real plugin with a family of its own; see stranger/stranger.py."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from cheesebench.experiment.log import RunLog
from cheesebench.plugin_manager import PluginManager

STRANGER = Path(__file__).parent / "stranger"


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the plugin, which is installed during the test."""
    monkeypatch.syspath_prepend(STRANGER)
    return importlib.import_module("stranger")


@pytest.fixture
def plugins(stranger: ModuleType) -> PluginManager:
    """A plugin manager that knows the stranger."""
    manager = PluginManager()
    assert manager.failures == {}
    return manager


@pytest.fixture
def log(stranger: ModuleType, tmp_path: Path) -> Iterator[RunLog]:
    """A new log of two agents in one protocol."""
    cells = stranger.cells(["walker", "moody"], subjects=2)
    with RunLog.create(
        tmp_path / "results",
        "r1",
        cells.items(),
        options={"seed": 1, "design": "cohort"},
    ) as log:
        yield log


@pytest.fixture
def command(stranger: ModuleType) -> Callable[..., list[str]]:
    """The command line of a process that runs the stranger's ``main`` with these
    arguments.
    """

    def arguments(*given: object) -> list[str]:
        return [sys.executable, str(STRANGER / "stranger.py"), *map(str, given)]

    return arguments


@pytest.fixture
def environment() -> Callable[..., dict[str, str]]:
    """The environment for such a process, with changes."""

    def changed(**changes: str) -> dict[str, str]:
        return {**os.environ, **changes}

    return changed
