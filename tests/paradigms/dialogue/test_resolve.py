"""Errors in a dialogue protocol are reported at their place, with a remedy; a sound one
loads.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from cheesebench.errors import ProtocolError
from cheesebench.paradigms.dialogue.resolve import _scattered, _spread
from cheesebench.paradigms.dialogue.specification import DialogueSpecification
from cheesebench.protocol import Catalogue
from tests.arenas import examine_text

MARK = "«"
#: The line of a finding with its code.
LINE = re.compile(r"x\.yaml:\d+:\d+: error E\d\d\d: [^\n]+[.?)]")

SOUND = """
version: 1
paradigm: diamond
arena:
  graph:
    start: 1
    edges: [[1, 2], [2, 3], [1, 4], [4, 3], [3, 5]]
    rewards: {5: 40, 4: 10}
    vocabulary: {doors: "door {n}"}
conditions:
  plain: {ask: best_path}
  moved: {after: plain, edit: {rewards: {4: 90}}, ask: best_path}
  far: {ask: shortest_path, pairs: {distance: 3}}
"""


def findings(text: str) -> list[str]:
    specification, found = Catalogue().inspect_text(text.replace(MARK, ""), "x.yaml")
    assert (specification is None) == any(d.severity == "error" for d in found)
    for diagnostic in found:
        assert LINE.fullmatch(str(diagnostic)), str(diagnostic)
    return [str(diagnostic) for diagnostic in found]


def changed(old: str, new: str) -> str:
    assert old in SOUND
    return SOUND.replace(old, new)


def load(text: str) -> DialogueSpecification:
    specification, found = Catalogue().inspect_text(textwrap.dedent(text), "x.yaml")
    assert isinstance(specification, DialogueSpecification), "\n".join(map(str, found))
    return specification


def test_keys_are_all_optimal_paths_of_the_edited_graph() -> None:
    conditions = load(SOUND).conditions
    assert conditions["plain"].items[0].keys == (
        ("1", "2", "3", "5"),
        ("1", "4", "3", "5"),
    )
    assert conditions["moved"].items[0].keys == (("1", "4"),)
    assert [(item.start, item.goals) for item in conditions["far"].items] == [
        ("1", ("5",)),
        ("5", ("1",)),
    ]


@pytest.mark.parametrize(
    ("old", "new", "code", "words"),
    [
        (
            '{doors: "door {n}"}',
            "{doors: «{1: a, 2: b, 3: c, 4: d}}",
            231,
            "no name for 5",
        ),
        (
            '{doors: "door {n}"}',
            "{doors: {1: a, 2: b, 3: c, «4: A, 5: e}}",
            232,
            "The nodes '1' and '4' have the same name",
        ),
        (
            '{doors: "door {n}"}',
            '{doors: «"the door"}',
            232,
            "several nodes would have this name",
        ),
        (
            '{doors: "door {n}"}',
            '{doors: {1: a, 2: b, 3: c, 4: d, «5: "!!"}}',
            232,
            "cannot be the name of a node",
        ),
        (
            '{doors: "door {n}"}',
            '{doors: {each: "door {n}", names: {«9: hall}}}',
            230,
            "a node '9'",
        ),
        (
            '{doors: "door {n}"}',
            '{doors: {each: "door {n}", scene: «room}}',
            201,
            "Did you mean 'rooms'?",
        ),
        ("start: 1", "start: «7", 230, "no node '7'"),
        ("[3, 5]]", "[3, 5], «[5, 3]]", 241, "is [3, 5] again"),
        ("[3, 5]]", "[3, 5], «[3, 5]]", 241, "twice"),
        ("[3, 5]]", "[3, 5], «[5, 5]]", 241, "to itself"),
        ("[3, 5]]", "[3, 5], «[5]]", 123, "a pair of nodes"),
        ("rewards: {5: 40, 4: 10}", "rewards: {«6: 40}", 230, "no node '6'"),
        (
            "  plain: {ask: best_path}\n",
            "  plain: «{ask: best_path, edit: {remove: [[1, 2], [1, 4]]}}\n",
            235,
            "to a reward",
        ),
        (
            "{rewards: {4: 90}}",
            "«{rewards: {4: 12}}",
            236,
            "'1 - 2 - 3 - 5' is a right answer both before and after",
        ),
        ("{rewards: {4: 90}}", "{remove: [«[1, 3]]}", 233, "'1' leads to 2, 4"),
        ("{rewards: {4: 90}}", "{remove: [«[1, 9]]}", 230, "no node '9'"),
        ("{rewards: {4: 90}}", "{add: [«[2, 1]]}", 234, "already exists"),
        (
            "{rewards: {4: 90}}",
            "{portal: «{at: 1, to_neighbours_of: 8}}",
            230,
            "no node '8'",
        ),
        ("{rewards: {4: 90}}", "{rewards: {«8: 90}}", 230, "no node '8'"),
        (
            "{rewards: {4: 90}}",
            "{chances: {2: «{1: 0.5, 3: 0.2}}}",
            237,
            "add up to 0.7",
        ),
        ("after: plain", "after: «plane", 201, "Did you mean 'plain'?"),
        ("after: plain", "after: «moved", 238, "before itself"),
        ("rewards: {5: 40, 4: 10}", "rewards: {5: 0}", 235, "to a reward above 0"),
        ("{distance: 3}", "«{distance: 4}", 239, "4 steps apart"),
        ("{distance: 3}", "[«[1, 1]]", 235, "both the start and the goal"),
        ("{distance: 3}", "«[]", 238, "needs starts"),
        (", pairs: {distance: 3}", "", 238, "needs starts"),
        (
            "plain: {ask: best_path}",
            "plain: {ask: best_path, pairs: «[[1, 2]]}",
            238,
            "Only 'ask: shortest_path'",
        ),
        (
            "ask: best_path}\n  far",
            "aks: best_path}\n  far",
            121,
            "Did you mean 'ask'?",
        ),
        (
            "conditions:",
            "scenes: {own: {link: «'{plaec} leads on'}}\nconditions:",
            240,
            "Did you mean 'place'?",
        ),
        (
            "conditions:",
            "scenes: {own: {link: «'{place'}}\nconditions:",
            240,
            "write only a name: place, places, thing",
        ),
        (
            "conditions:",
            "scenes: {own: {best_path: «'a } brace'}}\nconditions:",
            240,
            "write only a name: thing, things, count, start",
        ),
        (
            "conditions:",
            "scenes: {own: {like: «roms}}\nconditions:",
            201,
            "Did you mean 'rooms'?",
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(
    old: str, new: str, code: int, words: str
) -> None:
    text = changed(old, new)
    found = findings(text)
    match = [line for line in found if f"E{code}: " in line and words in line]
    assert match, found
    if MARK in text:
        before = text.split(MARK)[0]
        place = (
            f"x.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}:"
        )
        assert match[0].startswith(place), match


def test_an_edit_that_chance_has_a_say_in_asks_for_a_first_step() -> None:
    edit = "{chances: {3: {5: 0.5, 2: 0.25, 4: 0.25}}}"
    assert "E238" in findings(changed("{rewards: {4: 90}}", edit))[0]
    two_sides = """
    version: 1
    paradigm: fork
    arena:
      graph:
        directed: true
        start: s
        edges: [[s, a], [s, b], [a, low], [b, high]]
        rewards: {low: 10, high: 50}
        vocabulary: {town: {s: the square, a: Elm Street, b: Oak Street, low: the kiosk, high: the market}}
    answer: {form: first_step}
    conditions:
      plain: {ask: best_path}
      drawn:
        after: plain
        edit: {chances: {a: {low: 0.2, high: 0.8}, b: {low: 0.8, high: 0.2}}}
        ask: best_path
    """
    grouped = textwrap.dedent(two_sides).rpartition("best_path")
    assert (
        "'ask: best_path', or remove the chances" in findings(f"{grouped[0]}groups")[0]
    )
    conditions = load(two_sides).conditions
    assert conditions["plain"].items[0].keys[0][1] == "b"
    assert conditions["drawn"].items[0].keys == (("s", "a"),)
    assert (
        "E236"
        in findings(
            textwrap.dedent(two_sides).replace("0.8, high: 0.2", "0.1, high: 0.9")
        )[0]
    )


def test_one_graph_can_be_told_as_another_edition(tmp_path: Path) -> None:
    (tmp_path / "diamond.protocol.yaml").write_text(SOUND)
    child = tmp_path / "small.protocol.yaml"
    child.write_text(
        "version: 1\nparadigm: diamond\nedition: small\nextends: diamond\nconditions: {far: null, moved: null}\n"
    )
    specification = Catalogue([tmp_path]).load(child)
    assert isinstance(specification, DialogueSpecification)
    assert specification.name == "diamond@small"
    assert list(specification.conditions) == ["plain"]


def test_a_maze_that_was_meant_is_not_taken_for_a_dialogue() -> None:
    _, found = Catalogue().inspect_text(
        "version: 1\nparadigm: x\narena: {map: '...'}\nconditions: {}\n", "x.yaml"
    )
    assert any("'conditions'" in str(d) and d.code == 121 for d in found)


def test_who_asks_for_a_place_is_told_that_a_dialogue_has_none() -> None:
    with pytest.raises(ProtocolError, match="E229: 'diamond' is a dialogue"):
        examine_text(SOUND, "x.yaml")


@pytest.mark.parametrize(
    ("number", "count", "places"),
    [
        (3, 3, [0, 1, 2]),
        (3, 5, [0, 1, 2]),
        (4, 2, [1, 3]),
        (10, 3, [1, 5, 8]),
        (10, 1, [5]),
        (7, 4, [0, 2, 4, 6]),
    ],
)
def test_a_few_pairs_are_spread_over_all(
    number: int, count: int, places: list[int]
) -> None:
    pairs = [(str(one), "goal") for one in range(number)]
    assert [int(start) for start, _ in _spread(pairs, count)] == places


@pytest.mark.parametrize(
    ("number", "places"),
    [
        (1, [0]),
        (2, [0, 1]),
        (5, [0, 3, 1, 4, 2]),
        (6, [0, 1, 2, 3, 4, 5]),
        (8, [0, 5, 2, 7, 4, 1, 6, 3]),
    ],
)
def test_neighbours_in_a_new_order_were_far_apart(
    number: int, places: list[int]
) -> None:
    pairs = [(str(one), "goal") for one in range(number)]
    assert [int(start) for start, _ in _scattered(pairs)] == places
