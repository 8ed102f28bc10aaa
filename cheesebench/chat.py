"""What agents, the harness and model backends say to each other: messages, replies, faults, capabilities.

An agent that asks a model never calls one. It writes a prompt and reads a reply; between the two the harness looks
into the run log, keeps budgets and limits, retries, and writes down what came. So agents are pure, backends only
translate, and every guarantee about faults and costs is given once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from cheesebench.errors import CheeseBenchError, PluginError
from cheesebench.interfaces import AgentKind, Memory

#: Whose message it is.
Role = Literal["system", "user", "assistant"]
#: A part of a message: text, or a picture as PNG.
Part = str | bytes


class Picture(str):
    """An observation that is a picture: ``png`` is drawn, the string itself is what the state says in words.

    It is a string so that whatever only passes observations on need not know of pictures. Pictures are equal if both
    drawing and words are; a picture equals no plain string.
    """

    __slots__ = ("png",)
    png: bytes
    """The drawing, as a PNG file."""

    def __new__(cls, png: bytes, text: str = "") -> Picture:
        """Return a picture with ``text`` under it (empty where the state says nothing)."""
        picture = super().__new__(cls, text)
        picture.png = png
        return picture

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Picture) and self.png == other.png and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:  # str has one of its own, which would compare the words only
        return not self == other

    def __hash__(self) -> int:
        return hash((str(self), self.png))

    def __bool__(self) -> bool:  # there is something to see also where there are no words
        return True

    def __sizeof__(self) -> int:
        return str.__sizeof__(self) + len(self.png)

    def __getnewargs__(self) -> tuple[bytes, str]:  # type: ignore[override]  # what copies are made with
        return self.png, str(self)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. Neighbouring pieces of text are one part; only a user's message has pictures.

    ``stays`` is a mark on the last of those messages that the subject's prompt before this one, or the next one,
    begins with, too: APIs that have to be asked are asked to cache so far. It is no part of what is said.
    """

    role: Role
    parts: tuple[Part, ...]
    stays: bool = field(default=False, compare=False)

    @property
    def text(self) -> str:
        """The text alone."""
        return "".join(part for part in self.parts if isinstance(part, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a reply is to be sampled. None leaves a parameter to the server."""

    temperature: float | None = None
    max_tokens: int | None = None
    """Most tokens of the reply, reasoning included."""
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One call. ``conversation`` is the same for all calls of one subject: balancers keep its prefix cache by it.

    ``timeout`` is in seconds, for the whole call; ``extra`` holds the registry's served settings for this model
    (JSON values that go into the request body as they are).
    """

    model: str
    """The provider's own id."""
    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    conversation: str = ""
    timeout: float = 120.0
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the server counted them.

    Cached ones (read from a cache) and written ones (put into it, where that has a price of its own) are different
    parts of the prompt; reasoning ones are part of the reply.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    reasoning: int = 0
    written: int = 0


#: ``length``: the reply was cut off at ``max_tokens``.
Finish = Literal["stop", "length", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """One reply: ``text`` without reasoning, which is kept apart where the server (or a tag) marks it as such."""

    text: str
    reasoning: str = ""
    finish: Finish = "stop"
    usage: Usage = Usage()
    model: str = ""
    """What the server says it is."""


#: Why a call failed. ``malformed`` is an answer that is no reply; ``connection`` includes resets in mid-body.
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
#: Faults that may pass: the harness tries again, with growing pauses.
TRANSIENT: frozenset[FaultKind] = frozenset({"rate_limit", "overload", "timeout", "connection", "server", "malformed"})
#: Faults of the account or the options: no call of this model can succeed, all of its subjects stop.
FATAL: frozenset[FaultKind] = frozenset({"authentication", "quota", "unknown_model"})


class ChatFaultError(CheeseBenchError):
    """A call that brought no reply. ``retry_after`` is the server's own wish, in seconds from now.

    The text is for people: what the server said, shortened. Never put a key or a whole body into it.
    """

    def __init__(self, kind: FaultKind, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.kind: FaultKind = kind
        """Why it failed."""
        self.retry_after = retry_after
        """Seconds from now, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend honours. What it cannot honour is refused before the run, or dropped and recorded."""

    temperature: bool = True
    seed: bool = True
    stop: bool = True
    images: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars per million tokens, as published on a day."""

    prompt: float
    completion: float
    cached: float | None = None
    """Of cached prompt tokens; None: as ``prompt``."""
    written: float | None = None
    """Of prompt tokens that are written into a cache; None: as ``prompt``."""
    on: date

    def __post_init__(self) -> None:
        if not isinstance(self.on, date):
            raise PluginError(f"Price(on={self.on!r}): give a datetime.date, such as date(2026, 10, 21).")

    def cost(self, usage: Usage) -> float:
        """Return what a call cost, in dollars."""
        cached = self.prompt if self.cached is None else self.cached
        written = self.prompt if self.written is None else self.written
        fresh = usage.prompt - usage.cached - usage.written
        asked = fresh * self.prompt + usage.cached * cached + usage.written * written
        return (asked + usage.completion * self.completion) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model that ``--model`` can name (hook ``cheesebench_models``, a YAML file, or ``backend/id`` as it stands).

    ``served`` are parameters of the request body that this model needs; ``options`` go to the backend that serves
    it (``tensor_parallel_size: 8``). ``drops`` names parameters of Sampling that this model is known to refuse:
    they are left out, and the manifest says so.
    """

    name: str
    backend: str
    id: str
    """The provider's own id."""
    aliases: tuple[str, ...] = ()
    family: str = ""
    parameters: float | None = None
    """Billions of parameters (all of them, also those of experts that rest); for scaling curves."""
    images: bool = False
    reasoning: bool = False
    context: int | None = None
    """Tokens of prompt and reply together."""
    max_tokens: int | None = None
    """Most tokens of one reply to ask for; None: the agent's own."""
    served: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    drops: tuple[str, ...] = ()
    price: Price | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendContext:
    """What a backend is given to begin with.

    ``directory`` is the run's own, for log files; ``options`` are the entry's and the command line's (strings where
    they come from the command line: ``--cheese-backend-option NAME=VALUE``); ``base_url`` is the command line's or
    where ``serve`` said the server is; ``capacity`` is the most calls that will be in flight at once. ``progress``
    takes a line for whoever waits while ``serve`` is at work.
    """

    entry: ModelEntry
    directory: Path
    base_url: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    capacity: int = 64
    progress: Callable[[str], None] = lambda line: None


class Connection(Protocol):
    """An open backend: all calls of one model go through it, many at once, in one event loop."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply, or raise ChatFaultError. Never retry, never cache: the harness does.

        Cancelling the call must close whatever it holds.
        """
        ...

    async def close(self) -> None:
        """Let go of sockets and engines."""
        ...


class Server(Protocol):
    """A server that a backend has started for the run; it is told to stop once, whatever happens."""

    base_url: str
    """Where it is, as ``--base-url`` would say."""

    def stop(self) -> None:
        """Stop it and everything it has started; return when it is gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSpec:
    """A kind of model server (hook ``cheesebench_backends``).

    ``connect`` opens a connection (called inside the event loop; import heavy libraries there). ``serve`` starts a
    server and returns when it is healthy; it is called once for a model, in the session's first process, when no
    ``base_url`` is given, and its ``base_url`` is handed to every ``connect``. ``account`` names whose rate limits
    the calls share (default: backend and base URL). ``probe`` False: there is nothing that could be asked beforehand.
    """

    name: str
    connect: Callable[[BackendContext], Connection]
    serve: Callable[[BackendContext], Server] | None = None
    capabilities: Capabilities = Capabilities()
    account: Callable[[BackendContext], str] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """Names of the options it takes, and what each means; others are refused."""
    probe: bool = True
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAgentContext:
    """What a new agent that asks a model may know: nothing about the paradigm.

    ``settings`` are those of ``ModelAgentSpec.settings``, with the user's values; ``seed`` is a 63-bit number of
    its own for this subject; ``reading`` is what the view says of how it is read (empty where it says nothing).
    """

    seed: int
    view: str
    settings: Mapping[str, Any]
    reading: str = ""


class ModelAgent(Protocol):
    """One subject that asks a model: one memory that lives through all its trials. It does no input or output.

    The runner calls ``begin_trial``; then ``prompt``, ``read`` and, for every executed step, ``observe``, until the
    trial ends; then ``tally``.
    """

    def begin_trial(self, observation: str) -> None:
        """A new trial starts; ``observation`` is its first one (a Picture where the view draws pictures)."""
        ...

    def prompt(self) -> tuple[Message, ...]:
        """Return the whole prompt of the next call: a function of what was observed and read so far."""
        ...

    def read(self, reply: ChatReply) -> Sequence[int]:
        """Take the reply; return the actions (0-3) to execute, or none to ask again."""
        ...

    def observe(self, action: int, reward: float, observation: str, ended: bool) -> None:
        """One step was executed (steps that the runner waited through come as STAY)."""
        ...

    def tally(self) -> Mapping[str, int]:
        """Return counts of the trial that has just ended, such as ``calls`` and ``unparsed``, by name."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A model's agent that says what it carries from call to call. Optional: reports show it beside the reply."""

    @property
    def learnings(self) -> str:
        """What the model has noted for itself so far."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAgentSpec:
    """An agent between a model and a paradigm, named with ``--agent`` (hook ``cheesebench_model_agents``).

    ``settings`` are its parameters with their defaults: all of them are recorded and can be swept.
    ``check`` raises OptionError for values that make no sense. Settings that are given as text are read as the type
    of the default, or by their function in ``readers`` (which raises ValueError).
    """

    name: str
    create: Callable[[ModelAgentContext], ModelAgent]
    settings: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[[Mapping[str, Any]], None] = lambda settings: None
    readers: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    memory: Memory = "life"
    summary: str = ""
    kind: ClassVar[AgentKind] = "model agent"
