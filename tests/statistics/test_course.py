"""The course of a sequential cell: the same in whatever order its trials come, and no subject is stopped too early."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.experiment.records import SETTLED, CellPlan, ReferenceValue, TrialRecord, looks_until
from cheesebench.statistics import Verdict, judge
from cheesebench.statistics.course import CellCourse

TRIALS = 8


def cell(estimand: str = "all", most: int = 14) -> CellPlan:
    return CellPlan(
        model="m",
        protocol="p",
        view="v",
        title="P",
        dimension="d",
        species="mouse",
        sha256="0" * 64,
        design="sequential",
        subjects=most,
        trials=TRIALS,
        memory="life",
        estimand=estimand,
        reference=ReferenceValue(value=0.8),
        looks=looks_until(most),
    )


def life(subject: int, passes: Sequence[bool], way: int | None = None) -> list[TrialRecord]:
    """Return a life; subjects with the same ``way`` and passes are copies."""
    return [
        TrialRecord(
            model="m",
            protocol="p",
            view="v",
            subject=subject,
            trial=trial,
            block="late" if trial >= 4 else "early",
            session=1,
            outcome="found" if passed else "timeout",
            success=passed,
            steps=1,
            actions="F" * ((subject if way is None else way) + 1),
        )
        for trial, passed in enumerate(passes)
    ]


def lived(
    plan: CellPlan, lives: Sequence[Sequence[bool]], shuffle: random.Random, ways: int | None = None
) -> list[TrialRecord]:
    """Run a cell to its end as a session does, with subjects of any speed; return its records.

    With ``ways``, subjects act in so many ways, in turn.
    """
    course = CellCourse(plan)
    done: dict[int, list[TrialRecord]] = {}
    while True:
        ahead = {subject: life(subject, lives[subject], ways and subject % ways) for subject in course.wanted()}
        for subject in ahead:
            done[subject] = []
        while course.wanted():
            subject = shuffle.choice(course.wanted())
            if ahead[subject]:
                record = ahead[subject].pop(0)
                done[subject].append(record)
                course.see(record)
            else:
                course.end(subject, "complete")
            if (cut := course.cut()) is not None:
                for stopped in cut[0]:
                    kept = done[stopped][: cut[1]]
                    gone = [
                        replace(record, trial=trial, missing=SETTLED, success=None, outcome=None, actions="", steps=0)
                        for record in kept[:1]
                        for trial in range(cut[1], TRIALS)
                    ]
                    done[stopped] = kept + [replace(one, block="") for one in gone]
                course.settle(cut[1])
        if not course.advance():
            return [record for _, records in sorted(done.items()) for record in records]


Lives = st.lists(
    st.one_of(
        st.lists(st.booleans(), min_size=1, max_size=TRIALS),
        st.just([False] * TRIALS),
        st.just([True] * TRIALS),
    ),
    min_size=14,
    max_size=14,
)


@pytest.mark.parametrize("estimand", ["all", "last:4", "block:late"])
@settings(max_examples=30, deadline=None)
@given(lives=Lives, one=st.integers(0, 1000), other=st.integers(0, 1000))
def test_who_is_faster_changes_no_record_and_who_is_stopped_no_verdict(
    estimand: str, lives: list[list[bool]], one: int, other: int
) -> None:
    plan = cell(estimand)
    records = lived(plan, lives, random.Random(one))
    assert lived(plan, lives, random.Random(other)) == records
    found = judge(plan, records)
    whole = judge(plan, [r for subject, passes in enumerate(lives) for r in life(subject, passes)])
    assert found.look is not None
    assert whole.look is not None
    assert (found.verdict, found.look.subjects) == (whole.verdict, whole.look.subjects)
    assert len({record.subject for record in records}) == found.look.subjects, "no subject more than the verdict needs"


def test_hopeless_subjects_are_stopped_at_the_first_look() -> None:
    records = lived(cell(), [[False] * TRIALS] * 14, random.Random(1))
    found = judge(cell(), records)
    assert found.verdict is Verdict.FAIL
    assert found.settled > 0
    assert {record.subject for record in records} == set(range(6))


def test_copies_are_waited_for() -> None:
    """Subjects that have done the same so far may yet turn out to be copies, which are no further evidence."""
    course = CellCourse(cell())
    for subject in range(6):
        for record in life(0, [False] * (TRIALS - 1)):
            course.see(replace(record, subject=subject))
    assert course.cut() is None


@pytest.mark.parametrize("ways", [4, 6, 8])
@settings(max_examples=25, deadline=None)
@given(kinds=Lives, seed=st.integers(0, 1000))
def test_who_is_stopped_is_no_further_evidence(ways: int, kinds: list[list[bool]], seed: int) -> None:
    """A model that always acts in the same way has as many subjects as there are worlds, also if some are stopped."""
    plan = cell()
    lives = [kinds[subject % ways] for subject in range(14)]
    found = judge(plan, lived(plan, lives, random.Random(seed), ways))
    whole = judge(plan, [r for subject, passes in enumerate(lives) for r in life(subject, passes, subject % ways)])
    assert found.look is not None
    assert whole.look is not None
    assert (found.verdict, found.look.subjects) == (whole.verdict, whole.look.subjects)


@pytest.mark.parametrize("looks", [(6, 10, 14), ()])
@pytest.mark.parametrize("first", [0, 1])
def test_copies_that_broke_off_are_copies(first: int, looks: tuple[int, ...]) -> None:
    """One life, lived by all subjects, and broken off after another number of trials in each: a budget can do that."""
    records = []
    for subject in range(14):
        # The shortest comes last, or first.
        run = 2 + (subject if first else 13 - subject) * 6 // 13
        records += [
            one if trial < run else replace(one, missing="budget", success=None, outcome=None, actions="")
            for trial, one in enumerate(life(subject, [True] * TRIALS, way=0))
        ]
    found = judge(replace(cell(), looks=looks), records)
    assert found.flags.duplicate_subjects == (looks or (14,))[0] - 1
    assert found.verdict is Verdict.INCONCLUSIVE


def test_a_life_that_was_stopped_takes_the_evidence_of_one_other() -> None:
    """Many begin in the same way, and go on differently."""
    lost = replace(life(0, [True])[0], missing="budget", success=None, outcome=None, actions="")
    records = [*life(0, [True], way=0), *(replace(lost, trial=trial) for trial in range(1, TRIALS))]
    for subject in range(1, 14):
        records += life(subject, [True, *(bool(subject >> bit & 1) for bit in range(TRIALS - 1))], way=0)
    assert judge(replace(cell(), looks=()), records).flags.duplicate_subjects == 1


@settings(max_examples=60, deadline=None)
@given(kinds=Lives, ways=st.sampled_from([4, 7, 14]), data=st.data())
def test_whoever_stops_where_he_pleases_sees_no_verdict_that_the_whole_run_has_not(
    kinds: list[list[bool]], ways: int, data: st.DataObject
) -> None:
    """A budget breaks subjects off where it helps most: before they fail, or before it shows that they are copies."""
    plan, stops = cell(), data.draw(st.lists(st.integers(0, TRIALS), min_size=14, max_size=14))
    lives = [life(subject, kinds[subject % ways], subject % ways) for subject in range(14)]
    final = judge(plan, [record for one in lives for record in one])
    assert final.look is not None
    seen: list[TrialRecord] = []
    for stop, one in zip(stops, lives[: final.look.subjects], strict=False):
        lost = replace(one[0], block="", missing="budget", success=None, outcome=None, actions="", steps=0)
        run = one[:stop] if stop < len(one) else one
        seen += run + [replace(lost, trial=trial) for trial in range(stop, TRIALS) if stop < len(one)]
    assert judge(plan, seen).verdict in (Verdict.INCONCLUSIVE, final.verdict)


def test_a_subject_that_broke_off_ends_the_course_without_a_decision() -> None:
    course = CellCourse(cell())
    for subject in range(6):
        for record in life(subject, [True, False] * (TRIALS // 2) if subject else [True]):
            course.see(record)
        course.end(subject, "complete" if subject else "broken")
    assert course.wanted() == []
    assert not course.advance()
    assert course.over
    course.reopen()
    assert course.wanted() == [0]
