"""The whole summary as JSON, deterministic: the same run gives the same bytes."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from cheesebench.statistics import to_plain

if TYPE_CHECKING:
    from cheesebench.statistics import RunSummary


def render(summary: RunSummary) -> str:
    """Return ``summary.to_dict()`` as ``plain_json`` writes it."""
    return plain_json(summary)


def plain_json(result: object) -> str:
    """Return a result as ASCII JSON with sorted keys, and null for numbers that are not finite."""
    return json.dumps(_finite(to_plain(result)), sort_keys=True, indent=2, allow_nan=False) + "\n"


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
