"""Values of the language in the slots of a life: see ``layout``."""

from __future__ import annotations

from typing import Any

from cheesebench.paradigms.arena.jit import layout as at
from cheesebench.paradigms.arena.jit.compiled import compiled


@compiled
def entries(code: Any, address: int, size: int = 1) -> range:
    """Return the addresses of the entries of a list, which have ``size`` fields each."""
    return range(address + 1, address + 1 + size * code[address], size)


@compiled
def kind_of(lane: Any, slot: int) -> int:
    """Return the kind of a slot's value."""
    return lane[at.SLOTS + 2 * slot]  # type: ignore[no-any-return]


@compiled
def refers_to(lane: Any, slot: int) -> int:
    """Return the number of a slot's name, or the bits of its set."""
    return lane[at.SLOTS + 2 * slot + 1]  # type: ignore[no-any-return]


@compiled
def put(lane: Any, real: Any, slot: int, kind: int, refers: int, number: float) -> None:
    """Write a value into a slot."""
    lane[at.SLOTS + 2 * slot] = kind
    lane[at.SLOTS + 2 * slot + 1] = refers
    real[at.REALS + slot] = number


@compiled
def put_name(lane: Any, real: Any, slot: int, name: int) -> None:
    """Write a name, or (``NOTHING``) none."""
    if name == at.NOTHING:
        put(lane, real, slot, at.NONE, 0, 0.0)
    else:
        put(lane, real, slot, at.NAME, name, 0.0)


@compiled
def put_truth(lane: Any, real: Any, slot: int, truth: bool) -> None:
    """Write whether something holds."""
    put(lane, real, slot, at.TRUTH, 0, 1.0 if truth else 0.0)


@compiled
def put_constant(code: Any, numbers: Any, lane: Any, real: Any, slot: int, constant: int) -> None:
    """Write a constant of the program."""
    put(lane, real, slot, code[constant + at.KIND], code[constant + at.REFERS], numbers[code[constant + at.NUMBER]])


@compiled
def copy(lane: Any, real: Any, slot: int, source: int) -> None:
    """Write what another slot holds."""
    put(lane, real, slot, kind_of(lane, source), refers_to(lane, source), real[at.REALS + source])


@compiled
def is_number(lane: Any, slot: int) -> bool:
    """Return whether a value can be computed with; truths are 0 and 1."""
    return at.TRUTH <= kind_of(lane, slot) <= at.REAL


@compiled
def holds(lane: Any, real: Any, slot: int) -> bool:
    """Return whether a value counts as true."""
    kind = kind_of(lane, slot)
    if kind == at.SET:
        return refers_to(lane, slot) != 0
    return kind == at.NAME or (kind != at.NONE and real[at.REALS + slot] != 0.0)


@compiled
def equal(lane: Any, real: Any, one: int, other: int) -> bool:
    """Return whether two slots hold the same; a name never equals a number."""
    if is_number(lane, one) and is_number(lane, other):
        return real[at.REALS + one] == real[at.REALS + other]  # type: ignore[no-any-return]
    return kind_of(lane, one) == kind_of(lane, other) and refers_to(lane, one) == refers_to(lane, other)


@compiled
def put_result(lane: Any, real: Any, slot: int, other: int, result: float) -> None:
    """Write the sum, difference or product of two slots; beyond what is exact, whole numbers become others."""
    whole = kind_of(lane, slot) != at.REAL and kind_of(lane, other) != at.REAL and -at.EXACT < result < at.EXACT
    put(lane, real, slot, at.WHOLE if whole else at.REAL, 0, result + 0.0)  # there is no -0.0


@compiled
def element(code: Any, numbers: Any, lane: Any, real: Any, slot: int) -> int:
    """Return the bit of a value as a member of sets; NOTHING where no set can have it."""
    if kind_of(lane, slot) == at.NAME:
        return code[code[at.ELEMENT_OF] + refers_to(lane, slot)]  # type: ignore[no-any-return]
    if is_number(lane, slot):
        for bit in range(code[code[at.ELEMENT_NAMES]]):
            if numbers[code[at.ELEMENT_NUMBERS] + bit] == real[at.REALS + slot]:
                return bit
    return at.NOTHING


@compiled
def size(bits: int) -> int:
    """Return how many members a set has."""
    count = 0
    while bits:
        bits &= bits - 1
        count += 1
    return count
