"""Published results of models on protocols of the same names: shown beside runs under the same rules, in no verdict."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cheesebench.experiment.records import CellPlan
from cheesebench.statistics.summary import PublishedRow

#: The edition whose rules the published numbers are under.
EDITION = "paper"
#: The views whose best the published headline is taken over.
TEXT_VIEWS = ("ascii_2d", "ascii_2d_fpv", "ascii_3d")
#: What a rate over these views is.
BEST = "best of three text views"


@lru_cache(maxsize=1)
def published() -> Mapping[str, Any]:
    """Return the data: ``label``, ``source``, ``models``, ``baselines`` and ``ablations`` (rates are proportions)."""
    text = files("cheesebench.published").joinpath("published.json").read_text(encoding="utf-8")
    content: Mapping[str, Any] = json.loads(text)
    return content


#: Said where protocols have the names of published ones, and other rules.
ELSEWHERE = (
    "Published numbers can be compared only with runs under the paper's own rules (--edition paper); these protocols "
    "have other rules."
)


def published_elsewhere(plans: Iterable[CellPlan]) -> bool:
    """Whether a run has paradigms of which something is published, but none under the rules of the paper."""
    names = {plan.protocol for plan in plans if not plan.in_words}
    known = published()["baselines"]["rodent"]["rates"]
    return any(name.partition("@")[0] in known for name in names) and not any(map(paradigm_of, names))


def paradigm_of(protocol: str) -> str:
    """Return the published paradigm that a protocol is; empty for protocols with other rules."""
    name, _, edition = protocol.partition("@")
    return name if edition == EDITION and name in published()["baselines"]["rodent"]["rates"] else ""


def published_rows(plans: Iterable[CellPlan]) -> tuple[PublishedRow, ...]:
    """Return the published rows for a run's protocols, best first; empty if no protocol has the paper's rules.

    For a run in one view, rates are those of that view; otherwise, the best of the text views for each protocol.
    Models of the run come first, animals and baselines last. The mean is over all published protocols and is given only
    if the run has all of them.
    """
    plans = list(plans)
    data = published()
    known = list(data["baselines"]["rodent"]["rates"])
    protocols = {name: plan.protocol for plan in plans if (name := paradigm_of(plan.protocol))}
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
            rates={protocols[one]: baseline["rates"][one] for one in known if one in protocols},
            overall=baseline["overall"] if len(protocols) == len(known) else None,
            how=data["label"],
            source=data["source"],
        )
        for name, baseline in data["baselines"].items()
        # The best of three is better than one, also of what looks at no picture.
        if baseline.get("views", len(chosen)) == len(chosen) and baseline.get("view", TEXT_VIEWS[0]) in chosen
    ]
    return (*rows, *baselines)


def published_ablation(study: str, plans: Iterable[CellPlan]) -> Mapping[str, float]:
    """Return the published mean rates of a study of the interface, by level (by model in ``ablation-vision``).

    They are means over the nine paradigms in ``ascii_2d``: empty for other studies, and for runs of fewer or other
    protocols or in another view.
    """
    axis, plans = study.removeprefix("ablation-"), list(plans)
    rates: Mapping[str, float] = published()["ablations"].get(axis, {}) if axis != study and axis != "source" else {}
    nine = {f"{name}@{EDITION}" for name in published()["baselines"]["rodent"]["rates"]}
    alike = {plan.protocol for plan in plans} == nine and {plan.view for plan in plans} == {TEXT_VIEWS[0]}
    return rates if alike else {}


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
    protocols: Mapping[str, str],
    known: list[str],
    views: tuple[str, ...],
) -> PublishedRow:
    complete = len(protocols) == len(known) and all(one in rates for one in known)
    where = views[0] if len(views) == 1 else BEST
    each = model["trials_each"].replace(" of each in a view", " trials each")
    return PublishedRow(
        model=name,
        rates={protocols[one]: rates[one] for one in known if one in protocols and one in rates},
        overall=sum(rates[protocol] for protocol in known) / len(known) if complete else None,
        how=f"{published()['label']}; {where}",
        where=f"{where.replace(BEST, 'best of 3 views')}; {each}",
        source=published()["source"],
        trials=f"{model['trials']}: {model['trials_each']}",
    )
