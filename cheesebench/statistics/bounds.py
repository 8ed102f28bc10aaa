"""Distribution-free bounds on the mean of a quantity between 0 and 1 that is measured once per subject.

The bound is Gaffke's (2005, Math Methods Stat 14:451; studied by Learned-Miller and Thomas 2019, arXiv 1905.06208).
Add one subject with the worst possible value, and take the mean of all values with random weights from a flat Dirichlet
distribution. The probability that this weighted mean is at most ``mean`` is the p value of the hypothesis "the
population mean is at most ``mean``". It suits verdicts for three reasons. If each subject passes all trials or none, it
is the exact binomial test (Clopper-Pearson). It is monotone in every value, so an additional pass never makes a verdict
worse. And it assumes nothing about how subjects differ, so it stays valid if one subject in twenty always fails.

``rates`` has shape ``[..., subjects]``; leading axes are independent data sets, so that simulations of verdicts run the
same code as the verdicts. numpy and scipy are imported on first use.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

#: Up to this many subjects p values are exact; beyond, they are saddlepoint approximations (within 4 %).
EXACT_SUBJECTS = 100
#: Limits are found to this distance.
PRECISION = 1e-10
#: Most rounds of that: each halves the bracket, so this is never reached.
MOST_ROUNDS = 200


def p_value(rates: Sequence[float], mean: float) -> float:
    """Return the p value of "the population mean is at most ``mean``", given the rates of at least one subject."""
    ahead = [rate - mean for rate in rates if rate >= mean]
    if not any(ahead) or mean >= 1:
        return 1.0
    if mean <= 0:
        return 0.0
    if len(rates) > EXACT_SUBJECTS:
        return float(p_values(rates, mean))
    # Flat Dirichlet weights are exponential variables divided by their sum. The p value is therefore the probability
    # that a sum of exponential times with the means in `ahead` is less than one with the means in `behind`: a race
    # between two runners, computed stage by stage.
    behind = [mean - rate for rate in rates if rate < mean] + [mean]
    chances = [1.0] * len(behind) + [0.0]
    for own in ahead:
        for stage in reversed(range(len(behind))):
            other = behind[stage]
            chances[stage] = (other * chances[stage] + own * chances[stage + 1]) / (own + other)
    return chances[0]


def p_values(rates: ArrayLike, mean: ArrayLike) -> Floats:
    """Return ``p_value`` of many data sets: ``rates`` of shape ``[..., subjects]``, ``mean`` and result ``[...]``."""
    import numpy as np

    values, means = np.asarray(rates, dtype=float), np.asarray(mean, dtype=float)
    shape = np.broadcast_shapes(values.shape[:-1], means.shape)
    inside = np.clip(np.broadcast_to(means, shape), 1e-12, 1 - 1e-12).reshape(-1)
    gaps = np.broadcast_to(values, (*shape, values.shape[-1])).reshape(-1, values.shape[-1]) - inside[:, None]
    solve = _race if values.shape[-1] <= EXACT_SUBJECTS else _saddlepoint
    found = np.where(gaps.max(axis=1) > 0, solve(gaps, inside), 1.0).reshape(shape)
    found = np.where(means <= 0, np.where(values.max(axis=-1) > 0, 0.0, 1.0), found)
    return np.asarray(np.where(means >= 1, 1.0, found))


def _race(gaps: Floats, mean: Floats) -> Floats:
    """Return the p values, as in ``p_value``; ``gaps`` (rates - mean) has shape ``[sets, subjects]``."""
    import numpy as np

    # Sorted, and padded with stages that take no time.
    ahead = -np.sort(-np.maximum(gaps, 0), axis=1).T
    behind = np.concatenate([mean[None], -np.sort(np.minimum(gaps, 0), axis=1).T])
    ahead = np.ascontiguousarray(ahead[: max(1, int((ahead > 0).any(axis=1).sum()))])
    behind = np.ascontiguousarray(behind[: int((behind > 0).any(axis=1).sum())])
    chances = np.ones((len(behind) + 1, len(mean)))
    chances[-1] = 0
    for own in ahead:
        # Avoid 0 / 0 where both runners are at padded stages.
        shares = behind / np.maximum(own + behind, 1e-300)
        for stage in reversed(range(len(behind))):
            chance, after = chances[stage], chances[stage + 1]
            chance -= after
            chance *= shares[stage]
            chance += after
    return np.asarray(chances[0])


def _saddlepoint(gaps: Floats, mean: Floats) -> Floats:
    """Return the p values for many subjects (Lugannani and Rice 1980, Adv Appl Prob 12:475)."""
    import numpy as np
    from scipy.special import ndtr

    steps = np.concatenate([gaps, -mean[:, None]], axis=1)
    low, high = 1 / steps.min(axis=1), 1 / np.maximum(steps.max(axis=1), 1e-12)
    for _ in range(45):  # the derivative of the cumulant generating function rises from -infinity to infinity
        middle = (low + high) / 2
        rising = (steps / (1 - middle[:, None] * steps)).sum(axis=1) > 0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    tilted = steps / (1 - middle[:, None] * steps)
    root = np.sign(middle) * np.sqrt(np.maximum(2 * np.log1p(-middle[:, None] * steps).sum(axis=1), 1e-300))
    scaled = middle * np.sqrt((tilted**2).sum(axis=1))
    near = np.abs(root) < 1e-4  # at the mean itself the formula is 0 / 0
    corrected = root + np.log(np.where(near, 1.0, scaled / np.where(near, 1.0, root))) / np.where(near, 1.0, root)
    skewness = 2 * (tilted**3).sum(axis=1) / (tilted**2).sum(axis=1) ** 1.5
    return np.asarray(np.where(near, 0.5 + skewness / 6 / np.sqrt(2 * np.pi), ndtr(corrected)))


def mean_limits(rates: Sequence[float], tail: float) -> tuple[float, float]:
    """Return lower and upper limits of the population mean, each with tail probability ``tail``."""
    low = _lower(rates, tail)
    return low, 1 - _lower([1 - rate for rate in rates], tail)


def _lower(rates: Sequence[float], tail: float) -> float:
    middle = sum(rates) / len(rates)
    if middle <= 0:
        return 0.0
    above = p_value(rates, middle) - tail
    if above <= 0:  # only with a tail above .3
        return middle
    # Ridders' method (1979, IEEE Trans Circuits Syst 26:979). Importing scipy.optimize takes longer than a verdict.
    low, high, below, found = 0.0, middle, -tail, -1.0
    for _ in range(MOST_ROUNDS):
        half = (low + high) / 2
        at_half = p_value(rates, half) - tail
        previous, found = found, half - (high - half) * at_half / sqrt(at_half**2 - below * above)
        at_found = p_value(rates, found) - tail
        if abs(found - previous) < PRECISION or at_found == 0:
            return found
        ends = ((low, below), (half, at_half), (found, at_found), (high, above))
        low, below = max(end for end in ends if end[1] < 0)
        high, above = min(end for end in ends if end[1] > 0)
    return low


def resized(rates: ArrayLike, subjects: int) -> Floats:
    """Return ``subjects`` rates with the same mean and distribution as these, ascending along the last axis.

    The sorted distribution is cut into that many equal parts; each part becomes a subject with the part's mean. Used
    with fewer subjects than rates to discount copies, and with more to extrapolate to a larger sample.
    """
    import numpy as np

    ordered = np.sort(np.asarray(rates, dtype=float), axis=-1)
    count = ordered.shape[-1]
    if subjects == count:
        return ordered
    edges, old = np.linspace(0, 1, subjects + 1), np.linspace(0, 1, count + 1)
    # The overlap of each old part with each new one.
    shared = np.minimum(edges[None, 1:], old[1:, None]) - np.maximum(edges[None, :-1], old[:-1, None])
    parts = np.clip(ordered @ (np.maximum(shared, 0) * subjects), ordered[..., :1], ordered[..., -1:])
    return np.asarray(parts)
