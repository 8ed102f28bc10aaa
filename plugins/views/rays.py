"""Where rays go: which squares a ray from the middle of a square crosses, and how far ahead they begin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from cheesebench.plugins.views.boards import FORWARD_OF

#: Crossings nearer to each other than this are one: the ray passes through a corner.
_SAME = 1e-9


@lru_cache(maxsize=16)
def direction_of(heading: int) -> tuple[float, float, float, float]:
    """Return forward and right as vectors of length 1 (across, down)."""
    across, down = FORWARD_OF[heading]
    length = math.hypot(across, down)
    return across / length, down / length, -down / length, across / length


def crossed(across: float, down: float, reach: int) -> Iterator[tuple[int, int, int, int, float]]:
    """Yield the squares that a ray in this direction enters, up to ``reach`` columns or rows away.

    Each entry is (column, row, column, row, length): two offsets of squares that together block the ray there (the
    same one twice; the two beside it where the ray passes through a corner), and how many times the direction's own
    length it took to get there.
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
