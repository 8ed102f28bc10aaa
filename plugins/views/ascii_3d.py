"""The view in first person: walls that grow as they come nearer, the floor before the agent, landmarks above."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench import HEADINGS, Scene
from cheesebench.plugins.views.boards import Board, Boards, frame_of
from cheesebench.plugins.views.rays import crossed, direction_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]
    Floats = NDArray[np.float64]

#: Columns (an odd number: the middle one looks straight ahead) and rows of the picture; the horizon is in the middle.
COLUMNS, HALF = 49, 8
ROWS = 2 * HALF
MIDDLE = COLUMNS // 2
#: How far aside, in units of how far ahead, the last column looks: a little more than 45 degrees.
WIDE = 1.2
#: A wall that stands ``d`` squares ahead reaches ``FOCUS / (d + BACK)`` rows above and below the horizon: all of them
#: when it stands right in front (d = 0.5), and slowly fewer then, as if the eye stood a little behind the agent.
BACK = 2.3
FOCUS = HALF * (0.5 + BACK)
#: Walls by distance: up to so many squares ahead this character, beyond the last one ``FAR``.
SHADES = ((1.6, "█"), (3.6, "▓"), (7.6, "▒"))
FAR = "░"
WALL = "#"


@dataclass(frozen=True, slots=True)
class _Lens:
    """What one heading looks at, for boards of one size. Squares are offsets on a board with a margin."""

    #: For each column and step: two squares that together end the ray there, and how far ahead that is.
    one: Numbers
    other: Numbers
    ahead: Floats
    #: For each row below the horizon and column: the square of the floor there.
    floor: Numbers


@dataclass(frozen=True, slots=True)
class _Stage:
    """A board with a margin as wide as the board, so that no ray leaves it."""

    board: Board
    stride: int
    margin: int
    opaque: NDArray[np.bool_]
    glyphs: NDArray[np.uint32]
    #: For each square of the board whether it is drawn at its place however small it is there, and if it stands up.
    marked: NDArray[np.bool_]
    upright: NDArray[np.bool_]
    landmarks: NDArray[np.bool_]
