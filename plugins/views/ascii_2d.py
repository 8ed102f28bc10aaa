"""The top-down map: a line for each row of the arena, with the agent as an arrow, and
the text of the state below.
"""

from __future__ import annotations

from typing import NamedTuple

from cheesebench import Scene

#: The character for the agent, by heading (``cheesebench.HEADINGS``).
ARROWS = "↑↗→↘↓↙←↖"


class _Picture(NamedTuple):
    """A scene drawn without the agent. ``scene`` is kept so that no other scene gets
    its id().
    """

    scene: Scene
    text: str
    stride: int


class Ascii2D:
    """View ``ascii_2d``: the whole arena from above, with north at the top.

    All rows have the same length (nothing is stripped), so columns stay aligned, and
    all observations of a scene have the same length.
    """

    name = "ascii_2d"
    summary = "the map from above, north at the top"
    reading = (
        f"The map shows the whole place from above. One of the arrows {ARROWS} is you, and points to "
        "where you face. # is a wall; other signs are floor, things, doors or landmarks."
    )
    characters = ARROWS + "\n"

    #: Maximum number of scenes whose pictures are cached. A paradigm usually has fewer
    #: than 20: one for each combination of doors, cues and text.
    CACHED_SCENES = 256

    def __init__(self) -> None:
        # The key is the scene's id, because hashing all tiles of a scene costs more
        # than drawing it.
        self._pictures: dict[int, _Picture] = {}

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        """Return the map with the arrow at ``(column, row)``, then the lines of
        ``scene.text``.
        """
        picture = self._pictures.get(id(scene)) or self._draw(scene)
        place = row * picture.stride + column
        return picture.text[:place] + ARROWS[heading] + picture.text[place + 1 :]

    def max_length(self, scene: Scene) -> int:
        return len((self._pictures.get(id(scene)) or self._draw(scene)).text)

    def _draw(self, scene: Scene) -> _Picture:
        rows = ["".join(tile.glyph for tile in row) for row in scene.tiles]
        picture = _Picture(
            scene, "\n".join([*rows, *scene.text]), len(scene.tiles[0]) + 1
        )
        if len(self._pictures) >= self.CACHED_SCENES:
            self._pictures.clear()
        self._pictures[id(scene)] = picture
        return picture
