"""What a schedule says of its rest, compared with the trials that then come."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.paradigms.arena.schedule import Schedule
from cheesebench.protocol import Specification

Load = Callable[[str], Specification]
CORRIDOR = """
arena: {map: "S..Z", legend: {S: box, Z: goal}}
start: {at: box}
trial: {start: run, limit: 9, states: {run: {rules: [{enter: goal, end: found}]}}}
success: last == found
"""


def rest(schedule: Schedule, *, outcome: str = "other") -> int:
    """Return how many trials come if all end in the same way."""
    copy, trials = schedule.copy(), 0
    while copy.next() is not None:
        copy.note((outcome, outcome))
        trials += 1
    return trials


@pytest.mark.parametrize(
    ("blocks", "planned"),
    [
        ("{one: {sessions: 2, trials: 3}}", 6),
        ("{one: {trials: 2}, two: {sessions: 2, trials: 2}, three: {trials: 3}}", 9),
        ("{one: {trials: 2, repeat: 3}, two: {trials: 1}}", 7),
        ("{one: {trials: 2, repeat: {at_most: 4, trials: 5}}, two: {trials: 1}}", 6),
        ("{one: {trials: 4, until: {outcome: found, count: 2}}, two: {trials: 2}}", 6),
        (
            "{one: {trials: 2, repeat: {at_most: 3, until: {outcome: found, count: 1}}}, two: {trials: 2}}",
            8,
        ),
    ],
)
def test_what_is_left_is_what_comes_unless_a_criterion_is_met(
    blocks: str, planned: int, load: Load
) -> None:
    schedule = Schedule(load(f"{CORRIDOR}schedule: {blocks}\n").schedule)
    left = []
    while schedule.next() is not None:
        schedule.note(("other", "other"))
        assert schedule.left == rest(schedule)
        assert schedule.over == (schedule.left == 0)
        left.append(schedule.left)
    assert left == list(reversed(range(planned)))
    assert schedule.left == 0
    assert schedule.over


def test_a_criterion_leaves_fewer_and_ends_the_schedule(load: Load) -> None:
    until = "{trials: 4, until: {outcome: found, count: 2}}"
    schedule = Schedule(load(f"{CORRIDOR}schedule: {{one: {until}}}\n").schedule)
    assert rest(schedule, outcome="found") == 2
    for is_over in (False, True):
        schedule.next()
        schedule.note(("found", None))
        assert schedule.over == is_over
        assert schedule.counts_outcomes


def test_equal_keys_have_equal_rests(load: Load) -> None:
    """A trial that can no longer matter for a criterion is not part of the key."""
    until = "{trials: 9, until: {outcome: found, count: 2}}"
    blocks = f"{{one: {until}, two: {{trials: 2}}}}"
    keys = {}
    for second in ("found", "other"):
        for first in ("found", "other"):
            schedule = Schedule(load(f"{CORRIDOR}schedule: {blocks}\n").schedule)
            for outcome in (first, second):
                schedule.next()
                schedule.note((outcome, None))
            keys[first, second] = schedule.key()
    assert keys["found", "other"] == keys["other", "other"]
    assert len(set(keys.values())) == 3


def test_a_repeated_life_begins_the_blocks_not_the_subject(load: Load) -> None:
    schedule = Schedule(
        load(f"{CORRIDOR}schedule: {{one: {{trials: 1}}, two: {{trials: 1}}}}").schedule
    )
    began = []
    for _ in range(2):
        while (position := schedule.next()) is not None:
            began.append((position.block.name, position.began))
        schedule.repeat()
    whole = {"block", "session", "trial"}
    assert began == [
        ("one", whole | {"subject"}),
        ("two", whole),
        ("one", whole),
        ("two", whole),
    ]
