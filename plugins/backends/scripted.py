"""The backend ``scripted``, which takes replies from a YAML file (``--model
scripted:FILE.yaml``) and needs neither a server nor a network::

    seed: 7
    replies:  # the first one that fits is used
      # one call in twenty, drawn by the seed
      - {fault: rate_limit, retry_after: 0.1, share: 0.05}
      # a regular expression to find in the last message
      - {when: "reward: 1", say: "ACTIONS: FORWARD"}
      - say: ["ACTIONS: FORWARD, FORWARD", "ACTIONS: ROTATE_LEFT"]
        choose: by_seed  # default: one after the other, for each conversation
        latency: [0.1, 0.3]  # seconds, or one number
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from cheesebench import (
    BackendContext,
    BackendSpec,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    FaultKind,
    Finish,
    Usage,
    read_document,
)

#: Number of characters that count as one token.
TOKEN = 4


def _expected(what: str) -> PydanticCustomError:
    return PydanticCustomError("shape", "{expected}", {"expected": what})


def _pattern(value: Any) -> Any:
    try:
        return re.compile(value)
    except (re.error, TypeError) as error:
        raise _expected(f"a regular expression ({error})") from None


def _texts(value: Any) -> Any:
    texts = [value] if isinstance(value, str) else value
    if (
        not isinstance(texts, list)
        or not texts
        or not all(isinstance(text, str) for text in texts)
    ):
        raise _expected("a string or a non-empty list of strings")
    return texts


def _span(value: Any) -> Any:
    span = value if isinstance(value, list) else [value, value]
    if len(span) != 2 or any(
        isinstance(end, bool) or not isinstance(end, int | float) for end in span
    ):
        raise _expected("seconds, or a range of two numbers")
    if not 0 <= span[0] <= span[1]:
        raise _expected("at least 0 seconds (in a range, the smaller number first)")
    return tuple(map(float, span))


class Line(BaseModel):
    """One line of a script: its condition, and its reply or fault. Each conversation
    has its own count of how often it has used a line. ``times`` limits this count,
    which also selects the next of the line's texts.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    when: Annotated[re.Pattern[str], BeforeValidator(_pattern)] | None = None
    """Pattern to find in the request's last message. Without it, every request
    matches.
    """
    times: int | None = Field(None, ge=1)
    share: float = Field(1.0, gt=0, le=1)
    """Probability that the line is used if it matches."""
    say: Annotated[list[str], BeforeValidator(_texts)] = Field(default_factory=list)
    """Texts of the reply, of which one is said. A line without a fault has at least
    one.
    """
    choose: Literal["in_order", "by_seed"] = "in_order"
    """Whether the texts take turns, or one is drawn."""
    think: str = ""
    """Reasoning of the reply."""
    finish: Finish = "stop"
    latency: Annotated[tuple[float, float], BeforeValidator(_span)] = (0.0, 0.0)
    """Range of the seconds before the answer."""
    fault: FaultKind | None = None
    """Kind of the fault that takes the place of a reply, or None for a reply."""
    text: str = ""
    """Message of the fault."""
    retry_after: float | None = Field(None, ge=0)
    """Seconds after which the fault asks to try again, or None if it does not say."""

    @model_validator(mode="after")
    def _one_end(self) -> Line:
        if bool(self.say) == (self.fault is not None):
            raise _expected("either 'say' or 'fault'")
        return self


class Script(BaseModel):
    """A script of replies."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    seed: int = 0
    """Seed of all draws."""
    replies: list[Line] = Field(min_length=1)
    """Lines, of which the first that matches answers a request."""


def read_script(path: Path) -> Script:
    """Read a script. Raise FileError with one ``file:line:col: error E...`` line for
    each mistake.
    """
    return read_document(path, Script, "script of replies", "replies:")


class Scripted:
    """A ``Connection`` whose replies come from a script. Each conversation has its own
    counts of the lines that it has used.
    """

    def __init__(self, script: Script, name: str) -> None:
        self._lines, self._seed, self._name = script.replies, script.seed, name
        #: How often each conversation has used each line, by the line's number, and how
        #: often it has drawn the line's ``share``, by ``-1 - number``.
        self._used: dict[tuple[str, int], int] = defaultdict(int)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the reply of the first matching line, after its latency. Raise
        ChatFaultError for the line's fault, for a latency above the request's time
        limit, and if no line matches.
        """
        asked = request.messages[-1].text if request.messages else ""
        number, line = self._choose(request, asked)
        turn = self._used[request.conversation, number]
        self._used[request.conversation, number] += 1
        low, high = line.latency
        latency = low + (high - low) * self._draw("latency", request, asked, turn)
        await asyncio.sleep(min(latency, request.timeout))
        if latency > request.timeout:
            raise ChatFaultError(
                "timeout",
                f"{self._name} has not answered within {request.timeout:g} s.",
            )
        if line.fault is not None:
            raise ChatFaultError(
                line.fault,
                line.text or f"{self._name} asks for this fault.",
                line.retry_after,
            )
        if line.choose == "by_seed":
            # Draw the turn instead of counting it, so that the same question gets the
            # same answer after a fault or in a resumed run.
            turn = int(self._draw("reply", request, asked) * len(line.say))
        text = line.say[turn % len(line.say)]
        return ChatReply(
            text=text,
            reasoning=line.think,
            finish=line.finish,
            usage=Usage(
                prompt=sum(len(message.text) for message in request.messages) // TOKEN
                + 1,
                completion=(len(text) + len(line.think)) // TOKEN + 1,
                reasoning=len(line.think) // TOKEN,
            ),
            model=self._name,
        )

    async def close(self) -> None:
        """Do nothing, because nothing is open."""

    def _choose(self, request: ChatRequest, asked: str) -> tuple[int, Line]:
        for number, line in enumerate(self._lines):
            used = self._used[request.conversation, number]
            if line.times is not None and used >= line.times:
                continue
            if line.when is not None and line.when.search(asked) is None:
                continue
            if line.share < 1.0:
                tries = self._used[request.conversation, -1 - number]
                self._used[request.conversation, -1 - number] += 1
                if self._draw("share", request, asked, number, tries) >= line.share:
                    continue
            return number, line
        raise ChatFaultError(
            "bad_request",
            f"No line of {self._name} matches the request. Add a last line that matches every request.",
        )

    def _draw(self, purpose: str, request: ChatRequest, *key: object) -> float:
        """Return a number in [0, 1) that depends only on the purpose, the seeds, the
        conversation and the key.
        """
        words = (purpose, self._seed, request.sampling.seed, request.conversation, *key)
        digest = hashlib.blake2b(
            "\x1f".join(map(str, words)).encode("utf-8", "replace"), digest_size=8
        ).digest()
        return int.from_bytes(digest, "big") / 2**64


def connect(context: BackendContext) -> Connection:
    """Return a connection to the script that the model's id names. Raise FileError if
    the script has mistakes.
    """
    path = Path(context.entry.id).expanduser()
    return Scripted(read_script(path), path.name)


SCRIPTED = BackendSpec(
    name="scripted",
    connect=connect,
    probe=False,
    summary="replies, faults and latencies from a YAML file, for tests and demonstrations",
)
