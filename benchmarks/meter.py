"""Measures of the difficulty of reading the shipped code: decisions, joints and
circles.

``python benchmarks/meter.py --worst 20`` prints the figures and the most complex
functions. ``tests/meter.toml`` has the maximum of each figure; these maxima only fall.
The number of lines is printed, but has no maximum.

A decision is an ``if``, a loop, an ``except``, a conditional expression, a ``case``, a
comprehension and each of its filters, and each further operand of ``and`` or ``or``.
The complexity of a function is 1 plus its decisions, without those of functions inside
it. A joint is a name that one module imports from another. A circle is a set of modules
that import one another, by any import that runs (inside functions, too).
"""

from __future__ import annotations

import argparse
import ast
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import networkx

ROOT = Path(__file__).resolve().parents[1]
#: The folders that ship, with the prefix of their modules' names.
SHIPPED = {
    "cheesebench": "",
    "plugins": "cheesebench.",
    "paradigms": "cheesebench.",
    "protocols": "cheesebench.",
    "reports": "cheesebench.",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DECISIONS = (
    *(ast.If, ast.For, ast.While, ast.AsyncFor),
    *(ast.ExceptHandler, ast.IfExp, ast.match_case),
)


class Function(NamedTuple):
    complexity: int
    where: str
    """File, line and name."""


class Import(NamedTuple):
    """One name that a module imports from another module of ours."""

    module: str
    name: str
    """``*`` for the module itself."""
    inside: bool
    """Whether the import is inside a function."""
    typing: bool
    """Whether it is for type checkers only."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    files: int
    lines: int
    functions: tuple[Function, ...]
    """All functions, the most complex first."""
    taken: dict[str, tuple[Import, ...]]
    """Imports of each module from other modules of ours."""

    @property
    def decisions(self) -> int:
        return sum(one.complexity - 1 for one in self.functions)

    @property
    def functions_over_10(self) -> int:
        return sum(one.complexity > 10 for one in self.functions)

    @property
    def most_complex(self) -> int:
        return self.functions[0].complexity

    @property
    def names_across(self) -> int:
        """Different names that are imported from another module."""
        return len(
            {(one.module, one.name) for all_ in self.taken.values() for one in all_}
        )

    @property
    def names_of_a_module(self) -> float:
        """The median number of names that a module imports from others."""
        return statistics.median(
            len({(one.module, one.name) for one in all_})
            for all_ in self.taken.values()
        )

    @property
    def imports_inside(self) -> int:
        return sum(
            one.inside and not one.typing
            for all_ in self.taken.values()
            for one in all_
        )

    @property
    def circles(self) -> list[list[str]]:
        graph = networkx.DiGraph(
            (name, one.module)
            for name, all_ in self.taken.items()
            for one in all_
            if not one.typing
        )
        rings = networkx.strongly_connected_components(graph)
        return sorted((sorted(ring) for ring in rings if len(ring) > 1), key=len)


def shipped() -> dict[str, Path]:
    """Return the file of each module that ships; links to folders are not followed."""
    found = {}
    for folder, prefix in SHIPPED.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            inside = file.relative_to(ROOT)
            if any((ROOT / parent).is_symlink() for parent in inside.parents):
                continue
            parts = inside.with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[prefix + ".".join(parts)] = file
    return found


def complexity(function: ast.AST) -> int:
    count, waiting = 1, list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            count += _decisions_of(node)
            waiting += ast.iter_child_nodes(node)
    return count


def _decisions_of(node: ast.AST) -> int:
    match node:
        case ast.comprehension():
            return 1 + len(node.ifs)
        case ast.BoolOp():
            return len(node.values) - 1
    return isinstance(node, DECISIONS)


def imports(
    node: ast.AST, known: set[str], inside: bool = False, typing: bool = False
) -> Iterator[Import]:
    """Yield the imports below a node from known modules."""
    for child in ast.iter_child_nodes(node):
        only = typing or _is_for_typing(node, child)
        if isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                if whole in known:
                    yield Import(whole, "*", inside, only)
                elif child.module in known:
                    yield Import(child.module, alias.name, inside, only)
        elif isinstance(child, ast.Import):
            for alias in child.names:
                if alias.name in known:
                    yield Import(alias.name, "*", inside, only)
        yield from imports(child, known, inside or isinstance(child, FUNCTIONS), only)


def _is_for_typing(node: ast.AST, child: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and "TYPE_CHECKING" in ast.unparse(node.test)
        and child in node.body
    )


def measure() -> Figures:
    files = shipped()
    texts = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    functions = [
        Function(
            complexity(node),
            f"{files[name].relative_to(ROOT)}:{node.lineno} {node.name}",
        )
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
    ]
    return Figures(
        files=len(files),
        lines=sum(len(text.splitlines()) for text in texts.values()),
        functions=tuple(sorted(functions, reverse=True)),
        taken={
            name: tuple(one for one in imports(tree, {*files}) if one.module != name)
            for name, tree in trees.items()
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--worst", type=int, default=0, metavar="N")
    figures = measure()
    print(
        f"{figures.lines:,} lines in {figures.files} files\n"
        f"{figures.decisions:,} decisions in {len(figures.functions):,} functions\n"
        f"{figures.functions_over_10} functions over 10 "
        f"({100 * figures.functions_over_10 / len(figures.functions):.1f} %), "
        f"the most complex {figures.most_complex}\n"
        f"{figures.names_across} names cross modules "
        f"({1000 * figures.names_across / figures.lines:.1f} per 1,000 lines), "
        f"a module takes {figures.names_of_a_module:g} (median)\n"
        f"circles: {[len(ring) for ring in figures.circles] or 'none'}\n"
        f"{figures.imports_inside} imports inside functions"
    )
    for one in figures.functions[: parser.parse_args().worst]:
        print(f"{one.complexity:6} {one.where}")


if __name__ == "__main__":
    main()
