"""What protocols mean when they are read: every field of the specification."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

import pytest

from cheesebench.diagnostics import Diagnostics
from cheesebench.protocol import expressions as ex
from cheesebench.protocol import load_protocol, with_arena
from cheesebench.protocol.documents import VERSION, DocumentModel
from cheesebench.protocol.resolve import identity
from cheesebench.protocol.specification import Assignment, Place, Specification
from cheesebench.source import read_text
from tests.arenas import examine, examine_text
from tests.protocol.short import (
    DOOR,
    FOUND,
    LANDMARK,
    RING,
    SCORED,
    SIDES,
    WALK,
    Check,
    Examine,
    Findings,
    Mistake,
    arena,
    construct,
    state,
    trial,
)
from tests.stored import check_stored

HERE = Path(__file__).parent
ZOO = HERE.parent / "paradigms" / "zoo"
#: Protocols of the zoo in which each part of the language occurs.
NAMES = ("beacons", "dealt", "holes", "names", "pool", "scopes", "watch")


def plain(value: Any, folder: str) -> Any:
    """Return a value without classes, without sets, whose order is another each time,
    and with "." for the folder, whose length decides where lines are broken.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (
            (one.name, getattr(value, one.name)) for one in dataclasses.fields(value)
        )
        return type(value).__name__, {name: plain(own, folder) for name, own in fields}
    if isinstance(value, Mapping):
        return {key: plain(own, folder) for key, own in value.items()}
    if isinstance(value, frozenset | set):
        return ["set", *sorted((plain(one, folder) for one in value), key=repr)]
    if isinstance(value, list | tuple):
        return [plain(one, folder) for one in value]
    return value.replace(folder, ".") if isinstance(value, str) else value


def film(specification: Specification) -> str:
    """Return the fields; not the text, nor the document and the path that it has."""
    parts = []
    folder = str(Path(specification.path).parent)
    for one in dataclasses.fields(specification):
        if one.name not in ("text", "document", "path"):
            value = plain(getattr(specification, one.name), folder)
            parts.append(f"{one.name}: {pformat(value, width=120, compact=True)}")
    return "\n".join(parts) + "\n"


def test_everything_of_the_language(tmp_path: Path) -> None:
    path = tmp_path / "everything.protocol.yaml"
    path.write_text((HERE / "everything.yaml").read_text("utf-8"), "utf-8")
    check_stored("everything.txt", film(with_arena(load_protocol(path))))


def test_protocols_of_the_zoo() -> None:
    files = [ZOO / f"{name}.protocol.yaml" for name in NAMES]
    films = [film(with_arena(load_protocol(file))) for file in files]
    check_stored("zoo.txt", "\n".join(films))


DOORS = """
version: 1
paradigm: doors
arena:
  map: |
    #########
    #a..D..b#
    #...E..S#
    #########
  legend: {S: box, a: left, b: right, D: {door: north}, E: {door: south}}
  groups: {arm: [left, right], exit: [north, south]}
draw:
  shut: {of: {shut: [north, south]}}
  side: {of: {side: [left, right]}}
start: {at: box, face: N}
trial: {limit: 9, start: run, states: {run: {close: NAME, rules: [{enter: side, end: in}]}}}
schedule: {main: {trials: 2}}
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("north", None),
        ("exit", None),
        ("shut", None),
        ("nroth", "There is no door or variable 'nroth'. Did you mean 'north'?"),
        ("exits", "There is no door or variable 'exits'. Did you mean 'exit'?"),
        ("shot", "There is no door or variable 'shot'. Did you mean 'shut'?"),
        ("sidle", "There is no door or variable 'sidle'."),
        ("left", "'left' is not a door. Make it one in the legend: '{door: left}'."),
        ("arm", "'arm' is not a door."),
        ("side", "'side' can hold 'left', which is not a door. Name doors only."),
    ],
)
def test_what_is_closed_is_a_door(name: str, said: str | None) -> None:
    specification, found = examine_text(DOORS.replace("NAME", name))
    errors = [str(one) for one in found if one.severity == "error"]
    if said is None:
        assert errors == []
        assert specification is not None
    else:
        [error] = errors
        assert error.startswith("<text>:")
        assert said in error
        assert name != "sidle" or "Did you mean" not in error


@pytest.mark.parametrize(
    ("draw", "column", "said"),
    [
        ("{of: {side: [left, right]}, weights: [1]}", 37, "The numbers of weights (1) and rows (2) of 'side' differ."),
        ("{of: {side: [left, right]}, weights: [99999, 1]}", 37, "The weights add up to 100000, more than"),
        ("{of: {side: [left, right]}, pick: 3}", 43, "'side' picks more rows (3) than it has (2). Pick fewer."),
        ("{of: {side: [left, right]}, order: cycle, copies: 2}", 51, "'copies' is only for 'order: shuffle'."),
        ("{of: {side: [left, left]}, max_run: 1}", 36, "The first column has only one value, so its run never ends."),
        ("{sample: arm, into: [side, x, y]}", 29, "'into' asks for 3 members of 'arm', which has 2. Ask for fewer."),
        ("{permute: [left, left], into: [side, x]}", 10, "'left' appears twice in 'permute'. Name each value once."),
        ("{permute: [left, right], into: [side, x, y]}", 34, "Ask for fewer."),
        (
            "{of: {side: [left, right, left, left, left]}, order: shuffle, max_run: 1}", 71,
            "'left' is too frequent for runs of at most 1. Allow longer runs.",
        ),
    ],
)  # fmt: skip
def test_a_draw_that_cannot_be_made_is_an_error_at_its_key(
    draw: str, column: int, said: str
) -> None:
    text = DOORS.replace("NAME", "north")
    _, found = examine_text(text.replace("{of: {side: [left, right]}}", draw))
    errors = [str(one) for one in found if one.severity == "error"]
    [error] = [one for one in errors if said in one]
    assert "error E206" in error
    assert error.startswith(f"<text>:14:{column}: ")


def test_columns_of_different_lengths_are_one_error() -> None:
    text = DOORS.replace("NAME", "north")
    draw = "{of: {side: [left, right], more: [1]}}"
    _, found = examine_text(text.replace("{of: {side: [left, right]}}", draw))
    [error] = [str(one) for one in found if one.severity == "error"]
    assert error.startswith("<text>:14:14: error E203: The columns of 'side' differ")


@pytest.mark.parametrize(
    ("measure", "place", "said"),
    [
        ("[{if: steps > 3, is: long}, short]", None, ""),
        ("[short, {if: steps > 3, is: long}]", "18:23: error E221", "No trial gets here, because 'short' above has no cond"),
        ("{value: steps, by: [side]}", None, ""),
        ("{value: steps, by: [m]}", "18:35: error E228", "'m' cannot be its own condition. Name another variable."),
    ],
)  # fmt: skip
def test_classes_and_conditions_of_a_measure(
    measure: str, place: str | None, said: str
) -> None:
    text = f"{DOORS.replace('NAME', 'north')}measures: {{m: {measure}}}\n"
    _, found = examine_text(text)
    errors = [str(one) for one in found if one.severity == "error"]
    if place is None:
        assert errors == []
    else:
        [error] = errors
        assert error.startswith(f"<text>:{place}: ")
        assert said in error


def test_there_are_not_too_many_subsets_to_order() -> None:
    names = ", ".join(f"s{n}" for n in range(20))
    draw = f"{{of: {{side: [{names}]}}, pick: 10, order: shuffle}}"
    text = DOORS.replace("NAME", "north")
    _, found = examine_text(text.replace("{of: {side: [left, right]}}", draw))
    said = [
        str(one) for one in found if "There are 184756 subsets to order" in str(one)
    ]
    assert len(said) == 1
    assert said[0].endswith("Use 'order: random'.")


COUNTED = """version: 1
paradigm: maze
dimension: d
arena: {map: "SZ", legend: {S: box, Z: goal}}
start: {at: box}
trial: {limit: 9, start: run, states: {run: {OFTEN rules: [{enter: goal, ONCE end: found}]}}}
schedule: {one: {sessions: 1, trials: 4}}
success: last == found
measures: {m: hits}
reference: [{measure: m, animals: animals.csv, status: counted}]
"""


@pytest.mark.parametrize(
    ("often", "once", "warned"),
    [("", "count: hits,", True), ("each: {count: hits},", "", False), ("count: hits,", "", False)],
)  # fmt: skip
def test_only_what_is_counted_once_a_trial_lies_from_0_to_1(
    tmp_path: Path, often: str, once: str, warned: bool
) -> None:
    animals = "animal,session,trials,value\nm1,1,4,3\nm2,1,4,2\n"
    (tmp_path / "animals.csv").write_text(animals, encoding="utf-8")
    path = tmp_path / "maze.protocol.yaml"
    text = COUNTED.replace("OFTEN", often).replace("ONCE", once)
    path.write_text(text, encoding="utf-8")
    found, diagnostics = examine(path)
    assert found is not None, diagnostics
    said = "'m' lies from 0 to 1 here, but the animals have values up to 3."
    assert any(said in str(one) for one in diagnostics) == warned


ERRORS = {
    "block sets another kind": ("E133", "vars: {n: 0}\nschedule: {one: {set: {n: «goal}}}"),
    "unknown zone": ("E201", trial("{enter: «gaol, end: found}")),
    "unknown start": ("E201", "start: {at: «bax}"),
    "unknown state": ("E201", trial("{enter: goal, go: «rnu}")),
    "unknown first state": ("E201", f"trial: {{limit: 9, start: «rnu, states: {{run: {{{FOUND}}}}}}}"),
    "unknown door": ("E201", DOOR + state("close: [«gat]")),
    "a zone is no door": ("E211", DOOR + state("close: «box")),
    "unknown cue": ("E201", state("show: {«gaol: x}")),
    "unknown glyph variable": ("E201", state("show: {goal: «lamp}")),
    "unknown place": ("E201", state("place: «bax")),
    "unknown heading": ("E201", "start: {at: box, face: «Nord}"),
    "unknown limit": ("E201", f"trial: {{limit: «gap, start: run, states: {{run: {{{FOUND}}}}}}}"),
    "unknown block": ("E201", "estimand: {block: «tow}"),
    "unknown block and a reference over a session": (
        "E201", "estimand: {block: «tow}\n" + SCORED
        + "reference: [{measure: success, value: 0.5, over: [1], status: x}]"
    ),
    "unknown block and animals": (
        "E201", "estimand: {block: «tow}\n" + SCORED
        + "reference: [{measure: success, animals: [[m, 1, 4, 1]], status: x}]"
    ),
    "unknown block of two": ("E201", "estimand: {block: [one, «tow]}"),
    "reward divided by nothing": ("E218", trial("{enter: goal, reward: «1 / 0, end: found}")),
    "reward divided by a sum of nothing": ("E218", trial("{enter: goal, reward: «3 + steps / (1 - 1), end: found}")),
    "infinite reward": ("E218", trial("{enter: goal, reward: «1e99 * 1e99 * 1e99 * 1e99, end: found}")),
    "unknown measure": ("E201", "reference: [{measure: «latenzy, value: 3, status: x}]"),
    "unknown variable in checks": ("E201", "checks: [{at: run, hidden: «sampel, chance: 0.5}]"),
    "unknown variable to split by": ("E201", "split: [«sampel]"),
    "a built-in name to split by": ("E201", "split: [«trial]"),
    "unknown state in checks": ("E201", "vars: {v: 0}\nchecks: [{at: «rnu, hidden: v, chance: 0.5}]"),
    "unknown lesion": ("E222", construct("«blnd")),
    "a lesion of nothing": ("E222", construct("«intact")),
    "no landmarks to hide": ("E222", construct("«{hide: landmarks}")),
    "a glyph of two characters": ("E222", construct("«{hide: 'glyph:ab'}")),
    "unknown state in a lesion": ("E201", construct("«{amnesia: rnu}")),
    "unknown state whose text is hidden": ("E201", construct("«{hide: 'text:rnu'}")),
    "unknown zone in a lesion": ("E201", construct("«{hide: gaol}")),
    "a lesion twice": ("E223", construct("blind") + "  spared_by: [«blind]"),
    "a construct without success": (
        "E220", "«construct: {name: x, kind: perception, abolished_by: [{lesion: blind, at_most: 1}]}"
    ),
    "unknown outcome in tests": ("E201", "tests: [{actions: F, expect: {outcome: «fuond}}]"),
    "unknown action in tests": ("E201", "tests: [{actions: «FFX, expect: {outcome: found}}]"),
    "unknown action in a list": ("E201", "tests: [{actions: [F, «JUMP], expect: {outcome: found}}]"),
    "a number to visit in tests": ("E201", "vars: {n: 0}\ntests: [{visit: [«n], expect: {outcome: found}}]"),
    "unknown zone in tests": ("E201", "tests: [{visit: [box, «gaol], expect: {outcome: found}}]"),
    "unknown counter in tests": ("E201", "tests: [{actions: F, expect: {counters: {laps: «1}}}]"),
    "block sets an unknown zone": ("E201", "vars: {v: goal}\nschedule: {one: {set: {v: «gaol}}}"),
    "sample of what is not there": ("E201", "draw: {d: {sample: «nothing, into: [x]}}"),
    "sample of a set drawn later": ("E201", "draw: {d: {sample: «late, into: [x]}, e: {pick: 1, of: {late: [1, 2]}}}"),
    "sample of too few": ("E206", SIDES + "draw: {d: {sample: side, into: «[x, y, z]}}"),
    "sample in an order": ("E206", SIDES + "draw: {d: «{order: shuffle, sample: side, into: [x]}}"),
    "pick too many": ("E206", "draw: {d: {pick: «3, of: {x: [1, 2]}}}"),
    "pick among too many subsets": ("E206", f"draw: {{d: {{order: cycle, «pick: 9, of: {{x: {list(range(20))}}}}}}}"),
    "copies beyond all memory": (
        "E206", f"draw: {{d: «{{order: shuffle, copies: 100000, of: {{x: {[*range(20)]}}}}}}}"
    ),
    "more trials than anybody lives": ("E224", "schedule: {one: «{sessions: 100000, trials: 100000}}"),
    "copies of random rows": ("E206", "draw: {d: {«copies: 3, of: {x: [1, 2]}}}"),
    "runs in a cycle": ("E206", "draw: {d: {order: cycle, «max_run: 3, of: {x: [1, 2]}}}"),
    "runs of one value": ("E206", "draw: {d: {«max_run: 3, of: {x: [1, 1]}}}"),
    "runs too short": ("E206", "draw: {d: {order: shuffle, «max_run: 1, of: {x: [1, 1, 2]}}}"),
    "diagonal with four headings": ("E207", arena("headings: 4") + "start: {at: box, face: «NE}"),
    "column of no headings": ("E207", "draw: {d: {of: {way: [N, Nord]}}}\nstart: {at: box, face: «way}"),
    "number for a heading": ("E207", "vars: {way: 3}\nstart: {at: box, face: «way}"),
    "reward at reset": ("E208", state("«reward: 1")),
    "start with a condition": ("E209", WALK.replace("start: run", "start: «[{if: trial > 1, go: run}]")),
    "no start": ("E209", f"trial: {{limit: 9, start: «[], states: {{run: {{{FOUND}}}}}}}"),
    "column of no glyphs": ("E210", "draw: {d: {of: {lamp: [ab, c]}}}\n" + state("show: {goal: «lamp}")),
    "landmark that is not there": ("E201", LANDMARK + state("show: {«S: x}")),
    "landmarks and a zone in a column": (
        "E201", LANDMARK + "draw: {d: {of: {which: [N, West]}}}\n" + state("show: {«which: x}")
    ),
    "unknown zone shown in all states": ("E201", trial("{enter: goal, end: found}", "show: {«gaol: x}, ")),
    "unknown door closed in all states": ("E201", trial("{enter: goal, end: found}", "close: [«gaol], ")),
    "a zone is closed in all states": ("E211", trial("{enter: goal, end: found}", "close: «box, ")),
    "a landmark is not entered": ("E201", LANDMARK + trial("{enter: «N, end: found}")),
    "hidden landmark that is not there": ("E201", LANDMARK + construct("«{hide: [S]}")),
    "variable without a glyph": ("E210", "vars: {lamp: bright}\n" + state("show: {goal: «lamp}")),
    "column of no doors": ("E211", DOOR + "draw: {d: {of: {shut: [gate, goal]}}}\n" + state("close: «shut")),
    "variable without a door": ("E211", DOOR + "vars: {shut: goal}\n" + state("close: «shut")),
    "number for a door": ("E211", DOOR + "vars: {shut: 1}\n" + state("close: «shut")),
    "a zone is not left open": ("E211", DOOR + state("close: gate, open: «box")),
    "unknown door left open": ("E201", DOOR + state("close: gate, open: «gte")),
    "undeclared remove": ("E212", trial("{enter: goal, remove: {«seen: it}, end: found}")),
    "remove from a number": ("E212", "vars: {n: 0}\n" + trial("{enter: goal, remove: {«n: it}, end: found}")),
    "undeclared set": ("E212", trial("{enter: goal, set: {«n: 1}, end: found}")),
    "undeclared add": ("E212", trial("{enter: goal, add: {«seen: it}, end: found}")),
    "add to a number": ("E212", "vars: {n: 0}\n" + trial("{enter: goal, add: {«n: it}, end: found}")),
    "set of a column": ("E212", "draw: {d: {of: {x: [1]}}}\n" + trial("{enter: goal, set: {«x: 1}, end: found}")),
    "set of a zone": ("E212", trial("{enter: goal, set: {«goal: 1}, end: found}")),
    "block set to a column": (
        "E212",
        "vars: {aim: none}\ndraw: {d: {of: {first: [goal, box]}}}\n"
        + trial("{enter: aim, end: found}") + "schedule: {one: {set: {aim: «first}}}",
    ),
    "block set to a variable": ("E212", "vars: {aim: none, m: 1}\nschedule: {one: {set: {aim: «m}}}"),
    "a variable that holds no zone": (
        "E204", "vars: {aim: none}\n" + trial("{enter: «aim, end: found}") + "schedule: {one: {set: {aim: gaol}}}"
    ),
    "undeclared block set": ("E212", "schedule: {one: {set: {«n: 1}}}"),
    "finish goes nowhere": ("E201", trial("{enter: goal, end: found}", "finish: [{if: steps > 3, go: «rin}], ")),
    "finish goes and ends": ("E214", trial("{enter: goal, end: found}", "finish: [«{go: run, end: found}], ")),
    "finish does nothing": ("E122", trial("{enter: goal, end: found}", "finish: [«{if: trial > 1}], ")),
    "no trigger": ("E213", trial("«{end: found}")),
    "two triggers": ("E213", trial("«{enter: goal, after: 3, end: found}")),
    "go and end": ("E214", trial("«{enter: goal, go: run, end: found}")),
    "watch goes": ("E215", trial("{enter: goal, end: found}", "watch: [{enter: box, «go: run}], ")),
    "watch ends": ("E215", trial("{enter: goal, end: found}", "watch: [{enter: box, «end: run}], ")),
    "watch keeps time": ("E215", trial("{enter: goal, end: found}", "watch: [«{after: 3, count: n}], ")),
    "repeat until what cannot be": (
        "E216",
        "schedule: {one: {trials: 9, repeat: {at_most: 9, until: «{outcome: found, count: 4, of: 3}}}}",
    ),
    "repeat until there is no such outcome": (
        "E201",
        "schedule: {one: {trials: 9, repeat: {at_most: 9, until: {outcome: «fond, count: 2}}}}",
    ),
    "until what cannot be": ("E216", "schedule: {one: {trials: 9, until: «{outcome: found, count: 4, of: 3}}}"),
    "an estimand that counts no trial": (
        "E216", SCORED + "schedule: {one: {}, two: {}}\nestimand: «{block: one, where: block == two}"
    ),
    "an estimand of a session that the block lacks": (
        "E216", SCORED + "schedule: {one: {}, two: {trials: 2, sessions: 2}}\nestimand: «{block: two, where: session > 2}"
    ),
    "a reference that counts no trial": (
        "E216", SCORED + "schedule: {one: {}, two: {}}\n"
        "reference: «[{measure: success, value: 1, where: block == one and block == two, status: x}]"
    ),
    "a short variable that holds no glyph": ("E210", "draw: {d: {of: {k: [xx, oo]}}}\n" + state("show: {goal: «k}")),
    "more variables than permuted values": ("E206", "draw: {d: {permute: [1, 2], «into: [a, b, c]}}"),
    "too many permutations": (
        "E206", "draw: {d: {«permute: [1, 2, 3, 4, 5, 6, 7, 8], into: [a, b, c, d, e, f, g, h]}}"
    ),
    "a value twice in a permutation": ("E206", "draw: {d: {«permute: [1, 2, 1], into: [a, b]}}"),
    "a set dealt out of itself": ("E201", "draw: {d: {sample: «x, into: [x]}}\n" + state("show: {x: o}")),
    "weights of other rows": ("E206", "draw: {d: {of: {n: [1, 2]}, «weights: [1, 2, 3]}}"),
    "weights of permutations": ("E206", "draw: {d: {permute: [1, 2], into: [a, b], «weights: [1, 2]}}"),
    "weights of subsets": ("E206", "draw: {d: {of: {n: [1, 2]}, pick: 1, «weights: [1, 2]}}"),
    "weights of a group": (
        "E206", 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {g: [goal, box]}}\n'
        "draw: {d: {sample: g, into: [a], «weights: [1, 2]}}"
    ),
    "heavy weights": ("E206", "draw: {d: {of: {n: [1, 2]}, «weights: [1, 20000]}}"),
    "a table with replacement": ("E206", "draw: {d: {of: {n: [1, 2]}, «distinct: false}}"),
    "with replacement from no group": ("E201", "draw: {d: {sample: «grp, into: [a, b], distinct: false}}"),
    "a success that counts itself": ("E134", "success: «recent(success, 3) > 1"),
    "a measure by what there is not": ("E201", "measures: {m: {value: steps, by: «dealy}}"),
    "a measure by itself": ("E228", "measures: {m: {value: steps, by: «m}}"),
    "text with an unknown variable": (
        "E201", "draw: {d: {of: {cue: [x, y]}}}\n" + state("show: {goal: cue}, say: 'TONE {«ceu}'")
    ),
    "text with a built-in name": ("E201", state("say: '{ «trial }'")),
    "second line of a text with an unknown variable": ("E201", state("say: [one, '{«two}']")),
    "text with a brace that opens": ("E227", state("say: 'TONE «{'")),
    "text with a brace that closes": ("E227", state("say: 'TONE «}'")),
    "the limit's outcome": ("E219", trial("{enter: goal, end: «timeout}")),
    "a reference without success": ("E220", "reference: [«{measure: success, value: 0.5, status: x}]"),
    "a measure called success": ("E202", "measures: {«success: steps}"),
    "probability above 1": ("E218", trial("{enter: goal, p: «2, end: found}")),
    "negative time": ("E218", trial("{after: «-1, end: found}")),
    "drawn negative time": ("E218", "draw: {d: {of: {gap: [3, -1]}}}\n" + trial("{after: «gap, end: found}")),
    "until what never comes": ("E201", "schedule: {one: {trials: 5, until: {outcome: «fuond, count: 1, of: 2}}}"),
    "a time below 0 in an expression": ("E218", trial("{after: «'-1', end: found}")),
    "a variable with the name of a zone": ("E202", "vars: {«goal: 0}\n" + trial("{enter: goal, set: {goal: 1}, end: found}")),
    "no arena, and names of nothing": ("E140", "arena: «{groups: {}}\nsuccess: nothing > 3"),
    "too many draws with replacement": (
        "E206", RING + "arena: {ring: {radius: 6, holes: 24}}\ndraw: {d: {sample: hole, distinct: false, «into: [a, b, c]}}"
    ),
    "a pick with replacement": ("E206", SIDES + "draw: {d: {sample: side, into: [x], distinct: false, «pick: 1}}"),
    "a pick of more members than there are": ("E206", SIDES + "draw: {d: {sample: side, into: [x], pick: «3}}"),
    "a pick for two variables": ("E206", SIDES + "draw: {d: {sample: side, into: «[x, y], pick: 1}}"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


WARNINGS = {
    "a group in place of its members": (
        "W321",
        SIDES + "vars: {bag: [goal]}\n" + trial("{enter: goal, reward: size(bag), add: {bag: «side}, end: found}"),
    ),
    "a door that is open anyway": ("W320", DOOR + state("open: «gate")),
    "repeat until too often": (
        "W315",
        "schedule: {one: {trials: 5, repeat: {at_most: 3, until: «{outcome: found, count: 3}}}}",
    ),
    "repeat with all trials": ("W315", "schedule: {one: {trials: 5, repeat: {at_most: 3, «trials: 15}}}"),
    "until beyond the block": ("W315", "schedule: {one: {trials: 5, until: «{outcome: found, count: 6, of: 9}}}"),
    "a test that expects a success": (
        "W337", WALK + "tests: [{visit: [goal], expect: {outcome: found, success: «true}}]"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), WARNINGS.values(), ids=list(WARNINGS))
def test_a_warning_stands_where_its_cause_is(
    code: str, text: str, check_warning: Check
) -> None:
    check_warning(code, text)


def test_the_remedy_for_a_split_by_trial_is_accepted(findings: Findings) -> None:
    found = findings("measures: {by_trial: trial}\nsplit: [by_trial]")
    assert not [one for one in found if one.startswith("E")]


def test_a_pass_rate_over_several_blocks_and_some_trials(
    examine: Examine, complete: Callable[[str], str]
) -> None:
    blocks = "schedule: {one: {}, two: {}, three: {}}\nsuccess: last == found\n"
    specification, found = examine(
        complete(blocks + "estimand: {block: [one, three], where: steps > 1}")
    )
    assert specification is not None, found
    assert (specification.estimand, specification.judged_blocks) == (
        "block:one,three",
        ("one", "three"),
    )
    assert specification.where is not None
    specification, found = examine(complete(blocks + "estimand: {where: steps > 1}"))
    assert specification is not None, found
    assert (specification.estimand, specification.judged_blocks) == (
        "all",
        ("one", "two", "three"),
    )


OF = "of: {sort: [low, high]}"
CONSTRUCT = "success: last == correct\nconstruct: {name: x, kind: strategy, abolished_by: [{lesion: {hide: %s}, at_most: 0.5}]}"

#: Parts of the protocol without a mistake, what stands there instead, and what is said.
MISTAKES = {
    "enter: a misspelt variable": (
        "{enter: arm, if",
        "{enter: gaol, if",
        "There is no zone or variable 'gaol'. Did you mean 'goal'?",
    ),
    "place: a misspelt variable": (
        "    rest:\n",
        "    rest:\n      place: hmoe\n",
        "There is no zone or variable 'hmoe'. Did you mean 'home'?",
    ),
    "close: a misspelt variable": (
        "    rest:\n",
        "    rest:\n      close: hmoe\n",
        "There is no door or variable 'hmoe'. Did you mean 'home'?",
    ),
    "show: a misspelt variable": (
        'show: {lamp: "*"}',
        'show: {gaol: "*"}',
        "There is no zone, solid, landmark or variable 'gaol' to show. Did you mean 'goal'?",
    ),
    "sample: what is drawn below": (
        "  one: {per",
        "  early: {sample: some, into: [e]}\n  some: {pick: 2, of: {some: [arm1, arm2, arm3]}}\n  one: {per",
        "Move 'some' above 'early'.",
    ),
    "say: an expression in braces": (
        "TONE {sort}",
        "{n + 1}",
        "Braces hold the name of a variable, not 'n + 1'.",
    ),
    "say: nothing in braces": (
        "TONE {sort}",
        "{}",
        "Braces hold the name of a variable, not ''. Name a variable",
    ),
    "by: twice": (
        "by: [sort]",
        "by: [sort, sort]",
        "'sort' appears twice in 'by'. Keep one.",
    ),
    "draw: max_run beside pick": (
        OF,
        f"{OF}, pick: 1, order: shuffle, max_run: 2",
        "'max_run' does not go with 'pick'. Remove it.",
    ),
    "by: a word of the language": (
        "by: [sort]",
        "by: [block]",
        "'block' is neither a variable nor a measure. Add a measure, 'in_block: block', and name that.",
    ),
    "show: a colour": (
        'lamp: "*"',
        "lamp: blue",
        "'blue' is neither one character nor a variable that holds one. There are no colours",
    ),
    "show: none": (
        'lamp: "*"',
        "lamp: none",
        "'none' is not a glyph. To draw nothing, write a blank in quotes.",
    ),
    "hide: a variable": (
        "success: last == correct",
        CONSTRUCT % "goal",
        "'goal' is a variable, and only what is drawn can be hidden. Hide how",
    ),
}


@pytest.mark.parametrize(
    ("right", "wrong", "said"), MISTAKES.values(), ids=list(MISTAKES)
)
def test_a_mistake_is_one_error_with_its_remedy(
    right: str, wrong: str, said: str, check_mistake: Mistake
) -> None:
    check_mistake(right, wrong, said)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (
            LANDMARK + "draw: {d: {of: {which: [N]}}}\n" + state("show: {whcih: x}"),
            "Did you mean 'which'?",
        ),
        ("vars: {lamp: '*'}\n" + state("show: {goal: lmap}"), "Did you mean 'lamp'?"),
        ("vars: {lamp: '**'}\n" + state("show: {goal: lmap}"), "There are no colours"),
        ("vars: {gap: 3}\n" + trial("{enter: goal}").replace("9", "gpa"), "'gap'?"),
        ("vars: {gap: box}\n" + trial("{enter: goal}").replace("9", "gpa"), "none."),
        ("success: last == found\nsplit: [last]", "Known: none."),
    ],
)
def test_a_remedy_offers_what_fits(
    text: str, remedy: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    [error] = [one for one in examine(complete(text))[1] if one.severity == "error"]
    assert remedy in error.remedy


def test_it_and_whole_sets_in_effects(
    examine: Examine, complete: Callable[[str], str]
) -> None:
    text = "vars: {seen: [goal], all: [box]}\n" + trial(
        "{enter: goal, place: it, add: {seen: all}, remove: {all: it}, end: found}"
    )
    specification, found = examine(complete(text))
    assert specification is not None, found
    effects = specification.states["run"].rules[0].effects
    assert effects.place == Place("it", variable=True)
    assert effects.add == (Assignment("seen", ex.Variable("all")),)
    assert effects.remove == (Assignment("all", ex.BuiltIn("it")),)


def test_every_specification_has_an_identity() -> None:
    root = read_text(
        "paradigm: p\ntitle: t\nmargin: null\nvars: {n: 0}\n", "x.yaml", Diagnostics()
    )
    assert root is not None
    document = DocumentModel()
    found = identity("talks", document, root, Path("x.yaml"), ["parent"])
    assert found == {
        "paradigm": "p",
        "edition": "default",
        "family": "talks",
        "path": "x.yaml",
        "text": '{"paradigm":"p","title":"t","vars":{"n":0}}',
        "sha256": hashlib.sha256(
            f'{VERSION}\n{{"paradigm":"p","vars":{{"n":0}}}}'.encode()
        ).hexdigest(),
        "ancestors": ("parent",),
        "document": document,
    }


def test_a_set_that_is_dealt_out_is_used(findings: Findings) -> None:
    draws = "early: {pick: 2, of: {few: [box, goal]}}, late: {sample: few, into: [x]}"
    text = f"draw: {{{draws}}}\n" + trial("{enter: x, reward: 1, end: found}")
    assert not [one for one in findings(text) if one.startswith(("E", "W308"))]


def test_a_draw_that_trials_are_split_by_is_used(findings: Findings) -> None:
    found = findings("draw: {d: {of: {side: [left, right]}}}\nsplit: [side]")
    assert not [one for one in found if one.startswith(("E", "W308"))]


def test_only_what_can_be_visited_is_offered(
    examine: Examine, complete: Callable[[str], str]
) -> None:
    text = "vars: {n: 0, here: box}\ntests: [{visit: [xyz], expect: {steps: 9}}]"
    [error] = [one for one in examine(complete(text))[1] if one.severity == "error"]
    assert (error.sentence, error.remedy) == (
        "There is no zone or variable 'xyz'.",
        "Known: box, goal, wall, here.",
    )
