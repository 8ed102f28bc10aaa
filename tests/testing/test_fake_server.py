"""The fake server for tests of backends follows its script."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from cheesebench.testing.fake_server import (
    SHAPES,
    Answer,
    Call,
    FakeServer,
    Reasoner,
    main,
)


def post(
    server: FakeServer, text: str = "?", key: str | None = None, model: str = "fake"
) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    headers = {
        "Content-Type": "application/json",
        **({"Authorization": f"Bearer {key}"} if key else {}),
    }
    request = urllib.request.Request(
        f"{server.base_url}/chat/completions", json.dumps(body).encode(), headers
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=20) as response:
        return json.load(response)


def said(server: FakeServer, text: str = "?") -> str:
    reply: str = post(server, text)["choices"][0]["message"]["content"]
    return reply


def status(server: FakeServer, **changes: Any) -> int:
    with pytest.raises(urllib.error.HTTPError) as error:
        post(server, **changes)
    with error.value:
        return error.value.code


def read(server: FakeServer, path: str) -> Any:
    url = server.base_url.removesuffix("/v1") + path
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=20) as response:
        text = response.read()
        return json.loads(text) if text else ""


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_one_answer_a_list_of_them_or_a_function() -> None:
    with FakeServer("yes") as server:
        assert [said(server) for _ in range(2)] == ["yes", "yes"]
    with FakeServer(["one", Answer(text="two")]) as server:
        assert [said(server) for _ in range(3)] == ["one", "two", "two"]
    with FakeServer(lambda call: f"{call.number}: {call.prompt}") as server:
        assert [said(server, "a"), said(server, "b")] == ["0: a", "1: b"]
        assert server.prompts == ["a", "b"]


def test_reply_and_usage() -> None:
    with FakeServer(
        Answer(text="hi", reasoning="hm", usage={"prompt_tokens": 3}, finish="length")
    ) as server:
        reply = post(server)
    [choice] = reply["choices"]
    assert choice["message"] == {
        "role": "assistant",
        "content": "hi",
        "reasoning_content": "hm",
    }
    assert (choice["finish_reason"], reply["usage"], reply["model"]) == (
        "length",
        {"prompt_tokens": 3},
        "fake",
    )


def test_key_and_models() -> None:
    with FakeServer(key="sesame", models=["tiny"]) as server:
        assert status(server, model="tiny") == 401
        assert status(server, model="tiny", key="wrong") == 401
        assert status(server, model="huge", key="sesame") == 404
        assert post(server, model="tiny", key="sesame")["model"] == "tiny"


def test_capacity_lets_calls_wait() -> None:
    with FakeServer(capacity=2, latency=0.05) as server, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: said(server), range(8)))
        assert (server.peak, server.count, server.in_flight) == (2, 8, 0)
        assert all(call.arrived <= call.begun < call.ended for call in server.calls)
        assert (
            sum(
                later.begun >= earlier.ended
                for earlier in server.calls
                for later in server.calls
            )
            >= 12
        )


def test_or_refuses_them() -> None:
    with (
        FakeServer(capacity=1, latency=0.3, refuse=True) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(said, server)
        wait_for(lambda: server.in_flight == 1)
        assert status(server) == 429
        assert first.result() == "ACTIONS: STAY"


def test_keep_bounds_what_is_remembered() -> None:
    with FakeServer(keep=2) as server:
        for text in "abc":
            said(server, text)
        assert (server.count, server.prompts) == (3, ["b", "c"])


def test_it_is_gone_when_it_was_stopped_even_with_a_call_that_hangs() -> None:
    with FakeServer(Answer(fault="hang")) as server:
        waiting = socket.create_connection(("127.0.0.1", server.port))
        body = b'{"messages": []}'
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        waiting.sendall(head.encode() + body)
        wait_for(lambda: server.in_flight == 1)
    with waiting:
        waiting.settimeout(20)
        assert waiting.recv(1) == b""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port))


def test_a_port_that_is_taken_is_an_error() -> None:
    with FakeServer() as server, pytest.raises(OSError, match="Address already in use"):
        FakeServer(port=server.port).start()


def test_connections_that_are_made_while_it_stops_are_closed() -> None:
    for _ in range(5):
        with FakeServer() as server, ThreadPoolExecutor(2) as clients:
            knocking = [clients.submit(knock, server.port) for _ in range(2)]
            wait_for(lambda server=server: server.connections > 0)  # type: ignore[misc]
            server.stop()
            assert sum(task.result() for task in knocking) > 0
    gc.collect()  # an open connection would warn, and a warning is an error here


def knock(port: int) -> int:
    """Connect until the server refuses, or as often as leaves files to open; return the
    number of connections made.
    """
    made = []
    with contextlib.suppress(OSError):
        for _ in range(100):
            made.append(socket.create_connection(("127.0.0.1", port)))
    for connection in made:
        connection.close()
    return len(made)


def test_as_a_process_of_its_own() -> None:
    command = [
        sys.executable,
        "-m",
        "cheesebench.testing.fake_server",
        "--text",
        "hello",
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
            f"{url}/models"
        ) as response:
            assert json.load(response)["data"][0]["id"] == "fake"
        process.stdin.close()
    assert process.returncode == 0


def test_it_says_how_much_of_its_capacity_is_used() -> None:
    with FakeServer("ok", latency=0.3, capacity=2) as server:
        before = server.stats()
        with ThreadPoolExecutor(4) as clients:
            list(clients.map(lambda _: said(server), range(4)))
        with urllib.request.urlopen(
            server.base_url.removesuffix("/v1") + "/stats", timeout=20
        ) as response:
            after = json.load(response)
    assert after["calls"] - before["calls"] == 4
    assert after["in_flight"] == 0
    # Four calls of 0.3 s each were served, never more than two at a time.
    assert (
        4 * 0.3
        <= after["busy"] - before["busy"]
        <= 2 * (after["clock"] - before["clock"])
    )
    assert after["cpu"] > 0


def test_facts_are_said_at_their_paths_and_replace_the_list_of_models() -> None:
    with FakeServer(models=["tiny", "huge"]) as server:
        assert [one["id"] for one in read(server, "/v1/models")["data"]] == [
            "tiny",
            "huge",
        ]
        assert read(server, "/health") == ""
        with pytest.raises(urllib.error.HTTPError, match="404") as error:
            read(server, "/props")
        error.value.close()
    facts = {"/props": {"total_slots": 2}, "/v1/models": {"data": []}}
    with FakeServer(facts=facts) as server:
        assert {path: read(server, path) for path in facts} == facts
        assert said(server) == "ACTIONS: STAY"


def test_usage_is_estimated_from_the_texts_if_none_is_given() -> None:
    with FakeServer(Answer(text="x" * 8, reasoning="y" * 4, model="other")) as server:
        reply = post(server, "z" * 400)
    assert reply["model"] == "other"
    assert reply["usage"]["completion_tokens"] == 4
    assert 100 < reply["usage"]["prompt_tokens"] < 125
    assert reply["usage"]["total_tokens"] == 4 + reply["usage"]["prompt_tokens"]


def test_an_error_has_its_status_message_and_headers() -> None:
    refusal = Answer(
        status=503, error={"message": "busy"}, headers={"Retry-After": "7"}
    )
    with FakeServer(refusal) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server)
        with caught.value as error:
            assert error.code == 503
            assert json.load(error) == {"error": {"message": "busy"}}
            assert error.headers["Retry-After"] == "7"


def asked(reasoner: Reasoner, **body: Any) -> Answer:
    body = {"model": "deep", "messages": [], **body}
    return reasoner(
        Call(number=0, body=body, headers={}, arrived=0.0, path="/v1/chat/completions")
    )


@pytest.mark.parametrize("name", SHAPES)
def test_below_what_it_needs_a_reasoner_stops_in_its_thoughts(name: str) -> None:
    reasoner = Reasoner(
        shape=name, thoughts="left or right? " * 4, answer="LEFT.", needs=20
    )
    whole = asked(reasoner, max_tokens=20).body
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert "LEFT." in json.dumps(whole)
    assert whole["usage"]["completion_tokens"] == (60 + 5) // 4
    assert whole["usage"]["completion_tokens_details"]["reasoning_tokens"] == 15
    cut = asked(reasoner, max_completion_tokens=19).body
    assert cut["choices"][0]["finish_reason"] == "length"
    assert "LEFT." not in json.dumps(cut)
    assert reasoner.thoughts not in json.dumps(cut)
    assert cut["usage"]["completion_tokens"] == 19
    if name != "hidden":
        assert "left or right? " * 2 in json.dumps(cut)
    content = cut["choices"][0]["message"]["content"]
    if isinstance(content, str):
        # No closing tag comes after the cut.
        assert content in ("", content.partition("left")[0] + "left or right? " * 2)


def test_a_strict_reasoner_refuses_what_the_servers_refuse() -> None:
    strict = Reasoner(
        shape="hidden", thoughts="hm", answer="LEFT", needs=9, strict=True
    )
    refused: list[tuple[dict[str, Any], str]] = [
        ({"max_tokens": 99}, "Use 'max_completion_tokens' instead."),
        ({"max_completion_tokens": 99, "temperature": 0.7}, "'temperature' does not"),
        ({"max_completion_tokens": 8}, "model output limit was reached"),
    ]
    for body, told in refused:
        answer = asked(strict, **body)
        assert answer.status == 400
        assert told in answer.error["message"]
    assert asked(strict, max_completion_tokens=9).status == 200


def test_a_server_of_the_command_line_says_its_address_before_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Out(io.StringIO):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

    out, said = Out(), list[str]()

    def read() -> str:
        said.append(out.flushed)
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(read=read))
    main(["--latency", "0"])
    [address] = said
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+(/v1)?\n", address)
