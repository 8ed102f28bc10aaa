"""Descriptive statistics of a cell: outcomes, measures, movement. They do not enter the
verdict.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from cheesebench.interfaces import ACTION_LETTERS, WAITED_LETTER, Value
from cheesebench.records import TrialRecord, is_measurement
from cheesebench.statistics import summary

T = TypeVar("T")
M = TypeVar("M", summary.Measure, summary.ClassShares)
#: Maximum number of values of a variable against which a measure is plotted. A longer
#: curve would be unreadable. Tables show every value.
MOST_POINTS = 50


class Moments:
    """Running count, mean and standard deviation of numbers (Welford 1962,
    Technometrics 4:419).
    """

    __slots__ = ("_squares", "mean", "n")

    def __init__(self) -> None:
        self.n = 0
        self.mean = 0.0
        self._squares = 0.0

    def add(self, number: float) -> None:
        self.n += 1
        deviation = number - self.mean
        self.mean += deviation / self.n
        self._squares += deviation * (number - self.mean)

    @property
    def sd(self) -> float | None:
        """The standard deviation (n - 1), or None for fewer than two numbers."""
        return math.sqrt(self._squares / (self.n - 1)) if self.n > 1 else None


class Means:
    """The mean of a measure over subjects, each of which counts with the mean of its
    own trials, as in a verdict about a measure.
    """

    __slots__ = ("_before", "_own", "_subject", "_trials")

    def __init__(self) -> None:
        self._before, self._own = Moments(), Moments()
        self._subject, self._trials = -1, 0

    def add(self, subject: int, number: float) -> None:
        """Add the value of a trial. The trials of each subject follow each other."""
        if subject != self._subject and self._own.n:
            self._before.add(self._own.mean)
            self._own = Moments()
        self._subject = subject
        self._trials += 1
        self._own.add(number)

    def measure(self, name: str) -> summary.Measure:
        between = copy(self._before)
        between.add(self._own.mean)
        return summary.Measure(name, between.mean, between.sd, self._trials, between.n)


class Condition(NamedTuple):
    """A value of a variable under which a measure is reported."""

    measure: str
    variable: str
    value: Value

    def __str__(self) -> str:
        value = (
            f"{self.value:g}"
            if isinstance(self.value, float)
            else "none"
            if self.value is None
            else self.value
        )
        return f"{self.measure} ({self.variable} = {value})"


def by_condition(
    record: TrialRecord, by: Iterable[tuple[str, str]]
) -> Iterator[tuple[Condition, Value]]:
    """Yield each condition of a trial with the measured value. There is no condition
    for a variable that holds a set, nor for a measure without a value.
    """
    held = ChainMap[str, Any](record.variables, record.counters, record.measures)  # type: ignore[arg-type]  # the maps are never written
    for measure, variable in by:
        measured = record.measures.get(measure)
        value = held.get(variable)
        if isinstance(value, list):
            continue
        if isinstance(measured, str) or is_measurement(measured):
            yield Condition(measure, variable, value), measured


def _in_order(found: Mapping[str | Condition, T]) -> dict[str | Condition, T]:
    """Sort findings by measure. After each measure come the findings under its
    conditions: variable by variable, with values in increasing order.
    """
    first = {key: number for number, key in enumerate(found) if isinstance(key, str)}
    variables = {key.variable: None for key in found if isinstance(key, Condition)}
    at = {variable: number for number, variable in enumerate(variables)}

    def place(key: str | Condition) -> tuple[object, ...]:
        if isinstance(key, str):
            return (first[key],)
        return first[key.measure], at[key.variable], _rank(key.value)

    return {key: found[key] for key in sorted(found, key=place)}


class Tally:
    """Counts outcomes and measures trial by trial, and keeps no trial."""

    def __init__(
        self,
        records: Iterable[TrialRecord] = (),
        split: Iterable[str] = (),
        by: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._classes: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        #: Means by measure, and by each condition under which a measure is reported.
        self._own: dict[str | Condition, Means] = {}
        self._names: dict[str | Condition, Counter[str]] = {}
        #: Numbers of passed and of scored trials, by variable and value.
        self._splits: dict[str, dict[Value, tuple[int, int]]] = {
            name: {} for name in split
        }
        self._by = tuple(by)
        #: ``_blocks``: the blocks of the trials that are counted here. ``_others``: the
        #: tallies of trials that are not judged, by block.
        self._blocks: set[str] = set()
        self._others: dict[str, Tally] = {}
        self._agent: Counter[str] = Counter()
        self._strategy: dict[str, Means] = {}
        for record in records:
            self.add(record)

    def add_life(
        self, records: Iterable[TrialRecord], judged: Sequence[TrialRecord]
    ) -> None:
        """Count the judged trials of a life, and the measures of its other trials by
        block.
        """
        for record in judged:
            self.add(record)
        entered = {record.trial for record in judged}
        for record in records:
            if record.trial not in entered:
                self._elsewhere_in(record.block).add(record)

    def _elsewhere_in(self, block: str) -> Tally:
        if block not in self._others:
            self._others[block] = Tally(by=self._by)
        return self._others[block]

    def add(self, record: TrialRecord) -> None:
        """Count one trial. A missing trial has no measures."""
        self._blocks.add(record.block)
        self._classes[_class_of(record)] += 1
        if record.outcome is not None:
            self._outcomes[record.outcome] += 1
        if record.missing:
            return
        self._agent.update(record.tally)
        conditions = by_condition(record, self._by)
        for key, value in chain[Any](record.measures.items(), conditions):
            if is_measurement(value):
                own = self._own.setdefault(key, Means())
                own.add(record.subject, float(value))
            elif isinstance(value, str):
                self._names.setdefault(key, Counter())[value] += 1
        for name, found in self._splits.items():
            value = record.variables.get(name, record.measures.get(name))
            if record.success is not None and not isinstance(value, list):
                passed, trials = found.get(value, (0, 0))
                found[value] = (passed + record.success, trials + 1)
        for name, measure in STRATEGY.items():
            number = measure(record)
            if is_measurement(number):
                moved = self._strategy.setdefault(name, Means())
                moved.add(record.subject, number)

    def taxonomy(self, not_run: int) -> dict[str, int]:
        """Return the number of trials by outcome. Other causes of missing trials than
        those in ``TAXONOMY`` follow under their own names.
        """
        counts = dict.fromkeys(summary.TAXONOMY, 0) | {"not run": not_run}
        for name, count in self._classes.items():
            counts[name] = counts.get(name, 0) + count
        return counts

    def raw_outcomes(self) -> dict[str, int]:
        """Return the protocol's own outcome names with their counts. The most frequent
        comes first; equal counts are ordered by name.
        """
        return _by_count(self._outcomes)

    def agent_counts(self) -> dict[str, int]:
        return dict(self._agent)

    def own_measures(self) -> tuple[summary.Measure, ...]:
        """Return the protocol's numeric and yes/no measures, each followed by the same
        measure under its conditions. Measures in blocks without a judged trial, such as
        a probe, come last.
        """
        return (*_measures(_in_order(self._own)), *self._elsewhere(Tally.own_measures))

    def condition_curves(self) -> tuple[summary.ConditionCurve, ...]:
        """Return a curve for each measure that is reported ``by`` a variable, if the
        variable took from two to ``MOST_POINTS`` values.
        """
        found: dict[tuple[str, str], list[tuple[Value, summary.Measure]]] = {}
        for key, means in _in_order(self._own).items():
            if isinstance(key, Condition):
                point = key.value, means.measure(key.measure)
                found.setdefault((key.measure, key.variable), []).append(point)
        return tuple(
            summary.ConditionCurve(*key, tuple(points))
            for key, points in found.items()
            if 1 < len(points) <= MOST_POINTS
        )

    def class_shares(self) -> tuple[summary.ClassShares, ...]:
        own = (
            summary.ClassShares(str(key), _by_count(counts))
            for key, counts in _in_order(self._names).items()
        )
        return (*own, *self._elsewhere(Tally.class_shares))

    def _elsewhere(self, found: Callable[[Tally], Iterable[M]]) -> Iterator[M]:
        for block, tally in self._others.items():
            if block and block not in self._blocks:
                for one in found(tally):
                    yield replace(one, name=f"{one.name} in {block}")

    def split_rates(self) -> tuple[summary.SplitRate, ...]:
        """Return the pass rate for each value of the variables in ``split``."""
        return tuple(
            summary.SplitRate(name, value, *found[value])
            for name, found in self._splits.items()
            for value in sorted(found, key=_rank)
        )

    def strategy_measures(self) -> tuple[summary.Measure, ...]:
        """Return measures of the agent's movement. Shares and the entropy leave out
        steps in which the subject only waited.
        """
        return _measures(
            {name: self._strategy[name] for name in STRATEGY if name in self._strategy}
        )


def _rank(value: Value) -> tuple[bool, float, str]:
    """Return a sort key that orders numbers before names."""
    return (
        isinstance(value, str | None),
        0.0 if isinstance(value, (str, list)) or value is None else value,
        str(value),
    )


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _measures(found: Mapping[Any, Means]) -> tuple[summary.Measure, ...]:
    return tuple(moments.measure(str(key)) for key, moments in found.items())


def _class_of(record: TrialRecord) -> str:
    if record.missing:
        return record.missing
    if record.success is None:
        return "unscored"
    if record.success:
        return "success"
    calls = record.tally.get("calls", 0)
    if calls:
        # If every reply was cut off, the failure says little about the model's choices.
        if record.tally.get("truncated", 0) == calls:
            return "truncated reply"
        if record.tally.get("unparsed", 0) == calls:
            return "unparsed"
    return "timeout" if record.outcome == "timeout" else "wrong choice"


def _chosen(record: TrialRecord) -> str:
    return record.actions.replace(WAITED_LETTER, "")


def _entropy(record: TrialRecord) -> float | None:
    chosen = _chosen(record)
    if not chosen:
        return None
    shares = [chosen.count(letter) / len(chosen) for letter in ACTION_LETTERS]
    return sum(-share * math.log2(share) for share in shares if share)


def _share_of(letters: str) -> Callable[[TrialRecord], float | None]:
    def share(record: TrialRecord) -> float | None:
        chosen = _chosen(record)
        return sum(map(chosen.count, letters)) / len(chosen) if chosen else None

    return share


def _repeats(record: TrialRecord) -> float | None:
    chosen = _chosen(record)
    if len(chosen) < 2:
        return None
    return sum(map(str.__eq__, chosen, chosen[1:])) / (len(chosen) - 1)


#: Measures of movement: the name -> a function that returns the value in one trial, or
#: None if the trial has no value. Shares are shares of the actions that the agent
#: chose.
STRATEGY: dict[str, Callable[[TrialRecord], float | None]] = {
    "action_entropy_bits": _entropy,
    "forward_share": _share_of("F"),
    "turn_share": _share_of("LR"),
    "stay_share": _share_of("S"),
    "repeat_share": _repeats,
    "path_length": lambda record: float(record.path_length),
    "bumps": lambda record: float(record.bumps),
    "steps": lambda record: float(record.steps),
    "reward": lambda record: float(record.reward),
}
