"""Reads replies from bodies of answers: reasoning separated, tokens counted, nonsense
refused.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench import ChatFaultError, ChatReply, Usage
from cheesebench.plugins.backends.replies import (
    count_tokens,
    read_reply,
    reply_in,
    split_thoughts,
)


def reply(message: Any, finish: Any = "stop", **more: Any) -> ChatReply:
    return read_reply(
        json.dumps(
            {"choices": [{"message": message, "finish_reason": finish}], **more}
        ).encode()
    )


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("ACTIONS: F", "ACTIONS: F", ""),
        ("a < b", "a < b", ""),
        ("<think>left?</think>\nACTIONS: F", "ACTIONS: F", "left?"),
        ("<THINKING>left?</thinking> ACTIONS: F", "ACTIONS: F", "left?"),
        ("left?</think>ACTIONS: F", "ACTIONS: F", "left?"),
        ("<think>cut off", "", "cut off"),
        ("<think>a<think>b</think>c</think>d", "d", "a\nb\nc"),
        ("one <think>x</think>two<think>y</think>", "one two", "x\ny"),
        ("<think></think>ACTIONS: F", "ACTIONS: F", ""),
        ("</think></think>F", "F", ""),
        (" kept as it is ", " kept as it is ", ""),
    ],
)
def test_thoughts_apart(text: str, said: str, thought: str) -> None:
    assert split_thoughts(text) == (said, thought)


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "x", " ", "<", "Think>"])).map(
        "".join
    )
)
def test_no_thought_is_said_and_nothing_is_lost(text: str) -> None:
    said, thought = split_thoughts(text)
    assert "<think>" not in said
    assert "</think>" not in said
    assert (said + thought).count("x") == text.count("x")


def test_where_servers_put_thoughts() -> None:
    assert reply({"content": "F", "reasoning_content": "hm"}).reasoning == "hm"
    assert reply({"content": "F", "reasoning": "hm"}).reasoning == "hm"
    both = reply(
        {"content": "<think>b</think>F", "reasoning_content": "a", "reasoning": "a"}
    )
    assert (both.text, both.reasoning) == ("F", "a\nb")
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "F"},
        None,
    ]
    assert (reply({"content": parts}).text, reply({"content": parts}).reasoning) == (
        "F",
        "hm",
    )


@pytest.mark.parametrize("finish", ["abort", "error", "ERROR", "cancelled"])
def test_a_reply_that_the_server_broke_off_is_none(finish: str) -> None:
    with pytest.raises(ChatFaultError, match="ended the reply early") as caught:
        reply({"content": "ACTIONS: F"}, finish)
    assert caught.value.kind == "server"


@pytest.mark.parametrize(
    "parts",
    [
        ["ACTIONS: F"],
        [{"type": "text", "text": {"value": "ACTIONS: F"}}],
        [{"type": "refusal", "refusal": "ACTIONS: F"}],
        [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "ACTIONS: F"}],
    ],
)
def test_parts_in_the_forms_of_servers(parts: Any) -> None:
    assert reply({"content": parts}).text == "ACTIONS: F"


def test_a_refusal_is_what_the_model_says() -> None:
    assert (
        reply({"content": None, "refusal": "I would rather not."}).text
        == "I would rather not."
    )


@pytest.mark.parametrize(
    ("said", "finish"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("FinishReason.STOP", "stop"),
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("tool_calls", "stop"),
        ("whatever", "other"),
        (None, "other"),
        ([], "other"),
        # SGLang
        ({"type": "length", "length": 4}, "length"),
        ({"type": "stop", "matched": 151645}, "stop"),
    ],
)
def test_finish(said: Any, finish: str) -> None:
    assert reply({"content": "F"}, said).finish == finish


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        *(
            (said, "content_filter")
            for said in (
                "SAFETY",
                "CONTENT_FILTER",
                "content-filter",
                "contentFilter",
                "content_filter: PROHIBITED_CONTENT",
                "RECITATION",
                "refusal",
            )
        ),
        ("timeout", "timeout"),
        ("insufficient_system_resource", "overload"),
        ("ERROR", "server"),
    ],
)
@pytest.mark.parametrize("content", [None, "ACTIONS: F"])
def test_what_others_ended_is_a_fault(said: str, kind: str, content: Any) -> None:
    with pytest.raises(ChatFaultError) as caught:
        reply({"content": content}, said)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "beside",
    [
        {"native_finish_reason": "SAFETY"},
        {"content_filter_results": {"hate": {"filtered": True, "severity": "high"}}},
    ],
)
def test_a_filter_that_is_told_beside_the_finish_is_a_fault(beside: Any) -> None:
    choice = {"message": {"content": ""}, "finish_reason": "stop", **beside}
    body = json.dumps({"choices": [choice], "usage": {"completion_tokens": 3}})
    with pytest.raises(ChatFaultError) as caught:
        read_reply(body.encode())
    assert caught.value.kind == "content_filter"


def test_the_choice_that_was_asked_for_or_none() -> None:
    def answer(*indices: Any) -> bytes:
        choices = [
            {
                "index": index,
                "finish_reason": "stop",
                "message": {"content": str(index)},
            }
            for index in indices
        ]
        return json.dumps({"choices": choices}).encode()

    assert read_reply(answer(1, 0)).text == "0"
    assert read_reply(answer(1.0, 0.0)).text == "0.0"
    assert read_reply(answer("1", "0")).text == "0"
    assert read_reply(answer(None)).text == "None"
    with pytest.raises(ChatFaultError, match=r"no 'choices\[0\]"):
        read_reply(answer(2, 1))


def test_an_empty_reply_is_a_reply() -> None:
    assert reply({"content": None}, "length") == ChatReply(text="", finish="length")
    # Gemini, where reasoning took up the limit
    thought = {"prompt_tokens": 200, "completion_tokens": 0, "total_tokens": 700}
    found = reply({}, "length", usage=thought)
    assert (found.text, found.finish, found.usage.completion) == ("", "length", 500)
    with pytest.raises(ChatFaultError, match="no content"):
        reply({}, "length")


@pytest.mark.parametrize(
    ("message", "usage"),
    [
        ({"content": 7}, None),
        ({"content": {}}, None),
        ({"content": {"text": "ACTIONS: F"}}, None),
        ({"content": True}, None),
        (
            {"content": None, "tool_calls": [{"function": {"name": "go"}}]},
            {"completion_tokens": 9},
        ),
        ({"content": None}, {"completion_tokens": 0}),
        ({"content": ""}, {"output_tokens": 0}),
        (
            {"content": None},
            {"prompt_tokens": 90, "completion_tokens": 0, "total_tokens": 100},
        ),
        ({"content": ""}, {"completion_tokens": 0}),
        ({"content": []}, None),
        ({"content": [None]}, None),
        ({"content": [{"type": "text", "content": "ACTIONS: F"}]}, None),
        (
            {"content": [{"type": "text", "text": "F"}, {"type": "new", "said": "F"}]},
            None,
        ),
        ({}, None),
        ({"content": None, "audio": {"transcript": "ACTIONS: F"}}, None),
        ({"content": None, "output_text": "ACTIONS: F"}, None),
    ],
)
def test_what_the_model_never_wrote_is_malformed_and_not_behaviour(
    message: Any, usage: Any
) -> None:
    with pytest.raises(ChatFaultError) as caught:
        reply(message, usage=usage)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, Usage()),
        ({"prompt_tokens": 9, "completion_tokens": 4}, Usage(prompt=9, completion=4)),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, Usage(prompt=9)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 8}, Usage(prompt=9, cached=8)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 80}},
            Usage(prompt=89, cached=80),
        ),
        (
            {
                "prompt_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 3},
            },
            Usage(prompt=9, cached=5, written=3),
        ),
        (
            {"prompt_tokens": 9, "cache_creation_input_tokens": 80},
            Usage(prompt=89, written=80),
        ),
        (
            {
                "prompt_tokens": 9,
                "cache_creation_input_tokens": 8,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
            Usage(prompt=21, cached=4, written=8),
        ),
        ({"prompt_tokens": -9, "completion_tokens": True}, Usage()),
        ({"prompt_tokens": "9", "completion_tokens": float("nan")}, Usage(prompt=9)),
        # xAI, and Gemini's compatible API
        (
            {
                "prompt_tokens": 500,
                "completion_tokens": 5,
                "total_tokens": 2505,
                "completion_tokens_details": {"reasoning_tokens": 2000},
            },
            Usage(prompt=500, completion=2005, reasoning=2000),
        ),
        (
            {"prompt_tokens": 500, "completion_tokens": 5, "total_tokens": 2505},
            Usage(prompt=500, completion=2005),
        ),
        (
            {"prompt_tokens": 500, "completion_tokens": 5, "reasoning_tokens": 20},
            Usage(prompt=500, completion=25, reasoning=20),
        ),
        ({"input": 9, "output": 4}, Usage(prompt=9, completion=4)),
        (
            {"billed_units": {"input_tokens": 9, "output_tokens": 4}},
            Usage(prompt=9, completion=4),
        ),
        # Kimi, and servers that count input and output
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "cached_tokens": 8},
            Usage(prompt=9, completion=4, cached=8),
        ),
        (
            {"input_tokens": 20, "output_tokens": 4, "cache_read_input_tokens": 1500},
            Usage(prompt=1520, completion=4, cached=1500),
        ),
        # Mistral, and Anthropic's written tokens by cache lifetime
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "num_cached_tokens": 8},
            Usage(prompt=9, completion=4, cached=8),
        ),
        (
            {
                "input_tokens": 10,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 600,
                    "ephemeral_1h_input_tokens": 400,
                },
            },
            Usage(prompt=1010, written=1000),
        ),
        ({"total_tokens": 500}, Usage(completion=500)),
        (
            {"completion_tokens": 5, "total_tokens": 505},
            Usage(prompt=500, completion=5),
        ),
        ({"prompt_tokens": 10**30, "completion_tokens": 4.0}, Usage(completion=4)),
    ],
)
def test_usage(usage: Any, read: Usage) -> None:
    assert count_tokens(usage) == (read, "")


def test_counts_beside_the_usage_are_read_where_there_is_no_usage() -> None:
    google = {"promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 33}
    for beside in (
        {"usageMetadata": google},
        {"x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 24}}},
    ):
        assert reply({"content": "F"}, **beside).usage == Usage(prompt=9, completion=24)
        own = {"prompt_tokens": 7, "completion_tokens": 1}
        assert reply({"content": "F"}, usage=own, **beside).usage.completion == 1


def test_counts_that_contradict_one_another_are_told() -> None:
    usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 50}
    read, doubt = count_tokens(usage)
    assert read == Usage(prompt=90, completion=10)
    assert doubt == "50 tokens in all, but 90 prompt tokens and 10 reply tokens"
    cached = {**usage, "total_tokens": 100, "cached_tokens": 10**6}
    assert count_tokens(cached)[0] == Usage(prompt=90, completion=10, cached=90)
    assert "1,000,000 cached tokens" in count_tokens(cached)[1]


def test_an_answer_whose_body_is_not_known_is_not_called_empty() -> None:
    """litellm gives the parsed answer only."""
    with pytest.raises(ChatFaultError) as found:
        reply_in({"choices": []}, b"")
    assert str(found.value) == "The answer has no 'choices[0].message'."


def test_an_error_with_status_200_is_a_fault() -> None:
    with pytest.raises(ChatFaultError, match="slow down") as error:
        read_reply(b'{"error": {"code": 429, "message": "slow down"}}')
    assert error.value.kind == "rate_limit"
    with pytest.raises(ChatFaultError, match="went away") as error:
        read_reply(
            b'{"choices": [{"error": {"code": 502, "message": "went away"}, "message": {}}]}'
        )
    assert error.value.kind == "server"
    with pytest.raises(ChatFaultError, match="upstream died"):
        reply({"content": ""}, errors=[{"message": "upstream died"}])


def test_the_server_s_name_of_the_model_is_shortened() -> None:
    assert len(reply({"content": ""}, model="x" * 10_000 + "\x1b").model) == 200


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "choices",
                        "message",
                        "content",
                        "usage",
                        "model",
                        "finish_reason",
                        "reasoning",
                        "text",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=15,
    )
)
def test_no_answer_is_too_strange(content: Any) -> None:
    for body in (
        content,
        {"choices": [{"message": content}]},
        {"choices": [{"message": {"content": content}}]},
    ):
        # Any error but a fault fails the test, and so does text that no file accepts.
        with contextlib.suppress(ChatFaultError):
            read_reply(json.dumps(body).encode()).text.encode()
