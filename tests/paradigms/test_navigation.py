"""Shortest paths: as few actions as possible, with the event last; and none if there is
no path.
"""

from __future__ import annotations

import math
from collections import deque

import pytest

from cheesebench.interfaces import FORWARD, HEADINGS, ROTATE_RIGHT
from cheesebench.paradigms.arena.tables import (
    Geometry,
    arrives,
    destination,
    is_frozen,
    shortest_path,
)
from cheesebench.protocol import Arena
from tests.arenas import examine_text

FILE = """
version: 1
paradigm: rooms
arena:
  headings: {headings}
  map: |
    #########
    #AA..D.B#
    #A...#..#
    #..S.L..#
    #########
  legend: {{A: west, B: east, S: start, D: {{door: gate}}, L: {{solid: lever, glyph: "L"}}}}
  groups: {{side: [west, east]}}
start: {{at: start, face: N}}
trial:
  limit: 50
  start: run
  states:
    run: {{rules: [{{enter: side, end: arrived}}, {{press: lever, end: pressed}}]}}
schedule: {{main: {{trials: 1}}}}
"""


def geometry_of(headings: int = 8) -> Geometry:
    specification, found = examine_text(FILE.format(headings=headings))
    assert specification is not None, found
    return Geometry(specification.arena, ())


def pose_at(geometry: Geometry, column: int, row: int, heading: str = "N") -> int:
    return geometry.pose(
        geometry.arena.cells.index((column, row)), HEADINGS.index(heading)
    )


def walk(
    geometry: Geometry, arena: Arena, pose: int, name: str, closed: tuple[str, ...] = ()
) -> str | None:
    """Return the letters of the path, after checking that its last action, and no
    other, is the event.
    """
    tables, goal = geometry.tables(frozenset(closed), False), destination(arena, [name])
    path = shortest_path(geometry, tables, pose, goal)
    if path is None:
        return None
    events = []
    for action in path:
        events.append(arrives(geometry, tables, pose + action, goal))
        pose = tables.moves[pose + action]
    assert events == [False] * (len(path) - 1) + [True]
    return "".join("FLRS"[action] for action in path)


@pytest.mark.parametrize(
    ("headings", "name", "letters"),
    [
        (8, "west", "FLF"),  # as short as LFF, and FORWARD is tried first
        (4, "west", "FFLF"),
        (8, "lever", "RRFF"),
        (4, "lever", "RFF"),
        (8, "wall", "FFF"),
        (8, "gate", "RFF"),
    ],
)
def test_a_path_ends_with_the_event(headings: int, name: str, letters: str) -> None:
    geometry = geometry_of(headings)
    assert walk(geometry, geometry.arena, pose_at(geometry, 3, 3), name) == letters


def test_the_nearest_member_of_a_group_is_taken() -> None:
    geometry = geometry_of()
    assert walk(geometry, geometry.arena, pose_at(geometry, 6, 1, "E"), "side") == "F"
    assert walk(geometry, geometry.arena, pose_at(geometry, 3, 1, "W"), "side") == "F"


def test_a_zone_is_left_to_be_entered_again() -> None:
    geometry = geometry_of()
    path = walk(geometry, geometry.arena, pose_at(geometry, 2, 1, "E"), "west")
    assert path is not None
    assert path.count("F") == 2


def test_a_closed_door_leaves_no_way() -> None:
    geometry = geometry_of()
    start = pose_at(geometry, 3, 3)
    assert walk(geometry, geometry.arena, start, "east") is not None
    assert walk(geometry, geometry.arena, start, "east", closed=("gate",)) is None


def test_nothing_is_reached_or_pressed_in_a_frozen_state() -> None:
    geometry = geometry_of()
    tables = geometry.tables(frozenset(), True)
    pose = pose_at(geometry, 4, 3, "E")
    lever = destination(geometry.arena, ["lever"])
    assert is_frozen(tables, pose)
    assert not arrives(geometry, tables, pose + FORWARD, lever)
    assert shortest_path(geometry, tables, pose, lever) is None
    free = geometry.tables(frozenset(), False)
    assert not is_frozen(free, pose)
    assert arrives(geometry, free, pose + FORWARD, lever)
    assert not arrives(geometry, free, pose + ROTATE_RIGHT, lever)


def test_paths_are_as_short_as_an_exhaustive_search_says() -> None:
    geometry = geometry_of()
    tables = geometry.tables(frozenset(), False)
    goal = destination(geometry.arena, ["east"])
    for number in range(geometry.poses):
        start = number * 4
        path = shortest_path(geometry, tables, start, goal)
        assert path is not None
        assert len(path) == _fewest(geometry, start)


def _fewest(geometry: Geometry, start: int) -> int:
    """The number of actions to the first entry, counted layer by layer over (pose,
    entered) pairs.
    """
    tables = geometry.tables(frozenset(), False)
    east = set(geometry.arena.zones["east"])
    queue, seen = deque([(start, 0)]), {start}
    while True:
        pose, count = queue.popleft()
        for action in range(4):
            new = tables.moves[pose + action]
            if geometry.cell(new) in east and geometry.cell(pose) not in east:
                return count + 1
            if new not in seen:
                seen.add(new)
                queue.append((new, count + 1))


@pytest.mark.parametrize("headings", [4, 8])
def test_a_pose_is_a_cell_and_a_heading(headings: int) -> None:
    geometry = geometry_of(headings)
    step = len(HEADINGS) // headings
    poses = [
        geometry.pose(cell, heading)
        for cell in range(len(geometry.arena.cells))
        for heading in range(0, len(HEADINGS), step)
    ]
    assert poses == list(range(0, geometry.poses * 4, 4))
    assert [(geometry.cell(pose), geometry.heading(pose)) for pose in poses[-2:]] == [
        (len(geometry.arena.cells) - 1, 8 - 2 * step),
        (len(geometry.arena.cells) - 1, 8 - step),
    ]


@pytest.mark.parametrize(
    ("column", "row", "square"),
    [
        (1.0, 1.0, (1, 1)),
        (0.5, 1.49, (1, 1)),
        (1.5, 1.0, (2, 1)),
        (1.0, 1.5, (1, 2)),
        (0.4, 1.0, None),  # a wall
        (math.nan, 1.0, None),
        (1.0, math.inf, None),
    ],
)
def test_the_cell_at_a_point_is_the_nearest(
    column: float, row: float, square: tuple[int, int] | None
) -> None:
    geometry = geometry_of()
    cell = geometry.cell_at(column, row)
    assert (None if cell is None else geometry.arena.cells[cell]) == square


def test_places_have_cells_a_middle_and_poses_far_away() -> None:
    geometry = geometry_of()
    arena = geometry.arena
    cells = geometry.cells_of(("west",))
    assert [arena.cells[cell] for cell in cells] == [(1, 1), (2, 1), (1, 2)]
    assert geometry.middle(("west",)) == pytest.approx((4 / 3, 4 / 3))
    assert geometry.middle(("east",)) == (7, 1)
    assert geometry.middle(("lever",)) == (5, 3)
    assert geometry.middle(("west", "east")) == pytest.approx((11 / 4, 5 / 4))
    assert all(map(math.isnan, geometry.middle(())))
    inside = geometry.inside(("west",))
    assert len(inside) == geometry.poses * 4
    assert {entry // (4 * 8) for entry in inside.nonzero()[0]} == set(cells)
    far = {arena.cells[entry // 32] for entry in geometry.entries_beyond((1, 1), 6.0)}
    assert far == {square for square in arena.cells if math.dist(square, (1, 1)) >= 6}
    assert (7, 1) in far
    assert len(geometry.entries_beyond((1, 1), 6.0)) == len(far) * 32


def test_only_a_lever_ahead_is_pressed_and_nothing_moves_a_frozen_subject() -> None:
    geometry = geometry_of()
    pressing = {entry // 4 * 4 for entry in geometry.pressing.nonzero()[0]}
    assert pressing == {
        pose_at(geometry, 4, 3, "E"),
        pose_at(geometry, 6, 3, "W"),
        *(
            pose
            for square, heading in (((4, 2), "SE"), ((6, 2), "SW"))
            if square in geometry.arena.cells
            for pose in [pose_at(geometry, *square, heading)]
        ),
    }
    assert geometry.still == [pose - pose % 4 for pose in range(geometry.poses * 4)]
    tables = geometry.tables(frozenset(), False)
    assert geometry.tables(frozenset(), False) is tables
    pose = pose_at(geometry, 2, 3, "E")
    assert tables.moves[pose : pose + 4] == [
        pose_at(geometry, 3, 3, "E"),
        pose_at(geometry, 2, 3, "NE"),
        pose_at(geometry, 2, 3, "SE"),
        pose,
    ]
    wall = pose_at(geometry, 1, 1, "N")
    assert tables.moves[wall] == wall
    # Round the compass, either way.
    assert tables.moves[wall + 1] == pose_at(geometry, 1, 1, "NW")
    assert tables.moves[pose_at(geometry, 1, 1, "NW") + 2] == wall
    gate = pose_at(geometry, 4, 1, "E")
    closed = geometry.tables(frozenset({"gate"}), False)
    assert closed.moves[gate] == gate
    assert tables.moves[gate] == pose_at(geometry, 5, 1, "E")
