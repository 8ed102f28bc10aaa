"""A life's mistakes that only show while a protocol runs: one clear line, never a
traceback; cases that are not mistakes; and what a life tells tools of authors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from cheesebench.errors import ProtocolError, StepAfterEndError
from cheesebench.interfaces import FORWARD, ROTATE_LEFT, RUNNING, STAY
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


ARMS = """
arena: {map: "l.S.r", legend: {S: box, l: left, r: right}, groups: {arm: [left, right]}, headings: 4}
vars: {v: %s}
start: {at: box, face: E}
trial:
  limit: 9
  start: one
  watch: [%s]
  states:
    one: {rules: [%s]}
    two: {show: {left: "*"}, rules: [{after: 1, end: over}]}
"""
LEFT, RIGHT = (0, 0), (4, 0)


def arms(*rules: str, v: int = 0, watch: str = "") -> str:
    return ARMS % (v, watch, ", ".join(rules))


UNPAID = "{enter: left, end: bad}"
IF_V = "{enter: left, if: v == 1, reward: 2, end: good}"
PAID = "{enter: right, reward: 1, end: good}"


@pytest.mark.parametrize(
    ("text", "goals"),
    [
        (arms(UNPAID), set()),
        (arms(UNPAID, PAID), {RIGHT}),
        (arms("{enter: arm, reward: 1, end: good}"), {LEFT, RIGHT}),
        (arms("{enter: right, reward: -1, end: bad}"), set()),
        (arms("{act: FORWARD, reward: 9}", PAID), {RIGHT}),
        (arms("{inside: left, reward: 2}", PAID), {LEFT}),
        # The first rule that would fire counts, whatever a later one pays.
        (arms(IF_V, UNPAID, PAID), {RIGHT}),
        (arms(IF_V, UNPAID, PAID, v=1), {LEFT}),
        (arms(UNPAID, IF_V, PAID, v=1), {RIGHT}),
        # A reward that must be computed may be the largest.
        (arms(IF_V, PAID.replace("1", "v + 1"), v=1), {RIGHT}),
        # All rules of `watch` fire.
        (arms(UNPAID, PAID, watch="{enter: left, reward: 3}"), {LEFT}),
        (arms(PAID, watch="{enter: left, if: v == 1, reward: 3}"), {RIGHT}),
        (arms(PAID, watch="{enter: arm, if: it == left, reward: 3}"), {LEFT}),
    ],
)
def test_goals_are_where_the_largest_reward_would_be_paid_now(
    live: Live, text: str, goals: set[tuple[int, int]]
) -> None:
    life = live(text)
    life.begin_trial()
    life.it = "right"
    assert life.goals == goals
    assert life.it == "right"


def test_a_life_tells_where_its_subject_is_and_what_it_would_see(live: Live) -> None:
    life = live(arms("{act: STAY, place: box}", UNPAID, PAID))
    seen = life.begin_trial()
    assert (life.location.x, life.location.y) == (2, 0)
    assert (life.location.heading, life.location.state) == (90, "one")
    assert life.standing == (2, 0, 2)
    for action in (FORWARD, ROTATE_LEFT):
        picture = life.foreseen(action)
        assert picture == life.twin().step(action)[0] != seen
    assert life.foreseen(STAY) == seen
    life.step(FORWARD)
    assert (life.standing, life.placed) == ((3, 0, 2), False)
    life.step(STAY)
    assert (life.standing, life.placed) == ((2, 0, 2), True)
    life.step(ROTATE_LEFT)
    assert (life.standing, life.placed) == ((2, 0, 0), False)


def test_another_state_is_seen_without_entering_it(live: Live) -> None:
    life = live(arms(UNPAID, PAID))
    life.begin_trial()
    own, other = life.scene_of("one"), life.scene_of("two")
    assert (own.tiles[0][0].glyph, other.tiles[0][0].glyph) == (".", "*")
    assert life.state == "one"
    assert life.force("two").startswith("*")
    assert life.state == "two"
    assert life.step(STAY)[2] != RUNNING


def test_what_happened_in_a_trial_is_counted_and_its_end_can_be_asked(
    live: Live,
) -> None:
    life = live(arms(UNPAID, "{enter: arm, reward: 1, end: good}"))
    life.begin_trial()
    with pytest.raises(StepAfterEndError, match="has not ended"):
        life.ending()
    life.step(FORWARD)
    assert (life.happenings, life.events) == (0, [])
    life.step(FORWARD)
    assert life.happenings == 1
    (event,) = life.events
    assert (event.step, event.state, event.event) == (2, "one", "enter arm (right)")
    assert life.ending().outcome == "good"
    assert life.ending().success is None


def test_luck_may_be_drawn_anew(live: Live) -> None:
    life = live(arms("{act: STAY, p: 0.5, end: good}", "{act: STAY, end: bad}"))
    life.begin_trial()

    def outcome(number: int) -> str | None:
        twin = life.twin()
        twin.use_alternative_stream(number)
        twin.step(STAY)
        return twin.outcome

    found = [outcome(number) for number in range(40)]
    assert found == [outcome(number) for number in range(40)]
    assert 10 < found.count("good") < 30
    assert found.count("good") + found.count("bad") == 40


def test_lives_of_equal_course_have_the_same_future(live: Live) -> None:
    life = live(arms("{act: STAY, set: {v: v + 1}}", UNPAID, PAID))
    life.begin_trial()
    twin = life.heir()
    assert twin.carried() == life.carried()
    assert twin.course() == life.course()
    for action in (STAY, ROTATE_LEFT, FORWARD):
        other = life.heir()
        other.step(action)
        assert other.course() != life.course()
        same = life.heir()
        same.step(action)
        assert (same.course(), same.carried()) == (other.course(), other.carried())
    assert life.carried() != other.carried()
    twin.step(STAY)
    assert twin.values["v"] == 1
    assert life.values["v"] == 0


def test_it_is_put_on_a_square_and_keeps_its_heading(live: Live) -> None:
    life = live(arms("{act: STAY, put: [v + 1, 0]}", UNPAID, PAID))
    life.begin_trial()
    life.step(ROTATE_LEFT)
    picture = life.step(STAY)[0]
    assert (life.standing, life.placed) == ((1, 0, 0), True)
    assert picture.index("↑") == 1
    life.step(ROTATE_LEFT)
    assert (life.standing, life.placed) == ((1, 0, 6), False)
    life.step(FORWARD)
    assert life.outcome == "bad"


def test_a_trial_begins_without_the_events_of_the_last_one(live: Live) -> None:
    life = live(arms(UNPAID, PAID))
    life.begin_trial()
    life.step(FORWARD)
    life.step(FORWARD)
    assert (life.outcome, life.happenings, life.steps) == ("good", 1, 2)
    life.begin_trial()
    assert (life.happenings, life.steps, life.standing) == (0, 0, (2, 0, 2))
