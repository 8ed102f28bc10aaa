"""Runs on a Ray cluster: the same records as locally, no matter which process dies, and
no leftovers.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cheesebench.errors import PluginError, RunLogError
from cheesebench.experiment.cells import find_design
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.family import CellRequest
from cheesebench.interfaces import BaseSpecification
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue
from cheesebench.records import CellPlan
from tests.signals import reset_signals

pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")

from cheesebench.plugins.executors.ray_driver import CRASHES

#: A limit against hangs, so that no test keeps a machine for hours.
pytestmark = [pytest.mark.ray, pytest.mark.timeout(1800)]

#: Maximum seconds for anything: a busy machine starts a cluster in a minute.
PATIENCE = 600.0
Cells = dict[CellPlan, BaseSpecification]


@pytest.fixture(autouse=True)
def address(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the cluster."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)


def shipped_cells(plugins: PluginManager, subjects: int) -> Cells:
    specification = Catalogue(plugins.protocol_directories).find("t_maze")
    design, views = find_design("cohort", subjects), ("ascii_2d",)
    return {
        plan: specification
        for model in ("random", "tabular-ql")
        for plan in plugins.family(specification).cells(
            specification,
            CellRequest(model=model, plugins=plugins, design=design, views=views),
        )
    }


def run(log: RunLog, plugins: PluginManager, cells: Cells, **given: Any) -> None:
    with RunSession(log, plugins, cells, seed=1, **given) as session:
        session.connect()
        session.finish()


def dumped(
    directory: Path, plugins: PluginManager, cells: Cells, **given: Any
) -> list[str]:
    with RunLog.create(
        directory,
        str(given.get("executor", "local")),
        cells.items(),
        options={"seed": 1},
    ) as log:
        run(log, plugins, cells, **given)
        return list(log.dump())


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "nothing happens any more"
        time.sleep(0.02)


def finished(log: RunLog) -> int:
    return int(log.select("SELECT count(*) FROM lives")[0][0])


def test_a_node_that_dies_changes_nothing(
    cluster: Any, stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    # Slow lives sleep, so that even on a fast machine most of the work remains when the
    # second node dies.
    cells = {
        **stranger.cells(["walker"], subjects=12),
        **stranger.cells(["slow"], subjects=120),
        **shipped_cells(plugins, 20),
    }
    expected = dumped(tmp_path, plugins, cells)
    total = sum(plan.subjects for plan in cells)
    with (
        RunLog.create(tmp_path, "ray", cells.items(), options={"seed": 1}) as log,
        RunSession(log, plugins, cells, seed=1, executor="ray") as session,
    ):
        session.connect()
        session.start()
        for fallen, node in enumerate(list(cluster.worker_nodes), 1):
            # At any moment: sent trials count, and the others are done elsewhere.
            least = (
                random.Random(fallen).randrange(total // 4) + (fallen - 1) * total // 4
            )
            wait_for(lambda least=least: finished(log) > least)  # type: ignore[misc]
            cluster.remove_node(node, allow_graceful=False)
        assert finished(log) < total, "they died too late"
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        session.finish()
        assert list(log.dump()) == expected
        assert all(
            re.match(r"stopped in trial \d+: a Ray node died", one.text)
            for one in log.journal(kind="error")
        )


def test_an_agent_that_kills_its_process_loses_its_own_subjects_only(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["dying", "walker"], subjects=4, names=["corridor"])
    plan, other = cells
    with RunLog.create(tmp_path, "ray", cells.items(), options={"seed": 1}) as log:
        run(log, plugins, cells, executor="ray")
        assert len(log.completed_subjects(other)) == 4
        stops = log.journal(plan, "error")
        dead = {
            entry.subject: entry.text for entry in stops if "attempts" in entry.text
        }
        assert dead
        again = [
            entry
            for entry in stops
            if entry.subject in dead and "attempts" not in entry.text
        ]
        assert len(again) >= (CRASHES - 1) * len(dead)
        assert all(entry.text.startswith("stopped in trial ") for entry in again)
        assert {*dead, *log.completed_subjects(plan)} == set(range(4))
        assert all(f"; all {CRASHES} attempts failed" in text for text in dead.values())


def test_a_node_where_something_else_is_installed_is_refused(
    cluster: Any, stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    other = tmp_path / "lib/other-3.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other\nVersion: 3.0\n"
    )
    (other / "entry_points.txt").write_text("[cheesebench]\nother = json\n")
    node = cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(other.parent)})
    cells = stranger.cells(["walker"], subjects=2)
    with RunLog.create(tmp_path, "ray", cells.items(), options={"seed": 1}) as log:
        try:
            with pytest.raises(PluginError) as refused:
                run(log, plugins, cells, executor="ray")
        finally:
            cluster.remove_node(node)
        assert "\n" not in str(refused.value)
        assert "differs: plugin other: other 3.0 (" in str(refused.value)
        assert "here none. Install the same on all nodes." in str(refused.value)
        assert log.trials() == []


def test_no_cluster_is_one_line(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"], subjects=1)
    with RunLog.create(tmp_path, "ray", cells.items(), options={"seed": 1}) as log:
        with pytest.raises(
            PluginError, match=r"^--executor ray: Ray cannot be reached: "
        ) as refused:
            run(
                log,
                plugins,
                cells,
                executor="ray",
                executor_options={"address": "127.0.0.1:1"},
            )
        assert "\n" not in str(refused.value)
    gc.collect()  # an unawaited process would warn


def marked(mark: str) -> list[int]:
    """The processes with a mark in their environment."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (directory / "environ").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue
    return found


@pytest.fixture
def alone() -> Iterator[Mapping[str, str]]:
    """An environment with a mark, and without a cluster."""
    mark = f"cheesebench-{uuid.uuid4()}"
    given = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    yield {**given, "MARK": mark}
    for process in marked(mark):
        os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name
)
def test_a_run_that_is_killed_leaves_no_process(
    alone: Mapping[str, str], tmp_path: Path, number: int
) -> None:
    given = [
        "--model=random",
        "--protocols=t_maze",
        "--subjects=20000",
        "--executor=ray",
        "--cheese-run-id=r",
    ]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *given,
        "--executor-option=address=local",
        "-p",
        "no:cacheprovider",
    ]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=alone,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=reset_signals,
    ) as process:
        path = tmp_path / "results/r/run.sqlite"

        def works() -> bool:
            assert process.poll() is None
            with (
                contextlib.suppress(RunLogError),
                RunLog.open_read_only(path) as log,
            ):
                # The log may not be written yet.
                return finished(log) > 0
            return False

        try:
            wait_for(works)
            assert len(marked(alone["MARK"])) > 4
            process.send_signal(number)
            process.wait(PATIENCE)
        except BaseException:
            process.kill()
            raise
    try:
        wait_for(lambda: marked(alone["MARK"]) == [])
    except AssertionError:
        raise AssertionError(
            f"left: {[_command(one) for one in marked(alone['MARK'])]}"
        ) from None


def _command(process: int) -> str:
    with contextlib.suppress(OSError):
        return (
            Path(f"/proc/{process}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode(errors="replace")[:150]
        )
    return "ended"
