"""Verdicts: one test per sentence of the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.records import CellPlan, ReferenceValue, TrialRecord
from cheesebench.statistics import CellResult, Verdict, judge, summarise_run
from cheesebench.statistics.betting import STAKES

MakePlan = Callable[..., CellPlan]
MakeTrials = Callable[..., list[TrialRecord]]

#: 20 trials with 16, 12 and 6 passes, in no special order.
GOOD, FAIR, POOR = (
    "++++-++++-++++-++++-",
    "++-+-++-+-++-+-++-++",
    "-+--+---+--+---+--+-",
)
#: Number of subjects for a PASS of GOOD against a reference of 80 %; 30 are not enough.
ENOUGH = 40


def test_pass(plan: MakePlan, cohort: MakeTrials) -> None:
    cell = judge(plan(subjects=ENOUGH), cohort(*[GOOD] * ENOUGH))
    assert (cell.verdict, cell.superior) == (Verdict.PASS, False)
    assert cell.rate == pytest.approx(0.8)
    assert (cell.passed, cell.valid, cell.planned, cell.missing) == (640, 800, 800, 0)
    assert cell.n_text == "40 subjects x 20 trials (800/800 valid)"
    assert cell.interval_method == "betting, over 40 subjects"
    assert cell.game is not None
    # Equal subjects multiply the wealth of each bet by 1 - stake + stake * .8 / .7.
    assert cell.game.passing == pytest.approx(
        sum(share * (1 + c / 7) ** 40 for c, share in STAKES.items())
    )
    assert cell.game.p_value == pytest.approx(1 / cell.game.passing)
    assert cell.reason.startswith(
        "80 % of trials succeed, against 80 % (rodent, declared): evidence for 'not worse by 10 points' is"
    )
    assert cell.reason.endswith("to 1 (20 to 1 decides): PASS.")
    assert cell.subjects_needed is None


def test_superior(plan: MakePlan, cohort: MakeTrials) -> None:
    animals = ReferenceValue(value=0.5, sd=0.1, n_animals=20)
    cell = judge(plan(reference=animals), cohort(*[GOOD] * 10))
    assert (cell.verdict, cell.superior) == (Verdict.PASS, True)
    assert "even better than the animals" in cell.reason


@pytest.mark.parametrize(
    "animals", [ReferenceValue(value=0.5), ReferenceValue(value=0.5, n_animals=100)]
)
def test_nothing_is_better_than_a_point(
    plan: MakePlan, cohort: MakeTrials, animals: ReferenceValue
) -> None:
    cell = judge(plan(reference=animals), cohort(*[GOOD] * 10))
    assert (cell.verdict, cell.superior) == (Verdict.PASS, False)
    assert "better than the animals" not in cell.reason


def test_an_analogy_is_called_one(plan: MakePlan, cohort: MakeTrials) -> None:
    cell = judge(
        plan(reference=ReferenceValue(value=0.8, kind="analogy")), cohort(*[GOOD] * 10)
    )
    assert cell.flags.analogy
    assert "an analogy" in cell.reason


def test_fail(plan: MakePlan, cohort: MakeTrials) -> None:
    cell = judge(plan(), cohort(*[POOR] * 10))
    assert cell.verdict is Verdict.FAIL
    assert cell.difference_high is not None
    assert cell.difference_high < -0.1
    assert cell.game is not None
    assert cell.game.failing >= 20 > cell.game.passing
    assert cell.game.decided is not None
    assert cell.game.decided < 10
    assert "evidence for 'worse by more than 10 points' is" in cell.reason


def test_inconclusive_says_how_many_subjects_would_settle_it(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    cell = judge(plan(subjects=3), cohort(GOOD, "+" * 20, GOOD))
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert cell.subjects_needed is not None
    assert cell.subjects_needed > 3
    assert (
        f"About {cell.subjects_needed} subjects would decide it in 4 of 5 such cases."
        in cell.reason
    )


def test_inconclusive_that_nothing_settles(plan: MakePlan, cohort: MakeTrials) -> None:
    at_the_margin = [one * 20 for one in "++-++-+-++" * 2]
    cell = judge(plan(subjects=20), cohort(*at_the_margin))
    assert (cell.verdict, cell.subjects_needed) == (Verdict.INCONCLUSIVE, None)
    assert "Even 1,000 subjects would decide it in only " in cell.reason
    assert cell.open_zones == (), "these animals are a constant"
    cell = judge(
        plan(subjects=3, reference=ReferenceValue(value=0.8, sd=0.3, n_animals=5)),
        cohort(*[GOOD] * 3),
    )
    assert (cell.verdict, cell.subjects_needed) == (Verdict.INCONCLUSIVE, None)
    (low, high), rate = cell.open_zones[0], cell.rate
    assert rate is not None
    assert low < 0.7 < rate < high
    assert (
        "No number of subjects decides this, because the animals are a sample, and 80 % lies within"
        in cell.reason
    )


def test_one_subject_is_labelled(plan: MakePlan, cohort: MakeTrials) -> None:
    cell = judge(plan(subjects=1, trials=40), cohort("+" * 40))
    assert cell.verdict is Verdict.INCONCLUSIVE, (
        "it says nothing of the model, however good it is"
    )
    assert cell.flags.this_subject_only
    assert cell.icc is None
    assert cell.interval == pytest.approx((0.9124, 1.0), abs=1e-4), (
        "Wilson for 40 of 40"
    )
    assert "not the model" in cell.reason


def test_the_subject_is_the_unit_whatever_an_agent_declares(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    trials = cohort(*[GOOD, FAIR] * 5)
    declared, other = (
        judge(plan(memory="none"), trials),
        judge(plan(memory="life"), trials),
    )
    assert (declared.interval, declared.verdict) == (other.interval, other.verdict)
    assert not declared.flags.memory_contradicted
    assert judge(plan(memory="none", subjects=1), cohort(GOOD)).flags.this_subject_only


def test_memory_is_contradicted_by_subjects_that_differ(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    trials = cohort(*["+" * 20, "-" * 20] * 5)
    cell = judge(plan(memory="none"), trials)
    assert cell.flags.memory_contradicted
    assert cell.icc == 1.0
    assert "declares no memory" in cell.reason
    assert not judge(plan(memory="life"), trials).flags.memory_contradicted


def test_a_large_icc_that_chance_explains_contradicts_nothing(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    cell = judge(plan(memory="none", subjects=2), cohort("+++-", "+---"))
    assert cell.icc == pytest.approx(0.2)
    assert not cell.flags.memory_contradicted


@pytest.mark.parametrize("memory", ["life", "none"])
def test_copies_count_as_one_subject(
    plan: MakePlan, cohort: MakeTrials, memory: str
) -> None:
    cell = judge(plan(memory=memory), cohort(*[FAIR] * 10, actions="FFL"))
    alone = judge(plan(memory=memory, subjects=1), cohort(FAIR))
    assert cell.flags.duplicate_subjects == 9
    assert cell.n_text == "10 subjects (1 distinct) x 20 trials (200/200 valid)"
    assert cell.rate == pytest.approx(alone.rate)
    assert cell.interval == pytest.approx(alone.interval)
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert (
        "9 subjects did exactly the same as another one: counted in the rate, but not as further evidence"
        in cell.reason
    )


@pytest.mark.parametrize(("frozen", "varied"), [(19, 21), (21, 19), (1, 39), (39, 1)])
def test_subjects_that_all_get_stuck_alike_stay_in_the_rate(
    plan: MakePlan, life: MakeTrials, frozen: int, varied: int
) -> None:
    """Whether a life is repeated depends on its course, so leaving copies out would
    bias the rate towards the others.
    """
    stuck = [
        record
        for subject in range(frozen)
        for record in life(subject, "t" * 20, actions="F" * 9)
    ]
    good = [
        record
        for subject in range(frozen, frozen + varied)
        for record in life(subject, "+" * 20)
    ]
    cell = judge(plan(subjects=40), [*stuck, *good])
    assert cell.rate == pytest.approx(varied / 40)
    assert cell.flags.duplicate_subjects == frozen - 1
    assert cell.interval is not None
    assert cell.interval[0] <= varied / 40 <= cell.interval[1]
    if varied < 38:
        assert cell.verdict is not Verdict.PASS


def test_more_copies_would_not_settle_it(plan: MakePlan, cohort: MakeTrials) -> None:
    cell = judge(plan(), cohort(*[GOOD] * 10, actions="FFL"))
    assert (cell.verdict, cell.subjects_needed) == (Verdict.INCONCLUSIVE, None)
    assert "only be copies" in cell.reason


def test_missing_trials_on_which_it_depends_make_it_inconclusive(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    gaps = GOOD[:16] + "$$$$"
    cell = judge(plan(subjects=ENOUGH), cohort(*[gaps] * ENOUGH))
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert (cell.valid, cell.missing, cell.planned) == (640, 160, 800)
    assert (
        "160 missing trials (the budget was spent) could decide it: resume the run"
        in cell.reason
    )
    assert cell.outcomes["budget"] == 160
    assert cell.n_text == "40 subjects x 20 trials (640/800 valid)"
    dropped = judge(plan(subjects=ENOUGH), cohort(*[GOOD[:16]] * ENOUGH))
    assert dropped.verdict is Verdict.PASS, "dropping them in silence would have passed"


def test_missing_trials_that_change_nothing_are_said(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    cell = judge(plan(subjects=14), cohort(*["+" * 20] * 13, "+" * 19 + "$"))
    assert cell.verdict is Verdict.PASS
    assert "1 missing trial could not change this" in cell.reason


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.FAIL])
def test_a_breakdown_that_could_not_change_the_verdict_is_said(
    plan: MakePlan, cohort: MakeTrials, verdict: Verdict
) -> None:
    result = "+" if verdict is Verdict.PASS else "-"
    cell = judge(plan(subjects=14), cohort(*[result * 20] * 13, result * 19 + "!"))
    assert cell.verdict is verdict
    assert "1 missing trial could not change this." in cell.reason


def test_a_breakdown_without_which_nothing_is_decided_is_an_error(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    cell = judge(plan(), cohort(*["+" * 10 + "!" * 10] * 10))
    assert cell.verdict is Verdict.ERROR
    assert cell.rate == 1
    assert cell.reason.startswith(
        "100 trials of 200 that count failed for technical reasons"
    )


@pytest.mark.parametrize(("lost", "never"), [("-", Verdict.PASS), ("+", Verdict.FAIL)])
def test_losing_all_failures_or_successes_never_helps(
    plan: MakePlan, cohort: MakeTrials, lost: str, never: Verdict
) -> None:
    lives = [one.replace(lost, "$") for one in (FAIR, GOOD) * 30]
    cell = judge(plan(reference=0.85, subjects=60), cohort(*lives))
    assert cell.verdict is not never


def test_absent_subjects_are_missing(plan: MakePlan, cohort: MakeTrials) -> None:
    cell = judge(plan(), cohort(*[GOOD] * 6))
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert (cell.missing, cell.outcomes["not run"]) == (80, 80)
    assert cell.n_text == "10 subjects x 20 trials (120/200 valid)"


def test_a_life_shortened_by_until_is_complete(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    cell = judge(plan(trials=40), cohort(*[GOOD] * 9, GOOD[:15]))
    assert cell.missing == 0
    assert cell.n_text == "10 subjects x 15-20 trials (195/195 valid)"


def test_what_was_never_begun_is_said_to_be_so(plan: MakePlan) -> None:
    cell = judge(plan(subjects=2), ())
    assert cell.verdict is Verdict.ERROR
    assert cell.reason.startswith(
        "Interrupted, not run: the run ended before the cell's first trial that counts."
    )
    run = summarise_run({"run_id": "r"}, [plan(subjects=2)], ())
    assert (
        run.models[0].gate_reason == "0 of 1 protocol passed; 1 interrupted, not run."
    )


def test_nothing_but_infrastructure_is_an_error(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    cell = judge(plan(subjects=2), cohort("!!!", "!!$"))
    assert (cell.verdict, cell.rate, cell.interval) == (Verdict.ERROR, None, None)
    assert cell.reason == (
        "No trial that counts could be measured: 6 trials missing (technical faults 5, budget 1). "
        "This says nothing about the model."
    )


def test_no_record_at_all_is_an_error(plan: MakePlan) -> None:
    cell = judge(plan(), [])
    assert cell.verdict is Verdict.ERROR
    assert cell.outcomes["not run"] == 200


def test_smoke_claims_nothing(plan: MakePlan, cohort: MakeTrials) -> None:
    cell = judge(plan(design="smoke", claims=False), cohort(*[GOOD] * 10))
    assert cell.verdict is Verdict.INCONCLUSIVE
    assert cell.rate == pytest.approx(0.8)
    assert cell.interval is not None
    assert cell.game is None
    assert "'smoke'" in cell.reason


def test_without_a_reference_nothing_is_compared(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    cell = judge(plan(reference=None), cohort(*[GOOD] * 10))
    assert (cell.verdict, cell.difference) == (Verdict.INCONCLUSIVE, None)
    assert "no reference on `success`" in cell.reason


def test_without_declared_success_there_is_no_rate(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    cell = judge(
        plan(), [replace(record, success=None) for record in cohort(*[GOOD] * 10)]
    )
    assert (cell.verdict, cell.rate, cell.valid) == (Verdict.INCONCLUSIVE, None, 200)
    assert "declares no success" in cell.reason


def test_a_block_that_was_not_reached_is_no_error(
    plan: MakePlan, cohort: MakeTrials
) -> None:
    cell = judge(
        plan(estimand="block:probe", claims=False, design="smoke"), cohort(*[GOOD] * 10)
    )
    assert (cell.verdict, cell.rate) == (Verdict.INCONCLUSIVE, None)
    assert "the block 'probe' was not reached" in cell.reason
    assert "'smoke'" in cell.reason
    assert cell.n_text == "10 subjects, none of whose trials count"
    cell = judge(plan(estimand="block:probe,late"), cohort(*[GOOD] * 10))
    assert "the blocks 'probe' and 'late' were not reached" in cell.reason


@pytest.mark.parametrize(
    ("chance", "flagged"), [(None, False), (0.69, False), (0.7, True), (0.9, True)]
)
def test_not_diagnostic_when_random_is_good_enough(
    plan: MakePlan, cohort: MakeTrials, chance: float | None, flagged: bool
) -> None:
    cell = judge(
        plan(reference=0.8, chance=chance, subjects=ENOUGH), cohort(*[GOOD] * ENOUGH)
    )
    assert cell.flags.not_diagnostic is flagged
    assert ("Not diagnostic" in cell.reason) is flagged
    assert cell.verdict is Verdict.PASS, "a flag, not a verdict"


def test_the_references_own_interval_enters(plan: MakePlan, cohort: MakeTrials) -> None:
    trials = cohort(*[GOOD] * ENOUGH)
    measured = ReferenceValue(value=0.8, interval=(0.6, 0.92))
    declared, vague = (
        judge(plan(subjects=ENOUGH), trials),
        judge(plan(reference=measured, subjects=ENOUGH), trials),
    )
    assert declared.flags.reference_declared
    assert not vague.flags.reference_declared
    assert (declared.verdict, vague.verdict) == (Verdict.PASS, Verdict.INCONCLUSIVE)
    assert declared.interval == vague.interval


def test_the_estimand_chooses_the_trials(plan: MakePlan, cohort: MakeTrials) -> None:
    learner = "-" * 10 + "+" * 10
    cell = judge(plan(estimand="last:10"), cohort(*[learner] * 10))
    assert (cell.rate, cell.valid) == (1.0, 100)
    assert sum(cell.outcomes.values()) == cell.planned == 100
    assert [point.rate for point in cell.curve] == [0, 0, 0.5, 1, 1], (
        "the curve shows the whole life"
    )
    assert cell.curve_unit == "4 trials"
    assert [point.judged for point in cell.curve] == [False, False, True, True, True]


def test_trials_of_other_cells_are_ignored(plan: MakePlan, cohort: MakeTrials) -> None:
    own, other = cohort(*[GOOD] * 10), cohort(*[POOR] * 10, view="another view")
    assert judge(plan(), [*other, *own]) == judge(plan(), own)


LIVES = st.lists(
    st.text(alphabet="+-t!$", min_size=1, max_size=12), min_size=1, max_size=6
)


def consistent(cell: CellResult) -> bool:
    """Return whether verdict, bounds and wealth of a cell agree."""
    if cell.verdict is Verdict.ERROR:
        return cell.outcomes["infrastructure"] > 0 or cell.rate is None
    if cell.difference_low is None or cell.difference_high is None or cell.game is None:
        return cell.verdict is Verdict.INCONCLUSIVE
    if cell.flags.this_subject_only:
        return cell.verdict is Verdict.INCONCLUSIVE
    bar = -cell.plan.margin
    return {
        Verdict.PASS: cell.game.passing >= 20 and cell.difference_low >= bar - 1e-5,
        Verdict.FAIL: cell.game.failing >= 20 and cell.difference_high <= bar + 1e-5,
        Verdict.INCONCLUSIVE: cell.difference_low <= bar + 1e-5
        and bar - 1e-5 <= cell.difference_high,
        None: False,
    }[cell.verdict]


@settings(max_examples=60)
@given(
    LIVES,
    st.sampled_from(["life", "none"]),
    st.floats(0.15, 0.95),
    st.randoms(use_true_random=False),
)
def test_whatever_happens_the_cell_is_consistent_and_the_order_of_records_does_not_matter(
    plan: MakePlan,
    cohort: MakeTrials,
    lives: list[str],
    memory: str,
    reference: float,
    random: object,
) -> None:
    trials = cohort(*lives)
    cell = judge(plan(memory=memory, reference=reference, subjects=len(lives)), trials)
    assert consistent(cell)
    assert cell.reason
    assert sum(cell.outcomes.values()) == cell.planned == cell.valid + cell.missing
    if cell.rate is not None and cell.interval is not None:
        assert 0 <= cell.interval[0] <= cell.rate <= cell.interval[1] <= 1
        assert (cell.standard_error or 0) <= cell.interval[1] - cell.interval[0]
    getattr(random, "shuffle")(trials)  # noqa: B009 - hypothesis gives its Random no public type
    assert judge(cell.plan, trials) == cell


@settings(max_examples=30)
@given(st.lists(st.integers(0, 20), min_size=3, max_size=10), st.floats(0.3, 0.9))
def test_a_harder_reference_or_margin_never_helps(
    plan: MakePlan, cohort: MakeTrials, passes: list[int], reference: float
) -> None:
    trials = cohort(*["+" * k + "-" * (20 - k) for k in passes])

    def ease(value: float, margin: float) -> int:
        order = [Verdict.FAIL, None, Verdict.INCONCLUSIVE, Verdict.PASS]
        return order.index(
            judge(
                plan(reference=value, margin=margin, subjects=len(passes)), trials
            ).verdict
        )

    assert ease(reference + 0.05, 0.1) <= ease(reference, 0.1)
    assert ease(reference, 0.05) <= ease(reference, 0.1)
