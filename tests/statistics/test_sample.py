"""The trials that enter: estimand, missing trials, subjects without
a record, copies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cheesebench.records import CellPlan, TrialRecord
from cheesebench.statistics.sample import draw_sample, enter_estimand, trials_by_subject

MakeLife = Callable[..., list[TrialRecord]]
MakePlan = Callable[..., CellPlan]


def test_all_takes_what_the_reference_is_about(life: MakeLife) -> None:
    first, *others = life(0, "+-+")
    records = [replace(first, compared=False), *others]
    assert [record.trial for record in enter_estimand("all", records)] == [1, 2]


def test_last_takes_the_last_of_the_compared_trials(life: MakeLife) -> None:
    records = [
        replace(record, compared=record.trial % 2 == 0) for record in life(0, "++++++")
    ]
    assert [record.trial for record in enter_estimand("last:2", records)] == [2, 4]
    assert len(enter_estimand("last:9", records)) == 3, "a short life enters whole"


def test_block_takes_its_trials_and_missing_ones_of_unknown_block(
    life: MakeLife,
) -> None:
    blocks = ["training", "probe", "", "training"]
    records = [
        replace(r, block=name) for r, name in zip(life(0, "++!!"), blocks, strict=True)
    ]
    assert [record.trial for record in enter_estimand("block:probe", records)] == [1, 2]
    assert [
        record.trial for record in enter_estimand("block:probe,training", records)
    ] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "estimand", ["", "first:2", "last", "last:0", "last:x", "block:", "all:3"]
)
def test_a_malformed_estimand_is_refused_with_what_is_possible(estimand: str) -> None:
    with pytest.raises(
        ValueError, match=f"'{estimand}'; it must be 'all', 'last:K' or 'block:NAME'"
    ):
        enter_estimand(estimand, [])


@pytest.mark.parametrize(("last", "typical"), [(2, 2), (5, 3)])
def test_planned_trials_that_are_not_compared_are_not_among_the_last(
    last: int, typical: int, plan: MakePlan
) -> None:
    blocks = (("test", 1, 3, True), ("after", 1, 3, False))
    one = plan(trials=6, estimand=f"last:{last}", blocks=blocks)
    assert draw_sample(one, []).absent_trials == typical


def test_lives_are_put_in_order(cohort: MakeLife) -> None:
    grouped = trials_by_subject(reversed(cohort("+-", "-+")))
    assert [(s, [r.trial for r in life]) for s, life in grouped.items()] == [
        (0, [0, 1]),
        (1, [0, 1]),
    ]


def distinct(plan: CellPlan, records: list[TrialRecord]) -> list[int]:
    return [
        life.subject
        for life in draw_sample(plan, trials_by_subject(records).values()).per_subject
        if life.distinct
    ]


def test_a_copy_is_the_same_moves_with_the_same_ends(
    plan: MakePlan, cohort: MakeLife
) -> None:
    same = cohort("+-", "+-", actions="FLF")
    assert distinct(plan(), same) == [0]
    other_ends = cohort("+-", "++", actions="FLF")
    assert distinct(plan(), other_ends) == [0, 1], "it has met other draws"
    other_moves = cohort("+-", "+-")
    assert distinct(plan(), other_moves) == [0, 1]


def test_subjects_that_were_stopped_before_they_acted_are_no_evidence_and_no_copies(
    plan: MakePlan, cohort: MakeLife
) -> None:
    records = cohort("$$", "++", "$$")
    assert distinct(plan(), records) == [1]
    assert draw_sample(plan(), trials_by_subject(records).values()).copies == 0


@pytest.mark.parametrize("actions", ["SSSS", "S..S", "...."])
def test_subjects_that_only_stay_and_fail_are_not_copies(
    plan: MakePlan, cohort: MakeLife, actions: str
) -> None:
    """Their starting positions were drawn, although their records do not show it."""
    assert distinct(plan(), cohort("tt", "tt", actions=actions)) == [0, 1]
    assert distinct(plan(), cohort("t+", "t+", actions=actions)) == [0], (
        "staying has paid: that is behaviour"
    )


def test_absent_subjects_are_missing_whole_but_short_lives_are_not(
    plan: MakePlan, cohort: MakeLife
) -> None:
    sample = draw_sample(
        plan(subjects=4, trials=20), trials_by_subject(cohort("+++", "+-")).values()
    )
    assert (sample.seen, sample.absent, sample.absent_trials) == (2, 2, 3)
    nothing = draw_sample(plan(subjects=4, trials=20, estimand="last:5"), [])
    assert (nothing.absent, nothing.absent_trials) == (4, 5)
