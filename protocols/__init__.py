"""The shipped protocols: one ``*.protocol.yaml`` per paradigm and edition; data only."""

from __future__ import annotations

from pathlib import Path

from cheesebench import hookimpl


@hookimpl
def cheesebench_protocols() -> list[Path]:
    """Return the folder of the shipped protocols."""
    return [Path(__file__).parent]
