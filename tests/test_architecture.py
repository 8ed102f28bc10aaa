"""Who imports whom, read from the code (design page «architecture»)."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cheesebench
from cheesebench.plugin_manager import BUILT_INS

ROOT = Path(cheesebench.__file__).parent
#: Layers of the core; a module imports only from its own layer and those before it.
LAYERS = (
    ("errors", "interfaces", "dialogue", "chat", "hookspecs", "redaction", "environment_variables"),
    ("plugin_manager", "gymnasium_plugin", "wrappers"),
    ("protocol", "models", "model_files"),
    ("experiment",),
    ("statistics",),
    ("film", "junit", "terminal", "baselines", "planning"),
    (
        "pytest_plugin",
        "pytest_session",
        "cli",
        "commands",
        "exporting",
        "arguments",
        "dialogue_arguments",
        "run_arguments",
        "author",
        "author_arguments",
    ),
)
LAYER = {name: number for number, names in enumerate(LAYERS) for name in names}
#: Packages that a protocol compiles into, that plug in, or that render: they never import one another.
OUTER = ("paradigms", "plugins", "reports")


def modules() -> Iterator[tuple[str, Path]]:
    """Yield all modules; the linked folders are asked for by name, because a glob does not follow links."""
    folders = {"": ROOT} | {name: Path(find_module(name)) for name in (*OUTER, "protocols")}
    for prefix, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder).with_suffix("").parts
            parts = [part for part in (prefix, *relative) if part not in ("", "__init__")]
            if prefix or parts[:1] not in [[name] for name in (*OUTER, "protocols")]:
                yield ".".join(parts), path


def find_module(name: str) -> str:
    spec = importlib.util.find_spec(f"cheesebench.{name}")
    assert spec is not None
    assert spec.submodule_search_locations
    return spec.submodule_search_locations[0]


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield what a module imports from this package, and whether only for type checking."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module] if node.module != "cheesebench" else [f"cheesebench.{a.name}" for a in node.names]
        for name in names:
            if name.startswith("cheesebench."):
                yield name.removeprefix("cheesebench."), id(node) in typing_only


def part(module: str) -> str:
    return module.split(".")[0]


MODULES = list(modules())


@pytest.mark.parametrize(("name", "path"), MODULES, ids=[name for name, _ in MODULES])
def test_imports_go_one_way(name: str, path: Path) -> None:
    own = part(name)
    for imported, typing_only in imports(path):
        other = part(imported)
        if own in OUTER:
            assert other not in OUTER or other == own, f"{name} imports {imported}"
        elif other in OUTER:
            pytest.fail(f"the core module {name} imports {imported}; it may only name it as a string")
        elif own in LAYER and other in LAYER and not typing_only:
            assert LAYER[other] <= LAYER[own], f"{name} imports {imported}, which is in a later layer"


def test_statistics_sees_records_only() -> None:
    for name, path in MODULES:
        if part(name) == "statistics":
            for imported, _ in imports(path):
                assert part(imported) in ("statistics", "errors", "interfaces") or imported.startswith(
                    "experiment.records"
                ), f"{name} imports {imported}"


def test_plugins_import_public_names_only() -> None:
    for name, path in MODULES:
        if part(name) == "plugins":
            for imported, _ in imports(path):
                assert part(imported) == "plugins" or imported in cheesebench.__all__, f"{name} imports {imported}"


def test_no_python_names_a_paradigm() -> None:
    ids = [path.name.split(".")[0] for path in (ROOT / "protocols").glob("*.protocol.yaml")]
    assert ids
    named = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in ids))
    for name, path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
                assert not named.fullmatch(node.value.strip()), f"{name}:{node.lineno} names {node.value!r}"


def test_modules_can_be_seen_whole() -> None:
    longest = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES}
    assert {name: lines for name, lines in longest.items() if lines > 460} == {}


def test_built_ins_exist_and_are_named_as_strings_only() -> None:
    names = {name for name, _ in MODULES}
    assert {built_in.removeprefix("cheesebench.") for built_in in BUILT_INS} <= names
