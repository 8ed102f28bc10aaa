"""Clusters that cannot do the jobs, and sessions that end early: a timely message, and
nothing left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cheesebench import ExecutorContext, PluginError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.recorder import Recorder
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import PluginManager

pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")

from cheesebench.plugins.executors import pipes
from cheesebench.plugins.executors.ray_cluster import RayExecutor
from cheesebench.plugins.executors.ray_driver import END_SECONDS

pytestmark = [pytest.mark.ray, pytest.mark.timeout(180)]

#: Runs the driver process with a different limit on connecting.
DRIVER = """
import sys
from cheesebench.plugins.executors import ray_driver
ray_driver.CONNECT_SECONDS = float(sys.argv[1])
ray_driver.main(sys.stdin.buffer)
"""
PATIENCE = 60.0


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a listener that accepts connections and never answers, like a
    cluster that hangs.
    """
    # Ray replaces 127.0.0.1 by the address of this machine.
    with socket.create_server(("", 0), backlog=100) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@contextlib.asynccontextmanager
async def driver(address: str, limit: float) -> AsyncIterator[Process]:
    """A driver process that is to connect to a cluster."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", DRIVER, str(limit)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,
    )
    try:
        assert process.stdin is not None
        options = {
            "address": address,
            "num_cpus": 1.0,
            "num_gpus": 0.0,
            "processes": None,
            "path": sys.path,
        }
        process.stdin.write(pipes.pack(options))
        yield process
    finally:
        await pipes.end(process)


def test_a_cluster_that_does_not_answer_is_given_up(silent: str) -> None:
    async def said() -> list[Any]:
        async with driver(silent, 5) as process, asyncio.timeout(PATIENCE):
            assert process.stdout is not None
            return list(pipes.unpack(bytearray(await process.stdout.read())))

    assert asyncio.run(said()) == [
        (
            "refused",
            "Ray cannot be reached: no answer in 5 s. Check its address and the cluster (ray status).",
        )
    ]


def test_a_session_that_ends_while_its_cluster_does_not_answer_leaves_nothing(
    silent: str,
) -> None:
    async def end() -> int:
        async with driver(silent, 600) as process:
            assert process.stdin is not None
            # The session is importing Ray, and trying to connect.
            await asyncio.sleep(5)
            process.stdin.close()
            return await asyncio.wait_for(process.wait(), END_SECONDS + PATIENCE)

    assert asyncio.run(end()) == 0


def test_nodes_that_are_too_small_are_refused(
    cluster: Any, stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"], subjects=1)
    wanted = {"address": cluster.address, "num_gpus": "1"}
    with (
        RunLog.create(tmp_path, "ray", cells.items(), options={"seed": 1}) as log,
        RunSession(
            log, plugins, cells, seed=1, executor="ray", executor_options=wanted
        ) as session,
        pytest.raises(
            PluginError,
            match=r"\(CPUs 1, GPUs 1\), but no node of the cluster has so many .* GPUs 0\)",
        ),
    ):
        session.connect()


def test_a_job_after_a_refusal_is_refused_at_once(
    plugins: PluginManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another attempt may take minutes, and there may be thousands of jobs."""
    started = []
    start = pipes.start

    async def counted(*given: Any) -> Process:
        started.append(given)
        return await start(*given)

    monkeypatch.setattr(pipes, "start", counted)

    async def refusals() -> list[str]:
        executor = RayExecutor(context(plugins, tmp_path, "127.0.0.1:1"))
        found = []
        try:
            for begin in (executor.start, lambda: executor.run(None, print)):  # type: ignore[arg-type]
                with pytest.raises(PluginError) as refused:
                    await asyncio.wait_for(begin(), PATIENCE)
                found.append(str(refused.value))
        finally:
            await executor.close()
        return found

    first, second = asyncio.run(refusals())
    assert first == second
    assert len(started) == 1
    assert first.startswith("--executor ray: Ray cannot be reached: ")


def test_a_start_that_was_cancelled_can_be_closed_and_closing_ends_one_that_waits(
    plugins: PluginManager, tmp_path: Path, silent: str
) -> None:
    async def end() -> None:
        executor = RayExecutor(context(plugins, tmp_path, silent))
        cancelled = asyncio.create_task(executor.start())
        await asyncio.sleep(1)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        process = executor._process
        assert process is not None
        await asyncio.wait_for(executor.close(), PATIENCE)
        assert process.returncode is not None

        waiting = asyncio.create_task(executor.start())
        await asyncio.sleep(1)
        await asyncio.wait_for(executor.close(), PATIENCE)
        await asyncio.wait([waiting], timeout=PATIENCE)
        assert waiting.cancelled()

    asyncio.run(end())


def test_an_error_of_the_session_ends_the_run(
    cluster: Any,
    stranger: ModuleType,
    plugins: PluginManager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It must not end the task that listens to all jobs, because then no job would ever
    report again.
    """
    cells = stranger.cells(["walker"], subjects=4)

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    with (
        RunLog.create(tmp_path, "ray", cells.items(), options={"seed": 1}) as log,
        RunSession(
            log,
            plugins,
            cells,
            seed=1,
            executor="ray",
            executor_options={"address": cluster.address},
        ) as session,
    ):
        session.connect()
        monkeypatch.setattr(Recorder, "add", fail)
        with pytest.raises(ZeroDivisionError):
            session.finish()


def context(plugins: PluginManager, directory: Path, address: str) -> ExecutorContext:
    return ExecutorContext(
        plugins=plugins, directory=directory, processes=1, options={"address": address}
    )
