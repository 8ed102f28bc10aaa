"""Holm's correction by hand and against statsmodels."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from cheesebench.statistics.holm import holm


def test_by_hand() -> None:
    assert holm([]) == []
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert holm([0.7, 0.6]) == [1, 1], "no p value is above 1"


@settings(max_examples=25)  # statsmodels takes 70 ms for each
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_statsmodels_agrees(p_values: list[float]) -> None:
    assert holm(p_values) == multipletests(p_values, method="holm")[1].tolist()
