"""The manifest of a run: program versions, protocols and options."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import secrets
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cheesebench
from cheesebench.errors import OptionError
from cheesebench.experiment.records import FORMAT
from cheesebench.options import OPTIONS

if TYPE_CHECKING:
    from cheesebench.protocol import BaseSpecification

#: Distributions whose version can change a number.
_LIBRARIES = ("gymnasium", "numpy", "scipy")
#: Seconds after which git is not waited for any longer (a cold network drive, a huge repository).
_GIT_PATIENCE = 10.0
#: Exit status of ``git config`` where nothing of that name is set.
_NOT_SET = 1
#: Where git finds settings that are the user's own. What a repository says is its author's.
_OWN_SCOPES = frozenset({"system", "global", "command"})
#: What makes a filter of contents do nothing.
_NO_FILTER = ("clean=", "process=", "required=false")


def new_run_id() -> str:
    """Return a new run id: local date and time, and four random hexadecimal digits."""
    return f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def check_run_id(run_id: str) -> str:
    """Return ``run_id`` if it can name a directory anywhere; raise OptionError otherwise."""
    return check_name(run_id, "a run", "--run-id ")


def check_name(name: str, what: str, option: str = "") -> str:
    """Return ``name`` if it can name ``what`` (a directory or file) anywhere; raise OptionError otherwise."""
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", name):
        raise OptionError(
            f"{option}{name!r} cannot name {what}. Use letters, digits, '-', '_' and '.' (not first); at most 100."
        )
    return name


def describe_run(
    run_id: str,
    specifications: Iterable[BaseSpecification],
    options: Mapping[str, Any],
    plugins: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the manifest (JSON values) of a run that starts now.

    ``options`` are the command line options that matter for the result (seed, design, ...). Environment
    variables are never part of it: keys live there. ``plugins`` are those that are not ours, by name.
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
    }


def recorded_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of those options that the manifest stores, by key."""
    return {option.key: values[option.key] for option in OPTIONS if option.recorded}


def describe_protocols(specifications: Iterable[BaseSpecification]) -> dict[str, dict[str, Any]]:
    """Return the manifest's entry for each protocol, by name."""
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
    """Return the versions of Python, of this package, of the libraries that compute, and the platform."""
    entries = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cheesebench": cheesebench.__version__,
    }
    for library in _LIBRARIES:
        try:
            entries[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            entries[library] = "not installed"
    return entries


def git_state(directory: Path) -> dict[str, Any] | None:
    """Return ``revision`` and ``dirty`` of the work tree around ``directory``; None outside a work tree.

    The work tree can be a stranger's, and git would start programs that its configuration names: a monitor of the
    file system, filters of contents, and what fetches missing objects. None of them is started.
    """
    revision = _git(directory, "rev-parse", "HEAD")
    filters = _git(directory, "config", "--show-scope", "--null", "--name-only", "--get-regexp", r"^filter\.")
    if revision is None or filters is None or revision.returncode or filters.returncode not in (0, _NOT_SET):
        return None
    fields = filters.stdout.split("\0")
    theirs = {
        name.rpartition(".")[0]
        for scope, name in zip(fields[::2], fields[1::2], strict=False)
        if scope not in _OWN_SCOPES
    }
    if any("=" in name for name in theirs):  # it cannot be named on a command line
        return None
    settings = [word for name in sorted(theirs) for key in _NO_FILTER for word in ("-c", f"{name}.{key}")]
    # A submodule is asked for its commit only: its filters are named in another file.
    changes = _git(directory, *settings, "status", "--porcelain", "--ignore-submodules=dirty")
    if changes is None or changes.returncode:
        return None
    return {"revision": revision.stdout.strip(), "dirty": bool(changes.stdout.strip())}


def _git(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Return what git says; None where it does not run, or does not end."""
    # Nothing is fetched: an empty list allows no protocol. Newer versions of git know the other variable, too.
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
