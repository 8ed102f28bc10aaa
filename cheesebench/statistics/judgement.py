"""Judges one cell: computes its verdict from its records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import stdev
from typing import TYPE_CHECKING

from cheesebench.records import LARGEST, CellPlan, SetResult, TrialRecord
from cheesebench.statistics import wording
from cheesebench.statistics.ability import ability
from cheesebench.statistics.betting import (
    LEAST_SUBJECTS,
    LIMIT,
    Scores,
    limits,
)
from cheesebench.statistics.controls import contradiction, lesion_sentence
from cheesebench.statistics.intervals import (
    clustering,
    quantile,
    wilson,
)
from cheesebench.statistics.outlook import outlook
from cheesebench.statistics.question import (
    PASS_RATE,
    Question,
    Scale,
    animals_interval,
    question_of,
    scale_of,
)
from cheesebench.statistics.sample import (
    Sample,
    SubjectRecords,
    draw_sample,
    learning_curve,
    scores_of,
    trials_by_subject,
)
from cheesebench.statistics.summary import CellResult, Flags, Game, JudgedMean, Verdict

if TYPE_CHECKING:
    from cheesebench.statistics.betting import Floats

#: Tolerance for rounding: .8 - .1 is slightly more than .7 in binary.
ROUNDING = 1e-9
#: An observed intraclass correlation of at least this, with a p value below
#: ``CONTRADICTING_P``, contradicts an agent that declares no memory.
CONTRADICTING_ICC = 0.1
#: Significance level of the F test of whether subjects differ.
CONTRADICTING_P = 0.001


def judge(plan: CellPlan, trials: Iterable[TrialRecord]) -> CellResult:
    """Judge one cell from its trials. Trials of other cells are ignored, and the order
    of trials does not matter.

    Raises:
        ValueError: If the plan's estimand is malformed.
    """
    own = trials_by_subject(one for one in trials if one.key == plan.key)
    return judge_sample(plan, draw_sample(plan, own.values()))


def judge_sample(plan: CellPlan, sample: Sample) -> CellResult:
    """Judge one cell from its sample, as ``draw_sample`` returns it.

    A sequential cell is described by its subjects up to the end of the set that
    decided. Later subjects do not count. A control gets no verdict but ERROR.
    """
    judged = _judge(plan, sample)
    has_none = plan.control and judged.verdict is Verdict.INCONCLUSIVE
    return replace(judged, verdict=None) if has_none else judged


def _judge(plan: CellPlan, sample: Sample) -> CellResult:
    question, scale = question_of(plan), scale_of(plan)
    game = None if question is None else play(plan, question, sample)
    if game is not None and plan.sequential:
        sample = sample.up_to(game.subjects)
    described = replace(_describe(plan, sample), game=game)
    rates = scores_of(sample.subjects())
    estimated = (
        _estimate(described, sample, rates)
        if any(one.results for one in sample.per_subject)
        else described
    )
    judged = scores_of(sample.judged())
    if not any(one.scored for one in sample.judged()):
        return _without_value(estimated)
    if scale.measured is not None:
        estimated = _measure(estimated, sample, scale, judged)
    if question is None or game is None:
        said = filter(None, (lesion_sentence(estimated), wording.no_claim(estimated)))
        contradicted = tuple(filter(None, [contradiction(estimated)]))
        return _unless_broken(
            estimated.ending(
                Verdict.INCONCLUSIVE, " ".join(said), contradicted=contradicted
            )
        )
    return _unless_broken(_compare(estimated, question, sample, judged, scale))


def judge_set(plan: CellPlan, lives: Iterable[SubjectRecords]) -> SetResult:
    """Judge a sequential cell while it runs, for the scheduler
    (``cheesebench.experiment.session``).
    """
    sample, question = draw_sample(plan, lives), question_of(plan)
    number = sample.seen + sample.absent
    outcomes = sample.tally.taxonomy(0)
    futile = outcomes["budget"] > 0 or (
        sample.seen > 0 and sample.missing == sample.entered
    )
    if question is None:
        text = wording.plural(number, "subject")
        return SetResult(number, False, futile, plan.subjects, text)
    game = play(plan, question, sample)
    needed = game.outlook.subjects if game.outlook else game.subjects
    return SetResult(
        game.subjects,
        game.over,
        futile,
        min(plan.subjects, needed),
        wording.standing(game),
    )


def play(plan: CellPlan, question: Question, sample: Sample) -> Game:
    """Return the state of a cell's games."""
    scores = scores_of(sample.judged())
    number = sample.seen + sample.absent
    most = plan.subjects if plan.sequential else None
    if not len(scores.low):
        end = scores.stale_at(most)
        return Game(
            goal=plan.goal,
            stale=end <= scores.subjects,
            subjects=min(number, end),
            most=plan.subjects,
            sequential=plan.sequential,
        )
    found = question.play(
        scores.low,
        scores.high,
        goal=plan.goal,
        most=most,
        numbers=scores.numbers,
        subjects=scores.subjects,
        distinct=scores.distinct,
    )
    game = Game(
        passing=_finite(found.passing),
        failing=_finite(found.failing),
        passing_at_stop=_finite(found.passing_at_stop),
        failing_at_stop=_finite(found.failing_at_stop),
        goal=plan.goal,
        verdict=Verdict.PASS
        if found.passed
        else Verdict.FAIL
        if found.failed
        else None,
        stale=bool(found.stale),
        subjects=number,
        most=plan.subjects,
        sequential=plan.sequential,
    )
    if not game.over:
        return replace(game, outlook=outlook(question, scores, plan.goal))
    # The games count up to the end of a set, but the last set may be incomplete.
    counted = min(number, int(found.counted))
    beyond = (
        one.subject >= counted and one.entered > one.missing
        for one in sample.per_subject
    )
    return replace(
        game,
        decided=int(scores.numbers[found.decided - 1]) + 1 if game.verdict else None,
        subjects=counted,
        beyond=sum(beyond) if plan.sequential else 0,
    )


def _finite(wealth: Floats) -> float:
    return min(LARGEST, float(wealth))


def _describe(plan: CellPlan, sample: Sample) -> CellResult:
    """Return the part of a result that needs neither a pass rate nor a mean."""
    not_run, tally = sample.not_run, sample.tally
    described = CellResult(
        plan=plan,
        verdict=Verdict.ERROR,
        reason="",
        n_text=wording.sample_size(sample),
        subjects=sample.begun,
        planned=sample.entered + not_run,
        ability=ability(plan, None),
        valid=sample.entered - sample.missing,
        missing=sample.missing + not_run,
        flags=Flags(goal_visible=plan.goal_visible, duplicate_subjects=sample.copies),
        outcomes=tally.taxonomy(not_run),
        agent_counts=tally.agent_counts(),
        raw_outcomes=tally.raw_outcomes(),
        measures=tally.own_measures(),
        conditions=tally.condition_curves(),
        classes=tally.class_shares(),
        splits=tally.split_rates(),
        strategy=tally.strategy_measures(),
    )
    outside = sum(one.outside for one in sample.per_subject)
    return replace(
        described,
        warnings=(*wording.warnings(described), *wording.beyond_range(plan, outside)),
    )


def _without_value(described: CellResult) -> CellResult:
    """Return the cell with the reason why it has no pass rate or mean to judge."""
    outcomes = described.outcomes
    if described.valid:
        return _unless_broken(
            described.ending(Verdict.INCONCLUSIVE, wording.no_value(described.plan))
        )
    if not described.planned and described.subjects:
        reason = wording.nothing_entered(described)
        return described.ending(Verdict.INCONCLUSIVE, reason)
    # A spent budget is the user's choice, not an error, so the cell is only undecided.
    spent = outcomes["budget"] and not outcomes["infrastructure"]
    verdict = Verdict.INCONCLUSIVE if spent else Verdict.ERROR
    return described.ending(verdict, wording.nothing_measured(described))


def _unless_broken(judged: CellResult) -> CellResult:
    """Return an ERROR if the cell is undecided and trials were lost to breakdowns. A
    verdict that missing trials cannot change remains.
    """
    broken = wording.broken_down(judged.outcomes)
    if not broken or judged.verdict is not Verdict.INCONCLUSIVE:
        return judged
    reason = wording.breakdown(judged, broken)
    return judged.ending(Verdict.ERROR, reason, subjects_needed=None)


def _estimate(described: CellResult, sample: Sample, scores: Scores) -> CellResult:
    """Return the result with the pass rate and what follows from it: its interval, the
    ability, the curve and flags.
    """
    plan, counted = described.plan, [one for one in sample.subjects() if one.scored]
    icc, p_value = clustering(
        [one.total for one in counted], [one.scored for one in counted]
    )
    # Whether a subject's trials are more alike than they could be for an agent without
    # memory.
    clustered = icc >= CONTRADICTING_ICC and p_value < CONTRADICTING_P
    distinct = sum(one.distinct for one in counted) or 1
    low, high = _limits(sample, scores, LIMIT, PASS_RATE)
    curve_unit, curve = learning_curve(sample.per_subject, plan.idle)
    rates = [one.rate() for one in counted]
    rate = sum(rates) / len(rates)
    return replace(
        described,
        valid=sum(one.scored for one in counted),
        passed=round(sum(one.total for one in counted)),
        rate=rate,
        interval=(low, high),
        ability=ability(plan, rate, (low, high)),
        interval_method=wording.interval_method(distinct),
        standard_error=_standard_error(rates),
        icc=icc if len(counted) > 1 else None,
        curve=() if plan.items else curve,
        curve_unit=curve_unit,
        flags=replace(
            described.flags,
            this_subject_only=distinct == 1,
            memory_contradicted=plan.memory == "none" and clustered,
        ),
    )


def _standard_error(rates: Sequence[float]) -> float | None:
    return stdev(rates) / len(rates) ** 0.5 if len(rates) > 1 else None


def _limits(
    sample: Sample, scores: Scores, goal: float, scale: Scale
) -> tuple[float, float]:
    """Return the limits of the mean score. For a single distinct subject, these are
    Wilson's limits of its own rate over its trials or, for a measure, 0 and 1.
    """
    judged = sample.subjects() if scale.measured is None else sample.judged()
    distinct = (one.distinct for one in judged if one.scored + one.missing)
    if sum(distinct) >= LEAST_SUBJECTS:
        return limits(scores.low, scores.high, goal, scores.distinct)
    if scale.measured is not None:
        return 0.0, 1.0
    trials = max(one.scored + one.missing for one in judged)
    ends = [scores.low.mean(), scores.high.mean()]
    lows, highs = wilson(ends, trials, quantile(1 / goal, None))
    return float(lows[0]), float(highs[1])


def _measure(
    estimated: CellResult, sample: Sample, scale: Scale, scores: Scores
) -> CellResult:
    """Return the result with the mean of the judged measure, in the measure's unit."""
    assert scale.measured is not None
    own = [one.rate() for one in sample.judged() if one.scored]
    alone = sum(one.distinct for one in sample.judged() if one.scored) <= 1
    unit, curve = sample.measured_curve(estimated.plan)
    judged = JudgedMean(
        measure=scale.measured.name,
        better=scale.measured.better,
        mean=scale.value(sum(own) / len(own)),
        interval=None
        if alone
        else scale.range_of(_limits(sample, scores, LIMIT, scale)),
        sd=stdev(map(scale.value, own)) if len(own) > 1 else None,
        subjects=len(own),
        without=sum(not one.scores and not one.missing for one in sample.per_subject),
        curve=curve,
        curve_unit=unit,
    )
    return replace(
        estimated,
        judged=judged,
        curve_unit=estimated.curve_unit if estimated.curve else unit,
        flags=replace(estimated.flags, this_subject_only=alone),
    )


def _compare(
    estimated: CellResult,
    question: Question,
    sample: Sample,
    scores: Scores,
    scale: Scale,
) -> CellResult:
    """Return the result with the verdict, and with the difference from the reference
    (or from chance).
    """
    plan, game, reference = estimated.plan, estimated.game, question.reference
    assert game is not None
    own = [one.rate() for one in sample.judged() if one.scored]
    rate, rodent = sum(own) / len(own), plan.against == "reference"
    is_sample = animals_interval(reference) is not None
    low, high = question.difference_limits(
        rate, _limits(sample, scores, plan.goal, scale)
    )
    shown_low, shown_high = scale.differences((low, high))
    judged = replace(
        estimated,
        verdict=game.verdict or Verdict.INCONCLUSIVE,
        difference=scale.difference(rate - reference.value),
        difference_low=shown_low,
        difference_high=shown_high,
        superior=rodent
        and game.verdict is Verdict.PASS
        and low > 0
        and is_sample
        and not question.alike,
        open_zones=tuple(map(scale.range_of, question.open_zones())),
        subjects_needed=None
        if estimated.flags.this_subject_only
        or not (game.outlook and game.outlook.decides)
        else game.outlook.subjects,
        flags=replace(
            estimated.flags,
            stopped_by_result=plan.sequential and game.over,
            not_diagnostic=rodent
            and scale.measured is None
            and plan.chance is not None
            and plan.chance >= reference.value - plan.margin - ROUNDING,
            reference_declared=rodent and not is_sample,
            analogy=rodent and reference.kind == "analogy",
        ),
    )
    warnings = (*judged.warnings, *wording.passed_at_random(judged))
    return replace(judged, reason=wording.verdict(judged), warnings=warnings)
