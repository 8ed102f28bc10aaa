"""``cheesebench new-plugin``: creates a complete package for a backend, an agent, a
view, or another kind of plugin.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Literal, get_args

from cheesebench import __version__
from cheesebench.commands import COMMANDS
from cheesebench.commands.common import describe, one_line
from cheesebench.commands.new import filled, write_files
from cheesebench.errors import OptionError
from cheesebench.hookspecs import API_VERSION

Kind = Literal["backend", "agent", "view", "executor", "family", "command"]
#: Kinds of plugin for which there is a template.
KINDS: tuple[Kind, ...] = get_args(Kind)

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


def plugin_files(kind: Kind, name: str) -> dict[str, str]:
    """Return the files of a package that supplies a plugin of this name: their texts,
    keyed by path. Raise OptionError for an invalid name, or for the name of a built-in
    command.
    """
    if not _NAME.fullmatch(name) or len(name) > 40:
        raise OptionError(
            f"'{name}' cannot be a plugin's name. Use up to 40 lower-case letters, digits and hyphens, beginning with a "
            f"letter, such as my-{kind}."
        )
    if kind == "command" and name in COMMANDS:
        raise OptionError(
            f"'{name}' is already a command of cheesebench. Choose another name, such as my-{name}."
        )
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
    return {
        path: filled(f"plugin/{template}", **values) for path, template in paths.items()
    }


def distribution(name: str) -> str:
    return f"cheesebench-{name.replace('_', '-')}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "The package can be installed as it is. It registers itself by its entry point, and passes its own tests.",
        "backend my-server",
        "agent my-mouse --output work/my-mouse",
        "view my-eyes",
    )
    parser.add_argument(
        "kind",
        metavar="KIND",
        choices=KINDS,
        help=f"{', '.join(KINDS[:-1])} or {KINDS[-1]}",
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        help="the plugin's name, as in --model NAME or --view NAME",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="the directory to write (default: cheesebench-NAME)",
    )


def run(options: argparse.Namespace) -> int:
    texts = plugin_files(options.kind, options.name)
    directory = Path(options.output or distribution(options.name))
    write_files(directory, texts)
    for name in texts:
        print(one_line(directory / name))
    print(
        f"\nNext: cd {one_line(directory)} && pip install -e . && pytest && cheesebench plugins"
    )
    return 0
