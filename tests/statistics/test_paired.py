"""Two runs with the same seeds."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.statistics import compare_paired
from cheesebench.statistics.paired import paired_p_value, t_interval

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]

#: Darwin's maize, crossed - self-fertilised, in eighths of an inch (Fisher 1935, The Design of Experiments).
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_darwins_maize_as_fisher_has_it() -> None:
    # Fisher: t = 2.148 on 14 degrees, P = .0497; of the 2**15 flips 1726 are as extreme, P = .0527.
    assert paired_p_value(DARWIN, seed=1, method="t") == pytest.approx(0.0497, abs=5e-5)
    sampled = paired_p_value(DARWIN, seed=1, method="permutation")
    assert sampled == pytest.approx(1726 / 2**15, abs=0.007), "9999 of them: standard error .0022"
    assert paired_p_value(DARWIN, seed=1, method="permutation") == sampled
    assert paired_p_value(DARWIN, seed=2, method="permutation") != sampled


def test_few_pairs_are_flipped_exactly() -> None:
    assert paired_p_value([0.1, 0.2, 0.3, 0.05, 0.2, 0.4], seed=1, method="permutation") == 2 / 2**6
    # Of the 8 flips of 3, 2, -1 only +-(3 + 2 + 1) and +-(3 + 2 - 1) are as extreme.
    assert paired_p_value([3.0, 2.0, -1.0], seed=1, method="permutation") == 4 / 8
    assert paired_p_value([0.0, 0.0], seed=1, method="permutation") == 1
    assert paired_p_value([0.9], seed=1, method="permutation") == 1


def test_t_is_scipys() -> None:
    values = [0.1, -0.05, 0.2, 0.3, 0.0]
    test = stats.ttest_1samp(values, 0)
    assert paired_p_value(values, seed=0, method="t") == pytest.approx(float(test.pvalue))
    assert t_interval(values) == pytest.approx(tuple(test.confidence_interval()))
    assert t_interval([0.1]) is None


def test_equal_differences_do_not_make_t_infinite() -> None:
    assert paired_p_value([0.1, 0.1], seed=0, method="t") == 0.5


def test_better_and_worse(plan: MakePlan, cohort: MakeTrials) -> None:
    good, poor = cohort(*["++++-"] * 8), cohort(*["+----", "++---"] * 4)
    found = compare_paired(plan(), good, poor, seed=3)
    assert (found.answer, found.pairs, found.p_value) == ("better", 8, 2 / 2**8)
    assert found.difference == pytest.approx(0.5)
    assert found.interval is not None
    assert found.interval[0] < 0.5 < found.interval[1]
    assert compare_paired(plan(), poor, good, seed=3).answer == "worse"
    assert compare_paired(plan(), good, poor, seed=3, method="t").answer == "better"


def test_indistinguishable(plan: MakePlan, cohort: MakeTrials) -> None:
    found = compare_paired(plan(), cohort(*["++--"] * 8), cohort(*["+---", "+++-"] * 4), seed=3)
    assert (found.answer, found.difference) == ("indistinguishable", 0)


def test_the_pairing_takes_out_what_subjects_share(plan: MakePlan, cohort: MakeTrials) -> None:
    passes = (1, 4, 8, 12, 15, 18, 3, 10)
    first = cohort(*["+" * (k + 1) + "-" * (19 - k) for k in passes])
    second = cohort(*["+" * k + "-" * (20 - k) for k in passes])
    rates = [[(k + extra) / 20 for k in passes] for extra in (1, 0)]
    assert stats.ttest_ind(*rates).pvalue > 0.5, "unpaired it drowns"
    assert compare_paired(plan(), first, second, seed=0).answer == "better"


def test_few_pairs_can_never_tell(plan: MakePlan, cohort: MakeTrials) -> None:
    found = compare_paired(plan(), cohort(*["++++"] * 5), cohort(*["----"] * 5), seed=3)
    assert found.answer == "indistinguishable"
    assert "at least six are needed" in found.reason


def test_copies_are_one_pair(plan: MakePlan, cohort: MakeTrials) -> None:
    found = compare_paired(plan(), cohort(*["++++"] * 8, actions="F"), cohort(*["----"] * 8, actions="F"), seed=3)
    assert (found.pairs, found.answer) == (1, "indistinguishable")


def test_missing_trials_may_decide_nothing(plan: MakePlan, cohort: MakeTrials) -> None:
    second = cohort(*["+---"] * 8)
    assert compare_paired(plan(), cohort(*["+++-"] * 8), second, seed=3).answer == "better"
    found = compare_paired(plan(), cohort(*["++!!"] * 8), second, seed=3)
    assert found.difference == pytest.approx(0.75)
    assert found.answer == "better", "half of the trials are enough"
    lost = compare_paired(plan(), cohort(*["+!!!"] * 8), second, seed=3)
    assert lost.answer == "indistinguishable"
    assert lost.difference == pytest.approx(0.75)
    assert "depends on missing trials" in lost.reason


def test_only_subjects_of_both_runs_are_paired(plan: MakePlan, cohort: MakeTrials) -> None:
    first = [replace(record, subject=record.subject + 1) for record in cohort("++", "++")]
    assert compare_paired(plan(), first, cohort("--", "--"), seed=0).pairs == 1
    nobody = compare_paired(plan(), cohort("++"), cohort("!!"), seed=0)
    assert (nobody.pairs, nobody.answer, nobody.p_value) == (0, "indistinguishable", None)


def test_error_rate_of_the_test_under_equality() -> None:
    random = np.random.default_rng(11)
    wrong = sum(
        paired_p_value(list(random.binomial(20, 0.7, 8) - random.binomial(20, 0.7, 8)), seed=0, method="permutation")
        < 0.05
        for _ in range(400)
    )
    assert wrong / 400 < 0.08


def test_many_pairs_take_no_more_memory_than_some() -> None:
    values = list(np.random.default_rng(1).normal(0.02, 0.2, 600))
    paired_p_value(values[:20], seed=0, method="permutation")  # what is imported once is none of it
    tracemalloc.start()
    found = paired_p_value(values, seed=0, method="permutation")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == pytest.approx(paired_p_value(values, seed=0, method="t"), abs=0.02)
    assert peak < 60e6, "all flips of 600 pairs at once take 380 MB"
