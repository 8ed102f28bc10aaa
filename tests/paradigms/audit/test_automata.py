"""Classes of memory, the simplest aims, and sights that were never met."""

from __future__ import annotations

import pytest

from cheesebench.paradigms.arena.audit import aims
from cheesebench.paradigms.arena.audit.automata import (
    Automaton,
    Experience,
    Extremes,
    Memory,
    _joined,
    _paid,
    simplicity,
)
from cheesebench.paradigms.arena.audit.climbing import Search
from cheesebench.paradigms.arena.audit.memory import classes
from tests.paradigms.audit.test_memory import TIPS, chamber, paradigm

NOTHING, ANY = Memory("nothing"), Memory("any", 2)


@pytest.mark.parametrize(
    ("larger", "smaller", "holds"),
    [
        (NOTHING, NOTHING, True),
        (ANY, NOTHING, True),
        (ANY, Memory("outcome", 2), True),
        (ANY, Memory("place", 3), False),
        (Memory("any", 3), Memory("place", 3), True),
        (Memory("place", 2), Memory("outcome", 2), False),
        (Memory("place", 2), Memory("place", 2), True),
        (Memory("place", 2), NOTHING, True),
        (Memory("outcome", 2), ANY, False),
        # A memory within the trial is another one, unless there is a single state.
        (ANY, Memory("any", 2, "trial"), False),
        (Memory("any", 2, "trial"), Memory("any", 2, "trial"), True),
        (Memory("any", 2, "trial"), Memory("nothing", 1, "life"), True),
        (ANY, Memory("nothing", within=True), False),
        (Memory("any", 2, within=True), ANY, True),
    ],
)
def test_a_class_holds_what_has_no_more_of_anything(
    larger: Memory, smaller: Memory, holds: bool
) -> None:
    assert larger.holds(smaller) is holds


def test_a_copy_of_an_automaton_is_changed_alone() -> None:
    one = Automaton(ANY, [[0, 1], [2, 3]], rules={(0, 0, 0): 1}, table={(0, 0, 0): 1})
    assert one.of_state() == [(0, 2), (1, 3)]
    other = one.copy()
    assert (other.aims, other.rules, other.table) == (one.aims, one.rules, {})
    other.aims[0][0] = 9
    other.rules.clear()
    assert one.of_state() == [(0, 2), (1, 3)]
    assert one.rules


def test_the_simplest_aim_waits_and_has_no_past_light_or_zero_of_its_own() -> None:
    plain = aims.Aim(0, aims.NORTH, 0, aims.WAITS)
    ranked = [
        plain,
        plain._replace(then="1"),
        plain._replace(zero="1"),
        plain._replace(lit="*"),
        plain._replace(past="new"),
    ]
    mixed = [ranked[place] for place in (3, 0, 4, 2, 1)]
    assert sorted(mixed, key=simplicity) == ranked
    # An aim that goes on is as complicated as the worse of its parts.
    assert simplicity(plain._replace(onward=ranked[3])) == simplicity(ranked[3])
    assert simplicity(ranked[3]._replace(onward=plain)) == simplicity(ranked[3])


def test_legs_are_joined_to_what_begins_with_one_of_them() -> None:
    leg, other = aims.Aim(0), aims.Aim(1)
    again = leg._replace(rounds=3)
    assert _joined([again, other], [leg]) == [again._replace(onward=leg)]
    assert len(_joined([leg, other], [leg, other])) == 4


def test_what_is_paid_is_between_minus_one_and_one() -> None:
    assert [_paid(reward) for reward in (0, 1, 3, -1)] == [0, 0.5, 0.75, -0.5]


SHORT = ("schedule: {main: {trials: 20}}", "schedule: {main: {trials: 2}}")


def small() -> Experience:
    return Experience(chamber(SHORT), 3, 40, counts=False)


@pytest.fixture(scope="module")
def world() -> Experience:
    return small()


def test_a_search_ends_with_its_effort_and_finds_what_the_class_can_do() -> None:
    """In two trials, who stays where it was paid is right in three of four."""
    world, effort = small(), 8_000
    for memory, share in [
        (NOTHING, 0.55),
        (Memory("outcome", 2), 0.75),
        (ANY, 0.75),
        (Memory("any", 2, "trial"), 0.55),
    ]:
        before = world.spent
        score, automaton = Search(world, memory, 0, effort).find()
        assert effort < world.spent - before < 1.4 * effort
        assert automaton.memory == memory
        assert score == pytest.approx(share, abs=0.001)


def test_larger_memory_of_places_is_searched_where_there_are_more_than_two() -> None:
    levers = classes(small())
    windows = classes(Experience(paradigm(TIPS.replace(*SHORT)), 3, 40, counts=False))
    assert [one for one in windows if one not in levers] == [Memory("place", 4)]
    assert levers == [
        NOTHING,
        Memory("outcome", 2),
        Memory("place", 2),
        ANY,
        Memory("any", 4),
    ]


def test_a_sight_that_was_never_met_is_the_first_of_its_kind(world: Experience) -> None:
    (roots, *_) = world.lives
    root = roots[0]
    assert isinstance(root, aims.Moment)
    met = world.sight(root)
    assert world.kind_of[met] == world.number[root.kind]
    world.sights.clear()
    first = world.of_kind[world.number[root.kind]][0]
    assert [world.sight(root), world.sight(root)] == [first, first]
    # A kind that was never met is the first one, or one with the same text.
    world.sights.clear()
    world.number = {}
    assert world.sight(root) == world.of_kind[0][0]


def test_rewards_have_codes_by_their_size_and_text(world: Experience) -> None:
    world._coded.clear()
    world._parts, world.codes = Extremes(1.0, -1.0), {}
    world._wholes = world._parts
    for reward in (1.0, 0.5, 0.3, 0.04, -0.04, -0.3, -0.5):
        world.code(reward, ())
    assert [what for what, _ in world.codes] == [
        "well paid",
        "paid",
        "unpaid",
        "cost",
        "punished",
    ]
    assert world.code(0.51, ()) == world.code(1.0, ())
    assert world.code(0.5, ()) == world.code(0.3, ())
    assert world.code(1.0, ("A",)) != world.code(1.0, ())
