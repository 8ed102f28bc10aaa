"""The path of a subject in a trial, and its relation to places, for expressions and records.

Columns and rows count from 0 in the north-west of the map; distances are straight lines in cells; angles are degrees.
Walls in between are ignored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cheesebench.interfaces import FORWARD
from cheesebench.paradigms.arena.tables import Geometry

#: Distance in cells at which the initial direction is measured: shorter paths have few directions.
DEPARTURE = 3.0
#: Poses, each plus an action: indices into tables.
Entries = NDArray[np.intp]
_NONE: Entries = np.zeros(0, np.intp)
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
    _before: Entries = field(default_factory=lambda: _NONE)
    _after: Entries = field(default_factory=lambda: _NONE)
    _placings: int = 0

    def clear(self) -> None:
        """Start a new trial."""
        self.entries.clear()
        self.placed.clear()
        self._before = self._after = _NONE

    def copy(self) -> Trace:
        """Return an independent copy."""
        return Trace(self.geometry, self.first, self.entries.copy(), self.placed.copy())

    def steps_in(self, places: tuple[str, ...]) -> int:
        """Return the steps spent in zones, doors or groups."""
        return int(np.count_nonzero(self.geometry.inside(places)[self._steps()[1]]))

    def entries_into(self, places: tuple[str, ...]) -> int:
        """Return how often the subject walked into places from outside all of them."""
        inside = self.geometry.inside(places)
        before, after = self._steps()
        return int(np.count_nonzero(inside[after] & ~inside[before]))

    def path(self) -> tuple[int, int]:
        """Return how often FORWARD moved the subject, and how often it did not (a press of a lever is no bump)."""
        before, after = self._steps()
        forward = after & 3 == FORWARD
        same = after >> 2 == before >> 2
        bumped = forward & same & ~self.geometry.pressing[before]
        return int(np.count_nonzero(forward & ~same)), int(np.count_nonzero(bumped))

    def departure_error(self, places: tuple[str, ...]) -> float:
        """Return the angle between the direction of the middle of places and the initial direction of the path.

        Both are measured from where the trial began (or the subject was last placed). NaN before the subject has moved
        far enough.
        """
        since = max(self.placed, default=0)
        origin = _square(self.geometry, self.placed.get(since, self.first))
        far = self.geometry.entries_beyond(origin, DEPARTURE)
        out = next((entry for entry in self.entries[since:] if entry in far), None)
        if out is None:
            return math.nan
        way = _way(origin, _square(self.geometry, out))
        return _between(_bearing(way), _bearing(_way(origin, self.geometry.middle(places))))

    def _steps(self) -> tuple[Entries, Entries]:
        """Return of each step the pose before (plus any action) and the pose after + action.

        Being put elsewhere is no step. Several measures ask in a row, so arrays are kept until there is another step.
        """
        if len(self._after) != len(self.entries) or self._placings != len(self.placed):
            self._after = np.array(self.entries, np.intp)
            self._before = np.array([self.first, *self.entries[:-1]], np.intp)[: len(self.entries)]
            for number, pose in self.placed.items():
                self._before[number : number + 1] = pose
            self._placings = len(self.placed)
        return self._before, self._after


def distance(geometry: Geometry, pose: int, places: tuple[str, ...]) -> float:
    """Return the distance to the nearest cell of places; NaN where there is none."""
    here = _square(geometry, pose)
    squares = [geometry.arena.cells[cell] for cell in geometry.cells_of(places)]
    return min((math.dist(here, square) for square in squares), default=math.nan)


def bearing_error(geometry: Geometry, pose: int, places: tuple[str, ...]) -> float:
    """Return the angle (0 to 180) between the heading and the way to the middle of places; NaN in that middle."""
    way = _way(_square(geometry, pose), geometry.middle(places))
    return _between(degrees(geometry, pose), _bearing(way))


def degrees(geometry: Geometry, pose: int) -> int:
    """Return the heading of a pose, clockwise from north."""
    return 45 * geometry.heading(pose)


def _square(geometry: Geometry, pose: int) -> Way:
    return geometry.arena.cells[geometry.cell(pose)]


def _way(origin: Way, target: Way) -> Way:
    return target[0] - origin[0], target[1] - origin[1]


def _bearing(way: Way) -> float:
    """Return the direction of a way, clockwise from north; NaN of none."""
    return math.degrees(math.atan2(way[0], -way[1])) if any(way) else math.nan


def _between(one: float, other: float) -> float:
    """Return the angle between two directions, 0 to 180."""
    return abs((one - other + 180) % 360 - 180)
