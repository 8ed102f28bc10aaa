"""The geometry of the first-person picture: screen positions, and the squares that a column shows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.plugins.views.boards import FORWARD_OF

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]

#: Columns (an odd number: the middle one looks straight ahead), and rows above and below the horizon.
COLUMNS, HALF = 49, 8
MIDDLE = COLUMNS // 2
#: How far aside, in units of how far ahead, the outermost columns look: a little more than 45 degrees.
WIDE = 1.2
#: A wall that stands ``d`` squares ahead reaches ``FOCUS / (d + BACK)`` rows above and below the horizon: all of them
#: right in front of the agent (d = 0.5), and slowly fewer then, as if the eye stood a little behind it.
BACK = 2.3
FOCUS = HALF * (0.5 + BACK)
#: Walls by distance: up to so many squares ahead this character.
SHADES = ((1.0, "█"), (3.0, "▓"), (7.0, "▒"), (math.inf, "░"))
#: Crossings nearer to each other than this are one: the ray passes through a corner.
_SAME = 1e-9

Vector = tuple[float, float]


def directions(heading: int) -> tuple[Vector, Vector]:
    """Return forward and right, (across, down) each, of length 1."""
    across, down = FORWARD_OF[heading]
    length = math.hypot(across, down)
    return (across / length, down / length), (-down / length, across / length)


def height(ahead: float) -> int:
    """Return how many rows above (and below) the horizon something reaches that stands so far ahead."""
    return max(1, min(HALF, math.floor(FOCUS / (ahead + BACK) + 0.5)))


def floor_row(ahead: float) -> int:
    """Return the row below the horizon (from 0) in which floor so far ahead lies."""
    return min(HALF - 1, int(FOCUS / (ahead + BACK)))


def column_of(ahead: float, aside: float) -> int | None:
    """Return the column in which something is seen, or None outside of the picture."""
    if ahead <= 0 or abs(aside) > WIDE * ahead:
        return None
    return MIDDLE + math.floor(aside / (ahead * WIDE) * MIDDLE + 0.5)


@dataclass(frozen=True, slots=True)
class Lens:
    """What the columns look at with one heading. Squares are offsets on a board with so many columns (``stride``)."""

    one: Numbers
    """For each column and step along its ray a square ..."""
    other: Numbers
    """... and another one (or the same): if both are opaque, the ray ends there."""
    heights: Numbers
    """How many rows above the horizon a wall reaches that stands there."""
    shades: NDArray[np.uint32]
    """The character (code point) of a wall that stands there."""
    floor: Numbers
    """For each row below the horizon and column the square of the floor there."""


class Optics:
    """The lenses of all headings for boards on which rays end ``reach`` columns or rows away."""

    def __init__(self, reach: int) -> None:
        self._reach = reach
        #: What one looks at when facing N (0) and NE (1): other headings see the same, turned by quarters.
        self._rays: dict[int, _Rays] = {}

    def lens(self, heading: int, stride: int) -> Lens:
        """Return the lens of a heading for boards with so many columns."""
        if heading % 2 not in self._rays:
            self._rays[heading % 2] = _Rays(heading % 2, self._reach)
        rays = self._rays[heading % 2]

        def flat(across: Numbers, down: Numbers) -> Numbers:
            for _ in range(heading // 2):
                across, down = -down, across
            return down * stride + across

        return Lens(flat(*rays.one), flat(*rays.other), rays.heights, rays.shades, flat(*rays.floor))


class _Rays:
    """As ``Lens``, with pairs of columns and rows for squares."""

    def __init__(self, heading: int, reach: int) -> None:
        import numpy as np

        forward, right = directions(heading)
        slopes = [(column - MIDDLE) / MIDDLE * WIDE for column in range(COLUMNS)]
        ways = [(forward[0] + slope * right[0], forward[1] + slope * right[1]) for slope in slopes]
        rays = [list(_crossed(*way, reach)) for way in ways]
        steps = max(map(len, rays))
        # Rays that are shorter than others take their last step again.
        padded = np.array([ray + ray[-1:] * (steps - len(ray)) for ray in rays])
        squares, ahead = padded[..., :4].astype(np.intp), padded[..., 4]
        self.one = squares[..., 0], squares[..., 1]
        self.other = squares[..., 2], squares[..., 3]
        self.heights = np.clip(np.floor(FOCUS / (ahead + BACK) + 0.5), 1, HALF).astype(np.intp)
        shades = np.array([ord(shade) for _, shade in SHADES], np.uint32)
        self.shades = shades[np.searchsorted([limit for limit, _ in SHADES], ahead)]
        distances = FOCUS / (np.arange(HALF) + 0.5) - BACK
        places = np.rint(distances[:, None, None] * np.array(ways)).astype(np.intp)
        # What is farther than the reach is not on the board, and stays so.
        places = places.clip(-reach, reach)
        self.floor = places[..., 0], places[..., 1]


def _crossed(across: float, down: float, reach: int) -> Iterator[tuple[int, int, int, int, float]]:
    """Yield the squares that a ray from the middle of a square enters, as (column, row, column, row, length).

    Both squares together end the ray there: the same one twice, or the two beside it where it passes a corner.
    ``length`` is in units of the direction's own length.
    """
    right, below = (1 if across > 0 else -1), (1 if down > 0 else -1)
    step_x = math.inf if abs(across) < _SAME else 1 / abs(across)
    step_y = math.inf if abs(down) < _SAME else 1 / abs(down)
    next_x, next_y = step_x / 2, step_y / 2
    x = y = 0
    while True:
        length = min(next_x, next_y)
        over_x, over_y = next_x - length < _SAME, next_y - length < _SAME
        if over_x and over_y:
            yield x + right, y, x, y + below, length
        if over_x:
            x, next_x = x + right, next_x + step_x
        if over_y:
            y, next_y = y + below, next_y + step_y
        if max(abs(x), abs(y)) > reach:
            return
        yield x, y, x, y, length
