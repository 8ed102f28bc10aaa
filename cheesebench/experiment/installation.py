"""What is installed here that a job's records depend on: compared between machines before one does jobs for another."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import cheesebench
from cheesebench.experiment.manifest import versions
from cheesebench.plugin_manager import installed_plugins

#: Data files that count, by ending; code is ``.py``.
_DATA = (".yaml", ".json", ".txt")
#: Characters of a digest.
_LENGTH = 12


@lru_cache(maxsize=1)
def installation() -> dict[str, str]:
    """Return, by name, everything installed for this process that can change a record.

    These are the versions of Python, of CheeseBench and of the libraries that compute; digests of CheeseBench's code
    and of its protocols; and for each plugin its version with a digest of its files. Equal installations give equal
    records for the same job.
    """
    installed = {name: version for name, version in versions().items() if name != "platform"}
    package = Path(cheesebench.__file__).parent
    installed["code of cheesebench"] = _digest(package, (".py",))
    installed["protocols of cheesebench"] = _digest(package, _DATA)
    plugins = installed_plugins()
    for name, origin in plugins.strangers().items():
        installed[f"plugin {name}"] = f"{origin} ({_digest(_files_of(plugins.get_plugin(name)), ('.py', *_DATA))})"
    return installed


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Return how the installation ``there`` differs from the one ``here``, one phrase for each name."""
    missing = "none"
    return [
        f"{name}: {there.get(name, missing)}, here {here.get(name, missing)}"
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    ]


def _files_of(plugin: object) -> Path | None:
    """Return the directory of a plugin's package, or the file of its module."""
    name = str(getattr(plugin, "__name__", "")).partition(".")[0]
    path = getattr(sys.modules.get(name), "__file__", None) or getattr(plugin, "__file__", None)
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
    return digest.hexdigest()[:_LENGTH]


def _files(path: Path, endings: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield path.name, path
        return
    # Four of our packages are symbolic links where this is installed for development.
    for directory, folders, names in os.walk(path, followlinks=True):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(endings):
                file = Path(directory, name)
                yield file.relative_to(path).as_posix(), file
