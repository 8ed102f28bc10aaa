"""A control compared with its plain cell: rows and sentences shared by all report formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cheesebench.reports.cells import NOTHING
from cheesebench.statistics.wording import percent, points

if TYPE_CHECKING:
    from cheesebench.statistics import ControlResult, CurvePoint, Gain

HEADINGS = ("plain", "95 %", "control", "95 %", "plain − control", "95 %", "pairs")
HOW_TO_READ = (
    "Subjects of a control have the same seeds and draws as those of the plain cell and are paired with them. "
    "Learning that depends on what a control removes must vanish: the control's curve then stays flat where the "
    "plain one rises. A control makes no claim about the rodent and enters no verdict."
)


def title(result: ControlResult) -> str:
    """Return a title that names the control and its cell (not yet escaped)."""
    plan = result.control.plan
    return f"{plan.control}: {plan.model} on {plan.protocol} in {plan.view}"


def headers(result: ControlResult) -> tuple[str, ...]:
    """Return the column headings of ``rows``."""
    unit = "session" if result.curve_unit == "session" else f"groups of {result.curve_unit}"
    return (unit, *HEADINGS)


def rows(result: ControlResult) -> list[tuple[str, ...]]:
    """Return a row for each point of the curves: both rates with the intervals of their cells, and the difference."""
    plain = {point.session: point for point in result.plain.curve}
    control = {point.session: point for point in result.control.curve}
    return [
        (
            str(point.session),
            percent(point.plain),
            _interval_of(plain.get(point.session)),
            percent(point.control),
            _interval_of(control.get(point.session)),
            points(point.difference),
            _between(point.interval),
            str(point.pairs),
        )
        for point in result.points
    ]


def sentences(result: ControlResult) -> Iterator[str]:
    """Yield sentences that compare the two curves."""
    if result.gain_plain is not None and result.gain_control is not None and result.gain_difference is not None:
        yield (
            f"From first to last: plain {_gain(result.gain_plain)}, control {_gain(result.gain_control)}; "
            f"difference {_gain(result.gain_difference)}."
        )
    yield result.comparison.reason
    if result.lesion:
        yield result.lesion


def _gain(gain: Gain) -> str:
    return f"{points(gain.mean)} points ({_between(gain.interval)})"


def _interval_of(point: CurvePoint | None) -> str:
    return NOTHING if point is None else f"{percent(point.low)} to {percent(point.high)}"


def _between(interval: tuple[float, float] | None) -> str:
    return NOTHING if interval is None else f"{points(interval[0])} to {points(interval[1])}"
