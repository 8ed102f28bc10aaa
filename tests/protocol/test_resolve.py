"""What protocols mean when they are read: every field of the specification."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from pprint import pformat
from typing import Any

import pytest

from cheesebench.protocol import load_protocol, with_arena
from cheesebench.protocol.specification import Specification
from tests.arenas import examine, examine_text
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
    said = "'m' lies from 0 to 1 here, and the animals have 2.5."
    assert any(said in str(one) for one in diagnostics) == warned
