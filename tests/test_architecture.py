"""Who imports whom, read from the code (design page «architecture»)."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

import cheesebench
from cheesebench.plugin_manager import BUILT_INS

ROOT = Path(cheesebench.__file__).parent
TABLE = tomllib.loads((Path(__file__).parent / "layers.toml").read_text(encoding="utf-8"))
#: Layer of each part of the core; a module imports only from its own layer and those before it.
LAYER = {name: number for number, layer in enumerate(TABLE["layer"]) for name in layer["modules"]}
#: Packages that a protocol compiles into, that plug in, or that render: they never import one another.
OUTER = tuple(TABLE["beside"]["modules"])
CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"


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
    typing_only = {id(inner) for node in ast.walk(tree) if _is_typing_only(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        for name in _imported(node):
            yield name, id(node) in typing_only


def imports_at_once(path: Path) -> Iterator[str]:
    """Yield what is imported when the module is: not in functions, not for type checking."""
    waiting: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        yield from _imported(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not _is_typing_only(node):
            waiting += ast.iter_child_nodes(node)


def _is_typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules (without ``cheesebench.``) that an import statement names; the package is ``__init__``."""
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
    listed = [name for layer in TABLE["layer"] for name in layer["modules"]] + list(OUTER)
    assert sorted(listed) == sorted({part(name) for name in NAMES}), "name each part in one layer of tests/layers.toml"


@pytest.mark.parametrize(("name", "path"), MODULES, ids=[name for name, _ in MODULES])
def test_imports_go_one_way(name: str, path: Path) -> None:
    own = part(name)
    for imported, typing_only in imports(path):
        other = part(imported)
        if own in OUTER:
            assert other not in OUTER or other == own, f"{name} imports {imported}"
        elif other in OUTER:
            pytest.fail(f"the core module {name} imports {imported}; it may only name it as a string")
        elif not typing_only:
            assert LAYER[other] <= LAYER[own], f"{name} imports {imported}, which is in a later layer"


def test_commands_do_not_need_a_session_of_pytest() -> None:
    for name, path in MODULES:
        if part(name) == "commands":
            assert [imported for imported, _ in imports(path) if part(imported).startswith("pytest_")] == [], name


def test_there_is_no_cycle() -> None:
    graph = networkx.DiGraph(
        (name, imported) for name, path in MODULES for imported in imports_at_once(path) if imported != name
    )
    assert graph.number_of_edges() > len(NAMES)
    cycles = [sorted(ring) for ring in networkx.strongly_connected_components(graph) if len(ring) > 1]
    assert cycles == []


def picture() -> str:
    """Return the layers as CONTRIBUTING.md shows them, the latest at the top."""
    layers = [(layer["name"], layer["modules"]) for layer in reversed(TABLE["layer"])]
    lines = []
    for number, (name, names) in enumerate(layers):
        lines += ["     |"] if number else []
        wrapped = textwrap.wrap("  ".join(names), 100)
        lines += [f"{name:<12}{wrapped[0]}", *(f"     |      {line}" for line in wrapped[1:])]
    return "\n".join([*lines, "", f"{'beside':<12}{'  '.join(OUTER)}"])


def test_the_picture_shows_the_layers() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    assert f"```text\n{picture()}\n```" in text, f"put this into CONTRIBUTING.md:\n{picture()}"


def test_the_table_says_what_the_code_is_for() -> None:
    """Rows count what is below their folders and in no other row, to the nearest thousand or so."""
    rows = re.findall(r"^\| (`\S.*`) \| (\d+) \| \S.*\.? \|$", CONTRIBUTING.read_text(encoding="utf-8"), re.MULTILINE)
    stated = {tuple(re.findall("`(.*?)`", code)): int(thousands) for code, thousands in rows}
    counted = dict.fromkeys(stated, 0)
    folders = {folder: row for row in stated for folder in row}
    for name, path in MODULES:
        outer = "" if part(name) in OUTER else "cheesebench/"
        place = f"{outer}{name.replace('.', '/')}" + ("/" if path.name == "__init__.py" and name in NAMES else "")
        inside = [folder for folder in folders if place.startswith(folder)]
        row = folders[max(inside, key=len)] if inside else ("cheesebench/*.py",)
        counted[row] += len(path.read_text(encoding="utf-8").splitlines())
    wrong = {row: lines for row, lines in counted.items() if abs(lines / 1000 - stated[row]) > 0.8}
    assert wrong == {}, "correct the table in CONTRIBUTING.md, and say what the lines are for"


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
                assert part(imported) in ("plugins", "__init__"), f"{name} imports {imported}"
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module == "cheesebench":
                    private = {alias.name for alias in node.names} - set(cheesebench.__all__)
                    assert not private, f"{name} imports {private}"


#: What belongs to one kind of paradigm although it is not defined in ``paradigms``.
FAMILY_TYPES = {
    "Specification", "ProtocolDocument", "Arena", "Dialogue", "Conversational", "Puzzle", "RespondentSpec",
}  # fmt: skip
ALTERNATIVES = {"examine", "examine_text", "inspect_dialogue", "compile_dialogue", "plan_dialogue", "plan_dialogues"}


@functools.cache
def family_types() -> frozenset[str]:
    """Return the names of all classes that families define, and those that stand elsewhere for their sake."""
    defined: dict[bool, set[str]] = {True: set(), False: set()}
    for name, path in MODULES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defined[part(name) == "paradigms"] |= {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return frozenset(FAMILY_TYPES | (defined[True] - defined[False]))


def asks_for_family(tree: ast.AST, types: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield line and name of every place where code asks which family it has before it."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]):
                names = {getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(kinds)}
                yield from ((node.lineno, name) for name in sorted(names & types))
            case ast.MatchClass(cls=ast.Name(id=name)) if name in types:
                yield node.lineno, name
            case ast.Name(id="NO_VIEW") | ast.Attribute(attr="NO_VIEW") | ast.alias(name="NO_VIEW"):
                yield node.lineno, "NO_VIEW"
            case ast.Attribute(attr=name) if name in ALTERNATIVES or name.endswith("_any"):
                yield node.lineno, name
            case ast.FunctionDef(name=name) if name in ALTERNATIVES or name.endswith("_any"):
                yield node.lineno, name


def test_no_family_types_in_core() -> None:
    types = family_types()
    assert {"GraphParadigm", "DialogueSpecification", "ArenaSubject"} <= types
    website = [(f"website.{path.stem}", path) for path in sorted((ROOT.parent / "website").glob("*.py"))]
    core = [(name, path) for name, path in [*MODULES, *website] if part(name) != "paradigms"]
    assert len(core) > 200
    found = [
        f"{name}:{line} asks for {kind}"
        for name, path in core
        for line, kind in asks_for_family(ast.parse(path.read_text(encoding="utf-8")), types)
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
    assert list(asks_for_family(ast.parse(code), family_types()))


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


def test_child_interpreters_import_nothing_from_the_working_directory() -> None:
    started = re.compile(r"sys\.executable,\s*(\S+)")
    for name, path in MODULES:
        for first in started.findall(path.read_text(encoding="utf-8")):
            assert first.startswith('"-P"'), f"{name} starts an interpreter with {first}"
