"""Everything registered passes the conformance suite for vendors."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from cheesebench.chat import ModelAgentSpec
from cheesebench.dialogue import RespondentSpec
from cheesebench.interfaces import AgentSpec, View
from cheesebench.plugin_manager import BUILT_INS, PluginManager
from cheesebench.testing import (
    assert_agent_sound,
    assert_backend_sound,
    assert_respondent_sound,
    assert_view_sound,
)

PLUGINS = PluginManager()
#: How each backend is called: further arguments of the suite.
CALLS: dict[str, dict[str, Any]] = {
    "openai": {"key_env": "OPENAI_API_KEY"},
    # A running server is called through the same client.
    "vllm": {"key_env": "VLLM_API_KEY"},
    "litellm": {
        "model": "openai/tiny",
        "key_env": "GATE_KEY",
        "options": {"api_key_env": "GATE_KEY"},
    },
    "scripted": {"server": None},
}


#: Backends that load a model themselves: ``tests/local`` and ``tests/real_vllm`` test
#: them.
LOADING = {"llamacpp", "vllm-offline"}


def test_every_backend_is_called() -> None:
    assert set(PLUGINS.backends) - {*CALLS, *LOADING} == set(), (
        "say in CALLS how these are called"
    )


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")  # litellm leaves sockets to the garbage collector
def test_backends(name: str, tmp_path: Path) -> None:
    if name == "litellm" and importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    calls = dict(CALLS[name])
    if name == "scripted":
        script = tmp_path / "replies.yaml"
        script.write_text("replies: [{say: 'ACTIONS: STAY'}]\n", encoding="utf-8")
        calls["model"] = str(script)
    assert_backend_sound(PLUGINS.backend(name), **calls)


@pytest.mark.parametrize(
    "spec",
    [*PLUGINS.agents.values(), *PLUGINS.model_agents.values()],
    ids=lambda spec: spec.name,
)
def test_agents(spec: AgentSpec | ModelAgentSpec) -> None:
    assert_agent_sound(spec)


@pytest.mark.parametrize(
    "spec", PLUGINS.respondents.values(), ids=lambda spec: spec.name
)
def test_respondents(spec: RespondentSpec) -> None:
    assert_respondent_sound(spec)


@pytest.mark.parametrize("view", PLUGINS.views.values(), ids=lambda view: view.name)
def test_views(view: View) -> None:
    assert_view_sound(view)


def test_something_is_registered() -> None:
    assert PLUGINS.reloadable >= set(BUILT_INS)
    assert all(
        (
            PLUGINS.backends,
            PLUGINS.agents,
            PLUGINS.model_agents,
            PLUGINS.respondents,
            PLUGINS.views,
        )
    )
