"""Says how to continue an unfinished run: the command, and sufficient budgets."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal

import pytest

from cheesebench.amounts import dollars
from cheesebench.experiment.log import RunLog
from cheesebench.options import OPTIONS
from cheesebench.pytest_options import SPELLINGS
from cheesebench.pytest_session.run import PytestRun
from cheesebench.records import CallTotals
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
            return spent
        needed = self.shown(float(_rounded_up(self.needed)))
        return f"{spent}, about {needed} more needed"

    @property
    def larger(self) -> str | None:
        """A sufficient budget, as text, or None if the present one is sufficient."""
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
    needed = _still_needed(run.log, unfinished)
    budgets = list(_budgets(run, run.log.calls.totals(), needed))
    found = {one.key: one.larger for one in budgets if one.larger is not None}
    if not found:
        return {}, ""
    why = (
        ". The cost of the rest cannot be estimated yet, so the budget is doubled."
        if needed is None
        else "."
    )
    text = "; ".join(one.text for one in budgets) + why
    return found, textwrap.fill(text, 80, break_on_hyphens=False) + "\n"


def _budgets(
    run: PytestRun, spent: CallTotals, needed: CallTotals | None
) -> Iterator[_Budget]:
    limits = run.settings.calls.limits
    if limits.cost is not None:
        more = None if needed is None else needed.cost
        yield _Budget("max_cost", dollars, limits.cost, spent.cost, more)
    if limits.tokens is not None:
        more = None if needed is None else needed.prompt + needed.completion
        so_far = spent.prompt + spent.completion
        yield _Budget(
            "max_tokens", "{:,.0f} tokens".format, limits.tokens, so_far, more
        )


def _still_needed(log: RunLog, unfinished: Iterable[CellResult]) -> CallTotals | None:
    """Estimate the cost of the rest. A trial is expected to cost the mean of its cell
    or, if no trial of the cell was run, the mean of the run. Return None if no trial
    was run at all.
    """
    counts, calls = log.trial_counts(), log.calls.by_cell()
    done = {key: sum(run for run, _ in own.values()) for key, own in counts.items()}
    total, whole = CallTotals(), (log.calls.totals(), sum(done.values()))
    for cell in unfinished:
        key = cell.plan.key
        spent, trials = (
            (calls[key].totals, done[key]) if key in calls and done.get(key) else whole
        )
        if not trials:
            return None
        subjects = cell.plan.subjects
        if cell.game is not None and cell.plan.sequential:
            ahead = cell.game.outlook
            subjects = min(subjects, ahead.subjects if ahead else subjects)
        share = max(0, subjects * cell.plan.trials - done.get(key, 0)) / trials
        total += CallTotals(
            prompt=round(spent.prompt * share),
            completion=round(spent.completion * share),
            cost=spent.cost * share,
        )
    return total


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
