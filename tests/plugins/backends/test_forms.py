"""Replies in a required form: the requests to servers, and the shapes of their tool
calls.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from cheesebench import (
    STAY,
    AnswerForm,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Message,
    ModelAgentContext,
    OptionError,
)
from cheesebench.plugins.agents.llm import LLM_TOOLS, LlmAgent
from cheesebench.plugins.backends.faults import reply_of_error
from cheesebench.plugins.backends.openai import ChatCompletions, form_parameters
from cheesebench.plugins.backends.replies import reply_in
from cheesebench.testing.fake_server import Answer, Call, FakeServer

ARGUMENTS = '{"actions": ["FORWARD", "STAY"], "learnings": "x"}'


def form(**settings: Any) -> AnswerForm:
    found = LLM_TOOLS.form({**LLM_TOOLS.settings, **settings})
    assert found is not None
    return found


def ask(
    message: dict[str, Any], constrains: bool = False, **settings: Any
) -> tuple[ChatReply, dict[str, Any]]:
    """Return the reply made from a server's message, and the request to the server."""
    bodies: list[dict[str, Any]] = []

    def answer(call: Call) -> Answer:
        bodies.append(dict(call.body))
        return Answer(
            body={
                "choices": [{"message": message, "finish_reason": "tool_calls"}],
                "usage": {},
            }
        )

    async def once(url: str) -> ChatReply:
        connection = ChatCompletions(url, constrains=constrains)
        try:
            return await connection.complete(
                ChatRequest(
                    model="m",
                    messages=(Message("user", ("go",)),),
                    form=form(**settings),
                )
            )
        finally:
            await connection.close()

    with FakeServer(answer) as server:
        return asyncio.run(once(server.base_url)), bodies[0]


@pytest.mark.parametrize(
    "message",
    [
        # OpenAI, vLLM, llama.cpp, LiteLLM's Anthropic and Gemini
        {
            "content": None,
            "tool_calls": [
                {
                    "type": "function",
                    "function": {"name": "act", "arguments": ARGUMENTS},
                }
            ],
        },
        {
            "content": "",
            "tool_calls": [
                {"id": "1", "function": {"name": "act", "arguments": ARGUMENTS}},
                {"x": 1},
            ],
        },
        # Ollama's own shape: the object itself
        {
            "content": "",
            "tool_calls": [
                {"function": {"name": "act", "arguments": json.loads(ARGUMENTS)}}
            ],
        },
        # older servers
        {"content": None, "function_call": {"name": "act", "arguments": ARGUMENTS}},
        # constrained decoding, and models that write the arguments as text
        {"content": ARGUMENTS},
    ],
)
def test_the_arguments_of_a_call_are_the_reply(message: dict[str, Any]) -> None:
    reply, body = ask(message)
    assert json.loads(reply.text) == json.loads(ARGUMENTS)
    assert reply.finish == "stop"
    assert body["tool_choice"] == "required"
    assert (
        body["tools"][0]["function"]["parameters"]["properties"]["actions"]["maxItems"]
        == 8
    )


def test_what_is_said_beside_a_call_is_no_answer() -> None:
    calls = [{"function": {"name": "act", "arguments": ARGUMENTS}}]
    reply, _ = ask({"content": "I go.\nACTIONS: ROTATE_LEFT", "tool_calls": calls})
    assert reply.text == ARGUMENTS
    assert "ROTATE_LEFT" in reply.reasoning


GROQ = {
    "error": {
        "message": "Failed to call a function. Please adjust your prompt.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": '<function=act>{"actions": ["FORWARD"]',
    }
}
LLAMA = {"error": {"code": 500, "message": "Failed to parse input at pos 4: I go on"}}
OLLAMA = {
    "error": {
        "message": "error parsing tool call: raw='{\"actions\": [', err=unexpected end",
        "type": "api_error",
    }
}
BARE = {"error": {"code": 500, "message": "Failed to parse tool calls"}}


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (400, GROQ, '<function=act>{"actions": ["FORWARD"]'),
        (500, LLAMA, "I go on"),
        (500, OLLAMA, '{"actions": ['),
        (500, BARE, ""),
    ],
)
def test_what_the_server_cannot_read_is_the_models_reply(
    status: int, error: dict[str, Any], said: str
) -> None:
    """It is unparsed, rather than a breakdown of the server, whether or not its text is
    there.
    """
    reply = reply_of_error(status, json.dumps(error), 99)
    assert reply is not None
    assert (reply.text, reply.finish) == (said, "unread")
    subject = LlmAgent(
        ModelAgentContext(seed=1, view="ascii_2d", settings=LLM_TOOLS.settings)
    )
    subject.begin_trial("#→.#")
    assert subject.read(reply) == (STAY,)
    counts = {name: n for name, n in subject.tally().items() if n}
    assert counts == {"calls": 1, "unparsed": 1, "unusable": 1}


@pytest.mark.parametrize("message", [{"content": None}, {"role": "assistant"}])
@pytest.mark.parametrize("before", ["", "function_call_filter: "])
def test_a_malformed_call_of_gemini_is_a_reply(
    message: dict[str, Any], before: str
) -> None:
    finish = f"{before}MALFORMED_FUNCTION_CALL"
    choice = {"message": message, "finish_reason": finish}
    body = {"choices": [choice], "usage": {"completion_tokens": 0}}
    assert reply_in(body, b"").finish == "unread"


def test_another_error_is_a_fault() -> None:
    for message in (
        "Failed to load the model",
        "parsing the request body failed",
        "Failed to parse tool calls in messages[2]",
    ):
        error = {"error": {"code": 500, "message": message}}
        assert reply_of_error(500, json.dumps(error), 99) is None


def test_a_schema_constrains_the_reply_itself() -> None:
    _, body = ask({"content": ARGUMENTS}, answer="schema")
    assert body["response_format"]["json_schema"]["schema"]["required"] == [
        "actions",
        "learnings",
    ]
    assert "tools" not in body


def test_where_calls_are_not_enforced_the_reply_is_constrained() -> None:
    _, body = ask({"content": ARGUMENTS}, constrains=True)
    assert "response_format" in body
    assert "tools" not in body


def test_without_a_form_a_call_of_a_tool_is_no_reply() -> None:
    async def once(url: str) -> ChatReply:
        connection = ChatCompletions(url)
        try:
            return await connection.complete(
                ChatRequest(model="m", messages=(Message("user", ("go",)),))
            )
        finally:
            await connection.close()

    message = {
        "content": None,
        "tool_calls": [{"function": {"name": "go", "arguments": "{}"}}],
    }
    answer = Answer(
        body={"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    )
    with (
        FakeServer(lambda call: answer) as server,
        pytest.raises(ChatFaultError, match="tool call"),
    ):
        asyncio.run(once(server.base_url))


@pytest.mark.parametrize(
    ("model", "provider", "choice"),
    [("claude-sonnet-4-5", "anthropic", "any"), ("gemini-2.5-flash", "gemini", "ANY")],
)
def test_litellm_sends_the_tool_to_others(
    model: str, provider: str, choice: str
) -> None:
    litellm = pytest.importorskip("litellm")
    sent = litellm.utils.get_optional_params(
        model=model,
        custom_llm_provider=provider,
        drop_params=False,
        **form_parameters(form()),
    )
    text = json.dumps(sent, default=str)
    assert '"act"' in text
    assert "FORWARD" in text
    assert choice in text


@pytest.mark.parametrize("value", ["call", 3])
def test_another_form_is_refused(value: object) -> None:
    with pytest.raises(OptionError, match="must be one of tools, schema"):
        LLM_TOOLS.check({"answer": value})
