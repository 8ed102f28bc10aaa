"""Changes run logs without the program, and renews their digest, as if they had been
written like this.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cheesebench.experiment.log_file import row_digest, tables
from cheesebench.experiment.recorder import DIGESTS


@contextmanager
def rewritten(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection to a run log. At the end, renew the log's digest."""
    with closing(sqlite3.connect(path)) as connection:
        yield connection
        forge(connection)
        connection.commit()


def forge(connection: sqlite3.Connection) -> None:
    """Renew the digest from the present rows."""
    total = 0
    for table, columns in tables().items():
        total += sum(
            row_digest(table, row)
            for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}")
        )
    connection.execute("UPDATE digest SET total = ?", (f"{total % DIGESTS:064x}",))
