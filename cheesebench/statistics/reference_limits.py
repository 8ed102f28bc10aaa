"""The uncertainty of the animals' rate: limits of the mean of a group."""

from __future__ import annotations

import math

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.intervals import quantile, wilson

#: Tail probability on each side of the 95 % interval that a reference may give.
PUBLISHED_TAIL = 0.025


def has_interval(reference: ReferenceValue) -> bool:
    """Return whether the reference has an uncertainty of its own, rather than being used as a constant.

    A number of animals alone does not suffice: it does not say how much they differ.
    """
    return reference.interval is not None or _is_group(reference)


def reference_limits(reference: ReferenceValue, tail: float) -> tuple[float, float]:
    """Return limits of the animals' pass rate (0 to 1) or measure, each with tail probability ``tail``.

    A published 95 % interval is rescaled from the normal quantile of 2.5 % to that of ``tail``. With the standard
    deviation between ``n_animals`` animals, the limits are those of the group mean: t with n - 1 degrees of freedom.
    Combined with the model's limits (Newcombe's method adds the squares) this compares two groups with separate
    variances, as Welch's test does. If the standard deviation is 0, Wilson's interval over the animals is used. Without
    either, both limits are the value.
    """
    value = reference.value
    low, high = (0.0, 1.0) if reference.measured is None else reference.measured.range or (-math.inf, math.inf)
    if reference.interval is not None:
        scale = quantile(tail, None) / quantile(PUBLISHED_TAIL, None)
        given = reference.interval
        return value - scale * (value - given[0]), value + scale * (given[1] - value)
    if not _is_group(reference):
        return value, value
    assert reference.sd is not None
    assert reference.n_animals is not None
    if reference.sd == 0 and math.isfinite(high - low):
        ends = wilson((value - low) / (high - low), reference.n_animals, quantile(tail, None))
        lower, upper = (low + float(end) * (high - low) for end in ends)
        return lower, upper
    half = quantile(tail, reference.n_animals - 1) * reference.sd / math.sqrt(reference.n_animals)
    return max(low, value - half), min(high, value + half)


def _is_group(reference: ReferenceValue) -> bool:
    return reference.sd is not None and reference.n_animals is not None and reference.n_animals > 1
