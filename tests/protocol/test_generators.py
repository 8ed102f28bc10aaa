"""Generators: the zones and groups of the language page, in the right places, for all
options.
"""

from __future__ import annotations

import math
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.interfaces import HEADINGS
from cheesebench.protocol import Arena, Specification
from cheesebench.protocol.arena import COMPASS, FLOOR, WALL
from tests.arenas import examine_text

Square = tuple[int, int]

stable = settings(derandomize=True, max_examples=40)
PROTOCOL = """
version: 1
paradigm: generated
arena: {%s}
start: {at: %s}
trial: {limit: 9, start: run, states: {run: {rules: [{act: STAY, reward: 1, end: done}]}}}
schedule: {one: {}}
"""


def examine(options: str, start: str) -> tuple[Specification | None, list[str]]:
    specification, found = examine_text(PROTOCOL % (options, start), "x.yaml")
    return specification, [str(d) for d in found]


def arena_of(options: str, start: str = "centre") -> Arena:
    specification, found = examine(options, start)
    assert specification is not None, found
    assert found == []
    return specification.arena


def squares(arena: Arena, name: str) -> set[Square]:
    return {arena.cells[cell] for cell in arena.cells_of(name)}


def one(arena: Arena, zone: str) -> Square:
    (square,) = squares(arena, zone)
    return square


def relative(arena: Arena, zone: str) -> Square:
    """Return (right, down) of a zone of one cell from the centre."""
    (column, row), (middle, height) = one(arena, zone), one(arena, "centre")
    return column - middle, row - height


def direction(right: int, down: int) -> str:
    """Return the compass direction of a vector, by the nearest eighth of a turn."""
    return HEADINGS[round(math.atan2(right, -down) / (math.pi / 4)) % 8]


def reachable(arena: Arena, closed: tuple[str, ...] = ()) -> set[int]:
    open_cells = arena.open_cells(closed)
    reached = {0}
    queue = deque(reached)
    while queue:
        cell = queue.popleft()
        for heading in arena.headings:
            target = arena.step(cell, heading, open_cells)
            if target is not None and target not in reached:
                reached.add(target)
                queue.append(target)
    return reached


def check_any(arena: Arena) -> None:
    """Check the properties of every generated arena."""
    assert len(reachable(arena)) == len(arena.cells)
    for column, row in arena.cells:  # walls all around: no view leads out of the arena
        for across, down in COMPASS:
            assert arena.kind((column + across, row + down)) in (WALL, FLOOR)
    for members in arena.groups.values():
        assert all(arena.zones[member] for member in members)
        cells = [cell for member in members for cell in arena.zones[member]]
        assert len(cells) == len(set(cells))
    rows = arena.kinds
    assert len({len(row) for row in rows}) == 1
    assert all(any(row[edge] == WALL for row in rows) for edge in (0, -1))
    assert WALL in rows[0]
    assert WALL in rows[-1]


def turned(points: set[Square], middle: Square) -> set[Square]:
    """Turn points clockwise by a quarter around the middle."""
    return {
        (middle[0] - (row - middle[1]), middle[1] + column - middle[0])
        for column, row in points
    }


# -- pool


@stable
@given(st.integers(3, 40))
def test_pool(radius: int) -> None:
    arena = arena_of(f"pool: {{radius: {radius}}}")
    check_any(arena)
    middle = one(arena, "centre")
    assert middle == (radius, radius)
    everything = set(arena.cells)
    assert everything == {
        (c, r)
        for c in range(-radius, 3 * radius)
        for r in range(-radius, 3 * radius)
        if math.hypot(c - radius, r - radius) < radius - 0.5
    }
    assert arena.groups == {
        "quadrant": ("nw", "ne", "sw", "se"),
        "spot": ("spot_nw", "spot_ne", "spot_sw", "spot_se"),
        "edge": ("edge_n", "edge_e", "edge_s", "edge_w"),
    }
    assert set(arena.zones) == {
        "centre",
        "rim",
        *(member for group in arena.groups.values() for member in group),
    }
    # Quarter turns map the quadrants and all other zones onto each other, so each is a
    # quarter of the water.
    for ring in (
        ["nw", "ne", "se", "sw"],
        [f"spot_{q}" for q in ("nw", "ne", "se", "sw")],
        [f"edge_{e}" for e in "nesw"],
    ):
        for zone, following in zip(ring, ring[1:] + ring[:1], strict=True):
            assert turned(squares(arena, zone), middle) == squares(arena, following)
    assert len(squares(arena, "nw")) * 4 + 1 == len(everything)
    assert turned(squares(arena, "rim"), middle) == squares(arena, "rim")
    for quadrant, spot in zip(
        arena.groups["quadrant"], arena.groups["spot"], strict=True
    ):
        right, down = relative(arena, spot)
        assert direction(right, down) == quadrant.upper()
        assert one(arena, spot) in squares(arena, quadrant)
        # About 60 % of the radius, to the nearest cell.
        assert abs(math.hypot(right, down) - 0.6 * radius) <= 0.75
    for edge in arena.groups["edge"]:
        right, down = relative(arena, edge)
        assert direction(right, down) == edge[-1].upper()
        assert math.hypot(right, down) == radius - 1
        assert one(arena, edge) in squares(arena, "rim")
    rim = {
        cell
        for cell in everything
        if any((cell[0] + c, cell[1] + r) not in everything for c, r in COMPASS)
    }
    assert squares(arena, "rim") == rim
    assert {arena.glyphs[square] for square in everything} == {
        "~"
    }  # nothing looks different from the water


@pytest.mark.parametrize("sites", [4, 8])
@pytest.mark.parametrize("radius", [3, 9, 10, 17])
def test_sites_of_a_pool(radius: int, sites: int) -> None:
    arena = arena_of(f"pool: {{radius: {radius}, sites: {sites}}}")
    middle = one(arena, "centre")
    names = arena.groups["site"]
    assert names == tuple(f"site{number}" for number in range(1, sites + 1))
    for name, following in zip(
        names, names[sites // 4 :] + names[: sites // 4], strict=True
    ):
        assert turned(squares(arena, name), middle) == squares(arena, following)
        assert abs(math.hypot(*relative(arena, name)) - radius * 2 / 3) <= 0.75
    assert direction(*relative(arena, "site1")) == "N"
    assert (
        turned(squares(arena, "inner"), middle) == squares(arena, "inner") >= {middle}
    )
    assert all(
        math.dist(square, middle) < radius / 4 for square in squares(arena, "inner")
    )


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("hub", [3, 4])
@pytest.mark.parametrize("width", [1, 3])
def test_eight_arms_turn_into_one_another(length: int, hub: int, width: int) -> None:
    arena = arena_of(
        f"radial: {{arms: 8, length: {length}, hub: {hub}, width: {width}}}"
    )
    middle = one(arena, "centre")
    for zone in ("arm", "cup", "gate"):
        for number in range(1, 9):
            following = (number + 1) % 8 + 1
            assert turned(squares(arena, f"{zone}{number}"), middle) == squares(
                arena, f"{zone}{following}"
            )


def test_pool_of_the_paper() -> None:
    arena = arena_of("pool: {radius: 9}")
    assert len(arena.cells) == sum(
        math.hypot(c, r) < 8.5 for c in range(-9, 10) for r in range(-9, 10)
    )
    assert relative(arena, "spot_ne") == (4, -4)
    assert relative(arena, "edge_w") == (-8, 0)


# -- ring


def ring_options() -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(4, 40), st.integers(2, 40))


@stable
@given(ring_options())
def test_ring(options: tuple[int, int]) -> None:
    radius, holes = options
    specification, found = examine(
        f"ring: {{radius: {radius}, holes: {holes}}}", "centre"
    )
    if specification is None:
        assert found == [
            "x.yaml:4:15: error E141: This ring cannot be drawn: "
            f"{holes} holes do not fit on a ring of radius {radius}. Change 'radius' or 'holes'."
        ]
        # The circle has room for a hole in every second cell.
        assert holes > 4 * (radius - 1)
        return
    assert found == []
    arena = specification.arena
    check_any(arena)
    assert arena.groups == {"hole": tuple(f"hole{n}" for n in range(1, holes + 1))}
    assert set(arena.zones) == {"centre", *arena.groups["hole"]}
    for number, hole in enumerate(arena.groups["hole"]):
        right, down = relative(arena, hole)
        angle = 2 * math.pi * number / holes
        assert abs(right - (radius - 1) * math.sin(angle)) < 1
        assert abs(down + (radius - 1) * math.cos(angle)) < 1
        assert arena.glyphs[one(arena, hole)] == "o"
    assert relative(arena, "hole1") == (0, 1 - radius)
    holes_at = {one(arena, hole) for hole in arena.groups["hole"]}
    middle = one(arena, "centre")
    assert {
        (2 * middle[0] - c, r) for c, r in holes_at
    } == holes_at  # the western half mirrors the eastern one
    if holes % 4 == 0:
        assert turned(holes_at, middle) == holes_at


def test_ring_of_the_barnes_maze() -> None:
    arena = arena_of("ring: {radius: 9, holes: 20}")
    assert [relative(arena, f"hole{n}") for n in (1, 6, 11, 16)] == [
        (0, -8),
        (8, 0),
        (0, 8),
        (-8, 0),
    ]


# -- radial

ARMS = {
    2: "N S",
    3: "N SE SW",
    4: "N E S W",
    5: "N E SE SW W",
    6: "N NE SE S SW NW",
    8: " ".join(HEADINGS),
}


@pytest.mark.parametrize("arms", ARMS)
@pytest.mark.parametrize("width", [1, 3])
def test_arms_lie_on_compass_directions(arms: int, width: int) -> None:
    arena = arena_of(f"radial: {{arms: {arms}, length: 5, width: {width}}}")
    found = [direction(*relative(arena, f"cup{n}")) for n in range(1, arms + 1)]
    assert found == ARMS[arms].split()


def radial_options() -> st.SearchStrategy[dict[str, int]]:
    required = {"arms": st.integers(2, 8), "length": st.integers(1, 12)}
    return st.fixed_dictionaries(
        required, optional={"width": st.sampled_from([1, 3]), "hub": st.integers(1, 6)}
    )


@stable
@given(radial_options())
def test_radial(options: dict[str, int]) -> None:
    written = ", ".join(f"{key}: {value}" for key, value in options.items())
    specification, found = examine(f"radial: {{{written}}}", "centre")
    arms, length, width = options["arms"], options["length"], options.get("width", 1)
    if specification is None:
        assert len(found) == 1
        assert "error E141: This radial cannot be drawn: " in found[0]
        assert "need a hub of at least " in found[0]
        smallest = int(found[0].split("at least ")[1].split(".")[0])
        assert options["hub"] < smallest <= 3
        options["hub"] = smallest
        written = ", ".join(f"{key}: {value}" for key, value in options.items())
        assert examine(f"radial: {{{written}}}", "centre")[0] is not None
        return
    assert found == []
    arena = specification.arena
    check_any(arena)
    numbers = range(1, arms + 1)
    assert arena.groups == {
        name: tuple(f"{name}{n}" for n in numbers) for name in ("arm", "cup", "gate")
    }
    assert set(arena.zones) == {
        "hub",
        "centre",
        *(member for group in arena.groups.values() for member in group),
    }
    # Closed gates isolate the hub, because every path into an arm leads through its
    # gate.
    assert set(arena.doors) == set(arena.groups["gate"])
    for gate, arm_name in zip(arena.groups["gate"], arena.groups["arm"], strict=True):
        assert set(arena.doors[gate]) < set(arena.zones[arm_name]) or length == 1
    enclosed, open_cells = (
        {arena.cells.index(one(arena, "centre"))},
        arena.open_cells(arena.doors),
    )
    for _ in arena.cells:
        enclosed |= {
            t
            for c in enclosed
            for h in arena.headings
            if (t := arena.step(c, h, open_cells)) is not None
        }
    assert {arena.cells[cell] for cell in enclosed} == squares(arena, "hub")
    assert one(arena, "centre") in squares(arena, "hub")
    assert set(arena.cells) == squares(arena, "hub") | squares(arena, "arm")
    hub = math.isqrt(len(squares(arena, "hub"))) // 2
    for number in numbers:
        arm, (right, down) = (
            squares(arena, f"arm{number}"),
            relative(arena, f"cup{number}"),
        )
        assert one(arena, f"cup{number}") in arm
        assert max(abs(right), abs(down)) == hub + length  # at the end of the arm
        assert arena.glyphs[one(arena, f"cup{number}")] == "o"
        if not (right and down):
            assert len(arm) == length * width
    # Arms touch only the hub: there is no path around it from one arm to another.
    for cell in arena.cells_of("arm"):
        mine = next(n for n in numbers if cell in arena.zones[f"arm{n}"])
        for heading in arena.headings:
            target = arena.step(cell, heading, arena.open_cells())
            if target is not None and target not in arena.zones["hub"]:
                assert target in arena.zones[f"arm{mine}"]


# -- all generators


@pytest.mark.parametrize("headings", [8, 4])
@pytest.mark.parametrize(
    ("options", "start"),
    [
        ("pool: {radius: 6}", "centre"),
        ("ring: {radius: 6, holes: 12}", "centre"),
        ("radial: {arms: 8, length: 4}", "hub"),
        ("radial: {arms: 5, length: 4, width: 3}", "hub"),
    ],
)
def test_every_cell_can_be_reached_with_any_headings(
    options: str, start: str, headings: int
) -> None:
    arena = arena_of(f"{options}, headings: {headings}", start)
    assert len(reachable(arena)) == len(arena.cells)


@pytest.mark.parametrize(
    "options",
    [
        *(
            "pool: {radius: 2}",
            "pool: {radius: 41}",
            "pool: {radius: 9.5}",
            "pool: {}",
            "pool: {radius: 9, depth: 3}",
        ),
        *(
            "ring: {radius: 9}",
            "ring: {radius: 9, holes: 1}",
            "ring: {radius: 3, holes: 4}",
            "ring: 9",
        ),
        *(
            "radial: {arms: 9, length: 3}",
            "radial: {arms: 1, length: 3}",
            "radial: {arms: 8, length: 0}",
        ),
        *(
            "radial: {arms: 8, length: 3, width: 2}",
            "radial: {arms: 8, length: 3, hub: 0}",
        ),
    ],
)
def test_options_out_of_range(options: str) -> None:
    specification, found = examine(options, "centre")
    assert specification is None
    assert all(": error E12" in line for line in found)


def test_groups_of_an_author_join_those_of_a_generator() -> None:
    arena = arena_of(
        "ring: {radius: 9, holes: 4}, groups: {near: [hole1, centre], hole: [hole2, hole1]}"
    )
    assert arena.groups == {"hole": ("hole2", "hole1"), "near": ("hole1", "centre")}


# -- landmarks


def landmarks_of(options: str) -> dict[str, tuple[int, int, str]]:
    return {
        mark.name: (mark.column, mark.row, mark.glyph)
        for mark in arena_of(options).landmarks
    }


def test_landmarks_by_compass_stand_on_the_outermost_wall() -> None:
    options = f"pool: {{radius: 5}}, landmarks: {{{', '.join(f'{h}: {n}' for n, h in enumerate(HEADINGS, 1))}}}"
    arena = arena_of(options)
    assert [mark.name for mark in arena.landmarks] == list(HEADINGS)
    assert [mark.glyph for mark in arena.landmarks] == list("12345678")
    for mark in arena.landmarks:
        assert direction(mark.column - 5, mark.row - 5) == mark.name
        assert arena.kind((mark.column, mark.row)) == WALL
    assert landmarks_of(options)["N"][:2] == (5, 0)
    assert landmarks_of(options)["W"][:2] == (0, 5)


def test_landmarks_by_place_may_stand_outside() -> None:
    options = "pool: {radius: 5}, landmarks: {house: {at: [-1, 4], glyph: H}, tree: {at: [0, 0], glyph: T}, S: x}"
    assert landmarks_of(options) == {
        "house": (-1, 4, "H"),
        "tree": (0, 0, "T"),
        "S": (5, 10, "x"),
    }
    listed = "pool: {radius: 5}, landmarks: [{at: [-1, 4], glyph: H}, {at: [0, 0], glyph: T}]"
    assert landmarks_of(listed) == {"landmark1": (-1, 4, "H"), "landmark2": (0, 0, "T")}


@pytest.mark.parametrize(
    ("landmarks", "sentence"),
    [
        (
            "{a: {at: [5, 5], glyph: x}}",
            "The landmark 'a' is on floor or a solid at [5, 5].",
        ),
        (
            "{a: {at: [5, 13], glyph: x}}",
            "The landmark 'a' is more than two squares outside the map.",
        ),
        (
            "{a: {at: [-3, 5], glyph: x}}",
            "The landmark 'a' is more than two squares outside the map.",
        ),
        (
            "{N: x, a: {at: [5, 0], glyph: y}}",
            "The landmark 'a' is at the same place as another one.",
        ),
        ("{NORTH: x}", "'NORTH' is not a compass direction."),
    ],
)
def test_landmarks_that_cannot_stand_there(landmarks: str, sentence: str) -> None:
    specification, found = examine(
        f"pool: {{radius: 5}}, landmarks: {landmarks}", "centre"
    )
    assert specification is None
    assert len(found) == 1
    assert f"error E147: {sentence}" in found[0]


def test_landmarks_around_a_map_without_walls() -> None:
    specification, found = examine(
        'map: "S", legend: {S: here}, landmarks: {N: a, NE: b, E: c, SW: d}', "here"
    )
    assert specification is not None, found
    places = {
        mark.name: (mark.column, mark.row) for mark in specification.arena.landmarks
    }
    assert places == {"N": (0, -1), "NE": (1, -1), "E": (1, 0), "SW": (-1, 1)}
