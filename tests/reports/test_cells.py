"""Sentences and numbers of cells: those of rare cells, and of leaderboards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cheesebench.experiment.controls import control_cell
from cheesebench.records import Construct, Measured, ReferenceValue
from cheesebench.reports.cells import (
    AUDIT_FAILED,
    NOT_VALIDATED,
    UNFINISHED,
    VALIDITY,
    _passes_by_origin,
    by_answer,
    connected,
    interval,
    leaderboard_lists,
    leaderboard_rows,
    leaderboard_title,
    passed_by,
    rate,
    validity,
)
from cheesebench.statistics import Verdict
from cheesebench.statistics.by_answer import AnswerRate, ByAnswer
from cheesebench.statistics.summary import (
    CellResult,
    Leaderboard,
    ModelDifference,
    Ranked,
)
from tests.reports.conftest import plan_of
from tests.reports.test_rich_run import CALLS

CONTROL = control_cell(plan_of(), "cue-off").variant
SLOW = ReferenceValue(
    value=30.0, measured=Measured(name="latency", better="lower", range=(0.0, 40.0))
)


def cell(verdict: Verdict = Verdict.PASS, **changes: Any) -> CellResult:
    """A cell of 200 trials; ``changes`` are those of its plan and of itself."""
    own = {name for name in changes if name in CellResult.__dataclass_fields__}
    plan = plan_of(**{name: changes[name] for name in changes.keys() - own})
    base = CellResult(
        plan=plan,
        verdict=verdict,
        reason="",
        n_text="n",
        planned=200,
        valid=200,
        rate=0.625,
    )
    return replace(base, **{name: changes[name] for name in own})


@pytest.mark.parametrize(
    ("verdict", "counts", "shown"),
    [
        (Verdict.ERROR, {"valid": 120, "missing": 80}, UNFINISHED),
        (Verdict.INCONCLUSIVE, {"valid": 99, "missing": 101}, UNFINISHED),
        (Verdict.INCONCLUSIVE, {"valid": 100, "missing": 100}, "62.5 %"),
        (Verdict.ERROR, {"valid": 0, "missing": 200, "rate": None}, "–"),
        (Verdict.ERROR, {"valid": 200, "missing": 0}, "62.5 %"),
        (Verdict.FAIL, {"valid": 1, "missing": 199}, "62.5 %"),
    ],
)
def test_numbers_of_a_cell_that_is_unfinished_are_no_result(
    verdict: Verdict, counts: dict[str, Any], shown: str
) -> None:
    one = cell(verdict, interval=(0.5, 0.75), **counts)
    assert rate(one) == shown
    assert interval(one) == ("–" if one.is_unfinished else "50–75 %")


def test_passes_are_counted_by_the_origin_of_the_animals_number() -> None:
    declared = [cell(), cell(Verdict.FAIL), cell()]
    reference = declared[0].plan.reference
    assert reference is not None
    measured = [cell(Verdict.FAIL, reference=replace(reference, interval=(0.7, 0.9)))]
    none = [cell(reference=None)]
    assert _passes_by_origin([*declared, *none]) == ""
    assert _passes_by_origin([*measured, *none]) == ""
    assert _passes_by_origin([*declared, *measured, *none]) == (
        " PASS: 0 of 1 against animals of which the same or nearly the same event was "
        "counted, 2 of 3 against other numbers (declared, invented, or an analogy)."
    )


def answers(p_value: float | None) -> tuple[ByAnswer, ...]:
    rates = (
        AnswerRate(value="left", rate=0.9, subjects=6),
        AnswerRate(value="right", rate=0.4, subjects=4),
    )
    return (ByAnswer(answer="side", rates=rates, gap=0.5, p_value=p_value),)


def test_subjects_by_their_answer() -> None:
    rows = by_answer([cell(answers=answers(None)), cell(answers=answers(0.25))])
    left = ("pool", "side", "left", "90 %", "6", "50", "–")
    right = ("pool", "side", "right", "40 %", "4", "", "")
    assert rows == [left, right, (*left[:-1], "0.25"), right]
    [first, _] = by_answer([cell(answers=answers(None), reference=SLOW)])
    assert first[-2] == "20", "half of the range, in the measure's unit"


def construct(status: Any = "validated", **changes: Any) -> Construct:
    return Construct(
        name="memory", abolished_by=(("blind", 0.25),), status=status, **changes
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"construct": construct()}, VALIDITY["validated"]),
        ({"construct": construct(also_failed=("ceiling",))}, AUDIT_FAILED),
        ({"construct": construct("searched", also_failed=("ceiling",))}, VALIDITY["searched"]),
        ({"construct": construct("failed")}, VALIDITY["failed"]),
        ({"construct": construct(doubt="It is not.")}, NOT_VALIDATED),
        ({"construct": None}, NOT_VALIDATED),
        ({"construct": construct(), "answers": answers(0.01)}, "depends on which answer is right"),
        ({"construct": construct(), "answers": answers(0.02)}, VALIDITY["validated"]),
        ({"construct": construct(), "answers": answers(0.01), "verdict": Verdict.FAIL}, VALIDITY["validated"]),
        ({"construct": construct(), "items": True}, ""),
    ],
)  # fmt: skip
def test_what_is_said_of_the_construct(changes: dict[str, Any], said: str) -> None:
    assert validity(cell(**changes)) == said


def test_a_pass_that_a_lesioned_subject_reaches_shows_nothing() -> None:
    failed = construct("failed", failed=("blind", 0.875))
    begins = "This PASS does not show memory: in the audit, a subject with the lesion "
    assert passed_by(cell(construct=failed)) == f"{begins}blind reaches 87.5 %."
    simple = construct(passed_by=("no memory", 0.75))
    assert passed_by(cell(construct=simple, margin=0.15)) == (
        "A PASS does not exclude a subject with no memory: the best one found reaches "
        "75 %, and PASS begins at 65 %."
    )
    slow = cell(construct=replace(failed, failed=("blind", 12.5)), reference=SLOW)
    assert passed_by(slow) == f"{begins}blind reaches a mean latency of 12.5."
    assert passed_by(cell(construct=construct())) == ""
    assert passed_by(cell(construct=failed, reference=None)) == ""
    assert passed_by(cell(Verdict.FAIL, construct=failed)) == ""


@pytest.mark.parametrize(
    ("answered", "counts", "changes", "said"),
    [
        (17, {"calls": 15, "notes": 3, "unparsed": 4}, {}, "Connected: 14 calls answered, 4 unparsed."),
        (0, {"calls": 15, "notes": 3, "unparsed": 4}, {}, "Connected: 12 calls answered, 4 unparsed."),
        (3, {"calls": 3, "unparsed": 3}, {}, "NO REPLY NAMED AN ACTION: 3 calls answered, and no reply was readable."),
        (3, {"calls": 3, "unparsed": 3}, {"claims": True}, ""),
        (3, {"calls": 3, "unparsed": 3}, {"variant": CONTROL}, ""),
        (0, {}, {}, ""),
    ],
)  # fmt: skip
def test_without_a_claim_it_is_said_whether_the_model_is_connected(
    answered: int, counts: dict[str, int], changes: dict[str, Any], said: str
) -> None:
    calls = replace(CALLS, answered=answered)
    plan = {"claims": False} | changes
    assert connected([cell(calls=calls, agent_counts=counts, **plan)]) == said


BOARD = Leaderboard(
    view="ascii_2d",
    variant="history=1",
    protocols=2,
    subjects=8,
    models=(
        Ranked(model="good", rate=0.9, best_rank=1, worst_rank=2),
        Ranked(model="like", rate=0.85, best_rank=1, worst_rank=2),
        Ranked(model="weak", rate=0.1, best_rank=3, worst_rank=3),
    ),
    differences=(
        ModelDifference(
            first="like", second="weak", difference=0.75, interval=(0.5, 1.0)
        ),
        ModelDifference(
            first="good", second="like", difference=0.05, interval=(-0.1, 0.2)
        ),
        ModelDifference(
            first="weak", second="good", difference=-0.8, interval=(-0.9, -0.7)
        ),
    ),
    not_validated=("pool",),
    passed=("good on pool", "like on pool"),
)


def test_a_leaderboard_gives_ranks_and_the_distance_from_the_first() -> None:
    assert leaderboard_rows(BOARD) == [
        ("1–2", "good", "90 %", "–", "–"),
        ("1–2", "like", "85 %", "-5", "-20 to +10"),
        ("3", "weak", "10 %", "-80", "-90 to -70"),
    ]


def test_a_leaderboard_says_where_it_holds() -> None:
    assert leaderboard_title(BOARD) == (
        "Leaderboard in ascii_2d, history=1: 2 protocols (not validated: pool), 8 subjects each"
    )
    plain = replace(BOARD, variant="", not_validated=(), subjects=1)
    assert leaderboard_title(plain) == (
        "Leaderboard in ascii_2d: 2 protocols, 1 subject each"
    )
    assert leaderboard_lists(BOARD).endswith(
        " PASS: good on pool, like on pool. FAIL: none."
    )
