"""Misbehaviours of a model server, with the expected effect on the calls that meet
them.

``again``: a retry helps, and leaves no trace in the records; if the fault lasts, the
trials are missing. ``read``: the answer is odd, but is still an answer. ``refused``:
the request itself is refused, so its subject stops. ``account``: no request for this
model can be answered; a server that has answered before is asked twice more.
``throttled``: like ``again``, but the server says that it is busy, and is awaited.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fuzz.hostile import USAGE, Step, response

Outcome = Literal["again", "read", "refused", "account", "throttled"]
#: A time in seconds that is longer than any wait in these campaigns; and the size in
#: bytes of a body that is too large to be read.
FOREVER, TOO_MUCH = 600.0, 5 * 2**20
OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@dataclass(frozen=True, slots=True)
class Hostility:
    """One class of fault: the bytes that the server sends instead of the good answer,
    and the expected effect.

    ``said`` is the beginning of the cause if trials are missing.
    """

    name: str
    outcome: Outcome
    said: str
    steps: Callable[[bytes], Sequence[Step]]
    slow: bool = False
    """Whether a call that meets the fault lasts until it times out."""

    def met(self, prompt: str, before: int) -> bool:
        """Return whether a prompt (a digest) meets the fault, after ``before`` earlier
        attempts.

        A refusal meets three quarters of all prompts; any other fault meets the first
        attempt at each prompt.
        """
        return (
            int(prompt[0], 16) % 4 > 0
            if self.outcome == "refused"
            else self.outcome == "read" or before == 0
        )


def _hostilities() -> Iterator[Hostility]:
    yield from _statuses()
    yield from _errors()
    yield from _connections()
    yield from _heads()
    yield from _bodies()
    yield from _replies()
    yield from _odd_but_readable()


def _error(message: str = "no", **more: Any) -> bytes:
    return json.dumps({"error": {"message": message, **more}}).encode()


def _fixed(*steps: Step) -> Callable[[bytes], Sequence[Step]]:
    return lambda good: steps


def _statuses() -> Iterator[Hostility]:
    """Yield answers that are a status alone, or a status with a page that says
    nothing.
    """
    outcomes: dict[Outcome, dict[str, tuple[int, ...]]] = {
        "again": {
            "malformed": (201, 202, 203, 204, 205, 206),
            "server": (
                300,
                302,
                303,
                304,
                305,
                307,
                409,
                418,
                421,
                424,
                499,
                500,
                501,
                502,
                505,
                507,
                508,
                510,
                511,
                520,
                530,
            ),
            "timeout": (408, 504, 522, 524),
        },
        "throttled": {"overload": (425, 498, 503, 529), "rate limit": (429,)},
        "refused": {
            "bad request": (
                301,
                308,
                400,
                405,
                406,
                411,
                412,
                414,
                415,
                417,
                422,
                428,
                431,
                451,
            ),
            "context too long": (413,),
        },
        "account": {
            "authentication": (401, 403, 407),
            "quota": (402,),
            "unknown model": (404, 410),
        },
    }
    for outcome, kinds in outcomes.items():
        for said, codes in kinds.items():
            for code in codes:
                body = (
                    b""
                    if code in (204, 304)
                    else b"<html><h1>" + str(code).encode() + b"</h1></html>"
                )
                headers = [
                    "Content-Type: text/html",
                    *(["Location: /v2"] if 300 <= code < 400 else []),
                ]
                yield Hostility(
                    f"status-{code}",
                    outcome,
                    said,
                    _fixed(response(body, f"{code} Odd", *headers)),
                )
    for odd in ("99", "1000", "abc", "-200", ""):
        steps = _fixed(
            f"HTTP/1.1 {odd} Odd\r\nContent-Length: 0\r\n\r\n".encode(), "close"
        )
        yield Hostility(f"status-of-nobody-{odd or 'none'}", "again", "", steps)


def _errors() -> Iterator[Hostility]:
    """Yield error bodies, and headers that ask for a pause."""
    quota, context, unsafe = (
        "insufficient_quota",
        "context_length_exceeded",
        "content_filter",
    )
    said: tuple[tuple[str, Outcome, str, str, bytes], ...] = (
        ("quota-as-429", "account", "quota", "429 Too Many", _error(code=quota)),
        (
            "context-as-400",
            "refused",
            "context too long",
            "400 Bad",
            _error(code=context),
        ),
        (
            "context-in-words",
            "refused",
            "context too long",
            "400 Bad",
            _error("maximum context length is 9 tokens"),
        ),
        ("filter-as-400", "refused", "content filter", "400 Bad", _error(code=unsafe)),
        (
            "model-gone",
            "account",
            "unknown model",
            "404 No",
            _error("not there", code="model_not_found"),
        ),
        (
            "key-expired",
            "account",
            "authentication",
            "401 No",
            _error("expired api key", code="invalid_api_key"),
        ),
        *(
            (f"quota-{name}", "account", "quota", "400 Bad", _error(words))
            for name, words in {
                "of-a-month": "Your monthly output limit has been reached.",
                "of-a-day": "The output token limit is reached for this project today",
                "specified": "You have reached your specified API usage limits.",
                "in-words-of-a-request": "The max_tokens limit was reached for this month",
            }.items()
        ),
        (
            "larger-than-a-minute",
            "refused",
            "context too long",
            "429 Too Many",
            _error("Limit 6000, Requested 9042", code="rate_limit_exceeded"),
        ),
        (
            "history-not-parsed",
            "refused",
            "bad request",
            "400 Bad",
            _error("Failed to parse tool calls in messages[2]"),
        ),
        (
            "safety-as-403",
            "refused",
            "content filter",
            "403 No",
            _error("Content violates usage guidelines"),
        ),
        *(
            (f"crash-as-400-{number}", "again", "server", "400 Bad", _error(words))
            for number, words in enumerate(
                ("The model has crashed", "Model unloaded.", "Channel Error")
            )
        ),
        ("error-as-200", "again", "server", "200 OK", _error("oops")),
        (
            "error-as-200-says-429",
            "throttled",
            "rate limit",
            "200 OK",
            _error("slow down", code=429),
        ),
        (
            "error-as-200-says-400",
            "refused",
            "bad request",
            "200 OK",
            _error("no", code="400"),
        ),
        (
            "overloaded-as-500",
            "throttled",
            "overload",
            "500 Oops",
            _error("the engine is overloaded"),
        ),
        (
            "error-is-a-list",
            "again",
            "server",
            "500 Oops",
            b'[{"error": {"message": "no"}}]',
        ),
        ("error-is-a-number", "again", "server", "500 Oops", b'{"error": 5}'),
        ("error-is-deep", "again", "server", "500 Oops", b'{"error":' * 5000),
        ("error-of-megabytes", "again", "server", "500 Oops", b"x" * TOO_MUCH),
        (
            "error-not-utf-8",
            "again",
            "server",
            "500 Oops",
            b"\xff\xfe\x00\x1b[31m" * 50,
        ),
        (
            "error-commands",
            "again",
            "server",
            "500 Oops",
            _error("::error::x\n##[error]y @all \x1b[31m<script>"),
        ),
    )
    for name, outcome, kind, status, body in said:
        yield Hostility(name, outcome, kind, _fixed(response(body, status)))
    wishes = {
        "fraction": "0.05", "zero": "0", "negative": "-5", "words": "in a while", "nan": "nan", "infinite": "1e999",
        "long-past": "Wed, 21 Oct 2015 07:28:00 GMT", "no-date": "Wed, 99 Foo 9999 99:99:99 GMT", "empty": "",
        "many-digits": "9" * 400, "a-day": "86400"
    }  # fmt: skip
    for name, wish in wishes.items():
        steps = _fixed(response(_error(), "429 Too Many", f"Retry-After: {wish}"))
        # A server that asks for a pause of a day is not awaited.
        yield Hostility(
            f"retry-after-{name}",
            "refused" if name == "a-day" else "throttled",
            "rate limit",
            steps,
        )
    steps = _fixed(
        response(_error(), "429 Too Many", "Retry-After-Ms: 50", "Retry-After: 50")
    )
    yield Hostility("retry-after-in-ms", "throttled", "rate limit", steps)
    for status, outcome, kind in (
        ("503", "throttled", "overload"),
        ("500", "again", "server"),
    ):
        steps = _fixed(response(_error(), f"{status} Busy", "Retry-After: 0.05"))
        yield Hostility(f"retry-after-of-{status}", outcome, kind, steps)


def _connections() -> Iterator[Hostility]:
    """Yield connections that are reset, ended or silent at each stage."""
    stages: dict[str, Callable[[bytes], bytes]] = {
        "at-once": lambda good: b"",
        "in-status": lambda good: b"HTTP/1.1 2",
        "in-head": lambda good: OK.encode() + b"Content-Le",
        "before-body": lambda good: response(good)[: -len(good)],
        "in-body": lambda good: response(good)[: -len(good) // 2],
        "before-last-byte": lambda good: response(good)[:-1],
        "in-chunk": lambda good: (
            _chunked_head() + _chunk(good[:40]) + b"40\r\n" + good[40:60]
        ),
        "between-chunks": lambda good: _chunked_head() + _chunk(good[:40]),
    }
    for stage, sent in stages.items():
        yield Hostility(f"reset-{stage}", "again", "", _sent(sent, "reset"))
        yield Hostility(f"close-{stage}", "again", "", _sent(sent, "close"))
        yield Hostility(
            f"silent-{stage}", "again", "timeout", _sent(sent, FOREVER), slow=True
        )
    yield Hostility(
        "drips", "again", "timeout", lambda good: _dripped(response(good)), slow=True
    )
    yield Hostility(
        "drips-its-head",
        "again",
        "timeout",
        lambda good: _dripped(response(good, "200 OK")),
        slow=True,
    )
    steps = _fixed(b"HTTP/1.1 100 Continue\r\n\r\n" * 5000, FOREVER)
    yield Hostility("continues-for-ever", "again", "", steps, slow=True)
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    strange = {
        "tls-alert": b"\x15\x03\x01\x00\x02\x02\x46", "ssh": b"SSH-2.0-Open\r\n", "noise": bytes(range(256)) * 20,
        "http-2-preface": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\x00" * 18, "websocket": upgrade,
    }  # fmt: skip
    for name, noise in strange.items():
        yield Hostility(name, "again", "", _fixed(noise, "close"))


def _sent(
    what: Callable[[bytes], bytes], end: Step
) -> Callable[[bytes], Sequence[Step]]:
    return lambda good: [what(good), end] if what(good) else [end]


def _dripped(whole: bytes) -> list[Step]:
    return [step for byte in whole for step in (bytes([byte]), 0.05)]


def _chunked_head(*headers: str) -> bytes:
    return "\r\n".join([f"{OK}Transfer-Encoding: chunked", *headers, "", ""]).encode()


def _chunk(data: bytes, size: str | None = None) -> bytes:
    return (size or f"{len(data):x}").encode() + b"\r\n" + data + b"\r\n"


def _heads() -> Iterator[Hostility]:
    """Yield headers that no server should send."""
    lines = {
        "length-negative": "Content-Length: -5", "length-a-word": "Content-Length: many",
        "length-twice": "Content-Length: 5\r\nContent-Length: 9", "length-of-exabytes": f"Content-Length: {10**18}",
        "header-without-colon": "nonsense", "header-of-nul": "X: \x00", "header-endless": "X: " + "x" * 200_000,
        "headers-endless": "X: y\r\n" * 20_000 + "X: y", "brotli": "Content-Encoding: br"
    }  # fmt: skip
    for name, line in lines.items():
        slow = name == "length-of-exabytes"
        more = "" if name.startswith("length") else "Content-Length: 2\r\n"
        steps = _fixed(f"{OK}{more}{line}\r\n\r\n{{}}".encode("latin-1"), "close")
        yield Hostility(name, "again", "", steps, slow=slow)
    for encoding, pack in (("gzip", gzip.compress), ("deflate", zlib.compress)):
        bomb = response(
            pack(b" " * 50 * 2**20), "200 OK", f"Content-Encoding: {encoding}"
        )
        yield Hostility(f"bomb-{encoding}", "again", "malformed", _fixed(bomb))
    for name, size in {
        "not-hex": "zz",
        "negative": "-4",
        "of-exabytes": "f" * 15,
        "with-spaces": "4 4",
    }.items():
        steps = _fixed(_chunked_head() + _chunk(b"{}", size), "close")
        yield Hostility(f"chunk-{name}", "again", "", steps)
    for name, framing in {
        "x": "xchunked",
        "tab": "\vchunked",
        "noise": "\x80?",
        "twice": "chunked, chunked",
    }.items():
        steps = _fixed(
            f"{OK}Transfer-Encoding: {framing}\r\n\r\n".encode("latin-1")
            + _chunk(b"{}"),
            FOREVER,
        )
        yield Hostility(f"transfer-{name}", "again", "malformed", steps)
    yield Hostility("chunk-extension-endless", "again", "timeout", lambda good: [
        _chunked_head() + b"4;", *[b"x" * 65536] * 9, FOREVER], slow=True)  # fmt: skip
    yield Hostility(
        "chunk-and-length",
        "again",
        "",
        lambda good: [_chunked_head("Content-Length: 5") + good, "close"],
    )


def _bodies() -> Iterator[Hostility]:
    """Yield bodies that are not JSON, or are incomplete."""
    bodies = {
        "empty": b"", "blank": b"  \n ", "page": b"<html>hello</html>",
        "null": b"null", "number": b"42", "text": b'"ok"',
        "list": b"[]", "object": b"{}", "nul": b"\x00" * 400,
        "utf-16": '{"a": 1}'.encode("utf-16"), "deep": b"[" * 100_000,
        "bom": b"\xef\xbb\xbf{}", "long-number": b"9" * 50_000, "many-megabytes": b" " * TOO_MUCH,
        "event-stream": b'data: {"choices": [{"delta": {"content": "ACTIONS: STAY"}}]}\n\ndata: [DONE]\n\n',
        "event-stream-error": b'event: error\ndata: {"error": {"message": "no"}}\n\n'
    }  # fmt: skip
    for name, body in bodies.items():
        yield Hostility(f"body-{name}", "again", "malformed", _fixed(response(body)))
    yield Hostility(
        "body-half",
        "again",
        "malformed",
        lambda good: [response(good[: len(good) // 2])],
    )
    yield Hostility(
        "body-twice", "again", "malformed", lambda good: [response(good + good)]
    )
    yield Hostility(
        "body-longer-than-said",
        "again",
        "",
        lambda good: [response(good, length=len(good) - 9), "close"],
    )
    yield Hostility("body-endless", "again", "malformed", lambda good: [
        _chunked_head(), *[_chunk(b" " * 65536)] * (TOO_MUCH // 65536), FOREVER])  # fmt: skip


def _reply(**changes: Any) -> Callable[[bytes], Sequence[Step]]:
    """Return a reply with changes: in the answer, in its choice (``choice_...``) or
    message (``message_...``).
    """

    def steps(good: bytes) -> Sequence[Step]:
        answer = json.loads(good)
        for name, value in changes.items():
            where, _, key = name.partition("_")
            place = {
                "choice": answer["choices"][0],
                "message": answer["choices"][0]["message"],
            }.get(where)
            if place is None:
                answer[name] = value
            else:
                place[key] = value
        return [response(json.dumps(answer).encode())]

    return steps


def _replies() -> Iterator[Hostility]:
    """Yield JSON of the wrong shape, and replies that the model never wrote."""
    none = {**USAGE, "completion_tokens": 0}
    call = [
        {"id": "1", "type": "function", "function": {"name": "walk", "arguments": "{}"}}
    ]
    replies: Mapping[str, dict[str, Any]] = {
        "choices-none": {"choices": None}, "choices-empty": {"choices": []},
        "choices-text": {"choices": "ACTIONS: STAY"},
        "choices-of-numbers": {"choices": [1]}, "no-message": {"choices": [{"text": "ACTIONS: STAY"}]},
        "message-text": {"choice_message": "ACTIONS: STAY"}, "content-number": {"message_content": 5},
        "content-truth": {"message_content": True}, "content-object": {"message_content": {"text": "ACTIONS: STAY"}},
        "content-null-of-nothing": {"message_content": None, "usage": none},
        "content-empty-of-nothing": {"message_content": "", "usage": none},
        "tool-call": {"message_content": None, "message_tool_calls": call},
        "tool-call-and-blank": {"message_content": "", "message_tool_calls": call},
        "function-call": {"message_content": None, "message_function_call": {"name": "walk", "arguments": "{}"}}
    }  # fmt: skip
    for name, changes in replies.items():
        yield Hostility(name, "again", "malformed", _reply(**changes))
    for finish in ("abort", "error", "cancelled"):
        yield Hostility(
            f"finish-{finish}", "again", "server", _reply(choice_finish_reason=finish)
        )
    # This is the form of SGLang.
    steps = _reply(choice_finish_reason={"type": "abort"})
    yield Hostility("finish-object", "again", "server", steps)
    beside = _reply(choice_error={"message": "broke off", "code": 502})
    yield Hostility("error-beside-choice", "again", "server", beside)
    filters = ("content_filter", "SAFETY", "content-filter", "contentFilter")
    all_filters = (*filters, "content_filter: PROHIBITED_CONTENT", "RECITATION")
    for number, finish in enumerate(all_filters):
        for name, content in (("empty", None), ("broken", "ACTIONS: ST")):
            steps = _reply(choice_finish_reason=finish, message_content=content)
            # The name fits into a line of pytest.
            kind = f"filter-{number}-{name}"
            yield Hostility(kind, "refused", "content filter", steps)
    empty: Mapping[str, Any] = {
        "part-a-text": [{"type": "text", "content": "ACTIONS: STAY"}], "parts-none": [],
        "part-null": [None], "part-unknown": [{"type": "new", "said": "ACTIONS: STAY"}],
    }  # fmt: skip
    for name, content in empty.items():
        yield Hostility(
            f"content-{name}", "again", "malformed", _reply(message_content=content)
        )
    elsewhere: Mapping[str, dict[str, Any]] = {
        "audio": {"message_audio": {"transcript": "ACTIONS: STAY"}},
        "output-text": {"message_output_text": "ACTIONS: STAY"},
        "text-of-the-choice": {"choice_text": "ACTIONS: STAY"},
        "delta": {"choice_delta": {"content": "ACTIONS: STAY"}},
        "odd-finish": {"choice_finish_reason": "whatever"},
        "no-finish": {"choice_finish_reason": None},
        "choice-of-others": {"choice_index": 1},
    }
    for name, changes in elsewhere.items():
        steps = _reply(message_content=None, **changes)
        yield Hostility(f"nothing-but-{name}", "again", "malformed", steps)
    for finish, said in (("timeout", "timeout"), ("unknown_error", "server")):
        steps = _reply(choice_finish_reason=finish, message_content=None)
        yield Hostility(f"finish-{finish}", "again", said, steps)
    steps = _reply(choice_finish_reason="tool_calls", message_content=None)
    yield Hostility("finish-tool_calls", "again", "malformed", steps)
    steps = _reply(choice_finish_reason="insufficient_system_resource")
    yield Hostility("finish-resources", "throttled", "overload", steps)


def _odd_but_readable() -> Iterator[Hostility]:
    """Yield answers that are odd, but have the right content."""
    usages: Mapping[str, Any] = {
        "missing": None, "empty": {}, "text": "100", "list": [1, 2],
        "negative": {"prompt_tokens": -9, "completion_tokens": -1},
        "absurd": {"prompt_tokens": 10**30, "completion_tokens": 1e308}, "words": {"prompt_tokens": "nine"},
        "fractions": {"prompt_tokens": 9.5, "completion_tokens": 0.5}, "truth": {"completion_tokens": True},
        "total-too-small": {**USAGE, "total_tokens": 3}, "input-and-output": {"input_tokens": 90, "output_tokens": 10},
        "more-cached-than-asked": {**USAGE, "prompt_tokens_details": {"cached_tokens": 10**6}},
        "details-odd": {**USAGE, "prompt_tokens_details": [], "completion_tokens_details": "none"}
    }  # fmt: skip
    for name, usage in usages.items():
        yield Hostility(f"usage-{name}", "read", "", _reply(usage=usage))
    others: Mapping[str, dict[str, Any]] = {
        "reasoning-field": {"message_reasoning_content": "hm, ahead?"},
        "reasoning-number": {"message_reasoning_content": 7},
        "tool-calls-null": {"message_tool_calls": None}, "tool-calls-empty": {"message_tool_calls": []},
        "refusal-null": {"message_refusal": None}, "finish-odd": {"choice_finish_reason": "whatever"},
        "finish-null": {"choice_finish_reason": None}, "finish-number": {"choice_finish_reason": 3},
        "model-hostile": {"model": "::error::\x1b[31m\u202e@all <b>"}, "model-long": {"model": "m" * 100_000},
        "model-number": {"model": 5}, "unknown-fields": {"system_fingerprint": {"a": [1]}, "citations": ["https://x"]},
        "log-probabilities": {"choice_logprobs": {"content": [{"token": "A", "logprob": float("nan")}]}}
    }  # fmt: skip
    for name, changes in others.items():
        yield Hostility(name, "read", "", _reply(**changes))
    yield Hostility("content-in-parts", "read", "", _content(lambda text: [
        {"type": "text", "text": text[:5]}, {"type": "text", "text": text[5:]}]))  # fmt: skip
    yield Hostility(
        "thoughts-in-tags",
        "read",
        "",
        _content(lambda text: f"<think>ACTIONS: STAY</think>{text}"),
    )
    yield Hostility("thoughts-in-a-part", "read", "", _content(lambda text: [
        {"type": "thinking", "thinking": "ACTIONS: STAY"}, {"type": "text", "text": text}]))  # fmt: skip
    heads = {
        "type-html": "Content-Type: text/html", "type-none": "Content-Type:", "type-odd": "Content-Type: \xff;;;=",
        "headers-odd": "X-A: \x01\r\nX-B: " + "b" * 4000, "cookies": "Set-Cookie: a=b; Max-Age=1e99",
        "says-close": "Connection: close", "location": "Location: http://127.0.0.1:9/v1"
    }  # fmt: skip
    for name, line in heads.items():
        yield Hostility(
            name,
            "read",
            "",
            lambda good, line=line: [response(good, "200 OK", line)],  # type: ignore[misc]
        )
    for status in ("201 Created", "203 Altered", "206 Part", "200"):
        said: Callable[[bytes], Sequence[Step]] = lambda good, status=status: [  # type: ignore[misc] # noqa: E731
            response(good, status)
        ]
        yield Hostility(f"answers-{status[:3]}-{len(status)}", "read", "", said)
    yield Hostility(
        "http-1.0",
        "read",
        "",
        lambda good: [b"HTTP/1.0 200 OK\r\n\r\n" + good, "close"],
    )
    yield Hostility(
        "continues-once",
        "read",
        "",
        lambda good: [b"HTTP/1.1 100 Continue\r\n\r\n", response(good)],
    )
    yield Hostility("in-chunks-of-one", "read", "", lambda good: [
        _chunked_head() + b"".join(_chunk(bytes([byte])) for byte in good) + b"0\r\nTrailer: x\r\n\r\n"])  # fmt: skip
    yield Hostility(
        "blanks-around",
        "read",
        "",
        lambda good: [response(b"\n" * 999 + good + b" \t\n" * 99)],
    )
    yield Hostility("a-little-late", "read", "", lambda good: [0.3, response(good)])

    # Data that nobody requested must not become the reply to a later call.
    yield Hostility(
        "reply-twice",
        "read",
        "",
        lambda good: [response(good) + response(_stale(good))],
    )
    yield Hostility(
        "reply-later",
        "read",
        "",
        lambda good: [response(good), 0.02, response(_stale(good))],
    )
    yield Hostility("reply-after-timeout", "again", "timeout", lambda good: [
        response(b"", "504 Late"), 0.02, response(_stale(good))])  # fmt: skip
    yield Hostility(
        "choices-reversed", "read", "", lambda good: [response(_reversed(good))]
    )


def _stale(good: bytes) -> bytes:
    """Return a reply that belongs to another question."""
    return good.replace(b"FORWARD, FORWARD", b"ROTATE_LEFT")


def _reversed(good: bytes) -> bytes:
    answer, other = json.loads(good), json.loads(_stale(good))
    return json.dumps(
        answer | {"choices": [other["choices"][0] | {"index": 1}, *answer["choices"]]}
    ).encode()


def _content(change: Callable[[str], Any]) -> Callable[[bytes], Sequence[Step]]:
    def steps(good: bytes) -> Sequence[Step]:
        text = json.loads(good)["choices"][0]["message"]["content"]
        return _reply(message_content=change(text))(good)

    return steps


HOSTILITIES: Mapping[str, Hostility] = {one.name: one for one in _hostilities()}
