"""What egocentric views need of a scene: its glyphs as numbers, its opaque squares, and
the squares that are visible from each square.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from math import gcd
from typing import TYPE_CHECKING

from cheesebench import Scene

Offset = tuple[int, int]


def crossed(across: int, down: int) -> Iterator[tuple[Offset, Offset]]:
    """Yield the squares on the straight line between the centres of two squares,
    without these two.

    Each entry is a pair of squares that block the line if both are opaque. It is the
    same square twice if the line passes through its inside, and two squares if the line
    passes through the corner between them.
    """
    wide, high = abs(across), abs(down)
    right, below = (1 if across > 0 else -1), (1 if down > 0 else -1)
    x = y = 0
    while True:
        # The sign says whether the line crosses the edge of a column or of a row next.
        side = (2 * x + 1) * high - (2 * y + 1) * wide
        if side == 0:
            yield ((x + 1) * right, y * below), (x * right, (y + 1) * below)
        x, y = x + (side <= 0), y + (side >= 0)
        if (x, y) == (wide, high):
            return
        yield (x * right, y * below), (x * right, y * below)


class Sight:
    """Mutual visibility of squares on a board of ``width`` times ``height`` squares.

    A square is visible from another if the straight line between their centres is free.
    The line may touch opaque squares, but may not pass through their inside, nor
    between two that touch at a corner. So sight goes where a step could go, and is
    mutual. An opaque square is also visible if a free square beside it, on the viewer's
    side, is visible: a subject that walks along a wall sees the wall and its corners.
    ``tall`` squares are visible from everywhere.
    """

    def __init__(self, width: int, height: int, opaque: int, tall: int) -> None:
        self.width, self.height = width, height
        self._opaque, self._tall = opaque, tall
        #: For each offset (row by row from the north-west), a number with a bit for
        #: each square: whether that square sees the square at this offset.
        self._seers: list[int] = [0] * ((2 * width - 1) * (2 * height - 1))
        self._look()

    @property
    def bits(self) -> int:
        return len(self._seers) * self.width * self.height

    def squares(self, column: int, row: int) -> list[int]:
        """Return the numbers of the squares that are visible from one square, including
        itself, in order.
        """
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
                # Sight is mutual, so the line is the same for the opposite offset.
                free[self._place(-across, -down)] = self._moved(clear, -across, -down)
        for down in range(-self.height + 1, self.height):
            for across in range(-self.width + 1, self.width):
                self._seers[self._place(across, down)] = self._seen(across, down, free)

    def _clear(self, across: int, down: int, free: list[int]) -> int:
        """Return the squares from which the line to the square at an offset is free."""
        steps = gcd(across, down)
        if steps > 1:
            # The line passes through the centre of a square. Check its two parts, up to
            # this square and beyond.
            across_one, down_one = across // steps, down // steps
            first = free[self._place(across_one, down_one)]
            rest = free[self._place(across - across_one, down - down_one)]
            there = self._moved(rest & ~self._opaque, across_one, down_one)
            return first & there & self._inside(across, down)
        blocked = 0
        for one, other in crossed(across, down):
            passed = self._moved(self._opaque, *one)
            blocked |= (
                passed if one == other else passed & self._moved(self._opaque, *other)
            )
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
        """Return the squares from which one of ``squares`` is at this offset. Only bits
        of ``_inside`` are correct.
        """
        shift = down * self.width + across
        return squares >> shift if shift >= 0 else squares << -shift

    def _inside(self, across: int, down: int) -> int:
        """Return the squares from which this offset leads to a square of the board."""
        columns, rows = self.width - abs(across), self.height - abs(down)
        line = ((1 << columns) - 1) << max(0, -across)
        every_row = ((1 << (rows * self.width)) - 1) // ((1 << self.width) - 1)
        return (line * every_row) << (max(0, -down) * self.width)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]

#: The direction forward, in columns and rows, by heading (``cheesebench.HEADINGS``).
FORWARD_OF = ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))
#: Kinds of tiles that block the view.
OPAQUE = frozenset({"wall", "door", "solid", "landmark"})


def frame_of(heading: int) -> tuple[int, int, int, int]:
    """Return the directions forward and right, each as (across, down). For odd headings
    their unit is half a diagonal.
    """
    across, down = FORWARD_OF[heading]
    return across, down, -down, across


class Board:
    """A scene, prepared for views from its squares. Squares are numbered row by row."""

    def __init__(self, scene: Scene, sight: Sight) -> None:
        import numpy as np

        #: The scene is kept so that no other scene gets its id().
        self.scene = scene
        self.sight = sight
        self.width, self.height = len(scene.tiles[0]), len(scene.tiles)
        text = "".join(tile.glyph for row in scene.tiles for tile in row)
        #: Code point of each square's glyph.
        self.glyphs = np.frombuffer(
            text.encode("utf-32-le", "surrogatepass"), np.uint32
        )
        self.tail = "\n".join(("", *scene.text))
        self._across = np.tile(np.arange(self.width), self.height)
        self._down = np.repeat(np.arange(self.height), self.width)
        self._last: tuple[int, Numbers, Numbers, Numbers] | None = None

    def seen(self, column: int, row: int) -> tuple[Numbers, Numbers, Numbers]:
        import numpy as np

        number = row * self.width + column
        # A subject that turns around needs the same squares up to eight times.
        if self._last is None or self._last[0] != number:
            squares = np.array(self.sight.squares(column, row), np.intp)
            self._last = (
                number,
                squares,
                self._across[squares] - column,
                self._down[squares] - row,
            )
        return self._last[1:]


class Boards:
    """Boards by scene, and lines of sight by opaque squares. Scenes that differ only in
    their looks share lines of sight.
    """

    #: Maximum number of cached scenes. A paradigm usually has fewer than 20: one for
    #: each combination of doors, cues and text.
    SCENES = 256
    #: Maximum number of bits in the cached lines of sight. The latest ones are always
    #: kept.
    BITS = 500_000_000

    def __init__(self) -> None:
        # The key is the scene's id, because hashing a scene means hashing every tile.
        self._boards: dict[int, Board] = {}
        self._sights: OrderedDict[tuple[int, int, int, int], Sight] = OrderedDict()

    def __getitem__(self, scene: Scene) -> Board:
        board = self._boards.get(id(scene))
        if board is None:
            if len(self._boards) >= self.SCENES:
                self._boards.clear()
            board = self._boards[id(scene)] = Board(scene, self._sight(scene))
        return board

    def _sight(self, scene: Scene) -> Sight:
        opaque = tall = 0
        for number, tile in enumerate(tile for row in scene.tiles for tile in row):
            opaque |= (tile.kind in OPAQUE) << number
            tall |= (tile.kind == "landmark") << number
        key = (len(scene.tiles[0]), len(scene.tiles), opaque, tall)
        if key not in self._sights:
            self._sights[key] = Sight(*key)
            while (
                len(self._sights) > 1
                and sum(sight.bits for sight in self._sights.values()) > self.BITS
            ):
                self._sights.popitem(last=False)
        self._sights.move_to_end(key)
        return self._sights[key]
