"""The top-down map as a picture, with sharp squares, glyphs and a marker that shows the
heading. Equal scenes and poses give equal bytes.
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
#: to these rows (``,`` is not ``'``).
_FIRST, _LAST = 3, 9
#: Height of the tallest glyphs, in rows. In a square of ``side`` pixels, glyphs can be
#: magnified by ``side // _TALLEST``.
_TALLEST = 8
#: Side of the pattern for a character that the font lacks, in pixels.
_PATTERN = 7


@lru_cache(maxsize=1024)
def drawn_glyph(glyph: str, side: int) -> Drawn:
    """Return a character as a bitmap (mode "1") for squares of ``side`` pixels.

    The font is Pillow's own bitmap font, which has Latin letters and signs. Any other
    character becomes a framed pattern of its code point's bits. The pattern cannot be
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


#: Side of the picture, in pixels. Vision models look at tiles of 224 to 448 pixels, and
#: a picture of half the size is still legible.
SIDE = 448
#: Minimum side of a square, in pixels. The picture of a large arena is therefore larger
#: than ``SIDE``.
LEAST = 16
WALL = "#"

# Numbers of the colours in the palette. Glyphs and shapes carry all information, too,
# so the picture can be read without colour.
_MARGIN, _VOID, _WALL, _FLOOR, _LINE, _DOOR, _LANDMARK, _INK, _LIGHT, _AGENT = range(10)
_BASIC = (
    (255, 255, 255), (255, 255, 255), (66, 72, 84), (250, 248, 242), (222, 218, 208),
    (150, 92, 36), (255, 206, 0), (16, 16, 16), (255, 255, 255), (214, 0, 32),
)  # fmt: skip
#: Colours of floor and objects with a glyph of their own. The glyph chooses the colour,
#: which is pale if the glyph covers much of the floor.
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

#: If a glyph covers at least this share of the floor, its squares are pale, because
#: they are ground rather than objects.
_GROUND = 0.2

#: Corners of the agent's marker, a drop: the angle from the heading in degrees, and the
#: distance from the centre in units of the marker's size. A drop has only one point, so
#: even one of few pixels cannot be misread, as an arrowhead can.
_MARKER = ((0, 1.3), *((angle, 0.68) for angle in range(50, 311, 20)))
#: ``_MARKER_SIZE``: the marker's size, in squares. ``_LEAST_MARKER``: its minimum size,
#: in pixels. The marker may be larger than a small square.
_MARKER_SIZE, _LEAST_MARKER = 0.4, 11.0


class _Plate(NamedTuple):
    """A scene drawn without the agent. ``scene`` is kept so that no other scene gets
    its id().
    """

    scene: Scene
    image: Drawn
    side: int
    left: int
    top: int
    text: str


class Topdown2D:
    """View ``topdown_2d``: the whole arena from above, with north at the top, as a PNG,
    with the text of the state.

    Walls are dark. Floor is light, with lines between squares. Solids and floor with a
    glyph have a colour that depends on the glyph. Floor is pale if its glyph covers a
    fifth of the floor or more. Closed doors are brown, and landmarks are yellow. Glyphs
    are drawn on the squares that have one, so nothing depends on colour alone. The
    agent is a red drop.
    """

    name = "topdown_2d"
    summary = "the map from above as a PNG, north at the top"
    reading = (
        "The picture shows the whole place from above. The red drop is you, and its point shows "
        "where you face. Dark squares are walls, light squares are floor; squares with a sign on them are special "
        "places, things, doors (brown) or landmarks (yellow)."
    )
    characters = "\n"

    #: Maximum number of scenes whose pictures are cached. Each takes about 200 kB.
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
    """Return half of a space in pixels as an even number, so that edges stay sharp if
    the picture is halved.
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
