"""Measures the CPU time of a call in this process, by the backends ``openai`` and
``litellm`` and by OpenAI's own SDK.

The SDK is measured as CheeseBench would use it: with aiohttp, no retries of its own,
and the body read by our reader. The figures are the reason why the backend ``openai``
has a client of its own. ``held`` counts the hostile answers that each client handles
correctly: a correct client accepts real replies, and refuses everything else before the
deadline.

The server is another process on this machine, which answers at once and does nothing
else. Everything that a call needs in the client is included: encoding the prompt, HTTP,
decoding, the reply. Run it on an idle machine: calls/s depend on both processes on this
machine together, CPU time is that of the client alone.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import common

from cheesebench.chat import (
    BackendContext,
    ChatReply,
    ChatRequest,
    Connection,
    Message,
    ModelEntry,
    Sampling,
)
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.backends.openai import body_message
from cheesebench.plugins.backends.replies import read_reply

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz.hostile import LEARNT, HostileServer
from fuzz.hostilities import HOSTILITIES

#: Backend, id of the model, and number of calls for each row.
CLIENTS = (
    ("openai", "tiny", 3000),
    ("sdk", "tiny", 300),
    ("litellm", "hosted_vllm/tiny", 200),
    ("litellm", "openai/tiny", 200),
)
#: For each setting, the number of messages in a prompt (pairs of observation and reply,
#: and the system prompt), and the number of calls in flight.
SETTINGS = ((14, 1), (14, 32), (14, 1000), (201, 1), (201, 32))
#: Maximum seconds for a hostile answer.
DEADLINE = 3.0
#: A text about as long as an observation of a small arena.
OBSERVATION = "#########\n#S..C..G#\n#########\n" * 8


@contextmanager
def server() -> Iterator[str]:
    """Run a server in a process of its own; yield its base URL."""
    command = [
        sys.executable,
        "-m",
        "cheesebench.testing.fake_server",
        "--text",
        "LEARNINGS: none\nACTIONS: FORWARD, STAY",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


class Sdk:
    """OpenAI's SDK as a connection, used in the way that takes the least CPU time and
    still limits what is read.
    """

    def __init__(self, url: str) -> None:
        import httpx2
        import openai

        limits = httpx2.Limits(
            max_connections=10_000,
            max_keepalive_connections=10_000,
            keepalive_expiry=4.0,
        )
        http = openai.DefaultAioHttpClient(limits=limits, follow_redirects=False)
        self._client = openai.AsyncOpenAI(
            api_key="none", base_url=url, max_retries=0, timeout=600.0, http_client=http
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply."""
        sampling = request.sampling
        async with asyncio.timeout(request.timeout):
            answer = await self._client.chat.completions.with_raw_response.create(
                model=request.model,
                messages=[body_message(message) for message in request.messages],  # type: ignore[misc]
                temperature=sampling.temperature,
                max_tokens=sampling.max_tokens,
                seed=sampling.seed,
            )
            return read_reply(answer.content)

    async def close(self) -> None:
        """Close the sockets."""
        await self._client.close()


def connect(backend: str, model: str, url: str, in_flight: int = 1) -> Connection:
    """Open a connection of a backend, or of the SDK."""
    if backend == "sdk":
        return Sdk(url)
    context = BackendContext(
        entry=ModelEntry(name=model, backend=backend, id=model),
        directory=Path(),
        base_url=url,
        capacity=in_flight,
    )
    return installed_plugins().backend(backend).connect(context)


async def held(backend: str) -> dict[str, float]:
    """Return the number of classes of hostile answers, and how many of them the client
    detects.
    """
    seen: list[str] = []
    with HostileServer(HOSTILITIES, "lasting") as server:
        for name, one in HOSTILITIES.items():
            connection = connect(backend, name, server.base_url)
            request = ChatRequest(
                model=name,
                messages=(Message("user", (LEARNT,)),),
                sampling=Sampling(seed=0),
                timeout=DEADLINE,
            )
            began = time.monotonic()
            try:
                answered = "FORWARD" in (await connection.complete(request)).text
            except Exception:  # Any error means that the client refused the answer.
                answered = False
            await connection.close()
            in_time = time.monotonic() - began < DEADLINE + 1
            seen += [name] * (in_time and answered == (one.outcome == "read"))
    missed = sorted(HOSTILITIES.keys() - set(seen))
    print(
        f"{backend} does not see through: {', '.join(missed) or 'none'}",
        file=sys.stderr,
    )
    return {"classes": len(HOSTILITIES), "held": len(seen)}


async def measure(
    backend: str, model: str, url: str, messages: int, in_flight: int, calls: int
) -> dict[str, float]:
    """Make the calls; return CPU milliseconds per call and calls per second."""
    connection = connect(backend, model, url, in_flight)
    prompt = [Message("system", ("You are a mouse. " * 60,))]
    prompt += [
        Message("user" if i % 2 else "assistant", (OBSERVATION,))
        for i in range(1, messages)
    ]
    request = ChatRequest(
        model=model,
        messages=tuple(prompt),
        sampling=Sampling(temperature=0.7, max_tokens=512, seed=1),
        timeout=600.0,
    )

    async def several(number: int) -> None:
        for _ in range(number):
            await connection.complete(request)

    try:
        # These calls are not measured: they import modules and open connections.
        await asyncio.gather(*(several(1) for _ in range(in_flight)))
        cpu, wall = time.process_time(), time.monotonic()
        await asyncio.gather(
            *(several(max(calls // in_flight, 1)) for _ in range(in_flight))
        )
        made = in_flight * max(calls // in_flight, 1)
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    finally:
        await connection.close()
    return {"CPU, ms": 1000 * cpu / made, "calls/s": made / wall}


def main() -> None:
    """Print one row for each client, length of prompt and number of calls in flight."""
    options = common.arguments(__doc__, protocols=False, keeps=True)
    os.environ.setdefault("OPENAI_API_KEY", "none")
    table: common.Table = {}
    with server() as url:
        for backend, model, calls in CLIENTS:
            if backend == "litellm" and importlib.util.find_spec("litellm") is None:
                continue
            for messages, in_flight in SETTINGS:
                name = f"{backend}: {model}, {messages} messages, {in_flight} in flight"
                table[name] = asyncio.run(
                    measure(backend, model, url, messages, in_flight, calls)
                )
    for backend in ("openai", "sdk"):
        table[f"{backend}: hostile answers"] = asyncio.run(held(backend))
    if options.keep:
        common.keep("client", table)
    common.report("client", table, options.json)


if __name__ == "__main__":
    main()
