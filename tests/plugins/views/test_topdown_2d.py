"""The picture: equal bytes for equal scenes, a marker that points where FORWARD leads,
and legible glyphs.
"""

from __future__ import annotations

import copy
import io
import math
import pickle
import sys
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from cheesebench import HEADINGS, Picture, Scene, Tile
from cheesebench.interfaces import PictureView
from cheesebench.plugins.views import topdown_2d
from cheesebench.plugins.views.ascii_2d import Ascii2D
from cheesebench.plugins.views.ascii_2d_fpv import Ascii2DFpv
from cheesebench.plugins.views.ascii_3d import Ascii3D
from cheesebench.plugins.views.topdown_2d import Topdown2D, drawn_glyph

MakeScene = Callable[..., Scene]
Pixels = NDArray[np.int16]
COMPASS = ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))
ROOM = "#####1\n#.o..#\n#.+~L#\n######"


def field(size: int) -> list[str]:
    return ["#" * size, *["#" + "." * (size - 2) + "#"] * (size - 2), "#" * size]


def pixels(picture: Picture, side: int | None = None) -> Pixels:
    """Return red, green and blue of all pixels, as seen by a model that shrinks the
    picture to ``side``.
    """
    image = Image.open(io.BytesIO(picture.png)).convert("RGB")
    if side is not None:
        image = image.resize((side, side), Image.Resampling.BOX)
    return np.array(image).astype(np.int16)


def marker(shown: Pixels) -> Pixels:
    """Return (column, row) of all pixels of the agent, which is the reddest object."""
    red, green, blue = shown[..., 0], shown[..., 1], shown[..., 2]
    rows, columns = np.nonzero((red > 170) & (green < 60) & (blue < 90))
    return np.stack([columns, rows], axis=1).astype(np.int16)


@pytest.mark.parametrize("side", [448, 224])
@pytest.mark.parametrize("size", [5, 13, 27])
@pytest.mark.parametrize("heading", range(8))
def test_the_marker_points_where_forward_leads(
    heading: int, size: int, side: int, scene_of: MakeScene
) -> None:
    scene, view, middle = scene_of(field(size)), Topdown2D(), size // 2
    across, down = COMPASS[heading]
    here = marker(pixels(view.render(scene, middle, middle, heading), side))
    there = marker(
        pixels(view.render(scene, middle + across, middle + down, heading), side)
    )
    moved = there.mean(0) - here.mean(0)
    square = side / size
    # The picture moves by a square in the heading's direction ...
    assert np.abs(moved - np.array([across, down]) * square).max() < 0.12 * square
    # ... and so does the point of the marker, which is farthest from its centre.
    offsets = here - here.mean(0)
    tip = offsets[np.hypot(*offsets.T).argmax()]
    shown = round(math.degrees(math.atan2(tip[0], -tip[1])) / 45) % 8
    assert HEADINGS[shown] == HEADINGS[heading]


@pytest.mark.parametrize("heading", [0, 3])
def test_the_marker_has_a_light_rim_on_any_ground(heading: int) -> None:
    scene = Scene(((Tile("solid", "G"),) * 3,) * 3)
    image = Image.open(io.BytesIO(Topdown2D().render(scene, 1, 1, heading).png))
    colours = np.asarray(image)
    inside = colours == topdown_2d._AGENT
    around = np.zeros_like(inside)
    for across, down in COMPASS[::2]:
        around |= np.roll(inside, (down, across), (0, 1))
    rim = colours[around & ~inside] == topdown_2d._LIGHT
    assert rim.mean() > 0.95


def test_equal_scenes_give_equal_bytes_and_all_poses_different_ones(
    scene_of: MakeScene,
) -> None:
    poses = [
        (column, row, heading)
        for column in (1, 2, 3)
        for row in (1,)
        for heading in range(8)
    ]
    first = [Topdown2D().render(scene_of(ROOM), *pose) for pose in poses]
    view = Topdown2D()
    again = scene_of(ROOM)
    assert [view.render(again, *pose) for pose in poses] == first
    assert len({picture.png for picture in first}) == len(poses)


def test_the_bytes_do_not_depend_on_the_process(
    under_hash_seeds: Callable[..., list[str]],
) -> None:
    code = (
        "import hashlib; from cheesebench import Scene, Tile;"
        "from cheesebench.plugins.views.topdown_2d import Topdown2D;"
        "scene = Scene(tuple(tuple(Tile('floor', glyph) for glyph in row) for row in ('.oG~', '.★.,')));"
        "print(hashlib.sha256(Topdown2D().render(scene, 0, 1, 3).png).hexdigest())"
    )
    assert len(set(under_hash_seeds(code))) == 1


def test_what_the_state_says_is_the_text_under_the_picture(scene_of: MakeScene) -> None:
    picture = Topdown2D().render(scene_of(ROOM, "LIGHT", "TONE"), 1, 1, 0)
    assert picture == Picture(picture.png, "LIGHT\nTONE")
    assert str(picture) == "LIGHT\nTONE"
    assert len(picture) == Topdown2D().max_length(scene_of(ROOM, "LIGHT", "TONE"))
    # Other words change the text, not the drawing.
    assert picture.png == Topdown2D().render(scene_of(ROOM), 1, 1, 0).png


@pytest.mark.parametrize(
    ("rows", "side"), [(3, 448), (27, 448), (28, 448), (40, 640), (100, 1600)]
)
def test_large_arenas_have_larger_pictures_with_squares_that_can_be_seen(
    rows: int, side: int, scene_of: MakeScene
) -> None:
    scene = scene_of(field(rows))
    view = Topdown2D()
    assert view.picture_size(scene) == (side, side)
    assert Image.open(io.BytesIO(view.render(scene, 1, 1, 0).png)).size == (side, side)


GLYPHS = "123456789" + "GoOULuv*%=,:~+@&$XYabcdefghijk★●■▲◆○→é"


def tile_of(tile: Tile, side: int | None = None) -> bytes:
    """Return the pixels of one tile among walls, in a picture with squares of 16
    pixels.
    """
    wall, size = Tile("wall", "#"), 28
    rows = [[wall] * size for _ in range(size)]
    rows[10][10] = tile
    shown = pixels(Topdown2D().render(Scene(tuple(map(tuple, rows))), 20, 20, 0), side)
    square = len(shown) // size
    return shown[10 * square : 11 * square, 10 * square : 11 * square].tobytes()


@pytest.mark.parametrize("kind", ["floor", "door", "solid", "landmark"])
@pytest.mark.parametrize("side", [448, 224])
def test_every_glyph_looks_unlike_every_other(kind: str, side: int) -> None:
    shown = {glyph: tile_of(Tile(kind, glyph), side) for glyph in GLYPHS}  # type: ignore[arg-type]
    assert len(set(shown.values())) == len(GLYPHS)


def test_every_kind_of_tile_looks_unlike_every_other() -> None:
    kinds = ("floor", "door", "solid", "landmark")
    shown = {kind: tile_of(Tile(kind, "G")) for kind in kinds}  # type: ignore[arg-type]
    usual = {
        kind: tile_of(Tile(kind, glyph))  # type: ignore[arg-type]
        for kind, glyph in (("wall", "#"), ("floor", "."), ("void", " "))
    }
    assert len({*shown.values(), *usual.values()}) == len(shown) + len(usual)


def test_glyphs_stay_sharp_at_half_the_size() -> None:
    # In a map of 28 squares each glyph has twice the pixels of the font, so half the
    # size shows the font itself.
    for glyph in "127GoL":
        small = np.frombuffer(tile_of(Tile("landmark", glyph), 224), np.int16).reshape(
            8, 8, 3
        )
        assert len(np.unique(small.reshape(-1, 3), axis=0)) == 2


def test_characters_that_the_font_does_not_have_get_patterns_of_their_own() -> None:
    patterns = {
        chr(code): drawn_glyph(chr(code), 16).tobytes()
        for code in range(0x2500, 0x2700)
    }
    assert len(set(patterns.values())) == len(patterns)


def test_glyphs_keep_their_height_on_the_line() -> None:
    low, high = (np.array(drawn_glyph(glyph, 64)) for glyph in (",", "'"))
    assert low[: len(low) // 3].sum() == 0
    assert high[-len(high) // 3 :].sum() == 0


def test_only_views_of_pictures_say_how_large_these_are() -> None:
    views = (Ascii2D(), Ascii2DFpv(), Ascii3D(), Topdown2D())
    assert [isinstance(view, PictureView) for view in views] == [
        False,
        False,
        False,
        True,
    ]


def test_pictures_can_be_compared_hashed_counted_copied_and_are_something() -> None:
    one, other, worded = Picture(b"one"), Picture(b"two"), Picture(b"one", "LIGHT")
    assert one == Picture(b"one")
    assert not one != Picture(b"one")  # noqa: SIM202 - `!=` is what is tested
    assert one != other
    assert one != worded
    assert one != ""
    assert len({one, other, worded, Picture(b"one")}) == 3
    assert bool(one)
    assert sys.getsizeof(Picture(bytes(5000))) > 5000
    for copied in (copy.deepcopy(worded), pickle.loads(pickle.dumps(worded))):
        assert copied == worded
        assert copied.png == b"one"
