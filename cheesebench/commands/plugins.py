"""``cheesebench plugins``: shows where each plugin comes from, what it supplies, and
why one could not be loaded.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import inspect
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from cheesebench import __version__, plugin_manager
from cheesebench.commands import COMMANDS, common
from cheesebench.errors import CheeseBenchError
from cheesebench.hookspecs import API_VERSION, PROJECT

#: Name of the distribution that has the built-in plugins.
OURS = "pytest-cheesebench"
#: The hooks that supply named items, each with a plural noun for its items.
_SUPPLIES = {
    "cheesebench_agents": "agents",
    "cheesebench_model_agents": "model agents",
    "cheesebench_respondents": "respondents",
    "cheesebench_backends": "backends",
    "cheesebench_models": "models",
    "cheesebench_views": "views",
    "cheesebench_protocols": "protocols",
    "cheesebench_families": "families",
    "cheesebench_executors": "executors",
    "cheesebench_reporters": "report formats",
    "cheesebench_commands": "commands",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plugin. ``hooks`` maps each of its hooks to the names of the items that the
    hook supplies. ``failure`` says why the plugin was not loaded, or is empty.
    """

    name: str
    distribution: str
    version: str
    module: str
    api: int | None = None
    hooks: dict[str, list[str]] = field(default_factory=dict)
    failure: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    about = "Prints each plugin's distribution, version and module, what it supplies, and why something was not loaded."
    common.describe(parser, about, "", "--json")
    common.add_json(parser)


def run(options: argparse.Namespace) -> int:
    manager = plugin_manager.installed_plugins()
    plugins = list(collect(manager))
    replaced = list(replacements(plugins))
    if options.json:
        # JSON is pure ASCII, so names of third-party plugins cannot harm a terminal.
        found = {
            "api": API_VERSION,
            "plugins": [asdict(one) for one in plugins],
            "replaced": replaced,
        }
        print(json.dumps(found, indent=2))
        return 0
    rows = [
        (
            # A plugin is shown as its entry point is declared: name = module.
            one.name if one.module == one.name else f"{one.name} = {one.module}",
            f"{one.distribution} {one.version}".strip(),
            _hooks(one),
        )
        for one in plugins
        if not one.failure
    ]
    print(common.table(["plugin", "distribution", "supplies"], rows))
    failed = [
        (one.name, f"{one.distribution} {one.version}".strip(), one.failure)
        for one in plugins
        if one.failure
    ]
    if failed:
        print("\n" + common.table(["not loaded", "distribution", "because"], failed))
    if replaced:
        print("\n" + "\n".join(map(common.paragraph, replaced)))
    print(f"\nVersion of the hooks: {API_VERSION}.")
    print(
        common.paragraph(
            "A conftest.py is a plugin only in its own session and is not listed here."
        )
    )
    return 0


def collect(manager: plugin_manager.PluginManager) -> Iterator[Plugin]:
    """Yield the built-in plugins, then the plugins that are installed under the entry
    point group, in the order of their names.
    """
    for module in plugin_manager.BUILT_INS:
        plugin = manager.get_plugin(module)
        yield Plugin(
            name=module,
            distribution=OURS,
            version=__version__,
            module=module,
            hooks=_supplied(plugin),
        )
    points = importlib.metadata.entry_points(group=PROJECT)
    for point in sorted(points, key=lambda one: (one.name, one.value)):
        dist = point.dist
        plugin = manager.get_plugin(point.name)
        # If two entry points share a name, only one of them is loaded.
        failure = manager.failures.get(point.name, "")
        if (
            plugin is not None
            and getattr(plugin, "__name__", point.value)
            == point.value.partition(":")[0]
        ):
            failure = ""
        yield Plugin(
            name=point.name,
            distribution=dist.name if dist else "",
            version=dist.version if dist else "",
            module=point.value,
            api=None
            if failure
            else inspect.getattr_static(plugin, "cheesebench_api", None),
            hooks={} if failure else _supplied(plugin),
            failure=failure,
        )


def _supplied(plugin: Any) -> dict[str, list[str]]:
    supplied = {}
    for hook in sorted(name for name in dir(plugin) if name.startswith(f"{PROJECT}_")):
        supply = getattr(plugin, hook)
        if not callable(supply):
            continue
        names: list[str] = []
        if hook in _SUPPLIES:
            try:
                names = [
                    str(getattr(one, "name", one))
                    for one in plugin_manager.items_of(supply, hook)
                ]
            # An error here must not hide the other plugins.
            except CheeseBenchError as error:
                names = [f"fails: {error}"]
        supplied[hook] = names
    return supplied


def _hooks(plugin: Plugin) -> str:
    # Models and protocols are only counted, because other commands list them.
    said = []
    for hook, names in plugin.hooks.items():
        what = _SUPPLIES.get(hook, hook)
        many = (
            hook in ("cheesebench_models", "cheesebench_protocols") and len(names) > 1
        )
        said.append(
            f"{len(names)} {what}"
            if many
            else f"{what}: {', '.join(names)}"
            if names
            else what
        )
    return "; ".join(said) or "nothing"


def replacements(plugins: list[Plugin]) -> Iterator[str]:
    """Yield a sentence for each name (except of protocols) that two plugins supply, or
    a plugin and a built-in command. The later plugin's item is used, but never in place
    of a built-in command.
    """
    seen: dict[tuple[str, str], Plugin] = {}
    for plugin in plugins:
        for hook, names in plugin.hooks.items():
            for name in names if hook == "cheesebench_commands" else ():
                if name in COMMANDS:
                    yield (
                        f"The command '{name}' of {plugin.name} is not used: a built-in command has this name. Rename the "
                        "plugin's command."
                    )
            for name in names if hook != "cheesebench_protocols" else ():
                if (before := seen.get((hook, name))) is not None:
                    what = _SUPPLIES[hook].removesuffix("s")
                    yield f"The {what} '{name}' of {plugin.name} is used, not the one of {before.name}."
                seen[hook, name] = plugin
