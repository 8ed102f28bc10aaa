"""Verdicts on scores of other evaluations: one model against another, pair by pair, or
against a value.

The statistics are those of runs (``statistics.comparison``, ``statistics.betting``): a
sign-flip test over paired subjects, Holm's correction over tasks, and for a value a
purse that must grow 20-fold for each task.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from statistics import stdev
from typing import Literal

from cheesebench.errors import NOT_AS_WRITTEN, OptionError
from cheesebench.interop.scores import Scores, read_scores
from cheesebench.records import GOAL
from cheesebench.redaction import quoted
from cheesebench.statistics.betting import limits as purse_limits
from cheesebench.statistics.betting import play
from cheesebench.statistics.comparison import (
    ALPHA,
    SubjectCounts,
    compare_differences,
    holm,
    paired_differences,
)
from cheesebench.statistics.intervals import quantile
from cheesebench.statistics.summary import PairedComparison
from cheesebench.statistics.wording import fold, plural, points

Answer = Literal[
    "better", "worse", "indistinguishable", "PASS", "FAIL", "INCONCLUSIVE", "ERROR"
]
#: Power at which the smallest difference that would be seen is given.
POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskVerdict:
    """The answer on one task; scores are proportions, ``rate`` is the mean of the
    subjects' means.
    """

    task: str
    answer: Answer
    reason: str
    subjects: int
    rate: float | None
    against: float | None
    """The other model's mean, the value, or the animals'."""
    interval: tuple[float, float] | None
    """95 % interval, of the difference of two models, or of the mean."""
    p_value: float | None = None
    """Of two models, after Holm's correction."""
    detectable: float | None = None
    """The difference of two models that this number of pairs would show with a power of
    80 %.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreVerdict:
    """The answers of all tasks, and what was left out."""

    tasks: tuple[TaskVerdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether a task is worse, or FAIL."""
        return any(one.answer in ("worse", "FAIL") for one in self.tasks)

    @property
    def better(self) -> bool:
        """Whether a task is better, or PASS, and none is worse."""
        return not self.worse and any(
            one.answer in ("better", "PASS") for one in self.tasks
        )

    def __str__(self) -> str:
        return "\n".join(
            [
                *(f"{one.answer}: {one.task}: {one.reason}" for one in self.tasks),
                *self.notes,
            ]
        )


def verdict(
    first: str | PathLike[str],
    second: str | PathLike[str] | None = None,
    *,
    value: float | None = None,
    score: str | None = None,
    cluster: str | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
) -> ScoreVerdict:
    """Return whether ``first`` is better or worse than ``second``, or than ``value``:
    logs of other evaluations.

    Without both, the subjects of ``inspect eval cheesebench/...`` are judged against
    their animals.

    Parameters:
        first: An Inspect log, lm-eval's ``samples_*.jsonl``, a ``*_samples.jsonl`` of
        Every Eval Ever, a CSV file with
            the columns subject, item and score (and task), or a directory of such logs.
        second: Another of these, with the same items.
        value: The number that the mean score is compared with instead.
        score: The score that is compared where items have several.
        cluster: Field of the items' metadata: items that share it are one subject.
        limits: The lowest and the highest score that an item can have.

    Raises:
        OptionError: For what cannot be read or paired; the message names a remedy.
    """
    if second is not None and value is not None:
        raise OptionError(
            "A verdict needs a second log or a value, not both. Give one of them."
        )
    low, high = limits
    if not -math.inf < low < high < math.inf:
        raise OptionError(
            f"--range {low:g} {high:g}: give two numbers, the lower one first."
        )

    def read(path: str | PathLike[str]) -> Scores:
        return read_scores(Path(path), score=score, cluster=cluster, limits=limits)

    if second is not None:
        return _compared(read(first), read(second))
    if value is None:
        return _own(read(first))
    if not low < value < high:
        raise OptionError(
            f"--value {value:g}: no mean can be beyond it. Give a number between {low:g} and {high:g}."
        )
    tasks, bar = read(first).tasks, (value - low) / (high - low)
    return ScoreVerdict(
        tasks=tuple(
            _judged(name, own, bar, GOAL * len(tasks)) for name, own in tasks.items()
        )
    )


def _own(scores: Scores) -> ScoreVerdict:
    if not scores.lives:
        raise OptionError(
            f"{scores.path} is to be compared with something. Give a second log, or --value."
        )
    from cheesebench.interop.hosted import judge_lives

    try:
        cells = judge_lives(scores.lives)
    except NOT_AS_WRITTEN as error:
        raise OptionError(
            f"{scores.path} has lives that are damaged: {quoted(str(error), 200)}."
        ) from None
    return ScoreVerdict(
        tasks=tuple(
            TaskVerdict(
                task=one.plan.label, answer=one.verdict.value, reason=one.reason, subjects=one.subjects, rate=one.rate,
                against=None if one.plan.reference is None else one.plan.reference.value, interval=one.interval,
            )
            for one in cells
        )
    )  # fmt: skip


Subjects = Mapping[str, Mapping[str, float | None]]
Pair = tuple[dict[int, SubjectCounts], dict[int, SubjectCounts]]


def _compared(first: Scores, second: Scores) -> ScoreVerdict:
    shared = [name for name in first.tasks if name in second.tasks]
    if not shared:
        raise OptionError(
            f"{first.path} has the tasks {_listed(first.tasks)}, {second.path} has {_listed(second.tasks)}: none is in "
            "both. Give logs of the same task."
        )
    pairs = [_paired(first.tasks[name], second.tasks[name]) for name in shared]
    possible = [paired_differences(*pair) for pair in pairs]
    for name, values in zip(shared, possible, strict=True):
        if not values[0]:
            raise OptionError(
                f"{name}: {first.path} and {second.path} have no item in common. Compare logs of the same data set."
            )
    compared = [compare_differences(values, seed=0) for values in possible]
    adjusted = holm([1.0 if one.p_worst is None else one.p_worst for one in compared])
    return ScoreVerdict(
        tasks=tuple(
            map(
                _answered,
                shared,
                pairs,
                possible,
                compared,
                adjusted,
                [len(shared)] * len(shared),
            )
        ),
        notes=tuple(_notes(first, second)),
    )


def _answered(
    task: str,
    pair: Pair,
    possible: list[list[float]],
    found: PairedComparison,
    p: float,
    tasks: int,
) -> TaskVerdict:
    own = [
        (a, b)
        for a, b in zip(pair[0].values(), pair[1].values(), strict=True)
        if a.scored and b.scored
    ]
    rate, against = (
        sum(one[side].rate(None) for one in own) / len(own) for side in (0, 1)
    )
    error = stdev(possible[0]) / math.sqrt(len(own)) if len(own) > 1 else 1.0
    seen = min(
        1.0, (quantile(ALPHA / 2 / tasks, None) + quantile(1 - POWER, None)) * error
    )
    answer: Answer = "indistinguishable"
    if p < ALPHA and found.answer in ("better", "worse"):
        answer = "better" if found.answer == "better" else "worse"
    limits = (
        found.interval
        and f", 95 % {points(found.interval[0])} to {points(found.interval[1])}"
    )
    reason = (
        f"{100 * rate:.1f} against {100 * against:.1f} of 100, {points(rate - against)} points{limits or ''}; "
        f"p = {p:.3g} ({plural(tasks, 'task')}, Holm), {plural(len(own), 'pair')}."
    )
    if answer == "indistinguishable":
        reason += (
            f" So many pairs show a difference of {100 * seen:.1f} points in 4 of 5 cases."
            if error
            else ""
        )
        if found.p_value is not None and found.p_value < ALPHA:
            reason += " Missing scores, or the number of tasks, leave it open."
    return TaskVerdict(
        task=task, answer=answer, reason=reason, subjects=len(own), rate=rate, against=against,
        interval=found.interval, p_value=p, detectable=seen,
    )  # fmt: skip


def _listed(tasks: Mapping[str, object]) -> str:
    names = list(tasks)
    return ", ".join(names[:5]) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )


def _paired(first: Subjects, second: Subjects) -> Pair:
    """Return the subjects that both have, numbered alike; an item that one lacks is
    missing there.
    """
    counts: Pair = {}, {}
    for number, subject in enumerate(name for name in first if name in second):
        items = dict.fromkeys([*first[subject], *second[subject]])
        for side, own in zip(counts, (first[subject], second[subject]), strict=True):
            known = [value for item in items if (value := own.get(item)) is not None]
            side[number] = SubjectCounts(
                sum(known), len(known), len(items) - len(known), ""
            )
    return counts


def _notes(first: Scores, second: Scores) -> Iterator[str]:
    for one, other in ((first, second), (second, first)):
        if alone := [name for name in one.tasks if name not in other.tasks]:
            yield f"Only in {one.path}: {_listed(dict.fromkeys(alone))}."
        for name, subjects in one.tasks.items():
            if name in other.tasks and (
                left := len(subjects.keys() - other.tasks[name].keys())
            ):
                yield f"{name}: {plural(left, 'subject')} of {one.path} left out, because {other.path} lacks them."


def _judged(task: str, subjects: Subjects, bar: float, goal: float) -> TaskVerdict:
    """Judge the mean against a bar.

    A purse may be lucky if easy items come first, so subjects are shuffled, by their
    names and all scores: an order by names alone would be lucky for every model.
    """
    import numpy as np

    seed = hashlib.blake2b(
        repr(sorted((name, [*own.values()]) for name, own in subjects.items())).encode(
            "utf-8", "replace"
        )
    ).digest()
    order = sorted(
        subjects,
        key=lambda name: hashlib.blake2b(seed + name.encode(errors="replace")).digest(),
    )
    own = [list(subjects[name].values()) for name in order]
    low = np.array(
        [sum(value or 0.0 for value in values) / len(values) for values in own]
    )
    high = np.array(
        [
            sum(1.0 if value is None else value for value in values) / len(values)
            for values in own
        ]
    )
    games = play([(low, bar)], [(1 - high, 1 - bar)], goal=goal)
    answer: Answer = (
        "PASS" if games.passed else "FAIL" if games.failed else "INCONCLUSIVE"
    )
    known = [value for values in own for value in values if value is not None]
    if not known:
        raise OptionError(f"{task}: no item has a score.")
    means = [
        sum(kept) / len(kept)
        for values in own
        if (kept := [one for one in values if one is not None])
    ]
    rate, (bottom, top) = sum(means) / len(means), purse_limits(low, high)
    largest = float(max(games.passing, games.failing))
    reason = (
        f"{100 * rate:.1f} of 100 (95 % {100 * bottom:.1f} to {100 * top:.1f}) against {100 * bar:.1f}; its purse on "
        f"'{'more' if games.passing >= games.failing else 'less'}' grew {fold(largest)}, {fold(goal)} decides, "
        f"{plural(len(own), 'subject')}."
    )
    if answer == "INCONCLUSIVE" and largest > 1:
        reason += f" About {math.ceil(len(own) * math.log(goal) / math.log(largest)):,} would decide it at this rate."
    return TaskVerdict(
        task=task,
        answer=answer,
        reason=reason,
        subjects=len(own),
        rate=rate,
        against=bar,
        interval=(bottom, top),
    )
