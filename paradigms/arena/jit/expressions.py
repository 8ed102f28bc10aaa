"""Evaluates expressions on a stack of slots; for their meaning see ``evaluate``."""

from __future__ import annotations

from typing import Any

from cheesebench.paradigms.arena.jit import arithmetic, paths
from cheesebench.paradigms.arena.jit import layout as at
from cheesebench.paradigms.arena.jit.compiled import compiled
from cheesebench.paradigms.arena.jit.values import (
    copy,
    element,
    equal,
    holds,
    is_number,
    kind_of,
    put,
    put_constant,
    put_name,
    put_result,
    put_truth,
    refers_to,
    size,
)

_modulo, _floor, _nearest = compiled(arithmetic.modulo), compiled(arithmetic.floor), compiled(arithmetic.nearest)
_exponential, _logarithm = compiled(arithmetic.exponential), compiled(arithmetic.logarithm)


@compiled
def evaluate(code: Any, numbers: Any, lane: Any, real: Any, trace: Any, expression: int, top: int) -> None:
    """Compute an expression; its value is then in the slot ``top``, and what is above may have changed."""
    place, end, slot = expression + 1, code[expression], top - 1
    while place < end:
        instruction, argument = code[place], code[place + 1]
        place += 2
        if instruction == at.CONSTANT:
            slot += 1
            put_constant(code, numbers, lane, real, slot, argument)
        elif instruction == at.VARIABLE:
            slot += 1
            copy(lane, real, slot, argument)
        elif instruction <= at.MOVES_MADE:
            slot += 1
            _put_moment(code, lane, real, trace, instruction, slot)
        elif instruction == at.WHERE:
            slot += 1
            put_name(lane, real, slot, lane[code[at.OCCUPIED] + argument])
        elif instruction <= at.ROW:
            _call(code, lane, real, trace, instruction, slot)
        elif instruction == at.NOT:
            put_truth(lane, real, slot, not holds(lane, real, slot))
        elif instruction == at.NEGATE:
            kind = kind_of(lane, slot)
            _check_number(lane, slot)
            put(lane, real, slot, at.REAL if kind == at.REAL else at.WHOLE, 0, 0.0 - real[at.REALS + slot])
        elif at.ABSOLUTE <= instruction <= at.LOGARITHM:
            _compute(lane, real, instruction, slot)
        elif instruction == at.JUMP:
            place = argument
        elif instruction == at.JUMP_UNLESS:
            if not holds(lane, real, slot):
                place = argument
            slot -= 1
        elif instruction == at.AND_THEN or instruction == at.OR_ELSE:
            if holds(lane, real, slot) == (instruction == at.OR_ELSE):
                place = argument
            else:
                slot -= 1
        elif instruction == at.AS_TRUTH:
            put_truth(lane, real, slot, holds(lane, real, slot))
        else:
            slot -= 1
            _combine(code, numbers, lane, real, instruction, slot)


@compiled
def true(code: Any, numbers: Any, lane: Any, real: Any, trace: Any, expression: int, top: int) -> bool:
    """Return whether an expression holds."""
    evaluate(code, numbers, lane, real, trace, expression, top)
    return holds(lane, real, top)


@compiled
def _check_number(lane: Any, slot: int) -> None:
    if not is_number(lane, slot) and not lane[at.ERROR]:
        lane[at.ERROR] = at.NOT_A_NUMBER


@compiled
def _put_moment(code: Any, lane: Any, real: Any, trace: Any, instruction: int, slot: int) -> None:
    """Write the value of a built-in name."""
    if instruction == at.IT_NAME:
        put_name(lane, real, slot, lane[at.IT])
    elif instruction == at.LAST_NAME:
        put_name(lane, real, slot, lane[at.LAST])
    elif instruction == at.BLOCK_NUMBER:
        put_name(lane, real, slot, code[lane[at.BLOCK] + at.BLOCK_NAME])
    elif instruction == at.STATE_IS:
        put_name(lane, real, slot, code[lane[at.STATE] + at.STATE_NAME])
    else:
        number = 0
        if instruction == at.SESSION_NUMBER:
            number = lane[at.SESSION]
        elif instruction == at.TRIAL_NUMBER_IN:
            number = lane[at.TRIAL]
        elif instruction == at.SUBJECT_NUMBER:
            number = lane[at.SUBJECT]
        elif instruction == at.STEP_NUMBER:
            number = lane[at.STEPS]
        elif instruction == at.COLUMN_HERE:
            number = paths.column_of(code, paths.cell_here(code, lane))
        elif instruction == at.ROW_HERE:
            number = paths.row_of(code, paths.cell_here(code, lane))
        elif instruction == at.HEADING_HERE:
            number = paths.degrees(code, lane)
        else:
            number = paths.moves(lane, trace)
        put(lane, real, slot, at.WHOLE, 0, float(number))


@compiled
def _call(code: Any, lane: Any, real: Any, trace: Any, instruction: int, slot: int) -> None:
    """Replace an argument by what a function gives for it."""
    if instruction == at.SIZE:
        if kind_of(lane, slot) != at.SET and not lane[at.ERROR]:
            lane[at.ERROR] = at.NOT_A_NUMBER
        put(lane, real, slot, at.WHOLE, 0, float(size(refers_to(lane, slot))))
    elif instruction == at.TIME:
        put(lane, real, slot, at.WHOLE, 0, float(paths.steps_in(code, lane, trace, slot)))
    elif instruction == at.ENTRIES:
        put(lane, real, slot, at.WHOLE, 0, float(paths.entries_into(code, lane, trace, slot)))
    elif instruction == at.DISTANCE:
        put(lane, real, slot, at.REAL, 0, paths.distance(code, lane, slot))
    elif instruction == at.BEARING_ERROR:
        put(lane, real, slot, at.REAL, 0, paths.bearing_error(code, lane, slot))
    elif instruction == at.DEPARTURE_ERROR:
        put(lane, real, slot, at.REAL, 0, paths.departure_error(code, lane, trace, slot))
    else:
        column, row = paths.middle(code, lane, slot)
        put(lane, real, slot, at.REAL, 0, column if instruction == at.COLUMN else row)


@compiled
def _compute(lane: Any, real: Any, instruction: int, slot: int) -> None:
    """Replace a number by what a function of one number makes of it."""
    _check_number(lane, slot)
    number, kind = real[at.REALS + slot], at.REAL
    if instruction == at.ABSOLUTE:
        result = abs(number)
        kind = at.REAL if kind_of(lane, slot) == at.REAL else at.WHOLE
    elif instruction == at.EXPONENTIAL:
        result = _exponential(number)
    elif instruction == at.LOGARITHM:
        result = _logarithm(number)
    else:
        result = _nearest(number) if instruction == at.ROUND else _floor(number)
        kind = at.WHOLE if -at.EXACT < result < at.EXACT else at.REAL
    put(lane, real, slot, kind, 0, result + 0.0)


@compiled
def _choose(lane: Any, real: Any, slot: int, is_second: bool) -> None:
    """Keep the smaller (or larger) of two numbers, the first of equal ones; NaN where one is undefined."""
    left, right = real[at.REALS + slot], real[at.REALS + slot + 1]
    chosen = slot + 1 if is_second else slot
    kind, number = at.REAL if kind_of(lane, chosen) == at.REAL else at.WHOLE, real[at.REALS + chosen]
    if left != left or right != right:
        kind, number = at.REAL, float("nan")
    put(lane, real, slot, kind, 0, number)


@compiled
def _combine(code: Any, numbers: Any, lane: Any, real: Any, instruction: int, slot: int) -> None:
    """Replace two values by what an operator makes of them."""
    if instruction == at.EQUAL or instruction == at.UNEQUAL:
        put_truth(lane, real, slot, equal(lane, real, slot, slot + 1) == (instruction == at.EQUAL))
        return
    if instruction == at.IN:
        if kind_of(lane, slot + 1) != at.SET and not lane[at.ERROR]:
            lane[at.ERROR] = at.NOT_A_NUMBER
        bit = element(code, numbers, lane, real, slot)
        put_truth(lane, real, slot, bit != at.NOTHING and refers_to(lane, slot + 1) >> bit & 1 != 0)
        return
    _check_number(lane, slot)
    _check_number(lane, slot + 1)
    left, right = real[at.REALS + slot], real[at.REALS + slot + 1]
    if instruction == at.ADD:
        put_result(lane, real, slot, slot + 1, left + right)
    elif instruction == at.SUBTRACT:
        put_result(lane, real, slot, slot + 1, left - right)
    elif instruction == at.MULTIPLY:
        put_result(lane, real, slot, slot + 1, left * right)
    elif instruction == at.DIVIDE:
        # What is undefined is no number: it compares as false.
        put(lane, real, slot, at.REAL, 0, left / right + 0.0 if right != 0.0 else float("nan"))
    elif instruction == at.MODULO:
        put_result(lane, real, slot, slot + 1, _modulo(left, right))
    elif instruction == at.SMALLER:
        _choose(lane, real, slot, right < left)
    elif instruction == at.LARGER:
        _choose(lane, real, slot, right > left)
    elif instruction == at.LESS:
        put_truth(lane, real, slot, left < right)
    elif instruction == at.AT_MOST:
        put_truth(lane, real, slot, left <= right)
    elif instruction == at.MORE:
        put_truth(lane, real, slot, left > right)
    elif instruction == at.AT_LEAST:
        put_truth(lane, real, slot, left >= right)
