"""Our settings in pytest's ini file, and the protocols that it names. pytest imports
this module in every project.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from cheesebench.errors import OptionError, did_you_mean
from cheesebench.options import BY_KEY, INI

#: The setting that names the protocols.
_PROTOCOLS = "cheese_protocols"
#: The prefix and the names of our environment variables.
_OURS, _VARIABLES = "CHEESEBENCH_", ("PROTOCOLS", "MODELS")


def usual_protocols(
    named: Sequence[str] = (),
    ini: Path | None = None,
    undeclared: Iterable[str] = (),
    *,
    plugins_known: bool = False,
) -> tuple[list[str], str]:
    """Return the protocols of a run without ``--protocols``, and where they are named:
    in the ini file (``named``), or in the environment.

    Raise OptionError for an ``undeclared`` key of the file that begins like ours and
    resembles one of ours. If ``plugins_known``, no plugin has declared the key either,
    so its beginning is enough.
    """
    _check(undeclared, ini, plugins_known)
    if named:
        # Directories and files are relative to the ini file.
        base = Path() if ini is None else ini.parent
        paths = [(name, base / name) for name in named]
        found = [str(path) if path.exists() else name for name, path in paths]
        return found, f"{_place(ini, _PROTOCOLS)}: {_PROTOCOLS}"
    given = os.environ.get("CHEESEBENCH_PROTOCOLS", "").split(os.pathsep)
    return [name for name in given if name], "CHEESEBENCH_PROTOCOLS"


def misspelt_variables() -> list[str]:
    """Return a sentence for each environment variable that looks like one of ours.
    These variables are no errors, because a script may have variables of its own.
    """
    found = [
        (
            name,
            did_you_mean(name.removeprefix(_OURS), _VARIABLES).replace(
                " '", f" '{_OURS}"
            ),
        )
        for name in sorted(os.environ)
        if name.startswith(_OURS) and name.removeprefix(_OURS) not in _VARIABLES
    ]
    return [
        f"CheeseBench reads no environment variable '{name}'.{near}"
        for name, near in found
        if near
    ]


def _check(undeclared: Iterable[str], ini: Path | None, plugins_known: bool) -> None:
    ours = {setting.name for setting in INI}
    for key in sorted(set(undeclared) - ours):
        bare = re.sub("^chee?se?(bench)?[_-]?", "", key)
        if bare == key:
            continue
        hint = _hint(bare)
        if hint or plugins_known:
            hint = hint or f" Known: {', '.join(sorted(ours))}."
            raise OptionError(f"{_place(ini, key)}: There is no setting '{key}'.{hint}")


def _hint(bare: str) -> str:
    """Return a hint at the setting or option that was probably meant, or "". ``bare``
    is the name of the unknown setting without its prefix.
    """
    prefix = "cheese_"
    names = [setting.name.removeprefix(prefix) for setting in INI]
    if near := did_you_mean(bare, names):
        return near.replace(" '", f" '{prefix}")
    option = BY_KEY.get(bare.replace("-", "_"))
    if option is None:
        return ""
    return f" {option.short} is an option: write it into addopts, or into a profile."


def _place(ini: Path | None, key: str) -> str:
    """Return the file and line of a setting, or ``-o`` for a setting that comes from
    the command line.
    """
    with contextlib.suppress(OSError):
        lines = [] if ini is None else ini.read_text("utf-8", "replace").splitlines()
        for number, line in enumerate(lines, 1):
            if re.match(rf"\s*[\"']?{re.escape(key)}\b", line):
                return f"{os.path.relpath(ini or '')}:{number}"
    return "-o"
