"""Ranks as intervals, from paired differences with simultaneous intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cheesebench.records import CellPlan, TrialRecord
from cheesebench.statistics import summarise_run
from cheesebench.statistics.measures import Tally
from cheesebench.statistics.plausibility import drifting
from cheesebench.statistics.sample import Sample, SubjectCount
from cheesebench.statistics.summary import Leaderboard

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]


@pytest.fixture
def ranked(
    plan: MakePlan, cohort: MakeTrials
) -> Callable[..., tuple[Leaderboard, ...]]:
    """Rank models whose subjects succeed with these rates on two protocols."""

    def make(rates: dict[str, float], seed: int = 0) -> tuple[Leaderboard, ...]:
        random, plans, trials = (
            np.random.default_rng(seed),
            list[CellPlan](),
            list[TrialRecord](),
        )
        for protocol in ("a", "b"):
            # Some seeds are easier than others, for every model.
            ease = random.uniform(-0.1, 0.1, 40)
            for model, rate in rates.items():
                named = {"model": model, "protocol": protocol}
                plans.append(plan(design="leaderboard", subjects=40, **named))
                lives = [
                    "".join(random.choice(["-", "+"], 20, p=[1 - rate - e, rate + e]))
                    for e in ease
                ]
                trials += cohort(*lives, **named)
        return summarise_run({"seed": 0}, plans, trials).leaderboards

    return make


def test_models_far_apart_have_their_rank_and_near_ones_share_it(
    ranked: Callable[..., tuple[Leaderboard, ...]],
) -> None:
    (board,) = ranked({"low": 0.2, "one": 0.6, "other": 0.61, "high": 0.85})
    ranks = {one.model: (one.best_rank, one.worst_rank) for one in board.models}
    assert ranks == {"high": (1, 1), "one": (2, 3), "other": (2, 3), "low": (4, 4)}
    assert [one.rate for one in board.models] == sorted(
        (one.rate for one in board.models), reverse=True
    )
    assert (board.protocols, board.subjects, len(board.differences)) == (2, 40, 6)
    for one in board.differences:
        assert one.interval[0] < one.difference < one.interval[1]


def test_equal_models_are_rarely_told_apart(
    ranked: Callable[..., tuple[Leaderboard, ...]],
) -> None:
    """All six intervals hold together in 95 of 100 leaderboards."""
    wrong = 0
    for seed in range(20):
        (board,) = ranked(dict.fromkeys("abcd", 0.6), seed)
        wrong += any(
            not one.interval[0] <= 0 <= one.interval[1] for one in board.differences
        )
    assert wrong <= 4


@pytest.mark.parametrize("unvalued", [{0, 1}, {2}])
def test_a_protocol_without_a_common_result_is_left_out(
    plan: MakePlan, cohort: MakeTrials, unvalued: set[int]
) -> None:
    """A trial may end without a value, as a latency without a goal does."""
    named = [("A", "a"), ("B", "a"), ("A", "b"), ("B", "b")]
    plans = [
        plan(design="leaderboard", subjects=3, trials=4, model=model, protocol=name)
        for model, name in named
    ]
    trials = [
        replace(record, success=None)
        if name == "b" and (record.subject in unvalued) == (model == "A")
        else record
        for model, name in named
        for record in cohort("+-+-", "++--", "+++-", model=model, protocol=name)
    ]
    (board,) = summarise_run({"seed": 0}, plans, trials).leaderboards
    assert (board.protocols, [one.rate for one in board.models]) == (
        1,
        [0.75 - 1 / 6] * 2,
    )


def test_trials_that_a_server_lost_count_for_nobody(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    """The better model lost a fifth of its trials: it keeps its rate, and is never
    certainly worse. Equal differences are no certainty either.
    """
    random = np.random.default_rng(5)
    plans, trials = list[CellPlan](), list[TrialRecord]()
    for model, rate, lost in (("able", 0.97, 0.2), ("rival", 0.92, 0.0)):
        plans.append(plan(design="leaderboard", subjects=40, model=model))
        for record in cohort(
            *(
                "".join(random.choice(["-", "+"], 20, p=[1 - rate, rate]))
                for _ in range(40)
            ),
            model=model,
        ):
            gone = random.random() < lost
            trials.append(
                replace(record, missing="infrastructure", success=None)
                if gone
                else record
            )
    (board,) = summarise_run({"seed": 0}, plans, trials).leaderboards
    ranks = {one.model: (one.best_rank, one.worst_rank) for one in board.models}
    assert ranks["able"][0] == 1
    assert board.models[0].model == "able"
    assert board.models[0].rate == pytest.approx(0.97, abs=0.02)
    (difference,) = board.differences
    assert difference.interval[0] < 0 < difference.interval[1]


def test_equal_differences_have_an_interval(plan: MakePlan, cohort: MakeTrials) -> None:
    plans, trials = list[CellPlan](), list[TrialRecord]()
    for model, lives in (("a", "+" * 20), ("b", "-" * 20)):
        plans.append(plan(design="leaderboard", subjects=40, model=model))
        trials += cohort(*[lives] * 40, model=model)
    (board,) = summarise_run({"seed": 0}, plans, trials).leaderboards
    low, high = board.differences[0].interval
    assert (low < high, high - low > 0.05) == (True, True)


def test_one_model_is_no_leaderboard(
    ranked: Callable[..., tuple[Leaderboard, ...]],
) -> None:
    assert ranked({"alone": 0.5}) == ()


def test_verdicts_hold_as_lists(ranked: Callable[..., tuple[Leaderboard, ...]]) -> None:
    """The animals have .8 with a margin of .1."""
    (board,) = ranked({"good": 0.89, "edge": 0.7, "low": 0.3})
    assert board.passed == ("good on a", "good on b")
    assert board.failed == ("low on a", "low on b")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [(0.4, 0.9, True), (0.9, 0.4, True), (0.65, 0.65, False)],
)
def test_a_model_that_changes_during_its_run_is_named(
    first: float, second: float, said: bool, plan: MakePlan, cohort: MakeTrials
) -> None:
    random = np.random.default_rng(8)
    rates = np.repeat([first, second], 20)
    lives = [
        "".join(random.choice(["-", "+"], 10, p=[1 - rate, rate])) for rate in rates
    ]
    cell = plan(subjects=40)
    (found,) = summarise_run({"seed": 0}, [cell], cohort(*lives)).cells
    assert (
        any("may have changed during the run" in line for line in found.remarks) is said
    )


def test_subjects_that_are_alike_are_rarely_said_to_drift() -> None:
    random = np.random.default_rng(9)
    rows = random.beta(1, 1, (500, 40))
    told = [bool(list(drifting(_sample(row)))) for row in rows]
    assert sum(told) <= 4


def _sample(scores: np.ndarray) -> Sample:
    counts = [
        SubjectCount(
            subject=number, distinct=True, digest=str(number), entered=1, missing=0, results=b"", sessions=(),
            passes=b"", scores=(float(score),),
        )
        for number, score in enumerate(scores)
    ]  # fmt: skip
    return Sample(tuple(counts), Tally(), 0, 1, measured=True)
