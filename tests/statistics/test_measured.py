"""Verdicts about a measure: scaled by its range like pass rates, and always in the
measure's own unit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cheesebench.experiment.log_file import read_plan
from cheesebench.planning.simulation import declared_animal
from cheesebench.records import (
    GOAL,
    CellPlan,
    Construct,
    LesionClaim,
    Measured,
    ReferenceValue,
    TrialRecord,
    Variant,
    sets_until,
)
from cheesebench.statistics import CurvePoint, Verdict, judge, summarise_run, to_plain
from cheesebench.statistics.judgement import judge_set
from cheesebench.statistics.question import Question, question_of
from cheesebench.statistics.sample import trials_by_subject

Plan = Callable[..., CellPlan]
Life = Callable[..., list[TrialRecord]]

LATENCY = Measured(name="latency", better="lower", range=(0.0, 60.0))


def measured(
    subjects: Sequence[Sequence[float | None]], life: Life, name: str = "latency"
) -> list[TrialRecord]:
    """Return the trials of subjects with these values, one per trial; None: the trial
    is missing.
    """
    records = []
    for subject, values in enumerate(subjects):
        own = life(subject, "".join("!" if value is None else "+" for value in values))
        records += [
            replace(one, success=None, measures={} if value is None else {name: value})
            for one, value in zip(own, values, strict=True)
        ]
    return records


def animals(measure: Measured, value: float, **more: Any) -> ReferenceValue:
    return ReferenceValue(value=value, measured=measure, **more)


def test_a_range_makes_it_a_rate(
    plan: Plan, life: Life, cohort: Callable[..., list[TrialRecord]]
) -> None:
    """Latencies of 0 and 60 in a range of 0 to 60, where less is better, are successes
    and failures.
    """
    lives = [
        "++++-",
        "+++++",
        "++-++",
        "+++++",
        "+-+++",
        "+++++",
        "+++-+",
        "++++-",
        "+++++",
        "+++++",
    ]
    cell = plan(subjects=10, trials=5)
    rates = judge(cell, cohort(*lives))
    about = replace(cell, reference=animals(LATENCY, 12.0), margin=6.0)
    found = judge(
        about,
        measured([[0.0 if end == "+" else 60.0 for end in own] for own in lives], life),
    )
    assert (found.verdict, found.game) == (rates.verdict, rates.game)
    assert rates.rate is not None
    assert rates.difference_low is not None
    assert rates.difference_high is not None
    assert found.judged is not None
    assert found.judged.mean == pytest.approx(60 * (1 - rates.rate))
    assert found.rate is None, "no success is declared"
    assert found.difference_low == pytest.approx(-60 * rates.difference_high)
    assert found.difference_high == pytest.approx(-60 * rates.difference_low)
    assert found.subjects_needed == rates.subjects_needed


def test_missing_trials_count_as_the_ends_of_the_range(plan: Plan, life: Life) -> None:
    values: list[list[float | None]] = [
        [10.0, 12.0, 14.0, 9.0, 11.0 + n / 10] for n in range(20)
    ]
    values[0][4] = values[1][4] = None
    cell = plan(animals(LATENCY, 30.0), subjects=20, trials=5, margin=5.0)
    trials = [
        replace(one, missing=one.missing and "budget") for one in measured(values, life)
    ]
    found = judge(cell, trials)
    assert found.verdict is Verdict.PASS
    assert "2 missing trials could not change this" in found.reason
    filled = [[60.0 if value is None else value for value in own] for own in values]
    assert found.difference_high == judge(cell, measured(filled, life)).difference_high


def test_what_has_no_value_is_in_no_mean(plan: Plan, life: Life) -> None:
    """An index without exploration has no value: neither 0 nor missing."""
    trials = measured([[30.0, 32.0 + n] for n in range(12)], life)
    trials = [
        replace(one, measures={"latency": None})
        if one.subject == 0 or one.trial
        else one
        for one in trials
    ]
    cell = plan(animals(LATENCY, 30.0), subjects=12, trials=2, margin=10.0)
    found = judge(cell, trials)
    assert found.judged is not None
    assert (found.judged.mean, found.judged.subjects, found.judged.without) == (
        30.0,
        11,
        1,
    )
    assert "1 subject without any value of the measure" in found.reason
    nothing = judge(cell, [replace(one, measures={"latency": None}) for one in trials])
    assert nothing.verdict is Verdict.INCONCLUSIVE
    assert "'latency', which has no value in any trial" in nothing.reason


def test_a_measure_has_a_curve_by_session_in_its_unit(plan: Plan, life: Life) -> None:
    values = [[50.0, 40.0, 30.0, 90.0], [30.0, 40.0, 20.0, 10.0]]
    trials = [
        replace(one, session=one.trial // 2 + 1) for one in measured(values, life)
    ]
    cell = plan(animals(LATENCY, 30.0), subjects=2, trials=4, estimand="last:2")
    found = judge(cell, trials).judged
    assert found is not None
    # A value beyond the range counts as its end, as in the mean of the verdict.
    assert [one.rate for one in found.curve] == pytest.approx([40, 30])
    assert [(one.session, one.trials, one.judged) for one in found.curve] == [
        (1, 4, False),
        (2, 4, True),
    ]
    assert found.curve[1].rate == pytest.approx(found.mean)
    assert all(0 <= one.low < one.rate < one.high <= 60 for one in found.curve)
    (whole,) = {(one.low, one.high) for one in _alone(cell, trials)}
    assert whole == (0.0, 60.0), "a single subject says nothing about others"
    # An idle session is left out unless it is judged.
    probe = judge(replace(cell, idle=(1, 2)), trials).judged
    assert probe is not None
    assert [one.session for one in probe.curve] == [2]
    assert judge(replace(cell, items=True), trials).judged is not None


def _alone(cell: CellPlan, trials: list[TrialRecord]) -> tuple[CurvePoint, ...]:
    own = [one for one in trials if one.subject == 0]
    found = judge(replace(cell, subjects=1), own).judged
    assert found is not None
    return found.curve


def test_the_curve_of_a_measure_in_one_session_has_groups_of_trials(
    plan: Plan, life: Life
) -> None:
    cell = plan(animals(LATENCY, 30.0), subjects=2, trials=10)
    values = [[float(n) for n in range(10)], [10.0 + n for n in range(10)]]
    found = judge(cell, measured(values, life))
    assert found.judged is not None
    assert (found.curve, found.curve_unit) == ((), "2 trials")
    assert found.judged.curve_unit == "2 trials"
    assert [one.rate for one in found.judged.curve] == pytest.approx(
        [5.5, 7.5, 9.5, 11.5, 13.5]
    )


def test_values_beyond_the_range_are_counted_as_its_end_and_told(
    plan: Plan, life: Life
) -> None:
    cell = plan(animals(LATENCY, 30.0), subjects=6, trials=1, margin=10.0)
    found = judge(cell, measured([[90.0]] * 3 + [[30.0]] * 3, life))
    assert found.judged is not None
    assert found.judged.mean == 45.0
    assert found.warnings == (
        "3 values of latency beyond its range of 0 to 60: counted as the end of the range",
    )


def test_a_pass_of_random_actions_says_that_nothing_is_measured(
    plan: Plan, life: Life
) -> None:
    """The animals are in percent, the measure is 0 or 1 in a trial."""
    early = Measured(name="early", better="lower", range=(0.0, 100.0))
    cell = plan(animals(early, 29.5), subjects=20, trials=5, margin=10.0)
    values = [[1.0, 0.0, n % 2, 1.0, 0.0] for n in range(20)]
    own = [
        judge(
            replace(cell, model=model),
            [replace(one, model=model) for one in measured(values, life, "early")],
        )
        for model in ("random", "other")
    ]
    assert [one.verdict for one in own] == [Verdict.PASS, Verdict.PASS]
    assert own[1].warnings == ()
    assert own[0].warnings == (
        "random actions pass, and a protocol that they pass measures nothing (a mean early of 0.5 in a range of 0 to 100: "
        "are measure, range and animals in one unit?)",
    )


def test_counters_and_truths_are_measures(plan: Plan, life: Life) -> None:
    trials = measured([[30.0]] * 4, life)
    cell = plan(
        animals(Measured(name="presses", range=(0, 10)), 5.0),
        subjects=4,
        trials=1,
        margin=1.0,
    )
    found = judge(cell, [replace(one, counters={"presses": 4}) for one in trials])
    assert found.judged is not None
    assert found.judged.mean == 4
    cell = plan(
        animals(Measured(name="fed", range=(0, 1)), 0.5),
        subjects=4,
        trials=1,
        margin=0.1,
    )
    found = judge(
        cell, [replace(one, measures={"fed": one.subject > 0}) for one in trials]
    )
    assert found.judged is not None
    assert found.judged.mean == 0.75


def test_one_subject_says_nothing(plan: Plan, life: Life) -> None:
    cell = plan(
        animals(LATENCY, 30.0, sd=2.0, n_animals=9), subjects=1, trials=5, margin=10.0
    )
    found = judge(cell, measured([[1.0, 2.0, 1.0, 2.0, 3.0]], life))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.flags.this_subject_only
    assert found.judged is not None
    assert found.judged.interval is None


def test_a_design_without_claims_shows_the_mean(plan: Plan, life: Life) -> None:
    cell = plan(
        animals(LATENCY, 30.0),
        subjects=2,
        trials=1,
        margin=10.0,
        claims=False,
        design="smoke",
    )
    found = judge(cell, measured([[3.0], [5.0]], life))
    assert (found.verdict, found.difference) == (Verdict.INCONCLUSIVE, None)
    assert found.judged is not None
    assert found.judged.mean == 4.0


@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize(("mean", "verdict"), [(50.0, "FAIL"), (14.0, "PASS")])
def test_it_stops_after_a_set(
    mean: float, verdict: str, nth: int, plan: Plan, life: Life
) -> None:
    """The scheduler and the report of its records stop at the same subject, also if
    only every third subject has a value.
    """
    random = np.random.default_rng(1)
    cell = plan(
        animals(LATENCY, 25.0, sd=4.0, n_animals=20),
        subjects=60,
        trials=4,
        margin=8.0,
        sequential=True,
    )
    values = np.clip(random.normal(mean, 3, (60, 4)), 0, 60)
    trials = [
        record if record.subject % nth == 0 else replace(record, measures={})
        for record in measured(values.tolist(), life)
    ]
    for number in sets_until(60):
        lived = [record for record in trials if record.subject < number]
        if judge_set(cell, trials_by_subject(lived).values()).decided:
            break
    found = judge(cell, lived)
    assert found.verdict == verdict, found.reason
    assert found.game is not None
    assert found.game.subjects == number < 60
    assert found.judged is not None
    assert found.judged.mean == pytest.approx(values[:number:nth].mean())
    # Subjects that had begun when the set decided do not count.
    later = [record for record in trials if record.subject < number + 6]
    game = judge(cell, later).game
    assert game is not None
    assert (game.subjects, game.beyond) == (number, 6)
    assert judge(cell, later).judged == found.judged


def test_a_cell_without_any_value_is_stale(plan: Plan, life: Life) -> None:
    """No bet can double, so it stops where any cell without evidence does."""
    cell = plan(
        animals(LATENCY, 24.0), subjects=120, trials=1, margin=6.0, sequential=True
    )

    def lived(number: int) -> list[TrialRecord]:
        return [replace(one, measures={}) for one in measured([[0]] * number, life)]

    decided = {
        number: judge_set(cell, trials_by_subject(lived(number)).values()).decided
        for number in (6, 30, 40, 49, 50, 60)
    }
    assert [number for number, over in decided.items() if over] == [50, 60]
    found = judge(cell, lived(60))
    assert found.game is not None
    assert (found.game.stale, found.game.subjects) == (True, 50)
    assert "has no value in any trial" in found.reason
    cohort = replace(cell, subjects=60, sequential=False, design="cohort")
    assert judge(cohort, lived(60)).game == replace(
        found.game, stale=False, subjects=60, most=60, sequential=False
    )


def test_subjects_without_a_value_are_subjects_all_the_same(
    plan: Plan, life: Life
) -> None:
    """A set is complete although its last subject has no value, a forecast is a number
    of subjects and not of values, and a verdict counts all subjects.
    """
    cell = plan(
        animals(LATENCY, 24.0), subjects=120, trials=1, margin=6.0, sequential=True
    )

    def lived(number: int, values: Sequence[float], nth: int) -> list[TrialRecord]:
        given = [[values[subject % len(values)]] for subject in range(number)]
        return [
            replace(one, measures={}) if one.subject % nth == nth - 1 else one
            for one in measured(given, life)
        ]

    for number in sets_until(120):  # Subjects 9, 19, ... have no value.
        at_the_bar = lived(number, (29.0, 30.0, 31.0), 10)
        if judge_set(cell, trials_by_subject(at_the_bar).values()).decided:
            break
    stale = judge(cell, at_the_bar).game
    assert stale is not None
    assert (stale.stale, stale.subjects, stale.beyond) == (True, number, 0)
    assert number == 60, "the first set with 50 values"

    cohort = replace(cell, subjects=40, sequential=False, design="cohort")
    every, half = (
        judge(cohort, lived(40, (10.0, 10.0, 46.0, 46.0), nth)).game for nth in (41, 2)
    )
    assert every is not None
    assert half is not None
    assert every.subjects == half.subjects == 40
    assert half.outlook is not None
    assert half.outlook.subjects > 40, "40 subjects have not decided it"
    passed = judge(cohort, lived(40, (1.0,), 2)).game
    assert passed is not None
    assert (passed.verdict, passed.subjects) == (Verdict.PASS, 40)
    every = judge(cohort, lived(40, (1.0,), 41)).game
    assert every is not None
    assert every.decided is not None
    assert passed.decided == 2 * every.decided - 1, "subjects 0, 2, 4, ... have a value"

    unseen = judge(cell, lived(10, (1.0,), 1)).game
    assert unseen is not None
    assert (unseen.sequential, unseen.verdict) == (True, None)


def test_no_value_because_trials_were_lost_is_an_error(plan: Plan, life: Life) -> None:
    cell = plan(animals(LATENCY, 24.0), subjects=4, trials=2, margin=6.0)
    trials = [replace(one, measures={}) for one in measured([[1.0, 1.0]] * 4, life)]
    assert judge(cell, trials).verdict is Verdict.INCONCLUSIVE
    lost = [one if one.trial else replace(one, success=None) for one in trials]
    lost[-1] = replace(lost[-1], missing="infrastructure", outcome=None)
    found = judge(cell, lost)
    assert found.verdict is Verdict.ERROR, found.reason
    assert "technical reasons" in found.reason


def test_the_declared_animal_of_a_measure() -> None:
    fine = declared_animal(
        animals(LATENCY, 25.0, sd=5.0, n_animals=20), {}, 8.0, seed=1
    )
    assert not fine.is_at_fault
    assert (fine.passes, max(fine.fails.values())) == (1, 0)
    assert declared_animal(
        animals(LATENCY, 25.0, sd=5.0, n_animals=4), {}, 1.0, seed=1
    ).is_at_fault


def test_a_plan_survives_the_log(plan: Plan) -> None:
    cell = plan(animals(LATENCY, 30.0, sd=2.0, n_animals=9), margin=10.0)
    text = json.dumps(to_plain(cell))
    assert read_plan(text) == cell


def test_a_question_is_about_scores(plan: Plan) -> None:
    found = question_of(plan(animals(LATENCY, 30.0, sd=6.0, n_animals=9), margin=6.0))
    assert found is not None
    assert (found.reference.value, found.reference.sd, found.passes) == pytest.approx(
        (0.5, 0.1, -0.1)
    )


OPEN = Measured(name="open", better="alike", range=(0.0, 1.0))


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(0.17, "PASS"), (0.5, "FAIL"), (0.01, "FAIL"), (0.27, "INCONCLUSIVE")],
)
def test_more_is_not_better_where_models_should_be_like_the_animals(
    mean: float, verdict: str, plan: Plan, life: Life
) -> None:
    """Mice spend 17 % of their time in the open arms; a random walker spends half of it
    there, and must not pass.
    """
    random = np.random.default_rng(4)
    cell = plan(
        animals(OPEN, 0.17), subjects=120, trials=1, margin=0.1, sequential=True
    )
    found = judge(
        cell,
        measured(
            random.beta(30 * mean, 30 * (1 - mean), (120, 1)).tolist(), life, "open"
        ),
    )
    assert found.verdict == verdict, found.reason
    if verdict != "INCONCLUSIVE":
        claim = (
            "within 0.1 of the animals"
            if verdict == "PASS"
            else "further than 0.1 from the animals"
        )
        assert f"evidence for '{claim}' is" in found.reason
        assert found.difference_low is not None
        assert found.difference_high is not None
        assert (max(abs(found.difference_low), abs(found.difference_high)) < 0.1) is (
            verdict == "PASS"
        )
    assert not found.superior


@pytest.mark.parametrize("shift", [-0.1, 0.1])
def test_errors_at_either_edge_of_being_alike(shift: float) -> None:
    random, runs = np.random.default_rng(5), 2000
    mean = 0.4 + shift
    for low, spread in ((mean, 12.0), (mean, 1.5)):
        scores = random.beta(low * spread, (1 - low) * spread, (runs, 60))
        found = Question(ReferenceValue(value=0.4), -0.1, -0.1, alike=True).play(
            scores, scores, goal=GOAL
        )
        error = 2 * (0.05 * 0.95 / runs) ** 0.5
        assert found.passed.mean() <= 0.05 + error
        assert found.failed.mean() <= 0.05 + error


def test_being_alike_is_mirrored() -> None:
    random = np.random.default_rng(6)
    scores = random.beta(2, 3, (200, 60))
    one = Question(
        ReferenceValue(value=0.45, sd=0.1, n_animals=12), -0.12, -0.12, alike=True
    )
    other = replace(one, reference=ReferenceValue(value=0.55, sd=0.1, n_animals=12))
    found, mirrored = (
        one.play(scores, scores, goal=GOAL),
        other.play(1 - scores, 1 - scores, goal=GOAL),
    )
    assert 0 < found.passed.mean() < 1
    assert found.passing == pytest.approx(mirrored.passing)
    assert found.failing == pytest.approx(mirrored.failing)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.8, "which would still pass: this is not"),
        (0.2, "which would not pass, as"),
        (0.6, "is undecided"),
    ],
)
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_what_a_lesion_leaves_of_a_measure(
    better: str, value: float, said: str, plan: Plan, life: Life
) -> None:
    """The animals have .7, with a margin of .1: a lesioned subject must have less than
    .6.
    """
    share = Measured(name="share", better=better, range=(0.0, 1.0))  # type: ignore[arg-type]
    own, theirs = (value, 0.7) if better == "higher" else (1 - value, 0.3)
    claim = LesionClaim(words="without Light and memory", at_most=0.5)
    construct = Construct(
        name="place conditioning", abolished_by=(("amnesia=trial", 0.5),)
    )
    cell = plan(
        animals(share, theirs), subjects=20, trials=1, margin=0.1, construct=construct, lesion=claim,
        variant=Variant(control="amnesia=trial"), claims=False,
    )  # fmt: skip
    spread = np.linspace(-0.05, 0.05, 20)
    trials = measured([[own + one] for one in spread], life, "share")
    found = judge(cell, [replace(one, variant=str(cell.variant)) for one in trials])
    assert said in found.reason
    assert "Without Light and memory, the mean of share" in found.reason
    assert bool(found.contradicted) is ("still pass" in said)


def test_the_gap_of_a_twin_is_one_of_rates_with_their_own_interval(
    plan: Plan, life: Life
) -> None:
    """Both have the same latencies, and only the published file is passed."""
    about = animals(LATENCY, 12.0)
    public = plan(about, protocol="maze", margin=6.0, subjects=20)
    held_out = replace(public, protocol="maze@twin_1", twin_of="maze")
    records = [
        replace(one, protocol=cell.protocol, measures={"latency": 30.0})
        for cell, end in ((public, "+"), (held_out, "-"))
        for subject in range(20)
        for one in life(subject, 5 * end)
    ]
    [text] = summarise_run({}, [public, held_out], records).cells[1].remarks
    assert text.startswith("The published maze minus this twin: +100 points (")
    assert 50 < float(text.split("(")[1].split(" to ")[0]) < 100
