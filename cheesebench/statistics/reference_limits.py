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
    """Return limits of the animals' pass rate (0 to 1), each with tail probability ``tail``.

    A published 95 % interval is rescaled from the normal quantile of 2.5 % to that of ``tail``. With the standard
    deviation between ``n_animals`` animals, the limits are those of the group mean: t with n - 1 degrees of freedom.
    Combined with the model's limits (Newcombe's method adds the squares) this compares two groups with separate
    variances, as Welch's test does. If the standard deviation is 0, Wilson's interval over the animals is used. Without
    either, both limits are the value.
    """
    value = reference.value
    if reference.interval is not None:
        scale = quantile(tail, None) / quantile(PUBLISHED_TAIL, None)
        low, high = reference.interval
        return value - scale * (value - low), value + scale * (high - value)
    if not _is_group(reference):
        return value, value
    assert reference.sd is not None
    assert reference.n_animals is not None
    if reference.sd == 0:
        lower, upper = wilson(value, reference.n_animals, quantile(tail, None))
        return float(lower), float(upper)
    half = quantile(tail, reference.n_animals - 1) * reference.sd / math.sqrt(reference.n_animals)
    return max(0.0, value - half), min(1.0, value + half)


def _is_group(reference: ReferenceValue) -> bool:
    return reference.sd is not None and reference.n_animals is not None and reference.n_animals > 1
