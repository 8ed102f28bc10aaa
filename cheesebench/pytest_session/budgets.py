"""The budgets with which a run that has spent its own can go on."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from decimal import ROUND_UP, Decimal

from cheesebench.experiment.records import CellPlan
from cheesebench.planning.continuation import still_needed
from cheesebench.pytest_session.run import Run


def larger_budgets(run: Run, unfinished: Sequence[CellPlan]) -> tuple[dict[str, str], str]:
    """Return budgets of the whole run, by the option's key, and lines that say why they are what they are.

    They suffice for what the rest is estimated to take; without an estimate they are doubled, because with what they
    were nothing would go on. Minutes are those of a session, so that the next one has as many again.
    """
    log, limits, found = run.log, run.settings.calls.limits, dict[str, str]()
    assert log is not None
    spent, parts, doubled = log.calls.totals(), list[str](), False
    needed = still_needed(log, unfinished, run.settings.language, run.settings.results)
    tokens = spent.prompt + spent.completion
    for key, limit, so_far, more, unit in (
        ("max_cost", limits.cost, spent.cost, None if needed is None else needed.dollars, "${:,.2f}"),
        ("max_tokens", limits.tokens, tokens, None if needed is None else needed.tokens, "{:,.0f} tokens"),
    ):
        if limit is None:
            continue
        said = f"{unit.format(so_far)} spent so far"
        if more is None:
            doubled = True
            found[key] = _rounded_up(2 * max(limit, so_far))
        else:
            said += f", at most about {unit.format(float(_rounded_up(more)))} more needed"
            if so_far + more > limit:
                found[key] = _rounded_up(so_far + more)
        parts.append(said)
    if not found:
        return {}, ""
    why = ". What the rest takes cannot be estimated yet, so the budget is doubled." if doubled else "."
    return found, textwrap.fill("; ".join(parts) + why, 80, break_on_hyphens=False) + "\n"


def _rounded_up(value: float) -> str:
    """Return a number with two digits: enough for a sum that somebody is to decide on."""
    exact = Decimal(str(value))
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_UP):f}"
