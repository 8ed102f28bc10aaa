"""A tree of nodes -> the typed document, every misfit reported at its place in the author's words."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cheesebench.errors import did_you_mean
from cheesebench.protocol.diagnostics import Diagnostics
from cheesebench.protocol.documents import VERSION, ProtocolDocument
from cheesebench.protocol.source import Node

_Path = tuple[str | int, ...]


def read_structure(root: Node, diagnostics: Diagnostics) -> ProtocolDocument | None:
    """Validate the shape of a (merged) protocol. Unknown keys are reported and left out, so that names can be
    checked in the same pass; anything else that is wrong makes the result None.
    """
    version = root.child("version")
    if version is not None and version.value != VERSION:
        _report_version(version, diagnostics)
        return None
    data = _without_nulls(root.plain())
    for _ in range(2):
        try:
            return ProtocolDocument.model_validate(data)
        except ValidationError as error:
            found = error.errors(include_url=False)
            unknown = [e for e in found if e["type"] == "extra_forbidden"]
            _report(root, data, found, diagnostics)
            if len(unknown) < len(found):
                return None
            for detail in unknown:
                _remove(data, _real_path(data, detail["loc"][:-1]), str(detail["loc"][-1]))
    return None


def _report_version(version: Node, diagnostics: Diagnostics) -> None:
    newer = isinstance(version.value, int) and not isinstance(version.value, bool) and version.value > VERSION
    diagnostics.error(
        120,
        version.position,
        f"This file is written in version {_shown(version.value)} of the protocol language; "
        f"this CheeseBench reads version {VERSION}.",
        "Install a newer pytest-cheesebench." if newer else f"Write 'version: {VERSION}'.",
    )


def _without_nulls(value: Any) -> Any:
    """Leave out keys whose value is null: null deletes, here as in ``extends``."""
    if isinstance(value, dict):
        return {key: _without_nulls(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [_without_nulls(child) for child in value]
    return value


def _remove(data: Any, path: _Path, key: str) -> None:
    for step in path:
        data = data[step]
    data.pop(key, None)


def _inside_data(data: Any, step: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(step, int) and step < len(data)
    return isinstance(data, dict) and step in data


def _real_path(data: Any, location: Sequence[str | int]) -> _Path:
    """Return the part of pydantic's location that exists in the data (it also names union members)."""
    path: list[str | int] = []
    for step in location:
        if _inside_data(data, step):
            data = data[step]
            path.append(step)
    return tuple(path)


def _report(root: Node, data: Any, found: list[ErrorDetails], diagnostics: Diagnostics) -> None:
    reported: set[_Path] = set()
    for detail in found:
        kind, location = detail["type"], tuple(detail["loc"])
        path = _real_path(data, location)
        if kind == "extra_forbidden":
            key = str(location[-1])
            parent = root.find(path[:-1])
            known = _known_keys(path[:-1])
            where = f" in '{path[-2]}'" if len(path) > 1 else ""
            hint = did_you_mean(key, known)
            remedy = hint.strip() or (f"Known keys here: {', '.join(known)}." if known else "Remove it.")
            diagnostics.error(121, parent.key_position(key), f"There is no key '{key}'{where}.", remedy)
        elif kind == "missing":
            key = str(location[-1])
            node = root.find(path)
            where = f" in '{path[-1]}'" if path else ""
            diagnostics.error(122, node.position, f"The key '{key}' is missing{where}.", f"Add '{key}: ...'.")
        elif path not in reported:  # several members of a union complain about one value: once is enough
            reported.add(path)
            _report_misfit(root, path, location, detail, diagnostics)


def _report_misfit(root: Node, path: _Path, location: _Path, detail: ErrorDetails, diagnostics: Diagnostics) -> None:
    node = root.find(path)
    name = f"'{path[-1]}'" if path else "the file"
    expected = _expected(detail)
    if location and location[-1] == "[key]":
        key = str(path[-1]) if path else ""
        diagnostics.error(
            124,
            root.find(path[:-1]).key_position(key),
            f"'{key}' cannot be a key here: expected {expected}.",
            "Rename it.",
        )
        return
    value = node.value
    kind = "a mapping" if isinstance(value, Mapping) else "a list" if isinstance(value, list) else _shown(value)
    diagnostics.error(123, node.position, f"The value of {name} does not fit: {kind}.", f"Expected {expected}.")


def _expected(detail: ErrorDetails) -> str:
    """Say in an author's words what would have been right."""
    context: Mapping[str, Any] = detail.get("ctx") or {}
    kind = detail["type"]
    if kind == "shape":
        return str(context.get("expected") or detail["msg"])
    words = {
        "model_type": "a mapping of keys",
        "model_attributes_type": "a mapping of keys",
        "dict_type": "a mapping of keys",
        "list_type": "a list",
        "tuple_type": "a pair [a, b]",
        "string_type": "text",
        "int_type": "a whole number",
        "float_type": "a number",
        "bool_type": "true or false",
        "too_short": "at least one entry",
        "literal_error": f"one of {context.get('expected', '')}",
        "greater_than_equal": f"a number from {context.get('ge')}",
        "greater_than": f"a number above {context.get('gt')}",
        "less_than_equal": f"a number up to {context.get('le')}",
        "less_than": f"a number below {context.get('lt')}",
    }
    return words.get(kind, detail["msg"])


def _shown(value: object) -> str:
    text = str(value)
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}...'"


def _known_keys(path: _Path) -> list[str]:
    """Return the keys that the models know at a path of the document."""
    models: list[Any] = [ProtocolDocument]
    for step in path:
        models = [inner for model in models for inner in _inside(model, step)]
    return sorted(
        {
            field.alias or name
            for model in models
            if isinstance(model, type) and issubclass(model, BaseModel)
            for name, field in model.model_fields.items()
        }
    )


def _inside(annotation: Any, step: str | int) -> list[Any]:
    """Return what the value under ``step`` of such a value can be."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            if step in (name, field.alias):
                return _members(field.annotation)
        return []
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is dict:
        return _members(arguments[1])
    if origin is list:
        return _members(arguments[0])
    return []


def _members(annotation: Any) -> list[Any]:
    """Return the members of a union, without Annotated."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _members(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return [member for argument in arguments for member in _members(argument)]
    return [annotation]
