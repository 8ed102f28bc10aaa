"""Builds the scenes of an arena with its closed doors and shown glyphs, and stores the
observations that views draw of them.
"""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from cheesebench.interface_checks import rendered
from cheesebench.interfaces import Scene, Tile, TileKind, View
from cheesebench.lesions import LANDMARKS, TEXT, Hidden, Lesion
from cheesebench.paradigms.arena.tables import Geometry, Tables
from cheesebench.protocol import expressions
from cheesebench.protocol.arena import FLOOR, VOID, WALL, Arena, Square
from cheesebench.protocol.specification import Specification

#: Maximum size of the looks and drawn observations of one paradigm in one view, in
#: bytes. If there are more, all are dropped, and made again on demand.
MAX_BYTES = 64 * 2**20
#: Approximate size of a look: ``_TILE_BYTES`` for each square of its scene, and
#: ``_SLOT_BYTES`` for each pose.
_TILE_BYTES, _SLOT_BYTES = 64, 8

_KINDS: dict[str, TileKind] = {WALL: "wall", FLOOR: "floor", VOID: "void", "S": "solid"}
_PLAIN: dict[str, TileKind] = {**_KINDS, "S": "wall"}
#: Characters that values (numbers, names and sets) may add to a text.
_OF_VALUES = string.ascii_letters + string.digits + "_-+., "
#: Pairs of a place and the glyph shown there. Later pairs are drawn over earlier ones.
Shown = tuple[tuple[str, str], ...]
#: First character of a landmark's name in ``Shown``. A landmark shown as a blank is not
#: drawn.
LANDMARK = "@"
#: The variables that effects assign to, each with an assigned expression.
Assigned = Sequence[tuple[str, expressions.Expression]]
#: Everything on which a picture depends, except the pose.
LookKey = tuple[frozenset[str], bool, Shown, tuple[str, ...]]


class Look:
    """One appearance of an arena: its tables, its scene, and the observations drawn so
    far, one for each pose.
    """

    __slots__ = ("frames", "key", "scene", "tables")

    def __init__(self, key: LookKey, tables: Tables, scene: Scene, poses: int) -> None:
        self.key, self.tables, self.scene = key, tables, scene
        self.frames: list[str | None] = [None] * poses


@dataclass(frozen=True, slots=True)
class Canvas:
    """Position and size of the picture, in squares of the map. The picture is larger
    than the map if landmarks lie outside the map.
    """

    left: int
    top: int
    width: int
    height: int


def canvas_of(arena: Arena) -> Canvas:
    """Return the smallest picture that holds the map and all landmarks."""
    return Canvas(*arena.extent)


class Gallery:
    """The looks of one paradigm in one view, shared by the lives of a process."""

    def __init__(self, geometry: Geometry, view: View) -> None:
        self.geometry, self.view = geometry, view
        self.canvas = canvas_of(geometry.arena)
        self._looks: dict[LookKey, Look] = {}
        self._bytes = 0

    def look(self, key: LookKey) -> Look:
        found = self._looks.get(key)
        if found is None:
            closed, frozen, shown, text = key
            self._make_room(
                self.geometry.poses * _SLOT_BYTES
                + self.canvas.width * self.canvas.height * _TILE_BYTES
            )
            scene, tables = (
                self.scene(closed, shown, text),
                self.geometry.tables(closed, frozen),
            )
            found = self._looks[key] = Look(key, tables, scene, self.geometry.poses)
        return found

    def _make_room(self, size: int) -> None:
        """Clear the cache if ``size`` more bytes would be too many, then count them.
        Subjects keep their present look, without its drawn observations.
        """
        if self._bytes + size > MAX_BYTES:
            for kept in self._looks.values():
                kept.frames[:] = [None] * len(kept.frames)
            self._looks.clear()
            self._bytes = 0
        self._bytes += size

    def draw(self, look: Look, pose: int) -> str:
        frame = rendered(self.view, look.scene, *self.stand(pose))
        self._make_room(sys.getsizeof(frame))
        look.frames[pose >> 2] = frame
        return frame

    def stand(self, pose: int) -> tuple[int, int, int]:
        column, row = self.geometry.arena.cells[self.geometry.cell(pose)]
        return (
            column - self.canvas.left,
            row - self.canvas.top,
            self.geometry.heading(pose),
        )

    def characters(
        self, specification: Specification, assigned: Assigned
    ) -> frozenset[str]:
        """Return every character that may be visible: in the map, in shown glyphs, and
        in texts.
        """
        arena, states = self.geometry.arena, specification.states.values()
        glyphs = {WALL, FLOOR, VOID, "\n", *arena.glyphs.values()}
        glyphs |= {landmark.glyph for landmark in arena.landmarks}
        variables: set[str] = set()
        for state in states:
            glyphs.update(*state.say)
            if said := expressions.names_in_text(state.say):
                variables.update(said)
                glyphs.add(_OF_VALUES)
            for _, glyph in state.show:
                (variables if glyph.variable else glyphs).add(glyph.name)
        for name, value in values_held(specification):
            if name in variables:
                glyphs.add(expressions.as_text(value))
        if not variables.isdisjoint(name for name, _ in assigned):
            glyphs.update(_assignable(specification, assigned))
        return frozenset().union(*glyphs)

    def scene(
        self, closed: Iterable[str], shown: Shown, text: tuple[str, ...]
    ) -> Scene:
        arena, canvas = self.geometry.arena, self.canvas
        shut = {arena.cells[cell] for door in closed for cell in arena.doors[door]}
        glyphs = dict(arena.glyphs)
        for cell in chain.from_iterable(arena.doors.values()):
            if arena.cells[cell] not in shut:
                glyphs.pop(arena.cells[cell], None)
        for place, glyph in shown:
            glyphs.update(dict.fromkeys(squares_of(arena, place), glyph))
        others = dict(shown)
        landmarks = {
            (m.column, m.row): others.get(LANDMARK + m.name, m.glyph)
            for m in arena.landmarks
        }

        def tile(square: Square) -> Tile:
            if landmarks.get(square, VOID) != VOID:
                return _tile("landmark", landmarks[square])
            kind = arena.kind(square)
            default = WALL if kind == "S" else kind
            return _tile(
                "door" if square in shut else _KINDS[kind], glyphs.get(square, default)
            )

        return Scene(
            tuple(
                tuple(
                    tile((column, row))
                    for column in range(canvas.left, canvas.left + canvas.width)
                )
                for row in range(canvas.top, canvas.top + canvas.height)
            ),
            text,
        )


def _assignable(specification: Specification, assigned: Assigned) -> Iterator[str]:
    """Yield the glyphs that effects may assign. They may name a glyph, compute a digit,
    or copy any value.
    """
    arena = specification.arena
    texts = [*string.digits, *arena.zones, *arena.solids]
    texts += [expressions.as_text(value) for _, value in values_held(specification)]
    nodes = chain.from_iterable(expressions.walk(value) for _, value in assigned)
    texts += [
        str(node.value) for node in nodes if isinstance(node, expressions.Constant)
    ]
    yield from (text for text in texts if len(text) == 1)


def values_held(
    specification: Specification,
) -> Iterator[tuple[str, expressions.RuntimeValue]]:
    """Yield each variable and column with each value that it gets other than by
    effects: its initial value, the values in a draw's rows, and the values that blocks
    set.
    """
    for draw in specification.draws:
        for row in draw.rows:
            yield from zip(draw.columns, row, strict=False)
    for variable in specification.variables.values():
        yield variable.name, variable.initial
    for block in specification.schedule:
        yield from block.set


@lru_cache(maxsize=1024)
def _tile(kind: TileKind, glyph: str) -> Tile:
    return Tile(kind, glyph)


def squares_of(arena: Arena, place: str) -> list[Square]:
    """Return the squares of a zone, door, solid or group, or the one square of a
    landmark.
    """
    if (mark := arena.landmark(place)) is not None:
        return [(mark.column, mark.row)]
    return [
        square
        for member in arena.members(place)
        for square in (
            *(arena.cells[cell] for cell in arena.zones.get(member, ())),
            *arena.solids.get(member, ()),
        )
    ]


def _pattern(say: tuple[str, ...], specification: Specification) -> re.Pattern[str]:
    """Return a pattern that matches a state's text with any values filled in."""

    def value(name: str) -> str:
        variable = specification.variables.get(name)
        kind = (
            specification.columns[name].kind if variable is None else variable.type.kind
        )
        return {"number": r"[-+.e\d]+|-?inf|nan", "set": ".*"}.get(kind, r"\S+")

    lines = [
        "".join(
            re.escape(part) if isinstance(part, str) else f"(?:{value(part.name)})"
            for part in expressions.text_parts(line)
        )
        for line in say
    ]
    return re.compile("\n".join(lines))


def _without_glyphs(arena: Arena) -> Iterator[tuple[Square, Tile]]:
    """Yield each square of the map with the plain tile of its kind, as if it had no
    glyph.
    """
    for row, line in enumerate(arena.kinds):
        for column, kind in enumerate(line):
            yield (column, row), _tile(_PLAIN[kind], WALL if kind == "S" else kind)


def hidden_by(lesion: Lesion, specification: Specification) -> Hidden:
    """Return what a lesion hides. Squares are counted from the canvas's corner."""
    arena, canvas = specification.arena, canvas_of(specification.arena)
    glyphs, said, places = set[str](), list[tuple[str, ...]](), list[str]()
    for name in sorted(lesion.hide - {LANDMARKS, TEXT}):
        kind, colon, rest = name.partition(":")
        if not colon:
            places.append(name)
        elif kind == "glyph":
            glyphs.add(rest)
        elif kind == "text":
            said.append(specification.states[rest].say)
    squares = chain.from_iterable(squares_of(arena, place) for place in places)

    def moved(square: Square) -> tuple[int, int]:
        return square[0] - canvas.left, square[1] - canvas.top

    return Hidden(
        landmarks=LANDMARKS in lesion.hide,
        squares=frozenset(map(moved, squares)),
        glyphs=frozenset(glyphs),
        text=TEXT in lesion.hide,
        texts=tuple(_pattern(say, specification) for say in said),
        instead={moved(square): tile for square, tile in _without_glyphs(arena)},
    )
