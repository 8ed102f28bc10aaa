"""Estimates the budgets that suffice for the rest of an unfinished run."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING, Any

from cheesebench.amounts import dollars
from cheesebench.records import CallTotals, CellPlan

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
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
    log: RunLog, limits: Mapping[str, float], unfinished: Sequence[CellResult]
) -> tuple[dict[str, str], str]:
    """Return sufficient budgets for the rest of the run, by the option's key, and a
    sentence that explains them. ``limits`` are the present budgets ``max_cost`` and
    ``max_tokens``.

    If the rest cannot be estimated, budgets are doubled, because the old ones are
    spent. Minutes count per session, so the next session gets the same number again.
    """
    needed, is_least = _still_needed(log, unfinished)
    budgets = [
        _budget(key, limit, log.calls.totals(), needed, is_least=is_least)
        for key, limit in limits.items()
    ]
    found = {one.key: one.larger for one in budgets if one.larger is not None}
    if not found:
        return {}, ""
    which = "the budget" if len(budgets) == 1 else "each budget"
    why = f"{_WHY[needed is None].format(which)}; {_PLAN}" if is_least else "."
    return found, "; ".join(one.text for one in budgets) + why


#: Why a budget may not suffice. The key is whether the cost of the rest cannot be
#: estimated.
_WHY = {
    True: ". The cost of the rest cannot be estimated yet, so {} is doubled",
    False: ", because no trial has ended yet",
}
_PLAN = "cheesebench plan says what a run takes."


def _budget(
    key: str,
    limit: float,
    spent: CallTotals,
    needed: CallTotals | None,
    *,
    is_least: bool,
) -> _Budget:
    if key == "max_cost":
        more = None if needed is None else needed.cost
        return _Budget(key, dollars, limit, spent.cost, more, is_least)
    shown = "{:,.0f} tokens".format
    more = None if needed is None else _tokens(needed)
    return _Budget(key, shown, limit, _tokens(spent), more, is_least)


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
