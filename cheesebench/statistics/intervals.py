"""Intervals of a pass rate and of a difference of rates, and the intraclass correlation of a subject's trials.

numpy and scipy.special are imported on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cheesebench.statistics.bounds import mean_limits, resized

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

#: ICC assumed for a single subject, which cannot show one.
ICC_FLOOR = 0.3
#: An observed ICC of at least this, with a p value below CONTRADICTING_P, contradicts an agent without memory.
CONTRADICTING_ICC = 0.1
#: Significance level of the F test that subjects differ.
CONTRADICTING_P = 0.001
#: Beyond this quantile (a normal tail of 1e-300) the interval is 0 to 1.
MAX_QUANTILE = 37.0


class Clustering(NamedTuple):
    """One-way analysis of variance of pass or fail over subjects, each of shape ``[...]``."""

    rate: Floats
    """Pooled over trials."""
    icc: Floats
    """Intraclass correlation, clipped to 0-1; 0 if it cannot be estimated."""
    p_value: Floats
    """Of the F test that subjects differ; 1 if it cannot be computed."""


class Shrinkage(NamedTuple):
    """Design effect and effective sample size, each of shape ``[...]``."""

    design_effect: Floats
    effective_n: Floats


def clustering(passed: ArrayLike, trials: ArrayLike) -> Clustering:
    """Return pooled rate, ICC and F test of counts of shape ``[..., subjects]``; every subject has at least one trial.

    The ICC is the ANOVA estimator for unequal cluster sizes (Donner 1986, Int Stat Rev 54:67).
    """
    import numpy as np
    from scipy.special import fdtrc

    x, m = np.broadcast_arrays(np.asarray(passed, dtype=float), np.asarray(trials, dtype=float))
    total, subjects = m.sum(axis=-1), m.shape[-1]
    rate = x.sum(axis=-1) / total
    if subjects < 2:
        return Clustering(rate, np.zeros_like(rate), np.ones_like(rate))
    between_df, within_df = subjects - 1, total - subjects
    own = x / m
    between = (m * (own - rate[..., None]) ** 2).sum(axis=-1) / between_df
    within = (m * own * (1 - own)).sum(axis=-1) / np.maximum(within_df, 1)
    typical = (total - (m**2).sum(axis=-1) / total) / between_df
    spread = between + (typical - 1) * within
    estimable = (within_df > 0) & (spread > 1e-12)
    icc = np.where(estimable, np.clip((between - within) / np.where(estimable, spread, 1), 0, 1), 0.0)
    # Without any variation within subjects F is infinite and p is 0.
    ratio = np.where(within > 1e-12, between / np.where(within > 1e-12, within, 1), np.inf)
    p_value = np.where(estimable, fdtrc(between_df, np.maximum(within_df, 1), ratio), 1.0)
    return Clustering(rate, icc, p_value)


def shrinkage(icc: ArrayLike, trials: ArrayLike) -> Shrinkage:
    """Return design effect and effective n; ``trials`` has shape ``[..., subjects]``, ``icc`` ``[...]``.

    The design effect is 1 + (m - 1) ICC with m the mean trials per subject weighted by trials (Kish).
    """
    import numpy as np

    m = np.asarray(trials, dtype=float)
    total = m.sum(axis=-1)
    effect = 1 + ((m**2).sum(axis=-1) / total - 1) * np.asarray(icc, dtype=float)
    return Shrinkage(effect, total / effect)


def quantile(tail: float, degrees: int | None) -> float:
    """Return the upper ``tail`` quantile of t with ``degrees`` degrees of freedom, or of the normal for None."""
    from scipy.special import ndtri, stdtrit

    return float(-ndtri(tail) if degrees is None else -stdtrit(degrees, tail))


def wilson(rate: ArrayLike, n: ArrayLike, z: float) -> tuple[Floats, Floats]:
    """Return Wilson's limits for a rate over ``n`` (may be fractional) with the quantile ``z``.

    Wilson (1927), J Am Stat Assoc 22:209. Implemented here because scipy accepts whole numbers only and importing
    statsmodels takes 110 MB; a test compares with statsmodels.
    """
    import numpy as np

    p, size = np.asarray(rate, dtype=float), np.asarray(n, dtype=float)
    if z > MAX_QUANTILE:
        return np.zeros_like(p), np.ones_like(p)
    scale = 1 + z**2 / size
    centre = (p + z**2 / (2 * size)) / scale
    half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / scale
    # Rounding errors must not exclude a rate of 0 or 1.
    return np.clip(centre - half, 0, p), np.clip(centre + half, p, 1)


def rate_limits(
    passed: Sequence[float], trials: Sequence[int], tail: float, distinct: Sequence[bool] | None = None
) -> tuple[float, float]:
    """Return lower and upper limits of a pass rate, each with tail probability ``tail``; one number per subject.

    For several subjects: Gaffke's limits for the mean of their rates (``bounds``), whatever their numbers of trials.
    For one subject: Wilson's limits over its trials, which hold for that subject only.

    ``distinct`` (one flag per subject) is False for exact copies of another subject. Copies count in the rate: whether
    trials repeat depends on how they went, so leaving copies out would bias the rate. But they are not further
    evidence: the limits are those of as many subjects as are distinct, with the distribution of all.
    """
    rates = [own / number for own, number in zip(passed, trials, strict=True)]
    evidence = len(rates) if distinct is None else sum(distinct)
    if evidence > 1:
        return mean_limits(rates if evidence == len(rates) else resized(rates, evidence).tolist(), tail)
    number = sum(trials) / len(rates)
    low, high = wilson(sum(rates) / len(rates), number, quantile(tail, None))
    return float(low), float(high)


def newcombe(
    rate: ArrayLike,
    limits: tuple[ArrayLike, ArrayLike],
    reference: float,
    reference_limits: tuple[float, float],
) -> tuple[Floats, Floats]:
    """Return limits of rate - reference, given the limits of both.

    Newcombe's hybrid score interval (1998, Stat Med 17:873, method 10). A reference whose limits equal its value is
    treated as a constant.
    """
    import numpy as np

    p = np.asarray(rate, dtype=float)
    below, above = np.maximum(0, p - limits[0]), np.maximum(0, limits[1] - p)
    reference_below = max(0.0, reference - reference_limits[0])
    reference_above = max(0.0, reference_limits[1] - reference)
    difference = p - reference
    return difference - np.hypot(below, reference_above), difference + np.hypot(above, reference_below)
