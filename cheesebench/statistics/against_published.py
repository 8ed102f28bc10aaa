"""``--against MODEL`` where something is walked through: like is compared with like, in no verdict, or refused.

A published number is of one subject under the paper's rules, with its trials, views and settings. Whatever differs is
a reason to refuse. Only where a published model had fewer trials, this many first trials of the run are compared: a
subject that learns is better in later ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cheesebench.errors import UnknownNameError
from cheesebench.experiment.records import CellPlan
from cheesebench.statistics.published import EDITION, paradigm_of, published
from cheesebench.statistics.summary import PublishedContrast

#: The published settings of a language model, with the option that sets each.
SETTINGS: Mapping[str, tuple[Any, str]] = {
    "history": ("5", "--history"),
    "actions": (8, "--actions"),
    "temperature": (0.7, "--temperature"),
    "prompt": ("default", "--prompt"),
    "learnings": (500, "--agent-option learnings="),
    "observations": ("full", "--agent-option observations="),
    "unparsed": ("noop", "--agent-option unparsed="),
}
#: Level of the intervals.
_Z = 1.959964


def check_against(name: str) -> None:
    """Raise UnknownNameError unless something is published of a model on what is walked through."""
    if name not in published()["models"]:
        remedy = "Dialogues are compared by: cheesebench cogeval-stats RUN --published NAME"
        raise UnknownNameError("published model", name, published()["models"], remedy=remedy)


def why_not(name: str, plan: CellPlan, most_steps: int) -> str:
    """Return why a cell cannot be compared with a published model of that name, and what to do; empty if it can.

    ``most_steps`` is the limit of a trial of the cell's protocol; the name has been checked.
    """
    paradigm, model = paradigm_of(plan.protocol), published()["models"][name]
    if not paradigm:
        return f"'{plan.protocol}' has other rules than the published numbers. Run --edition {EDITION} --design paper."
    if str(plan.variant):
        return "There are no published results for controls or studies (--against). Leave --control and --study out."
    if plan.view not in model["views"] or paradigm not in model["views"][plan.view]:
        return f"'{name}' was published in {', '.join(model['views'])}, not in '{plan.view}'. Choose another --view."
    if plan.design != "paper":
        return f"'{name}' was published as one subject under the paper's design. Run --design paper."
    if plan.subjects != 1:
        return f"'{name}' was published as one subject; this run has {plan.subjects}. Leave --subjects out."
    limit = steps_of(model)
    if limit is not None and most_steps > limit:
        return (
            f"'{name}' was run with at most {limit} steps a trial; '{plan.protocol}' has {most_steps}. "
            "Choose protocols with no more, such as t_maze@paper (--protocols)."
        )
    return next(_other_settings(name, plan), "")


def _other_settings(name: str, plan: CellPlan) -> Iterator[str]:
    for key, (published_value, option) in SETTINGS.items():
        if key in plan.settings and (own := str(plan.settings[key])) != str(published_value):
            # A prompt of one's own is a text of many lines.
            shown = own if len(own.split()) == 1 else "a prompt of its own"
            given = f"{option}{'' if option.endswith('=') else ' '}{published_value}"
            yield f"'{name}' was published with {given}; this run has {shown}."


def steps_of(model: Mapping[str, Any]) -> int | None:
    """Return the most steps of a trial that a published model had; None for those of Table 1."""
    found = re.search(r"at most (\d+) steps", model["trials_each"])
    return int(found[1]) if found else None


def trials_of(model: Mapping[str, Any], planned: int) -> int:
    """Return how many trials of each protocol a published model had in a view; ``planned`` are those of Table 1."""
    found = re.match(r"(\d+) of each", model["trials_each"])
    return int(found[1]) if found else planned


def against_published(name: str | None, cells: Iterable[tuple[CellPlan, bytes]]) -> tuple[PublishedContrast, ...]:
    """Return every cell beside the published number of a model; empty without a name, or if nothing was published.

    ``cells`` have 1 or 0 for every trial that was scored, in order.
    """
    model = published()["models"].get(name)
    if name is None or model is None:
        return ()
    return tuple(
        _contrast(name, model, plan, results)
        for plan, results in cells
        if paradigm_of(plan.protocol) in model["views"].get(plan.view, ()) and results and plan.trials
    )


def _contrast(name: str, model: Mapping[str, Any], plan: CellPlan, results: bytes) -> PublishedContrast:
    theirs = model["views"][plan.view][paradigm_of(plan.protocol)]
    trials = trials_of(model, plan.trials)
    first = results[:trials]
    rate = sum(first) / len(first)
    low, high = difference_limits(rate, len(first), theirs, trials)
    return PublishedContrast(
        model=name, protocol=plan.protocol, view=plan.view, rate=rate, trials=len(first),
        published=theirs, published_trials=trials, low=low, high=high,
    )  # fmt: skip


def difference_limits(rate: float, trials: int, other: float, others: int) -> tuple[float, float]:
    """Return the 95 % limits of a difference of two proportions of independent trials (Newcombe 1998, method 10)."""
    (low, high), (other_low, other_high) = _wilson(rate, trials), _wilson(other, others)
    difference = rate - other
    return (
        difference - math.hypot(rate - low, other_high - other),
        difference + math.hypot(high - rate, other - other_low),
    )


def _wilson(rate: float, trials: int) -> tuple[float, float]:
    square = _Z * _Z / trials
    middle, reach = rate + square / 2, _Z * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials))
    return (middle - reach) / (1 + square), (middle + reach) / (1 + square)
