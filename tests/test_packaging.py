"""One wheel from five folders: links, mapping and list agree; a plain pytest pays next
to nothing for us.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SETUPTOOLS = PYPROJECT["tool"]["setuptools"]
MAPPING: dict[str, str] = SETUPTOOLS["package-dir"]
PACKAGES: list[str] = SETUPTOOLS["packages"]


def test_every_linked_folder_is_mapped() -> None:
    linked = {
        f"cheesebench.{path.name}": path.readlink()
        for path in (ROOT / "cheesebench").iterdir()
        if path.is_symlink()
    }
    if not linked:
        pytest.skip("this checkout has no symbolic links")
    assert {name: Path("..") / folder for name, folder in MAPPING.items()} == linked


def test_every_package_is_listed() -> None:
    found = set()
    for name, folder in {"cheesebench": "cheesebench", **MAPPING}.items():
        top = ROOT / folder
        for init in top.rglob("__init__.py"):
            relative = init.parent.relative_to(top)
            if (
                name == "cheesebench"
                and (top / relative.parts[0] if relative.parts else top).is_symlink()
            ):
                continue
            found.add(".".join([name, *relative.parts]))
    assert found == set(PACKAGES)


HEAVY = (
    "gymnasium",
    "PIL",
    "numpy",
    "scipy",
    "statsmodels",
    "pandas",
    "pydantic",
    "yaml",
    "tabulate",
    "sqlite3",
    "asyncio",
    "aiohttp",
)


@pytest.mark.parametrize(
    "module", ["cheesebench", "cheesebench.pytest_plugin", "cheesebench.cli"]
)
def test_light_at_import(module: str) -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); "
        f"import {module}; "
        f"print(sorted({{name.split('.')[0] for name in set(sys.modules) - before}} & set({HEAVY!r})))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def with_what_they_need(requirements: Iterable[str]) -> set[str]:
    """Return the names of distributions with all their dependencies."""
    found: set[str] = set()
    left = [Requirement(one) for one in requirements]
    while left:
        one = left.pop()
        name = canonicalize_name(one.name)
        if name not in found and (one.marker is None or one.marker.evaluate()):
            found.add(name)
            left += map(Requirement, importlib.metadata.requires(name) or ())
    return found


def test_everything_that_plugs_in_loads_without_any_extra() -> None:
    needed = with_what_they_need(PYPROJECT["project"]["dependencies"])
    needed.add(canonicalize_name(PYPROJECT["project"]["name"]))
    absent = sorted(
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if not {canonicalize_name(owner) for owner in owners} & needed
    )
    assert "xdist" in absent
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r})); "
        "from cheesebench.plugin_manager import PluginManager; PluginManager()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("order", ["cheesebench, gymnasium", "gymnasium, cheesebench"])
def test_environments_are_registered_whichever_is_imported_first(order: str) -> None:
    code = f"import {order}; print('cheesebench/Protocol-v1' in gymnasium.registry)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "True"


def test_types_are_shipped() -> None:
    assert (ROOT / "cheesebench" / "py.typed").is_file()
