"""The executor of a Ray cluster: what it says to its driver process, and what it makes
of the answers. No Ray is needed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import pickle
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cheesebench.errors import OptionError, PluginError
from cheesebench.executor import ExecutorContext, Job, Report, WorkerDiedError
from cheesebench.plugins.executors import pipes
from cheesebench.plugins.executors.ray_cluster import (
    CAPACITY,
    LOG_NAME,
    RayExecutor,
)


class Process:
    """A driver process that a test speaks for."""

    pid = -1

    def __init__(self) -> None:
        self.stdin, self.stdout = self, asyncio.StreamReader()
        self.returncode: int | None = None
        self.heard: list[Any] = []
        self._received = bytearray()

    def write(self, content: bytes) -> None:
        self._received += content
        self.heard += pipes.unpack(self._received)

    def close(self) -> None:
        self.kill()

    def say(self, *messages: Any) -> None:
        self.stdout.feed_data(b"".join(map(pipes.pack, messages)))

    def report(self, number: int, *, trials: int = 0, ended: bool = False) -> None:
        made = [(cast(Any, SimpleNamespace(trial=one)), ()) for one in range(trials)]
        content = pickle.dumps(Report(trials=made, ended=ended))
        self.say(("reports", [(number, content)]))

    def die(self, code: int) -> None:
        self.returncode = code
        self.stdout.feed_eof()

    def kill(self) -> None:
        if self.returncode is None:
            self.die(-9)

    async def wait(self) -> int:
        assert self.returncode is not None
        return self.returncode


@pytest.fixture(name="processes")
def _processes(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    """The driver processes that were started, the latest last."""
    made: list[Process] = []

    async def start(module: str, log: Path) -> Process:
        assert module == "cheesebench.plugins.executors.ray_driver"
        assert log.name == LOG_NAME
        made.append(Process())
        return made[-1]

    monkeypatch.setattr(pipes, "start", start)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return made


def executor(tmp_path: Path, **context: Any) -> RayExecutor:
    given: dict[str, Any] = {"plugins": cast(Any, None), "processes": 4}
    return RayExecutor(ExecutorContext(directory=tmp_path, **(given | context)))


def job(plan: str, subject: int = 0) -> Job:
    return cast(Job, SimpleNamespace(plan=plan, subject=subject, yoke=None))


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


Talk = Callable[[RayExecutor], Awaitable[None]]


async def begin(one: RayExecutor, processes: list[Process]) -> Process:
    started = asyncio.ensure_future(one.start())
    await settle()
    processes[-1].say(("ready",))
    await started
    return processes[-1]


def played(one: RayExecutor, talk: Talk) -> None:
    async def whole() -> None:
        try:
            await talk(one)
        finally:
            await one.close()

    asyncio.run(whole())


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_cpus": "0"}, "--executor-option num_cpus=0: give a number of at least 0.001 (and below a million), such as 1."),
        ({"num_cpus": "x"}, "num_cpus=x: give a number of at least 0.001"),
        ({"num_gpus": "-1"}, "num_gpus=-1: give a number of at least 0 (and below a million), such as 1."),
        ({"num_gpus": "1e6"}, "num_gpus=1e6: give a number"),
        ({"num_cpus": "nan"}, "num_cpus=nan: give a number"),
        ({"address": "ray://head:1"}, "ray://head:1 is for Ray Client, which cannot stream results"),
    ],
)  # fmt: skip
def test_options_that_are_wrong_are_named(
    tmp_path: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(OptionError) as found:
        executor(tmp_path, options=options)
    assert said in str(found.value)


def test_without_ray_it_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OptionError, match="--executor ray needs Ray"):
        executor(tmp_path)


@pytest.mark.parametrize(
    ("context", "variable", "begun"),
    [
        ({}, "", {}),
        ({"processes_given": True}, "", {"processes": 4}),
        ({}, "head:1", {"address": "head:1"}),
        (
            {"options": {"address": "auto", "num_cpus": "0.5", "num_gpus": "0.25"}},
            "head:1",
            {"address": "auto", "num_cpus": 0.5, "num_gpus": 0.25},
        ),
    ],
)
def test_a_driver_begins_with_what_the_user_asked_for(
    tmp_path: Path,
    processes: list[Process],
    monkeypatch: pytest.MonkeyPatch,
    context: dict[str, Any],
    variable: str,
    begun: dict[str, Any],
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", variable)
    usual = {"address": None, "num_cpus": 1.0, "num_gpus": 0.0, "processes": None}

    async def talk(one: RayExecutor) -> None:
        started = asyncio.ensure_future(one.start())
        await settle()
        assert not started.done()
        processes[0].say(("ready",), ("ready",))
        await started
        await one.start()

    one = executor(tmp_path, **context)
    assert one.capacity == CAPACITY
    played(one, talk)
    assert len(processes) == 1
    assert processes[0].heard == [{**usual, "path": list(sys.path), **begun}]
    assert processes[0].returncode == -9


def test_a_cell_is_sent_once_and_a_job_ends_with_its_last_report(
    tmp_path: Path, processes: list[Process]
) -> None:
    reports: list[Report] = []

    async def talk(one: RayExecutor) -> None:
        process = await begin(one, processes)
        plan = "plan"
        jobs = [job(plan), job(plan, 1), job("other")]
        tasks = [asyncio.ensure_future(one.run(each, reports.append)) for each in jobs]
        await settle()
        kinds = [message[:3] for message in process.heard[1:] if message[0] == "job"]
        assert kinds == [("job", 0, 0), ("job", 1, 0), ("job", 2, 1)]
        assert [message for message in process.heard[1:] if message[0] == "job"][1] == (
            "job", 1, 0, 1, None,
        )  # fmt: skip
        cells = [message for message in process.heard[1:] if message[0] == "cell"]
        assert [number for _, number, _ in cells] == [0, 1]
        assert pickle.loads(cells[0][2]) == jobs[0]
        process.report(1, trials=2)
        process.report(7, ended=True)  # of a job that nobody waits for
        process.report(1, ended=True)
        await settle()
        assert [task.done() for task in tasks] == [False, True, False]
        assert [(len(one.trials), one.ended) for one in reports] == [
            (2, False),
            (0, True),
        ]
        process.report(0, ended=True)
        process.report(2, ended=True)
        await asyncio.gather(*tasks)

    played(executor(tmp_path), talk)


def test_a_cluster_that_refuses_gets_no_more_jobs(
    tmp_path: Path, processes: list[Process]
) -> None:
    async def talk(one: RayExecutor) -> None:
        first = asyncio.ensure_future(one.run(job("plan"), lambda report: None))
        await settle()
        processes[0].say(("refused", "node 3 differs"))
        for task in (first, asyncio.ensure_future(one.run(job("plan"), print))):
            with pytest.raises(PluginError, match="--executor ray: node 3 differs"):
                await task

    played(executor(tmp_path), talk)
    assert len(processes) == 1


def test_a_driver_that_dies_is_said_and_started_again(
    tmp_path: Path, processes: list[Process]
) -> None:
    async def talk(one: RayExecutor) -> None:
        task = asyncio.ensure_future(one.run(job("plan"), lambda report: None))
        await settle()
        processes[0].die(3)
        with pytest.raises(
            PluginError, match="--executor ray: the process that drives"
        ):
            await task
        task = asyncio.ensure_future(one.run(job("plan"), lambda report: None))
        await settle()
        processes[1].say(("ready",))
        await settle()
        processes[1].die(-9)
        with pytest.raises(WorkerDiedError, match="drives Ray was ended by SIGKILL"):
            await task
        task = asyncio.ensure_future(one.run(job("plan"), lambda report: None))
        await settle()
        processes[2].say(("ready",))
        await settle()
        # The new process does not know the cell.
        assert [message[:2] for message in processes[2].heard[1:]] == [
            ("cell", 0),
            ("job", 1),
        ]
        processes[2].report(1, ended=True)
        await task

    played(executor(tmp_path), talk)
    assert len(processes) == 3


def test_what_happens_to_one_job_concerns_no_other(
    tmp_path: Path, processes: list[Process]
) -> None:
    reports: list[Report] = []

    def odd(report: Report) -> None:
        raise OSError("no room")

    async def talk(one: RayExecutor) -> None:
        process = await begin(one, processes)
        heard = (reports.append, odd, lambda report: None)
        plan = "plan"
        tasks = [
            asyncio.ensure_future(one.run(job(plan, number), each))
            for number, each in enumerate(heard)
        ]
        await settle()
        process.report(1, trials=1)
        process.report(1, trials=1)
        process.say(("again", 7, "nobody waits"), ("again", 0, "node lost"))
        process.report(0, trials=3)
        process.report(0, trials=1)
        process.say(("again", 0, "node lost"), ("died", 2, "too often"))
        await settle()
        with pytest.raises(OSError, match="no room"):
            await tasks[1]
        with pytest.raises(WorkerDiedError, match="too often"):
            await tasks[2]
        assert not tasks[0].done()
        notes = [note for report in reports for note in report.notes]
        assert notes == [
            ("error", "stopped in trial 1: node lost"),
            ("error", "stopped in trial 4: node lost"),
        ]
        process.report(0, ended=True)
        await tasks[0]

    played(executor(tmp_path), talk)


def test_a_session_that_stops_waiting_for_the_start_can_close(
    tmp_path: Path, processes: list[Process]
) -> None:
    async def talk(one: RayExecutor) -> None:
        started = asyncio.ensure_future(one.start())
        await settle()
        started.cancel()
        await settle()
        processes[0].say(("ready",))
        await settle()

    one = executor(tmp_path)
    played(one, talk)
    assert processes[0].returncode == -9
