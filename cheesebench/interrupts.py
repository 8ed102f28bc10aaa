"""SIGINT and other signals that end a process: one handler for runs, commands and
servers.

Instead of a traceback, the user sees a line about the signal and its effect.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

NOTHING_RUN = "cheesebench: interrupted before the run began; nothing was run."
#: Exit code of an interrupted session, as in pytest.
INTERRUPTED = 2
#: Seconds after which a postponed signal is tried again. A signal is postponed where C
#: code would swallow its exception or take it for an error of ours: during an import,
#: and in functions marked by ``called_by_c``.
_AGAIN = 0.05
_CALLED_BY_C = set[CodeType]()


def _signals(*names: str) -> frozenset[signal.Signals]:
    found = (getattr(signal, f"SIG{name}", None) for name in names)
    return frozenset(filter(None, found))


#: SIGINT, and signals that end a process by default (as when its terminal is closed, or
#: a limit is reached).
_SIGNALS = _signals("INT", "TERM", "HUP", "QUIT", "XCPU", "ALRM", "USR1", "USR2")
#: Signals that programs may use for their own purposes. Cluster schedulers send them
#: shortly before a job's time is over.
_FREE = _signals("USR1", "USR2")


class Interrupted(KeyboardInterrupt):
    """A signal has come; the message is its name. pytest shows no traceback for it."""

    __module__ = "builtins"


def _interrupt(name: str) -> None:
    raise Interrupted(name)


def _interrupt_once(name: str) -> None:
    end(_ended_by(name))
    _interrupt(name)


class _State:
    """The effect of a signal: ``action`` is called with its name. Without an action,
    the first ``patience`` signals are ignored, and the next one ends the process.
    """

    action: Callable[[str], None] | None = None
    patience = 0
    #: File descriptor of stderr. It becomes a copy, because pytest redirects descriptor
    #: 2.
    stderr = 2
    last_words = NOTHING_RUN
    #: Exit code (None: 128 + the signal's number).
    code: int | None = INTERRUPTED


def install() -> Callable[[], None]:
    """Handle the signals if this is the main thread, except signals that are ignored or
    that the program itself uses (``_FREE``). Return a function that restores the old
    handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    known = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = {
        number: handler
        for number, handler in known.items()
        if handler not in (signal.SIG_IGN, _handle)
        and (number not in _FREE or handler is signal.SIG_DFL)
    }
    if ours and _State.stderr == 2:
        with contextlib.suppress(OSError):
            _State.stderr = os.dup(2)
    for number in ours:
        signal.signal(number, _handle)

    def undo() -> None:
        for number, handler in ours.items():
            signal.signal(number, handler)

    return undo


def called_by_c(function: Callable[P, T]) -> Callable[P, T]:
    """Mark a function that C code, such as SQLite, calls back. Signals wait until it
    has returned.
    """
    _CALLED_BY_C.add(function.__code__)
    return function


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Make signals wait until the end of the block, except on Windows. In processes
    that are started in the block, they wait forever.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ended_by(name: str) -> str:
    return f"cheesebench: ended by {name}. No file is half-written."


def ended(error: KeyboardInterrupt) -> tuple[str, int]:
    """Return the message of a command that a signal has ended, and the exit code that
    shells use for this.
    """
    name = str(error)
    # Other code may raise KeyboardInterrupt without a signal name.
    if name not in signal.Signals.__members__:
        name = "SIGINT"
    return _ended_by(name), 128 + signal.Signals[name]


def begin() -> None:
    """Make signals raise KeyboardInterrupt from now on. pytest handles it."""
    _State.action = _interrupt


@contextlib.contextmanager
def of_command() -> Iterator[None]:
    """Handle signals during a whole command. The first one raises KeyboardInterrupt, so
    that drafts are removed, the second is ignored, and the third ends the command at
    once.
    """
    _State.action, _State.code = _interrupt_once, None
    install()
    try:
        yield
    except KeyboardInterrupt as error:  # before the command begins
        line, code = ended(error)
        print(line, file=sys.stderr)
        raise SystemExit(code) from None
    finally:
        end("")


@contextlib.contextmanager
def passed_to(stop: Callable[[], object]) -> Iterator[None]:
    """Handle signals while a server runs. The first one calls ``stop``, and a final
    line names it.
    """
    came: list[str] = []

    def pass_on(name: str) -> None:
        end(_ended_by(name))
        came.append(name)
        stop()

    undo, before = install(), _State.action
    _State.action = pass_on
    try:
        yield
    finally:
        if not came:
            _State.action = before
        undo()
        for name in came:
            print(f"cheesebench: ended by {name}.", file=sys.stderr, flush=True)


def end(last_words: str) -> None:
    """Let the session end by itself. The next signal is ignored, and the one after it
    ends the process at once, with ``last_words``.
    """
    _State.action, _State.patience, _State.last_words = None, 1, last_words


def over() -> None:
    """Let the next signal end the process, because everything has been reported and
    saved.
    """
    _State.action, _State.patience, _State.last_words = None, 0, ""


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Make signals raise KeyboardInterrupt during the block."""
    before, _State.action = _State.action, _interrupt
    try:
        yield
    finally:
        _State.action = before


def _handle(number: int, frame: FrameType | None) -> None:
    if _State.action is None:
        _end_at_once(number)
    elif _is_called_by_c(frame):
        threading.Timer(_AGAIN, os.kill, (os.getpid(), number)).start()
    else:
        _State.action(signal.Signals(number).name)


def _end_at_once(number: int) -> None:
    _State.patience -= 1
    if _State.patience >= 0:
        return
    with contextlib.suppress(OSError):
        os.write(
            _State.stderr,
            f"\n{_State.last_words}\n".encode() if _State.last_words else b"",
        )
    os._exit(128 + number if _State.code is None else _State.code)


def _is_called_by_c(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if code in _CALLED_BY_C or code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
