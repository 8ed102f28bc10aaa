"""Text from values: lines of ``say`` with the names of variables in braces; a literal brace is doubled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cheesebench.protocol.specification import RuntimeValue

_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}]*)\}|[{}]")


class LoneBraceError(Exception):
    """A brace is neither doubled nor one of a pair; ``offset`` is its column in the line, from 0."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Blank:
    """A place in a line that a value fills; ``offset`` is the column of the name."""

    name: str
    offset: int


@lru_cache(maxsize=1024)
def parts(line: str) -> tuple[str | Blank, ...]:
    """Return a line as literal text and blanks, in order; raises LoneBraceError."""
    found: list[str | Blank] = []
    end = 0
    for match in _BRACES.finditer(line):
        found.append(line[end : match.start()])
        end = match.end()
        if match["name"] is not None:
            inside = match["name"]
            found.append(Blank(inside.strip(), match.start("name") + len(inside) - len(inside.lstrip())))
        elif len(match[0]) == 2:
            found.append(match[0][0])
        else:
            raise LoneBraceError(match.start())
    return tuple(part for part in (*found, line[end:]) if part != "")


def names(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the names whose values fill lines, each once."""
    return tuple(dict.fromkeys(part.name for line in lines for part in parts(line) if isinstance(part, Blank)))


def filled(line: str, values: Mapping[str, RuntimeValue]) -> str:
    """Return a line with values for its blanks."""
    return "".join(part if isinstance(part, str) else as_text(values[part.name]) for part in parts(line))


def as_text(value: RuntimeValue) -> str:
    """Return a value for readers: numbers with up to six digits, sets in alphabetical order, 1 and 0 for truth."""
    if value is None:
        return "none"
    if isinstance(value, frozenset):
        return ", ".join(sorted(map(as_text, value))) or "none"
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:g}" if isinstance(value, float) else str(value)
