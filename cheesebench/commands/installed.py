"""Collects what is installed, as data for ``cheesebench list`` and its Python
function.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cheesebench.chat import ModelAgentSpec
from cheesebench.commands.common import shown_path
from cheesebench.dialogue import RespondentSpec
from cheesebench.errors import ProtocolError
from cheesebench.family import Listing
from cheesebench.interface_checks import blaming, returned
from cheesebench.interfaces import AgentSpec, BaseSpecification
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import SUFFIX, Catalogue

#: The rows of each family's table of protocols. A row maps headings to cells.
Tables = dict[str, list[dict[str, object]]]


def collect(
    plugins: PluginManager, catalogue: Catalogue
) -> tuple[dict[str, Any], Tables]:
    """Return everything installed as JSON values, and the protocols as rows of tables.

    A broken file, or a plugin that cannot be loaded, does not affect the others.
    """
    listed, tables = protocols(plugins, catalogue)
    return {**listed, **others(plugins)}, tables


def protocols(
    plugins: PluginManager, catalogue: Catalogue
) -> tuple[dict[str, Any], Tables]:
    """Return the protocols as JSON values, and as rows of tables."""
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
    }
    return sections, tables


def others(plugins: PluginManager) -> dict[str, Any]:
    """Return what is installed besides protocols."""
    return {
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


def _files(catalogue: Catalogue) -> Iterator[tuple[str, Path]]:
    """Yield the files of all protocols, each with the name of the folder by which it
    can be run (empty if it needs none).
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
