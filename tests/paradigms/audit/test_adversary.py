"""What a belief is worth, and which hypothesis is followed."""

from __future__ import annotations

from collections.abc import Callable

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.adversary import (
    Adversary,
    Errand,
    Lived,
    Manner,
    Planner,
    Worth,
    _kinds,
    _nearest,
    certainty,
    ended,
)
from cheesebench.paradigms.arena.audit.beliefs import Node, Plan, World, cloud_of

Plant = Callable[..., ArenaParadigm]
NewNode = Callable[..., Node]


def test_an_end_is_worth_its_successes_and_the_likeliest_guess(new: NewNode) -> None:
    weights = [(0, 1, 0.375), (7, 0, 0.25), (7, 1, 0.25), (3, 0, 0.125)]
    cloud = {
        new(lasting=lasting, success=success): weight
        for lasting, success, weight in weights
    }
    assert certainty(cloud) == 0.5
    assert ended(cloud) == Worth(0.625, 0.5)
    assert certainty({}) == 0.0
    both = Worth(0.25, 0.5)
    both.add(Worth(0.5, 0.125))
    assert both == Worth(0.75, 0.625)


def test_kinds_come_by_weight_each_with_its_likeliest_node(new: NewNode) -> None:
    rare, first, second, tied = new(1), new(2), new(2), new(3)
    cloud = {rare: 0.125, first: 0.125, second: 0.25, tied: 0.375}
    assert _kinds(cloud) == [(0.375, second), (0.375, tied), (0.125, rare)]
    # Rounding does not decide.
    assert _kinds({**cloud, tied: 0.375 + 1e-12})[0][1] is second


def test_a_plan_that_succeeds_goes_first_then_weight_and_length(new: NewNode) -> None:
    def plan(steps: int, *, success: bool = True) -> Plan:
        return Plan((0,) * steps, success)

    likely, short, failing = new(), new(), new()
    choices = [
        (0.9, failing, plan(1, success=False)),
        (0.06, likely, plan(30)),
        (0.04, short, plan(10)),
    ]
    for manner, followed in [
        (Manner(1, 1), short),
        (Manner(0, 1), short),
        (Manner(1, 0), likely),
    ]:
        assert _nearest(choices, manner)[0] is followed
    even = [(0.5, likely, plan(5)), (0.5, short, plan(5))]
    assert _nearest(even, Manner(1, 1))[0] is likely


def lives(
    paradigm: ArenaParadigm, lesion: str, trials: int, errand: Errand | None = None
) -> list[Lived]:
    return Adversary(paradigm, Lesion.parse(lesion), 0.05).live(3, 1, trials, errand)


def test_an_errand_is_done_whatever_it_costs_and_then_no_more(plant: Plant) -> None:
    paradigm = plant(("{enter: arm, end", "{enter: arm, reward: -1, end"))
    free = lives(paradigm, "intact", 3)
    assert [(one.success, one.reward) for one in free] == [(True, 1.0)] * 3
    sent = lives(paradigm, "intact", 3, Errand("error", 2))
    assert [one.success for one in sent] == [False, False, True]
    assert [one.reward for one in sent] == [-1.0, -1.0, 1.0]
    # The outcome, the state at the end and any state on the way can be a target.
    assert all(
        one.success for one in lives(paradigm, "intact", 2, Errand("correct", 2))
    )
    assert lives(paradigm, "intact", 1, Errand("choice", 1))[0].steps >= 3


def test_an_errand_that_cannot_be_done_is_waited_out(plant: Plant) -> None:
    sent = lives(plant(), "intact", 2, Errand("nowhere", 1))
    assert [(one.success, one.steps) for one in sent[:1]] == [(False, 40)]
    assert sent[1].success
    assert sent[1].steps < 40


def test_a_life_has_its_trials_sessions_and_what_counts(plant: Plant) -> None:
    blocks = (
        "schedule: {main: {sessions: 2, trials: 10}}",
        "schedule: {main: {sessions: 2, trials: 1}, after: {trials: 2}}\nestimand: {block: main}",
    )
    paradigm = plant(blocks)
    whole = lives(paradigm, "intact", 20)
    assert [(one.trial, one.session, one.judged) for one in whole] == [
        (0, 1, True),
        (1, 2, True),
        (2, 3, False),
        (3, 3, False),
    ]
    assert len(lives(paradigm, "intact", 3)) == 3
    # Nothing counts after the last judged block.
    assert [one.trial for one in lives(paradigm, "blind", 20)] == [0, 1]


def test_what_is_measured_is_noted_if_the_verdict_is_about_it(plant: Plant) -> None:
    assert lives(plant(), "intact", 1)[0].measured is None
    judged = "measure: latency, value: 9, sd: 1, n_animals: 8, better: lower, margin: 2, range: [0, 40]"
    measure = (
        "reference: [{measure: success, value: 0.9,",
        f"measures: {{latency: steps}}\nreference: [{{{judged},",
    )
    one = lives(plant(measure), "intact", 1)[0]
    assert one.measured == one.steps


def test_who_cannot_follow_guesses_and_nobody_is_lost(plant: Plant) -> None:
    adversary = Adversary(plant(), Lesion.parse("amnesia=choice"), 0.05)
    guessed = [one.success for one in adversary.live(3, 1, 20)]
    assert 4 <= sum(guessed) <= 16
    assert adversary.followed == 1.0
    assert guessed == [one.success for one in lives(plant(), "amnesia=choice", 20)]


def test_beyond_its_effort_a_life_is_not_planned_ahead(plant: Plant) -> None:
    world = World(plant(("start: cue", "start: choice")), Lesion.parse("blind"))
    [belief] = world.begin(world.prior()).values()
    cloud = cloud_of(belief)
    assert len(cloud) > 1

    def planned(effort: float) -> int:
        planner = Planner(world, effort)
        planner.begin_life()
        planner.begin_trial()
        before = world.work
        planner.decide(cloud, 0, 5)
        return world.work - before

    assert planned(1.0) > 10 * planned(-1.0)
