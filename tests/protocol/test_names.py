"""Functions of places become expressions of variables and members."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cheesebench.protocol import Specification
from cheesebench.protocol import expressions as ex
from tests.arenas import TWO_ARMS, examine_text
from tests.protocol.short import (
    EMPTY,
    LEVER,
    SIDES,
    Check,
    Examine,
    Mistake,
    state,
    trial,
)

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


ERRORS = {
    "unknown name": ("E131", "success: last == found and «bax == 1"),
    "it without a trigger": ("E132", trial("{act: STAY, if: «it == goal, end: found}")),
    "it in an entry": ("E132", "vars: {v: none}\n" + state("set: {v: «it}")),
    "number needed": ("E133", trial("{enter: goal, reward: «goal, end: found}")),
    "condition needed": ("E133", "success: «last"),
    "never equal": ("E133", "measures: {m: «last == goal}"),
    "calculation with a name": ("E133", "measures: {m: 1 + «last}"),
    "a name to a number": ("E133", "vars: {n: 0}\n" + trial("{enter: goal, set: {n: «goal}, end: found}")),
    "a number to a name": ("E133", "vars: {v: goal}\n" + trial("{enter: goal, set: {v: «5}, end: found}")),
    "in what is no set": ("E133", "success: last == found and goal in «box"),
    "a name in numbers": ("E133", "vars: {seen: [1]}\nsuccess: «last in seen"),
    "a number in names": ("E133", "vars: {seen: [goal]}\nsuccess: «5 in seen"),
    "a set in a set": ("E133", "vars: {seen: []}\nsuccess: «seen in seen"),
    "a member is no group": ("E133", LEVER + trial("{enter: side, if: «it == side, end: found}")),
    "unknown function": ("E134", "success: «sise(last) == 1"),
    "where of a zone": ("E134", "success: last == found and where(«goal) == goal"),
    "size of a name": ("E134", "measures: {m: size(«last)}"),
    "time of a number": ("E134", "measures: {m: 1 + time(«steps)}"),
    "estimand of nobody": ("E131", "estimand: {where: «stpes > 3}"),
    "variable without a zone": ("E204", "vars: {n: 0}\n" + trial("{enter: «n, end: found}")),
    "enter a solid": ("E205", LEVER + trial("{enter: «lever, end: found}")),
    "press floor": ("E205", LEVER + trial("{press: «goal, end: found}")),
    "start on a wall": ("E205", 'arena: {map: "#."}\nstart: {at: «wall}\n' + EMPTY),
    "start on a solid": ("E205", LEVER + "start: {at: «lever}"),
    "a draw of solids to enter": ("E205", LEVER + "draw: {d: {of: {x: [lever]}}}\n" + trial("{enter: «x, end: b}")),
    "remove a number from zones": ("E133", "vars: {s: [goal]}\n" + trial("{enter: goal, remove: {s: «3}, end: found}")),
    "until a condition on what there is not": (
        "E131", "schedule: {one: {trials: 9, until: {if: «stepz < 9, count: 4}}}"
    ),
    "recent successes of what has none": ("E134", "measures: {m: 'recent(«success, 3)'}"),
    "recent outcomes that there are not": ("E134", "measures: {m: 'recent(«fuond, 3)'}"),
    "recent trials that vary": ("E134", "measures: {m: '«recent(found, trial)'}"),
    "no recent trials": ("E134", "measures: {m: '«recent(found, 0)'}"),
    "a mistake in a measure by condition": ("E131", "measures: {m: {value: «stepz, by: n}, n: steps}"),
    "a member of no group": ("E134", 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {g: [goal, box]}}\n'
        "vars: {v: none}\n" + trial("{enter: goal, set: {v: 'member(«gr, 1)'}, end: found}")),
    "a member that there is not": ("E134", 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {g: [goal, box]}}\n'
        "vars: {v: none}\n" + trial("{enter: goal, set: {v: 'member(«g, 3)'}, end: found}")),
    "a position in a zone": ("E134", "measures: {m: 'position(goal, «goal)'}"),
    "a position of a number": (
        "E134", 'arena: {map: "S..Z", legend: {S: box, Z: goal}, groups: {g: [goal, box]}}\n'
        "measures: {m: 'position(«steps, g)'}"
    ),
    "outcome that nothing emits": ("E131", "success: last == «fuond"),
    "outcome that nothing is": ("E131", "success: last != «fuond"),
    "name of nothing in a comparison": ("E131", "vars: {v: red}\nsuccess: v == «rad"),
    "a column of an outcome": ("E134", "success: last == found and column(«last) == 1"),
    "a column of a set": ("E134", LEVER + "vars: {seen: [1]}\nmeasures: {m: row(«seen)}"),
    "a name where a condition is needed": ("E133", "success: steps > 1 and «last"),
    "a calculation with a name of an outcome": ("E133", "success: 1 - «last > 3"),
    "a group that is a difference": ("E134", SIDES + "success: last == found and member(«steps - 1, 1) == goal"),
    "a group that is negative": ("E134", SIDES + "success: last == found and member(-«steps, 1) == goal"),
    "a counter that is set": ("E212", trial("{enter: goal, count: n, set: {«n: 1}, end: found}")),
    "a member beyond the group": ("E134", SIDES + "success: last == found and member(«side, 0) == goal"),
    "a number of recent trials beyond the most": ("E134", "success: last == found and «recent(found, 1001) > 3"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


ORDER = "order: size(seen) + position(home, arm)"

#: Parts of the protocol without a mistake, what stands there instead, and what is said.
MISTAKES = {
    "an expression: a Cyrillic letter": (
        "last == correct\nm",
        "last == \u0441orrect\nm",
        "CYRILLIC SMALL LETTER ES",
    ),
    "add: a set that is a group": (
        "home: it}",
        "seen: arm}",
        "'arm' is the name of a group, but a set",
    ),
    "success: of the reward": (
        "success: last == correct",
        "success: reward > 0",
        "The name 'reward' is unknown. The reward cannot be read: compare the outcome",
    ),
    "success: of a measure": (
        "success: last == correct",
        "success: fast < 9",
        "The name 'fast' is unknown. No expression can read a measure: write out",
    ),
    "number: a set": (
        ORDER,
        "order: abs(seen)",
        "A number is needed, not a set. Use its size().",
    ),
    "power: of Python": (
        ORDER,
        "order: n ** 2",
        "'*' is not expected here. There are no powers: multiply, as in a * a.",
    ),
    "power: of others": (
        ORDER,
        "order: n ^ 2",
        "'^' is not allowed in an expression. There are no powers: multiply",
    ),
    "division: whole": (
        ORDER,
        "order: n // 2",
        "'/' is not expected here. Write floor(a / b).",
    ),
    "function: in capitals": (
        ORDER,
        "order: Max(n, 1)",
        "There is no function 'Max'. Did you mean 'max'?",
    ),
    "function: its name only": (
        ORDER,
        "order: min",
        "The name 'min' is unknown. It is a function: write min( ... ).",
    ),
    "function: a comma within braces": (
        "value: steps",
        "value: min(n, 3) / 2",
        "A ')' is missing. Close the parenthesis. Within { } and [ ] a comma ends an expression that is not in quotes.",
    ),
    "position: turned round": (
        ORDER,
        "order: position(arm, home)",
        "'home' is not a group. Write position(home, arm).",
    ),
    "member: turned round": (
        ORDER,
        "order: member(1, arm) == hub",
        "'1' is not a group. Write member(arm, 1).",
    ),
    "recent: turned round": (
        ORDER,
        "order: recent(5, correct)",
        "outcome, but '5' is neither. Write recent(correct, 5).",
    ),
    "recent: no number": (
        ORDER,
        "order: recent(correct, n)",
        "a fixed number of trials, 1 to 1000, not 'n'. Write recent(",
    ),
    "it: of whatever is pressed": (
        "press: any, end",
        "press: any, set: {home: it}, end",
        "'it' is undefined here. Use it in a rule whose 'enter', 'inside'",
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
    ("written", "read"),
    [
        ("-steps < 0", ex.Binary("<", ex.Unary("-", ex.BuiltIn("steps")), ex.Number(0))),
        ("x == 1", ex.Binary("==", ex.BuiltIn("x"), ex.Number(1))),
        ("size(arm) == 2", ex.Binary("==", ex.Number(2), ex.Number(2))),
        ("column(side) < 3", ex.Binary("<", ex.Call("column", SIDE), ex.Number(3))),
        ("side == none", ex.Binary("==", SIDE, ex.Constant(None))),
        ("where(arm) == left", ex.Binary("==", ex.Call("where", ex.Constant("arm")), ex.Constant("left"))),
        ("left == where(arm)", ex.Binary("==", ex.Constant("left"), ex.Call("where", ex.Constant("arm")))),
        ("not side in arm", ex.Unary("not", ex.Binary("in", SIDE, ex.Members(frozenset({"left", "right"}))))),
        ("steps > 3 and last == found", ex.Binary(
            "and", ex.Binary(">", ex.BuiltIn("steps"), ex.Number(3)),
            ex.Binary("==", ex.BuiltIn("last"), ex.Constant("found")),
        )),
        ("max(steps, 2) > 3", ex.Binary(
            ">", ex.Compute("max", (ex.BuiltIn("steps"), ex.Number(2))), ex.Number(3)
        )),
        ("recent(found, 1000) > 3", ex.Binary(">", ex.Recent("found", 1000), ex.Number(3))),
    ],
)  # fmt: skip
def test_what_a_condition_is_read_as(written: str, read: ex.Expression) -> None:
    found, errors = success(written)
    assert errors == []
    assert found is not None
    assert found.success == read


def test_it_can_be_measured_to(
    examine: Examine, complete: Callable[[str], str]
) -> None:
    rule = "{enter: goal, if: distance(it) < 3, end: found}"
    specification, found = examine(complete(trial(rule)))
    assert specification is not None, found
    distance = ex.Call("distance", ex.BuiltIn("it"))
    [rule_] = specification.states["run"].rules
    assert rule_.guard == ex.Binary("<", distance, ex.Number(3))


@pytest.mark.parametrize(
    ("written", "remedy"),
    [
        ("zzz(last) == 1", "Functions: where, size, "),
        ("tau > 3", "Use 'after: n' for steps in this state"),
        ("last == lost", "It can be found, timeout."),
        (
            "last == foudn",
            "Did you mean 'found'? Outcomes are the words after 'end': correct the one or the other.",
        ),
        ("qqqq == 3", "Declare it, or check its spelling."),
        ("where(amr) == left", "Did you mean 'arm'?"),
        ("where(zzz) == left", "Declare it under 'arena: groups'."),
        ("member(zzz, 1) == left", "Declare it under 'arena: groups'."),
        ("position(side, steps > 1) == 1", "'a condition' is not a group."),
        ("position(side, 1 + 2) == 1", "'an expression' is not a group."),
        ("position(side, 12) == 1", "'12' is not a group."),
        ("recent(fuond, 3) > 1", "Did you mean 'found'?"),
        ("recent(zzz, 3) > 1", "The outcomes are found, timeout."),
        ("last == left", "The outcomes are found, timeout."),
        (
            "block == left",
            "Compare numbers with numbers, and names with names of the same kind.",
        ),
        ("where(arm) == arm", "Write '... in arm'."),
        ("last", "Write a comparison, with a sign such as == or <."),
        ("not last", "Write a comparison."),
        ("1 + last > 1", "Use '==' for names."),
    ],
)
def test_a_remedy_names_what_fits(written: str, remedy: str) -> None:
    _, [error] = success(written)
    assert remedy in error


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("{set: {n: 1}, count: n}", "Use 'count', or rename the variable."),
        ("{set: {goal: 1}}", "Declare a variable of another name, and set that."),
        ("{set: {last: 1}}", "Add 'vars: {last: 0}'."),
        ("{set: {here: goal}}", "Add 'vars: {here: goal}'."),
        ("{set: {vv: 1}}", "Did you mean 'v'?"),
        ("{set: {v: 1.5}}", "1.5 is a number, but a zone is needed"),
    ],
)
def test_what_is_set_and_cannot_be(
    text: str, remedy: str, examine: Examine, complete: Callable[[str], str]
) -> None:
    rule = trial(text.replace("{", "{enter: goal, end: found, ", 1))
    found = examine(complete("vars: {v: goal}\n" + rule))[1]
    [error] = [str(one) for one in found if one.severity == "error"]
    assert remedy in error
