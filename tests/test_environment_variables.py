"""The list of environment variables, compared with the code that reads
and sets them.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import cheesebench
from cheesebench.options import VARIABLES

ROOT = Path(cheesebench.__file__).parent
#: Functions whose argument at this place is the name of a variable.
READERS = {"get": 0, "setdefault": 0, "getenv": 0, "key_from_environment": 1}
#: Variables set for other programs, in a way that cannot be read from the code.
SET = ("LITELLM_LOCAL_MODEL_COST_MAP", "LITELLM_MODE", "LITELLM_LOG")


def test_every_variable_is_in_the_list_and_no_other() -> None:
    # Globs do not follow links on every Python, so the linked folders are searched
    # separately.
    folders = (ROOT, *(ROOT / name for name in ("paradigms", "plugins", "reports")))
    used = {
        name
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for name in _used(path)
    }
    assert sorted(used | set(SET)) == sorted(variable.name for variable in VARIABLES)


def test_what_is_set_for_litellm_is_in_the_list() -> None:
    assert (
        tuple(
            importlib.import_module("cheesebench.plugins.backends.litellm").ENVIRONMENT
        )
        == SET
    )


def _used(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        found: ast.expr | None = None
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            found = node.slice
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            place = READERS.get(name.rpartition(".")[2])
            ours = name in ("os.getenv", "key_from_environment") or name.startswith(
                "os.environ."
            )
            if place is not None and ours and len(node.args) > place:
                found = node.args[place]
        value = (
            constants.get(found.id)
            if isinstance(found, ast.Name)
            else getattr(found, "value", None)
        )
        if isinstance(value, str) and value.isupper():
            yield value
