"""Rules for backends, checked against a server that misbehaves like real ones."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import io
import json
import logging
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args
from urllib.parse import urlsplit

from cheesebench.amounts import duration
from cheesebench.chat import (
    BackendContext,
    BackendSpec,
    Capabilities,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    FaultKind,
    Finish,
    Message,
    ModelEntry,
    Sampling,
    Usage,
)
from cheesebench.errors import UnknownNameError
from cheesebench.experiment.language_models import is_count
from cheesebench.redaction import quoted
from cheesebench.testing.fake_server import Answer, Call, FakeServer, Script
from cheesebench.testing.rules import (
    DECLARATION,
    BreachError,
    Broken,
    Rules,
    assert_none,
    need,
)

#: ``TICK``: seconds between wake-ups. ``GAP``: number of seconds by which a stall may
#: exceed what is usual on this machine.
TICK, GAP = 0.005, 0.1
#: Number of calls that are timed. The loop counts as blocked if it stalls in at least
#: ``CALLS - 1`` of them, because a single slow call proves nothing.
CALLS = 6
#: Timing ends early if each of the first ``ENOUGH`` calls stalls for over ``LONG``
#: seconds more than is usual on this machine.
ENOUGH, LONG = 3, 0.5


class LoopStalls:
    """Measures the stalls of an event loop with a task that wakes up continually and
    records delays.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._longest = 0.0

    async def __aenter__(self) -> LoopStalls:
        self._last = time.monotonic()
        self._task = asyncio.create_task(self._wake())
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    def longest(self) -> float:
        """Return the longest time (in seconds) between wake-ups since this method was
        last called.
        """
        self._note()
        found, self._longest = self._longest, 0.0
        return found

    async def _wake(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._note()

    def _note(self) -> None:
        now = time.monotonic()
        self._longest, self._last = max(self._longest, now - self._last), now


async def standstill(call: Callable[[], Awaitable[object]], seconds: float) -> float:
    """Return the seconds for which the loop stalls in a call that takes ``seconds``.
    Return 0.0 if it does not stall.

    A busy machine makes every loop stall at times. So a stall counts only if it is
    longer than the longest stall without calls, and occurs in nearly all of several
    calls. The first call is not timed, because it may import anything.
    """
    await call()
    gaps: list[float] = []
    async with LoopStalls() as stalls:
        await asyncio.sleep(seconds)
        usual = stalls.longest()
        for _ in range(CALLS):
            await call()
            gaps.append(stalls.longest())
            if len(gaps) == ENOUGH and min(gaps) > LONG + usual:
                return min(gaps)
        await asyncio.sleep(seconds)
        usual = max(usual, stalls.longest())
    gap = sorted(gaps)[1]
    return gap if gap > GAP + usual else 0.0


def texts_of(error: BaseException) -> Iterator[str]:
    """Yield the texts of an error, its notes and its causes, if a traceback would show
    them.
    """
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield str(one)
        yield from getattr(one, "__notes__", ())
        # A cause suppressed by ``from None`` is not displayed.
        waiting += [
            one.__cause__,
            None if one.__suppress_context__ else one.__context__,
        ]
        waiting += getattr(one, "exceptions", ())


@contextlib.contextmanager
def key_disclosures(secret: str, heard: list[str]) -> Iterator[None]:
    """Append to ``heard`` each place that discloses ``secret``: standard output,
    standard error or a logging record.

    Text that is printed in the block appears at its end. Logging records of all levels
    count, because any level can be turned on.
    """
    ears, root = _Ears(secret, heard), logging.getLogger()
    out, err, level = io.StringIO(), io.StringIO(), root.level
    root.addHandler(ears)
    root.setLevel(logging.DEBUG)
    loggers = [
        one
        for one in logging.root.manager.loggerDict.values()
        if isinstance(one, logging.Logger) and one.level
    ]
    levels = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
    others = [
        (handler, handler.level) for handler in root.handlers if handler is not ears
    ]
    for handler, own in others:
        handler.setLevel(max(own, level))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield
    finally:
        root.removeHandler(ears)
        root.setLevel(level)
        for handler, own in others:
            handler.setLevel(own)
        for logger, own in levels:
            logger.setLevel(own)
        for name, stream, said in (
            ("output", sys.stdout, out),
            ("error", sys.stderr, err),
        ):
            stream.write(said.getvalue())
            if secret in said.getvalue():
                heard.append(f"the text on standard {name}")


class _Ears(logging.Handler):
    def __init__(self, secret: str, heard: list[str]) -> None:
        super().__init__()
        self._secret, self._heard = secret, heard

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = logging.Formatter().format(record)
        except Exception:  # A record that cannot be formatted may hold the key, too.
            text = f"{record.msg} {record.args}"
        if self._secret in text:
            self._heard.append(
                f"a record of the logger '{record.name}' ({record.levelname})"
            )


@dataclass(frozen=True, slots=True)
class Mishap:
    """A way in which a call fails: the server's behaviour, and the allowed outcomes. If
    ``refused`` is true, there is no server at all.
    """

    name: str
    what: str
    answer: Answer
    kinds: frozenset[FaultKind]
    retry_after: float | None = None
    refused: bool = False


def _kinds(*kinds: FaultKind) -> frozenset[FaultKind]:
    return frozenset(kinds)


def _refusal(status: int, message: str, code: str = "", **headers: str) -> Answer:
    error = {"message": message, **({"code": code} if code else {})}
    return Answer(
        status=status,
        error=error,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


#: The mishaps to rehearse, in this order.
FAULTS = (
    Mishap(
        *("rate limit", "status 429"),
        _refusal(429, "Rate limit reached.", "rate_limit_exceeded", Retry_After="2"),
        _kinds("rate_limit"),
        retry_after=2.0,
    ),
    Mishap(
        *("quota", "status 429 that mentions the quota"),
        _refusal(
            429,
            "You exceeded your current quota, please check your plan.",
            "insufficient_quota",
        ),
        _kinds("quota"),
    ),
    Mishap(
        "overload",
        "status 503",
        _refusal(503, "The server is overloaded."),
        _kinds("overload"),
    ),
    Mishap(
        "server error",
        "status 500",
        _refusal(500, "Internal server error."),
        _kinds("server"),
    ),
    Mishap(
        "time-out",
        "a server that never answers",
        Answer(fault="hang"),
        _kinds("timeout"),
    ),
    Mishap(
        "drip",
        "a reply that comes byte by byte",
        Answer(fault="drip", text="x" * 300),
        _kinds("timeout"),
    ),
    Mishap(
        "refused",
        "a connection that is refused",
        Answer(),
        _kinds("connection"),
        refused=True,
    ),
    Mishap(
        "reset",
        "a connection that is reset",
        Answer(fault="reset"),
        _kinds("connection"),
    ),
    Mishap(
        *("truncated", "a connection that is reset in the middle of the reply"),
        Answer(fault="reset_in_body", text="x" * 999),
        _kinds("connection", "malformed"),
    ),
    Mishap(
        "not HTTP",
        "an answer that is not HTTP",
        Answer(fault="noise"),
        _kinds("malformed", "connection"),
    ),
    Mishap(
        "malformed",
        "an answer that is not JSON",
        Answer(body=b"\x00\xff<html>"),
        _kinds("malformed"),
    ),
    Mishap(
        "no body", "an answer without a body", Answer(body=b""), _kinds("malformed")
    ),
    Mishap(
        *("no reply", "a JSON object with no reply in it"),
        Answer(body={"unexpected": []}),
        _kinds("malformed", "server"),
    ),
    Mishap(
        *("authentication", "status 401"),
        _refusal(401, "Incorrect API key provided.", "invalid_api_key"),
        _kinds("authentication"),
    ),
    Mishap(
        *("unknown model", "status 404 for the model"),
        _refusal(404, "The model does not exist.", "model_not_found"),
        _kinds("unknown_model"),
    ),
    Mishap(
        *("context too long", "status 400 for a context that is too long"),
        _refusal(
            400,
            "This model's maximum context length is 9 tokens.",
            "context_length_exceeded",
        ),
        _kinds("context_too_long"),
    ),
    Mishap(
        "bad request",
        "status 400",
        _refusal(400, "temprature: unknown field"),
        _kinds("bad_request"),
    ),
)


#: The test key. It must appear nowhere but at the server.
KEY = "key-4u-0123456789-conformance"
HALF_KEY = KEY[:12]
#: Timeout in seconds of a call that is meant to time out.
SHORT = 0.5

#: The result of a call.
Outcome = ChatReply | ChatFaultError
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class BackendCase:
    """A backend, and how to call it: see ``broken_backend_rules``.

    ``kept`` holds results shared by several rules: the outcomes of calls with a mishap,
    and their numbers of attempts.
    """

    spec: BackendSpec
    model: str
    server: Callable[..., FakeServer] | None
    key_env: str
    options: Mapping[str, Any]
    patience: float
    but: frozenset[str] = frozenset()
    kept: dict[str, tuple[Outcome | BreachError, int]] = field(default_factory=dict)
    left_open: list[int] = field(default_factory=list)
    """Number of connections to the server that remained after ``close()``, for each
    call of ``play``.
    """
    key_sent: bool = False
    """Whether a header sent to the server held the key."""
    heard: list[str] = field(default_factory=list)
    """Places that disclosed the key, in any call."""
    blocks: bool = False
    """Whether a call was found to block the event loop."""

    def request(self, *texts: str, **fields: Any) -> ChatRequest:
        messages = tuple(Message("user", (text,)) for text in texts or ("Which way?",))
        return replace(
            ChatRequest(model=self.model, messages=messages, timeout=self.patience),
            **fields,
        )

    def context(self, base_url: str | None) -> BackendContext:
        return BackendContext(
            entry=ModelEntry(name=self.model, backend=self.spec.name, id=self.model),
            directory=Path(tempfile.gettempdir()),
            base_url=base_url,
            options=self.options,
        )

    def play(
        self,
        script: str | Answer | Sequence[str | Answer] | Script,
        scene: Callable[[Connection, FakeServer], Awaitable[T]],
    ) -> tuple[T, FakeServer]:
        """Connect to a server that follows the script, run the scene, and close the
        connection. Return the scene's result and the server.
        """
        assert self.server is not None
        with self.environment(), self.server(script) as server:
            return self._in_thread(
                lambda connection: scene(connection, server), server
            ), server

    def play_refused(self, scene: Callable[[Connection], Awaitable[T]]) -> T:
        """Do as ``play`` does, for an address where no server listens any more."""
        assert self.server is not None
        with self.server("nobody") as gone:
            pass
        with self.environment():
            return self._in_thread(scene, None, gone.base_url)

    def play_alone(self, scene: Callable[[Connection], Awaitable[T]]) -> T:
        """Do as ``play`` does, for a backend without a server."""
        with self.environment():
            return self._in_thread(scene, None)

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Set the key's environment variable and disable proxies. Restore both at the
        end.
        """
        wanted = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
        if self.key_env:
            wanted[self.key_env] = KEY
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def _in_thread(
        self,
        scene: Callable[[Connection], Awaitable[T]],
        server: FakeServer | None,
        base_url: str | None = None,
    ) -> T:
        """Run a scene in an event loop of its own. Raise BreachError if it does not
        end.
        """
        results: list[T] = []
        failures: list[BaseException] = []

        async def main() -> None:
            connection = self.spec.connect(
                self.context(server.base_url if server else base_url)
            )
            try:
                results.append(
                    await _within(
                        self.patience, scene(connection), "a call has not ended"
                    )
                )
            finally:
                await _within(
                    self.patience, connection.close(), "close() has not ended"
                )
                if server is not None:
                    await until(lambda: server.connections == 0, self.patience / 10)
                    self.left_open.append(server.connections)

        def run() -> None:
            try:
                asyncio.run(main())
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run, name="conformance", daemon=True)
        with key_disclosures(HALF_KEY, self.heard):
            thread.start()
            thread.join(2 * self.patience + 2)
        if thread.is_alive():
            # A backend that blocks the loop's own thread is released when the server
            # stops.
            if server is not None:
                server.stop()
            thread.join(self.patience)
            raise BreachError(
                "blocks the event loop, or cannot be cancelled. Call the server with an asyncio HTTP client "
                "(a call in asyncio.to_thread cannot be cancelled)"
            )
        if failures:
            raise failures[0]
        return results[0]


async def _within(seconds: float, work: Awaitable[T], what: str) -> T:
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait([task], timeout=seconds)
    if not done:
        task.cancel()
        await asyncio.wait([task])
        raise BreachError(f"{what} after {seconds:g} s")
    return task.result()


async def ask(connection: Connection, request: ChatRequest) -> Outcome:
    """Return the reply or the fault. Raise BreachError for anything else."""
    try:
        reply: object = await connection.complete(request)
    except ChatFaultError as fault:
        return fault
    except (BreachError, asyncio.CancelledError):
        raise
    except Exception as error:
        raise BreachError(
            f"raises {type(error).__name__} ({quoted(str(error), 120)}), but only ChatFaultError is understood"
        ) from error
    if not isinstance(reply, ChatReply):
        raise BreachError(
            f"returns {type(reply).__name__}, but a ChatReply is expected"
        )
    return reply


async def until(holds: Callable[[], bool], seconds: float) -> bool:
    for _ in range(max(1, round(seconds / 0.01))):
        if holds():
            return True
        await asyncio.sleep(0.01)
    return holds()


#: A PNG of one pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def add_requests(rules: Rules[BackendCase]) -> None:
    rules.rule("messages arrive")(_messages)
    rules.rule("model id")(_model_id)
    rules.rule("parameters")(_parameters)
    rules.rule("served settings")(_served)
    rules.rule("pictures")(_pictures)


def _messages(case: BackendCase) -> None:
    talk = (
        Message("system", ("be-a-mouse",)),
        Message("user", ("first-question",)),
        Message("assistant", ("first-answer",)),
        Message("user", ("second-question",)),
    )
    outcome, server = case.play(
        Answer(text="ACTIONS: FORWARD"),
        lambda connection, server: ask(connection, case.request(messages=talk)),
    )
    need(isinstance(outcome, ChatReply), f"a plain call causes the fault: {outcome}")
    text = getattr(outcome, "text", "")
    need(
        text == "ACTIONS: FORWARD",
        f"the reply 'ACTIONS: FORWARD' is read as '{quoted(text, 60)}'",
    )
    sent = json.dumps(server.calls[0].body)
    places = [sent.find(message.text) for message in talk]
    need(min(places) >= 0, f"'{talk[places.index(min(places))].text}' is not sent")
    need(places[1] < places[2] < places[3], "the messages are not sent in order")


def _model_id(case: BackendCase) -> None:
    outcome, server = case.play(
        "ACTIONS: STAY", lambda connection, server: ask(connection, case.request())
    )
    need(isinstance(outcome, ChatReply), f"a plain call causes the fault: {outcome}")
    call = server.calls[0]
    sent = [json.dumps(call.body), call.path, *call.headers.values()]
    # Some libraries send only the second half of PROVIDER/ID.
    named = any(case.model.rpartition("/")[2] in text for text in sent)
    need(
        named,
        f"the model's id '{case.model}' is sent neither in the body nor in the URL nor in a header",
    )


def _parameters(case: BackendCase) -> None:
    """A parameter with a value is sent, or declared as unsupported. A parameter that is
    None is left to the server.
    """
    sampling = Sampling(temperature=0.625, max_tokens=217, seed=90210, stop=("END-7",))

    async def scene(
        connection: Connection, server: FakeServer
    ) -> tuple[Outcome, Outcome]:
        return await ask(connection, case.request(sampling=sampling)), await ask(
            connection, case.request()
        )

    outcomes, server = case.play("ACTIONS: STAY", scene)
    for outcome in outcomes:
        need(
            isinstance(outcome, ChatReply),
            f"a call with parameters causes the fault: {outcome}",
        )
    able = case.spec.capabilities
    declared = {"temperature": able.temperature, "seed": able.seed, "stop": able.stop}
    wanted = {"temperature": 0.625, "max_tokens": 217, "seed": 90210, "stop": "END-7"}
    asked, unasked = (server.calls[number].body for number in (0, 1))
    for name, value in wanted.items():
        if not declared.get(name, True) or holds(asked, value):
            continue
        instead, always = named(asked, name), named(unasked, name)
        remedy = (
            f"send the set value, or declare Capabilities({name}=False)"
            if name in declared
            else "send the set value, which limits the cost"
        )
        if instead:
            how = "as a constant" if instead == always else f"where {value!r} is set"
            raise BreachError(
                f"{name} is sent as {quoted(repr(instead[0]), 60)}, {how}: {remedy}"
            )
        raise BreachError(f"{name} is not sent: {remedy}")
    needless = [name for name in ("temperature", "seed") if named(unasked, name)]
    need(
        not needless,
        f"a parameter that is None, and so left to the server, is sent: {', '.join(needless)}",
    )


def _served(case: BackendCase) -> None:
    request = case.request(extra={"top_p": 0.375})
    outcome, server = case.play(
        "ACTIONS: STAY", lambda connection, server: ask(connection, request)
    )
    need(
        isinstance(outcome, ChatReply),
        f"a call with a 'served' setting causes the fault: {outcome}",
    )
    sent = holds(server.calls[0].body, 0.375)
    need(
        sent,
        "top_p of ChatRequest.extra is not sent: a model's 'served' settings belong in the body unchanged",
    )


def holds(body: object, value: object) -> bool:
    """Return whether a value occurs anywhere in a body, under any name."""
    if isinstance(body, Mapping):
        return any(holds(inner, value) for inner in body.values())
    if isinstance(body, list):
        return any(holds(inner, value) for inner in body)
    return body == value


def named(body: object, name: str) -> list[object]:
    """Return the values under a name in a body, at any depth, without None."""
    if isinstance(body, list):
        return [value for inner in body for value in named(inner, name)]
    if not isinstance(body, Mapping):
        return []
    own = [body[name]] if body.get(name) is not None else []
    return own + [value for inner in body.values() for value in named(inner, name)]


def _pictures(case: BackendCase) -> None:
    if not case.spec.capabilities.images:
        return
    message = Message("user", ("look: ", PIXEL, " well?"))
    outcome, server = case.play(
        "ACTIONS: STAY",
        lambda connection, server: ask(connection, case.request(messages=(message,))),
    )
    need(
        isinstance(outcome, ChatReply),
        f"a message with a picture causes the fault: {outcome}",
    )
    sent = base64.b64encode(PIXEL).decode() in json.dumps(server.calls[0].body)
    need(
        sent,
        "the picture is not sent as base64; send it, or declare Capabilities(images=False)",
    )


#: The rule that is checked first for backends with a server, because other rules use
#: its calls.
NO_RETRIES = "no retries"
#: Servers that repeat the key themselves.
ECHOES = tuple(
    Mishap(name, name, answer, frozenset())
    for name, answer in {
        "a refusal that echoes the key": Answer(
            status=401, error={"message": f"Incorrect API key provided: {KEY}"}
        ),
        "a long error that echoes the key": Answer(
            status=500, error={"message": "x" * 285 + KEY}
        ),
        "a refusal in plain text that echoes the key": Answer(
            status=400, body=f"oh {KEY}".encode()
        ),
        "a page that echoes the key": Answer(body=f"<html>{KEY}".encode()),
    }.items()
)


def add_first(rules: Rules[BackendCase]) -> None:
    rules.rule(NO_RETRIES)(_no_retries)


def add_last(rules: Rules[BackendCase]) -> None:
    """Add a rule for each fault, and the rule about the key."""
    for mishap in FAULTS:
        rules.rule(f"fault: {mishap.name}")(partial(_check_fault, mishap))
    rules.rule("no key in errors")(_no_key)


def _met(case: BackendCase, mishap: Mishap) -> tuple[Outcome | BreachError, int]:
    """Make a call whose first attempt fails in this way. Return its outcome and how
    many requests reached the server (0 if there is no server). The call is made once
    per case; later the same result is returned.
    """
    if mishap.name not in case.kept:
        request = case.request(
            timeout=SHORT if mishap.kinds == {"timeout"} else case.patience
        )
        requests: list[int] = []
        outcome: Outcome | BreachError
        try:
            if mishap.refused:
                outcome = case.play_refused(lambda connection: ask(connection, request))
            else:
                script: list[str | Answer] = [mishap.answer, "without an error"]
                outcome, server = case.play(
                    script, lambda connection, server: ask(connection, request)
                )
                requests.append(server.count)
                headers = [dict(call.headers) for call in server.calls]
                case.key_sent |= any(
                    KEY in value for one in headers for value in one.values()
                )
        except BreachError as breach:
            outcome = breach
        case.kept[mishap.name] = outcome, sum(requests)
    return case.kept[mishap.name]


def _follows(case: BackendCase, mishap: Mishap) -> bool:
    """Return whether a mishap's result only shows again that the backend retries."""
    outcome, attempts = _met(case, mishap)
    if mishap.refused and isinstance(outcome, BreachError):
        # No server counts attempts here, but a backend that retries does so in this
        # case, too.
        attempts = max(count for _, count in case.kept.values())
    return attempts > 1 and NO_RETRIES not in case.but


def _no_retries(case: BackendCase) -> None:
    counts = {mishap.name: _met(case, mishap)[1] for mishap in FAULTS}
    retried = [
        f"{name} ({count} requests)" for name, count in counts.items() if count > 1
    ]
    need(
        not retried,
        f"retries by itself: {', '.join(retried)}. One call must be one request; CheeseBench retries",
    )


def _check_fault(mishap: Mishap, case: BackendCase) -> None:
    if _follows(case, mishap):
        return
    outcome, _ = _met(case, mishap)
    if isinstance(outcome, BreachError):
        raise outcome
    kinds = " or ".join(sorted(mishap.kinds))
    if not isinstance(outcome, ChatFaultError):
        raise BreachError(
            f"{mishap.what} is read as a reply, but it is the fault '{kinds}'"
        )
    need(
        outcome.kind in mishap.kinds,
        f"{mishap.what} is reported as '{outcome.kind}', but it is '{kinds}' ({outcome})",
    )
    need(str(outcome).strip(), f"{mishap.what} is reported without a message")
    need(
        len(str(outcome)) < 1000,
        f"{mishap.what} is reported in {len(str(outcome))} characters: shorten the message",
    )
    if mishap.retry_after is not None:
        wish = outcome.retry_after
        heard = wish is not None and abs(wish - mishap.retry_after) < 0.5
        need(
            heard,
            f"the server's Retry-After of {mishap.retry_after:g} s is reported as {wish}",
        )


def _no_key(case: BackendCase) -> None:
    if not case.key_env:
        return
    for mishap in (*ECHOES, *FAULTS):
        outcome, _ = _met(case, mishap)
        # Half a key is a secret, too. It may be left if a text is shortened before keys
        # are removed from it.
        if isinstance(outcome, Exception) and any(
            HALF_KEY in text for text in texts_of(outcome)
        ):
            what = (
                "text of the fault"
                if HALF_KEY in str(outcome)
                else "cause or context of the fault"
            )
            what = (
                "exception that is raised" if isinstance(outcome, BreachError) else what
            )
            raise BreachError(f"the {what} contains the key ({mishap.what})")
    need(
        case.key_sent,
        f"the key in {case.key_env} is not sent in a header, so its use cannot be checked",
    )
    need(not case.heard, f"the key is in {case.heard[0] if case.heard else ''}")


#: Number of calls in flight at once.
MANY = 32
#: Duration in seconds of a call during which the event loop must not stall.
UNDER_WAY = 0.25

#: Rules for every backend, and rules for backends that talk to a server.
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
    """Return the rules that a backend breaks, in the order in which they are checked,
    except that ``no retries`` comes first.

    ``server`` makes the server whose ``base_url`` the backend gets. FakeServer speaks
    OpenAI's protocol, and a subclass can speak another one. None is for a backend that
    calls no server: then only its declaration, its replies and concurrent calls are
    checked. ``key_env`` names the environment variable with the backend's key.
    ``options`` are the options of its BackendContext. ``but`` names rules to leave out.
    A call counts as endless after ``patience`` seconds.
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
    # The cause comes before its possible consequences.
    return sorted(found, key=lambda one: one.rule != NO_RETRIES)


def _check_name(name: str) -> None:
    """Raise UnknownNameError for an unknown rule. The name of a fault alone is not the
    name of its rule.
    """
    known = [*RULES, *SERVER_RULES]
    if name not in known:
        fault = f"fault: {name}"
        raise UnknownNameError(
            "rule", name, known, whole=fault if fault in known else None
        )


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
    """Raise AssertionError with the rules that a backend breaks; see
    ``broken_backend_rules`` for the arguments.
    """
    broken = broken_backend_rules(
        spec,
        model=model,
        server=server,
        key_env=key_env,
        options=options,
        but=but,
        patience=patience,
    )
    assert_none(f"the backend '{getattr(spec, 'name', spec)}'", broken)


# -- every backend


@RULES.rule(DECLARATION)
def _declaration(case: BackendCase) -> None:
    spec = case.spec
    need(
        isinstance(spec, BackendSpec),
        f"is a {type(spec).__name__}, but a BackendSpec is expected",
    )
    need(
        re.fullmatch(r"[a-z0-9][a-z0-9._-]*", spec.name),
        f"the name '{quoted(spec.name, 60)}' cannot be written as --model NAME/ID: use a-z, 0-9 and hyphens",
    )
    need(
        isinstance(spec.capabilities, Capabilities),
        "capabilities is not a Capabilities object",
    )
    need(callable(spec.connect), "connect is not callable")
    need(
        spec.summary.strip(),
        "summary is empty: write the phrase that 'cheesebench list' shows",
    )
    options: Mapping[Any, Any] = spec.options
    words = all(isinstance(one, str) for pair in options.items() for one in pair)
    need(words, "options does not map names to descriptions")
    odd = sorted(set(case.options) - set(spec.options))
    need(
        not odd,
        f"the test passes options that the backend does not declare: {', '.join(odd)}",
    )
    if spec.account is not None:
        with case.environment():
            account: Any = spec.account(case.context("http://127.0.0.1:9/v1"))
        need(isinstance(account, str) and account, "account returns no name")
        need(KEY not in account, "account contains the key, but accounts are shown")


@RULES.rule("replies")
def _replies(case: BackendCase) -> None:
    """Replies have the right types, even for unusual content."""

    async def scene(connection: Connection) -> list[Outcome]:
        odd = ("\ud800 half a character", "\x00\x1b[31m", "x" * 50_000)
        return [
            await ask(connection, case.request(text)) for text in ("Which way?", *odd)
        ]

    first, *others = _played(case, scene)
    need(isinstance(first, ChatReply), f"a plain question causes the fault: {first}")
    for reply in (first, *others):
        if isinstance(reply, ChatReply):
            _check_types(reply)


def _check_types(reply: ChatReply) -> None:
    for name in ("text", "reasoning", "model"):
        value = getattr(reply, name)
        need(
            isinstance(value, str),
            f"{name} is {type(value).__name__}, but a string is expected",
        )
        need(
            "\ud800" not in value,
            f"{name} contains half a character (a lone surrogate), which no log can store",
        )
    need(
        reply.finish in get_args(Finish), f"finish is '{quoted(str(reply.finish), 30)}'"
    )
    need(isinstance(reply.usage, Usage), "usage is not a Usage object")
    for name, count in dataclasses.asdict(reply.usage).items():
        need(
            is_count(count),
            f"usage.{name} is {count!r}, but a number of tokens is expected",
        )


@RULES.rule("concurrent calls")
def _many(case: BackendCase) -> None:
    """All calls run at the same time, and none waits for another."""
    if case.server is None:
        _many_alone(case)
        return

    gap, _ = case.play(
        Answer(text="ACTIONS: STAY", delay=UNDER_WAY),
        lambda connection, server: standstill(
            lambda: ask(connection, case.request()), UNDER_WAY
        ),
    )
    case.blocks = gap > 0
    need(
        not gap,
        f"the event loop was blocked for {duration(gap)} in `complete`, which blocks all other calls. Call the server with "
        "an asyncio HTTP client (a call in asyncio.to_thread cannot be cancelled)",
    )

    async def scene(connection: Connection, server: FakeServer) -> int:
        tasks = [
            asyncio.ensure_future(ask(connection, case.request(f"call {i}")))
            for i in range(MANY)
        ]
        await until(
            lambda: server.in_flight == MANY or any(task.done() for task in tasks),
            case.patience / 2,
        )
        reached = server.peak
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return reached

    reached, _ = case.play(Answer(fault="hang"), scene)
    need(
        reached == MANY,
        f"{MANY} concurrent calls reach the server only {reached} at a time; remove the backend's own limit "
        "(CheeseBench sets one)",
    )


def _many_alone(case: BackendCase) -> None:
    async def scene(connection: Connection) -> list[Outcome]:
        return list(
            await asyncio.gather(
                *(ask(connection, case.request(f"call {i}")) for i in range(MANY))
            )
        )

    outcomes = case.play_alone(scene)
    lost = sum(not isinstance(one, ChatReply) for one in outcomes)
    need(not lost, f"{MANY} concurrent calls give faults, not replies: {lost} of them")


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
    need(
        counts == (100, 20),
        f"100 prompt tokens and 20 reply tokens are read as {counts[0]} and {counts[1]}",
    )


@SERVER_RULES.rule("usage: cached")
def _cached(case: BackendCase) -> None:
    cached = _reported_usage(case).cached
    need(
        cached == 96,
        f"96 cached tokens of 100 are read as {cached}, so their cost would be wrong",
    )


def _reported_usage(case: BackendCase) -> Usage:
    """Return the reported usage of a call with 100 prompt tokens, of which 96 are
    cached, and 20 reply tokens.
    """
    counted = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    answer = Answer(
        text="hm", usage=counted | {"prompt_tokens_details": {"cached_tokens": 96}}
    )
    outcome, _ = case.play(
        answer, lambda connection, server: ask(connection, case.request())
    )
    if not isinstance(outcome, ChatReply):
        raise BreachError(f"a plain call causes the fault: {outcome}")
    return outcome.usage


@SERVER_RULES.rule("cut-off and empty replies")
def _odd_replies(case: BackendCase) -> None:
    cut, _ = case.play(
        Answer(text="ACTIONS: FOR", finish="length"),
        lambda connection, server: ask(connection, case.request()),
    )
    need(
        isinstance(cut, ChatReply),
        f"a reply that ends at max_tokens causes the fault: {cut}",
    )
    need(
        getattr(cut, "finish", "") == "length",
        "a reply that ends at max_tokens does not have finish 'length'",
    )
    empty, _ = case.play(
        Answer(text=""), lambda connection, server: ask(connection, case.request())
    )
    need(
        isinstance(empty, ChatReply),
        f"an empty reply, which is behaviour of the model, causes the fault: {empty}",
    )
    need(getattr(empty, "text", "x") == "", "an empty reply is not read as empty")


@SERVER_RULES.rule("each call its own reply")
def _own_replies(case: BackendCase) -> None:
    def echo(call: Call) -> Answer:
        number = re.search(r"call (\d+);", json.dumps(call.body))
        return Answer(text=number[1] if number else "?", delay=0.01 * (call.number % 5))

    # If calls wait for one another, another rule ("concurrent calls") reports it, and a
    # few calls suffice here.
    many = 4 if case.blocks else MANY

    async def scene(connection: Connection, server: FakeServer) -> list[Outcome]:
        return list(
            await asyncio.gather(
                *(ask(connection, case.request(f"call {i};")) for i in range(many))
            )
        )

    outcomes, _ = case.play(echo, scene)
    texts = [one.text if isinstance(one, ChatReply) else str(one) for one in outcomes]
    mixed = [i for i, text in enumerate(texts) if text != str(i)]
    need(
        not mixed,
        f"concurrent calls do not get their own replies: call {', '.join(map(str, mixed[:1]))} gets '{_shown(texts, mixed)}'",
    )


def _shown(texts: list[str], mixed: list[int]) -> str:
    return quoted(texts[mixed[0]], 60) if mixed else ""


@SERVER_RULES.rule("no caching")
def _no_cache(case: BackendCase) -> None:
    async def scene(connection: Connection, server: FakeServer) -> list[Outcome]:
        return [await ask(connection, case.request()) for _ in range(3)]

    _, server = case.play("ACTIONS: STAY", scene)
    need(
        server.count == 3,
        f"of 3 equal calls, {server.count} reached the server: do not cache replies",
    )


@SERVER_RULES.rule("cancellation")
def _cancellation(case: BackendCase) -> None:
    async def scene(
        connection: Connection, server: FakeServer
    ) -> tuple[bool, bool, Outcome]:
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
    need(ended, "a cancelled call continues: let CancelledError pass")
    need(
        freed and server.given_up == 1,
        "a call that is cancelled keeps its connection to the server open",
    )
    need(
        isinstance(after, ChatReply),
        f"after a cancelled call the next one causes the fault: {after}",
    )


@SERVER_RULES.rule("redirects")
def _redirects(case: BackendCase) -> None:
    """The key is not sent to the address of a redirect, because it was given for the
    user's address.
    """
    assert case.server is not None
    with case.server("fine") as elsewhere:
        place = urlsplit(elsewhere.base_url).netloc

        def script(call: Call) -> Answer:
            return Answer(
                status=307, headers={"Location": f"http://{place}{call.path}"}
            )

        with contextlib.suppress(BreachError):
            # Any outcome of the call is allowed here.
            case.play(
                script, lambda connection, server: ask(connection, case.request())
            )
        told = [
            call
            for call in elsewhere.calls
            if HALF_KEY in f"{call.path} {call.body} {dict(call.headers)}"
        ]
    need(
        not told,
        "a redirect to another address is followed with the key: do not follow redirects",
    )


@SERVER_RULES.rule("close")
def _close(case: BackendCase) -> None:
    async def scene(connection: Connection, server: FakeServer) -> list[Outcome]:
        return list(
            await asyncio.gather(*(ask(connection, case.request()) for _ in range(4)))
        )

    case.play("ACTIONS: STAY", scene)
    left = case.left_open[-1]
    need(not left, f"connections to the server are still open after close(): {left}")


add_last(SERVER_RULES)
