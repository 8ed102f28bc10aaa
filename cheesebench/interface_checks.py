"""Checks a plugin's objects against their interfaces before they are used, so that a
mistake is reported in one line.

An interface is a ``typing.Protocol`` (an agent, a family, a view) or a dataclass
(``AgentSpec``) of this package. The checks find missing and misspelt members, methods
with the wrong parameters, and fields of the wrong type.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from types import UnionType
from typing import (
    Any,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from cheesebench.errors import CheeseBenchError, PluginError, closest, raised_where
from cheesebench.interfaces import Scene, View
from cheesebench.redaction import quoted

T = TypeVar("T")

#: Words for a valid value of a field in a remedy, by the field's type.
_WORDS: dict[Any, str] = {
    str: "a string",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    Callable: "a function or a class",
    Mapping: "a dict",
    tuple: "a tuple",
}
#: Maximum number of characters shown of a value or a name.
_SHOWN = 60


def checked(thing: T, interface: type, who: str) -> T:
    """Return ``thing`` if it fits the interface. Otherwise raise PluginError, with a
    message that begins with ``who``.

    ``who`` ends with a verb, as in "The agent 'mouse': create returned".
    """
    if fault := misfit(thing, interface):
        raise PluginError(f"{who} {fault}")
    return thing


@contextmanager
def blaming(who: str) -> Iterator[None]:
    """Run a plugin's code, and convert its exceptions to a PluginError whose message
    begins with ``who``. A CheeseBenchError passes unchanged, and so does
    KeyboardInterrupt, because it is usually Ctrl-C.
    """
    try:
        yield
    except CheeseBenchError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{who} raises {quoted(raised_where(error))}. Fix or remove the plugin."
        ) from error


def returned(thing: object, kind: type[T], who: str) -> T:
    """Return a plugin's result if it has the type ``kind``. Otherwise raise
    PluginError, with a message that begins with ``who``.
    """
    if isinstance(thing, kind):
        return thing
    raise PluginError(
        f"{who} returned {shown(thing)}. Return {_article(kind.__name__)} {kind.__name__}."
    )


def returned_list(things: object, kind: type[T], who: str) -> list[T]:
    """Return a plugin's results as a list if all have the type ``kind``. Otherwise
    raise PluginError, with a message that begins with ``who``.
    """
    remedy = f"Return a list of {kind.__name__} objects."
    if not isinstance(things, Iterable) or isinstance(things, str | bytes):
        raise PluginError(f"{who} returned {shown(things)}. {remedy}")
    found = list(things)
    for thing in found:
        if not isinstance(thing, kind):
            raise PluginError(f"{who} returned a list with {shown(thing)}. {remedy}")
    return found


def rendered(view: View, scene: Scene, column: int, row: int, heading: int) -> str:
    """Return what a view draws. Raise PluginError, which names the view, if ``render``
    raises or does not return a string.
    """
    with blaming(f"The view '{view.name}': render"):
        frame: object = view.render(scene, column, row, heading)
    if not isinstance(frame, str):
        raise PluginError(
            f"The view '{view.name}': render returned {shown(frame)}. Return a string."
        )
    return frame


def misfit(thing: object, interface: type) -> str:
    """Return why a thing does not fit the interface, with a remedy, or "" if it
    fits.
    """
    wanted = (
        "a pathlib.Path"
        if interface is os.PathLike
        else f"{_article(interface.__name__)} {interface.__name__}"
    )
    if inspect.iscoroutine(thing):
        thing.close()  # Otherwise Python would warn that it was never awaited.
        return "a coroutine. Write 'def', not 'async def'."
    if isinstance(thing, type) and dataclasses.is_dataclass(interface):
        return f"the class {thing.__name__}. Return {wanted}(...)."
    if isinstance(thing, type):
        return f"the class {thing.__name__}. Return an object of this class, {thing.__name__}(...)."
    if thing is None or type(thing) in (
        str,
        bytes,
        bool,
        int,
        float,
        dict,
        list,
        tuple,
        set,
    ):
        return f"{shown(thing)}. Return {wanted}."
    if dataclasses.is_dataclass(interface):
        faults = _wrong_fields(thing, interface)
    elif getattr(interface, "_is_protocol", False):
        faults = _wrong_members(thing, interface)
    else:
        faults = iter(
            []
            if isinstance(thing, interface)
            else [f"which is not {wanted}. Return {wanted}"]
        )
    fault = next(faults, "")
    return f"{_named(thing)}, {fault}." if fault else ""


def shown(value: object) -> str:
    if value is None:
        return "None"
    try:
        text = repr(value)
    except Exception:  # A plugin's __repr__ may raise anything.
        return f"{_article(type(value).__name__)} {type(value).__name__}"
    return f"{quoted(text, _SHOWN)}, {_article(type(value).__name__)} {type(value).__name__}"


def _named(thing: object) -> str:
    name, kind = getattr(thing, "name", None), type(thing).__name__
    return (
        f"the {kind} '{quoted(name, _SHOWN)}'"
        if isinstance(name, str) and name
        else f"{_article(kind)} {kind}"
    )


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiou" else "a"


@lru_cache
def _members(interface: type) -> tuple[dict[str, Callable[..., Any]], dict[str, str]]:
    """Return the methods of a Protocol, and its other attributes with their
    annotations.
    """
    methods: dict[str, Callable[..., Any]] = {}
    attributes: dict[str, str] = {}
    for base in interface.__mro__:
        if base in (object, Protocol, Generic):
            continue
        own = {
            name: value
            for name, value in vars(base).items()
            if not name.startswith("_")
        }
        methods |= {
            name: value for name, value in own.items() if inspect.isfunction(value)
        }
        attributes |= {
            name: "" for name, value in own.items() if isinstance(value, property)
        }
        attributes |= {
            name: str(kind)
            for name, kind in vars(base).get("__annotations__", {}).items()
        }
    return methods, attributes


def _wrong_members(thing: object, interface: type) -> Iterator[str]:
    methods, attributes = _members(interface)
    missing = [name for name in (*attributes, *methods) if not hasattr(thing, name)]
    if len(missing) > 1:
        listed = f"""'{"', '".join(missing[:-1])}' and '{missing[-1]}'"""
        yield f"which lacks {listed}. Add them (see cheesebench.{interface.__name__})"
    for name in missing:
        yield _said_missing(name, thing, methods, attributes)
    for name, kind in attributes.items():
        if kind == "str" and not isinstance(value := getattr(thing, name), str):
            yield f"whose '{name}' is {shown(value)}. Make it a string"
    for name, wanted in methods.items():
        if fault := _fault_of_method(getattr(thing, name), wanted):
            yield f"whose '{name}' {fault}. Write '{_definition(name, wanted)}'"


def _said_missing(
    name: str,
    thing: object,
    methods: Mapping[str, Callable[..., Any]],
    attributes: Mapping[str, str],
) -> str:
    known = {*methods, *attributes}
    own = [one for one in dir(thing) if one[0] != "_" and one not in known]
    if near := closest(name, own):
        return f"which has '{near}', not '{name}'. Rename it"
    if name in methods:
        return f"which has no '{name}'. Add '{_definition(name, methods[name])}'"
    return f"which has no '{name}'. Add '{name}: {attributes[name] or '...'}'"


def _fault_of_method(own: object, wanted: Callable[..., Any]) -> str:
    """Return how a method differs from the required one, or "" if it does not."""
    if not callable(own):
        return f"is {shown(own)}"
    is_async = inspect.iscoroutinefunction(wanted)
    if inspect.iscoroutinefunction(own) != is_async:
        return "is a 'def'" if is_async else "is an 'async def'"
    if not _takes(own, len(inspect.signature(wanted).parameters) - 1):
        return f"takes {_parameters(own)}"
    return ""


def _wrong_fields(thing: object, interface: type) -> Iterator[str]:
    hints = get_type_hints(interface)
    for field in dataclasses.fields(cast(Any, interface)):
        if not hasattr(thing, field.name):
            yield f"which has no '{field.name}'. Return {_article(interface.__name__)} {interface.__name__}"
            return
        value, hint = getattr(thing, field.name), hints[field.name]
        if not _is(value, hint):
            yield f"whose '{field.name}' is {shown(value)}. Make it {_wanted(hint)}"
        elif value is not None and (called := _called_with(hint)) is not None:
            if inspect.iscoroutinefunction(value):
                yield f"whose '{field.name}' is an 'async def'. Write 'def'"
            elif not _takes(value, len(called)):
                given = ", ".join(getattr(one, "__name__", str(one)) for one in called)
                own = _parameters(value)
                yield f"whose '{field.name}' takes {own}, but is called with ({given}). Change its parameters"


def _wanted(hint: Any) -> str:
    """Return words for a valid value of a field with this type hint, for a remedy."""
    kind = next((one for one in get_args(hint) or () if _is_union(hint)), hint)
    word = get_origin(kind) or kind
    if word is Literal:
        return " or ".join(map(repr, get_args(kind)))
    return _WORDS.get(word) or f"{_article(word.__name__)} {word.__name__}"


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _is(value: object, hint: Any) -> bool:
    """Return whether a value fits a field with this type hint, as far as possible."""
    if _is_union(hint):
        return any(_is(value, one) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    kind = get_origin(hint) or hint
    if kind is Callable:
        return callable(value)
    if kind is tuple:  # a list is accepted, but text would be split into letters
        return isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if kind is float:
        return isinstance(value, int | float)
    return (
        isinstance(value, kind) if isinstance(kind, type) and kind is not Any else True
    )


def _called_with(hint: Any) -> list[Any] | None:
    """Return the types of the arguments that a function in a field is called with, or
    None if the field holds no function.
    """
    for one in get_args(hint) if _is_union(hint) else (hint,):
        if get_origin(one) is Callable:
            return list(get_args(one)[0])
    return None


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Return whether a function can be called with this many arguments. A builtin
    without a signature is assumed to accept them.
    """
    with suppress(ValueError):
        try:
            inspect.signature(function).bind(*[None] * count)
        except TypeError:
            return False
    return True


def _parameters(function: Callable[..., Any]) -> str:
    signature, empty = inspect.signature(function), inspect.Parameter.empty
    plain = [one.replace(annotation=empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=empty))


def _definition(name: str, function: Callable[..., Any]) -> str:
    head = "async def" if inspect.iscoroutinefunction(function) else "def"
    return f"{head} {name}({', '.join(inspect.signature(function).parameters)})"
