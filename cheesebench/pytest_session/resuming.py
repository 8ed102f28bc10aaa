"""Says how to continue an unfinished run: the command, and sufficient budgets."""

from __future__ import annotations

import math
import os
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import Any

import pytest

from cheesebench.amounts import dollars
from cheesebench.experiment.log import RunLog
from cheesebench.options import OPTIONS
from cheesebench.pytest_options import SPELLINGS
from cheesebench.pytest_session.run import PytestRun
from cheesebench.records import CallTotals, CellPlan
from cheesebench.statistics import CellResult


@dataclass(frozen=True, slots=True)
class _Budget:
    """A limit on calls: the key of its option, and the amounts spent and still needed
    (None if unknown). ``is_least`` says whether ``needed`` is a lower bound, because no
    trial has ended yet.
    """

    key: str
    shown: Callable[[float], str]
    limit: float
    spent: float
    needed: float | None
    is_least: bool

    @property
    def text(self) -> str:
        spent = f"{self.shown(self.spent)} spent so far"
        if self.needed is None:
            return spent
        needed = self.shown(float(_rounded_up(self.needed)))
        bound = "at least" if self.is_least else "at most"
        return f"{spent}, {bound} about {needed} more needed"

    @property
    def larger(self) -> str | None:
        """A sufficient budget, as text, or None if the present one is sufficient. If it
        is unknown how much is needed, the budget is doubled.
        """
        if self.needed is None:
            return _rounded_up(2 * max(self.limit, self.spent))
        total = self.spent + self.needed
        return _rounded_up(total) if total > self.limit else None


def larger_budgets(
    run: PytestRun, unfinished: Sequence[CellResult]
) -> tuple[dict[str, str], str]:
    """Return sufficient budgets for the rest of the run, by the option's key, and lines
    that explain them.

    If the rest cannot be estimated, budgets are doubled, because the old ones are
    spent. Minutes count per session, so the next session gets the same number again.
    """
    assert run.log is not None
    needed, is_least = _still_needed(run.log, unfinished)
    budgets = list(_budgets(run, run.log.calls.totals(), needed, is_least=is_least))
    found = {one.key: one.larger for one in budgets if one.larger is not None}
    if not found:
        return {}, ""
    why = "." if not is_least else f"{_WHY[needed is None]}; {_PLAN}"
    text = "; ".join(one.text for one in budgets) + why
    return found, textwrap.fill(text, 80, break_on_hyphens=False) + "\n"


#: Why a budget may not suffice, by whether the rest cannot be estimated.
_WHY = {
    True: ". The cost of the rest cannot be estimated yet, so the budget is doubled",
    False: ", because no trial has ended yet",
}
_PLAN = "cheesebench plan says what a run takes."


def _budgets(
    run: PytestRun, spent: CallTotals, needed: CallTotals | None, *, is_least: bool
) -> Iterator[_Budget]:
    limits = run.settings.calls.limits
    if limits.cost is not None:
        more = None if needed is None else needed.cost
        yield _Budget("max_cost", dollars, limits.cost, spent.cost, more, is_least)
    if limits.tokens is not None:
        more = None if needed is None else needed.prompt + needed.completion
        so_far = spent.prompt + spent.completion
        yield _Budget(
            "max_tokens",
            "{:,.0f} tokens".format,
            limits.tokens,
            so_far,
            more,
            is_least,
        )


def _still_needed(
    log: RunLog, unfinished: Sequence[CellResult]
) -> tuple[CallTotals | None, bool]:
    """Return an estimate of the tokens and dollars that the ``unfinished`` cells still
    take, or None if no call was made in any of them, and whether it is a lower bound.

    It is a lower bound if no trial has ended in any of these cells, and otherwise an
    upper one.
    """
    counts = log.trial_counts()
    done = {key: sum(run for run, _ in own.values()) for key, own in counts.items()}
    ended = [cell for cell in unfinished if done.get(cell.plan.key)]
    begun = ended or [one for one in unfinished if log.select(_BY_TRIAL, one.plan.key)]
    if unfinished and not begun:
        return None, True
    known = {cell.plan.key: _dearest_trial(log, cell.plan) for cell in begun}
    return _rest(unfinished, done, known), bool(unfinished) and not ended


def _rest(
    unfinished: Sequence[CellResult],
    done: Mapping[Any, int],
    known: Mapping[Any, CallTotals],
) -> CallTotals:
    # A cell that is not in ``known`` costs as much as the dearest cell that is.
    dearest = max(known.values(), key=_tokens, default=CallTotals())
    total = CallTotals()
    for cell in unfinished:
        key = cell.plan.key
        trials = max(0, _subjects(cell) * cell.plan.trials - done.get(key, 0))
        each = known.get(key, dearest)
        total += CallTotals(
            prompt=trials * each.prompt,
            completion=trials * each.completion,
            cost=trials * each.cost,
        )
    return total


def _subjects(cell: CellResult) -> int:
    """Return how many subjects the cell takes. A sequential cell is expected to take as
    many as its outlook says.
    """
    ahead = cell.game.outlook if cell.game and cell.plan.sequential else None
    return min(cell.plan.subjects, ahead.subjects) if ahead else cell.plan.subjects


def _tokens(spent: CallTotals) -> int:
    return spent.prompt + spent.completion


#: Selects, for each trial number, the numbers of subjects, calls, prompt tokens, reply
#: tokens and dollars, and the bytes of the questions and of the system prompts.
_BY_TRIAL = (
    "SELECT count(DISTINCT subject), count(*), sum(prompt_tokens), sum(completion_tokens), sum(coalesce(cost, 0)), "
    "sum(length(CAST(asked AS BLOB))), sum(coalesce(length(CAST(text AS BLOB)), 0)) "
    "FROM calls LEFT JOIN texts ON texts.digest = calls.system "
    "WHERE model = ? AND protocol = ? AND view = ? AND variant = ? GROUP BY trial ORDER BY trial"
)


def _dearest_trial(log: RunLog, plan: CellPlan) -> CallTotals:
    """Return what a coming trial of a cell takes at most, unless the model begins to
    need more calls, or longer replies.

    A prompt has the latest questions and answers, so it grows until their window is
    full.
    """
    rows = log.select(_BY_TRIAL, plan.key)
    calls = max(row[1] / row[0] for row in rows)
    completion = max(row[3] / row[1] for row in rows)
    prompts = [row[2] / row[1] for row in rows]
    longest = max(prompts)
    window = str(plan.settings.get("history", "")).rpartition("-")[2]
    so_far = sum(row[1] / row[0] for row in rows)
    if window.isdecimal() and so_far <= int(window):
        density = prompts[0] * rows[0][1] / (rows[0][5] + rows[0][6])
        question = density * max(row[5] / row[1] for row in rows)
        longest = max(longest, prompts[0] + int(window) * (question + completion))
    cost, tokens = sum(row[4] for row in rows), sum(row[2] + row[3] for row in rows)
    return CallTotals(
        prompt=math.ceil(calls * longest),
        completion=math.ceil(calls * completion),
        cost=calls * (longest + completion) * cost / max(1, tokens),
    )


def _rounded_up(value: float) -> str:
    """Return a number rounded up to two significant digits, which are enough for a
    decision about cost.
    """
    exact = Decimal(str(value))
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_UP):f}"


def resume_command(
    config: pytest.Config, run_id: str, changed: Mapping[str, str] | None = None
) -> str:
    """Return this session's command, changed so that it continues the run. ``changed``
    has other values for options, by key.
    """
    spellings, changed = config.stash[SPELLINGS], changed or {}
    options = [
        option for option in OPTIONS if option.names_run or option.key in changed
    ]
    left_out = {name for option in options for name in spellings[option.key]}
    kept = _without(left_out, map(os.fspath, config.invocation_params.args))
    others = [f"{spellings[key][0]}={value}" for key, value in changed.items()]
    return " ".join(
        map(_shell_word, ["pytest", *kept, *others, spellings["resume"][0], run_id])
    )


def _without(names: Set[str], arguments: Iterable[str]) -> list[str]:
    """Return arguments without these options and their values."""
    kept = []
    rest = iter(arguments)
    for argument in rest:
        if argument in names:
            next(rest, None)
        elif argument.partition("=")[0] not in names:
            kept.append(argument)
    return kept


def _shell_word(word: str) -> str:
    """Quote a word for a shell. The result has printable characters only."""
    if word.isprintable():
        return shlex.quote(word)
    spelt = (
        c if c.isprintable() and c not in "'\\" else c.encode("unicode_escape").decode()
        for c in word
    )
    return "$'" + "".join("\\'" if c == "'" else c for c in spelt) + "'"
