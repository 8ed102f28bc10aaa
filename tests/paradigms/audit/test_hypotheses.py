"""Draws whose rows a script chooses: all orders, each with its chance."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cheesebench.interfaces import STAY
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.beliefs import World
from cheesebench.paradigms.arena.audit.hypotheses import (
    Hypothesis,
    OpenSequence,
    Script,
)
from cheesebench.protocol.specification import DrawSpec
from tests.paradigms.audit.test_relevance import (
    BOTH,
    MOVED_ON,
    READ_LATE,
    accepted,
    pair,
    small,
)

Plant = Callable[..., ArenaParadigm]


def draw(order: str, rows: str, **changes: Any) -> DrawSpec:
    """Return a draw with a row for each letter."""
    fields: dict[str, Any] = {"pick": None, "copies": 1, "max_run": None}
    return DrawSpec(
        name="d",
        per="trial",
        order=order,
        columns=("v",),
        rows=tuple((letter,) for letter in rows),
        keep_if=None,
        **(fields | changes),
    )


def orders(spec: DrawSpec, number: int, **given: Any) -> dict[str, float]:
    """Return the chances of all sequences of that many rows."""
    script, found = Script(), defaultdict[str, float](float)

    def drawn() -> str:
        sequence = OpenSequence(spec, script)
        return "".join(str(sequence.next(**given)[0]) for _ in range(number))

    for chance, row in script.all_of(drawn):
        assert row not in found
        found[row] += chance
    assert sum(found.values()) == pytest.approx(1)
    return dict(found)


def longest(row: str) -> int:
    return max(len(list(run)) for _, run in itertools.groupby(row))


@pytest.mark.parametrize(
    ("rows", "copies", "most"),
    [("ab", 2, None), ("ab", 2, 1), ("ab", 3, 2), ("aab", 1, 1), ("abc", 2, 1)],
)
def test_a_shuffled_block_has_all_orders_with_short_runs_equally_often(
    rows: str, copies: int, most: int | None
) -> None:
    items = [(number, row) for number, row in enumerate(rows) for _ in range(copies)]
    permitted = Counter(
        "".join(row for _, row in order)
        for order in itertools.permutations(items)
        if most is None or longest("".join(row for _, row in order)) <= most
    )
    spec, script = draw("shuffle", rows, copies=copies, max_run=most), Script()

    def drawn() -> str:
        sequence = OpenSequence(spec, script)
        return "".join(str(sequence.next()[0]) for _ in items)

    found = defaultdict[str, float](float)
    # Two rows may have the same first value.
    for chance, order in script.all_of(drawn):
        found[order] += chance
    assert dict(found) == pytest.approx(
        {order: often / permitted.total() for order, often in permitted.items()}
    )


def test_a_run_goes_on_in_the_next_block() -> None:
    found = orders(draw("shuffle", "ab", copies=1, max_run=1), 4)
    assert found == pytest.approx({"abab": 0.5, "baba": 0.5})
    # No order of the second block has only short runs, so any row may come next.
    assert len(orders(draw("shuffle", "ab", copies=2, max_run=1), 6)) == 2


def test_independent_rows_have_short_runs() -> None:
    free = orders(draw("random", "ab"), 2)
    assert free == pytest.approx(dict.fromkeys(["aa", "ab", "ba", "bb"], 0.25))
    found = orders(draw("random", "ab", max_run=2), 3)
    assert found == pytest.approx(
        {"aab": 0.25, "bba": 0.25} | dict.fromkeys(["aba", "abb", "bab", "baa"], 0.125)
    )


def test_a_cycle_and_a_subject_have_no_choice() -> None:
    assert orders(draw("cycle", "abc"), 5) == {"abcab": 1.0}
    assert orders(draw("by_subject", "abc"), 3, subject=4) == {"bbb": 1.0}
    assert orders(draw("random", "a"), 3) == {"aaa": 1.0}


def test_members_that_are_dealt_come_in_any_order() -> None:
    script = Script()
    spec = replace(draw("shuffle", ""), columns=("v", "w"), sample="set")
    ways = list(script.all_of(lambda: OpenSequence(spec, script).next(("x", "y", "z"))))
    assert {row: round(chance, 12) for chance, row in ways} == dict.fromkeys(
        itertools.permutations("xyz", 2), round(1 / 6, 12)
    )


@pytest.mark.parametrize(
    ("spec", "same", "other"),
    [
        (draw("cycle", "abc"), 4, 5),
        (draw("shuffle", "ab", copies=2), 5, 6),
        (draw("random", "ab"), 7, 0),
        (draw("by_subject", "ab"), 2, 0),
        (draw("random", "ab", max_run=2), 3, 0),
    ],
)
def test_a_key_is_what_the_next_rows_depend_on(
    spec: DrawSpec, same: int, other: int
) -> None:
    def key(number: int) -> Any:
        sequence = OpenSequence(spec, Script())
        for _ in range(number):
            sequence.next()
        twin = sequence.copy()
        sequence.next()
        assert twin.count == number
        return twin.key()

    assert key(1) == key(same) or spec.max_run
    assert key(1) != key(other)
    assert key(0) != key(1)


def test_a_script_is_followed_and_then_the_likeliest_is_taken() -> None:
    script = Script()
    script.written = [1]
    assert [script.choose((0.7, 0.3)), script.choose((0.2, 0.8))] == [1, 1]
    assert script.taken == [(1, (0.7, 0.3)), (1, (0.2, 0.8))]
    assert [script.happens(p, "") for p in (-1.0, 0.0, 1.0, 2.0, 0.6, 0.4)] == [
        False, False, True, True, True, False,
    ]  # fmt: skip
    assert len(script.taken) == 4
    assert script.below(3, "") == 0
    assert script.taken[-1] == (0, (1 / 3,) * 3)
    script.is_mute = True
    assert (script.choose((0.2, 0.8)), script.below(3, "")) == (1, 0)
    assert len(script.taken) == 5


@pytest.mark.parametrize("alike", [False, True])
def test_one_heading_may_stand_for_all(plant: Plant, alike: bool) -> None:
    world = World(plant(), Lesion.parse("intact"), faces_alike=alike)
    begun = [
        (world.nodes.life(node, 0).values["side"], world.nodes.life(node, 0).heading)
        for belief in world.begin(world.prior()).values()
        for node, _ in belief
    ]
    assert len({side for side, _ in begun}) == 2
    assert len({heading for _, heading in begun}) == (1 if alike else 8)


def begun(paradigm: ArenaParadigm) -> list[Hypothesis]:
    """Return the hypotheses at the beginning of the first trial."""
    world = World(paradigm, Lesion.parse("intact"))
    parts = world.begin(world.prior()).values()
    return [world.nodes.life(node, 0) for belief in parts for node, _ in belief]


def test_a_clock_is_due_as_long_as_the_state_lasts(plant: Plant) -> None:
    life = begun(plant())[0]
    pose = life.pose
    assert (life.due, life.entered, life.steps, life.limit) == (3, 0, 0, 40)
    assert [life.clocks(ahead) for ahead in (0, 2)] == [(0, 0), (2, 0)]
    assert [life.quietly(pose, ahead, STAY) for ahead in range(3)] == [pose, pose, None]
    later = life.further(pose, 2)
    assert (later.steps, later.due, later.clocks(0)) == (2, 1, (2, 0))
    # The clock of a state does not say how long the trial has lasted.
    moved = life.at(20, 30)
    assert (moved.steps, moved.limit, moved.due, moved.entered) == (20, 30, 3, 20)
    moved.shorten(22)
    assert moved.limit == 22
    assert [moved.quietly(pose, ahead, STAY) for ahead in range(2)] == [pose, None]
    assert (life.steps, life.limit, life.due) == (0, 40, 3)
    for _ in range(3):
        assert life.happenings == 0
        life.step(STAY)
    assert (life.state, life.happenings, life.events) == ("choice", 1, ())
    # Nothing in the choice depends on a clock.
    assert life.clocks(5) == (0, 0)


def test_hypotheses_that_differ_in_a_draw_share_the_rest(plant: Plant) -> None:
    lives = begun(plant())
    found = {str(one.values["side"]): one for one in lives}
    left, right = found["left"], found["right"]
    assert left.shared == right.shared
    assert left.matters != right.matters
    assert left.kind != right.kind
    assert (left.named, right.named) == ({"side": "left"}, {"side": "right"})
    assert left.stage == ("cue",)
    dated = plant(("enter: side, reward", 'enter: side, if: "trial < 9", reward'))
    assert begun(dated)[0].stage == ("cue", 1)


def test_what_is_drawn_later_is_told_by_its_rows() -> None:
    late = ArenaParadigm(accepted(pair(MOVED_ON, READ_LATE)))
    (life,) = begun(late)
    assert life.drawn_later() == (2,)
    assert life.values["b"] is None
    early = ArenaParadigm(accepted(small(BOTH)))
    assert {one.drawn_later() for one in begun(early)} == {()}


def test_a_life_begins_trials_until_its_schedule_is_over() -> None:
    (life, *_) = begun(ArenaParadigm(accepted(small(BOTH, draw=""))))
    keys = []
    for number in range(1, 5):
        assert life.whereabouts is None
        while life.step(STAY)[2] == 0:
            pass
        _, key = life.beginning()
        keys.append(key)
        if number < 4:
            assert life.begin_trial() is not None
            assert (life.happenings, life.steps) == (0, 0)
    assert keys[-1] is None
    assert None not in keys[:-1]
    # The second trials of both blocks begin alike, but the blocks do not.
    assert keys[0] != keys[1] != keys[2]
    carried = small(BOTH, draw="").replace("face: E", "face: E, carry: true")
    (life, *_) = begun(ArenaParadigm(accepted(carried)))
    assert life.whereabouts == (life.pose, "one")
