"""How uncertain the animals' number is: limits of the mean of a group of subjects."""

from __future__ import annotations

import math

from cheesebench.experiment.records import ReferenceValue
from cheesebench.statistics.intervals import quantile, wilson

#: Each tail of the two-sided 95 % interval that a reference may give.
PUBLISHED_TAIL = 0.025


def has_interval(reference: ReferenceValue) -> bool:
    """Tell whether the reference has an uncertainty of its own, rather than being used as a point.

    A number of animals is none: it does not say how much they differ.
    """
    return reference.interval is not None or _is_group(reference)


def reference_limits(reference: ReferenceValue, tail: float) -> tuple[float, float]:
    """Return the limits of the animals' pass rate that each leave ``tail`` outside, within 0 to 1.

    A 95 % interval is rescaled from the normal quantile of 2.5 % to that of ``tail``. With the standard deviation
    between ``n_animals`` animals they are those of the mean of that group: t with n - 1 degrees of freedom, so that
    together with the model's (Newcombe's method adds the squares) two groups of subjects are compared, each with a
    spread of its own, as in Welch's test. Animals that all did the same tell no more than so many draws: then it is
    Wilson's interval. Without either, both limits are the value.
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
