"""The tables of a run log, from the SQL that creates them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

from cheesebench.experiment.log_file import SCHEMA
from website.markup import code, prose, sections, sentence, table

_COMMENT = re.compile(r"^ *(\w+) [^-\n]*-- (.+)$", re.MULTILINE)


def run_log() -> str:
    """Return a section for each table."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        tables = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        )
        return sections(
            part
            for name, sql in tables.fetchall()
            for part in _table(connection, name, sql)
        )


def _table(connection: sqlite3.Connection, name: str, sql: str) -> list[str]:
    first, _, rest = sql.partition("\n")
    meanings = dict(_COMMENT.findall(rest))
    rows = []
    for _, column, kind, not_null, _, key in connection.execute(
        f"PRAGMA table_info({name})"
    ):
        kind = f"{kind.lower()}{'' if not_null or key else ' or NULL'}{', key' if key else ''}"
        rows.append([code(column), kind, prose(meanings[column])])
    about = sentence(first.partition("-- ")[2])
    return [
        f"### {code(name)} {{#{name}}}",
        about,
        table(["column", "type", "meaning"], rows),
    ]
