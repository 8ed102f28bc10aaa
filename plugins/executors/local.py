"""Worker processes on this machine, each a bare interpreter that does one job after another."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cheesebench import ExecutorContext, Job, Report, WorkerDiedError
from cheesebench.plugins.executors.worker import HEADER, pack

#: Log of the workers' output, including Python's output on a crash.
LOG_NAME = "workers.log"
#: Maximum bytes read from a worker at once.
CHUNK = 1 << 18
# multiprocessing would import the main module of the parent again (all of pytest, or a script without a guard),
# and one dead worker would break its whole pool. So: a bare interpreter, given the parent's sys.path first.
_BOOT = (
    "import pickle, sys; jobs = sys.stdin.buffer; sys.path[:] = pickle.load(jobs); "
    "from cheesebench.plugins.executors.worker import main; main(jobs)"
)


class LocalExecutor:
    """A pool of worker processes; each is started when it is first needed."""

    def __init__(self, context: ExecutorContext) -> None:
        self.capacity = context.processes
        self._directory = context.directory
        self._idle: list[WorkerProcess] = []

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """Do the job in a worker process."""
        worker = self._idle.pop() if self._idle else WorkerProcess(self._directory)
        try:
            await worker.do(job, report)
        finally:
            self._idle.append(worker)

    async def close(self) -> None:
        """End all processes."""
        await asyncio.gather(*(worker.stop() for worker in self._idle))


class WorkerProcess:
    """A process of its own; started at the first job, and again at the next one after it died."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: Process | None = None

    async def do(self, job: Job, report: Callable[[Report], None]) -> None:
        """Do the job in the process; raises WorkerDiedError if it exits before the job ends."""
        if self._process is None:
            self._process = await self._start()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(pack(job))
            await stdin.drain()
            received = bytearray()
            ended = False
            while not ended:
                # Many small reports at once: a coroutine for each of them would cost more than the reports.
                chunk = await stdout.read(CHUNK)
                if not chunk:
                    raise EOFError
                received += chunk
                ended = _deliver(received, report)
        except (EOFError, ConnectionError):
            raise WorkerDiedError(_how_it_ended(await self._end())) from None
        except BaseException:
            # Its reports of this job would be taken for those of the next one.
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
                limit=CHUNK,
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


def _deliver(received: bytearray, report: Callable[[Report], None]) -> bool:
    """Hand over, and remove, the whole reports among the bytes; return whether the last of them ends the job."""
    place, ended = 0, False
    while len(received) >= place + HEADER.size:
        end = place + HEADER.size + HEADER.unpack_from(received, place)[0]
        if len(received) < end:
            break
        message: Report = pickle.loads(memoryview(received)[place + HEADER.size : end])
        report(message)
        place, ended = end, message.ended
    del received[:place]
    return ended


def _how_it_ended(code: int) -> str:
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        memory = "; perhaps the machine ran out of memory" if name == "SIGKILL" else ""
        return f"the worker process was ended by {name}{memory}"
    return f"the worker process ended with exit code {code}; {LOG_NAME} has what it printed"
