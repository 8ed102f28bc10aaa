"""``extends``: mappings merge, everything else replaces, null deletes; positions stay
those of the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.protocol import Catalogue, Specification, with_arena
from tests.arenas import examine

Write = Callable[[str, str], Path]

PARENT = """
paradigm: parent
title: The parent
arena:
  map: |
    S.d.Z
  legend: {S: box, d: {door: gate}, Z: {zone: goal, glyph: P}}
vars: {n: {init: 1, per: session}, m: 2}
trial:
  limit: 20
  start: run
  states:
    run:
      rules:
        - {enter: goal, reward: n + m, go: more}
        - {after: 9, end: lost}
    more:
      close: gate
      rules: [{after: 1, end: found}]
success: last == found
"""


@pytest.fixture
def load(write: Write) -> Callable[..., Specification]:
    """Write files of a folder (name -> text) and load the last one."""

    def load(**files: str) -> Specification:
        paths = [write(name, text) for name, text in files.items()]
        specification: Specification = with_arena(
            Catalogue([paths[0].parent]).load(paths[-1])
        )
        return specification

    return load


def errors_of(path: Path) -> list[str]:
    found = examine(path, Catalogue([path.parent]))[1]
    return [
        str(d).replace(f"{path.parent}/", "").split(": error ")[0]
        for d in found
        if d.severity == "error"
    ]


def plain(specification: Specification) -> Any:
    return json.loads(specification.text)


def child(text: str, parent: str = "parent", name: str = "child") -> str:
    return f"version: 1\nextends: {parent}\nparadigm: {name}\n{text}\n"


def test_mappings_merge_lists_replace_null_deletes(
    load: Callable[..., Specification],
) -> None:
    text = """
    arena: {legend: {Z: {glyph: null}}}
    vars: {m: null, n: {init: 5}}
    trial:
      limit: 30
      states:
        run:
          rules: [{enter: goal, reward: n, go: more}]
        more: {close: null, say: "WAIT"}
    title: null
    """
    merged = plain(
        load(
            parent=PARENT,
            child=child("\n".join(line[4:] for line in text.splitlines())),
        )
    )
    assert merged["paradigm"] == "child"
    assert "extends" not in merged
    assert "title" not in merged
    assert merged["arena"]["legend"] == {
        "S": "box",
        "d": {"door": "gate"},
        "Z": {"zone": "goal"},
    }
    assert merged["vars"] == {"n": {"init": 5, "per": "session"}}
    assert merged["trial"]["limit"] == 30
    assert merged["trial"]["start"] == "run"
    assert merged["trial"]["states"]["run"] == {
        "rules": [{"enter": "goal", "reward": "n", "go": "more"}]
    }
    assert merged["trial"]["states"]["more"] == {
        "rules": [{"after": 1, "end": "found"}],
        "say": "WAIT",
    }


def test_a_short_form_replaces_a_mapping(load: Callable[..., Specification]) -> None:
    specification = load(parent=PARENT, child=child("vars: {n: 7}"))
    assert specification.variables["n"].initial == 7
    # ``n: 7`` means {init: 7, per: trial}.
    assert specification.variables["n"].per == "trial"


def test_a_null_that_deletes_nothing_is_nothing(
    load: Callable[..., Specification],
) -> None:
    plainly = load(parent=PARENT, child=child("vars: {n: 7}"))
    deleting = load(
        parent=PARENT,
        child=child("vars: {n: 7, absent: null}\nnotes: null\nmeasures: {x: null}"),
    )
    assert "absent" not in deleting.text
    assert deleting.variables == plainly.variables
    assert load(parent=PARENT + "extends: null").ancestors == ()


def test_file_order_is_the_parents_first(load: Callable[..., Specification]) -> None:
    text = child(
        "draw: {b: {of: {y: [1]}}, c: {of: {z: [1]}}}\nmeasures: {k: x + y + z}"
    )
    specification = load(
        parent=f"{PARENT}draw: {{a: {{of: {{x: [1]}}}}, b: {{of: {{y: [2]}}}}}}",
        child=text,
    )
    assert [draw.name for draw in specification.draws] == ["a", "b", "c"]
    assert [draw.rows for draw in specification.draws] == [((1,),)] * 3


def test_a_chain_of_parents(load: Callable[..., Specification]) -> None:
    files = {"parent": PARENT} | {
        f"child{n}": child(
            f"vars: {{n: {n}}}\ncite: {{from{n}: x}}",
            f"child{n - 1}" if n else "parent",
            f"child{n}",
        )
        for n in range(9)
    }
    specification = load(**files)
    assert specification.ancestors == (
        *(f"child{n}" for n in range(7, -1, -1)),
        "parent",
    )
    assert specification.variables["n"].initial == 8
    assert list(specification.document.cite) == [f"from{n}" for n in range(9)]


def test_an_edition_of_an_edition(
    load: Callable[..., Specification], write: Write
) -> None:
    write(
        "parent.short",
        child("edition: short\nvars: {n: 7}\ntrial: {limit: 9}", name="parent"),
    )
    text = child("edition: tiny\ntrial: {limit: 5}", "parent@short", "parent")
    specification = load(parent=PARENT, **{"parent.tiny": text})
    assert specification.name == "parent@tiny"
    assert specification.ancestors == ("parent@short", "parent")
    assert (specification.limit, specification.variables["n"].initial) == (5, 7)
    again = load(
        parent=PARENT,
        **{"parent.more": child("edition: more", "parent@default", "parent")},
    )
    assert again.ancestors == ("parent@default",)


def test_editions_in_a_circle(write: Write) -> None:
    write("parent.a", child("edition: a", "parent@b", "parent"))
    path = write("parent.b", child("edition: b", "parent@a", "parent"))
    (found,) = examine(path, Catalogue([path.parent]))[1]
    assert (
        found.sentence == "'parent@b' extends itself, directly or through its parents."
    )


def test_a_parent_in_a_folder_of_protocols(write: Write, tmp_path: Path) -> None:
    shelf = tmp_path / "installed" / "classics"
    shelf.mkdir(parents=True)
    write("parent", PARENT).rename(shelf / "parent.protocol.yaml")
    path = write("child", child("", "parent"))
    assert with_arena(Catalogue([tmp_path / "installed"]).load(path)).ancestors == (
        "parent",
    )


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("parent.short", "Write parent@short."),
        ("parent.short.protocol.yaml", "Write parent@short."),
        ("parent.protocol.yaml", "Write parent."),
        (
            "[parent, other]",
            "A protocol has one parent: name one, and copy what you need from the others.",
        ),
        ("parent@a@b", "Write its id, or id@edition."),
        ("parent@shrt", "Did you mean 'parent@short'?"),
        (
            "quite@another",
            "Put quite.another.protocol.yaml into the same folder, or install its plugin.",
        ),
    ],
)
def test_how_a_parent_is_named(write: Write, name: str, remedy: str) -> None:
    write("parent.short", child("edition: short", name="parent"))
    path = write("child", child("", name))
    (found,) = examine(path)[1]
    assert (found.code, found.remedy) == (150, remedy)


def test_too_many_generations(write: Write) -> None:
    write("child0", PARENT)
    paths = [
        write(f"child{n}", child("", f"child{n - 1}", f"child{n}"))
        for n in range(1, 20)
    ]
    found = examine(paths[-1], Catalogue([paths[0].parent]))[1]
    assert [d.sentence for d in found] == [
        "There are more than 10 generations of protocols."
    ]


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_circle(write: Write, length: int) -> None:
    paths = [
        write(f"child{n}", child("", f"child{(n + 1) % length}")) for n in range(length)
    ]
    (found,) = examine(paths[0], Catalogue([paths[0].parent]))[1]
    assert (found.code, found.position) == (
        150,
        type(found.position)(str(paths[-1]), 2, 10),
    )
    assert found.sentence == "'child0' extends itself, directly or through its parents."


def test_a_missing_parent_is_named(write: Write) -> None:
    write("parent", PARENT)
    path = write("child", child("", "paernt"))
    (found,) = examine(path, Catalogue([path.parent]))[1]
    assert str(found) == (
        f"{path}:2:10: error E150: The parent protocol 'paernt' is unknown. Did you mean 'parent'?"
    )


@pytest.mark.parametrize(
    "name", ["[a]", "7", "a b", "../parent", "a" * 300, '"a\\u0041/"', "''"]
)
def test_a_parent_that_can_be_none(write: Write, name: str) -> None:
    path = write("child", child("", name))
    assert errors_of(path) == ["child.protocol.yaml:2:10"]


def test_errors_stand_in_the_file_that_made_them(write: Write) -> None:
    write(
        "parent",
        PARENT.replace("reward: n + m", "reward: n + q").replace(
            "end: lost", "end: lost, go: run"
        ),
    )
    path = write(
        "child", child("trial: {states: {more: {close: gaet}}}\nsuccess: last == 5")
    )
    assert errors_of(path) == [
        "child.protocol.yaml:4:32",
        "child.protocol.yaml:5:10",
        "parent.protocol.yaml:14:37",
        "parent.protocol.yaml:15:11",
    ]


def test_a_deleted_key_that_is_still_needed(write: Write) -> None:
    write("parent", PARENT)
    path = write("child", child("vars: {m: null}"))
    assert errors_of(path) == ["parent.protocol.yaml:14:37"]


def test_broken_yaml_of_a_parent_stands_in_the_parent(write: Write) -> None:
    write("parent", PARENT + "x: [")
    path = write("child", child("y: 1\ny: 2"))
    found = errors_of(path)
    assert found[0] == "child.protocol.yaml:5:1"
    assert found[1].startswith("parent.protocol.yaml:")


def test_the_parent_beside_the_file_comes_first(tmp_path: Path, write: Write) -> None:
    write("shipped/parent", PARENT)
    write("shipped/other", PARENT.replace("limit: 20", "limit: 77"))
    write("mine/parent", PARENT.replace("limit: 20", "limit: 50"))
    catalogue = Catalogue([tmp_path / "shipped"])
    assert with_arena(catalogue.load(write("mine/child", child("")))).limit == 50
    assert (
        with_arena(catalogue.load(write("mine/cousin", child("", "other")))).limit == 77
    )


# -- the hash

DESCRIPTIONS = [
    "title: Another",
    "cite: {doi: 10.1/2}",
    "notes: [a, b]",
    "tests: [{actions: F, expect: {outcome: timeout}}]",
    "checks: [{at: run, hidden: n, chance: 0.5}]",
    "construct: {name: memory, kind: perception, abolished_by: [{lesion: blind, at_most: 0.5}]}",
    "chance: {value: 0.2, trials: 10, how: measured}",
]
CHANGES = [
    "edition: other",
    "paradigm: other",
    "arena: {headings: 4}",
    "arena: {legend: {Z: goal}}",
    "vars: {m: 3}",
    "draw: {d: {of: {x: [1]}}}",
    "start: {at: goal}",
    "start: {face: W}",
    "trial: {limit: 21}",
    "trial: {states: {more: {say: x}}}",
    "trial: {watch: [{act: STAY, count: stays}]}",
    "schedule: {two: {}}",
    "success: last == lost",
    "estimand: {last: 2}",
    "measures: {x: steps}",
    "reference: [{measure: success, value: 0.5, status: x}]",
    "margin: 0.2",
]


def without_paradigm(text: str) -> str:
    return child(text).replace("paradigm: child\n", "")


@pytest.mark.parametrize("text", DESCRIPTIONS)
def test_descriptions_do_not_change_the_hash(
    load: Callable[..., Specification], text: str
) -> None:
    same, other = load(parent=PARENT), load(parent=PARENT, child=without_paradigm(text))
    assert same.sha256 == other.sha256
    assert same.text != other.text


def test_where_a_number_is_from_does_not_change_the_hash(
    load: Callable[..., Specification],
) -> None:
    one = "reference: [{measure: success, value: 0.4, status: x}]"
    other = "reference: [{measure: success, value: 0.4, species: vole, source: a book, status: corrected}]"
    found = [
        load(parent=PARENT, child=without_paradigm(text)).sha256
        for text in (one, other)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("text", CHANGES)
def test_everything_else_changes_the_hash(
    load: Callable[..., Specification], text: str
) -> None:
    assert (
        load(parent=PARENT).sha256
        != load(parent=PARENT, child=without_paradigm(text)).sha256
    )


@pytest.mark.parametrize(
    "text", ["", "vars: {m: 2}", "trial: {limit: 20}", "notes: null", "vars: {x: null}"]
)
def test_how_it_is_written_does_not_change_the_hash(
    load: Callable[..., Specification], text: str
) -> None:
    commented = PARENT.replace("limit: 20", "limit:   20   # steps")
    assert (
        load(parent=PARENT).sha256
        == load(parent=commented, child=without_paradigm(text)).sha256
    )


SCRIPT = """
import sys
from cheesebench.protocol import Catalogue
for path in sys.argv[1:]:
    specification, found = Catalogue().inspect(path)
    print(*map(str, found), specification and (specification.sha256, repr(specification)), sep="\\n")
"""


def test_nothing_depends_on_the_hash_seed(
    write: Write, under_hash_seeds: Callable[..., list[str]]
) -> None:
    everything = Path(__file__).with_name("everything.yaml")
    broken = (
        everything.read_text(encoding="utf-8")
        .replace("gap", "gpa", 1)
        .replace("lever", "levre", 1)
    )
    files = [
        str(everything),
        str(write("broken", broken)),
        str(write("parent", PARENT)),
    ]
    outputs = under_hash_seeds(SCRIPT, *files)
    assert "error E" in outputs[0]
    assert _without_sets(outputs[0]) == _without_sets(outputs[1])


def _without_sets(text: str) -> str:
    """A frozenset has no order, and prints in any."""
    parts = text.split("frozenset({")
    return parts[0] + "".join(
        "".join(sorted(p.split("})")[0])) + p.partition("})")[2] for p in parts[1:]
    )


def test_load_says_all_errors_and_nothing_else(write: Write) -> None:
    path = write("wrong", "vars: {steps: 0, unused: 1}\nstart: {at: bax}")
    with pytest.raises(ProtocolError) as caught:
        with_arena(Catalogue().load(path))
    lines = str(caught.value).splitlines()
    assert [line.removeprefix(str(path)).split(": ")[0:2] for line in lines] == [
        [":1:8", "error E202"],
        [":2:13", "error E201"],
    ]


def test_a_protocol_may_replace_the_parent_of_its_own_name(tmp_path: Path) -> None:
    installed, local = tmp_path / "installed", tmp_path / "local"
    for folder in (installed, local):
        folder.mkdir()
    (installed / "maze.protocol.yaml").write_text(
        "version: 1\nparadigm: maze\narena: {map: S.Z, legend: {S: box, Z: goal}}\nstart: {at: box, face: E}\n"
        "trial: {limit: 9, start: run, states: {run: {rules: [{enter: goal, reward: 1, end: found}]}}}\n"
        "schedule: {one: {trials: 2}}\n",
        encoding="utf-8",
    )
    own = local / "maze.protocol.yaml"
    own.write_text(
        "version: 1\nextends: maze\nschedule: {one: {trials: 5}}\n", encoding="utf-8"
    )
    specification, found = examine(own, Catalogue([installed, local]))
    assert specification is not None, found
    assert specification.planned_trials == 5
