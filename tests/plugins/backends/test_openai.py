"""The backend ``openai``: its address, its key, and the name for the limit
of a reply.
"""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from cheesebench import (
    BackendContext,
    ChatReply,
    ChatRequest,
    Message,
    ModelEntry,
    OptionError,
    Sampling,
)
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.backends.openai import (
    check,
    check_served,
    key_from_environment,
    own_headers,
)
from cheesebench.testing.fake_server import FakeServer

SPEC = PluginManager().backend("openai")
ENTRY = ModelEntry(name="mine", backend="openai", id="mine-1")
REQUEST = ChatRequest(
    model="mine-1", messages=(Message("user", ("?",)),), sampling=Sampling(max_tokens=5)
)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)


def context(
    given: str | None = None, entry: ModelEntry = ENTRY, **options: Any
) -> BackendContext:
    return BackendContext(
        entry=entry, directory=Path(), base_url=given, options=options
    )


def ask(given: BackendContext, request: ChatRequest = REQUEST) -> ChatReply:
    async def main() -> ChatReply:
        connection = SPEC.connect(given)
        try:
            return await connection.complete(request)
        finally:
            await connection.close()

    return asyncio.run(main())


def test_the_command_line_s_server_before_the_entry_s_before_the_environment_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (
        FakeServer("one") as one,
        FakeServer("two") as two,
        FakeServer("three") as three,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", three.base_url)
        assert ask(context(one.base_url, base_url=two.base_url)).text == "one"
        assert ask(context(base_url=two.base_url)).text == "two"
        assert ask(context()).text == "three"


def test_the_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " usual-key\n")
    monkeypatch.setenv("GATE_KEY", "other-key")
    with (
        FakeServer(key="usual-key") as usual,
        FakeServer(key="other-key") as other,
        FakeServer() as open_to_all,
    ):
        ask(context(usual.base_url))
        ask(context(other.base_url, api_key_env="GATE_KEY"))
        monkeypatch.delenv("OPENAI_API_KEY")
        ask(context(open_to_all.base_url))
    assert "Authorization" not in open_to_all.calls[0].headers


def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(OptionError, match="variable GATE_KEY has no key"):
        ask(context("http://127.0.0.1:1/v1", api_key_env="GATE_KEY"))
    with pytest.raises(OptionError, match=r"OPENAI_API_KEY has no key\. .* try again"):
        ask(context("http://127.0.0.1:1/v1", api_key_env="OPENAI_API_KEY"))
    with pytest.raises(
        OptionError,
        match=r"variable OPENAI_API_KEY has no key\. Export it, or give --base-url",
    ):
        ask(context())


def test_what_the_limit_of_a_reply_is_called() -> None:
    with FakeServer() as server:
        ask(context(server.base_url))
        ask(context(server.base_url, max_tokens_name="max_completion_tokens"))
    assert [
        set(call.body) & {"max_tokens", "max_completion_tokens"}
        for call in server.calls
    ] == [
        {"max_tokens"},
        {"max_completion_tokens"},
    ]
    with pytest.raises(OptionError, match="max_tokens_name is 'limit'"):
        ask(context("http://127.0.0.1:1", max_tokens_name="limit"))


def test_served_settings_cannot_set_what_is_the_harness_s() -> None:
    with pytest.raises(OptionError, match="cannot set 'stream'"):
        ask(
            context(
                "http://127.0.0.1:1",
                dataclasses.replace(ENTRY, served={"stream": True}),
            )
        )


def test_calls_to_one_server_share_an_account() -> None:
    assert SPEC.account is not None
    assert SPEC.account(context("http://a.example:8000/v1")) == "openai a.example:8000"
    assert SPEC.account(context()) == "openai api.openai.com:443"


@pytest.mark.parametrize(
    "served",
    [
        {"api_key": "correct-horse"},
        {"user": "correct-horse"},
        {"extra_headers": {"Authorization": "correct-horse"}},
        {"extra_body": {"a": [{"auth_token": "correct-horse"}]}},
        {"jwt": "correct-horse"},
        {"metadata": {"trace": ["Bearer correct-horse"]}},
        {"anything": {"deep": "correct-horse-battery"}},
    ],
)
def test_served_settings_hold_no_key(
    served: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STABLE_KEY", "correct-horse-battery")
    with pytest.raises(OptionError, match="may be a key") as caught:
        check_served(served)
    assert "horse" not in str(caught.value)
    check_served({"max_completion_tokens": 5, "chat_template_kwargs": {"user": {}}})


def test_an_address_that_is_not_used_is_recorded_and_may_hold_no_key() -> None:
    used, other = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1?code=correct-horse"
    with pytest.raises(OptionError, match="may be a key") as caught:
        SPEC.connect(context(used, base_url=other))
    assert "horse" not in str(caught.value)


def test_a_key_in_place_of_a_variable_s_name_is_not_printed() -> None:
    for name in ("mk0123456789abcdef", "Correct-Horse"):
        with pytest.raises(
            OptionError, match="not the name of an environment"
        ) as caught:
            key_from_environment({"api_key_env": name}, "OPENAI_API_KEY", True)
        assert name not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"x-key": "GATEWAY_KEY", "org": "GATEWAY_TOKEN"},
        "x-key=GATEWAY_KEY, org=GATEWAY_TOKEN",
    ],
)
def test_headers_have_the_values_of_variables(
    given: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", " sk-gateway-0123456789 ")
    monkeypatch.setenv("GATEWAY_TOKEN", "token-0123456789")
    found = own_headers({"headers": given})
    assert found == {"x-key": "sk-gateway-0123456789", "org": "token-0123456789"}
    assert own_headers({}) == own_headers({"headers": None}) == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["x-key"], "must map names of headers to names of environment variables"),
        ({"Host": "GATEWAY_KEY"}, "The option headers cannot set 'Host'. Name a header"),
        ({"content-type": "GATEWAY_KEY"}, "cannot set 'content-type'"),
        ({"x key": "GATEWAY_KEY"}, "cannot set 'x key'"),
        ({"x" * 61: "GATEWAY_KEY"}, "The option headers cannot set"),
        ({"x-key": "sk-lower"}, r"The value of the option headers \(x-key\) is not the name"),
        ({"x-key": "NOWHERE_KEY"}, r"variable NOWHERE_KEY \(header x-key\) is not set, or empty. Export it"),
        ({"x-key": "PLAIN"}, "could be written into reports"),
    ],
)  # fmt: skip
def test_headers_that_cannot_be_set_are_refused(
    given: object, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "sk-gateway-0123456789")
    monkeypatch.setenv("PLAIN", "a-long-word-of-somebody")
    monkeypatch.delenv("NOWHERE_KEY", raising=False)
    with pytest.raises(OptionError, match=said):
        own_headers({"headers": given})


def test_a_check_asks_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    local = "http://localhost:9/v1"
    assert check(context(local)) == f"no key for {local}; the server was not asked"
    with pytest.raises(OptionError, match="OPENAI_API_KEY has no key"):
        check(context())
    monkeypatch.setenv("GATEWAY_KEY", "sk-gateway-0123456789")
    keyed = context(local, headers={"x-key": "GATEWAY_KEY"})
    assert check(keyed) == f"a key for {local}; the server was not asked"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert check(context()).startswith("a key for https://")
