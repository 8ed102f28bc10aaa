"""Run logs that are changed behind the program's back, as if they had been written so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cheesebench.experiment.rows import seal


@contextmanager
def rewritten(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a run log; all of its rows are sealed anew at the end."""
    with closing(sqlite3.connect(path)) as connection:
        yield connection
        reseal(connection)
        connection.commit()


def reseal(connection: sqlite3.Connection) -> None:
    """Seal every row as it is."""
    connection.create_function("sealed", -1, lambda *values: seal(values))
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in names:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        if "seal" not in columns:
            continue
        sealed = [name for name in columns if name not in ("seal", "position")]
        if table == "calls":
            sealed.append("(SELECT text FROM texts WHERE texts.digest = calls.system)")
        connection.execute(f"UPDATE {table} SET seal = sealed({', '.join(sealed)})")
