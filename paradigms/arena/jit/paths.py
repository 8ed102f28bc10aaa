"""Where a life is and has been, for expressions: what ``traces`` and ``path`` compute, on the arrays of ``layout``.

``trace`` has of each step the pose before it and the pose after moving, both plus the action.
"""

from __future__ import annotations

import math
from typing import Any

from cheesebench.interfaces import FORWARD
from cheesebench.paradigms.arena.jit import layout as at
from cheesebench.paradigms.arena.jit.compiled import compiled
from cheesebench.paradigms.arena.jit.values import entries, kind_of, refers_to
from cheesebench.paradigms.arena.traces import DEPARTURE

_TO_DEGREES = 180.0 / math.pi


@compiled
def cell_of(code: Any, pose: int) -> int:
    """Return the cell of a pose."""
    return pose // (4 * code[at.TURNS])  # type: ignore[no-any-return]


@compiled
def cell_here(code: Any, lane: Any) -> int:
    """Return the cell that the subject stands on."""
    return cell_of(code, lane[at.POSE])


@compiled
def column_of(code: Any, cell: int) -> int:
    """Return the column of a cell."""
    return code[code[at.COLUMNS] + cell]  # type: ignore[no-any-return]


@compiled
def row_of(code: Any, cell: int) -> int:
    """Return the row of a cell."""
    return code[code[at.ROWS] + cell]  # type: ignore[no-any-return]


@compiled
def degrees(code: Any, lane: Any) -> int:
    """Return the heading, clockwise from north."""
    return lane[at.POSE] // 4 % code[at.TURNS] * (360 // code[at.TURNS])  # type: ignore[no-any-return]


@compiled
def inside(code: Any, name: int, cell: int) -> bool:
    """Return whether a cell is in a place."""
    return code[code[code[at.PLACE_INSIDE] + name] + cell] != 0  # type: ignore[no-any-return]


@compiled
def within(code: Any, lane: Any, slot: int, cell: int) -> bool:
    """Return whether a cell is in the place, or one of the places, that a slot names."""
    if kind_of(lane, slot) == at.NAME:
        return inside(code, refers_to(lane, slot), cell)
    if kind_of(lane, slot) == at.SET:
        bits, entry = refers_to(lane, slot), code[at.ELEMENT_NAMES] + 1
        while bits:
            if bits & 1 and code[entry] != at.NOTHING and inside(code, code[entry], cell):
                return True
            bits, entry = bits >> 1, entry + 1
    return False


@compiled
def steps_in(code: Any, lane: Any, trace: Any, slot: int) -> int:
    """Return the steps of this trial that ended in places."""
    count = 0
    for step in range(lane[at.STEPS]):
        count += within(code, lane, slot, cell_of(code, trace[2 * step + 1]))
    return count


@compiled
def entries_into(code: Any, lane: Any, trace: Any, slot: int) -> int:
    """Return how often the subject walked into places from outside all of them."""
    count = 0
    for step in range(lane[at.STEPS]):
        left, entered = cell_of(code, trace[2 * step]), cell_of(code, trace[2 * step + 1])
        count += left != entered and within(code, lane, slot, entered) and not within(code, lane, slot, left)
    return count


@compiled
def moves(lane: Any, trace: Any) -> int:
    """Return the steps that led to another cell."""
    count = 0
    for step in range(lane[at.STEPS]):
        entry = trace[2 * step + 1]
        count += entry & 3 == FORWARD and entry >> 2 != trace[2 * step] >> 2
    return count


@compiled
def distance(code: Any, lane: Any, slot: int) -> float:
    """Return the distance to the nearest cell of places; NaN where there is none."""
    nearest = math.inf
    if kind_of(lane, slot) == at.NAME:
        cells = code[code[at.PLACE_CELLS] + refers_to(lane, slot)]
        for entry in entries(code, cells):
            nearest = min(nearest, _distance_to(code, lane, code[entry]))
    else:
        for cell in range(code[at.CELLS]):
            if within(code, lane, slot, cell):
                nearest = min(nearest, _distance_to(code, lane, cell))
    return nearest if nearest < math.inf else math.nan


@compiled
def _distance_to(code: Any, lane: Any, cell: int) -> float:
    here = cell_here(code, lane)
    return _length(column_of(code, cell) - column_of(code, here), row_of(code, cell) - row_of(code, here))


@compiled
def _length(across: int, down: int) -> float:
    return math.sqrt(float(across * across + down * down))


@compiled
def middle(code: Any, lane: Any, slot: int) -> tuple[float, float]:
    """Return column and row of the middle of places, which may be solid; NaN where there is none."""
    count, columns, rows = 0, 0, 0
    if kind_of(lane, slot) == at.NAME:
        cells = code[code[at.PLACE_CELLS] + refers_to(lane, slot)]
        for entry in entries(code, cells):
            count += 1
            columns += column_of(code, code[entry])
            rows += row_of(code, code[entry])
    else:
        for cell in range(code[at.CELLS]):
            if within(code, lane, slot, cell):
                count += 1
                columns += column_of(code, cell)
                rows += row_of(code, cell)
    for bit in range(code[code[at.ELEMENT_NAMES]] if kind_of(lane, slot) == at.SET else 1):
        name = at.NOTHING
        if kind_of(lane, slot) == at.NAME:
            name = refers_to(lane, slot)
        elif kind_of(lane, slot) == at.SET and refers_to(lane, slot) >> bit & 1:
            name = code[code[at.ELEMENT_NAMES] + 1 + bit]
        if name != at.NOTHING:
            solid = code[at.SOLIDS] + 3 * name  # how many squares, and the sums of their columns and rows
            count += code[solid]
            columns += code[solid + 1]
            rows += code[solid + 2]
    return (columns / count, rows / count) if count else (math.nan, math.nan)


@compiled
def bearing_error(code: Any, lane: Any, slot: int) -> float:
    """Return the angle between the heading and the way to the middle of places; NaN in that middle."""
    here = cell_here(code, lane)
    column, row = middle(code, lane, slot)
    return _between(float(degrees(code, lane)), _bearing(column - column_of(code, here), row - row_of(code, here)))


@compiled
def departure_error(code: Any, lane: Any, trace: Any, slot: int) -> float:
    """Return the angle between the way to the middle of places and the way taken; NaN before the subject set out."""
    origin = cell_of(code, lane[at.PLACED_POSE] if lane[at.PLACED_STEP] != at.NOTHING else lane[at.FIRST])
    from_column, from_row = column_of(code, origin), row_of(code, origin)
    for step in range(max(lane[at.PLACED_STEP], 0), lane[at.STEPS]):
        cell = cell_of(code, trace[2 * step + 1])
        across, down = column_of(code, cell) - from_column, row_of(code, cell) - from_row
        if _length(across, down) >= DEPARTURE:
            to_column, to_row = middle(code, lane, slot)
            return _between(_bearing(float(across), float(down)), _bearing(to_column - from_column, to_row - from_row))
    return math.nan


@compiled
def _bearing(across: float, down: float) -> float:
    """Return the direction of a way, clockwise from north; NaN of none."""
    if across == 0.0 and down == 0.0:
        return math.nan
    return math.atan2(across, -down) * _TO_DEGREES


@compiled
def _between(one: float, other: float) -> float:
    return abs((one - other + 180.0) % 360.0 - 180.0)
