"""The view in first person, with walls that are higher the nearer they are, the floor
in front of the agent, and landmarks above.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench import HEADINGS, Scene, Tile
from cheesebench.plugins.views import boards

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]

#: ``COLUMNS``: number of columns. It is odd, so that the middle one looks straight
#: ahead. ``HALF``: number of rows above the horizon, and also below it.
COLUMNS, HALF = 49, 8
MIDDLE = COLUMNS // 2
#: Tangent of the angle of the outermost columns: slightly more than 45 degrees from
#: straight ahead.
WIDE = 1.2
#: A wall ``d`` squares ahead reaches ``FOCUS / (d + BACK)`` rows above and below the
#: horizon. Right in front of the agent (d = 0.5) it fills all rows. With distance the
#: number falls slowly, as if the eye were a little behind the agent.
BACK = 2.3
FOCUS = HALF * (0.5 + BACK)
#: Wall characters, each with the distance (in squares) up to which it is used.
SHADES = ((1.0, "█"), (3.0, "▓"), (7.0, "▒"), (math.inf, "░"))
#: Crossings of edges that are nearer to each other than this, in units of the ray's
#: direction, count as one: the ray passes through a corner.
_SAME = 1e-9

Vector = tuple[float, float]


def directions(heading: int) -> tuple[Vector, Vector]:
    """Return the directions forward and right, each as (across, down) of length 1."""
    across, down = boards.FORWARD_OF[heading]
    length = math.hypot(across, down)
    return (across / length, down / length), (-down / length, across / length)


def height(ahead: float) -> int:
    """Return the number of rows that an object at this distance reaches above (and
    below) the horizon.
    """
    return max(1, min(HALF, math.floor(FOCUS / (ahead + BACK) + 0.5)))


def floor_row(ahead: float) -> int:
    """Return the row of the floor at this distance. Rows count down from 0 at the
    horizon.
    """
    return min(HALF - 1, int(FOCUS / (ahead + BACK)))


def column_of(ahead: float, aside: float) -> int | None:
    """Return the column of a position, or None if it is outside the picture."""
    if ahead <= 0 or abs(aside) > WIDE * ahead:
        return None
    return MIDDLE + math.floor(aside / (ahead * WIDE) * MIDDLE + 0.5)


@dataclass(frozen=True, slots=True)
class Lens:
    """The squares seen in each column with one heading, as offsets between the numbers
    of a board's squares.
    """

    one: Numbers
    """A square for each column and each step along the column's ray."""
    other: Numbers
    """A second square (or the same one) for each of these steps. The ray ends if both
    are opaque.
    """
    heights: Numbers
    """Number of rows that a wall on the square reaches above the horizon."""
    shades: NDArray[np.uint32]
    """Character of a wall on the square, as a code point."""
    floor: Numbers
    """Square of the floor for each row below the horizon and each column."""


class Optics:
    """The lenses for all headings. Rays end ``reach`` columns or rows away."""

    def __init__(self, reach: int) -> None:
        self._reach = reach
        #: Rays for the headings N (0) and NE (1). For the other headings, these are
        #: rotated by quarter turns.
        self._rays: dict[int, _Rays] = {}

    def lens(self, heading: int, stride: int) -> Lens:
        """Return the lens for a heading, and for boards with ``stride`` columns."""
        if heading % 2 not in self._rays:
            self._rays[heading % 2] = _Rays(heading % 2, self._reach)
        rays = self._rays[heading % 2]

        def flat(across: Numbers, down: Numbers) -> Numbers:
            for _ in range(heading // 2):
                across, down = -down, across
            return down * stride + across

        return Lens(
            flat(*rays.one),
            flat(*rays.other),
            rays.heights,
            rays.shades,
            flat(*rays.floor),
        )


class _Rays:
    """The data of a ``Lens``, with each square as an offset in columns and one in
    rows.
    """

    def __init__(self, heading: int, reach: int) -> None:
        import numpy as np

        forward, right = directions(heading)
        slopes = [(column - MIDDLE) / MIDDLE * WIDE for column in range(COLUMNS)]
        ways = [
            (forward[0] + slope * right[0], forward[1] + slope * right[1])
            for slope in slopes
        ]
        rays = [list(_crossed(*way, reach)) for way in ways]
        steps = max(map(len, rays))
        # Shorter rays repeat their last step.
        padded = np.array([ray + ray[-1:] * (steps - len(ray)) for ray in rays])
        squares, ahead = padded[..., :4].astype(np.intp), padded[..., 4]
        self.one = squares[..., 0], squares[..., 1]
        self.other = squares[..., 2], squares[..., 3]
        self.heights = np.clip(np.floor(FOCUS / (ahead + BACK) + 0.5), 1, HALF).astype(
            np.intp
        )
        shades = np.array([ord(shade) for _, shade in SHADES], np.uint32)
        self.shades = shades[np.searchsorted([limit for limit, _ in SHADES], ahead)]
        distances = FOCUS / (np.arange(HALF) + 0.5) - BACK
        places = np.rint(distances[:, None, None] * np.array(ways)).astype(np.intp)
        # Positions beyond the reach are off the board, even after clipping.
        places = places.clip(-reach, reach)
        self.floor = places[..., 0], places[..., 1]


def _crossed(
    across: float, down: float, reach: int
) -> Iterator[tuple[int, int, int, int, float]]:
    """Yield the squares that a ray from the centre of a square enters, as (column, row,
    column, row, length).

    The ray ends if both squares are opaque. They are the same square, or the two beside
    a corner that the ray passes. ``length`` is the length up to there, in units of the
    given direction.
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


WALL = "#"
#: Character between two neighbouring objects with the same glyph.
EDGE = "│"
#: Number of rows down to the horizon, including the strip of landmarks.
_HORIZON = 1 + HALF
ROWS = 1 + 2 * HALF


class Ascii3D:
    """View ``ascii_3d``: the compass heading, a strip with landmarks, the scene ahead,
    then the text of the state.

    Walls are shaded by distance. Objects with a glyph of their own (solids, closed
    doors, landmarks) are drawn with this glyph. The lower half shows the glyphs of the
    floor. Unusual floor, solids and doors have at least one character, even if
    perspective would leave them none, unless nearer tiles cover it. Landmarks are tall:
    the strip shows them even over walls.
    """

    name = "ascii_3d"
    summary = "first person, 49 x 17 characters"
    reading = (
        "The first line names the direction you face (N, NE, E, ...), the same way throughout a trial. "
        "Below it is what you see in that direction, in "
        "perspective: the middle column is straight ahead of you, right is to your right, and you see a little more "
        "than 45 degrees to either side. Walls are the higher the nearer they are: "
        + ", ".join(
            f"{shade} less than {limit + 0.5:g} steps away"
            for limit, shade in SHADES[:-1]
        )
        + f", {SHADES[-1][1]} farther. Other characters between the walls are things that stand there; the lower "
        "half shows the floor and what lies on it. The line above the picture shows the landmarks in that "
        "direction, also those behind walls."
    )
    characters = (
        "".join(shade for _, shade in SHADES)
        + EDGE
        + " \n"
        + "".join(sorted(set("facing NESW")))
    )

    def __init__(self) -> None:
        self._boards = boards.Boards()
        self._stages: dict[int, _Stage] = {}
        self._optics: dict[int, Optics] = {}
        self._lenses: dict[tuple[int, int, int], Lens] = {}

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        stage = self._stages.get(id(scene)) or self._stage(scene)
        picture = stage.draw(
            self._lens(heading, stage.stride, stage.reach), column, row, heading
        )
        return f"facing {HEADINGS[heading]}\n{picture}{stage.board.tail}"

    def max_length(self, scene: Scene) -> int:
        return (
            len("facing NW\n")
            + ROWS * (COLUMNS + 1)
            + sum(len(line) + 1 for line in scene.text)
        )

    def _stage(self, scene: Scene) -> _Stage:
        if len(self._stages) >= boards.Boards.SCENES:
            self._stages.clear()
        stage = self._stages[id(scene)] = _Stage(self._boards[scene])
        return stage

    def _lens(self, heading: int, stride: int, reach: int) -> Lens:
        key = (heading, stride, reach)
        if key not in self._lenses:
            if len(self._lenses) >= boards.Boards.SCENES:
                self._lenses.clear()
                self._optics.clear()
            optics = self._optics[reach] = self._optics.get(reach) or Optics(reach)
            self._lenses[key] = optics.lens(heading, stride)
        return self._lenses[key]


class _Stage:
    """A board with so wide a margin that no ray leaves it, and the squares that are
    always drawn.
    """

    def __init__(self, board: boards.Board) -> None:
        import numpy as np

        self.board = board
        tiles = [tile for row in board.scene.tiles for tile in row]
        self.reach = max(board.width, board.height)
        self.margin = self.reach + 1
        self.stride = board.width + 2 * self.margin
        shape = (board.height, board.width)
        opaque = np.array([tile.kind in boards.OPAQUE for tile in tiles]).reshape(shape)
        self._opaque = np.pad(opaque, self.margin).ravel()
        self._glyphs = np.pad(
            board.glyphs.reshape(shape), self.margin, constant_values=ord(" ")
        ).ravel()
        floors = Counter(tile.glyph for tile in tiles if tile.kind == "floor")
        common = floors.most_common(1)[0][0] if floors else ""
        #: Whether each square is drawn even if perspective leaves it no room.
        self._marked = np.array([_is_mark(tile, common) for tile in tiles])
        self._upright = [tile.kind in boards.OPAQUE for tile in tiles]
        self._tall = [tile.kind == "landmark" for tile in tiles]
        self._columns = np.arange(COLUMNS)
        self._levels = np.abs(np.arange(2 * HALF) - HALF + 0.5)[:, None]
        self._empty = np.full((ROWS, COLUMNS + 1), ord(" "), np.uint32)
        self._empty[:, COLUMNS] = ord("\n")

    def draw(self, lens: Lens, column: int, row: int, heading: int) -> str:
        import numpy as np

        here = (row + self.margin) * self.stride + column + self.margin
        ends = self._opaque[lens.one + here]
        ends &= self._opaque[lens.other + here]
        step = ends.argmax(1)
        at = self._columns, step
        found = ends[at]
        hit = lens.one[at] + here
        things = self._glyphs[hit]
        walls = things == ord(WALL)
        things = np.where(walls, lens.shades[at], things)
        # Draw an edge between two equal objects side by side, unless the right one is
        # only one column wide.
        alike = (
            (hit[1:-1] != hit[:-2])
            & (hit[1:-1] == hit[2:])
            & (things[1:-1] == things[:-2])
        )
        things[1:-1][alike & ~walls[1:-1] & found[1:-1]] = ord(EDGE)
        picture = self._empty.copy()
        picture[_HORIZON:, :COLUMNS] = self._glyphs[lens.floor + here]
        np.copyto(
            picture[1:, :COLUMNS], things, where=self._levels < lens.heights[at] * found
        )
        self._mark(picture, hit[found].tolist(), column, row, heading)
        return picture.tobytes().decode("utf-32-le", "surrogatepass")[:-1]

    def _mark(
        self,
        picture: NDArray[np.uint32],
        hit: list[int],
        column: int,
        row: int,
        heading: int,
    ) -> None:
        """Draw landmarks in the strip, and visible marked squares where they are. The
        nearest one is drawn last.
        """
        squares, across, down = self.board.seen(column, row)
        marks = self._marked[squares]
        forward, right = directions(heading)
        drawn: list[tuple[float, int, int, int, int]] = []
        known = set(hit)
        for square, x, y in zip(
            *(part[marks].tolist() for part in (squares, across, down)), strict=True
        ):
            glyph = int(self.board.glyphs[square])
            tall, upright = self._tall[square], self._upright[square]
            if upright and not tall:
                if (
                    y + row + self.margin
                ) * self.stride + x + column + self.margin in known:
                    continue
                x, y = self._face(x + column, y + row, x, y)
            ahead = x * forward[0] + y * forward[1]
            where = column_of(ahead, x * right[0] + y * right[1])
            if where is None:
                continue
            if tall:
                first, last = 0, 1
            elif upright:
                first, last = _HORIZON - height(ahead), _HORIZON + height(ahead)
            else:
                first = _HORIZON + floor_row(ahead)
                last = first + 1
            drawn.append((ahead, where, first, last, glyph))
        for _, where, first, last, glyph in sorted(drawn, reverse=True):
            picture[first:last, where] = glyph

    def _face(
        self, column: int, row: int, across: float, down: float
    ) -> tuple[float, float]:
        """Return the centre of the side of an opaque square that faces the viewer, or
        the corner if two sides do or none does.
        """
        side_x, side_y = (across > 0) - (across < 0), (down > 0) - (down < 0)
        place = (row + self.margin) * self.stride + column + self.margin
        open_x = side_x != 0 and not self._opaque[place - side_x]
        open_y = side_y != 0 and not self._opaque[place - side_y * self.stride]
        if open_x == open_y:
            return across - side_x / 2, down - side_y / 2
        return (across - side_x / 2, down) if open_x else (across, down - side_y / 2)


def _is_mark(tile: Tile, common: str) -> bool:
    """Return whether a tile is drawn even if perspective leaves it no room. ``common``
    is the glyph of most of the floor.
    """
    if tile.kind in ("floor", "door", "solid"):
        return tile.glyph != (common if tile.kind == "floor" else WALL)
    return tile.kind == "landmark"
