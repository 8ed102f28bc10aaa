"""Creates a complete plugin package that can be installed, has an entry point, and passes its own tests."""

from __future__ import annotations

import re
from typing import Literal, get_args

from cheesebench import __version__
from cheesebench.author.writing import filled
from cheesebench.commands import COMMANDS
from cheesebench.errors import OptionError
from cheesebench.hookspecs import API_VERSION

Kind = Literal["backend", "agent", "view", "executor", "family", "command"]
#: What can be written.
KINDS: tuple[Kind, ...] = get_args(Kind)

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


def plugin_files(kind: Kind, name: str) -> dict[str, str]:
    """Return path -> text of a package that supplies a plugin of this name; OptionError for what is no name."""
    if not _NAME.fullmatch(name) or len(name) > 40:
        raise OptionError(f"'{name}' cannot be a plugin's name. Use lower-case letters, digits and hyphens: my-{kind}.")
    if kind == "command" and name in COMMANDS:
        raise OptionError(f"'{name}' is a command of cheesebench already. Choose another name: my-{name}.")
    word = name.replace("-", "_")
    values = {
        "name": name,
        "kind": kind,
        "distribution": distribution(name),
        "module": f"cheesebench_{word}",
        "key": f"{word.upper()}_API_KEY",
        "title": "".join(part.capitalize() for part in word.split("_")),
        "version": __version__,
        "word": word,
        "api": str(API_VERSION),
        "data": '"py.typed", "protocols/*.yaml"' if kind == "family" else '"py.typed"',
    }
    folder = f"src/{values['module']}"
    paths = {
        "pyproject.toml": "pyproject",
        "README.md": f"{kind}_readme",
        ".gitignore": "gitignore",
        ".github/workflows/test.yml": "workflow",
        f"{folder}/__init__.py": f"{kind}_init",
        f"{folder}/{kind}.py": kind,
        f"{folder}/py.typed": "empty",
        "tests/test_conformance.py": f"{kind}_test",
    }
    if kind == "family":
        paths[f"{folder}/protocols/{word}.protocol.yaml"] = "family_protocol"
    return {path: filled(f"plugin/{template}", **values) for path, template in paths.items()}


def distribution(name: str) -> str:
    """Return the name of the distribution and of its directory."""
    return f"cheesebench-{name.replace('_', '-')}"
