"""``cheesebench models``: lists the registered models, their backends and prices."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cheesebench.chat import BackendContext, ModelEntry, Price
from cheesebench.commands.common import add_json, add_option, describe, paragraph, table
from cheesebench.errors import OptionError, PluginError, UnknownNameError
from cheesebench.experiment.language_models import backend_errors_explained
from cheesebench.models import known_models, user_models
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.redaction import redact
from cheesebench.terminal import printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Lists the known models. Any other model can be named BACKEND/ID. Prices are in dollars per million prompt "
        "tokens, cached prompt tokens and reply tokens.",
        "",
        "qwen",
        "--models my_models.yaml --json",
        "qwen2.5-coder --check",
    )
    parser.add_argument(
        "part",
        nargs="?",
        default="",
        metavar="PART",
        help="show only models with this text in their name, alias, family, backend or id",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="say whether each model can be called, and if not, why; the exit code is 1 if the answer is no for all",
    )
    add_option(parser, "models")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    plugins = installed_plugins()
    entries = list(known_models(plugins, user_models(options.models)).values())
    matching = [entry for entry in entries if _has(entry, options.part.casefold())]
    if not matching:
        raise OptionError(
            f"No model matches '{options.part}'. Leave it out to list all {len(entries)}."
        )
    if options.check:
        return _check(plugins, matching, as_json=options.json)
    # The JSON is pure ASCII, so a third-party list cannot harm a terminal.
    print(
        json.dumps(as_values(matching), indent=2)
        if options.json
        else printable(redact(as_text(matching)))
    )
    return 0


def _check(
    plugins: PluginManager, entries: Sequence[ModelEntry], *, as_json: bool
) -> int:
    """Print whether each model can be called. Return 1 if the answer is "no" for all of
    them.
    """
    found = [checked(plugins, entry) for entry in entries]
    names = ("model", "ready", "says")
    if as_json:
        print(json.dumps([dict(zip(names, row, strict=True)) for row in found]))
    else:
        print(printable(redact(table(names, found))))
    return 0 if any(ready != "no" for _, ready, _ in found) else 1


def checked(plugins: PluginManager, entry: ModelEntry) -> tuple[str, str, str]:
    """Return a model's name, whether it can be called now ("yes", "no", or "" if
    unknown), and what its backend says, or the error.
    """
    try:
        backend = plugins.backend(entry.backend)
        if backend.check is None:
            return entry.name, "", f"the backend {backend.name} cannot tell"
        context = BackendContext(
            entry=entry, directory=Path(), options=dict(entry.options)
        )
        with backend_errors_explained(backend.name, "checking what there is"):
            return entry.name, "yes", backend.check(context)
    except (OptionError, PluginError, UnknownNameError) as error:
        return entry.name, "no", str(error)


def as_values(entries: Iterable[ModelEntry]) -> list[dict[str, Any]]:
    values = []
    for entry in entries:
        value = dataclasses.asdict(entry)
        if entry.price is not None:
            value["price"]["on"] = entry.price.on.isoformat()
        values.append(_redacted(value))
    return values


def _redacted(value: Any) -> Any:
    """Return JSON values without secrets. A user's list of models may contain API keys
    where names of variables belong.
    """
    if isinstance(value, Mapping):
        return {name: _redacted(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(inner) for inner in value]
    return redact(value) if isinstance(value, str) else value


def as_text(entries: Sequence[ModelEntry]) -> str:
    rows = [
        [
            entry.name,
            f"{entry.backend}/{entry.id}",
            "" if entry.context is None else f"{entry.context:,}",
            "yes" if entry.images else "",
            _price(entry.price),
        ]
        for entry in entries
    ]
    days = sorted({entry.price.on.isoformat() for entry in entries if entry.price})
    remarks = (
        [f"Prices of {' to '.join(dict.fromkeys((days[0], days[-1])))}."]
        if days
        else []
    )
    remarks += [
        f"{entry.name}: {said}" for entry in entries if (said := _remark(entry))
    ]
    headers = ["model", "backend/id", "context", "images", "$ per million tokens"]
    return "\n".join([table(headers, rows), "", *map(paragraph, remarks)]).rstrip()


def _has(entry: ModelEntry, part: str) -> bool:
    facts = (entry.name, entry.backend, entry.id, entry.family, *entry.aliases)
    return any(part in fact.casefold() for fact in facts)


def _price(price: Price | None) -> str:
    if price is None:
        return ""
    return " / ".join(
        "-" if one is None else f"{one:g}"
        for one in (price.prompt, price.cached, price.completion)
    )


def _remark(entry: ModelEntry) -> str:
    written = None if entry.price is None else entry.price.written
    return "; ".join(
        [
            *(
                []
                if written is None
                else [f"${written:g} per million tokens written to the cache"]
            ),
            *([f"licence {entry.licence}"] if entry.licence else []),
            *filter(None, [entry.note]),
        ]
    )
