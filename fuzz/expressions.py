"""Campaign of expressions. The result of each must be an error with its column, or a
value. If Python can read the expression, too, the value must be Python's.
"""

from __future__ import annotations

import ast
import math
import operator
import random
import re
from collections.abc import Callable
from typing import Any

from cheesebench.diagnostics import Diagnostics
from cheesebench.interfaces import RUNNING
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.program import compile_expression
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification
from cheesebench.protocol.declarations import declare_names
from cheesebench.protocol.expressions import (
    CALLED,
    NUMBER,
    TRUTH,
    Expression,
    ExpressionError,
    Recent,
    Type,
    parse,
    walk,
)
from cheesebench.source import read_text

#: Numbers that an expression may read, by name.
VALUES = {"a": 0, "b": 1, "c": 2.5, "d": -3, "nought": 0.0}
ATOMS = [*map(str, range(6)), "99", "0.5", ".25", "3.", "1e2", "2E-1", *VALUES]
_WORDS = "a b1 _c and or not in none it where size min( abs( ( ) (( )) , + - * / % // ** == = != ! < <= => > <> 0 7"
_SIGNS = "1.5 1e5 1e 7a 0x1 1.2.3 . [ ] { ' & | ^ ~ \\ $ é → 1e99"
#: Pieces of valid and invalid expressions.
PIECES = [
    *_WORDS.split(),
    *_SIGNS.split(),
    *(f"{name}(" for name in CALLED),
    '"',
    "\t",
    "\n",
    "  ",
    "9" * 400,
]
#: Expressions on earlier trials that the protocol below contains. A life records only
#: the counts that its protocol reads.
RECENT = ("recent(success, 2)", "recent(found, 3)", "recent(timeout, 1000)")
#: Names that mean something in the protocol below.
NAMES = (
    *(
        "last",
        "found",
        "timeout",
        "state",
        "run",
        "block",
        "main",
        "east",
        "west",
        "goals",
        "wall",
        "red",
        "green",
    ),
    *(
        "side",
        "hue",
        "seen",
        "steps",
        "trial",
        "x",
        "heading",
        "moves",
        "where(goals)",
        "size(seen)",
        "time(east)",
    ),
    *(
        "distance(east)",
        "departure_error(west)",
        "column(east)",
        "entries(goals)",
        "in seen",
        "in goals",
        "east in",
    ),
    *(
        "member(goals, 1)",
        "member(goals, c)",
        "position(goals, side)",
        "position(goals, member(goals, trial))",
    ),
    *(*RECENT, "min(steps, a)", "row(east)", "none", "it"),
    *(
        "bearing_error(east)",
        "log(trial)",
        "exp(steps)",
        "abs(heading)",
        "y",
        "subject",
        "session",
    ),
)
PROTOCOL = f"""
version: 1
paradigm: case
arena:
  map: |
    #######
    #W.S.E#
    #######
  legend: {{S: box, W: {{zone: west}}, E: {{zone: east}}}}
  groups: {{goals: [west, east]}}
draw: {{way: {{per: trial, of: {{side: [east, west], hue: [red, green]}}}}}}
vars: {{{", ".join(f"{name}: {value}" for name, value in VALUES.items())}, seen: {{init: [], per: subject}}}}
start: {{at: box, face: E}}
trial:
  limit: 9
  start: run
  states:
    run: {{rules: [{{enter: goals, if: "size(seen) >= 0 or where(goals) == side", add: {{seen: it}}, end: found}}]}}
schedule: {{main: {{trials: 6}}}}
success: 1 == 1
measures: {{{", ".join(f'm{number}: "{one}"' for number, one in enumerate(RECENT))}}}
"""


class Expressions:
    """Cases are expressions."""

    name = "expressions"

    def __init__(self) -> None:
        specification, found = Catalogue().inspect_text(PROTOCOL, "case.protocol.yaml")
        assert isinstance(specification, Specification), "\n".join(map(str, found))
        root = read_text(PROTOCOL, "case.protocol.yaml", Diagnostics())
        assert root is not None
        self._node = root.find(("success",))
        self._names = declare_names(
            specification.document, root, specification.arena, Diagnostics()
        )
        life = ArenaParadigm(specification).environment(
            installed_plugins().view("ascii_2d"), 1, 0
        )
        life.begin_trial()
        while life.step(0)[2] == RUNNING:
            pass
        life.begin_trial()
        life.step(0)
        self._life = life
        self._recent = {
            one
            for text in RECENT
            for one in [self._tree(text, Diagnostics())]
            if one is not None
        }
        for text in ("a + 1", "", "time(east)"):
            self.check(text.encode())

    def draw(self, chance: random.Random) -> bytes:
        """Return an expression that makes sense, an expression with other names in it,
        or noise.
        """
        kind = chance.randrange(4)
        if kind == 0:
            return (
                chance.choice(("", " "))
                .join(chance.choices((*PIECES, *NAMES), k=chance.randrange(12)))
                .encode()
            )
        words = written(chance, chance.randrange(1 + chance.randrange(12))).split(" ")
        for _ in range(0 if kind == 1 else chance.randint(1, 4)):
            words[chance.randrange(len(words))] = chance.choice(
                (*NAMES, *PIECES) if kind == 2 else NAMES
            )
        return " ".join(words).encode()

    def _tree(
        self, text: str, said: Diagnostics, want: Type | None = None
    ) -> Expression | None:
        return self._names.expression(text, self._node, said, want=want, it=True)

    def check(self, case: bytes) -> None:
        """Parse, resolve and compute the expression: as a condition, as a number, or as
        any value.
        """
        text = case.decode("utf-8", "replace")
        check_syntax(text)
        expected, said = _expected(text), Diagnostics()
        want = (None, TRUTH, NUMBER)[len(text) % 3]
        tree = self._tree(text, said, want)
        if tree is None:
            assert said.errors, "refused without an error message"
            assert all("\n" not in str(one) for one in said.errors)
            assert expected is None, (
                f"refused, and Python has {expected}: {said.errors[0]}"
            )
            return
        if any(
            isinstance(part, Recent) and part not in self._recent for part in walk(tree)
        ):
            return
        found = compile_expression(tree)(self._life)
        if expected is not None:
            assert isinstance(found, bool) == isinstance(expected, bool), (
                found,
                expected,
            )
            assert same(found, expected), (found, expected)


def check_syntax(text: str) -> Expression | None:
    """Return the tree of a text. Return None if it is no expression; then there must be
    an error with a column and a remedy.
    """
    try:
        return parse(text)
    except ExpressionError as error:
        mistake = error
    assert 0 <= mistake.offset <= len(text), mistake.offset
    assert mistake.sentence.endswith("."), mistake.sentence
    assert mistake.remedy.endswith((".", "?")), mistake.remedy
    return None


def same(one: float, other: float) -> bool:
    """Return whether two numbers are equal up to rounding; NaN equals NaN."""
    return (math.isnan(one) and math.isnan(other)) or math.isclose(
        one, other, rel_tol=1e-6, abs_tol=1e-12
    )


def _expected(text: str) -> float | None:
    """Return Python's value of a text, or None if Python cannot read it, or gives it
    another meaning.
    """
    if len(text) > 300 or not set(text) <= _PLAIN or _ODD_NUMBER.search(text):
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval")
        if _depth(tree) > _DEEP or not all(map(_is_shared, ast.walk(tree))):
            return None  # Python counts nesting in another way.
        return by_python(tree)
    except (
        SyntaxError,
        TypeError,
        KeyError,
        OverflowError,
        RecursionError,
        MemoryError,
        ValueError,
    ):
        return None


#: Characters that mean the same in Python expressions. Quotes, brackets, braces and
#: line breaks are not among them.
_PLAIN = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-*/%(),<>=! "
)
_DEEP = 15


#: Matches numbers that only Python has, or that only our language separates from a
#: following word.
_ODD_NUMBER = re.compile(
    r"(?<![A-Za-z_])[0-9][0-9.]*+(?:[eE][-+]?[0-9]{1,2}+)?+[A-Za-z_0-9.]"
)
_SHARED = (
    ast.Expression,
    ast.Constant,
    ast.expr_context,
    ast.unaryop,
    ast.boolop,
    ast.operator,
    ast.cmpop,
)


def _is_shared(node: ast.AST) -> bool:
    """Return whether both languages have this node, with the same meaning."""
    match node:
        case ast.Name(name):
            return name in VALUES
        case ast.Compare(ops=signs):
            return len(signs) == 1 and type(signs[0]) in _BINARY
        case ast.BinOp(op=sign):
            return type(sign) in _BINARY or isinstance(sign, ast.Div | ast.Mod)
        case ast.Call(ast.Name(function), arguments, []):
            return function in _FUNCTIONS and (len(arguments) > 1) == (
                function in ("min", "max")
            )
        case ast.UnaryOp(op=sign):
            return isinstance(sign, ast.USub | ast.Not)
    return isinstance(node, (*_SHARED, ast.BoolOp))


def _depth(node: ast.AST) -> int:
    return 1 + max(map(_depth, ast.iter_child_nodes(node)), default=0)


def written(chance: random.Random, room: int) -> str:
    """Return a random expression of about ``room`` parts, built level by level of the
    grammar.
    """

    def atom() -> str:
        text = (
            f"({disjunction()})"
            if room > 0 and chance.random() < 0.3
            else chance.choice(ATOMS)
        )
        if room > 0 and chance.random() < 0.15:
            function = chance.choice(list(_FUNCTIONS))
            others = (
                [disjunction() for _ in range(chance.randint(1, 2))]
                if function in ("min", "max")
                else []
            )
            text = f"{function}({', '.join([disjunction(), *others])})"
        return chance.choice(["", "", "", "-", "- -"]) + text

    def chain(inner: Callable[[], str], longest: int, *signs: str) -> str:
        nonlocal room
        text = inner()
        for _ in range(chance.choice([0, 0, 0, 1, longest])):
            room -= 1
            text = f"{text} {chance.choice(signs)} {inner()}"
        return text

    def total() -> str:
        return chain(lambda: chain(atom, 2, "*", "/", "%"), 2, "+", "-")

    def negation() -> str:
        compared = (
            chance.choice(["==", "!=", "<", "<=", ">", ">="])
            if chance.random() < 0.4
            else ""
        )
        text = f"{total()} {compared} {total()}" if compared else total()
        return chance.choice(["", "", "", "not ", "not not "]) + text

    def disjunction() -> str:
        return chain(lambda: chain(negation, 2, "and"), 2, "or")

    return disjunction()


_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge
}  # fmt: skip


#: Python's functions, which raise errors where those of our language are undefined or
#: infinite.
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min, "max": max, "abs": abs, "round": round, "floor": math.floor, "exp": math.exp, "log": math.log
}  # fmt: skip


def _call(function: str, values: list[float]) -> float:
    if any(map(math.isnan, values)):
        return math.nan
    try:
        return float(_FUNCTIONS[function](*values))
    except OverflowError:
        return math.inf if function == "exp" else values[0]
    except ValueError:
        return math.nan


def by_python(node: ast.AST) -> float:
    """Compute the value of Python's tree. A division by zero gives NaN, and `and` and
    `or` give truth values.
    """
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
        case ast.BinOp(left, ast.Div() | ast.Mod() as sign, right):
            dividend, divisor = by_python(left), by_python(right)
            if not divisor:
                return float("nan")
            return (
                dividend / divisor
                if isinstance(sign, ast.Div)
                else float(dividend) % float(divisor)
            )
        case ast.Call(ast.Name(function), arguments):
            return _call(
                function, [float(by_python(argument)) for argument in arguments]
            )
        case ast.BinOp(left, sign, right):
            return float(_BINARY[type(sign)](by_python(left), by_python(right)))
        case ast.Compare(left, [sign], [right]):
            return bool(_BINARY[type(sign)](by_python(left), by_python(right)))
    raise TypeError(ast.dump(node))
