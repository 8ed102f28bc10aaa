"""What every backend must do: the rules, checked against a server that misbehaves as servers do."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, get_args

from cheesebench.chat import (
    BackendSpec,
    Capabilities,
    ChatFaultError,
    ChatReply,
    Connection,
    Finish,
    Message,
    Sampling,
    Usage,
)
from cheesebench.errors import UnknownNameError
from cheesebench.fake_server import Answer, Call, FakeServer
from cheesebench.redaction import quoted
from cheesebench.testing.backend_calls import KEY, SHORT, BackendCase, Outcome, ask, until
from cheesebench.testing.faults import FAULTS, Mishap
from cheesebench.testing.rules import DECLARATION, Broken, Rules, assert_none, need

#: Calls that are in flight at once.
MANY = 32
#: A PNG of one pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

#: For every backend, and for those that talk to a server.
RULES: Rules[BackendCase] = Rules()
SERVER_RULES: Rules[BackendCase] = Rules()


def broken_backend_rules(
    spec: BackendSpec,
    *,
    model: str = "tiny",
    server: Callable[..., FakeServer] | None = FakeServer,
    key_env: str = "",
    options: Mapping[str, Any] | None = None,
    but: Collection[str] = (),
    patience: float = 20.0,
) -> list[Broken]:
    """Return the rules that a backend breaks, in the order in which they are checked.

    ``server`` makes the server that it is pointed at with ``base_url``: FakeServer speaks OpenAI's protocol, a
    subclass of it another one; None is for a backend that calls no server (its calls are then only checked for what
    can be seen from outside). ``key_env`` names the environment variable from which it takes the key, ``options``
    are those of its BackendContext. ``but`` names rules that are left out, ``patience`` is in seconds: after that, a
    call counts as one that never ends.
    """
    case = BackendCase(spec=spec, model=model, server=server, key_env=key_env, options=options or {}, patience=patience)
    for name in but:
        if name not in (known := [*RULES, *SERVER_RULES]):
            raise UnknownNameError("rule", name, known)
    found = RULES.broken(case, [name for name in but if name in RULES])
    if server is None or any(one.rule == DECLARATION for one in found):
        return found
    return found + SERVER_RULES.broken(case, [name for name in but if name in SERVER_RULES])


def assert_backend_sound(
    spec: BackendSpec,
    *,
    model: str = "tiny",
    server: Callable[..., FakeServer] | None = FakeServer,
    key_env: str = "",
    options: Mapping[str, Any] | None = None,
    but: Collection[str] = (),
    patience: float = 20.0,
) -> None:
    """Raise AssertionError with the rules that a backend breaks; see ``broken_backend_rules`` for the arguments."""
    broken = broken_backend_rules(
        spec, model=model, server=server, key_env=key_env, options=options, but=but, patience=patience
    )
    assert_none(f"the backend '{getattr(spec, 'name', spec)}'", broken)


# -- every backend


@RULES.rule(DECLARATION)
def _declaration(case: BackendCase) -> None:
    spec = case.spec
    need(isinstance(spec, BackendSpec), f"is a {type(spec).__name__}, where a BackendSpec is expected")
    need(
        re.fullmatch(r"[a-z0-9][a-z0-9._-]*", spec.name),
        f"the name '{quoted(spec.name, 60)}' cannot be written as --model NAME/ID: take a-z, 0-9 and hyphens",
    )
    need(isinstance(spec.capabilities, Capabilities), "capabilities is no Capabilities")
    need(callable(spec.connect), "connect cannot be called")
    need(spec.summary.strip(), "summary is empty: 'cheesebench list' shows it")
    options: Mapping[Any, Any] = spec.options
    words = all(isinstance(one, str) for pair in options.items() for one in pair)
    need(words, "options does not map names to what they mean")
    odd = sorted(set(case.options) - set(spec.options))
    need(not odd, f"the test passes the option '{', '.join(odd)}', which the backend does not declare")
    if spec.account is not None:
        with case.environment():
            account: Any = spec.account(case.context("http://127.0.0.1:9/v1"))
        need(isinstance(account, str) and account, "account returns no name")
        need(KEY not in account, "account holds the key, and accounts are shown")


@RULES.rule("replies")
def _replies(case: BackendCase) -> None:
    """Replies have the right types, also to what is hard to write down."""

    async def scene(connection: Connection) -> list[Outcome]:
        odd = ("\ud800 half a character", "\x00\x1b[31m", "x" * 50_000)
        return [await ask(connection, case.request(text)) for text in ("Which way?", *odd)]

    first, *others = _played(case, scene)
    need(isinstance(first, ChatReply), f"a plain question brings the fault: {first}")
    for reply in (first, *others):
        if isinstance(reply, ChatReply):
            _check_types(reply)


def _check_types(reply: ChatReply) -> None:
    for name in ("text", "reasoning", "model"):
        value = getattr(reply, name)
        need(isinstance(value, str), f"{name} is {type(value).__name__}, where text is expected")
        need("\ud800" not in value, f"{name} holds half a character, which no log can take")
    need(reply.finish in get_args(Finish), f"finish is '{quoted(str(reply.finish), 30)}'")
    need(isinstance(reply.usage, Usage), "usage is no Usage")
    for name, count in dataclasses.asdict(reply.usage).items():
        need(isinstance(count, int) and count >= 0, f"usage.{name} is {count!r}, where a number of tokens is expected")


@RULES.rule("many at once")
def _many(case: BackendCase) -> None:
    """All calls are under way at the same time: none waits for another one."""
    if case.server is None:
        _many_alone(case)
        return

    async def scene(connection: Connection, server: FakeServer) -> int:
        tasks = [asyncio.ensure_future(ask(connection, case.request(f"call {i}"))) for i in range(MANY)]
        await until(lambda: server.in_flight == MANY or any(task.done() for task in tasks), case.patience / 2)
        reached = server.peak
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return reached

    reached, _ = case.play(Answer(fault="hang"), scene)
    need(reached == MANY, f"of {MANY} calls at once {reached} are under way; the harness sets the bound, not a backend")


def _many_alone(case: BackendCase) -> None:
    async def scene(connection: Connection) -> list[Outcome]:
        return list(await asyncio.gather(*(ask(connection, case.request(f"call {i}")) for i in range(MANY))))

    outcomes = case.play_alone(scene)
    lost = sum(not isinstance(one, ChatReply) for one in outcomes)
    need(not lost, f"of {MANY} calls at once {lost} bring a fault")


def _played(case: BackendCase, scene: Callable[[Connection], Any]) -> list[Outcome]:
    if case.server is None:
        found: list[Outcome] = case.play_alone(scene)
        return found
    found, _ = case.play("ACTIONS: STAY", lambda connection, server: scene(connection))
    return found


# -- backends that talk to a server


@SERVER_RULES.rule("what is said arrives")
def _messages(case: BackendCase) -> None:
    talk = (
        Message("system", ("be-a-mouse",)),
        Message("user", ("first-question",)),
        Message("assistant", ("first-answer",)),
        Message("user", ("second-question",)),
    )
    outcome, server = case.play(
        Answer(text="ACTIONS: FORWARD"), lambda connection, server: ask(connection, case.request(messages=talk))
    )
    need(isinstance(outcome, ChatReply), f"a plain call brings the fault: {outcome}")
    text = getattr(outcome, "text", "")
    need(text == "ACTIONS: FORWARD", f"the reply 'ACTIONS: FORWARD' is read as '{quoted(text, 60)}'")
    sent = json.dumps(server.calls[0].body)
    places = [sent.find(message.text) for message in talk]
    need(min(places) >= 0, f"'{talk[places.index(min(places))].text}' is not sent")
    need(places[1] < places[2] < places[3], "the messages are not sent in their order")
    # Of PROVIDER/ID some libraries send the second half.
    need(case.model.rpartition("/")[2] in sent, f"the model's id '{case.model}' is not sent")


@SERVER_RULES.rule("parameters")
def _parameters(case: BackendCase) -> None:
    """What is set is sent, or declared as not supported; what is None is left to the server."""
    sampling = Sampling(temperature=0.625, max_tokens=217, seed=90210, stop=("END-7",))
    request = case.request(sampling=sampling, extra={"top_p": 0.375})

    async def scene(connection: Connection, server: FakeServer) -> tuple[Outcome, Outcome]:
        return await ask(connection, request), await ask(connection, case.request())

    outcomes, server = case.play("ACTIONS: STAY", scene)
    for outcome in outcomes:
        need(isinstance(outcome, ChatReply), f"a call with parameters brings the fault: {outcome}")
    able, body = case.spec.capabilities, server.calls[0].body
    declared = {"temperature": able.temperature, "seed": able.seed, "stop": able.stop}
    wanted = {"temperature": 0.625, "max_tokens": 217, "seed": 90210, "stop": "END-7", "top_p": 0.375}
    lost = [name for name, value in wanted.items() if declared.get(name, True) and not holds(body, value)]
    remedy = "send it, or say so: Capabilities(temperature=..., seed=..., stop=...)"
    need(not lost, f"{', '.join(lost)} {'is' if len(lost) == 1 else 'are'} not sent; {remedy}")
    unasked = [name for name in ("temperature", "seed") if server.calls[1].body.get(name) is not None]
    need(not unasked, f"{', '.join(unasked)} is sent though it is None, which leaves it to the server")


def holds(body: object, value: object) -> bool:
    """Return whether a value stands anywhere in a body, under whatever name."""
    if isinstance(body, Mapping):
        return any(holds(inner, value) for inner in body.values())
    if isinstance(body, list):
        return any(holds(inner, value) for inner in body)
    return body == value


@SERVER_RULES.rule("pictures")
def _pictures(case: BackendCase) -> None:
    if not case.spec.capabilities.images:
        return
    message = Message("user", ("look: ", PIXEL, " well?"))
    outcome, server = case.play(
        "ACTIONS: STAY", lambda connection, server: ask(connection, case.request(messages=(message,)))
    )
    need(isinstance(outcome, ChatReply), f"a message with a picture brings the fault: {outcome}")
    sent = base64.b64encode(PIXEL).decode() in json.dumps(server.calls[0].body)
    need(sent, "the picture is not sent as base64; send it, or declare Capabilities(images=False)")


@SERVER_RULES.rule("usage")
def _usage(case: BackendCase) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 96},
    }
    outcome, _ = case.play(Answer(text="hm", usage=usage), lambda connection, server: ask(connection, case.request()))
    need(isinstance(outcome, ChatReply), f"a plain call brings the fault: {outcome}")
    if isinstance(outcome, ChatReply):
        counts = (outcome.usage.prompt, outcome.usage.completion, outcome.usage.cached)
        need(counts == (100, 20, 96), f"100 tokens of prompt (96 cached) and 20 of reply are read as {counts}")


@SERVER_RULES.rule("cut-off and empty replies")
def _odd_replies(case: BackendCase) -> None:
    cut, _ = case.play(
        Answer(text="ACTIONS: FOR", finish="length"), lambda connection, server: ask(connection, case.request())
    )
    need(isinstance(cut, ChatReply), f"a reply that ends at max_tokens brings the fault: {cut}")
    need(getattr(cut, "finish", "") == "length", "a reply that ends at max_tokens does not have finish 'length'")
    empty, _ = case.play(Answer(text=""), lambda connection, server: ask(connection, case.request()))
    need(isinstance(empty, ChatReply), f"an empty reply is behaviour, not the fault: {empty}")
    need(getattr(empty, "text", "x") == "", "an empty reply is not read as empty")


@SERVER_RULES.rule("own replies")
def _own_replies(case: BackendCase) -> None:
    def echo(call: Call) -> Answer:
        number = re.search(r"call (\d+);", json.dumps(call.body))
        return Answer(text=number[1] if number else "?", delay=0.01 * (call.number % 5))

    async def scene(connection: Connection, server: FakeServer) -> list[Outcome]:
        return list(await asyncio.gather(*(ask(connection, case.request(f"call {i};")) for i in range(MANY))))

    outcomes, _ = case.play(echo, scene)
    texts = [one.text if isinstance(one, ChatReply) else str(one) for one in outcomes]
    mixed = [i for i, text in enumerate(texts) if text != str(i)]
    need(not mixed, f"calls at once do not get their own replies: call {mixed[:1]} gets '{_shown(texts, mixed)}'")


def _shown(texts: list[str], mixed: list[int]) -> str:
    return quoted(texts[mixed[0]], 60) if mixed else ""


@SERVER_RULES.rule("nothing is kept")
def _no_cache(case: BackendCase) -> None:
    async def scene(connection: Connection, server: FakeServer) -> list[Outcome]:
        return [await ask(connection, case.request()) for _ in range(3)]

    _, server = case.play("ACTIONS: STAY", scene)
    need(server.count == 3, f"3 equal calls reach the server {server.count} times: never cache, the harness does")


@SERVER_RULES.rule("cancellation")
def _cancellation(case: BackendCase) -> None:
    async def scene(connection: Connection, server: FakeServer) -> tuple[bool, bool, Outcome]:
        task = asyncio.ensure_future(ask(connection, case.request("hang")))
        await until(lambda: server.in_flight == 1 or task.done(), case.patience / 2)
        task.cancel()
        await asyncio.wait([task], timeout=case.patience / 4)
        ended = task.done() and (task.cancelled() or task.exception() is not None)
        freed = await until(lambda: server.in_flight == 0, case.patience / 4)
        return ended, freed, await ask(connection, case.request("go on"))

    def script(call: Call) -> Answer:
        return Answer(fault="hang") if call.number == 0 else Answer(text="fine")

    (ended, freed, after), server = case.play(script, scene)
    need(ended, "a call that is cancelled goes on: let CancelledError pass")
    need(freed and server.given_up == 1, "a call that is cancelled keeps its connection to the server open")
    need(isinstance(after, ChatReply), f"after a cancelled call the next one brings the fault: {after}")


@SERVER_RULES.rule("close")
def _close(case: BackendCase) -> None:
    async def scene(connection: Connection, server: FakeServer) -> list[Outcome]:
        return list(await asyncio.gather(*(ask(connection, case.request()) for _ in range(4))))

    case.play("ACTIONS: STAY", scene)
    left = case.left_open[-1]
    need(not left, f"after close() {left} connections to the server are still open")


def _mishap(case: BackendCase, mishap: Mishap) -> tuple[Outcome | None, int]:
    """Return what a call came to whose first attempt meets this mishap, and the number of attempts."""
    if mishap.name not in case.kept:
        timeout = SHORT if mishap.kinds == {"timeout"} else case.patience
        outcome, server = case.play(
            [mishap.answer, "and all is well"],
            lambda connection, server: ask(connection, case.request(timeout=timeout)),
        )
        case.kept[mishap.name] = outcome, server.count
    return case.kept[mishap.name]


def _rule_of(mishap: Mishap) -> None:
    @SERVER_RULES.rule(f"fault: {mishap.name}")
    def check(case: BackendCase) -> None:
        outcome, _ = _mishap(case, mishap)
        kinds = " or ".join(sorted(mishap.kinds))
        if not isinstance(outcome, ChatFaultError):
            need(False, f"{mishap.what} is read as a reply; it is the fault '{kinds}'")
            return
        need(outcome.kind in mishap.kinds, f"{mishap.what} is told as '{outcome.kind}'; it is '{kinds}' ({outcome})")
        need(str(outcome).strip(), f"{mishap.what} is told without a word")
        need(len(str(outcome)) < 1000, f"{mishap.what} is told in {len(str(outcome))} characters: shorten it")
        if mishap.retry_after is not None:
            wish = outcome.retry_after
            heard = wish is not None and abs(wish - mishap.retry_after) < 0.5
            need(heard, f"the server's Retry-After of {mishap.retry_after:g} s is told as {wish}")


for _one in FAULTS:
    _rule_of(_one)


@SERVER_RULES.rule("no retries")
def _no_retries(case: BackendCase) -> None:
    counts = {mishap.name: _mishap(case, mishap)[1] for mishap in FAULTS}
    retried = [f"{name} ({count} requests)" for name, count in counts.items() if count > 1]
    need(not retried, f"asks again by itself: {', '.join(retried)}. One call is one request: the harness tries again")


@SERVER_RULES.rule("no key in what is told")
def _no_key(case: BackendCase) -> None:
    if not case.key_env:
        return
    echoes = (
        Answer(status=401, error={"message": f"Incorrect API key provided: {KEY}"}),
        Answer(status=500, error={"message": "x" * 285 + KEY}),
        Answer(status=400, body=f"oh {KEY}".encode()),
        Answer(body=f"<html>{KEY}".encode()),
    )
    for answer in echoes:
        outcome, server = case.play(answer, lambda connection, server: ask(connection, case.request()))
        sent = any(KEY in value for value in server.calls[0].headers.values()) if server.calls else False
        need(sent, f"the key in {case.key_env} is not sent in a header, so nothing is known of where it goes")
        # Half a key is a secret, too: a text that is shortened first and searched afterwards keeps it.
        need(KEY[:12] not in str(outcome), "a fault's text holds the key that the server has echoed")
