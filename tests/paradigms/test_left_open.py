"""Films of doors that stay open while all others are closed, and of shrinking sets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import FORWARD
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification

Film = Callable[..., str]
Reel = Callable[[str], str]
Load = Callable[[str], Specification]

ARMS = """
arena:
  map: |
    #######
    #w1S2e#
    #######
  legend: {S: box, w: west, e: east, 1: {door: gate_w}, 2: {door: gate_e}}
  groups: {gate: [gate_w, gate_e], arm: [west, east]}
start: {at: box, face: E}
"""


def middle(film: str) -> str:
    return film.replace("#######/", "").replace("/#######", "")


@pytest.mark.parametrize(
    "rest", ["", "draw: {d: {of: {free: [gate_e]}}}", "vars: {free: [gate_e]}"]
)
def test_all_doors_but_one_are_closed(film: Film, reel: Reel, rest: str) -> None:
    door = "free" if rest else "gate_e"
    state = f"{{close: [gate], open: [{door}], rules: [{{enter: arm, end: over}}]}}"
    text = f"{ARMS}{rest}\ntrial: {{limit: 9, start: run, states: {{run: {state}}}}}"
    assert middle(film(text, "FF")) == reel("""
        - #.+→..# 0 run
        F #.+.→.# 0 run
        F #.+..→# 0 over (terminated)
    """)


def test_nothing_left_open_is_all_closed(film: Film, reel: Reel) -> None:
    text = f"{ARMS}vars: {{free: none}}\ntrial: {{limit: 1, start: run, states: {{run: {{close: gate, open: free}}}}}}"
    assert middle(film(text, "F")) == reel("""
        - #.+→+.# 0 run
        F #.+→+.# 0 timeout (truncated)
    """)


def test_a_variable_that_comes_to_hold_no_door_is_a_mistake_with_a_remedy(
    film: Film,
) -> None:
    rules = "[{act: any, set: {free: place_of}}]"
    text = (
        f"{ARMS}vars: {{free: none, place_of: west}}\n"
        f"trial: {{limit: 9, start: run, states: {{run: {{close: gate, open: free, rules: {rules}}}}}}}"
    )
    with pytest.raises(
        ProtocolError, match="In the state 'run', 'west' is open, but is not a door"
    ):
        film(text, "S")


@pytest.mark.parametrize(
    ("effects", "left"),
    [
        ("remove: {bag: west}", {"east"}),
        ("remove: {bag: it}", {"west"}),
        ("remove: {bag: other}", set()),
        ("remove: {bag: none}", {"west", "east"}),
        ("remove: {bag: gone}", {"west", "east"}),
        (
            "add: {gone: bag}, remove: {bag: gone}",
            set(),
        ),  # in this order: add, then remove
    ],
)
def test_members_are_taken_out_of_a_set(
    live: Callable[..., ArenaSubject], effects: str, left: set[str]
) -> None:
    text = (
        f"{ARMS}vars: {{bag: [west, east], other: [east, west], gone: [box]}}\n"
        f"trial: {{limit: 9, start: run, states: {{run: {{rules: [{{enter: east, {effects}, end: over}}]}}}}}}"
    )
    life = live(text)
    life.begin_trial()
    life.step(FORWARD)
    life.step(FORWARD)
    assert life.values["bag"] == left


def test_a_door_that_is_not_closed_need_not_be_left_open(load: Load) -> None:
    states = "{run: {close: gate_w, open: [gate], rules: [{enter: arm, end: over}]}}"
    found = load(f"{ARMS}trial: {{limit: 9, start: run, states: {states}}}").warnings
    assert [(one.code, one.sentence) for one in found if one.code == 320] == [
        (320, "'gate_e' is open anyway: this state does not close it.")
    ]
