"""A laboratory with the stranger's agent in it, and the result of an undisturbed run
there.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cheesebench.experiment import calling
from cheesebench.plugin_manager import PluginManager
from cheesebench.testing.fake_server import FakeServer
from tests.experiment.laboratory import Laboratory, walk


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)


@pytest.fixture
def plugins(plugins: PluginManager, stranger: ModuleType) -> PluginManager:
    import talker  # type: ignore[import-not-found]

    plugins.register(
        SimpleNamespace(cheesebench_model_agents=lambda: [talker.TALKER]), name="talker"
    )
    return plugins


@pytest.fixture
def laboratory(
    plugins: PluginManager, stranger: ModuleType, tmp_path: Path
) -> Laboratory:
    return Laboratory(plugins, stranger, tmp_path)


@pytest.fixture
def undisturbed(laboratory: Laboratory) -> list[str]:
    """The results of the run if nothing goes wrong."""
    with FakeServer(walk) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("undisturbed", cells) as log:
            dump = laboratory.run(log, model, cells)
            assert server.count == log.calls.totals().calls > 30
    assert len(dump) > 15
    return dump
