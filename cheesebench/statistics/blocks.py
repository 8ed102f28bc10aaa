"""The values of single trials, and their summary by block."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cheesebench.experiment.records import TrialRecord
from cheesebench.interfaces import Value
from cheesebench.statistics.choices import ChoiceCounter, Choices
from cheesebench.statistics.measures import STRATEGY, Condition, Moments, Tally, by_condition, with_conditions
from cheesebench.statistics.summary import ClassShares, SplitRate

#: What a value of a trial can be, in the order of columns: of every trial, of the agent's moves, of the protocol.
KINDS = ("trial", "strategy", "counter", "measure", "variable")
#: The values of every trial.
TRIAL_FIELDS = ("outcome", "success", "compared", "missing", "reward", "steps", "path_length", "bumps")

Values = Mapping[str, Mapping[str, Value]]


def trial_values(record: TrialRecord) -> Values:
    """Return the values of a trial by kind and name. A trial that was not run has only the reason it is missing."""
    if record.missing:
        return {kind: {"missing": record.missing} if kind == "trial" else {} for kind in KINDS}
    return {
        "trial": {name: getattr(record, name) for name in TRIAL_FIELDS},
        "strategy": {name: measure(record) for name, measure in STRATEGY.items() if name not in TRIAL_FIELDS},
        "counter": record.counters,
        "measure": record.measures,
        "variable": record.variables,
    }


@dataclass(frozen=True, slots=True)
class BlockMeasure:
    """Mean and standard deviation over ``n`` trials.

    ``sd_subjects`` is the standard deviation of the subjects' means. Use it for standard errors: a subject's trials
    are not independent. Both are None if there is only one value.
    """

    kind: str
    name: str
    mean: float
    sd: float | None
    sd_subjects: float | None
    n: int


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """One block of a cell: ``trials`` that were run by ``subjects``, and ``missing`` that could not be."""

    block: str
    subjects: int
    trials: int
    missing: int
    measures: tuple[BlockMeasure, ...]
    classes: tuple[ClassShares, ...]
    splits: tuple[SplitRate, ...]
    choices: tuple[Choices, ...]


def block_summaries(
    records: Iterable[TrialRecord], split: Sequence[str] = (), by: Sequence[tuple[str, str]] = ()
) -> tuple[BlockSummary, ...]:
    """Summarise the trials of one cell (a model on a protocol in a view) by block, in order of first appearance.

    ``split`` names variables and measures by which pass rate and choices are split (``CellPlan.split``); ``by``
    pairs measures with variables by whose values they are given. Trials are not kept in memory.
    """
    blocks: dict[str, _Block] = {}
    for record in records:
        blocks.setdefault(record.block, _Block(split, by)).add(record)
    return tuple(block.summary(name) for name, block in blocks.items())


class _Block:
    """One block while its trials are counted."""

    def __init__(self, split: Sequence[str], by: Sequence[tuple[str, str]]) -> None:
        self._tally = Tally(split=split, by=by)
        self._by = by
        self._trials = self._missing = 0
        self._subjects: set[int] = set()
        #: Kind and name -> all numbers, and those of each subject.
        self._numbers: dict[tuple[str, str], tuple[Moments, dict[int, Moments]]] = {}
        self._numbers_by: dict[Condition, tuple[Moments, dict[int, Moments]]] = {}
        self._choices = ChoiceCounter(split)

    def add(self, record: TrialRecord) -> None:
        if record.missing:
            self._missing += 1
            return
        self._trials += 1
        self._subjects.add(record.subject)
        self._choices.add(record)
        self._tally.add(record)
        for kind, values in trial_values(record).items():
            if kind == "variable":
                continue  # conditions, not results
            for name, value in values.items():
                if name != "compared" and isinstance(value, (int, float)) and math.isfinite(value):
                    _add(self._numbers.setdefault((kind, name), (Moments(), {})), record.subject, float(value))
        for condition, number in by_condition(record, self._by):
            if isinstance(number, float):
                _add(self._numbers_by.setdefault(condition, (Moments(), {})), record.subject, number)

    def summary(self, name: str) -> BlockSummary:
        kinds: dict[str, dict[str, tuple[Moments, dict[int, Moments]]]] = {kind: {} for kind in KINDS}
        for (kind, own), numbers in self._numbers.items():
            kinds[kind][own] = numbers
        kinds["measure"] = with_conditions(kinds["measure"], self._numbers_by)
        return BlockSummary(
            block=name,
            subjects=len(self._subjects),
            trials=self._trials,
            missing=self._missing,
            measures=tuple(
                _measure(kind, own, *numbers) for kind, found in kinds.items() for own, numbers in found.items()
            ),
            classes=self._tally.class_shares(),
            splits=self._tally.split_rates(),
            choices=self._choices.choices(),
        )


def _add(numbers: tuple[Moments, dict[int, Moments]], subject: int, number: float) -> None:
    every, by_subject = numbers
    every.add(number)
    by_subject.setdefault(subject, Moments()).add(number)


def _measure(kind: str, name: str, every: Moments, by_subject: Mapping[int, Moments]) -> BlockMeasure:
    means = Moments()
    for own in by_subject.values():
        means.add(own.mean)
    return BlockMeasure(kind, name, every.mean, every.sd, means.sd, every.n)
