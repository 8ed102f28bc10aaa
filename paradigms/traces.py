"""Where a subject has been in a trial, and how it stands to a place: what expressions and records read of a path.

Columns and rows count from 0 in the north-west of the map; distances are straight lines in cells; angles are degrees.
Cells are places to stand on: walls in between play no part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from cheesebench.interfaces import FORWARD
from cheesebench.paradigms.tables import Geometry

#: Cells from where a trial began at which a subject is taken to have set out: shorter ways have few directions.
DEPARTURE = 3.0
#: A way in words: columns to the east, rows to the south.
Way = tuple[float, float]


@dataclass(slots=True)
class Trace:
    """The poses of a trial so far.

    ``entries`` has pose + action after each step, ``first`` the pose at its beginning, ``placed`` the pose after the
    steps (from 1) on which the subject was put elsewhere.
    """

    geometry: Geometry
    first: int = 0
    entries: list[int] = field(default_factory=list)
    placed: dict[int, int] = field(default_factory=dict)

    def copy(self) -> Trace:
        """Return one that goes on by itself."""
        return Trace(self.geometry, self.first, self.entries.copy(), self.placed.copy())

    def steps_in(self, places: tuple[str, ...]) -> int:
        """Return the steps spent in zones, doors or groups."""
        return sum(map(self.geometry.entries_of(places).__contains__, self.entries))

    def entries_into(self, places: tuple[str, ...]) -> int:
        """Return how often the subject walked into places from outside all of them."""
        inside = self.geometry.entries_of(places)
        return sum(after in inside and before not in inside for before, after, _ in self._steps())

    def path(self) -> tuple[int, int]:
        """Return how often FORWARD moved the subject, and how often it did not (a press of a lever is no bump)."""
        moved = bumped = 0
        for before, after, action in self._steps():
            if action == FORWARD:
                moved += after != before
                bumped += after == before and before not in self.geometry.pressing
        return moved, bumped

    def departure_error(self, places: tuple[str, ...]) -> float:
        """Return the angle between the way to the middle of places and the way taken, when first set out.

        Both ways begin where the trial began (or the subject was last put elsewhere). NaN before it has set out.
        """
        since = max(self.placed, default=0)
        origin = _square(self.geometry, self.placed.get(since, self.first))
        for entry in self.entries[since:]:
            way = _way(origin, _square(self.geometry, entry))
            if math.hypot(*way) >= DEPARTURE:
                return _between(_bearing(way), _bearing(_way(origin, middle(self.geometry, places))))
        return math.nan

    def _steps(self) -> Iterator[tuple[int, int, int]]:
        """Yield pose before, pose after, and action of each step; being put elsewhere is no step."""
        before = self.first
        for number, entry in enumerate(self.entries, 1):
            after = entry & ~3
            yield before, after, entry & 3
            before = self.placed.get(number, after)


def distance(geometry: Geometry, pose: int, places: tuple[str, ...]) -> float:
    """Return the distance to the nearest cell of places; NaN where there is none."""
    here = _square(geometry, pose)
    squares = [geometry.arena.cells[cell] for cell in geometry.cells_of(places)]
    return min((math.dist(here, square) for square in squares), default=math.nan)


def bearing_error(geometry: Geometry, pose: int, places: tuple[str, ...]) -> float:
    """Return the angle (0 to 180) between the heading and the way to the middle of places; NaN in that middle."""
    way = _way(_square(geometry, pose), middle(geometry, places))
    return _between(degrees(geometry, pose), _bearing(way))


def degrees(geometry: Geometry, pose: int) -> int:
    """Return the heading of a pose, clockwise from north."""
    return 45 * geometry.heading(pose)


def _square(geometry: Geometry, pose: int) -> Way:
    return geometry.arena.cells[geometry.cell(pose)]


def middle(geometry: Geometry, places: tuple[str, ...]) -> Way:
    """Return the middle of zones, doors, groups or solids; NaN where there is none."""
    arena = geometry.arena
    squares = [arena.cells[cell] for cell in geometry.cells_of(places)]
    squares += [square for place in places for name in arena.members(place) for square in arena.solids.get(name, ())]
    if not squares:
        return math.nan, math.nan
    return sum(column for column, _ in squares) / len(squares), sum(row for _, row in squares) / len(squares)


def _way(origin: Way, target: Way) -> Way:
    return target[0] - origin[0], target[1] - origin[1]


def _bearing(way: Way) -> float:
    """Return the direction of a way, clockwise from north; NaN of none."""
    return math.degrees(math.atan2(way[0], -way[1])) if any(way) else math.nan


def _between(one: float, other: float) -> float:
    """Return the angle between two directions, 0 to 180."""
    return abs((one - other + 180) % 360 - 180)
