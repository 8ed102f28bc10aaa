"""Records like those of a run."""

from __future__ import annotations

import math

from cheesebench.records import CellPlan, TrialRecord


def record(plan: CellPlan, subject: int, trial: int, **changes: object) -> TrialRecord:
    values: dict[str, object] = {
        "block": "b",
        "session": 1,
        "outcome": "found",
        "success": True,
        "reward": 0.1 + 0.2,
        "steps": 3,
        "actions": "F.S",
        "counters": {"z": 1, "a": 0},
        "measures": {
            "speed": 1 / 3,
            "n": 2,
            "none": None,
            "yes": True,
            "seen": ["ä", "b"],
            "endless": math.inf,
        },
        "variables": {"side": "west"},
    }
    key = {
        "model": plan.model,
        "protocol": plan.protocol,
        "view": plan.view,
        "subject": subject,
        "trial": trial,
    }
    return TrialRecord(**{**values, **key, **changes})  # type: ignore[arg-type]
