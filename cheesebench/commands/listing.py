"""``cheesebench list``: lists protocols, agents, backends, views, report formats and
executors, and which protocols and plugins are broken.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from cheesebench.commands import installed
from cheesebench.commands.common import (
    add_json,
    counted,
    describe,
    installed_catalogue,
    paragraph,
    table,
)
from cheesebench.plugin_manager import installed_plugins


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "Lists protocols, agents, backends, views, report formats and executors."
    describe(parser, about, "", "--json")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    plugins = installed_plugins()
    found, tables = installed.collect(plugins, installed_catalogue())
    # The JSON is pure ASCII, so names of third-party plugins cannot harm a terminal.
    print(json.dumps(found, indent=2) if options.json else _as_text(found, tables))
    return 0


def _as_text(found: dict[str, Any], tables: installed.Tables) -> str:
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
    remarks = [_broken(one["file"], one["errors"]) for one in found["broken_protocols"]]
    remarks += found["shadowed_protocols"]
    remarks += [
        f"The plugin {name} cannot be loaded: {reason}"
        for name, reason in found["broken_plugins"].items()
    ]
    return "\n\n".join(
        [*parts, "\n".join(map(paragraph, remarks))] if remarks else parts
    )


def _broken(file: str, errors: list[str]) -> str:
    first = "; the first is" if len(errors) > 1 else ":"
    return f"{file} has {counted(len(errors), 'error')}{first} {errors[0]}"


def _protocols(rows: list[dict[str, object]]) -> str:
    """Return the table of a family's protocols, without their paths and editions. (The
    JSON has the paths, and the names contain the editions.)
    """
    own = [
        {name: value for name, value in row.items() if name not in ("edition", "file")}
        for row in rows
    ]
    return table(list(own[0]), [list(row.values()) for row in own])
