"""What a script of the backend ``scripted`` may say::

seed: 7
replies:                                  # the first line that fits is used
  - {fault: rate_limit, retry_after: 0.1, share: 0.05}      # one call in twenty, drawn by the seed
  - {when: "reward: 1", say: "ACTIONS: FORWARD"}            # a regular expression, found in the last message
  - say: ["ACTIONS: FORWARD, FORWARD", "ACTIONS: ROTATE_LEFT"]
    choose: by_seed                       # default: one after the other, for each conversation
    latency: [0.1, 0.3]                   # seconds, or one number
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from cheesebench import FaultKind, Finish, read_document


def _expected(what: str) -> PydanticCustomError:
    return PydanticCustomError("shape", "{expected}", {"expected": what})


def _pattern(value: Any) -> Any:
    try:
        re.compile(value)
    except (re.error, TypeError) as error:
        raise _expected(f"a regular expression ({error})") from None
    return value


def _texts(value: Any) -> Any:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise _expected("a text, or a list of texts")
    return texts


def _span(value: Any) -> Any:
    span = value if isinstance(value, list) else [value, value]
    if len(span) != 2 or any(isinstance(end, bool) or not isinstance(end, int | float) for end in span):
        raise _expected("seconds, or a range of two numbers")
    if not 0 <= span[0] <= span[1]:
        raise _expected("seconds from 0, the smaller number first")
    return tuple(map(float, span))


class ScriptLine(BaseModel):
    """One line: when it fits, and what comes of it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    when: Annotated[str, BeforeValidator(_pattern)] | None = None
    times: int | None = Field(None, ge=1)
    share: float = Field(1.0, gt=0, le=1)
    say: Annotated[list[str], BeforeValidator(_texts)] = Field(default_factory=list)
    choose: Literal["in_order", "by_seed"] = "in_order"
    think: str = ""
    finish: Finish = "stop"
    latency: Annotated[tuple[float, float], BeforeValidator(_span)] = (0.0, 0.0)
    fault: FaultKind | None = None
    text: str = ""
    retry_after: float | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _one_end(self) -> ScriptLine:
        if bool(self.say) == (self.fault is not None):
            raise _expected("either 'say' or 'fault'")
        return self


class ScriptFile(BaseModel):
    """A whole script."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    seed: int = 0
    replies: list[ScriptLine] = Field(min_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line, ready to be used: ``times`` and turns are counted for each conversation by itself."""

    when: re.Pattern[str] | None
    times: int | None
    share: float
    say: tuple[str, ...]
    choose: Literal["in_order", "by_seed"]
    think: str
    finish: Finish
    latency: tuple[float, float]
    fault: FaultKind | None
    text: str
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class Script:
    """What a file says."""

    seed: int
    lines: tuple[Line, ...]


def read_script(path: Path) -> Script:
    """Read a script; raises FileError with one ``file:line:col: error E...`` line for each mistake."""
    found = read_document(path, ScriptFile, "script of replies", "replies:")
    return Script(found.seed, tuple(map(_line, found.replies)))


def _line(line: ScriptLine) -> Line:
    values = line.model_dump()
    when = None if line.when is None else re.compile(line.when)
    return Line(**{**values, "when": when, "say": tuple(line.say)})
