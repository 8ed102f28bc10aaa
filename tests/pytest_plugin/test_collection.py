"""Which cells a protocol has, and which of them a session keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.errors import CheeseBenchError, PluginError, UnsuitableError
from cheesebench.family import CellRequest, Design
from cheesebench.pytest_session import collection, refusals
from cheesebench.pytest_session.collection import _keep_named, _plans
from cheesebench.pytest_session.running import is_cell

REQUEST = CellRequest(
    model="m", plugins=cast(Any, None), design=Design(name="few", subjects=2)
)


@pytest.mark.parametrize(
    ("views", "faults", "plans", "obstacles"),
    [
        (("a", "b"), {}, ["a", "b"], {}),
        (("a",), {"a": UnsuitableError("dark")}, [], {"": "dark"}),
        (("a", "b"), {"a": UnsuitableError("dark")}, ["b"], {"a": "dark"}),
        (
            ("a", "b"),
            {"a": UnsuitableError("dark"), "b": UnsuitableError("dull")},
            [],
            {"a": "dark", "b": "dull"},
        ),
        # What holds for all views is said once.
        (
            ("a", "b"),
            {"a": UnsuitableError("dark"), "b": UnsuitableError("dark")},
            [],
            {"": "dark"},
        ),
        (
            ("a", "b", "c"),
            {"a": UnsuitableError("dark"), "b": UnsuitableError("dark")},
            ["c"],
            {"a": "dark", "b": "dark"},
        ),
        (("a", "b"), {"a": PluginError("odd")}, [], {"": "odd"}),
    ],
)
def test_a_view_that_does_not_suit_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
    views: tuple[str, ...],
    faults: dict[str, CheeseBenchError],
    plans: list[str],
    obstacles: dict[str, str],
) -> None:
    def cells_of(specification: object, request: CellRequest) -> list[str]:
        for view in request.views:
            if view in faults:
                raise faults[view]
        return list(request.views)

    monkeypatch.setattr(collection, "cells_of", cells_of)
    found, why = _plans(cast(Any, None), replace(REQUEST, views=views))
    assert cast(Any, found) == plans
    assert {view: str(error) for view, error in why.items()} == obstacles


@dataclass(frozen=True)
class Item:
    """A test, by its id."""

    nodeid: str


def kept(*ids: str) -> tuple[list[str], list[str]]:
    """Return the ids of the tests that are kept, and of those that are deselected."""
    items = [
        Item(one)
        for one in (
            "cheesebench::maze[v-m]",
            "cheesebench::maze[w-m]",
            "cheesebench::pool[v-m]",
            "test_x.py::test_y[1]",
        )
    ]
    gone: list[Item] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: gone.extend(items))
    _keep_named(list(ids), cast(Any, SimpleNamespace(hook=hook)), cast(Any, items))
    return [one.nodeid for one in items], [one.nodeid for one in gone]


def test_named_cells_are_kept_and_tests_of_files() -> None:
    maze, wide, pool, own = (
        "cheesebench::maze[v-m]",
        "cheesebench::maze[w-m]",
        "cheesebench::pool[v-m]",
        "test_x.py::test_y[1]",
    )
    assert kept(maze) == ([maze, own], [wide, pool])
    assert kept("cheesebench::maze") == ([maze, wide, own], [pool])
    assert kept("cheesebench::maze", pool) == ([maze, wide, pool, own], [])


def test_a_cell_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(config: object, error: Exception) -> Exception:
        return pytest.UsageError(str(error))

    monkeypatch.setattr(refusals, "refused", refused)
    with pytest.raises(pytest.UsageError) as found:
        kept("cheesebench::maze[v-n]")
    assert "test called 'cheesebench::maze[v-n]'" in str(found.value)
    assert "Did you mean 'cheesebench::maze[v-m]'" in str(found.value)


@pytest.mark.parametrize(
    ("nodeid", "cell"),
    [
        ("cheesebench::maze[v-m]", True),
        ("lab/my.protocol.yaml::my[v-m]", True),
        ("tests/test_a.py::test_b", False),
        ("tests/test_a.py::test_b[x.protocol.yaml]", False),
    ],
)
def test_which_tests_are_cells(nodeid: str, cell: bool) -> None:
    assert is_cell(nodeid) == cell
