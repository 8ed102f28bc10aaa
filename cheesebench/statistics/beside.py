"""Compares a run with a model's published numbers, obtained under the same rules
(``--against``). The comparison affects no verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cheesebench.published import paradigm_of, published, trials_of
from cheesebench.records import CellPlan
from cheesebench.statistics.intervals import quantile, wilson
from cheesebench.statistics.summary import PublishedContrast


def against_published(
    name: str | None, cells: Iterable[tuple[CellPlan, bytes]]
) -> tuple[PublishedContrast, ...]:
    """Compare cells with the rates that the model ``name`` has in the published data. A
    cell is left out if it has no results, or the model has no rate for it. The tuple is
    empty if ``name`` is None or unknown.

    ``cells`` pairs each plan with the results of its scored trials, 1 or 0, in order.
    """
    model = published()["models"].get(name)
    if name is None or model is None:
        return ()
    return tuple(
        _contrast(name, model, plan, results)
        for plan, results in cells
        if paradigm_of(plan.protocol) in model["views"].get(plan.view, ())
        and results
        and plan.trials
    )


def _contrast(
    name: str, model: Mapping[str, Any], plan: CellPlan, results: bytes
) -> PublishedContrast:
    theirs = model["views"][plan.view][paradigm_of(plan.protocol)]
    trials = trials_of(model, plan.trials)
    first = results[:trials]
    rate = sum(first) / len(first)
    low, high = difference_limits(rate, len(first), theirs, trials)
    return PublishedContrast(
        model=name, protocol=plan.protocol, view=plan.view, rate=rate, trials=len(first),
        published=theirs, published_trials=trials, low=low, high=high,
    )  # fmt: skip


def difference_limits(
    rate: float, trials: int, other: float, others: int
) -> tuple[float, float]:
    """Return the 95 % limits of ``rate - other``. Both are proportions: ``rate`` over
    ``trials`` independent trials, and ``other`` over ``others`` (Newcombe 1998, method
    10).
    """
    (low, high), (other_low, other_high) = (
        map(float, wilson(one, count, quantile(0.025, None)))
        for one, count in ((rate, trials), (other, others))
    )
    difference = rate - other
    return (
        difference - ((rate - low) ** 2 + (other_high - other) ** 2) ** 0.5,
        difference + ((high - rate) ** 2 + (other - other_low) ** 2) ** 0.5,
    )
