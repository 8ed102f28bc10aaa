"""The best of several views beside its cross-fitted value and what equal views give by chance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.statistics import best_of_views, judge
from cheesebench.statistics.sample import draw_sample, trials_by_subject
from cheesebench.statistics.views import cross_fit, expected_maximum, halve

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]

#: The rodent values of the paper's Table 5.
RODENT = (0.85, 0.80, 0.80, 0.80, 0.70, 0.80, 0.90, 0.70, 0.75)


def test_three_views_at_the_rodent_reference_are_printed_as_89() -> None:
    best = [expected_maximum(value, [10, 10, 10]) for value in RODENT]
    assert sum(RODENT) / 9 == pytest.approx(0.789, abs=5e-4)
    assert sum(best) / 9 == pytest.approx(0.890, abs=5e-4)


def test_expected_maximum_by_hand() -> None:
    assert expected_maximum(0.5, [1, 1]) == pytest.approx(0.75)
    assert expected_maximum(0.5, [1, 2]) == pytest.approx(0.5 + 0.5 * (0.25 + 0.5 * 0.5))
    assert expected_maximum(0.3, [25]) == pytest.approx(0.3), "one view has no bias"
    assert expected_maximum(0.0, [10, 10]) == 0
    assert expected_maximum(1.0, [10, 10]) == pytest.approx(1)


def test_cross_fit_by_hand() -> None:
    first = ([True, True], [False, True])  # chosen by its first half (1 against .5), scored .5
    second = ([True, False], [True, True])  # chosen by its second half (1 against .5), scored .5
    assert cross_fit([first, second]) == 0.5
    tie = (
        [True, False],
        [False, False],
    )  # ties with `second` on the first half: (1 + 0) / 2; then second: .5
    assert cross_fit([second, tie]) == pytest.approx((0.5 + 0.5) / 2)
    assert cross_fit([first, ([True], [])]) is None


def test_cross_fit_is_unbiased_for_equal_views_where_the_best_is_not() -> None:
    random = np.random.default_rng(5)
    best, fitted = [], []
    for _ in range(3000):
        views = [list(map(bool, random.random(20) < 0.8)) for _ in range(3)]
        best.append(max(sum(view) / 20 for view in views))
        fitted.append(cross_fit([(view[::2], view[1::2]) for view in views]) or 0.0)
    assert np.mean(fitted) == pytest.approx(0.8, abs=0.006), "standard error .002"
    assert np.mean(best) == pytest.approx(expected_maximum(0.8, [20, 20, 20]), abs=0.006)
    assert np.mean(best) > 0.86


def test_halves_are_of_subjects_and_of_trials_only_where_there_is_one(plan: MakePlan, cohort: MakeTrials) -> None:
    subjects = halve(draw_sample(plan(), trials_by_subject(cohort("++", "--", "+-")).values()))
    assert [list(half) for half in subjects] == [[1, 1, 1, 0], [0, 0]]
    trials = halve(draw_sample(plan(), trials_by_subject(cohort("+-+-!")).values()))
    assert [list(half) for half in trials] == [[1, 1], [0, 0]]


def test_best_of_views_of_a_run(plan: MakePlan, cohort: MakeTrials) -> None:
    rates = {"one": "++++++++--", "two": "++++++----"}
    plans = [plan(view=view, subjects=4, trials=10) for view in rates]
    trials = {p.key: cohort(*[rates[p.view]] * 4, view=p.view) for p in plans}
    cells = [judge(p, trials[p.key]) for p in plans]
    (found,) = best_of_views(
        cells, {p.key: halve(draw_sample(p, trials_by_subject(trials[p.key]).values())) for p in plans}
    )
    (choice,) = found.protocols
    assert choice.rates == {"one": 0.8, "two": 0.6}
    assert (found.model, found.best) == ("a model", 0.8)
    assert found.cross_fitted == pytest.approx(0.8), "the better view is the same in both halves"
    assert found.equal_views == pytest.approx(expected_maximum(0.7, [40, 40]))


def test_one_view_makes_no_headline(plan: MakePlan, cohort: MakeTrials) -> None:
    trials = cohort("+-", "-+")
    assert best_of_views([judge(plan(subjects=2), trials)], {plan().key: ([True], [False])}) == ()
