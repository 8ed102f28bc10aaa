"""Rows of a trace, from lives that show more or less of themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.chat import Picture
from cheesebench.commands.trace import (
    MOST_CHANGES,
    Trace,
    _changes_of_line,
    _end,
    _value,
    changes,
)
from cheesebench.interfaces import RUNNING, TERMINATED, Pose, TaskEvent


class Bare:
    """A life that shows nothing but its observations."""

    waiting = False

    def __init__(self, *steps: tuple[str, float, int]) -> None:
        self.steps = list(steps)

    def step(self, action: int) -> tuple[str, float, int]:
        return self.steps.pop(0)

    def result(self) -> Any:
        return SimpleNamespace(outcome="done", success=True, events=self.events)

    @property
    def events(self) -> list[TaskEvent]:
        return []


class Open(Bare):
    """A life with a place, a state, variables and rules that fire."""

    block, session, trial, state, happenings = "main", 1, 1, "cue", 0
    goals = frozenset[tuple[int, int]]()

    def __init__(self, *steps: tuple[str, float, int]) -> None:
        super().__init__(*steps)
        self.values: dict[str, object] = {"n": 1, "w": None}
        self.location = Pose(1, 2, 90, "cue")
        self.fired = [TaskEvent(0, "cue", "begin", "x:1")]

    def step(self, action: int) -> tuple[str, float, int]:
        """Go forward only from the second step on, where two rules fire."""
        if len(self.steps) < 3 and action == 0:
            self.location = Pose(2, 2, 90, "run")
            self.state = "run"
            self.values["n"] = 2
            self.fired = [
                *self.fired,
                TaskEvent(2, "cue", "after 2", "x:2"),
                TaskEvent(2, "cue", "enter", "x:3"),
            ]
        return super().step(action)

    @property
    def events(self) -> list[TaskEvent]:
        return self.fired


def rows(trace: Trace) -> list[tuple[object, ...]]:
    return [tuple(row) for row in trace.rows]


def test_a_life_that_shows_nothing_has_steps_and_rewards() -> None:
    life = Bare(("a", 0.0, RUNNING), ("b", -0.5, RUNNING), ("b", 1.0, TERMINATED))
    trace = Trace(cast(Any, life), "a")
    actions = [0, 1, 3, 2]
    result = trace.play(actions)
    assert actions == [2]
    assert result is not None
    assert rows(trace) == [
        (0, "", "", "", "", ""),
        (1, "FORWARD", "", "", "", ""),
        (2, "ROTATE_LEFT", "(0, 0) a to b", "-0.5", "", ""),
        (3, "STAY", "", "+1", "", ""),
    ]
    short = Trace(cast(Any, Bare(("a", 0.0, RUNNING))), "a")
    assert short.play([0]) is None


def test_a_life_in_an_arena_says_where_it_is_and_what_fired() -> None:
    life = Open(("a", 0.0, RUNNING), ("a", 0.0, RUNNING), ("a", 0.0, TERMINATED))
    trace = Trace(cast(Any, life), "a")
    assert rows(trace) == [
        (0, "", "at (1, 2), facing E", "", "cue", "n = 1"),
        ("", "", "", "", "", "w = none"),
    ]
    trace.play([0])
    life.waiting = False
    trace.play([0])
    life.waiting = True
    trace.play([0])
    assert rows(trace)[2:] == [
        (1, "FORWARD (blocked)", "", "", "cue", ""),
        (1, "FORWARD", "", "", "cue -> run", "x:2: after 2"),
        ("", "", "", "", "", "x:3: enter"),
        ("", "", "", "", "", "n = 2"),
        (1, "FORWARD (frozen)", "", "", "run", "x:2: after 2"),
        ("", "", "", "", "", "x:3: enter"),
    ]


@pytest.mark.parametrize(
    ("success", "said"),
    [(True, ", success."), (False, ", no success."), (None, ".")],
)
def test_how_a_trial_ends(success: bool | None, said: str) -> None:
    result = cast(Any, SimpleNamespace(outcome="found", success=success))
    assert _end(result) == f"The trial ends: found{said}"
    assert _end(None) == "No actions are left, but the trial has not ended."


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "none"), (3, "3"), (frozenset("ba"), "[a, b]"), ("left", "left")],
)
def test_values_as_they_are_written(value: object, said: str) -> None:
    assert _value(value) == said


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("ab", "ab", ""),
        ("ab", "a ", "(1, 0) b to blank"),
        ("##\nquiet", "##\ntone", "line 1: quiet -> tone"),
        ("a\nb", "a", "line 1: (gone)"),
        ("a", "a\n b", "line 1: b"),
        ("abcd", "wxyz", "(0, 0) a to w; (1, 0) b to x; (2, 0) c to y; (3, 0) d to z"),
        ("abcde", "vwxyz", "line 0: vwxyz"),
        ("abcde", "     ", "line 0: (empty)"),
        ("ab\nab\nab", "cd\ncd\ncd", "6 squares or lines"),
        ("ab\nab", "cd\ncd", "(0, 0) a to c; (1, 0) b to d; (0, 1) a to c; (1, 1) b to d"),
    ],
)  # fmt: skip
def test_what_changed_between_two_pictures(before: str, now: str, said: str) -> None:
    assert changes(before, now) == said
    assert MOST_CHANGES == 4


def test_pictures_change_as_a_whole() -> None:
    old, new = Picture(b"1", "go"), Picture(b"2", "go")
    assert changes(old, new) == "the picture"
    assert changes(old, Picture(b"2", " stop")) == "the picture; text: stop"
    assert changes(old, Picture(b"1", "go")) == ""
    assert _changes_of_line(3, "a", "b", 1) == ["(0, 3) a to b"]
