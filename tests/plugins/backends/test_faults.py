"""Classification of answers as faults: real servers' answers, and answers that no
server should give.
"""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheesebench import ChatFaultError, FaultKind
from cheesebench.plugins.backends.faults import (
    MAX_RETRY_AFTER,
    fault_of_answer,
    reply_of_error,
    retry_after,
)


def fault(
    status: int, error: Any, headers: dict[str, str] | None = None
) -> ChatFaultError:
    return fault_of_answer(
        status, json.dumps({"error": error}), headers or {}, "http://a.example"
    )


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"message": text, **more}


ANSWERS: list[tuple[int, Any, FaultKind]] = [
    # OpenAI
    (
        429,
        message(
            "Rate limit reached for gpt-x on tokens per min (TPM): Limit 10, Used 9"
        ),
        "rate_limit",
    ),
    (
        429,
        message(
            "Request too large for gpt-x on tokens per min (TPM)",
            code="rate_limit_exceeded",
        ),
        "context_too_long",
    ),
    (
        429,
        message(
            "You exceeded your current quota, please check your plan",
            code="insufficient_quota",
        ),
        "quota",
    ),
    (429, message("You exceeded your current quota, please check your plan"), "quota"),
    (
        429,
        message("The engine is currently overloaded, please try again later"),
        "overload",
    ),
    (
        401,
        message("Incorrect API key provided: abc.", code="invalid_api_key"),
        "authentication",
    ),
    (500, message("Jinja Exception: System role not supported"), "bad_request"),
    (500, message("Only user and assistant roles are supported!"), "bad_request"),
    (403, message("Country, region, or territory not supported"), "authentication"),
    (
        404,
        message("The model `gpt-x` does not exist or you do not have access to it."),
        "unknown_model",
    ),
    (
        400,
        message(
            "This model's maximum context length is 8192 tokens",
            code="context_length_exceeded",
        ),
        "context_too_long",
    ),
    (
        400,
        message("Invalid value: 'temprature'.", type="invalid_request_error"),
        "bad_request",
    ),
    (
        400,
        message(
            "Unsupported parameter: 'max_tokens' is not supported with this model."
        ),
        "bad_request",
    ),
    (
        400,
        message(
            "max_tokens is too large: 9. This model supports at most 8 tokens.",
            type="invalid_request_error",
        ),
        "bad_request",
    ),
    (500, message("The server had an error while processing your request"), "server"),
    # Days in other words: Moonshot, GitHub, NVIDIA; and a length of DashScope
    (
        429,
        message("request reached organization max RPD: 9, try again after 9 seconds"),
        "quota",
    ),
    (429, message("request reached organization max RPM: 9"), "rate_limit"),
    (
        429,
        message("Rate limit of 50 per 86400s exceeded for UserByModelByDay."),
        "quota",
    ),
    (
        429,
        message("Rate limit of 10 per 60s exceeded for UserByModelByMinute."),
        "rate_limit",
    ),
    (429, {"detail": "Cloud credits expired - Please contact support"}, "quota"),
    (403, message("Sorry, your account balance is insufficient"), "quota"),
    (429, message("Your account is not active, please check your billing"), "quota"),
    (
        422,
        message("`inputs` must have less than 9 tokens. Given: 10"),
        "context_too_long",
    ),
    (400, message("Range of input length should be [1, 30720]"), "context_too_long"),
    (503, message("Slow down"), "overload"),
    # Azure
    (
        400,
        message("The response was filtered", code="content_filter"),
        "content_filter",
    ),
    (
        400,
        message("x", innererror={"code": "ResponsibleAIPolicyViolation"}),
        "content_filter",
    ),
    (
        404,
        message(
            "The API deployment for this resource does not exist",
            code="DeploymentNotFound",
        ),
        "unknown_model",
    ),
    # Anthropic
    (
        400,
        message(
            "prompt is too long: 210000 tokens > 200000 maximum",
            type="invalid_request_error",
        ),
        "context_too_long",
    ),
    (400, message("Your credit balance is too low to access the API."), "quota"),
    (
        413,
        message("Request exceeds the maximum size", type="request_too_large"),
        "context_too_long",
    ),
    (529, message("Overloaded", type="overloaded_error"), "overload"),
    (
        429,
        message("This request would exceed your rate limit", type="rate_limit_error"),
        "rate_limit",
    ),
    (400, message("Output blocked by content filtering policy"), "content_filter"),
    # Google
    (
        400,
        message(
            "API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT"
        ),
        "authentication",
    ),
    (
        400,
        message(
            "The input token count (9) exceeds the maximum number of tokens allowed (8)."
        ),
        "context_too_long",
    ),
    (
        429,
        message(
            "You exceeded your current quota",
            details=[{"@type": "RetryInfo", "retryDelay": "17s"}],
        ),
        "rate_limit",
    ),
    (
        429,
        message(
            "You exceeded your current quota",
            details=[{"quotaId": "RequestsPerDayPerProject"}, {"retryDelay": "9s"}],
        ),
        "quota",
    ),
    # vLLM, SGLang, llama.cpp, Ollama
    (
        400,
        message(
            "'max_tokens' is too large: 99. This model's maximum context length is 64 tokens"
        ),
        "context_too_long",
    ),
    (
        404,
        message("The model `x` does not exist.", type="NotFoundError", code=404),
        "unknown_model",
    ),
    (
        400,
        message(
            "the request exceeds the available context size",
            type="exceed_context_size_error",
        ),
        "context_too_long",
    ),
    (500, message("EngineCore encountered an issue. See stack trace"), "server"),
    (503, message("Loading model", type="unavailable_error"), "overload"),
    (404, message("model 'x' not found, try pulling it first"), "unknown_model"),
    # Limits that no pause of a call outlasts
    *[
        (status, message(text, code="rate_limit_exceeded"), "quota")
        for status, text in (
            (400, "Your monthly output limit has been reached."),
            (400, "The output token limit is reached for this project today"),
            (400, "You have reached your specified API usage limits."),
            (403, "Your team has used all available credits or reached its limit"),
            (403, "Your newly created team doesn't have any credits yet"),
            (429, "Rate limit exceeded: free-models-per-day"),
            (429, "Too many tokens per day, please wait before trying again."),
            (429, "Limit of 1000 API calls / month reached"),
            (429, "TOO MANY REQUESTS: DAILY QUOTA EXCEEDED"),
        )
    ],
    (
        429,
        message("Rate limit: Limit 6000, Used 5,800, Requested 900", type="tokens"),
        "rate_limit",
    ),
    (
        413,
        message("on tokens per minute: Limit 6000, Requested 9042"),
        "context_too_long",
    ),
    (429, message("TPM: limit 6,000, requested 9,042"), "context_too_long"),
    # Refusals of a single prompt
    (
        403,
        message("Content violates usage guidelines. Failed check: X"),
        "content_filter",
    ),
    (400, message("可能包含不安全或敏感内容", code="1301"), "content_filter"),
    (400, message("Request BLOCKED by the safety filter"), "content_filter"),
    # Breakdowns with the status of a refusal
    (400, message("The model has crashed without additional information."), "server"),
    (400, message("Model unloaded."), "server"),
    (400, message("Channel Error"), "server"),
    (400, message("Operation canceled"), "server"),
    (424, message("Request failed during generation"), "server"),
    (400, message("max_tokens must be at least 1, got -256."), "context_too_long"),
    (
        422,
        message("`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000"),
        "context_too_long",
    ),
    # Gateways
    (402, message("Insufficient credits. Add more"), "quota"),
    (
        403,
        message(
            "Your chosen model requires moderation and your input was flagged. "
            "No credits were charged."
        ),
        "content_filter",
    ),
    (400, message("No connected db."), "authentication"),
    (400, message("Budget has been exceeded! Current cost: 1.0"), "quota"),
    (400, message("x/y is not a valid model ID"), "unknown_model"),
    (408, "timed out", "timeout"),
    (504, "", "timeout"),
    (524, "", "timeout"),
    (502, "<bad gateway>", "server"),
    (418, "I am a teapot", "server"),
    (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, "bad_request"),
]


@pytest.mark.parametrize(("status", "error", "kind"), ANSWERS)
def test_kinds(status: int, error: Any, kind: FaultKind) -> None:
    assert fault(status, error).kind == kind


def test_a_message_beside_the_code_is_read() -> None:
    body = '{"code": "no permission", "error": "Content violates usage guidelines."}'
    assert fault_of_answer(403, body, {}, "it").kind == "content_filter"
    page = "<html>Request blocked: daily limit</html>"
    assert fault_of_answer(403, page, {}, "it").kind == "authentication"
    assert fault_of_answer(429, "daily limit exceeded", {}, "it").kind == "quota"


@pytest.mark.parametrize(
    ("said", "is_reply"),
    [
        ("max_tokens or model output limit was reached. Try a higher one.", True),
        ("Your monthly output limit has been reached.", False),
        ("The output token limit is reached for this project today", False),
        ("The max_output_tokens limit has been reached for the month", False),
        ("Daily max_tokens limit was reached for this key.", False),
        ("The max_output_tokens limit was reached for your organization.", False),
        ("max_tokens: your limit has been reached for this billing cycle", False),
        ("The sum of max_tokens in this hour: limit is reached", False),
    ],
)
def test_only_the_limit_of_the_request_cuts_a_reply_off(
    said: str, is_reply: bool
) -> None:
    reply = reply_of_error(400, said, 512)
    assert (reply is not None and reply.usage.completion == 512) == is_reply
    assert reply_of_error(429, said, 512) is None


def test_every_kind_that_an_answer_can_be_has_an_example() -> None:
    assert {kind for *_, kind in ANSWERS} == set(get_args(FaultKind)) - {
        "connection",
        "malformed",
    }


def test_the_text_says_who_answered_what_and_no_more() -> None:
    text = str(fault(400, message("bad \x1b[31m" + "word " * 500)))
    assert text.startswith("http://a.example answers 400: bad \\x1b[31mword word")
    assert text.endswith("...")
    assert len(text) < 350
    plain = fault_of_answer(502, "Bad Gateway", {}, "http://a.example")
    assert str(plain) == "http://a.example answers 502: Bad Gateway"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("<html>\n<h1>502 Bad Gateway</h1>", ": Bad Gateway"),
        ("<TITLE lang=en>Sorry &amp; wait\n</TITLE><h1>Ray 8c1</h1>", ": Sorry & wait"),
        ("<html><p>Ray 8c1f", "."),
        ("<title" * 9000, "."),
    ],
)
def test_a_page_is_told_by_its_heading_and_kept_apart(page: str, said: str) -> None:
    fault = fault_of_answer(502, page, {}, "http://a.example")
    assert str(fault) == f"http://a.example answers 502{said}"
    assert fault.answer.startswith(page[:6])
    assert len(fault.answer) <= 120


def test_an_answer_without_a_text_says_its_status() -> None:
    assert (
        str(fault_of_answer(500, "", {}, "http://a.example"))
        == "http://a.example answers 500."
    )


def test_secrets_stay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "correct-horse-battery")
    text = str(
        fault(401, message("no: correct-horse-battery, nor sk-abcdefghijklmnop1234"))
    )
    assert text == "http://a.example answers 401: no: [redacted], nor [redacted]"


DATE = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1e300"}, MAX_RETRY_AFTER),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": DATE}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", "date": DATE}, 0.0),
        ({"retry-after": "Wed, 21 Oct 99999 07:27:00 GMT"}, None),
        ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_wish_in_the_body_counts_where_no_header_has_one() -> None:
    error = message("quota", details=[{"retryDelay": "17.5s"}])
    assert fault(429, error).retry_after == 17.5
    assert fault(429, error, {"retry-after": "2"}).retry_after == 2.0
    assert (
        fault(429, message("quota", details=[{"retryDelay": "?"}, "x"])).retry_after
        is None
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "message",
                    "code",
                    "type",
                    "status",
                    "details",
                    "innererror",
                    "retryDelay",
                    "detail",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(
    status=st.integers(300, 999), content=JSON, raw=st.none() | st.binary(max_size=200)
)
def test_no_body_is_too_strange(status: int, content: Any, raw: bytes | None) -> None:
    body = json.dumps(content) if raw is None else raw.decode("utf-8", "replace")
    found = fault_of_answer(status, body, {"retry-after": "1"}, "http://a.example")
    assert found.kind in get_args(FaultKind)
    assert str(found).isprintable()
    assert len(str(found)) < 400


def test_the_first_of_several_errors_counts() -> None:
    said = {"errors": [{"message": "you have used up your daily free allocation"}]}
    found = fault_of_answer(429, json.dumps(said), {}, "http://a.example")
    assert (found.kind, str(found)) == (
        "quota",
        "http://a.example answers 429: you have used up your daily free allocation",
    )
