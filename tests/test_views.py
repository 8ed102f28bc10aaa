"""Tests of every view on every protocol; new ones of either are tested at once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from cheesebench.chat import Picture
from cheesebench.interfaces import RUNNING, PictureView, ReadableView, Scene, View
from cheesebench.paradigms.arena import ArenaParadigm, scenes
from cheesebench.paradigms.arena.audit import validity
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.scenes import Gallery, LookKey
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.views.ascii_2d_fpv import FOG
from cheesebench.plugins.views.boards import FORWARD_OF, Boards
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.protocol.checks import AGENT_GLYPHS, DRAWN

#: Trials of each life, and steps of each, for collecting looks.
TRIALS, STEPS = 24, 300
#: Number of trials for collecting poses: the two steps after an error are met with few
#: headings, and rarely.
MET_IN = 120

_plugins = installed_plugins()
_catalogue = Catalogue(_plugins.protocol_directories)
every_protocol = pytest.mark.parametrize("name", list(_catalogue.files))
#: An edition without an arena of its own looks like the protocol that it extends.
every_arena = pytest.mark.parametrize(
    "name",
    [
        name
        for name, path in _catalogue.files.items()
        if "\nextends:" not in path.read_text(encoding="utf-8")
        or "\narena:" in path.read_text(encoding="utf-8")
    ],
)
every_view = pytest.mark.parametrize(
    "view", list(_plugins.views.values()), ids=lambda view: view.name
)


@cache
def paradigm_of(name: str) -> ArenaParadigm:
    """Load it in the test, so that a broken file fails its own tests and no others."""
    return ArenaParadigm(with_arena(_catalogue.load(_catalogue.files[name])))


@cache
def met_in(name: str) -> dict[LookKey, validity.Met]:
    return validity.looks(paradigm_of(name), MET_IN, 3)


def cues_of(name: str) -> list[validity.Cue]:
    return list(
        validity.cues(paradigm_of(name), _plugins.view("ascii_2d"), met_in(name))
    )


def places(name: str, poses: list[int]) -> Iterator[tuple[int, int, int]]:
    """Yield column and row (of the scene) and heading of poses."""
    geometry = paradigm_of(name).program.geometry
    canvas = scenes.canvas_of(geometry.arena)
    for pose in poses:
        column, row = geometry.arena.cells[geometry.cell(pose)]
        yield column - canvas.left, row - canvas.top, geometry.heading(pose)


@every_protocol
@every_view
def test_every_cue_can_be_seen_from_a_pose_that_can_be_reached(
    name: str, view: View
) -> None:
    cues = cues_of(name)
    assert cues
    hidden = [
        cue.name
        for cue in cues
        if not validity.is_visible(paradigm_of(name), view, cue, random.Random(0))
    ]
    assert not hidden


def differing(cue: validity.Cue) -> list[tuple[int, int]]:
    """Return the squares (column, row) on which the two scenes differ."""
    rows = enumerate(zip(cue.present.tiles, cue.absent.tiles, strict=True))
    return [
        (column, row)
        for row, (one, other) in rows
        for column, (tile, without) in enumerate(zip(one, other, strict=True))
        if tile != without
    ]


@every_arena
@pytest.mark.parametrize("view", ["ascii_2d", "topdown_2d"])
def test_maps_show_a_cue_from_everywhere_but_from_on_top_of_it(
    name: str, view: str
) -> None:
    paradigm, shown = paradigm_of(name), _plugins.view(view)
    for cue in cues_of(name):
        squares = differing(cue)
        poses = random.Random(cue.name).sample(cue.poses, min(12, len(cue.poses)))
        for pose, (column, row, _) in zip(poses, places(name, poses), strict=True):
            beneath = squares == [(column, row)]
            assert (
                validity.seen_from(paradigm, shown, cue, pose) != beneath or beneath
            ), (cue.name, pose)


@every_arena
@pytest.mark.parametrize(
    ("view", "reach", "wide"), [("ascii_2d_fpv", 1000, 1000.0), ("ascii_3d", 3, 1.0)]
)
def test_egocentric_views_show_a_cue_wherever_it_is_in_sight(
    name: str, view: str, reach: int, wide: float
) -> None:
    """A cue must be visible up to ``reach`` squares ahead, and ``wide`` times as far
    aside as it is ahead.
    """
    paradigm, shown = paradigm_of(name), _plugins.view(view)
    boards, tried = Boards(), 0
    for cue in cues_of(name):
        squares = differing(cue)
        poses = random.Random(cue.name).sample(cue.poses, min(40, len(cue.poses)))
        for pose, (column, row, heading) in zip(
            poses, places(name, poses), strict=True
        ):
            board = boards[cue.present]
            seen = {
                (number % board.width, number // board.width)
                for number in board.sight.squares(column, row)
            }
            across, down = FORWARD_OF[heading]
            in_sight = cue.present.text != cue.absent.text
            for x, y in set(squares) & seen:
                ahead = (x - column) * across + (y - row) * down
                aside = abs((y - row) * across - (x - column) * down)
                near = ahead <= reach and aside <= wide * ahead
                covered = view == "ascii_3d" and ahead == 0
                in_sight |= near and not covered and (x, y) != (column, row)
            if in_sight:
                tried += 1
                assert validity.seen_from(paradigm, shown, cue, pose), (
                    cue.name,
                    column,
                    row,
                    heading,
                )
    assert tried


@every_protocol
@every_view
def test_the_own_heading_can_always_be_told_from_the_observation(
    name: str, view: View
) -> None:
    program = paradigm_of(name).program
    gallery = Gallery(program.geometry, view)
    heading_of: dict[str, int] = {}
    for key, met in list(met_in(name).items())[:12]:
        look = gallery.look(key)
        poses = sorted(met.poses)
        for pose in random.Random(0).sample(poses, min(400, len(poses))):
            heading = program.geometry.heading(pose)
            assert heading_of.setdefault(gallery.draw(look, pose), heading) == heading


def trace(life: ArenaSubject, seed: int) -> list[object]:
    """Play some trials with random actions; return all results that do not depend on
    the view.
    """
    chance = random.Random(seed)
    lived: list[object] = []
    for _ in range(TRIALS):
        if life.begin_trial() is None:
            break
        for _ in range(STEPS):
            _, reward, status = life.step(chance.randrange(4))
            lived.append((life.pose, life.state, reward, status))
            if status != RUNNING:
                lived.append(life.result())
                break
        else:
            break
    return lived


@every_protocol
def test_a_life_is_the_same_in_every_view(name: str) -> None:
    program = paradigm_of(name).program
    first, *others = (
        trace(ArenaSubject(program, view, 7, 2), 5) for view in _plugins.views.values()
    )
    assert len(first) > 50
    assert all(other == first for other in others)


class Counting:
    """A view that counts its drawings."""

    def __init__(self, view: View) -> None:
        self._view, self.name, self.characters = view, view.name, view.characters
        self.drawn = 0

    def render(self, scene: Scene, column: int, row: int, heading: int) -> str:
        self.drawn += 1
        return self._view.render(scene, column, row, heading)

    def max_length(self, scene: Scene) -> int:
        return self._view.max_length(scene)


@every_view
def test_what_is_drawn_once_is_kept(view: View) -> None:
    counting = Counting(view)
    # Its trials are long.
    old = Path(__file__).parent / "fixtures" / "old_nine" / "t_maze.protocol.yaml"
    life = ArenaSubject(
        ArenaParadigm(with_arena(Catalogue().load(old))).program, counting, 7, 2
    )
    life.begin_trial()
    before = counting.drawn
    for _ in range(100):
        life.step(2)
    assert counting.drawn - before == 7


def test_the_bytes_of_pictures_count(monkeypatch: pytest.MonkeyPatch) -> None:
    program = paradigm_of("t_maze").program
    gallery = Gallery(program.geometry, _plugins.view("topdown_2d"))
    key = (frozenset[str](), False, (), ())
    monkeypatch.setattr(scenes, "MAX_BYTES", 40_000)
    drawn = 0
    for pose in range(0, program.geometry.poses * 4, 4):
        look = gallery.look(key)
        picture = gallery.draw(look, pose)
        assert isinstance(picture, Picture)
        drawn += len(picture.png)
        assert (
            sum(len(frame.png) for frame in look.frames if isinstance(frame, Picture))
            <= 40_000
        )
    assert drawn > 40_000


@every_view
def test_shipped_views_say_how_they_are_read_and_name_no_task(view: View) -> None:
    assert isinstance(view, ReadableView)
    words = view.reading.lower()
    assert 80 < len(words) < 900
    for word in (
        "maze",
        "goal",
        "reward",
        "lever",
        "cue",
        "arm",
        "platform",
        "food",
        "shock",
    ):
        assert word not in words.replace("arms", "arm").split()


def test_glyphs_that_a_view_draws_for_something_else_are_warned_of() -> None:
    drawn = {
        character for view in _plugins.views.values() for character in view.characters
    }
    # Letters, digits, blanks and punctuation make sentences. In a place with a `?` of
    # its own, fog is drawn as `░`.
    signs = {
        character
        for character in drawn
        if not (character.isalnum() or character in " \n,.:;()-")
    } - {FOG}
    warned = {*AGENT_GLYPHS, *DRAWN}
    assert signs - warned == set(), (
        "add what a view draws to DRAWN in protocol/checks.py: a cue may not look like it"
    )
    assert warned - signs == set(), "no view draws this any more"


def test_a_shipped_view_draws_pictures() -> None:
    assert any(isinstance(view, PictureView) for view in _plugins.views.values())
