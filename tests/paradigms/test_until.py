"""Blocks that end on a condition: in lives, and in the lesion audit's model of the
schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.lesions import Order, measure
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification
from cheesebench.protocol.specification import UntilSpec
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
        (
            "{if: last == found and steps < 5, count: 2, of: 3}",
            [SOON, LATE, SOON],
            ["one", "one", "one", "two"],
        ),
        (
            "{if: last == found and steps < 5, count: 2}",
            [SOON, LATE, SOON, SOON],
            ["one", "one", "one", "one", "two"],
        ),
        (
            "{if: 'recent(success, 3) == 2', count: 1}",
            [SOON, WRONG, LATE],
            ["one", "one", "one", "two"],
        ),
        (
            "{outcome: found, count: 2}",
            [SOON, WRONG, SOON, SOON],
            ["one", "one", "one", "one", "two"],
        ),
    ],
)
def test_a_block_ends_on_a_condition(
    until: str, trials: list[list[int]], expected: list[str], live: Live
) -> None:
    assert blocks(live(CHOICE.replace("UNTIL", until)), *trials) == expected


def test_the_lesion_audit_follows_the_schedule(
    load: Callable[[str], Specification],
) -> None:
    """The blind know from reward when the block ends, and then go the other way."""
    made = ArenaParadigm(
        load(CHOICE.replace("UNTIL", "{if: last == found and steps < 5, count: 3}"))
    )
    assert measure(made, Order(Lesion.parse("blind"), 0.05, 0)).found.value == 1


def test_the_lesion_audit_knows_which_block_it_is(
    load: Callable[[str], Specification],
) -> None:
    """The paying arm differs between blocks; a subject that knows the file is right in
    every trial.
    """
    text = CHOICE.replace("UNTIL", "{outcome: found, count: 3, of: 3}")
    text = text.replace("it == food", "(it == left) == (block == one)")
    made = ArenaParadigm(load(text))
    assert measure(made, Order(Lesion.parse("intact"), 0.05, 0)).found.value == 1
    assert measure(made, Order(Lesion.parse("blind"), 0.05, 0)).found.value == 1


#: One block that is repeated, and another one.
REPEATED = CHOICE.replace(
    "one: {trials: 9, until: UNTIL}", "one: {trials: TRIALS, repeat: REPEAT}"
)


@pytest.mark.parametrize(
    ("trials", "repeat", "lived", "expected"),
    [
        ("1", "2", [SOON, SOON], ["one", "one", "two"]),
        # The last trial of a repetition decides about its end.
        (
            "2",
            "{at_most: 3, until: {outcome: found, count: 1}}",
            [SOON, WRONG, WRONG, SOON],
            ["one"] * 4 + ["two"],
        ),
        (
            "2",
            "{at_most: 2, until: {outcome: found, count: 1}}",
            [SOON, WRONG] * 2,
            ["one"] * 4 + ["two"],
        ),
        # Two of the last three repetitions; two in a row.
        (
            "1",
            "{at_most: 9, until: {if: steps < 5, count: 2, of: 3}}",
            [SOON, LATE, SOON],
            ["one"] * 3 + ["two"],
        ),
        (
            "1",
            "{at_most: 9, until: {if: steps < 5, count: 2}}",
            [SOON, LATE, SOON, SOON],
            ["one"] * 4 + ["two"],
        ),
        # All repetitions together: the third is cut short.
        ("2", "{at_most: 4, trials: 5}", [SOON] * 5, ["one"] * 5 + ["two"]),
        # A repetition ends at its own criterion; the block when its trials are used up.
        (
            "3, until: {outcome: found, count: 2}",
            "{at_most: 9, trials: 4}",
            [SOON] * 4,
            ["one"] * 4 + ["two"],
        ),
        (
            "5",
            "{at_most: 9, trials: 3, until: {outcome: empty, count: 1}}",
            [SOON] * 3,
            ["one"] * 3 + ["two"],
        ),
    ],
)
def test_a_block_is_repeated_until_a_criterion(
    trials: str, repeat: str, lived: list[list[int]], expected: list[str], live: Live
) -> None:
    assert (
        blocks(
            live(REPEATED.replace("TRIALS", trials).replace("REPEAT", repeat)), *lived
        )
        == expected
    )


def test_a_contingency_that_reverses_at_criterion(live: Live) -> None:
    """Reversals after two in a row, as long as there are trials."""
    text = CHOICE.replace(
        "vars: {food: left}",
        "draw: {food: {per: block, order: cycle, of: {food: [left, right]}}}",
    )
    text = text.replace(
        "{trials: 9, until: UNTIL}",
        "{trials: 8, until: {outcome: found, count: 2}, repeat: {at_most: 4, trials: 8}}",
    ).replace("  two: {trials: 9, set: {food: right}}\n", "")
    life, food = live(text), []
    while life.begin_trial() is not None:
        food.append(life.values["food"])
        # One error after the first reversal.
        to_left = food[-1] == "left" or len(food) == 3
        for action in SOON if to_left else WRONG:
            life.step(action)
    assert food == ["left", "left", "right", "right", "right", "left", "left", "right"]


@pytest.mark.parametrize(
    "repeat",
    ["{at_most: 5, trials: 3}", "{at_most: 5, until: {outcome: found, count: 3}}"],
)
def test_the_lesion_audit_follows_repetitions(
    repeat: str, load: Callable[[str], Specification]
) -> None:
    """The blind know when the other arm pays: after three trials, or three successes in
    a row.
    """
    made = ArenaParadigm(
        load(REPEATED.replace("TRIALS", "1").replace("REPEAT", repeat))
    )
    for lesion in ("blind", "intact"):
        assert measure(made, Order(Lesion.parse(lesion), 0.05, 0)).found.value == 1


@given(
    window=st.tuples(st.integers(1, 6), st.integers(1, 6)).map(sorted),
    past=st.lists(st.sampled_from(["found", "empty", None]), max_size=12),
    later=st.lists(st.sampled_from(["found", "empty", None]), max_size=12),
)
def test_what_still_counts_of_the_past_says_when_a_block_ends(
    window: list[int], past: list[str | None], later: list[str | None]
) -> None:
    count, of = window
    until = UntilSpec(frozenset({"found"}), count, of)

    def ends(before: Sequence[str | None]) -> list[bool]:
        return [
            until.met([*before, *later[:number]][-of:])
            for number in range(1, len(later) + 1)
        ]

    kept = until.still_counts(past[-of:])
    assert ends(["found" if one else None for one in reversed(kept)]) == ends(past)
    if count == of:  # so many in a row: only that is counted
        assert all(kept)
