"""Numbers in words: each kind with its unit, and both sides of each boundary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from cheesebench.records import CallTotals, CellCalls, Measured, ReferenceValue
from cheesebench.reports.cells import by_answer as answer_table
from cheesebench.statistics.ability import Ability
from cheesebench.statistics.beside import difference_limits
from cheesebench.statistics.by_answer import by_answer
from cheesebench.statistics.judgement import judge_sample
from cheesebench.statistics.sample import draw_sample, trials_by_subject
from cheesebench.statistics.summary import CellResult, ClassShares, Verdict
from cheesebench.statistics.wording import (
    NEVER_ACTED,
    abilities,
    amount,
    bar,
    breakdown,
    broken_down,
    doubts,
    gap,
    interval_method,
    margin,
    no_claim,
    not_started,
    nothing_measured,
    odds,
    on_scale,
    plural,
    shares,
    shown_value,
    to_act,
    uneven,
    untested,
    why_unread,
    with_calls,
    with_causes,
    with_doubts,
)
from tests.reports.conftest import plan_of, trials_of
from tests.reports.test_rich_run import told_run
from tests.stored import check_stored


def judged_by(better: Literal["higher", "lower", "alike"]) -> ReferenceValue:
    measured = Measured(name="latency", better=better, range=(0.0, 60.0))
    return ReferenceValue(value=30.0, measured=measured)


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (1.44, "1.4 to 1"),
        (9.94, "9.9 to 1"),
        (9.95, "10 to 1"),
        (31.4, "31 to 1"),
        (12345.6, "12,346 to 1"),
        (1e6, "1,000,000 to 1"),
        (1_000_001, "over a million to 1"),
    ],
)
def test_odds(evidence: float, words: str) -> None:
    assert odds(evidence) == words


def test_indices_stay_on_the_scale_in_words() -> None:
    shown = [on_scale(one) for one in (None, -0.01, 0.0, 0.584, 1.0, 1.2)]
    assert shown == ["–", "< 0", "0.00", "0.58", "1.00", "1.00"]


def test_counts_have_their_noun() -> None:
    assert [plural(n, "trial") for n in (0, 1, 2)] == [
        "0 trials",
        "1 trial",
        "2 trials",
    ]
    assert interval_method(2) == "betting, over 2 subjects"
    assert interval_method(1).startswith("Wilson over trials")


def test_quantities_have_the_unit_of_what_is_judged() -> None:
    plain = plan_of()
    assert (amount(plain, 0.825), gap(plain, 0.05), bar(plain), margin(plain)) == (
        "82.5 %",
        "+5",
        -0.1,
        "-10",
    )
    coin = plan_of(against="chance", chance=0.5, margin=0.2)
    assert margin(coin) == "+20"
    for better, ends, words in (
        ("higher", -5.0, "-5"),
        ("lower", 5.0, "+5"),
        ("alike", -5.0, "±5"),
    ):
        plan = plan_of(reference=judged_by(better), margin=5.0)  # type: ignore[arg-type]
        assert (bar(plan), margin(plan)) == (ends, words)
        assert (amount(plan, 42.5), gap(plan, -2.25)) == ("42.5", "-2.25")


def test_values_of_draws_are_shown_as_they_are_written() -> None:
    shown = [shown_value(one) for one in (None, 1.5, 2.0, 3, "left", True)]
    assert shown == ["none", "1.5", "2", "3", "left", "True"]


PLAN = plan_of()
#: 100 replies, of which three cannot be used.
COUNTS = {"calls": 100, "empty": 1, "unparsed": 2}


def calls(malformed: int = 0, *, number: int = 100) -> CellCalls:
    return CellCalls(totals=CallTotals(calls=number, malformed=malformed))


def test_numbers_are_doubtful_beyond_five_in_a_hundred_of_all_kinds_together() -> None:
    assert doubts(PLAN, COUNTS, calls(), 0, 200) == ()
    # 3 of 100 replies and 4 of 200 trials are 5 in 100, and one trial more is beyond.
    assert doubts(PLAN, COUNTS, calls(), 4, 200) == ()
    beyond = doubts(PLAN, COUNTS, calls(), 5, 200)
    assert beyond == (
        "1 % of all replies empty",
        "2 % of all replies without a readable answer",
        "2.5 % of trials missing",
    )
    assert (
        doubts(PLAN, COUNTS, calls(25), 0, 200)[-1]
        == "20 % of answers malformed or refused"
    )
    # Without any trial there is no share of them.
    assert doubts(PLAN, COUNTS, calls(), 200, 200)[-1].endswith(
        "without a readable answer"
    )
    [never] = doubts(PLAN, {}, calls(number=0), 0, 200)
    assert never.startswith("not one call")
    # A reply of two kinds is one reply.
    both = {"calls": 100, "empty": 5, "truncated": 5, "unusable": 5}
    assert doubts(PLAN, both, calls(), 0, 200) == ()
    assert doubts(PLAN, {**both, "unusable": 6}, calls(), 0, 200) == (
        "5 % of all replies empty",
        "5 % of all replies cut off",
    )
    assert doubts(PLAN, {"calls": 0}, None, 0, 0) == ()


def test_replies_that_are_often_cut_off_have_their_remedy() -> None:
    counts = {"calls": 100, "truncated": 6, "unparsed": 4, "unusable": 6}
    limited = replace(PLAN, settings={"max_tokens": 48})
    [cut_off, _] = doubts(limited, counts, calls(), 0, 200)
    assert cut_off == "6 % of all replies cut off (raise --reply-tokens, now 48)"
    [cut_off, _] = doubts(PLAN, counts, calls(), 0, 200)
    assert cut_off == "6 % of all replies cut off (raise --reply-tokens)"
    found = replace(cell(), plan=limited, agent_counts=counts)
    assert (
        why_unread(found)
        == "raise --reply-tokens, now 48 (6 % of the replies were cut off)"
    )
    # Most of what could not be read was not cut off, or hardly anything was cut off.
    assert why_unread(replace(found, agent_counts={**counts, "unparsed": 12})) == ""
    rare = {**counts, "truncated": 5, "unparsed": 1}
    assert why_unread(replace(found, agent_counts=rare)) == ""


def test_a_model_that_never_acted_is_not_tested() -> None:
    assert to_act({"calls": 10, "notes": 4}) == 6
    assert untested({"calls": 10, "notes": 4, "unparsed": 5}, None) == ""
    assert untested({"calls": 0, "unparsed": 0}, None) == ""
    never = untested({"calls": 10, "notes": 4, "unparsed": 6}, None)
    assert never == (
        "No reply named an action (6 calls), so the model has not been tested."
    )
    quoted = CellCalls(unread="subject 1, trial 2: 'no'")
    assert untested({"calls": 1, "unparsed": 1}, quoted) == (
        "No reply named an action (1 call), so the model has not been tested."
        " The first: subject 1, trial 2: 'no'."
    )


def cell(rate: float = 0.9, **changes: Any) -> CellResult:
    plan = plan_of(**changes)
    records = trials_by_subject(trials_of(plan, rate))
    return judge_sample(plan, draw_sample(plan, records.values()))


def test_a_cell_whose_model_never_acted_is_an_error() -> None:
    counts = {"calls": 3, "unparsed": 3}
    asked = CellCalls(totals=CallTotals(calls=3), counts=counts)
    plain = cell(0.95, subjects=40)
    found = with_calls(plain, asked)
    assert plain.verdict == "PASS"
    assert found.verdict == "ERROR"
    assert found.agent_counts == counts
    assert found.calls is asked
    assert with_calls(plain, None).verdict is plain.verdict


def test_what_broke_down_is_counted_and_has_a_remedy() -> None:
    assert broken_down({"infrastructure": 3}) == 3
    assert broken_down({"infrastructure": 3, "run anew": 2}) == 5
    lost = cell()
    assert breakdown(lost, 1).startswith("1 trial of 200 that count failed")
    assert breakdown(lost, 1).endswith("Fix the cause and resume the run.")
    broken = {"infrastructure": 0, "budget": 0, "run anew": 2}
    anew = replace(lost, outcomes=broken, causes=("it was killed",))
    assert breakdown(anew, 1).endswith("Start a new run.")
    assert with_causes(anew).endswith("Start a new run.")
    assert not not_started(lost)


def test_why_there_is_no_verdict() -> None:
    assert no_claim(cell(reference=None)).startswith("The protocol has no reference")
    smoke = no_claim(cell(claims=False, design="smoke"))
    assert smoke.startswith("Design 'smoke' never gives")


def test_an_answer_that_is_preferred_is_named_with_its_rates() -> None:
    often = [("left", 1.0)] * 8 + [("right", 0.25)] * 8
    found = by_answer("side", often, 0)
    assert found is not None
    [said] = uneven(cell().plan, [found])
    assert "100 % where side is left, 25 % where side is right" in said
    even = by_answer("side", [("left", 0.5), ("right", 0.5)] * 8, 0)
    assert even is not None
    assert list(uneven(cell().plan, [even])) == []


def test_an_answer_is_told_with_the_measure_where_less_is_better() -> None:
    often = [("left", 1.0)] * 8 + [("right", 0.25)] * 8
    found = by_answer("side", often, 0)
    assert found is not None
    slow = cell(reference=judged_by("lower"), margin=5.0)
    [said] = uneven(slow.plan, [found])
    assert "latency 0 where side is left, latency 45 where side is right" in said
    left, right = answer_table([replace(slow, answers=(found,))])
    assert left[:6] == ("pool", "side", "left", "latency 0", "8", "45")
    assert right[:6] == ("pool", "side", "right", "latency 45", "8", "")


def test_two_shares_are_compared_by_newcombe() -> None:
    """Newcombe 1998, table II: 56 of 70 and 48 of 80."""
    low, high = difference_limits(56 / 70, 70, 48 / 80, 80)
    assert low == pytest.approx(0.0524, abs=1e-4)
    assert high == pytest.approx(0.3339, abs=1e-4)


def test_what_is_said_of_the_cells_of_a_rich_run() -> None:
    lines = [
        f"{' '.join(one.plan.key)}: {one.verdict or 'no verdict'}: {one.reason} {one.n_text}"
        for one in told_run().cells
    ]
    check_stored("reasons.txt", "\n".join(lines) + "\n")


def test_an_ability_in_words() -> None:
    plain = cell()
    assert abilities(plain) == ""
    alone = replace(plain, ability=Ability(model=0.954))
    assert abilities(alone) == "ability 0.95"
    all_ = replace(plain, ability=Ability(model=None, rodent=0.4, bar=-0.1))
    assert abilities(all_) == "ability – (rodent 0.40; PASS from < 0)"


def test_doubts_stand_beside_the_reason() -> None:
    plain = replace(cell(), reason="So.", warnings=())
    assert with_doubts(plain) == "So."
    doubted = replace(plain, warnings=("one", "two"))
    assert with_doubts(doubted) == "So. Doubtful: one; two."
    assert with_doubts(replace(doubted, verdict=Verdict.ERROR)) == "So."


def test_the_cause_stands_beside_the_reason() -> None:
    plain = replace(cell(), reason="So.", outcomes={"infrastructure": 0}, causes=())
    spent = replace(plain, causes=("late", "--max-usd 3 was spent"))
    open_ = replace(spent, verdict=Verdict.INCONCLUSIVE)
    assert with_causes(open_) == "So. Stopped by the budget: --max-usd 3 was spent."
    assert with_causes(replace(spent, verdict=Verdict.PASS)) == "So."
    broken = replace(plain, verdict=Verdict.ERROR, causes=("It broke.", "b", "c"))
    assert with_causes(broken) == "So. Cause: It broke (2 other causes)."
    assert with_causes(plain) == "So."
    silent = replace(broken, reason=f"{NEVER_ACTED}.")
    assert with_causes(silent) == f"{NEVER_ACTED}."


def test_replies_that_were_all_empty() -> None:
    assert untested({"calls": 2, "unparsed": 2, "empty": 2}, None) == (
        "No reply named an action: all were empty (2 calls), so the model has not been tested."
    )


def test_shares_of_the_names_of_a_measure() -> None:
    found = ClassShares("way", {"direct": 2, "serial": 3})
    assert shares(found) == "direct 40 %, serial 60 %"


def test_no_trial_says_nothing() -> None:
    assert nothing_measured(replace(cell(), planned=0)).startswith("No trial was run.")
