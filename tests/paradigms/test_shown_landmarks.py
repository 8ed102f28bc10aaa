"""Films of landmarks that depend on states and variables, and of glyphs and doors
common to all states.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena.scenes import hidden_by
from cheesebench.protocol import Specification

Film = Callable[..., str]
Reel = Callable[[str], str]
Load = Callable[[str], Specification]

CORRIDOR = """
arena:
  map: "aS+b"
  legend: {a: west, b: east, S: box, +: {door: gate}}
  groups: {ends: [west, east]}
  landmarks: {W: "1", E: "2"}
start: {at: box, face: E}
"""
TWO = "run: {SHOW, rules: [{act: STAY, go: rest}]}, rest: {rules: [{act: STAY, end: over}]}"


def trial(show: str, rest: str = "") -> str:
    return f"{CORRIDOR}{rest}\ntrial: {{limit: 9, start: run, states: {{{TWO.replace('SHOW', show)}}}}}"


@pytest.mark.parametrize(
    ("show", "rest", "first"),
    [
        ("show: {E: '*'}", "", "1.→..*"),
        ("show: {E: ' '}", "", "1.→.. "),
        ("show: {E: lamp}", "draw: {d: {of: {lamp: ['%']}}}", "1.→..%"),
        ("show: {E: lamp}", "vars: {lamp: none}", "1.→..2"),
        ("show: {which: '*'}", "draw: {d: {of: {which: [W]}}}", "*.→..2"),
        ("show: {which: '*'}", "draw: {d: {pick: 2, of: {which: [W, E]}}}", "*.→..*"),
        ("show: {which: '*'}", "vars: {which: none}", "1.→..2"),
        ("show: {which: '*'}, set: {which: E}", "vars: {which: W}", "1.→..*"),
        ("show: {east: '*', E: '&'}", "", "1.→.*&"),
    ],
)
def test_a_state_shows_landmarks_in_another_way(
    film: Film, reel: Reel, show: str, rest: str, first: str
) -> None:
    assert film(trial(show, rest), "SS").replace("1.→..2 0 rest", "usual") == "\n".join(
        [f"- {first} 0 run", "S usual", "S 1.→..2 0 over (terminated)"]
    )


def test_what_is_shown_and_closed_whatever_the_state(film: Film, reel: Reel) -> None:
    text = f"""{CORRIDOR}
draw: {{d: {{of: {{lamp: ['%']}}}}}}
trial:
  limit: 9
  start: run
  show: {{E: lamp, ends: o}}
  close: gate
  states:
    run: {{rules: [{{act: STAY, go: rest}}]}}
    rest: {{show: {{ends: x, W: '!'}}, rules: [{{act: STAY, go: free}}]}}
    free: {{open: gate, rules: [{{act: STAY, end: over}}]}}
"""
    assert film(text, "SSFS") == reel("""
        - 1o→+o% 0 run
        S !x→+x% 0 rest
        S 1o→.o% 0 free
        F 1o.→o% 0 free
        S 1o.→o% 0 over (terminated)
    """)


def test_a_place_of_the_same_name_goes_before_a_landmark(film: Film) -> None:
    text = trial("show: {E: '*'}").replace("b: east", "b: {zones: [east, E]}")
    assert film(text, "S").splitlines()[0] == "- 1.→.*2 0 run"


def test_one_landmark_can_be_hidden(load: Load) -> None:
    hidden = hidden_by(Lesion.parse("hide=E"), load(trial("say: x")))
    assert hidden.squares == {(5, 0)}
    assert not hidden.landmarks


def test_a_variable_holds_landmarks_or_places(load: Load) -> None:
    with pytest.raises(
        ProtocolError,
        match=r"'which' holds landmarks, but it can also hold 'EE', which is not a landmark\.",
    ):
        load(trial("show: {which: '*'}", "draw: {d: {of: {which: [W, EE]}}}"))
