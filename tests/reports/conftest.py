"""Runs to report on: synthetic records, judged by the real statistics."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Sequence

import pytest

from cheesebench.records import CellPlan, ReferenceValue, TrialRecord
from cheesebench.statistics import RunSummary, summarise_run

MANIFEST: dict[str, object] = {
    "format": 1,
    "run_id": "20250101-101010-ab12",
    "created": "2025-01-01T10:10:10+00:00",
    "versions": {"python": "3.11.7", "cheesebench": "0.1.0"},
    "git": {"revision": "0123456789abcdef0123456789abcdef01234567", "dirty": True},
    "options": {"seed": 7, "design": "cohort", "models": ["walker"]},
}

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]
MakeRun = Callable[..., RunSummary]


def plan_of(protocol: str = "pool", **changes: object) -> CellPlan:
    """A cell of ten subjects with five sessions of four trials each."""
    values: dict[str, object] = {
        "model": "walker",
        "protocol": protocol,
        "view": "ascii_2d",
        "title": f"The {protocol}",
        "dimension": "spatial learning",
        "species": "C57BL/6",
        "sha256": "0123456789abcdef" * 4,
        "design": "cohort",
        "subjects": 10,
        "trials": 20,
        "memory": "life",
        "reference": ReferenceValue(
            value=0.8,
            curve=(0.3, 0.5, 0.65, 0.75, 0.8),
            species="C57BL/6",
            source="PMC1",
            status="declared",
        ),
        "chance": 0.25,
    }
    return CellPlan(**{**values, **changes})  # type: ignore[arg-type]


def trials_of(
    plan: CellPlan, rate: float, *, missing: str = "", seed: int = 0
) -> list[TrialRecord]:
    """Trials that succeed with probability ``rate``, or are all missing."""
    chance = random.Random(f"{plan.key} {seed}")
    records = []
    for subject in range(plan.subjects):
        for trial in range(plan.trials):
            where = {
                "model": plan.model,
                "protocol": plan.protocol,
                "view": plan.view,
                "variant": str(plan.variant),
            }
            record = TrialRecord(**where, subject=subject, trial=trial)  # type: ignore[arg-type]
            if missing:
                records.append(dataclasses.replace(record, missing=missing))
                continue
            success = chance.random() < rate
            records.append(
                dataclasses.replace(
                    record,
                    session=trial // 4 + 1,
                    outcome="correct"
                    if success
                    else chance.choice(["error", "timeout"]),
                    success=success,
                    steps=20,
                    actions="".join(chance.choices("FLRS", k=20)),
                    measures={"latency": chance.randint(5, 90)},
                )
            )
    return records


@pytest.fixture
def make_plan() -> MakePlan:
    return plan_of


@pytest.fixture
def make_trials() -> MakeTrials:
    return trials_of


@pytest.fixture
def make_run() -> MakeRun:
    """Return a run of (plan, rate) pairs; a rate that is text is the cause of missing
    trials.
    """

    def make(
        cells: Sequence[tuple[CellPlan, float | str]],
        manifest: dict[str, object] = MANIFEST,
    ) -> RunSummary:
        trials: list[TrialRecord] = []
        for plan, rate in cells:
            trials += (
                trials_of(plan, 0.0, missing=rate)
                if isinstance(rate, str)
                else trials_of(plan, rate)
            )
        return summarise_run(manifest, [plan for plan, _ in cells], trials)

    return make
