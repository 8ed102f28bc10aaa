"""The documentation site: it is built without a warning, fetches nothing, and leaves nothing out that the code has."""

from __future__ import annotations

import argparse
import html
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import cheesebench
from cheesebench import hookspecs, testing
from cheesebench.cli import build_parser
from cheesebench.environment_variables import VARIABLES
from cheesebench.experiment.designs import DESIGNS
from cheesebench.experiment.log_schema import SCHEMA
from cheesebench.experiment.studies import shipped_studies
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Catalogue
from cheesebench.protocol.dialogue.documents import DialogueDocument
from cheesebench.protocol.documents import ProtocolDocument
from cheesebench.protocol.findings import MEANINGS
from cheesebench.pytest_plugin import INI, OPTIONS
from cheesebench.statistics.summary import TAXONOMY, Flags, Verdict

ROOT = Path(__file__).parents[1]
NEEDED = ("mkdocs", "material", "mkdocstrings_handlers", "griffe_sphinx")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)} (pip install -e '.[docs]')")
    target = tmp_path_factory.mktemp("site")
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert build.returncode == 0, build.stdout + build.stderr
    return target


def test_the_site(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    # Nothing is fetched from elsewhere: readers may be offline, and are nobody's business.
    fetched = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//""")
    assert [name for name, text in pages.items() if fetched.search(text)] == []
    assert [name for name, text in pages.items() if "<!-- generated:" in text] == []
    # What the code has, and does not stand on its page; each list is read from the code.
    left_out = {
        page: missing
        for page, names in everything().items()
        if (missing := [name for name in names if name not in html.unescape(pages[page])])
    }
    assert left_out == {}


def everything() -> Mapping[str, list[str]]:
    """Return what each page must name."""
    plugins = PluginManager(entry_points=False)
    named = [*plugins.agents, *plugins.respondents, *plugins.model_agents, *plugins.views, *plugins.reporters]
    entries = plugins.models.values()
    backends = [name for spec in plugins.backends.values() for name in (spec.name, *spec.options)]
    catalogue = Catalogue(plugins.protocol_directories)
    files = [*catalogue.files.values(), *(p for f in catalogue.folders.values() for p in f.glob("*.protocol.yaml"))]
    python = {name: getattr(cheesebench, name) for name in cheesebench.__all__}
    return {
        "reference/commands.html": list(_arguments(build_parser())),
        "reference/options.html": [f"--{option.name}" for option in OPTIONS] + [setting.name for setting in INI],
        "reference/environment.html": [f"<code>{variable.name}</code>" for variable in VARIABLES],
        "reference/keys.html": _keys(ProtocolDocument.model_json_schema()),
        "reference/dialogue-keys.html": _keys(DialogueDocument.model_json_schema()),
        "reference/findings.html": [f'id="{"ewi"[_rank(severity)]}{code}"' for code, (severity, _) in MEANINGS.items()],
        "reference/protocols.html": [f"protocols/{_within(path)}" for path in files],
        "reference/models.html": [f"<code>{name}</code>" for entry in entries for name in (entry.name, *entry.aliases)],
        "reference/built-in.html": [*named, *backends, *DESIGNS, *shipped_studies()],
        "reference/verdicts.html": [*Verdict, *TAXONOMY, *Flags.__dataclass_fields__],
        "reference/hooks.html": [
            f'id="cheesebench.hookspecs.{name}"' for name in vars(hookspecs) if name.startswith("cheesebench_")
        ],
        "reference/testing.html": [f'id="cheesebench.testing.{name}"' for name in testing.__all__],
        **_by_page(python),
        "run-log.html": re.findall(r"^(?:CREATE TABLE|   ) (\w+) .*--", SCHEMA, re.MULTILINE),
    }


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                yield f"cheesebench {name}"
                yield from _arguments(one)
        elif not isinstance(action, argparse._HelpAction | argparse._VersionAction):
            yield from action.option_strings or [str(action.metavar)]


def _keys(schema: dict[str, Any]) -> list[str]:
    models = [schema, *schema["$defs"].values()]
    return sorted({f"<code>{key}</code>" for model in models for key in model.get("properties", ())})


def _rank(severity: str) -> int:
    return ("error", "warning", "info").index(severity)


def _within(path: Path) -> str:
    return path.name if path.parent.name == "protocols" else f"{path.parent.name}/{path.name}"


def _by_page(python: Mapping[str, object]) -> Mapping[str, list[str]]:
    """Return the pages that must have the public classes and functions; constants have no module of their own."""
    pages = {
        "cheesebench.interfaces": "reference/interfaces.html",
        "cheesebench.chat": "reference/chat.html",
        "cheesebench.dialogue": "reference/dialogue.html",
        "cheesebench.errors": "reference/errors.html",
    }
    found: dict[str, list[str]] = {page: [] for page in (*pages.values(), "reference/helpers.html")}
    for name, value in python.items():
        if (module := getattr(value, "__module__", "")).startswith("cheesebench"):
            found[pages.get(module, "reference/helpers.html")].append(f'id="{module}.{name}"')
    return found
