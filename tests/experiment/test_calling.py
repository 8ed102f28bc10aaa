"""The parts of a call, each by itself: budgets, sizes, retries, remedies."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from cheesebench.chat import (
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Message,
    Price,
    Sampling,
    Usage,
)
from cheesebench.experiment import calling
from cheesebench.experiment.calling import (
    Attempts,
    Budget,
    BudgetSpentError,
    Caller,
    CallSizes,
    Hope,
    Limiter,
    Limits,
    ModelChannel,
    Patience,
    SubjectStoppedError,
    _said_in,
    _thoughts_apart,
    early_record,
    in_time,
    is_given_up,
    is_private,
    said,
)
from cheesebench.experiment.log import RunLog, digest
from cheesebench.records import CallTotals, CellPlan


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.time", lambda: now[0])
    return now


def request(
    text: str = "x" * 100, *pictures: bytes, most: int | None = None
) -> ChatRequest:
    parts: tuple[str | bytes, ...] = (text, *pictures)
    message = Message(role="user", parts=parts)
    return ChatRequest(
        model="m", messages=(message,), sampling=Sampling(max_tokens=most)
    )


def test_the_size_of_a_call_is_learnt_from_the_largest() -> None:
    sizes = CallSizes()
    assert sizes.expected(request(), None) == CallTotals(prompt=60, completion=1024)
    assert sizes.expected(request(most=9), None).completion == 9
    assert sizes.expected(request("", b"png"), None).prompt == 2400
    sizes.learn(request(), Usage(prompt=50, completion=7))
    sizes.learn(request(), Usage(prompt=40, completion=3))
    assert sizes.expected(request("x" * 11, most=9), None) == CallTotals(
        prompt=6, completion=7
    )
    plain = Price(prompt=2.0, completion=10.0, on=date(2026, 1, 1))
    found = sizes.expected(request(), plain)
    assert found.cost == pytest.approx((50 * 2 + 7 * 10) / 1e6)
    dear = Price(prompt=2.0, written=2.5, completion=10.0, on=date(2026, 1, 1))
    assert sizes.expected(request(), dear).cost == pytest.approx((50 * 2.5 + 70) / 1e6)
    empty = CallSizes()
    empty.learn(request(""), Usage(prompt=3))
    assert empty.expected(request("xx"), None).prompt == 6


def budget(
    spent: CallTotals | None = None,
    processes: int = 1,
    began: float = 1000.0,
    **limits: Any,
) -> Budget:
    return Budget(Limits(**limits), lambda: spent or CallTotals(), began, processes)


def test_a_budget_is_spent_at_its_limits(clock: list[float]) -> None:
    tokens = budget(tokens=100)
    spent = []
    for call in (CallTotals(prompt=60, completion=39), CallTotals(completion=1)):
        tokens.add(call)
        spent.append(tokens.is_spent)
    assert spent == [False, True]
    with pytest.raises(
        BudgetSpentError,
        match=r"^the run has used 100 tokens; --max-tokens 100 is reached$",
    ):
        tokens.check()
    dollars = budget(CallTotals(cost=1.0), cost=1.0)
    with pytest.raises(
        BudgetSpentError, match=r"^the run has cost \$1.00; --max-cost 1 is reached$"
    ):
        dollars.check()
    time = budget(minutes=2.0)
    assert time.seconds_left == 120.0
    clock[0] += 119.9
    time.check()
    clock[0] += 0.1
    with pytest.raises(
        BudgetSpentError,
        match=r"^the run has taken 2.0 minutes; --max-minutes 2 is reached$",
    ):
        time.check()
    clock[0] += 10
    assert time.seconds_left == 0.0
    assert budget().seconds_left == math.inf
    budget().check()
    assert [budget(**one).counts_tokens for one in ({}, {"minutes": 1.0}, {"cost": 1.0}, {"tokens": 1})] == [
        False, False, True, True,
    ]  # fmt: skip


def test_the_share_of_a_budget_is_that_of_its_nearer_limit() -> None:
    spent = CallTotals(prompt=20, completion=10, cost=0.5)
    assert budget(cost=2.0, tokens=100).share_of(spent) == 0.3
    assert budget(cost=1.0, tokens=100).share_of(spent) == 0.5
    assert budget(minutes=1.0).share_of(spent) == 0.0


def test_room_is_kept_for_calls_in_flight() -> None:
    async def go() -> list[str]:
        one, seen = budget(tokens=100), list[str]()
        large = CallTotals(prompt=60)

        async def call(name: str, spends: int) -> None:
            try:
                async with one.room(large):
                    seen.append(f"{name} begins")
                    await asyncio.sleep(0)
                    one.add(CallTotals(prompt=spends))
                    seen.append(f"{name} ends")
            except BudgetSpentError:
                seen.append(f"{name} is refused")

        await asyncio.gather(call("a", 30), call("b", 30), call("c", 50), call("d", 1))
        return seen

    # Two begin, because the first leaves room: 60 are less than 100.
    assert asyncio.run(go()) == [
        "a begins", "b begins", "a ends", "b ends", "c begins", "c ends", "d is refused",
    ]  # fmt: skip


def test_other_processes_are_taken_for_four_times_as_fast(clock: list[float]) -> None:
    shared = budget(processes=3, tokens=100)
    assert shared._fits()
    shared._reserved = CallTotals(prompt=11)
    assert shared._fits(), "11 * (1 + 4 * 2) are 99"
    shared._reserved = CallTotals(prompt=12)
    assert not shared._fits()
    shared._reserved, shared._since = CallTotals(), CallTotals(prompt=12)
    assert shared._fits()
    shared._since = CallTotals(prompt=13)
    assert not shared._fits()


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("http://localhost:1/v1", True), ("http://a.localhost", True), ("http://box.local", True), ("http://127.0.0.1", True),
        ("http://10.1.2.3", True), ("http://[::1]:3", True), ("https://api.example.com", False), ("http://8.8.8.8", False),
        ("local", False), ("http://mylocal", False),
    ],
)  # fmt: skip
def test_which_addresses_are_private(url: str, private: bool) -> None:
    assert is_private(url) is private


def test_a_cell_is_hopeless_after_twelve_unread_replies_of_two_subjects() -> None:
    def after(*seen: tuple[int, bool], to_repeat: int = 0) -> tuple[bool, bool, int]:
        hope = Hope(to_repeat=to_repeat)
        for subject, unread in seen:
            hope.see(subject, unread)
        return hope.enough, hope.gone, hope.unread

    alone, other, read = (0, True), (1, True), (1, False)
    assert after(*[alone] * 20) == (False, False, 20)
    assert after(*[alone] * 10, other) == (False, False, 11)
    assert after(*[alone] * 11, other) == (True, True, 12)
    assert after(*[alone] * 11, other, to_repeat=1) == (True, False, 12)
    assert after(*[alone] * 11, other, read, alone) == (False, False, 12)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def channel(clock: list[float], told: list[str]) -> ModelChannel:
    return ModelChannel(
        None, Limiter(4), told.append, patience=Patience(request=300.0, retries=2)
    )


def test_a_silent_server_is_told_from_one_that_answers(
    channel: ModelChannel, clock: list[float]
) -> None:
    assert (channel.silence, channel.trouble) == ("", "")
    assert channel.waited[0] == 0.0
    with channel.asks():
        clock[0] += 5
        with channel.asks():
            assert channel.waited[0] == 5.0
    assert channel.waited[0] == 0.0
    assert not channel.failed("busy")
    assert (channel.silence, channel.trouble) == (
        "busy",
        " while the server did not answer (busy)",
    )
    clock[0] += 900
    assert not channel.failed("still busy")
    clock[0] += 0.1
    assert channel.failed("gone")
    channel.lose("gone", silent=True)
    assert channel.stop_reason == ""
    channel.lose("gone", silent=False)
    assert channel.stop_reason == ""
    channel.lose("gone", silent=True)
    assert channel.stop_reason == "gone; there was no reply at all for 15 minutes"
    channel.answered()
    assert (channel.silence, channel.trouble, channel.has_replied) == ("", "", True)
    channel.failed("once")
    assert channel.silence == ""
    clock[0] += 59.9
    assert channel.silence == ""
    clock[0] += 0.1
    assert channel.silence == "once"


def test_replies_without_a_token_count_stop_a_budget(channel: ModelChannel) -> None:
    for tokens in (*[0] * 9, 3, *[0] * 9):
        channel.count(tokens)
    assert channel.stop_reason == ""
    channel.count(0)
    assert channel.stop_reason == calling.UNCOUNTABLE


def test_doubts_and_names_are_noted_once(channel: ModelChannel) -> None:
    def doubts(**changes: Any) -> list[str]:
        return channel.doubts(ChatReply(text="", **changes))

    assert doubts(model="a") == []
    assert doubts(model="a", doubt="1 and 2") == [
        "the server's token counts contradict one another: 1 and 2"
    ]
    assert doubts(model="b", doubt="3 and 4") == ["answered by several models: a, b"]
    assert doubts(model="b") == []
    for name in "cdefgh":
        assert len(doubts(model=name)) == 1
    assert doubts(model="i") == []
    assert channel.served_by == set("abcdefgh")


def test_retries_are_reported_once_a_minute(
    channel: ModelChannel, clock: list[float], told: list[str]
) -> None:
    channel.retrying("short", 1, None, 1.49)
    channel.retrying("busy", 1, None, 1.5)
    channel.retrying("busy", 2, None, 9.0)
    clock[0] += 60
    channel.retrying("down", 2, 6, 30.4)
    assert told == [
        "busy; retry 1 in 2 s, for at most 15 minutes without any reply",
        "down; retry 2 of 6 in 30 s",
    ]


SLOW = (
    ". Each may take 300 s (--cheese-timeout), or longer while a server reports progress. --reply-tokens makes replies "
    "shorter."
)
FAILED = "). Calls are tried again, with pauses, for at most 15 minutes without any reply. --max-minutes ends that sooner."
LIMITED = (
    "). The server limits the rate, so calls are tried again, with pauses, for at most 15 minutes without any reply. "
    "--max-minutes ends that sooner, and a lower --concurrency asks less at a time."
)


@pytest.mark.parametrize(
    ("kind", "rest"),
    [
        ("timeout", f"){SLOW}"),
        ("rate_limit", LIMITED),
        ("overload", LIMITED),
        ("server", FAILED),
    ],
)  # fmt: skip
def test_a_wait_names_its_limit_and_what_fits_its_cause(
    channel: ModelChannel, kind: Any, rest: str
) -> None:
    assert channel.waited[1] == SLOW
    channel.failed(calling.said(fault(kind, "busy.")))
    assert channel.waited[1] == f" ({kind.replace('_', ' ')}: busy{rest}"
    channel.answered()
    assert channel.waited[1] == SLOW, "a fault before the last reply is not its cause"


def fault(
    kind: Any = "server",
    text: str = "bad",
    after: float | None = None,
    refused: bool = False,
) -> ChatFaultError:
    found = ChatFaultError(kind, text, after)
    found.refused = refused
    return found


def pauses(
    channel: ModelChannel, *faults: ChatFaultError, in_flight: float = 0.0
) -> list[float | None]:
    attempts, found = Attempts(channel, "seed"), list[float | None]()
    for one in faults:
        attempts.number += 1
        found.append(attempts.pause_after(one, in_flight))
    return found


def test_pauses_double_and_retries_end(channel: ModelChannel) -> None:
    first, second, third = pauses(channel, fault(), fault(), fault())
    assert first is not None
    assert second is not None
    assert 0.5 <= first <= 1.0
    assert 1.0 <= second <= 2.0
    assert third is None
    many = pauses(channel, *[fault("rate_limit")] * 12)
    assert all(one is not None for one in many)
    assert 30 <= (many[-1] or 0) <= 60
    assert (many[6] or 0) <= 60
    assert pauses(channel, fault(after=7.0))[0] == 7.0
    assert pauses(channel, fault("rate_limit", after=901.0)) == [None]
    assert pauses(channel, fault("rate_limit", after=900.0))[0] == 900.0
    assert pauses(channel, fault("rate_limit", after=800.0), in_flight=100.5) == [None]
    channel.patience = Patience(request=500.0, retries=2)
    assert pauses(channel, fault("rate_limit", after=999.0))[0] == 999.0
    assert (
        pauses(channel, *[fault(refused=True, kind="connection")] * 5)[-1] is not None
    )
    assert pauses(channel, *[fault(kind="connection")] * 3)[-1] is None
    assert pauses(channel, fault("bad_request")) == [None]


def test_faults_of_the_account_pass_only_if_the_server_has_answered(
    channel: ModelChannel,
) -> None:
    assert pauses(channel, fault("authentication")) == [None]
    channel.has_replied = True
    channel.patience = Patience(retries=9)
    found = pauses(channel, *[fault("authentication")] * 3)
    assert [one is None for one in found] == [False, False, True]
    attempts = Attempts(channel, "seed")
    for one in (fault("malformed"), fault("malformed"), fault("rate_limit")):
        attempts.pause_after(one, 0.0)
    assert (attempts.malformed, attempts.faults) == (2, 2)


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("rate_limit", "slow down", "rate limit: slow down"),
        ("context_too_long", "too long", "too long. Shorten prompts with --history N, or replies"),
        ("bad_request", "system role not supported", "drops: [system]"),
        ("bad_request", "tools are unknown", "Try --agent llm, which needs no tools."),
        ("bad_request", "json_schema?", "Try --agent llm, which asks for no output format."),
        ("server", "temperature must be 1", "Try --temperature none, which leaves it to the server."),
        ("bad_request", "unsupported parameter max_tokens", "drops: [max_tokens]"),
        ("bad_request", "max_tokens is too large", "Set the limit with --reply-tokens N."),
        ("bad_request", "max_tokens: the limit has been reached for your organization", "Raise the limit at"),
        ("bad_request", "reasoning_effort", "Change or remove --reasoning-effort."),
        ("bad_request", "top_p", "Change or remove --top-p."),
        ("bad_request", "seed", "drops: [seed]"),
        ("bad_request", "no vision", "Choose a text view (--view ascii_2d)."),
        ("authentication", "temperature", "authentication: temperature"),
        ("bad_request", "what", "bad request: what"),
        ("bad_request", "temperature, 'drops: [x]'", "bad request: temperature, 'drops: [x]'"),
    ],
)  # fmt: skip
def test_a_fault_is_said_with_a_remedy(kind: Any, text: str, words: str) -> None:
    found = said(fault(kind, text))
    assert found.startswith(f"{kind.replace('_', ' ')}: {text}")
    assert words in found
    if words.startswith(kind.replace("_", " ")):
        assert found == words


def test_what_a_reply_says_is_quoted() -> None:
    def reply(text: str = "", **changes: Any) -> str:
        return _said_in(ChatReply(text=text, **changes))

    assert reply(" a ") == "a"
    assert reply("a", reasoning="b") == "a"
    assert reply(" ", reasoning=" b ") == "b"
    assert reply(finish="unread") == "(a call that the server could not read)"
    assert reply(finish="length", usage=Usage(reasoning=3)) == "(cut off)"
    assert reply(finish="length") == ""
    assert reply(usage=Usage(reasoning=3)) == ""


def test_reasoning_that_was_cut_off_is_no_answer() -> None:
    base = CellPlan(
        model="m", protocol="p", view="v", title="", dimension="", species="", sha256="0", design="cohort", subjects=1,
        trials=1, memory="life", settings={"reasoning": True},
    )  # fmt: skip
    cut = ChatReply(text="hm", finish="length")
    assert (_thoughts_apart(cut, base).text, _thoughts_apart(cut, base).reasoning) == (
        "",
        "hm",
    )
    for reply in (
        ChatReply(text="hm", finish="stop"),
        ChatReply(text="hm", reasoning="x", finish="length"),
    ):
        assert _thoughts_apart(reply, base) is reply


class Slow:
    """A connection whose server is active for a while, and then answers or is idle."""

    def __init__(self, active: int, answers: bool) -> None:
        self.left, self.answers = active, answers
        self.over = asyncio.Event()

    async def complete(self, one: ChatRequest) -> ChatReply:
        await self.over.wait()
        return ChatReply(text=f"{one.timeout:g}")

    async def progress(self) -> object:
        self.left -= 1
        if self.left <= 0 and self.answers:
            self.over.set()
        return max(0, self.left)


def test_an_active_server_may_take_longer() -> None:
    async def ask(active: int, answers: bool) -> str:
        connection: Any = Slow(active, answers)
        return (await in_time(connection, request(), 0.005, 60.0)).text

    assert asyncio.run(ask(4, answers=True)) == "60"
    with pytest.raises(TimeoutError):
        asyncio.run(ask(4, answers=False))


def test_a_limit_rises_with_replies_and_halves_with_objections(
    clock: list[float],
) -> None:
    limiter = Limiter(40, start=2)
    assert (limiter.limit, Limiter(4).limit) == (2, 4)
    limiter.succeeded()
    assert limiter.limit == 2, "not all of it was in use"
    limiter.in_flight = 1
    limiter.succeeded()
    assert limiter.limit == 3
    limiter.in_flight = 39
    for _ in range(50):
        limiter.succeeded()
    assert limiter.limit == 40
    limiter.in_flight = 20
    limiter.objected(None)
    assert (limiter.limit, limiter.throttled) == (10, 1), "half of what was in flight"
    limiter.objected(3.0)
    assert limiter.limit == 10, "within a second"
    clock[0] += 1.0
    limiter.objected(1.0)
    assert limiter.limit == 5
    limiter.succeeded()
    assert limiter.limit == 5, "slower from now on"
    for _ in range(5):
        limiter.succeeded()
    assert limiter.limit == 6
    assert limiter._paused_until == 1003.0
    limiter.lower(3)
    assert (limiter.limit, limiter.most) == (3, 3)
    limiter.lower(9)
    assert limiter.most == 3


def test_a_call_that_is_cancelled_as_it_is_admitted_leaves_its_slot_to_the_next() -> (
    None
):
    async def go() -> list[str]:
        limiter, seen = Limiter(1), list[str]()

        async def call(name: str) -> None:
            async with limiter.slot():
                seen.append(name)

        async with limiter.slot():
            first, second = (asyncio.ensure_future(call(name)) for name in "ab")
            await asyncio.sleep(0)
        # The first is admitted, but has not noticed.
        assert limiter.in_flight == 1
        first.cancel()
        await asyncio.wait([first, second], timeout=10)
        assert (first.cancelled(), limiter.in_flight) == (True, 0)
        return seen

    assert asyncio.run(go()) == ["b"]


def test_a_single_call_may_exceed_what_is_left_of_a_budget() -> None:
    async def go() -> None:
        one = budget(tokens=10)
        async with one.room(CallTotals(prompt=60)):
            assert not one._fits()

    asyncio.run(go())


def plan_of(**changes: Any) -> CellPlan:
    return CellPlan(
        model="m", protocol="p", view="v", title="", dimension="", species="", sha256="0", design="cohort", subjects=2,
        trials=1, memory="life", agent="llm", **changes,
    )  # fmt: skip


def caller(channel: ModelChannel, **changes: Any) -> Caller:
    """A caller that reads no log."""
    nothing: Any = None
    return Caller(channel, nothing, nothing, budget(), plan_of(), 0, **changes)


def stopped_by(work: Callable[[], Any]) -> str:
    with pytest.raises(SubjectStoppedError) as caught:
        asyncio.run(work())
    return str(caught.value)


def test_nothing_is_asked_for_a_cell_that_is_decided_or_hopeless(
    channel: ModelChannel,
) -> None:
    decided = caller(channel, stopped=True)
    assert stopped_by(lambda: decided.ask(0, request())) == "the cell is decided"
    assert stopped_by(lambda: decided._ask(request())) == "the cell is decided"
    hope = channel.hopes[plan_of().key] = Hope()
    for number in range(12):
        hope.see(number % 2, True)
    said = "none of 12 replies of 2 subjects could be read"
    assert stopped_by(lambda: caller(channel)._ask(request())) == said
    channel.replaying = True
    caller(channel)._check_stopped()


def test_no_call_is_made_after_the_end_of_a_channel_or_of_a_trial(
    channel: ModelChannel,
) -> None:
    channel.hopes[plan_of().key] = Hope()
    late = caller(channel, _seconds_in_flight=3600.0)
    assert stopped_by(lambda: late._ask(request())) == (
        "the calls of one trial took more than 3600 s (--trial-timeout)"
    )
    channel.stop("gone")
    assert stopped_by(lambda: caller(channel)._ask(request())) == "gone"


def test_a_call_without_a_reply_counts_against_the_server(told: list[str]) -> None:
    # Of a channel whose clock runs.
    slow: Any = Slow(1, answers=False)
    channel = ModelChannel(
        slow, Limiter(4), told.append, patience=Patience(request=0.005)
    )
    channel.hopes[plan_of().key] = Hope()
    with pytest.raises(ChatFaultError, match=r"^no reply within 0.005 s$") as caught:
        asyncio.run(caller(channel)._ask(request()))
    assert caught.value.kind == "timeout"
    assert (channel.limiter.throttled, channel.in_flight) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "after", "pause"),
    [("timeout", None, 0.0), ("timeout", 9.0, 0.0), ("rate_limit", 9.0, 9.0), ("rate_limit", None, 0.0),
     ("rate_limit", 900.0, 900.0), ("rate_limit", 901.0, 0.0), ("server", 9.0, None)],
)  # fmt: skip
def test_a_wish_of_the_server_holds_up_all_calls_unless_it_is_too_long(
    channel: ModelChannel,
    clock: list[float],
    kind: Any,
    after: float | None,
    pause: float | None,
) -> None:
    caller(channel)._slow_down(fault(kind, after=after))
    assert channel.limiter.throttled == (pause is not None)
    assert channel.limiter._paused_until == (clock[0] + pause if pause else 0.0)


def test_a_spent_budget_is_told_from_a_server_that_was_silent(
    channel: ModelChannel, clock: list[float]
) -> None:
    spent = BudgetSpentError("all is spent")

    def told() -> tuple[type, str]:
        found = caller(channel)._unanswered(spent)
        return type(found), str(found)

    assert told() == (BudgetSpentError, "all is spent")
    channel.failed("busy")
    assert told() == (
        SubjectStoppedError,
        "busy; no reply came before the limit: all is spent",
    )
    channel.answered()
    channel.failed("busy")
    assert told() == (
        BudgetSpentError,
        "all is spent while the server did not answer (busy)",
    )


def test_a_program_is_never_given_up() -> None:
    nothing: Any = None
    assert not is_given_up(nothing, dataclasses.replace(plan_of(), agent=""))


def test_a_call_made_early_is_recorded_as_it_will_be_read(log: RunLog) -> None:
    price = Price(prompt=2.0, completion=10.0, on=date(2026, 1, 1))
    reply = ChatReply(
        text="hm\ud800",
        finish="length",
        usage=Usage(prompt=50, completion=7),
        doubt="?",
    )
    thinking = plan_of(settings={"reasoning": True})
    asked = request("Where?")
    found = early_record(log, thinking, (2, 1), asked, reply, price, seconds=1.5)
    assert (found.trial, found.call, found.digest) == (2, 1, digest(asked))
    assert (found.reply.text, found.reply.reasoning) == ("", "hm?")
    assert (found.reply.doubt, found.seconds, found.asked) == ("", 1.5, "Where?")
    assert found.cost == pytest.approx((50 * 2 + 7 * 10) / 1e6)
    free = early_record(log, plan_of(), (0, 0), asked, reply, None)
    assert (free.cost, free.reply.text) == (None, "hm?")
