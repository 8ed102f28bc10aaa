"""Scenes from drawings, and the visible squares in them, computed in the slow way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import pytest

from cheesebench import Scene, Tile
from cheesebench.interfaces import TileKind

KINDS: dict[str, TileKind] = {
    "#": "wall", ".": "floor", "~": "floor", "o": "floor", " ": "void", "+": "door", "L": "solid", "1": "landmark",
    "2": "landmark",
}  # fmt: skip
OPAQUE = ("wall", "door", "solid", "landmark")
Square = tuple[int, int]


def scene_of(picture: str | Sequence[str], *text: str) -> Scene:
    rows = picture.strip("\n").split("\n") if isinstance(picture, str) else picture
    return Scene(
        tuple(tuple(Tile(KINDS[glyph], glyph) for glyph in row) for row in rows), text
    )


def squares_of(scene: Scene) -> dict[Square, Tile]:
    return {
        (x, y): tile for y, row in enumerate(scene.tiles) for x, tile in enumerate(row)
    }


def line_is_free(opaque: set[Square], start: Square, end: Square) -> bool:
    """Whether the line passes the inside of no opaque square, and no corner closed by
    two of them.
    """
    (x, y), (across, down) = start, (end[0] - start[0], end[1] - start[1])
    half = Fraction(1, 2)
    for column, row in opaque - {start, end}:
        first, last = Fraction(0), Fraction(1)
        for begin, delta, middle in ((x, across, column), (y, down, row)):
            if delta == 0:
                if abs(begin - middle) >= half:
                    first = Fraction(2)
                continue
            bounds = sorted((middle + side - begin) / delta for side in (-half, half))
            first, last = max(first, bounds[0]), min(last, bounds[1])
        if first < last:
            return False
    columns, rows = sorted((x, end[0])), sorted((y, end[1]))
    for i, j in product(range(*columns), range(*rows)):
        on_line = (i + half - x) * down == (j + half - y) * across
        falling = (across > 0) == (down > 0)
        beside = {(i + 1, j), (i, j + 1)} if falling else {(i, j), (i + 1, j + 1)}
        if on_line and beside <= opaque:
            return False
    return True


def in_sight(scene: Scene, column: int, row: int) -> set[Square]:
    """Return the squares visible from one, looking all around."""
    squares, here = squares_of(scene), (column, row)
    opaque = {square for square, tile in squares.items() if tile.kind in OPAQUE}
    free = {
        square
        for square in squares
        if square == here or line_is_free(opaque, here, square)
    }
    found = free | {
        square for square, tile in squares.items() if tile.kind == "landmark"
    }
    for x, y in opaque - found:
        nearer_x, nearer_y = x - (x > column) + (x < column), y - (y > row) + (y < row)
        if free & {(nearer_x, y), (x, nearer_y), (nearer_x, nearer_y)} - opaque - {
            (x, y)
        }:
            found.add((x, y))
    return found


@pytest.fixture(scope="session", name="scene_of")
def scene_of_fixture() -> Callable[..., Scene]:
    return scene_of


@pytest.fixture(scope="session", name="squares_of")
def squares_of_fixture() -> Callable[[Scene], dict[Square, Tile]]:
    return squares_of


@pytest.fixture(scope="session", name="in_sight")
def in_sight_fixture() -> Callable[[Scene, int, int], set[Square]]:
    return in_sight
