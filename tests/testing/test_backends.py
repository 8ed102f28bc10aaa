"""Backends that are wrong in one way each are failed, by the name of the rule."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import urllib.request
from collections.abc import Callable
from typing import Any

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
from cheesebench.fake_server import Answer, Call, FakeServer
from cheesebench.plugin_manager import PluginManager
from cheesebench.testing import assert_backend_sound, broken_backend_rules
from cheesebench.testing.backends import RULES, SERVER_RULES

GOOD = PluginManager().backend("openai")
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


async def calls_everything_a_server_error(self: Wrong, request: ChatRequest) -> ChatReply:
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
    return await asyncio.shield(self.inner.complete(dataclasses.replace(request, timeout=8)))


async def has_no_seed(self: Wrong, request: ChatRequest) -> ChatReply:
    sampling = dataclasses.replace(request.sampling, seed=None)
    return await self.inner.complete(dataclasses.replace(request, sampling=sampling))


async def sets_what_is_none(self: Wrong, request: ChatRequest) -> ChatReply:
    sampling = dataclasses.replace(request.sampling, temperature=request.sampling.temperature or 0.7)
    return await self.inner.complete(dataclasses.replace(request, sampling=sampling))


async def forgets_the_served_settings(self: Wrong, request: ChatRequest) -> ChatReply:
    return await self.inner.complete(dataclasses.replace(request, extra={}))


async def leaves_out_the_system(self: Wrong, request: ChatRequest) -> ChatReply:
    return await self.inner.complete(dataclasses.replace(request, messages=request.messages[-1:]))


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
    messages = tuple(dataclasses.replace(message, parts=(message.text,)) for message in request.messages)
    return await self.inner.complete(dataclasses.replace(request, messages=messages))


async def tells_the_key(self: Wrong, request: ChatRequest) -> ChatReply:
    try:
        return await self.inner.complete(request)
    except ChatFaultError as fault:
        raise ChatFaultError(fault.kind, f"{fault} (key {os.environ['OPENAI_API_KEY']})") from None


async def mixes_up(self: Wrong, request: ChatRequest) -> ChatReply:
    reply = await self.inner.complete(request)
    return self.kept.setdefault("first", reply)


class ClosesTooLate(Wrong):
    """Lets go of its sockets when the event loop ends, and not when it is told to."""

    async def close(self) -> None:
        self.closing = asyncio.create_task(self._linger())

    async def _linger(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await self.inner.close()


async def answers(self: Wrong, request: ChatRequest) -> ChatReply:
    return await self.inner.complete(request)


def test_a_backend_that_does_not_close_is_failed() -> None:
    spec = dataclasses.replace(GOOD, connect=lambda context: ClosesTooLate(context, answers))
    assert broken(spec, "close", patience=3.0) == ["close"]
    assert broken(GOOD, "close") == []


async def returns_words(self: Wrong, request: ChatRequest) -> ChatReply:
    return (await self.inner.complete(request)).text  # type: ignore[return-value]


async def lets_half_characters_through(self: Wrong, request: ChatRequest) -> ChatReply:
    await self.inner.complete(request)
    return ChatReply(text="\ud800")


def broken(spec: BackendSpec, *rules: str, **call: Any) -> list[str]:
    """Return which of these rules (without any: of all) the backend breaks."""
    but = [name for name in (*RULES, *SERVER_RULES) if rules and name not in rules]
    return [one.rule for one in broken_backend_rules(spec, but=but, key_env="OPENAI_API_KEY", **call)]


def spec_of(complete: Complete, **fields: Any) -> BackendSpec:
    return dataclasses.replace(GOOD, connect=lambda context: Wrong(context, complete), **fields)


@pytest.mark.parametrize(
    ("complete", "rule"),
    [
        (retries, "no retries"),
        (raises_anything, "fault: server error"),
        (swallows, "fault: authentication"),
        (calls_everything_a_server_error, "fault: rate limit"),
        (calls_everything_a_server_error, "fault: unknown model"),
        (calls_everything_a_server_error, "fault: context too long"),
        (hears_no_wish, "fault: rate limit"),
        (keeps, "nothing is kept"),
        (one_after_the_other, "many at once"),
        (goes_on_when_cancelled, "cancellation"),
        (has_no_seed, "parameters"),
        (sets_what_is_none, "parameters"),
        (forgets_the_served_settings, "parameters"),
        (leaves_out_the_system, "what is said arrives"),
        (counts_nothing, "usage"),
        (ends_everything_well, "cut-off and empty replies"),
        (takes_empty_for_a_fault, "cut-off and empty replies"),
        (drops_pictures, "pictures"),
        (tells_the_key, "no key in what is told"),
        (mixes_up, "own replies"),
        (returns_words, "replies"),
        (lets_half_characters_through, "replies"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_wrong_backend_is_failed_by_the_name_of_the_rule(complete: Complete, rule: str) -> None:
    assert broken(spec_of(complete), rule, patience=6.0) == [rule]
    assert broken(GOOD, rule) == []


def test_what_is_declared_as_not_supported_need_not_be_sent() -> None:
    assert broken(spec_of(has_no_seed, capabilities=Capabilities(seed=False)), "parameters") == []
    assert broken(spec_of(drops_pictures, capabilities=Capabilities(images=False)), "pictures") == []


async def blocks(self: Wrong, request: ChatRequest) -> ChatReply:
    body = json.dumps({"model": request.model, "messages": []}).encode()
    with urllib.request.urlopen(urllib.request.Request(self.url, data=body), timeout=30) as answer:
        return ChatReply(text=json.loads(answer.read())["choices"][0]["message"]["content"])


def test_a_backend_that_blocks_the_event_loop_is_failed_and_takes_nobody_along() -> None:
    [found] = broken_backend_rules(
        spec_of(blocks), but=[name for name in (*RULES, *SERVER_RULES) if name != "many at once"], patience=0.5
    )
    assert found.rule == "many at once"
    assert "blocks the event loop" in found.text


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "My Backend"}, "cannot be written as --model NAME/ID"),
        ({"summary": " "}, "summary is empty"),
        ({"options": {"base_url": 1}}, "does not map names to what they mean"),
        ({"capabilities": None}, "is no Capabilities"),
        ({"connect": None}, "cannot be called"),
        ({"account": lambda context: os.environ["OPENAI_API_KEY"]}, "account holds the key"),
    ],
)
def test_wrong_declarations(fields: dict[str, Any], said: str) -> None:
    [found] = broken_backend_rules(dataclasses.replace(GOOD, **fields), key_env="OPENAI_API_KEY")
    assert found.rule == "declaration"
    assert said in found.text


def test_the_environment_is_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "mine-and-nobody-else-s")
    monkeypatch.delenv("NO_PROXY", raising=False)
    broken(GOOD, "what is said arrives")
    assert os.environ["OPENAI_API_KEY"] == "mine-and-nobody-else-s"
    assert "NO_PROXY" not in os.environ


def test_the_error_names_every_broken_rule() -> None:
    spec = dataclasses.replace(GOOD, summary="", name="x y")
    with pytest.raises(AssertionError, match=r"the backend 'x y': 1 rule is broken\n  declaration: the name"):
        assert_backend_sound(spec)
    with pytest.raises(UnknownNameError, match="no retries"):
        broken_backend_rules(GOOD, but=["no retrys"])


# -- a server of another dialect


class OtherServer(FakeServer):
    path = "/say"

    def reply_body(self, answer: Answer, call: Call) -> Any:
        return {"said": answer.text, "end": answer.finish, "tokens": answer.usage}

    def error_body(self, answer: Answer) -> Any:
        return {"wrong": dict(answer.error)}


class Other:
    """A client of that server, as short as can be."""

    def __init__(self, context: BackendContext) -> None:
        import aiohttp

        self.session = aiohttp.ClientSession(f"{context.base_url}/")

    async def complete(self, request: ChatRequest) -> ChatReply:
        sampling: Sampling = request.sampling
        asked = {"name": request.model, "talk": [[message.role, message.text] for message in request.messages]}
        body = {**asked, "most": sampling.max_tokens, **request.extra}
        async with self.session.post("say", json=body) as response:
            answer = await response.json()
            return ChatReply(text=answer["said"], finish=answer["end"])

    async def close(self) -> None:
        await self.session.close()


def test_a_backend_of_another_dialect_has_a_server_of_its_own() -> None:
    able = Capabilities(temperature=False, seed=False, stop=False, images=False)
    spec = BackendSpec(name="other", connect=Other, capabilities=able, summary="another dialect")
    rules = ("declaration", "what is said arrives", "parameters", "own replies", "many at once", "nothing is kept")
    assert broken(spec, *rules, server=OtherServer) == []
    assert broken(spec, "fault: server error", "usage", server=OtherServer) == ["usage", "fault: server error"]
