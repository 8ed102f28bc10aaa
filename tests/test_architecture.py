"""Rules for imports between modules (design page «architecture»)."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import pkgutil
import re
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import networkx
import pytest

import cheesebench
from cheesebench.plugin_manager import BUILT_INS

ROOT = Path(cheesebench.__file__).parent
TABLE = tomllib.loads(
    (Path(__file__).parent / "layers.toml").read_text(encoding="utf-8")
)
#: Layer of each part of the core; a module imports only from its own layer and those
#: before it.
LAYER = {
    name: number
    for number, layer in enumerate(TABLE["layer"])
    for name in layer["modules"]
}
#: Packages of compiled protocols, plugins and reports, which never import one another.
OUTER = tuple(TABLE["beside"]["modules"])
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def modules() -> Iterator[tuple[str, Path]]:
    """Yield all modules. The linked folders are named, because a glob does not follow
    links.
    """
    folders = {"": ROOT} | {
        name: Path(find_module(name)) for name in (*OUTER, "protocols")
    }
    for prefix, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder).with_suffix("").parts
            parts = [
                part for part in (prefix, *relative) if part not in ("", "__init__")
            ]
            if prefix or parts[:1] not in [[name] for name in (*OUTER, "protocols")]:
                yield ".".join(parts), path


def find_module(name: str) -> str:
    spec = importlib.util.find_spec(f"cheesebench.{name}")
    assert spec is not None
    assert spec.submodule_search_locations
    return spec.submodule_search_locations[0]


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))


class Statement(NamedTuple):
    """An import statement, with its position."""

    node: ast.Import | ast.ImportFrom
    in_function: bool
    for_typing: bool


@functools.cache
def statements(path: Path) -> list[Statement]:
    found = []
    waiting: list[tuple[ast.AST, bool, bool]] = [(tree(path), False, False)]
    while waiting:
        node, inside, typing = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(Statement(node, inside, typing))
        elif not isinstance(node, ast.expr):
            inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            typing |= isinstance(node, ast.If) and _is_typing_only(node.test)
            waiting += ((one, inside, typing) for one in ast.iter_child_nodes(node))
    return found


def _is_typing_only(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def imports(path: Path, *, typing: bool = True) -> list[str]:
    """Return the modules of this package that a module imports, also in functions;
    ``typing``: also for type checking.
    """
    return [
        imported
        for one in statements(path)
        if typing or not one.for_typing
        for imported in _imported(one.node)
    ]


def imports_in_functions(path: Path) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the import statements inside functions, each with the modules."""
    for node in (one.node for one in statements(path) if one.in_function):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        else:
            yield node, node.module or ""


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules (without ``cheesebench.``) that an import statement names; the
    package is ``__init__``.
    """
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        package, _, rest = name.partition(".")
        if package == "cheesebench":
            while rest not in NAMES and "." in rest:
                rest = rest.rpartition(".")[0]
            yield rest if rest in NAMES else "__init__"


def part(module: str) -> str:
    return module.split(".")[0] or "__init__"


MODULES = [(name or "__init__", path) for name, path in modules()]
NAMES = {name for name, _ in MODULES}


def test_every_module_has_one_layer() -> None:
    listed = [name for layer in TABLE["layer"] for name in layer["modules"]] + list(
        OUTER
    )
    assert sorted(listed) == sorted({part(name) for name in NAMES}), (
        "name each part in one layer of tests/layers.toml"
    )


def wrong_way(own: str, other: str) -> str:
    """Return the error of an import of one part from another; empty without one."""
    if own in OUTER:
        return "plugs in beside it" if other in OUTER and other != own else ""
    if other in OUTER:
        return "is not of the core, which may only name it as a string"
    return "is in a later layer" if LAYER[other] > LAYER[own] else ""


def test_imports_go_one_way() -> None:
    wrong = [
        f"{name} imports {imported}, which {problem}"
        for name, path in MODULES
        for imported in imports(path)
        if (problem := wrong_way(part(name), part(imported)))
    ]
    assert wrong == []


def test_commands_do_not_need_a_session_of_pytest() -> None:
    for name, path in MODULES:
        if part(name) == "commands":
            assert [
                imported
                for imported in imports(path)
                if part(imported).startswith("pytest_")
            ] == [], name


#: A contract, and a value that it names for the type checker only.
CONTRACT_AND_VALUE = [["diagnostics", "errors"], ["interfaces", "lesions"]]


def circles(typing: bool) -> list[list[str]]:
    """Return the circles of all imports, including those inside functions; with or
    without those for type checking.
    """
    graph = networkx.DiGraph(
        (name, imported)
        for name, path in MODULES
        for imported in imports(path, typing=typing)
        if imported != name
    )
    assert graph.number_of_edges() > len(NAMES)
    rings = networkx.strongly_connected_components(graph)
    return sorted(sorted(ring) for ring in rings if len(ring) > 1)


def test_there_is_no_circle() -> None:
    assert circles(typing=False) == []
    assert circles(typing=True) == CONTRACT_AND_VALUE


def test_inside_functions_only_what_is_heavy_is_imported() -> None:
    """Each package and module of ``[inside]`` in layers.toml has its reason there."""
    reasons = TABLE["inside"]
    found = {
        f"{name}:{node.lineno}": module
        for name, path in MODULES
        for node, module in imports_in_functions(path)
    }
    strange = {
        where: module
        for where, module in found.items()
        if module not in reasons and module.split(".")[0] not in reasons
    }
    assert strange == {}, "import it at the top of the module"
    used = {name for one in found.values() for name in (one, one.split(".")[0])}
    assert set(reasons) <= used, "remove these reasons"


def picture() -> str:
    """Return the layers in the form of CONTRIBUTING.md, the latest at the top."""
    layers = [(layer["name"], layer["modules"]) for layer in reversed(TABLE["layer"])]
    lines = []
    for number, (name, names) in enumerate(layers):
        lines += ["     |"] if number else []
        wrapped = textwrap.wrap("  ".join(names), 100)
        lines += [
            f"{name:<12}{wrapped[0]}",
            *(f"     |      {line}" for line in wrapped[1:]),
        ]
    return "\n".join([*lines, "", f"{'beside':<12}{'  '.join(OUTER)}"])


def test_the_picture_shows_the_layers() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    assert f"```text\n{picture()}\n```" in text, (
        f"put this into CONTRIBUTING.md:\n{picture()}"
    )


def test_statistics_sees_records_only() -> None:
    for name, path in MODULES:
        if part(name) == "statistics":
            for imported in imports(path):
                assert part(imported) in (
                    "amounts",
                    "statistics",
                    "errors",
                    "frozen",
                    "interfaces",
                    "published",
                    "records",
                    "tables",
                ), f"{name} imports {imported}"


def test_plugins_import_public_names_only() -> None:
    for name, path in MODULES:
        if part(name) == "plugins":
            for imported in imports(path):
                assert part(imported) in ("plugins", "__init__"), (
                    f"{name} imports {imported}"
                )
            for node in nodes(path):
                if isinstance(node, ast.ImportFrom) and node.module == "cheesebench":
                    private = {alias.name for alias in node.names} - set(
                        cheesebench.__all__
                    )
                    assert not private, f"{name} imports {private}"


#: Types of one kind of paradigm that are not defined in ``paradigms``.
FAMILY_TYPES = {
    "Specification", "ProtocolDocument", "Arena", "Puzzle", "RespondentSpec",
}  # fmt: skip
ALTERNATIVES = {
    "examine",
    "examine_text",
    "inspect_dialogue",
    "compile_dialogue",
    "plan_dialogue",
    "plan_dialogues",
}


@functools.cache
def family_types() -> frozenset[str]:
    """Return the names of all classes that families define, and of those elsewhere that
    serve a family.
    """
    defined: dict[bool, set[str]] = {True: set(), False: set()}
    for name, path in MODULES:
        defined[part(name) == "paradigms"] |= {
            node.name for node in nodes(path) if isinstance(node, ast.ClassDef)
        }
    return frozenset(FAMILY_TYPES | (defined[True] - defined[False]))


def asks_for_family(
    code: Iterable[ast.AST], types: frozenset[str]
) -> Iterator[tuple[int, str]]:
    """Yield line and name of every place where code asks for the family
    of an object.
    """
    for node in code:
        match node:
            case ast.Call(
                func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]
            ):
                names = {
                    getattr(one, "id", getattr(one, "attr", ""))
                    for one in ast.walk(kinds)
                }
                yield from ((node.lineno, name) for name in sorted(names & types))
            case ast.MatchClass(cls=ast.Name(id=name)) if name in types:
                yield node.lineno, name
            case (
                ast.Name(id="NO_VIEW")
                | ast.Attribute(attr="NO_VIEW")
                | ast.alias(name="NO_VIEW")
            ):
                yield node.lineno, "NO_VIEW"
            case ast.Attribute(attr=name) if name in ALTERNATIVES or name.endswith(
                "_any"
            ):
                yield node.lineno, name
            case ast.FunctionDef(name=name) if name in ALTERNATIVES or name.endswith(
                "_any"
            ):
                yield node.lineno, name


def test_no_family_types_in_core() -> None:
    types = family_types()
    assert {"GraphParadigm", "DialogueSpecification", "ArenaSubject"} <= types
    website = [
        (f"website.{path.stem}", path)
        for path in sorted((ROOT.parent / "website").glob("*.py"))
    ]
    core = [
        (name, path) for name, path in [*MODULES, *website] if part(name) != "paradigms"
    ]
    core = [
        (name, path) for name, path in core if name != "protocol.specification"
    ]  # the word ``arenas`` is allowed
    assert len(core) > 150
    found = [
        f"{name}:{line} asks for {kind}"
        for name, path in core
        for line, kind in asks_for_family(nodes(path), types)
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(x, Specification)",
        "isinstance(x, (int, protocol.DialogueSpecification))",
        "isinstance(x, RespondentSpec | ModelAgentSpec)",
        "match x:\n    case GraphParadigm():\n        pass",
        "view == NO_VIEW",
        "from cheesebench.dialogue import NO_VIEW",
        "catalogue.load_any(path)",
        "def compile_dialogue(x): pass",
    ],
)
def test_a_question_for_the_family_is_seen(code: str) -> None:
    assert list(asks_for_family(ast.walk(ast.parse(code)), family_types()))


def test_no_python_names_a_paradigm() -> None:
    ids = [
        path.name.split(".")[0] for path in (ROOT / "protocols").glob("*.protocol.yaml")
    ]
    assert ids
    named = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in ids))
    for name, path in MODULES:
        documented = {
            id(node.body[0].value)
            for node in nodes(path)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in nodes(path):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in documented
            ):
                assert not named.fullmatch(node.value.strip()), (
                    f"{name}:{node.lineno} names {node.value!r}"
                )


def shown() -> Iterator[tuple[str, Any]]:
    """Yield the public classes and functions on the pages of docs/reference, with their
    dotted names.
    """
    for page in sorted((Path(__file__).parents[1] / "docs" / "reference").glob("*.md")):
        for name in re.findall(
            r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE
        ):
            found = pkgutil.resolve_name(name)
            if inspect.ismodule(found):
                own = [
                    key
                    for key, one in vars(found).items()
                    if getattr(one, "__module__", None) == name
                ]
                public = getattr(
                    found, "__all__", [key for key in own if not key.startswith("_")]
                )
                yield from ((f"{name}.{key}", getattr(found, key)) for key in public)
            else:
                yield name, found


def test_what_the_reference_shows_has_docstrings() -> None:
    wanted = {}
    for name, found in shown():
        if inspect.isfunction(found) or inspect.isclass(found):
            wanted[name] = found
        if inspect.isclass(found):
            methods = {
                key: one for key, one in vars(found).items() if inspect.isfunction(one)
            }
            wanted |= {
                f"{name}.{key}": one
                for key, one in methods.items()
                if not key.startswith("_")
            }
    assert len(wanted) > 100
    # Python gives a dataclass without a docstring its own signature.
    written = {name: inspect.getdoc(found) or "" for name, found in wanted.items()}
    missing = [
        name
        for name, text in written.items()
        if not text or text.startswith(name.rpartition(".")[2] + "(")
    ]
    assert missing == []


def test_built_ins_exist_and_are_named_as_strings_only() -> None:
    names = {name for name, _ in MODULES}
    assert {built_in.removeprefix("cheesebench.") for built_in in BUILT_INS} <= names


def test_no_comment_stands_behind_a_closing_parenthesis() -> None:
    """If ``ruff format`` has split a line, its comment ends up there, after the code
    that it explains: move it above.
    """
    stranded = re.compile(
        r"^ *\)(?: as \w+)?:?  # (?!type: |noqa|fmt: ).*", re.MULTILINE
    )
    found = {
        name: stranded.findall(path.read_text(encoding="utf-8"))
        for name, path in modules()
    }
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_child_interpreters_import_nothing_from_the_working_directory() -> None:
    started = re.compile(r"sys\.executable,\s*(\S+)")
    for name, path in MODULES:
        for first in started.findall(path.read_text(encoding="utf-8")):
            assert first.startswith('"-P"'), (
                f"{name} starts an interpreter with {first}"
            )
