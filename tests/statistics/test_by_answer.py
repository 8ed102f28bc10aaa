"""The check by answers: exact p values, few false remarks, and required remarks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from benchmarks.by_answer import false_remarks, told
from cheesebench.statistics.by_answer import by_answer, p_value, relabelings


def test_all_relabelings_are_counted_where_they_are_few() -> None:
    scores = [1.0] * 5 + [0.5] * 5
    assert relabelings([5, 5]) == math.comb(10, 5)
    assert p_value(scores, [5, 5], "") == pytest.approx(2 / 252)


def test_p_is_that_of_counting_by_hand() -> None:
    rng = np.random.default_rng(3)
    scores = rng.random(7)
    real = abs(scores[:3].mean() - scores[3:].mean())
    gaps = []
    for chosen in itertools.combinations(range(7), 3):
        rest = [k for k in range(7) if k not in chosen]
        gaps.append(abs(scores[list(chosen)].mean() - scores[rest].mean()))
    share = sum(gap >= real - 1e-12 for gap in gaps) / len(gaps)
    assert p_value(scores.tolist(), [3, 4], "") == pytest.approx(share)


def test_drawn_relabelings_depend_on_the_seed_alone_and_count_the_real_one() -> None:
    scores = [1.0] * 20 + [0.5] * 20
    assert p_value(scores, [20, 20], "1") == 1 / 10_000
    rng = np.random.default_rng(1)
    other = rng.random(40).tolist()
    assert p_value(other, [20, 20], "1") == p_value(other, [20, 20], "1")
    assert p_value(other, [20, 20], "1") == pytest.approx(
        p_value(other, [20, 20], "2"), abs=0.03
    )


def test_nothing_is_said_of_few_subjects_but_the_rates_stand() -> None:
    few = by_answer("side", [(0, 1.0), (0, 1.0), (1, 0.0), (1, 0.0), (1, 0.0)], 1)
    lone = by_answer("side", [(0, 1.0)] + [(1, 0.0)] * 9, 1)
    for found in (few, lone):
        assert found is not None
        assert (found.p_value, found.is_uneven, found.gap) == (None, False, 1.0)
        assert [one.rate for one in found.rates] == [1.0, 0.0]
    assert by_answer("side", [(1, 0.3)] * 9, 1) is None


def test_a_small_gap_is_no_remark_however_sure_it_is() -> None:
    found = by_answer("side", [(k % 2, 0.7 + 0.2 * (k % 2)) for k in range(40)], 1)
    assert found is not None
    assert found.p_value is not None
    assert found.p_value < 0.001
    assert not found.is_uneven


def test_false_remarks_are_rare_and_a_preferred_answer_is_told() -> None:
    shares = [share for _, share in false_remarks(20)]
    assert np.mean(shares) <= 0.01
    assert max(shares) <= 0.1  # two of twenty
    assert told((1.0, 0.5), 20, 20) == 1.0
    assert told((1.0, 0.0), 20, 20) == 1.0
