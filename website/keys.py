"""Describes the keys of protocol files, taken from the models that read the files; and
the codes of findings.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from cheesebench.diagnostics import GROUPS, LETTERS, MEANINGS
from cheesebench.paradigms.dialogue import documents as dialogue
from cheesebench.protocol import documents
from cheesebench.protocol.documents import DocumentModel, ProtocolDocument
from website.markup import code, escape, prose, sections, sentence, table

#: What the page calls the kinds of values.
_NAMED: Sequence[tuple[Any, str]] = (
    (documents.Name, "name"),
    (documents.Names, "name or list of names"),
    (documents.Glyph, "character"),
    (documents.GlyphOrName, "character, or variable that holds one"),
    (documents.Expression, "expression"),
    (documents.Probability, "number from 0 to 1"),
    (documents.Count, "whole number of at least 1"),
    (documents.Truth, "`true` or `false`"),
    (documents.Text, "text"),
    (documents.Citation, "text"),
    (documents.Scalar, "value"),
    (dialogue.NodeId, "node"),
    (dialogue.ConditionName, "condition"),
    (dialogue.Edge, "pair of nodes"),
    (dialogue.Amount, "number of at least 0"),
    (int, "whole number"),
    (float, "number"),
    (str, "text"),
    (bool, "`true` or `false`"),
    (Any, "anything"),
)


def protocol_keys() -> str:
    """Return a section for each mapping of a protocol of an arena."""
    return _page(ProtocolDocument)


def dialogue_keys() -> str:
    """Return a section for each mapping of a dialogue."""
    return _page(dialogue.DialogueDocument)


def _page(root: type[DocumentModel]) -> str:
    return sections(
        part
        for model, places in _reached(root).items()
        for part in _section(model, places)
    )


def _reached(root: type[DocumentModel]) -> dict[type[DocumentModel], list[str]]:
    """Return all models that a document can contain, each with the places where it can
    be. Outer models come first.
    """
    found: dict[type[DocumentModel], list[str]] = {root: []}
    queue = [root]
    for model in queue:
        hints = get_type_hints(model, include_extras=True)
        for name, field in model.model_fields.items():
            within = found[model][:1]
            for inner in dict.fromkeys(_models_in(hints[name])):
                if inner not in found:
                    found[inner] = []
                    queue.append(inner)
                key = f"{field.alias or name}: {'NAME: ' if _by_name(hints[name]) else ''}".rstrip()
                found[inner].append(" ".join([*within, key]))
    return found


def _by_name(hint: Any) -> bool:
    return get_origin(hint) is dict or any(map(_by_name, get_args(hint)))


def _models_in(hint: Any) -> Iterator[type[DocumentModel]]:
    if isinstance(hint, type) and issubclass(hint, DocumentModel):
        yield hint
    for inner in get_args(hint):
        yield from _models_in(inner)


def _section(model: type[DocumentModel], places: Sequence[str]) -> list[str]:
    hints = get_type_hints(model, include_extras=True)
    rows = []
    for name, field in model.model_fields.items():
        key = code(field.alias or name) + (
            "<br>**required**" if field.is_required() else ""
        )
        rows.append(
            [
                key,
                _kind(hints[name], field) + _default(field),
                prose(field.description or ""),
            ]
        )
    heading = model.__name__ if places else "The file"
    where = f"Written at {', '.join(map(code, places))}" if places else ""
    return [
        f"## {heading} {{#{_anchor(model)}}}",
        prose((model.__doc__ or "").strip()),
        where,
        table(["key", "value", "meaning"], rows),
    ]


def _anchor(model: type[DocumentModel]) -> str:
    return model.__name__.lower()


def _default(field: FieldInfo) -> str:
    """Return the default of a key in words, or "" if there is no default."""
    default = (
        None
        if field.is_required()
        else field.get_default(call_default_factory=True, validated_data={})
    )
    if default is None or default in ([], {}) or isinstance(default, DocumentModel):
        return ""
    return f"; default {code(str(default).lower() if isinstance(default, bool) else default)}"


def _kind(hint: Any, field: FieldInfo | None = None) -> str:
    """Return the kind of a value in words, with links to the mappings in it."""
    for named, text in _NAMED:
        if hint == named:
            return text + (_bounds(field) if hint in (int, float) else "")
    if isinstance(hint, type) and issubclass(hint, DocumentModel):
        return f"[{hint.__name__}](#{_anchor(hint)})"
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        shorts = [
            one.json_schema_input_type
            for one in arguments[1:]
            if hasattr(one, "json_schema_input_type")
        ]
        wide = [one for one in shorts if one is not PydanticUndefined]
        inside = _kind(arguments[0], field)
        models = list(_models_in(arguments[0]))
        return _with_short_form(inside, wide[0], bool(models)) if wide else inside
    if origin in (Union, types.UnionType):
        rest = [one for one in arguments if one is not type(None)]
        scalars = get_args(documents.Scalar)
        if set(scalars) <= set(rest):
            # Python flattens a union of unions, so its known parts get their names back
            # here.
            rest = [documents.Scalar, *(one for one in rest if one not in scalars)]
        return " or ".join(dict.fromkeys(_kind(one, field) for one in rest))
    if origin is Literal:
        return ", ".join(code(one) for one in arguments)
    if origin is list:
        inner = _kind(arguments[0])
        return f"list of ({inner})" if " or " in inner else f"list of {inner}"
    if origin is dict:
        return f"{_kind(arguments[0])}: {_kind(arguments[1])}"
    if origin is tuple:
        return escape("[") + ", ".join(_kind(one) for one in arguments) + escape("]")
    raise TypeError(f"website/keys.py does not know what to call {hint}")


def _with_short_form(inside: str, wide: Any, has_models: bool) -> str:
    """Return a kind of value with its short forms, because validators accept more than
    the types say.
    """
    if not has_models:
        return inside
    short = [
        one
        for one in get_args(wide)
        if not any(_models_in(one)) and get_origin(one) is not dict
    ]
    return f"{_kind(Union[tuple(short)])} or {inside}" if short else inside  # noqa: UP007  # `|` does not take a tuple


def _bounds(field: FieldInfo | None) -> str:
    limits = {"ge": "from", "gt": "above", "le": "to", "lt": "below"}
    found = [
        f"{word} {getattr(one, limit):g}"
        for one in (field.metadata if field else ())
        for limit, word in limits.items()
        if isinstance(getattr(one, limit, None), int | float)
    ]
    return f" {' '.join(found)}" if found else ""


def findings() -> str:
    """Return a table of codes for each group."""
    parts = []
    for low, high, about in GROUPS:
        rows = [
            [
                f"{code(f'{LETTERS[severity]}{number}')}{{#{LETTERS[severity].lower()}{number}}}",
                sentence(meaning),
            ]
            for number, (severity, meaning) in MEANINGS.items()
            if low <= number <= high
        ]
        parts += [f"## {about}", table(["code", "meaning"], rows)]
    return sections(parts)
