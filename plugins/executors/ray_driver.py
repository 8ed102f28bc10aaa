"""The process that drives Ray for a session. It receives jobs through one pipe, and
sends reports through another.

Ray ends the process of a driver that loses its cluster. The session writes the log and
must survive this, so the driver is a separate process. When the session ends, for
whatever reason, the pipe closes. Then this process ends, and with it every Ray process
that it has started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import queue
import socket
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import ray
from ray import cloudpickle
from ray.exceptions import (
    LocalRayletDiedError,
    NodeDiedError,
    ObjectLostError,
    RayError,
    RayTaskError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cheesebench import installation
from cheesebench.plugins.executors import pipes, ray_task

#: ``TASK_SECONDS``: target duration of a task. Ray itself needs some milliseconds for
#: each task. ``TASK_JOBS``: maximum number of jobs in a task.
TASK_SECONDS, TASK_JOBS = 0.5, 64
#: A job fails when this many of its attempts have failed: ``DEATHS`` because a node
#: died, or ``CRASHES`` for another reason, such as the death of a process.
CRASHES, DEATHS = 3, 20
#: Seconds before the next attempt at a job whose node died. For about 15 s after a
#: node's death, Ray still sends tasks to it, and each fails at once.
MISSED_SECONDS = 3.0
#: ``CHECK_SECONDS``: time limit for the nodes to report their installation.
#: ``LOOK_SECONDS``: time between checks of the cluster's size. ``END_SECONDS``: time
#: limit for this process to end after its input was closed.
CHECK_SECONDS, LOOK_SECONDS, END_SECONDS = 120.0, 2.0, 10.0
#: ``REACH_SECONDS``: timeout of the test connection to HOST:PORT. ``CONNECT_SECONDS``:
#: time limit for Ray to join a cluster, or to start one on a busy machine.
REACH_SECONDS, CONNECT_SECONDS = 10.0, 180.0
#: Queue of the messages from the session. The last entry is None.
Inbox = queue.SimpleQueue[bytes | None]


@dataclass(eq=False)
class Cell:
    """A cell: one of its jobs, pickled, and how many seconds a job takes (None:
    unknown).
    """

    content: bytes
    seconds: float | None = None


@dataclass(eq=False)
class Work:
    """A job. ``deaths`` is the number of its attempts that failed because a node died,
    and ``crashes`` the number of its other failed attempts. After the first failure,
    the job runs in a task of its own.
    """

    number: int
    cell: Cell
    subject: int
    yoke: Any
    crashes: int = 0
    deaths: int = 0

    @property
    def alone(self) -> bool:
        return bool(self.crashes or self.deaths)


class Driver:
    """Hands jobs to Ray, short ones together in tasks of about half a second.
    Everything happens in one event loop.
    """

    def __init__(self, pipe: Any, options: Mapping[str, Any]) -> None:
        self._pipe = pipe
        self._path: list[str] = options["path"]
        self._limit: int | None = options["processes"]
        self._cpus: float = options["num_cpus"]
        self._gpus: float = options["num_gpus"]
        # Switch off Ray's own retries, which would mix the messages of two attempts.
        taken = {"num_cpus": self._cpus, "num_gpus": self._gpus}
        self._task = ray.remote(max_retries=0, num_returns="streaming", **taken)(
            ray_task.do_jobs
        )
        self._cells: dict[int, Cell] = {}
        self._waiting: deque[Work] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._slots = 1
        self.over = asyncio.Event()

    def hear(self, kind: str, *values: Any) -> None:
        """Handle a message from the session: a cell, or a job of a cell."""
        if kind == "cell":
            self._cells[values[0]] = Cell(values[1])
        else:
            number, cell, subject, yoke = values
            self._waiting.append(Work(number, self._cells[cell], subject, yoke))
            self._dispatch()

    def _say(self, *message: Any) -> None:
        try:
            pipes.write_all(self._pipe, pipes.pack(message))
        except OSError:  # The session has ended.
            self.over.set()

    async def check(self) -> None:
        """Compare the nodes' installations with the session's, and tell the session
        whether jobs can be done.
        """
        found: dict[str, str] = {}
        nodes = [
            node
            for node in ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU")
        ]
        if self._limit is None and not any(map(self._fits, nodes)):
            # Ray would silently wait forever for a node that is large enough.
            self._say("refused", self._too_small(nodes))
            return
        await asyncio.gather(*(self._check_node(node, found) for node in nodes))
        if found:
            self._say("refused", _told(found))
            return
        self._look()
        self._say("ready", len(nodes), self._slots)

    def _fits(self, node: Mapping[str, Any]) -> bool:
        has = node["Resources"]
        return bool(has.get("CPU", 0) >= self._cpus and has.get("GPU", 0) >= self._gpus)

    def _too_small(self, nodes: Sequence[Mapping[str, Any]]) -> str:
        most = (
            max((node["Resources"].get(kind, 0) for node in nodes), default=0)
            for kind in ("CPU", "GPU")
        )
        has = ", ".join(
            f"{kind} {number:g}"
            for number, kind in zip(most, ("CPUs", "GPUs"), strict=True)
        )
        return (
            f"a subject takes CPUs and GPUs of one node (CPUs {self._cpus:g}, GPUs {self._gpus:g}), but no node of the "
            f"cluster has so many of both (largest numbers on any node: {has}). Lower --executor-option num_cpus or "
            "num_gpus. If larger nodes are still to join, give --processes."
        )

    async def _check_node(self, node: Mapping[str, Any], found: dict[str, str]) -> None:
        strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                task = self._task.options(
                    scheduling_strategy=strategy, num_cpus=0, num_gpus=0
                )
                async for ref in task.remote(self._path, installation(), b"", []):
                    _, *values = pickle.loads(await ref)
                    if values[0]:
                        found[name] = _differing(values[0])
        except TimeoutError:
            found[name] = (
                f"gave no answer in {CHECK_SECONDS:.0f} s. Check it, or take it out of the cluster."
            )
        except RayError as error:
            # Ignore a node that died during the check, because it will do no jobs.
            alive = {one["NodeID"] for one in ray.nodes() if one["Alive"]}
            if node["NodeID"] in alive:
                found[name] = (
                    f"fails: {_line(getattr(error, 'cause', error))}. Repair it, or take it out of the cluster."
                )

    def _look(self) -> None:
        """Adapt to the size of the cluster, now and again later, because nodes come and
        go.
        """
        cpus = ray.cluster_resources().get("CPU", 0)
        self._slots = self._limit or max(1, int(cpus / self._cpus))
        self._dispatch()
        asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _dispatch(self) -> None:
        while self._waiting and len(self._running) < self._slots:
            task = asyncio.create_task(self._do(self._next()))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._say("refused", _line(task.exception()))
        self._dispatch()

    def _next(self) -> list[Work]:
        """Take the jobs of the next task and return them. All are of one cell, and
        enough are left for other tasks.
        """
        works = [self._waiting.popleft()]
        cell = works[0].cell
        if cell.seconds is None or works[0].alone:
            return works
        most = min(
            TASK_JOBS,
            int(TASK_SECONDS / max(cell.seconds, 1e-6)),
            -(-len(self._waiting) // self._slots),
        )
        while (
            self._waiting
            and len(works) < most
            and self._waiting[0].cell is cell
            and not self._waiting[0].alone
        ):
            works.append(self._waiting.popleft())
        return works

    async def _do(self, works: list[Work]) -> None:
        cell = works[0].cell
        unfinished = {work.number: work for work in works}
        jobs = [(work.number, work.subject, work.yoke) for work in works]
        try:
            async for ref in self._task.remote(
                self._path, installation(), cell.content, jobs
            ):
                kind, *values = pickle.loads(await ref)
                if kind == "differs":
                    self._say(
                        "refused", _told({"(joined later)": _differing(values[0])})
                    )
                    return
                seconds, reports = values
                for number, ended, _ in reports:
                    if ended:
                        del unfinished[number]
                if not unfinished:
                    cell.seconds = seconds / len(works)
                self._say(
                    "reports", [(number, packed) for number, _, packed in reports]
                )
        except RayTaskError as error:
            self._again(unfinished.values(), crashes=1, why=_line(error.cause or error))
        except (NodeDiedError, LocalRayletDiedError, ObjectLostError) as error:
            await asyncio.sleep(MISSED_SECONDS)
            self._again(
                unfinished.values(), deaths=1, why=f"a Ray node died ({_line(error)})"
            )
        except RayError as error:
            self._again(
                unfinished.values(),
                crashes=1,
                why=f"the Ray worker died ({_line(error)})",
            )

    def _again(
        self, works: Iterable[Work], *, crashes: int = 0, deaths: int = 0, why: str
    ) -> None:
        """Retry jobs, each in a task of its own, unless they have failed too often. The
        first job is the one that was interrupted.
        """
        works = list(works)
        for work in reversed(works):
            work.crashes += crashes
            work.deaths += deaths
            if work.crashes >= CRASHES or work.deaths >= DEATHS:
                tried = work.crashes + work.deaths
                self._say("died", work.number, f"{why}; all {tried} attempts failed")
            else:
                if work is works[0]:
                    self._say("again", work.number, why)
                self._waiting.appendleft(work)


def main(jobs: BinaryIO) -> None:
    """Connect with the settings in the first message. Then do jobs until ``jobs`` is
    closed.
    """
    pipe = pipes.take_output()
    options = pickle.loads(next(pipes.read_messages(jobs)))
    inbox: Inbox = queue.SimpleQueue()
    # Start the thread before connecting, because the session may end while the cluster
    # does not answer.
    threading.Thread(target=_receive, args=(jobs, inbox), daemon=True).start()
    cloudpickle.register_pickle_by_value(ray_task)
    # Send no usage statistics unless the user's environment asks for them.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        _reach(options["address"])
        with _limited(pipe):
            # Without an address, Ray uses RAY_ADDRESS, or else a cluster on this
            # machine, or else it starts one.
            ray.init(
                options["address"],
                include_dashboard=False,
                logging_level="ERROR",
                namespace="cheesebench",
            )
    except Exception as error:
        # If there is no cluster, Ray raises ConnectionError, RuntimeError or another
        # error.
        pipes.write_all(
            pipe, pipes.pack(("refused", f"Ray cannot be reached: {_line(error)}"))
        )
        _end()
    try:
        asyncio.run(_serve(Driver, pipe, options, inbox))
    finally:
        _end_later()
        ray.shutdown()
        sys.stderr.flush()
        _end()


def _receive(jobs: BinaryIO, inbox: Inbox) -> None:
    for content in pipes.read_messages(jobs):
        inbox.put(content)
    _end_later()
    inbox.put(None)


@contextlib.contextmanager
def _limited(pipe: Any) -> Iterator[None]:
    """End this process with a message unless the block ends in time. If anything
    listens at the address, even if it is no cluster, Ray tries endlessly.
    """

    def give_up() -> None:
        pipes.write_all(
            pipe,
            pipes.pack(
                (
                    "refused",
                    f"Ray cannot be reached: no answer in {CONNECT_SECONDS:.0f} s. Check its address and the cluster "
                    f"(ray status).",
                )
            ),
        )
        _end()

    timer = threading.Timer(CONNECT_SECONDS, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end_later() -> None:
    """End this process within END_SECONDS, whatever is pending."""
    timer = threading.Timer(END_SECONDS, _end)
    timer.daemon = True
    timer.start()


def _end() -> None:
    """End this process and everything that it has started. By itself, a starting worker
    would wait long for a cluster that is gone.
    """
    pipes.end_session(os.getpid())
    os._exit(0)


def _reach(address: str | None) -> None:
    """Raise OSError if nothing listens at HOST:PORT. Ray would retry for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()


async def _serve(
    create: type[Driver], pipe: Any, options: Mapping[str, Any], inbox: Inbox
) -> None:
    driver = create(pipe, options)
    loop = asyncio.get_running_loop()

    def hand_over() -> None:
        while (content := inbox.get()) is not None:
            loop.call_soon_threadsafe(driver.hear, *pickle.loads(content))
        loop.call_soon_threadsafe(driver.over.set)

    await driver.check()
    threading.Thread(target=hand_over, daemon=True).start()
    await driver.over.wait()


def _differing(phrases: Iterable[str]) -> str:
    return f"differs: {'; '.join(phrases)}. Install the same on all nodes."


def _told(found: Mapping[str, str]) -> str:
    """Return the fault of the first node, and how many other nodes have faults."""
    first, said = next(iter(found.items()))
    others = f" (and {len(found) - 1} more with faults)" if len(found) > 1 else ""
    return f"Ray node {first}{others} {said}"


def _line(error: object) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]}..."
