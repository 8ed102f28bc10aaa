"""A line of live progress on a terminal; nothing elsewhere, where it would fill a log file."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import pytest

from cheesebench.experiment.scheduling import Progress
from cheesebench.film import printable

# Save the cursor, restore it, clear to the end of the line (ECMA-48 and DEC, as every terminal has them).
_SAVE, _RESTORE, _CLEAR = "\x1b7", "\x1b8", "\x1b[K"
#: Columns that pytest may have used behind the node id (letters of earlier tests of the same file).
_RESERVE = 12


def teller(config: pytest.Config) -> Callable[[str], None]:
    """Return a function that writes a line, on a terminal or into a log; for slow steps before the first test."""
    terminal = config.pluginmanager.getplugin("terminalreporter")

    def tell(line: str) -> None:
        if terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(line)

    return tell


def tell_uncaptured(config: pytest.Config, line: str) -> None:
    """Write a line of its own while a test runs, whose output is captured.

    What a worker of pytest-xdist writes on its terminal nobody sees; its standard error is the whole session's.
    """
    capture = config.pluginmanager.getplugin("capturemanager")
    with nullcontext() if capture is None else capture.global_and_fixture_disabled():
        if hasattr(config, "workerinput"):
            print(printable(line), file=sys.__stderr__, flush=True)
        else:
            teller(config)(printable(line))


@contextmanager
def progress_line(config: pytest.Config, nodeid: str) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that draws a cell's progress after the node id; the line is cleared at the end."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is None or not terminal.isatty or os.environ.get("TERM") == "dumb":
        yield lambda progress: None
        return
    begun = time.monotonic()
    capture = config.pluginmanager.getplugin("capturemanager")
    uncaptured = nullcontext if capture is None else capture.global_and_fixture_disabled
    with uncaptured():  # captured standard output is a file without a width
        room = shutil.get_terminal_size().columns - len(nodeid) - _RESERVE

    def write(text: str) -> None:
        with uncaptured():
            _write(text)

    def draw(progress: Progress) -> None:
        seconds = time.monotonic() - begun
        where = f" look at {progress.look} of at most {progress.most} subjects:" if progress.look else ""
        text = f"{where} {progress.done}/{progress.planned} trials, {seconds:.0f} s"
        left = seconds / progress.done * (progress.planned - progress.done) if progress.done else 0
        parts = [
            text,
            f", about {_duration(left)} left" if left > 10 else "",
            f"; {progress.note}" if progress.note else "",
        ]
        # Show as much as fits on the line.
        for shown in ("".join(parts), f"{parts[0]}{parts[2]}", f"{parts[0]}{parts[1]}", parts[0]):
            if len(shown) <= room:
                write(f"{_SAVE}{shown}{_CLEAR}{_RESTORE}")
                break

    try:
        yield draw
    finally:
        write(_CLEAR)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
