"""Mazes that are turned in their room: the picture stays, and the landmarks go round
it between trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cheesebench.protocol import Specification
    from cheesebench.protocol.arena import Arena


@dataclass(frozen=True)
class Turning:
    """The turning of a maze. ``held`` has the values of the draw's first row, in which
    the maze is turned by 0 degrees.
    """

    variable: str
    """The draw's first column that holds names of landmarks."""
    degrees: Mapping[object, int]
    """By value of ``variable``: how far the landmarks have gone round, in degrees
    clockwise, rounded.
    """
    centre: tuple[float, float]
    """Column and row of the middle of the landmarks."""
    held: Mapping[str, object]

    @classmethod
    def of(cls, specification: Specification) -> Turning | None:
        """Return the turning of a protocol's maze, or None if the maze is not
        turned.
        """
        arena = specification.arena
        for draw in specification.draws:
            columns = list(zip(*draw.rows, strict=True))
            going = {
                name: column
                for name, column in zip(draw.columns, columns, strict=False)
                if _are_landmarks(arena, column)
            }
            if going and _go_round_together(list(going.values())):
                name, column = next(iter(going.items()))
                centre = _middle(arena, column)
                degrees = dict(
                    zip(column, _degrees(arena, column, centre), strict=True)
                )
                held = dict(zip(draw.columns, draw.rows[0], strict=True))
                return cls(name, degrees, centre, held)
        return None


def _are_landmarks(arena: Arena, column: Sequence[object]) -> bool:
    names = {mark.name for mark in arena.landmarks}
    return len(set(column)) == len(column) > 1 and names.issuperset(map(str, column))


def _go_round_together(columns: Sequence[Sequence[object]]) -> bool:
    """Return whether every column is a rotation of the first one."""
    first = [*columns[0]]
    rounds = [first[at:] + first[:at] for at in range(len(first))]
    return all([*column] in rounds for column in columns)


def _squares(arena: Arena, names: Sequence[object]) -> Iterator[tuple[int, int]]:
    for name in names:
        mark = arena.landmark(str(name))
        assert mark is not None
        yield mark.column, mark.row


def _middle(arena: Arena, names: Sequence[object]) -> tuple[float, float]:
    columns, rows = zip(*_squares(arena, names), strict=True)
    return sum(columns) / len(columns), sum(rows) / len(rows)


def _degrees(
    arena: Arena, names: Sequence[object], centre: tuple[float, float]
) -> Iterator[int]:
    """Yield the angle from the first landmark to each one, in degrees clockwise,
    rounded to equal steps round the circle.
    """
    ways = [
        math.degrees(math.atan2(column - centre[0], centre[1] - row))
        for column, row in _squares(arena, names)
    ]
    step = 360 / len(ways)
    for way in ways:
        yield round(round((way - ways[0]) / step) * step) % 360
