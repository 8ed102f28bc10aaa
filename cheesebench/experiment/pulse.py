"""Says in a small file beside the run log how many calls are in flight, and what they may cost.

The log has only calls that were answered, and no budget, which is that of a session.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cheesebench.whole_files import write_whole

#: Seconds between two beats, and after how many a file counts as left behind by a process that was killed.
INTERVAL, STALE = 0.5, 5.0
_PREFIX, _SUFFIX = "calls-", ".json"
#: Bytes of such a file.
_LONGEST = 4096


class Flight(NamedTuple):
    """Calls in flight, how many there may be at present, and the budget in dollars of the whole run, if it has one."""

    calls: int
    limit: int
    budget: float | None = None


class Pulse:
    """Writes what ``flight`` returns into ``directory``, again and again, from ``start`` until ``stop``."""

    def __init__(self, directory: Path, flight: Callable[[], Flight]) -> None:
        self._file = directory / f"{_PREFIX}{os.getpid()}{_SUFFIX}"
        self._flight = flight
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop; a second call does nothing."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._beat())

    async def stop(self) -> None:
        """End, and remove the file."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)

    async def _beat(self) -> None:
        while True:
            # Nobody depends on it: a full disk is reported where something is lost.
            with contextlib.suppress(OSError):
                write_whole(self._file, json.dumps(self._flight()._asdict()))
            await asyncio.sleep(INTERVAL)


def read_flight(directory: Path) -> Flight | None:
    """Return what all processes of a run have in flight; None where none of them says so."""
    flights = [flight for path in directory.glob(f"{_PREFIX}*{_SUFFIX}") if (flight := _read(path)) is not None]
    if not flights:
        return None
    budget = next((one.budget for one in flights if one.budget is not None), None)
    return Flight(sum(one.calls for one in flights), sum(one.limit for one in flights), budget)


def _read(path: Path) -> Flight | None:
    try:
        found = path.lstat()
        # A FIFO would be waited for, and a stranger's file may be of any size.
        if not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST or time.time() - found.st_mtime > STALE:
            return None
        content = json.loads(path.read_text(encoding="utf-8"))
        budget = content.get("budget")
        return Flight(int(content["calls"]), int(content["limit"]), None if budget is None else float(budget))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None
