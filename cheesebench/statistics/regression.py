"""Has a model become worse than its baseline? A sequential rule over pairs of subjects with the same seeds.

A pair's difference is new - baseline, in -1 to 1. There are two conclusions. The model is *worse* if a sign-flip test
rejects the hypothesis of no change (the test is exact, because under that hypothesis the members of a pair are
exchangeable). It is *not worse* if Gaffke's bound excludes a loss of ``LOSS`` or more. Each conclusion has an error
probability of at most ``ALPHA`` over all looks together. If several protocols are compared, that of *worse* holds over
all of them (Bonferroni); otherwise an unchanged model would often fail somewhere.

A small ``LOSS`` needs many pairs: a model that now always fails in one subject of ten has lost ten points, and with 29
pairs one run in twenty does not show it at all. Identical pairs exclude a loss of 30 points after 14 to 18 pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from cheesebench.statistics.bounds import p_value
from cheesebench.statistics.means import RATES, Means
from cheesebench.statistics.merit import Scale
from cheesebench.statistics.spending import ALPHA, looks_until, symmetric_tails

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

#: Numbers of pairs at which a comparison is judged, up to the number in the baseline, which is the last look.
PAIR_LOOKS = (6, 8, 10, 12, 14, 18, 24, 30, 40, 50, 60)
#: *Not worse* excludes a loss of pass rate as large as this.
LOSS = 0.3
#: For a measure, *not worse* excludes a loss of this many margins (or of half of its range, if that is less).
LOSS_IN_MARGINS = 3
#: Up to so many pairs all sign flips are tried, beyond them so many as below.
EXACT_PAIRS = 12
FLIPS = 9999


def loss_of(margin: float, scale: Scale) -> float:
    """Return the loss of merit that a model must be shown not to have; ``margin`` is in the unit of a measure."""
    if scale.measured is None:
        return LOSS
    own = margin / abs(scale.unit)
    # Of a range, more than half is too much to lose, unless the margin is as wide.
    return max(own, min(LOSS_IN_MARGINS * own, 0.5)) if scale.bounded else LOSS_IN_MARGINS * own


class Change(StrEnum):
    """The result for the new run."""

    WORSE = "worse"
    NOT_WORSE = "not worse"
    GO_ON = "go on"
    """Neither, so far."""
    UNDECIDED = "undecided"
    """Neither, and there are no more pairs."""


@dataclass(frozen=True, slots=True)
class RegressionLook:
    """The result of a look at the first ``pairs`` pairs."""

    change: Change
    pairs: int
    most: int
    difference: float
    """Mean of new - baseline."""
    p_worse: float
    p_loss: float
    """P value of the hypothesis that it has lost ``LOSS`` or more."""


def regression_look(
    lowest: Sequence[float],
    highest: Sequence[float],
    most: int,
    *,
    loss: float = LOSS,
    tests: int = 1,
    means: Means = RATES,
) -> RegressionLook:
    """Return what the pairs say at the first look that decides, or else at the last one they allow.

    The differences (new - baseline, at least one) are in the order of the subjects' numbers, each as low, and as high,
    as it can still become: they are equal where no trial is open. Both p values rise or fall with every difference, so
    nothing between these two says anything else. ``most`` pairs can be had, and ``tests`` protocols are compared.
    ``means`` tests whether a loss is excluded: by bounds, or by t where the differences have none.
    """
    looks = looks_until(max(most, 1), PAIR_LOOKS)
    reached = [look for look in looks if look <= len(lowest)] or [len(lowest)]
    results = []
    for look in reached:
        number = looks.index(look) if look in looks else 0
        worse = float(flip_p_values(highest[:look]))
        if means is RATES:
            lost = p_value([(1 + one) / 2 for one in lowest[:look]], (1 - loss) / 2)
        else:
            lost = means.p_value(lowest[:look], -loss, above=True)
        change = Change.UNDECIDED if look >= most else Change.GO_ON
        if look in looks and look > 1:
            flips_tail = symmetric_tails(looks, ALPHA / tests)[number]
            if worse < flips_tail:
                change = Change.WORSE
            elif lost < means.tails(looks)[number] and float(flip_p_values(lowest[:look])) >= flips_tail:
                change = Change.NOT_WORSE
        results.append(RegressionLook(change, look, most, _mean(lowest, highest, look), worse, lost))
        if change in (Change.WORSE, Change.NOT_WORSE):
            break
    return results[-1]


def flip_p_values(differences: ArrayLike, flips: int = FLIPS) -> Floats:
    """Return one-sided p values of "no worse than before" for differences of shape ``[..., pairs]``, by sign flips.

    Flipping signs gives a sum as low as the observed one exactly if the flipped differences add up to 0 or more. The p
    value therefore falls with every difference. Beyond ``EXACT_PAIRS`` pairs a fixed random sample of flips is used.
    """
    import numpy as np

    values = np.asarray(differences, dtype=float)
    pairs = values.shape[-1]
    if pairs <= EXACT_PAIRS:
        chosen = (np.arange(2**pairs)[:, None] >> np.arange(pairs) & 1).astype(np.float32)
    else:
        chosen = np.random.default_rng(pairs).integers(0, 2, (flips, pairs)).astype(np.float32)
        chosen = np.concatenate([np.zeros((1, pairs), dtype=np.float32), chosen])  # nothing flipped is one of them
    sums = values.reshape(-1, pairs).astype(np.float32) @ chosen.T
    return np.asarray((sums >= -1e-5).mean(axis=-1).reshape(values.shape[:-1]))


def _mean(lowest: Sequence[float], highest: Sequence[float], look: int) -> float:
    return (sum(lowest[:look]) + sum(highest[:look])) / 2 / look
