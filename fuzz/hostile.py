"""A model server over plain sockets. It misbehaves in a different way for each model.

The name of a model is the name of a class of fault (``fuzz.hostilities``). The prompt
alone decides which calls meet the fault. Every prompt is counted: how often it was
received, and how often it was answered properly.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from cheesebench.experiment.language_models import PROBE

if TYPE_CHECKING:
    from fuzz.hostilities import Hostility

#: One action of the server: bytes are written, a number is a silence in seconds,
#: ``close`` ends the connection, and ``reset`` cuts it off. If neither of the two
#: occurs, the server serves the next request.
Step = bytes | float | Literal["close", "reset"]


#: Which prompts meet the fault: none (``calm``), those that ``Hostility.met`` chooses
#: (``passing``), or all (``lasting``). The first prompt of a subject never meets it.
Mood = Literal["calm", "passing", "lasting"]
#: A learning in the first reply, so that it occurs in every later prompt of the
#: subject.
LEARNT = "the way out is ahead"
#: Token counts of every call.
USAGE = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}


def answer_to(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a good answer. The seed decides which subjects walk and which wait,
    because equal subjects would be copies.
    """
    wait = "STAY, " if body.get("seed", 0) % 2 else ""
    message = {
        "role": "assistant",
        "content": f"LEARNINGS: {LEARNT}\nACTIONS: {wait}FORWARD, FORWARD",
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {
        "id": "c",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [choice],
        "usage": dict(USAGE),
    }


def response(
    body: bytes, status: str = "200 OK", *headers: str, length: int | None = None
) -> bytes:
    """Return an HTTP response with these additional headers."""
    lines = [
        f"HTTP/1.1 {status}",
        *headers,
        f"Content-Length: {len(body) if length is None else length}",
    ]
    if not any(line.lower().startswith("content-type") for line in headers):
        lines.insert(1, "Content-Type: application/json")
    return "\r\n".join([*lines, "", ""]).encode() + body


class HostileServer:
    """The server, which runs in a thread of its own. Use it as ``with
    HostileServer(faults) as server: ... server.base_url``.
    """

    def __init__(self, faults: Mapping[str, Hostility], mood: Mood = "calm") -> None:
        self._faults, self.mood = faults, mood
        #: By model and prompt: how often the prompt was received, and how often it was
        #: answered completely and well.
        self.received: Counter[tuple[str, str]] = Counter()
        self.answered: Counter[tuple[str, str]] = Counter()
        #: Number of prompts that met a fault, by model.
        self.hit: Counter[str] = Counter()
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()),
            name="hostile-server",
            daemon=True,
        )

    @property
    def base_url(self) -> str:
        """The URL for clients."""
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(30)

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        serving: set[asyncio.Task[None]] = set()

        async def serve(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving.add(task)
            try:
                with contextlib.suppress(
                    ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError
                ):
                    while await self._request(reader, writer):
                        pass
            finally:
                writer.transport.abort()
                serving.discard(task)

        server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Serve a request. Return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if head.startswith("get "):  # The server reports no facts about itself.
            writer.write(response(b"{}", "404 Not Found"))
            return False
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        for step in self._steps(body):
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif step == "reset":
                end: socket.socket = writer.get_extra_info("socket")
                end.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                return False
            elif step == "close":
                writer.close()
                return False
            else:
                await asyncio.sleep(float(step))
        return True

    def _steps(self, body: dict[str, Any]) -> Sequence[Step]:
        model, text = body["model"], json.dumps(body["messages"])
        good = json.dumps(answer_to(body)).encode()
        if PROBE in text:
            return [response(good)]
        prompt = hashlib.sha256(f"{text} {body.get('seed')}".encode()).hexdigest()
        before, self.received[model, prompt] = (
            self.received[model, prompt],
            self.received[model, prompt] + 1,
        )
        fault = self._faults.get(model)
        met = fault is not None and self.mood != "calm" and LEARNT in text
        if (
            fault is not None
            and met
            and (self.mood == "lasting" or fault.met(prompt, before))
        ):
            self.hit[model] += 1
            self.answered[model, prompt] += fault.outcome == "read"
            return fault.steps(good)
        self.answered[model, prompt] += 1
        return [response(good)]
