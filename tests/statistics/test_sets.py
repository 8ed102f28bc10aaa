"""A sequential cell: the scheduler's questions after each set, and the report of the
finished sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cheesebench.records import CellPlan, SetResult, TrialRecord
from cheesebench.reports.cells import stopped
from cheesebench.statistics import CellResult, Verdict, judge
from cheesebench.statistics.judgement import judge_set
from cheesebench.statistics.sample import Copies, trials_by_subject

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]

PASSES, FAILS, BETWEEN = "+" * 20, "-" * 20, "+++++++---" * 2


@pytest.fixture
def sequential(
    plan: MakePlan, cohort: MakeTrials
) -> Callable[..., tuple[SetResult, CellResult]]:
    """Judge subjects with these trials as the scheduler does, and as reports do."""

    def both(*lives: str, **changes: object) -> tuple[SetResult, CellResult]:
        cell = plan(subjects=120, sequential=True, design="sequential", **changes)
        trials = cohort(*lives)
        return judge_set(cell, trials_by_subject(trials).values()), judge(cell, trials)

    return both


Both = Callable[..., tuple[SetResult, CellResult]]


def test_a_hopeless_model_needs_one_set(sequential: Both) -> None:
    asked, cell = sequential(*[FAILS] * 6)
    assert (asked.subjects, asked.decided) == (6, True)
    assert (cell.verdict, cell.subjects, cell.flags.stopped_by_result) == (
        Verdict.FAIL,
        6,
        True,
    )
    assert asked.text.startswith("FAIL after 4 subjects: evidence")


def test_an_open_cell_says_what_it_may_need(sequential: Both) -> None:
    asked, cell = sequential(*[PASSES] * 6)
    assert (asked.subjects, asked.decided, asked.futile, asked.needed) == (
        6,
        False,
        False,
        18,
    )
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert (
        "Undecided at 6 of at most 120 subjects; about 18 subjects would decide it in 4 of 5 such cases."
        in cell.reason
    )


@pytest.mark.parametrize(
    ("planned", "said"),
    [
        (False, "undecided after 1 subject"),
        (True, "undecided after 1 of at most 120 subjects"),
    ],
)
def test_one_subject_is_singular(sequential: Both, planned: bool, said: str) -> None:
    _, cell = sequential(PASSES)
    assert cell.game is not None
    assert stopped(
        replace(cell, game=replace(cell.game, subjects=1, sequential=planned))
    ).endswith(f", {said}")


def test_subjects_of_a_later_set_are_not_counted(sequential: Both) -> None:
    """They were begun ahead, with spare capacity; which ones depends on timing."""
    asked, cell = sequential(*[FAILS] * 6, PASSES, PASSES)
    assert asked.decided
    assert (cell.verdict, cell.rate, cell.subjects) == (Verdict.FAIL, 0, 6)
    assert cell.game is not None
    assert cell.game.beyond == 2
    assert "2 subjects beyond these have begun but are not counted." in cell.reason


def test_a_hole_counts_against_either_verdict(sequential: Both) -> None:
    asked, cell = sequential(*[FAILS] * 5, "$" * 20)
    assert asked.decided, "five decide it, whatever the sixth would have done"
    assert cell.verdict is Verdict.FAIL
    early, _ = sequential("$" * 20, "$" * 20, FAILS)
    assert not early.decided
    assert early.futile, "the budget is spent"


def test_a_breakdown_of_every_subject_stops_the_cell_and_of_one_does_not(
    sequential: Both,
) -> None:
    asked, cell = sequential(*["!" * 20] * 6)
    assert (asked.decided, asked.futile) == (False, True)
    assert cell.verdict is Verdict.ERROR
    asked, cell = sequential(*[PASSES] * 5, "!" * 20)
    assert (asked.decided, asked.futile) == (False, False)
    assert cell.verdict is Verdict.ERROR, "as yet"
    asked, cell = sequential(*[PASSES] * 5, "!" * 20, *[PASSES] * 24)
    assert asked.decided
    assert (cell.verdict, cell.missing) == (Verdict.PASS, 20)


def test_a_stale_cell_stops(sequential: Both) -> None:
    asked, cell = sequential(*[BETWEEN] * 50)
    assert asked.decided
    assert cell.game is not None
    assert (cell.game.stale, cell.verdict) == (True, Verdict.INCONCLUSIVE)
    assert "evidence had never reached 2 to 1" in cell.reason
    assert not sequential(*[BETWEEN] * 40)[0].decided


def test_a_higher_goal_takes_more_subjects(sequential: Both) -> None:
    assert not sequential(*[FAILS] * 4, goal=180.0)[0].decided
    assert sequential(*[FAILS] * 6, goal=180.0)[0].decided


def test_one_that_broke_off_is_a_copy_of_any_that_began_alike() -> None:
    copies = Copies()
    assert copies.is_new(["a", "ab", "abc"], whole=True)
    assert not copies.is_new(["a", "ab"], whole=False)
    assert copies.is_new(["x"], whole=False)
    assert not copies.is_new(["x", "xy"], whole=True)
    assert copies.is_new(["y", "yz"], whole=True)
    assert not copies.is_new(["y", "yz"], whole=True)
    assert copies.is_new([], whole=True), "idle subjects are not each other's copies"
    assert not copies.is_new([], whole=False)
