"""The values of single trials, and their summary by block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cheesebench.experiment.records import TrialRecord, is_measurement
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

    ``records`` come subject by subject, as a log has them. ``split`` names variables and measures by which pass rate
    and choices are split (``CellPlan.split``); ``by`` pairs measures with variables by whose values they are given.
    Trials are not kept in memory.
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
        self._trials = self._missing = self._subjects = 0
        #: The subject whose trials are being counted.
        self._subject: int | None = None
        #: Kind and name -> its numbers.
        self._numbers: dict[tuple[str, str], _Numbers] = {}
        self._numbers_by: dict[Condition, _Numbers] = {}
        self._choices = ChoiceCounter(split)

    def add(self, record: TrialRecord) -> None:
        if record.missing:
            self._missing += 1
            return
        self._trials += 1
        if record.subject != self._subject:
            self._subject = record.subject
            self._subjects += 1
            for numbers in (*self._numbers.values(), *self._numbers_by.values()):
                numbers.end_subject()
        self._choices.add(record)
        self._tally.add(record)
        for kind, values in trial_values(record).items():
            if kind == "variable":
                continue  # conditions, not results
            for name, value in values.items():
                if name != "compared" and is_measurement(value):
                    self._numbers.setdefault((kind, name), _Numbers()).add(float(value))
        for condition, number in by_condition(record, self._by):
            if isinstance(number, float):
                self._numbers_by.setdefault(condition, _Numbers()).add(number)

    def summary(self, name: str) -> BlockSummary:
        kinds: dict[str, dict[str, _Numbers]] = {kind: {} for kind in KINDS}
        for (kind, own), numbers in self._numbers.items():
            kinds[kind][own] = numbers
        kinds["measure"] = with_conditions(kinds["measure"], self._numbers_by)
        return BlockSummary(
            block=name,
            subjects=self._subjects,
            trials=self._trials,
            missing=self._missing,
            measures=tuple(
                numbers.measure(kind, own) for kind, named in kinds.items() for own, numbers in named.items()
            ),
            classes=self._tally.class_shares(),
            splits=self._tally.split_rates(),
            choices=self._choices.choices(),
        )


class _Numbers:
    """The numbers of one measure: all of them, those of the present subject, and the means of earlier ones."""

    __slots__ = ("_every", "_means", "_own")

    def __init__(self) -> None:
        self._every, self._means, self._own = Moments(), Moments(), Moments()

    def add(self, number: float) -> None:
        self._every.add(number)
        self._own.add(number)

    def end_subject(self) -> None:
        if self._own.n:
            self._means.add(self._own.mean)
            self._own = Moments()

    def measure(self, kind: str, name: str) -> BlockMeasure:
        self.end_subject()
        return BlockMeasure(kind, name, self._every.mean, self._every.sd, self._means.sd, self._every.n)
