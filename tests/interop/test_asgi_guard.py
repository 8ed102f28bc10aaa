"""The guard of ``serve --openenv``, in front of an application that does everything it
is asked; tests/real_interop has the real one.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from cheesebench.interop import asgi_guard
from cheesebench.interop.asgi_guard import LARGEST, AsgiGuard
from cheesebench.server.http_guard import RequestGuard

OWN = {"host": "127.0.0.1:8000"}


def door(each: int = 2) -> tuple[AsgiGuard, list[Any]]:
    """Return a guard, and the list of messages that pass it."""
    heard: list[Any] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        if scope["type"] == "http":
            heard.append(message["body"])
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"done"})
            return
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            heard.append(message["text"])

    return AsgiGuard(application, RequestGuard(token="", port=8000), each), heard


def scope(kind: str = "http", client: str = "10.0.0.9", **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {
        "type": kind,
        "client": (client, 5),
        "headers": [(k.encode(), v.encode()) for k, v in {**OWN, **named}.items()],
        "extensions": {"websocket.http.response": {}},
    }


async def call(guard: AsgiGuard, scope: Any, *messages: Any) -> list[Any]:
    waiting, sent = list(messages), []

    async def receive() -> Any:
        if waiting:
            return waiting.pop(0)
        return await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        sent.append(message)

    await guard(scope, receive, send)
    return sent


def post(guard: AsgiGuard, *parts: bytes, **headers: str) -> int:
    last = len(parts) - 1
    messages = [
        {"type": "http.request", "body": part, "more_body": number < last}
        for number, part in enumerate(parts or (b"",))
    ]
    sent = asyncio.run(call(guard, scope(**headers), *messages))
    return int(sent[0]["status"])


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "LOCALHOST:8000", "origin": "http://localhost:8000"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:9000"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"content_length": str(10 * LARGEST)}, 413),
        ({"content_length": "9" * 5000}, 413),
    ],
)
def test_who_is_let_in(headers: dict[str, str], status: int) -> None:
    guard, heard = door()
    assert post(guard, b"", **headers) == status
    assert heard == ([b""] if status == 200 else [])


def test_a_body_is_bounded_and_whole_and_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard, heard = door()
    as_json = {"content_type": "application/json; charset=utf-8"}
    assert post(guard, b'{"a":', b" 1}", **as_json) == 200
    assert heard == [b'{"a": 1}']
    for garbage in (
        b"null",
        b"[1]",
        b'{"seed": 1e400}',
        b'{"seed": NaN}',
        b'{"a": "\\ud800"}',
        b"[" * 100_000,
        b"\xff",
    ):
        assert post(guard, garbage, **as_json) == 400
    assert post(guard, *[b"x" * 1000] * 1001) == 413
    assert len(heard) == 1
    monkeypatch.setattr(asgi_guard, "PATIENCE", 0.01)
    begun = {"type": "http.request", "body": b"{", "more_body": True}
    [start, _] = asyncio.run(call(guard, scope(), begun))
    assert start["status"] == 408


def test_no_client_holds_all_sessions_and_garbage_ends_none() -> None:
    guard, heard = door(each=2)

    async def everything() -> list[Any]:
        begun = {"type": "websocket.connect"}
        holding = [
            asyncio.create_task(call(guard, scope("websocket"), begun))
            for _ in range(2)
        ]
        await asyncio.sleep(0)
        refused = await call(guard, scope("websocket"), begun)
        said = [
            {"type": "websocket.receive", "text": text}
            for text in ("null", '{"a": 1}', '{"a": 1e400}', "{")
        ]
        over = {"type": "websocket.disconnect"}
        other = await call(
            guard, scope("websocket", client="10.0.0.8"), begun, *said, over
        )
        for task in holding:
            task.cancel()
        await asyncio.gather(*holding, return_exceptions=True)
        again = await call(guard, scope("websocket"), begun, over)
        foreign = await call(
            guard, scope("websocket", origin="http://evil.example"), begun
        )
        return [refused, other, again, foreign]

    refused, other, again, foreign = asyncio.run(everything())
    assert refused[0]["status"] == 429
    assert "--sessions-each" in refused[1]["body"].decode()
    assert other[0] == {"type": "websocket.accept"}
    codes = [json.loads(one["text"])["data"]["code"] for one in other[1:]]
    assert codes == ["INVALID_JSON"] * 3
    assert heard == ['{"a": 1}']
    assert again == [{"type": "websocket.accept"}], "its places are free again"
    assert foreign[0]["status"] == 403
