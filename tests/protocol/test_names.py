"""Functions of places become expressions of variables and members."""

from __future__ import annotations

import pytest

from cheesebench.protocol import Specification
from cheesebench.protocol import expressions as ex
from tests.arenas import TWO_ARMS, examine_text

TEXT = f"""
version: 1
paradigm: named
{TWO_ARMS}
draw: {{side: {{of: {{side: [left, right]}}}}}}
start: {{at: box, face: N}}
trial: {{limit: 9, start: run, states: {{run: {{rules: [{{enter: side, end: found}}]}}}}}}
schedule: {{main: {{trials: 2}}}}
success: SUCCESS
"""
SIDE = ex.Variable("side")


def success(written: str) -> tuple[Specification | None, list[str]]:
    found, diagnostics = examine_text(TEXT.replace("SUCCESS", written))
    return found, [str(one) for one in diagnostics if one.severity == "error"]


def number(member: str, place: int) -> ex.Expression:
    """Return the place of a member if it is the side, else 0."""
    is_side = ex.Binary("==", SIDE, ex.Constant(member))
    return ex.Binary("*", is_side, ex.Number(place))


def test_a_position_is_the_sum_over_the_members() -> None:
    found, errors = success("position(side, arm) == 2")
    assert errors == []
    assert found is not None
    total = ex.Binary("+", number("left", 1), number("right", 2))
    assert found.success == ex.Binary("==", total, ex.Number(2))


def test_a_member_is_one_of_several_cases() -> None:
    found, errors = success("member(arm, 2) == side")
    assert errors == []
    assert found is not None
    cases = tuple(
        (ex.Binary("==", ex.Number(2), ex.Number(place)), member)
        for place, member in ((1, "left"), (2, "right"))
    )
    assert found.success == ex.Binary("==", ex.Classes(cases), SIDE)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("position(steps, arm) == 1", "position() takes a zone or solid first, not a number."),
        ("position(side, arms) == 1", "'arms'"),
        ("member(arm, side) == side", "E1"),
    ],
)  # fmt: skip
def test_other_arguments_are_errors(written: str, said: str) -> None:
    _, [error] = success(written)
    assert said in error
    assert error.startswith("<text>:")
