"""Mistakes that only show while a protocol runs: one clear line, never a traceback; and
cases that are not mistakes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import RUNNING, STAY
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.schedule import DrawSequence, Stream
from cheesebench.protocol.specification import DrawSpec

Live = Callable[..., ArenaSubject]

CORRIDOR = """
arena: {map: "S.d.Z", legend: {S: box, d: {door: gate}, Z: goal}}
vars: {other: none, v: %s}
start: {at: %s, face: %s}
trial:
  limit: %s
  start: first
  states:
    first: {rules: [{after: 2, set: {v: other}, go: second}]}
    second: {%s}
"""


def text(
    initial: str = "none",
    *,
    at: str = "box",
    face: str = "E",
    limit: object = 9,
    second: str = "",
    other: str = "none",
) -> str:
    corridor = CORRIDOR % (
        initial,
        at,
        face,
        limit,
        second or "rules: [{enter: v, end: found}]",
    )
    return corridor.replace("other: none", f"other: {other}")


def play(life: ArenaSubject) -> None:
    while life.begin_trial() is not None:
        while life.step(STAY)[2] == RUNNING:
            pass
        life.result()


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (
            text(at="v"),
            "The subject would be placed at 'none', which is not floor. Name a zone.",
        ),
        (
            text(second="place: v"),
            "The subject would be placed at 'none', which is not floor, in the state 'second'. Name a zone.",
        ),
        (
            text("9", second="put: [v, 1]", other="9"),
            "The subject would be placed at column 9, row 1, which is not floor, in the state 'second'. Give the column",
        ),
        (
            text("N", face="v", second="place: box"),
            "'start: face' is 'none', which is not a heading here, in the state",
        ),
        (
            text("gate", second="close: v", other="goal"),
            "In the state 'second', 'goal' is closed, but is not a door.",
        ),
        (text("x", second="show: {goal: v}, set: {v: block}", other="x"), ""),
        (
            text("3", second="each: {reward: 1 / (v - v)}", other="2"),
            "A reward is nan, in the state 'second'.",
        ),
        (
            text("0", limit="v", other="0", second="freeze: true"),
            "The limit of the trial is 0. Set its variable to",
        ),
    ],
)
def test_a_mistake_is_one_line(live: Live, protocol: str, message: str) -> None:
    if not message:
        with pytest.raises(ProtocolError, match="E133"):
            # A block is no glyph, which the loader already knows.
            live(protocol)
        return
    life = live(protocol)
    with pytest.raises(ProtocolError) as caught:
        play(life)
    assert str(caught.value).startswith(f"film.protocol.yaml: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "gap",
    ["1 / 0", "1e99 * 1e99 * 1e99 * 1e99", "0 - 1e99 * 1e99 * 1e99 * 1e99", "v * 1e60"],
)
def test_a_time_that_never_comes_is_the_limit(live: Live, gap: str) -> None:
    life = live(text("3", second=f"rules: [{{after: {gap}, end: found}}]", other="3"))
    play(life)
    assert life.outcome == ("found" if gap.startswith("0 -") else "timeout")


def test_nothing_is_no_member(live: Live) -> None:
    life = live(
        text(second="freeze: true")
        .replace("vars: {", "vars: {seen: [], kept: [goal], ")
        .replace("set: {v: other}", "add: {seen: v, kept: other}, set: {v: other}")
    )
    play(life)
    assert (life.values["seen"], life.values["kept"]) == (
        frozenset(),
        frozenset({"goal"}),
    )


def test_none_empties_a_set(live: Live) -> None:
    life = live(text("[goal]").replace("set: {v: other}", "set: {v: none}"))
    play(life)
    assert life.values["v"] == frozenset()
    with pytest.raises(ProtocolError, match="E133"):
        live(text("[goal]", other="none"))  # a name with the value none is still a name


@pytest.mark.parametrize(
    ("values", "copies", "longest"),
    [
        ("ab", 20, 1),
        ("aab", 5, 2),
        ("abc", 9, 1),
        ("aaabcd", 9, 1),
        ("ab", 5, 3),
        ("abbb", 1, 3),
    ],
)
def test_runs_are_kept_across_blocks_whatever_the_odds(
    values: str, copies: int, longest: int
) -> None:
    rows = tuple((value,) for value in values)
    draw = DrawSpec("d", "trial", "shuffle", ("x",), rows, None, copies, longest, None)
    size = len(values) * copies
    lives = []
    for seed in range(5):
        sequence = DrawSequence(draw, Stream(seed, "p", 0), 0)
        drawn = "".join(str(sequence.next()[0]) for _ in range(size * 4))
        lives.append(drawn)
        assert max(len(list(run)) for _, run in itertools.groupby(drawn)) <= longest
        for start in range(0, len(drawn), size):
            assert sorted(drawn[start : start + size]) == sorted(values * copies)
    assert len(set(lives)) > 1
