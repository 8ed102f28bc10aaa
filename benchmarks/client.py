"""CPU time of a call: what the backends ``openai`` and (if it is installed) ``litellm`` cost this process.

The server is another process on this machine, answers at once and does nothing else. Everything that a call needs in
the client is included: encoding the prompt, HTTP, decoding, the reply. Run it with nothing else going on: calls/s are
of both processes on this machine together, CPU time is of the client alone.
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

from common import Table, arguments, report

from cheesebench.chat import BackendContext, ChatRequest, Message, ModelEntry, Sampling
from cheesebench.plugin_manager import installed_plugins

#: Backend, id of the model, and how many calls are made for each row.
CLIENTS = (("openai", "tiny", 3000), ("litellm", "hosted_vllm/tiny", 200), ("litellm", "openai/tiny", 200))
#: Messages of a prompt (pairs of observation and reply, and the system prompt), and calls in flight.
MESSAGES = (14, 201)
IN_FLIGHT = (1, 32, 256)
#: About what an observation of a small arena is.
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
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


async def measure(backend: str, model: str, url: str, messages: int, in_flight: int, calls: int) -> dict[str, float]:
    """Make the calls; return CPU milliseconds per call and calls per second."""
    entry = ModelEntry(name=model, backend=backend, id=model)
    context = BackendContext(entry=entry, directory=Path(), base_url=url, capacity=in_flight)
    connection = installed_plugins().backend(backend).connect(context)
    prompt = [Message("system", ("You are a mouse. " * 60,))]
    prompt += [Message("user" if i % 2 else "assistant", (OBSERVATION,)) for i in range(1, messages)]
    request = ChatRequest(
        model=model, messages=tuple(prompt), sampling=Sampling(temperature=0.7, max_tokens=512, seed=1), timeout=60.0
    )

    async def several(number: int) -> None:
        for _ in range(number):
            await connection.complete(request)

    try:
        await several(3)  # imports, the first connection
        cpu, wall = time.process_time(), time.monotonic()
        await asyncio.gather(*(several(max(calls // in_flight, 1)) for _ in range(in_flight)))
        made = in_flight * max(calls // in_flight, 1)
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    finally:
        await connection.close()
    return {"CPU, ms": 1000 * cpu / made, "calls/s": made / wall}


def main() -> None:
    """Print one row for each client, length of prompt and number of calls in flight."""
    options = arguments(__doc__, protocols=False)
    os.environ.setdefault("OPENAI_API_KEY", "none")
    table: Table = {}
    with server() as url:
        for backend, model, calls in CLIENTS:
            if backend == "litellm" and importlib.util.find_spec("litellm") is None:
                continue
            for messages in MESSAGES:
                for in_flight in IN_FLIGHT:
                    name = f"{backend}: {model}, {messages} messages, {in_flight} in flight"
                    table[name] = asyncio.run(measure(backend, model, url, messages, in_flight, calls))
    report("client", table, options.json)


if __name__ == "__main__":
    main()
