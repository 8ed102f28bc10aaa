"""Living processes and their ancestry."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

#: Maximum seconds for anything, before a test gives up.
PATIENCE = 120.0


def parents() -> dict[int, int]:
    """Return all living processes, each with its parent; zombies do not count."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = (
                path.read_text(encoding="utf-8", errors="replace")
                .rpartition(")")[2]
                .split()[:2]
            )
        except OSError:  # the process has just ended
            continue
        if state != "Z":
            found[int(path.parent.name)] = int(parent)
    return found


def family(process: int) -> set[int]:
    """Return a process and all its descendants."""
    known = parents()
    found = {process} & known.keys()
    while more := {child for child, parent in known.items() if parent in found} - found:
        found |= more
    return found


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this never happened"
        time.sleep(0.1)
