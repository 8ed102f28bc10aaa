"""Values of places: means of outcomes, shrunk towards a prior and from general to specific."""

from __future__ import annotations

from collections.abc import Hashable

#: How many outcomes the guess, or the more general mean, counts for.
WEIGHT = 1.0


class Means:
    """Running means by key."""

    def __init__(self) -> None:
        self._sums: dict[Hashable, tuple[float, int]] = {}

    def add(self, key: Hashable, outcome: float) -> None:
        """Note an outcome."""
        total, count = self._sums.get(key, (0.0, 0))
        self._sums[key] = total + outcome, count + 1

    def mean(self, key: Hashable, guess: float) -> float:
        """Return the mean of the outcomes and of the guess."""
        total, count = self._sums.get(key, (0.0, 0))
        return (total + WEIGHT * guess) / (count + WEIGHT)

    def forget(self, key: Hashable) -> None:
        """Forget the outcomes of one key."""
        self._sums.pop(key, None)

    def __len__(self) -> int:
        return len(self._sums)
