"""Line of sight, against the same rule computed with fractions for one pair of squares
at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench import Scene
from cheesebench.plugins.views.boards import Board, Boards, Sight

InSight = Callable[[Scene, int, int], set[tuple[int, int]]]
MakeScene = Callable[..., Scene]
#: Drawings of up to 6 x 6 squares, more open than closed.
rows = st.integers(1, 6).flatmap(
    lambda width: st.lists(
        st.text(st.sampled_from("......~~  ###+L1"), min_size=width, max_size=width),
        min_size=1,
        max_size=6,
    )
)


@settings(max_examples=40)
@given(rows=rows)
def test_what_is_seen_is_what_a_free_line_leads_to(
    rows: list[str], scene_of: MakeScene, in_sight: InSight
) -> None:
    scene = scene_of(rows)
    board = Boards()[scene]
    for row in range(board.height):
        for column in range(board.width):
            seen = {
                (number % board.width, number // board.width)
                for number in board.sight.squares(column, row)
            }
            assert seen == in_sight(scene, column, row)


@settings(max_examples=60)
@given(rows=rows)
def test_open_squares_see_each_other_or_neither(
    rows: list[str], scene_of: MakeScene
) -> None:
    board = Boards()[scene_of(rows)]
    width = board.width
    open_squares = [
        number
        for number, tile in enumerate(t for row in board.scene.tiles for t in row)
        if tile.kind == "floor"
    ]
    seen = {
        number: set(board.sight.squares(number % width, number // width))
        for number in open_squares
    }
    for one in open_squares:
        assert all(
            (one in seen[other]) == (other in seen[one]) for other in open_squares
        )


def board_of(scene: Scene) -> Board:
    return Boards()[scene]


def drawn(board: Board, column: int, row: int) -> str:
    """Draw the view from a square; ``?`` is hidden."""
    seen = board.sight.squares(column, row)
    text = "".join(tile.glyph for line in board.scene.tiles for tile in line)
    shown = "".join(
        "@" if n == row * board.width + column else c if n in seen else "?"
        for n, c in enumerate(text)
    )
    return "\n".join(
        shown[start : start + board.width]
        for start in range(0, len(shown), board.width)
    )


@pytest.mark.parametrize(
    ("picture", "column", "row", "expected"),
    [
        # An empty room is visible as a whole, with all of its walls and corners, from
        # any square.
        ("#####\n#...#\n#...#\n#####", 1, 1, "#####\n#@..#\n#...#\n#####"),
        # Along a corridor walls are visible to its end; a side alley only from its
        # mouth.
        (
            "#######\n#.....#\n###.###\n  #.#  \n  ###  ",
            1,
            1,
            "#######\n#@....#\n###?###\n???????\n???????",
        ),
        (
            "#######\n#.....#\n###.###\n  #.#  \n  ###  ",
            3,
            1,
            "#######\n#..@..#\n###.###\n??#.#??\n??###??",
        ),
        # A closed door hides the squares behind it; a landmark is visible over
        # everything.
        ("#####1\n#.+.#\n#####", 1, 1, "###??1\n#@+???\n###???"),
        # Like a step, sight does not pass between two walls that touch at a corner.
        ("...\n.#.\n#..", 0, 0, None),
    ],
)
def test_rooms_corridors_doors_and_landmarks(
    picture: str, column: int, row: int, expected: str | None, scene_of: MakeScene
) -> None:
    width = max(map(len, picture.split("\n")))
    board = board_of(scene_of([line.ljust(width) for line in picture.split("\n")]))
    if expected is None:
        assert 2 * board.width + 1 not in board.sight.squares(0, 1)
    else:
        assert drawn(board, column, row) == expected


def test_boards_are_kept_by_scene_and_forgotten_when_there_are_too_many(
    scene_of: MakeScene,
) -> None:
    boards = Boards()
    scenes = [scene_of("#.#", str(number)) for number in range(Boards.SCENES + 3)]
    first = boards[scenes[0]]
    assert boards[scenes[0]] is first
    found = [boards[scene] for scene in scenes]
    assert all(board.scene is scene for board, scene in zip(found, scenes, strict=True))
    # The scenes have equal opaque squares, so the lines of sight are computed once.
    assert len({id(board.sight) for board in found}) == 1
    assert len(boards._boards) <= Boards.SCENES


def test_lines_of_sight_have_a_bound_in_memory(
    scene_of: MakeScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenes = [scene_of("." * number + "#" + "." * (9 - number)) for number in range(10)]
    one = Sight(10, 1, 1, 0).bits
    monkeypatch.setattr(Boards, "BITS", 3 * one)
    boards = Boards()
    for scene in scenes:
        boards[scene]
    assert len(boards._sights) == 3
