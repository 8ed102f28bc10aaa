"""One line read as a list: its items, and why it lists nothing or ends early."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.plugins.agents.llm.lists import (
    MAX_COUNT,
    Line,
    announcement,
    bare_line,
    labelled_line,
    listed_line,
)


def told(line: Line) -> str:
    """Return the letters of each item, ``~`` after an explained one; then the flags."""
    items = (
        "".join("FLRS"[action] for action in item.actions) + "~" * item.explained
        for item in line.items
    )
    cut = "cut" if line.cut else ""
    flags = ("choice" if line.choice else "", cut, "?" * line.unknown)
    return " ".join(filter(None, (*items, *flags)))


@pytest.mark.parametrize(
    ("read", "line", "said"),
    [
        (labelled_line, "FORWARD, rotate_left", "F L"),
        (labelled_line, "I will go FORWARD x2 then LEFT (to see), STAY", "FF L~ S"),
        (labelled_line, "FORWARD or LEFT", "choice"),
        (labelled_line, "not FORWARD", "choice"),
        (labelled_line, "FORWARD, jump, LEFT", "F cut ?"),
        (labelled_line, "FORWARD - to look, LEFT", "F~ L"),
        (labelled_line, "FORWARD because it is near, left", "F~"),
        (labelled_line, "FORWARD because, LEFT", "F~ L"),
        (labelled_line, "FORWARD because, BACKWARD", "F~ cut ?"),
        (labelled_line, "FORWARD, I would then like to go to the far end, LEFT", "F cut"),
        (labelled_line, "F3", "FFF"),
        (labelled_line, "FORWARD 3.", "FFF"),
        (labelled_line, "F x3, L 2 times, twice R", "FFF LL cut ?"),
        (labelled_line, "FORWARD x200", "F" * MAX_COUNT),
        (labelled_line, "STAY: reward 0", ""),
        (labelled_line, "FORWARD; ROTATE_LEFT! STAY.", "F L S"),
        (labelled_line, "", ""),
        (listed_line, "- FORWARD: to see", "F~"),
        (listed_line, "1. FORWARD - go", "F~"),
        (listed_line, "FORWARD and look around", ""),
        (listed_line, "left, right", "L R"),
        (bare_line, "FORWARD, STAY", "F S"),
        (bare_line, "left, right", ""),
        (bare_line, "FORWARD?", "choice"),
        (announcement, "I will go forward, then STAY", "F S"),
        (announcement, "Going FORWARD would be unwise", ""),
        (announcement, "FORWARD", ""),
        (announcement, "I will STAY here", "S~"),
        (announcement, "Let's move forward with this.", ""),
    ],
)  # fmt: skip
def test_a_line_is_read_as_a_list(
    read: Callable[[str], Line], line: str, said: str
) -> None:
    assert told(read(line)) == said
