"""Interfaces between agents, the harness and model backends, such as messages, replies,
faults and capabilities.

A model agent never calls a model itself. It writes a prompt and parses a reply; in
between, the harness consults the run log, enforces budgets and limits, retries, and
records the reply. So agents are pure, backends only translate, and faults and costs are
handled in one place.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import ipaddress
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable
from urllib.parse import urlsplit

from cheesebench.errors import CheeseBenchError, OptionError, PluginError, cause_of
from cheesebench.interfaces import AgentKind, Memory
from cheesebench.redaction import quoted

#: Author of a message.
Role = Literal["system", "user", "assistant"]
#: A part of a message: text, or a picture as PNG.
Part = str | bytes


class Picture(str):
    """An observation that is a picture: ``png`` is the image, and the string itself is
    the state's text.

    It is a string so that code that only passes observations on need not know about
    pictures. Two pictures are equal if both image and text are; a picture never equals
    a plain string.
    """

    __slots__ = ("png",)
    png: bytes
    """The image as a PNG file."""

    def __new__(cls, png: bytes, text: str = "") -> Picture:
        """Create a picture with the state's ``text`` (empty if it has none)."""
        picture = super().__new__(cls, text)
        picture.png = png
        return picture

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Picture)
            and self.png == other.png
            and str.__eq__(self, other)
        )

    def __ne__(self, other: object) -> bool:  # str.__ne__ would compare only the text
        return not self == other

    def __hash__(self) -> int:
        return hash((str(self), self.png))

    def __bool__(self) -> bool:  # A picture is true even without text.
        return True

    def __sizeof__(self) -> int:
        return str.__sizeof__(self) + len(self.png)

    def __getnewargs__(self) -> tuple[bytes, str]:  # type: ignore[override]  # copy and pickle need both arguments
        return self.png, str(self)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Neighbouring pieces of text are one part; only a user's message has
    pictures.

    ``stays`` marks the last message of the prefix that this prompt shares with the
    previous or the next one: APIs with explicit caching are asked to cache up to it.
    The mark is not part of the content.
    """

    role: Role
    parts: tuple[Part, ...]
    stays: bool = field(default=False, compare=False)

    @property
    def text(self) -> str:
        """The text without pictures."""
        return "".join(part for part in self.parts if isinstance(part, str))


def without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with the system message's text moved to the beginning of the
    first user message, for models without a system role.
    """
    if not messages or messages[0].role != "system":
        return messages
    system, *rest = messages
    first = rest.pop(0) if rest else Message("user", ())
    parts = [system.text, *first.parts]
    if len(parts) > 1 and isinstance(parts[1], str):  # neighbouring texts are joined
        parts[:2] = [f"{system.text}\n\n{parts[1]}"]
    return (Message("user", tuple(parts), first.stays), *rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Sampling parameters of a reply. None leaves a parameter to the server."""

    temperature: float | None = None
    max_tokens: int | None = None
    """Maximum number of tokens in the reply, reasoning included."""
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerForm:
    """The form that a reply must have: an object of the JSON schema ``schema``.

    With ``by_tool``, the server is offered one tool and told to call it. Otherwise the
    reply itself is constrained (``response_format``). Either way, the reply's text is
    the object as JSON.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    by_tool: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One call. If ``form`` is None, the reply is free text.

    ``conversation`` is the same for all calls of one subject, so that a load balancer
    can send them to the server that has their cache. ``timeout`` is the limit of the
    whole call, in seconds. ``extra`` is added to the request body unchanged (JSON
    values, from ``ModelEntry.served``).
    """

    model: str
    """The provider's id of the model."""
    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    conversation: str = ""
    timeout: float = 120.0
    extra: Mapping[str, Any] = field(default_factory=dict)
    form: AnswerForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token counts that the server reports.

    Cached tokens were read from a cache. Written tokens were stored in a cache, and are
    counted only if storing has its own price. No prompt token is both. Reasoning tokens
    are part of the completion.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    written: int = 0


#: Why a reply ended. ``length``: it was cut off at a limit on its tokens. ``unread``:
#: the server could not read the model's text as a call of the tool.
Finish = Literal["stop", "length", "unread", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """One reply: its ``text``, and separately its ``reasoning``, if the server (or a
    tag) marks it.
    """

    text: str
    reasoning: str = ""
    finish: Finish = "stop"
    usage: Usage = Usage()
    model: str = ""
    """Model name reported by the server."""
    doubt: str = ""
    """A contradiction between the server's counts, in words, or empty. It is reported
    once, and not recorded.
    """


#: Kinds of failed calls. ``malformed`` is an answer that is not a reply. ``connection``
#: includes a reset in the middle of an answer.
FaultKind = Literal[
    "rate_limit",
    "overload",
    "timeout",
    "connection",
    "server",
    "malformed",
    "authentication",
    "quota",
    "unknown_model",
    "bad_request",
    "context_too_long",
    "content_filter",
]
#: Temporary faults: the harness retries, with growing pauses.
TRANSIENT: frozenset[FaultKind] = frozenset(
    {"rate_limit", "overload", "timeout", "connection", "server", "malformed"}
)
#: Faults of the account or the options. They stop all subjects of the model, because
#: its other calls would fail, too. If the server has answered before, such a call is
#: retried a few times first.
FATAL: frozenset[FaultKind] = frozenset({"authentication", "quota", "unknown_model"})


class ChatFaultError(CheeseBenchError):
    """A call that failed, with its kind and a text.

    The text is for people; it may be the server's message, shortened. It must never
    contain a key or a whole response body.
    """

    def __init__(
        self, kind: FaultKind, text: str, retry_after: float | None = None
    ) -> None:
        super().__init__(text)
        self.kind: FaultKind = kind
        """Why the call failed."""
        self.retry_after = retry_after
        """The pause that the server asks for, in seconds from now, or None."""
        self.refused = False
        """Whether, with the kind ``connection``, nothing accepted the connection: the
        server does not run, or not yet.
        """
        self.answer = ""
        """The beginning of an answer that is no reply, and that the text does not
        describe, or "". It is shown apart from the text, because identifiers and times
        in it differ from call to call.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend supports. A setting that it does not support is refused before the
    run, or left out, which is recorded.
    """

    temperature: bool = True
    seed: bool = True
    stop: bool = True
    images: bool = True
    max_tokens: bool = True
    """Whether a user may limit the length of replies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars per million tokens, as published on a day."""

    prompt: float
    completion: float
    cached: float | None = None
    """Price of cached prompt tokens (None: same as ``prompt``)."""
    written: float | None = None
    """Price of prompt tokens that are written to a cache (None: same as ``prompt``)."""
    on: date

    def __post_init__(self) -> None:
        if not isinstance(self.on, date):
            raise PluginError(
                f"Price(on={self.on!r}): give a datetime.date, such as date(2026, 10, 21)."
            )
        for name in ("prompt", "completion", "cached", "written"):
            value = getattr(self, name)
            number = (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and 0 <= value < math.inf
            )
            if not number and not (value is None and name in ("cached", "written")):
                raise PluginError(
                    f"Price({name}={value!r}): give dollars per million tokens, a number of at least 0."
                )

    def cost(self, usage: Usage) -> float:
        """Return the cost of a call in dollars."""
        cached = self.prompt if self.cached is None else self.cached
        written = self.prompt if self.written is None else self.written
        fresh = usage.prompt - usage.cached - usage.written
        asked = fresh * self.prompt + usage.cached * cached + usage.written * written
        return (asked + usage.completion * self.completion) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model that ``--model`` can name (hook ``cheesebench_models``, a YAML file, or
    ``backend/id``).

    ``served`` are parameters of the request body that this model needs; ``options`` are
    for its backend (``tensor_parallel_size: 8``). ``drops`` names parameters of
    Sampling that this model refuses: they are left out, which is recorded. If
    ``system`` is among them, the system message becomes the beginning of the first user
    message.
    """

    name: str
    backend: str
    id: str
    """The provider's own id."""
    aliases: tuple[str, ...] = ()
    family: str = ""
    parameters: float | None = None
    """Number of parameters in billions (with inactive experts), for scaling curves
    (None: unknown).
    """
    images: bool = False
    reasoning: bool = False
    context: int | None = None
    """Maximum number of tokens of prompt and reply together (None: unknown)."""
    max_tokens: int | None = None
    """Maximum number of tokens of one reply (None: the agent's setting)."""
    served: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    drops: tuple[str, ...] = ()
    price: Price | None = None
    trained_on: tuple[str, ...] = ()
    """Protocols in the model's training data. Every verdict on the model mentions
    them.
    """
    licence: str = ""
    """Licence of the weights (SPDX), if they are open."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendContext:
    """Arguments for connecting to a backend.

    ``directory`` is the run's directory, for log files. ``options`` come from the entry
    and from ``--backend-option NAME=VALUE`` (then they are strings). ``base_url`` comes
    from the command line or from the started server. ``capacity`` is the maximum number
    of calls in flight there. ``progress`` is called with lines to show while ``serve``
    is working.
    """

    entry: ModelEntry
    directory: Path
    base_url: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    capacity: int = 64
    progress: Callable[[str], None] = lambda line: None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """Facts that a server reports about itself, each None if it does not."""

    slots: int | None = None
    """Number of calls that it processes at once; it queues the others."""
    context: int | None = None
    """Maximum number of tokens of prompt and reply together."""


class Connection(Protocol):
    """An open backend: all calls of one model go through it, many at once, in one event
    loop.

    A connection may also have ``async def facts(self) -> ServerFacts``. The harness
    calls it at the start, to limit the calls in flight and to warn of prompts that are
    too long.

    It may also have ``async def progress(self) -> object``, which returns any value
    that changes while the server works, or None if the server does not tell. A call is
    then given up if this value has not changed for ``--cheese-timeout`` seconds, rather
    than after these seconds.
    """

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply, or raise ChatFaultError. Never retry or cache: the harness
        does that.

        Cancelling the call must release its resources.
        """
        ...

    async def close(self) -> None:
        """Release sockets and engines."""
        ...


class Server(Protocol):
    """A server that a backend has started for the run. ``stop`` is called at the end,
    even after an error.

    A server may also have ``facts`` about the model that it runs: JSON values by name,
    which the run's manifest keeps. If ``sha256``, the digest of the weights, is among
    them, a run is resumed only with the same weights.
    """

    base_url: str
    """URL of the server, as for ``--base-url``."""

    def stop(self) -> None:
        """Stop the server and all of its processes; return when they have ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSpec:
    """A kind of model server (hook ``cheesebench_backends``).

    ``connect`` opens a connection. It is called inside the event loop; import heavy
    libraries there. ``serve`` starts a server and returns when it is healthy. It is
    called once per model, in the session's main process, if no ``base_url`` is given;
    the server's ``base_url`` is passed to every ``connect``. ``account`` names the
    account whose rate limit the calls share (default: backend and base URL). ``probe``
    says whether a test call can be made in advance. ``check`` describes what is
    available for a model (a file, a key), without starting or fetching anything, and
    raises OptionError or PluginError if something is missing.
    """

    name: str
    connect: Callable[[BackendContext], Connection]
    serve: Callable[[BackendContext], Server] | None = None
    capabilities: Capabilities = Capabilities()
    account: Callable[[BackendContext], str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """Meaning of each option by name; other options are refused."""
    probe: bool = True
    check: Callable[[BackendContext], str] | None = None
    summary: str = ""

    @classmethod
    def of(cls, name: str, reply: Callable[[list[dict[str, str]]], Any]) -> BackendSpec:
        """Return a backend that asks a function: ``run("NAME/ANYTHING",
        plugins=BackendSpec.of("NAME", reply))``.

        ``reply`` takes the messages of a prompt, each a dict with ``role`` and
        ``content``, and returns the text of the reply. With ``ChatReply(text=...,
        usage=Usage(prompt=..., completion=...))`` in its place, tokens are counted.
        ``reply`` is called in threads, for several subjects at once unless
        ``concurrency=1``, and may be async. It gets no pictures, temperature, seed or
        limit of tokens, and sets its own.

        A call that raises ConnectionError, TimeoutError, or ``ChatFaultError`` of a
        kind that may pass (``"rate_limit"``, ``"overload"``, ...) is made again, as for
        the built-in backends (``retries``). Any other exception loses its subject, and
        a ``ChatFaultError`` about the account (``"quota"``, ...) stops all subjects of
        the model.
        """
        if not callable(reply):
            raise PluginError(
                f"BackendSpec.of({name!r}, {quoted(repr(reply), 60)}): give a function from messages to a reply."
            )
        try:
            inspect.signature(reply).bind([])
        except TypeError as error:
            raise PluginError(
                f"BackendSpec.of({name!r}, {quoted(repr(reply), 60)}): the function is called with one argument, the messages, "
                f"but {error}. Change its parameters."
            ) from None
        except ValueError:
            pass  # A function in C may have no known signature.
        nothing = Capabilities(
            temperature=False, seed=False, stop=False, images=False, max_tokens=False
        )
        connection = _Function(name, reply)

        def connect(context: BackendContext) -> Connection:
            if context.base_url:
                raise OptionError(
                    f"--base-url {context.base_url}: the backend '{name}' is a function, which has no address. Remove it."
                )
            return connection

        return cls(name=name, connect=connect, capabilities=nothing)


async def _in_thread(
    function: Callable[[list[dict[str, str]]], Any], messages: list[dict[str, str]]
) -> Any:
    """Call a function in a thread of its own. Unlike with ``asyncio.to_thread``,
    neither the end of the event loop nor that of the process waits for it, because
    nothing can stop it.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def end(said: Any, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((said, error))

    def call() -> None:
        said, error = None, None
        try:
            said = function(messages)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            loop.call_soon_threadsafe(end, said, error)

    run = contextvars.copy_context().run
    threading.Thread(target=run, args=(call,), daemon=True).start()
    said, error = await ended
    if error is not None:
        raise error
    return said


@dataclass(frozen=True, slots=True)
class _Function:
    """The connection to a function."""

    name: str
    reply: Callable[[list[dict[str, str]]], Any]

    @property
    def remedy(self) -> str:
        """What to do if the function does not answer."""
        return f"The backend '{self.name}' is a function of yours: repair it, and run this again."

    async def complete(self, request: ChatRequest) -> ChatReply:
        messages = [{"role": one.role, "content": one.text} for one in request.messages]
        try:
            said = await _in_thread(self.reply, messages)
            if inspect.isawaitable(said):
                said = await said
        except (ConnectionError, TimeoutError) as error:
            kind: FaultKind = (
                "timeout" if isinstance(error, TimeoutError) else "connection"
            )
            raise ChatFaultError(kind, quoted(cause_of(error), 360)) from None
        if isinstance(said, ChatReply):
            return said
        if not isinstance(said, str):
            raise PluginError(
                f"The function of the backend '{self.name}' returned {quoted(repr(said), 60)}. Return the text of the "
                "reply, or a ChatReply."
            )
        return ChatReply(text=said)

    async def close(self) -> None:
        """Close nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAgentContext:
    """What a new model agent is told. It is told nothing about the paradigm.

    ``settings`` has the user's value, or the default, of each setting in
    ``ModelAgentSpec.settings``. ``seed`` is a 63-bit number for this subject.
    ``reading`` is the view's explanation of its observations, or empty. ``reasoning``
    says whether the registry lists the model as a reasoning model.
    """

    seed: int
    view: str
    settings: Mapping[str, Any]
    reading: str = ""
    reasoning: bool = False


class ModelAgent(Protocol):
    """One subject that uses a model; its memory persists over all trials. It does no
    input or output.

    The runner calls ``begin_trial``; then ``prompt``, ``read`` and, for every executed
    step, ``observe``, until the trial ends; then ``tally``.
    """

    def begin_trial(self, observation: str) -> None:
        """Start a new trial, whose first observation is ``observation`` (a Picture if
        the view draws pictures).
        """
        ...

    def prompt(self) -> tuple[Message, ...]:
        """Return the whole prompt of the next call. It depends only on the agent's seed
        and settings, and on the observations and replies so far.
        """
        ...

    def read(self, reply: ChatReply) -> Sequence[int]:
        """Parse the reply; return the actions (0-3) to execute, or none to ask
        again.
        """
        ...

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Record one executed step (steps in which the subject only waited are reported
        as STAY).
        """
        ...

    def tally(self) -> Mapping[str, int]:
        """Return counts of the finished trial, such as ``calls`` and ``unparsed``, by
        name.
        """
        ...


@runtime_checkable
class Learner(Protocol):
    """Optional interface of a model agent whose memory between calls reports can
    show.
    """

    @property
    def learnings(self) -> str:
        """The model's own notes so far."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """Optional interface of a model agent that decides after an event whether to go on
    with its plan, and is told when it can act again.
    """

    def interrupted(self) -> bool:
        """Called after an event. Return whether to drop the rest of the plan and ask
        the model again.
        """
        ...

    def freed(self, observation: str) -> None:
        """Called when the subject can act again after being held or moved.
        ``observation`` is the latest one.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAgentSpec:
    """An agent between a model and a paradigm, named with ``--agent`` (hook
    ``cheesebench_model_agents``).

    ``settings`` are its parameters with their defaults. All of them are recorded and
    can be varied. A setting given as text is converted to the type of its default, or
    by its function in ``readers``, which may raise ValueError. ``check`` raises
    OptionError for invalid values.

    ``instructions`` takes the view's explanation of its observations, and returns what
    a person reads in place of the system prompt (``cheesebench people``). The other
    functions take the settings: ``form`` returns the form that replies must have,
    ``remembers`` describes a subject's memory in words, and ``reply_tokens`` returns
    the maximum number of tokens of a reply if neither the user nor the model's entry
    decides it (None: the setting ``max_tokens``).
    """

    name: str
    create: Callable[[ModelAgentContext], ModelAgent]
    settings: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any]], None] = lambda settings: None
    readers: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    memory: Memory = "life"
    instructions: Callable[[str], str] | None = None
    form: Callable[[Mapping[str, Any]], AnswerForm | None] = lambda settings: None
    remembers: Callable[[Mapping[str, Any]], str] = lambda settings: ""
    reply_tokens: Callable[[Mapping[str, Any]], int | None] = lambda settings: None
    summary: str = ""
    kind: ClassVar[AgentKind] = "model agent"


#: Matches a parameter that an address may have, because it cannot be a key.
_QUERY = re.compile(
    r"(api-version|api_version|version|deployment|region|model)=[\w.:-]{1,60}", re.ASCII
)


def check_address(url: str, *, query: bool = False) -> None:
    """Raise OptionError unless ``url`` consists of scheme, host, port and path only,
    because addresses are recorded.

    With ``query``, it may also have parameters that cannot be keys, such as Azure's
    ``api-version``.
    """
    plain, _, asked = url.partition("?") if query else (url, "", "")
    harmless = not asked or all(map(_QUERY.fullmatch, asked.split("&")))
    if not {"@", "?", "#"}.isdisjoint(plain) or not harmless:
        version = " (and ?api-version=..., if the server needs it)" * query
        raise OptionError(
            "The base URL has a user, a query or a fragment ('@', '?' or '#'), which may be a key and would be recorded. "
            f"Write scheme, host, port and path only{version}; a key belongs in an "
            "environment variable."
        )
    if not _is_address(url):
        raise OptionError(
            f"The base URL '{quoted(url, 100)}' is not valid. Write an address such as http://127.0.0.1:8000/v1."
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        if re.fullmatch(r"[0-9.]+", host):
            ipaddress.ip_address(host)  # Not all programs accept 127.1.
        usual = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:  # Invalid host names raise this error, too.
        return False
    shown = url.isprintable() and " " not in url
    return usual and shown and re.fullmatch(r"[\w.:-]+", host) is not None
