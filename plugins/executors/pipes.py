"""Processes that exchange length-prefixed messages with the session through standard
input and output.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import pickle
import signal
import struct
import subprocess
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cheesebench import Report, WorkerDiedError

#: Length prefix of a message in a pipe.
HEADER = struct.Struct(">I")
#: Maximum number of bytes read from a process at once.
CHUNK = 1 << 18
#: Errors of a machine that is short of memory or processes for a moment. The start is
#: then tried again.
_SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.EFAULT)
#: Seconds before each further attempt to start a process.
_PAUSES = (0.5, 2.0)
# The code that a process runs, with the parent's sys.path. multiprocessing is not used,
# because it would import the parent's main module again (all of pytest, or a script
# without a guard), and one dead worker would break its whole pool.
_BOOT = (
    "import pickle, sys; jobs = sys.stdin.buffer; sys.path[:] = pickle.load(jobs); "
    "from {module} import main; main(jobs)"
)


def pack(message: Any) -> bytes:
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(content)) + content


def unpack(received: bytearray) -> Iterator[Any]:
    """Yield the complete messages in the received bytes, and remove them."""
    place = 0
    try:
        while len(received) >= place + HEADER.size:
            end = place + HEADER.size + HEADER.unpack_from(received, place)[0]
            if len(received) < end:
                break
            message = pickle.loads(memoryview(received)[place + HEADER.size : end])
            place = end
            yield message
    finally:
        del received[:place]


def deliver(received: bytearray, report: Callable[[Report], None]) -> bool:
    """Pass the complete reports in the received bytes to ``report``, and remove them.
    Return whether the last one ends the job.
    """
    ended = False
    for message in unpack(received):
        report(message)
        ended = message.ended
    return ended


def read_messages(jobs: Any) -> Iterator[bytes]:
    """Yield the raw messages of a pipe until it is closed."""
    while len(header := jobs.read(HEADER.size)) == HEADER.size:
        yield jobs.read(HEADER.unpack(header)[0])


def write_all(pipe: Any, content: bytes) -> None:
    """Write everything to an unbuffered pipe, which may accept only part of a long
    message at once.
    """
    message = memoryview(content)
    while message:
        message = message[pipe.write(message) :]


def take_output() -> Any:
    """Return standard output as a pipe for messages. From now on, prints go to standard
    error, which is the log.
    """
    reports = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    # A process that an agent forks, as in a multiprocessing pool, must not hold the
    # pipe, or the worker's death would not be noticed.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reports.close)
    return reports


async def start(module: str, log: Path) -> Process:
    """Start a process that runs the function ``main`` of a module, with the sys.path of
    this process. The process's standard error is appended to ``log``, if this file can
    be opened.

    Raise WorkerDiedError if the machine cannot start another process.
    """
    try:
        output: Any = open(log, "ab")  # noqa: SIM115 - closed below, the child has its own
    except OSError:
        output = subprocess.DEVNULL
    try:
        process = await _start(_BOOT.format(module=module), output)
    except (
        OSError,
        RuntimeError,
    ) as error:
        # The machine is out of memory, processes or threads. (Python starts a thread to
        # wait for the process.)
        raise WorkerDiedError(f"no process could be started: {error}") from error
    finally:
        if output is not subprocess.DEVNULL:
            output.close()
    assert process.stdin is not None
    process.stdin.write(pickle.dumps(sys.path))
    return process


async def _start(code: str, output: Any) -> Process:
    pauses = iter(_PAUSES)
    while True:
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-c",
                code,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                limit=CHUNK,
                # Ctrl-C must reach only the parent, which ends its workers itself.
                start_new_session=True,
            )
        except OSError as error:
            pause = next(pauses, None)
            if pause is None or error.errno not in _SHORTAGES:
                raise
        await asyncio.sleep(pause)


async def end(process: Process, patience: float = 0.0) -> int:
    """End a process that ``start`` has started, and the rest of its session (see
    ``end_session``), and return its exit code. First it has ``patience`` seconds to end
    by itself.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    if patience and process.returncode is None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.stdout.read(), patience)
    with contextlib.suppress(ProcessLookupError):
        if process.returncode is None and not process.stdout.at_eof():
            process.kill()
    end_session(process.pid)
    await process.stdout.read()  # A child of the process may keep its output open.
    return await process.wait()


def end_session(leader: int) -> None:
    """Kill the remaining processes of a session, except this process. They are found
    only on Linux, which has /proc.
    """
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # The process may have just ended.
            process = int(stat.parent.name)
            session = int(
                stat.read_text(errors="replace").rpartition(")")[2].split()[3]
            )
            if session == leader and process != os.getpid():
                os.kill(process, signal.SIGKILL)


def how_it_ended(code: int, what: str, log: str) -> str:
    if code < 0:
        name = (
            signal.Signals(-code).name
            if -code in set(signal.Signals)
            else f"signal {-code}"
        )
        memory = "; perhaps the machine ran out of memory" if name == "SIGKILL" else ""
        return f"{what} was ended by {name}{memory}"
    return f"{what} ended with exit code {code}; {log} has what it printed"
