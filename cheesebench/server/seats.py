"""Who has which place in a run of people, and the keys of trials that are not finished: a small file beside the log.

It holds no name, no address and no time. A seat is known by a digest of its token, which only the person has.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cheesebench.experiment.confined import check_beside, check_plain
from cheesebench.experiment.log_file import errors_explained
from cheesebench.server.door import new_token

FILE_NAME = "people.sqlite"
#: Seconds after which a place that nobody has used yet goes to somebody else.
UNUSED = 1800.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS seats (subject INTEGER PRIMARY KEY, mark TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS keys (
    subject INTEGER PRIMARY KEY, cell INTEGER NOT NULL, trial INTEGER NOT NULL, letters TEXT NOT NULL
) STRICT;
"""


class Keys(NamedTuple):
    """The letters of the steps so far of a trial that is not finished: of which cell (from 0), in which trial."""

    cell: int
    trial: int
    letters: str


class Seats:
    """The seats of one run. Whatever a method has written is there after any crash of the process."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = directory / FILE_NAME
        self._clock = clock
        #: When a seat was given (or, after a start, found) that was not used yet.
        self._given: dict[int, float] = {}
        with errors_explained(self.path):
            check_plain(directory)
            check_beside(self.path)
            self.path.touch(mode=0o600)
            self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.executescript(_SCHEMA)

    def setting(self, name: str, default: str) -> str:
        """Return a value that was kept; the default is kept from now on if there was none."""
        with errors_explained(self.path):
            self._connection.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, default))
            [(value,)] = self._connection.execute("SELECT value FROM settings WHERE name = ?", (name,))
        return str(value)

    def keep(self, name: str, value: str) -> None:
        """Keep a value."""
        with errors_explained(self.path):
            self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def subject_of(self, token: str) -> int | None:
        """Return whose seat this is; None for a token that was never given, or that has passed to somebody else."""
        with errors_explained(self.path):
            row = self._connection.execute("SELECT subject FROM seats WHERE mark = ?", (_mark(token),)).fetchone()
        return None if row is None else int(row[0])

    def take(self, places: int, used: Callable[[int], bool]) -> str | None:
        """Return the token of a seat for a new person; None if all places are taken.

        ``used`` says whether a subject has pressed a key: a seat without one is given away after ``UNUSED`` seconds.
        """
        now = self._clock()
        with errors_explained(self.path):
            taken = {subject for (subject,) in self._connection.execute("SELECT subject FROM seats")}
            for subject in range(places):
                if subject in taken and (self._given.setdefault(subject, now) > now - UNUSED or used(subject)):
                    continue
                token = new_token()
                self._connection.execute("INSERT OR REPLACE INTO seats VALUES (?, ?)", (subject, _mark(token)))
                self._given[subject] = now
                return token
        return None

    def count(self) -> int:
        """Return how many seats were given."""
        with errors_explained(self.path):
            return int(self._connection.execute("SELECT count(*) FROM seats").fetchone()[0])

    def keys(self, subject: int) -> Keys | None:
        """Return the keys of the subject's unfinished trial, if there are any."""
        with errors_explained(self.path):
            query = "SELECT cell, trial, letters FROM keys WHERE subject = ?"
            row = self._connection.execute(query, (subject,)).fetchone()
        return None if row is None else Keys(*row)

    def write(self, subject: int, keys: Keys) -> None:
        """Keep the keys of the subject's unfinished trial."""
        with errors_explained(self.path):
            self._connection.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?)", (subject, *keys))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _mark(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
