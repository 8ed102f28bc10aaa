"""Who does the jobs: worker processes, and threads for plugins that only this process knows."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import signal
import subprocess
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cheesebench.dialogue import NO_VIEW
from cheesebench.errors import CheeseBenchError, RunLogError
from cheesebench.experiment.jobs import HEADER, Job, Report, Stopped, Workplace, pack

if TYPE_CHECKING:
    from pluggy import HookCaller

    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import AnySpecification

#: What a worker prints, and what Python prints when one crashes.
LOG_NAME = "workers.log"
#: Seconds that a thread may take to end its trial when the session is closed; then it is left behind.
THREAD_PATIENCE = 2.0
# multiprocessing would import the main module of the parent again (all of pytest, or a script without a guard),
# and one dead worker would break its whole pool. So: a bare interpreter, given the parent's sys.path first.
_BOOT = (
    "import pickle, sys; jobs = sys.stdin.buffer; sys.path[:] = pickle.load(jobs); "
    "from cheesebench.experiment.worker import main; main(jobs)"
)


class WorkerDiedError(CheeseBenchError):
    """A worker process ended in the middle of a job; the text says how."""


class Worker(Protocol):
    """Does one job at a time."""

    async def do(self, job: Job, report: Callable[[Report], None]) -> None:
        """Do the job, calling ``report`` on the way; the last report has ``ended`` set.

        Raises WorkerDiedError when the process that did it ended before the job.
        """
        ...

    async def stop(self) -> None:
        """Stop at once; finished trials are in the log."""
        ...


class WorkerProcess:
    """A process of its own; started at the first job, and again at the next one after it died."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: Process | None = None

    async def do(self, job: Job, report: Callable[[Report], None]) -> None:
        """Do the job in the process; see Worker."""
        if self._process is None:
            self._process = await self._start()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        message = pack(job)
        try:
            stdin.write(message)
            await stdin.drain()
            ended = False
            while not ended:
                header = await stdout.readexactly(HEADER.size)
                received: Report = pickle.loads(await stdout.readexactly(HEADER.unpack(header)[0]))
                report(received)
                ended = received.ended
        except (EOFError, ConnectionError):
            raise WorkerDiedError(_how_it_ended(await self._end())) from None
        except BaseException:
            # Its answers to this job would be taken for answers to the next one.
            await self._end()
            raise

    async def _start(self) -> Process:
        try:
            output: Any = open(self._directory / LOG_NAME, "ab")  # noqa: SIM115 - closed below, the child has its own
        except OSError:
            output = subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-c",
                _BOOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                # Ctrl-C is for the parent, which ends its workers itself.
                start_new_session=True,
            )
        finally:
            if output is not subprocess.DEVNULL:
                output.close()
        assert process.stdin is not None
        process.stdin.write(pickle.dumps(sys.path))
        return process

    async def _end(self) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(ProcessLookupError):
            if process.returncode is None and not process.stdout.at_eof():
                process.kill()
        process.stdin.close()
        await process.stdout.read()
        return await process.wait()

    async def stop(self) -> None:
        """End the process."""
        await self._end()


class WorkerThread:
    """A thread of this process, for agents that no other process can load (those of a conftest.py)."""

    def __init__(self, plugins: PluginManager) -> None:
        self._workplace = Workplace(plugins)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    async def do(self, job: Job, report: Callable[[Report], None]) -> None:
        """Do the job in a daemon thread (an agent that never returns must not keep Python alive); see Worker."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        trials = 0

        def tell(callback: Callable[..., object], *arguments: object) -> None:
            # The loop may be gone when a thread that was left behind comes back.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(callback, *arguments)

        def finished(record: TrialRecord) -> None:
            nonlocal trials
            trials += 1
            tell(report, Report(trials=trials, record=record))
            if self._stopping.is_set():
                raise Stopped

        def work() -> None:
            complete, error = False, ""
            try:
                complete = self._workplace.do(job, finished)
            except Stopped:
                return
            except RunLogError as problem:
                error = str(problem)
            except Exception as problem:
                # A bug of ours: whoever waits for this subject must hear of it.
                error = f"{type(problem).__name__}: {problem}"
            tell(report, Report(trials=trials, ended=True, complete=complete, error=error))
            tell(ended.set)

        self._thread = threading.Thread(target=work, name="cheesebench-subject", daemon=True)
        self._thread.start()
        await ended.wait()

    async def stop(self) -> None:
        """Let the thread end its trial, for a moment."""
        self._stopping.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, THREAD_PATIENCE)


def loads_elsewhere(plugins: PluginManager, plan: CellPlan, specification: AnySpecification) -> bool:
    """Return whether a new process can load by itself all that a cell needs: agent, view and family."""
    hooks = plugins.hook
    needed = [(hooks.cheesebench_agents, plan.model), (hooks.cheesebench_families, specification.family)]
    if plan.view != NO_VIEW:
        needed.append((hooks.cheesebench_views, plan.view))
    return all(_origin(hook, name) in plugins.reloadable for hook, name in needed)


def _origin(hook: HookCaller, name: str) -> str:
    """Return the name of the plugin that supplies what is called ``name``, or an empty string."""
    # The last one that supplies a name wins, as in the look-ups of the plugin manager.
    for implementation in reversed(hook.get_hookimpls()):
        supplied: Any = implementation.function()
        if any(item.name == name for item in supplied or ()):
            return implementation.plugin_name
    return ""


def _how_it_ended(code: int) -> str:
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        memory = "; perhaps the machine ran out of memory" if name == "SIGKILL" else ""
        return f"the worker process was ended by {name}{memory}"
    return f"the worker process ended with exit code {code}; {LOG_NAME} has what it printed"
