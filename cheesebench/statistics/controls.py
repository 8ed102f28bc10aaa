"""Controls compared with their plain cells: curves paired by subject, and the gain from first to last session."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cheesebench.experiment.records import CellPlan
from cheesebench.statistics.counts import count_subjects
from cheesebench.statistics.curve import Numbered, points_of
from cheesebench.statistics.lesions import lesion_sentence
from cheesebench.statistics.merit import scale_of
from cheesebench.statistics.paired import compare_differences, paired_differences, t_interval
from cheesebench.statistics.sample import Sample
from cheesebench.statistics.summary import CellResult, ControlResult, Gain, PairedComparison, PairedPoint
from cheesebench.statistics.wording import plural, points, signed

#: Seed of the sign flips, where there are too many to try all: the same run gives the same report.
SEED = 0


def compare_with_control(plain: CellResult, plain_sample: Sample, control: CellResult, sample: Sample) -> ControlResult:
    """Pair a control with its plain cell: subjects of the same number have the same seeds and draws.

    Subjects that are missing (or have no scored trial) on either side are left out.
    """
    first = {one.subject: one for one in plain_sample.per_subject}
    second = {one.subject: one for one in sample.per_subject}
    subjects = sorted(first.keys() & second.keys())
    unit, numbered = points_of([*(first[s] for s in subjects), *(second[s] for s in subjects)])
    curves = [*map(_curve, numbered[: len(subjects)])], [*map(_curve, numbered[len(subjects) :])]
    found = tuple(_points(*curves))
    ends = (found[0].session, found[-1].session) if len(found) > 1 else None
    gains = [_gains(curve, ends) for curve in curves]
    differences = [a - b for a, b in zip(*gains, strict=True) if a is not None and b is not None]
    # What a lesion abolishes is success; only without it is a control about the judged measure.
    of_measure = plain.plan.measured is not None and not any(one.results for one in plain_sample.per_subject)
    comparison = _compare(plain.plan, plain_sample, sample, of_measure)
    return ControlResult(
        control=control,
        plain=plain,
        curve_unit=unit,
        points=found,
        gain_plain=_gain([gain for gain in gains[0] if gain is not None]),
        gain_control=_gain([gain for gain in gains[1] if gain is not None]),
        gain_difference=_gain(differences),
        comparison=comparison,
        lesion=lesion_sentence(control, comparison),
    )


def _curve(one: Numbered) -> Mapping[int, float]:
    """Return the pass rate of one subject at each of its points."""
    passes: dict[int, list[int]] = {}
    for number, success in zip(*one, strict=True):
        passes.setdefault(number, []).append(success)
    return {number: statistics.fmean(own) for number, own in passes.items()}


def _points(plain: Sequence[Mapping[int, float]], control: Sequence[Mapping[int, float]]) -> list[PairedPoint]:
    points = []
    for number in sorted({number for curve in plain for number in curve}):
        pairs = [(a[number], b[number]) for a, b in zip(plain, control, strict=True) if number in a and number in b]
        if pairs:
            differences = [a - b for a, b in pairs]
            points.append(
                PairedPoint(
                    session=number,
                    plain=statistics.fmean(a for a, _ in pairs),
                    control=statistics.fmean(b for _, b in pairs),
                    difference=statistics.fmean(differences),
                    interval=t_interval(differences),
                    pairs=len(pairs),
                )
            )
    return points


def _gains(curves: Sequence[Mapping[int, float]], ends: tuple[int, int] | None) -> list[float | None]:
    if ends is None:
        return [None] * len(curves)
    first, last = ends
    return [curve[last] - curve[first] if first in curve and last in curve else None for curve in curves]


def _gain(gains: Sequence[float]) -> Gain | None:
    return Gain(statistics.fmean(gains), t_interval(gains)) if gains else None


def _compare(plan: CellPlan, plain: Sample, control: Sample, of_measure: bool) -> PairedComparison:
    """Return what any two runs of the same seeds are compared by, in the words of a control."""
    sides = (count_subjects(sample.per_subject, of_measure=of_measure) for sample in (plain, control))
    differences = paired_differences(*sides)
    scale = scale_of(plan)
    if of_measure and not scale.bounded:
        differences = differences[:1]  # what is missing could have been anything
    compared = compare_differences(differences, seed=SEED)
    difference = compared.difference
    if difference is None or compared.p_value is None:
        return replace(compared, reason="No subject was measured both with and without the control.")
    verb = "may be chance" if compared.answer == "indistinguishable" else "is more than chance explains"
    if of_measure and plan.measured is not None:
        difference = scale.difference(difference)
        interval = compared.interval and scale.differences(compared.interval)
        what, size = f"the mean of {plan.measured.name}", signed(difference)
        compared = replace(compared, difference=difference, interval=interval)
    else:
        what, size = "over the trials of the pass rate", f"{points(difference)} points"
    gap = f"{size} over {plural(compared.pairs, 'paired subject')}"
    reason = f"Plain less control, {what}: {gap}, which {verb} (p = {compared.p_value:.2g})."
    return replace(compared, reason=reason)
