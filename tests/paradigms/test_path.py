"""Readings of a path in expressions: coordinates, headings, distances, and classes of
paths.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import ACTION_LETTERS
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification

Live = Callable[..., ArenaSubject]
Load = Callable[[str], Specification]

FIELD = """
arena:
  map: |
    #########
    #..P....#
    #.......#
    #...S...#
    #.......#
    #......L#
    #########
  legend: {P: place, S: box, L: {solid: lever, glyph: L}}
  groups: {spot: [place, box]}
start: {at: box, face: N}
vars: {kept: none}
trial:
  limit: 30
  start: run
  states: {run: {set: {kept: place}, rules: [{act: STAY, end: done}]}}
"""


def measured(live: Live, measures: str, actions: str) -> dict[str, object]:
    life = live(f"{FIELD}measures: {{{measures}}}\n")
    life.begin_trial()
    for letter in actions.replace(" ", "") + "S":
        life.step(ACTION_LETTERS.index(letter))
    return dict(life.result().measures)


def test_coordinates_and_heading_count_from_the_north_west(live: Live) -> None:
    assert measured(live, "x: x, y: y, h: heading", "") == {"x": 4, "y": 3, "h": 0}
    assert measured(live, "x: x, y: y, h: heading, m: moves", "RRFFL") == {
        "x": 6,
        "y": 3,
        "h": 45,
        "m": 2,
    }


def test_an_author_may_use_the_later_words_for_things_of_their_own(live: Live) -> None:
    text = FIELD.replace(
        "vars: {kept: none}", "vars: {kept: none, x: 7, distance: 3, entries: 2}"
    )
    life = live(f"{text}measures: {{m: x + distance + entries + entries(place) + y}}\n")
    life.begin_trial()
    life.step(3)
    assert life.result().measures == {"m": 7 + 3 + 2 + 0 + 3}


@pytest.mark.parametrize("place", ["place", "kept"])
def test_distance_and_bearing(live: Live, place: str) -> None:
    found = measured(live, f"d: distance({place}), b: bearing_error({place})", "")
    assert found["d"] == pytest.approx(math.sqrt(5))
    assert found["b"] == pytest.approx(math.degrees(math.atan2(1, 2)))
    found = measured(live, f"d: distance({place}), b: bearing_error({place})", "RRRR")
    assert found["b"] == pytest.approx(180 - math.degrees(math.atan2(1, 2)))
    assert measured(
        live, f"d: distance({place}), b: bearing_error({place})", "FLFR"
    ) == {"d": 0, "b": None}


def test_distance_is_to_the_nearest_and_bearing_to_the_middle(live: Live) -> None:
    found = measured(live, "d: distance(spot), b: bearing_error(spot)", "")
    assert found == {"d": 0, "b": pytest.approx(math.degrees(math.atan2(0.5, 1)))}


def test_columns_and_rows_are_of_places_and_of_solids(live: Live) -> None:
    assert measured(live, "a: column(place), b: row(place), c: column(lever), d: row(lever), e: column(spot)", "") == {
        "a": 3, "b": 1, "c": 7, "d": 5, "e": 3.5,
    }  # fmt: skip


def test_entries_are_walks_from_outside(live: Live) -> None:
    # North and north-west into the place; back to the south-east; in again; turning
    # inside is no entry.
    assert measured(live, "n: entries(place), s: entries(spot)", "FLF LL") == {
        "n": 1,
        "s": 1,
    }
    assert (
        measured(live, "n: entries(place), t: time(place)", "FLF RRRRF LLLLF")["n"] == 2
    )
    assert measured(live, "n: entries(box)", "FRRRRF") == {"n": 1}


def test_departure_is_the_direction_after_three_cells(live: Live) -> None:
    target = math.degrees(math.atan2(-1, 2))
    assert measured(live, "e: departure_error(place)", "FF") == {"e": None}
    assert measured(live, "e: departure_error(place)", "RRFFF")["e"] == pytest.approx(
        90 - target
    )
    assert measured(live, "e: departure_error(place)", "RRFFF LLLL FFF")[
        "e"
    ] == pytest.approx(90 - target)
    assert measured(live, "e: departure_error(place)", "LLFFF")["e"] == pytest.approx(
        90 + target
    )
    assert measured(live, "e: departure_error(box)", "RRFFF") == {"e": None}, (
        "there is no way to where one is"
    )


def test_departure_begins_anew_where_the_subject_is_put(live: Live) -> None:
    text = FIELD.replace("rules: [", "rules: [{act: ROTATE_LEFT, place: place}, ")
    life = live(f"{text}measures: {{e: departure_error(box)}}\n")
    life.begin_trial()
    for letter in "RRFFF" + "L" + "RRFFFS":
        # Placed at the place, facing north again; then east.
        life.step(ACTION_LETTERS.index(letter))
    way_to_the_box = math.degrees(math.atan2(1, -2))
    assert life.result().measures["e"] == pytest.approx(abs(90 - way_to_the_box))


def test_a_measure_can_be_the_first_name_that_holds(live: Live) -> None:
    text = "way: [{if: steps == 1, is: short}, {if: y < 3, is: north}, elsewhere], none_left: [{if: steps > 99, is: long}]"
    assert measured(live, text, "") == {"way": "short", "none_left": None}
    assert measured(live, text, "F") == {"way": "north", "none_left": None}
    assert measured(live, text, "LLF") == {"way": "elsewhere", "none_left": None}


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ("m: distance(steps)", "distance\\(\\) takes a zone"),
        ("m: distance(lever)", "distance\\(\\) takes a zone"),
        ("m: column(steps)", "column\\(\\) takes a zone or solid"),
        ("m: distanse(place)", "Did you mean 'distance'"),
        ("m: [elsewhere, {if: steps > 3, is: long}]", "No trial gets here"),
        ("m: [{if: stpes > 3, is: long}]", "'stpes' is unknown"),
        ("m: [{if: steps > 3}]", "'is'"),
    ],
)
def test_mistakes_are_told(load: Load, measures: str, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        load(f"{FIELD}measures: {{{measures}}}\n")


def test_rules_can_read_them_too(live: Live) -> None:
    text = FIELD.replace(
        "rules: [",
        "each: {reward: 0 - distance(place)}, rules: [{act: FORWARD, if: y < 2, end: far_north}, ",
    )
    life = live(text)
    life.begin_trial()
    assert life.step(0)[1] == pytest.approx(-math.sqrt(2))
    life.step(0)
    assert life.outcome == "far_north"


def test_a_finish_can_wait_for_a_place(load: Load, live: Live) -> None:
    text = FIELD.replace(
        "  states:",
        "  watch: [{act: ROTATE_LEFT, count: turns}]\n  finish: [{if: moves >= 2, end: far}]\n  states:",
    )
    life = live(text)
    life.begin_trial()
    for letter in "FFR":
        assert life.step(ACTION_LETTERS.index(letter))[2] == 0
    assert life.step(1)[2] == 1
    assert life.outcome == "far"
