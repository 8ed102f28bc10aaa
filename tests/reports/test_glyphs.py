"""Bars and columns that can be read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench.reports.markdown import LEVELS, bar, columns, level


@pytest.mark.parametrize(
    ("proportion", "picture"),
    [
        (0.0, "░░░░"),
        (0.25, "█░░░"),
        (0.5, "██░░"),
        (0.375, "█▌░░"),
        (1.0, "████"),
        (1.7, "████"),
        (-1.0, "░░░░"),
    ],
)
def test_bars(proportion: float, picture: str) -> None:
    assert bar(proportion, 4) == picture


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 40))
def test_bars_have_their_width_and_levels_are_monotone(
    one: float, other: float, width: int
) -> None:
    assert len(bar(one, width)) == width
    assert (LEVELS.index(level(one)) <= LEVELS.index(level(other))) or one > other


def test_columns_show_a_gap_where_there_is_no_value() -> None:
    assert columns([0.0, None, 1.0], 3) == "▁▁▁ ··· ███"
    assert columns([0.5], 1) in ("▄", "▅")
