"""The backend ``scripted``: replies from a YAML file (``--model scripted:FILE.yaml``), no server, no network."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench import BackendContext, BackendSpec, ChatFaultError, ChatReply, ChatRequest, Connection, Usage

if TYPE_CHECKING:
    from cheesebench.plugins.backends.script import Line

#: Characters that count as one token.
TOKEN = 4


class Scripted:
    """A ``Connection`` whose replies are read from a script; each conversation goes through it by itself."""

    def __init__(self, lines: tuple[Line, ...], seed: int, name: str) -> None:
        self._lines, self._seed, self._name = lines, seed, name
        #: Conversation and line -> how often the line was used.
        self._used: dict[tuple[str, int], int] = defaultdict(int)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return what the first line that fits says, after its latency, or raise its fault."""
        import asyncio

        asked = request.messages[-1].text if request.messages else ""
        number, line = self._choose(request, asked)
        turn = self._used[request.conversation, number]
        self._used[request.conversation, number] += 1
        low, high = line.latency
        latency = low + (high - low) * self._draw("latency", request, asked, turn)
        await asyncio.sleep(min(latency, request.timeout))
        if latency > request.timeout:
            raise ChatFaultError("timeout", f"{self._name} has not answered within {request.timeout:g} s.")
        if line.fault is not None:
            raise ChatFaultError(line.fault, line.text or f"{self._name} asks for this fault.", line.retry_after)
        if line.choose == "by_seed":
            # Not by turn: asked the same thing again, after a fault or in a resumed run, it says the same.
            turn = int(self._draw("reply", request, asked) * len(line.say))
        text = line.say[turn % len(line.say)]
        return ChatReply(
            text=text,
            reasoning=line.think,
            finish=line.finish,
            usage=Usage(
                prompt=sum(len(message.text) for message in request.messages) // TOKEN + 1,
                completion=(len(text) + len(line.think)) // TOKEN + 1,
                reasoning=len(line.think) // TOKEN,
            ),
            model=self._name,
        )

    async def close(self) -> None:
        """Nothing is open."""

    def _choose(self, request: ChatRequest, asked: str) -> tuple[int, Line]:
        for number, line in enumerate(self._lines):
            used = self._used[request.conversation, number]
            if line.times is not None and used >= line.times:
                continue
            if line.when is not None and line.when.search(asked) is None:
                continue
            if line.share < 1.0:
                tries = self._used[request.conversation, -1 - number]
                self._used[request.conversation, -1 - number] += 1
                if self._draw("share", request, asked, number, tries) >= line.share:
                    continue
            return number, line
        raise ChatFaultError(
            "bad_request", f"No line of {self._name} matches the request. Add a last line that matches every request."
        )

    def _draw(self, purpose: str, request: ChatRequest, *key: object) -> float:
        """Return a number in [0, 1) that depends on nothing but the seeds and the key."""
        import hashlib

        words = (purpose, self._seed, request.sampling.seed, request.conversation, *key)
        digest = hashlib.blake2b("\x1f".join(map(str, words)).encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64


def connect(context: BackendContext) -> Connection:
    """Read the script that the model's id names; raises FileError with its mistakes."""
    from cheesebench.plugins.backends.script import read_script

    path = Path(context.entry.id).expanduser()
    script = read_script(path)
    return Scripted(script.lines, script.seed, path.name)


SCRIPTED = BackendSpec(
    name="scripted",
    connect=connect,
    probe=False,
    summary="replies, faults and latencies from a YAML file, for tests and demonstrations",
)
