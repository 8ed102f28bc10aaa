"""The egocentric map: the visible squares in front of the agent, rotated so that the
agent looks up.
"""

from __future__ import annotations

from cheesebench import HEADINGS, Scene
from cheesebench.plugins.views import boards

#: The character for the agent, which always looks up.
AGENT = "↑"
#: ``FOG``: the character for a hidden square in the field of view. ``OTHER_FOG``
#: replaces it if the arena has a glyph ``?``.
FOG, OTHER_FOG = "?", "░"
#: Character between squares if the map is rotated by 45 degrees.
GAP = " "


class Ascii2DFpv:
    """View ``ascii_2d_fpv``: the compass heading, an empty line, the visible squares,
    then the text of the state.

    The field of view is the half-plane in front of the agent, with the agent's own row,
    as far as the line of sight reaches. The agent is in the last row. One square is one
    character. With the heading N, E, S or W, neighbouring squares touch. With NE, SE,
    SW or NW, the map is rotated by 45 degrees: squares are arranged like the black
    squares of a chessboard, the square straight ahead is two rows up, and the squares
    diagonally ahead are one row up and one column aside.

    ``?`` is a square hidden by something nearer (``░`` if the arena has a glyph ``?``).
    A line ends with its last visible square, and the first line is the farthest one
    with a visible square. Landmarks are tall, and visible over walls.
    """

    name = "ascii_2d_fpv"
    summary = "the squares in front of the agent, rotated so that it looks up"
    reading = (
        "The first line names the direction you face (N, NE, E, ...), the same way throughout a trial. "
        "The map below it shows only what you can see from where "
        f"you stand, turned so that you ({AGENT}, in the last row) always look up: forward is up, your left is left. "
        f"{FOG} is a place that is hidden from you ({OTHER_FOG} where {FOG} is a thing). "
        "When you face a diagonal direction (NE, SE, SW, NW) the map is "
        "turned by 45 degrees: places are then one row up and one column to the side, and the place straight ahead of "
        "you is two rows up. You do not see what is behind you."
    )
    characters = (
        AGENT + FOG + OTHER_FOG + GAP + "\n" + "".join(sorted(set("facing NESW")))
    )

    def __init__(self) -> None:
        self._boards = boards.Boards()

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        import numpy as np

        board = self._boards[scene]
        squares, across, down = board.seen(column, row)
        forward_across, forward_down, right_across, right_down = boards.frame_of(
            heading
        )
        ahead = across * forward_across + down * forward_down
        before = ahead >= 0
        ahead, squares = ahead[before], squares[before]
        aside = (across * right_across + down * right_down)[before]
        first, left = int(ahead.max()), int(aside.min())
        columns = aside - left
        lines = first - ahead
        picture = np.full(
            (first + 1, int(columns.max()) + 1), self._fog(board), np.uint32
        )
        if heading & 1:
            askew = (first + left) & 1
            picture[::2, 1 - askew :: 2] = ord(GAP)
            picture[1::2, askew::2] = ord(GAP)
        picture[lines, columns] = board.glyphs[squares]
        picture[first, -left] = ord(AGENT)
        ends = np.zeros(first + 1, np.intp)
        np.maximum.at(ends, lines, columns + 1)
        text = picture.tobytes().decode("utf-32-le", "surrogatepass")
        width = picture.shape[1]
        rows = [
            text[start : start + end]
            for start, end in zip(
                range(0, len(text), width), ends.tolist(), strict=True
            )
        ]
        return "\n".join((f"facing {HEADINGS[heading]}\n", *rows)) + board.tail

    @staticmethod
    def _fog(board: boards.Board) -> int:
        return ord(OTHER_FOG if (board.glyphs == ord(FOG)).any() else FOG)

    def max_length(self, scene: Scene) -> int:
        """Return an upper limit for the length of an observation of the scene. A board
        is largest when it is seen along its diagonal.
        """
        side = len(scene.tiles) + len(scene.tiles[0])
        return (
            len("facing NW\n\n")
            + side * (side + 1)
            + sum(len(line) + 1 for line in scene.text)
        )
