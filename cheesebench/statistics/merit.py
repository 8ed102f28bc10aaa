"""What a verdict is about, on one scale: pass or fail, or a measure from worse to better.

The *merit* of a trial is 1 or 0 for success and failure. For a measure with a range it is the place between the worse
end (0) and the better one (1), so that whatever judges pass rates judges the measure, too. For a measure without a
range it is the measure itself, with the sign that makes more better. Reports give all numbers in the measure's unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cheesebench.experiment.records import CellPlan, Measured, ReferenceValue, TrialRecord, is_measurement
from cheesebench.statistics.means import RATES, Means, Student

if TYPE_CHECKING:
    from cheesebench.interfaces import Value


@dataclass(frozen=True, slots=True)
class Scale:
    """``merit = (value - zero) / unit``; ``unit`` is negative where less is better."""

    measured: Measured | None = None
    """The measure; None for the pass rate."""
    zero: float = 0.0
    unit: float = 1.0
    means: Means = RATES

    @property
    def bounded(self) -> bool:
        """Whether merits lie between 0 and 1."""
        return self.means is RATES

    def merit_of(self, record: TrialRecord) -> float | None:
        """Return the merit of a trial; None without a value. What is beyond the range counts as its end."""
        if self.measured is None:
            return None if record.missing or record.success is None else float(record.success)
        value = self._value_of(record)
        if value is None:
            return None
        merit = (value - self.zero) / self.unit
        return min(1.0, max(0.0, merit)) if self.bounded else merit

    def is_outside(self, record: TrialRecord) -> bool:
        """Return whether a trial's value is beyond the declared range."""
        if self.measured is None or self.measured.range is None or (value := self._value_of(record)) is None:
            return False
        low, high = self.measured.range
        return not low - 1e-9 <= value <= high + 1e-9

    def _value_of(self, record: TrialRecord) -> float | None:
        assert self.measured is not None
        name = self.measured.name
        value: Value = None
        if not record.missing:
            value = record.measures[name] if name in record.measures else record.counters.get(name)
        return float(value) if is_measurement(value) else None

    def value(self, merit: float) -> float:
        """Return the value of the measure with this merit."""
        return self.zero + self.unit * merit

    def difference(self, merit: float) -> float:
        """Return a difference of merits as a difference of the measure."""
        return self.unit * merit

    def range_of(self, limits: tuple[float, float]) -> tuple[float, float]:
        """Return limits of a merit as limits of the measure, the lower one first."""
        return _ordered(self.value(limits[0]), self.value(limits[1]))

    def differences(self, limits: tuple[float, float]) -> tuple[float, float]:
        """Return limits of a difference of merits as limits of a difference of the measure, the lower one first."""
        return _ordered(self.difference(limits[0]), self.difference(limits[1]))

    def merits(self, reference: ReferenceValue) -> ReferenceValue:
        """Return the animals' value, interval and spread as merits."""
        if self.measured is None:
            return reference
        interval = reference.interval
        return replace(
            reference,
            value=(reference.value - self.zero) / self.unit,
            interval=interval and _ordered(*((end - self.zero) / self.unit for end in interval)),
            sd=None if reference.sd is None else reference.sd / abs(self.unit),
            measured=None if self.bounded else replace(self.measured, better="higher"),
        )


#: The scale of a pass rate.
PASS_RATE = Scale()


def scale_of(plan: CellPlan) -> Scale:
    """Return the scale of what the verdict on a cell is about."""
    reference = plan.reference
    if reference is None or reference.measured is None:
        return PASS_RATE
    return measured_scale(reference.measured, reference.sd or 0.0)


def measured_scale(measured: Measured, least_sd: float = 0.0) -> Scale:
    """Return the scale of a measure; ``least_sd`` is the animals' standard deviation, for one without a range."""
    higher = measured.better == "higher"
    if measured.range is None:
        return Scale(measured, 0.0, 1.0 if higher else -1.0, Student(least_sd))
    low, high = measured.range
    return Scale(measured, low if higher else high, high - low if higher else low - high)


def _ordered(one: float, other: float) -> tuple[float, float]:
    return (one, other) if one <= other else (other, one)
