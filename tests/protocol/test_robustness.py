"""The loader answers any input with findings, and an accepted protocol can be run."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification
from fuzz import life
from tests.arenas import examine
from tests.protocol.short import Examine

stable = settings(
    derandomize=True,
    max_examples=100,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


_catalogue = Catalogue(installed_plugins().protocol_directories)
EVERYTHING = Path(__file__).with_name("everything.yaml")
NAMES = sorted({*_catalogue.files, "everything"})


@cache
def _data(name: str) -> str:
    """Return a protocol as JSON, an edition merged with its parent."""
    return _catalogue.load(_catalogue.files.get(name, EVERYTHING)).text


def live(specification: Specification, seed: int) -> None:
    """Run some trials with random actions; only a ProtocolError may end them."""
    life.live(
        ArenaParadigm(specification),
        specification,
        installed_plugins().view("ascii_2d"),
        seed,
    )


# -- any text, any bytes

_CHARACTERS = "[]{}:,-?#&*!|>'\"%@`\n\t "
_WORDS = 'a key: version: arena: ... |2 \\x "\\u <<: !!str &a *a 1e3 0x1F 🐁 ~ paradigm: p trial: {'
PIECES = [
    *_CHARACTERS,
    *_WORDS.split(),
    "\n  ",
    "\n- ",
    "version: 1\n",
    "---\n",
    "\r\n",
    "\x85",
    "\ufeff",
]
yaml_like = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@stable
@given(
    st.one_of(
        yaml_like,
        st.text(max_size=200),
        yaml_like.map(lambda text: f"version: 1\n{text}"),
    )
)
def test_any_text_has_an_answer(examine: Examine, text: str) -> None:
    examine(text)


@stable
@given(
    data=st.one_of(
        st.binary(max_size=200),
        yaml_like.map(str.encode),
        st.text(max_size=50).map(lambda t: t.encode("utf-16")),
    )
)
def test_any_bytes_have_an_answer(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.protocol.yaml"
    path.write_bytes(data)
    specification, found = examine(path)
    assert specification is None
    assert found
    for diagnostic in found:
        assert diagnostic.position.file == str(path)
        assert diagnostic.position.line <= data.count(b"\n") + data.count(b"\r") + 8
        assert "\n" not in str(diagnostic)


# -- mutations of the tree (those of lines and tokens are cases of fuzz/loader.py)

_NOISE = "{ } [ ] : 0 -1 1e9 none null true random it wall last {} [] x # N NE 1/0 where(side) size(x) [none] 0.5 steps"
NOISE = ["", "- ", '"', "..", "state", "trial", "goal", *_NOISE.split()]


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [
        path,
        *(inner for step, child in children for inner in _paths(child, (*path, step))),
    ]


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        data = data[step]
    return data


#: Names with a meaning in every protocol, and expressions that may fail while it runs.
_WORDS_OF_ALL = "none it last random wall N NE x . # 1/0 1/0*0 steps state -1 1000*1000*1000 0-9 trial session"
_VALUES: list[object] = [
    0,
    1,
    2,
    -1,
    0.5,
    1e9,
    True,
    None,
    [],
    {},
    [0],
    ["none"],
    "last == none",
    "9" * 300,
]
SCALARS = [*_WORDS_OF_ALL.split(), *_VALUES]


@st.composite
def mutated_trees(draw: st.DrawFn) -> str:
    """A valid protocol as JSON, with values replaced by others of the same protocol,
    scalars and subtrees.
    """
    data = json.loads(_data(draw(st.sampled_from(NAMES))))
    for _ in range(draw(st.integers(1, 3))):
        paths = [path for path in _paths(data) if path]
        path = draw(st.sampled_from(paths))
        parent = _at(data, path[:-1])
        kind = draw(
            st.sampled_from(["scalar", "same", "same", "any", "delete", "rename"])
        )
        leaves = [
            other for other in paths if not isinstance(_at(data, other), dict | list)
        ]
        alike = [
            other for other in paths if type(_at(data, other)) is type(_at(data, path))
        ]
        if kind == "scalar":
            parent[path[-1]] = draw(st.sampled_from(SCALARS))
        elif kind == "same":  # the most dangerous: another value that fits
            path = draw(st.sampled_from(leaves))
            names = [
                other
                for other in leaves
                if type(_at(data, other)) is type(_at(data, path))
            ]
            _at(data, path[:-1])[path[-1]] = _at(data, draw(st.sampled_from(names)))
        elif kind == "any":
            parent[path[-1]] = json.loads(
                json.dumps(_at(data, draw(st.sampled_from(alike))))
            )
        elif kind == "delete":
            del parent[path[-1]]
        elif isinstance(parent, dict):
            keys = sorted({str(other[-1]) for other in paths})
            parent[draw(st.sampled_from(keys))] = parent.pop(path[-1])
    return json.dumps(data, indent=1, ensure_ascii=False)


@settings(stable, max_examples=100)
@given(mutated_trees(), st.integers(0, 9))
def test_mutated_trees_have_an_answer_and_can_be_lived(
    examine: Examine, text: str, seed: int
) -> None:
    specification, _ = examine(text)
    if specification is not None:
        live(specification, seed)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_mutated_can_be_lived_itself(name: str, examine: Examine) -> None:
    specification, found = examine(_data(name))
    assert specification is not None, "\n".join(map(str, found))
    live(specification, 3)


# -- protocols that are far too large

HEAD = 'version: 1\nparadigm: p\narena: {map: "S..Z", legend: {S: box, Z: goal}}\nstart: {at: box}\nschedule: {a: {}}\n'
TRIAL = "trial: {limit: 9, start: s0, states: {s0: {rules: [{enter: goal, reward: 1, end: found}]}}}\n"
STATES = HEAD + "trial:\n  limit: 9\n  start: s0\n  states:\n"
POOL = STATES.replace(
    'map: "S..Z", legend: {S: box, Z: goal}', "pool: {radius: 40}"
).replace("box", "centre")


def _many(template: str, number: int, joint: str = "") -> str:
    return joint.join(
        template.replace("NN", str(n)).replace("MM", str(n + 1)) for n in range(number)
    )


HUGE = {
    "rules": STATES
    + "    s0:\n      rules:\n"
    + _many("        - {act: STAY, p: 0.5, go: s0}\n", 1500),
    "rules that never fire": STATES
    + "    s0:\n      rules:\n"
    + _many("        - {act: STAY}\n", 1500),
    "a chain of states": STATES
    + _many("    sNN: {rules: [{act: STAY, go: sMM}]}\n", 1500)
    + "    s1500: {}\n",
    "states in a pool": POOL
    + _many("    sNN: {rules: [{enter: rim, reward: 1, go: sMM}]}\n", 90)
    + "    s90: {}\n",
    "unknown states": STATES + _many("    sNN: {rules: [{act: STAY, go: x}]}\n", 1500),
    "unknown keys": HEAD + TRIAL + _many("kNN: 1\n", 2000),
    "one key often": HEAD + TRIAL + "x: 1\n" * 2000,
    "unused variables": HEAD + TRIAL + f"vars: {{{_many('vNN: 1', 2000, ', ')}}}\n",
    "unknown names": HEAD + TRIAL + f"measures: {{{_many('mNN: xNN', 2000, ', ')}}}\n",
    "misfits": HEAD + TRIAL + f"notes: [{'[],' * 2000}]\n",
    "rows": HEAD + TRIAL + f"draw: {{d: {{of: {{x: [{'0,' * 20_000}1]}}}}}}\n",
}


@pytest.mark.parametrize("text", HUGE.values(), ids=list(HUGE))
def test_a_huge_protocol_is_answered_briefly(text: str, examine: Examine) -> None:
    specification, found = examine(text)
    assert len([d for d in found if d.severity == "error"]) <= 101
    assert len([d for d in found if d.severity != "error"]) <= 100
    if specification is None:
        # Unlisted errors are counted, unless one error covers everything (206: too many
        # rows)
        assert [d.code for d in found].count(199) == 1 or [d.code for d in found] == [
            206
        ]
