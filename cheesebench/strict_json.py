"""JSON as its standard has it: browsers and strict parsers read neither infinity nor NaN, so those become null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def strict_json(value: object, **how: Any) -> str:
    """Return ``value`` as ASCII JSON with null for numbers that are not finite; ``how`` is for ``json.dumps``."""
    return json.dumps(_finite(value), allow_nan=False, **how)


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
