"""Counts over the last trials: in lives, in their copies, and in the lesion audit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions import Order, measure
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification
from tests.arenas import TWO_ARMS

Live = Callable[..., ArenaSubject]
CHOICE = (
    TWO_ARMS
    + """\
vars: {food: {init: left, per: subject}}
start: {at: box, face: N}
trial:
  limit: 9
  start: [{if: "recent(success, 3) == 3", go: reverse}, run]
  states:
    reverse: {freeze: true, rules: [{after: 1, go: run, set: {food: right}}]}
    run: {rules: [{enter: arm, if: it == food, reward: 1, end: found}, {enter: arm, end: empty}]}
schedule: {main: {trials: 12}}
success: last == found
measures: {three: "recent(success, 3)", two: "recent(empty, 2)", timeouts: "recent(timeout, 1)"}
"""
)
LEFT, RIGHT = [1, 1, 0, 0], [2, 2, 0, 0]


def lived(life: ArenaSubject, *trials: list[int]) -> list[tuple[object, ...]]:
    """Return the measures of trials with these actions; each continues until the trial
    ends.
    """
    found: list[tuple[object, ...]] = []
    for actions in trials:
        life.begin_trial()
        going = iter([3, *actions] if life.state == "reverse" else actions)
        while life.outcome is None:
            life.step(next(going, 3))
        found.append(tuple(life.ending().measures.values()))
    return found


def test_the_last_trials_are_counted_and_this_one_is_the_last_once_it_has_ended(
    live: Live,
) -> None:
    found = lived(live(CHOICE), LEFT, RIGHT, LEFT, LEFT, LEFT, LEFT, LEFT, [])
    threes = [(1, 0, 0), (1, 1, 0), (2, 1, 0), (2, 0, 0), (3, 0, 0)]
    assert found[:5] == threes
    # After three successes in a row, food is on the right.
    assert found[5:] == [(2, 1, 0), (1, 2, 0), (0, 1, 1)]


def test_a_copy_counts_by_itself(live: Live) -> None:
    life = live(CHOICE)
    lived(life, LEFT, LEFT)
    life.begin_trial()
    twin = life.twin()
    for one, actions in ((life, LEFT), (twin, RIGHT)):
        for action in actions:
            one.step(action)
    assert life.ending().measures["three"] == 3
    assert twin.ending().measures["three"] == 2


@pytest.mark.parametrize(
    ("lesion", "least", "most"), [("intact", 0.99, 1.0), ("blind", 0.9, 1.0)]
)
def test_the_lesion_audit_knows_that_food_moves(
    lesion: str, least: float, most: float, load: Callable[[str], Specification]
) -> None:
    """A subject that knows the file goes left three times, then right; it needs only
    reward for that.
    """
    found = measure(
        ArenaParadigm(load(CHOICE)), Order(Lesion.parse(lesion), 0.05, 0)
    ).found
    assert least <= found.value <= most
