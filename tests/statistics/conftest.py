"""Cells and lives in one line each.

A life is a string with one character per trial: ``+`` success, ``-`` wrong choice,
``t`` timeout, ``!`` missing through infrastructure, ``$`` missing for budget.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cheesebench.records import CellPlan, ReferenceValue, TrialRecord

ENDS: dict[str, dict[str, Any]] = {
    "+": {"outcome": "correct", "success": True},
    "-": {"outcome": "error", "success": False},
    "t": {"outcome": "timeout", "success": False},
    "!": {"missing": "infrastructure", "actions": ""},
    "$": {"missing": "budget", "actions": ""},
}


def _plan(reference: float | ReferenceValue | None = 0.8, **changes: Any) -> CellPlan:
    if isinstance(reference, float):
        reference = ReferenceValue(value=reference)
    named: dict[str, Any] = {
        "model": "a model",
        "protocol": "a_maze",
        "view": "ascii_2d",
        "title": "A maze",
        "dimension": "spatial learning",
        "species": "C57BL/6",
        "sha256": "0" * 64,
        "design": "cohort",
        "subjects": 10,
        "trials": 20,
        "memory": "life",
    }
    return CellPlan(reference=reference, **(named | changes))


def _life(subject: int, results: str, **changes: Any) -> list[TrialRecord]:
    records = []
    for trial, result in enumerate(results):
        named: dict[str, Any] = {
            "model": "a model",
            "protocol": "a_maze",
            "view": "ascii_2d",
            "session": 1,
            # Actions differ between subjects, because equal ones would make them
            # copies.
            "actions": "F" * (trial % 3)
            + "".join("FLRS"[subject >> shift & 3] for shift in (6, 4, 2, 0)),
        }
        records.append(
            TrialRecord(
                subject=subject, trial=trial, **(named | changes | ENDS[result])
            )
        )
    return records


def _cohort(*results: str, **changes: Any) -> list[TrialRecord]:
    return [
        record
        for subject, life in enumerate(results)
        for record in _life(subject, life, **changes)
    ]


@pytest.fixture(scope="session")
def plan() -> Callable[..., CellPlan]:
    """Make the plan of a cell; ``reference`` may be a number, a
    ReferenceValue or None.
    """
    return _plan


@pytest.fixture(scope="session")
def life() -> Callable[..., list[TrialRecord]]:
    """Make the trials of one subject from a string."""
    return _life


@pytest.fixture(scope="session")
def cohort() -> Callable[..., list[TrialRecord]]:
    """Make the trials of subjects 0, 1, ... from one string each."""
    return _cohort
