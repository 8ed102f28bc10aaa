"""Intervals of rates, against published values; seeds of audits."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cheesebench.paradigms.arena.audit import first_seed
from cheesebench.paradigms.arena.audit.runs import Z95, differ, rate, shown, wilson


@pytest.mark.parametrize(
    ("passed", "trials", "low", "high"),
    # Newcombe 1998 (Stat Med 17:857), table I, method 3.
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson(passed: int, trials: int, low: float, high: float) -> None:
    assert wilson(passed, trials, Z95) == pytest.approx((low, high), abs=1e-4)


def test_lives_that_differ_tell_less() -> None:
    alike, unlike = rate([(5, 10)] * 20), rate([(10, 10), (0, 10)] * 10)
    assert alike.value == unlike.value == 0.5
    assert unlike.high - unlike.low > 2 * (alike.high - alike.low)


def test_nothing_is_known_without_a_trial() -> None:
    nothing = rate([])
    assert (nothing.value, nothing.low, nothing.high) == (0.0, 0.0, 1.0)


def test_rates_differ_by_more_than_luck() -> None:
    measured = rate([(25, 100)] * 20)
    assert not differ(measured, 0.26 * 4000, 4000)
    assert differ(measured, 0.5 * 2000, 2000)


def test_shares_are_short() -> None:
    shares = {
        0: ".00",
        0.0049: ".0049",
        0.25: ".25",
        0.999: "1.00",
        1: "1.00",
        3e-19: ".00",
    }
    assert [shown(share) for share in shares] == list(shares.values())


def test_audits_with_different_seeds_share_no_life() -> None:
    first = sorted(first_seed(seed) for seed in range(200))
    assert first[0] == 0
    assert min(later - earlier for earlier, later in pairwise(first)) > 10_000
