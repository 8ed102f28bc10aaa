"""Findings about keys that do not go together."""

from __future__ import annotations

import pytest

from tests.protocol.short import RIGHT, SIDES, Check, Examine, construct

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
