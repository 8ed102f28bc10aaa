"""Guards an ASGI application that has no guard of its own. It checks hosts and origins
as for CheeseBench's pages, refuses bodies that are too large or no JSON objects, and
limits the sessions of a client.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cheesebench.server.http_guard import RequestGuard

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

#: Maximum size of a body or of a message, in bytes. A model's reply is shorter.
LARGEST = 1_000_000
#: Timeout of a request's body, in seconds.
PATIENCE = 15.0
_GARBAGE = "The body is not a JSON object, or has an invalid number or character."


class RefusedError(Exception):
    """A request that is refused with an HTTP error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass
class AsgiGuard:
    """An application behind a guard.

    ``door`` knows the hosts under which the application may be requested. A client (an
    address) may have at most ``each`` WebSockets at once.
    """

    application: Application
    door: RequestGuard
    each: int
    largest: ClassVar[int] = LARGEST
    _held: Counter[str] = field(default_factory=Counter, init=False)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        kinds = {"http": self._http, "websocket": self._websocket}
        await kinds.get(scope["type"], self.application)(scope, receive, send)

    async def _http(self, scope: Any, receive: Receive, send: Send) -> None:
        try:
            headers = self._checked(scope)
            body = await _body(headers, receive)
            if body and _is_json(headers):
                _check_json(body)
        except RefusedError as error:
            await _answer(send, "http", error)
            return
        first: list[Message] = [
            {"type": "http.request", "body": body, "more_body": False}
        ]

        async def replay() -> Message:
            return first.pop() if first else await receive()

        await self.application(scope, replay, send)

    async def _websocket(self, scope: Any, receive: Receive, send: Send) -> None:
        client = str((scope.get("client") or ("",))[0])
        try:
            self._checked(scope)
            if self._held[client] >= self.each:
                raise RefusedError(
                    429,
                    f"This client holds {self.each} session{'' if self.each == 1 else 's'}. End one, or start the server "
                    "with --sessions-each N.",
                )
        except RefusedError as error:
            await receive()  # This consumes websocket.connect.
            await _answer(send, "websocket.http", error, scope)
            return
        self._held[client] += 1
        try:
            await self.application(scope, _readable(receive, send), send)
        finally:
            self._held[client] -= 1
            if not self._held[client]:
                del self._held[client]

    def _checked(self, scope: Any) -> Mapping[str, str]:
        """Return the headers, or raise RefusedError for a foreign host or origin."""
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        own = self.door.hosts(self.door.port)
        if headers.get("host", "").lower() not in own:
            raise RefusedError(
                421,
                "This server does not answer under that name. Start the server with --host-name HOST:PORT.",
            )
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "none")
        foreign = origin is not None and origin.lower().partition("://")[2] not in own
        if foreign or site not in ("none", "same-origin"):
            raise RefusedError(403, "The request comes from another site.")
        return headers


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    said = headers.get("content-length", "0").lstrip("0")
    body = bytearray()
    fits, more = len(said) <= len(str(LARGEST)), True
    try:
        async with asyncio.timeout(PATIENCE):
            while fits and more:
                message = await receive()
                body += message.get("body", b"")
                fits, more = len(body) <= LARGEST, message.get("more_body", False)
    except TimeoutError:
        raise RefusedError(408, "The request is incomplete.") from None
    if not fits:
        raise RefusedError(413, f"A request may have at most {LARGEST:,} bytes.")
    return bytes(body)


def _is_json(headers: Mapping[str, str]) -> bool:
    return headers.get("content-type", "").partition(";")[0].strip().endswith("json")


def _check_json(text: str | bytes) -> None:
    """Raise RefusedError unless this is a JSON object that can be written as JSON
    again.
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RefusedError(400, _GARBAGE)


def _readable(receive: Receive, send: Send) -> Receive:
    """Return ``receive`` without WebSocket messages from the client that are not JSON
    objects. The client gets an error for each of them.
    """

    async def next_message() -> Message:
        while True:
            message = await receive()
            if message["type"] != "websocket.receive":
                return message
            try:
                _check_json(message.get("text") or message.get("bytes") or "")
                return message
            except RefusedError as error:
                told = {
                    "type": "error",
                    "data": {"message": error.text, "code": "INVALID_JSON"},
                }
                await send({"type": "websocket.send", "text": json.dumps(told)})

    return next_message


async def _answer(
    send: Send, kind: str, error: RefusedError, scope: Any | None = None
) -> None:
    if scope is not None and "websocket.http.response" not in scope.get(
        "extensions", {}
    ):
        await send({"type": "websocket.close", "code": 1008, "reason": error.text})
        return
    body = json.dumps({"detail": error.text}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    start = {"type": f"{kind}.response.start", "status": error.status}
    await send({**start, "headers": headers})
    await send({"type": f"{kind}.response.body", "body": body})
