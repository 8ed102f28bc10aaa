"""One cell, from its records to its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from statistics import stdev

from cheesebench.experiment.records import CellPlan, ReferenceValue, TrialRecord
from cheesebench.statistics import wording
from cheesebench.statistics.comparison import (
    TAIL,
    Question,
    Scenarios,
    p_inferior,
    scenarios,
    subjects_to_settle,
)
from cheesebench.statistics.curve import learning_curve
from cheesebench.statistics.intervals import CONTRADICTING_ICC, CONTRADICTING_P, clustering, quantile, shrinkage
from cheesebench.statistics.lesions import contradiction, lesion_sentence
from cheesebench.statistics.merit import Scale, scale_of
from cheesebench.statistics.reference_limits import has_interval
from cheesebench.statistics.sample import Sample, draw_sample, trials_by_subject
from cheesebench.statistics.sequential import Decision, Standing, decide, next_look, what_it_still_needs
from cheesebench.statistics.spending import ALPHA
from cheesebench.statistics.summary import CellResult, Flags, JudgedMean, Look, Verdict

#: .8 - .1 is a little more than .7 in binary.
ROUNDING = 1e-9


def judge(plan: CellPlan, trials: Iterable[TrialRecord]) -> CellResult:
    """Judge one cell against its reference; trials of other cells are ignored, their order does not matter.

    Raises:
        ValueError: If the plan's estimand is malformed.
    """
    return judge_sample(plan, draw_sample(plan, trials_by_subject(r for r in trials if r.key == plan.key).values()))


def judge_sample(plan: CellPlan, sample: Sample) -> CellResult:
    """Judge one cell from its sample (``draw_sample`` takes it life by life, in memory for one of them).

    A cell with ``looks`` is judged at the first of them that decides; later subjects do not count.
    """
    question = question_of(plan)
    if plan.looks:
        sample, look = _stop(plan, sample, question)
    else:
        look = None
    described = replace(_describe(plan, sample), look=look)
    scale = scale_of(plan)
    rates, found = scenarios(sample.subjects()), scenarios(sample.judged(), scale.means)
    estimated = described if rates is None else _estimate(described, sample, rates)
    if found is None:
        return _without_value(estimated)
    if scale.measured is not None:
        estimated = _measure(estimated, sample, scale, found)
    if question is None:
        text = " ".join(filter(None, (lesion_sentence(estimated), wording.no_claim(estimated))))
        contradicted = tuple(filter(None, [contradiction(estimated)]))
        judged = replace(estimated, verdict=Verdict.INCONCLUSIVE, reason=text, contradicted=contradicted)
    else:
        judged = _compare(estimated, question, found, scale)
    broken = judged.outcomes["infrastructure"]
    if broken:
        # A breakdown is never green, and never a failure of the model, whatever the other trials say.
        reason = wording.breakdown(judged, broken)
        return replace(judged, verdict=Verdict.ERROR, reason=reason, subjects_needed=None, p_inferior=None)
    return judged


def question_of(plan: CellPlan) -> Question | None:
    """Return the hypothesis that a verdict on this cell tests; None if no claim is made."""
    if not (plan.comparable and plan.claims):
        return None
    if plan.against == "chance":
        assert plan.chance is not None
        return Question(ReferenceValue(value=plan.chance), 0.0, plan.margin)
    assert plan.reference is not None
    scale = scale_of(plan)
    margin = plan.margin / abs(scale.unit)
    return Question(scale.merits(plan.reference), -margin, -margin, scale.means)


def _stop(plan: CellPlan, sample: Sample, question: Question | None) -> tuple[Sample, Look]:
    """Return the subjects of the look that decides, or else of the last one that is complete, and what it says."""
    found_tails = scale_of(plan).means.tails(plan.looks)
    reached, looks = plan.looks[0], plan.looks
    decision: Decision | None = None
    spent = False
    for look in looks:
        seen = sample.up_to(look)
        if len(seen.per_subject) < look:
            break
        found = None if question is None else decide(question, seen.judged(), look, looks)
        outcomes = seen.tally.taxonomy(0)
        if seen.missing and not (found and found.final) and not outcomes["infrastructure"] and look > looks[0]:
            spent = outcomes["budget"] > 0
            break  # a look that is not complete says nothing: the one before holds
        reached, decision = look, found
        if decision is not None and decision.final:
            break
    seen = sample.up_to(reached)
    waiting = question is not None and (decision is None or not decision.final)
    complete = len(seen.per_subject) == reached and not seen.missing
    return seen, Look(
        subjects=reached,
        most=looks[-1],
        tail=found_tails[looks.index(reached)],
        standing=Standing.GO_ON if decision is None else decision.standing,
        following=(next_look(looks, reached) if complete else reached) if waiting else None,
        beyond=sample.seen - len(seen.per_subject),
        spent=spent,
        needed=what_it_still_needs(question, seen.judged(), reached, looks) if question and waiting else None,
    )


def _describe(plan: CellPlan, sample: Sample) -> CellResult:
    """Return all that can be said without a pass rate, or the mean of a measure."""
    not_run, tally = sample.not_run, sample.tally
    described = CellResult(
        plan=plan,
        verdict=Verdict.ERROR,
        reason="",
        n_text=wording.sample_size(sample),
        subjects=sample.seen,
        planned=sample.entered + not_run,
        valid=sample.entered - sample.missing - sample.settled,
        missing=sample.missing + not_run,
        settled=sample.settled,
        flags=Flags(
            goal_visible=plan.goal_visible,
            duplicate_subjects=sample.copies,
            truncated=sample.settled > 0,
        ),
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
    return replace(described, warnings=(*wording.warnings(described), *wording.beyond_range(plan, outside)))


def _without_value(described: CellResult) -> CellResult:
    """Give the reason why there is neither a pass rate nor a mean that could be judged."""
    if described.valid:
        return replace(described, verdict=Verdict.INCONCLUSIVE, reason=wording.no_value(described.plan))
    if not described.planned and described.subjects:
        return replace(described, verdict=Verdict.INCONCLUSIVE, reason=wording.nothing_entered(described))
    # A spent budget is the user's choice, not an error: the result is only open.
    spent = described.outcomes.get("budget", 0) and not described.outcomes.get("infrastructure", 0)
    verdict = Verdict.INCONCLUSIVE if spent else Verdict.ERROR
    return replace(described, verdict=verdict, reason=wording.nothing_measured(described))


def _estimate(described: CellResult, sample: Sample, found: Scenarios) -> CellResult:
    """Add rate, interval and curve."""
    valid, plan = found.valid, described.plan
    _, icc, p_value = clustering(valid.passed, valid.trials)
    contradicted = plan.memory == "none" and float(icc) >= CONTRADICTING_ICC and float(p_value) < CONTRADICTING_P
    evidence = [trials for trials, own in zip(valid.trials, valid.distinct, strict=True) if own]
    effect, n = map(float, shrinkage(icc, evidence))
    tail = TAIL if described.look is None else min(TAIL, described.look.tail)
    low, high = found.limits(tail)
    curve_unit, curve = learning_curve(sample.per_subject)
    if plan.in_words:
        curve = ()  # the items of a dialogue are no sequence of learning: nothing is kept from one to the next
    return replace(
        described,
        valid=sum(valid.trials),
        passed=round(sum(valid.passed)),
        rate=valid.rate,
        interval=(low, high),
        interval_method=wording.interval_method(valid.subjects),
        standard_error=(high - low) / 2 / quantile(tail, None),
        icc=float(icc) if len(valid.passed) > 1 else None,
        design_effect=effect,
        effective_n=n,
        curve=curve,
        curve_unit=curve_unit,
        flags=replace(
            described.flags,
            this_subject_only=valid.subjects == 1,
            memory_contradicted=contradicted,
        ),
    )


def _measure(estimated: CellResult, sample: Sample, scale: Scale, found: Scenarios) -> CellResult:
    """Add the mean of the measure that the verdict is about, in its own unit."""
    assert scale.measured is not None
    valid = found.valid
    tail = TAIL if estimated.look is None else min(TAIL, estimated.look.tail)
    alone = valid.subjects == 1
    limits = None if alone or found.unknown else scale.range_of(found.limits(tail))
    judged = JudgedMean(
        measure=scale.measured.name,
        better=scale.measured.better,
        mean=scale.value(valid.rate),
        interval=limits,
        sd=stdev(map(scale.value, valid.own)) if len(valid.own) > 1 else None,
        subjects=len(valid.own),
        without=sum(not one.merits and not one.missing + one.settled for one in sample.per_subject),
    )
    spread = wording.beyond_animals(estimated.plan, judged)
    estimated = replace(estimated, warnings=(*estimated.warnings, *spread))
    return replace(estimated, judged=judged, flags=replace(estimated.flags, this_subject_only=alone))


def _compare(estimated: CellResult, question: Question, found: Scenarios, scale: Scale) -> CellResult:
    """Add the comparison with the reference (or with chance) and the verdict."""
    plan, valid, reference, look = estimated.plan, found.valid, question.reference, estimated.look
    tail = ALPHA if look is None else look.tail
    low, high = found.difference_limits(reference, tail)
    alone, rodent = valid.subjects == 1, plan.against == "reference"
    # One subject says nothing of others, whatever it does.
    verdict = Verdict.INCONCLUSIVE if alone else question.verdict((low, high))
    needed = None
    # More subjects are no use where all of them do exactly the same.
    only_copies = estimated.flags.duplicate_subjects > 0 and alone
    if verdict is Verdict.INCONCLUSIVE and look is None and not only_copies:
        needed = subjects_to_settle(valid, question)
    shown_low, shown_high = (None, None) if found.unknown else scale.differences((low, high))
    judged = replace(
        estimated,
        verdict=verdict,
        difference=scale.difference(valid.rate - reference.value),
        difference_low=shown_low,
        difference_high=shown_high,
        p_inferior=1.0 if alone else _p_value(plan, found, question, look),
        superior=rodent and low > 0 and not alone and has_interval(reference),
        subjects_needed=needed,
        flags=replace(
            estimated.flags,
            not_diagnostic=rodent
            and scale.measured is None
            and plan.chance is not None
            and plan.chance >= reference.value - plan.margin - ROUNDING,
            reference_declared=rodent and not has_interval(reference),
            analogy=rodent and reference.kind == "analogy",
        ),
    )
    if not rodent:
        return replace(judged, reason=wording.verdict_against_chance(judged))
    by_itself = question.verdict(Scenarios((valid,), found.means).difference_limits(reference, tail))
    return replace(judged, reason=wording.verdict(judged, by_itself is not Verdict.INCONCLUSIVE and not alone))


def _p_value(plan: CellPlan, found: Scenarios, question: Question, look: Look | None) -> float:
    p_value = p_inferior(found, question)
    if look is None or p_value >= look.tail * 10:
        return p_value
    # The error of the whole rule, if its tails were so large (or small) that this look just fails.
    means = question.means
    scaled = tuple(min(0.5, p_value / look.tail * tail) for tail in means.tails(plan.looks))
    return min(1.0, means.wrong(plan.looks, scaled))
