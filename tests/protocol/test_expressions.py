"""Expressions: grammar, precedence, types; checked against Python's own parser where both mean the same."""

from __future__ import annotations

import ast
import operator
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cheesebench.paradigms.arena.evaluate import compile_expression
from cheesebench.protocol.expressions import (
    MAX_DEPTH,
    MAX_LENGTH,
    MAX_PARTS,
    Binary,
    Call,
    Expression,
    ExpressionError,
    Number,
    Unary,
    Variable,
    Word,
    parse,
)

stable = settings(deadline=None, derandomize=True, max_examples=200)

# -- against Python

VALUES = {"a": 0, "b": 1, "c": 2.5, "d": -3, "nought": 0.0}
ATOMS = [*map(str, range(6)), "99", "0.5", ".25", "3.", "1e2", "2E-1", *VALUES]


def written(chance: random.Random, room: int) -> str:
    """Write a random expression of about so many parts, level by level of the grammar."""

    def atom() -> str:
        text = f"({disjunction()})" if room > 0 and chance.random() < 0.3 else chance.choice(ATOMS)
        return chance.choice(["", "", "", "-", "- -"]) + text

    def chain(inner: Callable[[], str], longest: int, *signs: str) -> str:
        nonlocal room
        text = inner()
        for _ in range(chance.choice([0, 0, 0, 1, longest])):
            room -= 1
            text = f"{text} {chance.choice(signs)} {inner()}"
        return text

    def total() -> str:
        return chain(lambda: chain(atom, 2, "*", "/"), 2, "+", "-")

    def negation() -> str:
        compared = chance.choice(["==", "!=", "<", "<=", ">", ">="]) if chance.random() < 0.4 else ""
        text = f"{total()} {compared} {total()}" if compared else total()
        return chance.choice(["", "", "", "not ", "not not "]) + text

    def disjunction() -> str:
        return chain(lambda: chain(negation, 2, "and"), 2, "or")

    return disjunction()


seeds = st.integers(0, 2**32)
expressions = st.builds(lambda seed, room: written(random.Random(seed), room), seeds, st.integers(0, 12))

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def by_python(node: ast.AST) -> float:
    """Compute what Python's parser read; a division by nought is no number, and `and` and `or` give truth."""
    match node:
        case ast.Expression(body):
            return by_python(body)
        case ast.Constant(value):
            return float(value) if isinstance(value, int | float) else 0.0
        case ast.Name(name):
            return VALUES[name]
        case ast.UnaryOp(ast.USub(), operand):
            return -by_python(operand)
        case ast.UnaryOp(ast.Not(), operand):
            return not by_python(operand)
        case ast.BoolOp(ast.And(), values):
            return all(by_python(value) for value in values)
        case ast.BoolOp(_, values):
            return any(by_python(value) for value in values)
        case ast.BinOp(left, ast.Div(), right):
            divisor = by_python(right)
            return by_python(left) / divisor if divisor else float("nan")
        case ast.BinOp(left, sign, right):
            return float(_BINARY[type(sign)](by_python(left), by_python(right)))
        case ast.Compare(left, [sign], [right]):
            return bool(_BINARY[type(sign)](by_python(left), by_python(right)))
    raise TypeError(ast.dump(node))


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
    return tree


@stable
@given(expressions.filter(lambda text: len(text) < 300))
def test_it_means_what_it_means_in_python(text: str) -> None:
    expected = by_python(ast.parse(text, mode="eval"))
    found = compile_expression(resolved(parse(text)))(Memory())
    assert found == pytest.approx(expected, nan_ok=True)
    assert isinstance(found, bool) == isinstance(expected, bool)


def shown(tree: Expression) -> str:
    """Write a tree with as many parentheses as can be."""
    match tree:
        case Number(value):
            return repr(value)
        case Word(name):
            return name
        case Call(function, Word(name)):
            return f"{function}({name})"
        case Unary(sign, operand):
            return f"({sign} {shown(operand)})"
        case Binary(sign, left, right):
            return f"({shown(left)} {sign} {shown(right)})"
    raise TypeError(tree)


def without_offsets(tree: Expression) -> str:
    return re.sub(r"offset=\d+", "", repr(tree))


words = st.one_of(expressions, expressions.map(lambda text: f"{text} or where(arm) in seen and size(seen) == b"))


@stable
@given(words.filter(lambda text: len(text) < 200))
def test_parentheses_and_blanks_change_nothing(text: str) -> None:
    tree = parse(text)
    try:
        again = parse(shown(tree))
    except ExpressionError as error:
        assert "nested" in error.sentence  # noqa: PT017 - all those parentheses
        return
    assert without_offsets(again) == without_offsets(tree)
    assert without_offsets(parse(f"  {text.replace(' ', '   ')} ")) == without_offsets(tree)


_WORDS = "a b1 _c and or not in none it where size ( ) (( )) + - * / // ** == = != ! < <= => > <> 0 7 1.5 1e5 1e"
_SIGNS = "7a 0x1 1.2.3 . , [ ] { ' % & | ^ ~ \\ $ é → 1e99"
PIECES = [*_WORDS.split(), *_SIGNS.split(), '"', "\t", "\n", "  ", "9" * 400]


@stable
@given(
    st.one_of(
        st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join),
        st.text(max_size=40),
        st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    )
)
def test_nothing_but_an_expression_error(text: str) -> None:
    try:
        tree = parse(text)
    except ExpressionError as error:
        assert 0 <= error.offset <= len(text)  # noqa: PT017
        assert error.sentence.endswith(".")  # noqa: PT017
        assert error.remedy.endswith((".", "?"))  # noqa: PT017
    else:
        assert without_offsets(parse(shown(tree))) == without_offsets(tree)


@pytest.mark.parametrize(
    ("text", "offset", "sentence", "remedy"),
    [
        ("", 0, "The expression is empty.", "Write a condition or a number."),
        ("  ", 0, "The expression is empty.", "Write a condition or a number."),
        ("a = b", 2, "'=' is not allowed in an expression.", "Write '==' to compare."),
        ("a & b", 2, "'&' is not allowed in an expression.", "Write 'and'."),
        ("last == 'x'", 8, "''' is not allowed in an expression.", "Write names without quotes."),
        ("a % 2", 2, "'%' is not allowed in an expression.", "Write a share as a number: 0.8 for 80 %."),
        ("x in [a]", 5, "'[' is not allowed in an expression.", "Brackets are not supported; use a set or a group."),
        ("f(a, b)", 3, "',' is not allowed in an expression.", "Functions take one argument."),
        ("f()", 2, "f() takes one name.", "Name a zone, a group or a set."),
        ("f(1)", 2, "f() takes one name.", "Name a zone, a group or a set."),
        ("f(a b)", 4, "f() takes one name.", "Close the parenthesis after it."),
        ("f(a", 3, "f() takes one name.", "Close the parenthesis after it."),
        ("f(and)", 2, "f() takes one name.", "Name a zone, a group or a set."),
        ("a b", 2, "'b' is not expected here.", "Join conditions with 'and' or 'or'."),
        ("a not in b", 2, "'not' is not expected here.", "Write 'not (a in b)'."),
        ("1 < a < 3", 6, "'<' is not expected here.", "Compare two values at a time and join them with 'and'."),
        ("a +", 3, "The expression ends too early.", "Complete or remove the last operator."),
        ("* a", 0, "'*' is not expected here.", "Write a name or a number here."),
        ("a and or b", 6, "'or' is not expected here.", "Write a name or a number here."),
        ("(a", 2, "A ')' is missing.", "Close the parenthesis."),
        ("(a b)", 3, "A ')' is missing.", "Close the parenthesis."),
        ("a)", 1, "')' is not expected here.", "Join conditions with 'and' or 'or'."),
        ("1.2.3", 0, "'1' is not allowed in an expression.", "Remove it."),
        ("3x", 0, "'3' is not allowed in an expression.", "Remove it."),
    ],
)
def test_a_mistake_is_said_where_it_is(text: str, offset: int, sentence: str, remedy: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(text)
    assert (caught.value.offset, caught.value.sentence, caught.value.remedy) == (offset, sentence, remedy)


@pytest.mark.parametrize(
    "text",
    [
        *("a" * (MAX_LENGTH + 1), "(" * 100 + "a", "-" * 100 + "a", "not " * 99 + "a"),
        *("+".join("1" * 500), "a==b or " * 60 + "c", "1+(" * 50 + "1" + ")" * 50),
    ],
)
def test_long_and_deep_expressions_are_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"longer than|nested more than|more than 200 parts"):
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
