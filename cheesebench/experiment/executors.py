"""The places where a cell's subjects run: an executor, or a conversation
with a model.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from cheesebench.errors import CheeseBenchError, OptionError, PluginError, did_you_mean
from cheesebench.executor import (
    Executor,
    ExecutorContext,
    ExecutorSpec,
    Job,
    Report,
    StartedExecutor,
)
from cheesebench.experiment import scheduler
from cheesebench.experiment.language_models import LanguageModels, ModelWorker
from cheesebench.experiment.subjects import ParadigmCache
from cheesebench.interface_checks import blaming, checked

if TYPE_CHECKING:
    from pathlib import Path

    from pluggy import HookCaller

    from cheesebench.interfaces import BaseSpecification
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan


class Runner(Protocol):
    """Runs jobs: an executor, or a ModelWorker."""

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """See ``Executor``."""


#: Ratio of the conversations that run to the calls that may be in flight. It is low,
#: because a server caches the beginnings of conversations only while it has room.
OVERSUBSCRIPTION = 1.25
#: ``DEFAULT_EXECUTOR``: name of the default executor. ``IN_PROCESS``: name of the
#: executor for ``processes=0``, and for plugins that only this process can load.
DEFAULT_EXECUTOR, IN_PROCESS = "local", "threads"


@dataclass(frozen=True, slots=True, eq=False)
class Workplace:
    """The place where the subjects of some cells run, with their queue."""

    runner: Runner
    queue: scheduler.Queue
    #: Jobs of subjects that run ahead. They have lower priority than all others.
    ahead: set[Job] = field(default_factory=set)

    def stop(self, job: Job) -> None:
        """Stop a job that is no longer needed, if possible."""
        if isinstance(self.runner, ModelWorker):
            self.runner.stop(job)


class Workplaces:
    """The workplaces of the cells of a session, created on first use.

    ``executor``, its ``options`` and ``processes`` (None means one per processor, and 0
    means threads of this process) are the session's. If ``ahead`` is true, subjects of
    free models run ahead.
    """

    def __init__(
        self,
        plugins: PluginManager,
        language: LanguageModels | None,
        directory: Path,
        executor: str,
        processes: int | None,
        *,
        ahead: bool,
        options: Mapping[str, str],
    ) -> None:
        self._plugins = plugins
        self._language = language
        self._ahead = ahead
        self.executor = executor if processes != 0 else IN_PROCESS
        self._context = ExecutorContext(
            plugins=plugins,
            directory=directory,
            processes=max(usable_processors() if processes is None else processes, 1),
            processes_given=processes is not None,
            options=options,
        )
        self._executors: dict[str, tuple[Executor, Workplace]] = {}
        self._conversations: dict[str, Workplace] = {}
        #: Cache of the paradigms for conversations, which all run in this thread.
        self._paradigms = ParadigmCache(plugins)

    def of(self, plan: CellPlan, specification: BaseSpecification) -> Workplace:
        if plan.agent:
            if plan.model not in self._conversations:
                self._conversations[plan.model] = self._conversation(plan.model)
            return self._conversations[plan.model]
        spec = self._executor_for(plan, specification)
        if spec.name not in self._executors:
            executor = self._create(spec)
            place = Workplace(executor, scheduler.Queue(executor.capacity))
            self._executors[spec.name] = executor, place
        return self._executors[spec.name][1]

    def _executor_for(
        self, plan: CellPlan, specification: BaseSpecification
    ) -> ExecutorSpec:
        """Return the session's executor. If only this process can load the cell's
        plugins, return the executor in this process, or raise PluginError if the
        session's executor uses other machines.
        """
        spec = self._plugins.executor(self.executor)
        if spec.in_process or is_process_safe(self._plugins, plan, specification):
            return spec
        if spec.elsewhere:
            raise PluginError(
                f"--executor {spec.name}: what '{plan.model}' on {plan.protocol} needs comes from a conftest.py or "
                "from -p, which no other machine can load. Install it as a package on all of them, or use "
                f"--executor {DEFAULT_EXECUTOR}."
            )
        return self._plugins.executor(IN_PROCESS)

    def _create(self, spec: ExecutorSpec) -> Executor:
        who = f"The executor '{spec.name}'"
        with blaming(f"{who}: create"):
            executor = checked(
                spec.create(self._context), Executor, f"{who}: create returned"
            )
            capacity: object = executor.capacity
        if not isinstance(capacity, int) or capacity < 1:
            raise PluginError(
                f"{who} has capacity {capacity!r}. Give a whole number of at least 1."
            )
        return executor

    async def start(self, cells: Iterable[tuple[CellPlan, BaseSpecification]]) -> None:
        """Start the executor if it runs the jobs of these cells on other machines.
        Raise CheeseBenchError if that fails.
        """
        cells = [cell for cell in cells if not cell[0].agent]
        if not cells or not self._plugins.executor(self.executor).elsewhere:
            return
        try:
            for cell in cells:
                self.of(*cell)
            for executor, _ in self._executors.values():
                if isinstance(executor, StartedExecutor):
                    await executor.start()
        except CheeseBenchError:
            raise
        # The executor may come from a plugin, and raise anything.
        except Exception as error:
            raise PluginError(
                f"--executor {self.executor}: {type(error).__name__}: {error}"
            ) from error

    def _conversation(self, model: str) -> Workplace:
        if self._language is None:
            raise PluginError(
                f"The session has no language models, so '{model}' cannot be run."
            )
        worker = ModelWorker(self._language, self._plugins, self._paradigms)
        # Run a few more subjects than there may be calls in flight, so that others can
        # call while one computes.
        limit = int(OVERSUBSCRIPTION * self._language.options.concurrency)
        runs_ahead = self._ahead and self._language.is_free(model)
        queue = scheduler.Queue(limit, runs_ahead=runs_ahead)
        return Workplace(worker, queue, worker.speculative)

    async def close(self) -> None:
        """Close all executors, even if one of them fails to close."""
        await asyncio.gather(
            *(executor.close() for executor, _ in self._executors.values()),
            return_exceptions=True,
        )


def check_options(spec: ExecutorSpec, options: Mapping[str, str]) -> None:
    """Raise OptionError for an option that an executor does not have."""
    for name in options:
        if name not in spec.options:
            known = (
                f"It has {', '.join(spec.options)}." if spec.options else "It has none."
            )
            hint = did_you_mean(name, spec.options) or f" {known}"
            raise OptionError(
                f"--executor-option {name}: the executor '{spec.name}' has no such option.{hint}"
            )


def is_process_safe(
    plugins: PluginManager, plan: CellPlan, specification: BaseSpecification
) -> bool:
    """Return whether a new process can load the cell's agent, view and family."""
    hooks = plugins.hook
    # Only the family knows which hook supplies the agent. So the agents of this name
    # from every hook must be loadable.
    agents = {
        _origin(hook, plan.model)
        for hook in (hooks.cheesebench_agents, hooks.cheesebench_respondents)
    }
    needed = [
        agents - {""} or {""},
        {_origin(hooks.cheesebench_families, specification.family)},
    ]
    # Families without an arena have views that no plugin supplies.
    if plan.view in plugins.views:
        needed.append({_origin(hooks.cheesebench_views, plan.view)})
    return all(origins <= plugins.reloadable for origins in needed)


def _origin(hook: HookCaller, name: str) -> str:
    """Return the name of the plugin that supplies ``name`` through a hook, or "" if
    none does.
    """
    # If several plugins supply the name, the last one registered counts, as in the
    # plugin manager.
    for implementation in reversed(hook.get_hookimpls()):
        supplied: Any = implementation.function()
        if any(item.name == name for item in supplied or ()):
            return implementation.plugin_name
    return ""


def usable_processors() -> int:
    """Return the number of processors that this process may use (a container may have
    fewer than the machine).
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
