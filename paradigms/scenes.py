"""What can be seen: scenes of an arena under closed doors and shown glyphs, and their cached observations."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from cheesebench.interfaces import Scene, Tile, TileKind, View
from cheesebench.paradigms.tables import Geometry, Tables
from cheesebench.protocol.arena import FLOOR, VOID, WALL, Arena, Square
from cheesebench.protocol.specification import Specification

#: Most bytes that one paradigm keeps of what it has drawn in one view; beyond, all is dropped and drawn anew.
MAX_BYTES = 64 * 2**20
#: About what a look costs: bytes for each square of its scene, and for each pose that can be drawn.
_TILE_BYTES, _SLOT_BYTES = 64, 8

_KINDS: dict[str, TileKind] = {WALL: "wall", FLOOR: "floor", VOID: "void", "S": "solid"}
#: Name of a place and the glyph that it shows, in order; later ones are drawn over earlier ones.
Shown = tuple[tuple[str, str], ...]
#: In ``Shown``, what the name of a landmark begins with: it has another glyph than usual.
LANDMARK = "@"
#: Everything that the picture depends on besides the pose.
LookKey = tuple[frozenset[str], bool, Shown, tuple[str, ...]]


class Look:
    """One appearance of an arena: its tables, its scene and the observations drawn so far, one per pose."""

    __slots__ = ("frames", "key", "scene", "tables")

    def __init__(self, key: LookKey, tables: Tables, scene: Scene, poses: int) -> None:
        self.key, self.tables, self.scene = key, tables, scene
        self.frames: list[str | None] = [None] * poses


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where the map stands on the drawn picture: landmarks may lie outside the map."""

    left: int
    top: int
    width: int
    height: int


def canvas_of(arena: Arena) -> Canvas:
    """Return the smallest picture that holds the map and all landmarks."""
    columns = [0, len(arena.kinds[0]) - 1, *(landmark.column for landmark in arena.landmarks)]
    rows = [0, len(arena.kinds) - 1, *(landmark.row for landmark in arena.landmarks)]
    return Canvas(min(columns), min(rows), max(columns) - min(columns) + 1, max(rows) - min(rows) + 1)


class Gallery:
    """All looks of one paradigm in one view; shared by the lives in a process."""

    def __init__(self, geometry: Geometry, view: View) -> None:
        self.geometry, self.view = geometry, view
        self.canvas = canvas_of(geometry.arena)
        self._looks: dict[LookKey, Look] = {}
        self._bytes = 0

    def look(self, key: LookKey) -> Look:
        """Return the look for a key."""
        found = self._looks.get(key)
        if found is None:
            closed, frozen, shown, text = key
            geometry, canvas = self.geometry, self.canvas
            self._make_room(geometry.poses * _SLOT_BYTES + canvas.width * canvas.height * _TILE_BYTES)
            scene = self.scene(closed, shown, text)
            found = self._looks[key] = Look(key, geometry.tables(closed, frozen), scene, geometry.poses)
        return found

    def _make_room(self, size: int) -> None:
        """Count ``size`` more bytes; where they are too many, forget everything (a life keeps the look it is in)."""
        if self._bytes + size > MAX_BYTES:
            for kept in self._looks.values():
                kept.frames[:] = [None] * len(kept.frames)
            self._looks.clear()
            self._bytes = 0
        self._bytes += size

    def draw(self, look: Look, pose: int) -> str:
        """Draw the observation of a pose and keep it."""
        geometry, canvas = self.geometry, self.canvas
        column, row = geometry.arena.cells[geometry.cell(pose)]
        frame = self.view.render(look.scene, column - canvas.left, row - canvas.top, geometry.heading(pose))
        self._make_room(sys.getsizeof(frame))
        look.frames[pose >> 2] = frame
        return frame

    def characters(self, specification: Specification) -> frozenset[str]:
        """Return every character that a scene of the protocol can hold."""
        found = {WALL, FLOOR, VOID, "\n", *self.geometry.arena.glyphs.values()}
        found |= {landmark.glyph for landmark in self.geometry.arena.landmarks}
        variables = set()
        for state in specification.states.values():
            found |= set("".join(state.say))
            found |= {glyph.name for _, glyph in state.show if not glyph.variable}
            variables |= {glyph.name for _, glyph in state.show if glyph.variable}
        for draw in specification.draws:
            for number, column in enumerate(draw.columns):
                found |= {str(row[number]) for row in draw.rows if column in variables}
        found |= {str(v.initial) for v in specification.variables.values() if v.name in variables}
        return frozenset(character for text in found for character in text)

    def scene(self, closed: Iterable[str], shown: Shown, text: tuple[str, ...]) -> Scene:
        """Return the scene with these doors closed and these glyphs shown."""
        arena, canvas = self.geometry.arena, self.canvas
        shut = {arena.cells[cell] for door in closed for cell in arena.doors[door]}
        doors = {arena.cells[cell] for cells in arena.doors.values() for cell in cells}
        glyphs = {square: glyph for square, glyph in arena.glyphs.items() if square not in doors or square in shut}
        for place, glyph in shown:
            glyphs.update(dict.fromkeys(_squares(arena, place), glyph))
        others = dict(shown)
        landmarks = {(m.column, m.row): others.get(LANDMARK + m.name, m.glyph) for m in arena.landmarks}

        def tile(square: Square) -> Tile:
            if square in landmarks:
                return _tile("landmark", landmarks[square])
            kind = arena.kind(square)
            default = WALL if kind == "S" else kind
            return _tile("door" if square in shut else _KINDS[kind], glyphs.get(square, default))

        return Scene(
            tuple(
                tuple(tile((column, row)) for column in range(canvas.left, canvas.left + canvas.width))
                for row in range(canvas.top, canvas.top + canvas.height)
            ),
            text,
        )


@lru_cache(maxsize=1024)
def _tile(kind: TileKind, glyph: str) -> Tile:
    """Return a tile, for all squares that look alike the same one: a run has many thousands of squares."""
    return Tile(kind, glyph)


def _squares(arena: Arena, place: str) -> list[Square]:
    """Return the squares of a zone, door, solid or group."""
    return [
        square
        for member in arena.members(place)
        for square in (
            *(arena.cells[cell] for cell in arena.zones.get(member, ())),
            *arena.solids.get(member, ()),
        )
    ]
