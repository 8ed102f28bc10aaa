"""Fills in templates and writes files, never overwriting existing ones."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from cheesebench.errors import OptionError
from cheesebench.whole_files import write_whole


def filled(template: str, **values: str) -> str:
    """Return a template (such as ``plugin/readme``) with ``$name`` placeholders filled in."""
    text = files("cheesebench.author").joinpath("templates", f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def write_files(directory: Path, texts: Mapping[str, str]) -> None:
    """Write texts by their path below a directory; OptionError if one is there already, and nothing is written."""
    for name in texts:
        if (directory / name).exists():
            raise OptionError(f"{directory / name} already exists. Give another --output.")
    for name, text in texts.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
        except OSError as error:
            raise OptionError(f"{path} cannot be written: {error.strerror}. Give another --output.") from None
