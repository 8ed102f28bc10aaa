"""The command that installs an optional dependency, for error messages."""

from __future__ import annotations

import json
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname


def install_command(extra: str, distribution: str = "pytest-cheesebench") -> str:
    """Return the command that adds an extra of ``distribution`` to this installation,
    for an error message.

    If the distribution was installed from a clone (PEP 610 records the clone's path),
    the command installs from the clone, because a release on the package index might be
    another version.
    """
    # If the working directory is a clone, the distribution has a second record there,
    # from the build, without this file.
    records = (
        one.read_text("direct_url.json") for one in distributions(name=distribution)
    )
    record = json.loads(next(filter(None, records), "{}"))
    url = urlsplit(str(record.get("url", "")))
    place = url2pathname(url.path)
    if url.scheme != "file" or not Path(place).exists():
        return f"pip install '{distribution}[{extra}]'"
    editable = "-e " if record.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{place}[{extra}]'"
