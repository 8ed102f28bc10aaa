"""Intervals of rates, differences and means, and the intraclass correlation of a
subject's trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cheesebench.statistics.betting import LIMIT, limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def clustering(passed: Sequence[float], trials: Sequence[float]) -> tuple[float, float]:
    """Return the intraclass correlation (ICC, 0 to 1) of a subject's trials, and the p
    value of the F test of whether subjects differ.

    Every subject has at least one trial. The ICC is the ANOVA estimator for unequal
    cluster sizes (Donner 1986, Int Stat Rev 54:67). If it cannot be estimated, it is 0,
    and p is 1.
    """
    import numpy as np
    from scipy.special import fdtrc

    x, m = np.asarray(passed, dtype=float), np.asarray(trials, dtype=float)
    total, between_df = m.sum(), len(m) - 1
    within_df = total - len(m)
    if between_df < 1 or within_df <= 0:
        return 0.0, 1.0
    own = x / m
    between = (m * (own - x.sum() / total) ** 2).sum() / between_df
    within = (m * own * (1 - own)).sum() / within_df
    typical = (total - (m**2).sum() / total) / between_df
    spread = between + (typical - 1) * within
    if spread <= 1e-12:
        return 0.0, 1.0
    icc = min(1.0, max(0.0, float((between - within) / spread)))
    # Without any variation within subjects, F is infinite and p is 0.
    return icc, float(
        fdtrc(between_df, within_df, between / within)
    ) if within > 1e-12 else 0.0


def quantile(tail: float, degrees: int | None) -> float:
    """Return the upper ``tail`` quantile of the t distribution with ``degrees`` degrees
    of freedom, or of the normal distribution if ``degrees`` is None.
    """
    from scipy.special import ndtri, stdtrit

    return float(-ndtri(tail) if degrees is None else -stdtrit(degrees, tail))


def wilson(rate: ArrayLike, n: ArrayLike, z: float) -> tuple[Floats, Floats]:
    """Return Wilson's limits for a rate over ``n`` trials with the quantile ``z``.
    ``n`` need not be a whole number.

    Wilson (1927), J Am Stat Assoc 22:209. It is implemented here because scipy accepts
    whole numbers only, and statsmodels takes 110 MB when imported. A test compares it
    with statsmodels.
    """
    import numpy as np

    p, size = np.asarray(rate, dtype=float), np.asarray(n, dtype=float)
    scale = 1 + z**2 / size
    centre = (p + z**2 / (2 * size)) / scale
    half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / scale
    # Rounding errors must not exclude a rate of 0 or 1.
    return np.clip(centre - half, 0, p), np.clip(centre + half, p, 1)


def rate_limits(passed: Sequence[float], trials: Sequence[int]) -> tuple[float, float]:
    """Return the 95 % limits of a pass rate. ``passed`` and ``trials`` have one number
    per subject, in the order of the subjects' numbers.

    Several subjects have the limits of the betting games (``betting.limits``), which
    hold at any number of subjects. A single subject has Wilson's limits over its
    trials, which hold for that subject only.
    """
    rates = [own / number for own, number in zip(passed, trials, strict=True)]
    if len(rates) > 1:
        return limits(rates, rates, LIMIT)
    low, high = wilson(rates[0], trials[0], quantile(1 / LIMIT, None))
    return float(low), float(high)


def t_interval(
    values: Sequence[float], most: float = 1.0, imagined: float = 0.0
) -> tuple[float, float] | None:
    """Return the two-sided 95 % t interval of the mean of differences, which lie
    between -most and most. Return None for fewer than two differences.

    If all n differences are equal, they show no spread. The interval then allows that a
    share of 1 - (1 / 40)^(1 / n) of all pairs differs from them, in either direction
    (binomial). Otherwise, if ``imagined`` is not 0, each end is computed with one more
    difference of this size, which has the sign of that end.
    """
    import numpy as np

    own, count = np.asarray(values, dtype=float), len(values)
    if count < 2:
        return None
    mean = float(own.mean())
    if np.ptp(own) < 1e-12:
        unseen = 1 - LIMIT ** (-1 / count)
        return mean - unseen * (most + mean), mean + unseen * (most - mean)

    def end(sign: int) -> float:
        taken = np.append(own, sign * imagined) if imagined else own
        half = quantile(1 / LIMIT, len(taken) - 1) * taken.std(ddof=1)
        return float(taken.mean() + sign * half / len(taken) ** 0.5)

    return max(-most, end(-1)), min(most, end(1))


def mean_limits(
    estimates: Sequence[tuple[float, float, float]],
) -> tuple[float, float]:
    """Return the 95 % limits of the mean of independent estimates. Each estimate comes
    with its lower and its upper limit.

    The squared distances from the estimates to their limits add up (MOVER: Zou and
    Donner 2008, Stat Med 27:1693). An estimate's larger distance counts on both sides.
    With a distance of its own on each side, the interval of many rates near 1 would
    miss the mean too often, because a rate of 1 has no distance above. Neither limit is
    further from the mean than the mean of the estimates' limits on that side.
    """
    count = len(estimates)
    mean, low, high = (math.fsum(side) / count for side in zip(*estimates, strict=True))
    squares = (max(one - least, most - one) ** 2 for one, least, most in estimates)
    half = math.fsum(squares) ** 0.5 / count
    return max(mean - half, low), min(mean + half, high)


def imagined_pair(differences: Sequence[float]) -> float:
    """Return the size of the imagined difference that counts as evidence against an
    answer about the mean: 1, or 0 if none is needed.

    Many small gains may hide a rare total failure that no pair has shown yet, so one
    such pair is imagined. None is needed if every difference is -1, 0 or 1, because
    sign flips are then exact.
    """
    import numpy as np

    return float(not np.isin(np.abs(differences), (0.0, 1.0)).all())
