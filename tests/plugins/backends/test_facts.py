"""Servers' own descriptions: slots and context, in the forms of llama.cpp, vLLM and
Ollama.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from cheesebench import ChatFaultError, ChatRequest, Message, ServerFacts
from cheesebench.plugins.backends.openai import ChatCompletions
from cheesebench.testing.fake_server import FakeServer

LLAMA = {"default_generation_settings": {"n_ctx": 8192, "params": {}}, "total_slots": 4}
VLLM = {
    "object": "list",
    "data": [
        {"id": "org/other", "max_model_len": 512},
        {"id": "some", "max_model_len": 32768},
    ],
}
OLLAMA = {"models": [{"name": "some:latest", "model": "some:latest", "size": 1}]}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"/props": LLAMA}, ServerFacts(slots=4, context=8192)),
        ({"/v1/models": VLLM}, ServerFacts(context=32768)),
        (
            {"/api/ps": {"models": [{**OLLAMA["models"][0], "context_length": 16384}]}},
            ServerFacts(context=16384),
        ),
        ({"/api/ps": OLLAMA}, ServerFacts(context=4096)),
        ({"/api/ps": {"models": []}}, ServerFacts()),
        (
            {"/props": [LLAMA], "/v1/models": {"data": {"id": 3}}, "/api/ps": "none"},
            ServerFacts(),
        ),
        (
            {
                "/props": {
                    "default_generation_settings": {"n_ctx": "8k"},
                    "total_slots": True,
                }
            },
            ServerFacts(),
        ),
        ({}, ServerFacts()),
    ],
    ids=[
        "llama.cpp",
        "vllm",
        "ollama",
        "ollama, old",
        "ollama, nothing loaded",
        "nonsense",
        "wrong types",
        "none",
    ],
)
def test_facts(facts: dict[str, Any], expected: ServerFacts) -> None:
    async def ask(url: str) -> ServerFacts:
        client = ChatCompletions(url, model="some")
        try:
            return await client.facts()
        finally:
            await client.close()

    with FakeServer(facts=facts) as server:
        assert asyncio.run(ask(server.base_url)) == expected


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (["other", "my-model"], r"It lists my-model, other\."),
        (
            ["my-model-2", *(f"{n}-b" for n in range(9))],
            r"It lists my-model-2, .*, \S+ and 5 more\.",
        ),
    ],
)
def test_an_unknown_model_is_answered_with_those_that_the_server_lists(
    models: list[str], said: str
) -> None:
    async def ask(url: str) -> None:
        client = ChatCompletions(url, model="my-modle")
        try:
            asked = (Message("user", ("Hi",)),)
            await client.complete(ChatRequest(model="my-modle", messages=asked))
        finally:
            await client.close()

    with (
        FakeServer("hi", models=models) as server,
        pytest.raises(ChatFaultError) as caught,
    ):
        asyncio.run(ask(server.base_url))
    assert caught.value.kind == "unknown_model"
    assert re.search(said, str(caught.value))
