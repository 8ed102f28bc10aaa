"""``cheesebench list``: protocols, agents, backends, views and report formats, and what of them is broken."""

from __future__ import annotations

import argparse
import json
from typing import Any

from cheesebench.chat import ModelAgentSpec
from cheesebench.commands.common import counted, installed_catalogue, one_line, shown_path, table
from cheesebench.dialogue import RespondentSpec
from cheesebench.errors import ProtocolError
from cheesebench.interfaces import AgentSpec
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.protocol import SUFFIX, Catalogue, DialogueSpecification, Specification


def run(options: argparse.Namespace) -> int:
    """Print everything that can be named."""
    plugins = installed_plugins()
    found = collect(plugins, installed_catalogue())
    # JSON is pure ASCII, so whatever a stranger's plugin calls itself, a terminal is safe.
    print(json.dumps(found, indent=2) if options.json else _as_text(found))
    return 0


def collect(plugins: PluginManager, catalogue: Catalogue) -> dict[str, Any]:
    """Return all that is installed as JSON values; a broken file or plugin takes nothing else down."""
    protocols, dialogues, broken = [], [], []
    inside = [(name, path) for name, folder in catalogue.folders.items() for path in sorted(folder.glob(f"*{SUFFIX}"))]
    for family, path in [*(("", path) for path in catalogue.files.values()), *inside]:
        try:
            specification = catalogue.load_any(path)
            if isinstance(specification, Specification):
                protocols.append(_describe(specification))
            else:
                dialogues.append({"family": family, **_describe_dialogue(specification)})
        except ProtocolError as error:
            broken.append({"file": shown_path(path), "errors": str(error).splitlines()})
    return {
        "protocols": protocols,
        "dialogues": dialogues,
        "broken_protocols": broken,
        "shadowed_protocols": catalogue.shadowed,
        "agents": [
            *(_describe_agent(agent) for agent in plugins.agents.values()),
            *(_describe_agent(agent) for agent in plugins.respondents.values()),
            *(_describe_agent(agent) for agent in plugins.model_agents.values()),
        ],
        "backends": [
            {"name": backend.name, "options": dict(backend.options), "summary": backend.summary}
            for backend in plugins.backends.values()
        ],
        "views": list(plugins.views),
        "report_formats": list(plugins.reporters),
        "broken_plugins": plugins.failures,
    }


def _describe_agent(agent: AgentSpec | RespondentSpec | ModelAgentSpec) -> dict[str, Any]:
    return {"name": agent.name, "memory": agent.memory, "summary": agent.summary}


def _describe(specification: Specification) -> dict[str, Any]:
    document = specification.document
    rates = [reference.value for reference in document.reference if reference.measure == "success"]
    return {
        "name": specification.name,
        "edition": specification.edition,
        "title": specification.title,
        "dimension": document.dimension,
        "trials": specification.planned_trials,
        "limit": specification.limit,
        "reference": rates[0] if rates else None,
        "random": document.chance.value if document.chance else None,
        "file": shown_path(specification.path),
    }


def _describe_dialogue(specification: DialogueSpecification) -> dict[str, Any]:
    graph = specification.document.arena.graph
    return {
        "name": specification.name,
        "edition": specification.edition,
        "title": specification.title,
        "dimension": specification.document.dimension,
        "nodes": len(specification.world.nodes),
        "edges": len(graph.edges),
        "domains": list(specification.domains),
        "conditions": list(specification.conditions),
        "file": shown_path(specification.path),
    }


def _as_text(found: dict[str, Any]) -> str:
    rows = [
        [
            protocol["name"],
            protocol["edition"],
            protocol["dimension"],
            f"{protocol['trials']} x {protocol['limit']}",
            _rate(protocol["reference"]),
            _rate(protocol["random"]),
            protocol["file"],
        ]
        for protocol in found["protocols"]
    ]
    headers = ["protocol", "edition", "dimension", "trials x limit", "rodent", "random", "file"]
    dialogues = [
        [
            one["name"],
            one["family"],
            one["title"],
            f"{one['nodes']} / {one['edges']}",
            f"{len(one['domains'])} x {len(one['conditions'])}",
            one["file"],
        ]
        for one in found["dialogues"]
    ]
    shape = ["dialogue", "run by", "title", "nodes / edges", "domains x conditions", "file"]
    agents = [[agent["name"], agent["memory"], agent["summary"]] for agent in found["agents"]]
    backends = [[backend["name"], backend["summary"]] for backend in found["backends"]]
    parts = [
        table(headers, rows),
        *([table(shape, dialogues)] if dialogues else []),
        table(["agent", "memory", ""], agents),
        table(["backend", ""], backends),
        f"views: {_joined(found['views'])}\nreport formats: {_joined(found['report_formats'])}",
    ]
    remarks = [
        f"{one_line(one['file'])} has {counted(len(one['errors']), 'error')}; the first is {one_line(one['errors'][0])}"
        for one in found["broken_protocols"]
    ]
    remarks += map(one_line, found["shadowed_protocols"])
    remarks += [
        f"The plugin {one_line(name)} cannot be loaded: {one_line(reason)}"
        for name, reason in found["broken_plugins"].items()
    ]
    return "\n\n".join([*parts, "\n".join(remarks)] if remarks else parts)


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _joined(names: list[str]) -> str:
    return ", ".join(map(one_line, names))
