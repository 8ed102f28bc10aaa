"""The whole summary as JSON, deterministic: the same run gives the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cheesebench.statistics import to_plain
from cheesebench.strict_json import strict_json

if TYPE_CHECKING:
    from cheesebench.statistics import RunSummary


def render(summary: RunSummary) -> str:
    """Return ``summary.to_dict()`` as ``plain_json`` writes it."""
    return plain_json(summary)


def plain_json(result: object) -> str:
    """Return a result as ASCII JSON with sorted keys, and null for numbers that are not finite."""
    return strict_json(to_plain(result), sort_keys=True, indent=2) + "\n"
