"""Estimates the budgets that suffice for the rest of an unfinished run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING, Any

from cheesebench.amounts import dollars
from cheesebench.planning import cost_as_recorded
from cheesebench.records import CallTotals, CellPlan

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.statistics import CellResult


@dataclass(frozen=True, slots=True)
class _Budget:
    """A limit on calls: the key of its option, and the amounts spent and still needed
    (None if unknown).
    """

    key: str
    shown: Callable[[float], str]
    limit: float
    spent: float
    needed: float | None

    @property
    def text(self) -> str:
        spent = f"{self.shown(self.spent)} spent so far"
        if self.needed is None:
            return (
                f"{spent}; what is needed is not known yet, so this budget is doubled"
            )
        needed = self.shown(float(_rounded_up(self.needed)))
        return f"{spent}, at most about {needed} more needed"

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
    log: RunLog,
    limits: Mapping[str, float],
    unfinished: Sequence[CellResult],
    plugins: PluginManager,
) -> tuple[dict[str, str], str]:
    """Return sufficient budgets for the rest of the run, by the option's key, and a
    sentence that explains them. ``limits`` are the present budgets ``max_cost`` and
    ``max_tokens``.

    The first trials say little about later ones, so in a cell in which no subject has
    reached half of its trials, a forecast counts, too. Dollars are unknown until a call
    has cost some. Minutes count per session, so the next session gets the same number
    again.
    """
    needed, spent = _still_needed(log, unfinished, plugins), log.calls.totals()
    dear = needed.cost if needed.cost or not _tokens(needed) else None
    budgets = [
        _Budget(key, dollars, limit, spent.cost, dear)
        if key == "max_cost"
        else _Budget(
            key, "{:,.0f} tokens".format, limit, _tokens(spent), _tokens(needed)
        )
        for key, limit in limits.items()
    ]
    found = {one.key: one.larger for one in budgets if one.larger is not None}
    return found, "; ".join(one.text for one in budgets) + "." if found else ""


def _still_needed(
    log: RunLog, unfinished: Sequence[CellResult], plugins: PluginManager
) -> CallTotals:
    """Return an estimate of what the ``unfinished`` cells still take at most."""
    counts = log.trial_counts()
    done = {key: sum(run for run, _ in own.values()) for key, own in counts.items()}
    total = CallTotals()
    for cell in unfinished:
        each = _dearest_trial(log, cell.plan, plugins)
        trials = max(0, _subjects(cell) * cell.plan.trials - done.get(cell.plan.key, 0))
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


#: Selects prompt tokens, reply tokens and dollars of all calls.
_SPENT = "SELECT coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0), coalesce(sum(cost), 0) FROM calls"


def _dearest_trial(log: RunLog, plan: CellPlan, plugins: PluginManager) -> CallTotals:
    """Return an estimate of what a coming trial of a cell takes at most. It is too low
    if the model begins to need more calls, or longer replies.
    """
    rows = log.select(_BY_TRIAL, plan.key)
    calls, prompt, completion = _of_rows(plan, rows) if rows else (0.0, 0.0, 0.0)
    if 2 * len(rows) < plan.trials:
        told = cost_as_recorded(log, plugins, plan)
        asked = max(1, told.calls)
        calls = max(calls, told.calls / plan.trials)
        prompt = max(prompt, told.prompt / asked)
        completion = max(completion, told.completion / asked)
    spent = [row[2:5] for row in rows] or log.select(_SPENT, ())
    tokens = sum(one[0] + one[1] for one in spent)
    return CallTotals(
        prompt=math.ceil(calls * prompt),
        completion=math.ceil(calls * completion),
        cost=calls
        * (prompt + completion)
        * sum(one[2] for one in spent)
        / max(1, tokens),
    )


def _of_rows(plan: CellPlan, rows: Sequence[Any]) -> tuple[float, float, float]:
    """Return the most calls of a trial, and the tokens of the longest prompt and of the
    longest reply that are to come.

    A prompt has the latest questions and answers, so it grows until their window is
    full.
    """
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
    return calls, longest, completion


def _rounded_up(value: float) -> str:
    """Return a number rounded up to two significant digits, which are enough for a
    decision about cost.
    """
    exact = Decimal(str(value))
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_UP):f}"
