"""Expressions of the language: a small parser, and the syntax tree. ``names`` resolves
names and types.

From the loosest to the tightest, the grammar has ``or``, ``and``, ``not``, one
comparison (``== != < <= > >= in``), ``+ -``, ``* / %``, unary ``-``, and then names,
numbers, ``name(name)``, ``name(expression, ...)`` and parentheses. ``eval`` is never
used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import add, mod, mul, sub, truediv
from typing import Literal

from cheesebench.errors import did_you_mean, look_alike

Kind = Literal["number", "truth", "name", "set"]
#: Kinds of things that a name can refer to. ``any`` is the domain of ``none``.
Domain = Literal["place", "symbol", "state", "outcome", "block", "any"]


@dataclass(frozen=True, slots=True)
class Type:
    """Type of an expression. For names and sets, ``domains`` are the kinds of things to
    which they may refer.
    """

    kind: Kind
    domains: frozenset[Domain] = frozenset()

    def overlaps(self, other: Type) -> bool:
        """Return whether names of both types can be equal."""
        return (
            bool(self.domains & other.domains) or "any" in self.domains | other.domains
        )


NUMBER = Type("number")
TRUTH = Type("truth")

#: What a value depends on besides variables: the path in this trial (``trace``), the
#: pose relative to a place (``pose``), or the step or the pose itself (``clock``).
Reads = Literal["", "trace", "pose", "clock"]


@dataclass(frozen=True, slots=True)
class BuiltInName:
    """A built-in name.

    ``later`` says whether the name was added to the language later. An author's own
    name then takes precedence, so that older files stay valid.
    """

    type: Type
    reads: Reads = ""
    later: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function of one argument, computed by the method of the same name in
    ``paradigms/arena/life.py``.

    ``takes`` is the kind of the argument: a group, a set, any place (also a solid), or
    a zone of the floor.
    """

    takes: Literal["group", "set", "place", "zone"]
    reads: Reads = ""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A function of expressions. ``least`` and ``most`` limit the number of its
    arguments (``most`` of None: no maximum).
    """

    meaning: str
    least: int = 1
    most: int | None = 1


#: The built-in names (docs/language.md, "Expressions").
BUILT_INS: dict[str, BuiltInName] = {
    "it": BuiltInName(Type("name", frozenset({"place"}))),
    "last": BuiltInName(Type("name", frozenset({"outcome"}))),
    "block": BuiltInName(Type("name", frozenset({"block"}))),
    "session": BuiltInName(NUMBER),
    "trial": BuiltInName(NUMBER),
    "subject": BuiltInName(NUMBER),
    "steps": BuiltInName(NUMBER, reads="clock"),
    "state": BuiltInName(Type("name", frozenset({"state"}))),
    "x": BuiltInName(NUMBER, reads="clock", later=True),
    "y": BuiltInName(NUMBER, reads="clock", later=True),
    "heading": BuiltInName(NUMBER, reads="clock", later=True),
    "moves": BuiltInName(NUMBER, reads="trace", later=True),
}
#: The functions of a place, group or set (docs/language.md, "Expressions").
FUNCTIONS: dict[str, Function] = {
    "where": Function("group"),
    "size": Function("set"),
    "time": Function("zone", reads="trace"),
    "entries": Function("zone", reads="trace"),
    "distance": Function("zone", reads="pose"),
    "bearing_error": Function("zone", reads="pose"),
    "departure_error": Function("zone", reads="trace"),
    "column": Function("place"),
    "row": Function("place"),
}
#: The functions of numbers (docs/language.md, "Expressions"). Their arguments are
#: expressions.
ARITHMETIC: dict[str, Arithmetic] = {
    "min": Arithmetic("The smallest.", 2, None),
    "max": Arithmetic("The largest.", 2, None),
    "abs": Arithmetic("The number without its sign."),
    "round": Arithmetic(
        "The nearest whole number. If two are equally near, it is the even one."
    ),
    "floor": Arithmetic("The largest whole number that is not above the number."),
    "exp": Arithmetic("e to the power of the number."),
    "log": Arithmetic("The natural logarithm. It is undefined for 0 and below."),
}
#: The functions of a group as a sequence (docs/language.md, "Expressions"). ``names``
#: resolves them to other expressions.
SEQUENCES: dict[str, Arithmetic] = {
    "member": Arithmetic(
        "The member of a group at this place in its order, counted from 1; `none` if there is none.",
        2,
        2,
    ),
    "position": Arithmetic(
        "The place of a member in the order of a group, counted from 1; 0 if the group does not have it.",
        2,
        2,
    ),
}
#: The functions of earlier trials. Their arguments are `success` or an outcome, and a
#: number of trials.
HISTORY: dict[str, Arithmetic] = {
    "recent": Arithmetic(
        "How many of the subject's last trials ended in this way.", 2, 2
    ),
}
CALLED = (*FUNCTIONS, *ARITHMETIC, *SEQUENCES, *HISTORY)
#: Maximum number of trials that `recent` looks back.
MOST_RECENT = 1000
#: Triggers, each with its meaning. A rule has exactly one.
TRIGGERS: dict[str, str] = {
    "enter": "The subject entered this zone or group, or the one that this variable holds.",
    "inside": "The step ended inside this zone or group, or the one that this variable holds, whether entered before or now.",
    "press": "FORWARD was blocked by this solid (`any`: by anything).",
    "after": "The state has lasted at least this many steps.",
    "act": "This action was taken (`any`: any action).",
}
#: Effects, each with its meaning, in the order in which they are executed.
EFFECTS: dict[str, str] = {
    "set": "Gives variables new values. All right-hand sides read the old ones.",
    "add": "Adds a member, or all members of another set, to a set.",
    "remove": "Takes a member, or all members of another set, out of a set.",
    "count": "Adds 1 to each of these counters of the trial.",
    "reward": "Adds this to the reward of the step.",
    "place": "Teleports to a zone, and resets the heading to `start.face`.",
    "put": "Teleports to the square nearest to this column and row. The heading stays.",
}


#: A value at run time: a number, a name, a set of them, or None for ``none``.
RuntimeValue = float | int | str | None | frozenset[str | float | int]

#: Words of the grammar. ``names.RESERVED`` has all words that cannot be names.
KEYWORDS = ("and", "or", "not", "in", "none")
#: Maximum number of characters, parts, and levels of nesting of an expression. With
#: these limits, parsing stays far below Python's recursion limit.
MAX_LENGTH = 1000
MAX_PARTS = 200
MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant name, such as a zone, a symbol, a state or ``none`` (value None)."""

    value: str | None


@dataclass(frozen=True, slots=True)
class Members:
    """A fixed set of names: the members of a group, or the empty set."""

    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, draw column or counter, read from memory."""

    name: str


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A built-in name (a key of ``BUILT_INS``)."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function of one argument. ``FUNCTIONS`` says what the argument is: a
    group for ``where``, a set for ``size``, and so on.
    """

    function: str
    argument: Expression
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Compute:
    """A call of a function of numbers, such as ``min``. Before names are resolved, the
    function may also be one of ``SEQUENCES`` or ``HISTORY``.
    """

    function: str
    arguments: tuple[Expression, ...]
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Recent:
    """How many of the last ``trials`` trials ended with ``outcome`` or, if it is None,
    were a success.
    """

    outcome: str | None
    trials: int


@dataclass(frozen=True, slots=True)
class Unary:
    """The operator ``not`` or ``-`` with its operand."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Classes:
    """A categorical measure. Its value is the first name whose condition holds (a
    condition of None always holds).
    """

    cases: tuple[tuple[Expression | None, str], ...]


@dataclass(frozen=True, slots=True)
class Word:
    """A name before it is resolved. ``offset`` is its column in the text."""

    name: str
    offset: int


Expression = (
    Number
    | Constant
    | Members
    | Variable
    | BuiltIn
    | Call
    | Compute
    | Recent
    | Unary
    | Binary
    | Classes
    | Word
)


class ExpressionError(Exception):
    """An expression cannot be parsed or typed. ``offset`` is the column in its text,
    from 0.
    """

    def __init__(
        self, offset: int, sentence: str, remedy: str, code: int = 130
    ) -> None:
        super().__init__(sentence)
        self.offset, self.sentence, self.remedy, self.code = (
            offset,
            sentence,
            remedy,
            code,
        )


_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?(?![A-Za-z_0-9.]))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<symbol>==|!=|<=|>=|[<>+\-*/%(),]))"
)
_OPERATORS = ("and", "or", "not", "in")
#: Operators whose result is a number.
ARITHMETIC_SIGNS = ("+", "-", "*", "/", "%")
#: All functions whose arguments are expressions, including functions that do not only
#: take numbers.
_WITH_EXPRESSIONS = {**ARITHMETIC, **SEQUENCES, **HISTORY}
_WRITTEN = {
    "member": "member(group, number)",
    "position": "position(place, group)",
    "recent": "recent(success, 10)",
}
_TAKEN = {
    "group": "a group",
    "set": "a set or a group",
    "place": "a zone or a solid",
    "zone": "a zone",
}
_CUT_SHORT = "Close the parenthesis. Within { } and [ ] a comma ends an expression that is not in quotes."
_NO_GLYPHS = "A glyph cannot be compared: give the draw a second column with names, and compare that column."
#: Keys of a rule that authors write in expressions by mistake.
_TRIGGERS = ("enter", "inside", "press", "act", "after")
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "in")
#: Words that count as units of time if they follow a number.
_UNITS = ("s", "sec", "second", "seconds", "ms", "min", "minutes", "step", "steps")
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
    **dict.fromkeys("^*", "There are no powers: multiply, as in a * a."),
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
            0,
            f"The expression is longer than {MAX_LENGTH} characters.",
            "Compute a part of it in a variable, with 'set'.",
        )
    tokens: list[_Token] = []
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if not match:
            raise _odd_character(text, place, tokens)
        kind = match.lastgroup or "symbol"
        tokens.append(_Token(match[kind], match.start(kind), kind))
        place = match.end()
    if len(tokens) > MAX_PARTS:
        sentence = f"The expression has more than {MAX_PARTS} parts."
        raise ExpressionError(
            tokens[MAX_PARTS].offset,
            sentence,
            "Compute a part of it in a variable, with 'set'.",
        )
    return tokens


def _odd_character(text: str, place: int, tokens: Sequence[_Token]) -> ExpressionError:
    offset = place + len(text[place:]) - len(text[place:].lstrip())
    odd, rest = text[offset], text[offset:]
    remedy = _REMEDIES.get(odd) or look_alike(odd) or "Remove it."
    if re.match(r"""(["'])[^\w"']\1""", rest) or (
        _is_compared(tokens) and _may_be_glyph(rest)
    ):
        remedy = _NO_GLYPHS
    return ExpressionError(offset, f"'{odd}' is not allowed in an expression.", remedy)


def _is_compared(before: Sequence[_Token]) -> bool:
    return bool(before) and before[-1].text in ("==", "!=")


def _may_be_glyph(text: str) -> bool:
    """Return whether a text begins with one character that can be drawn, and not with a
    word in another alphabet.
    """
    is_word = re.match(r"\w{2,}", text)
    return not is_word and text[0] not in _REMEDIES and text[0].isprintable()


def parse(text: str) -> Expression:
    """Parse an expression into a tree in which names are unresolved Words. Raise
    ExpressionError if the text is no expression.
    """
    return _Parser(text).whole()


def _share(tokens: Sequence[_Token]) -> str:
    """Return the share for the percentage with which tokens end, or an example."""
    last = tokens[-1].text if tokens and tokens[-1].kind == "number" else "80"
    return f"{float(last) / 100:g} for {last} %"


class _Parser:
    """A parser by recursive descent, with one method for each level of the grammar."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.end = len(text)
        self.at = 0
        self.depth = 0

    def whole(self) -> Expression:
        if not self.tokens:
            raise ExpressionError(
                0, "The expression is empty.", "Write a condition or a number."
            )
        tree = self.disjunction()
        if token := self.peek():
            raise ExpressionError(
                token.offset,
                f"'{token.text}' is not expected here.",
                self._remedy_for_rest(token),
            )
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
            raise ExpressionError(
                0,
                f"The expression is nested more than {MAX_DEPTH} levels deep.",
                "Compute a part of it in a variable, with 'set'.",
            )
        tree = inner()
        self.depth -= 1
        return tree

    def atom(self) -> Expression:
        token = self.peek()
        if token is None:
            raise self.ended_early()
        self.at += 1
        if token.kind == "number":
            return _number(token.text)
        if token.text == "(":
            return self.parenthesised()
        if token.kind != "name" or token.text in _OPERATORS:
            raise self.unexpected(token)
        if not self.take("("):
            return Word(token.text, token.offset)
        if token.text in _WITH_EXPRESSIONS:
            return self.compute(token)
        return self.call(token)

    def ended_early(self) -> ExpressionError:
        remedy = "Complete or remove the last operator."
        if _is_compared(self.tokens[:-1]):
            remedy = _NO_GLYPHS
        elif self.tokens[-1].text == "%":
            remedy = f"Write a share as a number: {_share(self.tokens[:-1])}."
        return ExpressionError(self.end, "The expression ends too early.", remedy)

    def _remedy_for_rest(self, token: _Token) -> str:
        """Return the remedy for a token that follows a complete expression."""
        first, before = self.tokens[0].text, self.tokens[self.at - 1]
        if token.text == "not":
            return "Write 'not (a in b)'."
        if token.text == ",":
            return "Use commas only between the arguments of a function."
        if self.at == 1 and first in _TRIGGERS and token.kind == "name":
            return f"A trigger is not an expression: write '{first}: {token.text}' as a key of a rule."
        if token.text in _COMPARISONS:
            return "Compare two values at a time, and join the comparisons with 'and'."
        if before.kind == "number" and token.text.lower() in _UNITS:
            return "Time is counted in steps: write their number without a unit."
        return "Join conditions with 'and' or 'or'."

    def parenthesised(self) -> Expression:
        tree = self.nested(self.disjunction)
        if not self.take(")"):
            raise self.open_parenthesis("Close the parenthesis.")
        return tree

    def open_parenthesis(self, remedy: str) -> ExpressionError:
        place = self.peek()
        return ExpressionError(
            place.offset if place else self.end, "A ')' is missing.", remedy
        )

    def unexpected(self, token: _Token) -> ExpressionError:
        before = self.tokens[: self.at - 1]
        twice = bool(before) and before[-1].text == token.text
        remedy = _REMEDIES.get(token.text) if twice else None
        if token.kind == "symbol" and _is_compared(before):
            remedy = _NO_GLYPHS
        return ExpressionError(
            token.offset,
            f"'{token.text}' is not expected here.",
            remedy or "Write a name or a number here.",
        )

    def compute(self, function: _Token) -> Expression:
        arguments, known = self.arguments(function), _WITH_EXPRESSIONS[function.text]
        count = len(arguments)
        if count < known.least or (known.most is not None and count > known.most):
            raise _wrong_count(function, count)
        return Compute(function.text, arguments, function.offset)

    def arguments(self, function: _Token) -> tuple[Expression, ...]:
        """Parse the text after an opening parenthesis, up to the closing one."""
        if self.take(")"):
            return ()
        found = [self.nested(self.disjunction)]
        while self.take(","):
            found.append(self.nested(self.disjunction))
        if not self.take(")"):
            few = len(found) < _WITH_EXPRESSIONS[function.text].least
            cut = few and not self.peek()
            raise self.open_parenthesis(_CUT_SHORT if cut else "Close the parenthesis.")
        return tuple(found)

    def call(self, function: _Token) -> Expression:
        if function.text not in FUNCTIONS:
            hint = did_you_mean(function.text, CALLED).strip()
            raise ExpressionError(
                function.offset,
                f"There is no function '{function.text}'.",
                hint or f"Functions: {', '.join(CALLED)}.",
                134,
            )
        argument = self.peek()
        if argument is None or argument.kind != "name" or argument.text in _OPERATORS:
            place = argument.offset if argument else self.end
            raise ExpressionError(
                place,
                f"{function.text}() takes one name.",
                f"Name {_TAKEN[FUNCTIONS[function.text].takes]}.",
            )
        self.at += 1
        if not self.take(")"):
            place = self.tokens[self.at].offset if self.peek() else self.end
            raise ExpressionError(
                place,
                f"{function.text}() takes one name.",
                "Close the parenthesis after it.",
            )
        return Call(
            function.text, Word(argument.text, argument.offset), function.offset
        )


def _number(text: str) -> Number:
    """Return a literal number. It is an int if it has only digits and is below 1e15."""
    value = float(text)
    return Number(int(text) if text.isdigit() and value < 1e15 else value)


def _wrong_count(function: _Token, count: int) -> ExpressionError:
    name, known = function.text, _WITH_EXPRESSIONS[function.text]
    if name in _WRITTEN:
        wanted, remedy = "two arguments", f"Write {_WRITTEN[name]}."
    elif known.most == 1:
        wanted, remedy = "one number", f"Write {name}(a)."
    else:
        wanted, remedy = f"{known.least} numbers or more", f"Write {name}(a, b)."
    return ExpressionError(
        function.offset, f"{name}() takes {wanted}, not {count}.", remedy, 134
    )


def walk(tree: Expression | None) -> Iterator[Expression]:
    if tree is None:
        return
    yield tree
    for part in parts(tree):
        yield from walk(part)


def parts(tree: Expression) -> tuple[Expression, ...]:
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
    """Return the value of an expression with only numbers and arithmetic signs. Return
    NaN for a division by 0, and None for any other expression.
    """
    match tree:
        case Number(value):
            return value
        case Unary("-", operand):
            inner = constant(operand)
            return None if inner is None else -inner
        case Binary("+" | "-" | "*" | "/" | "%" as operator, left, right):
            first, second = constant(left), constant(right)
            if operator in "/%" and second == 0:
                return math.nan  # Division by 0 is undefined, whatever the dividend.
            if first is None or second is None:
                return None
            return float(
                {"+": add, "-": sub, "*": mul, "/": truediv, "%": mod}[operator](
                    float(first), float(second)
                )
            )
    return None


def reads_trace(tree: Expression | None) -> bool:
    """Return whether an expression depends on the path in this trial, as ``time()``
    does.
    """
    return any(_reads(node) == "trace" for node in walk(tree))


def reads_place(tree: Expression | None) -> bool:
    """Return whether an expression depends on the subject's present or past position
    relative to a place.
    """
    return any(isinstance(node, Call) and _reads(node) != "" for node in walk(tree))


def reads_clock(tree: Expression | None) -> bool:
    """Return whether an expression depends on steps, path or pose, so that its value
    can change although no rule fires.
    """
    return any(_reads(node) != "" for node in walk(tree))


def _reads(node: Expression) -> Reads:
    match node:
        case Call(function, _):
            return FUNCTIONS[function].reads
        case BuiltIn(name):
            return BUILT_INS[name].reads
    return ""


def is_condition(tree: Expression) -> bool:
    return isinstance(tree, Unary | Binary) and tree.operator not in ARITHMETIC_SIGNS


_BRACES = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}]*)\}|[{}]")


class LoneBraceError(Exception):
    """A brace is neither doubled nor one of a pair. ``offset`` is its column in the
    line, from 0.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Blank:
    """A blank to be filled in a line of text. ``offset`` is the column of its name."""

    name: str
    offset: int


@lru_cache(maxsize=1024)
def text_parts(line: str) -> tuple[str | Blank, ...]:
    """Return a line as literal text and blanks, in order. Raise LoneBraceError for a
    brace that is neither doubled nor one of a pair.
    """
    found: list[str | Blank] = []
    end = 0
    for match in _BRACES.finditer(line):
        found.append(line[end : match.start()])
        end = match.end()
        if match["name"] is not None:
            inside = match["name"]
            found.append(
                Blank(
                    inside.strip(),
                    match.start("name") + len(inside) - len(inside.lstrip()),
                )
            )
        elif len(match[0]) == 2:
            found.append(match[0][0])
        else:
            raise LoneBraceError(match.start())
    return tuple(part for part in (*found, line[end:]) if part != "")


def names_in_text(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            part.name
            for line in lines
            for part in text_parts(line)
            if isinstance(part, Blank)
        )
    )


def filled(line: str, values: Mapping[str, RuntimeValue]) -> str:
    return "".join(
        part if isinstance(part, str) else as_text(values[part.name])
        for part in text_parts(line)
    )


def as_text(value: RuntimeValue) -> str:
    """Return a value as text for readers. Numbers have up to six digits, sets are
    sorted, and true and false are 1 and 0, so equal values have equal texts. None and
    an empty set are ``none``.
    """
    if value is None:
        return "none"
    if isinstance(value, frozenset):
        return ", ".join(sorted(map(as_text, value))) or "none"
    if isinstance(value, str):
        return value
    return str(int(value)) if value % 1 == 0 and abs(value) < 1e6 else f"{value:g}"
