"""The list of codes and meanings, compared with the code that uses them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import cheesebench.paradigms.dialogue
import cheesebench.protocol
from cheesebench import interfaces, source
from cheesebench.diagnostics import GROUPS, LETTERS, MEANINGS
from cheesebench.protocol.specification import VISIBLE_GOAL
from cheesebench.source import DUPLICATE_KEY

FOLDERS = [
    Path(package.__path__[0])
    for package in (cheesebench.protocol, cheesebench.paradigms.dialogue)
]
FILES = [path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))] + [
    Path(str(module.__file__)) for module in (interfaces, source)
]
#: Functions that make a finding, with its severity.
MAKERS = {
    "error": "error",
    "_error": "error",
    "_RefusedError": "error",
    "ExpressionError": "error",
    "warning": "warning",
    "Doubt": "warning",
    "info": "info",
}
NAMED = {"DUPLICATE_KEY": DUPLICATE_KEY, "VISIBLE_GOAL": VISIBLE_GOAL}


def test_every_code_is_in_the_list_and_no_other() -> None:
    used = {code: severity for path in FILES for code, severity in _used(path)}
    # Two are not arguments of a call: the end of a long list, and the default of an
    # expression error.
    used |= {199: "error", 130: "error"}
    assert dict(sorted(used.items())) == {
        code: severity for code, (severity, _) in MEANINGS.items()
    }


def test_every_code_is_in_one_group() -> None:
    assert {
        code: sum(low <= code <= high for low, high, _ in GROUPS) for code in MEANINGS
    } == dict.fromkeys(MEANINGS, 1)
    assert {severity for severity, _ in MEANINGS.values()} == set(LETTERS)


def _called(node: ast.expr) -> str:
    return getattr(node, "attr", getattr(node, "id", ""))


def _used(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = _called(node.func)
        if name == "partial":
            name = _called(node.args[0])
        for argument in node.args if name in MAKERS else ():
            value = getattr(argument, "value", NAMED.get(getattr(argument, "id", "")))
            if isinstance(value, int) and not isinstance(value, bool) and value > 100:
                yield value, MAKERS[name]
