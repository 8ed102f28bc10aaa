"""The rule of the verdict against a version of fifteen lines and an independent engine,
and its invariants.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import verdict_simulation as engine
from cheesebench.records import GOAL, MOST_SUBJECTS, ReferenceValue, sets_until
from cheesebench.statistics.betting import LIMIT, STAKES, bets, limits, play, wealth
from cheesebench.statistics.question import (
    FAIL_TAIL,
    PASS_TAIL,
    Question,
    reference_limits,
)

SCORES = st.lists(st.floats(0, 1), min_size=2, max_size=30)


def by_hand(scores: Sequence[float], bar: float) -> float:
    """Return the wealth at the end."""
    return sum(
        share * prod(1 - stake + stake * score / bar for score in scores)
        for stake, share in STAKES.items()
    )


def verdict(question: Question, scores: Sequence[float], goal: float = GOAL) -> str:
    """Return the verdict on complete subjects, by plain loops over their number."""
    above, below = (
        question.reference.value + question.passes,
        question.reference.value + question.fails,
    )
    for number in range(2, len(scores) + 1):
        seen = scores[:number]
        if by_hand(seen, above) >= goal:
            return f"PASS {number}"
        if by_hand([1 - one for one in seen], 1 - below) >= goal:
            return f"FAIL {number}"
    return f"INCONCLUSIVE {len(scores)}"


@given(SCORES, st.floats(0.05, 0.95))
def test_the_wealth_is_that_by_hand(scores: list[float], bar: float) -> None:
    assert wealth(bets(scores, bar))[-1] == pytest.approx(by_hand(scores, bar))


@given(SCORES, st.floats(0.2, 0.9))
def test_the_verdict_is_that_of_plain_loops(
    scores: list[float], reference: float
) -> None:
    question = Question(ReferenceValue(value=reference), -0.1, -0.1)
    found = question.play(scores, scores, goal=GOAL)
    name = "PASS" if found.passed else "FAIL" if found.failed else "INCONCLUSIVE"
    assert f"{name} {int(found.decided)}" == verdict(question, scores)


@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_the_engine_of_the_figures_gives_the_same_verdicts(missing: float) -> None:
    """The engine is written without the package's code, also for sampled animals."""
    random = np.random.default_rng(3)
    for setting in engine.shipped():
        for mean in (setting.reference, setting.reference - 0.2):
            drawn = engine.scores(
                engine.KINDS[3],
                engine.shifted(setting.sessions, mean),
                random,
                60,
                missing=missing,
            )
            assert drawn is not None
            animals = ReferenceValue(
                value=setting.reference, sd=setting.sd, n_animals=setting.animals
            )
            own = Question(animals, -setting.margin, -setting.margin).play(
                *drawn, goal=GOAL, most=MOST_SUBJECTS
            )
            theirs = engine.verdicts(setting, *drawn)
            assert (own.passed == theirs.passed).all(), setting.name
            assert (own.failed == theirs.failed).all(), setting.name
            assert (own.decided == theirs.stopped).all(), setting.name
            assert (own.counted == theirs.run).all(), setting.name


QUESTIONS = [
    Question(ReferenceValue(value=0.5), -0.1, -0.1),
    Question(ReferenceValue(value=0.75, sd=0.11, n_animals=7), -0.12, -0.12),
    Question(ReferenceValue(value=0.2), 0.0, 0.1),
]


def ease(question: Question, low: np.ndarray, goal: float = GOAL) -> np.ndarray:
    """Return -1, 0 or 1 for FAIL, INCONCLUSIVE and PASS."""
    found = question.play(low, low, goal=goal)
    verdict: np.ndarray = found.passed.astype(int) - found.failed.astype(int)
    return verdict


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_success_more_ever_makes_a_verdict_worse_with_eight_subjects(
    question: Question,
) -> None:
    """All 256 outcomes of all-or-none subjects, with each failure turned into a
    success; the goal is low.
    """
    every = np.array(list(itertools.product((0.0, 1.0), repeat=8)))
    before = ease(question, every, goal=4.0)
    assert set(before) == {-1, 0, 1}
    for subject in range(8):
        more = every.copy()
        more[:, subject] = 1.0
        assert (ease(question, more, goal=4.0) >= before).all()


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_trial_more_ever_makes_a_verdict_worse_with_forty_subjects(
    question: Question,
) -> None:
    check_flips(question, runs=4000, subjects=40)


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_million_trials_more_never_make_a_verdict_worse(question: Question) -> None:
    for part in range(50):
        check_flips(question, runs=20_000, subjects=20, seed=part)


def check_flips(question: Question, runs: int, subjects: int, seed: int = 1) -> None:
    """Check that turning one failed trial of each run into a passed one never makes a
    verdict worse.
    """
    random, trials = np.random.default_rng(seed), 10
    mean = question.reference.value + question.passes
    passed = random.binomial(
        trials, random.beta(4 * mean, 4 * (1 - mean), (runs, subjects))
    )
    which = random.integers(0, subjects, runs)
    more = passed.copy()
    more[np.arange(runs), which] = np.minimum(trials, more[np.arange(runs), which] + 1)
    assert (ease(question, more / trials) >= ease(question, passed / trials)).all()


def test_the_goal_is_reached_by_chance_in_one_run_of_twenty_at_most() -> None:
    """Ville's inequality, for subjects that a normal approximation would misjudge: one
    in twenty always succeeds.
    """
    runs = 4000
    random = np.random.default_rng(2)
    scores = np.where(random.random((runs, MOST_SUBJECTS)) < 0.05, 1.0, 0.4)
    reached = wealth(bets(scores, 0.43)).max(axis=-1) >= GOAL
    assert 0 < reached.mean() <= 1 / GOAL + 2 * (0.05 * 0.95 / runs) ** 0.5


def test_one_subject_decides_nothing_and_a_bar_below_everything_is_beaten() -> None:
    assert wealth(bets([1.0, 1.0], 0.01))[0] == 0
    assert wealth(bets([0.0, 0.0], -0.1))[1] == np.inf
    assert wealth(bets([1.0] * 50, 1.0)).max() <= 1
    assert wealth(bets([0.0, 0.0], 0.0))[1] < 1


def test_copies_are_no_evidence() -> None:
    """Ten subjects, but only two distinct ones: the wealth is that of ten distinct
    subjects to the power of a fifth.
    """
    whole = bets([1.0] * 10, 0.5)
    shared = bets(
        [1.0] * 10, 0.5, distinct=np.array([1.0] * 2 + [2 / n for n in range(3, 11)])
    )
    assert shared[:, -1] == pytest.approx(whole[:, -1] ** 0.2)


def test_without_a_known_subject_there_is_no_evidence_however_many_are_planned() -> (
    None
):
    count = 300
    assert bets([0.0] * count, np.full(count, 0.5), np.zeros(count)).max() == 1


@settings(max_examples=60)
@given(SCORES)
def test_the_interval_is_where_the_wealth_has_not_reached_the_limit(
    scores: list[float],
) -> None:
    low, high = limits(scores, scores)
    assert 0 <= low <= np.mean(scores) <= high <= 1
    for end, own, sign in (
        (low, scores, -1),
        (1 - high, [1 - one for one in scores], -1),
    ):
        if end > 0.001:
            assert (
                max(
                    by_hand(own[:n], end + sign * 0.001) for n in range(2, len(own) + 1)
                )
                >= LIMIT * 0.99
            )
        if end < 0.998 and end < np.mean(own) - 1e-9:
            assert (
                max(by_hand(own[:n], end + 0.001) for n in range(2, len(own) + 1))
                < LIMIT
            )
    mirrored = limits([1 - one for one in scores], [1 - one for one in scores])
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-5)
    wide = limits([one * 0.9 for one in scores], scores)
    assert wide[0] <= low
    assert high <= wide[1]


def test_the_interval_has_the_mean_of_subjects_that_get_worse() -> None:
    """The first subjects leave only means above the overall mean. If the last ones
    exclude every mean, the interval covers everything in between.
    """
    worse = [0.8] * 6 + [0.0] * 114
    low, high = limits(worse, worse)
    assert low == pytest.approx(np.mean(worse))
    assert max(by_hand(worse[:n], low + 0.001) for n in range(2, 121)) >= LIMIT
    changed = [1.0] * 100 + [0.0] * 100
    low, high = limits(changed, changed)
    assert low <= 0.5 <= high
    assert high - low > 0.1


@pytest.mark.parametrize("mean", [0.45, 0.6, 0.9])
def test_the_interval_holds_when_a_run_stops(mean: float) -> None:
    """Runs that stop because of their results, with some subjects
    that always succeed.
    """
    random, shape, other = (
        np.random.default_rng(7),
        (300, MOST_SUBJECTS),
        (mean - 0.1) / 0.9,
    )
    scores = np.where(
        random.random(shape) < 0.1, 1.0, random.beta(3 * other, 3 * (1 - other), shape)
    )
    counted = (
        Question(ReferenceValue(value=0.7), -0.1, -0.1)
        .play(scores, scores, goal=GOAL, most=MOST_SUBJECTS)
        .counted
    )
    found = [
        limits(own[:number], own[:number])
        for own, number in zip(scores, counted, strict=True)
    ]
    assert len(set(counted)) >= 3
    assert np.mean([low <= mean <= high for low, high in found]) >= 0.95


def test_a_set_that_is_stale_is_the_last_one() -> None:
    assert sets_until(MOST_SUBJECTS) == (
        6,
        10,
        14,
        18,
        24,
        30,
        40,
        50,
        60,
        70,
        80,
        90,
        100,
        110,
        120,
    )
    assert sets_until(45) == (6, 10, 14, 18, 24, 30, 40, 45)
    level = np.full((1, MOST_SUBJECTS), 0.5)
    games = [(level, 0.5)], [(1 - level, 0.5)]
    (found,) = play(*games, goal=GOAL, most=MOST_SUBJECTS).counted
    assert found == 50
    assert play(*games, goal=GOAL).counted == [MOST_SUBJECTS], (
        "a fixed number is run whatever happens"
    )
    lucky = level.copy()
    lucky[:, :3] = 1.0
    later = play([(lucky, 0.5)], [(1 - lucky, 0.5)], goal=GOAL, most=MOST_SUBJECTS)
    assert (later.counted.tolist(), later.stale.tolist()) == (
        [MOST_SUBJECTS],
        [False],
    ), "a bet had doubled"


def test_subjects_beyond_the_set_that_decided_do_not_count() -> None:
    scores = np.array([1.0] * 9 + [0.0] * 111)
    found = play([(scores, 0.5)], [(1 - scores, 0.5)], goal=GOAL, most=MOST_SUBJECTS)
    assert found.passed
    assert (int(found.decided), int(found.counted)) == (6, 6)
    assert float(found.failing) < 1


def test_a_bar_that_follows_the_mean_is_tried_seldom_with_many_subjects() -> None:
    random = np.random.default_rng(0)
    many = random.binomial(10, 0.8, 3000) / 10
    found = Question(ReferenceValue(value=0.7, sd=0.2, n_animals=30), -0.1, -0.1).play(
        many, many, goal=GOAL
    )
    assert found.passed
    assert np.isfinite(found.passing)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_bar_that_the_animals_set_is_newcombes_interval(sign: int) -> None:
    """If a model's own limit is at the bar, the limit of its difference is at the
    margin.
    """
    animals = ReferenceValue(value=0.7, sd=0.15, n_animals=12)
    question = Question(animals, -0.1, -0.1)
    mean = 0.85 if sign > 0 else 0.3
    scores = np.full(10, mean)
    bar = float(
        question._bar(scores, -0.1, PASS_TAIL if sign > 0 else FAIL_TAIL, sign)[-1]
    )
    ends = question.difference_limits(mean, (bar, 1.0) if sign > 0 else (0.0, bar))
    assert ends[0 if sign > 0 else 1] == pytest.approx(-0.1)


def test_limits_of_animals() -> None:
    group = ReferenceValue(value=0.7, sd=0.1, n_animals=9)
    assert reference_limits(group, 0.025) == pytest.approx(
        (0.7 - 2.306 * 0.1 / 3, 0.7 + 2.306 * 0.1 / 3), abs=1e-4
    )
    published = ReferenceValue(value=0.7, interval=(0.6, 0.75))
    assert reference_limits(published, 0.025) == pytest.approx((0.6, 0.75))
    assert reference_limits(published, 0.05)[0] > 0.6
    low = ReferenceValue(value=0.1, interval=(0.0, 0.3))
    assert reference_limits(low, FAIL_TAIL)[0] == 0, "no mean lies outside of 0 and 1"
    alike = reference_limits(ReferenceValue(value=1.0, sd=0.0, n_animals=10), 0.05)
    assert alike[0] < 0.8
    assert alike[1] == 1.0
    assert reference_limits(ReferenceValue(value=0.7, n_animals=100), 0.05) == (
        0.7,
        0.7,
    )
