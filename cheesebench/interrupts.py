"""SIGINT, and signals that end a process: one handler once the plugin is loaded; no
traceback, and always a line on how to go on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

NOTHING_RUN = "cheesebench: interrupted before the run began; nothing was run."
#: Exit status of an interrupted session, as pytest has it.
_STATUS = 2
#: Seconds after which a signal is looked at again that arrived during an import: C
#: extensions swallow exceptions.
_AGAIN = 0.05


def _signals(*names: str) -> frozenset[signal.Signals]:
    found = (getattr(signal, f"SIG{name}", None) for name in names)
    return frozenset(filter(None, found))


#: SIGINT and those whose default is to end the process (a closed terminal, a limit).
_SIGNALS = _signals("INT", "TERM", "HUP", "QUIT", "XCPU", "ALRM", "USR1", "USR2")
#: Those that programs may use for their own purposes; cluster schedulers send them
#: shortly before a job's time is over.
_FREE = _signals("USR1", "USR2")


class _State:
    """Effect of a signal: KeyboardInterrupt or, once ``patience`` is used up, the end
    of the process.
    """

    raises = False
    patience = 0
    #: pytest captures what is written to 2.
    stderr = 2
    last_words = NOTHING_RUN


def install() -> Callable[[], None]:
    """Handle the signals, unless they are ignored or this is not the main thread;
    return what undoes it.
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


def begin() -> None:
    """From now on a signal raises KeyboardInterrupt, which pytest handles."""
    _State.raises = True


def end(last_words: str) -> None:
    """From now on the session ends by itself; a second further signal ends it at once,
    with ``last_words``.
    """
    _State.raises, _State.patience, _State.last_words = False, 1, last_words


def over() -> None:
    """Let the next signal end the process: everything has been reported and saved."""
    _State.raises, _State.patience, _State.last_words = False, 0, ""


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Within this a signal raises KeyboardInterrupt in any case."""
    before, _State.raises = _State.raises, True
    try:
        yield
    finally:
        _State.raises = before


def _handle(number: int, frame: FrameType | None) -> Any:
    if not _State.raises:
        _State.patience -= 1
        if _State.patience >= 0:
            return
        with contextlib.suppress(OSError):
            os.write(
                _State.stderr,
                f"\n{_State.last_words}\n".encode() if _State.last_words else b"",
            )
        os._exit(_STATUS)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            threading.Timer(_AGAIN, os.kill, (os.getpid(), number)).start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt(signal.Signals(number).name)
