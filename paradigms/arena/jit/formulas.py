"""Expressions and constants as code."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from cheesebench.paradigms.arena.jit import layout as at
from cheesebench.paradigms.arena.jit.vocabulary import UntranslatableError, Vocabulary
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.specification import RuntimeValue

#: Instructions of the built-in names, functions and operators that there is compiled code for; see ``features``.
BUILT_INS = {
    "it": at.IT_NAME, "last": at.LAST_NAME, "block": at.BLOCK_NUMBER, "session": at.SESSION_NUMBER,
    "trial": at.TRIAL_NUMBER_IN, "subject": at.SUBJECT_NUMBER, "steps": at.STEP_NUMBER, "state": at.STATE_IS,
    "x": at.COLUMN_HERE, "y": at.ROW_HERE, "heading": at.HEADING_HERE, "moves": at.MOVES_MADE,
}  # fmt: skip
FUNCTIONS = {
    "where": at.WHERE, "size": at.SIZE, "time": at.TIME, "entries": at.ENTRIES, "distance": at.DISTANCE,
    "column": at.COLUMN, "row": at.ROW, "bearing_error": at.BEARING_ERROR, "departure_error": at.DEPARTURE_ERROR,
}  # fmt: skip
OPERATORS = {
    "==": at.EQUAL, "!=": at.UNEQUAL, "<": at.LESS, "<=": at.AT_MOST, ">": at.MORE, ">=": at.AT_LEAST, "+": at.ADD,
    "-": at.SUBTRACT, "*": at.MULTIPLY, "/": at.DIVIDE, "%": at.MODULO, "in": at.IN,
}  # fmt: skip
#: Functions of one number, and (``min``, ``max``) operators that stand between each two of several.
ARITHMETIC = {
    "min": at.SMALLER, "max": at.LARGER, "abs": at.ABSOLUTE, "round": at.ROUND, "floor": at.FLOOR,
    "exp": at.EXPONENTIAL, "log": at.LOGARITHM,
}  # fmt: skip
#: An instruction and its argument; that of a jump counts instructions of the expression.
Instruction = tuple[int, int]
JUMPS = (at.JUMP, at.JUMP_UNLESS, at.AND_THEN, at.OR_ELSE)


class Formulas:
    """Writes records, lists, constants and expressions behind what ``code`` has already."""

    def __init__(self, code: list[int], vocabulary: Vocabulary, slots: dict[str, int], groups: dict[str, int]) -> None:
        self.code, self.numbers = code, [0.0]
        self.vocabulary, self.slots, self.groups = vocabulary, slots, groups
        #: Most values that an expression has on the stack, and most that effects compute before they are written.
        self.deepest, self.widest = 1, 1

    def record(self, *fields: int) -> int:
        """Write a record; return its address."""
        address = len(self.code)
        self.code += map(int, fields)
        return address

    def listed(self, entries: Iterable[int], length: int | None = None) -> int:
        """Write a list, whose entries may have several fields; return its address."""
        fields = list(entries)
        return self.record(len(fields) if length is None else length, *fields)

    def records(self, rows: Sequence[Sequence[int]], size: int) -> int:
        """Write a list of records of a size; return its address."""
        if any(len(row) != size for row in rows):
            raise ValueError(f"These records have {[len(row) for row in rows]} fields, not {size}.")
        return self.listed(itertools.chain.from_iterable(rows), len(rows))

    def number(self, number: float) -> int:
        """Write a number; return where it is."""
        self.numbers.append(float(number))
        return len(self.numbers) - 1

    def constant(self, value: RuntimeValue) -> int:
        """Write a value; return its address."""
        return self.record(*self.constant_fields(value))

    def constant_fields(self, value: RuntimeValue) -> tuple[int, int, int]:
        """Return the fields of a constant; its number is written."""
        if value is None:
            return at.NONE, 0, 0
        if isinstance(value, str):
            return at.NAME, self.vocabulary.number(value), 0
        if isinstance(value, frozenset):
            return at.SET, self.vocabulary.bits(value), 0
        if isinstance(value, int) and not abs(value) < at.EXACT:
            raise UntranslatableError("a whole number is too large")
        kind = at.TRUTH if isinstance(value, bool) else at.WHOLE if isinstance(value, int) else at.REAL
        return kind, 0, self.number(value)

    def expression(self, tree: ex.Expression | None) -> int:
        """Write an expression; return its address, 0 for none."""
        if tree is None:
            return 0
        made: list[Instruction] = []
        self._emit(tree, made)
        self.deepest = max(self.deepest, _depth(tree))
        address = len(self.code)
        self.code.append(address + 1 + 2 * len(made))
        for instruction, argument in made:
            target = address + 1 + 2 * argument
            self.code += [instruction, target if instruction in JUMPS else argument]
        return address

    def _emit(self, tree: ex.Expression, made: list[Instruction]) -> None:
        match tree:
            case ex.Number(value) | ex.Constant(value):
                made.append((at.CONSTANT, self.constant(value)))
            case ex.Members(values):
                made.append((at.CONSTANT, self.constant(values)))
            case ex.Variable(name):
                made.append((at.VARIABLE, self.slots[name]))
            case ex.BuiltIn(name):
                made.append((_instruction(BUILT_INS, name), 0))
            case ex.Call("where", ex.Constant(str(group))):
                made.append((at.WHERE, self.groups[group]))
            case ex.Call(function, argument):
                self._emit(argument, made)
                made.append((_instruction(FUNCTIONS, function), 0))
            case ex.Compute(function, (first, *others)):
                self._emit(first, made)
                for other in others:
                    self._emit(other, made)
                    made.append((_instruction(ARITHMETIC, function), 0))
                if not others:
                    made.append((_instruction(ARITHMETIC, function), 0))
            case ex.Classes(cases):
                self._emit_classes(cases, made)
            case ex.Unary(operator, operand):
                self._emit(operand, made)
                made.append((at.NOT if operator == "not" else at.NEGATE, 0))
            case ex.Binary("and" | "or" as operator, left, right):
                self._emit(left, made)
                jump = len(made)
                made.append((at.AND_THEN, 0))
                self._emit(right, made)
                made[jump] = (at.AND_THEN if operator == "and" else at.OR_ELSE, len(made))
                made.append((at.AS_TRUTH, 0))
            case ex.Binary(operator, left, right):
                self._emit(left, made)
                self._emit(right, made)
                made.append((_instruction(OPERATORS, operator), 0))
            case ex.Recent():
                raise UntranslatableError("it uses 'recent', which only the scalar kernel supports")
            case _:  # pragma: no cover - a word that was never resolved
                raise TypeError(f"not a resolved expression: {tree}")

    def _emit_classes(self, cases: tuple[tuple[ex.Expression | None, str], ...], made: list[Instruction]) -> None:
        ends = []
        for guard, name in cases:
            if guard is not None:
                self._emit(guard, made)
                jump = len(made)
                made.append((at.JUMP_UNLESS, 0))
            made.append((at.CONSTANT, self.constant(name)))
            ends.append(len(made))
            made.append((at.JUMP, 0))
            if guard is not None:
                made[jump] = (at.JUMP_UNLESS, len(made))
        made.append((at.CONSTANT, self.constant(None)))
        for jump in ends:
            made[jump] = (at.JUMP, len(made))


def _instruction(known: Mapping[str, int], name: str) -> int:
    if name not in known:
        raise UntranslatableError(f"it uses '{name}', which only the scalar kernel supports")
    return known[name]


def _depth(tree: ex.Expression | None) -> int:
    """Return how many values an expression has on the stack at most."""
    match tree:
        case ex.Unary(_, operand) | ex.Call(_, operand):
            return _depth(operand)
        case ex.Binary(_, left, right):
            return max(_depth(left), 1 + _depth(right))
        case ex.Compute(_, (first, *others)):
            return max([_depth(first), *(1 + _depth(other) for other in others)])
        case ex.Classes(cases):
            return max(_depth(guard) for guard, _ in cases)
    return 1
