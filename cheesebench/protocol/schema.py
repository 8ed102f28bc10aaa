"""The JSON Schema of protocol files, for editors, generated from the models in
``documents``.

The schema is never stricter than the loader. Only ``cheesebench lint`` checks names,
expressions and consistency.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol.documents import VERSION

if TYPE_CHECKING:
    from pydantic import BaseModel

    from cheesebench.family import Family

DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: File name of the schema beside the shipped protocols.
FILE_NAME = "protocol.schema.json"

_DEFS = "#/$defs/"
#: Suffix of the definitions for files with ``extends``, which need not have any key.
_PATCH = "Patch"
_NULL = {"type": "null"}

_Schema = dict[str, Any]


def protocol_schema(families: Mapping[str, Family[Any, Any]] | None = None) -> _Schema:
    """Return the schema. It has one part for whole protocols, and one without required
    keys for protocols that extend another.

    A file is validated against the last family that recognises it
    (``Family.recognised_by``), or else against the first. ``families`` of None: the
    installed families.
    """
    if families is None:
        families = installed_plugins().families
    (last, *others) = families.values()
    models: dict[str, _Schema] = {}
    choice = _whole_or_patch(last.document.__name__)
    for family in (last, *others):
        models |= _models(family.document)
    for family in others:
        whole = _whole_or_patch(family.document.__name__)
        choice = {"if": dict(family.recognised_by), "then": whole, "else": choice}
    definitions = dict(models)
    for name in _mergeable(
        models, [family.document.__name__ for family in families.values()]
    ):
        definitions[name + _PATCH] = _patch_of(models[name])
    return {
        "$schema": DIALECT,
        "title": "CheeseBench protocol",
        "description": f"One paradigm in one edition, in version {VERSION} of the protocol language.",
        "type": "object",
        **choice,
        "$defs": dict(sorted(definitions.items())),
    }


def _models(root: type[BaseModel]) -> dict[str, _Schema]:
    schema = root.model_json_schema(by_alias=True)
    return {
        name: _tidied(model)
        for name, model in {root.__name__: schema, **schema.pop("$defs")}.items()
    }


def _whole_or_patch(name: str) -> _Schema:
    return {
        "if": {"properties": {"extends": {"type": "string"}}, "required": ["extends"]},
        "then": {"$ref": f"{_DEFS}{name}{_PATCH}"},
        "else": {"$ref": f"{_DEFS}{name}"},
    }


def schema_text() -> str:
    return json.dumps(protocol_schema(), indent=2, ensure_ascii=False) + "\n"


def _tidied(model: _Schema) -> _Schema:
    """Return a model's schema in which any key that is not required may be null, and
    invalid names are refused.
    """
    model = copy.deepcopy(model)
    # The description is a docstring, with the line breaks of the source.
    if "description" in model:
        model["description"] = " ".join(model["description"].split())
    required = model.get("required", ())
    for name, value in model.get("properties", {}).items():
        # pydantic makes the title from the name, so it says nothing new.
        value.pop("title", None)
        if value.get("default", 0) is None:
            del value["default"]
        _close_mappings(value)
        if name not in required:
            model["properties"][name] = _nullable(value)
    return model


def _close_mappings(schema: _Schema) -> None:
    """Restrict the keys of open mappings to names, and allow null values, in place. The
    members of a union are treated alike.
    """
    for keyword in ("patternProperties", "additionalProperties"):
        if isinstance(values := schema.get(keyword), dict):
            if keyword == "patternProperties":
                schema["additionalProperties"] = False
                schema[keyword] = {
                    pattern: _nullable(value) for pattern, value in values.items()
                }
            else:
                schema[keyword] = _nullable(values)
    for part in schema.get("anyOf", ()):
        _close_mappings(part)


def _nullable(schema: _Schema) -> _Schema:
    """Return the schema with null allowed. Description and default stay at the top
    level, where editors look for them.
    """
    if _NULL in schema.get("anyOf", ()):
        return schema
    outside: _Schema = {
        key: schema[key] for key in ("description", "default") if key in schema
    }
    inside = {key: value for key, value in schema.items() if key not in outside}
    choices = inside["anyOf"] if set(inside) == {"anyOf"} else [inside]
    return {"anyOf": [*choices, _NULL], **outside}


def _mergeable(models: dict[str, _Schema], roots: Iterable[str]) -> list[str]:
    """Return the models that can be reached from the roots through mappings alone.
    Lists do not count, because they are replaced as a whole.
    """
    found = list(roots)
    for name in found:
        found += [ref for ref in _mapped(models[name]) if ref not in found]
    return found


def _mapped(schema: _Schema) -> list[str]:
    refs = [schema["$ref"].removeprefix(_DEFS)] if "$ref" in schema else []
    for part in _parts(schema):
        refs += _mapped(part)
    return list(dict.fromkeys(refs))


def _parts(schema: _Schema) -> list[_Schema]:
    parts = [
        *schema.get("properties", {}).values(),
        *schema.get("patternProperties", {}).values(),
    ]
    if isinstance(schema.get("additionalProperties"), dict):
        parts.append(schema["additionalProperties"])
    return [*parts, *schema.get("anyOf", ())]


def _patch_of(model: _Schema) -> _Schema:
    patch = copy.deepcopy(model)
    _loosen(patch)
    return patch


def _loosen(schema: _Schema) -> None:
    schema.pop("required", None)
    schema.pop("minProperties", None)
    if "$ref" in schema:
        schema["$ref"] += _PATCH
    for part in _parts(schema):
        _loosen(part)
