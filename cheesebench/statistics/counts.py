"""A run reduced to counts: enough to compare it with another run, and small enough for a repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cheesebench.experiment.records import CellCalls, CellPlan, Measured
from cheesebench.statistics.merit import PASS_RATE, Scale, measured_scale
from cheesebench.statistics.sample import SubjectCount, SubjectRecords, draw_sample
from cheesebench.statistics.wording import doubts


@dataclass(frozen=True, slots=True)
class SubjectCounts:
    """One subject's trials that enter the estimand."""

    passed: float
    """Sum of their merits (``merit``): passed trials, or a measure from worse to better."""
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
class CountedMeasure:
    """The measure that the verdict on a cell is about; margin and the animals' standard deviation are in its unit."""

    name: str
    better: Literal["higher", "lower"]
    range: tuple[float, float] | None
    margin: float
    sd: float = 0.0

    @property
    def scale(self) -> Scale:
        """From the measure to merits."""
        return measured_scale(Measured(name=self.name, better=self.better, range=self.range), self.sd)


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
    measured: CountedMeasure | None = None
    """What is compared if it is not the pass rate."""
    doubts: tuple[str, ...] = ()
    """What makes its numbers doubtful, as reports say it: replies that are no answers, and missing trials."""

    @property
    def scale(self) -> Scale:
        """From what is compared to merits."""
        return PASS_RATE if self.measured is None else self.measured.scale


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """A run, or a baseline made from one, for comparison. ``name`` identifies it in messages."""

    name: str
    seed: object
    cells: tuple[CellCounts, ...]
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """Its provenance: ``run_id``, ``created``, ``versions``, ``git``, ``options``, ``plugins``."""


def count_cell(plan: CellPlan, trials: Iterable[SubjectRecords], calls: CellCalls | None = None) -> CellCounts:
    """Return the counts of a cell; ``trials`` yields its subjects in ascending order; none is kept in memory.

    ``calls`` are the totals of its calls to a model, if it made any.
    """
    sample = draw_sample(plan, trials)
    missing, planned = sample.missing + sample.not_run, sample.entered + sample.not_run
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
        subjects=count_subjects(sample.per_subject, of_measure=plan.measured is not None),
        measured=counted_measure(plan),
        doubts=doubts(sample.tally.agent_counts(), calls, missing, planned) if sample.per_subject else (),
    )


def counted_measure(plan: CellPlan) -> CountedMeasure | None:
    """Return what of the plan is needed to compare two cells whose verdict is about a measure."""
    measured, reference = plan.measured, plan.reference
    if measured is None or reference is None:
        return None
    return CountedMeasure(
        name=measured.name,
        better=measured.better,
        range=measured.range,
        margin=plan.margin,
        sd=reference.sd or 0.0,
    )


def count_subjects(subjects: Iterable[SubjectCount], *, of_measure: bool = False) -> dict[int, SubjectCounts]:
    """Return the counts of every subject of a sample, by subject number: of passes, or of the judged measure."""
    counted = {}
    for one in subjects:
        merits: Sequence[float] = one.merits if of_measure else one.results
        missing = one.missing + one.settled
        counted[one.subject] = SubjectCounts(sum(merits), len(merits), missing, one.digest, one.settled)
    return counted
