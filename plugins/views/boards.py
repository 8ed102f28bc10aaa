"""A scene as used by egocentric views: its glyphs as numbers, what blocks the sight, what is seen from a square."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from cheesebench import Scene
from cheesebench.plugins.views.sight import Sight

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]

#: Forward in columns and rows, by heading (``cheesebench.HEADINGS``); right is a quarter turn clockwise of it.
FORWARD_OF = ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))
#: Kinds of tiles that one cannot see through.
OPAQUE = frozenset({"wall", "door", "solid", "landmark"})


def frame_of(heading: int) -> tuple[int, int, int, int]:
    """Return forward (across, down) and right (across, down); for odd headings in units of half a diagonal."""
    across, down = FORWARD_OF[heading]
    return across, down, -down, across


class Board:
    """A scene, prepared for being looked at from its squares. Squares are numbered row by row."""

    def __init__(self, scene: Scene, sight: Sight) -> None:
        import numpy as np

        #: Keeping the scene keeps its identity from passing to another one.
        self.scene = scene
        self.sight = sight
        self.width, self.height = len(scene.tiles[0]), len(scene.tiles)
        text = "".join(tile.glyph for row in scene.tiles for tile in row)
        #: Code point of each square's glyph.
        self.glyphs = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        self.tail = "\n".join(("", *scene.text))
        self._across = np.tile(np.arange(self.width), self.height)
        self._down = np.repeat(np.arange(self.height), self.width)
        self._last: tuple[int, Numbers, Numbers, Numbers] | None = None

    def seen(self, column: int, row: int) -> tuple[Numbers, Numbers, Numbers]:
        """Return the squares that are seen from one, and how far they are from it, in columns and rows."""
        import numpy as np

        number = row * self.width + column
        # A subject that turns in place asks for the same squares eight times.
        if self._last is None or self._last[0] != number:
            squares = np.array(self.sight.squares(column, row), np.intp)
            self._last = number, squares, self._across[squares] - column, self._down[squares] - row
        return self._last[1:]


class Boards:
    """Boards by scene, and lines of sight by what blocks them: scenes that differ in colour only share them."""

    #: Scenes that are kept; a paradigm has one per combination of doors, cues and text: under 20.
    SCENES = 256
    #: Bits that the kept lines of sight may hold.
    BITS = 500_000_000

    def __init__(self) -> None:
        # Keyed by identity: hashing a scene means hashing every tile.
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
            while len(self._sights) > 1 and sum(sight.bits for sight in self._sights.values()) > self.BITS:
                self._sights.popitem(last=False)
        self._sights.move_to_end(key)
        return self._sights[key]
