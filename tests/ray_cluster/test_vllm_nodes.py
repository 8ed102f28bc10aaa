"""``nodes=N`` of the backend ``vllm`` on a Ray cluster: a small program stands in for
vLLM.

The real one is in tests/real_vllm.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cheesebench import BackendContext, ModelEntry, OptionError, PluginError
from cheesebench.plugins.backends.vllm import gpus, serve

pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")
pytestmark = pytest.mark.ray

#: Listens where it is told to, is healthy, and says which process it is, what it was
#: started with, and one variable.
STAND_IN = """
import http.server, json, os, sys
def given(name): return sys.argv[sys.argv.index(name) + 1]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        told = {"pid": os.getpid(), "arguments": sys.argv[1:], "variable": os.environ.get("VLLM_SOMETHING"),
                "secret": os.environ.get("OPENAI_API_KEY")}
        self.wfile.write(json.dumps(told).encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer((given("--host"), int(given("--port"))), Handler).serve_forever()
"""
#: A session that starts servers and is killed: its arguments are those of ``context``.
SESSION = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from cheesebench import BackendContext, ModelEntry
from cheesebench.plugins.backends.vllm import serve
entry = ModelEntry(name="tiny", backend="vllm", id="org/tiny")
server = serve(BackendContext(entry=entry, directory=Path(sys.argv[2]), options=json.loads(sys.argv[3])))
print(server.base_url, server.process._process.pid, flush=True)
time.sleep(3600)
"""
PATIENCE = 90.0


@pytest.fixture(scope="module")
def two_nodes() -> Iterator[str]:
    """The address of a cluster of two nodes."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    made.add_node(num_cpus=1)
    yield made.address
    made.shutdown()


@pytest.fixture
def options(two_nodes: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("RAY_ADDRESS", two_nodes)
    monkeypatch.setenv("VLLM_SOMETHING", "said")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    return {
        "nodes": "2",
        "command": [sys.executable, "-c", STAND_IN],
        "startup_timeout": PATIENCE,
    }


def context(directory: Path, options: dict[str, Any]) -> BackendContext:
    entry = ModelEntry(name="tiny", backend="vllm", id="org/tiny")
    return BackendContext(entry=entry, directory=directory, options=options)


def told(url: str) -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url.removesuffix("/v1"), timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "this never happened"
        time.sleep(0.1)


def alive(process: int) -> bool:
    try:
        return (
            Path(f"/proc/{process}/stat")
            .read_text(encoding="utf-8")
            .rpartition(")")[2]
            .split()[0]
            != "Z"
        )
    except OSError:
        return False


def test_one_server_on_each_node_until_they_are_stopped(
    options: dict[str, Any], tmp_path: Path
) -> None:
    lines: list[str] = []
    given = {**options, "max_model_len": "4096"}
    entry = ModelEntry(name="tiny", backend="vllm", id="org/tiny")
    server = serve(
        BackendContext(
            entry=entry, directory=tmp_path, options=given, progress=lines.append
        )
    )
    try:
        urls = server.base_url.split(",")
        assert len(set(urls)) == 2
        found = [told(url) for url in urls]
        assert all(alive(one["pid"]) for one in found)
        assert [one["variable"] for one in found] == ["said"] * 2, (
            "variables of vLLM reach the nodes"
        )
        assert [one["arguments"][:1] for one in found] == [["org/tiny"]] * 2
        assert all("--max-model-len" in one["arguments"] for one in found)
        assert lines == [lines[0]]
        assert lines[0].startswith("vLLM serves org/tiny on 2 nodes after ")
    finally:
        server.stop()
    assert not any(alive(one["pid"]) for one in found)


@pytest.mark.parametrize("victim", ["the session", "the program that holds the nodes"])
def test_nothing_is_left_on_the_nodes_whoever_is_killed(
    options: dict[str, Any], tmp_path: Path, victim: str
) -> None:
    command = [
        sys.executable,
        "-c",
        SESSION,
        str(Path(__file__).parents[2]),
        str(tmp_path),
        json.dumps(options),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        urls, supervisor = session.stdout.readline().split()
        servers = [told(url)["pid"] for url in urls.split(",")]
        try:
            if victim == "the session":
                session.kill()
            else:
                [program] = (
                    Path(f"/proc/{supervisor}/task/{supervisor}/children")
                    .read_text(encoding="ascii")
                    .split()
                )
                os.kill(int(program), signal.SIGKILL)
            wait_for(lambda: not any(map(alive, servers)))
        finally:
            session.kill()


def test_more_nodes_than_there_are(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(
        OptionError,
        match=r"^nodes=3: the Ray cluster has 2 nodes with 1 CPU \(and 2 in all\)",
    ):
        serve(context(tmp_path, {**options, "nodes": "3"}))


def test_a_server_that_does_not_come_up_is_quoted(
    options: dict[str, Any], tmp_path: Path
) -> None:
    broken = [sys.executable, "-c", "print('CUDA out of memory'); raise SystemExit(3)"]
    with pytest.raises(
        PluginError,
        match=r"(?s)^Node [12]: The vLLM server .* code 3 .*CUDA out of memory",
    ):
        serve(context(tmp_path, {**options, "command": broken}))


def test_no_cluster(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(
        OptionError,
        match=r"^nodes: the Ray cluster at 127.0.0.1:9 \(RAY_ADDRESS\) cannot be reached",
    ):
        serve(context(tmp_path, options))


def test_what_a_node_needs() -> None:
    assert gpus({}) == 1
    assert gpus({"tensor_parallel_size": "4", "data_parallel_size": 2}) == 8
