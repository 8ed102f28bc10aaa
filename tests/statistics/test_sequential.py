"""The sequential rule: its looks and tails, what each look says, and what may be stopped before it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.experiment.records import SETTLED, CellPlan, ReferenceValue, TrialRecord
from cheesebench.reports.cells import stopped
from cheesebench.statistics import Verdict, judge
from cheesebench.statistics.comparison import Question, SubjectTrials
from cheesebench.statistics.run import with_causes
from cheesebench.statistics.sequential import (
    Standing,
    decide,
    is_settled,
    looks_until,
    next_look,
    what_it_still_needs,
)
from cheesebench.statistics.spending import FULL, LATE, LOOKS, most_wrong, symmetric_tails, tails

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]

QUESTION = Question(ReferenceValue(value=0.8), -0.1, -0.1)
LOOKS_60 = looks_until(60)


def cell(*passed: int, trials: int = 20) -> list[SubjectTrials]:
    return [SubjectTrials(number, trials) for number in passed]


def test_looks_end_with_the_largest_number() -> None:
    assert (*LOOKS_60, 75) == LOOKS
    assert looks_until(12) == (6, 10, 12)
    assert looks_until(10) == (6, 10)
    assert looks_until(3) == (3,)
    assert looks_until(100) == (*LOOKS, 100)
    assert [next_look(LOOKS_60, lived) for lived in (0, 6, 7, 60)] == [6, 10, 10, None]


@pytest.mark.parametrize("most", [1, 5, 6, 7, 10, 13, 30, 60, 61, 75, 100])
def test_tails_are_as_large_as_the_error_allows(most: int) -> None:
    looks = looks_until(most)
    found = tails(looks)
    assert 0.049 <= most_wrong(looks, found) <= 0.05
    until_sixty = [tail for look, tail in zip(looks, found, strict=True) if look <= FULL]
    assert until_sixty == sorted(until_sixty)
    assert all(tail == LATE * until_sixty[-1] for look, tail in zip(looks, found, strict=True) if look > FULL)
    assert all(one <= other for one, other in zip(symmetric_tails(looks), found, strict=True))


def test_a_single_look_is_the_fixed_rule() -> None:
    assert tails((10,)) == (0.05,)
    assert most_wrong((10,), (0.05,)) == pytest.approx(0.05)


def test_two_looks_by_enumeration() -> None:
    looks, found = (2, 4), (0.2, 0.3)
    rate = 0.3
    wrong = 0.0
    for lives in itertools.product((0, 1), repeat=4):
        chance = float(np.prod([rate if one else 1 - rate for one in lives]))
        at = [decide_rates(lives[:look], rate) <= tail for look, tail in zip(looks, found, strict=True)]
        wrong += chance * any(at)
    from cheesebench.statistics.spending import crossing_probability

    assert float(crossing_probability(looks, found, np.array([rate]))[0]) == pytest.approx(wrong)


def decide_rates(lives: tuple[int, ...], rate: float) -> float:
    """Return the exact binomial p value of so many passes or more."""
    from scipy.stats import binom

    return float(binom.sf(sum(lives) - 1, len(lives), rate))


def test_a_hopeless_model_needs_six_subjects() -> None:
    found = decide(QUESTION, cell(*[0] * 6), 6, LOOKS_60)
    assert (found.standing, found.verdict, found.final, found.subjects, found.most) == ("FAIL", "FAIL", True, 6, 60)
    assert found.interval[0] == 0
    assert found.difference[1] == pytest.approx(1 - found.tail ** (1 / 6) - 0.8)


def test_a_perfect_model_needs_as_many_as_could_be_luck() -> None:
    """Subjects that learn or do not: with a true rate of .7, fourteen of fourteen learn in one run of 150."""
    perfect = cell(*[20] * 60)
    standings = [decide(QUESTION, perfect, look, LOOKS_60).standing for look in LOOKS_60[:4]]
    assert standings == [Standing.GO_ON, Standing.GO_ON, Standing.GO_ON, Standing.PASS]


def test_futility_and_exhaustion() -> None:
    at_the_margin = cell(*[14] * 60)
    assert decide(QUESTION, at_the_margin, 18, LOOKS_60).standing == "go on", "too early to give up"
    found = decide(QUESTION, at_the_margin, 24, LOOKS_60)
    assert (found.standing, found.verdict) == ("futile", "INCONCLUSIVE")
    assert decide(QUESTION, at_the_margin, 60, LOOKS_60).standing == "exhausted"
    assert what_it_still_needs(QUESTION, at_the_margin, 24, LOOKS_60) is None
    nearly = cell(*[16] * 30)
    assert decide(QUESTION, nearly, 24, LOOKS_60).standing == "go on"
    assert what_it_still_needs(QUESTION, nearly, 24, LOOKS_60) == 40


def test_only_complete_looks_can_be_asked_for() -> None:
    for look, subjects in ((7, 10), (10, 9)):
        with pytest.raises(ValueError, match=f"no look at {look} of {subjects}"):
            decide(QUESTION, cell(*[5] * subjects), look, LOOKS_60)


def test_nothing_scored_decides_nothing() -> None:
    nothing = [SubjectTrials(0, 0, 20)] * 6
    assert decide(QUESTION, nothing, 6, LOOKS_60).standing == "go on"
    assert decide(QUESTION, nothing, 6, (6,)).standing == "exhausted"
    assert what_it_still_needs(QUESTION, nothing, 6, LOOKS_60) is None


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=6, max_size=6).filter(
        lambda rows: 0 < sum(open_ for _, open_ in rows) <= 6
    ),
    st.sampled_from([0.4, 0.6, 0.8, 0.95]),
    st.sampled_from([(6,), (6, 8), LOOKS_60]),
)
def test_settled_means_that_no_assignment_decides_otherwise(
    rows: list[tuple[int, int]], reference: float, looks: tuple[int, ...]
) -> None:
    """All assignments of passes to what is open, and all shorter lives, against the answer that tries only two."""
    question = Question(ReferenceValue(value=reference), -0.1, -0.1)
    subjects = [SubjectTrials(min(passed, 4 - open_), 4 - open_, open_) for passed, open_ in rows]
    possible = set()
    for more in itertools.product(
        *([(passes, run) for run in range(s.open + 1) for passes in range(run + 1)] for s in subjects)
    ):
        ended = [SubjectTrials(s.passed + k, s.scored + run) for s, (k, run) in zip(subjects, more, strict=True)]
        possible.add(decide(question, ended, 6, looks).verdict)
        if len(possible) > 1:
            break
    settled = is_settled(question, subjects, 6, looks)
    if settled:
        assert possible == {decide(question, subjects, 6, looks).verdict}
    elif possible in ({Verdict.PASS}, {Verdict.FAIL}):
        pytest.fail("it was settled, and not seen to be")


def test_a_subject_that_may_yet_become_a_copy_is_not_settled() -> None:
    rows = cell(*[0] * 5)
    assert is_settled(QUESTION, [*rows, SubjectTrials(0, 10, 2)], 6, LOOKS_60)
    assert not is_settled(QUESTION, [*rows, SubjectTrials(0, 10, 2, distinct=False)], 6, LOOKS_60)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 20), min_size=10, max_size=10), st.integers(0, 9), st.floats(0.3, 0.95))
def test_a_pass_more_never_makes_a_look_worse(passes: list[int], which: int, reference: float) -> None:
    question = Question(ReferenceValue(value=reference), -0.1, -0.1)
    order = [Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS]
    better = [min(20, k + 1) if number == which else k for number, k in enumerate(passes)]
    before, after = (decide(question, cell(*own), 10, looks_until(10)).verdict for own in (passes, better))
    assert order.index(before) <= order.index(after)


def test_a_cell_is_judged_where_it_stopped(plan: MakePlan, cohort: MakeTrials) -> None:
    """Subjects that were run ahead are kept and do not count: what they say cannot be chosen afterwards."""
    lives = ["-" * 20] * 6 + ["+" * 20] * 4
    found = judge(plan(subjects=60, looks=LOOKS_60), cohort(*lives))
    assert found.verdict is Verdict.FAIL
    assert (found.rate, found.subjects, found.planned, found.missing) == (0, 6, 120, 0)
    assert sum(found.outcomes.values()) == 120
    assert found.look is not None
    assert (found.look.subjects, found.look.most, found.look.following) == (6, 60, None)
    assert found.difference_high == decide(QUESTION, cell(*[0] * 6), 6, LOOKS_60).difference[1]
    assert "Stopped at 6 of at most 60 subjects: FAIL." in found.reason
    assert found.p_inferior is not None
    assert found.p_inferior < 0.05


def test_an_undecided_cell_says_what_it_needs(plan: MakePlan, cohort: MakeTrials) -> None:
    looks = looks_until(60)
    lives = ["+" * 16 + "-" * 4] * 12
    found = judge(plan(subjects=60, looks=looks), cohort(*lives))
    assert (found.verdict, found.subjects, found.missing) == (Verdict.INCONCLUSIVE, 10, 0)
    assert found.look is not None
    assert (found.look.following, found.look.needed) == (14, 40)
    assert "Undecided at 10 of at most 60 subjects: the next look is at 14" in found.reason
    early = judge(plan(subjects=60, looks=looks), cohort(*lives[:4]))
    assert (early.verdict, early.subjects, early.outcomes["not run"]) == (Verdict.INCONCLUSIVE, 4, 40)
    everybody = judge(plan(subjects=12, looks=looks_until(12)), cohort(*lives))
    assert "All 12 subjects have been run" in everybody.reason
    budget = judge(plan(subjects=60, looks=looks), cohort(*lives[:5], "++++" + "$" * 16))
    assert "The budget was spent before the look at 6 of at most 60 subjects was complete" in budget.reason
    told = with_causes(budget, ("the run has cost $0.02; --max-cost 0.02 is reached",)).reason
    assert told.endswith(" Stopped by the budget: the run has cost $0.02; --max-cost 0.02 is reached.")
    cut = judge(plan(subjects=6, looks=(6,)), cohort(*lives[:4]))
    assert "Interrupted before the look at 6 of at most 6 subjects was complete: resume the run." in cut.reason
    assert stopped(cut) == "look at 6 of at most 6 subjects not complete"
    margin = judge(plan(subjects=60, looks=looks), cohort(*["+" * 14 + "-" * 6] * 30))
    assert "Stopped at 24 of at most 60 subjects: even the last look was unlikely to decide." in margin.reason


def test_the_p_value_of_a_look_is_below_alpha_where_it_fails(plan: MakePlan, cohort: MakeTrials) -> None:
    for worst in range(6, 14):
        lives = ["+" * (worst + (-1) ** s) + "-" * (20 - worst - (-1) ** s) for s in range(18)]
        found = judge(plan(subjects=18, looks=looks_until(18)), cohort(*lives))
        assert found.p_inferior is not None
        assert (found.p_inferior < 0.05) is (found.verdict is Verdict.FAIL), worst


def test_settled_trials_are_neither_missing_nor_failed(plan: MakePlan, cohort: MakeTrials) -> None:
    records = [
        replace(record, missing=SETTLED, outcome=None, success=None)
        if record.trial >= 15 and record.subject > 3
        else record
        for record in cohort(*["-" * 20] * 6)
    ]
    found = judge(plan(subjects=60, looks=LOOKS_60), records)
    assert found.verdict is Verdict.FAIL
    assert (found.missing, found.settled, found.valid, found.outcomes["settled"]) == (0, 10, 110, 10)
    assert found.flags.truncated
    assert found.n_text == "6 subjects x 20 trials (110/120 valid, 10 settled)"
    assert "10 trials could not change the verdict and were not run; rate and curve exclude them." in found.reason


def test_missing_trials_do_not_stop_a_cell_that_they_could_decide(plan: MakePlan, cohort: MakeTrials) -> None:
    lives = ["-" * 20] * 3 + ["$" * 20] * 3
    found = judge(plan(subjects=60, looks=LOOKS_60), cohort(*lives))
    assert (found.verdict, found.missing) == (Verdict.INCONCLUSIVE, 60)
    assert found.look is not None
    assert found.look.standing == "go on"
    broken = judge(plan(subjects=60, looks=LOOKS_60), cohort(*["-" * 20] * 5, "-" * 19 + "!"))
    assert (broken.verdict, broken.p_inferior) == (Verdict.ERROR, None)
