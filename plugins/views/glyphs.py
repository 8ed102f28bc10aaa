"""Glyphs as small bitmaps, magnified by whole numbers: crisp, and the same on every machine."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

#: Rows of the font between which small letters stand: a glyph keeps its place relative to them (``,`` is no ``'``).
_FIRST, _LAST = 3, 9
#: Rows of the tallest glyphs: a square has place for them magnified by ``side // _TALLEST``.
_TALLEST = 8
#: Pixels of the side of the pattern that stands for a character which the font does not have.
_PATTERN = 7


@lru_cache(maxsize=1024)
def drawn_glyph(glyph: str, side: int) -> Image:
    """Return a character as a bitmap (mode "1") for squares of ``side`` pixels.

    The font is Pillow's own bitmap font, which has Latin letters and signs. Any other character becomes a framed
    pattern of its code point's bits: not readable, but unique.
    """
    from PIL import Image

    bitmap = _letter(glyph) or _pattern(ord(glyph))
    factor = max(1, side // _TALLEST)
    return bitmap.resize((bitmap.width * factor, bitmap.height * factor), Image.Resampling.NEAREST)


def _letter(glyph: str) -> Image | None:
    """Return the font's bitmap, or None where it has none."""
    from PIL import Image, ImageDraw, ImageFont

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


def _pattern(code: int) -> Image:
    from PIL import Image

    image = Image.new("1", (_PATTERN, _PATTERN), 1)
    inner = _PATTERN - 2
    for bit in range(inner * inner):
        image.putpixel((1 + bit % inner, 1 + bit // inner), code >> bit & 1)
    return image
