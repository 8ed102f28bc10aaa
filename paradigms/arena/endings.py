"""What a trial came to, as it is told and recorded."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from cheesebench.interfaces import Value


class Ending(NamedTuple):
    """What a Gymnasium environment tells of a trial that has ended; see ``TrialResult``."""

    outcome: str
    success: bool | None
    measures: dict[str, Value]
    counters: dict[str, int]


def plain_value(value: Any) -> Value:
    """Return a value as it is recorded: sets as sorted lists, what is undefined as None."""
    if isinstance(value, frozenset):
        return sorted(map(str, value))
    if isinstance(value, float) and not math.isfinite(value):
        return None
    recorded: Value = value
    return recorded
