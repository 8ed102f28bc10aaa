"""Worker processes on this machine, each a bare interpreter that does one job after
another.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path

from cheesebench import ExecutorContext, Job, Report, WorkerDiedError
from cheesebench.plugins.executors import pipes

#: Name of the log of the workers' output. Python's output on a crash is in it, too.
LOG_NAME = "workers.log"


class LocalExecutor:
    """A pool of worker processes. Each is started when it is first needed."""

    def __init__(self, context: ExecutorContext) -> None:
        self.capacity = context.processes
        self._directory = context.directory
        self._idle: list[WorkerProcess] = []

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        worker = self._idle.pop() if self._idle else WorkerProcess(self._directory)
        try:
            await worker.do(job, report)
        finally:
            self._idle.append(worker)

    async def close(self) -> None:
        await asyncio.gather(*(worker.stop() for worker in self._idle))


class WorkerProcess:
    """A worker process. It is started for its first job and, if it has ended, again for
    the next job.
    """

    def __init__(self, directory: Path) -> None:
        self._log = directory / LOG_NAME
        self._process: Process | None = None

    async def do(self, job: Job, report: Callable[[Report], None]) -> None:
        """Do the job in the process. Raise WorkerDiedError if the process cannot be
        started, or exits before the job ends.
        """
        if self._process is None:
            self._process = await pipes.start(
                "cheesebench.plugins.executors.worker", self._log
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(pipes.pack(job))
            await stdin.drain()
            received = bytearray()
            ended = False
            while not ended:
                # Read many small reports at once, because a coroutine for each would
                # cost more than the reports.
                chunk = await stdout.read(pipes.CHUNK)
                if not chunk:
                    raise EOFError
                received += chunk
                ended = pipes.deliver(received, report)
        except (EOFError, ConnectionError):
            raise WorkerDiedError(
                pipes.how_it_ended(await self._end(), "the worker process", LOG_NAME)
            ) from None
        except BaseException:
            # A late report of this process would be taken for one of the next job.
            await self._end()
            raise

    async def _end(self) -> int:
        process, self._process = self._process, None
        return 0 if process is None else await pipes.end(process)

    async def stop(self) -> None:
        await self._end()
