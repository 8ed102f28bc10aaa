"""The shipped protocols: one ``*.protocol.yaml`` per paradigm and edition; data
only.
"""

from __future__ import annotations

from pathlib import Path

from cheesebench.hookspecs import hookimpl


@hookimpl
def cheesebench_protocols() -> list[Path]:
    return [Path(__file__).parent]
