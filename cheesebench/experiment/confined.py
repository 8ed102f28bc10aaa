"""What is written to a run stays in its directory, whoever made it.

An archive can bring links and FIFOs along, and files beside a database that SQLite obeys before anybody has read a row.
"""

from __future__ import annotations

import stat
from pathlib import Path

from cheesebench.errors import RunLogError
from cheesebench.redaction import quoted

#: What SQLite keeps beside a database, by the end of the name.
_BESIDE = ("-journal", "-wal", "-shm")
#: A rollback journal that ends with these bytes names another file, which SQLite deletes when it has rolled back.
#: Only a transaction over several databases writes such a name; a run log has none.
_NAMES_A_FILE = bytes.fromhex("d9d505f920a163d7")


def check_plain(directory: Path) -> None:
    """Raise RunLogError unless ``directory`` holds plain files and directories only.

    Who writes to a link writes elsewhere; who opens a FIFO to write waits until somebody reads it, maybe for ever.
    """
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:  # another process of the run is at work
            continue
        if stat.S_ISLNK(mode):
            raise RunLogError(
                f"{quoted(str(path), 300)} is a symbolic link, and what is written to a run stays in its directory. "
                "Remove the link, or put the file itself there."
            )
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise _strange(path, "is not a file")


def check_beside(path: Path) -> None:
    """Raise RunLogError if SQLite would wait for, or delete, something else when it opens the database ``path``."""
    for suffix in _BESIDE:
        beside = path.with_name(path.name + suffix)
        if beside.exists() and not beside.is_file():
            raise _strange(beside, "is not a file")
    journal = path.with_name(path.name + _BESIDE[0])
    if journal.is_file() and _end(journal) == _NAMES_A_FILE:
        raise _strange(journal, "names another file to be deleted")


def _end(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(_NAMES_A_FILE)))
        return file.read()


def _strange(path: Path, what: str) -> RunLogError:
    return RunLogError(f"{quoted(str(path), 300)} {what}. No run leaves that: remove it, or use another copy.")


def inside(directory: Path, name: str) -> Path:
    """Return where ``name`` is to be written in a run's directory. RunLogError where that is no plain place."""
    check_plain(directory)
    path = directory / name
    check_plain(path)
    return path
