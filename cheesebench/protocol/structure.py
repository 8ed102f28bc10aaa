"""Validates a tree of nodes against typed models, and translates pydantic's errors for
authors.
"""

from __future__ import annotations

import contextlib
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cheesebench.diagnostics import (
    Diagnostics,
    EnoughFindingsError,
    Position,
    in_file_order,
)
from cheesebench.errors import FileError, PluginError, did_you_mean, look_alike
from cheesebench.interface_checks import shown
from cheesebench.protocol.documents import VERSION
from cheesebench.source import Kind, Node, read_file

_Path = tuple[str | int, ...]
_Document = TypeVar("_Document", bound=BaseModel)


def read_structure(
    root: Node,
    diagnostics: Diagnostics,
    model: type[_Document],
    look_up: Callable[[_Document, Diagnostics], object] | None = None,
) -> _Document | None:
    """Validate a (merged) protocol against ``model``.

    Unknown keys are reported and removed, so that names can be checked in the same
    pass. With any other error, the result is None. ``look_up`` resolves a document's
    names, so that unknown names are reported even then. If the file is written in
    another version of the language, only this is reported. Raise PluginError as
    ``read_shape`` does.
    """
    version = root.child("version")
    if (
        version is not None
        and version.value is not None
        and not _is_version(version.value)
    ):
        _report_version(version, diagnostics)
        return None
    document = read_shape(root, without_nulls(root.plain()), diagnostics, model)
    unfit = {finding.position for finding in diagnostics.errors}
    _report_nulls(root, unfit, diagnostics)
    if document is None and look_up is not None:
        _report_names(root, model, look_up, diagnostics)
    return document


def read_shape(
    root: Node, data: Any, diagnostics: Diagnostics, model: type[_Document]
) -> _Document | None:
    """Validate ``data``, the content of a file, against any pydantic model. Errors are
    handled as in ``read_structure``. Raise PluginError if ``model`` is not such a
    model.
    """
    if not issubclass(model, BaseModel):  # The model comes from a plugin.
        raise PluginError(
            f"read_structure: {shown(model)}, is not a model. Derive it from DocumentModel."
        )
    mended: set[_Path] = set()
    for _ in range(2):
        try:
            return model.model_validate(data)
        except ValidationError as error:
            found = [
                detail
                for detail in _of_one_member(data, error.errors(include_url=False))
                if not _follows(detail, data, mended)
            ]
            unknown = [e for e in found if e["type"] == "extra_forbidden"]
            _report(root, data, found, diagnostics, model)
            if len(unknown) < len(found):
                return None
            for detail in unknown:
                place = _real_path(data, detail["loc"][:-1])
                _remove(data, place, str(detail["loc"][-1]))
                mended.add(place)
    return None


#: Codes of errors about names, expressions and rates. Such an error does not depend on
#: other values.
_OF_NAMES = frozenset((*range(130, 140), 201, 217))
#: A name that no file is expected to contain.
STAND_IN = "stand_in_for_a_name"
#: The values that are tried in place of an invalid value.
_STAND_INS: tuple[object, ...] = (1, STAND_IN, True, 0.5)
#: Maximum number of invalid values that are replaced. Each replacement takes several
#: validations.
_MOST_MENDED = 20
#: Keys under which names are declared. If a value there were replaced, its names would
#: be unknown elsewhere.
_NAMING = {"arena", "end", "count", "[key]"}


def _report_names(
    root: Node,
    model: type[_Document],
    look_up: Callable[[_Document, Diagnostics], object],
    diagnostics: Diagnostics,
) -> None:
    """Report errors about names, expressions and rates (``_OF_NAMES``) in a file with
    invalid values, so that its author sees all errors in the same pass. Report nothing
    if the invalid values cannot be replaced.
    """
    unfit = {one.position for one in diagnostics.errors}
    document, found = _read_despite(root, model), Diagnostics()
    if document is None:
        return
    with contextlib.suppress(EnoughFindingsError):
        look_up(document, found)
    for one in found.errors:
        is_own = one.position not in unfit and STAND_IN not in one.sentence
        if is_own and one.code in _OF_NAMES:
            diagnostics.error(one.code, one.position, one.sentence, one.remedy)


def _read_despite(root: Node, model: type[_Document]) -> _Document | None:
    """Return a document in which valid values replace the invalid values. Return None
    if there are too many, if none fits, or if a replacement might lose names.
    """
    data, tried = without_nulls(root.plain()), set[_Path]()
    while len(tried) <= _MOST_MENDED:
        try:
            return model.model_validate(data)
        except ValidationError as error:
            found = _of_one_member(data, error.errors(include_url=False))
        path = tuple(found[0]["loc"])
        if path in tried or _NAMING & {*path}:
            return None
        tried.add(path)
        if not _mended(data, found[0], model):
            return None
    return None


def _mended(data: Any, detail: ErrorDetails, model: type[BaseModel]) -> bool:
    """Remove an unknown key, or put a valid value in place of an invalid or missing
    value. Return whether this was possible.
    """
    place, last = _real_path(data, detail["loc"]), detail["loc"][-1:]
    if detail["type"] == "extra_forbidden":
        _remove(data, place[:-1], str(last[0]))
        return True
    path = (*place, *last) if detail["type"] == "missing" else place
    return bool(path) and _put(data, path, _expected(detail), model)


def _put(data: Any, path: _Path, expected: str, model: type[BaseModel]) -> bool:
    *above, key = path
    holder: Any = data
    for step in above:
        holder = holder[step]
    is_there = _inside_data(holder, key)
    if isinstance(holder, list) and not is_there:
        return False  # The list is too short.
    if is_there and isinstance(holder[key], dict | list):
        return False  # The value may contain names.
    listed = re.findall(r"'([^']+)'", expected) if "one of " in expected else []
    for value in (*listed[:1], *_STAND_INS):
        holder[key] = value
        if not _complains(data, path, model):
            return True
    return False


def _complains(data: Any, place: _Path, model: type[BaseModel]) -> bool:
    """Return whether an error other than an unknown key remains at this place, or below
    it.
    """
    try:
        model.model_validate(data)
    except ValidationError as error:
        found = _of_one_member(data, error.errors(include_url=False))
        return any(
            _real_path(data, one["loc"])[: len(place)] == place
            for one in found
            if one["type"] != "extra_forbidden"
        )
    return False


def _follows(detail: ErrorDetails, data: Any, mended: Collection[_Path]) -> bool:
    """Return whether an error only results from the removal of an unknown key. The
    mapping may lack a key because its author misspelt it.
    """
    may_follow = detail["type"] in ("contradiction", "shape")
    return may_follow and _real_path(data, detail["loc"]) in mended


def _is_version(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == VERSION


def _report_version(version: Node, diagnostics: Diagnostics) -> None:
    value = version.value
    newer = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and value > VERSION
    )
    diagnostics.error(
        120,
        version.position,
        f"This file is written in version {_shown(value)} of the protocol language, "
        f"but this CheeseBench reads version {VERSION}.",
        "Install a newer pytest-cheesebench."
        if newer
        else f"Write 'version: {VERSION}'.",
    )


def _report_nulls(
    node: Node, unfit: Collection[Position], diagnostics: Diagnostics
) -> None:
    """Warn (316) of nulls that have nothing to delete. Positions that already have an
    error are left out.
    """
    if node.position in unfit:
        return
    if isinstance(node.value, Mapping):
        for key, child in node.value.items():
            # A key with a parenthesis is the rest of an expression that a comma cut
            # short. This is reported elsewhere.
            if child.value is None and ")" not in key:
                _report_null(node, key, diagnostics)
            _report_nulls(child, unfit, diagnostics)
    elif isinstance(node.value, list):
        for child in node.value:
            _report_nulls(child, unfit, diagnostics)


def _report_null(node: Node, key: str, diagnostics: Diagnostics) -> None:
    assert isinstance(node.value, Mapping)
    known = [name for name, one in node.value.items() if one.value is not None]
    diagnostics.warning(
        316,
        node.key_position(key),
        f"'{key}: null' has nothing to delete here.",
        did_you_mean(key, known).strip()
        or f"Indent what belongs to '{key}' below it, or write an empty mapping as '{key}: {{}}'.",
    )


def without_nulls(value: Any) -> Any:
    """Return the value without keys that are null, at any depth. As with ``extends``,
    null deletes a key. Nulls in lists stay.
    """
    if isinstance(value, dict):
        return {
            key: without_nulls(child)
            for key, child in value.items()
            if child is not None
        }
    if isinstance(value, list):
        return [without_nulls(child) for child in value]
    return value


def _remove(data: Any, path: _Path, key: str) -> None:
    for step in path:
        data = data[step]
    if isinstance(data, dict):
        data.pop(key, None)


def _inside_data(data: Any, step: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(step, int) and step < len(data)
    return isinstance(data, dict) and step in data


def _real_path(data: Any, location: Sequence[str | int]) -> _Path:
    """Return the part of pydantic's location that exists in the data. The location also
    names members of unions.
    """
    path: list[str | int] = []
    for step in location:
        if _inside_data(data, step):
            data = data[step]
            path.append(step)
    return tuple(path)


def _of_one_member(data: Any, found: list[ErrorDetails]) -> list[ErrorDetails]:
    """Return the errors that an author should see. If all members of a union complain
    about one value, only the errors of the intended member are kept.

    The intended member is the one with the fewest errors about the *contents* of the
    value. If no member accepts such a value at all, one error remains, which says what
    each member expects.
    """
    chosen: list[ErrorDetails] = []
    unions: dict[_Path, dict[str, list[ErrorDetails]]] = {}
    for detail in found:
        place = _first_union(data, detail)
        if place is None:
            chosen.append(detail)
        else:
            member = str(detail["loc"][len(place)])
            # Leave the union member's name out of the location.
            without: Any = {**detail, "loc": (*place, *detail["loc"][len(place) + 1 :])}
            unions.setdefault(place, {}).setdefault(member, []).append(without)
    for place, members in unions.items():
        chosen += _of_union(data, place, list(members.values()))
    return chosen


def _of_union(
    data: Any, place: _Path, members: list[list[ErrorDetails]]
) -> list[ErrorDetails]:
    """Return the errors of the intended member of a union."""
    whole = [e for own in members for e in own if len(e["loc"]) == len(place)]
    # A contradiction is only found if the keys fit a member, so the author meant this
    # member.
    if said := [e for e in whole if e["type"] == "contradiction"]:
        return said
    fitting = [
        own
        for own in members
        if not any(len(e["loc"]) == len(place) and _is_misfit(e) for e in own)
    ]
    if fitting:
        return _of_one_member(data, min(fitting, key=len))
    complaints = [
        next(e for e in own if len(e["loc"]) == len(place)) for own in members
    ]
    words = dict.fromkeys(map(_expected, complaints))
    if "a number" in words:
        words.pop("a whole number", None)
    context = {"expected": " or ".join(words)}
    merged: Any = {**complaints[0], "type": "shape", "ctx": context}
    return [merged]


def _first_union(data: Any, detail: ErrorDetails) -> _Path | None:
    """Return the path of the outermost union in an error's location, or None. The step
    of the location behind this path is a member of the union, not a key.
    """
    location = tuple(detail["loc"])
    end = len(location) - (0 if _is_misfit(detail) else 1)
    for number, step in enumerate(location[:end]):
        if step == "[key]" or (isinstance(step, int) and not _inside_data(data, step)):
            return None  # The step is a key, or the missing half of a pair.
        if not _inside_data(data, step):
            return location[:number]
        data = data[step]
    return None


def _is_misfit(detail: ErrorDetails) -> bool:
    return detail["type"] not in ("missing", "extra_forbidden") or isinstance(
        detail["loc"][-1], int
    )


def _spoken(path: _Path) -> str:
    if not path:
        return "the file"
    if isinstance(path[-1], str):
        return f"'{path[-1]}'"
    return f"entry {path[-1] + 1} of {_spoken(path[:-1])}"


COLOURS = ("color", "colour", "colors", "colours")
NO_COLOURS = "There are no colours: a glyph is one character in quotes."


def _report(
    root: Node,
    data: Any,
    found: list[ErrorDetails],
    diagnostics: Diagnostics,
    model: type[BaseModel],
) -> None:
    nested = _nested(data, found, model)
    for name in nested:
        diagnostics.error(
            123,
            root.find(["schedule"]).key_position(name),
            f"'{name}' is read as a block of 'schedule', because it is indented below it.",
            f"Write '{name}:' at the left margin.",
        )
    for detail in found:
        path = _real_path(data, tuple(detail["loc"]))
        key = str(detail["loc"][-1]) if detail["loc"] else ""
        if path[:1] == ("schedule",) and path[1:2] and path[1] in nested:
            continue
        if detail["type"] == "contradiction":
            sentence = str(detail["ctx"]["sentence"]).format(where=_spoken(path))
            remedy = str(detail["ctx"]["remedy"])
            diagnostics.error(123, root.find(path).position, sentence, remedy)
        elif _is_misfit(detail):
            is_key = key == "[key]"
            _report_misfit(root, path, is_key, _expected(detail), diagnostics)
        elif detail["type"] == "extra_forbidden":
            _report_unknown_key(root, path[:-1], key, diagnostics, model)
        elif not any(_is_meant(other, path, key) for other in found):
            _report_missing_key(root, path, key, diagnostics)


def _report_unknown_key(
    root: Node,
    path: _Path,
    key: str,
    diagnostics: Diagnostics,
    model: type[BaseModel],
) -> None:
    known = _known_keys(model, path)
    where = f" in {_spoken(path)}" if path else ""
    remedy = (
        look_alike(key)
        or (NO_COLOURS if key in COLOURS else "")
        or _meant_instead(key, path, known, model)
        or (f"Known keys here: {', '.join(known)}." if known else "Remove it.")
    )
    position = root.find(path).key_position(key)
    diagnostics.error(121, position, f"There is no key {_shown(key)}{where}.", remedy)


def _meant_instead(
    key: str, path: _Path, known: Sequence[str], model: type[BaseModel]
) -> str:
    """Return a remedy for an unknown key: the place where it belongs, the key that was
    meant here, or "" if nothing is similar.
    """
    elsewhere = _home_of(key, model)
    for top in ("arena", "trial"):
        if not path and key in _known_keys(model, (top,)):
            elsewhere = f"It belongs under '{top}'."
            break
    if not any(one.startswith(key) or key.startswith(one) for one in known):
        return elsewhere or did_you_mean(key, known).strip()
    return did_you_mean(key, known).strip() or elsewhere


def _report_missing_key(
    root: Node, path: _Path, key: str, diagnostics: Diagnostics
) -> None:
    where = f" in {_spoken(path)}" if path else ""
    remedy = f"Add '{key}: ...'."
    if key == "by" and path[:1] == ("measures",):
        remedy = f"Add 'by' with the name of a variable, or write '{path[-1]}: EXPRESSION' if there are no conditions."
    position = root.find(path).position
    diagnostics.error(122, position, f"The key '{key}' is missing{where}.", remedy)


def _nested(
    data: Any, found: Sequence[ErrorDetails], model: type[BaseModel]
) -> list[str]:
    """Return the keys inside ``schedule`` that are read as blocks, but belong at the
    top level.
    """
    names = dict.fromkeys(
        str(e["loc"][1])
        for e in found
        if e["loc"][:1] == ("schedule",) and len(e["loc"]) > 1
    )
    tops, keys = _known_keys(model, ()), _known_keys(model, ("schedule", "NAME"))
    blocks = data.get("schedule") if isinstance(data, dict) else None
    if not isinstance(blocks, dict):
        return []

    def is_block(name: str) -> bool:
        return isinstance(blocks[name], dict) and bool({*keys} & {*blocks[name]})

    return [one for one in names if one in tops and one in blocks and not is_block(one)]


def _home_of(key: str, model: type[BaseModel]) -> str:
    """Return a remedy that names the one or two places where a key belongs, or "" if
    there are more, or none.
    """
    places = _homes(model).get(key, ())
    if not 1 <= len(places) <= 2:
        return ""
    return (
        "It belongs "
        + " or ".join(
            f"under '{place}'" if place else "at the top level" for place in places
        )
        + "."
    )


@cache
def _homes(document: type[BaseModel]) -> Mapping[str, list[str]]:
    """Return the places of each key in a document, such as ``trial: states: NAME``. The
    keys of a model that occurs in several places have only the first place.
    """
    found: dict[str, list[str]] = {}
    waiting, known = [(document, "")], set[type[BaseModel]]()
    for model, place in waiting:  # The list grows during the loop.
        if model in known:
            continue
        known.add(model)
        for name, field in model.model_fields.items():
            key = field.alias or name
            found.setdefault(key, []).append(place)
            waiting += _models_in(
                field.annotation, f"{place}: {key}".removeprefix(": ")
            )
    return found


def _models_in(annotation: Any, place: str) -> list[tuple[type[BaseModel], str]]:
    """Return the models inside an annotation, each with its place."""
    found: list[tuple[type[BaseModel], str]] = []
    for member in _members(annotation):
        if isinstance(member, type) and issubclass(member, BaseModel):
            found.append((member, place))
        elif typing.get_origin(member) is dict:
            found += _models_in(typing.get_args(member)[1], f"{place}: NAME")
        elif typing.get_origin(member) is list:
            found += _models_in(typing.get_args(member)[0], place)
    return found


def _is_meant(detail: ErrorDetails, path: _Path, missing: str) -> bool:
    """Return whether an unknown key is a misspelling of a key that is missing at the
    same place.
    """
    location = tuple(detail["loc"])
    return (
        detail["type"] == "extra_forbidden"
        and location[:-1] == path
        and bool(did_you_mean(str(location[-1]), [missing]))
    )


def _report_bad_key(
    root: Node, path: _Path, expected: str, diagnostics: Diagnostics
) -> None:
    key = str(path[-1]) if path else ""
    diagnostics.error(
        124,
        root.find(path[:-1]).key_position(key),
        f"{_shown(key)} cannot be a key here: expected {expected}.",
        look_alike(key) or "Rename it.",
    )


#: Keys of a state, as paths below ``trial: states``. If such a key is indented too
#: little, it is found there, and read as the name of a state.
_KEYS_OF_STATES = [
    (key,) for key in ("rules", "set", "count", "show", "say", "reward", "freeze")
]


def _report_misfit(
    root: Node, path: _Path, is_key: bool, expected: str, diagnostics: Diagnostics
) -> None:
    if is_key:
        _report_bad_key(root, path, expected, diagnostics)
        return
    value, written = root.find(path).value, _in_line(root.find(path).plain())
    kind = (
        "a mapping"
        if isinstance(value, Mapping)
        else written
        if isinstance(value, list)
        else _shown(value)
    )
    sentence = f"The value of {_spoken(path)} does not fit: {kind}."
    choices = (
        re.findall(r"'([^']+)'", expected) if expected.startswith("one of ") else []
    )
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    remedy = f"Expected {expected}.{hint}"
    if expected.startswith(("a name", "the id")) and isinstance(value, str):
        remedy = look_alike(value) or remedy
    remedy = _slip(path, value) or remedy
    diagnostics.error(123, root.find(path).position, sentence, remedy)


def _slip(path: _Path, value: object) -> str:
    """Return the remedy for a common slip, or "" for any other misfit."""
    if path[:2] == ("trial", "states") and path[2:] in _KEYS_OF_STATES:
        return f"Indent '{path[2]}' further: it belongs to the state above it."
    is_case = path[:1] == ("measures",) and (
        path[-1] == "is" or isinstance(path[-1], int)
    )
    if is_case and isinstance(value, int | float | str):
        return (
            "Cases give names ('is: NAME'). For a number, set a variable in the rules ('set: {cost: steps}'), and write "
            "'cost' as the measure."
        )
    return _share_in_percent(path, value) or _list_of_places(path, value)


#: Keys with a share, which are written in percent now and then.
_SHARES = (("at_most",), ("chance",), ("value",))


def _share_in_percent(path: _Path, value: object) -> str:
    if path == ("margin",) and isinstance(value, int | float) and value >= 1:
        return f"Write {value / 100:g} for {value:g} points."
    if path[-1:] in _SHARES and isinstance(value, int | float) and 1 < value <= 100:
        return f"Write {value / 100:g} for {value:g} %."
    share = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", str(value))
    return f"Write {float(share[1]) / 100:g} for {value}." if share else ""


def _list_of_places(path: _Path, value: object) -> str:
    if isinstance(value, list) and path[-1:] in {("enter",), ("inside",), ("press",)}:
        return f"Write the name of a group, or one rule for each place: '{path[-1]}: NAME'."
    return ""


#: Descriptions of values that have a short form, by the name of their model.
_SHORT_FORMS = {
    "LegendEntry": "the name of a zone, or a mapping of keys",
    "Entry": "the name of a state, or a mapping of keys",
}


def _expected(detail: ErrorDetails) -> str:
    context: Mapping[str, Any] = detail.get("ctx") or {}
    kind = detail["type"]
    if kind == "shape":
        return str(context.get("expected") or detail["msg"])
    if isinstance(detail["loc"][-1], int) and kind == "missing":
        return "a pair [a, b]"
    words = {
        "model_type": _SHORT_FORMS.get(
            str(context.get("class_name")), "a mapping of keys"
        ),
        "dict_type": "a mapping of keys",
        "list_type": "a list",
        "tuple_type": "a pair [a, b]",
        "string_type": "text",
        "int_type": "a whole number",
        "float_type": "a number",
        "bool_type": "true or false",
        "too_short": "at least one entry",
        "too_long": f"at most {context.get('max_length')} entries",
        "literal_error": f"one of {context.get('expected', '')}",
        "greater_than_equal": f"a number of at least {context.get('ge')}",
        "greater_than": f"a number above {context.get('gt')}",
        "less_than_equal": f"a number up to {context.get('le')}",
        "less_than": f"a number below {context.get('lt')}",
    }
    return words.get(kind, detail["msg"])


def _in_line(value: Any) -> str:
    plain = isinstance(value, list) and not any(
        isinstance(one, dict | list) for one in value
    )
    text = f"[{', '.join(map(str, value))}]" if plain else ""
    return text if 0 < len(text) <= 60 else "a list"


def _shown(value: object) -> str:
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else str(value)
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}...'"


def _known_keys(document: type[BaseModel], path: _Path) -> list[str]:
    models: list[Any] = [document]
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
    """Return the types that the value behind ``step`` may have."""
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
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _members(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return [member for argument in arguments for member in _members(argument)]
    return [annotation]


M = TypeVar("M", bound=BaseModel)


def read_document(path: Path, model: type[M], noun: str, begins: str) -> M:
    """Return the content of a YAML file as ``model``, a pydantic model that forbids
    unknown keys.

    ``noun`` names the kind of file in messages. ``begins`` is an example of its first
    line. Raise FileError with a finding for each error, or PluginError as
    ``read_shape`` does.
    """
    diagnostics = Diagnostics()
    document = None
    root = read_file(Path(path), diagnostics, Kind(noun, "a mapping of keys", begins))
    if root is not None and not diagnostics.errors:
        with contextlib.suppress(EnoughFindingsError):
            document = read_shape(root, root.plain(), diagnostics, model)
    if document is None or diagnostics.errors:
        raise FileError(findings=in_file_order(diagnostics.errors))
    return document
