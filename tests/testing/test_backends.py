"""Backends with one fault each must break the rule of that name."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
import re
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from cheesebench import (
    BackendContext,
    BackendSpec,
    Capabilities,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    Sampling,
    Usage,
)
from cheesebench.errors import UnknownNameError
from cheesebench.plugin_manager import PluginManager
from cheesebench.testing import assert_backend_sound, broken_backend_rules
from cheesebench.testing.backends import RULES, SERVER_RULES
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from cheesebench.testing.rules import Broken

GOOD = PluginManager().backend("openai")
#: The page with this server and client.
PAGE = Path(__file__).parents[2] / "docs/plugins.md"
Complete = Callable[["Wrong", ChatRequest], Any]


class Wrong:
    """The backend ``openai``, with another ``complete``."""

    def __init__(self, context: BackendContext, complete: Complete) -> None:
        self.inner: Connection = GOOD.connect(context)
        self.url = f"{context.base_url}/chat/completions"
        self.lock = asyncio.Lock()
        self.kept: dict[str, ChatReply] = {}
        self._complete = complete

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply: ChatReply = await self._complete(self, request)
        return reply

    async def close(self) -> None:
        await self.inner.close()


async def retries(self: Wrong, request: ChatRequest) -> ChatReply:
    for _ in range(3):
        try:
            return await self.inner.complete(request)
        except ChatFaultError as fault:
            if fault.kind not in ("server", "rate_limit"):
                raise
    return await self.inner.complete(request)


async def raises_anything(self: Wrong, request: ChatRequest) -> ChatReply:
    try:
        return await self.inner.complete(request)
    except ChatFaultError as fault:
        raise RuntimeError(str(fault)) from None


async def swallows(self: Wrong, request: ChatRequest) -> ChatReply:
    try:
        return await self.inner.complete(request)
    except ChatFaultError as fault:
        return ChatReply(text=f"error: {fault}")


async def calls_everything_a_server_error(
    self: Wrong, request: ChatRequest
) -> ChatReply:
    try:
        return await self.inner.complete(request)
    except ChatFaultError as fault:
        raise ChatFaultError("server", str(fault)) from None


async def hears_no_wish(self: Wrong, request: ChatRequest) -> ChatReply:
    try:
        return await self.inner.complete(request)
    except ChatFaultError as fault:
        raise ChatFaultError(fault.kind, str(fault)) from None


async def keeps(self: Wrong, request: ChatRequest) -> ChatReply:
    asked = request.messages[-1].text
    if asked not in self.kept:
        self.kept[asked] = await self.inner.complete(request)
    return self.kept[asked]


async def one_after_the_other(self: Wrong, request: ChatRequest) -> ChatReply:
    async with self.lock:
        return await self.inner.complete(request)


async def goes_on_when_cancelled(self: Wrong, request: ChatRequest) -> ChatReply:
    return await asyncio.shield(
        self.inner.complete(dataclasses.replace(request, timeout=600))
    )


async def has_no_seed(self: Wrong, request: ChatRequest) -> ChatReply:
    sampling = dataclasses.replace(request.sampling, seed=None)
    return await self.inner.complete(dataclasses.replace(request, sampling=sampling))


async def sets_what_is_none(self: Wrong, request: ChatRequest) -> ChatReply:
    sampling = dataclasses.replace(
        request.sampling, temperature=request.sampling.temperature or 0.7
    )
    return await self.inner.complete(dataclasses.replace(request, sampling=sampling))


async def forgets_the_served_settings(self: Wrong, request: ChatRequest) -> ChatReply:
    return await self.inner.complete(dataclasses.replace(request, extra={}))


async def leaves_out_the_system(self: Wrong, request: ChatRequest) -> ChatReply:
    return await self.inner.complete(
        dataclasses.replace(request, messages=request.messages[-1:])
    )


async def counts_nothing(self: Wrong, request: ChatRequest) -> ChatReply:
    return dataclasses.replace(await self.inner.complete(request), usage=Usage())


async def ends_everything_well(self: Wrong, request: ChatRequest) -> ChatReply:
    return dataclasses.replace(await self.inner.complete(request), finish="stop")


async def takes_empty_for_a_fault(self: Wrong, request: ChatRequest) -> ChatReply:
    reply = await self.inner.complete(request)
    if not reply.text:
        raise ChatFaultError("malformed", "nothing was said")
    return reply


async def drops_pictures(self: Wrong, request: ChatRequest) -> ChatReply:
    messages = tuple(
        dataclasses.replace(message, parts=(message.text,))
        for message in request.messages
    )
    return await self.inner.complete(dataclasses.replace(request, messages=messages))


async def tells_the_key(self: Wrong, request: ChatRequest) -> ChatReply:
    try:
        return await self.inner.complete(request)
    except ChatFaultError as fault:
        raise ChatFaultError(
            fault.kind, f"{fault} (key {os.environ['OPENAI_API_KEY']})"
        ) from None


async def tells_the_key_where_nobody_listens(
    self: Wrong, request: ChatRequest
) -> ChatReply:
    try:
        return await self.inner.complete(request)
    except ChatFaultError as fault:
        said = f" {os.environ['OPENAI_API_KEY']}" if fault.kind == "connection" else ""
        raise ChatFaultError(fault.kind, f"{fault}{said}", fault.retry_after) from None


async def tells_the_key_as_a_cause(self: Wrong, request: ChatRequest) -> ChatReply:
    try:
        return await self.inner.complete(request)
    except ChatFaultError as fault:
        cause = RuntimeError(os.environ["OPENAI_API_KEY"])
        raise ChatFaultError(fault.kind, str(fault), fault.retry_after) from cause


async def tells_the_key_by_mistake(self: Wrong, request: ChatRequest) -> ChatReply:
    try:
        return await self.inner.complete(request)
    except ChatFaultError:
        raise RuntimeError(os.environ["OPENAI_API_KEY"]) from None


async def prints_the_key(self: Wrong, request: ChatRequest) -> ChatReply:
    print("asking with", os.environ["OPENAI_API_KEY"])
    return await self.inner.complete(request)


async def logs_the_key(self: Wrong, request: ChatRequest) -> ChatReply:
    logging.getLogger("wrong").debug("asking with %s", os.environ["OPENAI_API_KEY"])
    return await self.inner.complete(request)


async def logs_what_has_no_format(self: Wrong, request: ChatRequest) -> ChatReply:
    logging.getLogger("wrong").debug("asking with %d", os.environ["OPENAI_API_KEY"])
    return await self.inner.complete(request)


async def refuses(self: Wrong, request: ChatRequest) -> ChatReply:
    raise ChatFaultError("server", "not today")


async def follows_with_the_key(self: Wrong, request: ChatRequest) -> ChatReply:
    import aiohttp

    body = json.dumps({"model": request.model, "messages": []})
    headers = {
        "X-Key": os.environ["OPENAI_API_KEY"],
        "Content-Type": "application/json",
    }
    async with (
        aiohttp.ClientSession() as session,
        session.post(self.url, data=body, headers=headers) as answer,
    ):
        return ChatReply(text=(await answer.json())["choices"][0]["message"]["content"])


async def sleeps_before(self: Wrong, request: ChatRequest) -> ChatReply:
    time.sleep(0.3)
    return await self.inner.complete(request)


async def sleeps_after(self: Wrong, request: ChatRequest) -> ChatReply:
    reply = await self.inner.complete(request)
    time.sleep(0.3)
    return reply


async def sends_the_same_seed(self: Wrong, request: ChatRequest) -> ChatReply:
    sampling = dataclasses.replace(request.sampling, seed=0)
    return await self.inner.complete(dataclasses.replace(request, sampling=sampling))


async def asks_another_model(self: Wrong, request: ChatRequest) -> ChatReply:
    return await self.inner.complete(dataclasses.replace(request, model="another"))


async def swaps_tokens(self: Wrong, request: ChatRequest) -> ChatReply:
    reply = await self.inner.complete(request)
    usage = dataclasses.replace(
        reply.usage, prompt=reply.usage.completion, completion=reply.usage.prompt
    )
    return dataclasses.replace(reply, usage=usage)


async def counts_yes_or_no(self: Wrong, request: ChatRequest) -> ChatReply:
    return dataclasses.replace(
        await self.inner.complete(request), usage=Usage(prompt=True)
    )


async def counts_no_number(self: Wrong, request: ChatRequest) -> ChatReply:
    return dataclasses.replace(
        await self.inner.complete(request),
        usage=Usage(prompt=float("nan")),  # type: ignore[arg-type]
    )


async def never_gives_up(self: Wrong, request: ChatRequest) -> ChatReply:
    while True:
        try:
            return await self.inner.complete(request)
        except ChatFaultError:
            await asyncio.sleep(0.01)


async def mixes_up(self: Wrong, request: ChatRequest) -> ChatReply:
    reply = await self.inner.complete(request)
    return self.kept.setdefault("first", reply)


class ClosesTooLate(Wrong):
    """Closes a socket when the event loop ends, instead of on request."""

    async def close(self) -> None:
        url = urlsplit(self.url)
        _, self.held = await asyncio.open_connection(url.hostname, url.port)
        self.closing = asyncio.create_task(self._linger())
        # Wait until the server, in a thread of its own, has noticed.
        await asyncio.sleep(0.2)

    async def _linger(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.held.close()
            await self.inner.close()


async def answers(self: Wrong, request: ChatRequest) -> ChatReply:
    return await self.inner.complete(request)


def test_a_backend_that_does_not_close_is_failed() -> None:
    spec = dataclasses.replace(
        GOOD, connect=lambda context: ClosesTooLate(context, answers)
    )
    assert broken(spec, "close", patience=3.0) == ["close"]
    assert broken(GOOD, "close") == []


async def returns_words(self: Wrong, request: ChatRequest) -> ChatReply:
    return (await self.inner.complete(request)).text  # type: ignore[return-value]


async def lets_half_characters_through(self: Wrong, request: ChatRequest) -> ChatReply:
    await self.inner.complete(request)
    return ChatReply(text="\ud800")


def told(spec: BackendSpec, *rules: str, **call: Any) -> list[Broken]:
    """Return which of these rules (default: all) the backend breaks, and how."""
    but = [name for name in (*RULES, *SERVER_RULES) if rules and name not in rules]
    return broken_backend_rules(spec, but=but, key_env="OPENAI_API_KEY", **call)


def broken(spec: BackendSpec, *rules: str, **call: Any) -> list[str]:
    return [one.rule for one in told(spec, *rules, **call)]


def spec_of(complete: Complete, **fields: Any) -> BackendSpec:
    return dataclasses.replace(
        GOOD, connect=lambda context: Wrong(context, complete), **fields
    )


@pytest.mark.parametrize(
    ("complete", "rule", "said"),
    [
        (retries, "no retries", "retries by itself: rate limit"),
        (raises_anything, "fault: server error", "raises RuntimeError (http"),
        (
            swallows,
            "fault: authentication",
            "status 401 is read as a reply, but it is the fault 'authentication'",
        ),
        (
            calls_everything_a_server_error,
            "fault: rate limit",
            "status 429 is reported as 'server', but it is 'rate_limit' (http",
        ),
        (
            calls_everything_a_server_error,
            "fault: unknown model",
            "status 404 for the model is reported as 'server', but it is 'unknown_model' (http",
        ),
        (
            calls_everything_a_server_error,
            "fault: context too long",
            "is too long is reported as 'server', but it is 'context_too_long' (http",
        ),
        (
            hears_no_wish,
            "fault: rate limit",
            "the server's Retry-After of 2 s is reported as None",
        ),
        (keeps, "no caching", "of 3 equal calls, 1 reached the server"),
        (
            one_after_the_other,
            "concurrent calls",
            "32 concurrent calls reach the server only 1 at a time",
        ),
        (
            goes_on_when_cancelled,
            "cancellation",
            "a call that is cancelled keeps its connection to the server open",
        ),
        (
            has_no_seed,
            "parameters",
            "seed is not sent: send the set value, or declare Capabilities(seed=False)",
        ),
        (
            sets_what_is_none,
            "parameters",
            "left to the server, is sent: temperature",
        ),
        (
            forgets_the_served_settings,
            "served settings",
            "top_p of ChatRequest.extra is not sent",
        ),
        (sends_the_same_seed, "parameters", "seed is sent as 0, as a constant"),
        (asks_another_model, "model id", "the model's id 'tiny' is sent neither"),
        (leaves_out_the_system, "messages arrive", "'be-a-mouse' is not sent"),
        (
            counts_nothing,
            "usage",
            "100 prompt tokens and 20 reply tokens are read as 0 and 0",
        ),
        (counts_nothing, "usage: cached", "96 cached tokens of 100 are read as 0"),
        (
            swaps_tokens,
            "usage",
            "100 prompt tokens and 20 reply tokens are read as 20 and 100",
        ),
        (
            ends_everything_well,
            "cut-off and empty replies",
            "a reply that ends at max_tokens does not have finish 'length'",
        ),
        (
            takes_empty_for_a_fault,
            "cut-off and empty replies",
            "an empty reply, which is behaviour of the model, causes the fault",
        ),
        (drops_pictures, "pictures", "the picture is not sent as base64"),
        (
            tells_the_key,
            "no key in errors",
            "the text of the fault contains the key (a refusal that echoes the key)",
        ),
        (
            tells_the_key_where_nobody_listens,
            "no key in errors",
            "the text of the fault contains the key (a connection that is refused)",
        ),
        (
            tells_the_key_as_a_cause,
            "no key in errors",
            "the cause or context of the fault contains the key",
        ),
        (
            tells_the_key_by_mistake,
            "no key in errors",
            "the exception that is raised contains the key",
        ),
        (
            prints_the_key,
            "no key in errors",
            "the key is in the text on standard output",
        ),
        (
            logs_the_key,
            "no key in errors",
            "the key is in a record of the logger 'wrong' (DEBUG)",
        ),
        (
            logs_what_has_no_format,
            "no key in errors",
            "the key is in a record of the logger 'wrong' (DEBUG)",
        ),
        (
            follows_with_the_key,
            "redirects",
            "a redirect to another address is followed with the key",
        ),
        (sleeps_before, "concurrent calls", "the event loop was blocked for"),
        (sleeps_after, "concurrent calls", "the event loop was blocked for"),
        (
            mixes_up,
            "each call its own reply",
            "concurrent calls do not get their own replies: call",
        ),
        (refuses, "usage: cached", "a plain call causes the fault: not today"),
        (returns_words, "replies", "returns str, but a ChatReply is expected"),
        (
            counts_yes_or_no,
            "replies",
            "usage.prompt is True, but a number of tokens is expected",
        ),
        (
            counts_no_number,
            "replies",
            "usage.prompt is nan, but a number of tokens is expected",
        ),
        (lets_half_characters_through, "replies", "text contains half a character"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_wrong_backend_is_failed_by_the_name_of_the_rule(
    complete: Complete, rule: str, said: str
) -> None:
    [found] = told(spec_of(complete), rule, patience=20.0)
    assert found.rule == rule
    assert said in found.text
    assert broken(GOOD, rule) == []


def test_what_is_declared_as_not_supported_need_not_be_sent() -> None:
    assert (
        broken(
            spec_of(has_no_seed, capabilities=Capabilities(seed=False)), "parameters"
        )
        == []
    )
    assert (
        broken(
            spec_of(drops_pictures, capabilities=Capabilities(images=False)), "pictures"
        )
        == []
    )


async def blocks(self: Wrong, request: ChatRequest) -> ChatReply:
    body = json.dumps({"model": request.model, "messages": []}).encode()
    with urllib.request.urlopen(
        urllib.request.Request(self.url, data=body), timeout=30
    ) as answer:
        return ChatReply(
            text=json.loads(answer.read())["choices"][0]["message"]["content"]
        )


def test_a_backend_that_blocks_the_event_loop_is_failed_and_takes_nobody_along() -> (
    None
):
    but = [name for name in (*RULES, *SERVER_RULES) if name != "concurrent calls"]
    [found] = broken_backend_rules(spec_of(blocks), but=but, patience=0.1)
    assert found.rule == "concurrent calls"
    assert "blocks the event loop" in found.text or "has not ended" in found.text
    [found] = broken_backend_rules(spec_of(blocks), but=but)
    assert (
        "the event loop was blocked for" in found.text
        or "blocks the event loop" in found.text
    )


async def sleeps_long(self: Wrong, request: ChatRequest) -> ChatReply:
    time.sleep(1.0)
    return await self.inner.complete(request)


def test_a_loop_that_stands_still_is_told_as_that_and_not_as_calls_that_do_not_end() -> (
    None
):
    but = [
        name
        for name in (*RULES, *SERVER_RULES)
        if name not in ("concurrent calls", "each call its own reply")
    ]
    [found] = broken_backend_rules(spec_of(sleeps_long), but=but)
    assert "in `complete`" in found.text


def test_the_cause_comes_first_and_what_follows_from_it_is_left_out() -> None:
    assert broken(spec_of(never_gives_up), patience=20.0) == ["no retries"]
    assert broken(spec_of(retries)) == ["no retries"]


def test_a_constant_is_told_as_one() -> None:
    but = [name for name in (*RULES, *SERVER_RULES) if name != "parameters"]
    [found] = broken_backend_rules(spec_of(sends_the_same_seed), but=but)
    assert (
        "seed is sent as 0, as a constant: send the set value, or declare Capabilities(seed=False)"
        in found.text
    )


def test_what_is_printed_comes_out_and_logging_is_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = (
        logging.getLogger().level,
        [(one, one.level) for one in logging.getLogger().handlers],
    )
    broken(spec_of(prints_the_key), "model id")
    assert "asking with" in capsys.readouterr().out
    assert before == (
        logging.getLogger().level,
        [(one, one.level) for one in logging.getLogger().handlers],
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "My Backend"}, "cannot be written as --model NAME/ID"),
        ({"summary": " "}, "summary is empty"),
        ({"options": {"base_url": 1}}, "does not map names to descriptions"),
        ({"capabilities": None}, "is not a Capabilities object"),
        ({"connect": None}, "is not callable"),
        (
            {"account": lambda context: os.environ["OPENAI_API_KEY"]},
            "account contains the key",
        ),
    ],
)
def test_wrong_declarations(fields: dict[str, Any], said: str) -> None:
    [found] = broken_backend_rules(
        dataclasses.replace(GOOD, **fields), key_env="OPENAI_API_KEY"
    )
    assert found.rule == "declaration"
    assert said in found.text


def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "mine-and-nobody-else-s")
    monkeypatch.delenv("NO_PROXY", raising=False)
    broken(GOOD, "messages arrive")
    assert os.environ["OPENAI_API_KEY"] == "mine-and-nobody-else-s"
    assert "NO_PROXY" not in os.environ


def test_the_error_names_every_broken_rule() -> None:
    spec = dataclasses.replace(GOOD, summary="", name="x y")
    with pytest.raises(
        AssertionError,
        match=r"the backend 'x y': 1 rule is broken\n  declaration: the name",
    ):
        assert_backend_sound(spec)
    with pytest.raises(UnknownNameError, match="no retries"):
        broken_backend_rules(GOOD, but=["no retrys"])
    with pytest.raises(
        UnknownNameError,
        match=r"There is no rule 'quota'. Did you mean 'fault: quota'\?",
    ):
        broken_backend_rules(GOOD, but=["quota"])


def test_the_page_on_plugins_names_every_rule() -> None:
    page = PAGE.read_text(encoding="utf-8")
    missing = [name for name in (*RULES, *SERVER_RULES) if f"`{name}`" not in page]
    assert not missing


# -- a server of another dialect


class OtherServer(FakeServer):
    path = "/say"

    def reply_body(self, answer: Answer, call: Call) -> Any:
        return {"said": answer.text, "end": answer.finish, "tokens": answer.usage}

    def error_body(self, answer: Answer) -> Any:
        return {"wrong": dict(answer.error)}


class Other:
    """A minimal client of that server."""

    def __init__(self, context: BackendContext) -> None:
        import aiohttp

        self.session = aiohttp.ClientSession(f"{context.base_url}/")

    async def complete(self, request: ChatRequest) -> ChatReply:
        sampling: Sampling = request.sampling
        asked = {
            "name": request.model,
            "talk": [[message.role, message.text] for message in request.messages],
        }
        body = {**asked, "most": sampling.max_tokens, **request.extra}
        async with self.session.post("say", json=body) as response:
            answer = await response.json()
            return ChatReply(text=answer["said"], finish=answer["end"])

    async def close(self) -> None:
        await self.session.close()


def test_a_backend_of_another_dialect_has_a_server_of_its_own() -> None:
    able = Capabilities(temperature=False, seed=False, stop=False, images=False)
    spec = BackendSpec(
        name="other", connect=Other, capabilities=able, summary="another dialect"
    )
    rules = (
        "declaration",
        "messages arrive",
        "model id",
        "parameters",
        "served settings",
        "each call its own reply",
        "concurrent calls",
        "no caching",
    )
    assert broken(spec, *rules, server=OtherServer) == []
    assert broken(spec, "fault: server error", "usage", server=OtherServer) == [
        "usage",
        "fault: server error",
    ]


async def forgets_the_system(self: Any, request: ChatRequest) -> ChatReply:
    reply: ChatReply = await self.inner.complete(
        dataclasses.replace(request, messages=request.messages[-1:])
    )
    return reply


class Whole:
    """A client of the server on the page on plugins, with another ``complete`` if
    required.
    """

    def __init__(self, context: BackendContext, complete: Any = None) -> None:
        import aiohttp

        key = os.environ["ACME_API_KEY"]
        self.url, self.key = f"{context.base_url}/models", key
        self.session = aiohttp.ClientSession(
            headers={"X-Api-Key": key}, connector=aiohttp.TCPConnector(limit=0)
        )
        self._complete = complete
        self.inner: Any = SimpleNamespace(complete=self._ask)

    async def complete(self, request: ChatRequest) -> ChatReply:
        if self._complete is not None:
            reply = await self._complete(self, request)
        else:
            reply = await self._ask(request)
        assert isinstance(reply, ChatReply)
        return reply

    async def _ask(self, request: ChatRequest) -> ChatReply:
        import aiohttp

        body = {
            "talk": [[one.role, one.text] for one in request.messages],
            "most": request.sampling.max_tokens,
            "seed": request.sampling.seed,
        }
        try:
            async with asyncio.timeout(request.timeout):
                data = {
                    name: value for name, value in body.items() if value is not None
                } | dict(request.extra)
                url = f"{self.url}/{request.model}/say"
                async with self.session.post(
                    url, data=json.dumps(data), allow_redirects=False
                ) as response:
                    text = (
                        (await response.read())
                        .decode("utf-8", "replace")
                        .replace(self.key, "[redacted]")
                    )
        except TimeoutError:
            raise ChatFaultError("timeout", "no answer") from None
        except (aiohttp.ClientError, OSError):
            raise ChatFaultError("connection", "the connection failed") from None
        try:
            answer = json.loads(text)
            if response.status != 200:
                kinds: dict[int, Any] = {
                    429: "rate_limit",
                    503: "overload",
                    401: "authentication",
                    404: "unknown_model",
                }
                kind = kinds.get(
                    response.status,
                    "server" if response.status == 500 else "bad_request",
                )
                wish = answer.get("retry_after_ms")
                raise ChatFaultError(
                    kind, text[:200], None if wish is None else wish / 1000
                )
            tokens = answer["tokens"]
            return ChatReply(
                text=answer["said"].encode("utf-8", "replace").decode(),
                finish="length" if answer["ended"] == "limit" else "stop",
                usage=Usage(
                    prompt=tokens["in"],
                    cached=tokens["cached"],
                    completion=tokens["out"],
                ),
            )
        except (ValueError, LookupError, TypeError, AttributeError):
            raise ChatFaultError("malformed", f"no reply: {text[:200]}") from None

    async def close(self) -> None:
        await self.session.close()


def test_the_server_of_the_page_on_plugins_serves_a_backend() -> None:
    [block] = re.findall(
        r"<!-- test: file: acme_server.py -->\n```python\n(.*?)```",
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    names: dict[str, Any] = {}
    exec(block, names)
    able = Capabilities(temperature=False, stop=False, images=False)
    spec = BackendSpec(
        name="acme", connect=Whole, capabilities=able, summary="another dialect"
    )
    but = ["fault: quota", "fault: context too long"]
    call: dict[str, Any] = {"server": names["AcmeServer"], "key_env": "ACME_API_KEY"}
    assert broken_backend_rules(spec, but=but, **call) == []
    # A missing function of the API must not hide other findings.
    deaf = dataclasses.replace(
        spec, connect=lambda context: Whole(context, forgets_the_system)
    )
    mute = dataclasses.replace(
        spec, connect=lambda context: Whole(context, counts_nothing)
    )
    only = [
        name
        for name in (*RULES, *SERVER_RULES)
        if name not in ("messages arrive", "usage")
    ]
    assert [one.rule for one in broken_backend_rules(deaf, but=only, **call)] == [
        "messages arrive"
    ]
    assert [one.rule for one in broken_backend_rules(mute, but=only, **call)] == [
        "usage"
    ]
