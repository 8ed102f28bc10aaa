"""Films of `finish` with `go`: once a condition holds, the trial goes to another state,
from any state.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.protocol import Specification

Film = Callable[..., str]
Reel = Callable[[str], str]
Load = Callable[[str], Specification]

CORRIDOR = """
arena:
  map: "a.b"
  legend: {a: west, b: east}
  groups: {ends: [west, east]}
start: {at: west, face: E}
"""


def trial(states: str, finish: str, more: str = "") -> str:
    return f"{CORRIDOR}trial: {{limit: 9, start: run, states: {{{states}}}, finish: [{finish}]{more}}}"


COUNTING = "run: {rules: [{act: FORWARD, count: runs, reward: 1}]}"


def test_it_goes_once_the_condition_holds_and_enters_the_state(
    film: Film, reel: Reel
) -> None:
    text = trial(
        f"{COUNTING}, fed: {{place: west, reward: 4, rules: [{{after: 2, end: over}}]}}",
        "{if: runs == 2, go: fed}",
    )
    assert film(text, "FFSS") == reel("""
        - →.. 0 run
        F .→. +1 run
        F →.. +5 fed
        S →.. 0 fed
        S →.. 0 over (terminated)
    """)


def test_it_does_not_go_where_it_is_and_later_entries_are_tested(
    film: Film, reel: Reel
) -> None:
    fed = "fed: {rules: [{act: STAY, count: rests, reward: 2}, {after: 3, end: over}]}"
    text = trial(
        f"{COUNTING}, {fed}", "{if: runs == 1, go: fed}, {if: rests == 2, end: rested}"
    )
    # The clock of the state does not restart, although the condition still holds on
    # every step.
    assert film(text, "FSS FSRR") == reel("""
        - →.. 0 run
        F .→. +1 fed
        S .→. +2 fed
        S .→. +2 rested (terminated)
        - →.. 0 run
        F .→. +1 fed
        S .→. +2 fed
        R .↘. 0 fed
        R .↓. 0 over (terminated)
    """)


def test_it_wins_over_the_state_that_a_rule_has_led_to(film: Film, reel: Reel) -> None:
    states = (
        "run: {rules: [{act: FORWARD, count: runs, go: next}]}, "
        "next: {reward: 1, say: x, rules: [{after: 1, end: out}]}, "
        "fed: {rules: [{act: any, end: over}]}"
    )
    assert film(trial(states, "{if: runs == 1, go: fed}"), "FS") == reel("""
        - →.. 0 run
        F .→. +1 fed
        S .→. 0 over (terminated)
    """)


def test_a_rule_that_watches_can_lead_on(film: Film, reel: Reel) -> None:
    states = "run: {close: []}, fed: {freeze: true, rules: [{after: 1, end: over}]}"
    text = trial(
        states, "{if: visits == 2, go: fed}", ", watch: [{enter: ends, count: visits}]"
    )
    assert film(text, "FFLLLLFFS") == reel("""
        - →.. 0 run
        F .→. 0 run
        F ..→ 0 run
        L ..↗ 0 run
        L ..↑ 0 run
        L ..↖ 0 run
        L ..← 0 run
        F .←. 0 run
        F ←.. 0 fed
        S ←.. 0 over (terminated)
    """)


def test_what_it_leads_to_counts_as_reached(load: Load) -> None:
    far = "run: {rules: [{act: STAY, count: rests}]}, far: {rules: [{enter: ends, reward: 1, end: over}]}"
    codes = {one.code for one in load(trial(far, "{if: rests == 3, go: far}")).warnings}
    assert not codes & {302, 307}
    assert 302 in {
        one.code for one in load(trial(far, "{if: rests == 3, end: over}")).warnings
    }


@pytest.mark.parametrize("number", [0, 1])
def test_what_follows_an_end_without_a_condition_is_never_tested(
    load: Load, number: int
) -> None:
    finish = ["{end: over}", "{if: runs == 1, go: fed}"]
    states = f"{COUNTING}, fed: {{rules: [{{after: 1, end: over}}]}}"
    found = load(
        trial(states, ", ".join(finish if number else reversed(finish)))
    ).warnings
    assert [one.code for one in found if one.code == 303] == [303] * number
