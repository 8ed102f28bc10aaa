"""The work queues of a session: one for each executor in use, and one for each language model."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

from cheesebench.errors import CheeseBenchError, OptionError, PluginError, did_you_mean
from cheesebench.executor import Executor, ExecutorContext, ExecutorSpec, Report, StartedExecutor
from cheesebench.experiment.jobs import ParadigmCache
from cheesebench.experiment.language_models import LanguageModels, ModelWorker
from cheesebench.experiment.scheduling import CellRun, WorkQueue
from cheesebench.interface_checks import awaitable, blaming, checked, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pluggy import HookCaller

    from cheesebench.executor import Job
    from cheesebench.experiment.records import CellPlan
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import BaseSpecification

#: Subjects that talk to a model at a time, for each call that may be in flight. Not many more: a server keeps the
#: beginning of every conversation in its cache, as long as there is room.
OVERSUBSCRIPTION = 1.25
#: The executor where none is named, and the one for what only this process can load.
DEFAULT_EXECUTOR, IN_PROCESS = "local", "threads"


class Queues:
    """The queues of the cells of a session, created on first use.

    ``processes`` (None: one for each processor), ``executor`` and its ``options`` are those of the session; ``ahead``
    lets subjects of free models run ahead.
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
        #: Name of the executor.
        self.executor = executor if processes != 0 else IN_PROCESS
        self._context = ExecutorContext(
            plugins=plugins,
            directory=directory,
            processes=max(usable_processors() if processes is None else processes, 1),
            processes_given=processes is not None,
            options=options,
        )
        self._executors: dict[str, tuple[CheckedExecutor, WorkQueue]] = {}
        self._conversations: dict[str, WorkQueue] = {}
        #: For conversations, which share this thread.
        self._paradigms = ParadigmCache(plugins)

    def of(self, cell: CellRun) -> WorkQueue:
        """Return the queue of a cell."""
        plan = cell.plan
        if plan.agent:
            return self._conversations.get(plan.model) or self._conversation(plan.model)
        spec = self._plugins.executor(self.executor)
        if not spec.in_process and not is_process_safe(self._plugins, plan, cell.specification):
            if spec.elsewhere:
                raise PluginError(
                    f"--executor {spec.name}: what '{plan.model}' on {plan.protocol} needs comes from a conftest.py or "
                    "from -p, which no other machine can load. Install it as a package on all of them, or use "
                    f"--executor {DEFAULT_EXECUTOR}."
                )
            spec = self._plugins.executor(IN_PROCESS)
        if spec.name not in self._executors:
            with blaming(f"The executor '{spec.name}': create"):
                made = spec.create(self._context)
            executor = CheckedExecutor(spec.name, made)
            self._executors[spec.name] = executor, WorkQueue(executor, executor.capacity)
        return self._executors[spec.name][1]

    async def start(self, cells: Iterable[CellRun]) -> None:
        """Start the executor if it does the jobs of these cells elsewhere; a CheeseBenchError says what is wrong."""
        cells = [cell for cell in cells if not cell.plan.agent]
        if not cells or not self._plugins.executor(self.executor).elsewhere:
            return
        try:
            for cell in cells:
                self.of(cell)
            for executor, _ in self._executors.values():
                await executor.start()
        except CheeseBenchError:
            raise
        except Exception as error:  # of a plugin
            raise PluginError(f"--executor {self.executor}: {type(error).__name__}: {error}") from error

    def _conversation(self, model: str) -> WorkQueue:
        if self._language is None:
            raise PluginError(f"The session has no language models, so '{model}' cannot be run.")
        worker = ModelWorker(self._language, self._plugins, self._paradigms)
        # Slightly more subjects than calls in flight: while one computes, another can call.
        limit = int(OVERSUBSCRIPTION * self._language.options.concurrency * self._language.servers(model))
        ahead = self._ahead and self._language.is_free(model)
        queue = self._conversations[model] = WorkQueue(worker, limit, ahead, speculative_jobs=worker.speculative)
        return queue

    def tasks(self) -> list[asyncio.Task[None]]:
        """Return the tasks that serve them."""
        queues = [*(queue for _, queue in self._executors.values()), *self._conversations.values()]
        return [task for queue in queues for task in queue.tasks]

    async def close(self) -> None:
        """Close all executors, even if one of them fails to close."""
        await asyncio.gather(*(executor.close() for executor, _ in self._executors.values()), return_exceptions=True)


class CheckedExecutor:
    """An executor of a plugin; PluginError says what it lacks, or what it returns that cannot be awaited."""

    def __init__(self, name: str, executor: Executor) -> None:
        self._who = f"The executor '{name}'"
        self._executor = checked(executor, Executor, f"{self._who}: create returned")
        capacity: object = executor.capacity
        if not isinstance(capacity, int) or capacity < 1:
            raise PluginError(f"{self._who} has capacity {capacity!r}. Give a whole number from 1.")
        self.capacity = capacity

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """Run a job."""

        def passed_on(message: object) -> None:
            if not isinstance(message, Report):
                raise PluginError(f"{self._who}: run reported {shown(message)}. Pass on the reports of run_job.")
            report(message)

        await awaitable(self._executor.run(job, passed_on), self._who, "run")

    async def start(self) -> None:
        """Connect, if it has to."""
        if isinstance(self._executor, StartedExecutor):
            await awaitable(self._executor.start(), self._who, "start")

    async def close(self) -> None:
        """Stop everything."""
        await awaitable(self._executor.close(), self._who, "close")


def check_options(spec: ExecutorSpec, options: Mapping[str, str]) -> None:
    """Raise OptionError for an option that an executor does not have."""
    for name in options:
        if name not in spec.options:
            known = f"It has {', '.join(spec.options)}." if spec.options else "It has none."
            hint = did_you_mean(name, spec.options) or f" {known}"
            raise OptionError(f"--executor-option {name}: the executor '{spec.name}' has no such option.{hint}")


def is_process_safe(plugins: PluginManager, plan: CellPlan, specification: BaseSpecification) -> bool:
    """Return whether a new process can load everything that a cell needs: agent, view and family."""
    hooks = plugins.hook
    # Only the family knows which hook supplies the agent, so require it of every hook that has one of this name.
    agents = {_origin(hook, plan.model) for hook in (hooks.cheesebench_agents, hooks.cheesebench_respondents)}
    needed = [agents - {""} or {""}, {_origin(hooks.cheesebench_families, specification.family)}]
    if plan.view in plugins.views:  # families without an arena have other views
        needed.append({_origin(hooks.cheesebench_views, plan.view)})
    return all(origins <= plugins.reloadable for origins in needed)


def _origin(hook: HookCaller, name: str) -> str:
    """Return the name of the plugin that supplies ``name`` through a hook, or an empty string."""
    # The last plugin takes precedence, as in the plugin manager.
    for implementation in reversed(hook.get_hookimpls()):
        supplied: Any = implementation.function()
        if any(item.name == name for item in supplied or ()):
            return implementation.plugin_name
    return ""


def usable_processors() -> int:
    """Return how many processors this process may use (a container may have fewer than the machine)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
