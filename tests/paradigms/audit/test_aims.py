"""Aims in words, as the memory audit reports them."""

from __future__ import annotations

import pytest

from cheesebench.paradigms.arena.audit.aims import (
    AHEAD,
    ANTICLOCKWISE,
    CLOCKWISE,
    NEAR,
    WAITS,
    Aim,
    manners,
)


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
