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

    def wrong(self, looks: tuple[int, ...], found: tuple[float, ...]) -> float:
        """Return the probability of an error over all looks with these tails."""
        return most_wrong(looks, found)


#: A verdict on a measure without a range needs this many subjects: fewer do not show how skewed they are.
LEAST_SUBJECTS = 6
#: Less skewness is none: the correction would only lose digits.
SYMMETRIC = 1e-6


@dataclass(frozen=True, slots=True)
class Student:
    """Student's t, and t corrected for skewness (Hall 1992, J R Stat Soc B 54:221), whichever is more cautious.

    The standard deviation is taken to be at least ``least_sd``, that of the animals: a few subjects that happen to be
    alike say little about their spread.
    """

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

        own, sign = np.asarray(values, dtype=float), 1 if above else -1
        count = own.shape[-1]
        centre, spread, skewness = self._moments(own * sign)
        if count < LEAST_SUBJECTS:
            return np.ones_like(centre)
        ahead = centre - sign * np.asarray(mean, dtype=float)
        # Without any spread whatever is ahead is ahead for certain.
        certain = np.where(ahead == 0, 0.0, np.copysign(np.inf, ahead))
        distance = np.where(spread > 0, ahead / np.where(spread > 0, spread, 1), certain)
        near = np.where(spread > 0, distance, 0.0)
        corrected = near + skewness * near**2 / 3 + skewness**2 * near**3 / 27 + skewness / (6 * count)
        statistic = np.minimum(distance, np.where(skewness == 0, distance, corrected)) * count**0.5
        return np.asarray(stdtr(count - 1, -statistic))

    def limits(self, values: Sequence[float], tail: float) -> tuple[float, float]:
        """See ``Bounded``: the means whose p value is ``tail``."""
        import numpy as np

        if (count := len(values)) < LEAST_SUBJECTS:
            return self.lowest, self.highest
        centre, spread, skewness = map(float, self._moments(np.asarray(values, dtype=float)))
        far = quantile(tail, count - 1) / count**0.5
        distances = [far, -far]
        if skewness:
            distances += [
                3 / skewness * (float(np.cbrt(1 + skewness * (end - skewness / (6 * count)))) - 1)
                for end in (far, -far)
            ]
        return centre - spread * max(distances), centre - spread * min(distances)

    def _moments(self, own: Floats) -> tuple[Floats, Floats, Floats]:
        """Return mean, standard deviation (at least ``least_sd``) and skewness along the last axis."""
        import numpy as np

        if own.shape[-1] < LEAST_SUBJECTS:
            nothing = np.zeros(own.shape[:-1])
            return nothing, nothing, nothing
        centre = own.mean(axis=-1)
        away = own - centre[..., None]
        spread = np.maximum(own.std(axis=-1, ddof=1), self.least_sd)
        third = (away**3).mean(axis=-1)
        skewness = np.where(spread > 0, third / np.where(spread > 0, spread, 1) ** 3, 0.0)
        return centre, spread, np.where(np.abs(skewness) < SYMMETRIC, 0.0, skewness)

    def tails(self, looks: tuple[int, ...]) -> tuple[float, ...]:
        """See ``Bounded``; t has no slack to share out, so they are those of a normal random walk."""
        return symmetric_tails(looks)

    def wrong(self, looks: tuple[int, ...], found: tuple[float, ...]) -> float:
        """See ``Bounded``."""
        return walk_crossing(looks, found)


Means = Bounded | Student
#: The test of pass rates.
RATES = Bounded()
