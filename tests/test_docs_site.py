"""The documentation site: it builds without a warning, fetches nothing, and covers
everything in the code.
"""

from __future__ import annotations

import argparse
import dataclasses
import html
import importlib.util
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cheesebench
from cheesebench import hookspecs, testing
from cheesebench.cli import build_parser
from cheesebench.diagnostics import LETTERS, MEANINGS
from cheesebench.experiment.cells import DESIGNS, shipped_studies
from cheesebench.experiment.log_file import SCHEMA
from cheesebench.exporting import TABLES
from cheesebench.options import INI, OPTIONS, VARIABLES
from cheesebench.paradigms.dialogue import documents as dialogue_documents
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue, documents
from cheesebench.statistics.summary import TAXONOMY, Flags, Verdict

ROOT = Path(__file__).parents[1]
#: Pages of public classes and functions by module; all others are helpers.
PAGES = {
    "cheesebench.api": "reference/python.html",
    "cheesebench.interfaces": "reference/plugin-api.html",
    "cheesebench.chat": "reference/plugin-api.html",
    "cheesebench.dialogue": "reference/plugin-api.html",
    "cheesebench.errors": "reference/python.html",
    "cheesebench.executor": "reference/plugin-api.html",
    "cheesebench.experiment.subjects": "reference/plugin-api.html",
    "cheesebench.family": "reference/plugin-api.html",
    "cheesebench.stepwise": "reference/plugin-api.html",
}
HELPERS = "reference/python.html"
NEEDED = ("mkdocs", "material", "mkdocstrings_handlers", "griffe_sphinx")
PLUGINS = PluginManager(entry_points=False)

#: First columns of the tables in each section, by the section's anchor.
Tables = dict[str, list[str]]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)} (pip install -e '.[docs]')")
    target = tmp_path_factory.mktemp("site")
    build = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--site-dir",
            str(target),
        ],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert build.returncode == 0, build.stdout + build.stderr
    return {
        path.relative_to(target).as_posix(): path.read_text(encoding="utf-8")
        for path in target.rglob("*.html")
    }


# One test, because the site is built once for it: workers of xdist would build one
# each.
@pytest.mark.slow
def test_the_site(pages: Mapping[str, str]) -> None:
    # Nothing is fetched from other hosts, because readers may be offline, and have a
    # right to privacy.
    fetched = re.compile(
        r"""<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//"""
    )
    assert [name for name, text in pages.items() if fetched.search(text)] == []
    assert [name for name, text in pages.items() if "<!-- generated:" in text] == []
    for name, wanted in listed().items():
        assert tables(pages[name]) == wanted, name
    left_out = {
        name: missing
        for name, texts in named().items()
        if (
            missing := [
                text for text in texts if text not in html.unescape(pages[name])
            ]
        )
    }
    assert left_out == {}
    # Fields without a description of their own are in the signature of their class.
    for name, fields in public_fields().items():
        text = html.unescape(re.sub(r"<[^>]+>", "", pages[name]))
        assert fields - set(re.findall(r"\b(\w+):", text)) == set(), name


def tables(page: str) -> Tables:
    found = {}
    _, *sections = re.split(r'<h[23] id="([^"]+)"', page)
    for anchor, text in zip(sections[::2], sections[1::2], strict=True):
        cells = re.findall(r"<tr>\s*<td>(.*?)</td>", text, re.DOTALL)
        if names := [
            name.split()[0]
            for cell in cells
            for name in re.findall(r"<code[^>]*>(.*?)</code>", cell)
        ]:
            found[anchor] = names
    return found


def listed() -> Mapping[str, Tables]:
    """Return exactly the items that the tables of a page must list."""
    commands = _commands(build_parser())
    with closing(sqlite3.connect(":memory:")) as log:
        log.executescript(SCHEMA)
        names = [
            name
            for (name,) in log.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
            )
        ]
        columns = {
            name: [row[1] for row in log.execute(f"PRAGMA table_info({name})")]
            for name in names
        }
    return {
        "reference/commands.html": {
            "the-cheesebench-command": list(commands),
            **{
                f"cheesebench-{name}": found
                for name, found in commands.items()
                if found
            },
            "options-of-a-run": [f"--{option.name}" for option in OPTIONS],
            "settings-of-the-ini-file": [setting.name for setting in INI],
            "environment-variables": [variable.name for variable in VARIABLES],
        },
        "reference/keys.html": _keys(documents) | _keys(dialogue_documents),
        "run-log.html": {**columns, "exported-tables": list(TABLES)},
    }


def named() -> Mapping[str, list[str]]:
    """Return the items that each of the other pages must name."""
    agents = [f"--model {name}" for name in (*PLUGINS.agents, *PLUGINS.respondents)]
    agents += [f"--agent {name}" for name in PLUGINS.model_agents]
    settings = [
        name for spec in PLUGINS.model_agents.values() for name in spec.settings
    ]
    backends = [
        name
        for spec in PLUGINS.backends.values()
        for name in (spec.name, *spec.options)
    ]
    catalogue = Catalogue(PLUGINS.protocol_directories)
    files = [
        *catalogue.files.values(),
        *(p for f in catalogue.folders.values() for p in f.glob("*.protocol.yaml")),
    ]
    models = [
        name
        for entry in PLUGINS.models.values()
        for name in (entry.name, *entry.aliases)
    ]
    hooks = [
        f"hookspecs.{name}"
        for name in vars(hookspecs)
        if name.startswith("cheesebench_")
    ]
    python = _by_page(
        {name: getattr(cheesebench, name) for name in cheesebench.__all__}
    )
    python["reference/plugin-api.html"] += [
        f'id="cheesebench.{name}"'
        for name in (*hooks, *(f"testing.{name}" for name in testing.__all__))
    ]
    return {
        "reference/findings.html": [
            f'id="{LETTERS[kind].lower()}{code}"'
            for code, (kind, _) in MEANINGS.items()
        ],
        "reference/protocols.html": _code(
            f"protocols/{_within(path)}" for path in files
        ),
        "reference/built-in.html": _code(
            [
                *agents,
                *settings,
                *backends,
                *PLUGINS.views,
                *PLUGINS.reporters,
                *DESIGNS,
                *shipped_studies(),
                *models,
            ]
        ),
        "reference/verdicts.html": _code(
            [*Verdict, *TAXONOMY, *Flags.__dataclass_fields__]
        ),
        **python,
    }


def public_fields() -> Mapping[str, set[str]]:
    """Return the fields of the public data classes, by page."""
    found: dict[str, set[str]] = {}
    for one in filter(
        dataclasses.is_dataclass,
        (getattr(cheesebench, name) for name in cheesebench.__all__),
    ):
        page = PAGES.get(one.__module__, HELPERS)
        found.setdefault(page, set()).update(
            field.name for field in dataclasses.fields(one)
        )
    return found


def _commands(parser: argparse.ArgumentParser) -> Tables:
    [subparsers] = [
        action
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    return {
        name: [
            spelling
            for action in one._actions
            if not isinstance(action, argparse._HelpAction)
            for spelling in action.option_strings or [_positional(action)]
        ]
        for name, one in subparsers.choices.items()
    }


def _positional(action: argparse.Action) -> str:
    choices = list(action.choices or ())
    return ",".join(choices) if 0 < len(choices) < 4 else str(action.metavar)


def _keys(module: ModuleType) -> Tables:
    models = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, documents.DocumentModel)
    ]
    return {
        one.__name__.lower(): [
            field.alias or name for name, field in one.model_fields.items()
        ]
        for one in models
        if one.__module__ == module.__name__ and one is not documents.DocumentModel
    }


def _code(names: Any) -> list[str]:
    return [f"<code>{name}</code>" for name in names]


def _within(path: Path) -> str:
    return (
        path.name
        if path.parent.name == "protocols"
        else f"{path.parent.name}/{path.name}"
    )


def _by_page(python: Mapping[str, object]) -> Mapping[str, list[str]]:
    """Return the pages that must have the public classes and functions; constants have
    no module of their own.
    """
    found: dict[str, list[str]] = {page: [] for page in (*PAGES.values(), HELPERS)}
    for name, value in python.items():
        if (module := getattr(value, "__module__", "")).startswith("cheesebench"):
            own = getattr(value, "__name__", name)  # a few have a longer name outside
            found[PAGES.get(module, HELPERS)].append(f'id="{module}.{own}"')
    return found
