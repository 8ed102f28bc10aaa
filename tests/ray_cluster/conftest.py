"""A Ray cluster of three nodes on this machine; the first has the controller."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cheesebench.plugin_manager import PluginManager

STRANGER = Path(__file__).parents[1] / "experiment/stranger"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Three nodes with one processor each; tests may remove and add nodes."""
    from ray.cluster_utils import Cluster

    # Paths of sockets must be short.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    for _ in range(2):
        made.add_node(num_cpus=1)
    yield made
    made.shutdown()


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of a plugin, which is installed during the test."""
    monkeypatch.syspath_prepend(STRANGER)
    return importlib.import_module("stranger")


@pytest.fixture
def plugins(stranger: ModuleType) -> PluginManager:
    """A plugin manager that knows the stranger."""
    return PluginManager()
