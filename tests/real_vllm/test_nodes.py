"""A real vLLM on each of two nodes of a Ray cluster, as two nodes on this machine; the
model is tiny and random.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import recipe  # type: ignore[import-not-found]
from living import parents, wait_for  # type: ignore[import-not-found]
from test_real_vllm import CONFTEST, ROOM, calls, pytest_command, read  # type: ignore[import-not-found]

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def cluster(vllm: Any) -> Iterator[str]:
    """The address of a cluster of two nodes, which have the environment of the tests of
    vLLM.
    """
    pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")
    from ray.cluster_utils import Cluster

    before = dict(os.environ)
    os.environ.update(recipe.environment(), RAY_USAGE_STATS_ENABLED="0")
    try:
        made = Cluster(
            initialize_head=True,
            head_node_args={"num_cpus": 1, "include_dashboard": False},
        )
        made.add_node(num_cpus=1)
        yield made.address
        made.shutdown()
    finally:
        os.environ.clear()
        os.environ.update(before)


def servers() -> set[int]:
    """Return the processes of vLLM that were started on nodes, without those that they
    have started in their turn.
    """
    found, known = set(), parents()
    for process in known:
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
            started = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        # The supervisor of a server has its command among its arguments, too.
        if (
            words[1:3] == [b"-m", b"vllm.entrypoints.openai.api_server"]
            and MARK in started
        ):
            found.add(process)
    return {process for process in found if known[process] not in found}


#: Tells these servers from those of other tests: variables that begin so reach the
#: nodes.
MARK = f"VLLM_TEST_NODES={os.getpid()}".encode()


def test_two_nodes_share_a_run_and_one_of_them_dies(
    cluster: str, vllm: Any, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        CONFTEST.format(model=str(vllm.model)), encoding="utf-8"
    )
    (tmp_path / "room.protocol.yaml").write_text(ROOM, encoding="utf-8")
    options = {
        **recipe.ENGINE,
        "python": str(vllm.python),
        "nodes": "2",
        "startup_timeout": recipe.STARTUP_TIMEOUT,
    }
    with subprocess.Popen(
        pytest_command(
            *(
                "room.protocol.yaml",
                "--model",
                "tiny",
                "--design",
                "smoke",
                "--subjects",
                "64",
                "--actions",
                "4",
            ),
            *("--cheese-run-id", "nodes"),
            *(
                f"--cheese-backend-option={name}={value}"
                for name, value in options.items()
            ),
        ),
        cwd=tmp_path,
        env={
            **recipe.environment(),
            "RAY_ADDRESS": cluster,
            "VLLM_TEST_NODES": str(os.getpid()),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as session:
        try:
            begun = recipe.STARTUP_TIMEOUT
            wait_for(
                lambda: (
                    len(calls(tmp_path, "nodes")) > 60 or session.poll() is not None
                ),
                begun,
            )
            found = servers()
            assert len(found) == 2, (
                session.communicate()[0] if session.poll() is not None else found
            )
            os.kill(min(found), signal.SIGKILL)
            output, _ = session.communicate()
        finally:
            session.kill()
    assert session.returncode == 0, output
    assert "vLLM serves" in output
    assert "on 2 nodes" in output
    assert "does not answer any more; its subjects go on with the other one" in output
    assert "64 subjects;" in output
    assert read(
        tmp_path, "nodes", "SELECT count(*), sum(missing != '') FROM trials"
    ) == [(128, 0)]
    [load] = [
        text
        for (text,) in read(
            tmp_path, "nodes", "SELECT text FROM journal WHERE text LIKE '%subjects, %'"
        )
    ]
    assert re.findall(r"(\d+) subjects", load) == ["32", "32"]
    assert not servers()
