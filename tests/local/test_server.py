"""llama.cpp's server with a real model: started, called, cut
off, cancelled, stopped.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cheesebench import (
    BackendContext,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    Message,
    PluginError,
    Sampling,
)
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.backends.llamacpp import connect, serve
from cheesebench.plugins.backends.processes import StartedServer

pytestmark = pytest.mark.local
MODEL = installed_plugins().models["smollm2-135m"]
#: A prompt of several hundred tokens: longer than llama.cpp reads at once.
LONG = "The mouse walks along the wall. " * 60


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartedServer]:
    started = serve(
        BackendContext(
            entry=MODEL,
            directory=tmp_path_factory.mktemp("run"),
            options=dict(MODEL.options),
        )
    )
    yield started
    started.stop()


def request(text: str, most: int = 12, seed: int = 1) -> ChatRequest:
    sampling = Sampling(temperature=0.7, max_tokens=most, seed=seed)
    return ChatRequest(
        model=MODEL.id,
        messages=(Message("user", (text,)),),
        sampling=sampling,
        timeout=120.0,
    )


def asked(server: StartedServer, *requests: ChatRequest) -> list[ChatReply]:
    async def play() -> list[ChatReply]:
        connection: Connection = connect(
            BackendContext(
                entry=MODEL, directory=Path(), base_url=server.base_url, options={}
            )
        )
        try:
            return [await connection.complete(one) for one in requests]
        finally:
            await connection.close()

    return asyncio.run(play())


def test_replies_have_text_counts_and_the_models_name(server: StartedServer) -> None:
    (reply,) = asked(server, request("Name a colour.", most=4))
    assert reply.text.strip()
    assert reply.finish == "length"
    assert reply.usage.completion == 4
    assert reply.usage.prompt > 4
    assert reply.model == "SmolLM2-135M-Instruct.Q4_1"


def test_what_was_read_before_is_counted_as_cached(server: StartedServer) -> None:
    first, second = asked(
        server, request(LONG, most=1), request(LONG + "Then it stops.", most=1)
    )
    assert first.usage.prompt > 400
    assert second.usage.cached > 400


def test_a_prompt_that_is_too_long_is_a_fault_of_that_kind(
    server: StartedServer,
) -> None:
    with pytest.raises(ChatFaultError) as caught:
        asked(server, request(LONG * 25))
    assert caught.value.kind == "context_too_long"


def test_a_server_ends_with_its_process_and_says_when_it_ended_before(
    tmp_path: Path,
) -> None:
    lines: list[str] = []
    context = BackendContext(
        entry=MODEL,
        directory=tmp_path,
        options={**MODEL.options, "slots": 1, "context": 512},
        progress=lines.append,
    )
    started = serve(context)
    assert "llama.cpp serves SmolLM2-135M-Instruct.Q4_1.gguf" in lines[0]
    assert "1 call at once" in lines[0]
    started.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(started.process._process.pid, 0)


def test_a_damaged_file_is_an_error_with_the_end_of_the_log(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF\x03\x00\x00\x00" + b"\xff" * 64)
    with pytest.raises(PluginError, match="failed to load model"):
        serve(BackendContext(entry=replace(MODEL, id=str(damaged)), directory=tmp_path))
