"""Says how to continue an unfinished run: the command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Set

import pytest

from cheesebench.options import OPTIONS
from cheesebench.pytest_options import SPELLINGS


def resume_command(
    config: pytest.Config, run_id: str, changed: Mapping[str, str] | None = None
) -> str:
    """Return this session's command, changed so that it continues the run. ``changed``
    has other values for options, by key.
    """
    spellings, changed = config.stash[SPELLINGS], changed or {}
    options = [
        option for option in OPTIONS if option.names_run or option.key in changed
    ]
    left_out = {name for option in options for name in spellings[option.key]}
    kept = _without(left_out, map(os.fspath, config.invocation_params.args))
    others = [f"{spellings[key][0]}={value}" for key, value in changed.items()]
    return " ".join(
        map(_shell_word, ["pytest", *kept, *others, spellings["resume"][0], run_id])
    )


def _without(names: Set[str], arguments: Iterable[str]) -> list[str]:
    """Return arguments without these options and their values."""
    kept = []
    rest = iter(arguments)
    for argument in rest:
        if argument in names:
            next(rest, None)
        elif argument.partition("=")[0] not in names:
            kept.append(argument)
    return kept


def _shell_word(word: str) -> str:
    """Quote a word for a shell. The result has printable characters only."""
    if word.isprintable():
        return shlex.quote(word)
    spelt = (
        c if c.isprintable() and c not in "'\\" else c.encode("unicode_escape").decode()
        for c in word
    )
    return "$'" + "".join("\\'" if c == "'" else c for c in spelt) + "'"
