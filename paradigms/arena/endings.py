"""The ending of a trial for Gymnasium's info and for records."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from cheesebench.interfaces import Value


class Ending(NamedTuple):
    """Result of a trial for a Gymnasium environment; see ``TrialResult``."""

    outcome: str
    success: bool | None
    measures: dict[str, Value]
    counters: dict[str, int]


def plain_value(value: Any) -> Value:
    """Return a value for records: sets as sorted lists, undefined values as None."""
    if isinstance(value, frozenset):
        return sorted(map(str, value))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    recorded: Value = value
    return recorded
