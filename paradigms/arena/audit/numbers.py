"""Rates with intervals for trials clustered in lives. Only the standard library, so that an audit needs no scipy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Normal quantiles: of the 95 % and 99 % intervals that are shown, and of a rule that looks at many numbers at once.
Z95, Z99, Z_MANY = 1.96, 2.576, 4.0


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of trials with its interval (``low``, ``high``)."""

    passed: int
    trials: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share; 0 without a trial."""
        return self.passed / self.trials if self.trials else 0.0

    def __str__(self) -> str:
        return f"{shown(self.value)} [{shown(self.low)}, {shown(self.high)}]"

    def numbers(self) -> dict[str, object]:
        """Return the rate as JSON values."""
        return {"rate": self.value, "low": self.low, "high": self.high, "trials": self.trials}


def shown(share: float) -> str:
    """Return a share as text: ``.25``, ``1.00``, or ``.0049`` where two digits are not enough."""
    text = f"{share:.2f}" if share < 1e-6 or share >= 0.095 else f"{share:.2g}"
    return text.removeprefix("0") if text.startswith("0.") else text


def rate(counts: Iterable[tuple[int, int]], z: float = Z95) -> Rate:
    """Return the rate of ``(passed, trials)`` counts, one pair for each life.

    Wilson's interval on the effective number of trials: where lives differ by more than chance (a policy that is
    always right with half of the subjects), each trial tells less (Kish's design effect from the observed variance
    of the lives' rates; never below 1).
    """
    lives = [(passed, trials) for passed, trials in counts if trials]
    passed, trials = sum(p for p, _ in lives), sum(n for _, n in lives)
    low, high = wilson(passed, trials, z, _design_effect(lives, passed, trials))
    return Rate(passed, trials, low, high)


def wilson(passed: float, trials: float, z: float, design_effect: float = 1.0) -> tuple[float, float]:
    """Return Wilson's limits of a share; (0, 1) without a trial."""
    n = trials / design_effect
    if n <= 0:
        return 0.0, 1.0
    p = passed / trials
    centre, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def _design_effect(lives: Sequence[tuple[int, int]], passed: int, trials: int) -> float:
    if len(lives) < 2 or not 0 < passed < trials:
        return 1.0
    p = passed / trials
    # Variance of the pooled rate between lives (linearised ratio), over what independent trials would have.
    residuals = sum((own - p * n) ** 2 for own, n in lives)
    between = residuals * len(lives) / (len(lives) - 1) / trials**2
    return max(1.0, between / (p * (1 - p) / trials))


def differ(one: Rate, passed: float, trials: float, z: float = Z_MANY) -> bool:
    """Return whether a rate differs from another one by more than chance (two-proportion z test).

    The variance of ``one`` is taken from its interval, so that its lives may differ.
    """
    other = passed / trials
    pooled = (one.passed + passed) / (one.trials + trials)
    spread = (one.high - one.low) / (2 * Z95)
    error = math.sqrt(max(spread**2, pooled * (1 - pooled) / one.trials) + pooled * (1 - pooled) / trials)
    return abs(one.value - other) > z * error + 1e-12
