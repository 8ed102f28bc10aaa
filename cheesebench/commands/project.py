"""Reads which protocols pytest's ini file or the environment names for runs in this
directory.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _pytest.config import UsageError
from _pytest.config.findpaths import locate_config

from cheesebench.errors import OptionError
from cheesebench.ini_file import usual_protocols
from cheesebench.options import INI


def project_protocols() -> tuple[Sequence[str], str]:
    """Return the protocols of a run in this directory without ``--protocols``, and
    where they are named: in pytest's ini file, or in the environment. Raise OptionError
    if the file has an error.
    """
    here = Path.cwd()
    try:
        # pytest has no public function for this. Later versions return more than three
        # values.
        _, ini, found = locate_config(here, [here])[:3]
    except UsageError as error:
        raise OptionError(f"{error}") from None
    value: Any = found.get(INI[0].name, ())
    value = getattr(value, "value", value)
    named = shlex.split(value) if isinstance(value, str) else list(value)
    return usual_protocols(named, ini, found)
