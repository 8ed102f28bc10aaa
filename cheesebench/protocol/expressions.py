"""Expressions of the language: a small parser and the syntax tree; names and types are resolved before a run.

Grammar, loosest first: ``or``, ``and``, ``not``, one comparison (``== != < <= > >= in``), ``+ -``, ``* / %``,
unary ``-``, and names, numbers, ``name(name)``, ``name(expression, ...)``, parentheses. Never ``eval``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import add, mod, mul, sub, truediv

from cheesebench.errors import did_you_mean, look_alike
from cheesebench.protocol.features import ARITHMETIC, BUILT_INS, FUNCTIONS, HISTORY, SEQUENCES, Reads

#: Words that cannot be names of an author's things.
KEYWORDS = ("and", "or", "not", "in", "none")
#: Longest expression, in characters and in parts, and deepest nesting: far below what recursion can take.
MAX_LENGTH = 1000
MAX_PARTS = 200
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Number:
    """A literal number."""

    value: float


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant name: a zone, symbol, state, outcome, block, or ``none`` (value None)."""

    value: str | None


@dataclass(frozen=True, slots=True)
class Members:
    """A group (or zone) used as a fixed set of names."""

    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, draw column or counter, read from memory."""

    name: str


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One of the built-in names: it last block session trial subject steps state."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function of one argument: a group for where, a zone or group for time, a set for size."""

    function: str
    argument: Expression
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Compute:
    """A function of numbers, such as ``min``; until names are resolved, also one of SEQUENCES and HISTORY."""

    function: str
    arguments: tuple[Expression, ...]
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Recent:
    """How many of the last ``trials`` ended with an outcome, or (None) were a success."""

    outcome: str | None
    trials: int


@dataclass(frozen=True, slots=True)
class Unary:
    """``not`` or ``-``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary operator."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Classes:
    """A categorical measure: the first name whose condition holds (None: always)."""

    cases: tuple[tuple[Expression | None, str], ...]


@dataclass(frozen=True, slots=True)
class Word:
    """A name as parsed, before it is resolved; ``offset`` is its column in the text."""

    name: str
    offset: int


Expression = (
    Number | Constant | Members | Variable | BuiltIn | Call | Compute | Recent | Unary | Binary | Classes | Word
)


class ExpressionError(Exception):
    """An expression cannot be parsed or typed; ``offset`` is the column in its text, from 0."""

    def __init__(self, offset: int, sentence: str, remedy: str, code: int = 130) -> None:
        super().__init__(sentence)
        self.offset, self.sentence, self.remedy, self.code = offset, sentence, remedy, code


_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?(?![A-Za-z_0-9.]))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<symbol>==|!=|<=|>=|[<>+\-*/%(),]))"
)
_OPERATORS = ("and", "or", "not", "in")
#: Operators whose result is a number.
ARITHMETIC_SIGNS = ("+", "-", "*", "/", "%")
#: Functions whose arguments are expressions, and how those that do not take numbers only are written.
_WITH_EXPRESSIONS = {**ARITHMETIC, **SEQUENCES, **HISTORY}
_WRITTEN = {
    "member": "member(group, number)",
    "position": "position(place, group)",
    "recent": "recent(success, 10)",
}
_CUT_SHORT = "Close the parenthesis. Within { } and [ ] a comma ends an expression that is not in quotes."
_NO_GLYPHS = "A glyph cannot be compared: give the draw a column of names beside it, and compare that."
#: What a rule waits for; it is a key, not a word of expressions.
_TRIGGERS = ("enter", "inside", "press", "act", "after")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in")
_REMEDIES = {
    "=": "Write '==' to compare.",
    "&": "Write 'and'.",
    "|": "Write 'or'.",
    "!": "Write 'not ( ... )' or '!='.",
    **dict.fromkeys("'\"", "Write names without quotes."),
    "≥": "Write '>='.",
    "≤": "Write '<='.",
    "≠": "Write '!='.",
    "−": "Write '-'.",
    "×": "Write '*'.",
    **dict.fromkeys("^*", "There are no powers: multiply, a * a."),
    "/": "Write floor(a / b).",
    "[": "Brackets are not supported; use a set or a group.",
}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    offset: int
    kind: str


def _tokens(text: str) -> list[_Token]:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            0, f"The expression is longer than {MAX_LENGTH} characters.", "Move a part into a variable or a measure."
        )
    tokens: list[_Token] = []
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if not match:
            offset = place + len(text[place:]) - len(text[place:].lstrip())
            odd = text[offset]
            remedy = _REMEDIES.get(odd) or look_alike(odd) or "Remove it."
            word = re.match(r"\w{2,}", text[offset:])  # a word that begins with a letter of another alphabet
            compared = bool(tokens) and tokens[-1].text in ("==", "!=") and not word
            if re.match(r"""(["'])[^\w"']\1""", text[offset:]) or (
                compared and odd not in _REMEDIES and odd.isprintable()
            ):
                remedy = _NO_GLYPHS
            raise ExpressionError(offset, f"'{odd}' is not allowed in an expression.", remedy)
        kind = match.lastgroup or "symbol"
        tokens.append(_Token(match[kind], match.start(kind), kind))
        place = match.end()
    if len(tokens) > MAX_PARTS:
        sentence = f"The expression has more than {MAX_PARTS} parts."
        raise ExpressionError(tokens[MAX_PARTS].offset, sentence, "Move a part into a variable or a measure.")
    return tokens


def parse(text: str) -> Expression:
    """Parse an expression into a tree whose names are unresolved Words. Raises ExpressionError."""
    return _Parser(text).whole()


class _Parser:
    """Recursive descent, one method per level of the grammar."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.end = len(text)
        self.at = 0
        self.depth = 0

    def whole(self) -> Expression:
        if not self.tokens:
            raise ExpressionError(0, "The expression is empty.", "Write a condition or a number.")
        tree = self.disjunction()
        if token := self.peek():
            remedy = "Write 'not (a in b)'." if token.text == "not" else "Join conditions with 'and' or 'or'."
            if token.text == ",":
                remedy = "Only the arguments of a function are separated by commas."
            if self.at == 1 and self.tokens[0].text in _TRIGGERS and token.kind == "name":
                remedy = (
                    f"A trigger is not an expression: write '{self.tokens[0].text}: {token.text}' as a key of a rule."
                )
            if token.text in _COMPARISONS:
                remedy = "Compare two values at a time and join them with 'and'."
            raise ExpressionError(token.offset, f"'{token.text}' is not expected here.", remedy)
        return tree

    def peek(self) -> _Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, *texts: str) -> _Token | None:
        token = self.peek()
        if token and token.text in texts:
            self.at += 1
            return token
        return None

    def chain(self, inner: Callable[[], Expression], *operators: str) -> Expression:
        left = inner()
        while token := self.take(*operators):
            left = Binary(token.text, left, inner())
        return left

    def disjunction(self) -> Expression:
        return self.chain(self.conjunction, "or")

    def conjunction(self) -> Expression:
        return self.chain(self.negation, "and")

    def negation(self) -> Expression:
        if self.take("not"):
            return Unary("not", self.nested(self.negation))
        return self.comparison()

    def comparison(self) -> Expression:
        left = self.sum()
        if token := self.take(*_COMPARISONS):
            return Binary(token.text, left, self.sum())
        return left

    def sum(self) -> Expression:
        return self.chain(self.product, "+", "-")

    def product(self) -> Expression:
        return self.chain(self.sign, "*", "/", "%")

    def sign(self) -> Expression:
        if self.take("-"):
            return Unary("-", self.nested(self.sign))
        return self.atom()

    def nested(self, inner: Callable[[], Expression]) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ExpressionError(0, f"The expression is nested more than {MAX_DEPTH} deep.", "Use a variable.")
        tree = inner()
        self.depth -= 1
        return tree

    def atom(self) -> Expression:
        token = self.peek()
        if token is None:
            remedy = "Complete or remove the last operator."
            if len(self.tokens) > 1 and self.tokens[-2].text in ("==", "!="):
                remedy = _NO_GLYPHS
            elif self.tokens[-1].text == "%":
                remedy = "Write a share as a number: 0.8 for 80 %."
            raise ExpressionError(self.end, "The expression ends too early.", remedy)
        self.at += 1
        if token.kind == "number":
            value = float(token.text)
            return Number(int(token.text) if token.text.isdigit() and value < 1e15 else value)
        if token.text == "(":
            tree = self.nested(self.disjunction)
            if not self.take(")"):
                place = self.peek()
                raise ExpressionError(
                    place.offset if place else self.end, "A ')' is missing.", "Close the parenthesis."
                )
            return tree
        if token.kind == "name" and token.text not in _OPERATORS:
            if not self.take("("):
                return Word(token.text, token.offset)
            return self.compute(token) if token.text in _WITH_EXPRESSIONS else self.call(token)
        twice = self.at > 1 and self.tokens[self.at - 2].text == token.text
        remedy = (_REMEDIES.get(token.text) if twice else None) or "Write a name or a number here."
        if token.kind == "symbol" and self.at > 1 and self.tokens[self.at - 2].text in ("==", "!="):
            remedy = _NO_GLYPHS
        raise ExpressionError(token.offset, f"'{token.text}' is not expected here.", remedy)

    def compute(self, function: _Token) -> Expression:
        arguments = [] if self.take(")") else [self.nested(self.disjunction)]
        while arguments and self.take(","):
            arguments.append(self.nested(self.disjunction))
        if arguments and not self.take(")"):
            place = self.peek()
            cut = not place and len(arguments) < _WITH_EXPRESSIONS[function.text].least
            remedy = _CUT_SHORT if cut else "Close the parenthesis."
            raise ExpressionError(place.offset if place else self.end, "A ')' is missing.", remedy)
        known, count = _WITH_EXPRESSIONS[function.text], len(arguments)
        if count < known.least or (known.most is not None and count > known.most):
            wanted = "one number" if known.most == 1 else f"{known.least} numbers or more"
            remedy = f"Write {function.text}({'a' if known.most == 1 else 'a, b'})."
            if function.text in _WRITTEN:
                wanted, remedy = "two arguments", f"Write {_WRITTEN[function.text]}."
            raise ExpressionError(function.offset, f"{function.text}() takes {wanted}, not {count}.", remedy, 134)
        return Compute(function.text, tuple(arguments), function.offset)

    def call(self, function: _Token) -> Expression:
        if function.text not in FUNCTIONS and (hint := did_you_mean(function.text, _WITH_EXPRESSIONS).strip()):
            raise ExpressionError(function.offset, f"There is no function '{function.text}'.", hint, 134)
        argument = self.peek()
        if argument is None or argument.kind != "name" or argument.text in _OPERATORS:
            place = argument.offset if argument else self.end
            raise ExpressionError(place, f"{function.text}() takes one name.", "Name a zone, a group or a set.")
        self.at += 1
        if not self.take(")"):
            place = self.tokens[self.at].offset if self.peek() else self.end
            raise ExpressionError(place, f"{function.text}() takes one name.", "Close the parenthesis after it.")
        return Call(function.text, Word(argument.text, argument.offset), function.offset)


def walk(tree: Expression | None) -> Iterator[Expression]:
    """Yield an expression and everything in it."""
    if tree is None:
        return
    yield tree
    for part in parts(tree):
        yield from walk(part)


def parts(tree: Expression) -> tuple[Expression, ...]:
    """Return the expressions of which an expression is directly made."""
    match tree:
        case Call(_, argument) | Unary(_, argument):
            return (argument,)
        case Compute(_, arguments):
            return tuple(arguments)
        case Binary(_, left, right):
            return left, right
        case Classes(cases):
            return tuple(guard for guard, _ in cases if guard is not None)
    return ()


def constant(tree: Expression) -> float | None:
    """Return the value of an expression without names; None if it has names, NaN for a division by 0."""
    match tree:
        case Number(value):
            return value
        case Unary("-", operand):
            inner = constant(operand)
            return None if inner is None else -inner
        case Binary("+" | "-" | "*" | "/" | "%" as operator, left, right):
            first, second = constant(left), constant(right)
            if operator in "/%" and second == 0:
                return math.nan  # whatever the dividend
            if first is None or second is None:
                return None
            return float({"+": add, "-": sub, "*": mul, "/": truediv, "%": mod}[operator](float(first), float(second)))
    return None


def reads_trace(tree: Expression | None) -> bool:
    """Return whether an expression depends on the path in this trial, as ``time()`` does."""
    return any(_reads(node) == "trace" for node in walk(tree))


def reads_place(tree: Expression | None) -> bool:
    """Return whether an expression depends on the subject's present or past position relative to a place."""
    return any(isinstance(node, Call) and _reads(node) != "" for node in walk(tree))


def reads_clock(tree: Expression | None) -> bool:
    """Return whether the value of an expression can change without a rule firing: through steps, path or pose."""
    return any(_reads(node) != "" for node in walk(tree))


def _reads(node: Expression) -> Reads:
    match node:
        case Call(function, _):
            return FUNCTIONS[function].reads
        case BuiltIn(name):
            return BUILT_INS[name].reads
    return ""


def is_condition(tree: Expression) -> bool:
    """Return whether an expression is a condition rather than a number."""
    return isinstance(tree, Unary | Binary) and tree.operator not in ARITHMETIC_SIGNS
