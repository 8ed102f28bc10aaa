"""Messages, pictures, prices and addresses of language models."""

from __future__ import annotations

import copy
import pickle
import sys
from datetime import date
from typing import Any

import pytest

from cheesebench.chat import (
    FATAL,
    TRANSIENT,
    BackendSpec,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Message,
    Picture,
    Price,
    Sampling,
    Usage,
    check_address,
    without_system,
)
from cheesebench.errors import OptionError, PluginError

DAY = date(2026, 10, 21)


def test_a_picture_is_its_image_and_its_text() -> None:
    picture = Picture(b"png", "A B")
    assert (picture.png, str(picture), picture) == (
        b"png",
        "A B",
        Picture(b"png", "A B"),
    )
    assert picture != Picture(b"other", "A B")
    assert picture != Picture(b"png", "A C")
    # Neither is it equal to its text alone.
    assert picture != "A B"
    assert len({picture, Picture(b"png", "A B"), Picture(b"other", "A B")}) == 2
    assert hash(picture) == hash(Picture(b"png", "A B"))


def test_a_picture_without_text_is_true_and_takes_room() -> None:
    assert Picture(b"png")
    assert str(Picture(b"png")) == ""
    small, large = Picture(b""), Picture(b"x" * 1000)
    assert sys.getsizeof(large) - sys.getsizeof(small) == 1000


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))]
)
def test_a_copied_picture_keeps_both(again: Any) -> None:
    picture = again(Picture(b"png", "A B"))
    assert (type(picture), picture.png, str(picture)) == (Picture, b"png", "A B")


def test_the_text_of_a_message_has_no_pictures() -> None:
    message = Message("user", ("one ", b"png", "two"))
    assert message.text == "one two"
    # Where a cache ends is no part of the content.
    assert Message("user", ("a",), stays=True) == Message("user", ("a",))
    assert Message("user", ("a",)) != Message("system", ("a",))
    assert Message("user", ("a",)).stays is False


SYSTEM = Message("system", ("Rules.",))


@pytest.mark.parametrize(
    ("messages", "result"),
    [
        ((), ()),
        ((Message("user", ("Go",)),), (Message("user", ("Go",)),)),
        (
            (SYSTEM, Message("user", ("Go", b"png")), Message("assistant", ("UP",))),
            (
                Message("user", ("Rules.\n\nGo", b"png")),
                Message("assistant", ("UP",)),
            ),
        ),
        (
            (SYSTEM, Message("user", (b"png", "Go"))),
            (Message("user", ("Rules.", b"png", "Go")),),
        ),
        ((SYSTEM,), (Message("user", ("Rules.",)),)),
    ],
)
def test_a_model_without_a_system_role(
    messages: tuple[Message, ...], result: tuple[Message, ...]
) -> None:
    assert without_system(messages) == result


@pytest.mark.parametrize("stays", [False, True])
def test_the_end_of_the_cached_part_is_kept_without_a_system_role(stays: bool) -> None:
    (found,) = without_system((SYSTEM, Message("user", ("Go",), stays)))
    assert found.stays is stays


def test_what_is_assumed_of_a_call_and_a_reply() -> None:
    assert Sampling() == Sampling(temperature=None, max_tokens=None, seed=None, stop=())
    request = ChatRequest(model="m", messages=(SYSTEM,))
    assert (request.timeout, request.conversation, request.form) == (120.0, "", None)
    assert (dict(request.extra), request.sampling) == ({}, Sampling())
    reply = ChatReply(text="UP")
    assert (reply.finish, reply.reasoning, reply.usage) == ("stop", "", Usage())
    spec = BackendSpec(name="b", connect=lambda context: None)  # type: ignore[arg-type, return-value]
    assert spec.probe
    assert spec.capabilities.temperature
    assert spec.capabilities.seed
    assert spec.capabilities.stop
    assert spec.capabilities.images


def test_a_fault_is_temporary_or_fatal_or_of_one_call() -> None:
    assert not TRANSIENT & FATAL
    fault = ChatFaultError("rate_limit", "slow down", 2.5)
    assert (fault.kind, str(fault), fault.retry_after, fault.refused) == (
        "rate_limit",
        "slow down",
        2.5,
        False,
    )
    assert ChatFaultError("server", "broken").retry_after is None


@pytest.mark.parametrize(
    ("price", "usage", "dollars"),
    [
        # One million tokens of each kind, priced by hand.
        ({}, Usage(prompt=1_000_000, completion=1_000_000), 12.0),
        ({"cached": 0.5}, Usage(prompt=1_000_000, cached=400_000), 0.6 * 2 + 0.4 * 0.5),
        # Without prices of their own, cached and written tokens cost as much as others.
        ({}, Usage(prompt=1_000_000, cached=400_000, written=100_000), 2.0),
        (
            {"cached": 0.5, "written": 3.0},
            Usage(prompt=1_000_000, cached=400_000, written=100_000),
            0.5 * 2 + 0.4 * 0.5 + 0.1 * 3,
        ),
        ({"cached": 0.0}, Usage(prompt=1_000_000, cached=1_000_000), 0.0),
        # Reasoning is a part of the completion.
        ({}, Usage(completion=500_000, reasoning=400_000), 5.0),
    ],
)
def test_a_call_costs(price: dict[str, float], usage: Usage, dollars: float) -> None:
    assert Price(prompt=2.0, completion=10.0, on=DAY, **price).cost(
        usage
    ) == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"prompt": -1.0}, r"Price\(prompt=-1.0\)"),
        ({"completion": float("inf")}, r"Price\(completion=inf\)"),
        ({"completion": float("nan")}, r"Price\(completion=nan\)"),
        ({"cached": "1"}, r"Price\(cached='1'\)"),
        ({"written": True}, r"Price\(written=True\)"),
        ({"prompt": None}, r"Price\(prompt=None\)"),
        ({"completion": None}, r"Price\(completion=None\)"),
        ({"on": "2026-10-21"}, r"Price\(on='2026-10-21'\): give a datetime.date"),
    ],
)
def test_a_price_that_is_none(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(PluginError, match=text):
        Price(**{"prompt": 1.0, "completion": 1.0, "on": DAY, **wrong})


def test_a_price_may_be_nothing() -> None:
    price = Price(prompt=0, completion=0, cached=0, written=0, on=DAY)
    assert price.cost(Usage(prompt=10, completion=10)) == 0


ADDRESSES = [
    "http://127.0.0.1:8000/v1",
    "https://example.org",
    "http://localhost:1",
    "https://a-b.example.org:65535/x/y_z",
    "http://bücher.example/v1",
]


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address(url: str) -> None:
    check_address(url)
    check_address(url, query=True)


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8000",
        "ftp://example.org",
        "http://",
        "http://127.1/v1",
        "http://1.2.3.4.5/v1",
        "http://example.org:0/v1",
        "http://example.org:65536/v1",
        "http://example.org:x/v1",
        "http://exam ple.org/v1",
        "http://example.org/a b",
        "http://example.org/\x07",
        "http://exa$mple.org",
    ],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(OptionError, match=r"is not valid\. Write an address such as"):
        check_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:word@example.org/v1",
        "http://example.org/v1#word",
        "http://example.org/v1?key=word",
        "http://example.org/v1?api-version=2026-01-01&key=word",
    ],
)
@pytest.mark.parametrize("query", [False, True])
def test_what_may_be_a_key_is_not_taken(url: str, query: bool) -> None:
    with pytest.raises(
        OptionError, match="may be a key and would be recorded"
    ) as found:
        check_address(url, query=query)
    # Nor is it repeated.
    assert "word" not in str(found.value)


@pytest.mark.parametrize(
    "asked",
    [
        "api-version=2026-01-01",
        "api_version=1",
        "version=v1&region=eu:west",
        "deployment=my.model&model=gpt-5",
    ],
)
def test_some_parameters_cannot_be_keys(asked: str) -> None:
    check_address(f"http://example.org/v1?{asked}", query=True)
    with pytest.raises(OptionError, match="may be a key"):
        check_address(f"http://example.org/v1?{asked}")


def test_a_long_value_may_be_a_key() -> None:
    check_address(f"http://example.org/v1?model={'a' * 60}", query=True)
    with pytest.raises(OptionError, match="may be a key"):
        check_address(f"http://example.org/v1?model={'a' * 61}", query=True)
