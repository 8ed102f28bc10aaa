"""Still pictures of a life, and the ground that all of its pictures have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Specification

Load = Callable[[str], Specification]
TEXT = """
arena: {map: "#l.S.r+#", legend: {S: box, l: left, r: right, +: {door: gate}}}
draw: {side: {order: cycle, of: {side: [left, right]}}}
start: {at: box, face: E}
trial:
  limit: 3
  start: one
  states:
    one: {show: {side: "*"}, rules: [{enter: left, end: found}]}
    two: {place: left, close: [gate], rules: [{enter: right, end: found}]}
"""
VIEW = installed_plugins().view("ascii_2d")


@pytest.mark.parametrize(
    ("state", "trial", "row"),
    [
        (None, 1, "#*....."),
        (None, 2, "#....*."),
        (None, 3, "#*....."),
        ("one", 2, "#....*."),
        ("two", 1, "#.....+"),
    ],
)
def test_a_still_is_the_beginning_of_a_trial_or_what_a_state_would_show_there(
    load: Load, state: str | None, trial: int, row: str
) -> None:
    paradigm = ArenaParadigm(load(TEXT))
    still = paradigm.still(VIEW, 0, 0, state, trial)
    assert still.state == (state or "one")
    assert (still.left, still.top) == (0, 0)
    glyphs = ["".join(tile.glyph for tile in tiles) for tiles in still.scene.tiles]
    assert f"{row}#" in glyphs
    # The state's `place` is not applied.
    assert (still.column, still.row, still.heading) == (3, 0, 2)


def test_the_ground_has_the_closed_doors_and_the_cells_of_the_zones(load: Load) -> None:
    ground = ArenaParadigm(load(TEXT)).ground()
    (tiles,) = ground.scene.tiles
    assert "".join(tile.glyph for tile in tiles) == "#.....+#"
    assert (ground.left, ground.top, ground.centre) == (0, 0, None)
    assert ground.zones == {
        "left": {(1, 0)},
        "box": {(3, 0)},
        "right": {(5, 0)},
        "gate": {(6, 0)},
    }


def test_a_lesion_changes_what_a_view_shows(load: Load) -> None:
    paradigm = ArenaParadigm(load(TEXT))
    blind = paradigm.lesioned(VIEW, Lesion.parse("blind"))
    scene = paradigm.still(VIEW, 0, 0).scene
    assert "*" in VIEW.render(scene, 3, 0, 2)
    assert "*" not in blind.render(scene, 3, 0, 2)
