"""Alpha spending: dividing an error probability over several looks at accumulating subjects.

Each look has its own tail probability for the bounds, proportional to ``EARLY + (1 - EARLY) * t ** 3`` with t the share
of subjects so far: small at first, so that most is left for the last look, but enough to decide six subjects that never
succeed. Looks beyond ``FULL`` subjects have the part ``LATE`` of that at ``FULL``: few cells are still open there, and
with a last chance of their own two runs of one model disagree less often, while nearly nothing is lost before.

The factor is computed, not simulated: it is the largest with which all-or-none subjects, for whom the bound is
the exact binomial test, are judged wrongly with probability at most ``ALPHA``, whatever the true rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from cheesebench.experiment.records import LOOKS, looks_until

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: One-sided error probability of PASS and of FAIL, over all looks together.
ALPHA = 0.05
#: Part of a look's tail probability that does not depend on the number of subjects.
EARLY = 0.12
#: Number of subjects at which a look has the largest tail probability.
FULL = 60
#: Tail probability of each later look, as a part of that at ``FULL``.
LATE = 0.5
#: Most true rates times subjects in a computation: with many subjects, rates between those tried make no difference.
_MOST_STATES = 64_000

__all__ = [
    "ALPHA",
    "EARLY",
    "FULL",
    "LATE",
    "LOOKS",
    "looks_until",
    "most_wrong",
    "spend",
    "symmetric_tails",
    "tails",
    "walk_crossing",
]

Crossing = Callable[[tuple[int, ...], tuple[float, ...]], float]


@lru_cache(maxsize=256)
def tails(looks: tuple[int, ...]) -> tuple[float, ...]:
    """Return the tail probability of each look; a single look gets all of ``ALPHA``."""
    return spend(looks, most_wrong)


@lru_cache(maxsize=256)
def symmetric_tails(looks: tuple[int, ...], alpha: float = ALPHA) -> tuple[float, ...]:
    """Return the tails for a test that is exact at each look, such as sign flips."""
    return spend(looks, walk_crossing, alpha)


def spend(looks: tuple[int, ...], crossing: Crossing, alpha: float = ALPHA) -> tuple[float, ...]:
    """Return the largest tails of the shape above for which ``crossing`` is at most ``alpha``."""
    if len(looks) == 1:
        return (alpha,)
    most = min(looks[-1], FULL)
    shape = [EARLY + (1 - EARLY) * (look / most) ** 3 if look <= most else LATE for look in looks]
    low, high = 0.0, alpha
    for _ in range(14):
        middle = (low + high) / 2
        fits = crossing(looks, tuple(middle * part for part in shape)) <= alpha
        low, high = (middle, high) if fits else (low, middle)
    return tuple(low * part for part in shape)


@lru_cache(maxsize=256)
def most_wrong(looks: tuple[int, ...], found: tuple[float, ...]) -> float:
    """Return the largest probability that all-or-none subjects are ever judged wrongly, over all true rates.

    It is largest where a number of passes just suffices at one of the looks, so that only those rates are tried.
    """
    import numpy as np
    from scipy.special import betaincinv

    passes = [np.arange(1, look + 1) for look in looks]
    rates = np.concatenate(
        [betaincinv(k, look - k + 1, tail) for k, look, tail in zip(passes, looks, found, strict=True)]
    )
    every = 1 + len(rates) * looks[-1] // _MOST_STATES
    return float(crossing_probability(looks, found, np.sort(rates)[::every] * (1 - 1e-12)).max())


def crossing_probability(looks: Sequence[int], found: Sequence[float], rates: Floats) -> Floats:
    """Return the probability that all-or-none subjects pass at one of the looks, for each true rate (an array).

    They are tested against that very rate: these are errors.
    """
    import numpy as np
    from scipy.special import betainc

    state = np.zeros((len(rates), looks[-1] + 1))
    state[:, 0] = 1
    wrong, before = np.zeros(len(rates)), 0
    for look, tail in zip(looks, found, strict=True):
        new = _binomial(look - before, rates[:, None])
        moved = np.zeros_like(state)
        for passed in range(look - before + 1):
            moved[:, passed : look + 1] += state[:, : look + 1 - passed] * new[:, passed : passed + 1]
        counts = np.arange(1, look + 1)
        crossed = betainc(counts, look - counts + 1, rates[:, None]) <= tail * (1 + 1e-9)
        wrong += (moved[:, 1 : look + 1] * crossed).sum(axis=1)
        moved[:, 1 : look + 1] *= ~crossed
        state, before = moved, look
    return wrong


def walk_crossing(looks: tuple[int, ...], found: tuple[float, ...]) -> float:
    """Return the probability that a normal random walk crosses at one of the looks (in steps fine enough for that)."""
    import numpy as np
    from scipy.special import ndtri

    fine = max(1, 1200 // looks[-1])
    state, wrong, before = np.ones(1), 0.0, 0
    for look, tail in zip(looks, found, strict=True):
        steps = (look - before) * fine
        state = np.convolve(state, _binomial(steps, 0.5))
        # Half a step further: the walk is looked at where a step has its middle.
        boundary = look * fine / 2 - ndtri(tail) * (look * fine) ** 0.5 / 2 + 0.5
        first = min(len(state), int(np.ceil(boundary)))
        part = first - boundary
        wrong += float(state[first:].sum() + part * (state[first - 1] if first <= len(state) - 1 else 0.0))
        if first < len(state):
            state[first:] = 0.0
            state[first - 1] *= 1 - part
        before = look
    return wrong


def _binomial(trials: int, rate: float | Floats) -> Floats:
    """Return the probability of each number of passes from 0 to ``trials``, along the last axis of ``rate``."""
    import numpy as np
    from scipy.special import gammaln, xlog1py, xlogy  # importing scipy.stats takes half a second

    passes = np.arange(trials + 1)
    ways = gammaln(trials + 1) - gammaln(passes + 1) - gammaln(trials - passes + 1)
    return np.asarray(np.exp(ways + xlogy(passes, rate) + xlog1py(trials - passes, -np.asarray(rate, dtype=float))))
