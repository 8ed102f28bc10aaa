"""The top-down map, checked picture by picture."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from cheesebench import HEADINGS, Scene, Tile
from cheesebench.interfaces import TileKind
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins import views
from cheesebench.plugins.views.ascii_2d import Ascii2D

KINDS: dict[str, TileKind] = {
    "#": "wall",
    ".": "floor",
    " ": "void",
    "=": "door",
    "L": "solid",
    "1": "landmark",
}


def scene_of(picture: str, *text: str) -> Scene:
    rows = picture.strip("\n").split("\n")
    return Scene(
        tuple(tuple(Tile(KINDS[glyph], glyph) for glyph in row) for row in rows), text
    )


ROOM = """
 1###
##.=#
#..L#
#####
"""


def test_the_agent_is_an_arrow_and_text_stands_below() -> None:
    expected = """
 1###
##.=#
#.↘L#
#####
TONE
-- new trial --"""
    assert (
        Ascii2D().render(
            scene_of(ROOM, "TONE", "-- new trial --"), 2, 2, HEADINGS.index("SE")
        )
        == expected[1:]
    )


def test_arrows_turn_clockwise_from_north() -> None:
    view, scene = Ascii2D(), scene_of("###\n#.#\n###")
    assert (
        "".join(view.render(scene, 1, 1, heading)[5] for heading in range(8))
        == "↑↗→↘↓↙←↖"
    )


def test_every_observation_of_a_scene_has_the_same_length_even_with_blanks_at_the_end() -> (
    None
):
    view, scene = Ascii2D(), scene_of("###  \n#..  \n###  ", "LIGHT")
    observations = [
        view.render(scene, column, 1, heading)
        for column in (1, 2)
        for heading in range(8)
    ]
    assert (
        {len(observation) for observation in observations}
        == {view.max_length(scene)}
        == {23}
    )
    assert {len(line) for line in observations[0].split("\n")} == {5}


def test_only_declared_characters_are_drawn() -> None:
    view, scene = Ascii2D(), scene_of(ROOM, "LIGHT ON")
    allowed = set(view.characters) | set("#.=L1 ") | set("LIGHT ON")
    assert set(view.render(scene, 1, 2, 3)) <= allowed


def test_forgotten_scenes_are_drawn_again_correctly() -> None:
    view = Ascii2D()
    rooms = [
        scene_of("###\n#.#\n###", str(number))
        for number in range(view.CACHED_SCENES + 5)
    ]
    for _ in range(2):
        for number, room in enumerate(rooms):
            assert view.render(room, 1, 1, 0) == f"###\n#↑#\n###\n{number}"


def test_short_lived_scenes_do_not_get_each_others_picture() -> None:
    # A new scene may get the id() of a freed one.
    view = Ascii2D()
    for number in range(50):
        assert view.render(scene_of("#.#", str(number)), 1, 0, 2).endswith(str(number))


@pytest.mark.parametrize(
    "view", list(views.cheesebench_views()), ids=lambda view: view.name
)
def test_views_are_registered(view: Ascii2D) -> None:
    assert type(PluginManager().view(view.name)) is type(view)


def test_no_view_of_the_package_is_forgotten() -> None:
    modules = [
        importlib.import_module(f"{views.__name__}.{found.name}")
        for found in pkgutil.iter_modules(views.__path__)
    ]
    written = {
        value
        for module in modules
        for value in vars(module).values()
        if hasattr(value, "reading") and value.__module__ == module.__name__
    }
    assert written == set(views.VIEWS)
