"""Compiles resolved expressions to functions of a subject's memory: closures, never ``eval``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cheesebench.paradigms.arena.jit import arithmetic
from cheesebench.paradigms.arena.jit.layout import EXACT
from cheesebench.protocol import expressions as ex

#: Of a life (``life.ArenaSubject``), which has the names and functions of the language as attributes and methods.
Function = Callable[[Any], Any]


def _divide(left: float, right: float) -> float:
    # An undefined value is NaN: comparisons are false, and a measure is recorded as missing.
    return left / right + 0 if right else float("nan")


def _bounded(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Convert integers that floats cannot represent exactly to floats, or `n: n * n` would fill the memory.

    ``+ 0`` turns -0.0 into 0.0, so that equal numbers of one type are identical.
    """

    def compute_bounded(left: float, right: float) -> float:
        result: float = compute(left, right) + 0
        return result if -EXACT < result < EXACT else float(result)

    return compute_bounded


def _modulo(left: float, right: float) -> float:
    rest = arithmetic.modulo(float(left), float(right))
    return int(rest) if isinstance(left, int) and isinstance(right, int) and right else rest


def _whole(compute: Callable[[float], float]) -> Callable[[float], float]:
    """Return a function whose values are whole numbers, where these are exact."""

    def compute_whole(number: float) -> float:
        result = compute(float(number))
        return int(result) if -EXACT < result < EXACT else result

    return compute_whole


def _smallest(numbers: Sequence[float]) -> float:
    """Return the first of the smallest; NaN where one is undefined."""
    return math.nan if any(map(math.isnan, numbers)) else min(numbers) + 0


def _largest(numbers: Sequence[float]) -> float:
    """Return the first of the largest; NaN where one is undefined."""
    return math.nan if any(map(math.isnan, numbers)) else max(numbers) + 0


#: The functions of one number; of several.
_ONE: Mapping[str, Callable[[float], float]] = {
    "abs": lambda number: abs(number) + 0, "round": _whole(arithmetic.nearest), "floor": _whole(arithmetic.floor),
    "exp": lambda number: arithmetic.exponential(float(number)),
    "log": lambda number: arithmetic.logarithm(float(number)),
}  # fmt: skip
_SEVERAL: Mapping[str, Callable[[Sequence[float]], float]] = {"min": _smallest, "max": _largest}
#: Operators of an expression that is worth remembering, and most names that it may read (few values, few of them).
_LONG, _FEW = 6, 3
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "+": _bounded(operator.add), "-": _bounded(operator.sub), "*": _bounded(operator.mul), "/": _divide, "%": _modulo,
    "in": lambda member, collection: member in collection,
}  # fmt: skip


def compile_expression(tree: ex.Expression) -> Function:
    """Return a function of a subject (``life.ArenaSubject``) that computes the expression's value."""
    names = _read_by_long(tree)
    return _function(tree, compile_expression) if names is None else _remembering(_plain_function(tree), names)


def _read_by_long(tree: ex.Expression) -> Sequence[str] | None:
    """Return the variables of an expression that is worth caching: long, with few variables and no path."""
    nodes = list(ex.walk(tree))
    names = dict.fromkeys(node.name for node in nodes if isinstance(node, ex.Variable | ex.BuiltIn))
    moments = {node.name for node in nodes if isinstance(node, ex.BuiltIn)} - {"it"}
    paths = {node.function for node in nodes if isinstance(node, ex.Call)} - {"size"}
    paths |= {"recent" for node in nodes if isinstance(node, ex.Recent)}
    long = sum(isinstance(node, ex.Unary | ex.Binary) for node in nodes) >= _LONG
    return list(names) if long and len(names) <= _FEW and not moments and not paths else None


@dataclass(slots=True)
class _Held:
    """The part of a memory that a cached expression uses."""

    values: dict[str, Any]
    it: str | None


def _remembering(function: Function, names: Sequence[str]) -> Function:
    """Cache a function of these names; numbers of different types are different keys."""

    @lru_cache(maxsize=1024, typed=True)
    def compute(it: str | None, *values: Any) -> Any:
        return function(_Held(dict(zip(variables, values, strict=True)), it))

    variables = [name for name in names if name != "it"]
    if "it" not in names:
        return lambda memory: compute(None, *[memory.values[name] for name in variables])
    return lambda memory: compute(memory.it, *[memory.values[name] for name in variables])


def _plain_function(tree: ex.Expression) -> Function:
    return _function(tree, _plain_function)


def _function(tree: ex.Expression, compiled: Callable[[ex.Expression], Function]) -> Function:
    match tree:
        case ex.Number(value) | ex.Constant(value) | ex.Members(value):
            return lambda memory: value
        case ex.Variable(name):
            return lambda memory: memory.values[name]
        case ex.BuiltIn(name):
            return operator.attrgetter(name)
        case ex.Call("where", ex.Constant(group)):
            return lambda memory: memory.occupied[group]
        case ex.Call("size", argument):
            collection = compiled(argument)
            return lambda memory: len(collection(memory))
        case ex.Call(function, argument):
            place, method = compiled(argument), operator.attrgetter(function)
            return lambda memory: method(memory)(place(memory))
        case ex.Recent() as earlier:
            return lambda memory: memory.recent(earlier)
        case ex.Compute(function, (argument,)):
            number, of_one = compiled(argument), _ONE[function]
            return lambda memory: of_one(number(memory))
        case ex.Compute(function, arguments):
            numbers, of_all = [compiled(argument) for argument in arguments], _SEVERAL[function]
            return lambda memory: of_all([number(memory) for number in numbers])
        case ex.Classes(cases):
            guarded = [(None if guard is None else compiled(guard), name) for guard, name in cases]
            return lambda memory: next((name for guard, name in guarded if guard is None or guard(memory)), None)
        case ex.Unary("not", operand):
            truth = compiled(operand)
            return lambda memory: not truth(memory)
        case ex.Unary(_, operand):
            number = compiled(operand)
            return lambda memory: 0 - number(memory)
        case ex.Binary("and", left, right):
            first, second = compiled(left), compiled(right)
            return lambda memory: bool(first(memory) and second(memory))
        case ex.Binary("or", left, right):
            first, second = compiled(left), compiled(right)
            return lambda memory: bool(first(memory) or second(memory))
        case ex.Binary(sign, left, ex.Number(value) | ex.Constant(value) | ex.Members(value)):
            first, compute = compiled(left), _OPERATORS[sign]
            return lambda memory: compute(first(memory), value)
        case ex.Binary(sign, ex.Number(value), right):
            second, compute = compiled(right), _OPERATORS[sign]
            return lambda memory: compute(value, second(memory))
        case ex.Binary(sign, left, right):
            first, second, compute = compiled(left), compiled(right), _OPERATORS[sign]
            return lambda memory: compute(first(memory), second(memory))
    raise TypeError(f"not a resolved expression: {tree}")  # pragma: no cover - a word that was never resolved


def constant_value(tree: ex.Expression | None) -> float | None:
    """Return the value of an expression that is a literal number (possibly negative), else None."""
    match tree:
        case ex.Number(value):
            return float(value)
        case ex.Unary("-", ex.Number(value)):
            return -float(value)
    return None


def groups_watched(tree: ex.Expression | None) -> frozenset[str]:
    """Return the groups whose ``where()`` an expression reads."""
    found = set()
    for node in ex.walk(tree):
        match node:
            case ex.Call("where", ex.Constant(str(group))):
                found.add(group)
    return frozenset(found)
