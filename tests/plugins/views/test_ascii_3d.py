"""The view in first person: nearer is higher, objects keep their glyphs, and near
visible ones are drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench import HEADINGS, Scene, Tile
from cheesebench.plugins.agents.grid import read
from cheesebench.plugins.views.ascii_3d import (
    COLUMNS,
    HALF,
    MIDDLE,
    SHADES,
    Ascii3D,
    directions,
    floor_row,
    height,
)
from cheesebench.plugins.views.boards import Boards

MakeScene = Callable[..., Scene]
WALLS = "".join(shade for _, shade in SHADES)


def render(picture: str, heading: str, scene_of: MakeScene, *text: str) -> list[str]:
    """Render a drawing in which ``@`` stands on floor; return heading,
    strip and rows.
    """
    lines = picture.strip("\n").split("\n")
    row = next(number for number, line in enumerate(lines) if "@" in line)
    scene = scene_of([line.replace("@", ".") for line in lines], *text)
    return (
        Ascii3D()
        .render(scene, lines[row].index("@"), row, HEADINGS.index(heading))
        .split("\n")
    )


def corridor(length: int) -> str:
    return "\n".join(["###", *["#.#"] * length, "#@#", "###"])


def test_a_corridor_with_a_landmark_at_its_end(scene_of: MakeScene) -> None:
    assert render("#1#\n#.#\n#.#\n#.#\n#@#\n###", "N", scene_of, "LIGHT") == [
        "facing N",
        "                        1                        ",
        "██████████                             ██████████",
        "███████████████▓                 ▓███████████████",
        "███████████████▓▓▓▓           ▓▓▓▓███████████████",
        "███████████████▓▓▓▓▓▓       ▓▓▓▓▓▓███████████████",
        *["███████████████▓▓▓▓▓▓▒11111▒▓▓▓▓▓▓███████████████"] * 8,
        "███████████████▓▓▓▓▓▓.......▓▓▓▓▓▓███████████████",
        "███████████████▓▓▓▓...........▓▓▓▓███████████████",
        "███████████████▓.................▓███████████████",
        "██████████.............................██████████",
        "LIGHT",
    ]


@pytest.mark.parametrize("heading", ["N", "E"])
def test_every_row_is_as_wide_as_the_picture_and_text_stands_below(
    heading: str, scene_of: MakeScene
) -> None:
    lines = render("#1#\n#.#\n#@#\n###", heading, scene_of, "LIGHT", "TONE")
    assert lines[0] == f"facing {heading}"
    assert {len(line) for line in lines[1:-2]} == {COLUMNS}
    assert len(lines[1:-2]) == 1 + 2 * HALF
    assert lines[-2:] == ["LIGHT", "TONE"]


def test_a_wall_is_the_higher_the_nearer_it_is(scene_of: MakeScene) -> None:
    heights = [
        sum(
            line[MIDDLE] in WALLS
            for line in render(corridor(length), "N", scene_of)[2:]
        )
        for length in range(9)
    ]
    assert heights == [16, 12, 10, 8, 6, 6, 6, 4, 4]
    shades = [
        render(corridor(length), "N", scene_of)[1 + HALF][MIDDLE] for length in range(9)
    ]
    assert "".join(shades) == "█▓▓▒▒▒▒░░"


def test_openings_at_the_sides_are_seen(scene_of: MakeScene) -> None:
    closed = "#####\n##.##\n##.##\n##@##\n#####"
    left = "#####\n##.##\n#..##\n##@##\n#####"
    horizon = 1 + HALF
    shut, gap = (render(picture, "N", scene_of)[horizon] for picture in (closed, left))
    assert shut == shut[::-1]
    assert gap[MIDDLE:] == shut[MIDDLE:]
    assert gap[:MIDDLE] != shut[:MIDDLE]


def test_things_are_drawn_with_their_glyphs_and_neighbours_are_parted(
    scene_of: MakeScene,
) -> None:
    lines = render("#LLL#\n#...#\n#...#\n#.@.#\n#####", "N", scene_of)
    assert lines[1 + HALF].strip(WALLS) == "LLLLLLLL│LLLLLL│LLLLLLL"
    assert "+" in render("#+#\n#.#\n#@#\n###", "N", scene_of)[1 + HALF]


def test_a_landmark_is_seen_over_walls_in_the_strip(scene_of: MakeScene) -> None:
    picture = "1    \n#####\n#.#.#\n#.#@#\n#####"
    for heading in HEADINGS:
        strip = render(picture, heading, scene_of)[1]
        assert ("1" in strip) == (heading in ("W", "NW", "N"))
    assert render(picture, "NW", scene_of)[1].index("1") == MIDDLE
    assert render(picture, "N", scene_of)[1].index("1") < MIDDLE


def test_a_thing_far_away_keeps_a_character(scene_of: MakeScene) -> None:
    picture = "\n".join(["###", "#o#", *["#.#"] * 20, "#@#", "###"])
    rows = render(picture, "N", scene_of)[2:]
    assert [line[MIDDLE] for line in rows].count("o") == 1
    # A solid in the side of a corridor, seen edgeways.
    picture = "\n".join(["####", "#.##", "#.L#", *["#.##"] * 15, "#@##", "####"])
    assert "L" in "".join(render(picture, "N", scene_of)[2:])


@settings(max_examples=120)
@given(data=st.data())
def test_what_is_near_and_in_sight_can_be_told_from_its_absence(
    data: st.DataObject, scene_of: MakeScene
) -> None:
    size = 7
    line = st.text(st.sampled_from("......#"), min_size=size, max_size=size)
    rows = data.draw(st.lists(line, min_size=size, max_size=size))
    column, row, heading = (
        data.draw(st.integers(0, 6)),
        data.draw(st.integers(0, 6)),
        data.draw(st.integers(0, 7)),
    )
    rows[row] = rows[row][:column] + "." + rows[row][column + 1 :]
    scene = scene_of(rows)
    forward, right = directions(heading)

    def near_and_before(square: tuple[int, int]) -> bool:
        across, down = square[0] - column, square[1] - row
        ahead = across * forward[0] + down * forward[1]
        return 0 < ahead <= 5 and abs(across * right[0] + down * right[1]) <= ahead

    seen = Boards()[scene].sight.squares(column, row)
    candidates = list(
        filter(near_and_before, ((number % size, number // size) for number in seen))
    )
    if not candidates:
        return
    x, y = data.draw(st.sampled_from(candidates))
    floor = scene.tiles[y][x].kind == "floor"
    changed = [list(line) for line in scene.tiles]
    changed[y][x] = Tile("floor", "o") if floor else Tile("solid", "L")
    other = Scene(tuple(map(tuple, changed)))
    view = Ascii3D()
    before, after = (view.render(one, column, row, heading) for one in (scene, other))
    assert before != after
    assert ("o" if floor else "L") in after
    assert len(after) <= view.max_length(other)


def test_heights_and_floor_fall_with_distance_and_meet() -> None:
    distances = [0.5 + step / 4 for step in range(100)]
    heights = [height(ahead) for ahead in distances]
    assert heights == sorted(heights, reverse=True)
    assert (heights[0], heights[-1]) == (HALF, 1)
    rows = [floor_row(ahead) for ahead in distances]
    assert rows == sorted(rows, reverse=True)
    # Floor directly before a wall is at the wall's foot.
    assert all(abs(floor_row(ahead) - height(ahead)) <= 1 for ahead in distances)


def test_readers_of_top_down_maps_do_not_take_it_for_one(scene_of: MakeScene) -> None:
    assert read("\n".join(render("#1#\n#.#\n#@#\n###", "N", scene_of))) is None
