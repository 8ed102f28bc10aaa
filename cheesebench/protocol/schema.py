"""The JSON Schema of protocol files, for editors: generated from the models of ``documents``.

It is never stricter than the loader. What only the loader can know (names, expressions, what fits together) is
left to ``cheesebench lint``.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from cheesebench.protocol.dialogue.documents import DialogueDocument
from cheesebench.protocol.documents import Model, ProtocolDocument
from cheesebench.protocol.values import VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: File name of the schema beside the shipped protocols.
FILE_NAME = "protocol.schema.json"

_ROOT, _DIALOGUE = "ProtocolDocument", "DialogueDocument"
_DEFS = "#/$defs/"
#: Ending of the definitions that a file with ``extends`` is held against: they require nothing.
_PATCH = "Patch"
_NULL = {"type": "null"}

_Schema = dict[str, Any]


def protocol_schema() -> _Schema:
    """Return the schema: one for whole protocols, and one without required keys for those that extend another.

    A file whose arena is a graph, or that has a key that only dialogues have, is held against their models.
    """
    models = {**_models(ProtocolDocument), **_models(DialogueDocument)}
    definitions = dict(models)
    for name in _mergeable(models):
        definitions[name + _PATCH] = _patch_of(models[name])
    return {
        "$schema": DIALECT,
        "title": "CheeseBench protocol",
        "description": f"One rodent paradigm in one edition; version {VERSION} of the protocol language.",
        "type": "object",
        "if": {
            "anyOf": [
                {"properties": {"arena": {"required": ["graph"]}}, "required": ["arena"]},
                *({"required": [key]} for key in ("conditions", "scenes", "answer")),
            ]
        },
        "then": _whole_or_patch(_DIALOGUE),
        "else": _whole_or_patch(_ROOT),
        "$defs": dict(sorted(definitions.items())),
    }


def _models(root: type[Model]) -> dict[str, _Schema]:
    """Return the schemas of a document and of all that can be in it, by name."""
    schema = root.model_json_schema(by_alias=True)
    return {name: _tidied(model) for name, model in {root.__name__: schema, **schema.pop("$defs")}.items()}


def _whole_or_patch(name: str) -> _Schema:
    return {
        "if": {"properties": {"extends": {"type": "string"}}, "required": ["extends"]},
        "then": {"$ref": f"{_DEFS}{name}{_PATCH}"},
        "else": {"$ref": f"{_DEFS}{name}"},
    }


def schema_text() -> str:
    """Return the schema as it is kept in a file."""
    return json.dumps(protocol_schema(), indent=2, ensure_ascii=False) + "\n"


def _tidied(model: _Schema) -> _Schema:
    """Return a model's schema in which null deletes a key (unless it is required) and odd names are refused."""
    model = copy.deepcopy(model)
    required = model.get("required", ())
    for name, value in model.get("properties", {}).items():
        value.pop("title", None)  # pydantic's guess from the name says nothing new
        if value.get("default", 0) is None:
            del value["default"]
        _close_mappings(value)
        if name not in required:
            model["properties"][name] = _nullable(value)
    return model


def _close_mappings(schema: _Schema) -> None:
    """Let mappings with free keys take names only, and null for values, at every depth."""
    for keyword in ("patternProperties", "additionalProperties"):
        if isinstance(values := schema.get(keyword), dict):
            if keyword == "patternProperties":
                schema["additionalProperties"] = False
                schema[keyword] = {pattern: _nullable(value) for pattern, value in values.items()}
            else:
                schema[keyword] = _nullable(values)
    for part in schema.get("anyOf", ()):
        _close_mappings(part)


def _nullable(schema: _Schema) -> _Schema:
    """Return the schema with null allowed; what describes it stays where editors look for it."""
    if _NULL in schema.get("anyOf", ()):
        return schema
    outside: _Schema = {key: schema[key] for key in ("description", "default") if key in schema}
    inside = {key: value for key, value in schema.items() if key not in outside}
    choices = inside["anyOf"] if set(inside) == {"anyOf"} else [inside]
    return {"anyOf": [*choices, _NULL], **outside}


def _mergeable(models: dict[str, _Schema]) -> list[str]:
    """Return the models that are reached from the root through mappings alone: lists are replaced whole."""
    found = [_ROOT, _DIALOGUE]
    for name in found:
        found += [ref for ref in _mapped(models[name]) if ref not in found]
    return found


def _mapped(schema: _Schema) -> list[str]:
    refs = [schema["$ref"].removeprefix(_DEFS)] if "$ref" in schema else []
    for part in _parts(schema):
        refs += _mapped(part)
    return list(dict.fromkeys(refs))


def _parts(schema: _Schema) -> list[_Schema]:
    """Return the schemas of the values of a mapping, and the alternatives of a choice."""
    parts = [*schema.get("properties", {}).values(), *schema.get("patternProperties", {}).values()]
    if isinstance(schema.get("additionalProperties"), dict):
        parts.append(schema["additionalProperties"])
    return [*parts, *schema.get("anyOf", ())]


def _patch_of(model: _Schema) -> _Schema:
    """Return the schema of what may be laid over such a mapping: any part of it."""
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
