"""Everything that CheeseBench raises for a person: one root, one class per cause.

The message of every error is written for the person who can mend it: what was seen, and one remedy.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cheesebench.protocol.diagnostics import Diagnostic

#: Most characters of a list of names that goes on in the sentence; and of a line of a longer one.
SHORT, WIDTH = 240, 78


class CheeseBenchError(Exception):
    """Root of all errors that are the user's to mend; its text needs no traceback."""


class _FindingsError(CheeseBenchError):
    """A file has errors: ``findings`` holds each with its code, position, sentence and remedy.

    Where a mistake shows only at run time there are none, and the text says all.
    """

    def __init__(self, text: str = "", findings: Iterable[Diagnostic] = ()) -> None:
        """``text`` stands for the findings where there are none."""
        self.findings = tuple(findings)
        # Both are arguments of the exception, so that it can be pickled.
        super().__init__(text, self.findings)

    @property
    def lines(self) -> tuple[str, ...]:
        """One ``file:line:col: error E...`` line for each finding."""
        return tuple(map(str, self.findings)) or (str(self.args[0]),)

    def __str__(self) -> str:
        return "\n".join(self.lines)


class ProtocolError(_FindingsError):
    """A protocol has errors. ``findings`` are those of its file, ``lines`` says each in a line."""


class FileError(_FindingsError):
    """Another YAML file has errors (a list of models, a script); see ProtocolError."""


class UnknownNameError(CheeseBenchError):
    """A model, view, protocol, edition or design of that name is not registered."""

    def __init__(
        self,
        kind: str,
        name: str,
        known: Iterable[str],
        *,
        also: Iterable[str] = (),
        whole: str | None = None,
        remedy: str = "",
    ) -> None:
        """``also`` holds names that may have been meant but are not listed, ``whole`` what ``name`` is a part of."""
        known = sorted(known)
        hint = did_you_mean(name, known) if whole else ""
        hint = hint or did_you_mean(whole or name, [*known, *sorted(also)])
        text = f"There is no {kind} '{name}'.{hint} Known:{_listed(known)}."
        super().__init__(f"{text} {remedy}" if remedy else text)


class OptionError(CheeseBenchError):
    """Options contradict each other, or one has a value that makes no sense."""


class UnsuitableError(CheeseBenchError):
    """A model, or an option, is not for this protocol: it cannot be run, which says nothing about the model."""


class RunLogError(CheeseBenchError):
    """A run log cannot be created, opened or written, or belongs to another run."""


class ComparisonError(CheeseBenchError):
    """Two runs cannot be compared: their subjects did not meet the same trials, or nothing is in both."""


class PluginError(CheeseBenchError):
    """A plugin could not be loaded, or does not supply what its hook promises."""


class StepAfterEndError(CheeseBenchError):
    """An environment was stepped although its trial had ended (language page, clause 18)."""


def _listed(names: Iterable[str]) -> str:
    """Return names after a colon: on the same line, or where they are many on lines of their own."""
    text = ", ".join(names)
    if len(text) <= SHORT:
        return f" {text}"
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "".join(f"\n  {line}" for line in lines)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest known name, or an empty string."""
    # Comparing takes its time: neither a huge name nor the thousandth known one is worth it.
    close = difflib.get_close_matches(name[:100], list(known)[:500], n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""
