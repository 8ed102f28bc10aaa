"""The egocentric map: nothing invented, nothing missing, and enough to draw the world
from it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench import HEADINGS, Scene, Tile
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.scenes import Gallery, Look
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.agents.grid import read
from cheesebench.plugins.views.ascii_2d_fpv import Ascii2DFpv
from cheesebench.protocol import Catalogue, with_arena

Square = tuple[int, int]
MakeScene = Callable[..., Scene]
#: Forward (across, down) of each heading.
COMPASS = ((0, -1), (1, -1), (1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1))
AGENT, FOG, GAP = "↑", "?", " "

_catalogue = Catalogue(installed_plugins().protocol_directories)


def parse(observation: str) -> tuple[int, dict[Square, str]]:
    """Read an observation as documented: the heading, and (across, down) from the agent
    to each glyph.
    """
    first, empty, *lines = observation.split("\n")
    assert first.startswith("facing ")
    assert empty == ""
    heading = HEADINGS.index(first.removeprefix("facing "))
    bottom = next(number for number, line in enumerate(lines) if AGENT in line)
    middle = lines[bottom].index(AGENT)
    forward, right = COMPASS[heading], COMPASS[(heading + 2) % 8]
    # Rows and columns are whole steps with an even heading, and half diagonals with an
    # odd one.
    parts = 1 + heading % 2
    found = {}
    for number, line in enumerate(lines[: bottom + 1]):
        for place, character in enumerate(line):
            ahead, aside = bottom - number, place - middle
            if (ahead + aside) % parts:
                assert character == GAP, "something stands between the squares"
                continue
            across, down = (
                ahead * forward[axis] + aside * right[axis] for axis in (0, 1)
            )
            assert across % parts == down % parts == 0
            found[across // parts, down // parts] = character
    return heading, found


@settings(max_examples=80)
@given(data=st.data())
def test_every_character_is_a_square_in_sight_and_every_square_in_sight_is_a_character(
    data: st.DataObject,
    scene_of: MakeScene,
    squares_of: Callable[[Scene], dict[Square, Tile]],
    in_sight: Callable[[Scene, int, int], set[Square]],
) -> None:
    width, height = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    line = st.text(st.sampled_from("......~~  ###+L12"), min_size=width, max_size=width)
    scene = scene_of(
        data.draw(st.lists(line, min_size=height, max_size=height)), "LIGHT"
    )
    column, row = (
        data.draw(st.integers(0, width - 1)),
        data.draw(st.integers(0, height - 1)),
    )
    heading = data.draw(st.integers(0, 7))
    observation = Ascii2DFpv().render(scene, column, row, heading)
    assert len(observation) <= Ascii2DFpv().max_length(scene)
    assert observation.endswith("\nLIGHT")
    facing, drawn = parse(observation)
    assert facing == heading
    ahead = COMPASS[heading]
    expected = {
        (x - column, y - row)
        for x, y in in_sight(scene, column, row)
        if (x - column) * ahead[0] + (y - row) * ahead[1] >= 0
    }
    tiles = squares_of(scene)
    shown = {square for square, character in drawn.items() if character != FOG}
    assert shown == expected
    for across, down in expected - {(0, 0)}:
        assert drawn[across, down] == tiles[column + across, row + down].glyph
    assert drawn[0, 0] == AGENT


def render(picture: str, heading: str, scene_of: MakeScene) -> str:
    """Render a drawing in which ``@`` stands on floor."""
    lines = picture.strip("\n").split("\n")
    row = next(number for number, line in enumerate(lines) if "@" in line)
    scene = scene_of([line.replace("@", ".") for line in lines])
    return Ascii2DFpv().render(
        scene, lines[row].index("@"), row, HEADINGS.index(heading)
    )


ROOM = """
####1
#.o.#
#.@.#
#~..#
#####
"""


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("N", ["####1", "#.o.#", "#.↑.#"]),
        ("E", ["1####", "#...#", "#o↑.#"]),
        ("S", ["#####", "#..~#", "#.↑.#"]),
        ("W", ["#####", "#~..#", "#.↑o#"]),
        # A quarter of the room, standing on its corner: north is up and left, east is
        # up and right.
        ("NE", ["? ? 1", " ? # #", "? # . #", " # o . #", "# . ↑ . #"]),
        ("SW", ["? ? #", " ? # #", "? # ~ #", " # . . #", "# . ↑ . #"]),
    ],
)
def test_a_room_turned_so_that_the_agent_looks_up(
    heading: str, expected: list[str], scene_of: MakeScene
) -> None:
    assert render(ROOM, heading, scene_of).split("\n") == [
        f"facing {heading}",
        "",
        *expected,
    ]


def test_what_is_hidden_is_fog_and_lines_end_with_the_last_square_seen(
    scene_of: MakeScene,
) -> None:
    picture = "#######\n#.....#\n###.###\n  #@#  \n  ###  "
    assert render(picture, "N", scene_of) == "facing N\n\n###\n?.\n#.#\n#↑#"
    assert (
        render(picture, "NE", scene_of)
        == "facing NE\n\n? #\n #\n# . #\n ? . #\n? # ↑ #"
    )


class _Walker:
    """Explores on its own, knowing only its view and whether it has moved."""

    def __init__(self, gallery: Gallery, look: Look, pose: int) -> None:
        self._gallery, self._look, self._pose = gallery, look, pose
        self._moves = look.tables.moves
        #: Appearance of the squares around the start, at (across, down) from there.
        self.map: dict[Square, str] = {}

    def look(self, here: Square) -> int:
        """Add the visible squares to the map; return the heading."""
        heading, seen = parse(self._gallery.draw(self._look, self._pose))
        for (across, down), character in seen.items():
            square = (here[0] + across, here[1] + down)
            if character not in (FOG, AGENT):
                assert self.map.setdefault(square, character) == character, (
                    "two looks at one square differ"
                )
        return heading

    def act(self, action: int) -> bool:
        before, self._pose = self._pose, self._moves[self._pose + action]
        return self._pose != before

    def walk(self) -> None:
        """Go everywhere, depth first, turning once around on every square; come back to
        the start.
        """
        known: set[Square] = set()
        turns = 8 // self._gallery.geometry.turns

        def visit(here: Square) -> None:
            known.add(here)
            for _ in range(self._gallery.geometry.turns):
                heading = self.look(here)
                there = (here[0] + COMPASS[heading][0], here[1] + COMPASS[heading][1])
                if there not in known and self.act(0):
                    visit(there)
                    for step in (2, 0, 2):  # turn about, back, turn about
                        for _ in range(1 if step == 0 else 4 // turns):
                            self.act(step)
                assert self.act(2)

        visit((0, 0))


@pytest.mark.parametrize("name", list(_catalogue.files))
def test_the_map_can_be_drawn_from_what_is_seen_on_the_way(name: str) -> None:
    paradigm = ArenaParadigm(with_arena(_catalogue.load(_catalogue.files[name])))
    geometry = paradigm.program.geometry
    gallery = Gallery(geometry, Ascii2DFpv())
    look = gallery.look((frozenset(), False, (), ()))
    cell = random.Random(name).randrange(len(geometry.arena.cells))
    walker = _Walker(gallery, look, geometry.pose(cell, 0))
    walker.walk()
    column, row = geometry.arena.cells[cell]
    start = (column - gallery.canvas.left, row - gallery.canvas.top)
    drawn = {
        (x + start[0], y + start[1]): glyph for (x, y), glyph in walker.map.items()
    }
    tiles = {
        (x, y): tile
        for y, line in enumerate(look.scene.tiles)
        for x, tile in enumerate(line)
    }
    assert all(tiles[square].glyph == glyph for square, glyph in drawn.items())
    # Missing squares are void, or inside of walls: no floor is next to them.
    for x, y in tiles.keys() - drawn.keys():
        assert tiles[x, y].kind in ("void", "wall")
        around = {(x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1)}
        assert all(
            tiles[square].kind not in ("floor", "door")
            for square in around & tiles.keys()
        )


@pytest.mark.parametrize("name", list(_catalogue.files))
def test_readers_of_top_down_maps_do_not_take_it_for_one(name: str) -> None:
    paradigm = ArenaParadigm(with_arena(_catalogue.load(_catalogue.files[name])))
    gallery = Gallery(paradigm.program.geometry, Ascii2DFpv())
    look = gallery.look((frozenset(), False, (), ()))
    assert all(
        read(gallery.draw(look, pose * 4)) is None
        for pose in range(paradigm.program.geometry.poses)
    )
