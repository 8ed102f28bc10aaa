"""The plugin manager: it holds the built-in plugins, the installed plugins (entry
points) and the plugins of a pytest session, and finds by name what they supply.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from cheesebench import hookspecs
from cheesebench.chat import BackendSpec, ModelAgentSpec, ModelEntry
from cheesebench.dialogue import RespondentSpec
from cheesebench.errors import (
    CheeseBenchError,
    PluginError,
    UnknownNameError,
    did_you_mean,
    raised_where,
)
from cheesebench.executor import ExecutorSpec
from cheesebench.family import Family, RecordedRun, Words
from cheesebench.hookspecs import Reporter, RunReporter
from cheesebench.interface_checks import blaming, misfit, returned, shown
from cheesebench.interfaces import AgentSpec, CommandSpec, Paradigm, View
from cheesebench.redaction import quoted, redact

if TYPE_CHECKING:
    from pluggy import HookimplOpts

    from cheesebench.interfaces import AgentKind, BaseSpecification
    from cheesebench.statistics import RunSummary

#: Modules of this distribution that are registered as plugins. They have the same hooks
#: as third-party plugins, but no entry points.
BUILT_INS = (
    "cheesebench.paradigms",
    "cheesebench.plugins.agents",
    "cheesebench.plugins.backends",
    "cheesebench.plugins.executors",
    "cheesebench.plugins.models",
    "cheesebench.plugins.views",
    "cheesebench.protocols",
    "cheesebench.reports",
)

#: Built-in modules that may contribute commands. They must be few and light, because
#: the help of ``cheesebench`` loads them.
WITH_COMMANDS = ("cheesebench.paradigms",)

#: Name of a plugin's attribute with the hook version that it is written for.
_API = "cheesebench_api"
#: Names of all hooks.
_HOOKS = tuple(name for name in vars(hookspecs) if name.startswith("cheesebench_"))
#: Type of the items that each hook returns.
SUPPLIED: dict[str, type] = {
    "cheesebench_agents": AgentSpec,
    "cheesebench_model_agents": ModelAgentSpec,
    "cheesebench_respondents": RespondentSpec,
    "cheesebench_backends": BackendSpec,
    "cheesebench_models": ModelEntry,
    "cheesebench_views": View,
    "cheesebench_protocols": os.PathLike,
    "cheesebench_families": Family,
    "cheesebench_executors": ExecutorSpec,
    "cheesebench_reporters": Reporter,
    "cheesebench_commands": CommandSpec,
}

#: Hooks of the built-in kinds of agents.
_KINDS = {
    AgentSpec.kind: "cheesebench_agents",
    ModelAgentSpec.kind: "cheesebench_model_agents",
    RespondentSpec.kind: "cheesebench_respondents",
}

T = TypeVar("T")


class PluginManager(pluggy.PluginManager):
    """A pluggy manager that records where each plugin comes from, and why a plugin
    could not be loaded.

    It loads the modules ``built_ins`` and, with ``entry_points``, the installed
    plugins.
    """

    def __init__(
        self, *, entry_points: bool = True, built_ins: Sequence[str] = BUILT_INS
    ) -> None:
        super().__init__(hookspecs.PROJECT)
        self.add_hookspecs(hookspecs)
        #: Why entry points could not be loaded, by name.
        self.failures: dict[str, str] = {}
        #: Loaded entry points by name. Of two with the same name, only one is loaded.
        self._loaded: dict[str, importlib.metadata.EntryPoint] = {}
        #: Names of the plugins that a worker process can load by itself (built-ins and
        #: entry points).
        self.reloadable: set[str] = set()
        for module in built_ins:
            self.register(importlib.import_module(module), name=module)
            self.reloadable.add(module)
        for entry_point in (
            importlib.metadata.entry_points(group=hookspecs.PROJECT)
            if entry_points
            else ()
        ):
            try:
                if (other := self.get_plugin(entry_point.name)) is not None:
                    used = getattr(other, "__name__", other)
                    raise PluginError(
                        f"Another plugin has the same name, and is used instead: {used}. Uninstall one of them."
                    )
                self.register(entry_point.load(), name=entry_point.name)
                self._loaded[entry_point.name] = entry_point
                self.reloadable.add(entry_point.name)
            except (Exception, SystemExit) as error:
                # A broken plugin must not stop the run: it is reported, and the others
                # work.
                known = isinstance(error, CheeseBenchError)
                text = (
                    redact(str(error)) if known else quoted(raised_where(error), 1000)
                )
                self.failures[entry_point.name] = text

    def register(self, plugin: Any, name: str | None = None) -> str | None:
        """Register a plugin. Raise PluginError if it is written for a version of the
        hooks that is not supported, or misspells a hook.
        """
        _check_api(plugin, name or str(getattr(plugin, "__name__", plugin)))
        return super().register(plugin, name)

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> HookimplOpts | None:
        """Accept a function with the name of a hook even without a marker, for
        conftest.py. Raise PluginError for a misspelt hook.
        """
        options = super().parse_hookimpl_opts(plugin, name)
        if (
            options is None
            and name.startswith("cheesebench_")
            and callable(getattr(plugin, name))
        ):
            if name not in _HOOKS:
                hint = did_you_mean(name, _HOOKS)
                if not hint:
                    return None
                where = getattr(plugin, "__file__", plugin)
                raise PluginError(f"{where}: there is no hook '{name}'.{hint}")
            return {
                "wrapper": False,
                "hookwrapper": False,
                "optionalhook": False,
                "tryfirst": False,
                "trylast": False,
                "specname": None,
            }
        return options

    def supplied(self, hook: pluggy.HookCaller) -> list[Any]:
        """Return the items that all plugins supply. Items of later plugins come last,
        so that they win in a dict.

        Raise PluginError, with the plugin's name, if a hook raises or returns anything
        but a list of items of the right type.
        """
        found: list[Any] = []
        for one in hook.get_hookimpls():  # Calling the hook would reverse the order.
            if one.plugin_name in BUILT_INS:  # Tests check what these return.
                found += one.function()  # type: ignore[arg-type]
            else:
                found += supplied_by(one.function, hook.name, one.plugin_name)
        return found

    def strangers(self) -> dict[str, str]:
        """Return the third-party plugins by name, each with its distribution and
        version, or its file.
        """
        ours = (*BUILT_INS, *WITH_COMMANDS)
        others = {
            name: plugin
            for name, plugin in self.list_name_plugin()
            if plugin is not None and name not in ours
        }
        return {
            name: _origin(plugin, self._loaded.get(name))
            for name, plugin in others.items()
        }

    def not_loaded(self, name: str) -> str:
        """Return sentences on the plugins that could not be loaded, because one of them
        may supply ``name``, or "" if there are none.
        """
        # A plugin may have a different name from what it supplies, so name all that
        # failed.
        failed = [name] if name in self.failures else sorted(self.failures)
        said = [
            f"The plugin '{one}' was not loaded: {self.failures[one].rstrip('.')}"
            for one in failed
        ]
        return f"{'. '.join(said)}; see 'cheesebench plugins'." if said else ""

    def remedy_for(self, name: str) -> str:
        """Return the remedy for a name that no loaded plugin supplies."""
        return (
            self.not_loaded(name)
            or "Is it in a plugin? 'cheesebench plugins' shows what is installed."
        )

    def supplied_agents(self, kind: AgentKind) -> dict[str, Any]:
        """Return the agents of a kind by name. A kind that a plugin has added comes
        from the hook ``cheesebench_agents``.
        """
        supplied = self.supplied(getattr(self.hook, _hook_of(kind)))
        return {
            spec.name: spec for spec in supplied if getattr(spec, "kind", kind) == kind
        }

    @property
    def agents(self) -> dict[str, AgentSpec]:
        """Agents without a language model, by name."""
        return self.supplied_agents(AgentSpec.kind)

    @property
    def model_agents(self) -> dict[str, ModelAgentSpec]:
        """Agents that prompt a language model, by name."""
        return self.supplied_agents(ModelAgentSpec.kind)

    @property
    def respondents(self) -> dict[str, RespondentSpec]:
        """Baselines for dialogues, by name."""
        return self.supplied_agents(RespondentSpec.kind)

    @property
    def executors(self) -> dict[str, ExecutorSpec]:
        return {
            spec.name: spec for spec in self.supplied(self.hook.cheesebench_executors)
        }

    @property
    def backends(self) -> dict[str, BackendSpec]:
        return {
            spec.name: spec for spec in self.supplied(self.hook.cheesebench_backends)
        }

    @property
    def models(self) -> dict[str, ModelEntry]:
        """Registered models by name, without aliases."""
        return {
            entry.name: entry for entry in self.supplied(self.hook.cheesebench_models)
        }

    @property
    def views(self) -> dict[str, View]:
        return {view.name: view for view in self.supplied(self.hook.cheesebench_views)}

    @property
    def reporters(self) -> dict[str, Reporter]:
        return {
            reporter.name: reporter
            for reporter in self.supplied(self.hook.cheesebench_reporters)
        }

    @property
    def families(self) -> dict[str, Family[Any, Any]]:
        return {
            family.name: family
            for family in self.supplied(self.hook.cheesebench_families)
        }

    @property
    def commands(self) -> dict[str, CommandSpec]:
        """Commands that plugins contribute, by name. If a plugin fails, its commands
        are left out.
        """
        found: dict[str, CommandSpec] = {}
        for implementation in self.hook.cheesebench_commands.get_hookimpls():
            # ``cheesebench plugins`` reports the fault; other commands still work.
            with contextlib.suppress(CheeseBenchError):
                supplied = supplied_by(
                    implementation.function,
                    "cheesebench_commands",
                    implementation.plugin_name,
                )
                found |= {spec.name: spec for spec in supplied}
        return found

    @property
    def protocol_directories(self) -> list[Path]:
        return self.supplied(self.hook.cheesebench_protocols)

    def _look_up(
        self, kind: str, name: str, known: dict[str, T], remedy: str = ""
    ) -> T:
        if name not in known:
            raise UnknownNameError(
                kind, name, known, remedy=remedy or self.not_loaded(name)
            )
        return known[name]

    def agent(self, name: str, protocol: str = "") -> AgentSpec:
        agents = self.agents
        _, _, edition = protocol.partition("@")
        own = f"{name}@{edition}"
        return self._look_up("model", own if own in agents else name, agents)

    def respondent(self, name: str) -> RespondentSpec:
        """Return the baseline for dialogues of that name. Raise UnknownNameError if
        there is none.
        """
        return self._look_up("model for dialogues", name, self.respondents)

    def model_agent(self, name: str) -> ModelAgentSpec:
        return self._look_up("agent", name, self.model_agents)

    def backend(self, name: str) -> BackendSpec:
        return self._look_up("backend", name, self.backends, self.remedy_for(name))

    def executor(self, name: str) -> ExecutorSpec:
        return self._look_up("executor", name, self.executors)

    def view(self, name: str) -> View:
        views = self.views
        return (
            Words()
            if name == Words.name and name not in views
            else self._look_up("view", name, views)
        )

    def reporter(self, name: str) -> Reporter:
        return self._look_up("report format", name, self.reporters)

    def report(self, name: str, summary: RunSummary, log: RecordedRun) -> str:
        """Return a run's report in the format of that name. Raise UnknownNameError if
        there is no such format.
        """
        reporter = self.reporter(name)
        if isinstance(reporter, RunReporter):
            return reporter.render_run(summary, log, self)
        return reporter.render(summary)

    def compile(self, specification: BaseSpecification) -> Paradigm:
        family = self.family(specification)
        who = f"The family '{family.name}': compile"
        with blaming(who):
            return returned(family.compile(specification), Paradigm, who)

    def family(self, specification: BaseSpecification) -> Family[Any, Any]:
        """Return the family of a protocol. Raise PluginError, with the known families,
        if there is none.
        """
        families, name = self.families, specification.family
        if name not in families:
            raise PluginError(
                f"{specification.path}: no plugin handles protocols of the family '{name}' (known: "
                f"{', '.join(sorted(families))}). {self.not_loaded(name) or 'Install the plugin that does.'}"
            )
        return families[name]


def supplied_by(function: Callable[[], Any], hook: str, plugin: str) -> list[Any]:
    """Return the items that a plugin's hook returns. Raise PluginError if the hook
    raises, or returns items of the wrong type.
    """
    try:
        return items_of(function, hook)
    except PluginError as error:
        who = f"The plugin '{quoted(plugin.removeprefix('pytest:'), 200)}', {hook}:"
        raise PluginError(f"{who} {error}") from error.__cause__


def items_of(function: Callable[[], Any], hook: str) -> list[Any]:
    """Do the same as ``supplied_by``, but without the plugin's name in the error."""
    wanted = (
        "paths of directories"
        if hook == "cheesebench_protocols"
        else f"{SUPPLIED[hook].__name__} objects"
    )
    try:
        items = _list_of(function(), wanted)
        for item in items:  # An attribute of a third-party object may raise, too.
            _check_item(item, hook)
    except CheeseBenchError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{quoted(raised_where(error), 360)}. Fix or remove the plugin."
        ) from error
    return items


def _list_of(supplied: object, wanted: str) -> list[Any]:
    if inspect.iscoroutine(supplied):
        raise PluginError(f"returned {misfit(supplied, list)}")
    if not isinstance(supplied, Iterable) or isinstance(
        supplied, str | bytes | Mapping | type
    ):
        raise PluginError(f"returned {shown(supplied)}. Return a list of {wanted}.")
    return list(supplied)


def _check_item(item: object, hook: str) -> None:
    if fault := _fault(item, hook):
        raise PluginError(f"returned a list with {fault}")
    if isinstance(item, os.PathLike) and not os.path.isdir(item):
        raise PluginError(
            f"returned a list with {quoted(str(item))}, which is not a directory. Correct the path; in a "
            "package, add the files to its package data."
        )


def _fault(item: object, hook: str) -> str:
    kind = getattr(item, "kind", None)
    if (
        isinstance(kind, str)
        and hook in map(_hook_of, _KINDS)
        and not isinstance(item, type)
    ):
        if hook != (right := _hook_of(kind)):
            return f"{shown(item)}. Return it from {right}."
        if kind not in _KINDS and hasattr(item, "name"):
            return ""  # The kind belongs to a family, which defines its agents.
    return misfit(item, SUPPLIED[hook])


def _origin(plugin: object, point: importlib.metadata.EntryPoint | None) -> str:
    if point is not None and point.dist is not None:
        return f"{point.dist.name} {point.dist.version}"
    return str(getattr(plugin, "__file__", None) or "no file")


def _check_api(plugin: Any, name: str) -> None:
    # A normal look-up could call a module's __getattr__, which may itself ask the
    # plugins.
    version: Any = inspect.getattr_static(plugin, _API, hookspecs.API_VERSION)
    if not isinstance(version, int) or isinstance(version, bool):
        raise PluginError(
            f"The plugin '{name}' has {_API} = {version!r}. Set it to {hookspecs.API_VERSION}."
        )
    oldest, newest = hookspecs.OLDEST_API_VERSION, hookspecs.API_VERSION
    known = f"version {newest}" if oldest == newest else f"{oldest} to {newest}"
    if not oldest <= version <= newest:
        remedy = (
            "Upgrade pytest-cheesebench." if version > newest else "Upgrade the plugin."
        )
        sentence = f"The plugin '{name}' is written for version {version} of the hooks; this CheeseBench supports"
        raise PluginError(f"{sentence} {known}. {remedy}")


def _hook_of(kind: AgentKind) -> str:
    return _KINDS.get(kind, "cheesebench_agents")


@lru_cache(maxsize=1)
def installed_plugins() -> PluginManager:
    """Return this process's manager of built-in and installed plugins. A pytest session
    creates its own.
    """
    return PluginManager()
