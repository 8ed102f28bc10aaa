"""A lesion says whether a score was reached by what the protocol claims to measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cheesebench.experiment.records import CellPlan, Construct, LesionClaim, TrialRecord, Variant
from cheesebench.statistics import judge, summarise_run

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]
CONSTRUCT = Construct(name="spatial memory", abolished_by=(("hide=landmarks", 0.25),), status="validated")
#: Twenty that are just as good as the rodents (0.8) are too few for a PASS: 0.7 is 0.875 of it, and 0.875^20 is 0.07.
SUBJECTS = 30
GOOD, POOR = "++++-" * 4, "-----" * 3 + "+----"


def lesioned(plan: CellPlan, **claim: object) -> CellPlan:
    claimed = LesionClaim(words="without landmarks", **claim)  # type: ignore[arg-type]
    return replace(plan, variant=Variant(control="hide=landmarks"), claims=False, lesion=claimed)


@pytest.mark.parametrize(
    ("life", "at_most", "said"),
    [
        (GOOD, 0.25, "80 % of trials succeed without landmarks, but at most 25 % should: this is not spatial memory."),
        (POOR, 0.25, "The rate is at most 25 % without landmarks, as spatial memory must be."),
        (
            GOOD,
            0.79,
            "80 % of trials succeed without landmarks, and at most 79 % should: whether this is spatial memory",
        ),
        (GOOD, None, "The construct, spatial memory, makes no claim about subjects without landmarks."),
    ],
)
def test_a_control_says_whether_its_score_fell(
    plan: MakePlan, cohort: MakeTrials, life: str, at_most: float | None, said: str
) -> None:
    cell = judge(
        lesioned(plan(construct=CONSTRUCT, subjects=SUBJECTS), at_most=at_most),
        cohort(*[life] * SUBJECTS, variant="control=hide=landmarks"),
    )
    assert cell.reason.startswith(said)
    assert cell.verdict == "INCONCLUSIVE"
    assert bool(cell.contradicted) is ("is not spatial" in said)


def test_the_plain_cell_is_told_what_contradicts_it(plan: MakePlan, cohort: MakeTrials) -> None:
    plain = plan(construct=CONSTRUCT, subjects=SUBJECTS)
    control = lesioned(plain, at_most=0.25)
    trials = [*cohort(*[GOOD] * SUBJECTS), *cohort(*[GOOD] * SUBJECTS, variant=str(control.variant))]
    run = summarise_run({}, [plain, control], trials)
    assert run.cells[0].verdict == "PASS", "the verdict is about the rodent, not about what was measured"
    assert run.cells[0].contradicted == run.cells[1].contradicted != ()
    [result] = run.controls
    assert result.lesion == run.cells[1].contradicted[0]


def test_what_must_not_matter_and_does(plan: MakePlan, cohort: MakeTrials) -> None:
    plain = plan(construct=CONSTRUCT, subjects=SUBJECTS)
    control = lesioned(plain, spared=True)
    for life, said in (
        (POOR, "The rate falls without landmarks, which must not matter for spatial memory."),
        (GOOD, ""),
    ):
        trials = [*cohort(*[GOOD] * SUBJECTS), *cohort(*[life] * SUBJECTS, variant=str(control.variant))]
        [result] = summarise_run({}, [plain, control], trials).controls
        assert result.lesion == said


def test_without_a_construct_nothing_is_said(plan: MakePlan, cohort: MakeTrials) -> None:
    cell = judge(lesioned(plan()), cohort(*[GOOD] * SUBJECTS, variant="control=hide=landmarks"))
    assert cell.reason == "A control makes no claim: compare its curve with that of the plain cell."
    assert not cell.contradicted
