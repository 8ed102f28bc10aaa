"""A real HTTP server on loopback that speaks the OpenAI protocol and follows a script,
for tests of backends.

It runs in a thread of its own, so that tests, worker processes and ``pytest`` inside
pytest can all call it:

    from cheesebench.testing.fake_server import Answer, FakeServer

    with FakeServer("ACTIONS: FORWARD", latency=0.2, capacity=64) as server:
        ...  # call server.base_url
    assert server.peak <= 64

    def flaky(call):  # every third call is rejected, the others are echoed
        if call.number % 3 == 0:
            return Answer(status=429, headers={"Retry-After": "1"})
        return call.prompt[:20]

``python -m cheesebench.testing.fake_server --help`` runs it as a process of its own,
for benchmarks.

The module is longer than most so that the server, its scripted faults and its command
line stay in one file that can be copied into another project.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

#: Misbehaviours of a server. ``hang``: no answer. ``reset``: the connection is cut
#: before the reply. ``reset_in_body``: the connection is cut in the middle of the
#: reply. ``noise``: bytes that are not HTTP. ``drip``: the reply comes byte by byte,
#: ten a second. ``huge``: a reply of 100 MB that is valid JSON.
Fault = Literal["hang", "reset", "reset_in_body", "noise", "drip", "huge"]
#: Number of bytes of a ``huge`` reply.
HUGE = 100 * 1024 * 1024
#: Seconds between the bytes of a ``drip`` reply.
DRIP = 0.1


@dataclass(slots=True, kw_only=True)
class Call:
    """One request as the server saw it. Times are ``time.monotonic()``. ``begun`` is
    the time at which the server had capacity for it.
    """

    number: int
    """The number of the call, from 0 in the order of arrival."""
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    arrived: float
    path: str = ""
    """Path and query of the request, decoded."""
    begun: float = 0.0
    ended: float = 0.0
    """0.0 until the answer is ready, and if the call was refused, or the client gave it
    up.
    """

    @property
    def prompt(self) -> str:
        """The text of the last message."""
        messages = self.body.get("messages") or [{}]
        content = messages[-1].get("content") or ""
        if isinstance(content, str):
            return content
        return "".join(part.get("text", "") for part in content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The server's answer to one call.

    ``body`` replaces the whole body: bytes as they are, anything else as JSON. A status
    other than 200 without a body gets an error body of OpenAI's form with ``error`` as
    its ``error`` object. ``usage`` is sent as it is. If it is None, about four
    characters count as a token, and nothing is cached. ``delay`` (seconds) is added to
    the latency.
    """

    text: str | None = ""
    reasoning: str = ""
    finish: str | None = "stop"
    model: str | None = None
    """The model name that the server reports. None means the requested one."""
    usage: Mapping[str, Any] | None = None
    status: int = 200
    error: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    fault: Fault | None = None


#: A function that returns the answer to a call. A plain string stands for an Answer
#: with that text.
Script = Callable[[Call], Answer | str]


#: Forms in which servers of reasoning models send reasoning, by name. Each function
#: takes the reasoning and the answer, and returns fields of the message.
SHAPES: Mapping[str, Callable[[str, str], dict[str, Any]]] = {
    "reasoning_content": lambda thoughts, answer: {
        "content": answer,
        "reasoning_content": thoughts,
    },
    "reasoning": lambda thoughts, answer: {"content": answer, "reasoning": thoughts},
    "parts": lambda thoughts, answer: {
        "content": [
            {"type": "thinking", "thinking": thoughts},
            {"type": "text", "text": answer},
        ]
    },
    "thought_parts": lambda thoughts, answer: {
        "content": [{"thought": True, "text": thoughts}, {"text": answer}]
    },
    "summary": lambda thoughts, answer: {
        "content": [
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": thoughts}],
            },
            {"type": "output_text", "text": answer},
        ]
    },
    "hidden": lambda thoughts, answer: {"content": answer},
    "think": lambda thoughts, answer: {"content": f"<think>{thoughts}</think>{answer}"},
    "template": lambda thoughts, answer: {"content": f"{thoughts}</think>{answer}"},
    "seed": lambda thoughts, answer: {
        "content": f"<seed:think>{thoughts}</seed:think>{answer}"
    },
    "channels": lambda thoughts, answer: {
        "content": f"<|channel|>analysis<|message|>{thoughts}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{answer}"
    },
    "command": lambda thoughts, answer: {
        "content": f"<|START_THINKING|>{thoughts}<|END_THINKING|>{answer}"
    },
    "internal": lambda thoughts, answer: {
        "content": f"<internal_reasoning>{thoughts}</internal_reasoning>{answer}"
    },
    "solution": lambda thoughts, answer: {
        "content": f"<|begin_of_thought|>{thoughts}<|end_of_thought|><|begin_of_solution|>{answer}<|end_of_solution|>"
    },
    "untagged": lambda thoughts, answer: {"content": f"{thoughts}\n{answer}"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoner:
    """A script that answers like the server of a reasoning model. ``shape`` is one of
    ``SHAPES``.

    A call whose limit is below ``needs`` tokens is cut off in the middle of its
    thoughts. With ``strict``, it is refused with status 400 instead, and so is a call
    with a temperature, or with the limit's old name, ``max_tokens``.
    """

    shape: str
    thoughts: str
    answer: str
    needs: int = 0
    strict: bool = False

    def __call__(self, call: Call) -> Answer:
        """Answer a call."""
        body = call.body
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or 0
        if self.strict and "max_tokens" in body:
            text = (
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
            )
            return Answer(
                status=400,
                error={"message": f"{text}Use 'max_completion_tokens' instead."},
            )
        if self.strict and "temperature" in body:
            text = (
                "Unsupported value: 'temperature' does not support 0.7 with this model."
            )
            return Answer(status=400, error={"message": text})
        cut_off = limit < self.needs
        if cut_off and self.strict:
            text = "Could not finish the message because max_tokens or model output limit was reached."
            return Answer(status=400, error={"message": text})
        thoughts, answer = (
            (self.thoughts[: len(self.thoughts) // 2], "")
            if cut_off
            else (self.thoughts, self.answer)
        )
        message = {"role": "assistant", **SHAPES[self.shape](thoughts, answer)}
        if cut_off and isinstance(message["content"], str) and message["content"]:
            # The cut also removes the tags after the thoughts.
            message["content"] = message["content"].partition(thoughts)[0] + thoughts
        spent = limit if cut_off else (len(thoughts) + len(answer)) // 4
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": spent,
            "completion_tokens_details": {
                "reasoning_tokens": min(spent, len(thoughts) // 4)
            },
        }
        finish = "length" if cut_off else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return Answer(
            body={"model": body.get("model"), "choices": [choice], "usage": usage}
        )


class FakeServer:
    """A local server that imitates a model's API. A ``with`` block (or ``start``)
    starts it, and the end of the block (or ``stop``) stops it.

    ``script`` gives the answers: one text for all calls, a list (one answer for each
    call, and the last one also for all later calls), or a function of the call. A
    served call takes at least ``latency`` seconds. At most ``capacity`` calls are
    served at once. Other calls wait or, with ``refuse``, are refused with status 429.
    If there is a ``key``, calls must present it. If there are ``models``, calls must
    name one of them. ``keep`` is the maximum number of calls to remember (None: all).
    ``facts`` are JSON replies by path (``/props``), for servers that describe
    themselves.

    A server that speaks another protocol is a subclass with another ``path``,
    ``reply_body`` and ``error_body``.
    """

    #: Path of calls below ``base_url``. A part in braces matches anything
    #: (``/models/{model}/say``).
    path = "/chat/completions"

    def __init__(
        self,
        script: str | Answer | Sequence[str | Answer] | Script = "ACTIONS: STAY",
        *,
        latency: float = 0.0,
        capacity: int | None = None,
        refuse: bool = False,
        key: str | None = None,
        models: Sequence[str] | None = None,
        keep: int | None = None,
        port: int = 0,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self._facts = facts or {}
        self._script = _as_script(script)
        self.latency, self.capacity, self.refuse = latency, capacity, refuse
        self.key, self.models, self.port = key, models, port
        #: The calls so far, in the order of arrival (the last ``keep`` of them).
        self.calls: deque[Call] = deque(maxlen=keep)
        #: ``count``: number of calls so far. ``in_flight``: number of calls being
        #: served. ``peak``: the maximum of ``in_flight``.
        self.count = self.in_flight = self.peak = 0
        #: Number of calls whose client went away before the answer.
        self.given_up = 0
        #: Total seconds spent on calls, up to the time ``_counted``.
        self._busy, self._counted = 0.0, time.monotonic()
        self._thread: threading.Thread | None = None
        self._runner: web.AppRunner | None = None
        self._ready = threading.Event()
        self._failure: BaseException | None = None

    @property
    def base_url(self) -> str:
        """The URL to give to a client."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def connections(self) -> int:
        """Number of open connections, active or idle."""
        server = self._runner.server if self._runner is not None else None
        return 0 if server is None else len(server.connections)

    @property
    def prompts(self) -> list[str]:
        """The last message of every remembered call."""
        return [call.prompt for call in self.calls]

    def start(self) -> FakeServer:
        """Start serving, and return when the server can be called."""
        self._ready.clear()
        self._thread = threading.Thread(
            target=self._serve, name="fake-server", daemon=True
        )
        self._thread.start()
        self._ready.wait(30)
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Cut all connections and return when the server is gone."""
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(30)
            self._thread = None

    def __enter__(self) -> FakeServer:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._failure = error
            self._ready.set()

    async def _main(self) -> None:
        listener = socket.create_server(("127.0.0.1", self.port))
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self._room = asyncio.Semaphore(self.capacity or 1_000_000)
        application = web.Application(client_max_size=64 * 1024 * 1024)
        application.router.add_post(f"/v1{self.path}", self._complete)
        for path in self._facts:
            application.router.add_get(path, self._say)
        if "/v1/models" not in self._facts:
            application.router.add_get("/v1/models", self._list_models)
        application.router.add_get("/health", self._health)
        application.router.add_get("/stats", self._stats)
        # With ``handler_cancellation``, a client that disconnects frees its place.
        runner = web.AppRunner(
            application,
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=0.1,
        )
        await runner.setup()
        self._runner = runner
        try:
            await web.SockSite(runner, listener, backlog=4096).start()
            self.port = runner.addresses[0][1]
            self._ready.set()
            await self._stopping.wait()
            # Otherwise asyncio would leak connections that it accepts in the loop's
            # last iteration.
            self._loop.remove_reader(listener)
            for _ in range(2):
                await asyncio.sleep(0)
        finally:
            await runner.cleanup()
            listener.close()

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="")

    async def _stats(self, request: web.Request) -> web.Response:
        return web.json_response(self.stats())

    def stats(self) -> dict[str, float]:
        """Return the numbers of ``calls`` so far and of calls ``in_flight``, and three
        times in seconds: ``clock``, ``busy`` and ``cpu`` (of the process).

        ``busy`` grows by one second per second for every call that is being served. If
        the whole capacity is used between two polls, it grows by the capacity times the
        seconds between them.
        """
        self._occupy(0)
        return {
            "calls": self.count,
            "in_flight": self.in_flight,
            "busy": self._busy,
            "clock": self._counted,
            "cpu": time.process_time(),
        }

    def _occupy(self, change: int) -> None:
        """Add the time that the calls in flight have taken since the last update to the
        time spent on calls. Then change their number.
        """
        now = time.monotonic()
        self._busy += self.in_flight * (now - self._counted)
        self._counted = now
        self.in_flight += change
        self.peak = max(self.peak, self.in_flight)

    async def _say(self, request: web.Request) -> web.Response:
        return web.json_response(self._facts[request.path])

    async def _list_models(self, request: web.Request) -> web.Response:
        data = [
            {"id": name, "object": "model", "owned_by": "cheesebench"}
            for name in self.models or ("fake",)
        ]
        return web.json_response({"object": "list", "data": data})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            body = json.loads(await request.read())
        except ValueError:
            return self._response(
                Answer(status=400, error={"message": "the body is not JSON"}), None
            )
        call = Call(
            number=self.count,
            body=body,
            headers=dict(request.headers),
            arrived=time.monotonic(),
            path=str(request.rel_url.human_repr()),
        )
        self.count += 1
        self.calls.append(call)
        if refusal := self._refusal(call):
            return self._response(refusal, call)
        try:
            async with self._room:
                self._occupy(1)
                call.begun = time.monotonic()
                try:
                    response = await self._answer(request, call)
                finally:
                    self._occupy(-1)
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        call.ended = time.monotonic()
        return response

    def _refusal(self, call: Call) -> Answer | None:
        if (
            self.key is not None
            and call.headers.get("Authorization") != f"Bearer {self.key}"
        ):
            return Answer(
                status=401,
                error={
                    "message": "Incorrect API key provided.",
                    "code": "invalid_api_key",
                },
            )
        model = call.body.get("model")
        if self.models is not None and model not in self.models:
            message = f"The model `{model}` does not exist."
            return Answer(
                status=404, error={"message": message, "code": "model_not_found"}
            )
        if self.refuse and self._room.locked():
            return Answer(
                status=429,
                error={"message": "Rate limit reached.", "code": "rate_limit_exceeded"},
            )
        return None

    async def _answer(self, request: web.Request, call: Call) -> web.StreamResponse:
        answer = self._script(call)
        if isinstance(answer, str):
            answer = Answer(text=answer)
        await asyncio.sleep(self.latency + answer.delay)
        if answer.fault is None:
            return self._response(answer, call)
        return await _misbehave(answer, self.reply_body, call, request)

    def reply_body(self, answer: Answer, call: Call) -> Any:
        """Return the JSON of a reply, in the form of OpenAI's servers and vLLM.

        ``answer.finish`` is "stop" or "length". ``answer.usage`` has OpenAI's names
        (``prompt_tokens``, ``completion_tokens``,
        ``prompt_tokens_details.cached_tokens``), and is None if a test does not set it.
        """
        return _completion(answer, call)

    def error_body(self, answer: Answer) -> Any:
        """Return the JSON of a status other than 200.

        ``answer.error`` has ``message`` and perhaps ``code``. The pause that a server
        asks for, in seconds, is ``answer.headers["Retry-After"]``, which is sent as a
        header in any case.
        """
        return {"error": {"message": "", **answer.error}}

    def _response(self, answer: Answer, call: Call | None) -> web.Response:
        body = answer.body
        if body is None:
            body = (
                self.reply_body(answer, call)
                if answer.status == 200 and call
                else self.error_body(answer)
            )
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **answer.headers}
        return web.Response(status=answer.status, body=data, headers=headers)


def _as_script(script: str | Answer | Sequence[str | Answer] | Script) -> Script:
    if callable(script):
        return script
    answers = [script] if isinstance(script, str | Answer) else list(script)
    return lambda call: answers[min(call.number, len(answers) - 1)]


def _completion(answer: Answer, call: Call) -> dict[str, Any]:
    """Return a reply as OpenAI's servers and vLLM send it."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    usage = answer.usage
    if usage is None:
        prompt = len(str(call.body.get("messages"))) // 4 + 1
        completion = len((answer.text or "") + answer.reasoning) // 4 + 1
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
    return {
        "id": f"chatcmpl-{call.number}",
        "object": "chat.completion",
        "created": 1700000000,
        "model": call.body.get("model") if answer.model is None else answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": answer.finish}],
        "usage": usage,
    }


async def _misbehave(
    answer: Answer,
    reply_body: Callable[[Answer, Call], Any],
    call: Call,
    request: web.Request,
) -> web.StreamResponse:
    if answer.fault == "hang":
        await asyncio.Event().wait()
    if answer.fault in ("reset", "noise"):
        if answer.fault == "noise" and request.transport is not None:
            request.transport.write(
                b"\x00\xff SSH-2.0 I am no web server \x1b[31m\r\n\r\n"
            )
            await asyncio.sleep(0.05)
        _cut(request)
        return web.Response()
    data = json.dumps(reply_body(answer, call)).encode()
    if answer.fault == "huge":
        head, tail = json.dumps(reply_body(Answer(text="|"), call)).split("|")
        length = HUGE
    else:
        head, tail, length = "", "", len(data)
    # The length is in a header or, if the answer asks for chunks, in the chunks. Tests
    # of a client's limits need both.
    headers = {"Content-Type": "application/json", **answer.headers}
    if "Transfer-Encoding" not in headers:
        headers["Content-Length"] = str(length)
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        if answer.fault == "drip":
            for byte in data:
                await response.write(bytes([byte]))
                await asyncio.sleep(DRIP)
        elif answer.fault == "reset_in_body":
            await response.write(data[: len(data) // 2])
            await asyncio.sleep(0.05)
            _cut(request)
        else:
            await response.write(head.encode())
            rest, piece = HUGE - len(head) - len(tail), b"x" * 65536
            while rest > 0:
                await response.write(piece[:rest])
                rest -= len(piece)
            await response.write(tail.encode())
    return response


def _cut(request: web.Request) -> None:
    """Reset the connection. Because SO_LINGER is 0, the client gets a TCP reset instead
    of a clean end.
    """
    if request.transport is not None:
        end: socket.socket | None = request.transport.get_extra_info("socket")
        if end is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        request.transport.abort()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve as a process of its own: print the base URL, and serve until standard input
    ends.
    """
    parser = argparse.ArgumentParser(
        prog="python -m cheesebench.testing.fake_server",
        description=(__doc__ or "").split("\n")[0],
        epilog="It prints its base URL and serves until standard input ends "
        "(in the background: sleep infinity | python -m ...).",
    )
    parser.add_argument(
        "--text", default="ACTIONS: STAY", help="the reply to every call"
    )
    parser.add_argument(
        "--latency", type=float, default=0.0, help="duration of every call in seconds"
    )
    parser.add_argument(
        "--capacity",
        type=int,
        help="maximum number of calls served at once; other calls wait",
    )
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    options = parser.parse_args(arguments)
    server = FakeServer(
        options.text,
        latency=options.latency,
        capacity=options.capacity,
        port=options.port,
        keep=100,
    )
    with server:
        print(server.base_url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()


if __name__ == "__main__":
    main()
