"""How many lives an audit needs, which of their trials count, and how walkers walk."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.interfaces import FORWARD, STAY
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit.policies import CYCLE, Policy
from cheesebench.paradigms.arena.audit.runs import (
    DARKNESS,
    NO_WAY,
    Order,
    Runner,
    Tally,
    Walker,
    asked_in_words,
    asked_of,
    events_of,
    is_beyond,
    live,
    lives_for,
    mean_of,
    measured_value,
    subjects,
    tour,
    walk,
    wanderer,
)
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol.specification import ReferenceSpec

Plant = Callable[..., ArenaParadigm]

#: Twenty trials that do not count, then four that do.
LATE = (
    "schedule: {main: {sessions: 2, trials: 10}}",
    "schedule: {main: {sessions: 2, trials: 10}, test: {sessions: 2, trials: 2}}\nestimand: {block: test}",
)


class Always(Policy):
    """Takes one action, and counts how often it is asked."""

    def __init__(self, action: int = FORWARD) -> None:
        self.action, self.asked, self.bumps = action, 0, 0
        self.totals: list[float] = []

    feels = True

    def act(self, bumped: bool, reward: float) -> int:
        self.asked += 1
        self.bumps += bumped
        return self.action

    def end(self, total: float) -> None:
        self.totals.append(total)


def life(paradigm: ArenaParadigm, subject: int = 0) -> ArenaSubject:
    return ArenaSubject(paradigm.program, DARKNESS, 0, subject)


@pytest.mark.parametrize(
    ("draw", "group"),
    [
        ("{of: {side: [left, right]}}", 8),
        ("{order: balanced, of: {side: [left, right, left]}}", 9),
        ("{order: balanced, of: {side: [left, right]}}", 8),
        ("{order: shuffle, of: {side: [left, right, left]}}", 8),
    ],
)
def test_subjects_make_whole_groups_of_what_is_balanced_over_them(
    draw: str, group: int, plant: Plant
) -> None:
    paradigm = plant(("{of: {side: [left, right]}}", draw))
    assert subjects(paradigm.specification) == group


def test_there_are_as_many_lives_as_the_trials_need(plant: Plant) -> None:
    one = plant().specification
    assert list(lives_for(one, 100, 5)) == [(5, subject, 13) for subject in range(8)]
    assert list(lives_for(one, 161, 5)) == [
        (5 + number, subject, 20) for number in (0, 1) for subject in range(8)
    ]
    late = plant(LATE).specification
    assert {trials for *_, trials in lives_for(late, 100, 0)} == {13}
    # Of the trials that count, a life has four.
    judged = list(lives_for(late, 100, 0, judged=True))
    assert {trials for *_, trials in judged} == {4}
    assert len(judged) == 8 * math.ceil(100 / 32)


def test_a_policy_lives_until_enough_trials_count(plant: Plant) -> None:
    paradigm = plant(LATE)
    subject = Always(STAY)
    trials = list(live(life(paradigm), subject, paradigm.specification, 3))
    assert [trial.success for _, trial in trials] == [None] * 20 + [False] * 3
    # While it is frozen, it is not asked, and takes no action.
    assert subject.asked == 23 * (40 - 3)
    whole = list(live(life(paradigm), Always(STAY), paradigm.specification))
    assert len(whole) == 24
    assert [trial.steps for _, trial in whole] == [40] * 24


def test_rewards_are_added_up_and_a_blocked_step_is_felt(plant: Plant) -> None:
    paid = (
        ("cue: {freeze: true,", "cue: {freeze: true, each: {reward: 0.5},"),
        ("face: random", "face: N"),
    )
    paradigm = plant(*paid)
    subject = Always()
    [(_, trial)] = islice(live(life(paradigm), subject, paradigm.specification), 1)
    assert subject.bumps == subject.asked - 1 == 36
    assert trial.reward == pytest.approx(1.0)
    east = plant(("face: random", "face: E"))
    subject = Always()
    done = list(islice(live(life(east), subject, east.specification), 20))
    assert subject.bumps == 0
    successes = [bool(trial.success) for _, trial in done]
    assert 0 < sum(successes) < 20
    assert [trial.reward for _, trial in done[:-1]] == [1.0 * s for s in successes[:-1]]


def test_a_tally_counts_what_is_judged_and_the_extremes(plant: Plant) -> None:
    paradigm = plant(
        ("face: random", "face: E"),
        ("{enter: arm, end", "{enter: arm, reward: -1, end"),
    )
    tally = Tally("east")
    trials = list(live(life(paradigm), Always(), paradigm.specification))
    tally.add(trials)
    passed = sum(bool(trial.success) for _, trial in trials)
    assert 0 < passed < 20
    assert tally.lives == [(passed, 20)]
    assert tally.outcomes == {"correct": passed, "error": 20 - passed}
    assert tally.reward == passed - (20 - passed)
    assert (tally.best_success, tally.least_success, tally.best_failure) == (1, 1, -1)
    assert tally.rate().value == passed / 20
    unjudged = plant(LATE)
    tally.add(list(live(life(unjudged), Always(STAY), unjudged.specification, 1)))
    assert tally.lives[1] == (0, 1)
    assert tally.best_failure == 0


def test_orders_are_carried_out_in_turn_and_told(plant: Plant) -> None:
    said: list[int] = []
    orders = [Order(f"{CYCLE}F", 8, 0), Order(f"{CYCLE}S", 8, 0, limit=5)]
    with Runner(plant()) as runner:
        tallies = runner.run(orders, said.append)
        lines: list[str] = []
        told = runner.map(
            lambda _, number: number * 2, [1, 2, 3], lines.append, "job {}".format, str
        )
    assert said == [1, 2]
    assert [one.name for one in tallies] == [order.name for order in orders]
    # A limit replaces the protocol's.
    assert [one.outcomes["timeout"] for one in tallies] == [7, 8]
    assert told == [2, 4, 6]
    assert lines == [
        "searched 0 of 3, now job 1",
        "job 1: 2; searched 1 of 3, now job 2",
        "job 2: 4; searched 2 of 3, now job 3",
    ]


def walked(
    paradigm: ArenaParadigm, choose: Callable[[Sequence[str]], str | None], **more: bool
) -> Walker:
    return Walker(paradigm.program, choose, **more)


def test_a_walker_enters_what_it_chooses_by_the_shortest_way(plant: Plant) -> None:
    paradigm = plant(("face: random", "face: N"))
    met: list[Sequence[str]] = []

    def left(places: Sequence[str]) -> str | None:
        met.append(tuple(places))
        return "left" if places else None

    subject = life(paradigm)
    trials = list(walk(subject, walked(paradigm, left), paradigm.specification, 20))
    assert len(trials) == 20
    # Nothing can be reached while it is frozen, and each arm after it.
    assert set(met) == {(), ("left", "right")}
    # Three steps of the cue, a quarter turn in eighths, and two steps.
    quarter = paradigm.program.geometry.turns // 4
    assert {trial.steps for _, trial in trials} == {3 + quarter + 2}
    assert {result.outcome for result, _ in trials} == {"correct", "error"}


def test_a_walker_that_chooses_nothing_stays(plant: Plant) -> None:
    paradigm = plant()
    trials = list(
        walk(
            life(paradigm), walked(paradigm, lambda _: None), paradigm.specification, 2
        )
    )
    assert [trial.steps for _, trial in trials] == [40, 40]


def test_of_every_block_the_first_trials_and_each_sessions_last(plant: Plant) -> None:
    paradigm = plant(LATE)
    walker = walked(paradigm, lambda _: None)
    one = life(paradigm)
    played = [
        (result.block, one.session, one.trial)
        for result, _ in walk(one, walker, paradigm.specification, 4, every_block=True)
    ]
    assert played == [
        *(("main", session, trial) for session in (1, 2) for trial in (1, 2, 10)),
        *(("test", session, trial) for session in (1, 2) for trial in (1, 2)),
    ]


def test_a_watcher_is_called_once_for_each_state(plant: Plant) -> None:
    paradigm = plant()
    states: list[str] = []
    walker = walked(paradigm, lambda places: places[0] if places else None)
    list(
        walk(
            life(paradigm),
            walker,
            paradigm.specification,
            2,
            lambda one, _: states.append(one.state),
        )
    )
    assert states == ["cue", "choice"] * 2


def test_choices_are_as_their_names_say() -> None:
    visited = tour(random.Random(1))
    places = [visited("abc") for _ in range(6)]
    assert places[:3] == places[3:]
    assert sorted(map(str, places[:3])) == ["a", "b", "c"]
    assert visited("") is None
    wandering = wanderer(random.Random(1))
    assert {wandering("ab") for _ in range(50)} == {"a", "b", None}
    assert wandering("") is None


def test_a_way_around_an_event_is_taken_if_there_is_one(plant: Plant) -> None:
    """The right arm is behind the middle, which ends the trial unless it is avoided."""
    paradigm = plant(
        (
            "#########\n    #LL.B.RR#\n    #########",
            "#########\n    #LLB.M.R#\n    ####...##\n    #########",
        ),
        ("B: box}", "B: box, M: middle}"),
        (
            "- {enter: arm, end: error}",
            "- {enter: arm, end: error}\n        - {enter: middle, end: trap}",
        ),
        ("face: random", "face: E"),
    )

    def right(places: Sequence[str]) -> str | None:
        return "right" if places else None

    trials = list(
        walk(life(paradigm), walked(paradigm, right), paradigm.specification, 9)
    )
    assert "trap" not in {result.outcome for result, _ in trials}
    assert events_of(paradigm.program).of_state["choice"] == ("left", "right", "middle")
    assert events_of(paradigm.program).of_state["cue"] == ()


def test_where_a_door_has_closed_a_walker_waits_and_chooses_anew(plant: Plant) -> None:
    paradigm = plant(("face: random", "face: N"))
    met: list[Sequence[str]] = []

    def left(places: Sequence[str]) -> str | None:
        met.append(tuple(places))
        return "left" if places else None

    one, walker = life(paradigm), walked(paradigm, left)
    one.begin_trial()
    walker.begin()
    while one.state != "choice":
        one.step(walker.act(one))
    walker.act(one)
    chosen, ways = len(met), walker._ways
    number = paradigm.program.geometry.poses
    shut = SimpleNamespace(actions=[NO_WAY] * number, last=[True] * number)
    walker._ways = cast(Any, SimpleNamespace(to=lambda *place: shut))
    assert walker.act(one) == STAY
    assert len(met) == chosen
    walker._ways = ways
    assert walker.act(one) != STAY
    assert len(met) == chosen + 1


def judged(better: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the changes for a verdict on a measure, 30 with a margin of 2. It has no
    value in trials that failed.
    """
    return (
        (
            "reference: [{measure: success, value: 0.9,",
            "measures: {much: steps / (last == correct)}\n"
            f"reference: [{{measure: much, value: 30, better: {better}, margin: 2, range: [0, 40],",
        ),
        ("face: random", "face: E"),
    )


def about(plant: Plant, better: str) -> ReferenceSpec:
    found: ReferenceSpec | None = plant(*judged(better)).specification.judged
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("better", "asked", "words", "beyond"),
    [
        ("higher", [(">=", 28)], "at least 28", [(28.5, 40)]),
        ("lower", [("<=", 32)], "at most 32", [(0, 31.5)]),
        (
            "alike",
            [(">=", 28), ("<=", 32)],
            "at least 28 and at most 32",
            [(28.5, 31.5)],
        ),
    ],
)
def test_what_a_verdict_asks_of_a_measure(
    plant: Plant,
    better: str,
    asked: list[tuple[str, float]],
    words: str,
    beyond: list[tuple[float, float]],
) -> None:
    found = about(plant, better)
    assert asked_of(found) == asked
    assert asked_in_words(found) == words
    intervals = [(28.5, 40), (0, 31.5), (28.5, 31.5), (28, 32), (28, 40), (0, 32)]
    passed = [one for one in intervals if is_beyond(*one, found)]
    assert passed == [*dict.fromkeys([*beyond, (28.5, 31.5)])]


def test_the_interval_of_a_mean_is_cut_at_the_range(plant: Plant) -> None:
    ranged = about(plant, "higher")
    free = replace(ranged, range=None)
    assert mean_of([], ranged) is None
    # The deviation of 2 and 4 is the root of 2, and so is that of two lives.
    assert mean_of([2, 4], ranged, 1) == pytest.approx((3, 2, 4))
    assert mean_of([2, 4], ranged, 9) == pytest.approx((3, 0, 12))
    assert mean_of([38, 40], ranged, 9) == pytest.approx((39, 30, 40))
    assert mean_of([2], ranged) == (2, 0, 40)
    assert mean_of([2], free) == (2, -math.inf, math.inf)


def test_a_tally_has_the_mean_of_the_trials_that_have_a_value(plant: Plant) -> None:
    paradigm = plant(*judged("lower"))
    tally = Tally("east")
    trials = list(live(life(paradigm), Always(), paradigm.specification))
    tally.add(trials)
    steps = [trial.steps for _, trial in trials if trial.success]
    assert 0 < len(steps) < 20
    assert tally.means == [pytest.approx(sum(steps) / len(steps))]
    assert [one.measured for _, one in trials] == [
        float(one.steps) if one.success else None for _, one in trials
    ]
    # A verdict about successes has no measure.
    plain = plant().specification
    assert {measured_value(result, plain) for result, _ in trials} == {None}
    tally.add([])
    assert (len(tally.means), tally.lives[-1]) == (1, (0, 0))
