"""The step kernel, compiled: ``life.ArenaSubject`` clause by clause, on the arrays of ``layout``.

The numbers in comments are the clauses of the language page. ``life`` is the reference: what it does, and in which
order, this does; the tests compare the two on every shipped protocol and on protocols made up at random.
"""

from __future__ import annotations

import math
from typing import Any

from cheesebench.paradigms.arena.jit import layout as at
from cheesebench.paradigms.arena.jit.compiled import compiled
from cheesebench.paradigms.arena.jit.draws import BAR, advance, append_listed, draw_rows, is_over, note
from cheesebench.paradigms.arena.jit.expressions import evaluate, true
from cheesebench.paradigms.arena.jit.hashing import append_byte, append_number, below, bits, uniform
from cheesebench.paradigms.arena.jit.paths import cell_here, within
from cheesebench.paradigms.arena.jit.values import (
    copy,
    element,
    entries,
    holds,
    is_number,
    kind_of,
    put,
    put_constant,
    put_name,
    put_truth,
    refers_to,
)


@compiled
def begin(code: Any, numbers: Any, lane: Any, real: Any, trace: Any, text: Any) -> None:
    """Begin the next trial."""
    began = advance(code, lane)  # 1
    lane[at.TRIAL_NUMBER] += 1
    lane[at.STEPS] = lane[at.ENTERED] = lane[at.OVER] = lane[at.TRUNCATED] = lane[at.PLACINGS] = 0
    lane[at.OUTCOME] = lane[at.IT] = lane[at.PLACED_STEP] = at.NOTHING
    lane[code[at.CONSIDERED] : code[at.CONSIDERED] + code[at.CHANCES]] = 0
    _begin_scopes(code, numbers, lane, real, began)
    draw_rows(code, numbers, lane, real, trace, text, began)
    _set_limit(code, lane, real)
    _place_at_start(code, lane, real, text, began)
    for entry in entries(code, code[at.ENTRY], 2):  # 5
        if not code[entry] or true(code, numbers, lane, real, trace, code[entry], code[at.STACK]):
            _enter(code, numbers, lane, real, trace, text, code[entry + 1])
            break
    lane[at.FIRST] = lane[at.POSE]
    _look_around(code, numbers, lane, real, trace)


@compiled
def _begin_scopes(code: Any, numbers: Any, lane: Any, real: Any, began: int) -> None:
    """2: variables of the scopes that begin take their initial value, or the one that the block sets."""
    for entry in entries(code, code[at.COUNTERS]):
        put(lane, real, code[entry], at.WHOLE, 0, 0.0)
    for entry in entries(code, code[at.VARIABLES], 3):
        if code[entry + 1] & began:
            put_constant(code, numbers, lane, real, code[entry], code[entry + 2])
    for entry in entries(code, code[lane[at.BLOCK] + at.BLOCK_VALUES], 3):
        if began & (code[entry + 1] | at.BLOCK_SCOPE):
            put_constant(code, numbers, lane, real, code[entry], code[entry + 2])


@compiled
def _set_limit(code: Any, lane: Any, real: Any) -> None:
    lane[at.LIMIT] = code[at.LIMIT_FIXED]
    if not code[at.LIMIT_FIXED]:
        held = code[at.LIMIT_SLOT]
        limit = real[at.REALS + held]
        if not is_number(lane, held) or not 1 <= limit < math.inf:
            _fail(lane, real, at.BAD_LIMIT, held)
        else:
            lane[at.LIMIT] = int(min(limit, at.EXACT))


@compiled
def _fail(lane: Any, real: Any, error: int, slot: int) -> None:
    """Note what went wrong first, and with which value."""
    if not lane[at.ERROR]:
        lane[at.ERROR], lane[at.ERROR_STATE] = error, lane[at.STATE]
        lane[at.ERROR_KIND], lane[at.ERROR_REFERS] = kind_of(lane, slot), refers_to(lane, slot)
        real[at.ERROR_NUMBER] = real[at.REALS + slot]


@compiled
def _place_at_start(code: Any, lane: Any, real: Any, text: Any, began: int) -> None:
    """4: at ``start.at`` facing ``start.face``; with ``carry`` only on the first trial of a session."""
    lane[code[at.OCCUPIED] : code[at.OCCUPIED] + code[at.GROUPS]] = at.NOTHING
    if code[at.CARRY] and not began & at.SESSION_SCOPE:
        _update_occupied(code, lane)
        return
    length = append_listed(text, lane[at.PREFIX], code, code[at.TEXT_START])
    length = append_number(text, length, lane[at.TRIAL_NUMBER])
    _find_place(code, lane, real, code[at.START], code[at.START_REFERS], code[at.STACK])
    _place(code, lane, real, text, length, code[at.STACK])


@compiled
def _find_place(code: Any, lane: Any, real: Any, how: int, refers: int, slot: int) -> None:
    if how == at.IN_SLOT:
        copy(lane, real, slot, refers)
    else:
        put_name(lane, real, slot, lane[at.IT] if how == at.IN_IT else refers)


@compiled
def _place(code: Any, lane: Any, real: Any, text: Any, length: int, slot: int) -> None:
    """Place the subject in one of the cells that a slot names; ``text`` holds the key of the random numbers."""
    count = 0
    if kind_of(lane, slot) == at.NAME:
        cells = code[code[at.PLACE_CELLS] + refers_to(lane, slot)]
        count = code[cells]
    elif kind_of(lane, slot) == at.SET:
        for cell in range(code[at.CELLS]):
            count += within(code, lane, slot, cell)
    if count == 0:
        _fail(lane, real, at.NO_FLOOR, slot)
        return
    chosen = below(bits(text, length), count) if count > 1 else 0
    if kind_of(lane, slot) == at.NAME:
        cell = code[code[code[at.PLACE_CELLS] + refers_to(lane, slot)] + 1 + chosen]
    else:
        cell = 0
        while chosen or not within(code, lane, slot, cell):
            chosen -= within(code, lane, slot, cell)
            cell += 1
    turn = _facing(code, lane, real, text, length)
    lane[at.POSE] = (cell * code[at.TURNS] + turn) * 4
    _update_occupied(code, lane)


@compiled
def _facing(code: Any, lane: Any, real: Any, text: Any, length: int) -> int:
    """Return the turn that the subject is placed in."""
    face, turns = code[at.FACE], code[at.TURNS]
    if code[at.FACE_SLOT] != at.NOTHING:
        slot = code[at.FACE_SLOT]
        face = refers_to(lane, slot) if kind_of(lane, slot) == at.NAME else at.NOTHING
    if face == code[at.RANDOM_NAME]:
        return below(bits(text, append_listed(text, length, code, code[at.TEXT_FACE])), turns)
    for turn in range(turns):
        if face == code[code[at.HEADING_NAMES] + turn]:
            return turn
    _fail(lane, real, at.BAD_FACE, code[at.FACE_SLOT])
    return 0


@compiled
def _update_occupied(code: Any, lane: Any) -> None:
    for group in range(code[at.GROUPS]):
        member = code[code[at.MEMBER_AT] + group * code[at.CELLS] + cell_here(code, lane)]
        if member != at.NOTHING:
            lane[code[at.OCCUPIED] + group] = member


@compiled
def happen(code: Any, numbers: Any, lane: Any, real: Any, trace: Any, text: Any, events: int) -> float:
    """The rest of a step on which something can happen: clauses 8 to 17. Return the reward."""
    state, reward, fired = lane[at.STATE], 0.0, False
    if events & code[at.WHERE_MASK]:  # 9
        _update_occupied(code, lane)
    for rule in entries(code, code[at.WATCH], at.RULE_SIZE):  # 10
        if _fires(code, numbers, lane, real, trace, text, rule, events):
            fired = True
            reward += _apply(code, numbers, lane, real, trace, text, code[rule + at.EFFECTS], code[at.TEXT_PLACE])
    for rule in entries(code, code[state + at.STATE_RULES], at.RULE_SIZE):  # 11
        if _fires(code, numbers, lane, real, trace, text, rule, events):
            fired = True
            reward += _apply(code, numbers, lane, real, trace, text, code[rule + at.EFFECTS], code[at.TEXT_PLACE])  # 12
            if code[rule + at.END] != at.NOTHING:
                lane[at.OUTCOME] = code[rule + at.END]
            elif code[rule + at.GO]:
                reward += _enter(code, numbers, lane, real, trace, text, code[rule + at.GO])  # 13
            break
    if fired and lane[at.OUTCOME] == at.NOTHING:
        reward += _test_finish(code, numbers, lane, real, trace, text)  # 14
    if lane[at.OUTCOME] == at.NOTHING and lane[at.STEPS] >= lane[at.LIMIT]:  # 15
        lane[at.OUTCOME], lane[at.TRUNCATED] = code[at.TIMEOUT_NAME], 1
    now = lane[at.STATE]
    if lane[at.OUTCOME] != at.NOTHING:
        lane[at.OVER], lane[at.LAST] = 1, lane[at.OUTCOME]
        note(code, lane, lane[at.OUTCOME])
        lane[at.LIFE_OVER] = is_over(code, lane)
    elif code[now + at.BUSY]:  # 16
        text_each = code[at.TEXT_EACH]
        pay = _apply(code, numbers, lane, real, trace, text, code[now + at.DURING], text_each)
        reward += pay + _apply(code, numbers, lane, real, trace, text, code[at.EACH], text_each)
    else:
        reward += numbers[code[now + at.PAY]]
    if lane[at.OVER] or not code[state + at.STEADY] or now != state:
        _look_around(code, numbers, lane, real, trace)
    return reward  # 17


@compiled
def _fires(code: Any, numbers: Any, lane: Any, real: Any, trace: Any, text: Any, rule: int, events: int) -> bool:
    """Whether trigger, ``if`` and ``p`` hold, in this order; sets ``it``."""
    top = code[at.STACK]
    if code[rule + at.MASK] and not events & code[rule + at.MASK]:
        return False
    if code[rule + at.AFTER]:
        evaluate(code, numbers, lane, real, trace, code[rule + at.AFTER], top)
        if not lane[at.STEPS] - lane[at.ENTERED] >= real[at.REALS + top]:  # also when that is no number
            return False
    elif code[rule + at.WHO] != at.NO_TARGET:
        lane[at.IT] = _who(code, lane, rule, events & code[rule + at.MASK])
        if lane[at.IT] == at.NOTHING:
            return False
    if code[rule + at.GUARD] and not true(code, numbers, lane, real, trace, code[rule + at.GUARD], top):
        return False
    if not code[rule + at.CHANCE]:
        return True
    considered = code[at.CONSIDERED] + code[rule + at.CHANCE_SLOT]
    lane[considered] += 1
    length = append_listed(text, lane[at.PREFIX], code, code[at.TEXT_CHANCE])
    length = append_number(text, length, lane[at.TRIAL_NUMBER])
    length = append_listed(text, length, code, code[rule + at.CHANCE_TEXT])
    number = uniform(bits(text, append_number(text, length, lane[considered])))
    evaluate(code, numbers, lane, real, trace, code[rule + at.CHANCE], top)
    return number < real[at.REALS + top]  # type: ignore[no-any-return]


@compiled
def _who(code: Any, lane: Any, rule: int, events: int) -> int:
    """Return which member of a rule's target events are about: the first in the protocol's order."""
    slot, bit_of = code[rule + at.WHO_SLOT], code[code[rule + at.NAME_BITS]]
    if code[rule + at.WHO] == at.HELD and kind_of(lane, slot) != at.SET:
        if kind_of(lane, slot) == at.NAME:
            for entry in entries(code, code[code[at.MEMBERS] + refers_to(lane, slot)]):
                if events & code[bit_of + code[entry]]:
                    return code[entry]  # type: ignore[no-any-return]
        return at.NOTHING
    for entry in entries(code, code[rule + at.POSSIBLE]):
        name = code[entry]
        if events & code[bit_of + name]:
            bit = code[code[at.ELEMENT_OF] + name]
            if code[rule + at.WHO] == at.FIXED or (bit != at.NOTHING and refers_to(lane, slot) >> bit & 1):
                return name  # type: ignore[no-any-return]
    return at.NOTHING


@compiled
def _apply(code: Any, numbers: Any, lane: Any, real: Any, trace: Any, text: Any, effects: int, purpose: int) -> float:
    """12: set (parallel), add, remove, count, reward, place. Return the reward."""
    if not code[effects + at.ANYTHING]:
        return 0.0
    top = code[at.STACK]
    sets = code[effects + at.SETS]
    for number in range(code[sets]):
        evaluate(code, numbers, lane, real, trace, code[sets + 2 + 2 * number], top + number)
    for number in range(code[sets]):
        copy(lane, real, code[sets + 1 + 2 * number], top + number)
    for entry in entries(code, code[effects + at.ADDS], 2):
        evaluate(code, numbers, lane, real, trace, code[entry + 1], top)
        members = refers_to(lane, code[entry]) | _members(code, numbers, lane, real, top)
        put(lane, real, code[entry], at.SET, members, 0.0)
    for entry in entries(code, code[effects + at.REMOVES], 2):
        evaluate(code, numbers, lane, real, trace, code[entry + 1], top)
        members = refers_to(lane, code[entry]) & ~_members(code, numbers, lane, real, top)
        put(lane, real, code[entry], at.SET, members, 0.0)
    for entry in entries(code, code[effects + at.COUNTS]):
        real[at.REALS + code[entry]] += 1.0
    reward = numbers[code[effects + at.CONSTANT_PAY]]
    if code[effects + at.PAYS]:
        evaluate(code, numbers, lane, real, trace, code[effects + at.PAYS], top)
        reward = real[at.REALS + top]
        if not (is_number(lane, top) and math.isfinite(reward)):
            _fail(lane, real, at.BAD_REWARD, top)
    if code[effects + at.PLACES_AT] != at.NOWHERE:
        # The count tells two of one step apart: each is placed by a number of its own.
        length = append_listed(text, lane[at.PREFIX], code, purpose)
        length = append_byte(text, append_number(text, length, lane[at.TRIAL_NUMBER]), BAR)
        length = append_byte(text, append_number(text, length, lane[at.STEPS]), BAR)
        length = append_number(text, length, lane[at.PLACINGS])
        _find_place(code, lane, real, code[effects + at.PLACES_AT], code[effects + at.PLACE_REFERS], top)
        _place(code, lane, real, text, length, top)
        lane[at.PLACINGS] += 1
        lane[at.PLACED_STEP], lane[at.PLACED_POSE] = lane[at.STEPS], lane[at.POSE]
    return reward  # type: ignore[no-any-return]


@compiled
def _members(code: Any, numbers: Any, lane: Any, real: Any, slot: int) -> int:
    """Return what is added to a set, or taken out, as bits: one, or all of a set; `none` is nothing."""
    if kind_of(lane, slot) == at.SET:
        return refers_to(lane, slot)
    if kind_of(lane, slot) == at.NONE:
        return 0
    bit = element(code, numbers, lane, real, slot)
    return 0 if bit == at.NOTHING else 1 << bit


@compiled
def _enter(code: Any, numbers: Any, lane: Any, real: Any, trace: Any, text: Any, state: int) -> float:
    """13: the clock starts anew, and the entry effects run. Return their reward."""
    lane[at.STATE] = state
    lane[at.ENTERED] = lane[at.STEPS]
    return _apply(code, numbers, lane, real, trace, text, code[state + at.ENTERING], code[at.TEXT_PLACE])


@compiled
def _test_finish(code: Any, numbers: Any, lane: Any, real: Any, trace: Any, text: Any) -> float:
    """14: the first that holds ends the trial, or leads to another state. Return the reward of entering it."""
    for entry in entries(code, code[at.FINISH], 3):
        end, go = code[entry + 1], code[entry + 2]
        if go == lane[at.STATE]:
            continue
        if not code[entry] or true(code, numbers, lane, real, trace, code[entry], code[at.STACK]):
            lane[at.OUTCOME] = end
            return 0.0 if go == 0 else _enter(code, numbers, lane, real, trace, text, go)
    return 0.0


@compiled
def _look_around(code: Any, numbers: Any, lane: Any, real: Any, trace: Any) -> None:
    """Find the next moment of interest; doors and what the subject sees are looked up afterwards (``STALE``)."""
    state, top = lane[at.STATE], code[at.STACK]
    lane[at.STALE] = 1
    lane[at.WAKE] = 0 if code[state + at.BUSY] else lane[at.LIMIT]
    if code[state + at.BUSY] or not code[state + at.TIMED]:
        return
    for rule in entries(code, code[state + at.STATE_RULES], at.RULE_SIZE):
        if code[rule + at.AFTER]:
            evaluate(code, numbers, lane, real, trace, code[rule + at.AFTER], top)
            duration = max(real[at.REALS + top], 0.0)
            if duration < lane[at.LIMIT]:  # also false when it is no number
                lane[at.WAKE] = min(lane[at.WAKE], lane[at.ENTERED] + math.ceil(duration))


@compiled
def judge(code: Any, numbers: Any, lane: Any, real: Any, trace: Any) -> None:
    """18: evaluate ``success`` and ``measures`` with the final variables, each into its slot."""
    if code[at.SUCCEEDED]:
        evaluate(code, numbers, lane, real, trace, code[at.SUCCEEDED], code[at.STACK])
        put_truth(lane, real, code[at.SUCCESS], holds(lane, real, code[at.STACK]))
    measured = code[at.MEASURED]
    for number in range(code[measured]):
        evaluate(code, numbers, lane, real, trace, code[measured + 1 + number], code[at.STACK])
        copy(lane, real, code[at.MEASURES] + number, code[at.STACK])
