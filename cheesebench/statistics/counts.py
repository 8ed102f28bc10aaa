"""A run reduced to counts: enough to compare it with another run, and small enough for a repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cheesebench.experiment.records import CellPlan
from cheesebench.statistics.sample import SubjectCount, SubjectRecords, draw_sample


@dataclass(frozen=True, slots=True)
class SubjectCounts:
    """One subject's trials that enter the estimand."""

    passed: int
    scored: int
    missing: int
    """Trials without a result: missing, or settled."""
    digest: str
    """Digest of the subject's trials, equal for exact copies; empty for an idle subject (``has_acted``)."""
    settled: int = 0
    """The part of ``missing`` that was not run because it could not have changed the verdict."""

    def rate(self, fill: bool | None) -> float:
        """Return the pass rate with missing trials left out (None), passed (True) or failed (False).

        Requires at least one trial that is counted.
        """
        if fill is None:
            return self.passed / self.scored
        return (self.passed + fill * self.missing) / (self.scored + self.missing)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCounts:
    """One cell: the properties that two cells must share to be paired, and its subjects by number."""

    model: str
    protocol: str
    view: str
    variant: str
    title: str
    sha256: str
    design: str
    trials: int
    """Planned for each subject."""
    estimand: str
    subjects: Mapping[int, SubjectCounts]
    agent: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """A run, or a baseline made from one, for comparison. ``name`` identifies it in messages."""

    name: str
    seed: object
    cells: tuple[CellCounts, ...]
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """Its provenance: ``run_id``, ``created``, ``versions``, ``git``, ``options``."""


def count_cell(plan: CellPlan, trials: Iterable[SubjectRecords]) -> CellCounts:
    """Return the counts of a cell; ``trials`` yields its subjects in ascending order; none is kept in memory."""
    return CellCounts(
        model=plan.model,
        protocol=plan.protocol,
        view=plan.view,
        variant=str(plan.variant),
        title=plan.title,
        sha256=plan.sha256,
        design=plan.design,
        trials=plan.trials,
        estimand=plan.estimand,
        agent=plan.agent,
        settings=plan.settings,
        subjects=count_subjects(draw_sample(plan, trials).per_subject),
    )


def count_subjects(subjects: Iterable[SubjectCount]) -> dict[int, SubjectCounts]:
    """Return the counts of every subject of a sample, by subject number."""
    return {
        one.subject: SubjectCounts(
            sum(one.results), len(one.results), one.missing + one.settled, one.digest, one.settled
        )
        for one in subjects
    }
