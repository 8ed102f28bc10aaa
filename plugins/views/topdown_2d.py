"""The top-down map as a picture with crisp squares, glyphs and a marker of the heading.
Equal scenes give equal bytes.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from cheesebench import Picture, Scene, Tile
from cheesebench.plugins.views.boards import FORWARD_OF

if TYPE_CHECKING:
    from PIL.Image import Image as Drawn
    from PIL.ImageDraw import ImageDraw as Pen

#: First and last row of small letters in the font. A glyph keeps its position relative
#: to them (``,`` is not ``'``).
_FIRST, _LAST = 3, 9
#: Height of the tallest glyphs in rows. A square of ``side`` pixels can hold them
#: magnified by ``side // _TALLEST``.
_TALLEST = 8
#: Side in pixels of the pattern for a character that the font lacks.
_PATTERN = 7


@lru_cache(maxsize=1024)
def drawn_glyph(glyph: str, side: int) -> Drawn:
    """Return a character as a bitmap (mode "1") for squares of ``side`` pixels.

    The font is Pillow's own bitmap font, which has Latin letters and signs. Any other
    character becomes a framed pattern of its code point's bits: The pattern cannot be
    read, but is unique.
    """
    bitmap = _letter(glyph) or _pattern(ord(glyph))
    factor = max(1, side // _TALLEST)
    return bitmap.resize(
        (bitmap.width * factor, bitmap.height * factor), Image.Resampling.NEAREST
    )


def _letter(glyph: str) -> Drawn | None:
    """Return the font's bitmap, or None for a character that the font lacks."""
    if not " " < glyph <= "ÿ":
        return None
    font = ImageFont.load_default_imagefont()
    image = Image.new("1", (16, 16))
    ImageDraw.Draw(image).text((0, 0), glyph, font=font, fill=1)
    box = image.getbbox()
    if box is None:
        return None
    left, top, right, bottom = box
    return image.crop((left, min(top, _FIRST), right, max(bottom, _LAST)))


def _pattern(code: int) -> Drawn:
    image = Image.new("1", (_PATTERN, _PATTERN), 1)
    inner = _PATTERN - 2
    for bit in range(inner * inner):
        image.putpixel((1 + bit % inner, 1 + bit // inner), code >> bit & 1)
    return image


#: Side of the picture in pixels. Vision models look at tiles of 224 to 448 pixels, and
#: half of this is still legible.
SIDE = 448
#: Minimum side of a square in pixels; sides are even. Because of this minimum, a large
#: arena makes a larger picture.
LEAST = 16
WALL = "#"

# Numbers of the colours. Glyphs and shapes also carry all information, so the picture
# can be read without colour.
_MARGIN, _VOID, _WALL, _FLOOR, _LINE, _DOOR, _LANDMARK, _INK, _LIGHT, _AGENT = range(10)
_BASIC = (
    (255, 255, 255), (255, 255, 255), (66, 72, 84), (250, 248, 242), (222, 218, 208),
    (150, 92, 36), (255, 206, 0), (16, 16, 16), (255, 255, 255), (214, 0, 32),
)  # fmt: skip
#: Colours of floor and objects with a glyph of their own, chosen by the glyph; pale if
#: the glyph covers much of the floor.
_HUES = (
    (0, 140, 150), (0, 158, 115), (122, 140, 30), (196, 98, 16), (60, 130, 60), (140, 86, 200), (150, 84, 60),
    (0, 120, 90), (90, 110, 220), (0, 114, 178), (204, 90, 160), (120, 100, 90), (80, 80, 160),
)  # fmt: skip
_PALE = len(_BASIC)
_FULL = _PALE + len(_HUES)
_COLOURS = (
    *_BASIC,
    *(tuple(255 - (255 - part) * 3 // 10 for part in hue) for hue in _HUES),
    *_HUES,
)

#: Share of the floor from which a glyph's squares are pale, because they are ground
#: rather than objects.
_GROUND = 0.2

#: The marker of the agent, a drop: (angle from the heading in degrees, distance from
#: its centre), in units of its size. It has only one point, so it cannot be misread
#: even from a few pixels, as an arrowhead can.
_MARKER = ((0, 1.3), *((angle, 0.68) for angle in range(50, 311, 20)))
#: Size of the marker in squares, and its minimum in pixels: it may be larger than a
#: small square.
_MARKER_SIZE, _LEAST_MARKER = 0.4, 11.0


class _Plate(NamedTuple):
    """A scene drawn without the agent. Keeping ``scene`` prevents another one from
    getting its id().
    """

    scene: Scene
    image: Drawn
    side: int
    left: int
    top: int
    text: str


class Topdown2D:
    """View ``topdown_2d``: the whole arena from above, north at the top, as a PNG, with
    the text of the state.

    Walls are dark, floor is light with a line between squares. Solids and floor with a
    glyph have a colour by the glyph, which is pale if it covers a fifth of the floor or
    more; closed doors are brown, landmarks yellow. The glyph stands on each, so nothing
    depends on colour alone. The agent is a red drop.
    """

    name = "topdown_2d"
    reading = (
        "The picture shows the whole place from above. The red drop is you, and its point shows "
        "where you face. Dark squares are walls, light squares are floor; squares with a sign on them are special "
        "places, things, doors (brown) or landmarks (yellow)."
    )
    characters = "\n"

    #: Number of scenes whose picture is cached, about 200 kB each.
    CACHED_SCENES = 48

    def __init__(self) -> None:
        self._plates: dict[int, _Plate] = {}

    def picture_size(self, scene: Scene) -> tuple[int, int]:
        side = max(SIDE, LEAST * max(len(scene.tiles), len(scene.tiles[0])))
        return side, side

    def render(self, scene: Scene, column: int, row: int, heading: int) -> Picture:
        plate = self._plates.get(id(scene)) or self._plate(scene)
        image = plate.image.copy()
        middle = (
            plate.left + (column + 0.5) * plate.side,
            plate.top + (row + 0.5) * plate.side,
        )
        size = max(_LEAST_MARKER, plate.side * _MARKER_SIZE)
        draw = ImageDraw.Draw(image)
        draw.polygon(_marker(middle, heading, size + 2), fill=_LIGHT)
        draw.polygon(_marker(middle, heading, size), fill=_AGENT)
        png = io.BytesIO()
        image.save(png, "PNG", compress_level=1)
        return Picture(png.getvalue(), plate.text)

    def max_length(self, scene: Scene) -> int:
        return len("\n".join(scene.text))

    def _plate(self, scene: Scene) -> _Plate:
        width, height = len(scene.tiles[0]), len(scene.tiles)
        size = self.picture_size(scene)
        side = size[0] // max(width, height) // 2 * 2
        # Even offsets keep every edge sharp in a picture of half the size.
        left, top = (
            (size[0] - width * side) // 4 * 2,
            (size[1] - height * side) // 4 * 2,
        )
        image = Image.new("P", size, _MARGIN)
        image.putpalette([part for colour in _COLOURS for part in colour])
        draw = ImageDraw.Draw(image)
        floors = Counter(
            tile.glyph
            for tiles in scene.tiles
            for tile in tiles
            if tile.kind == "floor"
        )
        for y, tiles in enumerate(scene.tiles):
            for x, tile in enumerate(tiles):
                rare = floors[tile.glyph] < _GROUND * floors.total()
                _draw_tile(draw, tile, rare, left + x * side, top + y * side, side)
        if len(self._plates) >= self.CACHED_SCENES:
            self._plates.clear()
        plate = self._plates[id(scene)] = _Plate(
            scene, image, side, left, top, "\n".join(scene.text)
        )
        return plate


def _draw_tile(draw: Pen, tile: Tile, rare: bool, x: int, y: int, side: int) -> None:
    ground, ink = _look(tile, rare)
    apart = tile.kind in ("floor", "solid", "door") and ground != _WALL
    draw.rectangle(
        (x, y, x + side - 1, y + side - 1),
        fill=ground,
        outline=_LINE if apart else None,
    )
    if ink is not None:
        glyph = drawn_glyph(tile.glyph, side)
        draw.bitmap(
            (x + _even(side - glyph.width), y + _even(side - glyph.height)),
            glyph,
            fill=ink,
        )


def _even(space: int) -> int:
    """Return half of the space as an even number, so that edges stay sharp at half the
    size.
    """
    return space // 4 * 2


def _look(tile: Tile, rare: bool) -> tuple[int, int | None]:
    """Return the colours of a tile and of its glyph (None: no glyph)."""
    hue = ord(tile.glyph) % len(_HUES)
    match tile.kind:
        case "void":
            return _VOID, None if tile.glyph == " " else _INK
        case "floor" if tile.glyph == ".":
            return _FLOOR, None
        case "floor" if not rare:
            return _PALE + hue, _INK
        case "landmark":
            return _LANDMARK, _INK
        case "door":
            return _DOOR, _LIGHT
        case "wall" | "solid" if tile.glyph == WALL:
            return _WALL, None
    return _FULL + hue, _LIGHT


def _marker(
    middle: tuple[float, float], heading: int, size: float
) -> Sequence[tuple[int, int]]:
    across, down = FORWARD_OF[heading]
    forward = math.atan2(down, across)
    corners = []
    for degrees, distance in _MARKER:
        angle = forward + math.radians(degrees)
        corners.append(
            (
                math.floor(middle[0] + size * distance * math.cos(angle) + 0.5),
                math.floor(middle[1] + size * distance * math.sin(angle) + 0.5),
            )
        )
    return corners
