"""The user-facing errors of CheeseBench: one root class, and one class per cause.

Messages are written for the person who can fix the cause. They have the value seen and
one remedy.
"""

from __future__ import annotations

import difflib
import re
import sys
import traceback
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from cheesebench.diagnostics import Diagnostic

#: ``SHORT``: maximum number of characters of a list of known names. ``NEAREST``: number
#: of similar names that a message gives instead of a longer list.
SHORT, NEAREST = 240, 5


class CheeseBenchError(Exception):
    """Root of all errors that the user can fix. They are shown without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the user's own line, and the message."""
        return [*_callers_line(self.__traceback__), f"{type(self).__name__}: {self}"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. A notebook shows the line that was interrupted, and the message."""

    _render_traceback_ = CheeseBenchError._render_traceback_


Interrupted.__name__ = "KeyboardInterrupt"


def _callers_line(trace: TracebackType | None) -> Iterator[str]:
    """Yield the line of code from which this package was called, with its number."""
    ours, last = str(Path(__file__).parent), None
    for one in traceback.extract_tb(trace):
        if one.filename.startswith(ours):
            break
        last = one
    if last is not None and last.line:
        yield f"----> {last.lineno} {last.line}\n"


#: Exceptions that occur while a log is read if a value in it is not as a run writes it.
NOT_AS_WRITTEN = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)


def said_of_logs(error: Exception) -> str | None:
    """Return a message that blames the open logs for an error of ``NOT_AS_WRITTEN``.
    Return None if no log is open; the error is then a bug of ours.
    """
    # If this module is not imported, no log is open.
    logs = sys.modules.get("cheesebench.experiment.log_file")
    return logs.unreadable(error) if logs is not None and logs.OPENED else None


def cause_of(error: BaseException) -> str:
    """Return an error as text that names a cause: its message, with its class unless it
    is a CheeseBenchError.
    """
    return (
        str(error)
        if isinstance(error, CheeseBenchError)
        else f"{type(error).__name__}: {error}"
    )


def _place(frame: TracebackType) -> str:
    path = Path(frame.tb_frame.f_code.co_filename)
    # Jupyter's kernel keeps each cell in a temporary file.
    if path.parent.name.startswith("ipykernel_"):
        return f"line {frame.tb_lineno} of a notebook cell"
    return f"{path.name}:{frame.tb_lineno}"


def raised_where(error: BaseException) -> str:
    """Return as text an error that a plugin raised: its message, with its class, file
    and line (if they are known) unless it is a CheeseBenchError.
    """
    text = str(error)
    if isinstance(error, CheeseBenchError):
        return text
    # A SyntaxError's message has the place already.
    frame = None if isinstance(error, SyntaxError) else error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = "" if frame is None else f" ({_place(frame)})"
    return (
        f"{type(error).__name__}: {text}{where}"
        if text
        else f"{type(error).__name__}{where}"
    )


class _FindingsError(CheeseBenchError):
    """A file has errors: ``findings`` has one entry for each, with code, position,
    message and remedy.

    An error that is detected only at run time has no findings; its text is the whole
    message.
    """

    def __init__(self, text: str = "", findings: Iterable[Diagnostic] = ()) -> None:
        """``text`` is the message if there are no findings."""
        self.findings = tuple(findings)
        # The base class gets both, so that the exception can be pickled.
        super().__init__(text, self.findings)

    @property
    def lines(self) -> tuple[str, ...]:
        """One ``file:line:col: error E...`` line for each finding or, without findings,
        the message.
        """
        return tuple(map(str, self.findings)) or (str(self.args[0]),)

    def __str__(self) -> str:
        return "\n".join(self.lines)


class ProtocolError(_FindingsError):
    """A protocol has errors: ``findings`` holds them, ``lines`` has one line for
    each.
    """


class FileError(_FindingsError):
    """Another YAML file has errors (a list of models, a script); see ProtocolError."""


class UnknownNameError(CheeseBenchError):
    """A name is not known: of a model, a view, a protocol, an option, ..."""

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
        """``also`` has further names that may be suggested, but are not listed.
        ``whole`` is the text that ``name`` is taken from.
        """
        #: The known names that are listed.
        self.known = known = sorted(known)
        hint = did_you_mean(name, known) if whole else ""
        hint = hint or did_you_mean(whole or name, [*known, *sorted(also)])
        text = f"There is no {kind} '{name}'.{hint} {_listed(whole or name, known)}."
        super().__init__(f"{text} {remedy}" if remedy else text)


class OptionError(CheeseBenchError):
    """An option or an argument cannot be used, for example because it is invalid or
    contradicts another one.
    """

    @classmethod
    def of_argparse(cls, said: str, help_at: str = "") -> OptionError:
        """Return argparse's error in our words. ``help_at`` is a command that explains
        the arguments, for errors that do not have a remedy already.
        """
        more = f" See '{help_at}'." if help_at else ""
        if (argument := _ARGUMENT.fullmatch(said)) is None:
            return cls(f"{said}.{more}" if help_at else said)
        name, why = argument["name"], argument["why"]
        if choice := _CHOICE.fullmatch(why):
            known = [one.strip("'") for one in choice["known"].split(", ")]
            hint = did_you_mean(choice["value"], known)
            return cls(
                f"{name}: there is no '{choice['value']}'.{hint} Known: {', '.join(known)}."
            )
        if number := _NUMBER.fullmatch(why):
            kind = "a whole number" if number["kind"] == "int" else "a number"
            return cls(f"{name} {number['value']}: write {kind}.")
        return cls(f"{name}: {why}.{more}")


#: Patterns for argparse's errors. ``_ARGUMENT`` matches any error about an argument.
#: The other two match its ``why`` if the value is not one of the choices, or not a
#: number.
_ARGUMENT = re.compile(r"argument (?P<name>[^/:]+)[^:]*: (?P<why>.*)", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: '(?P<value>.*)' \(choose from (?P<known>.*)\)")
_NUMBER = re.compile(r"invalid (?P<kind>int|float) value: '(?P<value>.*)'")


class UnsuitableError(CheeseBenchError):
    """A model or an option does not fit a protocol, so the protocol cannot be run. This
    says nothing about the model.
    """


class RunLogError(CheeseBenchError):
    """A run log or a baseline cannot be used or written. It may be missing, damaged or
    changed, for example, or not fit this run.
    """


class ComparisonError(CheeseBenchError):
    """Two runs cannot be compared, for example because their subjects do not pair, or
    they have no cell in common.
    """


class PluginError(CheeseBenchError):
    """A plugin cannot be loaded, raises an exception, or returns something invalid."""


class StepAfterEndError(CheeseBenchError):
    """An environment was stepped although its trial had ended (language page, clause
    18).
    """


def _listed(name: str, known: Sequence[str]) -> str:
    """Return the known names, or only the nearest ones if there are many."""
    if len(", ".join(known)) <= SHORT:
        return f"Known: {', '.join(known) or 'none'}"
    near = difflib.get_close_matches(name[:100], known[:500], n=NEAREST, cutoff=0)
    return f"Nearest of {len(known)}: {', '.join(near)}"


def look_alike(word: str) -> str:
    """Return a remark on the first letter of a word that is not ASCII, such as a
    Cyrillic one that looks Latin, or "" if there is none.
    """
    odd = next(
        (letter for letter in word if letter.isalpha() and not letter.isascii()), None
    )
    if odd is None:
        return ""
    return f"The '{odd}' in it is {unicodedata.name(odd, f'U+{ord(odd):04X}')}: type the word with letters from a to z."


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest known name, or an empty
    string.
    """
    close = closest(name, known)
    return f" Did you mean '{close}'?" if close else ""


def _letters(name: str) -> str:
    """Return a name in small letters, without ``-``, ``_`` and spaces."""
    return re.sub(r"[-_\s]", "", name.casefold())


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant, or None if there is none."""
    # get_close_matches is slow for long names and long lists.
    name, names = name[:100], list(known)[:500]
    for one in names:
        if _letters(one) == _letters(name):
            return one
    # A prefix stands for the name that it begins: 'gpt-4' for 'gpt-4-32k', although
    # 'gpt-35' shares more letters.
    longer = [one for one in names if len(name) > 2 and one.startswith(name)]
    near = longer or difflib.get_close_matches(name, names, n=len(names) or 1)
    # Of several that are equally close, the first known one: 'ascii_2d' for 'ascii'.
    matcher = difflib.SequenceMatcher(b=name)

    def closeness(one: str) -> float:
        matcher.set_seq1(one)
        return matcher.ratio()

    return max(filter(near.__contains__, names), key=closeness, default=None)
