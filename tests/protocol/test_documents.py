"""Findings about keys that do not go together."""

from __future__ import annotations

from typing import Any

import pytest

from cheesebench.protocol.documents import Draw
from tests.protocol.short import RIGHT, SIDES, Check, Examine, Mistake, construct

ERRORS = {
    "estimand that says two things": ("E123", "estimand: «{block: one, last: 2}"),
    "estimand that says nothing": ("E123", "estimand: «{}"),
    "a lesion that takes nothing": ("E123", construct("«{}")),
    "sample beside a table": ("E123", SIDES + "draw: {d: «{sample: side, into: [x], of: {y: [1, 2]}}}"),
    "until nothing": ("E123", "schedule: {one: {trials: 9, until: «{count: 4}}}"),
    "until an outcome and a condition": (
        "E123", "schedule: {one: {trials: 9, until: «{outcome: found, if: steps < 9, count: 4}}}"
    ),
    "a permutation without variables": ("E123", "draw: {d: «{permute: [1, 2]}}"),
    "a permutation beside a table": ("E123", "draw: {d: «{permute: [1, 2], into: [a], of: {b: [1, 2]}}}"),
    "a range that goes backwards": ("E123", "draw: {d: {of: {n: «{from: 3, to: 1}}}}"),
    "a range without a step": ("E123", "draw: {d: {of: {n: «{from: 1, to: 3, step: 0}}}}"),
    "a range that is too long": ("E123", "draw: {d: {of: {n: «{from: 0, to: 1, step: 0.00001}}}}"),
    "a test that does nothing": ("E123", "tests: [«{expect: {outcome: found}}]"),
    "a character in two sets of twins": ("E123", "twins: «{glyphs: [AB, BC]}"),
    "a line twice in a set of twins": ("E123", "twins: «{texts: [[a, a]]}"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


@pytest.mark.parametrize(
    ("right", "short"),
    [
        ("by: [sort]", "by: sort"),
        ("of: {goal: [arm1, arm2]}", "sample: arm, into: goal"),
    ],
)
def test_one_name_needs_no_brackets(right: str, short: str, examine: Examine) -> None:
    assert right in RIGHT
    assert examine(RIGHT.replace(right, short))[0] is not None


@pytest.mark.parametrize(
    ("twins", "said"),
    [
        ("{glyphs: [AB, BC]}", "The character 'B' is in two sets of 'twins'."),
        ("{texts: [[a, b, a]]}", "The line 'a' is twice in a set of 'twins'."),
        ("{texts: [[a, b], [c, a]]}", "The line 'a' is in two sets of 'twins'."),
    ],
)
def test_a_twin_is_in_one_set(twins: str, said: str, check_mistake: Mistake) -> None:
    check_mistake("success:", f"twins: {twins}\nsuccess:", said)


@pytest.mark.parametrize(
    ("draw", "table"),
    [
        (
            {"of": {"a": [1, 2, 3], "b": {"turned": "a", "from": 2}}},
            {"a": [1, 2, 3], "b": [2, 3, 1]},
        ),
        (
            {"of": {"a": {"from": 0, "to": 0.35, "step": 0.1}}},
            {"a": [0, 0.1, 0.2, 0.3]},
        ),
        (
            {"permute": [1, 2, 3], "into": ["a", "b"]},
            {"a": [1, 1, 2, 2, 3, 3], "b": [2, 3, 1, 3, 1, 2]},
        ),
        # Too many to be written out.
        ({"permute": [*range(8)], "into": [*"abcdefgh"]}, {key: [*range(8)] for key in "abcdefgh"}),
        ({"permute": [1, 2], "into": ["a", "b", "c"]}, {key: [1, 2] for key in "abc"}),
        ({"sample": "side", "into": ["a"]}, {}),
    ],
)  # fmt: skip
def test_the_table_of_a_draw_is_written_out(
    draw: dict[str, Any], table: dict[str, list[Any]]
) -> None:
    read = Draw.model_validate(draw)
    assert read.of == table
    assert read.columns == (list(table) or ["a"])


def test_measures_with_their_conditions(examine: Examine) -> None:
    specification, found = examine(RIGHT.replace("[sort]", "[sort, goal]"))
    assert specification is not None, found
    assert specification.document.by == (("fast", "sort"), ("fast", "goal"))
