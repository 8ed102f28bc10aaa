"""Schedule and draws of the compiled kernel: ``schedule`` and ``draws`` implemented on arrays."""

from __future__ import annotations

from typing import Any

from cheesebench.paradigms.arena.draws import MAX_ATTEMPTS
from cheesebench.paradigms.arena.jit import layout as at
from cheesebench.paradigms.arena.jit.compiled import compiled
from cheesebench.paradigms.arena.jit.expressions import true
from cheesebench.paradigms.arena.jit.hashing import append_byte, append_number, append_text, below, bits
from cheesebench.paradigms.arena.jit.values import entries, put, put_constant

BAR = ord("|")


@compiled
def append_listed(text: Any, length: int, code: Any, listed: int) -> int:
    """Write a text of the program behind what is there; return the new length."""
    return append_text(text, length, code[listed + 1 : listed + 1 + code[listed]])


# -- the schedule


@compiled
def advance(code: Any, lane: Any) -> int:
    """Go on to the next trial of the schedule, which begins again when it is over; return the scopes that begin."""
    began = lane[at.BEGAN]
    while True:
        if not lane[at.OPEN]:
            began = _open_block(code, lane, began)
        block = lane[at.BLOCK]
        lane[at.TRIAL] += 1
        if lane[at.TRIAL] > code[block + at.BLOCK_TRIALS]:
            lane[at.TRIAL] = 1
            lane[at.SESSION] += 1
        if lane[at.SESSION] > code[block + at.BLOCK_SESSIONS] or _reached(code, lane, block) or _spent(code, lane):
            lane[at.OPEN] = 0
            continue
        lane[at.BLOCK_TOTAL] += 1
        if lane[at.TRIAL] == 1:
            began |= at.SESSION_SCOPE
        lane[at.BEGAN] = 0
        return began | at.TRIAL_SCOPE  # type: ignore[no-any-return]


@compiled
def is_over(code: Any, lane: Any) -> bool:
    """Return whether the trial that has just ended is the last one of the schedule."""
    block = lane[at.BLOCK]
    if block + at.BLOCK_SIZE != code[at.BLOCKS_END]:
        return False
    if _spent(code, lane):
        return True
    is_last = lane[at.TRIAL] == code[block + at.BLOCK_TRIALS] and lane[at.SESSION] == code[block + at.BLOCK_SESSIONS]
    return lane[at.REPEAT] + 1 == code[block + at.BLOCK_REPEAT] and (is_last or _reached(code, lane, block))


@compiled
def _open_block(code: Any, lane: Any, began: int) -> int:
    """Begin the next repetition of a block, or the next block, or the first one again."""
    block = lane[at.BLOCK]
    lane[at.REPEAT] += 1
    if block == 0:
        block, lane[at.REPEAT], lane[at.BLOCK_TOTAL] = code[at.BLOCKS], 0, 0
    elif lane[at.REPEAT] == code[block + at.BLOCK_REPEAT] or _spent(code, lane):
        block, lane[at.REPEAT], lane[at.BLOCK_TOTAL] = block + at.BLOCK_SIZE, 0, 0
        if block == code[at.BLOCKS_END]:
            block, began = code[at.BLOCKS], 0
    lane[at.BLOCK] = block
    lane[at.RECENT_COUNT], lane[at.SESSION], lane[at.TRIAL], lane[at.OPEN] = 0, 1, 0, 1
    return began | at.BLOCK_SCOPE


@compiled
def _spent(code: Any, lane: Any) -> bool:
    """Return whether the repetitions of the block have had all their trials."""
    most = code[lane[at.BLOCK] + at.BLOCK_MOST]
    return most != 0 and lane[at.BLOCK_TOTAL] >= most  # type: ignore[no-any-return]


@compiled
def note(code: Any, lane: Any, outcome: int) -> None:
    """Remember how a trial ended."""
    longest = max(code[lane[at.BLOCK] + at.UNTIL_OF], 1)
    lane[code[at.RECENT] + lane[at.RECENT_COUNT] % longest] = outcome
    lane[at.RECENT_COUNT] += 1


@compiled
def _reached(code: Any, lane: Any, block: int) -> bool:
    of, names = code[block + at.UNTIL_OF], code[block + at.UNTIL_NAMES]
    if of == 0:
        return False
    count = 0
    for place in range(min(of, lane[at.RECENT_COUNT])):
        for entry in entries(code, names):
            count += code[entry] == lane[code[at.RECENT] + place]
    return count >= code[block + at.UNTIL_COUNT]  # type: ignore[no-any-return]


# -- draws


@compiled
def draw_rows(code: Any, numbers: Any, lane: Any, real: Any, trace: Any, text: Any, began: int) -> None:
    """3: draws whose scope begins, in file order."""
    for draw in entries(code, code[at.DRAWS], at.DRAW_SIZE):
        if not code[draw + at.DRAW_SCOPE] & began:
            continue
        memory, keep_if = code[draw + at.DRAW_MEMORY], code[draw + at.DRAW_KEEP_IF]
        if lane[memory + at.DRAWN] and keep_if and true(code, numbers, lane, real, trace, keep_if, code[at.STACK]):
            continue
        if code[draw + at.DRAW_PICK] and code[draw + at.DRAW_ORDER] == at.RANDOM:
            _draw_subset(code, lane, real, text, draw, memory)
        else:
            row = _next_row(code, lane, text, draw, memory)
            columns = code[draw + at.DRAW_SLOTS]
            for column in range(code[columns]):
                cell = code[draw + at.DRAW_CELLS] + (row * code[columns] + column) * at.CONSTANT_SIZE
                put_constant(code, numbers, lane, real, code[columns + 1 + column], cell)
            if code[draw + at.DRAW_MAX_RUN]:
                _lengthen_run(lane, memory, code[code[draw + at.DRAW_FIRSTS] + row])
        lane[memory + at.DRAWN] += 1


@compiled
def _key(code: Any, lane: Any, text: Any, draw: int, drawn: int) -> int:
    """Write what the random numbers of a draw depend on; return the length of the text."""
    length = append_listed(text, lane[at.PREFIX], code, code[draw + at.DRAW_TEXT])
    return append_number(text, append_byte(text, length, BAR), drawn)


@compiled
def _next_row(code: Any, lane: Any, text: Any, draw: int, memory: int) -> int:
    """Return the number of the row that is drawn."""
    rows, order, drawn = code[draw + at.DRAW_ROWS], code[draw + at.DRAW_ORDER], lane[memory + at.DRAWN]
    if order == at.BY_SUBJECT:
        return lane[at.SUBJECT] % rows  # type: ignore[no-any-return]
    if order == at.BALANCED:
        return _balanced(code, lane, text[lane[at.SHARED] :], draw, memory)
    if order == at.CYCLE:
        return drawn % rows  # type: ignore[no-any-return]
    if order == at.SHUFFLE:
        length = rows * code[draw + at.DRAW_COPIES]
        if drawn % length == 0:
            _permute(code, lane, text, draw, memory)
        return lane[memory + at.DRAWN_BLOCK + drawn % length]  # type: ignore[no-any-return]
    possible = 0
    for row in range(rows):
        possible += not _too_long(code, lane, draw, memory, row)
    chosen = below(bits(text, _key(code, lane, text, draw, drawn)), possible)
    for row in range(rows):
        if not _too_long(code, lane, draw, memory, row):
            if chosen == 0:
                return row
            chosen -= 1
    return 0


@compiled
def _balanced(code: Any, lane: Any, text: Any, draw: int, memory: int) -> int:
    """Return the subject's row in a permutation that all subjects of its cycle share, as does the text."""
    rows, scratch = code[draw + at.DRAW_ROWS], memory + at.DRAWN_BLOCK
    for row in range(rows):
        lane[scratch + row] = row
    length = append_listed(text, lane[at.SHARED_PREFIX], code, code[draw + at.DRAW_TEXT])
    length = append_number(text, append_byte(text, length, BAR), lane[memory + at.DRAWN])
    length = append_number(text, append_byte(text, length, BAR), lane[at.SUBJECT] // rows)
    _shuffle(text, length, lane, scratch, rows)
    return lane[scratch + lane[at.SUBJECT] % rows]  # type: ignore[no-any-return]


@compiled
def _too_long(code: Any, lane: Any, draw: int, memory: int, row: int) -> bool:
    """Return whether a row would make a run longer than ``max_run``."""
    longest = code[draw + at.DRAW_MAX_RUN]
    first = code[code[draw + at.DRAW_FIRSTS] + row]
    return longest != 0 and lane[memory + at.RUN_LENGTH] >= longest and first == lane[memory + at.RUN_VALUE]  # type: ignore[no-any-return]


@compiled
def _lengthen_run(lane: Any, memory: int, first: int) -> None:
    if first != lane[memory + at.RUN_VALUE] or lane[memory + at.DRAWN] == 0:
        lane[memory + at.RUN_VALUE], lane[memory + at.RUN_LENGTH] = first, 0
    lane[memory + at.RUN_LENGTH] += 1


@compiled
def _shuffle(text: Any, length: int, lane: Any, first: int, size: int) -> None:
    """Shuffle entries of a lane (Fisher and Yates), with random numbers of the key in ``text``."""
    length = append_byte(text, length, BAR)
    for last in range(size - 1, 0, -1):
        other = below(bits(text, append_number(text, length, last)), last + 1)
        held = lane[first + last]
        lane[first + last] = lane[first + other]
        lane[first + other] = held


@compiled
def _permute(code: Any, lane: Any, text: Any, draw: int, memory: int) -> None:
    """Permute the block of a draw so that it keeps ``max_run``."""
    copies, block = code[draw + at.DRAW_COPIES], memory + at.DRAWN_BLOCK
    size, length = code[draw + at.DRAW_ROWS] * copies, _key(code, lane, text, draw, lane[memory + at.DRAWN])
    length = append_byte(text, length, BAR)
    for attempt in range(MAX_ATTEMPTS):
        for place in range(size):
            lane[block + place] = place // copies
        _shuffle(text, append_number(text, length, attempt), lane, block, size)
        if _keeps_run(code, lane, draw, memory, size):
            return
    for place in range(size):
        lane[block + place] = place // copies
    _shuffle(text, append_listed(text, length, code, code[at.TEXT_COMPOSED]), lane, block, size)
    _compose(code, lane, draw, memory, size)


@compiled
def _keeps_run(code: Any, lane: Any, draw: int, memory: int, size: int) -> bool:
    longest = code[draw + at.DRAW_MAX_RUN]
    if longest == 0:
        return True
    value, run = lane[memory + at.RUN_VALUE], lane[memory + at.RUN_LENGTH]
    for place in range(memory + at.DRAWN_BLOCK, memory + at.DRAWN_BLOCK + size):
        first = code[code[draw + at.DRAW_FIRSTS] + lane[place]]
        run = run + 1 if first == value else 1
        value = first
        if run > longest:
            return False
    return True


@compiled
def _compose(code: Any, lane: Any, draw: int, memory: int, size: int) -> None:
    """Put the shuffled block together so that no value piles up at the end: the first row that can go on, each time."""
    block, firsts = memory + at.DRAWN_BLOCK, code[draw + at.DRAW_FIRSTS]
    value, run = lane[memory + at.RUN_VALUE], lane[memory + at.RUN_LENGTH]
    for place in range(block, block + size):
        for candidate in range(place, block + size):
            first = code[firsts + lane[candidate]]
            length = run + 1 if first == value else 1
            if _can_go_on(code, lane, draw, place, block + size, candidate, length):
                row = lane[candidate]
                for moved in range(candidate, place, -1):
                    lane[moved] = lane[moved - 1]
                lane[place] = row
                value, run = first, length
                break


@compiled
def _can_go_on(code: Any, lane: Any, draw: int, start: int, end: int, candidate: int, length: int) -> bool:
    """Return whether rows can follow this one so that no run is too long: each other row parts two runs."""
    firsts, longest = code[draw + at.DRAW_FIRSTS], code[draw + at.DRAW_MAX_RUN]
    if length > longest:
        return False
    last, left = code[firsts + lane[candidate]], end - start - 1
    for first in range(code[draw + at.DRAW_ROWS]):  # values are numbered, and there are no more of them than rows
        often = 0
        for other in range(start, end):
            often += other != candidate and code[firsts + lane[other]] == first
        if often > (left - often) * longest + (longest - length if first == last else longest):
            return False
    return True


@compiled
def _draw_subset(code: Any, lane: Any, real: Any, text: Any, draw: int, memory: int) -> None:
    """Draw some of the rows, whose values make a set for each column."""
    rows, columns, scratch = code[draw + at.DRAW_ROWS], code[draw + at.DRAW_SLOTS], memory + at.DRAWN_BLOCK
    for row in range(rows):
        lane[scratch + row] = row
    _shuffle(text, _key(code, lane, text, draw, lane[memory + at.DRAWN]), lane, scratch, rows)
    for column in range(code[columns]):
        members = 0
        for place in range(scratch, scratch + code[draw + at.DRAW_PICK]):
            bit = code[code[draw + at.DRAW_ELEMENTS] + lane[place] * code[columns] + column]
            if bit != at.NOTHING:
                members |= 1 << bit
        put(lane, real, code[columns + 1 + column], at.SET, members, 0.0)
