"""Aims of little memory: in words, as the memory audit reports them, and what they name
at a moment.
"""

from __future__ import annotations

import pytest

from cheesebench.interfaces import FORWARD
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import runs
from cheesebench.paradigms.arena.audit.aims import (
    AHEAD,
    ANTICLOCKWISE,
    CLOCKWISE,
    NEAR,
    NORTH,
    OWN_SIDE,
    WAITS,
    Aim,
    Moment,
    Places,
    Stop,
    manners,
)
from cheesebench.paradigms.arena.life import ArenaSubject
from tests.arenas import examine_text


@pytest.mark.parametrize(
    ("aim", "words"),
    [
        (Aim(), "waits"),
        (
            Aim(1, before=3, rounds=2, stay=4),
            "waits 3 steps, then goes to hole 1, clockwise from north, and waits, 2 times, staying 4 steps",
        ),
        (
            Aim(0, AHEAD, 2, CLOCKWISE, "O", "new"),
            "goes to new arm that shows O 3, clockwise from straight ahead, then on clockwise",
        ),
        (
            Aim(0, "*", then=ANTICLOCKWISE),
            "goes to arm 1, clockwise from glyph *, then on anticlockwise",
        ),
        (
            Aim(0, f"{NEAR}*"),
            "goes to arm 1, by distance from glyph *, and waits",
        ),
        (
            Aim(0, NEAR, then="4", past="old"),
            "goes to the nearest old arm of 4 from number 1 on, by distance from itself, then to the others",
        ),
        (
            Aim(0, onward=Aim(before=2)),
            "goes to arm 1, clockwise from north, and waits; then waits 2 steps, then waits",
        ),
    ],
)
def test_an_aim_in_words(aim: Aim, words: str) -> None:
    assert aim.words(["arm", "hole"]) == words


def test_arcs_are_a_pair_a_quarter_a_half_or_all_of_a_group() -> None:
    plain = [WAITS, CLOCKWISE, ANTICLOCKWISE]
    assert manners(2) == plain
    assert manners(3) == [*plain, "2", "3"]
    assert manners(16) == [*plain, "2", "4", "8", "16"]


#: Four zones around a box, three cells to the sides and two up and down, and a lamp at
#: the one in the west. The cellar cannot be reached.
ROOM = """
version: 1
paradigm: room
arena:
  map: |
    ###########
    #...A...#F#
    #.......###
    #D..S..B+.#
    #.......###
    #...C...###
    ###########
  legend: {A: north, B: east, C: south, D: west, S: box, F: cellar, +: {door: gate}}
  groups: {arm: [south, west, north, east], deep: [cellar, north], idle: [box]}
  headings: 4
draw: {lamp: {order: cycle, of: {lamp: [west, north]}}}
start: {at: box, face: E}
trial:
  limit: 40
  start: walk
  states:
    walk:
      close: [gate]
      say: go
      show: {lamp: "*"}
      rules: [{enter: arm, go: walk}, {enter: gate, go: rest}]
    rest: {rules: [{enter: deep, end: found}]}
schedule: {main: {trials: 4}}
success: last == found
"""


def room(lesion: str = "intact", steps: int = 0, *visited: str) -> Moment:
    """Return a moment of the first trial, after some steps to the east."""
    specification, found = examine_text(ROOM)
    assert specification is not None, found
    paradigm = ArenaParadigm(specification)
    life = ArenaSubject(paradigm.program, runs.DARKNESS, 0, 0)
    assert life.begin_trial() is not None
    for _ in range(steps):
        life.step(FORWARD)
    return Moment(Places(paradigm, Lesion.parse(lesion)), life, frozenset(visited))


FROM_NORTH = ["north", "east", "south", "west"]
FROM_EAST = ["east", "south", "west", "north"]
FROM_WEST = ["west", "north", "east", "south"]


@pytest.mark.parametrize(
    ("zero", "at_the_box", "in_the_east"),
    [
        (NORTH, FROM_NORTH, FROM_NORTH),
        (AHEAD, FROM_EAST, FROM_EAST),
        (OWN_SIDE, FROM_NORTH, FROM_EAST),
        ("*", FROM_WEST, FROM_WEST),
        ("%", FROM_NORTH, FROM_NORTH),
        # What is equally near comes as in the file.
        (
            NEAR,
            ["south", "north", "west", "east"],
            ["east", "south", "north", "west"],
        ),
        (f"{NEAR}*", *[["west", "south", "north", "east"]] * 2),
        (f"{NEAR}%", *[["south", "west", "north", "east"]] * 2),
    ],
)
def test_members_are_ranked_from_a_zero_as_it_is_seen(
    zero: str, at_the_box: list[str], in_the_east: list[str]
) -> None:
    for steps, order in ((0, at_the_box), (3, in_the_east)):
        ranks = room("intact", steps).ranks(0, zero)
        assert sorted(ranks, key=ranks.__getitem__) == order
        assert sorted(ranks.values()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("aim", "order"),
    [
        (Aim(), []),
        (Aim(0, NORTH, 1), ["east"]),
        (Aim(0, NORTH, 1, CLOCKWISE), ["east", "south", "west", "north"]),
        (Aim(0, NORTH, 1, ANTICLOCKWISE), ["east", "north", "west", "south"]),
        (Aim(0, NORTH, 0, CLOCKWISE, "*"), ["west"]),
        (Aim(0, NORTH, 0, CLOCKWISE, "%"), FROM_NORTH),
        (Aim(0, NORTH, 0, CLOCKWISE, past="old"), ["north", "south"]),
        (Aim(0, NORTH, 0, CLOCKWISE, past="new"), ["east", "west"]),
        (Aim(0, NORTH, 0, CLOCKWISE, "*", "old"), ["west"]),
        # An arc: the nearest of it, then what is nearest to that, then the others.
        (Aim(0, NORTH, 0, "2"), ["north", "east", "south", "west"]),
        (Aim(0, NORTH, 3, "3"), ["north", "west", "east", "south"]),
        (Aim(1), ["north"]),
    ],
)
def test_an_aim_names_places_in_order(aim: Aim, order: list[str]) -> None:
    moment = room("intact", 0, "north", "south")
    assert moment.targets(aim) == tuple(order)
    assert moment.stops(aim) == tuple(Stop(name, 0) for name in order)


def test_stops_are_waited_at_repeated_and_continued() -> None:
    aim = Aim(0, NORTH, 1, before=3, stay=2, rounds=2, onward=Aim(0, before=1))
    assert room().stops(aim) == (
        Stop("", 3),
        Stop("east", 2),
        Stop("east", 2),
        Stop("", 1),
        Stop("north", 0),
    )


def test_who_stands_at_a_member_does_not_go_there() -> None:
    there = room("intact", 3)
    assert there.places.here(there.life) == {"east"}
    assert there.reachable(0) == ["south", "west", "north"]
    assert room().reachable(0) == ["south", "west", "north", "east"]
    assert room().reachable(1) == ["north"]


def test_groups_are_those_whose_members_something_reacts_to() -> None:
    places = room().places
    assert [name for name, _ in places.groups] == ["arm", "deep", "place"]
    assert places.of_state == {"walk": [0, 1, 2], "rest": [0, 1]}
    assert places.bearing(0, (4, 3)) is None
    assert [places.bearing(0, places.middle[one]) for one in FROM_NORTH] == [
        0,
        90,
        180,
        270,
    ]
    assert places.from_centre(0, "east") == 3
    assert places.from_centre(0, "north") == 2


LAMP, GATE = ("(1, 3)", "*"), ("(8, 3)", "+")


@pytest.mark.parametrize(
    ("lesion", "closed", "shown", "said"),
    [
        ("intact", ("gate",), (("west", "*"),), ("go",)),
        ("anhedonia", ("gate",), (("west", "*"),), ("go",)),
        ("blind", (), (), ()),
        ("pose-only", (), (), ()),
        ("hide=gate", (), (LAMP,), ("go",)),
        ("hide=arm", (), (GATE,), ("go",)),
        ("hide=idle", (), (LAMP, GATE), ("go",)),
    ],
)
def test_what_is_seen_is_what_the_lesion_leaves(
    lesion: str,
    closed: tuple[str, ...],
    shown: tuple[tuple[str, str], ...],
    said: tuple[str, ...],
) -> None:
    moment = room(lesion, 3)
    kind = len(closed), tuple((glyph, 1) for _, glyph in shown), said
    assert moment.kind == kind
    assert moment.sight == (
        (kind, closed, shown),
        (kind, closed, shown, ("east",)),
    )
    assert moment.judged


def test_a_glyph_that_moves_is_a_zero() -> None:
    moment = room()
    life, places = moment.life, moment.places
    plain = [NORTH, AHEAD, OWN_SIDE]
    assert set(places.glyphs(life)) == {"*", "+"}
    assert places.zeros() == [*plain, NEAR]
    assert life.begin_trial() is not None
    assert places.glyphs(life)["*"] == {(4, 1)}
    assert places.zeros() == [*plain, "*", NEAR, f"{NEAR}*"]
