"""Rewards must rank subjects like the verdict: over a life, failing must not earn more
than passing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.interfaces import AuditSettings
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import audit

Plant = Callable[..., ArenaParadigm]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ((), "ok"),
        # The wrong arm pays more, so running into any arm earns more than being right.
        (
            (
                (
                    "- {enter: arm, end: error}",
                    "- {enter: arm, reward: 1.2, end: error}",
                ),
            ),
            "FAIL",
        ),
    ],
)
def test_a_subject_that_fails_earns_no_more(
    plant: Plant, changes: tuple[tuple[str, str], ...], verdict: str
) -> None:
    settings = AuditSettings(trials=400, parts=("chance", "rewards"), effort=0.05)
    found = {one.rule: one for one in audit(plant(*changes), [], settings)}
    row = found["reward over a life"]
    assert row.verdict == verdict, row.text
    assert ("pay success more" in row.text) == (verdict == "FAIL")
