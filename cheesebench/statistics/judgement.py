"""One cell, from its records to its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cheesebench.experiment.records import CellPlan, ReferenceValue, TrialRecord
from cheesebench.statistics import wording
from cheesebench.statistics.comparison import (
    ALPHA,
    TAIL,
    Counts,
    Scenarios,
    has_interval,
    p_inferior,
    subjects_to_settle,
)
from cheesebench.statistics.curve import learning_curve
from cheesebench.statistics.intervals import (
    CONTRADICTING_ICC,
    CONTRADICTING_P,
    clustering,
    degrees_of_freedom,
    quantile,
    shrinkage,
)
from cheesebench.statistics.sample import Sample, draw_sample, lives
from cheesebench.statistics.summary import CellResult, Flags, Unit, Verdict

#: .8 - .1 is a little more than .7 in binary.
ROUNDING = 1e-9


def judge(plan: CellPlan, trials: Iterable[TrialRecord]) -> CellResult:
    """Judge one cell against its reference; trials of other cells are ignored, their order does not matter.

    Raises:
        ValueError: If the plan's estimand is malformed.
    """
    return judge_sample(plan, draw_sample(plan, lives(r for r in trials if r.key == plan.key).values()))


def judge_sample(plan: CellPlan, sample: Sample) -> CellResult:
    """Judge one cell from its sample (``draw_sample`` takes it life by life, in memory for one of them)."""
    described = _describe(plan, sample)
    counts = _scenarios(sample)
    if counts is None:
        return _without_rate(described)
    estimated = _estimate(described, sample, counts)
    if not (plan.comparable and plan.claims):
        text = wording.no_claim(estimated)
        judged = replace(estimated, verdict=Verdict.INCONCLUSIVE, reason=text)
    elif plan.against == "chance":
        judged = _compare_with_chance(estimated, Scenarios(counts, estimated.unit))
    else:
        assert plan.reference is not None
        judged = _compare(estimated, plan.reference, Scenarios(counts, estimated.unit))
    broken = judged.outcomes["infrastructure"]
    if broken:
        # A breakdown is never green, and never a failure of the model, whatever the other trials say.
        return replace(judged, verdict=Verdict.ERROR, reason=wording.breakdown(judged, broken), subjects_needed=None)
    return judged


def _describe(plan: CellPlan, sample: Sample) -> CellResult:
    """Return all that can be said without a pass rate."""
    not_run = sample.absent * sample.absent_trials
    tally = sample.tally
    return CellResult(
        plan=plan,
        verdict=Verdict.ERROR,
        reason="",
        n_text=wording.sample_size(sample),
        subjects=sample.seen,
        planned=sample.entered + not_run,
        valid=sample.entered - sample.missing,
        missing=sample.missing + not_run,
        flags=Flags(goal_visible=plan.goal_visible, duplicate_subjects=sample.copies),
        outcomes=tally.taxonomy(not_run),
        agent_counts=tally.agent_counts(),
        raw_outcomes=tally.raw_outcomes(),
        measures=tally.own_measures(),
        classes=tally.class_shares(),
        splits=tally.split_rates(),
        strategy=tally.strategy_measures(),
    )


def _scenarios(sample: Sample) -> tuple[Counts, ...] | None:
    """Return counts of the valid trials, then with missing ones failed, and passed; None without any."""
    rows = [(sum(life.results), len(life.results), life.missing, life.distinct) for life in sample.lives]
    rows.extend((0, 0, sample.absent_trials, True) for _ in range(sample.absent))
    valid = [row for row in rows if row[1]]
    if not valid:
        return None
    counts = [_counts(valid, 0, 0)]
    if any(missing for _, _, missing, _ in rows):
        rows = [row for row in rows if row[1] + row[2]]
        counts += [_counts(rows, 0, 1), _counts(rows, 1, 1)]
    return tuple(counts)


def _counts(rows: Iterable[tuple[int, int, int, bool]], passing: int, run: int) -> Counts:
    """Return counts of rows (passed, scored, missing, distinct); 1 lets the missing trials be ``run``, and pass."""
    counted = [(passed + passing * missing, scored + run * missing, own) for passed, scored, missing, own in rows]
    passed, trials, distinct = zip(*counted, strict=True)
    # Where every distinct subject fell out (all of its trials are missing), one of its copies stands in for it.
    return Counts(passed, trials, distinct if any(distinct) else (True, *distinct[1:]))


def _without_rate(described: CellResult) -> CellResult:
    if described.valid:
        return replace(described, verdict=Verdict.INCONCLUSIVE, reason=wording.NO_SUCCESS_DECLARED)
    if not described.planned and described.subjects:
        return replace(described, verdict=Verdict.INCONCLUSIVE, reason=wording.nothing_entered(described))
    # A budget is somebody's wish, and no breakdown: nothing is known yet, and nothing is broken.
    spent = described.outcomes.get("budget", 0) and not described.outcomes.get("infrastructure", 0)
    verdict = Verdict.INCONCLUSIVE if spent else Verdict.ERROR
    return replace(described, verdict=verdict, reason=wording.nothing_measured(described))


def _estimate(described: CellResult, sample: Sample, counts: Sequence[Counts]) -> CellResult:
    """Add rate, interval and curve."""
    valid, memory = counts[0], described.plan.memory
    subjects = len(valid.evidence)
    _, icc, p_value = clustering(valid.passed, valid.trials)
    contradicted = memory == "none" and float(icc) >= CONTRADICTING_ICC and float(p_value) < CONTRADICTING_P
    unit: Unit = "trial" if memory == "none" and not contradicted else "subject"
    degrees = degrees_of_freedom(subjects, unit)
    effect, n = 1.0, float(sum(valid.evidence))
    if degrees is not None:
        effect, n = map(float, shrinkage(valid.rate, icc, valid.evidence))
    low, high = Scenarios(tuple(counts), unit).limits(TAIL)
    curve_unit, curve = learning_curve(sample.lives, unit)
    if described.plan.in_words:
        curve = ()  # the items of a dialogue are no sequence of learning: nothing is kept from one to the next
    return replace(
        described,
        valid=sum(valid.trials),
        passed=sum(valid.passed),
        rate=valid.rate,
        interval=(low, high),
        interval_method=wording.interval_method(unit, degrees),
        standard_error=(high - low) / 2 / quantile(TAIL, degrees),
        unit=unit,
        icc=float(icc) if subjects > 1 else None,
        design_effect=effect,
        effective_n=n,
        curve=curve,
        curve_unit=curve_unit,
        flags=replace(
            described.flags,
            this_subject_only=unit == "subject" and subjects == 1,
            memory_contradicted=contradicted,
        ),
    )


def _compare(estimated: CellResult, reference: ReferenceValue, scenarios: Scenarios) -> CellResult:
    """Add the comparison with the reference and the verdict."""
    plan, valid = estimated.plan, scenarios.valid
    low, high = scenarios.difference_limits(reference, ALPHA)
    verdict = Verdict.INCONCLUSIVE
    if low > -plan.margin:
        verdict = Verdict.PASS
    elif high < -plan.margin:
        verdict = Verdict.FAIL
    needed = None
    # More subjects are no use where all of them do exactly the same.
    only_copies = estimated.flags.duplicate_subjects > 0 and len(valid.evidence) == 1
    if verdict is Verdict.INCONCLUSIVE and not only_copies:
        needed = subjects_to_settle(valid, estimated.icc, scenarios.unit, reference, plan.margin)
    judged = replace(
        estimated,
        verdict=verdict,
        difference=valid.rate - reference.value,
        difference_low=low,
        difference_high=high,
        p_inferior=p_inferior(lambda tail: scenarios.difference_limits(reference, tail)[1], plan.margin),
        superior=low > 0,
        subjects_needed=needed,
        flags=replace(
            estimated.flags,
            not_diagnostic=plan.chance is not None and plan.chance >= reference.value - plan.margin - ROUNDING,
            reference_declared=not has_interval(reference),
        ),
    )
    settled = _settled_without_missing(scenarios, reference, plan.margin)
    return replace(judged, reason=wording.verdict(judged, settled))


def _compare_with_chance(estimated: CellResult, scenarios: Scenarios) -> CellResult:
    """Add the comparison with chance: PASS is above it, FAIL is not above it by as much as the margin."""
    plan, valid = estimated.plan, scenarios.valid
    assert plan.chance is not None
    chance = ReferenceValue(value=plan.chance)
    low, high = scenarios.difference_limits(chance, ALPHA)
    verdict, needed = Verdict.INCONCLUSIVE, None
    if low > 0:
        verdict = Verdict.PASS
    elif high < plan.margin:
        verdict = Verdict.FAIL
    else:
        bounds = (0.0, plan.margin)
        needed = subjects_to_settle(valid, estimated.icc, scenarios.unit, chance, plan.margin, bounds)
    judged = replace(
        estimated,
        verdict=verdict,
        difference=valid.rate - chance.value,
        difference_low=low,
        difference_high=high,
        p_inferior=p_inferior(lambda tail: scenarios.difference_limits(chance, tail)[1], -plan.margin),
        subjects_needed=needed,
    )
    return replace(judged, reason=wording.verdict_against_chance(judged))


def _settled_without_missing(scenarios: Scenarios, reference: ReferenceValue, margin: float) -> bool:
    """Tell whether the valid trials by themselves would have given PASS or FAIL."""
    low, high = Scenarios((scenarios.valid,), scenarios.unit).difference_limits(reference, ALPHA)
    return low > -margin or high < -margin
