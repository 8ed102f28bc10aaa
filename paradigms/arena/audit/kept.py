"""Stored results of an audit, one file for each search, so that a stopped audit can go
on.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.files import read_bytes, write_whole
from cheesebench.paradigms.arena.audit.adversary import Lived

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIX = ".json"
#: Maximum size of a file, in bytes. Larger files are not read.
MAX_BYTES = 50_000_000


def place(folder: str, search: object) -> Path | None:
    """Return the path of a search's file, or None if ``folder`` is empty, because
    results are not stored. The name is a hash of the search's ``repr``, which must
    describe the search completely.
    """
    name = hashlib.blake2b(repr(search).encode(), digest_size=16).hexdigest()
    return Path(folder, name + SUFFIX) if folder else None


def read(path: Path | None) -> dict[str, Any] | None:
    """Return the stored values of a search, or None if there are none, or they cannot
    be read.
    """
    if path is None:
        return None
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        found = json.loads(read_bytes(path, MAX_BYTES))
        lives = [[Lived(*trial) for trial in life] for life in found["lives"]]
        return {**found, "lives": tuple(map(tuple, lives))}
    return None


def write(
    path: Path | None, lives: Iterable[Iterable[Lived]], **values: object
) -> None:
    """Store the result of a search. Do nothing if ``path`` is None, or the file cannot
    be written.
    """
    if path is None:
        return
    rows = [[list(asdict(trial).values()) for trial in life] for life in lives]
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({**values, "lives": rows}))
