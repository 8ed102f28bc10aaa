"""The origin of a run: its manifest, its user's signature, and
the installed software.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import importlib.metadata
import json
import os
import platform
import re
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.canary import CANARY
from cheesebench.errors import OptionError
from cheesebench.options import OPTIONS
from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import FORMAT

if TYPE_CHECKING:
    from cheesebench.interfaces import BaseSpecification

#: Key of the recorded option that tells whether the seed was drawn.
SEED_DRAWN = "seed_drawn"
#: Number of bits of a drawn seed. It has at most 16 digits, so that a person can type
#: it, and programs whose numbers are floats keep it. With fewer bits, a server could
#: find the seed, and so the worlds, while it answers: the seeds of its calls are hashes
#: of it, and a GPU computes about 2^33 of them a second.
SEED_BITS = 53
#: Distributions whose versions can change a result.
_LIBRARIES = ("gymnasium", "numpy", "scipy")
#: Maximum number of seconds to wait for git, which may be slow on a network drive or in
#: a huge repository.
_GIT_PATIENCE = 10.0
#: Exit status of ``git config`` for a name that is not set.
_NOT_SET = 1
#: Scopes of the git settings that the user has made. A repository's own settings may
#: come from its author.
_OWN_SCOPES = frozenset({"system", "global", "command"})
#: Settings that together disable a content filter.
_NO_FILTER = ("clean=", "process=", "required=false")


def draw_seed() -> int:
    """Return a new seed for a run: SEED_BITS random bits from the operating system. It
    cannot be predicted.
    """
    return secrets.randbits(SEED_BITS)


def new_run_id() -> str:
    """Return a new run id: local date and time, and four random hexadecimal digits."""
    return f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def check_run_id(run_id: str) -> str:
    """Return ``run_id`` if it is a plain name for a directory. Raise OptionError
    otherwise.
    """
    return check_name(run_id, "a run", "--run-id ")


def check_name(name: str, what: str, option: str = "") -> str:
    """Return ``name`` if it is a plain name for ``what`` (a directory or file). Raise
    OptionError otherwise.
    """
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        raise OptionError(
            f"{option}{name!r} cannot name {what}. Use up to 100 letters, digits, '_', '-' and '.', but not '-' or '.' first."
        )
    return name


def describe_run(
    run_id: str,
    specifications: Iterable[BaseSpecification],
    options: Mapping[str, Any],
    plugins: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the manifest (JSON values) of a run that starts now.

    ``options`` are the command line options that affect the results (seed, design,
    ...). The environment is not included, because it may hold keys.
    ``plugins`` are the versions of third-party plugins, by name.
    """
    return {
        "format": FORMAT,
        "run_id": run_id,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "git": git_state(Path.cwd()),
        "options": dict(options),
        "plugins": dict(plugins or {}),
        "protocols": describe_protocols(specifications),
        "canary": CANARY,
    }


def recorded_options(values: Mapping[str, Any]) -> dict[str, Any]:
    return {option.key: values[option.key] for option in OPTIONS if option.recorded}


def describe_protocols(
    specifications: Iterable[BaseSpecification],
) -> dict[str, dict[str, Any]]:
    return {
        specification.name: {
            "paradigm": specification.paradigm,
            "edition": specification.edition,
            "sha256": specification.sha256,
            "text": specification.text,
        }
        for specification in specifications
    }


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package and of the libraries that affect
    results, and the platform.
    """
    entries = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cheesebench": importlib.metadata.version("pytest-cheesebench"),
    }
    for library in _LIBRARIES:
        try:
            entries[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            entries[library] = "not installed"
    return entries


def git_state(directory: Path) -> dict[str, Any] | None:
    """Return ``revision`` and ``dirty`` of the work tree around ``directory``, or None
    outside a work tree, or if git cannot tell.

    The work tree may be hostile: git would start programs named in its configuration,
    such as a file system monitor, content filters, and fetchers of missing objects.
    None of these programs is started here.
    """
    revision = _git(directory, "rev-parse", "HEAD")
    filters = _filters_of_others(directory)
    if revision is None or revision.returncode or filters is None:
        return None
    settings = [
        word
        for name in filters
        for key in _NO_FILTER
        for word in ("-c", f"{name}.{key}")
    ]
    # Only the commit of a submodule is compared, because the filters of its files are
    # configured elsewhere.
    changes = _git(
        directory, *settings, "status", "--porcelain", "--ignore-submodules=dirty"
    )
    if changes is None or changes.returncode:
        return None
    return {"revision": revision.stdout.strip(), "dirty": bool(changes.stdout.strip())}


def _filters_of_others(directory: Path) -> list[str] | None:
    """Return the content filters (``filter.NAME``) that the repository configures, not
    the user. Return None if git does not list them, or a name cannot be written on a
    command line.
    """
    named = _git(
        directory,
        "config",
        "--show-scope",
        "--null",
        "--name-only",
        "--get-regexp",
        r"^filter\.",
    )
    if named is None or named.returncode not in (0, _NOT_SET):
        return None
    fields = named.stdout.split("\0")
    theirs = {
        name.rpartition(".")[0]
        for scope, name in zip(fields[::2], fields[1::2], strict=False)
        if scope not in _OWN_SCOPES
    }
    return None if any("=" in name for name in theirs) else sorted(theirs)


def _git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Run git. Return None if it does not start, or does not end in time."""
    # An empty list of allowed protocols prevents every fetch. Newer versions of git
    # also read the second variable.
    environment = {**os.environ, "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
    try:
        return subprocess.run(
            ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", *arguments),
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_GIT_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None


#: Key of the signature in the manifest.
SIGNATURE = "signature"
#: The keys of the manifest that are signed: the options, and what binds them to this
#: run.
_SIGNED = ("run_id", "created", "options")
#: Length of the signing key in bytes.
_KEY_LENGTH = 32


def signature(manifest: Mapping[str, Any]) -> str | None:
    """Return the signature of a new manifest, or None if no key can be stored (for
    example, because the home directory is read-only).
    """
    key = _key(create=True)
    return None if key is None else _signature(manifest, key)


def made_here(manifest: Mapping[str, Any]) -> bool:
    """Return whether this user signed the manifest on this machine, and its signed part
    is unchanged.
    """
    found, key = manifest.get(SIGNATURE), _key(create=False)
    if key is None or not isinstance(found, str):
        return False
    return hmac.compare_digest(
        found.encode(errors="replace"), _signature(manifest, key).encode()
    )


def _signature(manifest: Mapping[str, Any], key: bytes) -> str:
    # Sign the JSON form, because a manifest that is read back has lists where a new one
    # may have tuples.
    signed = json.dumps(
        [manifest.get(name) for name in _SIGNED], sort_keys=True, separators=(",", ":")
    )
    return hmac.new(key, signed.encode(), hashlib.sha256).hexdigest()


def _path() -> Path:
    base = os.environ.get("XDG_STATE_HOME", "")
    # As the XDG specification demands, a relative path is ignored.
    return (
        (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state")
        / "cheesebench"
        / "key"
    )


def _key(*, create: bool) -> bytes | None:
    try:
        path = _path()
        if create and not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make(path)
        return _read(path)
    except (OSError, RuntimeError):
        # RuntimeError is raised if the user's home directory is unknown.
        return None


def _make(path: Path) -> None:
    """Write a new key, completely or not at all. If another process was faster, its key
    stays.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_LENGTH))
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def _read(path: Path) -> bytes | None:
    """Return the key. Return None if the file is not a plain one, may belong to another
    user, can be read by others, or has the wrong length.
    """
    descriptor = os.open(
        path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    )
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        if hasattr(os, "getuid") and (
            found.st_uid != os.getuid() or found.st_mode & 0o077
        ):
            return None
        key = file.read(_KEY_LENGTH + 1)
    return key if len(key) == _KEY_LENGTH else None


#: Endings of the data files that enter the digests of protocols and plugins.
_DATA = (".yaml", ".json", ".txt")
#: Length of a digest in characters.
_DIGEST_LENGTH = 12


@lru_cache(maxsize=1)
def installation() -> dict[str, str]:
    """Return, by name, the installed software of this process that can change a record.

    The values are the versions of Python, of CheeseBench and of the libraries that
    affect results, digests of CheeseBench's code and of its protocols, and for each
    plugin its version with a digest of its files. Equal installations should give equal
    records for the same job.
    """
    installed = {
        name: version for name, version in versions().items() if name != "platform"
    }
    package = Path(__file__).parents[1]
    installed["code of cheesebench"] = _digest(package, (".py",))
    installed["protocols of cheesebench"] = _digest(package, _DATA)
    plugins = installed_plugins()
    for name, origin in plugins.strangers().items():
        installed[f"plugin {name}"] = (
            f"{origin} ({_digest(_files_of(plugins.get_plugin(name)), ('.py', *_DATA))})"
        )
    return installed


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Return the differences between two installations, one phrase for each name."""
    missing = "none"
    return [
        f"{name}: {there.get(name, missing)}, here {here.get(name, missing)}"
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    ]


def _files_of(plugin: object) -> Path | None:
    name = str(getattr(plugin, "__name__", "")).partition(".")[0]
    path = getattr(sys.modules.get(name), "__file__", None) or getattr(
        plugin, "__file__", None
    )
    if path is None:
        return None
    return Path(path).parent if Path(path).name == "__init__.py" else Path(path)


def _digest(path: Path | None, endings: tuple[str, ...]) -> str:
    if path is None:
        return "no file"
    digest = hashlib.sha256()
    for name, file in sorted(_files(path, endings)):
        content = file.read_bytes()
        digest.update(f"{name}|{len(content)}|".encode())
        digest.update(content)
    return digest.hexdigest()[:_DIGEST_LENGTH]


def _files(path: Path, endings: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    # Links are followed, because four of our packages are symbolic links in an
    # installation for development.
    for directory, folders, names in os.walk(path, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(endings):
                file = Path(directory, name)
                yield file.relative_to(path).as_posix(), file
