"""The arena of a protocol: squares, cells, zones, doors, solids, groups and landmarks, and possible steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cheesebench.errors import did_you_mean
from cheesebench.interfaces import HEADINGS
from cheesebench.protocol import arena_documents
from cheesebench.protocol.diagnostics import Diagnostics, Position, listed
from cheesebench.protocol.generators import COMPASS, GENERATORS, Drawn, GeneratorError
from cheesebench.protocol.source import Node, walk
from cheesebench.protocol.values import MAX_SQUARES

#: Default characters of a map.
WALL, FLOOR, VOID = "#", ".", " "
#: The solid that every wall square belongs to: ``press: wall`` is a bump.
WALL_NAME = "wall"
#: How a closed door looks when its legend gives no glyph.
DOOR_GLYPH = "+"

Square = tuple[int, int]
#: YAML ends a block at the first line that is indented less than its first: a round map loses all but its top.
_NO_FLOOR = (
    "Draw floor with '.' or a zone's character; if the first row is indented more than the others, write 'map: |2'."
)


@dataclass(frozen=True, slots=True)
class Landmark:
    """A distal cue at (column, row), outside the walkable floor."""

    name: str
    column: int
    row: int
    glyph: str


@dataclass(frozen=True)
class Arena:
    """A complete arena. Coordinates are (column, row) from (0, 0) in the north-west of the map.

    ``kinds`` has one character per square, by row: ``#`` wall, ``.`` floor or door, ``S`` solid, space void.
    ``cells`` lists the walkable squares (doors included) row by row; zones and doors hold indices into it.
    ``glyphs`` has the squares that are not drawn as their kind (for a door: while it is closed).
    """

    kinds: tuple[str, ...]
    cells: tuple[Square, ...]
    zones: Mapping[str, tuple[int, ...]]
    doors: Mapping[str, tuple[int, ...]]
    solids: Mapping[str, tuple[Square, ...]]
    groups: Mapping[str, tuple[str, ...]]
    landmarks: tuple[Landmark, ...]
    glyphs: Mapping[Square, str]
    turns: int
    drawn: Drawn | None = field(default=None, compare=False)
    """The expansion of the generator, None for a map."""

    def kind(self, square: Square) -> str:
        """Return the kind of a square; outside the map is void."""
        column, row = square
        inside = 0 <= row < len(self.kinds) and 0 <= column < len(self.kinds[row])
        return self.kinds[row][column] if inside else VOID

    def members(self, name: str) -> tuple[str, ...]:
        """Return the members of a group in order, or the zone itself."""
        return self.groups.get(name, (name,))

    def landmark(self, name: str) -> Landmark | None:
        """Return the landmark of this name; None if there is none, or if it is the name of a place, too."""
        if name in self.zones or name in self.solids or name in self.groups:
            return None
        return next((mark for mark in self.landmarks if mark.name == name), None)

    def cells_of(self, name: str) -> tuple[int, ...]:
        """Return the cells of a zone, door or group."""
        return tuple(sorted({cell for member in self.members(name) for cell in self.zones.get(member, ())}))

    def ahead(self, cell: int, heading: int) -> Square:
        """Return the square in front of a cell."""
        column, row = self.cells[cell]
        return (column + COMPASS[heading][0], row + COMPASS[heading][1])

    def step(self, cell: int, heading: int, open_cells: Mapping[Square, int]) -> int | None:
        """Return the cell that FORWARD reaches, or None if it is blocked (language page, clause 7).

        ``open_cells`` maps the walkable squares (closed doors left out) to their cells.
        """
        column, row = self.cells[cell]
        across, down = COMPASS[heading]
        if across and down and (column + across, row) not in open_cells and (column, row + down) not in open_cells:
            return None
        return open_cells.get((column + across, row + down))

    def open_cells(self, closed: Iterable[str] = ()) -> dict[Square, int]:
        """Return the squares that can be entered while the named doors are closed, mapped to their cells."""
        shut = {cell for door in closed for cell in self.doors[door]}
        return {square: cell for cell, square in enumerate(self.cells) if cell not in shut}

    @property
    def extent(self) -> tuple[int, int, int, int]:
        """Left column, top row, width and height of the smallest picture that holds the map and all landmarks."""
        columns = [0, len(self.kinds[0]) - 1, *(landmark.column for landmark in self.landmarks)]
        rows = [0, len(self.kinds) - 1, *(landmark.row for landmark in self.landmarks)]
        return min(columns), min(rows), max(columns) - min(columns) + 1, max(rows) - min(rows) + 1

    @property
    def headings(self) -> range:
        """The heading numbers of this arena: all eight, or every second one."""
        return range(0, len(HEADINGS), len(HEADINGS) // self.turns)


class _Places:
    """Collects the contents of squares while the map is read."""

    def __init__(self) -> None:
        self.zones: dict[str, list[int]] = {}
        self.doors: dict[str, list[int]] = {}
        self.solids: dict[str, list[Square]] = {WALL_NAME: []}
        self.cells: list[Square] = []
        self.glyphs: dict[Square, str] = {}
        self.kinds: list[str] = []


def build_arena(document: arena_documents.Arena, node: Node, diagnostics: Diagnostics) -> Arena | None:
    """Draw the arena of a document; problems are reported at their places, None is returned when it cannot be."""
    generators = [name for name in GENERATORS if getattr(document, name) is not None]
    sources = generators + ["map"] * (document.map is not None)
    if len(sources) != 1:
        given = f"{len(sources)} are given: {', '.join(sources)}" if sources else "none is given"
        choices = ", ".join(["map", *GENERATORS])
        diagnostics.error(140, node.position, f"An arena has exactly one of {choices}; {given}.", "Keep one.")
        return None
    legend, drawn = dict(document.legend), None
    groups = {name: list(members) for name, members in document.groups.items()}
    if generators:
        name = generators[0]
        try:
            drawn = GENERATORS[name](getattr(document, name))
        except GeneratorError as error:
            diagnostics.error(
                141,
                node.find([name]).position,
                f"This {name} cannot be drawn: {error}.",
                "Change its options.",
            )
            return None
        if legend:
            place = node.key_position("legend")
            diagnostics.error(
                142,
                place,
                f"Only a map has a legend; this arena is a {name}.",
                "Convert it to a map with 'cheesebench render --expand'.",
            )
        legend = _legend_of(drawn)
        groups = {**drawn.groups, **groups}
    text = drawn.map if drawn else document.map or ""
    places = _read_map(text, legend, node, diagnostics)
    if places is None:
        return None
    if not drawn:
        _check_first_row(text, node.find(["map"]).position, diagnostics)
    _check_groups(groups, places, node, diagnostics)
    arena = Arena(
        kinds=tuple(places.kinds),
        cells=tuple(places.cells),
        zones={name: tuple(cells) for name, cells in places.zones.items()},
        doors={name: tuple(cells) for name, cells in places.doors.items()},
        solids={name: tuple(squares) for name, squares in places.solids.items()},
        groups={name: tuple(members) for name, members in groups.items()},
        landmarks=(),
        glyphs=places.glyphs,
        turns=document.headings,
        drawn=drawn,
    )
    landmarks = _landmarks(arena, document, node.find(["landmarks"]), diagnostics)
    return Arena(**{**vars(arena), "landmarks": landmarks})


def _legend_of(drawn: Drawn) -> dict[str, arena_documents.LegendEntry]:
    return {
        character: arena_documents.LegendEntry(
            door=drawn.doors[character], zones=zones or None, glyph=drawn.glyphs[character]
        )
        if character in drawn.doors
        else arena_documents.LegendEntry(zones=zones, glyph=drawn.glyphs[character])
        for character, zones in drawn.zones.items()
    }


def _read_map(
    text: str, legend: Mapping[str, arena_documents.LegendEntry], node: Node, diagnostics: Diagnostics
) -> _Places | None:
    lines = text.rstrip("\n").split("\n")
    width = max(map(len, lines))
    written = node.find(["map"])
    place = written.position
    if not text.strip():
        diagnostics.error(143, place, "The map is empty.", "Draw walls with '#' and floor with '.'.")
        return None
    if width * len(lines) > MAX_SQUARES:
        diagnostics.error(143, place, f"The map has more than {MAX_SQUARES} squares.", "Draw a smaller one.")
        return None
    if len(lines) == 1 and node.find(["map"]).text_at is None:
        diagnostics.error(143, place, "The map is a single line because YAML folded it.", "Start it with 'map: |'.")
        return None
    places = _Places()
    missing: set[str] = set()
    for row, line in enumerate(lines):
        kinds = ""
        for column, character in enumerate(line.ljust(width)):
            entry = legend.get(character)
            if entry is None and character not in (WALL, FLOOR, VOID):
                if character not in missing:
                    missing.add(character)
                    diagnostics.error(
                        144,
                        written.inside(sum(map(len, lines[:row])) + row + column),
                        f"The map character '{character}' (column {column + 1} of the map) has no legend entry.",
                        f"Add 'legend: {{{character}: NAME}}'.",
                    )
                kinds += VOID
                continue
            kinds += _place(character, entry, (column, row), places)
        places.kinds.append(kinds)
    for character in legend:
        if character not in text:
            diagnostics.warning(
                301,
                node.find(["legend"]).key_position(character),
                f"The legend's '{character}' is not on the map.",
                "Remove it.",
            )
    both = (set(places.zones) & set(places.solids)) | (set(places.doors) & set(places.solids))
    for name in sorted(both):
        diagnostics.error(145, naming_position(node, name), f"'{name}' is both floor and a solid.", "Use two names.")
    if not places.cells:
        diagnostics.error(143, place, "The map has no floor.", _NO_FLOOR)
        return None
    return None if both else places


def _check_first_row(text: str, place: Position, diagnostics: Diagnostics) -> None:
    """328: as wide as the others, which all begin with the same blanks: YAML counts from where the first row begins."""
    first, *others = filter(str.strip, text.rstrip("\n").split("\n"))
    blanks = {len(row) - len(row.lstrip(" ")) for row in others}
    if len(others) < 2 or len(blanks) > 1 or first.startswith(" "):
        return
    (shift,) = blanks
    if shift and {len(row) for row in others} == {len(first) + shift}:
        much = "1 blank" if shift == 1 else f"{shift} blanks"
        sentence = f"The first row begins {much} before all other rows of the map, so the rows do not line up."
        diagnostics.warning(328, place, sentence, f"Indent the first row by {much} more.")


def naming_position(node: Node, name: str) -> Position:
    """Return where the legend or the groups of an arena (its node) give a name to a place."""
    groups, legend = node.find(["groups"]), node.find(["legend"])
    if name in groups.keys:
        return groups.keys[name]
    for character, place in legend.keys.items():
        entry = legend.find([character])
        found = next((one for one in walk(entry) if one.value == name), None)
        if found is not None:
            return place if found is entry else found.position
    return node.position


def _place(character: str, entry: arena_documents.LegendEntry | None, square: Square, places: _Places) -> str:
    """Record one square and return the character of its kind."""
    if entry is None:
        if character == FLOOR:
            places.cells.append(square)
        elif character == WALL:
            places.solids[WALL_NAME].append(square)
        return character
    if entry.glyph is not None:
        places.glyphs[square] = entry.glyph
    if entry.solid is not None:
        places.solids.setdefault(entry.solid, []).append(square)
        if entry.solid == WALL_NAME:
            return WALL
        places.glyphs.setdefault(square, WALL)
        return "S"
    cell = len(places.cells)
    places.cells.append(square)
    if entry.door is not None:
        places.doors.setdefault(entry.door, []).append(cell)
        places.glyphs.setdefault(square, DOOR_GLYPH)
    for zone in [*(entry.zones or ()), entry.zone, entry.door]:
        if zone is not None:
            places.zones.setdefault(zone, []).append(cell)
    return FLOOR


def _check_groups(groups: Mapping[str, list[str]], places: _Places, node: Node, diagnostics: Diagnostics) -> None:
    known = [*places.zones, *places.solids]
    for group, members in groups.items():
        where = node.find(["groups"])
        if group in known:
            diagnostics.error(
                146,
                where.key_position(group),
                f"'{group}' is already the name of a zone.",
                "Rename the group.",
            )
        for number, member in enumerate(members):
            if member not in known:
                hint = did_you_mean(member, known).strip() or f"Known zones: {listed(known)}."
                place = where.find([group, number]).position
                diagnostics.error(201, place, f"The group '{group}' names an unknown zone '{member}'.", hint)
        if not members:
            diagnostics.error(146, where.key_position(group), f"The group '{group}' is empty.", "Name its zones.")


def _landmarks(
    arena: Arena, document: arena_documents.Arena, node: Node, diagnostics: Diagnostics
) -> tuple[Landmark, ...]:
    given = document.landmarks
    named = given.items() if isinstance(given, dict) else ((f"landmark{n}", entry) for n, entry in enumerate(given, 1))
    found: list[Landmark] = []
    for number, (name, entry) in enumerate(named):
        position = node.find([name if isinstance(given, dict) else number]).position
        if isinstance(entry, arena_documents.PlacedLandmark):
            landmark = Landmark(name, *entry.at, entry.glyph)
            if arena.kind(entry.at) in (FLOOR, "S"):
                diagnostics.error(
                    147,
                    position,
                    f"The landmark '{name}' is on the floor at {list(entry.at)}.",
                    "Put it on a wall or outside the map.",
                )
            if not all(
                -2 <= at < size + 2 for at, size in zip(entry.at, (len(arena.kinds[0]), len(arena.kinds)), strict=True)
            ):
                diagnostics.error(
                    147, position, f"The landmark '{name}' is far outside the map.", "Put it next to the map."
                )
                continue
        elif name in HEADINGS:
            landmark = Landmark(name, *_outermost(arena, HEADINGS.index(name)), entry)
        else:
            diagnostics.error(
                147,
                position,
                f"'{name}' is not a compass direction.",
                "Use N NE E SE S SW W NW, or 'at: [column, row]' and a glyph.",
            )
            continue
        if any((other.column, other.row) == (landmark.column, landmark.row) for other in found):
            diagnostics.error(147, position, f"Two landmarks are at the same place ('{name}').", "Move one.")
        found.append(landmark)
    return tuple(found)


def _outermost(arena: Arena, heading: int) -> Square:
    """Return the outermost wall square in a direction from the centre of the map, else the first square outside."""
    height, width = len(arena.kinds), len(arena.kinds[0])
    across, down = COMPASS[heading]
    square = (width // 2, height // 2)
    outermost = square
    while 0 <= square[0] < width and 0 <= square[1] < height:
        if arena.kind(square) != VOID:
            outermost = square
        square = (square[0] + across, square[1] + down)
    if arena.kind(outermost) == WALL:
        return outermost
    return (outermost[0] + across, outermost[1] + down)
