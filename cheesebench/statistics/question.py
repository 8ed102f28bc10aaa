"""The question of a verdict: is the model's mean above (or below) the animals' mean
minus the margin? And how certain is the animals' mean?

A ``Question`` is about scores from 0 to 1: pass rates, or a measure mapped from its
range (``Scale``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cheesebench import records
from cheesebench.statistics.betting import Games, play
from cheesebench.statistics.intervals import quantile, wilson


@dataclass(frozen=True, slots=True)
class Scale:
    """Converts values to scores: ``score = (value - zero) / unit``. ``unit`` is
    negative if less is better.
    """

    measured: records.Measured | None = None
    """The measure; None for the pass rate."""
    zero: float = 0.0
    unit: float = 1.0

    def score_of(self, record: records.TrialRecord) -> float | None:
        """Return the score of a trial, or None if there is no value. A value beyond the
        range counts as the end of the range.
        """
        if self.measured is None:
            return (
                None
                if record.missing or record.success is None
                else float(record.success)
            )
        value = self.measured.value_in(record)
        return (
            None
            if value is None
            else min(1.0, max(0.0, (value - self.zero) / self.unit))
        )

    def is_outside(self, record: records.TrialRecord) -> bool:
        """Return whether a trial's value is beyond the declared range."""
        if self.measured is None or (value := self.measured.value_in(record)) is None:
            return False
        low, high = self.measured.range
        return not low - 1e-9 <= value <= high + 1e-9

    def value(self, score: float) -> float:
        return self.zero + self.unit * score

    def difference(self, score: float) -> float:
        return self.unit * score

    def range_of(self, limits: tuple[float, float]) -> tuple[float, float]:
        """Convert limits from scores to the measure's unit, the lower one first."""
        return _ordered(self.value(limits[0]), self.value(limits[1]))

    def differences(self, limits: tuple[float, float]) -> tuple[float, float]:
        """Convert limits of a difference from scores to the measure's unit, the lower
        one first.
        """
        return _ordered(self.difference(limits[0]), self.difference(limits[1]))

    def scores(self, reference: records.ReferenceValue) -> records.ReferenceValue:
        """Return the animals' value, interval and spread as scores."""
        if self.measured is None:
            return reference
        interval = reference.interval
        return replace(
            reference,
            value=(reference.value - self.zero) / self.unit,
            interval=interval
            and _ordered(*((end - self.zero) / self.unit for end in interval)),
            sd=None if reference.sd is None else reference.sd / abs(self.unit),
            measured=None,
        )


#: The scale of a pass rate.
PASS_RATE = Scale()


def scale_of(plan: records.CellPlan) -> Scale:
    return PASS_RATE if plan.measured is None else measured_scale(plan.measured)


def measured_scale(measured: records.Measured) -> Scale:
    low, high = measured.range
    return (
        Scale(measured, high, low - high)
        if measured.better == "lower"
        else Scale(measured, low, high - low)
    )


def _ordered(one: float, other: float) -> tuple[float, float]:
    return (one, other) if one <= other else (other, one)


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Claims = list[tuple[Floats, Floats]]

#: Tail probability on each side of the 95 % interval of a reference.
PUBLISHED_TAIL = 0.025
#: Tail probability beyond the limit of the animals' mean that the PASS game uses. A
#: reference that is used as a constant has no such limit.
PASS_TAIL = 0.04
#: The same probability in the FAIL game. In simulations with both values, at most 5 %
#: of verdicts were wrong even though the animals are a sample. This value is smaller,
#: because animals' rates are skewed downwards, so a t interval is wrong more often on
#: this side.
FAIL_TAIL = 0.01


def has_interval(reference: records.ReferenceValue) -> bool:
    """Return whether the reference has an uncertainty of its own. Otherwise it is used
    as a constant.

    The number of animals alone gives no uncertainty, because it says nothing about how
    much they differ.
    """
    return reference.interval is not None or _is_group(reference)


def animals_interval(
    reference: records.ReferenceValue | None,
) -> tuple[float, float] | None:
    """Return the 95 % interval of the animals' mean, or None if there is no reference,
    or if the reference is used as a constant.
    """
    if reference is None or not has_interval(reference):
        return None
    return reference_limits(reference, PUBLISHED_TAIL)


def reference_limits(
    reference: records.ReferenceValue, tail: float
) -> tuple[float, float]:
    """Return the limits of the animals' mean, each with the tail probability ``tail``.

    A published 95 % interval is rescaled from the normal quantile of 2.5 % to the
    normal quantile of ``tail``. With the standard deviation between ``n_animals``
    animals, the limits are t limits of the group's mean, with n - 1 degrees of freedom.
    If the standard deviation is 0, Wilson's interval over the animals is used. If the
    reference is used as a constant (``has_interval``), both limits equal the value.
    """
    value = reference.value
    low, high = (0.0, 1.0) if reference.measured is None else reference.measured.range
    if reference.interval is not None:
        scale = quantile(tail, None) / quantile(PUBLISHED_TAIL, None)
        given = reference.interval
        return (
            max(low, value - scale * (value - given[0])),
            min(high, value + scale * (given[1] - value)),
        )
    if not _is_group(reference):
        return value, value
    assert reference.sd is not None
    assert reference.n_animals is not None
    if reference.sd == 0:
        ends = wilson(
            (value - low) / (high - low), reference.n_animals, quantile(tail, None)
        )
        lower, upper = (low + float(end) * (high - low) for end in ends)
        return lower, upper
    half = (
        quantile(tail, reference.n_animals - 1)
        * reference.sd
        / reference.n_animals**0.5
    )
    return max(low, value - half), min(high, value + half)


def thresholds(reference: records.ReferenceValue, margin: float) -> tuple[float, float]:
    """Return two values in the reference's unit: enough subjects with a mean beyond the
    first give a PASS, and beyond the second a FAIL.

    Both are the animals' value less the margin, or plus the margin if less is better.
    For ``better: alike``, they are the two values at the upper end. If the animals are
    a sample, the uncertainty of their mean moves the two values apart, and between them
    no number of subjects decides.
    """
    measured, value = reference.measured, reference.value
    is_higher = measured is None or measured.better == "higher"
    bar = value - margin if is_higher else value + margin
    passes = reference_limits(reference, PASS_TAIL)[is_higher] - value
    fails = reference_limits(reference, FAIL_TAIL)[not is_higher] - value
    return bar + passes, bar + fails


def _is_group(reference: records.ReferenceValue) -> bool:
    return (
        reference.sd is not None
        and reference.n_animals is not None
        and reference.n_animals > 1
    )


#: ``Question.fewest`` tries up to this many subjects.
MOST_TRIED = 120


@dataclass(frozen=True, slots=True)
class Question:
    """PASS if model - reference is above ``passes``, FAIL if it is below ``fails``.

    With ``alike``, PASS also needs the difference to be below ``-passes`` (two
    one-sided tests), and a difference above ``-fails`` is a FAIL, too.
    """

    reference: records.ReferenceValue
    passes: float
    fails: float
    alike: bool = False

    def play(
        self,
        low: ArrayLike,
        high: ArrayLike,
        *,
        goal: float,
        most: int | None = None,
        numbers: ArrayLike | None = None,
        subjects: int | None = None,
        distinct: ArrayLike = 1.0,
    ) -> Games:
        """Play both games for subjects with these scores. ``low`` counts missing trials
        as failed, ``high`` as passed; both have the shape ``[..., subjects]``. The
        other arguments are as in ``betting.play``.
        """
        return play(
            *self.claims(low, high),
            goal=goal,
            most=most,
            numbers=numbers,
            subjects=subjects,
            distinct=distinct,
        )

    def claims(self, low: ArrayLike, high: ArrayLike) -> tuple[Claims, Claims]:
        """Return scores and bars of the claims for PASS, which must all hold, and of
        the claims for FAIL, of which one suffices.
        """
        import numpy as np

        worst, best = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        winning = [(worst, self._bar(worst, self.passes, PASS_TAIL, 1))]
        losing = [(1 - best, 1 - self._bar(best, self.fails, FAIL_TAIL, -1))]
        if self.alike:
            winning.append((1 - best, 1 - self._bar(best, -self.passes, PASS_TAIL, -1)))
            losing.append((worst, self._bar(worst, -self.fails, FAIL_TAIL, 1)))
        return winning, losing

    def fewest(self, goal: float) -> int | None:
        """Return the smallest number of subjects that can PASS: with the best score in
        every trial. Return None if more than ``MOST_TRIED`` are needed, and with
        ``alike``, where the best result is not known.
        """
        import numpy as np

        perfect = np.ones(MOST_TRIED)
        found = self.play(perfect, perfect, goal=goal)
        return int(found.decided) if found.passed and not self.alike else None

    @staticmethod
    def too_few(plans: Iterable[records.CellPlan]) -> str:
        """Return a sentence on the cells that are planned with so few subjects that no
        result of theirs is a PASS, or "".
        """
        found: dict[int, dict[str, int]] = {}
        for plan in plans:
            question = question_of(plan)
            least = question and question.fewest(plan.goal)
            if least and least > plan.subjects:
                found.setdefault(plan.subjects, {})[plan.label] = least
        return " ".join(
            f"No result of {subjects} subject{'s' * (subjects != 1)} can PASS on {_needs(own)}."
            for subjects, own in found.items()
        )

    def open_zones(self) -> tuple[tuple[float, float], ...]:
        """Return the ranges of the mean in which no number of subjects gives a verdict,
        because the animals are only a sample. The tuple is empty if the reference is a
        constant.
        """
        value = self.reference.value
        if not has_interval(self.reference):
            return ()
        passes, fails = (
            tuple(end - value for end in reference_limits(self.reference, tail))
            for tail in (PASS_TAIL, FAIL_TAIL)
        )
        zones = [(value + self.fails + fails[0], value + self.passes + passes[1])]
        if self.alike:
            zones.append(
                (value - self.passes + passes[0], value - self.fails + fails[1])
            )
        return tuple((max(0.0, low), min(1.0, high)) for low, high in zones)

    def _bar(self, scores: Floats, limit: float, tail: float, sign: int) -> Floats:
        """Return the bar of a game: one number or, if the animals are a sample, one per
        subject.

        Newcombe's hybrid interval (1998, Stat Med 17:873, method 10) adds the squares
        of the distances from both means to their limits. Solved for the model's limit,
        this gives the value that the model must exceed at its present mean.
        """
        import numpy as np

        value = self.reference.value
        if not has_interval(self.reference):
            return np.asarray(value + limit)
        means = np.cumsum(scores, axis=-1) / np.arange(1, scores.shape[-1] + 1)
        ahead = sign * (means - value - limit)
        animals = abs(reference_limits(self.reference, tail)[sign > 0] - value)
        return np.asarray(
            means - sign * np.sqrt(np.maximum(0, ahead**2 - animals**2)) * (ahead > 0)
        )

    def difference_limits(
        self, rate: float, limits: tuple[float, float]
    ) -> tuple[float, float]:
        """Return the limits of model - reference, given the model's limits."""
        value = self.reference.value
        above, below = (
            reference_limits(self.reference, PASS_TAIL)[1],
            reference_limits(self.reference, FAIL_TAIL)[0],
        )
        down, up = max(0.0, rate - limits[0]), max(0.0, limits[1] - rate)
        return (
            rate - value - (down**2 + max(0.0, above - value) ** 2) ** 0.5,
            rate - value + (up**2 + max(0.0, value - below) ** 2) ** 0.5,
        )


def question_of(plan: records.CellPlan) -> Question | None:
    """Return the question that the cell's verdict answers. Return None if the cell
    makes no claim, or has neither a reference nor a chance level to be compared with.
    """
    if not (plan.comparable and plan.claims):
        return None
    if plan.against == "chance":
        assert plan.chance is not None
        return Question(records.ReferenceValue(value=plan.chance), 0.0, plan.margin)
    assert plan.reference is not None
    scale = scale_of(plan)
    margin = plan.margin / abs(scale.unit)
    alike = plan.measured is not None and plan.measured.better == "alike"
    return Question(scale.scores(plan.reference), -margin, -margin, alike)


def _needs(least: Mapping[str, int]) -> str:
    return ", ".join(f"{name} (at least {number})" for name, number in least.items())
