"""Blocks that end on a condition: in lives, in lanes, in the lesion audit's model of the schedule."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.errors import OptionError
from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions.ceilings import Order, measure
from cheesebench.paradigms.arena.batch import MANY, vector_class
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.paradigms.arena.vector import ScalarLanes
from cheesebench.protocol import Specification
from tests.arenas import TWO_ARMS

Live = Callable[..., ArenaSubject]
CHOICE = (
    TWO_ARMS
    + """\
vars: {food: left}
start: {at: box, face: N}
trial:
  limit: 9
  start: run
  states:
    run:
      rules:
        - {enter: arm, if: it == food, reward: 1, end: found}
        - {enter: arm, end: empty}
schedule:
  one: {trials: 9, until: UNTIL}
  two: {trials: 9, set: {food: right}}
success: last == found
"""
)
SOON, LATE, WRONG = [1, 1, 0, 0], [1, 1, 3, 3, 0, 0], [2, 2, 0, 0]


def blocks(life: ArenaSubject, *trials: list[int]) -> list[str]:
    found = []
    for actions in trials:
        life.begin_trial()
        found.append(life.block)
        for action in actions:
            life.step(action)
        assert life.outcome is not None
    life.begin_trial()
    return [*found, life.block]


@pytest.mark.parametrize(
    ("until", "trials", "expected"),
    [
        ("{if: last == found and steps < 5, count: 2, of: 3}", [SOON, LATE, SOON], ["one", "one", "one", "two"]),
        ("{if: last == found and steps < 5, count: 2}", [SOON, LATE, SOON, SOON], ["one", "one", "one", "one", "two"]),
        ("{if: 'recent(success, 3) == 2', count: 1}", [SOON, WRONG, LATE], ["one", "one", "one", "two"]),
        ("{outcome: found, count: 2}", [SOON, WRONG, SOON, SOON], ["one", "one", "one", "one", "two"]),
    ],
)
def test_a_block_ends_on_a_condition(until: str, trials: list[list[int]], expected: list[str], live: Live) -> None:
    assert blocks(live(CHOICE.replace("UNTIL", until)), *trials) == expected


def test_many_lanes_fall_back(load: Callable[[str], Specification]) -> None:
    made = ArenaParadigm(load(CHOICE.replace("UNTIL", "{if: steps < 5, count: 2}")))
    assert isinstance(vector_class(made.specification, made)(MANY)._lanes, ScalarLanes)
    with pytest.raises(OptionError, match="a block ends on a condition, which only the scalar kernel supports"):
        vector_class(made.specification, made)(MANY, compiled=True)


def test_the_lesion_audit_follows_the_schedule(load: Callable[[str], Specification]) -> None:
    """The blind know from reward when the block ends, and then go the other way."""
    made = ArenaParadigm(load(CHOICE.replace("UNTIL", "{if: last == found and steps < 5, count: 3}")))
    assert measure(made, Order(Lesion.parse("blind"), 0.05, 0)).found.value == 1


def test_the_lesion_audit_knows_which_block_it_is(load: Callable[[str], Specification]) -> None:
    """What pays in one block does not in the other: somebody who knows the file is right in every trial."""
    text = CHOICE.replace("UNTIL", "{outcome: found, count: 3, of: 3}")
    text = text.replace("it == food", "(it == left) == (block == one)")
    made = ArenaParadigm(load(text))
    assert measure(made, Order(Lesion.parse("intact"), 0.05, 0)).found.value == 1
    assert measure(made, Order(Lesion.parse("blind"), 0.05, 0)).found.value == 1
