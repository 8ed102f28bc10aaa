"""Published results of models on protocols of the same names, shown beside runs under
the same rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from cheesebench.errors import UnknownNameError
from cheesebench.records import CellPlan

#: The edition with the rules of the published numbers.
EDITION = "paper"
#: Views whose best result is the published headline rate.
TEXT_VIEWS = ("ascii_2d", "ascii_2d_fpv", "ascii_3d")
#: Words for a rate that is the best of ``TEXT_VIEWS``.
BEST = "best of three text views"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """Published results of a model under the same rules, shown beside a run. They
    affect no verdict.
    """

    model: str
    rates: Mapping[str, float]
    """Protocol -> pass rate."""
    overall: float | None = None
    how: str = ""
    """The rules, and the views."""
    where: str = ""
    """The view, or a note that each rate is the best of several views, and the number
    of trials of each protocol.
    """
    trials: str = ""
    """Number of trials in all and of each protocol in a view, in words. It is empty if
    unknown.
    """
    source: str = ""


@lru_cache(maxsize=1)
def published() -> Mapping[str, Any]:
    """Return the data: ``label``, ``source``, ``models``, ``baselines`` and
    ``ablations`` (rates are proportions).
    """
    text = (
        files("cheesebench.published")
        .joinpath("published.json")
        .read_text(encoding="utf-8")
    )
    content: Mapping[str, Any] = json.loads(text)
    return content


#: Remark if protocols have published names but other rules.
ELSEWHERE = (
    "Published numbers can be compared only with runs under the paper's own rules (--edition paper); these protocols "
    "have other rules."
)


def published_elsewhere(plans: Iterable[CellPlan]) -> bool:
    """Return whether a run has published paradigms, but none under the rules of the
    paper.
    """
    names = {plan.protocol for plan in plans}
    known = published()["baselines"]["rodent"]["rates"]
    return any(name.partition("@")[0] in known for name in names) and not any(
        map(paradigm_of, names)
    )


def paradigm_of(protocol: str) -> str:
    """Return the published paradigm of a protocol, or "" for protocols with other
    rules.
    """
    name, _, edition = protocol.partition("@")
    return (
        name
        if edition == EDITION and name in published()["baselines"]["rodent"]["rates"]
        else ""
    )


def published_rows(plans: Iterable[CellPlan]) -> tuple[PublishedRow, ...]:
    """Return the published rows for a run's protocols, or an empty tuple if no protocol
    has the paper's rules.

    If the run has a single view that was published, the rates are from this view.
    Otherwise each rate is the best of the text views. The run's own models come first,
    then other models, each from the best mean to the worst. Animals and baselines come
    last. The mean is over all published protocols, and given only if the run has all of
    them.
    """
    plans = list(plans)
    data = published()
    known = list(data["baselines"]["rodent"]["rates"])
    protocols = {
        name: plan.protocol for plan in plans if (name := paradigm_of(plan.protocol))
    }
    if not protocols:
        return ()
    chosen = _compared_views({plan.view for plan in plans})
    own = {plan.model.casefold() for plan in plans}
    rows = [
        _row(name, model, _best(model["views"], chosen), protocols, known, chosen)
        for name, model in data["models"].items()
        if any(view in model["views"] for view in chosen)
    ]
    rows.sort(key=lambda row: (row.model.casefold() not in own, -(row.overall or 0.0)))
    return (*rows, *_baselines(protocols, chosen))


def _compared_views(views: Set[str]) -> tuple[str, ...]:
    """Return the published views to show beside a run in these views."""
    is_one_of_them = len(views) == 1 and views <= {*TEXT_VIEWS, "topdown_2d"}
    return tuple(views) if is_one_of_them else TEXT_VIEWS


def _baselines(
    protocols: Mapping[str, str], chosen: Sequence[str]
) -> Iterator[PublishedRow]:
    """Yield the rows of animals and baselines whose results were published for these
    views. ``protocols`` maps the paper's names to those of the run.
    """
    data = published()
    known = data["baselines"]["rodent"]["rates"]
    for name, baseline in data["baselines"].items():
        # Rates over another number of views are left out, because the best of three
        # views exceeds a single one, even for agents that do not look.
        if baseline.get("views", len(chosen)) != len(chosen):
            continue
        if baseline.get("view", TEXT_VIEWS[0]) not in chosen:
            continue
        rates = baseline["rates"]
        yield PublishedRow(
            model=f"{name}: {baseline['title']}",
            rates={protocols[one]: rates[one] for one in known if one in protocols},
            overall=baseline["overall"] if len(protocols) == len(known) else None,
            how=data["label"],
            source=data["source"],
        )


def published_ablation(study: str, plans: Iterable[CellPlan]) -> Mapping[str, float]:
    """Return the published mean rates of a study of the interface, by level (by model
    in ``ablation-vision``).

    They are means over the nine paradigms in ``ascii_2d``. The result is empty for any
    other study, other view, or other set of protocols.
    """
    axis, plans = study.removeprefix("ablation-"), list(plans)
    rates: Mapping[str, float] = (
        published()["ablations"].get(axis, {})
        if axis != study and axis != "source"
        else {}
    )
    nine = {f"{name}@{EDITION}" for name in published()["baselines"]["rodent"]["rates"]}
    alike = {plan.protocol for plan in plans} == nine and {
        plan.view for plan in plans
    } == {TEXT_VIEWS[0]}
    return rates if alike else {}


def _best(
    views: Mapping[str, Mapping[str, float]], chosen: Iterable[str]
) -> dict[str, float]:
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
        rates={
            protocols[one]: rates[one]
            for one in known
            if one in protocols and one in rates
        },
        overall=sum(rates[protocol] for protocol in known) / len(known)
        if complete
        else None,
        how=f"{published()['label']}; {where}",
        where=f"{where.replace(BEST, 'best of 3 views')}; {each}",
        source=published()["source"],
        trials=f"{model['trials']}: {model['trials_each']}",
    )


# -- ``--against MODEL``: a like-for-like comparison without a verdict, or a refusal
# A published number belongs to one subject under the paper's rules, with its trials,
# views and ``SETTINGS``, and a difference in these is a reason to refuse. But if a
# published model had fewer trials, only as many first trials of the run are compared,
# because a subject that learns is better in later ones.

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


def check_against(name: str) -> None:
    """Raise UnknownNameError unless there are published results of this model in
    arenas.
    """
    if name not in published()["models"]:
        remedy = (
            "Dialogues are compared by: cheesebench cogeval-stats RUN --published NAME"
        )
        raise UnknownNameError(
            "published model", name, published()["models"], remedy=remedy
        )


def why_not(name: str, plan: CellPlan, most_steps: int) -> str:
    """Return why a cell cannot be compared with a published model, and a remedy, or ""
    if it can.

    ``most_steps`` is the limit of a trial of the cell's protocol. ``name`` must be
    known (``check_against``).
    """
    paradigm, model = paradigm_of(plan.protocol), published()["models"][name]
    if not paradigm:
        return f"'{plan.protocol}' has other rules than the published numbers. Add --edition {EDITION} --design paper."
    if str(plan.variant):
        return "There are no published results for controls or studies (--against). Leave --control and --study out."
    if plan.view not in model["views"] or paradigm not in model["views"][plan.view]:
        return f"'{name}' was published in {', '.join(model['views'])}, not in '{plan.view}'. Choose another --view."
    if plan.design != "paper":
        return f"'{name}' was published as one subject under the paper's design. Add --design paper."
    if plan.subjects != 1:
        return f"'{name}' was published as one subject; this run has {plan.subjects}. Leave --subjects out."
    limit = steps_of(model)
    if limit is not None and most_steps > limit:
        return (
            f"'{name}' was run with at most {limit} steps a trial; '{plan.protocol}' has {most_steps}. "
            "Choose protocols with no more steps (--protocols)."
        )
    return next(_other_settings(name, plan), "")


def _other_settings(name: str, plan: CellPlan) -> Iterator[str]:
    for key, (published_value, option) in SETTINGS.items():
        if key in plan.settings and (own := str(plan.settings[key])) != str(
            published_value
        ):
            # A custom prompt is too long to be shown.
            shown = own if len(own.split()) == 1 else "a prompt of its own"
            given = f"{option}{'' if option.endswith('=') else ' '}{published_value}"
            yield f"'{name}' was published with {given}; this run has {shown}."


def steps_of(model: Mapping[str, Any]) -> int | None:
    """Return the maximum number of steps in a trial of a published model, or None for
    the models of Table 1.
    """
    found = re.search(r"at most (\d+) steps", model["trials_each"])
    return int(found[1]) if found else None


def trials_of(model: Mapping[str, Any], planned: int) -> int:
    """Return how many trials of each protocol a published model had in a view.
    ``planned`` is the number for the models of Table 1.
    """
    found = re.match(r"(\d+) of each", model["trials_each"])
    return int(found[1]) if found else planned
