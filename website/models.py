"""The registered models, by family."""

from __future__ import annotations

from itertools import groupby

from cheesebench.chat import ModelEntry
from website.installed import PLUGINS
from website.markup import code, escape, sections, table


def models() -> str:
    """Return a table of models for each family."""
    entries = sorted(
        PLUGINS.models.values(), key=lambda entry: (entry.family.casefold(), entry.name)
    )
    parts = []
    for family, members in groupby(entries, key=lambda entry: entry.family):
        headers = [
            "name",
            "served by",
            "billions of parameters",
            "context, tokens",
            "pictures",
            "$ per million tokens",
            "note",
        ]
        parts += [
            f"## {escape(family or 'Others')}",
            table(headers, [_row(entry) for entry in members]),
        ]
    return sections(parts)


def _row(entry: ModelEntry) -> list[str]:
    price = entry.price
    figures = (price.prompt, price.cached, price.completion) if price else ()
    cost = " / ".join("–" if one is None else f"{one:g}" for one in figures)
    return [
        "<br>".join(map(code, (entry.name, *entry.aliases))),
        code(f"{entry.backend}/{entry.id}"),
        "" if entry.parameters is None else f"{entry.parameters:g}",
        "" if entry.context is None else f"{entry.context:,}",
        "yes" if entry.images else "",
        f"{cost} ({price.on.isoformat()})" if price else "",
        escape(entry.note),
    ]
