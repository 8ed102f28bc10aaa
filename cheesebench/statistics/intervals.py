"""The interval of a pass rate when trials are clustered in subjects; vectorised over many data sets.

``passed`` and ``trials`` are arrays of shape ``[..., subjects]``; leading axes are independent data sets, so
the simulations that validate the rule run the code that judges. numpy and scipy.special load on the first call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cheesebench.statistics.summary import Unit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

#: Rates outside these hide the variation between subjects: the ICC found there cannot be trusted to be small.
EXTREME_RATES = (0.15, 0.85)
#: Lowest ICC used at extreme rates, and the one assumed where a single subject shows none.
ICC_FLOOR = 0.3
#: An observed ICC of at least this, with a p value below the next, contradicts an agent without memory.
CONTRADICTING_ICC = 0.1
#: P value of the F test that subjects differ, below which it does.
CONTRADICTING_P = 0.001
#: Beyond this quantile (a normal tail of 1e-300) nothing is claimed.
MAX_QUANTILE = 37.0


class Clustering(NamedTuple):
    """One-way analysis of variance of pass or fail over subjects, each of shape ``[...]``."""

    rate: Floats
    """Pooled over trials."""
    icc: Floats
    """Intraclass correlation, clipped to 0-1; 0 where it cannot be told."""
    p_value: Floats
    """Of the F test that subjects differ; 1 where it cannot be told."""


class Shrinkage(NamedTuple):
    """What clustering leaves of n, each of shape ``[...]``."""

    design_effect: Floats
    effective_n: Floats


def clustering(passed: ArrayLike, trials: ArrayLike) -> Clustering:
    """Return pooled rate, ICC and F test of counts of shape ``[..., subjects]``; every subject has a trial.

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
    told = (within_df > 0) & (spread > 1e-12)
    icc = np.where(told, np.clip((between - within) / np.where(told, spread, 1), 0, 1), 0.0)
    # Without any variation within subjects F is infinite and p is 0.
    ratio = np.where(within > 1e-12, between / np.where(within > 1e-12, within, 1), np.inf)
    p_value = np.where(told, fdtrc(between_df, np.maximum(within_df, 1), ratio), 1.0)
    return Clustering(rate, icc, p_value)


def shrinkage(rate: ArrayLike, icc: ArrayLike, trials: ArrayLike) -> Shrinkage:
    """Return design effect and effective n; ``trials`` has shape ``[..., subjects]``, the others ``[...]``.

    The design effect is 1 + (m - 1) ICC with m the mean trials per subject weighted by trials (Kish).
    """
    import numpy as np

    p, m = np.asarray(rate, dtype=float), np.asarray(trials, dtype=float)
    low, high = EXTREME_RATES
    used = np.where((p < low) | (p > high), np.maximum(icc, ICC_FLOOR), icc)
    total = m.sum(axis=-1)
    effect = 1 + ((m**2).sum(axis=-1) / total - 1) * used
    return Shrinkage(effect, total / effect)


def quantile(tail: float, degrees: int | None) -> float:
    """Return the quantile that leaves ``tail`` above it: of t with ``degrees``, or of the normal for None."""
    from scipy.special import ndtri, stdtrit

    return float(-ndtri(tail) if degrees is None else -stdtrit(degrees, tail))


def wilson(rate: ArrayLike, n: ArrayLike, z: float) -> tuple[Floats, Floats]:
    """Return Wilson's limits for a rate over ``n`` (may be fractional) with the quantile ``z``.

    Wilson (1927), J Am Stat Assoc 22:209. Written out: scipy takes whole numbers only, and importing statsmodels costs
    110 MB (a test compares with it).
    """
    import numpy as np

    p, size = np.asarray(rate, dtype=float), np.asarray(n, dtype=float)
    if z > MAX_QUANTILE:
        return np.zeros_like(p), np.ones_like(p)
    scale = 1 + z**2 / size
    centre = (p + z**2 / (2 * size)) / scale
    half = z * np.sqrt(p * (1 - p) / size + z**2 / (4 * size**2)) / scale
    # Rounding must not leave a rate of 0 or 1 outside.
    return np.clip(centre - half, 0, p), np.clip(centre + half, p, 1)


def rate_limits(
    passed: ArrayLike, trials: ArrayLike, tail: float, unit: Unit, distinct: Sequence[bool] | None = None
) -> tuple[Floats, Floats]:
    """Return the limits that each leave ``tail`` outside, for counts of shape ``[..., subjects]``.

    The whole rule. Unit ``"subject"``: pooled rate, ANOVA ICC with its floor, design effect, Wilson on the
    effective n with the quantile of t with subjects - 1 degrees of freedom. Unit ``"trial"``, and one subject
    (for which the limits then hold alone): plain Wilson over the trials.

    ``distinct`` (one flag per subject) is False for exact copies of another subject. They belong to the rate:
    whether a life is repeated depends on how it went, so leaving them out would bend it. But they are no further
    evidence: n and the degrees of freedom are those of the distinct subjects.
    """
    import numpy as np

    m = np.broadcast_to(np.asarray(trials, dtype=float), np.shape(passed))
    rate, icc, _ = clustering(passed, m)
    evidence = m if distinct is None else m[..., np.asarray(distinct, dtype=bool)]
    degrees = degrees_of_freedom(evidence.shape[-1], unit)
    n = evidence.sum(axis=-1) if degrees is None else shrinkage(rate, icc, evidence).effective_n
    return wilson(rate, n, quantile(tail, degrees))


def degrees_of_freedom(subjects: int, unit: Unit) -> int | None:
    """Return the degrees of freedom of t, or None where the quantile is the normal one."""
    return subjects - 1 if unit == "subject" and subjects > 1 else None


def newcombe(
    rate: ArrayLike,
    limits: tuple[ArrayLike, ArrayLike],
    reference: float,
    reference_limits: tuple[float, float],
) -> tuple[Floats, Floats]:
    """Return the limits of rate - reference from the limits of both.

    Newcombe's hybrid score interval (1998, Stat Med 17:873, method 10). A reference whose limits equal it is
    a point.
    """
    import numpy as np

    p = np.asarray(rate, dtype=float)
    below, above = np.maximum(0, p - limits[0]), np.maximum(0, limits[1] - p)
    reference_below = max(0.0, reference - reference_limits[0])
    reference_above = max(0.0, reference_limits[1] - reference)
    difference = p - reference
    return difference - np.hypot(below, reference_above), difference + np.hypot(above, reference_below)
