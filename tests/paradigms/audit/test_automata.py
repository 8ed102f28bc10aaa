"""Classes of memory, the simplest aims, and sights that were never met."""

from __future__ import annotations

from collections import Counter

import pytest

from cheesebench.paradigms.arena.audit import aims
from cheesebench.paradigms.arena.audit.automata import (
    MOST_AIMS,
    NOWHERE,
    PROGRESS,
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
from tests.paradigms.audit.test_memory import ALTERNATION, TIPS, chamber, paradigm

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


#: The first trial only waits for food. ``CUED``: each trial begins with a wait, which
#: is paid in some trials.
IDLE = (
    SHORT,
    ("start: choice", "start: [{if: trial == 1, go: idle}, choice]"),
    (
        "schedule:",
        "    idle: {freeze: true, say: X, rules: [{after: 2, reward: 1, end: rest}]}\nschedule:",
    ),
)
CUED = (
    SHORT,
    ("start: choice", "start: cue"),
    (
        "schedule:",
        "    cue: {freeze: true, rules: [{after: 2, if: turn == 1, reward: 1, go: choice}, {after: 2, go: choice}]}\nschedule:",
    ),
)


def seeds(world: Experience) -> list[tuple[int, int]]:
    """Return seed and subject of each stored life."""
    every = [own[:2] for own in world._seeds()]
    return [one for first in range(4) for one in every[first::4]]


@pytest.mark.parametrize("changes", [IDLE, (*ALTERNATION, *IDLE)])
@pytest.mark.parametrize("memory", [NOTHING, ANY, Memory("any", 2, "trial")])
def test_a_trial_without_a_decision_is_passed_and_remembered(
    changes: tuple[tuple[str, str], ...], memory: Memory
) -> None:
    world = Experience(chamber(*changes), 3, 40, counts=False)
    assert world.is_independent is (changes is IDLE)
    idle, choice = world.lives[0]
    assert isinstance(idle, aims.Edge)
    assert isinstance(choice, aims.Moment)
    assert (idle.reward, idle.said, idle.outcome, idle.score) == (1, ("X",), "rest", 0)
    passed = world._untouched(idle)
    assert world._untouched(idle) is passed
    assert (passed.score, passed.depth) == (0, 0)
    assert passed.ranks == (NOWHERE,) * len(world.zeros)
    assert world.codes["well paid", ("X",)] == passed.code
    # Aims of the second state are others, so food on the first trial changes them.
    states, most = range(memory.states), [len(world.aims[n]) for n in world.kind_of]
    automaton = Automaton(
        memory, [[n % most[k] for n in states] for k in range(len(most))]
    )
    if memory.states == 2:
        automaton.table = {(0, passed.code, NOWHERE): 1}
    played = [*world.play(automaton)]
    for (seed, subject), scores in zip(seeds(world), played, strict=True):
        used: Counter[tuple[int, int, int]] = Counter()
        score, judged = world.live(automaton, seed, subject, used)
        assert len(scores) == judged == 2
        assert sum(scores) == pytest.approx(score, abs=5 * PROGRESS)
        if memory.clock == "life":
            assert used[0, passed.code, NOWHERE] >= 1


def test_what_comes_before_the_first_decision_is_known_there() -> None:
    world = Experience(chamber(*CUED), 3, 40, counts=False)
    roots = [root for life in world.lives for root in life]
    begun = {root.begun for root in roots if isinstance(root, aims.Moment)}
    assert begun == {(0.0, ()), (1.0, ())}
    # A trial may pay for the wait and for the press.
    assert (world._parts.best, world._wholes.best) == (1, 2)
    assert (world._parts.worst, world._wholes.worst) == (0, 0)
    automaton = Automaton(Memory("any", 2, "trial"), [[0, 1] for _ in world.kind_of])
    automaton.table = {(0, world.code(1.0, ()), NOWHERE): 1}
    for root in roots:
        assert isinstance(root, aims.Moment)
        assert root.begun is not None
        assert world.first_state(automaton, root) == (root.begun[0] == 1)
        # The reward of the wait belongs to the trial.
        edge = world.edge(root, 0)
        total = root.begun[0] + edge.reward
        row = (0,) * len(world.kind_of)
        if edge.next is None:
            assert world.trial(root, row).code == world.code(total, edge.said)
    played = [*world.play(automaton)]
    for (seed, subject), scores in zip(seeds(world), played, strict=True):
        score, judged = world.live(automaton, seed, subject, Counter())
        assert len(scores) == judged == 2
        assert sum(scores) == pytest.approx(score, abs=5 * PROGRESS)


def test_of_too_many_aims_the_best_the_simplest_and_some_others_are_kept(
    world: Experience,
) -> None:
    # Only two of these aims differ in what they do.
    sample = next(iter(world.samples.values()))
    found = [aims.Aim(0, aims.NORTH, number) for number in range(MOST_AIMS)]
    assert world._chosen(found, sample) is found
    found += [aims.Aim(0, aims.NORTH, MOST_AIMS + number) for number in range(100)]
    kept = world._chosen(found, sample)
    assert len({*kept}) == len(kept) == MOST_AIMS
    assert kept[0] == found[0]
    promise = dict(zip(found, world._promises(found, sample[:40]), strict=True))
    best = max(promise.values())
    assert min(promise.values()) < best, "one of the two is better"
    half = [aim for aim in found if promise[aim] == best][: MOST_AIMS // 2]
    assert {*half} <= {*kept}
    assert {*found[: MOST_AIMS // 4]} <= {*kept}
    assert {*kept} - {*half, *found[: MOST_AIMS // 4]}


def test_the_score_is_the_judged_measure_or_the_success() -> None:
    reference = "reference: [{measure: success, value: 0.75,"
    measured = (
        reference,
        "measures: {late: steps / (last == fed)}\n"
        "reference: [{measure: late, value: 5, better: lower, margin: 1, range: [1, 20],",
    )
    world = Experience(chamber(SHORT, measured), 3, 40, counts=False)
    assert (world.measure, world._merges) == ("late", False)
    root = world.lives[0][0]
    assert isinstance(root, aims.Moment)
    edges = [world.edge(root, number) for number in range(len(world.aims[0]))]
    scores = {edge.outcome: edge.score for edge in edges}
    assert scores["unfed"] is None
    assert scores["fed"] in range(1, 21)
    plain = small()
    assert (plain.measure, plain._merges) == (None, True)
    timed = ("press: active, reward", 'press: active, if: "time(centre) > 2", reward')
    assert not Experience(chamber(SHORT, timed), 3, 40, counts=False)._merges
    root = plain.lives[0][0]
    assert isinstance(root, aims.Moment)
    edges = [plain.edge(root, number) for number in range(len(plain.aims[0]))]
    scores = {edge.outcome: edge.score for edge in edges}
    assert (scores["fed"], scores["unfed"]) == (1.0, 0.0)


def test_longer_aims_wait_repeat_stay_or_go_on(world: Experience) -> None:
    north, south = aims.Aim(0, aims.NORTH, 0), aims.Aim(0, aims.NORTH, 1)
    families = list(world._families([aims.Aim(), north, south]))
    delays, rounds = len(aims.DELAYS), len(aims.ROUNDS)
    assert [len({*one}) for one in families] == [
        2 * delays,
        2 * rounds,
        2 * delays,
        4,
        4 * rounds,
        4 * delays,
    ]
    later, again, stays, joined, _, rested = families
    assert {(aim.before, aim.rounds, aim.stay) for aim in later} == {
        (steps, 1, 0) for steps in aims.DELAYS
    }
    assert {(aim.before, aim.rounds, aim.stay) for aim in again} == {
        (0, often, 0) for often in aims.ROUNDS
    }
    assert {(aim.before, aim.rounds, aim.stay) for aim in stays} == {
        (0, 1, steps) for steps in aims.DELAYS
    }
    assert {(aim._replace(onward=None), aim.onward) for aim in joined} == {
        (one, other) for one in (north, south) for other in (north, south)
    }
    assert all(aim.stay and aim.onward in (north, south) for aim in rested)


def test_of_many_aims_the_simpler_half_and_a_sample_of_the_rest_are_stems(
    world: Experience,
) -> None:
    plain = [aims.Aim(0, aims.NORTH, number) for number in range(4)]
    found = [one._replace(past="old") for one in plain * 3] + plain
    assert world._mixed(found, 8)[:4] == plain
    assert len(world._mixed(found, 8)) == 8
    assert sorted(world._mixed(plain, 8)) == plain


def test_where_trials_depend_on_actions_the_next_begins_where_each_led() -> None:
    world = Experience(chamber(*ALTERNATION, SHORT), 3, 40, counts=False)
    root = world.lives[0][0]
    assert isinstance(root, aims.Moment)
    edges = [world.edge(root, number) for number in range(len(world.aims[0]))]
    ended = [one for one in edges if one.outcome in ("fed", "unfed")]
    assert ended
    for edge in ended:
        after = edge.following
        assert isinstance(after, aims.Moment)
        assert after.at == (0, 1)
        assert world.following(edge, (0, 0)) is after
        last = world.edge(after, 0)
        assert last.following is None
    # Equal pasts have one beginning.
    assert len({id(edge.following) for edge in ended}) < len(ended)
    alone = small()
    root, following = alone.lives[0]
    assert isinstance(root, aims.Moment)
    edge = alone.edge(root, 0)
    assert edge.following is None
    assert alone.following(edge, (0, 0)) is following
    assert alone.following(edge, (0, 1)) is None
