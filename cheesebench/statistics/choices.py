"""Signal detection for two-choice trials: sensitivity (d') and response bias.

It applies to trials that end in one right or one wrong outcome, and to any variable of the protocol with two values (a
side, a stimulus). A subject that discriminates the values is right on both kinds of trial; one that always gives the
same answer is right on one kind and wrong on the other.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from cheesebench.experiment.records import TrialRecord


@dataclass(frozen=True, slots=True)
class Choices:
    """Sensitivity and bias for two kinds of trial.

    A hit is a right answer on ``first``, a false alarm a wrong answer on ``second``. ``d_prime`` is z(hits) - z(false
    alarms) and ``bias`` is -(z(hits) + z(false alarms)) / 2, positive when the answer that is right on ``second`` is
    preferred. Both use log-linear rates (Hautus 1995: half a trial is added to every count), so perfect performance
    stays finite. The trials of all subjects are pooled. Opposite biases of subjects cancel in ``bias``, but not in
    ``side_bias``, the mean of the subjects' absolute biases.
    """

    variable: str
    first: str
    second: str
    right_on_first: int
    trials_of_first: int
    right_on_second: int
    trials_of_second: int
    d_prime: float
    bias: float
    side_bias: float | None
    """Mean over subjects of ``|right rate on first - right rate on second|``; None if no subject had both kinds."""
    given: str = ""
    """The subset of trials, such as ``retention = 2``; empty for all."""


class ChoiceCounter:
    """Counts the trials of one block, for every variable that may turn out to have two names as values.

    They come subject by subject; of earlier subjects little more is kept than eight bytes for each variable.
    Trials with other ends than the two (such as time-outs) are left out; there is nothing to tell unless
    exactly one outcome is a success and exactly one other, chosen and not timed out, is a failure.

    ``split`` names variables and measures: measures among them are looked at like variables, and those that do not
    tell answers apart split the trials by their values.
    """

    def __init__(self, split: Sequence[str] = ()) -> None:
        self._split = split
        #: Trials by name and value to split by.
        self._parts: dict[str, dict[str, ChoiceCounter]] = {name: {} for name in split}
        self._measures: tuple[str, ...] = tuple(split)
        self._answered = 0
        self._ends: set[tuple[str, bool]] = set()
        #: For each variable, the number of answered trials in which its value was a name.
        self._named: dict[str, int] = {}
        #: What was counted of each variable; None once it has more than two values.
        self._counts: dict[str, _Sides | None] = {}

    def add(self, record: TrialRecord) -> None:
        """Count one trial."""
        if record.success is None or record.outcome in (None, "timeout"):
            return
        assert record.outcome is not None
        self._answered += 1
        self._ends.add((record.outcome, record.success))
        values = {name: record.measures[name] for name in self._measures if name in record.measures}
        values |= record.variables
        for name, parts in self._parts.items():
            part = parts.setdefault(str(values.get(name)), ChoiceCounter())
            part._measures = self._measures
            part.add(record)
        for name, value in values.items():
            sides = self._counts.setdefault(name, _Sides())
            if not isinstance(value, str) or sides is None:
                continue
            self._named[name] = self._named.get(name, 0) + 1
            sides.add(record.subject, value, record.success)
            if len(sides.every) > 2:
                self._counts[name] = None

    def choices(self) -> tuple[Choices, ...]:
        """Return what the trials so far tell, for every variable that had two names as values."""
        outcomes, successes = ({end[part] for end in self._ends} for part in (0, 1))
        if not len(self._ends) == len(outcomes) == len(successes) == 2:
            return ()
        found = self._by_variable()
        parts = [
            (f"{name} = {value}", self._parts[name][value]._by_variable())
            for name in self._split
            if name not in found
            for value in sorted(self._parts[name], key=lambda value: (len(value), value))
        ]
        return tuple(
            one
            for name, choices in found.items()
            for one in (
                choices,
                *(replace(choices_by[name], given=given) for given, choices_by in parts if name in choices_by),
            )
        )

    def _by_variable(self) -> dict[str, Choices]:
        """Return the choices by variable, for those that had two names as values."""
        return {
            name: _choices(name, sides)
            for name, sides in self._counts.items()
            if sides is not None and len(sides.every) == 2 and self._named[name] == self._answered
        }


class _Sides:
    """Right trials and all trials by value: of everybody, and of the present subject."""

    __slots__ = ("_own", "_subject", "biases", "every")

    def __init__(self) -> None:
        self.every: dict[str, list[int]] = {}
        #: Absolute differences of right rates of earlier subjects that had both values.
        self.biases = array("d")
        self._own: dict[str, list[int]] = {}
        self._subject: int | None = None

    def add(self, subject: int, value: str, success: bool) -> None:
        if subject != self._subject:
            self.end_subject()
            self._subject = subject
        for counts in (self.every, self._own):
            right_and_all = counts.setdefault(value, [0, 0])
            right_and_all[0] += success
            right_and_all[1] += 1

    def end_subject(self) -> None:
        if len(self._own) == 2:
            (right_1, all_1), (right_2, all_2) = self._own.values()
            self.biases.append(abs(right_1 / all_1 - right_2 / all_2))
        self._own = {}


def _choices(name: str, sides: _Sides) -> Choices:
    sides.end_subject()
    first, second = sorted(sides.every)
    (right_1, all_1), (right_2, all_2) = sides.every[first], sides.every[second]
    z = NormalDist().inv_cdf
    hits, alarms = z((right_1 + 0.5) / (all_1 + 1)), z((all_2 - right_2 + 0.5) / (all_2 + 1))
    return Choices(
        variable=name,
        first=first,
        second=second,
        right_on_first=right_1,
        trials_of_first=all_1,
        right_on_second=right_2,
        trials_of_second=all_2,
        d_prime=hits - alarms,
        bias=-(hits + alarms) / 2,
        side_bias=sum(sides.biases) / len(sides.biases) if sides.biases else None,
    )
