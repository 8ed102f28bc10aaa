"""The arena of a protocol: squares, cells, zones, doors, solids, groups and landmarks,
and the steps that are possible.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TypeVar

from cheesebench.diagnostics import Diagnostics, Position, listed
from cheesebench.errors import did_you_mean
from cheesebench.interfaces import HEADINGS
from cheesebench.protocol import documents
from cheesebench.source import Node, walk

#: The eight compass directions clockwise from north, as (column, row) steps. Row
#: numbers grow to the south.
COMPASS = ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))
#: Characters for the legends of generated maps. Characters that mean something by
#: default are not among them.
_ALPHABET = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!$%&*+,-/:;<=>?@^_|~"
)


class GeneratorError(Exception):
    """A generator cannot draw an arena with these options."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A generated arena: the map as text, what its characters mean, and groups.

    ``zones``, ``doors`` and ``glyphs`` map a character to its zones, its door and its
    glyph.
    """

    map: str
    zones: dict[str, list[str]]
    groups: dict[str, list[str]]
    glyphs: dict[str, str] = field(default_factory=dict)
    doors: dict[str, str] = field(default_factory=dict)


def _disc(radius: int) -> list[Square]:
    """Return the squares of a disc around (radius, radius): all whose distance from
    there is below radius - 0.5.
    """
    span = range(2 * radius + 1)
    return [
        (c, r)
        for r in span
        for c in span
        if math.hypot(c - radius, r - radius) < radius - 0.5
    ]


#: The zones of a cell, its glyph, and its door (empty if the cell is no door).
_LookOfCell = tuple[tuple[str, ...], str, str]


def _draw(
    zones_of: dict[Square, list[str]],
    groups: dict[str, list[str]],
    *,
    floor: str,
    glyph_of: dict[Square, str] | None = None,
    door: dict[Square, str] | None = None,
) -> Drawn:
    """Draw walkable squares with their zones, surrounded by walls one square thick.
    Raise GeneratorError if there are too many kinds of cells.
    """
    glyph_of, door = glyph_of or {}, door or {}
    left, top = (min(square[axis] for square in zones_of) - 1 for axis in (0, 1))
    width, height = (
        max(square[axis] for square in zones_of) + 2 - low
        for axis, low in ((0, left), (1, top))
    )
    characters: dict[_LookOfCell, str] = {}
    drawn = Drawn("", {}, groups)

    def character(square: Square) -> str:
        if square not in zones_of:
            beside = any((square[0] + c, square[1] + r) in zones_of for c, r in COMPASS)
            return "#" if beside else " "
        look = (
            tuple(zones_of[square]),
            glyph_of.get(square, floor),
            door.get(square, ""),
        )
        if look == ((), ".", ""):
            return "."
        if look not in characters:
            characters[look] = _next_character(look, drawn)
        return characters[look]

    rows = (
        "".join(character((column, row)) for column in range(left, left + width))
        for row in range(top, top + height)
    )
    text = "".join(row + "\n" for row in rows)
    return Drawn(text, drawn.zones, groups, drawn.glyphs, drawn.doors)


def _next_character(look: _LookOfCell, drawn: Drawn) -> str:
    """Add a new kind of cell to the legend, and return its character. Raise
    GeneratorError if no character is left.
    """
    if len(drawn.zones) == len(_ALPHABET):
        raise GeneratorError("too many kinds of cells")
    character, (zones, glyph, door) = _ALPHABET[len(drawn.zones)], look
    drawn.zones[character] = list(zones)
    drawn.glyphs[character] = glyph
    if door:
        drawn.doors[character] = door
    return character


def _mark(
    zones_of: dict[Square, list[str]], zone: str, squares: Iterable[Square]
) -> None:
    for square in squares:
        if square not in zones_of:
            raise GeneratorError(f"there is no room for '{zone}'")
        zones_of[square].append(zone)


def pool(options: documents.Pool) -> Drawn:
    """Draw a round pool: water where the distance to the centre is below radius - 0.5
    cells.

    Quarter turns map the quadrants onto each other, so they have equal size. The half
    axis north of the centre belongs to ne, the eastern half axis to se, and so on. The
    centre belongs to no quadrant.
    """
    radius = options.radius
    water: dict[Square, list[str]] = {square: [] for square in _disc(radius)}
    for (column, row), zones in water.items():
        zones += _quadrant(column - radius, radius - row)
        if any((column + c, row + r) not in water for c, r in COMPASS):
            zones.append("rim")
    diagonal = round(0.6 * radius / math.sqrt(2))
    for name, (c, r) in zip(("ne", "se", "sw", "nw"), COMPASS[1::2], strict=True):
        _mark(water, f"spot_{name}", [(radius + c * diagonal, radius + r * diagonal)])
    for name, (c, r) in zip("nesw", COMPASS[::2], strict=True):
        _mark(
            water,
            f"edge_{name}",
            [(radius + c * (radius - 1), radius + r * (radius - 1))],
        )
    _mark(water, "centre", [(radius, radius)])
    groups = {
        "quadrant": ["nw", "ne", "sw", "se"],
        "spot": ["spot_nw", "spot_ne", "spot_sw", "spot_se"],
        "edge": ["edge_n", "edge_e", "edge_s", "edge_w"],
    }
    if options.sites is not None:
        groups["site"] = _mark_sites(water, radius, options.sites)
    return _draw(water, groups, floor="~")


def _quadrant(right: int, up: int) -> list[str]:
    """Return the quadrant of a square that lies this far to the right of the centre,
    and above it. The list is empty for the centre itself.
    """
    for name in ("ne", "se", "sw", "nw"):
        if right >= 0 and up > 0:
            return [name]
        right, up = -up, right
    return []


def _mark_sites(water: dict[Square, list[str]], radius: int, number: int) -> list[str]:
    """Mark sites at two thirds of the radius, and the inner water around the centre.
    Return the names of the sites.
    """
    across, aslant = round(radius * 2 / 3), round(radius * 2 / 3 / math.sqrt(2))
    sites: list[str] = []
    for c, r in COMPASS[:: 8 // number]:
        reach = aslant if c and r else across
        sites.append(f"site{len(sites) + 1}")
        _mark(water, sites[-1], [(radius + c * reach, radius + r * reach)])
    centre = (radius, radius)
    inner = [square for square in water if math.dist(square, centre) < radius / 4]
    _mark(water, "inner", inner)
    return sites


def ring(options: documents.Ring) -> Drawn:
    """Draw a disc with holes on a circle one cell inside its edge. The holes are
    numbered clockwise from north, and drawn as ``o``. Raise GeneratorError if they do
    not fit.
    """
    radius, circle = options.radius, options.radius - 1
    disc: dict[Square, list[str]] = {square: [] for square in _disc(radius)}
    holes: dict[Square, str] = {}
    for number in range(options.holes):
        angle = 2 * math.pi * number / options.holes
        exact = (circle * math.sin(angle), -circle * math.cos(angle))
        # Halves are rounded towards the centre, which keeps the ring symmetrical. The
        # 1e-9 absorbs rounding errors.
        rounded = [math.copysign(math.ceil(abs(x) - 0.5 - 1e-9), x) for x in exact]
        if math.hypot(*rounded) >= radius - 0.5:  # The hole would be beyond the edge.
            rounded = [math.copysign(math.floor(abs(x) + 1e-9), x) for x in exact]
        column, row = (radius + int(x) for x in rounded)
        if (column, row) in holes:
            raise GeneratorError(
                f"{options.holes} holes do not fit on a ring of radius {radius}"
            )
        holes[column, row] = f"hole{number + 1}"
    for square, name in holes.items():
        _mark(disc, name, [square])
    _mark(disc, "centre", [(radius, radius)])
    return _draw(
        disc,
        {"hole": list(holes.values())},
        floor=".",
        glyph_of=dict.fromkeys(holes, "o"),
    )


def radial(options: documents.Radial) -> Drawn:
    """Draw a hub with arms at equal angles, clockwise from north. Each arm is turned to
    the nearest compass direction.

    8 arms lie on the compass directions, 4 on the main ones, 5 on N, E, SE, SW and W. A
    diagonal arm of width 1 is a staircase, because a subject cannot move diagonally
    past a corner. Quarter turns map diagonal arms onto each other. The last cell of an
    arm is its cup, which is drawn as ``o``. Its first cells are a door. Raise
    GeneratorError if the given hub is too small, or there are too many kinds of cells.
    """
    half = (options.width - 1) // 2
    directions = [
        round(8 * number / options.arms) % 8 for number in range(options.arms)
    ]
    hub = _hub(options, directions, half)
    span = range(-hub, hub + 1)
    cells = {(column, row): ["hub"] for row in span for column in span}
    cups: dict[Square, str] = {}
    gates: dict[Square, str] = {}
    first, last = hub + 1, hub + options.length
    for number, direction in enumerate(directions, 1):
        for square, step in _arm(direction, range(first, last + 1), half):
            if square not in cells:
                cells[square] = [f"arm{number}"]
                if step == first:
                    gates[square] = f"gate{number}"
        c, r = COMPASS[direction]
        cups[c * last, r * last] = f"cup{number}"
    for square, name in cups.items():
        _mark(cells, name, [square])
    _mark(cells, "centre", [(0, 0)])
    groups = {name: _numbered(name, options.arms) for name in ("arm", "cup", "gate")}
    glyphs = dict.fromkeys(gates, "+") | dict.fromkeys(cups, "o")
    return _draw(cells, groups, floor=".", glyph_of=glyphs, door=gates)


def _hub(options: documents.Radial, directions: list[int], half: int) -> int:
    """Return half the width of the hub. Arms must not touch each other, not even
    diagonally, so the hub leaves room for a wall between them. Raise GeneratorError if
    the given hub is too small for this.
    """
    apart = min(
        (b - a) % 8
        for a, b in zip(directions, directions[1:] + directions[:1], strict=True)
    )
    smallest = {1: 2 + half, 2: 1 + half}.get(apart, max(1, half))
    hub = options.hub if options.hub is not None else smallest
    if hub < smallest:
        raise GeneratorError(
            f"{options.arms} arms of width {options.width} need a hub of at least {smallest}"
        )
    return hub


def _arm(direction: int, steps: range, half: int) -> Iterator[tuple[Square, int]]:
    """Yield the squares of an arm, each with its distance from the centre in steps."""
    c, r = COMPASS[direction]
    for step in steps:
        for square in _across(c * step, r * step, c, r, half):
            yield square, step


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}{number}" for number in range(1, count + 1)]


def _across(column: int, row: int, c: int, r: int, half: int) -> list[Square]:
    if c and r:
        counterclockwise = (column - c, row) if c != r else (column, row - r)
        beside = (
            [counterclockwise] if half == 0 else [(column - c, row), (column, row - r)]
        )
        return [(column, row), *beside]
    return [
        (column + offset * abs(r), row + offset * abs(c))
        for offset in range(-half, half + 1)
    ]


GENERATORS: dict[str, Callable[..., Drawn]] = {
    "pool": pool,
    "ring": ring,
    "radial": radial,
}


#: Default characters of a map.
WALL, FLOOR, VOID = "#", ".", " "
#: The solid to which every wall square belongs. So ``press: wall`` is a bump.
WALL_NAME = "wall"
#: Glyph of a closed door whose legend entry gives none.
DOOR_GLYPH = "+"

Square = tuple[int, int]
#: YAML ends a block at the first line that is indented less than the block's first
#: line. A round map then loses everything below its top.
_NO_FLOOR = "Draw floor with '.' or a zone's character. If the first row is indented more than the others, write 'map: |2'."


@dataclass(frozen=True, slots=True)
class Landmark:
    """A distal cue at (column, row), outside the walkable floor."""

    name: str
    column: int
    row: int
    glyph: str


@dataclass(frozen=True)
class Arena:
    """A complete arena. Coordinates are (column, row) from (0, 0) in the north-west of
    the map.

    ``kinds`` has a string for each row, with one character per square: ``#`` for wall,
    ``.`` for floor or a door, ``S`` for another solid, and a space for void. ``cells``
    lists the walkable squares, including doors, row by row. ``zones`` and ``doors``
    hold indices into ``cells``. ``glyphs`` has the squares that are drawn with a glyph
    of their own (a door only while it is closed).
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
    """The map that the generator drew, or None if the file has a map."""

    def kind(self, square: Square) -> str:
        """Return the kind of a square. Squares outside the map are void."""
        column, row = square
        inside = 0 <= row < len(self.kinds) and 0 <= column < len(self.kinds[row])
        return self.kinds[row][column] if inside else VOID

    def members(self, name: str) -> tuple[str, ...]:
        """Return the members of a group in order. Any other name is its own only
        member.
        """
        return self.groups.get(name, (name,))

    def landmark(self, name: str) -> Landmark | None:
        if name in self.zones or name in self.solids or name in self.groups:
            return None
        return next((mark for mark in self.landmarks if mark.name == name), None)

    def cells_of(self, name: str) -> tuple[int, ...]:
        return tuple(
            sorted(
                {
                    cell
                    for member in self.members(name)
                    for cell in self.zones.get(member, ())
                }
            )
        )

    def ahead(self, cell: int, heading: int) -> Square:
        column, row = self.cells[cell]
        return (column + COMPASS[heading][0], row + COMPASS[heading][1])

    def step(
        self, cell: int, heading: int, open_cells: Mapping[Square, int]
    ) -> int | None:
        """Return the cell that FORWARD reaches, or None if it is blocked
        (docs/language.md, "What happens in a step", 7).

        ``open_cells`` maps the walkable squares to their cells. Closed doors are not
        among them.
        """
        column, row = self.cells[cell]
        across, down = COMPASS[heading]
        if (
            across
            and down
            and (column + across, row) not in open_cells
            and (column, row + down) not in open_cells
        ):
            return None
        return open_cells.get((column + across, row + down))

    def open_cells(self, closed: Iterable[str] = ()) -> dict[Square, int]:
        """Return the cell of each square that can be entered while the named doors are
        closed.
        """
        shut = {cell for door in closed for cell in self.doors[door]}
        return {
            square: cell for cell, square in enumerate(self.cells) if cell not in shut
        }

    @property
    def extent(self) -> tuple[int, int, int, int]:
        """The left column, top row, width and height of the smallest picture that
        contains the map and all landmarks.
        """
        columns = [
            0,
            len(self.kinds[0]) - 1,
            *(landmark.column for landmark in self.landmarks),
        ]
        rows = [0, len(self.kinds) - 1, *(landmark.row for landmark in self.landmarks)]
        return (
            min(columns),
            min(rows),
            max(columns) - min(columns) + 1,
            max(rows) - min(rows) + 1,
        )

    @property
    def headings(self) -> range:
        """The indices of this arena's headings in ``HEADINGS``: all eight, or every
        second one.
        """
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


def build_arena(
    document: documents.Arena, node: Node, diagnostics: Diagnostics
) -> Arena | None:
    source = _source_of(document, node, diagnostics)
    if source is None:
        return None
    legend, drawn = dict(document.legend), None
    groups = {name: list(members) for name, members in document.groups.items()}
    if source != "map":
        drawn = _generated(source, document, node, diagnostics)
        if drawn is None:
            return None
        legend, groups = _legend_of(drawn), {**drawn.groups, **groups}
    text = drawn.map if drawn else document.map or ""
    places = _read_map(text, legend, node, diagnostics)
    if places is None:
        return None
    if not drawn:
        _check_first_row(text, node.find(["map"]).position, diagnostics)
        _check_row_ends(text, node.find(["map"]), diagnostics)
        _check_wall(text, places.kinds, node.find(["map"]), diagnostics)
    _check_groups(groups, places, node, diagnostics)
    arena = Arena(
        kinds=tuple(places.kinds),
        cells=tuple(places.cells),
        zones=_frozen(places.zones),
        doors=_frozen(places.doors),
        solids=_frozen(places.solids),
        groups=_frozen(groups),
        landmarks=(),
        glyphs=places.glyphs,
        turns=document.headings,
        drawn=drawn,
    )
    landmarks = _landmarks(arena, document, node.find(["landmarks"]), diagnostics)
    return Arena(**{**vars(arena), "landmarks": landmarks})


_Member = TypeVar("_Member")


def _frozen(named: Mapping[str, list[_Member]]) -> dict[str, tuple[_Member, ...]]:
    return {name: tuple(members) for name, members in named.items()}


def _source_of(
    document: documents.Arena, node: Node, diagnostics: Diagnostics
) -> str | None:
    """Return ``map`` or the name of the generator. Unless there is exactly one, report
    error 140 and return None.
    """
    sources = [name for name in GENERATORS if getattr(document, name) is not None]
    if document.map is not None:
        sources.append("map")
    if len(sources) == 1:
        return sources[0]
    given = (
        f"{len(sources)} are given: {', '.join(sources)}"
        if sources
        else "none is given"
    )
    choices = ", ".join(["map", *GENERATORS])
    diagnostics.error(
        140,
        node.position,
        f"An arena has exactly one of {choices}, but {given}.",
        "Keep one." if sources else "Add one.",
    )
    return None


def _generated(
    name: str, document: documents.Arena, node: Node, diagnostics: Diagnostics
) -> Drawn | None:
    """Return the map of a generator. If it cannot be drawn, report error 141 and return
    None. Report error 142 if there is a legend.
    """
    try:
        drawn = GENERATORS[name](getattr(document, name))
    except GeneratorError as error:
        keys = " or ".join(f"'{key}'" for key in node.find([name]).keys)
        diagnostics.error(
            141,
            node.find([name]).position,
            f"This {name} cannot be drawn: {error}.",
            f"Change {keys}.",
        )
        return None
    if document.legend:
        diagnostics.error(
            142,
            node.key_position("legend"),
            f"Only a map has a legend, but this arena is drawn by '{name}'.",
            "Remove the legend. 'cheesebench render FILE --expand' then prints the arena as a map, which may have one.",
        )
    return drawn


def _legend_of(drawn: Drawn) -> dict[str, documents.LegendEntry]:
    return {
        character: documents.LegendEntry(
            door=drawn.doors[character],
            zones=zones or None,
            glyph=drawn.glyphs[character],
        )
        if character in drawn.doors
        else documents.LegendEntry(zones=zones, glyph=drawn.glyphs[character])
        for character, zones in drawn.zones.items()
    }


def _read_map(
    text: str,
    legend: Mapping[str, documents.LegendEntry],
    node: Node,
    diagnostics: Diagnostics,
) -> _Places | None:
    lines = text.rstrip("\n").split("\n")
    place = node.find(["map"]).position
    if (fault := _fault_of_map(text, lines, node)) is not None:
        diagnostics.error(143, place, *fault)
        return None
    places = _read_squares(lines, legend, node, diagnostics)
    for character in legend:
        if character not in text:
            diagnostics.warning(
                301,
                node.find(["legend"]).key_position(character),
                f"The legend's '{character}' is not on the map.",
                "Remove it.",
            )
    both = (places.zones.keys() | places.doors.keys()) & places.solids.keys()
    for name in sorted(both):
        diagnostics.error(
            145,
            naming_position(node, name),
            f"'{name}' is both floor and a solid.",
            "Use two names.",
        )
    if not places.cells:
        diagnostics.error(143, place, "The map has no floor.", _NO_FLOOR)
        return None
    return None if both else places


def _fault_of_map(text: str, lines: list[str], node: Node) -> tuple[str, str] | None:
    """Return the sentence and the remedy for a map that cannot be read at all, or None
    if it can be read.
    """
    if not text.strip():
        return "The map is empty.", "Draw walls with '#' and floor with '.'."
    if max(map(len, lines)) * len(lines) > documents.MAX_SQUARES:
        return (
            f"The map has more than {documents.MAX_SQUARES} squares.",
            "Draw a smaller one.",
        )
    if len(lines) == 1 and node.find(["map"]).text_at is None:
        return (
            "The map is a single line. YAML joins the lines of a text that is not a block.",
            "Start it with 'map: |'.",
        )
    return None


def _read_squares(
    lines: list[str],
    legend: Mapping[str, documents.LegendEntry],
    node: Node,
    diagnostics: Diagnostics,
) -> _Places:
    """Collect the squares. Report error 144 for characters without a legend entry, once
    for each.
    """
    width, places, missing = max(map(len, lines)), _Places(), set[str]()
    for row, line in enumerate(lines):
        kinds = ""
        for column, character in enumerate(line.ljust(width)):
            entry = legend.get(character)
            if entry is not None or character in (WALL, FLOOR, VOID):
                kinds += _place(character, entry, (column, row), places)
                continue
            kinds += VOID
            if character in missing:
                continue
            missing.add(character)
            diagnostics.error(
                144,
                node.find(["map"]).inside(sum(map(len, lines[:row])) + row + column),
                f"The map character '{character}' (column {column + 1} of the map) has no legend entry.",
                f"Add 'legend: {{{_as_key(character)}: NAME}}'.",
            )
        places.kinds.append(kinds)
    return places


def _as_key(character: str) -> str:
    """Return a character as a key in YAML, in quotes if it may need them."""
    quote = "'" if character in '"\\' else '"'
    return character if character.isalpha() else f"{quote}{character}{quote}"


def _check_first_row(text: str, place: Position, diagnostics: Diagnostics) -> None:
    """Warn (328) of a first row that has lost its leading spaces. YAML takes them for
    the block's indentation.
    """
    first, *others = filter(str.strip, text.rstrip("\n").split("\n"))
    blanks = {len(row) - len(row.lstrip(" ")) for row in others}
    if len(others) < 2 or len(blanks) > 1 or first.startswith(" "):
        return
    (shift,) = blanks
    if shift and {len(row) for row in others} == {len(first) + shift}:
        much = "1 blank" if shift == 1 else f"{shift} blanks"
        sentence = f"The first row begins {much} before all other rows of the map, so the rows do not line up."
        diagnostics.warning(
            328, place, sentence, f"Indent the first row by {much} more."
        )


#: Largest number of squares that a row of a walled map lacks by a slip. A row that is
#: longer than its neighbours may have an alcove.
_SLIP = 2


def _check_row_ends(text: str, node: Node, diagnostics: Diagnostics) -> None:
    """Warn (328) of a row that ends with its wall a little before the walls of the rows
    beside it, while all begin alike.
    """
    rows = text.rstrip("\n").split("\n")
    for number, row in enumerate(rows):
        if 0 < (lacks := _lacking(rows, number)) <= _SLIP:
            diagnostics.warning(
                328,
                node.inside(sum(map(len, rows[:number])) + number),
                f"Row {number + 1} of the map, '{row}', is {lacks} shorter than the rows beside it.",
                "Add what is missing in it.",
            )


def _lacking(rows: Sequence[str], number: int) -> int:
    """Return by how much a row is shorter than both rows beside it (two on one side of
    an outer row), or 0 where the three do not begin alike, or not end with a wall.
    """
    if len(rows) < 3:
        return 0
    first = min(max(number - 1, 0), len(rows) - 3)
    three = rows[first : first + 3]
    begins = {len(one) - len(one.lstrip(VOID)) for one in three}
    others = {len(rows[n]) for n in range(first, first + 3) if n != number}
    are_walls = all(one.endswith(WALL) for one in three)
    is_alike = len(begins) == len(others) == 1
    return others.pop() - len(rows[number]) if are_walls and is_alike else 0


#: A map is walled, and a missing piece of wall is a slip, if at least this many pieces
#: of wall stand beside its floor for each one that is missing.
_WALLED = 5


def _check_wall(
    text: str, kinds: Sequence[str], node: Node, diagnostics: Diagnostics
) -> None:
    """Warn (342) of floor beside nothing, in a map that has walls elsewhere."""
    blank = VOID * len(kinds[0])
    rows = [VOID + row + VOID for row in (blank, *kinds, blank)]
    beside = Counter[str]()
    open_at = list[Square]()
    for row, column in product(range(1, len(rows) - 1), range(1, len(blank) + 1)):
        if rows[row][column] == FLOOR:
            sides = rows[row - 1][column] + rows[row + 1][column]
            sides += rows[row][column - 1] + rows[row][column + 1]
            beside.update(sides)
            open_at += [(column - 1, row - 1)] * (VOID in sides)
    if not open_at or beside[VOID] * _WALLED > beside[WALL]:
        return
    (column, row), lines = open_at[0], text.split("\n")
    diagnostics.warning(
        342,
        node.inside(sum(map(len, lines[:row])) + row + column),
        f"The floor at column {column}, row {row} (from 0) has nothing beside it, and others have walls:"
        " a subject stops there, and sees an edge.",
        f"Draw '{WALL}' beside it.",
    )


def naming_position(node: Node, name: str) -> Position:
    """Return the position at which the legend or the groups of an arena name a place,
    or the arena's position if neither does. ``node`` is the arena's node.
    """
    groups, legend = node.find(["groups"]), node.find(["legend"])
    if name in groups.keys:
        return groups.keys[name]
    for character, place in legend.keys.items():
        entry = legend.find([character])
        found = next((one for one in walk(entry) if one.value == name), None)
        if found is not None:
            return place if found is entry else found.position
    return node.position


def _place(
    character: str, entry: documents.LegendEntry | None, square: Square, places: _Places
) -> str:
    if entry is None:
        if character == FLOOR:
            places.cells.append(square)
        elif character == WALL:
            places.solids[WALL_NAME].append(square)
        return character
    if entry.glyph is not None:
        places.glyphs[square] = entry.glyph
    if entry.solid is not None:
        return _place_solid(entry.solid, square, places)
    cell = len(places.cells)
    places.cells.append(square)
    if entry.door is not None:
        places.doors.setdefault(entry.door, []).append(cell)
        places.glyphs.setdefault(square, DOOR_GLYPH)
    for zone in [*(entry.zones or ()), entry.zone, entry.door]:
        if zone is not None:
            places.zones.setdefault(zone, []).append(cell)
    return FLOOR


def _place_solid(name: str, square: Square, places: _Places) -> str:
    places.solids.setdefault(name, []).append(square)
    if name == WALL_NAME:
        return WALL
    places.glyphs.setdefault(square, WALL)
    return "S"


def _check_groups(
    groups: Mapping[str, list[str]],
    places: _Places,
    node: Node,
    diagnostics: Diagnostics,
) -> None:
    known = [*places.zones, *places.solids]
    for group, members in groups.items():
        where = node.find(["groups"])
        if group in known:
            diagnostics.error(
                146,
                where.key_position(group),
                f"'{group}' is already the name of a {'solid' if group in places.solids else 'zone'}.",
                "Rename the group.",
            )
        for number, member in enumerate(members):
            if member not in known:
                hint = did_you_mean(member, known).strip() or f"Known: {listed(known)}."
                place = where.find([group, number]).position
                diagnostics.error(
                    201,
                    place,
                    f"The group '{group}' names an unknown zone or solid, '{member}'.",
                    hint,
                )
        if not members:
            diagnostics.error(
                146,
                where.key_position(group),
                f"The group '{group}' is empty.",
                "Name its zones.",
            )


def _landmarks(
    arena: Arena, document: documents.Arena, node: Node, diagnostics: Diagnostics
) -> tuple[Landmark, ...]:
    given = document.landmarks
    named = (
        given.items()
        if isinstance(given, dict)
        else ((f"landmark{n}", entry) for n, entry in enumerate(given, 1))
    )
    found: list[Landmark] = []
    for number, (name, entry) in enumerate(named):
        key = name if isinstance(given, dict) else number
        report = partial(diagnostics.error, 147, node.find([key]).position)
        if isinstance(entry, documents.PlacedLandmark):
            landmark = _placed_landmark(arena, name, entry, report)
        elif name in HEADINGS:
            landmark = Landmark(name, *_outermost(arena, HEADINGS.index(name)), entry)
        else:
            report(
                f"'{name}' is not a compass direction.",
                "Use N NE E SE S SW W NW, or 'at: [column, row]' and a glyph.",
            )
            continue
        if landmark is None:
            continue
        taken = {(other.column, other.row) for other in found}
        if (landmark.column, landmark.row) in taken:
            report(
                f"The landmark '{name}' is at the same place as another one.",
                "Move one.",
            )
        found.append(landmark)
    return tuple(found)


def _placed_landmark(
    arena: Arena,
    name: str,
    entry: documents.PlacedLandmark,
    report: Callable[[str, str], None],
) -> Landmark | None:
    """Return a landmark at its square, or None if the square is far outside the map.
    Report a square that no landmark may have.
    """
    if arena.kind(entry.at) in (FLOOR, "S"):
        report(
            f"The landmark '{name}' is on floor or a solid at {list(entry.at)}.",
            "Put it on a wall or outside the map.",
        )
    size = len(arena.kinds[0]), len(arena.kinds)
    if any(not -2 <= at < end + 2 for at, end in zip(entry.at, size, strict=True)):
        report(
            f"The landmark '{name}' is more than two squares outside the map.",
            "Put it next to the map.",
        )
        return None
    return Landmark(name, *entry.at, entry.glyph)


def _outermost(arena: Arena, heading: int) -> Square:
    """Return the outermost square that is not void, in a direction from the centre of
    the map. If it is not a wall, return the square beyond it.
    """
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


def arena_as_yaml(drawn: Drawn, document: documents.Arena) -> str:
    """Return an ``arena:`` section with a map instead of a generator, which compiles to
    the same arena.
    """
    groups = drawn.groups | document.groups
    lines = [
        "arena:",
        # The digit says how far the map is indented, because its first line may begin
        # with spaces.
        "  map: |2",
        *(f"    {row}".rstrip() for row in drawn.map.splitlines()),
        "  legend:",
        *_legend_lines(drawn),
        "  groups:",
        *(f"    {name}: {_listed(members)}" for name, members in groups.items()),
        *_landmark_lines(document),
    ]
    if document.headings != documents.Arena.model_fields["headings"].default:
        lines.append(f"  headings: {document.headings}")
    return "\n".join(lines) + "\n"


def _legend_lines(drawn: Drawn) -> Iterator[str]:
    for character, zones in drawn.zones.items():
        if character in drawn.doors:
            place = f"door: {drawn.doors[character]}" + (
                f", zones: {_listed(zones)}" if zones else ""
            )
        elif len(zones) == 1:
            place = f"zone: {zones[0]}"
        else:
            place = f"zones: {_listed(zones)}"
        yield f"    {_quoted(character)}: {{{place}, glyph: {_quoted(drawn.glyphs[character])}}}"


def _landmark_lines(document: documents.Arena) -> Iterator[str]:
    landmarks = document.landmarks
    if not landmarks:
        return
    yield "  landmarks:"
    if isinstance(landmarks, Mapping):
        yield from (
            f"    {name}: {_landmark_text(landmark)}"
            for name, landmark in landmarks.items()
        )
    else:
        yield from (f"    - {_landmark_text(landmark)}" for landmark in landmarks)


def _landmark_text(landmark: str | documents.PlacedLandmark) -> str:
    if isinstance(landmark, str):
        return _quoted(landmark)
    column, row = landmark.at
    return f"{{at: [{column}, {row}], glyph: {_quoted(landmark.glyph)}}}"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return f"[{', '.join(names)}]"


def _quoted(character: str) -> str:
    # A JSON string is a valid YAML string for every character.
    return json.dumps(character, ensure_ascii=False)
