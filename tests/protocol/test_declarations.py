"""Findings about the names that a protocol declares."""

from __future__ import annotations

import pytest

from tests.protocol.short import EMPTY, FOUND, SIDES, Check, state, trial

ERRORS = {
    "name of a zone": ("E202", "vars: {«goal: 0}"),
    "word of the language": ("E202", "vars: {«steps: 0}"),
    "a zone called it": ("E202", 'arena: {map: "S.Z", legend: {S: box, «Z: it}}\n' + EMPTY),
    "a group called last": ("E202", 'arena: {map: "SZ", legend: {S: box, Z: goal}, groups: {«last: [box, goal]}}'),
    "a state called state": ("E202", f"trial: {{limit: 9, start: state, states: {{«state: {{{FOUND}}}}}}}"),
    "two columns of one name": ("E202", "draw: {a: {of: {x: [1]}}, b: {of: {«x: [1]}}}"),
    "counter with a variable's name": ("E202", "vars: {n: 0}\n" + trial("{enter: goal, count: [«n], end: found}")),
    "columns of unequal length": ("E203", "draw: {d: {of: «{x: [1, 2], y: [1]}}}"),
    "mixed column": ("E203", "draw: {d: {of: {x: [1, «goal]}}}"),
    "nothing among numbers": ("E203", "draw: {d: {of: {x: [1, «none]}}}"),
    "mixed set": ("E203", "vars: {seen: «[1, goal]}"),
    "sample into a name that is taken": ("E202", SIDES + "draw: {d: {sample: side, into: [«goal]}}"),
    "a column of zones with another name": ("E201", "draw: {d: {of: {g: [goal, «gaol]}}}\n" + state("show: {g: x}")),
    "a permutation of a zone and no zone": ("E201", "draw: {d: {permute: [goal, «gaol], into: [a, b]}}"),
    "a permutation of numbers and names": ("E203", "draw: {d: {permute: [goal, 1], into: [«a, b]}}"),
    "a counter with a word of the language": ("E202", trial("{enter: goal, count: [«steps], end: found}")),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)
