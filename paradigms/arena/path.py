"""The functions of a subject's path for expressions: language page, clause 8."""

from __future__ import annotations

from typing import Any

from cheesebench.paradigms.arena.mistakes import no_floor
from cheesebench.paradigms.arena.program import Program, names_in
from cheesebench.paradigms.arena.tables import Geometry
from cheesebench.paradigms.arena.traces import Trace, bearing_error, degrees, distance


class Path:
    """Base class with the subject's position and path. Places are a zone, a group or a set of zones."""

    _geometry: Geometry
    _trace: Trace
    _pose: int
    _program: Program
    steps: int
    state: str

    def _put(self, column: float, row: float) -> None:
        """Stand on the square that is nearest to a column and a row, looking where one looked."""
        cell = self._geometry.cell_at(column, row)
        if cell is None:
            where = f"column {column:g}, row {row:g}"
            raise no_floor(self._program, where, self.state if self.steps else None)
        self._pose = self._geometry.pose(cell, self._geometry.heading(self._pose))
        self._update_occupied(cell)
        self._trace.placed[self.steps] = self._pose

    def _update_occupied(self, cell: int) -> None:
        """Note which member of each group is occupied, or was most recently."""
        raise NotImplementedError

    def time(self, place: Any) -> int:
        """Return the steps spent in places this trial."""
        return self._trace.steps_in(tuple(names_in(place)))

    def entries(self, place: Any) -> int:
        """Return how often the subject walked into places this trial."""
        return self._trace.entries_into(tuple(names_in(place)))

    def departure_error(self, place: Any) -> float:
        """Return the angle in degrees between the subject's initial direction and that of places."""
        return self._trace.departure_error(tuple(names_in(place)))

    def distance(self, place: Any) -> float:
        """Return the distance to the nearest cell of places."""
        return distance(self._geometry, self._pose, tuple(names_in(place)))

    def bearing_error(self, place: Any) -> float:
        """Return the angle in degrees between the subject's heading and the direction of places."""
        return bearing_error(self._geometry, self._pose, tuple(names_in(place)))

    def column(self, place: Any) -> float:
        """Return the column in the middle of places, which may be solid."""
        return self._geometry.middle(tuple(names_in(place)))[0]

    def row(self, place: Any) -> float:
        """Return the row in the middle of places, which may be solid."""
        return self._geometry.middle(tuple(names_in(place)))[1]

    @property
    def x(self) -> int:
        """Column of the subject, from 0 in the west."""
        return self._geometry.arena.cells[self._geometry.cell(self._pose)][0]

    @property
    def y(self) -> int:
        """Row of the subject, from 0 in the north."""
        return self._geometry.arena.cells[self._geometry.cell(self._pose)][1]

    @property
    def heading(self) -> int:
        """Degrees clockwise from north."""
        return degrees(self._geometry, self._pose)

    @property
    def moves(self) -> int:
        """Steps to another cell this trial."""
        return self._trace.path()[0]
