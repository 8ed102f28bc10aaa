"""Descriptive statistics of a cell: outcomes, measures, strategy. They do not enter the
verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from cheesebench.interfaces import ACTION_LETTERS, WAITED_LETTER, Value
from cheesebench.records import TrialRecord, is_measurement
from cheesebench.statistics import summary

T = TypeVar("T")
#: Maximum number of values of a variable for a curve of a measure; more would be
#: unreadable. Tables have them all.
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
        """The standard deviation (n - 1); None for fewer than two numbers."""
        return math.sqrt(self._squares / (self.n - 1)) if self.n > 1 else None


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
) -> Iterator[tuple[Condition, float | str]]:
    """Yield each condition of a trial with its measured values; sets are not
    conditions.
    """
    for measure, variable in by:
        measured, value = record.measures.get(measure), None
        for held in (record.variables, record.counters, record.measures):
            if variable in held:
                value = held[variable]
                break
        if isinstance(value, list):
            continue
        if isinstance(measured, str):
            yield Condition(measure, variable, value), measured
        elif is_measurement(measured):
            yield Condition(measure, variable, value), float(measured)


def with_conditions(
    whole: Mapping[str, T], parts: Mapping[Condition, T]
) -> dict[str, T]:
    """Return each measure, followed by its values under each condition, in rising
    order.
    """
    conditions, found = _in_order(parts), dict[str, T]()
    for name, one in whole.items():
        found[name] = one
        found.update(
            (str(condition), parts[condition]) for condition in conditions.get(name, ())
        )
    return found


def _in_order(conditions: Iterable[Condition]) -> dict[str, list[Condition]]:
    """Return the conditions of each measure: variable by variable, with values in
    rising order.
    """
    found: dict[str, dict[str, list[Condition]]] = {}
    for one in conditions:
        found.setdefault(one.measure, {}).setdefault(one.variable, []).append(one)
    return {
        measure: [
            one
            for same in variables.values()
            for one in sorted(same, key=lambda one: _rank(one.value))
        ]
        for measure, variables in found.items()
    }


class Tally:
    """Outcomes and measures of trials, counted one by one without keeping trials."""

    def __init__(
        self,
        records: Iterable[TrialRecord] = (),
        split: Iterable[str] = (),
        by: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._classes: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._own: dict[str, Moments] = {}
        self._names: dict[str, Counter[str]] = {}
        #: Passed and scored trials by variable and value.
        self._splits: dict[str, dict[Value, tuple[int, int]]] = {
            name: {} for name in split
        }
        self._by = tuple(by)
        #: Measure, variable and value of a condition -> the values measured under it.
        self._own_by: dict[Condition, Moments] = {}
        self._names_by: dict[Condition, Counter[str]] = {}
        self._agent: Counter[str] = Counter()
        self._strategy: dict[str, Moments] = {}
        for record in records:
            self.add(record)

    def add(self, record: TrialRecord) -> None:
        """Count one trial; a missing trial has no measures."""
        self._classes[_class_of(record)] += 1
        if record.outcome is not None:
            self._outcomes[record.outcome] += 1
        if record.missing:
            return
        self._agent.update(record.tally)
        for name, value in record.measures.items():
            if is_measurement(value):
                self._own.setdefault(name, Moments()).add(float(value))
            elif isinstance(value, str):
                self._names.setdefault(name, Counter())[value] += 1
        for condition, measured in by_condition(record, self._by):
            if isinstance(measured, str):
                self._names_by.setdefault(condition, Counter())[measured] += 1
            else:
                self._own_by.setdefault(condition, Moments()).add(measured)
        for name, found in self._splits.items():
            value = (
                record.variables[name]
                if name in record.variables
                else record.measures.get(name)
            )
            if record.success is not None and not isinstance(value, list):
                passed, trials = found.get(value, (0, 0))
                found[value] = (passed + record.success, trials + 1)
        for name, measure in STRATEGY.items():
            number = measure(record)
            if is_measurement(number):
                self._strategy.setdefault(name, Moments()).add(number)

    def taxonomy(self, not_run: int) -> dict[str, int]:
        """Return trial counts by ``TAXONOMY``. An unknown cause of missing trials is
        added under its own name.
        """
        counts = dict.fromkeys(summary.TAXONOMY, 0) | {"not run": not_run}
        for name, count in self._classes.items():
            counts[name] = counts.get(name, 0) + count
        return counts

    def raw_outcomes(self) -> dict[str, int]:
        """Return the protocol's own outcome names, most frequent first (ties by
        name).
        """
        return dict(
            sorted(self._outcomes.items(), key=lambda item: (-item[1], item[0]))
        )

    def agent_counts(self) -> dict[str, int]:
        return dict(self._agent)

    def own_measures(self) -> tuple[summary.Measure, ...]:
        """Return the protocol's numeric and yes/no measures, in
        the protocol's order.
        """
        return _measures(with_conditions(self._own, self._own_by))

    def condition_curves(self) -> tuple[summary.ConditionCurve, ...]:
        """Return the measures that are reported by a variable with at least two, but
        not too many values.
        """
        found: dict[tuple[str, str], list[tuple[Value, summary.Measure]]] = {}
        conditions = _in_order(self._own_by)
        for name in self._own:
            for one in conditions.get(name, ()):
                moments = self._own_by[one]
                measure = summary.Measure(name, moments.mean, moments.sd, moments.n)
                found.setdefault((name, one.variable), []).append((one.value, measure))
        return tuple(
            summary.ConditionCurve(*key, tuple(points))
            for key, points in found.items()
            if 1 < len(points) <= MOST_POINTS
        )

    def class_shares(self) -> tuple[summary.ClassShares, ...]:
        return tuple(
            summary.ClassShares(
                name, dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
            )
            for name, counts in with_conditions(self._names, self._names_by).items()
        )

    def split_rates(self) -> tuple[summary.SplitRate, ...]:
        """Return the pass rate for each value of the variables in ``split``."""
        return tuple(
            summary.SplitRate(name, value, *found[value])
            for name, found in self._splits.items()
            for value in sorted(found, key=_rank)
        )

    def strategy_measures(self) -> tuple[summary.Measure, ...]:
        """Return measures of the agent's movement, without steps in which the subject
        only waited.
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


def _measures(found: Mapping[str, Moments]) -> tuple[summary.Measure, ...]:
    return tuple(
        summary.Measure(name, moments.mean, moments.sd, moments.n)
        for name, moments in found.items()
    )


def _class_of(record: TrialRecord) -> str:
    if record.missing:
        return record.missing
    if record.success is None:
        return "unscored"
    if record.success:
        return "success"
    calls = record.tally.get("calls", 0)
    if calls:
        # Every reply was truncated, so the model chose none of its actions.
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


#: Name -> value of one trial, or None if the trial has none. Shares are of the agent's
#: own actions.
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
