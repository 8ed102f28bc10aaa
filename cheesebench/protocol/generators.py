"""Arena generators: each expands to a map, a legend and groups that an author could have written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cheesebench.protocol.arena_documents import Boxes, Pool, Radial, Ring

_Square = tuple[int, int]
#: The eight compass directions clockwise from north, as (column, row) steps; row grows to the south.
COMPASS = ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))
#: Map characters for generated legends, without the default characters.
_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!$%&*+,-/:;<=>?@^_|~"


class GeneratorError(Exception):
    """The options of a generator do not fit together."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A generated arena: map text, the meaning of its characters, and groups.

    ``zones``, ``doors`` and ``glyphs`` give the zones, the door and the glyph of each character.
    """

    map: str
    zones: dict[str, list[str]]
    groups: dict[str, list[str]]
    glyphs: dict[str, str] = field(default_factory=dict)
    doors: dict[str, str] = field(default_factory=dict)


def _disc(radius: int) -> list[_Square]:
    """Return the squares of a disc around (radius, radius): distance below radius - 0.5."""
    span = range(2 * radius + 1)
    return [(c, r) for r in span for c in span if math.hypot(c - radius, r - radius) < radius - 0.5]


def _draw(
    zones_of: dict[_Square, list[str]],
    groups: dict[str, list[str]],
    *,
    floor: str,
    glyph_of: dict[_Square, str] | None = None,
    door: dict[_Square, str] | None = None,
) -> Drawn:
    """Draw walkable squares with their zones, surrounded by walls one square thick."""
    glyph_of, door = glyph_of or {}, door or {}
    left, top = (min(square[axis] for square in zones_of) - 1 for axis in (0, 1))
    width, height = (max(square[axis] for square in zones_of) + 2 - low for axis, low in ((0, left), (1, top)))
    characters: dict[tuple[tuple[str, ...], str, str], str] = {}
    drawn = Drawn("", {}, groups)
    rows = []
    for row in range(top, top + height):
        line = ""
        for column in range(left, left + width):
            square = (column, row)
            if square not in zones_of:
                beside = any((column + c, row + r) in zones_of for c, r in COMPASS)
                line += "#" if beside else " "
                continue
            look = (tuple(zones_of[square]), glyph_of.get(square, floor), door.get(square, ""))
            if look == ((), ".", ""):
                line += "."
                continue
            if look not in characters:
                if len(characters) == len(_ALPHABET):
                    raise GeneratorError("too many kinds of cells")
                character = characters[look] = _ALPHABET[len(characters)]
                drawn.zones[character] = list(look[0])
                drawn.glyphs[character] = look[1]
                if look[2]:
                    drawn.doors[character] = look[2]
            line += characters[look]
        rows.append(line)
    return Drawn("\n".join(rows) + "\n", drawn.zones, groups, drawn.glyphs, drawn.doors)


def _mark(zones_of: dict[_Square, list[str]], zone: str, squares: Iterable[_Square]) -> None:
    for square in squares:
        if square not in zones_of:
            raise GeneratorError(f"there is no room for '{zone}'")
        zones_of[square].append(zone)


def pool(options: Pool) -> Drawn:
    """Draw a round pool: water where the distance to the centre is below radius - 0.5 cells.

    Quarter turns map the quadrants onto each other (the half axis north of the centre belongs to ne, the eastern one to
    se, and so on; the centre to none), so they have equal size.
    """
    radius = options.radius
    water: dict[_Square, list[str]] = {square: [] for square in _disc(radius)}
    for (column, row), zones in water.items():
        right, up = column - radius, radius - row
        if right >= 0 and up > 0:
            zones.append("ne")
        elif right > 0 and up <= 0:
            zones.append("se")
        elif right <= 0 and up < 0:
            zones.append("sw")
        elif right < 0:
            zones.append("nw")
        if any((column + c, row + r) not in water for c, r in COMPASS):
            zones.append("rim")
    diagonal = round(0.6 * radius / math.sqrt(2))
    for name, (c, r) in zip(("ne", "se", "sw", "nw"), COMPASS[1::2], strict=True):
        _mark(water, f"spot_{name}", [(radius + c * diagonal, radius + r * diagonal)])
    for name, (c, r) in zip("nesw", COMPASS[::2], strict=True):
        _mark(water, f"edge_{name}", [(radius + c * (radius - 1), radius + r * (radius - 1))])
    _mark(water, "centre", [(radius, radius)])
    sites: list[str] = []
    if options.sites is not None:
        across, aslant = round(radius * 2 / 3), round(radius * 2 / 3 / math.sqrt(2))
        for c, r in COMPASS[:: 8 // options.sites]:
            reach = aslant if c and r else across
            sites.append(f"site{len(sites) + 1}")
            _mark(water, sites[-1], [(radius + c * reach, radius + r * reach)])
        _mark(water, "inner", [square for square in water if math.dist(square, (radius, radius)) < radius / 4])
    groups = {
        "quadrant": ["nw", "ne", "sw", "se"],
        "spot": ["spot_nw", "spot_ne", "spot_sw", "spot_se"],
        "edge": ["edge_n", "edge_e", "edge_s", "edge_w"],
    }
    if sites:
        groups["site"] = sites
    return _draw(water, groups, floor="~")


def ring(options: Ring) -> Drawn:
    """Draw a disc with holes on a circle one cell inside its edge, from north clockwise, all drawn ``o``."""
    radius, circle = options.radius, options.radius - 1
    disc: dict[_Square, list[str]] = {square: [] for square in _disc(radius)}
    holes: dict[_Square, str] = {}
    for number in range(options.holes):
        angle = 2 * math.pi * number / options.holes
        exact = (circle * math.sin(angle), -circle * math.cos(angle))
        # Halves round towards the centre, so that the ring is symmetrical; 1e-9 absorbs rounding errors.
        rounded = [math.copysign(math.ceil(abs(x) - 0.5 - 1e-9), x) for x in exact]
        if math.hypot(*rounded) >= radius - 0.5:  # over the edge
            rounded = [math.copysign(math.floor(abs(x) + 1e-9), x) for x in exact]
        column, row = (radius + int(x) for x in rounded)
        if (column, row) in holes:
            raise GeneratorError(f"{options.holes} holes do not fit on a ring of radius {radius}")
        holes[column, row] = f"hole{number + 1}"
    for square, name in holes.items():
        _mark(disc, name, [square])
    _mark(disc, "centre", [(radius, radius)])
    return _draw(disc, {"hole": list(holes.values())}, floor=".", glyph_of=dict.fromkeys(holes, "o"))


def radial(options: Radial) -> Drawn:
    """Draw a hub with arms at equal angles, clockwise from north, each snapped to the nearest compass direction.

    8 arms lie on the compass directions, 4 on the main ones, 5 on N, E, SE, SW and W. A diagonal arm of width 1 is
    a staircase, because a subject cannot move diagonally past a corner; quarter turns map diagonal arms onto each
    other. The last cell of an arm is its cup, drawn ``o``; its first cells are a door.
    """
    half = (options.width - 1) // 2
    directions = [round(8 * number / options.arms) % 8 for number in range(options.arms)]
    apart = min((b - a) % 8 for a, b in zip(directions, directions[1:] + directions[:1], strict=True))
    # Arms may touch only the hub: leave room for a wall between them, also diagonally.
    smallest = {1: 2 + half, 2: 1 + half}.get(apart, max(1, half))
    hub = options.hub if options.hub is not None else smallest
    if hub < smallest:
        raise GeneratorError(f"{options.arms} arms of width {options.width} need a hub of at least {smallest}")
    cells: dict[_Square, list[str]] = {}
    for row in range(-hub, hub + 1):
        for column in range(-hub, hub + 1):
            cells[column, row] = ["hub"]
    cups: dict[_Square, str] = {}
    gates: dict[_Square, str] = {}
    for number, direction in enumerate(directions, 1):
        c, r = COMPASS[direction]
        for step in range(hub + 1, hub + options.length + 1):
            for square in _across(c * step, r * step, c, r, half):
                if square not in cells:
                    cells[square] = [f"arm{number}"]
                    if step == hub + 1:
                        gates[square] = f"gate{number}"
        end = (c * (hub + options.length), r * (hub + options.length))
        cups[end] = f"cup{number}"
    for square, name in cups.items():
        _mark(cells, name, [square])
    _mark(cells, "centre", [(0, 0)])
    span = range(1, options.arms + 1)
    groups = {name: [f"{name}{n}" for n in span] for name in ("arm", "cup", "gate")}
    glyphs = dict.fromkeys(gates, "+") | dict.fromkeys(cups, "o")
    return _draw(cells, groups, floor=".", glyph_of=glyphs, door=gates)


def _across(column: int, row: int, c: int, r: int, half: int) -> list[_Square]:
    """Return the squares of an arm's cross-section at one of its steps."""
    if c and r:
        counterclockwise = (column - c, row) if c != r else (column, row - r)
        beside = [counterclockwise] if half == 0 else [(column - c, row), (column, row - r)]
        return [(column, row), *beside]
    return [(column + offset * abs(r), row + offset * abs(c)) for offset in range(-half, half + 1)]


def boxes(options: Boxes) -> Drawn:
    """Draw two compartments side by side; the doorway between them is the door ``gate`` and belongs to neither."""
    if options.doorway > options.height:
        raise GeneratorError("the doorway is higher than the boxes")
    cells: dict[_Square, list[str]] = {}
    for row in range(options.height):
        for column in range(options.width):
            cells[column, row] = ["west"]
            cells[column + options.width + 1, row] = ["east"]
    first = (options.height - options.doorway) // 2
    gate = {(options.width, first + n): "gate" for n in range(options.doorway)}
    cells.update({square: [] for square in gate})
    return _draw(cells, {"side": ["west", "east"]}, floor=".", glyph_of=dict.fromkeys(gate, "|"), door=gate)


GENERATORS: dict[str, Callable[..., Drawn]] = {"pool": pool, "ring": ring, "radial": radial, "boxes": boxes}
