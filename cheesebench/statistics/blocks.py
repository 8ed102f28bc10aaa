"""What single trials came to, as values, and each block of a cell summarised from them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cheesebench.experiment.records import TrialRecord
from cheesebench.interfaces import Value
from cheesebench.statistics.choices import Choices, two_choices
from cheesebench.statistics.measures import STRATEGY

#: What a value of a trial can be, in the order of columns: of every trial, of the agent's moves, of the protocol.
KINDS = ("trial", "strategy", "counter", "measure", "variable")
#: The values of every trial.
TRIAL_FIELDS = ("outcome", "success", "compared", "missing", "reward", "steps", "path_length", "bumps")

Values = Mapping[str, Mapping[str, Value]]


def trial_values(record: TrialRecord) -> Values:
    """Return kind -> name -> value of a trial. A trial that was not run has no values but why it is missing."""
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

    ``sd_subjects`` is the standard deviation of the subjects' own means. A subject's trials are not independent:
    standard errors come from this one. Both are None where there is only one of them.
    """

    kind: str
    name: str
    mean: float
    sd: float | None
    sd_subjects: float | None
    n: int


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """One block of a cell: ``trials`` were run by ``subjects``, ``missing`` could not be."""

    block: str
    subjects: int
    trials: int
    missing: int
    measures: tuple[BlockMeasure, ...]
    choices: tuple[Choices, ...]


def block_summaries(records: Sequence[TrialRecord]) -> tuple[BlockSummary, ...]:
    """Summarise the trials of one cell (a model on a protocol in a view) by block, in the order they are met."""
    blocks: dict[str, list[TrialRecord]] = {}
    for record in records:
        blocks.setdefault(record.block, []).append(record)
    return tuple(_summarise(name, block) for name, block in blocks.items())


def _summarise(name: str, records: Sequence[TrialRecord]) -> BlockSummary:
    run = [record for record in records if not record.missing]
    numbers: dict[tuple[str, str], dict[int, list[float]]] = {}
    for record in run:
        for kind, values in trial_values(record).items():
            if kind == "variable":
                continue  # conditions, not results
            for measure, value in values.items():
                if measure != "compared" and isinstance(value, (int, float)) and math.isfinite(value):
                    numbers.setdefault((kind, measure), {}).setdefault(record.subject, []).append(float(value))
    return BlockSummary(
        block=name,
        subjects=len({record.subject for record in run}),
        trials=len(run),
        missing=len(records) - len(run),
        measures=tuple(
            _measure(*key, lives) for key, lives in sorted(numbers.items(), key=lambda i: KINDS.index(i[0][0]))
        ),
        choices=two_choices(run),
    )


def _measure(kind: str, name: str, lives: Mapping[int, Sequence[float]]) -> BlockMeasure:
    every = [number for life in lives.values() for number in life]
    means = [statistics.fmean(life) for life in lives.values()]
    return BlockMeasure(kind, name, statistics.fmean(every), _spread(every), _spread(means), len(every))


def _spread(numbers: Sequence[float]) -> float | None:
    return statistics.stdev(numbers) if len(numbers) > 1 else None
