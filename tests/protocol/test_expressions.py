"""Expressions: grammar, precedence, types; checked against Python's own parser if both
mean the same.
"""

from __future__ import annotations

import ast
import math
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.paradigms.arena.program import compile_expression
from cheesebench.protocol.expressions import (
    CALLED,
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_PARTS,
    Binary,
    BuiltIn,
    Call,
    Compute,
    Expression,
    ExpressionError,
    LoneBraceError,
    Number,
    RuntimeValue,
    Unary,
    Variable,
    Word,
    as_text,
    constant,
    filled,
    names_in_text,
    parse,
    reads_clock,
    reads_place,
    reads_trace,
)
from fuzz.expressions import PIECES, VALUES, by_python, check_syntax, written
from tests.protocol.short import Check, trial

stable = settings(derandomize=True, max_examples=200)

# -- against Python

seeds = st.integers(0, 2**32)
expressions = st.builds(
    lambda seed, room: written(random.Random(seed), room), seeds, st.integers(0, 12)
)


class Memory:
    values = VALUES


def resolved(tree: Expression) -> Expression:
    """Take every word for a variable."""
    match tree:
        case Word(name):
            return Variable(name)
        case Unary(sign, operand):
            return Unary(sign, resolved(operand))
        case Binary(sign, left, right):
            return Binary(sign, resolved(left), resolved(right))
        case Compute(function, arguments):
            return Compute(function, tuple(map(resolved, arguments)))
    return tree


@stable
@given(expressions.filter(lambda text: len(text) < 300))
def test_it_means_what_it_means_in_python(text: str) -> None:
    expected = by_python(ast.parse(text, mode="eval"))
    found = compile_expression(resolved(parse(text)))(Memory())
    assert found == pytest.approx(expected, nan_ok=True)
    assert isinstance(found, bool) == isinstance(expected, bool)


def shown(tree: Expression) -> str:
    """Write a tree with as many parentheses as possible."""
    match tree:
        case Number(value):
            return repr(value)
        case Word(name):
            return name
        case Call(function, Word(name)):
            return f"{function}({name})"
        case Compute(function, arguments):
            return f"{function}({', '.join(map(shown, arguments))})"
        case Unary(sign, operand):
            return f"({sign} {shown(operand)})"
        case Binary(sign, left, right):
            return f"({shown(left)} {sign} {shown(right)})"
    raise TypeError(tree)


def without_offsets(tree: Expression) -> str:
    return re.sub(r"offset=\d+", "", repr(tree))


words = st.one_of(
    expressions,
    expressions.map(lambda text: f"{text} or where(arm) in seen and size(seen) == b"),
)


@stable
@given(words.filter(lambda text: len(text) < 200))
def test_parentheses_and_blanks_change_nothing(text: str) -> None:
    tree = parse(text)
    try:
        again = parse(shown(tree))
    except ExpressionError as error:
        assert "nested" in error.sentence  # noqa: PT017 - parentheses that nest too deep
        return
    assert without_offsets(again) == without_offsets(tree)
    assert without_offsets(parse(f"  {text.replace(' ', '   ')} ")) == without_offsets(
        tree
    )


@stable
@given(
    st.one_of(
        st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
        st.text(max_size=40),
        st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    )
)
def test_nothing_but_an_expression_error(text: str) -> None:
    tree = check_syntax(text)
    if tree is not None:
        assert without_offsets(parse(shown(tree))) == without_offsets(tree)


GLYPH = "A glyph cannot be compared: give the draw a second column with names, and compare that column."


@pytest.mark.parametrize(
    ("text", "offset", "sentence", "remedy"),
    [
        ("", 0, "The expression is empty.", "Write a condition or a number."),
        ("  ", 0, "The expression is empty.", "Write a condition or a number."),
        ("a = b", 2, "'=' is not allowed in an expression.", "Write '==' to compare."),
        ("a & b", 2, "'&' is not allowed in an expression.", "Write 'and'."),
        (
            "last == 'x'",
            8,
            "''' is not allowed in an expression.",
            "Write names without quotes.",
        ),
        *(
            (
                f"good == {glyph}",
                8,
                f"'{glyph[0]}' is not allowed in an expression.",
                GLYPH,
            )
            for glyph in ('"%"', "'*'", "■")
        ),
        ("good == %", 8, "'%' is not expected here.", GLYPH),
        (
            "enter good",
            6,
            "'good' is not expected here.",
            "A trigger is not an expression: write 'enter: good' as a key of a rule.",
        ),
        (
            "25 %",
            4,
            "The expression ends too early.",
            "Write a share as a number: 0.25 for 25 %.",
        ),
        (
            "x in [a]",
            5,
            "'[' is not allowed in an expression.",
            "Brackets are not supported; use a set or a group.",
        ),
        ("size(a, b)", 6, "size() takes one name.", "Close the parenthesis after it."),
        (
            "a, b",
            1,
            "',' is not expected here.",
            "Use commas only between the arguments of a function.",
        ),
        ("1 + min(a)", 4, "min() takes 2 numbers or more, not 1.", "Write min(a, b)."),
        ("max()", 0, "max() takes 2 numbers or more, not 0.", "Write max(a, b)."),
        ("abs(a, b)", 0, "abs() takes one number, not 2.", "Write abs(a)."),
        ("log()", 0, "log() takes one number, not 0.", "Write log(a)."),
        ("min(a b)", 6, "A ')' is missing.", "Close the parenthesis."),
        ("min(a,)", 6, "')' is not expected here.", "Write a name or a number here."),
        ("round(a", 7, "A ')' is missing.", "Close the parenthesis."),
        ("size()", 5, "size() takes one name.", "Name a set or a group."),
        ("time(1)", 5, "time() takes one name.", "Name a zone."),
        ("size(a b)", 7, "size() takes one name.", "Close the parenthesis after it."),
        ("size(a", 6, "size() takes one name.", "Close the parenthesis after it."),
        ("where(and)", 6, "where() takes one name.", "Name a group."),
        (
            "1 + sqrt(4)",
            4,
            "There is no function 'sqrt'.",
            f"Functions: {', '.join(CALLED)}.",
        ),
        ("a b", 2, "'b' is not expected here.", "Join conditions with 'and' or 'or'."),
        (
            "30 s",
            3,
            "'s' is not expected here.",
            "Time is counted in steps: write their number without a unit.",
        ),
        ("a not in b", 2, "'not' is not expected here.", "Write 'not (a in b)'."),
        (
            "1 < a < 3",
            6,
            "'<' is not expected here.",
            "Compare two values at a time, and join the comparisons with 'and'.",
        ),
        (
            "a +",
            3,
            "The expression ends too early.",
            "Complete or remove the last operator.",
        ),
        ("* a", 0, "'*' is not expected here.", "Write a name or a number here."),
        (
            "a and or b",
            6,
            "'or' is not expected here.",
            "Write a name or a number here.",
        ),
        ("(a", 2, "A ')' is missing.", "Close the parenthesis."),
        ("(a b)", 3, "A ')' is missing.", "Close the parenthesis."),
        ("a)", 1, "')' is not expected here.", "Join conditions with 'and' or 'or'."),
        ("1.2.3", 0, "'1' is not allowed in an expression.", "Remove it."),
        ("3x", 0, "'3' is not allowed in an expression.", "Remove it."),
    ],
)
def test_a_mistake_is_said_where_it_is(
    text: str, offset: int, sentence: str, remedy: str
) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert (caught.value.offset, caught.value.sentence, caught.value.remedy) == (
        offset,
        sentence,
        remedy,
    )


@pytest.mark.parametrize(
    "text",
    [
        *("a" * (MAX_LENGTH + 1), "(" * 100 + "a", "-" * 100 + "a", "not " * 99 + "a"),
        *("+".join("1" * 500), "a==b or " * 60 + "c", "1+(" * 50 + "1" + ")" * 50),
    ],
)
def test_long_and_deep_expressions_are_refused(text: str) -> None:
    with pytest.raises(
        ExpressionError, match=r"longer than|nested more than|more than 200 parts"
    ):
        parse(text)
    assert parse("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH) == Word("a", MAX_DEPTH)


def test_long_chains_are_no_problem() -> None:
    text = " + ".join(["1"] * (MAX_PARTS // 2))
    assert compile_expression(parse(text))(Memory()) == MAX_PARTS // 2


# -- numbers that grow


@pytest.mark.parametrize("text", ["n * n", "n + n", "0 - n * n", "n * n / n"])
def test_numbers_never_fill_the_memory(text: str) -> None:
    class Growing:
        values: dict[str, Any] = {"n": 10}  # noqa: RUF012

    function = compile_expression(resolved(parse(text)))
    for _ in range(2000):
        Growing.values["n"] = function(Growing())
    assert isinstance(Growing.values["n"], int | float)
    assert len(repr(Growing.values["n"])) < 30


@pytest.mark.parametrize(
    ("tree", "clock", "place"),
    [
        (None, False, False),
        (Number(3), False, False),
        (Binary(">", BuiltIn("steps"), Number(3)), True, False),
        (Binary("==", Variable("a"), BuiltIn("last")), False, False),
        (Unary("not", Call("distance", Variable("a"), 0)), True, True),
    ],
)
def test_what_depends_on_the_clock_and_the_place(
    tree: Expression | None, clock: bool, place: bool
) -> None:
    assert (reads_clock(tree), reads_place(tree)) == (clock, place)


ERRORS = {
    "expression that ends": ("E130", trial("{enter: goal, if: steps >«, end: found}")),
    "expression with a quote": ("E130", "success: last == «'found'"),
    "expression in a quote": ("E130", "success: 'last «= found'"),
    "recent without trials": ("E134", "measures: {m: '«recent(found)'}"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "text"), ERRORS.values(), ids=list(ERRORS))
def test_an_error_stands_where_it_was_made(
    code: str, text: str, check_error: Check
) -> None:
    check_error(code, text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "none"),
        ("goal", "goal"),
        (3.0, "3"),
        (True, "1"),
        (2.5, "2.5"),
        (1e6, "1e+06"),
        (-999999, "-999999"),
        (1 / 3, "0.333333"),
        (frozenset(), "none"),
        (frozenset({"b", "a"}), "a, b"),
        (frozenset({2, 10}), "10, 2"),
    ],
)
def test_a_value_as_text(value: RuntimeValue, text: str) -> None:
    assert as_text(value) == text
    assert filled("{{{ v }}} {v}", {"v": value}) == f"{{{text}}} {text}"


@pytest.mark.parametrize(
    ("line", "names", "lone"),
    [
        ("TONE {a}, { b } and {a}", ("a", "b"), None),
        ("{{a}} {{", (), None),
        ("none", (), None),
        ("{a", None, 0),
        ("{a} }", None, 4),
    ],
)
def test_names_in_braces(
    line: str, names: tuple[str, ...] | None, lone: int | None
) -> None:
    if lone is None:
        assert names_in_text([line, line]) == names
    else:
        with pytest.raises(LoneBraceError) as caught:
            names_in_text([line])
        assert caught.value.offset == lone


@pytest.mark.parametrize(
    ("tree", "value"),
    [
        (Number(3), 3),
        (Unary("-", Number(3)), -3),
        (Unary("-", BuiltIn("steps")), None),
        (Unary("not", Number(1)), None),
        (Binary("-", Number(3), Number(5)), -2),
        (Binary("%", Number(7), Number(4)), 3),
        (Binary("+", Number(7), BuiltIn("steps")), None),
        (Binary("<", Number(7), Number(4)), None),
    ],
)
def test_what_is_constant(tree: Expression, value: float | None) -> None:
    assert constant(tree) == value


@pytest.mark.parametrize("sign", ["/", "%"])
def test_division_by_nothing_is_no_number(sign: str) -> None:
    assert math.isnan(constant(Binary(sign, BuiltIn("steps"), Number(0))) or 0)


@pytest.mark.parametrize(
    ("tree", "trace"),
    [
        (None, False),
        (Call("time", Variable("a"), 0), True),
        (Call("distance", Variable("a"), 0), False),
        (Binary(">", BuiltIn("moves"), Number(3)), True),
        (BuiltIn("steps"), False),
    ],
)
def test_what_depends_on_the_path(tree: Expression | None, trace: bool) -> None:
    assert reads_trace(tree) == trace
