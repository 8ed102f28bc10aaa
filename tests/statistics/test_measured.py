"""Verdicts about a measure: by its range as pass rates are, without one by t, and always in the measure's own unit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cheesebench.experiment.log_types import read_plan
from cheesebench.experiment.records import CellPlan, Measured, ReferenceValue, TrialRecord, looks_until
from cheesebench.statistics import Verdict, judge, to_plain
from cheesebench.statistics.course import CellCourse
from cheesebench.statistics.declared_animal import simulate_measured
from cheesebench.statistics.judgement import question_of
from cheesebench.statistics.means import RATES, Bounded, Student

Plan = Callable[..., CellPlan]
Life = Callable[..., list[TrialRecord]]

LATENCY = Measured(name="latency", better="lower", range=(0.0, 60.0))
BREAKPOINT = Measured(name="breakpoint", better="higher")


def measured(subjects: Sequence[Sequence[float | None]], life: Life, name: str = "latency") -> list[TrialRecord]:
    """Return the trials of subjects with these values, one a trial; None: the trial is missing."""
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


def test_a_range_makes_it_a_rate(plan: Plan, life: Life, cohort: Callable[..., list[TrialRecord]]) -> None:
    """Latencies of 0 and 60 in a range of 0 to 60, where less is better, are successes and failures."""
    lives = ["++++-", "+++++", "++-++", "+++++", "+-+++", "+++++", "+++-+", "++++-", "+++++", "+++++"]
    cell = plan(subjects=10, trials=5)
    rates = judge(cell, cohort(*lives))
    about = replace(cell, reference=animals(LATENCY, 12.0), margin=6.0)
    found = judge(about, measured([[0.0 if end == "+" else 60.0 for end in own] for own in lives], life))
    assert (found.verdict, found.p_inferior) == (rates.verdict, rates.p_inferior)
    assert rates.rate is not None
    assert rates.difference_low is not None
    assert rates.difference_high is not None
    assert found.judged is not None
    assert found.judged.mean == pytest.approx(60 * (1 - rates.rate))
    assert found.rate is None, "no success is declared"
    assert found.difference_low == pytest.approx(-60 * rates.difference_high)
    assert found.difference_high == pytest.approx(-60 * rates.difference_low)
    assert found.subjects_needed == rates.subjects_needed


@pytest.mark.parametrize(
    ("shift", "verdict"), [(0.0, Verdict.PASS), (-3.0, Verdict.FAIL), (-1.0, Verdict.INCONCLUSIVE)]
)
@pytest.mark.parametrize("better", ["higher", "lower"])
def test_without_a_range_it_is_t(better: Any, shift: float, verdict: Verdict, plan: Plan, life: Life) -> None:
    """The limits are those of two groups: t with the model's own spread, and t over the animals."""
    sign = 1 if better == "higher" else -1
    values = np.linspace(-2, 2, 20) + 8 + sign * shift
    measure = Measured(name="latency", better=better)
    cell = plan(animals(measure, 8.0, sd=1.0, n_animals=12), subjects=20, trials=1, margin=1.0)
    found = judge(cell, measured([[value] for value in values], life))
    assert found.verdict is verdict, found.reason
    own = stats.t.ppf(0.95, 19) * values.std(ddof=1) / 20**0.5
    rodents = stats.t.ppf(0.95, 11) * 1.0 / 12**0.5
    half = (own**2 + rodents**2) ** 0.5
    assert found.difference == pytest.approx(sign * shift, abs=1e-9)
    assert (found.difference_low, found.difference_high) == pytest.approx((sign * shift - half, sign * shift + half))
    assert found.judged is not None
    assert found.judged.sd == pytest.approx(values.std(ddof=1))
    limits = stats.t.interval(0.95, 19, values.mean(), values.std(ddof=1) / 20**0.5)
    assert found.judged.interval == pytest.approx(limits)


def test_subjects_that_happen_to_be_alike_are_spread_as_the_animals_are(plan: Plan, life: Life) -> None:
    cell = plan(animals(BREAKPOINT, 8.0, sd=2.0, n_animals=40), subjects=6, trials=1, margin=1.0)
    found = judge(cell, measured([[8.0]] * 6, life, "breakpoint"))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.difference_low is not None
    assert found.difference_low < -stats.t.ppf(0.95, 5) * 2 / 6**0.5


def test_missing_trials_count_as_the_ends_of_the_range(plan: Plan, life: Life) -> None:
    values: list[list[float | None]] = [[10.0, 12.0, 14.0, 9.0, 11.0 + n / 10] for n in range(20)]
    values[0][4] = values[1][4] = None
    cell = plan(animals(LATENCY, 30.0), subjects=20, trials=5, margin=5.0)
    trials = [replace(one, missing=one.missing and "budget") for one in measured(values, life)]
    found = judge(cell, trials)
    assert found.verdict is Verdict.PASS
    assert "2 missing trials could not change this" in found.reason
    filled = [[60.0 if value is None else value for value in own] for own in values]
    assert found.difference_high == judge(cell, measured(filled, life)).difference_high


def test_without_a_range_missing_trials_can_be_anything(plan: Plan, life: Life) -> None:
    values: list[list[float | None]] = [[9.0 + n] for n in range(20)]
    values[3] = [None]
    cell = plan(animals(BREAKPOINT, 3.0, sd=2.0, n_animals=9), subjects=20, trials=1, margin=1.0)
    trials = [replace(one, missing=one.missing and "budget") for one in measured(values, life, "breakpoint")]
    found = judge(cell, trials)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "1 missing trial could have had any value: resume the run" in found.reason
    json.dumps(to_plain(found), allow_nan=False)


def test_what_has_no_value_is_in_no_mean(plan: Plan, life: Life) -> None:
    """An index without exploration has no value: neither 0 nor missing."""
    trials = measured([[30.0, 32.0 + n] for n in range(12)], life)
    trials = [replace(one, measures={"latency": None}) if one.subject == 0 or one.trial else one for one in trials]
    cell = plan(animals(LATENCY, 30.0), subjects=12, trials=2, margin=10.0)
    found = judge(cell, trials)
    assert found.judged is not None
    assert (found.judged.mean, found.judged.subjects, found.judged.without) == (30.0, 11, 1)
    assert "1 subject without any value of it" in found.reason
    nothing = judge(cell, [replace(one, measures={"latency": None}) for one in trials])
    assert nothing.verdict is Verdict.INCONCLUSIVE
    assert "'latency', which has no value in any trial" in nothing.reason


def test_values_beyond_the_range_are_counted_as_its_end_and_told(plan: Plan, life: Life) -> None:
    cell = plan(animals(LATENCY, 30.0), subjects=6, trials=1, margin=10.0)
    found = judge(cell, measured([[90.0]] * 3 + [[30.0]] * 3, life))
    assert found.judged is not None
    assert found.judged.mean == 45.0
    assert found.warnings == ("3 values of latency beyond its range of 0 to 60: counted as its end",)


def test_counters_and_truths_are_measures(plan: Plan, life: Life) -> None:
    trials = measured([[30.0]] * 4, life)
    cell = plan(animals(Measured(name="presses", range=(0, 10)), 5.0), subjects=4, trials=1, margin=1.0)
    found = judge(cell, [replace(one, counters={"presses": 4}) for one in trials])
    assert found.judged is not None
    assert found.judged.mean == 4
    cell = plan(animals(Measured(name="fed", range=(0, 1)), 0.5), subjects=4, trials=1, margin=0.1)
    found = judge(cell, [replace(one, measures={"fed": one.subject > 0}) for one in trials])
    assert found.judged is not None
    assert found.judged.mean == 0.75


def test_one_subject_says_nothing(plan: Plan, life: Life) -> None:
    for measure in (LATENCY, replace(LATENCY, range=None)):
        cell = plan(animals(measure, 30.0, sd=2.0, n_animals=9), subjects=1, trials=5, margin=10.0)
        found = judge(cell, measured([[1.0, 2.0, 1.0, 2.0, 3.0]], life))
        assert found.verdict is Verdict.INCONCLUSIVE
        assert found.flags.this_subject_only
        assert found.judged is not None
        assert found.judged.interval is None


def test_a_design_without_claims_shows_the_mean(plan: Plan, life: Life) -> None:
    cell = plan(animals(LATENCY, 30.0), subjects=2, trials=1, margin=10.0, claims=False, design="smoke")
    found = judge(cell, measured([[3.0], [5.0]], life))
    assert (found.verdict, found.difference) == (Verdict.INCONCLUSIVE, None)
    assert found.judged is not None
    assert found.judged.mean == 4.0


LOOKS = looks_until(60)


@pytest.mark.parametrize("measure", [LATENCY, replace(LATENCY, range=None)], ids=["range", "t"])
@pytest.mark.parametrize(("mean", "verdict"), [(50.0, "FAIL"), (14.0, "PASS")])
def test_it_stops_at_a_look(mean: float, verdict: str, measure: Measured, plan: Plan, life: Life) -> None:
    """The course of a running cell and the judgement of its records stop at the same look."""
    random = np.random.default_rng(1)
    cell = plan(animals(measure, 25.0, sd=4.0, n_animals=20), subjects=60, trials=4, margin=8.0, looks=LOOKS)
    values = np.clip(random.normal(mean, 3, (60, 4)), 0, 60)
    trials = measured(values.tolist(), life)
    course, lived = CellCourse(cell), []
    while not course.over:
        for subject in course.wanted():
            for record in (one for one in trials if one.subject == subject):
                course.see(record)
                lived.append(record)
            course.end(subject, "complete")
        course.advance()
    found = judge(cell, lived)
    assert found.verdict == verdict, found.reason
    assert found.look is not None
    assert found.look.standing == verdict
    assert found.look.subjects == course.look < 60
    assert len({one.subject for one in lived}) == course.look


def test_trials_of_a_measure_with_a_range_are_settled_and_of_one_without_are_not(plan: Plan, life: Life) -> None:
    for measure, settles in ((LATENCY, True), (replace(LATENCY, range=None), False)):
        cell = plan(animals(measure, 10.0, sd=1.0, n_animals=20), subjects=60, trials=20, margin=5.0, looks=LOOKS)
        course = CellCourse(cell)
        for subject in range(course.look):
            for record in measured([[59.0] * 15] * (subject + 1), life):
                if record.subject == subject:
                    course.see(record)
        assert (course.cut() is not None) is settles


def test_the_declared_animal_of_a_measure() -> None:
    for measure in (LATENCY, BREAKPOINT):
        fine = simulate_measured(animals(measure, 25.0, sd=5.0, n_animals=20), 8.0, seed=1)
        assert not fine.is_at_fault
        assert (fine.passes, max(fine.fails.values())) == (1, 0)
        assert simulate_measured(animals(measure, 25.0, sd=5.0, n_animals=4), 1.0, seed=1).is_at_fault


def test_a_plan_survives_the_log(plan: Plan) -> None:
    cell = plan(animals(LATENCY, 30.0, sd=2.0, n_animals=9), margin=10.0)
    text = json.dumps(to_plain(cell))
    assert read_plan(text) == cell
    for margin in (0.0, float("inf")):
        broken = replace(cell, margin=margin)
        with pytest.raises(ValueError, match="no margin"):
            read_plan(json.dumps(to_plain(broken)))


def test_the_means_of_a_question(plan: Plan) -> None:
    bounded, free = (
        question_of(plan(animals(one, 30.0, sd=6.0, n_animals=9), margin=6.0))
        for one in (LATENCY, replace(LATENCY, range=None))
    )
    assert bounded is not None
    assert free is not None
    assert isinstance(bounded.means, Bounded)
    assert (bounded.reference.value, bounded.reference.sd, bounded.passes) == pytest.approx((0.5, 0.1, -0.1))
    assert free.means == Student(6.0)
    assert (free.reference.value, free.passes) == (-30.0, -6.0)


def test_student_is_scipys() -> None:
    values = [1.0, 2.5, 2.0, 3.0, 3.5, 5.0, 4.0]
    assert stats.skew(values) == pytest.approx(0)
    more = stats.ttest_1samp(values, 1.7, alternative="greater").pvalue
    assert Student(0.0).p_value(values, 1.7, above=True) == pytest.approx(more)
    assert Student(0.0).p_value(values, 1.7, above=False) == pytest.approx(1 - more)
    low, high = Student(0.0).limits(values, 0.025)
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 6, np.mean(values), stats.sem(values)))


def test_student_without_any_spread_and_with_too_few() -> None:
    assert Student(0.0).p_value([2.0] * 6, 1.0, above=True) == 0
    assert Student(0.0).p_value([2.0] * 6, 1.0, above=False) == 1
    assert Student(0.0).p_value([2.0] * 6, 2.0, above=True) == 0.5
    assert Student(1.0).p_value([2.0, 3.0, 4.0, 5.0, 6.0], 1.0, above=True) == 1
    assert Student(1.0).limits([2.0, 3.0, 4.0, 5.0, 6.0], 0.05) == (-np.inf, np.inf)


def test_skewness_widens_the_limit_that_t_sets_too_near() -> None:
    """Many small values and a large one: the mean may well be higher, as t does not see."""
    values = [1.0, 1.2, 1.1, 1.3, 1.0, 1.2, 1.1, 9.0]
    t_low, t_high = stats.t.interval(0.95, 7, np.mean(values), stats.sem(values))
    low, high = Student(0.0).limits(values, 0.025)
    assert low == pytest.approx(t_low)
    assert high > t_high + 1
    mirrored = Student(0.0).limits([-value for value in values], 0.025)
    assert mirrored == pytest.approx((-high, -low))


def test_bounds_and_p_values_say_the_same() -> None:
    for means, values in ((RATES, [0.2, 0.9, 0.4, 0.7, 0.6, 0.1]), (Student(0.1), [2.0, 9.0, 4.0, 3.0, 2.0, 1.0])):
        low, high = means.limits(values, 0.03)
        assert means.p_value(values, low, above=True) == pytest.approx(0.03)
        assert means.p_value(values, high, above=False) == pytest.approx(0.03)
        many = means.p_values([values, values[::-1]], [low, low], above=True)
        assert many == pytest.approx([0.03, 0.03])
