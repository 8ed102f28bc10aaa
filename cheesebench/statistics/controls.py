"""Compares controls with their plain cells, paired by subject: the trials of the
verdict, the learning curves, and the gain from the first point of the curve to the
last. Says what a lesioned control shows about the construct.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cheesebench.amounts import number, percent, points, signed
from cheesebench.records import CellPlan, LesionClaim
from cheesebench.statistics.comparison import (
    ALPHA,
    compare_differences,
    paired_differences,
)
from cheesebench.statistics.intervals import t_interval
from cheesebench.statistics.question import Scale, scale_of
from cheesebench.statistics.sample import (
    Numbered,
    Sample,
    points_of,
    scores_by_point,
)
from cheesebench.statistics.summary import (
    CellResult,
    ControlResult,
    Gain,
    PairedComparison,
    PairedPoint,
)
from cheesebench.statistics.wording import is_alike, plural

#: Seed of sampled sign flips. It is fixed, so that the same run gives the same report.
SEED = 0


def compare_with_control(
    plain: CellResult, plain_sample: Sample, control: CellResult, sample: Sample
) -> ControlResult:
    """Pair a control with its plain cell. Subjects of the same number have the same
    seeds and draws.

    Subjects that are missing (or have no scored trial) on either side are left out.
    """
    first = {one.subject: one for one in plain_sample.per_subject}
    second = {one.subject: one for one in sample.per_subject}
    subjects = sorted(first.keys() & second.keys())
    scale = scale_of(plain.plan)
    unit, numbered = points_of(
        [
            own[subject].numbered(of_measure=scale.measured is not None)
            for own in (first, second)
            for subject in subjects
        ],
        plain_sample.left_out(plain.plan.idle),
    )
    curves = (
        [*map(_curve, numbered[: len(subjects)])],
        [*map(_curve, numbered[len(subjects) :])],
    )
    found = tuple(_points(*curves))
    gains = [_gains(curve, found) for curve in curves]
    differences = [
        a - b for a, b in zip(*gains, strict=True) if a is not None and b is not None
    ]
    comparison = _compare(plain.plan, plain_sample, sample)
    return ControlResult(
        control=control,
        plain=plain,
        curve_unit=unit,
        points=tuple(_in_unit(point, scale) for point in found),
        gain_plain=_gain([gain for gain in gains[0] if gain is not None], scale),
        gain_control=_gain([gain for gain in gains[1] if gain is not None], scale),
        gain_difference=_gain(differences, scale, most=2.0),
        comparison=comparison,
        lesion=lesion_sentence(control, comparison, plain),
    )


def _curve(one: Numbered) -> Mapping[int, float]:
    return {at: statistics.fmean(own) for at, own in scores_by_point(one).items()}


def _points(
    plain: Sequence[Mapping[int, float]], control: Sequence[Mapping[int, float]]
) -> list[PairedPoint]:
    pairs = dict[int, list[tuple[float, float]]]()
    for a, b in zip(plain, control, strict=True):
        for at in a.keys() & b.keys():
            pairs.setdefault(at, []).append((a[at], b[at]))
    return [_point(at, found) for at, found in sorted(pairs.items())]


def _point(session: int, pairs: Sequence[tuple[float, float]]) -> PairedPoint:
    plain, control = zip(*pairs, strict=True)
    differences = [a - b for a, b in pairs]
    return PairedPoint(
        session=session,
        plain=statistics.fmean(plain),
        control=statistics.fmean(control),
        difference=statistics.fmean(differences),
        interval=t_interval(differences),
        pairs=len(pairs),
    )


def _gains(
    curves: Sequence[Mapping[int, float]], points: Sequence[PairedPoint]
) -> list[float | None]:
    if len(points) < 2:
        return [None] * len(curves)
    first, last = points[0].session, points[-1].session
    return [
        curve[last] - curve[first] if first in curve and last in curve else None
        for curve in curves
    ]


def _in_unit(point: PairedPoint, scale: Scale) -> PairedPoint:
    """Return a point whose means are scores, in the unit of the scale."""
    return replace(
        point,
        plain=scale.value(point.plain),
        control=scale.value(point.control),
        difference=scale.difference(point.difference),
        interval=point.interval and scale.differences(point.interval),
    )


def _gain(gains: Sequence[float], scale: Scale, most: float = 1.0) -> Gain | None:
    if not gains:
        return None
    interval = t_interval(gains, most)
    mean = scale.difference(statistics.fmean(gains))
    return Gain(mean, interval and scale.differences(interval))


def _compare(plan: CellPlan, plain: Sample, control: Sample) -> PairedComparison:
    """Compare a plain cell with its control, like two runs with the same seeds, in
    words that suit a control.
    """
    differences = paired_differences(plain.by_number(), control.by_number())
    scale = scale_of(plan)
    compared = compare_differences(differences, seed=SEED)
    difference, p_value = compared.difference, compared.p_value
    if difference is None or p_value is None:
        return replace(
            compared,
            reason="No subject was measured both with and without the control.",
        )
    verb = "is more than chance explains"
    if compared.answer == "undecided":
        verb = "may be chance" if p_value >= ALPHA else "missing trials could explain"
    if plan.measured is not None:
        difference = scale.difference(difference)
        interval = compared.interval and scale.differences(compared.interval)
        what, size = f"the mean of {plan.measured.name}", signed(difference)
        compared = replace(compared, difference=difference, interval=interval)
    else:
        what, size = "over the trials of the pass rate", f"{points(difference)} points"
    gap = f"{size} over {plural(compared.pairs, 'paired subject')}"
    reason = f"Plain less control, {what}: {gap}, which {verb} (p = {number(p_value)})."
    return replace(compared, reason=reason)


# -- lesions and the construct: if a lesion does not lower the score, the score was not
# reached through the construct


def contradiction(cell: CellResult) -> str:
    """Return how a control cell contradicts the protocol's construct, or "" if it does
    not.

    A cell contradicts the construct if its whole interval (two-sided 95 %) lies above
    the construct's limit for the pass rate, or if its judged measure would still pass.
    """
    return " ".join(said for left, said in _remains(cell) if left is True)


def _remains(
    cell: CellResult, plain: CellResult | None = None
) -> Iterator[tuple[bool | None, str]]:
    """Yield whether a lesion leaves more than the construct allows (None if undecided),
    with a sentence.

    Both the pass rate (``at_most``) and a judged measure are tested: a subject without
    the construct must not PASS. If even the ``plain`` cell has no more than the lesion
    may leave, a low result of the control is no evidence, and the sentence says so.
    """
    claim, construct = cell.plan.lesion, cell.plan.construct
    if claim is None or claim.at_most is None or construct is None:
        return
    if cell.rate is not None and cell.interval is not None:
        yield _rate_remains(cell, claim, construct.name, plain)
    if (
        cell.judged is not None
        and cell.judged.interval is not None
        and cell.plan.reference is not None
    ):
        yield _measure_remains(cell, claim, construct.name, plain)


def _rate_remains(
    cell: CellResult, claim: LesionClaim, what: str, plain: CellResult | None
) -> tuple[bool | None, str]:
    assert cell.rate is not None
    assert cell.interval is not None
    assert claim.at_most is not None
    low, high = cell.interval
    most = percent(claim.at_most)
    said = f"{percent(cell.rate)} of trials succeed {claim.words}"
    if low > claim.at_most:
        return True, f"{said}, but at most {most} should: this is not {what}."
    if high > claim.at_most:
        return (
            None,
            f"{said}, and at most {most} should: whether this is {what} is undecided.",
        )
    rate = None if plain is None else plain.rate
    if rate is not None and rate <= claim.at_most:
        return (
            False,
            f"The rate is at most {most} {claim.words}, but so is the plain rate ({percent(rate)}): "
            f"this is no evidence of {what}.",
        )
    return (
        False,
        f"The rate is at most {most} {claim.words}, as it must be if this is {what}.",
    )


def _measure_remains(
    cell: CellResult, claim: LesionClaim, what: str, plain: CellResult | None
) -> tuple[bool | None, str]:
    assert cell.judged is not None
    assert cell.judged.interval is not None
    passes, fails = _would(cell, *cell.judged.interval)
    said = f"{claim.words[:1].upper()}{claim.words[1:]}, the mean of {cell.judged.measure} is {number(cell.judged.mean)}"
    if passes:
        return True, f"{said}, which would still pass: this is not {what}."
    if not fails:
        return (
            None,
            f"{said}: whether this would pass, and so whether it is {what}, is undecided.",
        )
    judged = None if plain is None else plain.judged
    if judged is not None and _would(cell, judged.mean, judged.mean)[1]:
        return (
            False,
            f"{said}, which would not pass, but nor would the plain mean ({number(judged.mean)}): "
            f"this is no evidence of {what}.",
        )
    return (
        False,
        f"{said}, which would not pass, as must be the case if this is {what}.",
    )


def _would(cell: CellResult, low: float, high: float) -> tuple[bool, bool]:
    """Return whether a measure between these limits would pass, and whether it would
    not.
    """
    plan = cell.plan
    assert plan.reference is not None
    assert cell.judged is not None
    ends = [end - plan.reference.value for end in (low, high)]
    if cell.judged.better == "lower":
        ends = [-ends[1], -ends[0]]
    passes, fails = ends[0] > -plan.margin, ends[1] <= -plan.margin
    if is_alike(plan):
        return (
            passes and ends[1] < plan.margin,
            fails or ends[0] >= plan.margin,
        )
    return passes, fails


def lesion_sentence(
    cell: CellResult,
    comparison: PairedComparison | None = None,
    plain: CellResult | None = None,
) -> str:
    """Return what a lesioned control says about the construct, in one or two sentences.
    The text is empty without a lesion, a construct or a result. It is also empty if the
    lesion should not matter and the comparison shows no effect.

    ``comparison`` compares the ``plain`` cell (first) with the control.
    """
    plan, claim = cell.plan, cell.plan.lesion
    if (
        claim is None
        or plan.construct is None
        or (cell.rate is None and cell.judged is None)
    ):
        return ""
    if claim.spared:
        changed = comparison is not None and comparison.answer in (
            ("better", "worse") if is_alike(plan) else ("better",)
        )
        what = (
            "rate falls"
            if plan.measured is None
            else f"mean of {plan.measured.name} changes"
        )
        return (
            f"The {what} {claim.words}, which must not matter for {plan.construct.name}."
            if changed
            else ""
        )
    if claim.at_most is None:
        return f"The construct, {plan.construct.name}, makes no claim about subjects {claim.words}."
    return contradiction(cell) or " ".join(said for _, said in _remains(cell, plain))
