"""Calls of a backend by its rules: against a real server on loopback, in a thread that cannot block the test."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from cheesebench.chat import (
    BackendContext,
    BackendSpec,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    Message,
    ModelEntry,
)
from cheesebench.redaction import quoted
from cheesebench.testing.fake_server import Answer, FakeServer, Script
from cheesebench.testing.overhearing import overhearing
from cheesebench.testing.rules import BreachError

#: What a key of ours looks like; it must be found nowhere but at the server.
KEY = "key-4u-0123456789-conformance"
HALF_KEY = KEY[:12]
#: Seconds that a call may take which is to time out.
SHORT = 0.5

#: The result of a call.
Outcome = ChatReply | ChatFaultError
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class BackendCase:
    """A backend, and how it is called: see ``assert_backend_sound``. ``kept`` holds what several rules use: the
    outcomes of calls that something happened to, and the numbers of their attempts.
    """

    spec: BackendSpec
    model: str
    server: Callable[..., FakeServer] | None
    key_env: str
    options: Mapping[str, Any]
    patience: float
    but: frozenset[str] = frozenset()
    kept: dict[str, tuple[Outcome | BreachError, int]] = field(default_factory=dict)
    left_open: list[int] = field(default_factory=list)
    """Connections to the server that were still there after ``close()``, play by play."""
    key_sent: bool = False
    """Whether a header that the server was sent held the key."""
    heard: list[str] = field(default_factory=list)
    """Where the key was disclosed, in any call."""
    blocks: bool = False
    """Whether a call has been found to block the event loop."""

    def request(self, *texts: str, **fields: Any) -> ChatRequest:
        """Return a request whose user says these texts."""
        messages = tuple(Message("user", (text,)) for text in texts or ("Which way?",))
        return replace(ChatRequest(model=self.model, messages=messages, timeout=self.patience), **fields)

    def context(self, base_url: str | None) -> BackendContext:
        """Return the backend's context."""
        return BackendContext(
            entry=ModelEntry(name=self.model, backend=self.spec.name, id=self.model),
            directory=Path(tempfile.gettempdir()),
            base_url=base_url,
            options=self.options,
        )

    def play(
        self,
        script: str | Answer | Sequence[str | Answer] | Script,
        scene: Callable[[Connection, FakeServer], Awaitable[T]],
    ) -> tuple[T, FakeServer]:
        """Connect to a server that follows the script, let the scene run, close; return its result and the server."""
        assert self.server is not None
        with self.environment(), self.server(script) as server:
            return self._in_thread(lambda connection: scene(connection, server), server), server

    def play_refused(self, scene: Callable[[Connection], Awaitable[T]]) -> T:
        """Like ``play``, for an address where no server listens (any more)."""
        assert self.server is not None
        with self.server("nobody") as gone:
            pass
        with self.environment():
            return self._in_thread(scene, None, gone.base_url)

    def play_alone(self, scene: Callable[[Connection], Awaitable[T]]) -> T:
        """Like ``play`` for a backend without a server."""
        with self.environment():
            return self._in_thread(scene, None)

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Set the key's environment variable and disable proxies; restore both at the end."""
        wanted = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
        if self.key_env:
            wanted[self.key_env] = KEY
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def _in_thread(
        self, scene: Callable[[Connection], Awaitable[T]], server: FakeServer | None, base_url: str | None = None
    ) -> T:
        """Run a scene in an event loop of its own; raise BreachError if it does not end."""
        results: list[T] = []
        failures: list[BaseException] = []

        async def main() -> None:
            connection = self.spec.connect(self.context(server.base_url if server else base_url))
            try:
                results.append(await _within(self.patience, scene(connection), "a call is not done"))
            finally:
                await _within(self.patience, connection.close(), "close() is not done")
                if server is not None:
                    await until(lambda: server.connections == 0, self.patience / 10)
                    self.left_open.append(server.connections)

        def run() -> None:
            try:
                asyncio.run(main())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run, name="conformance", daemon=True)
        with overhearing(HALF_KEY, self.heard):
            thread.start()
            thread.join(2 * self.patience + 2)
        if thread.is_alive():
            # A backend that blocks the loop's own thread is released when the server stops.
            if server is not None:
                server.stop()
            thread.join(self.patience)
            raise BreachError(
                "blocks the event loop, or cannot be cancelled. Call the server with a library for asyncio, or in "
                "asyncio.to_thread"
            )
        if failures:
            raise failures[0]
        return results[0]


async def _within(seconds: float, work: Awaitable[T], what: str) -> T:
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait([task], timeout=seconds)
    if not done:
        task.cancel()
        await asyncio.wait([task])
        raise BreachError(f"{what} after {seconds:g} s")
    return task.result()


async def ask(connection: Connection, request: ChatRequest) -> Outcome:
    """Return a reply or a fault; BreachError for anything else."""
    try:
        reply: object = await connection.complete(request)
    except ChatFaultError as fault:
        return fault
    except (BreachError, asyncio.CancelledError):
        raise
    except Exception as error:
        raise BreachError(
            f"raises {type(error).__name__} ({quoted(str(error), 120)}), but only ChatFaultError is understood"
        ) from error
    if not isinstance(reply, ChatReply):
        raise BreachError(f"returns {type(reply).__name__}, but a ChatReply is expected")
    return reply


async def until(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds; return whether it holds at the end."""
    for _ in range(max(1, round(seconds / 0.01))):
        if holds():
            return True
        await asyncio.sleep(0.01)
    return holds()
