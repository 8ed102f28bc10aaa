"""The executor ``ray``: runs subjects as tasks of a Ray cluster, through a driver
process (``ray_driver``).
"""

from __future__ import annotations

import asyncio
import importlib.util
import itertools
import os
import pickle
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Iterable
from typing import Any

from cheesebench import (
    CheeseBenchError,
    ExecutorContext,
    Job,
    OptionError,
    PluginError,
    Report,
    WorkerDiedError,
    install_command,
)
from cheesebench.plugins.executors import pipes

#: Name of the driver process's log, with the output of Ray and the agents.
LOG_NAME = "ray.log"
#: Maximum number of jobs handed to the cluster at a time. The cluster decides how many
#: of them run at once.
CAPACITY = 2048
#: Seconds that the driver process gets to exit. It takes up to ten to end its own
#: processes.
PATIENCE = 15.0


class RayExecutor:
    """Passes jobs to the driver process, and its reports to the session."""

    def __init__(self, context: ExecutorContext) -> None:
        if importlib.util.find_spec("ray") is None:
            raise OptionError(
                f"--executor ray needs Ray. Install it with: {install_command('ray')}"
            )
        options = context.options
        address = options.get("address") or os.environ.get("RAY_ADDRESS") or None
        if address is not None and address.startswith("ray://"):
            raise OptionError(
                f"--executor ray: {address} is for Ray Client, which cannot stream results. Start pytest on a node of "
                "the cluster (or with 'ray job submit'), with --executor-option address=auto."
            )
        self.capacity = CAPACITY
        self._log = context.directory / LOG_NAME
        self._start = {
            "address": address,
            "num_cpus": _number(options, "num_cpus", 1.0, least=0.001),
            "num_gpus": _number(options, "num_gpus", 0.0, least=0.0),
            "processes": context.processes if context.processes_given else None,
            "path": list(sys.path),
        }
        self._process: Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._ready: asyncio.Future[None] | None = None
        #: Why this cluster gets no more jobs, or "" if it still gets some.
        self._refusal = ""
        self._numbers = itertools.count()
        #: Running jobs by number, each with the function for its reports and the future
        #: that is done when the job has ended.
        self._jobs: dict[
            int, tuple[Callable[[Report], None], asyncio.Future[None]]
        ] = {}
        #: Number, from 1, of the last reported trial of each running job.
        self._trials: dict[int, int] = {}
        #: Numbers of the cells that the driver process knows, by the ``id`` of their
        #: plans. The jobs are kept so that no id is used again.
        self._cells: dict[int, tuple[int, Job]] = {}

    async def start(self) -> None:
        """Connect, and compare the nodes' installations with this one. Raise
        PluginError if they differ, no node is large enough for a subject, or Ray cannot
        be reached. Raise WorkerDiedError if the driver process cannot be started.
        """
        async with self._starting:
            if self._process is not None:
                return
            self._cells.clear()
            loop = asyncio.get_running_loop()
            self._ready = loop.create_future()
            self._process = await pipes.start(
                "cheesebench.plugins.executors.ray_driver", self._log
            )
            self._send(self._start)
            self._listening = loop.create_task(self._listen(self._process))
            await self._ready

    def _send(self, message: Any) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(pipes.pack(message))

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        while self._process is None and not self._refusal:
            await self.start()
        # There may be thousands of jobs, and each attempt to connect may take minutes,
        # so fail at once.
        if self._refusal:
            raise PluginError(self._refusal)
        number = next(self._numbers)
        ended = asyncio.get_running_loop().create_future()
        self._jobs[number] = report, ended
        try:
            cell, _ = self._cells.get(id(job.plan), (None, None))
            if cell is None:
                cell = len(self._cells)
                self._cells[id(job.plan)] = cell, job
                self._send(("cell", cell, pickle.dumps(job, pickle.HIGHEST_PROTOCOL)))
            self._send(("job", number, cell, job.subject, job.yoke))
            await ended
        finally:
            self._jobs.pop(number, None)
            self._trials.pop(number, None)

    async def _listen(self, process: Process) -> None:
        assert process.stdout is not None
        received = bytearray()
        while chunk := await process.stdout.read(pipes.CHUNK):
            received += chunk
            for kind, *values in pipes.unpack(received):
                if kind == "refused":
                    self._refusal = f"--executor ray: {values[0]}"
                    _fail(self._waiting(), PluginError(self._refusal))
                else:
                    self._hear(kind, *values)
        # A job that begins from now on waits for a new driver process.
        ready, *jobs = self._waiting()
        self._process = None
        code = await pipes.end(process)
        text = pipes.how_it_ended(code, "the process that drives Ray", LOG_NAME)
        _fail([ready], PluginError(f"--executor ray: {text}."))
        _fail(jobs, WorkerDiedError(text))

    def _waiting(self) -> list[asyncio.Future[None]]:
        """Return the futures that the driver process has yet to complete: for its
        start, then for the running jobs.
        """
        assert self._ready is not None
        return [self._ready, *(ended for _, ended in self._jobs.values())]

    def _hear(self, kind: str, *values: Any) -> None:
        if kind == "ready":
            assert self._ready is not None
            # The session may have stopped waiting.
            if not self._ready.done():
                self._ready.set_result(None)
        elif kind == "reports":
            for number, packed in values[0]:
                # The session may have stopped waiting for this job.
                if number in self._jobs:
                    report, ended = self._jobs[number]
                    try:
                        message: Report = pickle.loads(packed)
                        reached = [
                            self._trials.get(number, 0),
                            *(record.trial + 1 for record, _ in message.trials),
                        ]
                        self._trials[number] = max(reached)
                        report(message)
                    except Exception as error:
                        # Only this job fails. The others still report.
                        if not ended.done():
                            ended.set_exception(error)
                        continue
                    if message.ended and not ended.done():
                        ended.set_result(None)
        else:
            number, text = values
            if number not in self._jobs:
                return
            report, ended = self._jobs[number]
            if kind == "again":
                # The trial in progress is run again, which the journal must mention.
                report(
                    Report(
                        notes=[
                            (
                                "error",
                                f"stopped in trial {self._trials.get(number, 0) + 1}: {text}",
                            )
                        ]
                    )
                )
            elif not ended.done():
                ended.set_exception(WorkerDiedError(text))

    async def close(self) -> None:
        """End the driver process and all Ray processes that it has started."""
        process, self._process = self._process, None
        if process is not None and self._listening is not None:
            self._listening.cancel()
        if self._listening is not None:
            # Wait until the task has ended, because the event loop may close next.
            await asyncio.gather(self._listening, return_exceptions=True)
        if self._ready is not None:  # The driver process can no longer become ready.
            self._ready.cancel()
        if process is not None:
            await pipes.end(process, PATIENCE)


def _fail(waiting: Iterable[asyncio.Future[None]], error: CheeseBenchError) -> None:
    for one in waiting:
        if not one.done():
            one.set_exception(error)


def _number(options: Any, name: str, default: float, least: float) -> float:
    given = options.get(name)
    try:
        number = default if given is None else float(given)
    except ValueError:
        number = least - 1
    if not least <= number < 1e6:
        raise OptionError(
            f"--executor-option {name}={given}: give a number of at least {least:g} (and below a million), such as 1."
        )
    return number
