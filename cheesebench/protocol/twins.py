"""Makes twins: variants of a protocol that are the same task for a subject that does
not know the published file.

The protocol declares what may be exchanged (``twins``). A secret decides the exchange
(HMAC-SHA-256). So the file can be held out, and its hash published first.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from cheesebench.canary import CANARY
from cheesebench.errors import OptionError
from cheesebench.interfaces import HEADINGS
from cheesebench.protocol.documents import Turned, Twins
from cheesebench.protocol.specification import Specification

#: Matches the names in expressions whose values depend on the orientation of the map.
_LYING = re.compile(r"\b(?:(?:x|y|heading)\b(?! *\()|(?:column|row) *(?=\())")
#: Number of characters of the secret's digest in the name of the edition.
_MARK = 6
#: A function that takes the name of a choice, and returns the bytes that decide it.
_Digest = Callable[[str], bytes]


def twin(specification: Specification, secret: str) -> tuple[str, str]:
    """Return the edition and the file's text of a protocol's twin.

    Raise OptionError if the protocol declares nothing that may be exchanged, contains
    nothing of what it declares, or cannot be mirrored or turned as it declares.
    """
    name = specification.name
    declared = _declared(specification)
    plain = specification.document.model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )
    for attempt in range(100):
        digest = _digest_of(specification, secret, attempt)
        values, is_new = _exchanged(specification, declared, plain, digest)
        if is_new:
            break
    else:
        raise OptionError(
            f"'{name}' uses nothing that its key 'twins' declares. Name there glyphs or texts that the protocol uses."
        )
    mark = digest("edition").hex()[:_MARK]
    edition = (
        f"twin_{mark}" if "@" not in name else f"{specification.edition}_twin_{mark}"
    )
    head = {
        "version": 1,
        "paradigm": specification.paradigm,
        "edition": edition,
        "twin_of": name,
        "title": f"{specification.title or name}, twin {mark}",
    }
    own = {*head, "extends", "chance", "twins"}
    kept = {key: value for key, value in values.items() if key not in own}
    body = yaml.safe_dump(head | kept, sort_keys=False)
    # The key cannot be guessed. Without it, a published hash would reveal which of the
    # few variants this is.
    head_line = f"# Twin of {name}; key {digest('published').hex()}"
    return edition, f"{head_line}\n{body}# {CANARY}\n"


def _declared(specification: Specification) -> Twins:
    declared, name = specification.document.twins, specification.name
    if declared is None:
        raise OptionError(
            f"'{name}' declares nothing that may be exchanged. Say in its file what makes no difference, such as "
            "'twins: {mirror: true}' or 'twins: {glyphs: [\"1234ABCD\"]}'."
        )
    if (declared.mirror or declared.turn) and specification.document.arena.map is None:
        raise OptionError(
            f"'{name}' has no map to mirror or turn: its arena comes from a generator. "
            "Remove 'mirror' and 'turn' from its key 'twins'."
        )
    return declared


def _digest_of(specification: Specification, secret: str, attempt: int) -> _Digest:
    """Return the function that gives each choice its 32 bytes. Nobody can compute them
    without the secret.
    """
    key = f"{specification.sha256}|{secret}".encode()

    def digest(what: str) -> bytes:
        return hmac.new(key, f"{attempt}|{what}".encode(), hashlib.sha256).digest()

    return digest


def _exchanged(
    specification: Specification,
    declared: Twins,
    plain: Mapping[str, Any],
    digest: _Digest,
) -> tuple[dict[str, Any], bool]:
    """Return the values of a twin, and whether they count as different from the public
    protocol's. Raise OptionError if the map is reoriented, but the protocol depends on
    its orientation.
    """
    values: dict[str, Any] = copy.deepcopy(dict(plain))
    glyphs = _GlyphExchange(specification, _permutations(declared.glyphs, digest))
    is_new = glyphs.apply(values)
    is_new |= _replace_texts(values, _permutations(declared.texts, digest))
    layout = _Layout(
        mirrored=declared.mirror and digest("mirror")[0] % 2 == 1,
        quarters=digest("turn")[0] % 4 if declared.turn else 0,
    )
    if layout.mirrored or layout.quarters:
        _check_lies_anyhow(specification.name, plain)
        _lay(specification, values, layout)
    # If the map may be turned, a mirror image alone does not count, because many maps
    # are their own mirror images.
    only_mirrored = layout.mirrored and not declared.turn
    return values, is_new or layout.quarters > 0 or only_mirrored


def _permutations(groups: Iterable[Iterable[str]], digest: _Digest) -> dict[str, str]:
    """Return what replaces each member of each group: another member of its group."""
    exchanged: dict[str, str] = {}
    for group in groups:
        order = sorted(group, key=lambda one: digest(f"of {one}"))
        # The exchange is a single cycle through the whole group, so that no member
        # keeps its meaning.
        exchanged |= zip(order, [*order[1:], order[0]], strict=True)
    return exchanged


def _replace_texts(values: dict[str, Any], texts: Mapping[str, str]) -> bool:
    """Replace the texts of states in place. Return whether any text was replaced."""
    is_new = False
    for state in values["trial"]["states"].values():
        said = state.get("say")
        if isinstance(said, str):
            is_new |= said in texts
            state["say"] = texts.get(said, said)
        elif "say" in state:
            is_new |= not texts.keys().isdisjoint(said)
            state["say"] = [texts.get(line, line) for line in said]
    return is_new


# -- glyphs


class _GlyphExchange:
    """Replaces glyphs wherever a protocol has them, and records which glyphs it
    replaced.
    """

    def __init__(self, specification: Specification, glyphs: Mapping[str, str]) -> None:
        self._specification, self._glyphs = specification, glyphs
        self._names = specification.variables.keys() | specification.columns.keys()
        self._holders = _glyph_holders(specification)
        self._used: set[str] = set()

    def apply(self, values: dict[str, Any]) -> bool:
        """Replace all glyphs in place. Return whether this brought in a glyph that the
        protocol did not have.
        """
        self._replace_in_arena(values["arena"])
        trial = values["trial"]
        for state in (trial, *trial["states"].values()):
            self._replace_shown(state)
        for name, draw in values.get("draw", {}).items():
            self._replace_drawn(name, draw)
        for name, variable in values.get("vars", {}).items():
            if name in self._holders and isinstance(variable, dict):
                variable["init"] = self._other(variable["init"])
        for one in _mappings(values):
            self._replace_in_effects(one)
        return not {self._glyphs[glyph] for glyph in self._used} <= self._used

    def _other(self, glyph: Any) -> Any:
        """Return what replaces a glyph, or the glyph itself if it stays. If YAML read
        the glyph as a number, a digit that replaces it is a number, too.
        """
        written = str(glyph)
        if written not in self._glyphs:
            return glyph
        self._used.add(written)
        found = self._glyphs[written]
        return int(found) if isinstance(glyph, int) and found.isdigit() else found

    def _replace_in_arena(self, arena: dict[str, Any]) -> None:
        for entry in arena.get("legend", {}).values():
            if isinstance(entry, dict) and entry.get("glyph") is not None:
                entry["glyph"] = self._other(entry["glyph"])
        marks = arena.get("landmarks", {})
        for at, mark in enumerate(marks) if isinstance(marks, list) else marks.items():
            if not isinstance(mark, dict):
                marks[at] = self._other(mark)
            elif "glyph" in mark:
                mark["glyph"] = self._other(mark["glyph"])

    def _replace_shown(self, state: dict[str, Any]) -> None:
        if "show" in state:
            state["show"] = {
                place: glyph if glyph in self._names else self._other(glyph)
                for place, glyph in state["show"].items()
            }

    def _replace_drawn(self, name: str, draw: dict[str, Any]) -> None:
        columns = draw.get("of") or {}
        for column in self._holders & columns.keys():
            given = columns[column]
            if "turned" in given:
                columns[column] = {**given, "from": self._other(given["from"])}
            else:
                rows = self._specification.document.draw[name].of[column]
                columns[column] = [self._other(one) for one in rows]
        into = draw.get("into", [])
        names = {into} if isinstance(into, str) else {*into}
        if draw.get("permute") and self._holders & names:
            draw["permute"] = [self._other(one) for one in draw["permute"]]

    def _replace_in_effects(self, effects: dict[str, Any]) -> None:
        if isinstance(effects.get("set"), dict):
            effects["set"] = {
                name: self._other(value) if name in self._holders else value
                for name, value in effects["set"].items()
            }
        if isinstance(effects.get("hide"), list):
            effects["hide"] = list(map(self._hidden, effects["hide"]))

    def _hidden(self, name: str) -> str:
        kind, colon, glyph = name.partition(":")
        return f"glyph:{self._other(glyph)}" if colon and kind == "glyph" else name


def _glyph_holders(specification: Specification) -> set[str]:
    """Return the variables and columns whose values are shown as glyphs."""
    shown = {
        glyph.name
        for state in specification.states.values()
        for _, glyph in state.show
        if glyph.variable
    }
    turned = {
        column.turned
        for draw in specification.document.draw.values()
        for name, column in draw.columns_of.items()
        if isinstance(column, Turned) and name in shown
    }
    return shown | turned


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping inside a value, at any depth."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _mappings(inner)


# -- mirrored and turned maps


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
            f"'{name}' uses '{found}', which depends on the orientation of the map. "
            "Remove 'mirror' and 'turn' from its key 'twins'."
        )


def _conditions(trial: Mapping[str, Any]) -> Iterable[Any]:
    for one in _mappings(trial):
        for name in ("if", "after", "reward", "p"):
            if name in one:
                yield one[name]
        if isinstance(one.get("set"), dict):
            yield from one["set"].values()


@dataclass(frozen=True, slots=True)
class _Layout:
    """A new orientation of a map, which is first mirrored left to right, then turned
    clockwise by ``quarters`` quarter turns.
    """

    mirrored: bool
    quarters: int

    def heading(self, name: Any) -> Any:
        """Return the new direction of a compass point. Other values stay unchanged."""
        if name not in HEADINGS:
            return name
        number = HEADINGS.index(name)
        return HEADINGS[
            ((-number if self.mirrored else number) + 2 * self.quarters) % 8
        ]

    def square(self, column: int, row: int, width: int, height: int) -> list[int]:
        """Return the new position of a square of a map that had this size."""
        column = width - 1 - column if self.mirrored else column
        for _ in range(self.quarters):
            column, row = height - 1 - row, column
            width, height = height, width
        return [column, row]


def _lay(specification: Specification, values: dict[str, Any], layout: _Layout) -> None:
    """Reorient the map of a twin in place, and everything that is written in its
    coordinates. Tests whose actions move the subject are removed.
    """
    arena = values["arena"]
    rows = arena["map"].rstrip("\n").split("\n")
    size = max(map(len, rows)), len(rows)
    arena["map"] = _laid_map(rows, size, layout)
    _lay_landmarks(specification, arena.get("landmarks", {}), size, layout)
    _turn_start(specification, values, layout)
    # Tests whose actions move the subject would end elsewhere. Tests that only wait and
    # visit places stay valid.
    if "tests" in values:
        values["tests"] = [
            one
            for one in values["tests"]
            if {*(one.get("actions") or ())} <= {"S", " ", "STAY"}
        ]


def _laid_map(rows: list[str], size: tuple[int, int], layout: _Layout) -> str:
    laid = {
        tuple(layout.square(column, row, *size)): glyph
        for row, line in enumerate(rows)
        for column, glyph in enumerate(line.ljust(size[0]))
    }
    across, down = size[::-1] if layout.quarters % 2 else size
    return "".join(
        "".join(laid[column, row] for column in range(across)).rstrip() + "\n"
        for row in range(down)
    )


def _lay_landmarks(
    specification: Specification, marks: Any, size: tuple[int, int], layout: _Layout
) -> None:
    if isinstance(marks, list):
        for mark in marks:
            column, row = mark["at"]
            mark["at"] = layout.square(column, row, *size)
        return
    # The twin names the landmarks' squares, because a compass point is rounded on a map
    # of even width.
    places = {
        mark.name: layout.square(mark.column, mark.row, *size)
        for mark in specification.arena.landmarks
    }
    for name, mark in marks.items():
        written = mark if isinstance(mark, dict) else {"glyph": mark}
        marks[name] = written | {"at": places[name]}


def _turn_start(
    specification: Specification, values: dict[str, Any], layout: _Layout
) -> None:
    start = values["start"]
    if specification.start.face_variable:
        for draw in values.get("draw", {}).values():
            columns = draw.get("of") or {}
            if start["face"] in columns:
                columns[start["face"]] = list(
                    map(layout.heading, columns[start["face"]])
                )
    elif "face" in start or not layout.mirrored:
        start["face"] = layout.heading(start.get("face", "N"))
