"""The client against a real server on loopback: its requests, its replies, and its
handling of faults.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import re
import socket
import threading
import tracemalloc
from collections.abc import Sequence
from typing import Any

import aiohttp
import pytest

from cheesebench import (
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Message,
    OptionError,
    Sampling,
    Usage,
)
from cheesebench.plugins.backends.openai import (
    MAX_BODY,
    ChatCompletions,
    _reason,
    endpoint,
)
from cheesebench.testing.fake_server import Answer, Call, FakeServer

KEY = "pass-0123456789-word"
REQUEST = ChatRequest(
    model="tiny",
    messages=(Message("system", ("be a mouse",)), Message("user", ("which way?",))),
    timeout=20.0,
)


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def ask(
    base_url: str, *requests: ChatRequest, **options: Any
) -> Sequence[ChatReply | BaseException]:
    """Send requests, all at once, through one client; return replies and exceptions."""

    async def main() -> Sequence[ChatReply | BaseException]:
        client = ChatCompletions(base_url, **options)
        try:
            return await asyncio.gather(
                *map(client.complete, requests), return_exceptions=True
            )
        finally:
            await client.close()

    return asyncio.run(main())


def reply_to(
    server: FakeServer, request: ChatRequest = REQUEST, **options: Any
) -> ChatReply:
    [reply] = ask(server.base_url, request, **options)
    assert isinstance(reply, ChatReply), reply
    return reply


def fault_at(
    base_url: str, request: ChatRequest = REQUEST, **options: Any
) -> ChatFaultError:
    [fault] = ask(base_url, request, **options)
    assert isinstance(fault, ChatFaultError), fault
    return fault


def test_what_is_sent() -> None:
    sampling = Sampling(temperature=0.7, max_tokens=64, seed=5, stop=("END",))
    png = b"\x89PNG not really"
    messages = (Message("user", ("look: ", png, "well?")),)
    request = dataclasses.replace(
        REQUEST,
        messages=messages,
        sampling=sampling,
        extra={"top_k": 3},
        conversation="7",
    )
    with FakeServer() as server:
        reply_to(
            server,
            request,
            key=KEY,
            headers=lambda request: {"X-Rank": request.conversation},
        )
    [call] = server.calls
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    content = [
        {"type": "text", "text": "look: "},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "text", "text": "well?"},
    ]
    assert call.body == {
        "model": "tiny",
        "messages": [{"role": "user", "content": content}],
        "temperature": 0.7,
        "max_tokens": 64,
        "seed": 5,
        "stop": ["END"],
        "top_k": 3,
    }
    assert call.headers["Authorization"] == f"Bearer {KEY}"
    assert call.headers["X-Rank"] == "7"


def test_what_is_none_is_not_sent_and_served_settings_win() -> None:
    request = dataclasses.replace(
        REQUEST, sampling=Sampling(max_tokens=9), extra={"max_completion_tokens": 4000}
    )
    with FakeServer() as server:
        reply_to(server)
        reply_to(
            server,
            dataclasses.replace(request, extra={}),
            max_tokens_name="max_completion_tokens",
        )
        reply_to(server, request)
    plain, renamed, served = (
        set(call.body) - {"model", "messages"} for call in server.calls
    )
    assert (plain, renamed, served) == (
        set(),
        {"max_completion_tokens"},
        {"max_completion_tokens"},
    )
    assert server.calls[2].body["max_completion_tokens"] == 4000
    assert "Authorization" not in server.calls[0].headers


def test_what_is_read() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 96},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    answer = Answer(
        text="ACTIONS: STAY",
        reasoning="hm",
        finish="length",
        usage=usage,
        model="other-1",
    )
    with FakeServer(answer) as server:
        reply = reply_to(server)
    assert reply == ChatReply(
        text="ACTIONS: STAY",
        reasoning="hm",
        finish="length",
        usage=Usage(prompt=100, completion=20, cached=96, reasoning=15),
        model="other-1",
    )


def test_many_calls_at_once_keep_their_replies() -> None:
    def echo(call: Call) -> Answer:
        return Answer(text=call.prompt, delay=0.02 * (call.number % 3))

    requests = [
        dataclasses.replace(REQUEST, messages=(Message("user", (f"call {i}",)),))
        for i in range(60)
    ]
    with FakeServer(echo, capacity=16) as server:
        replies = ask(server.base_url, *requests)
    assert [reply.text for reply in replies if isinstance(reply, ChatReply)] == [
        f"call {i}" for i in range(60)
    ]
    assert server.peak == 16


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Response payload is not completed: <ContentLengthError: 400, message='Not enough data to satisfy content length "
            "header (received 15 of 900 bytes).'>",
            "after 15 of 900 bytes",
        ),
        (
            "Response payload is not completed: <TransferEncodingError: 400, message='Not enough data to satisfy transfer "
            "length header.'>",
            "in the middle of its reply",
        ),
        ("Server disconnected", "Server disconnected"),
    ],
)  # fmt: skip
def test_a_reply_that_broke_off_names_the_place(text: str, said: str) -> None:
    assert _reason(aiohttp.ClientPayloadError(text)) == said


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (Answer(fault="hang"), "timeout", "has not answered within 0.5 s"),
        (
            Answer(fault="drip", text="x" * 100),
            "timeout",
            "has not answered within 0.5 s",
        ),
        (Answer(fault="reset"), "connection", "dropped the connection ("),
        (
            Answer(fault="reset_in_body", text="x" * 999),
            "connection",
            " bytes)",
        ),
        (Answer(fault="noise"), "malformed", "does not speak HTTP"),
        (
            Answer(body=b"\x00\xff\x1b[31m<html>"),
            "malformed",
            r"not JSON. \x00�\x1b[31m<html>",
        ),
        (Answer(body=b""), "malformed", "The answer is empty"),
        (Answer(body=b"[" * 100_000), "malformed", "not JSON"),
        (Answer(body=[1, 2]), "malformed", "not a JSON object"),
        (Answer(body={"choices": []}), "malformed", "choices[0].message"),
        (Answer(body={"choices": [None]}), "malformed", "choices[0].message"),
        (
            Answer(body={"error": {"message": "engine died", "code": 500}}),
            "server",
            "engine died",
        ),
        (
            Answer(body=b"x", headers={"Content-Encoding": "gzip"}),
            "malformed",
            "as 'gzip'",
        ),
        (
            Answer(status=302, body=b"", headers={"Location": "http://else.where/"}),
            "server",
            "redirects to http://",
        ),
        (
            Answer(status=301, body=b"", headers={"Location": "http://else.where/"}),
            "bad_request",
            "redirects to http://",
        ),
        (Answer(status=418, body=b""), "server", "answers 418"),
        (Answer(status=499, body=b""), "server", "answers 499"),
        (Answer(status=204, body=b""), "malformed", "The answer is empty"),
        (Answer(finish="content_filter"), "content_filter", "cut off the reply"),
        (Answer(status=500, body=b"x" * 200_000), "server", "answers 500: xxx"),
    ],
)
def test_faults(answer: Answer, kind: str, said: str) -> None:
    with FakeServer(answer) as server:
        fault = fault_at(
            server.base_url,
            dataclasses.replace(REQUEST, timeout=0.5 if kind == "timeout" else 20.0),
        )
    assert fault.kind == kind
    assert said in f"{fault} {fault.answer}"
    assert len(f"{fault} {fault.answer}") < 500
    assert "\x1b" not in f"{fault} {fault.answer}"


def test_a_refused_connection_is_a_fault_of_the_connection() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        fault = fault_at(f"http://127.0.0.1:{free.getsockname()[1]}/v1")
    assert fault.kind == "connection"
    assert str(fault).endswith("cannot be reached (Connection refused)."), (
        "the reason, and the address once"
    )


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "perhaps plain http://"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "HANDSHAKE_FAILURE"),
        (b"", "ConnectionResetError"),
    ],
)
def test_a_failure_of_tls_keeps_its_cause(sent: bytes, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(sent)

        thread = threading.Thread(target=answer)
        thread.start()
        fault = fault_at(f"https://127.0.0.1:{server.getsockname()[1]}/v1")
        thread.join()
    assert fault.kind == "connection"
    assert reason in str(fault)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_given_up_early(chunked: bool) -> None:
    headers = {"Transfer-Encoding": "chunked"} if chunked else {}
    with FakeServer(Answer(fault="huge", headers=headers)) as server:
        tracemalloc.start()
        try:
            fault = fault_at(server.base_url)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (fault.kind, "more than 4 MB" in str(fault)) == ("malformed", True)
    assert peak < 3 * MAX_BODY


def test_faults_of_one_call_leave_the_others_alone() -> None:
    def flaky(call: Call) -> Answer:
        return Answer(fault="reset") if call.prompt == "odd" else Answer(text="fine")

    odd = dataclasses.replace(REQUEST, messages=(Message("user", ("odd",)),))
    with FakeServer(flaky) as server:
        replies = ask(server.base_url, *[REQUEST, odd] * 10)
    assert [isinstance(reply, ChatReply) for reply in replies] == [True, False] * 10


def test_cancelling_hangs_up() -> None:
    async def main(server: FakeServer) -> None:
        client = ChatCompletions(server.base_url)
        task = asyncio.create_task(client.complete(REQUEST))
        while not server.in_flight:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while server.in_flight:
            await asyncio.sleep(0.01)
        await client.close()

    with FakeServer(Answer(fault="hang")) as server:
        asyncio.run(asyncio.wait_for(main(server), 20))
    assert server.given_up == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=401, error={"message": f"bad key {KEY}"}),
        Answer(status=400, body=f"oh {KEY}".encode()),
        Answer(status=500, error={"message": "x" * 285 + KEY}),
        Answer(body=("[" * 105 + KEY).encode()),
        Answer(status=302, headers={"Location": f"http://x/?{KEY}"}, body=b""),
        Answer(body=f"<html>{KEY}".encode()),
    ],
)
def test_no_key_in_a_fault(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOUSE_KEY", KEY)
    with FakeServer(answer) as server:
        fault = fault_at(server.base_url, key=KEY)
    told = f"{fault} {fault.answer}"
    assert KEY[:9] not in told
    assert "[redact" in told


def test_a_key_that_no_header_takes_is_refused_unquoted() -> None:
    with pytest.raises(OptionError, match="not allowed in an HTTP header") as error:
        asyncio.run(_open("http://127.0.0.1:1/v1", key="secret-word\n"))
    assert "secret-word" not in str(error.value)


async def _open(url: str, **options: Any) -> None:
    await ChatCompletions(url, **options).close()


def test_half_surrogates_go_neither_out_nor_in() -> None:
    request = dataclasses.replace(
        REQUEST, messages=(Message("user", ("\ud800 hello",)),)
    )
    with FakeServer(Answer(text="bad \udc00 half")) as server:
        assert reply_to(server, request).text == "bad ? half"
    assert server.prompts == ["? hello"]


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1/chat/completions"),
        ("https://a.example/api/v1/", "https://a.example/api/v1/chat/completions"),
        (
            "https://a.example/v1/chat/completions",
            "https://a.example/v1/chat/completions",
        ),
        ("https://a.example/openai", "https://a.example/openai/chat/completions"),
    ],
)
def test_endpoint(base_url: str, expected: str) -> None:
    assert str(endpoint(base_url)) == expected


@pytest.mark.parametrize(
    "base_url",
    [
        *(
            "",
            "localhost:8000",
            "ftp://a.example",
            "http://",
            "http://[::1",
            "/v1",
            "http://a..b/v1",
            "http://a:0/v1",
        ),
        *(
            f"http://{'a' * 64}.example/v1",
            "http://a.example:99999/v1",
            "http://a.ex ample/v1",
            "http://%zz/v1",
        ),
    ],
)
def test_no_url(base_url: str) -> None:
    with pytest.raises(
        OptionError,
        match=re.escape("Write an address such as http://127.0.0.1:8000/v1"),
    ):
        endpoint(base_url)


@pytest.mark.parametrize(
    "secret",
    [
        "me:hunter22hunter@a.example/v1",
        "a.example/?hunter22hunter",
        "a/v1#hunter22hunter",
    ],
)
def test_what_may_be_a_key_in_the_url_is_refused_unquoted(secret: str) -> None:
    with pytest.raises(OptionError, match="environment variable") as error:
        endpoint(f"http://{secret}")
    assert "hunter" not in str(error.value)


def test_a_server_that_speaks_no_tls_is_no_server_with_https() -> None:
    with FakeServer() as server:
        fault = fault_at(server.base_url.replace("http:", "https:"))
    assert fault.kind == "connection"


def test_a_connection_is_not_used_again() -> None:
    """Data sent late or twice would be read as the next call's reply."""
    with FakeServer() as server:
        ask(server.base_url, REQUEST)
        assert server.calls[0].headers["Connection"] == "close"


def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with FakeServer("through the proxy") as server:
        monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        [reply] = ask("http://models.invalid/v1", REQUEST)
        assert isinstance(reply, ChatReply)
        assert reply.text == "through the proxy"
        with FakeServer("directly") as other:
            assert reply_to(other).text == "directly"
