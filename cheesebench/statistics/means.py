"""How the mean of subjects is tested: by its bounds where the quantity has them, by t where it has none.

A verdict asks whether a population mean is above (or below) some value. ``Bounded`` answers for quantities between 0
and 1, such as a pass rate, and assumes nothing else (``bounds``). ``Student`` answers for a measure without bounds. Its
t test takes the subjects' standard deviation to be at least ``least_sd``, that of the animals: a handful of subjects
that happen to be alike says little about their spread, and without the floor t errs often where subjects are skewed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.statistics.bounds import mean_limits, p_value, p_values
from cheesebench.statistics.intervals import quantile
from cheesebench.statistics.spending import most_wrong, symmetric_tails, tails, walk_crossing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bounded:
    """Gaffke's bounds, for values between 0 and 1."""

    lowest = 0.0
    highest = 1.0

    def p_value(self, values: Sequence[float], mean: float, *, above: bool) -> float:
        """Return the p value of "the population mean is not above (or not below) ``mean``" for one set of subjects."""
        return p_value(values, mean) if above else p_value([1 - value for value in values], 1 - mean)

    def p_values(self, values: ArrayLike, mean: ArrayLike, *, above: bool) -> Floats:
        """Return the same for many: ``values`` of shape ``[..., subjects]``, ``mean`` and result ``[...]``."""
        import numpy as np

        if above:
            return p_values(values, mean)
        return p_values(1 - np.asarray(values, dtype=float), 1 - np.asarray(mean, dtype=float))

    def limits(self, values: Sequence[float], tail: float) -> tuple[float, float]:
        """Return lower and upper limits of the population mean, each with tail probability ``tail``."""
        return mean_limits(values, tail)

    def tails(self, looks: tuple[int, ...]) -> tuple[float, ...]:
        """Return the tail probability of each look."""
        return tails(looks)

    def wrong(self, looks: tuple[int, ...], found: Sequence[float]) -> float:
        """Return the probability of an error over all looks with these tails."""
        return most_wrong(looks, found)


@dataclass(frozen=True, slots=True)
class Student:
    """Student's t with a floor under the standard deviation, for values without bounds; at least two subjects."""

    least_sd: float
    lowest = -math.inf
    highest = math.inf

    def p_value(self, values: Sequence[float], mean: float, *, above: bool) -> float:
        """See ``Bounded``."""
        return float(self.p_values(values, mean, above=above))

    def p_values(self, values: ArrayLike, mean: ArrayLike, *, above: bool) -> Floats:
        """See ``Bounded``."""
        import numpy as np
        from scipy.special import stdtr

        own = np.asarray(values, dtype=float)
        count = own.shape[-1]
        ahead = (own.mean(axis=-1) - np.asarray(mean, dtype=float)) * (1 if above else -1)
        if count < 2:
            return np.ones_like(ahead)
        error = np.maximum(own.std(axis=-1, ddof=1), self.least_sd) / count**0.5
        # Without any spread whatever is ahead is ahead for certain.
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.where(error > 0, ahead / error, np.where(ahead == 0, 0.0, np.sign(ahead) * np.inf))
        return np.asarray(stdtr(count - 1, -statistic))

    def limits(self, values: Sequence[float], tail: float) -> tuple[float, float]:
        """See ``Bounded``."""
        import numpy as np

        count, mean = len(values), sum(values) / len(values)
        if count < 2:
            return self.lowest, self.highest
        half = quantile(tail, count - 1) * max(float(np.std(values, ddof=1)), self.least_sd) / count**0.5
        return mean - half, mean + half

    def tails(self, looks: tuple[int, ...]) -> tuple[float, ...]:
        """See ``Bounded``; t has no slack to share out, so they are those of a normal random walk."""
        return symmetric_tails(looks)

    def wrong(self, looks: tuple[int, ...], found: Sequence[float]) -> float:
        """See ``Bounded``."""
        return walk_crossing(looks, found)


Means = Bounded | Student
#: The test of pass rates.
RATES = Bounded()
