"""Films of events on every step: `inside` a zone, any action, anything in the way; and
placement on a square.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification

Film = Callable[..., str]
Live = Callable[..., ArenaSubject]
Reel = Callable[[str], str]

CORRIDOR = """
arena:
  map: |
    #####
    #SzZ#
    #####
  legend: {S: box, z: {zones: [sand], glyph: z}, Z: {zones: [sand, goal], glyph: Z}}
  groups: {ground: [goal, sand]}
start: {at: box, face: E}
"""


def middle(film: str) -> str:
    """Return a film without the upper and the lower wall."""
    return film.replace("#####/", "").replace("/#####", "")


def pays(film: str) -> list[float]:
    return [float(line.split(" (")[0].split()[-2]) for line in film.splitlines()]


def test_inside_pays_on_every_step_that_ends_there_also_on_the_last(
    film: Film, reel: Reel
) -> None:
    text = (
        CORRIDOR
        + "trial: {limit: 5, start: run, states: {run: {rules: [{inside: ground, reward: 1}]}}}"
    )
    assert middle(film(text, "SFLRS")) == reel("""
        - #→zZ# 0 run
        S #→zZ# 0 run
        F #.→Z# +1 run
        L #.↗Z# +1 run
        R #.→Z# +1 run
        S #.→Z# +1 timeout (truncated)
    """)


def test_inside_holds_in_a_frozen_state_too_and_says_which(film: Film) -> None:
    text = CORRIDOR + (
        "vars: {where_to: none}\n"
        "trial: {limit: 3, start: run, states: {run: {freeze: true, place: goal, "
        "rules: [{inside: ground, set: {where_to: it}, reward: 2}, {after: 9, end: out}]}}}"
    )
    assert film(text, "FL").count("+2 run") == 2


def test_any_action_comes_last_and_pays_on_the_last_step(film: Film) -> None:
    rules = "{enter: goal, reward: 1, end: found}, {act: STAY, reward: -0.5}, {act: any, reward: -0.01}"
    text = (
        CORRIDOR
        + f"trial: {{limit: 4, start: run, states: {{run: {{rules: [{rules}]}}}}}}"
    )
    assert pays(film(text, "SLRF")) == [0, -0.5, -0.01, -0.01, -0.01]


def test_press_any_is_whatever_blocks_the_way(film: Film) -> None:
    text = """
arena:
  map: |
    ##.
    #S+
    #.#
  legend: {S: box, +: {door: gate}}
start: {at: box, face: N}
trial:
  limit: 9
  start: run
  states: {run: {close: [gate], rules: [{press: wall, reward: -1}, {press: any, reward: -2}]}}
"""
    # North a wall; north-east floor, between a wall and the closed door; east the door;
    # south-east a wall; south floor.
    assert pays(film(text, "FRFRFRFRF")) == [0, -1, 0, -2, 0, -2, 0, -1, 0, 0]


def test_put_goes_to_the_nearest_square_and_keeps_the_heading(
    film: Film, reel: Reel
) -> None:
    text = CORRIDOR + (
        "vars: {at: 1}\n"
        "trial: {limit: 9, start: run, states: {run: {rules: [{act: any, set: {at: at + 0.4}, put: [at, 1]}]}}}"
    )
    assert middle(film(text, "LSRSS")) == reel("""
        - #→zZ# 0 run
        L #↗zZ# 0 run
        S #.↗Z# 0 run
        R #.→Z# 0 run
        S #.z→# 0 run
        S #.z→# 0 run
    """)


def test_nobody_is_put_where_no_floor_is(film: Film) -> None:
    text = (
        CORRIDOR
        + "trial: {limit: 9, start: run, states: {run: {rules: [{act: any, put: [9, steps / 0]}]}}}"
    )
    with pytest.raises(ProtocolError, match="column 9, row nan"):
        film(text, "S")


@pytest.mark.parametrize(
    "rest",
    [
        "{enter: goal, end: found}",
        "{act: STAY, end: found}",
        "{press: any, end: found}",
    ],
)
def test_after_any_action_nothing_is_left(
    load: Callable[[str], Specification], rest: str
) -> None:
    text = (
        CORRIDOR
        + f"trial: {{limit: 9, start: run, states: {{run: {{rules: [{{act: any, reward: 1}}, {rest}]}}}}}}"
    )
    assert 303 in {finding.code for finding in load(text).warnings}


def test_a_zone_may_be_drawn_as_nothing(film: Film) -> None:
    text = (
        CORRIDOR.replace("glyph: z", "glyph: ' '")
        + "trial: {limit: 9, start: run, states: {run: {}}}"
    )
    assert film(text, "S").splitlines()[0] == "- #####/#→ Z#/##### 0 run"


def test_of_two_zones_on_one_square_a_set_means_the_first_of_the_map(
    live: Live,
) -> None:
    """The order is that of the file, neither of the names nor of the set."""
    life = live("""
        arena: {map: "#sx#", legend: {s: box, x: {zones: [late, early]}}}
        start: {at: box, face: E}
        vars: {both: [early, late], which: none}
        trial: {limit: 2, start: run, states: {run: {rules: [{enter: both, set: {which: it}, end: found}]}}}
    """)
    life.begin_trial()
    life.step(0)
    assert life.values["which"] == "late"
