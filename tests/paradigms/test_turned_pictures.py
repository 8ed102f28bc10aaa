"""`arena: rotate` turns the picture and the subject in it; the place stays as it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.interfaces import FORWARD, HEADINGS, Tile
from cheesebench.lesions import Hidden, Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.scenes import Gallery, turned
from cheesebench.plugin_manager import installed_plugins
from tests.arenas import examine_text

Film = Callable[..., str]

ROOM = """
arena:
  map: |
    #####
    #Z..#
    #...#
    #..S#
    #####
  legend: {S: box, Z: goal}
  landmarks: {N: "1", E: "2"}
  rotate: side
draw: {side: {order: cycle, of: {side: [0, 90, 180, 270]}}}
start: {at: box, face: N}
trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}
measures: {x: x, y: y, way: heading}
"""


def test_film(film: Film, reel: Callable[[str], str]) -> None:
    # The same three actions in four trials: the subject goes north in the room, and the picture is turned clockwise.
    assert film(ROOM, "F F F F") == reel("""
        - ##1##/#...#/#...2/#..↑#/##### 0 run
        F ##1##/#...#/#..↑2/#...#/##### 0 run
        - #####/#...#/#...1/#→..#/##2## 0 run
        F #####/#...#/#...1/#.→.#/##2## 0 run
        - #####/#↓..#/2...#/#...#/##1## 0 run
        F #####/#...#/2↓..#/#...#/##1## 0 run
        - ##2##/#..←#/1...#/#...#/##### 0 run
        F ##2##/#.←.#/1...#/#...#/##### 0 run
    """)


def paradigm() -> ArenaParadigm:
    text = f"version: 1\nparadigm: room\nschedule: {{one: {{trials: 8}}}}\n{ROOM}"
    specification, found = examine_text(text, "room.protocol.yaml")
    assert specification is not None, found
    return ArenaParadigm(specification)


def test_the_room_itself_is_not_turned() -> None:
    life = paradigm().environment(installed_plugins().view("ascii_2d"), 0, 0)
    for _ in range(4):
        life.begin_trial()
        for _ in range(9):
            life.step(FORWARD)
        assert life.result().measures == {"x": 3, "y": 1, "way": 0}


@pytest.mark.parametrize("view", ["ascii_2d", "ascii_2d_fpv", "ascii_3d", "topdown_2d"])
def test_every_view_draws_the_turned_scene(view: str) -> None:
    made, drawn = paradigm(), installed_plugins().view(view)
    gallery = Gallery(made.program.geometry, drawn)
    key = (frozenset[str](), False, (), ())
    for quarters in range(4):
        look = gallery.look(key, quarters)
        for pose in range(0, made.program.geometry.poses * 4, 4):
            column, row, heading = gallery.stand(pose, quarters)
            assert look.scene.tiles[row][column].kind == "floor"
            assert gallery.draw(look, pose) == drawn.render(look.scene, column, row, heading)


def test_four_quarters_are_a_whole_turn() -> None:
    made = paradigm()
    gallery = Gallery(made.program.geometry, installed_plugins().view("ascii_2d"))
    scene = gallery.scene((), (), ("text",))
    assert turned(scene, 0) is scene
    assert turned(turned(scene, 3), 1) == scene == turned(turned(scene, 2), 2)
    assert turned(scene, 1) != scene
    # What is ahead of the subject in the room is ahead of it in every picture.
    landmark = scene.tiles[0][2]
    assert landmark == Tile("landmark", "1")
    cell = made.program.geometry.arena.cells.index((2, 1))
    for quarters in range(4):
        column, row, heading = gallery.stand(made.program.geometry.pose(cell, 0), quarters)
        ahead = {"N": (0, -1), "E": (1, 0), "S": (0, 1), "W": (-1, 0)}[HEADINGS[heading]]
        assert turned(scene, quarters).tiles[row + ahead[1]][column + ahead[0]] == landmark


def test_what_is_hidden_stays_hidden_in_every_picture() -> None:
    made = paradigm()
    view = installed_plugins().view("ascii_2d")
    gallery = Gallery(made.program.geometry, made.lesioned(view, Lesion.parse("hide=landmarks")))
    pictures = {gallery.draw(gallery.look((frozenset(), False, (), ()), quarters), 0) for quarters in (0, 1, 2, 3)}
    assert not any("1" in picture or "2" in picture for picture in pictures)
    # A square of the room is the same square of the room, whichever way the picture is turned.
    hidden = Hidden(squares=frozenset({(1, 1)}), instead={(1, 1): Tile("floor", "x")})
    scene = gallery.scene((), (), ())
    for quarters in range(4):
        column, row, _ = gallery.stand(made.program.geometry.pose(0, 0), quarters)
        assert hidden.filtered(turned(scene, quarters)).tiles[row][column].glyph == "x"


def test_a_still_shows_what_a_life_shows() -> None:
    made, view = paradigm(), installed_plugins().view("ascii_2d")
    for subject in range(3):
        still = made.still(view, 3, subject)
        assert (
            view.render(still.scene, still.column, still.row, still.heading)
            == made.environment(view, 3, subject).begin_trial()
        )
