"""Bounds where only events count: what they are, and where they do not apply."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.beliefs import TooManyError, World
from cheesebench.paradigms.arena.audit.walks import (
    Walks,
    shares,
    without_deadlines,
)

Plant = Callable[..., ArenaParadigm]
LAST = "- {enter: arm, end: error}"


def more(rule: str) -> tuple[str, str]:
    """Return a change: a further rule of the choice."""
    return LAST, f"{LAST}\n        - {rule}"


def bound(paradigm: ArenaParadigm, lesion: str, effort: float = 1.0) -> float:
    world = World(paradigm, Lesion.parse(lesion))
    begun = world.begin(world.prior())
    parts = {percept: one for percept, one in begun.items() if percept is not None}
    return Walks(world, effort).value(parts)


@pytest.mark.parametrize("changes", [(), (more("{after: 30, end: error}"),)])
@pytest.mark.parametrize(
    ("lesion", "value"), [("intact", 1.0), ("blind", 0.5), ("hide=arm", 0.5)]
)
def test_a_choice_of_two_is_bounded(
    plant: Plant, changes: tuple[tuple[str, str], ...], lesion: str, value: float
) -> None:
    assert bound(plant(*changes), lesion) == pytest.approx(value)


@pytest.mark.parametrize(
    "change",
    [
        more("{after: 30, end: correct}"),
        more("{act: STAY, end: error}"),
        more("{enter: box, p: 0.5, end: error}"),
        ("success: last == correct", "success: last != error"),
    ],
)
def test_where_waiting_may_help_no_bound_applies(
    plant: Plant, change: tuple[str, str]
) -> None:
    with pytest.raises(TooManyError):
        bound(plant(change), "blind")


def test_a_bound_takes_effort(plant: Plant) -> None:
    with pytest.raises(TooManyError):
        bound(plant(), "intact", 1e-6)


def test_only_clocks_that_end_in_failure_are_removed(plant: Plant) -> None:
    plain = plant().specification
    assert without_deadlines(plain) is plain
    late = plant(more("{after: 30, end: error}")).specification
    found = without_deadlines(late)
    assert [len(one.states["choice"].rules) for one in (late, found)] == [3, 2]
    assert found.states["cue"] is late.states["cue"]
    kept = plant(more("{after: 30, end: correct}")).specification
    assert without_deadlines(kept) is kept


def test_equal_shares_have_equal_keys() -> None:
    whole = shares([("a", 1.0), ("b", 3.0)])
    assert shares([("b", 0.75), ("a", 0.125), ("a", 0.125)]) == whole
    assert shares([("a", 3.0), ("b", 1.0)]) != whole
    assert whole == frozenset({("a", 0.25), ("b", 0.75)})
