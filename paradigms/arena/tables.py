"""Movement and events as tables: the next pose and the events of an action are one
look-up each.

A pose is a cell and a heading. Its number is ``(cell * turns + heading) * 4``, so that
``pose + action`` is an index into the tables. Headings are counted in the arena's own
turns, 8 or 4.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from cheesebench import interfaces
from cheesebench.protocol.arena import WALL_NAME, Arena, Square

#: A possible event of a step: ("enter", zone), ("inside", zone), ("press", solid),
#: ("act", action name), ("where", group), or BLOCKED.
Event = tuple[str, str]
#: The event that FORWARD did not move the subject, whatever was in the way. Frozen
#: states do not have it.
BLOCKED: Event = ("blocked", "any")
#: Maximum number of poses for which tables are cached, over all sets of closed doors. A
#: pose takes about 200 bytes.
MAX_POSES = 200_000


@dataclass(frozen=True, slots=True)
class Tables:
    """``moves[pose + action]`` is the next pose. ``events[pose + action]`` has the bits
    of the events.
    """

    moves: list[int]
    events: list[int]


class Geometry:
    """The tables of an arena, computed on first use for each set of closed doors, and
    separately for frozen states.
    """

    def __init__(self, arena: Arena, events: Sequence[Event]) -> None:
        self.arena = arena
        #: The bit of each event that rules or expressions react to.
        self.bit: Mapping[Event, int] = {
            event: 1 << number for number, event in enumerate(events)
        }
        self.turns = arena.turns
        self._zones_of = [
            frozenset(zone for zone, cells in arena.zones.items() if cell in cells)
            for cell in range(len(arena.cells))
        ]
        #: Group that an expression reads with ``where`` -> for each cell, the first
        #: member that the cell belongs to, or None.
        self.member_at: dict[str, list[str | None]] = {
            group: [
                next((m for m in arena.groups[group] if m in zones), None)
                for zones in self._zones_of
            ]
            for kind, group in events
            if kind == "where"
        }
        self._solid_at = {
            square: name for name, squares in arena.solids.items() for square in squares
        }
        self._act_bits = [self.bit.get(("act", name), 0) for name in interfaces.ACTIONS]
        self._enter_bits: dict[tuple[int, int], int] = {}
        # These caches are bounded: single places are few and needed in every trial, but
        # there may be many sets of them.
        self.cells_of = lru_cache(maxsize=1024)(self._cells_of)
        self.inside = lru_cache(maxsize=1024)(self._inside)
        self.middle = lru_cache(maxsize=1024)(self._middle)
        self.entries_beyond = lru_cache(maxsize=64)(self._entries_beyond)
        self._cache: dict[tuple[frozenset[str], bool], Tables] = {}

    @property
    def poses(self) -> int:
        return len(self.arena.cells) * self.turns

    def pose(self, cell: int, heading: int) -> int:
        """Return the pose of a cell and a heading (0-7, clockwise from north)."""
        return (
            cell * self.turns + heading * self.turns // len(interfaces.HEADINGS)
        ) * 4

    def cell(self, pose: int) -> int:
        return pose // (4 * self.turns)

    def heading(self, pose: int) -> int:
        return pose // 4 % self.turns * (len(interfaces.HEADINGS) // self.turns)

    @cached_property
    def _cell_at(self) -> dict[Square, int]:
        return {square: cell for cell, square in enumerate(self.arena.cells)}

    def cell_at(self, column: float, row: float) -> int | None:
        """Return the cell whose centre is nearest to a column and a row, or None if
        that square is not floor, or a number is not finite.
        """
        if not (math.isfinite(column) and math.isfinite(row)):
            return None
        return self._cell_at.get((math.floor(column + 0.5), math.floor(row + 0.5)))

    def _cells_of(self, places: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(
            sorted({cell for place in places for cell in self.arena.cells_of(place)})
        )

    def _inside(self, places: tuple[str, ...]) -> NDArray[np.bool_]:
        cells = frozenset(self.cells_of(places))
        return self._of_cells(cell in cells for cell in range(len(self.arena.cells)))

    def _middle(self, places: tuple[str, ...]) -> tuple[float, float]:
        squares = [self.arena.cells[cell] for cell in self.cells_of(places)]
        squares += [
            square
            for place in places
            for name in self.arena.members(place)
            for square in self.arena.solids.get(name, ())
        ]
        if not squares:
            return math.nan, math.nan
        return sum(column for column, _ in squares) / len(squares), sum(
            row for _, row in squares
        ) / len(squares)

    def _entries_beyond(self, origin: Square, distance: float) -> frozenset[int]:
        """Return pose + action for every pose at this distance from a square, or
        farther away.
        """
        far = self._of_cells(
            math.dist(origin, square) >= distance for square in self.arena.cells
        )
        return frozenset(far.nonzero()[0].tolist())

    def _of_cells(self, flags: Iterable[bool]) -> NDArray[np.bool_]:
        return np.repeat(np.array(list(flags), bool), self.turns * 4)

    @cached_property
    def still(self) -> list[int]:
        """A movement table in which no action changes the pose."""
        return self.tables(frozenset(), True).moves

    @cached_property
    def pressing(self) -> NDArray[np.bool_]:
        """For every pose + action: whether a solid other than a wall is ahead of the
        pose, so that FORWARD would press the solid.
        """
        poses = range(0, self.poses * 4, 4)
        ahead = [
            self.arena.ahead(self.cell(pose), self.heading(pose)) for pose in poses
        ]
        return np.repeat(
            [self._solid_at.get(square, WALL_NAME) != WALL_NAME for square in ahead], 4
        )

    def tables(self, closed: frozenset[str], frozen: bool) -> Tables:
        """Return the tables for these closed doors. In a frozen state no action moves
        the subject or presses anything.
        """
        key = (closed, frozen)
        if key not in self._cache:
            if len(self._cache) * self.poses >= MAX_POSES:
                self._cache.clear()
            self._cache[key] = self._frozen() if frozen else self._free(closed)
        return self._cache[key]

    def _frozen(self) -> Tables:
        moves = [pose * 4 for pose in range(self.poses) for _ in range(4)]
        inside = [self._inside_bits(cell) for cell in range(len(self.arena.cells))]
        return Tables(
            moves,
            [
                act | inside[cell]
                for cell in range(len(inside))
                for act in self._act_bits * self.turns
            ],
        )

    def _free(self, closed: frozenset[str]) -> Tables:
        arena, turns = self.arena, self.turns
        open_cells = arena.open_cells(closed)
        moves, events = [0] * (self.poses * 4), [0] * (self.poses * 4)
        for cell in range(len(arena.cells)):
            for turn in range(turns):
                pose = (cell * turns + turn) * 4
                heading = turn * (len(interfaces.HEADINGS) // turns)
                target = arena.step(cell, heading, open_cells)
                inside = self._inside_bits(cell)
                happens = [bits | inside for bits in self._act_bits]
                if target is None:
                    solid = self._solid_at.get(arena.ahead(cell, heading), "")
                    happens[interfaces.FORWARD] |= self.bit.get(
                        ("press", solid), 0
                    ) | self.bit.get(BLOCKED, 0)
                else:
                    happens[interfaces.FORWARD] = (
                        self._act_bits[interfaces.FORWARD]
                        | self._entering(cell, target)
                        | self._inside_bits(target)
                    )
                moves[pose + interfaces.FORWARD] = (
                    pose if target is None else (target * turns + turn) * 4
                )
                moves[pose + interfaces.ROTATE_LEFT] = (
                    cell * turns + (turn - 1) % turns
                ) * 4
                moves[pose + interfaces.ROTATE_RIGHT] = (
                    cell * turns + (turn + 1) % turns
                ) * 4
                moves[pose + interfaces.STAY] = pose
                events[pose : pose + 4] = happens
        return Tables(moves, events)

    def _inside_bits(self, cell: int) -> int:
        return sum(self.bit.get(("inside", zone), 0) for zone in self._zones_of[cell])

    def _entering(self, old: int, new: int) -> int:
        """Return the event bits of walking from one cell to another: zones entered, and
        changes of group member.
        """
        if (old, new) not in self._enter_bits:
            bits = 0
            for zone in self._zones_of[new] - self._zones_of[old]:
                bits |= self.bit.get(("enter", zone), 0)
            for group, members in self.member_at.items():
                if members[new] is not None and members[new] != members[old]:
                    bits |= self.bit["where", group]
            self._enter_bits[old, new] = bits
        return self._enter_bits[old, new]


@dataclass(frozen=True, slots=True)
class Destination:
    """A goal: enter any of ``zones`` (sets of cells), or press any of ``solids``
    (squares).
    """

    zones: tuple[frozenset[int], ...]
    solids: frozenset[Square]


def destination(arena: Arena, names: Iterable[str]) -> Destination:
    """Return the destination "any of these": zones, doors, solids or groups, in any
    mixture.
    """
    members = dict.fromkeys(member for name in names for member in arena.members(name))
    return Destination(
        zones=tuple(
            frozenset(arena.zones[member])
            for member in members
            if member in arena.zones
        ),
        solids=frozenset(
            square for member in members for square in arena.solids.get(member, ())
        ),
    )


def arrives(geometry: Geometry, tables: Tables, index: int, goal: Destination) -> bool:
    """Return whether the move ``index`` (pose + action) enters or presses the goal.

    As for the events of the language (docs/language.md, clause 8), a subject that walks
    within a zone, or is placed in it, does not enter it. Only FORWARD presses.
    """
    pose, action = index & ~3, index & 3
    if action != interfaces.FORWARD:
        return False
    new = tables.moves[index]
    old_cell = geometry.cell(pose)
    if new != pose:
        new_cell = geometry.cell(new)
        return any(new_cell in zone and old_cell not in zone for zone in goal.zones)
    if not goal.solids or is_frozen(tables, pose):
        return False
    return geometry.arena.ahead(old_cell, geometry.heading(pose)) in goal.solids


def is_frozen(tables: Tables, pose: int) -> bool:
    """Return whether these are the tables of a frozen state, where turning does not
    change the pose.
    """
    return tables.moves[pose + interfaces.ROTATE_LEFT] == pose


def shortest_path(
    geometry: Geometry, tables: Tables, pose: int, goal: Destination
) -> list[int] | None:
    """Return a shortest list of actions (0-2) whose last one enters or presses the
    goal.

    Return None if there is no path (a closed door may be in the way, for example, or
    the state may be frozen). Among equally short paths the order FORWARD, ROTATE_LEFT,
    ROTATE_RIGHT decides, so that the result is deterministic.
    """
    came_by: dict[int, int] = {pose: -1}
    queue = deque([pose])
    while queue:
        here = queue.popleft()
        for index in range(here, here + 3):
            if arrives(geometry, tables, index, goal):
                return [*_actions_to(here, came_by), index & 3]
            there = tables.moves[index]
            if there not in came_by:
                came_by[there] = index
                queue.append(there)
    return None


def _actions_to(pose: int, came_by: dict[int, int]) -> list[int]:
    """Return the actions that led to a pose. ``came_by`` has, for each pose, the move
    by which it was first reached.
    """
    actions: list[int] = []
    while (index := came_by[pose]) >= 0:
        actions.append(index & 3)
        pose = index & ~3
    return actions[::-1]
