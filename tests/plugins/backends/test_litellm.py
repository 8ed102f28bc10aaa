"""The backend ``litellm``, against the same local server as ``openai``, through two of
litellm's own clients.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cheesebench import (
    BackendContext,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Message,
    ModelAgentContext,
    ModelEntry,
    OptionError,
    Sampling,
    Usage,
)
from cheesebench.extras import install_command
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.backends.litellm import import_litellm, is_sent
from cheesebench.testing.fake_server import Answer, Call, FakeServer

PLUGINS = PluginManager()
SPEC = PLUGINS.backend("litellm")
ENTRY = ModelEntry(name="mine", backend="litellm", id="hosted_vllm/tiny")
REQUEST = ChatRequest(
    model="hosted_vllm/tiny",
    messages=(Message("system", ("be a mouse",)), Message("user", ("which way?",))),
    sampling=Sampling(temperature=0.7, max_tokens=64, seed=5),
    timeout=20.0,
)
KEY = "pass-0123456789-word"
CLIENTS = ("hosted_vllm/tiny", "openai/tiny")

needs_litellm = pytest.mark.skipif(
    importlib.util.find_spec("litellm") is None, reason="litellm is not installed"
)
# litellm leaves tasks and sockets to the garbage collector, and its deprecations are
# not ours to fix.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATE_KEY", KEY)


def ask(
    server: FakeServer, *requests: ChatRequest, **options: Any
) -> Sequence[ChatReply | BaseException]:
    async def main() -> Sequence[ChatReply | BaseException]:
        given = BackendContext(
            entry=ENTRY,
            directory=Path(),
            base_url=server.base_url,
            options={"api_key_env": "GATE_KEY", **options},
        )
        connection = SPEC.connect(given)
        try:
            return await asyncio.gather(
                *map(connection.complete, requests), return_exceptions=True
            )
        finally:
            await connection.close()

    return asyncio.run(main())


def reply_to(server: FakeServer, request: ChatRequest = REQUEST) -> ChatReply:
    [reply] = ask(server, request)
    assert isinstance(reply, ChatReply), reply
    return reply


@needs_litellm
@pytest.mark.parametrize("model", CLIENTS)
def test_what_is_sent_and_read(model: str) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 96},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    answer = Answer(
        text="<think>left?</think>ACTIONS: STAY",
        reasoning="hm",
        finish="length",
        usage=usage,
        model="other",
    )
    with FakeServer(answer, key=KEY) as server:
        reply = reply_to(
            server, dataclasses.replace(REQUEST, model=model, extra={"top_p": 0.5})
        )
    assert reply.text == "ACTIONS: STAY"
    assert reply.reasoning == "hm\nleft?"
    assert reply.finish == "length"
    assert reply.usage == Usage(prompt=100, completion=20, cached=96, reasoning=15)
    [call] = server.calls
    sent = {
        name: call.body[name]
        for name in ("model", "temperature", "max_tokens", "seed", "top_p")
    }
    assert sent == {
        "model": "tiny",
        "temperature": 0.7,
        "max_tokens": 64,
        "seed": 5,
        "top_p": 0.5,
    }
    assert call.prompt == "which way?"


@needs_litellm
def test_pictures() -> None:
    request = dataclasses.replace(
        REQUEST, messages=(Message("user", ("look: ", b"\x89PNG")),)
    )
    with FakeServer() as server:
        reply_to(server, request)
    [text, picture] = server.calls[0].body["messages"][0]["content"]
    assert text == {"type": "text", "text": "look: "}
    assert picture["image_url"]["url"] == "data:image/png;base64,iVBORw=="


@needs_litellm
@pytest.mark.parametrize("model", CLIENTS)
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (
            Answer(
                status=429,
                headers={"Retry-After": "7"},
                error={"message": "Rate limit reached"},
            ),
            "rate_limit",
        ),
        (
            Answer(
                status=429,
                error={
                    "message": "You exceeded your current quota, please check your plan"
                },
            ),
            "quota",
        ),
        (Answer(status=401, error={"message": f"bad key {KEY}"}), "authentication"),
        (Answer(status=403, error={"message": "not for you"}), "authentication"),
        (
            Answer(status=404, error={"message": "The model `tiny` does not exist."}),
            "unknown_model",
        ),
        (
            Answer(status=400, error={"message": "maximum context length is 9 tokens"}),
            "context_too_long",
        ),
        (
            Answer(status=400, error={"message": "temprature: unknown field"}),
            "bad_request",
        ),
        (Answer(status=500, error={"message": "oh"}), "server"),
        (Answer(status=503, error={"message": "busy"}), "overload"),
        (Answer(fault="hang"), "timeout"),
        (Answer(fault="drip", text="x" * 200), "timeout"),
        (Answer(fault="reset"), "connection"),
        (Answer(body=b"garbage"), "malformed"),
        (Answer(body={"choices": []}), "malformed"),
        (Answer(finish="content_filter"), "content_filter"),
    ],
)
def test_faults(model: str, answer: Answer, kind: str) -> None:
    timeout = 1.0 if kind == "timeout" else 20.0
    with FakeServer(answer) as server:
        [fault] = ask(
            server, dataclasses.replace(REQUEST, model=model, timeout=timeout)
        )
    assert isinstance(fault, ChatFaultError), fault
    assert fault.kind == kind, fault
    assert KEY not in str(fault)
    assert fault.retry_after == (7.0 if answer.headers else None)
    # One of its clients repeats a request when a connection breaks off, which cannot be
    # switched off.
    assert server.count == 1 or kind == "connection", "litellm has retried"


class MessagesServer(FakeServer):
    """A server that speaks Anthropic's Messages."""

    path = "/messages"

    @property
    def base_url(self) -> str:
        return super().base_url.removesuffix("/v1")

    def reply_body(self, answer: Answer, call: Call) -> Any:
        usage = answer.usage or {"input_tokens": 1, "output_tokens": 1}
        content = [{"type": "text", "text": answer.text}]
        head = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": call.body["model"],
        }
        return {
            **head,
            "content": content,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }


def lived(history: str | int, calls: int) -> tuple[Message, ...]:
    """Return the prompt of the agent ``llm`` after this many calls."""
    spec = PLUGINS.model_agent("llm")
    agent = spec.create(
        ModelAgentContext(
            seed=0, view="ascii_2d", settings={**spec.settings, "history": history}
        )
    )
    agent.begin_trial("#→#")
    for call in range(calls):
        for action in agent.read(ChatReply(text=f"ACTIONS: {'STAY, ' * (call + 1)}")):
            agent.observe(action, 0.0, "#→#", False)
    return agent.prompt()


def breakpoints(body: Mapping[str, Any]) -> list[str]:
    """Return the roles of the messages with a cache mark, the system's first."""
    marked = ["system" for part in body.get("system", ()) if "cache_control" in part]
    for message in body["messages"]:
        if not isinstance(message["content"], str):
            marked += [
                message["role"]
                for part in message["content"]
                if "cache_control" in part
            ]
    return marked


@needs_litellm
@pytest.mark.parametrize(
    ("history", "option", "marked"),
    [
        ("3-7", {}, ["system", "assistant"]),
        (5, {}, ["system"]),
        ("3-7", {"cache_control": "false"}, []),
    ],
)
def test_claude_is_asked_to_cache_what_stays(
    history: str | int, option: dict[str, str], marked: list[str]
) -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 20,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 30,
    }
    request = ChatRequest(
        model="anthropic/claude-opus-4-7",
        messages=lived(history, 9),
        sampling=Sampling(max_tokens=64),
        timeout=20.0,
    )
    with MessagesServer(Answer(text="ACTIONS: STAY", usage=usage)) as server:
        [reply] = ask(server, request, **option)
    assert isinstance(reply, ChatReply), reply
    assert reply.usage == Usage(prompt=100, completion=20, cached=60, written=30)
    price = resolve_model(PLUGINS, "claude-opus-4.7").price
    assert price is not None
    assert price.cost(reply.usage) == pytest.approx(
        (10 * 5 + 60 * 0.5 + 30 * 6.25 + 20 * 25) / 1e6
    )
    [call] = server.calls
    assert breakpoints(call.body) == marked
    # The text is the same, with or without marks.
    said = [
        message["content"]
        if isinstance(message["content"], str)
        else "".join(p["text"] for p in message["content"])
        for message in call.body["messages"]
    ]
    assert said == [message.text for message in request.messages[1:]]


@needs_litellm
@pytest.mark.parametrize("option", [{}, {"cache_control": "true"}])
def test_others_are_asked_only_if_told_so(option: dict[str, str]) -> None:
    with FakeServer() as server:
        [reply] = ask(
            server, dataclasses.replace(REQUEST, messages=lived("3-7", 9)), **option
        )
    assert isinstance(reply, ChatReply), reply
    # litellm itself removes the mark for a server without explicit caching.
    assert isinstance(server.calls[0].body["messages"][0]["content"], list) == bool(
        option
    )


@needs_litellm
def test_a_switch_that_is_none_is_refused() -> None:
    with pytest.raises(
        OptionError, match="cache_control must be true or false, not 'perhaps'"
    ):
        SPEC.connect(
            BackendContext(
                entry=ENTRY, directory=Path(), options={"cache_control": "perhaps"}
            )
        )


@needs_litellm
def test_many_at_once() -> None:
    requests = [
        dataclasses.replace(REQUEST, messages=(Message("user", (f"call {i}",)),))
        for i in range(20)
    ]
    with FakeServer(
        lambda call: Answer(text=call.prompt, delay=0.02 * (call.number % 3))
    ) as server:
        replies = ask(server, *requests)
    assert [reply.text for reply in replies if isinstance(reply, ChatReply)] == [
        f"call {i}" for i in range(20)
    ]


@needs_litellm
@pytest.mark.parametrize(
    ("model", "sampling", "parameter"),
    [
        ("anthropic/claude-opus-4-7", Sampling(temperature=0.7), "temperature"),
        ("anthropic/claude-opus-4-6", Sampling(seed=3), "seed"),
        # litellm would silently leave out this parameter.
        ("moonshot/kimi-k3", Sampling(temperature=0.7), "temperature"),
    ],
)
def test_a_parameter_that_cannot_be_honoured_is_refused(
    model: str, sampling: Sampling, parameter: str
) -> None:
    with FakeServer() as server:
        [fault] = ask(
            server, dataclasses.replace(REQUEST, model=model, sampling=sampling)
        )
    assert isinstance(fault, ChatFaultError), fault
    assert fault.kind == "bad_request"
    assert f"'drops: [{parameter}]'" in str(fault)
    assert server.count == 0


@needs_litellm
@pytest.mark.parametrize(
    "name",
    [name for name, entry in PLUGINS.models.items() if entry.backend == "litellm"],
)
def test_a_shipped_model_takes_what_its_entry_does_not_drop(name: str) -> None:
    entry, library = PLUGINS.models[name], import_litellm()
    for parameter, value in {
        "temperature": 0.7,
        "seed": 5,
        "stop": ["x"],
        "max_tokens": 77,
    }.items():
        assert parameter in entry.drops or is_sent(
            library, entry.id, parameter, value
        ), parameter


@needs_litellm
def test_the_check_says_whether_there_is_a_key() -> None:
    own = BackendContext(
        entry=ENTRY, directory=Path(), options={"api_key_env": "GATE_KEY"}
    )
    bare = BackendContext(entry=ENTRY, directory=Path(), options={})
    assert SPEC.check is not None
    assert [SPEC.check(one) for one in (own, bare)] == [
        "litellm is installed; a key is set, but was not tried",
        "litellm is installed; keys are not checked",
    ]


def test_without_litellm_the_pip_command_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    entry = resolve_model(PLUGINS, "claude-opus-4.7")
    with pytest.raises(OptionError, match=re.escape(install_command("litellm"))):
        SPEC.connect(BackendContext(entry=entry, directory=Path()))


@needs_litellm
@pytest.mark.parametrize("name", ["api_key", "num_retries", "messages"])
def test_served_settings_cannot_set_what_is_the_harness_s(name: str) -> None:
    entry = dataclasses.replace(ENTRY, served={name: "x"})
    with pytest.raises(OptionError, match=f"cannot set '{name}'"):
        SPEC.connect(BackendContext(entry=entry, directory=Path()))


def test_calls_to_one_provider_share_an_account() -> None:
    assert SPEC.account is not None
    entry = resolve_model(PLUGINS, "claude-opus-4.7")
    assert (
        SPEC.account(BackendContext(entry=entry, directory=Path()))
        == "litellm anthropic"
    )


@needs_litellm
def test_a_whole_run(pytester: pytest.Pytester) -> None:
    with FakeServer("ACTIONS: FORWARD, FORWARD, ROTATE_LEFT", key=KEY) as server:
        result = pytester.runpytest_subprocess(
            *("--model", "litellm/hosted_vllm/tiny", "--base-url", server.base_url),
            *("--cheese-backend-option", "api_key_env=GATE_KEY"),
            *("--protocols", "t_maze", "--design", "smoke"),
        )
        assert server.count > 4
    assert result.ret in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), (
        result.stderr.str()
    )
    result.assert_outcomes(errors=0)
    result.stdout.fnmatch_lines(["Calls: * calls*"])
    written = b"".join(
        path.read_bytes() for path in pytester.path.rglob("*") if path.is_file()
    )
    assert KEY.encode() not in written
