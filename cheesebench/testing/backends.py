"""Rules for backends, checked against a server that misbehaves like real ones."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, get_args

from cheesebench.chat import (
    BackendSpec,
    Capabilities,
    ChatReply,
    Connection,
    Finish,
    Usage,
)
from cheesebench.errors import UnknownNameError
from cheesebench.experiment.connections import is_count
from cheesebench.redaction import quoted
from cheesebench.testing.backend_calls import KEY, BackendCase, Outcome, ask, until
from cheesebench.testing.backend_faults import NO_RETRIES, add_first, add_last
from cheesebench.testing.backend_requests import add_requests
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from cheesebench.testing.heartbeat import standstill
from cheesebench.testing.rules import DECLARATION, BreachError, Broken, Rules, assert_none, need

#: Calls that are in flight at once.
MANY = 32
#: Seconds that a call takes in which nothing may stand still.
UNDER_WAY = 0.25

#: For every backend, and for those that talk to a server.
RULES: Rules[BackendCase] = Rules()
SERVER_RULES: Rules[BackendCase] = Rules()
add_first(SERVER_RULES)


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
    for name in but:
        _check_name(name)
    case = BackendCase(
        spec=spec,
        model=model,
        server=server,
        key_env=key_env,
        options=options or {},
        patience=patience,
        but=frozenset(but),
    )
    found = RULES.broken(case, [name for name in but if name in RULES])
    if server is None or any(one.rule == DECLARATION for one in found):
        return found
    found += SERVER_RULES.broken(case, [name for name in but if name in SERVER_RULES])
    return sorted(found, key=lambda one: one.rule != NO_RETRIES)  # the cause before what may follow from it


def _check_name(name: str) -> None:
    """Raise UnknownNameError for what is no rule; a fault alone is not the name of its rule."""
    known = [*RULES, *SERVER_RULES]
    if name not in known:
        fault = f"fault: {name}"
        raise UnknownNameError("rule", name, known, whole=fault if fault in known else None)


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
    need(isinstance(spec, BackendSpec), f"is a {type(spec).__name__}, but a BackendSpec is expected")
    need(
        re.fullmatch(r"[a-z0-9][a-z0-9._-]*", spec.name),
        f"the name '{quoted(spec.name, 60)}' cannot be written as --model NAME/ID: use a-z, 0-9 and hyphens",
    )
    need(isinstance(spec.capabilities, Capabilities), "capabilities is not a Capabilities object")
    need(callable(spec.connect), "connect is not callable")
    need(spec.summary.strip(), "summary is empty: 'cheesebench list' shows it")
    options: Mapping[Any, Any] = spec.options
    words = all(isinstance(one, str) for pair in options.items() for one in pair)
    need(words, "options does not map names to descriptions")
    odd = sorted(set(case.options) - set(spec.options))
    need(not odd, f"the test passes the option '{', '.join(odd)}', which the backend does not declare")
    if spec.account is not None:
        with case.environment():
            account: Any = spec.account(case.context("http://127.0.0.1:9/v1"))
        need(isinstance(account, str) and account, "account returns no name")
        need(KEY not in account, "account contains the key, but accounts are shown")


@RULES.rule("replies")
def _replies(case: BackendCase) -> None:
    """Replies have the right types, also to what is hard to write down."""

    async def scene(connection: Connection) -> list[Outcome]:
        odd = ("\ud800 half a character", "\x00\x1b[31m", "x" * 50_000)
        return [await ask(connection, case.request(text)) for text in ("Which way?", *odd)]

    first, *others = _played(case, scene)
    need(isinstance(first, ChatReply), f"a plain question causes the fault: {first}")
    for reply in (first, *others):
        if isinstance(reply, ChatReply):
            _check_types(reply)


def _check_types(reply: ChatReply) -> None:
    for name in ("text", "reasoning", "model"):
        value = getattr(reply, name)
        need(isinstance(value, str), f"{name} is {type(value).__name__}, but text is expected")
        need("\ud800" not in value, f"{name} contains half a character (a lone surrogate), which no log can store")
    need(reply.finish in get_args(Finish), f"finish is '{quoted(str(reply.finish), 30)}'")
    need(isinstance(reply.usage, Usage), "usage is not a Usage object")
    for name, count in dataclasses.asdict(reply.usage).items():
        need(is_count(count), f"usage.{name} is {count!r}, but a number of tokens is expected")


@RULES.rule("concurrent calls")
def _many(case: BackendCase) -> None:
    """All calls are under way at the same time: none waits for another one."""
    if case.server is None:
        _many_alone(case)
        return

    gap, _ = case.play(
        Answer(text="ACTIONS: STAY", delay=UNDER_WAY),
        lambda connection, server: standstill(lambda: ask(connection, case.request()), UNDER_WAY),
    )
    case.blocks = gap > 0
    need(
        not gap,
        f"the event loop was blocked for {gap:.2f} s in `complete`, which blocks all other calls. Call the server with "
        "a library for asyncio, or in asyncio.to_thread",
    )

    async def scene(connection: Connection, server: FakeServer) -> int:
        tasks = [asyncio.ensure_future(ask(connection, case.request(f"call {i}"))) for i in range(MANY)]
        await until(lambda: server.in_flight == MANY or any(task.done() for task in tasks), case.patience / 2)
        reached = server.peak
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return reached

    reached, _ = case.play(Answer(fault="hang"), scene)
    need(reached == MANY, f"of {MANY} calls at once {reached} are in flight; CheeseBench sets the limit, not a backend")


def _many_alone(case: BackendCase) -> None:
    async def scene(connection: Connection) -> list[Outcome]:
        return list(await asyncio.gather(*(ask(connection, case.request(f"call {i}")) for i in range(MANY))))

    outcomes = case.play_alone(scene)
    lost = sum(not isinstance(one, ChatReply) for one in outcomes)
    need(not lost, f"of {MANY} calls at once {lost} cause a fault")


def _played(case: BackendCase, scene: Callable[[Connection], Any]) -> list[Outcome]:
    if case.server is None:
        found: list[Outcome] = case.play_alone(scene)
        return found
    found, _ = case.play("ACTIONS: STAY", lambda connection, server: scene(connection))
    return found


# -- backends that talk to a server


add_requests(SERVER_RULES)


@SERVER_RULES.rule("usage")
def _usage(case: BackendCase) -> None:
    usage = _reported_usage(case)
    counts = (usage.prompt, usage.completion)
    need(counts == (100, 20), f"100 tokens of prompt and 20 of reply are read as {counts[0]} and {counts[1]}")


@SERVER_RULES.rule("usage: cached")
def _cached(case: BackendCase) -> None:
    cached = _reported_usage(case).cached
    need(cached == 96, f"96 cached tokens of 100 are read as {cached}, so their cost would be wrong")


def _reported_usage(case: BackendCase) -> Usage:
    """Return the usage that is reported for a call with 100 tokens of prompt, 96 of them cached, and 20 of reply."""
    counted = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    answer = Answer(text="hm", usage=counted | {"prompt_tokens_details": {"cached_tokens": 96}})
    outcome, _ = case.play(answer, lambda connection, server: ask(connection, case.request()))
    if not isinstance(outcome, ChatReply):
        raise BreachError(f"a plain call causes the fault: {outcome}")
    return outcome.usage


@SERVER_RULES.rule("cut-off and empty replies")
def _odd_replies(case: BackendCase) -> None:
    cut, _ = case.play(
        Answer(text="ACTIONS: FOR", finish="length"), lambda connection, server: ask(connection, case.request())
    )
    need(isinstance(cut, ChatReply), f"a reply that ends at max_tokens causes the fault: {cut}")
    need(getattr(cut, "finish", "") == "length", "a reply that ends at max_tokens does not have finish 'length'")
    empty, _ = case.play(Answer(text=""), lambda connection, server: ask(connection, case.request()))
    need(isinstance(empty, ChatReply), f"an empty reply is behaviour of the model, not the fault: {empty}")
    need(getattr(empty, "text", "x") == "", "an empty reply is not read as empty")


@SERVER_RULES.rule("each call its own reply")
def _own_replies(case: BackendCase) -> None:
    def echo(call: Call) -> Answer:
        number = re.search(r"call (\d+);", json.dumps(call.body))
        return Answer(text=number[1] if number else "?", delay=0.01 * (call.number % 5))

    # If calls wait for one another, a few are enough: the rule above has reported it.
    many = 4 if case.blocks else MANY

    async def scene(connection: Connection, server: FakeServer) -> list[Outcome]:
        return list(await asyncio.gather(*(ask(connection, case.request(f"call {i};")) for i in range(many))))

    outcomes, _ = case.play(echo, scene)
    texts = [one.text if isinstance(one, ChatReply) else str(one) for one in outcomes]
    mixed = [i for i, text in enumerate(texts) if text != str(i)]
    need(not mixed, f"calls at once do not get their own replies: call {mixed[:1]} gets '{_shown(texts, mixed)}'")


def _shown(texts: list[str], mixed: list[int]) -> str:
    return quoted(texts[mixed[0]], 60) if mixed else ""


@SERVER_RULES.rule("no caching")
def _no_cache(case: BackendCase) -> None:
    async def scene(connection: Connection, server: FakeServer) -> list[Outcome]:
        return [await ask(connection, case.request()) for _ in range(3)]

    _, server = case.play("ACTIONS: STAY", scene)
    need(server.count == 3, f"3 equal calls reach the server {server.count} times: do not cache, CheeseBench does")


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
    need(isinstance(after, ChatReply), f"after a cancelled call the next one causes the fault: {after}")


@SERVER_RULES.rule("close")
def _close(case: BackendCase) -> None:
    async def scene(connection: Connection, server: FakeServer) -> list[Outcome]:
        return list(await asyncio.gather(*(ask(connection, case.request()) for _ in range(4))))

    case.play("ACTIONS: STAY", scene)
    left = case.left_open[-1]
    need(not left, f"after close() {left} connections to the server are still open")


add_last(SERVER_RULES)
