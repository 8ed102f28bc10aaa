"""Shortest paths over poses to enter a zone or press a solid, with the present movement tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from cheesebench.interfaces import FORWARD, ROTATE_LEFT
from cheesebench.paradigms.arena.tables import Geometry, Tables
from cheesebench.protocol import Arena
from cheesebench.protocol.arena import Square


@dataclass(frozen=True, slots=True)
class Destination:
    """A goal: enter any of ``zones`` (sets of cells) or press any of ``solids`` (squares)."""

    zones: tuple[frozenset[int], ...]
    solids: frozenset[Square]


def destination(arena: Arena, names: Iterable[str]) -> Destination:
    """Return the destination of any of the named zones, doors, solids or groups (members in any mixture)."""
    members = dict.fromkeys(member for name in names for member in arena.members(name))
    return Destination(
        zones=tuple(frozenset(arena.zones[member]) for member in members if member in arena.zones),
        solids=frozenset(square for member in members for square in arena.solids.get(member, ())),
    )


def arrives(geometry: Geometry, tables: Tables, index: int, goal: Destination) -> bool:
    """Return whether the move ``index`` (pose + action) enters or presses the goal.

    This is the event of the language (page, clause 8): walking about inside a zone, or being put there, enters
    nothing; only FORWARD presses.
    """
    pose, action = index & ~3, index & 3
    if action != FORWARD:
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
    """Return whether these are the tables of a frozen state, in which turns do not change the pose."""
    return tables.moves[pose + ROTATE_LEFT] == pose


def shortest_path(geometry: Geometry, tables: Tables, pose: int, goal: Destination) -> list[int] | None:
    """Return the fewest actions (0-2) that enter or press the goal, the last of them doing so.

    None if there is no path: a door is closed, the state is frozen, or the goal does not exist. Of equally short paths
    the first in the order FORWARD, ROTATE_LEFT, ROTATE_RIGHT is returned, so that the result is deterministic.
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
    """Return the actions that led to a pose; ``came_by`` has the move by which each pose was reached first."""
    actions: list[int] = []
    while (index := came_by[pose]) >= 0:
        actions.append(index & 3)
        pose = index & ~3
    return actions[::-1]
