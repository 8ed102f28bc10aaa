"""Runs subjects in threads of this process, for agents that other processes cannot
load, such as agents of a conftest.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable

from cheesebench import ExecutorContext, Job, JobRunner, Report

#: Seconds that threads get to end their trials when the session closes. Then they are
#: abandoned. A thread whose reports wait also checks this often whether the session
#: closes.
STOP_SECONDS = 2.0
#: Maximum number of reports of one thread that wait for the event loop. With many
#: threads, the loop is slow.
MOST_WAITING_REPORTS = 64


class ThreadExecutor:
    """Does each job in a daemon thread, so that an agent that never returns does not
    keep Python alive.
    """

    def __init__(self, context: ExecutorContext) -> None:
        self.capacity = max(context.processes, 1)
        self._plugins = context.plugins
        self._idle: list[JobRunner] = []
        self._threads: set[threading.Thread] = set()
        self._stopping = threading.Event()

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        room = threading.Semaphore(MOST_WAITING_REPORTS)
        runner = self._idle.pop() if self._idle else JobRunner(self._plugins)

        def call_in_loop(callback: Callable[..., object], *arguments: object) -> None:
            # When an abandoned thread returns, the loop may be closed.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(callback, *arguments)

        def deliver(message: Report) -> None:
            room.release()
            if not ended.done():
                report(message)

        def finish(error: Exception | None) -> None:
            if ended.done():  # The job was cancelled.
                return
            if error is None:
                ended.set_result(None)
            else:
                ended.set_exception(error)

        def work() -> None:
            problem: Exception | None = None
            try:
                for message in runner.reports(job):
                    while not room.acquire(timeout=STOP_SECONDS):
                        if self._stopping.is_set():
                            return
                    call_in_loop(deliver, message)
                    if self._stopping.is_set():
                        return
            except Exception as error:
                # An error here is a bug in CheeseBench. Pass it on to whoever awaits
                # the subject.
                problem = error
            call_in_loop(finish, problem)

        thread = threading.Thread(target=work, name="cheesebench-subject", daemon=True)
        self._threads.add(thread)
        thread.start()
        await ended
        self._threads.discard(thread)
        self._idle.append(runner)

    async def close(self) -> None:
        """Tell the threads to stop after their present trials, and wait up to
        ``STOP_SECONDS`` for them.
        """
        self._stopping.set()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            await asyncio.to_thread(thread.join, max(0.0, deadline - time.monotonic()))
