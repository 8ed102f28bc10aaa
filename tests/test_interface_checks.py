"""Plugins' objects are compared with their interfaces: a mistake is one line with
plugin, type and remedy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Protocol, cast

import pytest

import cheesebench
from cheesebench import AgentSpec, DocumentModel, StepwiseFamily
from cheesebench.errors import PluginError
from cheesebench.interface_checks import (
    blaming,
    checked,
    misfit,
    rendered,
    returned,
    returned_list,
    shown,
)
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


class Named(Protocol):
    """An interface with attributes."""

    name: str
    size: int

    @property
    def place(self) -> int: ...

    async def go(self, there: int) -> None: ...
    def _own(self) -> None: ...


class Whole:
    name, size, place = "w", 3, 4

    async def go(self, there: int) -> None: ...


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"name": 3}, "whose 'name' is 3, an int. Make it a string."),
        ({"size": "any"}, ""),
        (
            {"go": lambda self, there: None},
            "whose 'go' is a 'def'. Write 'async def go(self, there)'.",
        ),
        ({"go": 3}, "whose 'go' is 3, an int. Write 'async def go(self, there)'."),
        ({"size": None, "delete": "size"}, "which has no 'size'. Add 'size: int'."),
        ({"delete": "place"}, "which has no 'place'. Add 'place: ...'."),
        (
            {"delete": "place", "plaice": 1},
            "which has 'plaice', not 'place'. Rename it.",
        ),
        ({"delete": "go"}, "which has no 'go'. Add 'async def go(self, there)'."),
        (
            {"delete": "go", "_goo": 1},
            "which has no 'go'. Add 'async def go(self, there)'.",
        ),
    ],
)
def test_attributes_and_methods_of_an_interface(
    changes: dict[str, Any], said: str
) -> None:
    usual = {name: vars(Whole)[name] for name in ("name", "size", "place", "go")}
    members = {key: one for key, one in usual.items() if key != changes.get("delete")}
    members |= {
        name: value
        for name, value in changes.items()
        if name not in ("delete", changes.get("delete"))
    }
    thing = type("Thing", (), members)()
    named = f"the Thing '{thing.name}', " if thing.name == "w" else "a Thing, "
    assert misfit(thing, Named) == (f"{named}{said}" if said else "")


@dataclass
class Form:
    """An interface with fields."""

    number: float
    word: Literal["a", "b"]
    pair: tuple[int, ...]
    maybe: str | None
    call: Callable[[int, str], None] | None
    anything: Any


def form(**changes: Any) -> SimpleNamespace:
    usual = {
        "number": 1, "word": "a", "pair": [1, 2], "maybe": None, "call": lambda number, word: None, "anything": object(),
    }  # fmt: skip
    return SimpleNamespace(**(usual | changes))


async def waits(number: int, word: str) -> None: ...


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"number": "1"}, "whose 'number' is '1', a str. Make it a number."),
        ({"word": "c"}, "whose 'word' is 'c', a str. Make it 'a' or 'b'."),
        ({"pair": "ab"}, "whose 'pair' is 'ab', a str. Make it a tuple."),
        ({"pair": 3}, "whose 'pair' is 3, an int. Make it a tuple."),
        ({"maybe": "x", "call": None}, ""),
        ({"maybe": 3}, "whose 'maybe' is 3, an int. Make it "),
        ({"call": 3}, "whose 'call' is 3, an int. Make it "),
        ({"call": waits}, "whose 'call' is an 'async def'. Write 'def'."),
        (
            {"call": lambda one: None},
            "whose 'call' takes (one), but is called with (int, str). Change its parameters.",
        ),
        ({"call": print}, ""),
        ({"call": max}, ""),
    ],
)
def test_fields_of_an_interface(changes: dict[str, Any], said: str) -> None:
    found = misfit(form(**changes), Form)
    assert found.startswith(f"a SimpleNamespace, {said}" if said else "")
    assert bool(found) is bool(said)


def test_things_that_are_not_even_objects() -> None:
    async def never() -> None: ...

    assert misfit(never(), Agent) == "a coroutine. Write 'def', not 'async def'."
    assert misfit(Form, Form) == "the class Form. Return a Form(...)."
    assert misfit([1], Form) == "[1], a list. Return a Form."
    assert (
        misfit("x" * 99, os.PathLike)
        == f"'{'x' * 56}..., a str. Return a pathlib.Path."
    )
    assert (
        misfit(object(), os.PathLike)
        == "an object, which is not a pathlib.Path. Return a pathlib.Path."
    )
    assert misfit(Path("x"), os.PathLike) == ""
    assert (
        misfit(SimpleNamespace(), Form)
        == "a SimpleNamespace, which has no 'number'. Return a Form."
    )


class Rude:
    def __repr__(self) -> str:
        raise ValueError


def test_values_are_shown_with_their_type() -> None:
    assert [shown(one) for one in (None, 3, "a", Rude())] == [
        "None",
        "3, an int",
        "'a', a str",
        "a Rude",
    ]


def test_what_a_plugin_raises_is_blamed_on_it() -> None:
    def blamed(error: BaseException) -> str:
        with pytest.raises(BaseException) as caught, blaming("The view 'v': render"):  # noqa: PT011
            raise error
        return f"{type(caught.value).__name__}: {caught.value}"

    raised = "PluginError: The view 'v': render raises ValueError: bad (test_interface"
    assert blamed(ValueError("bad")).startswith(raised)
    assert "raises SystemExit: out (" in blamed(SystemExit("out"))
    assert blamed(PluginError("mine")) == "PluginError: mine"
    assert blamed(KeyboardInterrupt()) == "KeyboardInterrupt: "


def test_results_have_the_type_that_was_asked_for() -> None:
    assert returned(3, int, "It") == 3
    assert returned_list((1, 2), int, "It") == [1, 2]
    for call, said in (
        (lambda: returned("x", int, "It"), "It returned 'x', a str. Return an int."),
        (
            lambda: returned_list("x", str, "It"),
            "It returned 'x', a str. Return a list of str objects.",
        ),
        (
            lambda: returned_list(3, int, "It"),
            "It returned 3, an int. Return a list of int objects.",
        ),
        (
            lambda: returned_list([1, "x"], int, "It"),
            "It returned a list with 'x', a str. Return a list of int objects.",
        ),
    ):
        with pytest.raises(PluginError) as caught:
            call()
        assert str(caught.value) == said


def test_a_view_draws_text() -> None:
    class Blank:
        name = "blank"

        def render(self, scene: object, column: int, row: int, heading: int) -> object:
            return scene and f"{scene} {column} {row} {heading}"

    view, scene, nothing = (cast("Any", one) for one in (Blank(), "scene", 0))
    assert rendered(view, scene, 1, 2, 90) == "scene 1 2 90"
    with pytest.raises(
        PluginError,
        match=r"The view 'blank': render returned 0, an int. Return a string.",
    ):
        rendered(view, nothing, 1, 2, 90)
