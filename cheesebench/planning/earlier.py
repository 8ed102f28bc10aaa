"""Reads the cost of a model, and the manner of its replies, from its own earlier runs
with the same settings.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import FILE_NAME
from cheesebench.interfaces import ACTIONS

if TYPE_CHECKING:
    from cheesebench.records import CellPlan

#: Maximum number of runs that are read, beginning with the latest.
MOST_RUNS = 20
#: These numbers are assumed if nothing was measured. ``REPLY``: tokens of a reply, as
#: many as a scripted respondent writes. ``DENSITY``: tokens per byte of English.
REPLY, DENSITY = 90, 0.25
#: Tokens per byte of an observation, relative to English.
PICTURED = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """The manner of a model's answers, estimated from ``replies`` of its replies, or
    assumed if ``replies`` is 0.
    """

    replies: int = 0
    reply: float = REPLY
    """Mean number of tokens of a reply."""
    acts: float = 1.0
    """Share of the replies that name an action."""
    actions: float | None = None
    """Mean number of actions in replies that name any (None: as many as allowed)."""
    density: float = DENSITY
    """Number of tokens per byte of the system prompt. Observations have ``PICTURED``
    times as many.
    """
    seconds: float = 0.0
    """Wall-clock seconds per call, with as many parallel calls as when it was measured,
    or 0 if unknown.
    """
    asked: bool = False
    """Whether the answers are to first questions (``plan --ask``), and not from an
    earlier run.
    """
    context: int | None = None
    """Maximum number of prompt and reply tokens together, or None if the server does
    not state it.
    """


class EarlierRuns:
    """The earlier runs in a directory of results, the latest first. Only the latest
    ``MOST_RUNS`` are read.
    """

    def __init__(self, results: Path) -> None:
        found = [path for path in results.glob(f"*/{FILE_NAME}") if path.is_file()]
        self._paths = sorted(
            found, key=lambda path: path.stat().st_mtime, reverse=True
        )[:MOST_RUNS]

    def subject(self, plan: CellPlan) -> dict[str, float] | None:
        """Return the cost of one subject of this cell in the latest run of the same
        cell with the same settings that counted tokens and has at least half of the
        trials, or None if there is no such run.

        Trials that the run does not have are assumed to cost as much as its last trial.
        The keys are the fields of ``planning.Spent``, and ``longest`` for the tokens of
        the longest prompt.
        """
        for log in self._logs():
            with closing(log):
                for other in log.plans():
                    trials = _by_trial(log, other) if _same(plan, other) else []
                    # First prompts are the shortest: a few first trials say little. A
                    # model that is a function need not count tokens, so its trials may
                    # have none.
                    if 2 * len(trials) >= plan.trials and any(
                        one[-1] for one in trials
                    ):
                        return _subject_of(trials, plan.trials, _side_by_side(log))
        return None

    def manner(self, plan: CellPlan) -> Manner | None:
        """Return the manner of the model's answers in its latest run with the same
        agent and settings on any protocol, or None if it was called in no such run.
        """
        for log in self._logs():
            with closing(log):
                if (manner := _manner_in(log, plan)) is not None:
                    return manner
        return None

    def _logs(self) -> Iterator[RunLog]:
        for path in self._paths:
            try:
                yield RunLog.open_read_only(path.parent)
            except (CheeseBenchError, sqlite3.Error, OSError):
                continue  # The log is damaged, unreadable or from another version.


def _subject_of(
    trials: Sequence[tuple[float, ...]], planned: int, side_by_side: float
) -> dict[str, float]:
    """Return the cost of a subject with this many planned trials. ``trials`` has the
    mean cost of each trial (``_by_trial``).
    """
    lived = trials[:planned]
    rest = planned - len(lived)
    calls, prompt, cached, completion, seconds, _ = (
        sum(column) + rest * column[-1] for column in zip(*lived, strict=True)
    )
    return {
        "calls": calls,
        "prompt": prompt,
        "cached": cached,
        "api": cached,
        "completion": completion,
        "seconds": seconds / side_by_side,
        "longest": max(trial[-1] for trial in lived),
    }


def _manner_in(log: RunLog, plan: CellPlan) -> Manner | None:
    """Return the manner of a plan's model in one run, or None if it was not called or
    wrote nothing.
    """
    alike = [one for one in log.plans() if _answers_alike(plan, one)]
    rows = [row for one in alike for row in log.select(f"{_MANNER} {_WHERE}", one.key)]
    calls, tokens, seconds, prompts, size = _sums(rows)
    if not (calls and tokens):
        return None
    cells, counts = log.calls.by_cell(), Counter[str]()
    for one in alike:
        if one.key in cells:
            counts.update(cells[one.key].counts)
    return Manner(
        replies=int(calls),
        reply=tokens / calls,
        acts=1 - counts["unparsed"] / calls,
        actions=_actions_of_a_reply(counts),
        density=prompts / size if prompts and size else DENSITY,
        seconds=seconds / calls / _side_by_side(log),
    )


def _sums(rows: Iterable[Sequence[float | None]]) -> list[float]:
    """Return the sum of each column of ``_MANNER``. NULL counts as 0."""
    sums = [0.0] * 5
    for row in rows:
        sums = [total + (value or 0) for total, value in zip(sums, row, strict=True)]
    return sums


def _actions_of_a_reply(counts: Mapping[str, int]) -> float | None:
    """Return the mean number of actions in replies that name any, or None if no reply
    does.
    """
    acted = counts["calls"] - counts["notes"] - counts["unparsed"]
    named = counts["interrupted_actions"] + sum(counts[action] for action in ACTIONS)
    return named / acted if acted and named else None


def _side_by_side(log: RunLog) -> float:
    """Return the mean number of calls that a run made at the same time."""
    ((seconds,),) = log.select("SELECT sum(seconds) FROM calls")
    ((first, last),) = log.select(
        "SELECT min(julianday(time)), max(julianday(time)) FROM journal "
        "WHERE kind IN ('started', 'finished')"
    )
    passed = 86400 * ((last or 0) - (first or 0))
    return max(1.0, (seconds or 0) / passed) if passed > 0 else 1.0


#: Models answer alike if the fields in ``_ANSWERS_ALIKE`` are equal, and their subjects
#: cost the same if the fields in ``_SAME`` are.
_ANSWERS_ALIKE = ("model", "agent", "settings")
_SAME = (*_ANSWERS_ALIKE, "protocol", "sha256", "view", "variant")


def _answers_alike(plan: CellPlan, other: CellPlan) -> bool:
    return all(getattr(plan, name) == getattr(other, name) for name in _ANSWERS_ALIKE)


def _same(plan: CellPlan, other: CellPlan) -> bool:
    return all(getattr(plan, name) == getattr(other, name) for name in _SAME)


#: Condition for a subject's first call, whose prompt has only the system prompt and the
#: first question.
_FIRST = "trial = 0 AND call = 0"
_MANNER = (
    # A function need not count tokens: they are estimated from its text.
    f"SELECT count(*), sum(CASE WHEN completion_tokens > 0 THEN completion_tokens ELSE {DENSITY} * "
    "length(CAST(reply AS BLOB)) END), sum(seconds), "
    f"sum(CASE WHEN {_FIRST} THEN prompt_tokens END), "
    f"sum(CASE WHEN {_FIRST} THEN length(CAST(text AS BLOB)) + {PICTURED} * length(CAST(asked AS BLOB)) END) "
    "FROM calls JOIN texts ON texts.digest = calls.system"
)
_WHERE = "WHERE model = ? AND protocol = ? AND view = ? AND variant = ? AND fault = ''"


def _by_trial(log: RunLog, plan: CellPlan) -> list[tuple[float, ...]]:
    """Return what a subject needs on average in each trial: calls, prompt, cached and
    completion tokens, and seconds. The tokens of the trial's longest prompt come last.
    """
    query = (
        "SELECT count(DISTINCT subject), count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), "
        f"sum(seconds), max(prompt_tokens) FROM calls {_WHERE} GROUP BY trial ORDER BY trial"
    )
    return [
        (*(number / row[0] for number in row[1:-1]), row[-1])
        for row in log.select(query, plan.key)
    ]
