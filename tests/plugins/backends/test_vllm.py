"""The ``vllm`` backend without vLLM: commands, options, and messages if the server does
not come up.

A small program replaces servers that fail; the real one is in tests/real_vllm.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench import (
    BackendContext,
    ChatRequest,
    Message,
    ModelEntry,
    OptionError,
    PluginError,
)
from cheesebench.extras import install_command
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.backends.vllm import (
    VLLM,
    VLLM_OFFLINE,
    Dealer,
    check,
    flags,
    serve,
    server_command,
)
from cheesebench.testing.fake_server import Call, FakeServer

#: Serves /health on the given port; prints its arguments.
HEALTHY = """
import http.server, json, sys, time
print(json.dumps(sys.argv[1:]), flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Handler).serve_forever()
"""
REQUEST = ChatRequest(
    model="org/tiny", messages=(Message("user", ("which way?",)),), timeout=20.0
)


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "VLLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def context(directory: Path, **options: Any) -> BackendContext:
    return BackendContext(
        entry=ModelEntry(name="tiny", backend="vllm", id="org/tiny"),
        directory=directory,
        options=options,
    )


def command(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_it_is_registered_and_so_is_the_engine() -> None:
    assert installed_plugins().backend("vllm") is VLLM
    assert installed_plugins().backend("vllm-offline") is VLLM_OFFLINE


def test_options_become_flags_and_extra_ones_come_last() -> None:
    given = {
        "tensor_parallel_size": "2",
        "data_parallel_size": 4,
        "gpu_memory_utilization": "0.85",
        "enforce_eager": "no",
        "quantization": "fp8",
        "extra_args": "--no-enable-prefix-caching --limit-mm-per-prompt '{\"image\": 2}'",
        "python": "none of the engine's business",
    }
    assert flags(given) == [
        *(
            "--tensor-parallel-size",
            "2",
            "--data-parallel-size",
            "4",
            "--gpu-memory-utilization",
            "0.85",
        ),
        *("--quantization", "fp8", "--no-enforce-eager", "--no-enable-prefix-caching"),
        *("--limit-mm-per-prompt", '{"image": 2}'),
    ]
    assert flags({"extra_args": ["--a", 3], "enforce_eager": True}) == [
        "--enforce-eager",
        "--a",
        "3",
    ]
    assert flags({}) == []


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("tensor_parallel_size", "two", "a whole number above 0, not 'two'"),
        ("tensor_parallel_size", 0, "a whole number above 0, not '0'"),
        ("tensor_parallel_size", True, "a whole number above 0, not 'True'"),
        ("gpu_memory_utilization", "-1", "a number above 0, not '-1'"),
        ("enforce_eager", "perhaps", "true or false, not 'perhaps'"),
        ("dtype", "", "a non-empty string, not ''"),
        ("extra_args", "'unclosed", "cannot be read"),
        ("extra_args", 5, "a string or a list, not 5"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_with_its_value(
    option: str, value: Any, said: str
) -> None:
    with pytest.raises(OptionError, match=f"The option {option} .*{said}"):
        flags({option: value})


@given(st.integers(1, 12), st.lists(st.integers(0, 40)))
def test_subjects_are_dealt_out_evenly_and_each_stays_with_its_copy(
    among: int, subjects: list[int]
) -> None:
    dealer = Dealer(among)
    dealt = [dealer.copy_for(f"cell/{subject}") for subject in subjects]
    if among == 1:
        assert set(dealt) <= {None}
        return
    stays = dict(zip(subjects, dealt, strict=True))
    assert [stays[subject] for subject in subjects] == dealt
    counts = Counter(stays.values())
    per_copy = [counts[copy] for copy in range(among)]
    assert max(per_copy) - min(per_copy) <= 1
    assert dealer.copy_for("") is None


def test_ninety_subjects_on_eight_copies_are_eleven_or_twelve_each() -> None:
    dealer = Dealer(8)
    counts = Counter(dealer.copy_for(f"{subject:016x}") for subject in range(90))
    assert sorted(counts.values()) == [11] * 6 + [12] * 2


def test_calls_name_the_copy_of_their_subject() -> None:
    seen: list[str | None] = []

    def script(call: Call) -> str:
        seen.append(call.headers.get("X-data-parallel-rank"))
        return "ACTIONS: STAY"

    async def ask(base_url: str, **options: Any) -> None:
        connection = VLLM.connect(
            replace(context(Path(), **options), base_url=base_url)
        )
        try:
            for conversation in ("a", "b", "a"):
                await connection.complete(replace(REQUEST, conversation=conversation))
        finally:
            await connection.close()

    with FakeServer(script) as server:
        asyncio.run(ask(server.base_url))
        asyncio.run(ask(server.base_url, data_parallel_size="8"))
    assert seen[:3] == [None] * 3
    assert seen[3:] == ["0", "1", "0"]


def test_a_server_is_started_with_what_it_needs_and_stopped(tmp_path: Path) -> None:
    said: list[str] = []
    given = replace(
        context(tmp_path, command=command(HEALTHY), max_model_len=4096),
        progress=said.append,
    )
    server = serve(given)
    log = tmp_path / "vllm-org-tiny.log"
    try:
        arguments = json.loads(log.read_text(encoding="utf-8").splitlines()[0])
        port = server.base_url.removeprefix("http://127.0.0.1:").removesuffix("/v1")
        assert arguments[:5] == ["org/tiny", "--host", "127.0.0.1", "--port", port]
        assert {"--enable-prefix-caching", "--enable-prompt-tokens-details"} <= set(
            arguments
        )
        assert arguments[-2:] == ["--max-model-len", "4096"]
        assert said[-1].startswith("vLLM serves org/tiny after ")
    finally:
        server.stop()
    with pytest.raises(ConnectionRefusedError):
        asyncio.run(_open(int(port)))


def test_a_server_that_died_meanwhile_is_told_of_in_the_end(tmp_path: Path) -> None:
    said: list[str] = []
    code = HEALTHY.replace(
        ".serve_forever()",
        ".handle_request(); time.sleep(2); print('CUDA error'); sys.exit(9)",
    )
    server = serve(
        replace(context(tmp_path, command=command(code)), progress=said.append)
    )
    while server.process.ended is None:
        time.sleep(0.05)
    server.stop()
    assert "'org/tiny' ended with code 9 during the run" in said[-1]
    assert said[-1].endswith("CUDA error")


async def _open(port: int) -> None:
    await asyncio.open_connection("127.0.0.1", port)


def test_a_server_that_dies_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hush-0123456789-hush")
    code = "import os, sys; print('torch.OutOfMemoryError: CUDA', os.environ['HF_TOKEN'], '\\x1b[2J'); sys.exit(3)"
    with pytest.raises(PluginError) as raised:
        serve(context(tmp_path, command=command(code)))
    text = str(raised.value)
    assert "'org/tiny' ended with code 3 before it was ready" in text
    assert "    torch.OutOfMemoryError: CUDA [redacted] \\x1b[2J" in text
    assert str(tmp_path / "vllm-org-tiny.log") in text


def test_a_server_is_given_no_keys_of_other_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "hush-0123456789-hush")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    code = "import os; print('OTHER_API_KEY' in os.environ, os.environ['CUDA_VISIBLE_DEVICES'], 'PATH' in os.environ)"
    with pytest.raises(PluginError, match="False 3 True"):
        serve(context(tmp_path, command=command(code)))


def test_a_model_is_no_flag(tmp_path: Path) -> None:
    given = context(tmp_path)
    with pytest.raises(OptionError, match="begins with '-'"):
        serve(replace(given, entry=replace(given.entry, id="--trust-remote-code")))


def test_a_server_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    code = "import time; print('Loading safetensors: 3 of 40', flush=True); time.sleep(1000)"
    with pytest.raises(PluginError) as raised:
        serve(context(tmp_path, command=command(code), startup_timeout="8"))
    text = str(raised.value)
    assert "was not ready after 8 s" in text
    assert "startup_timeout=SECONDS" in text
    assert "Loading safetensors: 3 of 40" in text


SAFE = ("env", "PYTHONSAFEPATH=1")


def test_how_the_server_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ["-m", "vllm.entrypoints.openai.api_server", "--model", "org/tiny"]
    assert server_command({"command": "docker run it --"}, "org/tiny") == [
        "docker",
        "run",
        "it",
        "--",
        "org/tiny",
    ]
    assert server_command({"python": "/opt/python"}, "org/tiny") == [
        *SAFE,
        "/opt/python",
        *module,
    ]
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        PluginError, match=re.escape(install_command("vllm")) + r".*python=.*--base-url"
    ):
        server_command({}, "org/tiny")
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\n", encoding="ascii")
    program.chmod(0o755)
    assert server_command({}, "org/tiny") == [*SAFE, str(program), "serve", "org/tiny"]


@pytest.mark.parametrize(
    ("options", "program"),
    [({"python": "/opt/python"}, "/opt/python"), ({"command": "docker run"}, "docker")],
)
def test_the_check_names_the_program_that_starts_the_server(
    options: dict[str, Any], program: str, tmp_path: Path
) -> None:
    said = check(context(tmp_path, **options))
    assert said == f"{program} starts vLLM (not tried); vLLM fetches the weights"


@pytest.mark.parametrize(
    "options", [{"data_parallel_size": "8"}, {"extra_args": "--api-server-count 4"}]
)
def test_several_processes_take_requests_for_several_copies(
    options: dict[str, str],
) -> None:
    """The server's module would silently have one process for all copies."""
    program = [
        *SAFE,
        "/opt/python",
        "-m",
        "vllm.entrypoints.cli.main",
        "serve",
        "org/tiny",
    ]
    assert server_command({"python": "/opt/python", **options}, "org/tiny") == program


def test_no_module_of_the_working_directory_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "cwd/vllm/entrypoints/openai/api_server.py"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("print('not to be run')", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "cwd")
    with pytest.raises(PluginError) as raised:
        serve(context(tmp_path, python=sys.executable))
    assert "not to be run" not in str(raised.value)
    assert "module" in str(raised.value)


def test_what_cannot_be_is_refused_when_connecting(tmp_path: Path) -> None:
    given = context(tmp_path)
    with pytest.raises(OptionError, match="No vLLM server was started or named"):
        VLLM.connect(given)
    with pytest.raises(OptionError, match="To use a server, choose the backend 'vllm'"):
        VLLM_OFFLINE.connect(replace(given, base_url="http://127.0.0.1:8000/v1"))
    for spec in (VLLM, VLLM_OFFLINE):
        with pytest.raises(OptionError, match="'served' cannot set 'n'"):
            spec.connect(replace(given, entry=replace(given.entry, served={"n": 2})))
    with pytest.raises(OptionError, match="NO_SUCH_VARIABLE"):
        VLLM.connect(
            replace(
                given,
                base_url="http://127.0.0.1:8000/v1",
                options={"api_key_env": "NO_SUCH_VARIABLE"},
            )
        )


def test_without_vllm_the_engine_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match=re.escape(install_command("vllm"))):
        VLLM_OFFLINE.connect(context(tmp_path))
