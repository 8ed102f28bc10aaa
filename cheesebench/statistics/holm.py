"""Holm's correction of p values for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the adjusted p values in the order given (Holm 1979, Scand J Stat 6:65)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for left, index in zip(
        range(len(p_values), 0, -1), sorted(range(len(p_values)), key=p_values.__getitem__), strict=True
    ):
        # The smallest p value is multiplied by the number of tests, the next by one less, and so on.
        highest = max(highest, min(1.0, left * p_values[index]))
        adjusted[index] = highest
    return adjusted
