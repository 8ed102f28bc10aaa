"""Findings for a protocol's author: one line each, with position, sentence and remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from cheesebench.errors import CheeseBenchError, PluginError
from cheesebench.interface_checks import shown

#: Most errors, and most warnings and notes, that are reported for one protocol: what follows is the same slip again.
MAX_FINDINGS = 100

#: Code of a key that does not exist: what it was meant to hold is missing, and that makes further errors.
UNKNOWN_KEY = 121

#: Most names that one remedy lists.
MAX_LISTED = 30

#: A word that nobody wrote to be read: its beginning says which it is. (A path may be 255 characters without a blank.)
_LONG_WORD = re.compile(r"(\S{80})\S{176,}")

Severity = Literal["error", "warning", "info"]

#: First letter of a code by severity, as in ``E121``.
LETTERS = {"error": "E", "warning": "W", "info": "I"}


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file; ``line`` and ``column`` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding."""

    position: Position
    severity: Severity
    code: int
    sentence: str
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.position}: {self.severity} {LETTERS[self.severity]}{self.code}: {self.sentence}"
        if self.remedy:
            text = f"{text} {self.remedy}"
        text = _LONG_WORD.sub(lambda found: f"{found[1]}...", text)
        # The text may quote the file; escape control characters before they reach a terminal.
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class EnoughFindingsError(CheeseBenchError):
    """Control flow: the maximum number of findings is reached, so the pass ends. No family is blamed for it."""


class Diagnostics:
    """Collects the findings of one pass over one protocol; raises EnoughFindingsError when there are very many."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}

    def error(self, code: int, position: Position, sentence: str, remedy: str = "") -> None:
        """Add a finding that prevents the protocol from being compiled."""
        self._add(Diagnostic(position, "error", code, sentence, remedy))

    def warning(self, code: int, position: Position, sentence: str, remedy: str = "") -> None:
        """Add a probable mistake."""
        self._add(Diagnostic(position, "warning", code, sentence, remedy))

    def info(self, code: int, position: Position, sentence: str, remedy: str = "") -> None:
        """Add a note."""
        self._add(Diagnostic(position, "info", code, sentence, remedy))

    def _add(self, diagnostic: Diagnostic) -> None:
        if not isinstance(diagnostic.position, Position):  # a family of a plugin may have forgotten it
            raise PluginError(
                f"diagnostics.{diagnostic.severity}: the position is {shown(diagnostic.position)}. Give the code, the "
                "position of a node, a sentence and a remedy."
            )
        self._found[diagnostic] = None
        kind = [d for d in self._found if (d.severity == "error") == (diagnostic.severity == "error")]
        if len(kind) > MAX_FINDINGS:
            del self._found[diagnostic]
            if diagnostic.severity == "error":
                sentence = f"There are more than {MAX_FINDINGS} errors."
                self._found[Diagnostic(diagnostic.position, "error", 199, sentence, "Fix the ones above first.")] = None
            raise EnoughFindingsError

    @property
    def found(self) -> list[Diagnostic]:
        """All findings, each once, in the order in which they were found."""
        return list(self._found)

    @property
    def errors(self) -> list[Diagnostic]:
        """The findings that are errors."""
        return [d for d in self.found if d.severity == "error"]


def listed(names: Iterable[str]) -> str:
    """Return names as a list for a remedy, truncated to MAX_LISTED."""
    names = list(names)
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "") or "none"


def in_file_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings sorted by position; those at one position keep their order.

    Unknown keys come first, because they may cause other errors.
    """
    return sorted(diagnostics, key=lambda d: (d.code != UNKNOWN_KEY, d.position))
