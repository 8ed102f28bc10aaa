"""Twins: variants of a protocol that are the same task for a subject without any
knowledge of the published file.

What may be exchanged is declared by the protocol (``twins``); what is exchanged follows
from a secret by HMAC-SHA-256, so that the file can be held out, and its hash published
first.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import yaml

from cheesebench.errors import OptionError
from cheesebench.interfaces import HEADINGS
from cheesebench.protocol.documents import Turned, Twins
from cheesebench.protocol.specification import Specification

#: Names in expressions whose values depend on how the map lies.
_LYING = re.compile(r"\b(?:(?:x|y|heading)\b(?! *\()|(?:column|row) *(?=\())")
#: Characters of the secret's digest in the name of the edition.
_MARK = 6


def twin(specification: Specification, secret: str) -> tuple[str, str]:
    """Return the edition and the text of a protocol's twin.

    Raises OptionError if the protocol declares nothing that may be exchanged, or
    nothing that it has.
    """
    declared = specification.document.twins
    name = specification.name
    if declared is None:
        raise OptionError(
            f"'{name}' declares nothing that may be exchanged. Say in its file what makes no difference, such as "
            "'twins: {mirror: true}' or 'twins: {glyphs: [\"1234ABCD\"]}'."
        )
    if (declared.mirror or declared.turn) and specification.document.arena.map is None:
        raise OptionError(
            f"'{name}' has no map to mirror or turn: a generator makes its arena, the same on all sides. "
            "Remove 'mirror' and 'turn' from its key 'twins'."
        )
    key = f"{specification.sha256}|{secret}"
    plain = specification.document.model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )
    for attempt in range(100):

        def digest(what: str, attempt: int = attempt) -> bytes:
            return hmac.new(
                key.encode(), f"{attempt}|{what}".encode(), hashlib.sha256
            ).digest()

        values, is_new = _exchanged(specification, declared, plain, digest)
        if is_new:
            break
    else:
        raise OptionError(
            f"'{name}' has nothing of what its key 'twins' declares. Name glyphs or texts that it uses."
        )
    mark = digest("edition").hex()[:_MARK]
    edition = (
        f"twin_{mark}" if "@" not in name else f"{specification.edition}_twin_{mark}"
    )
    values = {
        one: value
        for one, value in values.items()
        if one not in ("extends", "chance", "edition", "twins")
    }
    head = {
        "version": 1,
        "paradigm": specification.paradigm,
        "edition": edition,
        "twin_of": name,
    }
    title = {"title": f"{specification.title or name}, twin {mark}"}
    body = yaml.safe_dump(
        head | title | {k: v for k, v in values.items() if k not in {*head, *title}},
        sort_keys=False,
    )
    # Without a number that cannot be guessed, a published hash would tell which of few
    # variants this is.
    return edition, f"# Twin of {name}; key {digest('published').hex()}\n{body}"


def _exchanged(
    specification: Specification,
    declared: Twins,
    plain: Mapping[str, Any],
    digest: Callable[[str], bytes],
) -> tuple[dict[str, Any], bool]:
    values: dict[str, Any] = copy.deepcopy(dict(plain))
    glyphs = {
        k: v
        for group in declared.glyphs
        for k, v in _permutation(group, digest).items()
    }
    texts = {
        k: v for group in declared.texts for k, v in _permutation(group, digest).items()
    }
    is_new = _replace_glyphs(specification, values, glyphs)
    for state in values["trial"]["states"].values():
        if "say" in state:
            said = state["say"]
            is_new |= bool(
                {said} & texts.keys()
                if isinstance(said, str)
                else {*said} & texts.keys()
            )
            state["say"] = (
                texts.get(said, said)
                if isinstance(said, str)
                else [texts.get(one, one) for one in said]
            )
    mirrored = declared.mirror and digest("mirror")[0] % 2 == 1
    quarters = digest("turn")[0] % 4 if declared.turn else 0
    if mirrored or quarters:
        _check_lies_anyhow(specification.name, plain)
        _lay(specification, values, mirrored, quarters)
    return values, is_new or quarters > 0 or (
        mirrored and not declared.turn
    )  # many maps are their own mirror images


def _permutation(
    group: Iterable[str], digest: Callable[[str], bytes]
) -> dict[str, str]:
    order = sorted(group, key=lambda one: digest(f"of {one}"))
    return dict(
        zip(order, [*order[1:], order[0]], strict=True)
    )  # so that none stays what it was


# -- glyphs


def _replace_glyphs(
    specification: Specification, values: dict[str, Any], glyphs: Mapping[str, str]
) -> bool:
    used = set[str]()

    def other(glyph: Any) -> Any:
        found = glyphs.get(str(glyph), glyph)
        used.update({str(glyph)} & glyphs.keys())
        return (
            int(found)
            if isinstance(glyph, int) and isinstance(found, str) and found.isdigit()
            else found
        )

    def shown(places: dict[str, Any]) -> dict[str, Any]:
        names = specification.variables.keys() | specification.columns.keys()
        return {
            place: glyph if glyph in names else other(glyph)
            for place, glyph in places.items()
        }

    holders = {
        glyph.name
        for state in specification.states.values()
        for _, glyph in state.show
        if glyph.variable
    }
    columns = [
        pair
        for draw in specification.document.draw.values()
        for pair in draw.columns_of.items()
    ]
    holders |= {
        column.turned
        for name, column in columns
        if isinstance(column, Turned) and name in holders
    }

    def assigned(pairs: dict[str, Any]) -> dict[str, Any]:
        return {
            name: other(value) if name in holders else value
            for name, value in pairs.items()
        }

    arena, trial = values["arena"], values["trial"]
    for entry in arena.get("legend", {}).values():
        if isinstance(entry, dict) and entry.get("glyph") is not None:
            entry["glyph"] = other(entry["glyph"])
    marks = arena.get("landmarks", {})
    for at, mark in enumerate(marks) if isinstance(marks, list) else marks.items():
        if isinstance(mark, dict):
            mark |= {"glyph": other(mark["glyph"])} if "glyph" in mark else {}
        else:
            marks[at] = other(mark)
    for state in (trial, *trial["states"].values()):
        if "show" in state:
            state["show"] = shown(state["show"])
    for drawn, draw in values.get("draw", {}).items():
        into = draw.get("into", [])
        for column in holders & (draw.get("of") or {}).keys():
            given, rows = (
                draw["of"][column],
                specification.document.draw[drawn].of[column],
            )
            turned = "turned" in given
            draw["of"][column] = (
                {**given, "from": other(given["from"])}
                if turned
                else [other(one) for one in rows]
            )
        if holders & {*([into] if isinstance(into, str) else into)} and draw.get(
            "permute"
        ):
            draw["permute"] = [other(one) for one in draw["permute"]]
    for name, variable in values.get("vars", {}).items():
        if name in holders and isinstance(variable, dict):
            variable["init"] = other(variable["init"])
    for one in _mappings(values):
        if isinstance(one.get("set"), dict):
            one["set"] = assigned(one["set"])
        if isinstance(one.get("hide"), list):
            one["hide"] = [
                f"glyph:{other(name[6:])}" if name.startswith("glyph:") else name
                for name in one["hide"]
            ]
    return not {glyphs[glyph] for glyph in used} <= used


def _mappings(value: Any) -> Iterable[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else ()
    ):
        yield from _mappings(inner)


# -- how the map lies


def _check_lies_anyhow(name: str, document: Mapping[str, Any]) -> None:
    expressions = [document.get("success"), *document.get("measures", {}).values()]
    texts = [str(one) for one in (*expressions, *_conditions(document["trial"]))]
    found = next(
        (match[0].strip() for text in texts if (match := _LYING.search(text))), None
    )
    if any("put" in one for one in _mappings(document["trial"])):
        found = "put"
    if found is not None:
        raise OptionError(
            f"'{name}' uses '{found}', which depends on how the map lies. "
            "Remove 'mirror' and 'turn' from its key 'twins'."
        )


def _conditions(trial: Mapping[str, Any]) -> Iterable[Any]:
    for one in _mappings(trial):
        for name in ("if", "after", "reward", "p"):
            if name in one:
                yield one[name]
        if isinstance(one.get("set"), dict):
            yield from one["set"].values()


def _lay(
    specification: Specification, values: dict[str, Any], mirrored: bool, quarters: int
) -> None:
    def heading(name: Any) -> Any:
        if name not in HEADINGS:
            return name
        number = HEADINGS.index(name)
        return HEADINGS[((-number if mirrored else number) + 2 * quarters) % 8]

    arena = values["arena"]
    rows = arena["map"].rstrip("\n").split("\n")
    height, width = len(rows), max(map(len, rows))

    def square(column: int, row: int) -> list[int]:
        size = [width, height]
        column = width - 1 - column if mirrored else column
        for _ in range(quarters):
            column, row = size[1] - 1 - row, column
            size.reverse()
        return [column, row]

    laid = {
        tuple(square(column, row)): glyph
        for row, line in enumerate(rows)
        for column, glyph in enumerate(line.ljust(width))
    }
    across, down = (height, width) if quarters % 2 else (width, height)
    arena["map"] = "".join(
        "".join(laid[column, row] for column in range(across)).rstrip() + "\n"
        for row in range(down)
    )
    # By their squares: what a compass point means is rounded on a map of even width.
    places = {
        mark.name: square(mark.column, mark.row)
        for mark in specification.arena.landmarks
    }
    marks = arena.get("landmarks", {})
    if isinstance(marks, dict):
        for name, mark in marks.items():
            marks[name] = (mark if isinstance(mark, dict) else {"glyph": mark}) | {
                "at": places[name]
            }
    else:
        for mark in marks:
            mark["at"] = square(*mark["at"])
    start = values["start"]
    if specification.start.face_variable:
        for draw in values.get("draw", {}).values():
            if start["face"] in (draw.get("of") or {}):
                draw["of"][start["face"]] = [
                    heading(one) for one in draw["of"][start["face"]]
                ]
    elif "face" in start or not mirrored:
        start["face"] = heading(start.get("face", "N"))
    # Tests that move by single steps end elsewhere; those by places do not.
    if "tests" in values:
        values["tests"] = [
            one
            for one in values["tests"]
            if {*(one.get("actions") or ())} <= {"S", " ", "STAY"}
        ]
