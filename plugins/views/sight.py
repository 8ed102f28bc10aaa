"""Line of sight: which squares of a board can be seen from which, for all squares at once.

Sets of squares are whole numbers with a bit for each square (row by row), so that one operation serves every square
at once. Headings are handled by the views.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

Offset = tuple[int, int]


def crossed(across: int, down: int) -> Iterator[tuple[Offset, Offset]]:
    """Yield what the straight line from the middle of a square to that of another passes, both ends left out.

    Each entry is a pair of squares that must both be opaque to block the line: twice the same one where the line
    passes its inside, the two beside it where it passes through a corner.
    """
    wide, high = abs(across), abs(down)
    right, below = (1 if across > 0 else -1), (1 if down > 0 else -1)
    x = y = 0
    while True:
        # Which comes first, the line's next crossing of a column's edge or of a row's edge?
        side = (2 * x + 1) * high - (2 * y + 1) * wide
        if side == 0:
            yield ((x + 1) * right, y * below), (x * right, (y + 1) * below)
        x, y = x + (side <= 0), y + (side >= 0)
        if (x, y) == (wide, high):
            return
        yield (x * right, y * below), (x * right, y * below)


class Sight:
    """Mutual visibility of squares on a board of ``width`` times ``height`` squares.

    A square is seen if the straight line between the two middles is free: it may touch opaque squares, but not pass
    their inside, nor between two that touch at a corner (so sight goes where a step could go, and is mutual).
    An opaque square is also seen beside free ones that are seen: next to it, on the side of whoever looks. So walls
    that one walks along are seen, with their corners. ``tall`` squares are seen from everywhere, over everything.
    """

    def __init__(self, width: int, height: int, opaque: int, tall: int) -> None:
        self.width, self.height = width, height
        self._opaque, self._tall = opaque, tall
        #: For each offset (row by row from the north-west): the squares from which the square there is seen.
        self._seers: list[int] = [0] * ((2 * width - 1) * (2 * height - 1))
        self._look()

    @property
    def bits(self) -> int:
        """How much this keeps in memory."""
        return len(self._seers) * self.width * self.height

    def squares(self, column: int, row: int) -> list[int]:
        """Return the squares (numbers) that are seen from one, in order; its own is among them."""
        width, bit = self.width, 1 << (row * self.width + column)
        visible = []
        for y in range(self.height):
            first = self._place(-column, y - row)
            seers = self._seers[first : first + width]
            visible += [y * width + x for x, mask in enumerate(seers) if mask & bit]
        return visible

    def _place(self, across: int, down: int) -> int:
        return (down + self.height - 1) * (2 * self.width - 1) + across + self.width - 1

    def _look(self) -> None:
        everywhere = (1 << (self.width * self.height)) - 1
        free = [0] * len(self._seers)
        free[self._place(0, 0)] = everywhere
        for down in range(self.height):
            for across in range(-self.width + 1 if down else 1, self.width):
                clear = self._clear(across, down, free)
                free[self._place(across, down)] = clear
                # The line back is the same line.
                free[self._place(-across, -down)] = self._moved(clear, -across, -down)
        for down in range(-self.height + 1, self.height):
            for across in range(-self.width + 1, self.width):
                self._seers[self._place(across, down)] = self._seen(across, down, free)

    def _clear(self, across: int, down: int, free: list[int]) -> int:
        """Return from which squares the line to the square at an offset is free."""
        steps = gcd(across, down)
        if steps > 1:
            # The line goes through the middle of a square: first up to there, then the rest.
            across_one, down_one = across // steps, down // steps
            first = free[self._place(across_one, down_one)]
            rest = free[self._place(across - across_one, down - down_one)]
            there = self._moved(rest & ~self._opaque, across_one, down_one)
            return first & there & self._inside(across, down)
        blocked = 0
        for one, other in crossed(across, down):
            passed = self._moved(self._opaque, *one)
            blocked |= passed if one == other else passed & self._moved(self._opaque, *other)
        return self._inside(across, down) & ~blocked

    def _seen(self, across: int, down: int, free: list[int]) -> int:
        inside = self._inside(across, down)
        found = free[self._place(across, down)]
        beside = 0
        for x in {across, across - _sign(across)}:
            for y in {down, down - _sign(down)}:
                if (x, y) != (across, down):
                    beside |= free[self._place(x, y)] & ~self._moved(self._opaque, x, y)
        found |= beside & self._moved(self._opaque, across, down)
        return (found | self._moved(self._tall, across, down)) & inside

    def _moved(self, squares: int, across: int, down: int) -> int:
        """Return the squares from which one of ``squares`` is at this offset (rightly only ``_inside``)."""
        shift = down * self.width + across
        return squares >> shift if shift >= 0 else squares << -shift

    def _inside(self, across: int, down: int) -> int:
        """Return the squares from which the offset leads to a square of the board."""
        columns, rows = self.width - abs(across), self.height - abs(down)
        line = ((1 << columns) - 1) << max(0, -across)
        every_row = ((1 << (rows * self.width)) - 1) // ((1 << self.width) - 1)
        return (line * every_row) << (max(0, -down) * self.width)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
