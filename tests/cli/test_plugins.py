"""What plugins supply, in words; and whose items are used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.commands.plugins import Plugin, _hooks, _supplied, replacements


def plugin(name: str, **hooks: list[str]) -> Plugin:
    given = {f"cheesebench_{hook}": names for hook, names in hooks.items()}
    return Plugin(name=name, distribution="d", version="1", module=name, hooks=given)


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ({}, "nothing"),
        ({"views": ["a", "b"]}, "views: a, b"),
        ({"models": ["a", "b"]}, "2 models"),
        ({"models": ["a"]}, "models: a"),
        ({"protocols": ["a", "b", "c"], "agents": ["d"]}, "3 protocols; agents: d"),
        ({"run_finished": []}, "cheesebench_run_finished"),
        ({"reporters": []}, "report formats"),
    ],
)
def test_many_models_and_protocols_are_only_counted(
    hooks: dict[str, list[str]], said: str
) -> None:
    assert _hooks(plugin("mine", **hooks)) == said


def test_a_later_plugin_replaces_but_never_a_built_in_command() -> None:
    found = list(
        replacements(
            [
                plugin("first", views=["a", "b"], protocols=["p"], commands=["list"]),
                plugin("second", views=["b"], agents=["a"], protocols=["p"]),
                plugin("third", views=["b"], commands=["mine"]),
            ]
        )
    )
    assert found == [
        "The command 'list' of first is not used: a built-in command has this name. "
        "Rename the plugin's command.",
        "The view 'b' of second is used, not the one of first.",
        "The view 'b' of third is used, not the one of second.",
    ]


def test_hooks_are_found_with_what_they_supply() -> None:
    def odd() -> Any:
        raise ValueError("no luck")

    views = [
        SimpleNamespace(
            name="eyes", characters="", render=lambda *all_of_it: "", max_length=len
        )
    ]
    module = SimpleNamespace(
        cheesebench_views=lambda: views,
        cheesebench_agents=odd,
        cheesebench_api=3,
        cheesebench_run_finished=lambda summary: None,
        other=len,
    )
    found = _supplied(module)
    assert list(found) == [
        "cheesebench_agents",
        "cheesebench_run_finished",
        "cheesebench_views",
    ]
    assert found["cheesebench_run_finished"] == []
    assert found["cheesebench_views"] == ["eyes"]
    [failed] = found["cheesebench_agents"]
    assert failed.startswith("fails: ValueError: no luck")
