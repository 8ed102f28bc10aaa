"""The best of several views: the paper's headline number, and two numbers that show its bias.

The maximum of several noisy proportions is biased upward: with ten trials per cell, a model exactly at the
rodent reference (mean 78.9 %) in each of three views is expected to score 89.0 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cheesebench.experiment.records import CellKey
from cheesebench.statistics.sample import Sample
from cheesebench.statistics.summary import BestOfViews, CellResult, ViewChoice

#: Results (1 or 0) of one half of the subjects (or trials), and of the other.
Halves = tuple[Sequence[int], Sequence[int]]


def best_of_views(cells: Sequence[CellResult], halves: Mapping[CellKey, Halves]) -> tuple[BestOfViews, ...]:
    """Return the best-of-views number of every model that has a protocol with rates in two views or more.

    ``cells`` are judged cells; ``halves`` maps ``CellPlan.key`` to ``halve`` of their samples.
    """
    groups: dict[tuple[str, str], dict[str, list[CellResult]]] = {}
    for cell in cells:
        if cell.rate is not None:
            groups.setdefault((cell.plan.model, str(cell.plan.variant)), {}).setdefault(cell.plan.protocol, []).append(
                cell
            )
    combined = []
    for (model, variant), protocols in groups.items():
        choices = [_choice(views, halves) for views in protocols.values() if len(views) > 1]
        if choices:
            combined.append(_combine(model, variant, choices))
    return tuple(combined)


def _combine(model: str, variant: str, choices: Sequence[ViewChoice]) -> BestOfViews:
    fitted = [choice.cross_fitted for choice in choices if choice.cross_fitted is not None]
    return BestOfViews(
        model=model,
        variant=variant,
        best=sum(choice.best for choice in choices) / len(choices),
        cross_fitted=sum(fitted) / len(fitted) if len(fitted) == len(choices) else None,
        equal_views=sum(choice.equal_views for choice in choices) / len(choices),
        protocols=tuple(choices),
    )


def _choice(cells: Sequence[CellResult], halves: Mapping[CellKey, Halves]) -> ViewChoice:
    rates = {cell.plan.view: cell.rate for cell in cells if cell.rate is not None}
    pooled = sum(cell.passed for cell in cells) / sum(cell.valid for cell in cells)
    return ViewChoice(
        protocol=cells[0].plan.protocol,
        rates=rates,
        best=max(rates.values()),
        cross_fitted=cross_fit([halves[cell.plan.key] for cell in cells]),
        equal_views=expected_maximum(pooled, [cell.effective_n for cell in cells]),
    )


def halve(sample: Sample) -> tuple[bytes, bytes]:
    """Return the results of every other subject and of the rest; with one subject, of every other trial."""
    results = [one.results for one in sample.per_subject if one.results]
    if len(results) == 1:
        return results[0][::2], results[0][1::2]
    return b"".join(results[::2]), b"".join(results[1::2])


def cross_fit(halves: Sequence[Halves]) -> float | None:
    """Return the rate of the view chosen on one half and scored on the other, averaged over both directions.

    ``halves`` has one pair per view. Views that tie where they are chosen share the score. None if a half is
    empty.
    """
    if not all(first and second for first, second in halves):
        return None
    rates = [(sum(first) / len(first), sum(second) / len(second)) for first, second in halves]
    scores = []
    for choose, score in ((0, 1), (1, 0)):
        best = max(pair[choose] for pair in rates)
        chosen = [pair[score] for pair in rates if pair[choose] == best]
        scores.append(sum(chosen) / len(chosen))
    return sum(scores) / 2


def expected_maximum(rate: float, sizes: Sequence[float]) -> float:
    """Return the expected maximum of independent proportions of one true ``rate`` over ``sizes`` trials.

    Sizes are rounded to whole (effective) trials, at least one.
    """
    import numpy as np
    from scipy.special import bdtr

    whole = [max(1, round(size)) for size in sizes]
    support = np.unique(np.concatenate([np.arange(n + 1) / n for n in whole]))
    # E[max] = sum of x (G(x) - G(x-)), with G the product of the binomial distribution functions; 1e-9 keeps
    # k / n * n from rounding below k.
    below = np.prod([bdtr(np.floor(support * n + 1e-9), n, rate) for n in whole], axis=0)
    return float(support @ np.diff(below, prepend=0.0))
