"""The published numbers, from the file that reports use."""

from __future__ import annotations

from collections.abc import Mapping

from cheesebench.published import published
from website.markup import code, escape, sections, table


def numbers() -> str:
    """Return all published rates in percent: those of models by view, of baselines, and
    of ablations.
    """
    data = published()
    names = list(data["baselines"]["rodent"]["rates"])
    headers = ["model", "view", "trials", *map(code, names), "mean"]
    models = [
        [
            escape(model["title"]),
            code(view),
            escape(model["trials_each"]),
            *_cells(rates, names),
        ]
        for model in data["models"].values()
        for view, rates in model["views"].items()
    ]
    overall = [
        [escape(m["title"]), str(m["trials"]), _percent(m["overall"])]
        for m in data["models"].values()
    ]
    baselines = [
        [escape(name), escape(one["title"]), *_cells(one["rates"], names)]
        for name, one in data["baselines"].items()
    ]
    ablations = [
        [axis, escape(level), _percent(rate)]
        for axis, rates in data["ablations"].items()
        if isinstance(rates, Mapping)
        for level, rate in rates.items()
    ]
    return sections(
        [
            "### Best of three text views", table(["model", "trials in all", "mean"], overall),
            "### By view", table(headers, models),
            "### Baselines", table(["baseline", "what", *map(code, names), "mean"], baselines),
            "### Ablations", escape(data["ablations"]["source"]), table(["study", "level", "mean"], ablations),
        ]
    )  # fmt: skip


def _cells(rates: Mapping[str, float], names: list[str]) -> list[str]:
    known = [rates[name] for name in names if name in rates]
    return [
        *(_percent(rates[name]) if name in rates else "–" for name in names),
        _percent(sum(known) / len(known)),
    ]


def _percent(rate: float) -> str:
    return f"{rate:.1%}".removesuffix("%")
