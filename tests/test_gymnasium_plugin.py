"""Shipped protocols are registered as soon as Gymnasium is imported, and not before."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import cheesebench.protocols
from cheesebench.gymnasium_plugin import (
    _AfterGymnasium,
    class_name,
    register_when_imported,
)

#: Stands for Gymnasium, which takes seconds to import.
LIGHT = """
made = {}
def register(id, entry_point): made[id] = entry_point
"""


@pytest.fixture(autouse=True)
def _light(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gymnasium.py").write_text(LIGHT, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "gymnasium", raising=False)
    others = [one for one in sys.meta_path if not isinstance(one, _AfterGymnasium)]
    monkeypatch.setattr(sys, "meta_path", others)


def imported() -> ModuleType:
    return importlib.import_module("gymnasium")


def check(gymnasium: ModuleType) -> None:
    """Check that every shipped protocol is registered, and a protocol of any file."""
    shipped = list(Path(cheesebench.protocols.__path__[0]).glob("*.protocol.yaml"))
    made = dict(gymnasium.made)
    assert len(made) == len(shipped) + 1
    assert made["cheesebench/TMaze-v1"] == "cheesebench.paradigms:TMaze"
    assert made.pop("cheesebench/Protocol-v1").endswith("environment:make_from_file")
    for name, entry_point in made.items():
        inside = name.removeprefix("cheesebench/").removesuffix("-v1")
        assert entry_point == f"cheesebench.paradigms:{inside}"


def test_registration_waits_for_the_import() -> None:
    before = len(sys.meta_path)
    register_when_imported()
    assert len(sys.meta_path) == before + 1
    assert importlib.import_module("colorsys").__name__ == "colorsys"
    assert "gymnasium" not in sys.modules
    check(imported())
    assert len(sys.meta_path) == before


def test_what_is_imported_already_is_used_at_once() -> None:
    gymnasium, before = imported(), len(sys.meta_path)
    assert gymnasium.made == {}
    register_when_imported()
    check(gymnasium)
    assert len(sys.meta_path) == before


def test_where_gymnasium_is_not_installed_its_import_fails_as_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gymnasium.py").unlink()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    register_when_imported()
    with pytest.raises(ModuleNotFoundError, match="No module named 'gymnasium'"):
        imported()


@pytest.mark.parametrize(
    ("name", "said"),
    [("t_maze", "TMaze"), ("t_maze@rodent", "TMazeRodent"), ("t_maze.rodent", "TMazeRodent"), ("delay_30s", "Delay30s")],
)  # fmt: skip
def test_class_names(name: str, said: str) -> None:
    assert class_name(name) == said
