"""What has been published of models on protocols of the same names: to be looked at, never to be compared with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cheesebench.experiment.records import CellPlan
from cheesebench.statistics.summary import PublishedRow

#: The views whose best the published headline is taken over.
TEXT_VIEWS = ("ascii_2d", "ascii_2d_fpv", "ascii_3d")


@lru_cache(maxsize=1)
def published() -> Mapping[str, Any]:
    """Return the data: ``label``, ``source``, ``models``, ``baselines`` and ``ablations`` (rates are proportions)."""
    text = files("cheesebench.published").joinpath("published.json").read_text(encoding="utf-8")
    content: Mapping[str, Any] = json.loads(text)
    return content


def published_rows(plans: Iterable[CellPlan]) -> tuple[PublishedRow, ...]:
    """Return the published rows for the protocols of a run, best first; none where no protocol has the same name.

    A run in one view is shown the rates of that view, a run in several the best of the text views for each protocol.
    Models of the run come before all others, the animals and the baselines last. The mean is over all protocols that
    were published, and only given where the run has them all.
    """
    plans = list(plans)
    data = published()
    known = list(data["baselines"]["rodent"]["rates"])
    protocols = {plan.protocol for plan in plans} & set(known)
    if not protocols:
        return ()
    views = {plan.view for plan in plans}
    chosen = tuple(views) if len(views) == 1 and views <= {*TEXT_VIEWS, "topdown_2d"} else TEXT_VIEWS
    own = {plan.model.casefold() for plan in plans}
    rows = [
        _row(name, model, _best(model["views"], chosen), protocols, known, chosen)
        for name, model in data["models"].items()
        if any(view in model["views"] for view in chosen)
    ]
    rows.sort(key=lambda row: (row.model.casefold() not in own, -(row.overall or 0.0)))
    baselines = [
        PublishedRow(
            model=f"{name}: {baseline['title']}",
            rates={protocol: baseline["rates"][protocol] for protocol in known if protocol in protocols},
            overall=baseline["overall"] if protocols == set(known) else None,
            how=data["label"],
            source=data["source"],
        )
        for name, baseline in data["baselines"].items()
    ]
    return (*rows, *baselines)


def _best(views: Mapping[str, Mapping[str, float]], chosen: Iterable[str]) -> dict[str, float]:
    best: dict[str, float] = {}
    for view in chosen:
        for protocol, rate in views.get(view, {}).items():
            best[protocol] = max(rate, best.get(protocol, 0.0))
    return best


def _row(
    name: str,
    model: Mapping[str, Any],
    rates: Mapping[str, float],
    protocols: set[str],
    known: list[str],
    views: tuple[str, ...],
) -> PublishedRow:
    complete = protocols == set(known) and all(protocol in rates for protocol in known)
    where = views[0] if len(views) == 1 else "best of three text views"
    return PublishedRow(
        model=name,
        rates={protocol: rates[protocol] for protocol in known if protocol in protocols and protocol in rates},
        overall=sum(rates[protocol] for protocol in known) / len(known) if complete else None,
        how=f"{published()['label']}; {where}, {model['trials']} trials in all",
        source=published()["source"],
    )
