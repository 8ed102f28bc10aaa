"""Findings about the arena."""

from __future__ import annotations

import pytest
import yaml

from tests.protocol.short import (
    RIGHT,
    RING,
    Check,
    Examine,
    Findings,
    Mistake,
    arena,
    trial,
)

ERRORS = {
    "no arena": ("E140", "arena: «{groups: {}}"),
    "two arenas": ("E140", "arena: «{ring: {radius: 5, holes: 4}, pool: {radius: 5}}"),
    "impossible options": ("E141", RING + "arena: {ring: «{radius: 4, holes: 40}}"),
    "legend without a map": ("E142", RING + "arena: {ring: {radius: 4, holes: 4}, «legend: {S: box}}"),
    "empty map": ("E143", 'arena: {map: «"  "}'),
    "map without floor": ("E143", "arena:\n  map: «|\n    ###\n    ###"),
    "huge map": ("E143", f'arena: {{map: «"{"." * 10_001}"}}'),
    "unknown character": ("E144", 'arena: {map: "S.«?.Z?", legend: {S: box, Z: goal}}'),
    "unknown character in a block": ("E144", "arena:\n  map: |\n\n    ####\n     S«?Z\n  legend: {S: box, Z: goal}"),
    "floor and solid": ("E145", 'arena: {map: "S.ZL", legend: {«S: box, Z: goal, L: {solid: box}}}'),
    "group with a zone's name": ("E146", 'arena: {map: "SZ", legend: {S: box, Z: goal}, groups: {«box: [goal]}}'),
    "empty group": ("E146", 'arena: {map: "SZ", legend: {S: box, Z: goal}, groups: {«none_here: []}}'),
    "landmark on floor": ("E147", arena("landmarks: {a: «{at: [1, 0], glyph: x}}")),
    "landmark far away": ("E147", arena("landmarks: {a: «{at: [9, 0], glyph: x}}")),
    "landmark nowhere": ("E147", arena("landmarks: {NNE: «x}")),
    "landmarks collide": ("E147", arena("landmarks: {E: x, a: «{at: [2, 0], glyph: y}}")),
    "unknown member": ("E201", 'arena: {map: "SZ", legend: {S: box, Z: goal}, groups: {side: [box, «gaol]}}'),
    "a folded map": ("E143", "arena:\n  map: «>\n    #####\n    #S.Z#\n    #####\n  legend: {S: box, Z: goal}"),
    "a hub that is too small": (
        "E141", 'arena: {radial: «{arms: 8, length: 3, width: 3, hub: 1}}\nstart: {at: hub}\n'
        + trial("{enter: arm1, end: found}")
    ),
    "a group of a legend's zones": ("E202", 'arena: {map: "SZ", legend: {S: box, Z: {zones: [goal, «steps]}}}'),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


WARNINGS = {
    "a row that lost a square": (
        "W328", "arena:\n  map: |\n    #####\n    #S..#\n    «#..#\n    #..Z#\n    #####\n  legend: {S: box, Z: goal}"
    ),
    "legend not on the map": ("W301", 'arena: {map: "S..Z", legend: {S: box, Z: goal, «X: other}}'),
    "a map whose first row is shifted": (
        "W328", "arena:\n  map: «|\n    #####\n     #S..#\n     #..Z#\n     #####\n  legend: {S: box, Z: goal}"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), WARNINGS.values(), ids=list(WARNINGS))
def test_a_warning_stands_where_its_cause_is(
    code: str, text: str, check_warning: Check
) -> None:
    check_warning(code, text)


@pytest.mark.parametrize(
    "rows",
    [
        "L.Z|<.|<S",
        "#####|<#S#|<#Z###|<###",
        "########|#S....L#|##.#####|<#.#|##.###|#..Z.#|######",
        "#######|#S.L..#|#.#####|#.#|#.#####|#...Z.#|#######",
        "###|#S##|#.L##|#..Z##|######",
    ],
)
def test_rows_of_a_shape_need_not_line_up(rows: str, findings: Findings) -> None:
    lines = rows.replace("<", " ").split("|")
    text = (
        "arena:\n  map: |\n"
        + "".join(f"    {line}\n" for line in lines)
        + "  legend: {S: box, Z: goal, L: left}"
    )
    assert not [one for one in findings(text) if one.startswith("W328")]


#: Parts of the protocol without a mistake, what stands there instead, and what is said.
MISTAKES = {
    "arena: nothing that draws it": (
        "  radial: {arms: 4, length: 3}\n",
        "",
        "but none is given. Add one.",
    ),
    "arena: a legend beside a generator": (
        '  landmarks: {N: "1"',
        '  legend: {x: y}\n  landmarks: {N: "1"',
        "Remove the legend. 'cheesebench render FILE --expand' then prints the arena as a map",
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
    ("character", "key"), [(",", '","'), ('"', "'\"'"), ("q", "q")]
)
def test_the_legend_that_a_remedy_offers_is_yaml(
    character: str, key: str, examine: Examine
) -> None:
    text = RIGHT.replace(
        "radial: {arms: 4, length: 3}",
        f"map: |\n    ####\n    #.{character}#\n    ####",
    )
    _, found = examine(text)
    [one] = [one for one in found if one.code == 144]
    assert one.remedy == f"Add 'legend: {{{key}: NAME}}'."
    assert yaml.safe_load(f"{{{key}: NAME}}") == {character: "NAME"}
