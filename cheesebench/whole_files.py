"""Files that are written whole: who reads one finds the old content or the new, never a part of either."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def written_whole(path: str | os.PathLike[str], mode: str = "w", **how: Any) -> Iterator[IO[Any]]:
    """Open a file for writing, UTF-8 unless ``mode`` is ``"wb"``; it appears at ``path`` when the block is left.

    It has the permissions of the file that it replaces, or those that the umask gives to a new one. A symbolic link
    stays, and what it leads to is replaced. Another name of the old file (a hard link) keeps the old content. What
    cannot be replaced, such as ``/dev/stdout`` or a file in a directory that is not writable, is written to directly.

    Raises:
        OSError: if it cannot be written; the old content is then still there.
    """
    how = {"encoding": None if "b" in mode else "utf-8", **how}
    target = Path(os.path.realpath(path))
    old = Path(path).stat().st_mode if Path(path).exists() else None
    # Who writes to /dev/stdout goes on doing so, also where that leads to a file.
    stands_for_another = os.path.abspath(path).startswith(("/dev/", "/proc/"))
    writable = os.access(target, os.W_OK) and os.access(target.parent, os.W_OK)
    if stands_for_another or (old is not None and not (stat.S_ISREG(old) and writable)):
        with Path(path).open(mode, **how) as file:
            yield file
        return
    draft = target.with_name(f".{secrets.token_hex(8)}.draft")
    try:
        with draft.open(mode.replace("w", "x"), **how) as file:
            if old is not None:
                draft.chmod(stat.S_IMODE(old))
            yield file
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file whole; see ``written_whole``."""
    with written_whole(path, "w" if isinstance(content, str) else "wb") as file:
        file.write(content)
