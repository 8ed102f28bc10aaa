"""Whether a run was made by this user on this machine: only then may its manifest say what to start and what to call.

A run directory can come from anybody. Its manifest is signed with a key that lies outside of it, in the user's own
state directory, and is sent nowhere; a manifest with another signature, or none, is a stranger's.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Key of the signature in the manifest.
SIGNATURE = "signature"
#: What is signed: the options, of this run and no other.
_SIGNED = ("run_id", "created", "options")
#: Bytes of the key.
_LENGTH = 32


def signature(manifest: Mapping[str, Any]) -> str | None:
    """Return the signature of a manifest that was made just now; None where no key can be kept (a read-only home)."""
    key = _key(create=True)
    return None if key is None else _signature(manifest, key)


def made_here(manifest: Mapping[str, Any]) -> bool:
    """Return whether the manifest was signed by this user on this machine, and is as it was then."""
    found, key = manifest.get(SIGNATURE), _key(create=False)
    if key is None or not isinstance(found, str):
        return False
    return hmac.compare_digest(found.encode(errors="replace"), _signature(manifest, key).encode())


def _signature(manifest: Mapping[str, Any], key: bytes) -> str:
    # As it reads back from JSON, in which it is kept: there are no tuples there.
    signed = json.dumps([manifest.get(name) for name in _SIGNED], sort_keys=True, separators=(",", ":"))
    return hmac.new(key, signed.encode(), hashlib.sha256).hexdigest()


def _path() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    # The specification of these directories: a relative path is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state") / "cheesebench" / "key"


def _key(*, create: bool) -> bytes | None:
    try:
        path = _path()
        if create and not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make(path)
        return _read(path)
    except (OSError, RuntimeError):  # RuntimeError: the user's home directory is unknown
        return None


def _make(path: Path) -> None:
    """Write a new key, whole or not at all; another process may be faster."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_LENGTH))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def _read(path: Path) -> bytes | None:
    """Return the key; None if it could be somebody else's, or if others can read it."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        if hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o077):
            return None
        key = file.read(_LENGTH + 1)
    return key if len(key) == _LENGTH else None
