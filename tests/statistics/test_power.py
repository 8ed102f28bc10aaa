"""Probabilities of verdicts, against what they must be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from cheesebench.experiment.records import CellPlan, ReferenceValue, TrialRecord
from cheesebench.statistics import Verdict, judge
from cheesebench.statistics.power import SEARCH_RUNS, Cohort, disagreement, subjects_for_power, verdict_chances

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]

RODENT = ReferenceValue(value=0.8)


def test_all_or_none_subjects_against_the_exact_binomial() -> None:
    cohort = Cohort(subjects=40, trials=1)
    chances = verdict_chances(0.8, cohort, RODENT, 0.1, seed=1, runs=20_000)
    # One trial each: they PASS where Clopper and Pearson's one-sided 5 % bound is above .7.
    least = min(k for k in range(1, 41) if stats.beta.ppf(0.05, k, 41 - k) > 0.7)
    assert chances[Verdict.PASS] == pytest.approx(stats.binom.sf(least - 1, 40, 0.8), abs=0.012)
    assert sum(chances.values()) == pytest.approx(1)


@pytest.mark.parametrize("icc", [0.0, 0.1, 0.3])
def test_the_errors_at_the_margin_are_below_5_percent(icc: float) -> None:
    cohort = Cohort(subjects=12, trials=20, icc=icc)
    chances = verdict_chances(0.7, cohort, RODENT, 0.1, seed=2, runs=4000)
    assert chances[Verdict.PASS] < 0.05
    assert chances[Verdict.FAIL] < 0.05


def test_the_simulation_is_the_rule_that_judges(plan: MakePlan, cohort: MakeTrials) -> None:
    design = Cohort(subjects=18, trials=20, icc=0.2)
    random = np.random.default_rng(3)
    found = []
    for _ in range(150):
        own = random.beta(0.88 * 4, 0.12 * 4, 18)
        lives = ["".join("+" if x < p else "-" for x in random.random(20)) for p in own]
        found.append(judge(plan(subjects=18), cohort(*lives)).verdict)
    chance = verdict_chances(0.88, design, RODENT, 0.1, seed=4)[Verdict.PASS]
    assert 0.2 < chance < 0.9, "or there is nothing to compare"
    assert found.count(Verdict.PASS) / 150 == pytest.approx(chance, abs=0.11), "standard error .04"


def test_the_same_seed_gives_the_same_numbers() -> None:
    cohort = Cohort(subjects=15, trials=10)
    chances = [verdict_chances(0.95, cohort, RODENT, 0.1, seed=seed) for seed in (1, 1, 2)]
    assert chances[0] == chances[1] != chances[2]


def test_certain_rates_are_certain() -> None:
    cohort = Cohort(subjects=10, trials=20)
    assert verdict_chances(0.0, cohort, RODENT, 0.1, seed=1)[Verdict.FAIL] == 1
    assert verdict_chances(1.0, cohort, RODENT, 0.1, seed=1)[Verdict.PASS] == 1


def test_disagreement_by_hand() -> None:
    assert disagreement({Verdict.PASS: 1.0}) == 0
    assert disagreement({Verdict.PASS: 0.5, Verdict.FAIL: 0.5}) == 0.5
    thirds = dict.fromkeys((Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE), 1 / 3)
    assert disagreement(thirds) == pytest.approx(2 / 3)


def test_subjects_for_80_percent_are_enough_and_one_less_is_not() -> None:
    cohort = Cohort(subjects=10, trials=20, icc=0.1)
    wanted = subjects_for_power(cohort, RODENT, 0.1, seed=5)
    assert wanted is not None
    for subjects, enough in ((wanted, True), (wanted - 1, False)):
        other = Cohort(subjects=subjects, trials=20, icc=0.1)
        chances = verdict_chances(0.8, other, RODENT, 0.1, seed=5, runs=SEARCH_RUNS)
        assert (chances[Verdict.PASS] >= 0.8) is enough


def test_no_number_of_subjects_helps_where_the_animals_are_uncertain() -> None:
    few_animals = ReferenceValue(value=0.8, sd=0.2, n_animals=10)
    assert subjects_for_power(Cohort(subjects=10, trials=20), few_animals, 0.1, seed=1) is None
