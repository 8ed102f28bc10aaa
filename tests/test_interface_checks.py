"""Plugins' objects are compared with their interfaces: a mistake is one line with
plugin, type and remedy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cheesebench
from cheesebench import AgentSpec, DocumentModel, StepwiseFamily
from cheesebench.errors import PluginError
from cheesebench.interface_checks import checked, misfit
from cheesebench.interfaces import Agent
from cheesebench.plugin_manager import BUILT_INS, SUPPLIED, PluginManager, supplied_by


class Mouse:
    """An agent that has everything."""

    def __init__(self, context: Any) -> None: ...
    def begin_trial(self, observation: str) -> None: ...
    def act(self, observation: str) -> list[int]:
        return [0]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None: ...


class Half:
    """An agent with only the method ``act``."""

    def act(self, observation: str) -> list[int]:
        return [0]


class Curt(Mouse):
    """An agent that takes too little."""

    def observe(self, action: int) -> None: ...  # type: ignore[override]


class Late(Mouse):
    """An agent that is to be awaited."""

    async def act(self, observation: str) -> list[int]:  # type: ignore[override]
        return [0]


class Actor(Mouse):
    """An agent with a slip of the pen."""

    act = None  # type: ignore[assignment]


class Learned(Mouse):
    """An agent that wants more than a context."""

    def __init__(self, context: Any, rate: float) -> None: ...


class Unfinished(StepwiseFamily[Any, Any]):
    """A family with one misspelt method."""

    name, plural, document = "levers", "levers", DocumentModel

    def matches(self, tree: Any) -> bool:
        return False

    def load(self, tree: Any, path: Any, ancestors: Any, diagnostics: Any) -> None: ...
    def compile(self, specification: Any) -> None: ...
    def cell(self, specification: Any, request: Any) -> list[Any]:
        return []


class Blank:
    """A view without a length."""

    name, characters = "blank", ""

    def render(self, scene: Any, column: int, row: int, heading: int) -> str:
        return ""


def connect(context: Any) -> Any: ...
async def connect_later(context: Any) -> Any: ...
def raising() -> Any:
    yield AgentSpec("mouse", Mouse)
    raise ZeroDivisionError("no luck")


async def later() -> list[Any]:
    return []


#: Typed as Any, because these specs are filled in as without a type checker.
cb: Any = cheesebench
MISTAKES: list[tuple[str, Callable[[], Any], str]] = [
    ("families", lambda: [Mouse(None)], "a Mouse, which is not a Family. Return a Family."),
    ("families", lambda: [Unfinished], "the class Unfinished. Return an object of this class, Unfinished(...)."),
    ("views", lambda: [Blank()], "the Blank 'blank', which has no 'max_length'. Add 'def max_length(self, scene)'."),
    ("agents", lambda: [Mouse(None)], "a Mouse, which has no 'name'. Return an AgentSpec."),
    ("agents", lambda: [cb.AgentSpec("mouse", None)], "the AgentSpec 'mouse', whose 'create' is None. Make it a f*"),
    (
        "agents",
        lambda: [cb.AgentSpec("mouse", Learned)],
        "the AgentSpec 'mouse', whose 'create' takes (context, rate), but is called with "
        "(AgentContext). Change its parameters.",
    ),
    ("agents", lambda: [cb.AgentSpec(Mouse, "mouse")], "an AgentSpec, whose 'name' is <class *>, a type. Make it a string."),
    ("agents", lambda: [Mouse], "the class Mouse. Return an AgentSpec(...)."),
    ("agents", lambda: [cb.RespondentSpec("echo", len)], "Respond*, a RespondentSpec. Return it from *_respondents."),
    ("agents", lambda: ["mouse"], "'mouse', a str. Return an AgentSpec."),
    ("model_agents", lambda: [cb.ModelAgentSpec(name="a", create=connect, settings=["b"])], "* 'settings' is *"),
    ("respondents", lambda: [cb.RespondentSpec("echo", len)], "* whose 'reply' takes (obj, /), but is called with *"),
    ("backends", lambda: [cb.BackendSpec(name="acme", connect=connect_later)], "* 'connect' is an 'async def'. Write *"),
    ("backends", lambda: [cb.BackendSpec(name="acme", connect=connect, options=3)], "* 'options' is 3, an int. *"),
    ("models", lambda: [cb.ModelEntry(name="m", backend="b", id="i", aliases="x")], "* 'aliases' is 'x', a str. *"),
    ("models", lambda: [cb.ModelEntry(name="m", backend="b", id="i", price=3)], "* 'price' is 3, an int. Make it a P*"),
    ("executors", lambda: [cb.ExecutorSpec("pool", "pool")], "* whose 'create' is 'pool', a str. Make it a f*"),
    ("commands", lambda: [cb.CommandSpec("runs", "list runs", Path())], "* 'module' is PosixPath*. Make it a string."),
    ("protocols", lambda: ["lab"], "'lab', a str. Return a pathlib.Path."),
    ("protocols", lambda: [Path("nowhere")], "nowhere, which is not a directory. Correct the path; in a package, *"),
]  # fmt: skip
HOOKS: list[tuple[Callable[[], Any], str]] = [
    (lambda: None, "returned None. Return a list of AgentSpec objects."),
    (
        lambda: AgentSpec("mouse", Mouse),
        "returned AgentSpec(*, an AgentSpec. Return a list of AgentSpec objects.",
    ),
    (
        lambda: {"mouse": Mouse},
        "returned {'mouse': *, a dict. Return a list of AgentSpec objects.",
    ),
    (
        lambda: Mouse,
        "returned <class '*.Mouse'>, a type. Return a list of AgentSpec objects.",
    ),
    (
        lambda: [Unfinished()],  # type: ignore[abstract]
        "TypeError: Can't instantiate abstract class Unfinished with*cells* (test_interface_checks.py:*). Fix or remove *",
    ),
    (later, "returned a coroutine. Write 'def', not 'async def'."),
    (
        raising,
        "ZeroDivisionError: no luck (test_interface_checks.py:*). Fix or remove the plugin.",
    ),
]


def said_of(hook: str, supply: Callable[[], Any]) -> str:
    """Return the message about a hook of the plugin 'lab'."""
    with pytest.raises(PluginError) as found:
        supplied_by(supply, hook, "lab")
    text = str(found.value)
    assert "\n" not in text
    start = f"The plugin 'lab', {hook}: "
    assert text.startswith(start)
    return text.removeprefix(start)


def is_like(text: str, pattern: str) -> bool:
    """Match like a shell, but only with ``*``, because a type may have brackets."""
    head, *rest = pattern.split("*")
    at = len(head) if text.startswith(head) else -1
    for part in rest:
        at = text.find(part, at) + len(part) if at >= 0 and part in text[at:] else -1
    return at >= 0


@pytest.mark.parametrize(
    ("hook", "supply", "said"),
    MISTAKES,
    ids=lambda one: one[:30] if isinstance(one, str) else "",
)
def test_what_does_not_fit_is_said(
    hook: str, supply: Callable[[], Any], said: str
) -> None:
    text = said_of(f"cheesebench_{hook}", supply)
    assert is_like(text, f"returned a list with {said}"), text


@pytest.mark.parametrize(("supply", "said"), HOOKS)
def test_what_is_no_list_is_said(supply: Callable[[], Any], said: str) -> None:
    text = said_of("cheesebench_agents", supply)
    assert is_like(text, said), text


@pytest.mark.parametrize("hook", SUPPLIED)
def test_what_is_built_in_fits(hook: str) -> None:
    plugins = PluginManager(entry_points=False)
    supplied = [
        item
        for one in getattr(plugins.hook, hook).get_hookimpls()
        for item in supplied_by(one.function, hook, one.plugin_name)
    ]
    assert supplied or hook == "cheesebench_commands"
    assert all(
        one.plugin_name in BUILT_INS
        for one in getattr(plugins.hook, hook).get_hookimpls()
    )


def test_a_kind_of_agent_that_a_family_adds_is_its_own_affair() -> None:
    own = SimpleNamespace(name="rat", kind="swimmer")
    assert supplied_by(lambda: [own], "cheesebench_agents", "lab") == [own]


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        (
            Half(),
            "a Half, which lacks 'begin_trial' and 'observe'. Add them (see cheesebench.Agent).",
        ),
        (
            Curt(None),
            "a Curt, whose 'observe' takes (action). Write 'def observe(self, action, reward, observation, ended)'.",
        ),
        (
            Late(None),
            "a Late, whose 'act' is an 'async def'. Write 'def act(self, observation)'.",
        ),
        (
            Actor(None),
            "an Actor, whose 'act' is None. Write 'def act(self, observation)'.",
        ),
        (None, "None. Return an Agent."),
        (Mouse, "the class Mouse. Return an object of this class, Mouse(...)."),
    ],
)
def test_what_an_agent_lacks_is_said(agent: object, said: str) -> None:
    with pytest.raises(PluginError) as found:
        checked(agent, Agent, "The agent 'mouse': create returned")
    assert str(found.value) == f"The agent 'mouse': create returned {said}"


def test_what_is_set_in_the_constructor_counts() -> None:
    free = SimpleNamespace(
        begin_trial=lambda seen: None,
        act=lambda seen: [0],
        observe=lambda *all_of_it: None,
    )
    assert misfit(free, Agent) == ""
    assert misfit(Mouse(None), Agent) == ""
