"""Verdicts on scores of other evaluations: one model against another (pair by pair), or
against a value.

The statistics are the same as for runs (``statistics.comparison``,
``statistics.betting``). Two models are compared by a sign-flip test over paired
subjects, with Holm's correction over tasks. A mean is compared with a value by a bet
that is tuned to the number of subjects. The evidence (the growth of the bet's wealth)
must reach 20 to 1 for a single task, and more in proportion to the number of tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cheesebench import arguments, tables
from cheesebench.amounts import number, per_hundred, points
from cheesebench.errors import NOT_AS_WRITTEN, OptionError, UnknownNameError
from cheesebench.interop import answers
from cheesebench.interop.hosted import judge_lives
from cheesebench.interop.own_runs import judge_runs
from cheesebench.interop.scores import Items, Scores, read_scores
from cheesebench.records import GOAL
from cheesebench.redaction import quoted
from cheesebench.statistics.betting import (
    LEAST_SUBJECTS,
    TUNED,
    final_limits,
    final_wealth,
)
from cheesebench.statistics.comparison import ALPHA, compare_differences, holm
from cheesebench.statistics.intervals import imagined_pair, quantile, t_interval
from cheesebench.statistics.summary import PairedComparison
from cheesebench.statistics.wording import odds, plural

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Probability with which the detectable difference is detected, and with which the
#: needed number of subjects decides.
POWER = 0.8
#: Limit of the search for the needed number of subjects.
MOST_NEEDED = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScoreVerdict(tables.Tabular):
    """The answers on all tasks, and notes on what was left out."""

    optional = frozenset(
        {"model", "other_model", "protocol", "low", "high", "p_holm"}
        | {"difference_low", "difference_high", "p_seen", "seen_low", "seen_high"}
    )
    tasks: tuple[answers.TaskVerdict, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        said = arguments.in_python
        tasks = [replace(one, reason=said(one.reason)) for one in self.tasks]
        object.__setattr__(self, "tasks", tuple(tasks))
        object.__setattr__(self, "notes", tuple(map(said, self.notes)))

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each task, with the columns of ``Run.verdicts`` and
        ``RunComparison.rows`` where they mean the same.

        * ``model`` and ``other_model``: if the logs name them. ``protocol``: the
          protocol of a run.
        * ``verdict``: PASS, FAIL, ... against a value or animals, NA for a control;
          ``better``, ``worse``, ... of two models. ``reason``: why, in a sentence.
        * ``rate``: the mean over ``subjects``; ``low`` to ``high``: its 95 % interval,
          NA for two models. ``reference``: what it is compared with: the value, the
          animals, or the other model.
        * ``difference``: the rate minus the reference; ``difference_low`` to
          ``difference_high``: its 95 % interval, NA against animals (``Run.verdicts``
          has the bounds that decide there). For two models, it also holds whether the
          missing scores are the lowest or the highest; for two runs, it is without
          missing trials.
        * ``p_value``: for two models, the p value of the task alone, the largest that
          missing scores or trials could have given; otherwise 1 / evidence. ``p_holm``:
          the same after Holm's correction over tasks, which decides between two models.
        * ``p_seen``, and ``seen_low`` to ``seen_high``: ``p_value`` and the interval
          without the imagined pair, NA where none is imagined. With ``only_seen`` they
          are ``p_value`` and the interval, and ``p_holm`` is ``p_seen`` after Holm's
          correction.
        """
        return [_row(one) for one in self.tasks]

    @property
    def told(self) -> tuple[str, ...]:
        """The notes, and which columns count an imagined pair, if one has one."""
        graded = [one for one in self.tasks if one.seen_p is not None]
        if not graded:
            return self.notes
        imagined = any(one.seen_p != one.p_value for one in graded)
        said = f"{_IMAGINED}{self._hidden(graded)}" if imagined else _ONLY_SEEN
        return (*self.notes, arguments.in_python(said))

    def _hidden(self, graded: Iterable[answers.TaskVerdict]) -> str:
        """Return how many comparisons the imagined pair may leave open, or ""."""
        hidden = sum(
            one.answer == "undecided" and (one.seen_p or 0.0) < ALPHA for one in graded
        )
        if not hidden:
            return ""
        have = f"{plural(hidden, 'undecided comparison')} {'has' if hidden == 1 else 'have'}"
        return f" {have} p_seen below {ALPHA:g}: where such a loss cannot happen, --only-seen leaves the pair out."

    @property
    def worse(self) -> bool:
        """Whether any task is worse, or has the verdict FAIL."""
        return any(one.answer in ("worse", "FAIL") for one in self.tasks)

    @property
    def better(self) -> bool:
        """Whether a task is better, or has the verdict PASS, and no task is worse."""
        return not self.worse and any(
            one.answer in ("better", "PASS") for one in self.tasks
        )

    def __str__(self) -> str:
        return "\n".join(
            [
                *(
                    f"{one.answer or 'no verdict'}: {one.task}: {one.reason}"
                    for one in self.tasks
                ),
                *self.notes,
            ]
        )


#: What the columns of a table count if scores are not only the lowest and the highest.
_IMAGINED = (
    "Scores between the ends (a mean of pass/fail trials is one): p_value, p_holm and difference_low to difference_high "
    "count one imagined pair more, a total loss for the model that is ahead; p_seen and seen_low to seen_high do not."
)
_ONLY_SEEN = (
    "Only the observed pairs count (--only-seen), so p_seen and seen_low to seen_high repeat p_value and difference_low to "
    "difference_high."
)


def _row(one: answers.TaskVerdict) -> dict[str, object]:
    interval = one.interval or (None, None)
    (low, high), (least, most) = interval, (None, None)
    if one.of_difference:
        (low, high), (least, most) = (None, None), interval
    elif one.protocol is None and one.interval and one.against is not None:
        least, most = one.interval[0] - one.against, one.interval[1] - one.against
    seen_low, seen_high = one.seen_interval or (None, None)
    return {
        "task": one.task,
        "model": one.model,
        "other_model": one.other_model,
        "protocol": one.protocol,
        "verdict": one.answer,
        # A notebook cuts wide tables off at the right.
        "reason": one.reason,
        "subjects": one.subjects,
        "rate": one.rate,
        "low": low,
        "high": high,
        "reference": one.against,
        "difference": _gap(one),
        "difference_low": least,
        "difference_high": most,
        "p_value": one.p_value,
        "p_holm": one.adjusted_p,
        "p_seen": one.seen_p,
        "seen_low": seen_low,
        "seen_high": seen_high,
    }


def _gap(one: answers.TaskVerdict) -> float | None:
    # Without a verdict (a control), the rate is compared with nothing.
    known = None not in (one.answer, one.rate, one.against)
    return (one.rate or 0.0) - (one.against or 0.0) if known else None


@arguments.checked(
    first=arguments.SCORES, second=arguments.SCORES, models=arguments.MODELS
)
def verdict(
    first: str | PathLike[str] | Iterable[Any],
    second: str | PathLike[str] | Iterable[Any] | None = None,
    *,
    value: float | None = None,
    score: str | None = None,
    cluster: str | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    models: tuple[str | None, str | None] = (None, None),
    only_seen: bool = False,
    results: str | PathLike[str] = "results",
) -> ScoreVerdict:
    """Return whether ``first`` is better or worse than ``second``, or than ``value``.
    ``first`` and ``second`` may be runs of CheeseBench, or logs of other evaluations.

    Without ``second`` and ``value``, runs and the subjects of ``inspect eval
    cheesebench/...`` are judged against their animals. Every two models of a data frame
    with a column ``model`` are compared, with Holm's correction over all of these
    comparisons and tasks. With ``value``, each model of it is compared with that, and
    the evidence that decides grows in proportion to the number of models and tasks.

    Where differences of pairs are not all -1, 0 or 1 (graded scores, several items or
    repeats of a subject), one pair more is imagined, a total loss for the model that is
    ahead, because many small gains may hide a rare total failure. ``p_seen``,
    ``seen_low`` and ``seen_high`` are without it, and decide with ``only_seen``. Two
    runs are always compared without such a pair, as ``compare`` does.

    Parameters:
        first: An Inspect log, lm-eval's ``samples_*.jsonl``, a ``*_samples.jsonl`` of
            Every Eval Ever, a CSV file with the columns item and score (and subject,
            task), a directory of such logs, or a run of CheeseBench (a ``Run``, an id,
            a directory or a file). Also a data frame with these columns (without item,
            each row is an item; without subject, each item is a subject), or a list of
            scores, one for each subject.
        second: Another of these, with the same items. Rows without subject and item are
            paired by position: there must be equally many, and two objects of pandas
            must have the same index.
        value: The number to compare the mean score with, instead of ``second``.
        score: The score to compare, where items have several.
        cluster: Field of the items' metadata, or column of a data frame. Items with the
            same value in it are one subject.
        limits: The lowest and the highest score that an item can have.
        models: The models to compare, where runs, or a data frame with a column
            ``model``, have several.
        only_seen: Imagine no pair. That is right where a total failure of one model
            alone cannot happen, or is known to be as rare as it is in these pairs; a
            rare one that they do not show would make the answer wrong.
        results: The directory in which runs are found by their ids.

    Raise CheeseBenchError for scores or runs that cannot be read or paired. The message
    names a remedy.
    """
    low, high = limits
    if not -math.inf < low < high < math.inf:
        raise OptionError(
            f"The lowest score is {low:g} and the highest {high:g}. Give two finite numbers, the lower one first: "
            "--range LOW HIGH."
        )

    _check_frames((first, second), score)
    first, second, models = _of_models(first, second, models)
    if second is not None and value is not None:
        raise OptionError("Give either a second log (or model) or a value, not both.")
    own_runs = judge_runs(first, second, value, Path(results), models)
    if own_runs is not None:
        tasks, notes = own_runs
        _check_two(only_seen, any(one.of_difference for one in tasks))
        return ScoreVerdict(tasks=tuple(tasks), notes=tuple(notes))

    read = partial(read_scores, score=score, cluster=cluster, limits=limits)
    units = _Units(low, high)
    pairs = [*_sides(first, second, value)]
    if pairs:
        names = ("the first scores", "the second scores")
        if second is None:
            names = ("the data frame", "the data frame")
        return _of_pairs(pairs, read, _Asked(units, only_seen, score, names))
    _check_two(only_seen, False)
    if value is None:
        return _own(read(first))
    one_of_each = _by_model(first) or [first]
    return _of_value([*map(read, one_of_each)], units.bar(value), units)


def _of_value(models: Sequence[Scores], bar: float, units: _Units) -> ScoreVerdict:
    """Judge each task of each model against a bar. The evidence that decides is in
    proportion to their number.
    """
    tests = sum(len(own.tasks) for own in models)
    judged = [
        replace(
            _judged(name, items, bar, GOAL * tests, units), model=own.model_of(name)
        )
        for own in models
        for name, items in own.tasks.items()
    ]
    if len(models) > 1:
        judged = [replace(one, task=f"{one.task} ({one.model})") for one in judged]
    notes = dict.fromkeys(note for own in models for note in _told(own))
    return ScoreVerdict(tasks=tuple(judged), notes=tuple(notes))


def _check_two(only_seen: bool, are_two: bool) -> None:
    if only_seen and not are_two:
        raise OptionError(
            "--only-seen is about two models that are compared, and here each is judged alone. Remove it."
        )


#: Columns that all tables of verdicts have, and some that only ``Run.trials`` has.
_OF_VERDICTS = {"verdict", "reason", "rate", "reference"}
_OF_TRIALS = {"judged", "recorded_success"}


def _check_frames(sides: Iterable[Any], score: str | None) -> None:
    """Raise OptionError for a side that is a table of CheeseBench without scores."""
    for given in sides:
        _check_frame(given, score)


def _check_frame(given: Any, score: str | None) -> None:
    """Raise OptionError for a table of CheeseBench that has verdicts in place of
    scores, or trials without a score because they enter no verdict.
    """
    columns = {*map(str, getattr(given, "columns", ()))}
    if columns >= _OF_VERDICTS:
        raise OptionError(
            "This is a table of verdicts: each row is a whole cell, not a score of a subject. Give the run itself, or its "
            "trials: rows = run.trials(); verdict(rows[rows['judged']], score='success')."
        )
    if score in columns and columns >= _OF_TRIALS and hasattr(given, "loc"):
        beside = int((given[score].isna() & given["judged"].eq(False)).sum())
        if beside:
            raise OptionError(
                f"{plural(beside, 'row')} of these trials have no {score}, because they enter no verdict. Give only the "
                "rows with judged: frame[frame['judged']]."
            )


def _of_models(
    first: Any, second: Any, models: tuple[str | None, str | None]
) -> tuple[Any, Any, tuple[str | None, str | None]]:
    """Select the rows of these models from data frames. One frame may hold both models.
    Return the two sides, and the models that are still to be selected (none for data
    frames). Anything else is returned as it is.
    """
    first, second = _with_models(first), _with_models(second)
    if not any(models) or not _has_models(first):
        return first, second, models
    frames = [first] if second is None and models[1] is None else [first, second]
    rows = [
        _rows_of_model(first if frame is None else frame, model)
        for frame, model in zip(frames, models, strict=False)
    ]
    return rows[0], rows[1] if len(rows) > 1 else None, (None, None)


def _sides(first: Any, second: Any, value: float | None) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of scores to compare: both that are given, or every two models of
    a data frame. Yield nothing for scores that are compared with no others.
    """
    if second is not None:
        yield first, second
    elif value is None:
        yield from combinations(_by_model(first), 2)


def _by_model(frame: Any) -> list[Any]:
    """Return the rows of each model of a data frame. There are none without a column
    ``model``.
    """
    names = dict.fromkeys(map(str, frame["model"])) if _has_models(frame) else ()
    return [_rows_of_model(frame, name) for name in names]


def _with_models(frame: Any) -> Any:
    """Return a data frame or a series of pandas with its index as columns, if a level
    of the index is named model.
    """
    levels = getattr(getattr(frame, "index", None), "names", ())
    is_apart = "model" in levels and not _has_models(frame)
    return frame.reset_index() if is_apart else frame


def _has_models(frame: Any) -> bool:
    columns = getattr(frame, "columns", ())
    return "model" in getattr(frame, "column_names", columns)


def _rows_of_model(frame: Any, model: str | None) -> Any:
    if model is None:
        return frame
    names = [*map(str, frame["model"])] if _has_models(frame) else []
    if model not in names:
        raise UnknownNameError("model in the data frame called", model, {*names})
    mask = [name == model for name in names]
    # ``filter`` selects rows in polars and pyarrow, but labels in pandas.
    return frame.loc[mask] if hasattr(frame, "loc") else frame.filter(mask)


def _own(scores: Scores) -> ScoreVerdict:
    if not scores.lives:
        raise OptionError(
            f"There is nothing to compare {scores.path} with. Give a second log, or --value."
        )

    try:
        cells = judge_lives(scores.lives)
    except NOT_AS_WRITTEN as error:
        raise OptionError(
            f"{scores.path} has damaged lives: {quoted(str(error), 200)}. Use an undamaged copy."
        ) from None
    return ScoreVerdict(
        tasks=tuple(answers.answer_of(one, one.plan.label) for one in cells)
    )


class _Units(NamedTuple):
    """The lowest and the highest score. Computations place them at 0 and 1."""

    low: float
    high: float

    def gap(self, share: float) -> float:
        return share * (self.high - self.low)

    def value(self, share: float) -> float:
        return self.low + self.gap(share)

    def bar(self, value: float) -> float:
        """Return a value as a share. Raise OptionError unless it is between the
        limits.
        """
        low, high = self
        if not low < value < high:
            raise OptionError(
                f"--value {value:g} is not between the lowest and the highest score. Give a number between {low:g} and {high:g}, "
                "or --range for scores on another scale."
            )
        return (value - low) / (high - low)

    @property
    def is_share(self) -> bool:
        return self == (0.0, 1.0)

    def said(self, share: float) -> str:
        return per_hundred(share) if self.is_share else number(self.value(share))

    def gap_said(self, share: float, *, signed: bool = True) -> str:
        if self.is_share:
            return points(share) if signed else f"{per_hundred(share)} points"
        return f"{self.gap(share):{'+' if signed else ''}.3g}"

    @property
    def of(self) -> str:
        return " %" if self.is_share else ""


class _Asked(NamedTuple):
    """How two models are compared, the name of the score, if it was given, and how
    messages call the scores without a name.
    """

    units: _Units
    only_seen: bool
    score: str | None
    names: tuple[str, str]


def _of_pairs(
    pairs: Sequence[tuple[Any, Any]], read: Callable[..., Scores], asked: _Asked
) -> ScoreVerdict:
    """Compare both scores of each pair. Holm's correction is over all pairs and their
    tasks.
    """
    found, notes = list[_Pairs](), list[str]()
    for first, second in pairs:
        one = read(first, name=asked.names[0])
        other = read(second, name=asked.names[1])
        _check_rows((one, first), (other, second), asked.score)
        _check_keys(one, other)
        found += _tasks(one, other, is_one=len(pairs) == 1)
        notes += _notes(one, other)
        notes += [] if one.keys else [*_unread_keys(first, second, asked.score)]
    notes += _changing(found) if len(pairs) > 1 else ()
    whole, seen = (
        holm([1.0 if one.p_worst is None else one.p_worst for one in tests])
        for tests in zip(*((one.whole, one.seen) for one in found), strict=True)
    )
    tests = plural(len(found), "task" if len(pairs) == 1 else "comparison")
    tests = f" ({tests}, Holm)"
    return ScoreVerdict(
        tasks=tuple(
            one.answered(p, p_seen, len(found), tests, asked)
            for one, p, p_seen in zip(found, whole, seen, strict=True)
        ),
        notes=tuple(dict.fromkeys(notes)),
    )


def _changing(found: Iterable[_Pairs]) -> Iterator[str]:
    """Yield a note if a model has different rates in its rows, because each row has
    only the items that both models have.
    """
    rates: dict[tuple[str, str | None], set[float]] = {}
    for one in found:
        task = one.task.rpartition(" (")[0]
        for model, rate in zip(one.models, one.rates, strict=True):
            rates.setdefault((task, model), set()).add(round(rate, 9))
    changing = dict.fromkeys(
        model or "" for (_, model), known in rates.items() if len(known) > 1
    )
    if changing:
        yield (
            f"The rate of {_listed(changing)} differs between rows: each row has only the items for which both of its "
            "models have a score."
        )


def _tasks(first: Scores, second: Scores, *, is_one: bool) -> Iterator[_Pairs]:
    """Yield the comparison on each task that both models have. The names of the models
    are part of its name unless ``is_one`` says that there are no others.
    """
    shared = [name for name in first.tasks if name in second.tasks]
    if not shared:
        raise OptionError(
            f"{first.path} has the tasks {_listed(first.tasks)}, {second.path} has {_listed(second.tasks)}: none is in "
            "both. Give logs of the same task."
        )
    for name in shared:
        models = first.model_of(name), second.model_of(name)
        who = "" if is_one else f" ({models[0]} against {models[1]})"
        yield replace(_paired(name, first, second), task=f"{name}{who}", models=models)


def _check_keys(first: Scores, second: Scores) -> None:
    """Raise OptionError for scores in memory whose rows cannot be paired."""
    if None in (first.keys, second.keys) or first.keys == second.keys:
        return
    own, other = (
        " and ".join(map(repr, one.keys or ())) or "neither 'subject' nor 'item'"
        for one in (first, second)
    )
    raise OptionError(
        f"These rows cannot be paired: {first.path} has {own}, and {second.path} has {other}. Give both the same "
        "columns."
    )


def _unread_keys(first: Any, second: Any, score: str | None) -> Iterator[str]:
    """Yield a note on each column of two data frames that has the same values, each
    once, in another order. If there is none, and no column shows that the rows are in
    the same order, yield a note on how they are paired.
    """
    if any(hasattr(one, "column_names") for one in (first, second)):
        return  # tables of pyarrow
    own, other = (_unread(one, score) for one in (first, second))
    if own and other:
        yield from _how_paired(own, other)


def _how_paired(
    own: Mapping[str, Sequence[str]], other: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    keys = [name for name in own if len({*own[name]}) == len(own[name])]
    turned = [name for name in keys if _is_turned(own[name], other.get(name, []))]
    for name in turned:
        yield (
            f"Rows are paired by position, but '{name}' has the same values in another order. To pair by it, name it "
            "'item'."
        )
    if not turned and not any(own[name] == other.get(name) for name in keys):
        yield "Rows are paired by position, because there is no column 'item'."


def _unread(frame: Any, score: str | None) -> dict[str, list[str]]:
    """Return the columns that are not read, as text."""
    columns = [*getattr(frame, "columns", ())]
    names = [one for one in columns if one not in (score, *_READ)]
    return {one: [*map(str, frame[one])] for one in names if columns.count(one) == 1}


#: Columns of data frames that are read, but do not name rows.
_READ = ("score", "task", "model")


def _is_turned(own: Sequence[str], other: Sequence[str]) -> bool:
    return own != other and sorted(own) == sorted(other)


def _check_rows(
    first: tuple[Scores, object], second: tuple[Scores, object], score: str | None
) -> None:
    """Raise OptionError for rows that would be paired by position, if their numbers
    differ, or two objects of pandas have different indexes.
    """
    read = first, second
    indexes = [
        given.index  # type: ignore[attr-defined]
        for scores, given in read
        if hasattr(getattr(given, "index", None), "equals") and not scores.keys
    ]
    if len(indexes) == 2 and not indexes[0].equals(indexes[1]):
        raise OptionError(
            "These rows cannot be paired: they have no column 'item', and the indexes differ. "
            f"{_naming(_unread(first[1], score), _unread(second[1], score))}"
        )
    counts = [
        sum(len(items.index) for items in scores.tasks.values())
        for scores, _ in read
        if scores.keys == ()
    ]
    if len({*counts}) == 2:
        raise OptionError(
            f"These rows cannot be paired: there are {counts[0]:,} and {counts[1]:,}, and nothing names them. Give two "
            "data frames with a column 'item', or equally many scores (nan where one is missing)."
        )


def _naming(own: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> str:
    """Return the remedy for rows that nothing names. The columns that are not read are
    given.
    """
    for name, values in own.items():
        if len({*values}) > 1 and {*values} == {*other.get(name, ())}:
            return f"If the column '{name}' names them, call it 'item': frame.rename(columns={{{name!r}: 'item'}})."
    return "Name the rows in a column 'item', or pair them by position with .reset_index(drop=True)."


class Means(NamedTuple):
    """Mean scores of subjects (over their items), or of items (over their repeats)."""

    plain: Floats
    """Means over the known scores; NaN without one."""
    low: Floats
    """The same means if all missing scores were 0."""
    high: Floats
    """The same means if all missing scores were 1."""


def _means(
    subjects: NDArray[np.int64], scores: Means, known: NDArray[np.bool_]
) -> Means:
    """Return the subjects' means, computed from the means of their items. ``subjects``
    has the number of each item's subject, from 0, and ``known`` whether the item has a
    score.
    """
    import numpy as np

    counts = np.bincount(subjects)
    scored = np.bincount(subjects[known], minlength=len(counts))
    sums = np.bincount(subjects[known], scores.plain[known], len(counts))
    plain = np.divide(sums, scored, where=scored > 0, out=np.full(len(counts), np.nan))
    low, high = (
        np.bincount(subjects, one) / counts for one in (scores.low, scores.high)
    )
    return Means(plain, low, high)


def _of_items(items: Items, places: Sequence[int] | slice) -> Means:
    import numpy as np

    sums, known, missing = (one[places] for one in items.sums())
    plain = np.divide(sums, known, where=known > 0, out=np.full(len(sums), np.nan))
    return Means(plain, sums / (known + missing), (sums + missing) / (known + missing))


def _numbered(pairs: Iterable[tuple[str, str]]) -> NDArray[np.int64]:
    """Return the subject number of each item."""
    import numpy as np

    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(one, len(numbers)) for one, _ in pairs])


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Two models, compared on the items of one task that both have."""

    task: str
    rates: tuple[float, float]
    differences: Floats
    imagined: float
    whole: PairedComparison
    """With the imagined pair, if there is one."""
    seen: PairedComparison
    """Without the imagined pair."""
    models: tuple[str | None, str | None] = (None, None)

    def answered(
        self, p_whole: float, p_seen: float, tests: int, counted: str, asked: _Asked
    ) -> answers.TaskVerdict:
        """Return the answer; the p values are those after Holm's correction over
        ``tests``, which are ``counted`` in words if there are several.
        """
        units, (rate, against) = asked.units, self.rates
        found, p = (self.whole, p_whole)
        if asked.only_seen:
            found, p = self.seen, p_seen
        answer = found.answer if p < ALPHA else "undecided"
        limits = _in_units(found.interval, units)
        gap = units.gap_said(rate - against) + " points" * units.is_share
        reason = (
            f"{units.said(rate)}{units.of} against {units.said(against)}{units.of}, {gap}"
            f"{_between(found.interval, units)}; p = {number(p)}{counted if tests > 1 else ''}, "
            f"{plural(len(self.differences), 'pair')}."
        )
        if self.imagined:
            reason += self._other(p_whole, p_seen, asked)
        extra = 0.0 if asked.only_seen else self.imagined
        least = self._detectable(tests, extra)
        if answer == "undecided":
            reason += self._open(least, tests, found, units)
        elif limits and limits[0] <= 0 <= limits[1]:
            reason += " The interval has its own rule (it is a t interval of the mean), so it may contain 0."
        return answers.TaskVerdict(
            task=self.task, answer=answer, reason=reason, subjects=len(self.differences), rate=units.value(rate),
            against=units.value(against), interval=limits, of_difference=True, p_value=found.p_worst,
            adjusted_p=p, detectable=None if least is None else units.gap(least),
            **self._without(units),
            model=self.models[0], other_model=self.models[1],
        )  # fmt: skip

    def _without(self, units: _Units) -> dict[str, Any]:
        """Return what a verdict says without the imagined pair, if there is one."""
        if not self.imagined:
            return {}
        return {
            "seen_p": self.seen.p_worst,
            "seen_interval": _in_units(self.seen.interval, units),
        }

    def _other(self, p_whole: float, p_seen: float, asked: _Asked) -> str:
        """Return the sentence on the imagined pair."""
        if asked.only_seen:
            return (
                " Only the observed pairs decide. With one imagined pair more, in which the model that is ahead loses "
                f"everything, p would be {number(p_whole)}."
            )
        return (
            " One more pair is imagined, a total loss for the model that is ahead, because many small gains may hide a "
            "rare total failure; without it (--only-seen), "
            f"p = {number(p_seen)}{_between(self.seen.interval, asked.units)}."
        )

    def _open(
        self, least: float | None, tests: int, found: PairedComparison, units: _Units
    ) -> str:
        """Return sentences on what would decide. These pairs detect ``least``."""
        said = f" This many pairs detect a difference of {units.gap_said(least or 0.0, signed=False)} in 4 of 5 cases."
        if least is None:
            said = f" At least {_fewest(tests)} pairs must differ to show a difference."
        if found.p_value is not None and found.p_value < ALPHA:
            said += (
                f" The correction for {tests} tests leaves the answer open."
                if found.p_worst is not None and found.p_worst < ALPHA
                else " Missing scores leave the answer open."
            )
        return said

    def _detectable(self, tests: int, imagined: float) -> float | None:
        """Return the difference that these pairs detect. Return None if there are too
        few pairs, or no pair differs, because it cannot be estimated then.
        """
        count = len(self.differences)
        if count < _fewest(tests) or not self.differences.any():
            return None
        spread = (self.differences.var(ddof=1) * count + imagined) ** 0.5
        often = quantile(1 - POWER, None) * spread
        found = quantile(ALPHA / 2 / tests, None) * spread + imagined
        if imagined:
            # So much gain that no total loss among these pairs is no luck.
            found = max(found, count * ((tests / ALPHA) ** (1 / count) - 1))
        return float(min(1.0, (found + often) / count))


def _in_units(
    interval: tuple[float, float] | None, units: _Units
) -> tuple[float, float] | None:
    return interval and (units.gap(interval[0]), units.gap(interval[1]))


def _between(interval: tuple[float, float] | None, units: _Units) -> str:
    if interval is None:
        return ""
    return ", 95 % {} to {}".format(*map(units.gap_said, interval))


def _fewest(tests: int) -> int:
    """Return the smallest number of pairs with which sign flips can show a difference.
    ``tests`` is the number of tests that are corrected for.
    """
    return next(n for n in range(1, 100) if 2 * 0.5**n * tests < ALPHA)


def _paired(task: str, first: Scores, second: Scores) -> _Pairs:
    """Compare two models on the items that both have. Raise OptionError if no item has
    a score in both logs.
    """
    import numpy as np

    one, other = first.tasks[task], second.tasks[task]
    common = [key for key in one.index if key in other.index]
    if not common:
        raise OptionError(
            f"{task}: {first.path} and {second.path} have no item in common. Compare logs of the same data set."
        )
    subjects = _numbered(common)
    scores = [
        _of_items(own, [*map(own.index.__getitem__, common)]) for own in (one, other)
    ]
    known = ~np.isnan(scores[0].plain) & ~np.isnan(scores[1].plain)
    a, b = (_means(subjects, own, known) for own in scores)
    measured = ~np.isnan(a.plain)
    if not measured.any():
        raise OptionError(f"{task}: no item has a score in both logs.")
    plain = (a.plain - b.plain)[measured]
    possible = [plain]
    if (a.low != a.high).any() or (b.low != b.high).any():
        possible += [a.high - b.low, a.low - b.high]
    lists = [one.tolist() for one in possible]
    imagined = max(map(imagined_pair, lists))
    return _Pairs(
        task,
        (float(a.plain[measured].mean()), float(b.plain[measured].mean())),
        plain,
        imagined,
        _tested(lists, imagined),
        _tested(lists, 0.0),
    )


def _tested(lists: Sequence[Sequence[float]], imagined: float) -> PairedComparison:
    found = compare_differences(lists, seed=0, imagined=imagined)
    return replace(found, interval=_widest(lists, imagined))


def _widest(
    lists: Sequence[Sequence[float]], imagined: float
) -> tuple[float, float] | None:
    """Return the smallest interval that contains the interval of each list, or None if
    a list has no interval.
    """
    found = [t_interval(one, imagined=imagined) for one in lists]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _listed(tasks: Mapping[str, object]) -> str:
    names = list(tasks)
    return ", ".join(names[:5]) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )


def _notes(first: Scores, second: Scores) -> Iterator[str]:
    for one, other in ((first, second), (second, first)):
        if alone := [name for name in one.tasks if name not in other.tasks]:
            yield f"Only in {one.path}: {_listed(dict.fromkeys(alone))}."
        for name, items in one.tasks.items():
            if name in other.tasks and (
                left := len(items.index.keys() - other.tasks[name].index.keys())
            ):
                yield f"{name}: {plural(left, 'item')} of {one.path} left out (not in {other.path})."
        yield from _told(one)


def _told(scores: Scores) -> Iterator[str]:
    """Yield notes on subjects of several items, on missing scores, and on items with
    several scores.
    """
    for name, items in scores.tasks.items():
        subjects = len({subject for subject, _ in items.index})
        if scores.unit and subjects < len(items.index):
            yield (
                f"{name}: {plural(len(items.index), 'item')} in {plural(subjects, 'subject')} ({scores.unit})."
            )
        if missing := items.missing:
            yield (
                f"{name}: {plural(missing, 'score')} of {scores.path} missing (empty, nan or not scored): counted "
                "once as the lowest and once as the highest score."
            )
        _, known, absent = items.sums()
        if repeated := int((known + absent > 1).sum()):
            yield (
                f"{name}: {plural(repeated, 'item')} of {scores.path} with several scores each: their mean counts."
            )


def _judged(
    task: str, items: Items, bar: float, goal: float, units: _Units
) -> answers.TaskVerdict:
    """Judge the mean against a bar, by a bet that is tuned to the number of subjects.
    The number of subjects must not depend on the scores. Raise OptionError if no item
    has a score.
    """
    import numpy as np

    subjects, scores = _numbered(items.index), _of_items(items, slice(None))
    own = _means(subjects, scores, ~np.isnan(scores.plain))
    means = own.plain[~np.isnan(own.plain)]
    if not len(means):
        raise OptionError(f"{task}: no item has a score.")
    grown = final_wealth(own.low, bar), final_wealth(1 - own.high, 1 - bar)
    more, count = grown[0] >= grown[1], len(own.low)
    largest, wanted = max(grown), math.log(goal)
    rate, (bottom, top) = float(means.mean()), final_limits(own.low, own.high)
    answer = "INCONCLUSIVE"
    if largest >= wanted and count >= LEAST_SUBJECTS:
        answer = "PASS" if more else "FAIL"
    grew = f"evidence for '{'more' if more else 'less'}' is"
    reason = (
        f"{units.said(rate)}{units.of} (95 % {units.said(bottom)} to {units.said(top)}{units.of}) against "
        f"{units.said(bar)}{units.of}; {grew} {odds(math.exp(min(largest, 100)))} ({odds(goal)} decides), "
        f"{plural(count, 'subject')}."
    )
    reason += _caveat(answer, count, bottom <= bar <= top)
    if answer == "INCONCLUSIVE" and (more_items := _needed(means, bar, wanted)):
        reason += (
            f" A new log of {more_items:,} subjects would decide it in 4 of 5 cases."
        )
    return answers.TaskVerdict(
        task=task,
        answer=answer,
        reason=reason,
        subjects=count,
        rate=units.value(rate),
        against=units.value(bar),
        interval=(units.value(bottom), units.value(top)),
        p_value=math.exp(-max(0.0, largest)),
    )


def _caveat(answer: str, count: int, is_inside: bool) -> str:
    """Return a caveat about a verdict, or "" if none is needed."""
    if count < LEAST_SUBJECTS:
        return " One subject says nothing about the model: give more subjects (if items are independent, each is one)."
    if answer != "INCONCLUSIVE" and is_inside:
        return " The interval is two-sided and the verdict one-sided, so the interval may contain the value."
    return ""


def _needed(means: Floats, bar: float, wanted: float) -> int | None:
    """Return how many subjects a new log needs to decide with a probability of
    ``POWER``. Return None if it needs more than ``MOST_NEEDED``, or this log has too
    few subjects to tell.

    Both means, of this log and of the new one, are uncertain by their standard error.
    """
    import numpy as np

    if len(means) < LEAST_SUBJECTS:
        return None
    variance = max(means.var(ddof=1), means.mean() * (1 - means.mean()) / 1e3)
    distance, z = abs(means.mean() - bar), quantile(1 - POWER, None)
    # Distance from the bar, in standard errors, at which a bet that is tuned to the
    # number of subjects decides.
    critical = (2 * (wanted - math.log(TUNED[0][1]))) ** 0.5
    for subjects in map(int, np.unique(np.geomspace(20, MOST_NEEDED, 60).astype(int))):
        uncertain = z * (variance / len(means) + variance / subjects) ** 0.5
        spread = max(variance, bar * (1 - bar) / 9) / subjects
        if distance - uncertain >= critical * spread**0.5:
            return _rounded(subjects)
    return None


def _rounded(number: int) -> int:
    """Round a number up to two significant digits."""
    unit: int = 10 ** (len(str(number)) - 2)
    return -(-number // unit) * unit
