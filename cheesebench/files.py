"""Strict JSON, and files that appear only when complete."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """Return at most ``most`` bytes of a file.

    Raises:
        OSError: also for a file that is not regular, because reading it could block
        indefinitely. ValueError: for an invalid file name.
    """
    with open(
        os.open(
            path,
            os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0),
        ),
        "rb",
    ) as file:
        mode = os.fstat(file.fileno()).st_mode
        data: bytes | None = file.read(most) if stat.S_ISREG(mode) else None
    if data is None:
        raise (
            OSError(errno.EISDIR, "Is a directory")
            if stat.S_ISDIR(mode)
            else OSError(errno.EINVAL, "it is not a file")
        )
    return data


def strict_json(value: object, **how: Any) -> str:
    """Return ``value`` as ASCII JSON with null for numbers that are not finite; ``how``
    is for ``json.dumps``.
    """
    return json.dumps(_finite(value), allow_nan=False, **how)


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return (
        [_finite(item) for item in value] if isinstance(value, list | tuple) else value
    )


@contextmanager
def written_whole(
    path: str | os.PathLike[str], mode: str = "w", **how: Any
) -> Iterator[IO[Any]]:
    """Open a file for writing, UTF-8 unless ``mode`` is ``"wb"``; it appears at
    ``path`` when the block is left.

    It has the permissions of the file that it replaces, or those that the umask gives
    to a new one. A symbolic link stays, and what it leads to is replaced. Another name
    of the old file (a hard link) keeps the old content. What cannot be replaced, such
    as ``/dev/stdout`` or a file in a directory that is not writable, is written to
    directly.

    Raises:
        OSError: if it cannot be written; the old content is then still there.
    """
    how = {"encoding": None if "b" in mode else "utf-8", **how}
    target = Path(os.path.realpath(path))
    old = Path(path).stat().st_mode if Path(path).exists() else None
    # /dev/stdout is written to directly, even if it leads to a file.
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
    with written_whole(path, "w" if isinstance(content, str) else "wb") as file:
        file.write(content)
