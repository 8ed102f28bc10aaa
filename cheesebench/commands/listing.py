"""``cheesebench list``: protocols, agents, backends, views, report formats and
executors, and broken ones.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cheesebench.chat import ModelAgentSpec
from cheesebench.commands.common import (
    add_json,
    counted,
    describe,
    installed_catalogue,
    paragraph,
    shown_path,
    table,
)
from cheesebench.dialogue import RespondentSpec
from cheesebench.errors import ProtocolError
from cheesebench.family import Listing
from cheesebench.interface_checks import blaming, returned
from cheesebench.interfaces import AgentSpec, BaseSpecification
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "Lists protocols, agents, backends, views and report formats."
    describe(parser, about, "", "--json")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    plugins = installed_plugins()
    found, tables = collect(plugins, installed_catalogue())
    # JSON is pure ASCII, so names of third-party plugins cannot harm a terminal.
    print(json.dumps(found, indent=2) if options.json else _as_text(found, tables))
    return 0


#: Table rows of the protocols of each family: cells by heading.
Tables = dict[str, list[dict[str, object]]]


def collect(
    plugins: PluginManager, catalogue: Catalogue
) -> tuple[dict[str, Any], Tables]:
    """Return everything installed as JSON values, and the protocols as rows of tables.

    A broken file or plugin does not affect the others.
    """
    tables: Tables = {family.plural: [] for family in plugins.families.values()}
    listed: dict[str, list[dict[str, Any]]] = {name: [] for name in tables}
    broken = []
    for folder, path in _files(catalogue):
        try:
            specification = catalogue.load(path)
            family = plugins.family(specification)
            with blaming(who := f"The family '{family.name}': listing"):
                listing = returned(family.listing(specification), Listing, who)
            listed[family.plural].append(_describe(specification, listing, folder))
            tables[family.plural].append(_row(specification, listing, folder))
        except ProtocolError as error:
            broken.append({"file": shown_path(path), "errors": list(error.lines)})
    sections = {
        **listed,
        "broken_protocols": broken,
        "shadowed_protocols": catalogue.shadowed,
        "agents": [
            *map(_describe_agent, plugins.agents.values()),
            *map(_describe_agent, plugins.respondents.values()),
            *map(_describe_agent, plugins.model_agents.values()),
        ],
        "backends": [
            {
                "name": backend.name,
                "options": dict(backend.options),
                "summary": backend.summary,
            }
            for backend in plugins.backends.values()
        ],
        "views": list(plugins.views),
        "report_formats": list(plugins.reporters),
        "executors": [
            {"name": spec.name, "summary": spec.summary}
            for spec in plugins.executors.values()
        ],
        "broken_plugins": plugins.failures,
    }
    return sections, tables


def _files(catalogue: Catalogue) -> Iterator[tuple[str, Path]]:
    """Yield the files of all protocols, each with its folder (empty for none), by which
    it can be run.
    """
    for path in catalogue.files.values():
        yield "", path
    for name, folder in catalogue.folders.items():
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            yield name, path


def _describe_agent(
    agent: AgentSpec | RespondentSpec | ModelAgentSpec,
) -> dict[str, Any]:
    return {"name": agent.name, "memory": agent.memory, "summary": agent.summary}


def _describe(
    specification: BaseSpecification, listing: Listing, folder: str
) -> dict[str, Any]:
    return {
        **({"family": folder} if listing.by_folder else {}),
        "name": specification.name,
        "edition": specification.edition,
        "title": specification.title,
        **listing.values,
        "file": shown_path(specification.path),
    }


def _row(
    specification: BaseSpecification, listing: Listing, folder: str
) -> dict[str, object]:
    (heading, name), *rest = listing.row.items()
    by = {"run by": folder} if listing.by_folder else {}
    return {heading: name, **by, **dict(rest), "file": shown_path(specification.path)}


def _as_text(found: dict[str, Any], tables: Tables) -> str:
    agents = [
        [agent["name"], agent["memory"], agent["summary"]] for agent in found["agents"]
    ]
    backends = [[backend["name"], backend["summary"]] for backend in found["backends"]]
    parts = [
        *(_protocols(rows) for rows in tables.values() if rows),
        table(["agent", "memory", ""], agents),
        table(["backend", ""], backends),
        "\n".join(
            paragraph(f"{what}: {', '.join(names)}")
            for what, names in (
                ("views", found["views"]),
                ("report formats", found["report_formats"]),
                ("executors", [one["name"] for one in found["executors"]]),
            )
        ),
    ]
    remarks = [
        f"{one['file']} has {counted(len(one['errors']), 'error')}; the first is {one['errors'][0]}"
        for one in found["broken_protocols"]
    ]
    remarks += found["shadowed_protocols"]
    remarks += [
        f"The plugin {name} cannot be loaded: {reason}"
        for name, reason in found["broken_plugins"].items()
    ]
    return "\n\n".join(
        [*parts, "\n".join(map(paragraph, remarks))] if remarks else parts
    )


def _protocols(rows: list[dict[str, object]]) -> str:
    """Return the table of a family's protocols, without the paths that the JSON has.
    Editions are part of the names.
    """
    own = [
        {name: value for name, value in row.items() if name not in ("edition", "file")}
        for row in rows
    ]
    return table(list(own[0]), [list(row.values()) for row in own])
