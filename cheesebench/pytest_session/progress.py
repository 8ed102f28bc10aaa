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
from cheesebench.running.tally import Tally, duration

# Save the cursor, restore it, clear to the end of the line (ECMA-48 and DEC, as every terminal has them).
_SAVE, _RESTORE, _CLEAR = "\x1b7", "\x1b8", "\x1b[K"
#: Columns that pytest may have used behind that (letters of earlier tests of the same file).
_RESERVE = 12


def teller(config: pytest.Config) -> Callable[[str], None]:
    """Return a function that writes a line, on a terminal or into a log; for slow steps before the first test."""

    def tell(line: str) -> None:
        terminal = config.pluginmanager.getplugin("terminalreporter")  # while pytest is configured there is none yet
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
def progress_line(config: pytest.Config, nodeid: str, tally: Tally | None) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that draws the progress of the run and of a cell; the line is cleared at the end."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is None or not terminal.isatty or os.environ.get("TERM") == "dumb":
        yield lambda progress: None
        return
    begun = time.monotonic()
    capture = config.pluginmanager.getplugin("capturemanager")
    uncaptured = nullcontext if capture is None else capture.global_and_fixture_disabled
    with uncaptured():  # captured standard output is a file without a width
        # Without -v there are a path and letters before it, of which there is one for each test.
        taken = len(nodeid) if config.option.verbose > 0 else len(nodeid.partition("::")[0])
        room = shutil.get_terminal_size().columns - taken - _RESERVE

    def write(text: str) -> None:
        with uncaptured():
            _write(text)

    def draw(progress: Progress) -> None:
        seconds = time.monotonic() - begun
        where = f" look at {progress.look} of at most {progress.most} subjects:" if progress.look else ""
        own = f"{where} {progress.done}/{progress.planned} trials, {seconds:.0f} s"
        left = seconds / progress.done * (progress.planned - progress.done) if progress.done else 0
        if left > 10:
            own += f", about {duration(left)} left"
        note = f"; {progress.note}" if progress.note else ""
        whole = f" {tally.line()}" if tally is not None and tally.cells > 1 else ""
        # Show as much as fits on the line: how far the run is comes before how far this cell is.
        shown = (f"{whole} |{own}{note}", f"{whole} |{own}", whole) if whole else (f"{own}{note}",)
        for text in (*shown, own, f"{where} {progress.done}/{progress.planned} trials, {seconds:.0f} s"):
            if len(text) <= room:
                write(f"{_SAVE}{text}{_CLEAR}{_RESTORE}")
                break

    try:
        yield draw
    finally:
        write(_CLEAR)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
