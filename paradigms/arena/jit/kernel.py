"""The entry points of the compiled kernel: one function steps all lanes, and one numbers their looks.

numba caches them on disk and checks only this file for changes. So they are created by a function whose argument is a
digest of all sources that they depend on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from cheesebench.interfaces import FORWARD
from cheesebench.paradigms.arena.draws import MAX_ATTEMPTS
from cheesebench.paradigms.arena.jit import layout as at
from cheesebench.paradigms.arena.jit.compiled import OPTIONS, compiled
from cheesebench.paradigms.arena.jit.steps import begin, happen, judge
from cheesebench.paradigms.arena.jit.values import entries, kind_of, refers_to
from cheesebench.paradigms.arena.traces import DEPARTURE

#: Columns of the table of views: first observation and movement table.
PICTURES, MOVES = range(2)
#: What a call tells: lanes whose trial has begun or ended, lanes that look like nothing that is known, the first error.
BEGUN, ENDED, UNKNOWN, FAILED = range(4)


class Kernel(NamedTuple):
    """The compiled functions."""

    step_all: Callable[..., None]
    note_look: Callable[..., int]


@compiled
def find_look(code: Any, lane: Any, real: Any, hashes: Any, keys: Any) -> int:
    """Return which row of ``keys`` says how a lane looks (state, kind and content of what is shown), or NOTHING.

    ``hashes`` is a hash table of the rows, each + 1.
    """
    state, place = lane[at.STATE], _hash(code, lane, real, hashes)
    names = code[state + at.LOOK_SLOTS]
    while hashes[place]:
        row = hashes[place] - 1
        same, column = keys[row, 0] == state, 1
        for entry in entries(code, names):
            same = same and keys[row, column] == kind_of(lane, code[entry])
            same = same and keys[row, column + 1] == _content(lane, real, code[entry])
            column += 2
        if same:
            return row  # type: ignore[no-any-return]
        place = place + 1 & len(hashes) - 1
    return at.NOTHING


@compiled
def remember_look(code: Any, lane: Any, real: Any, hashes: Any, keys: Any, row: int) -> None:
    """Write into a row what a lane looks like."""
    names, column = code[lane[at.STATE] + at.LOOK_SLOTS], 1
    keys[row, 0] = lane[at.STATE]
    for entry in entries(code, names):
        keys[row, column], keys[row, column + 1] = kind_of(lane, code[entry]), _content(lane, real, code[entry])
        column += 2
    place = _hash(code, lane, real, hashes)
    while hashes[place]:
        place = place + 1 & len(hashes) - 1
    hashes[place] = row + 1


@compiled
def _hash(code: Any, lane: Any, real: Any, hashes: Any) -> int:
    names, number = code[lane[at.STATE] + at.LOOK_SLOTS], lane[at.STATE]
    for entry in entries(code, names):
        number = (number * 31 + kind_of(lane, code[entry])) * 1000003 + _content(lane, real, code[entry])
    return (number ^ number >> 17) & len(hashes) - 1  # type: ignore[no-any-return]


@compiled
def _content(lane: Any, real: Any, slot: int) -> int:
    kind = kind_of(lane, slot)
    if kind == at.NAME or kind == at.SET:
        return refers_to(lane, slot)
    # The bits of the number: a text may show fractions.
    return int(np.float64(real[at.REALS + slot]).view(np.int64))


def _digest() -> str:
    """Return a digest of all sources, of constants from elsewhere, and of how numba checks bounds."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    others = (MAX_ATTEMPTS, DEPARTURE, FORWARD, getattr(numba.config, "BOUNDSCHECK", None))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files) + repr(others).encode()).hexdigest()


@cache
def kernel() -> Kernel:
    """Return the compiled functions; the first time on a machine they are compiled, which takes some seconds."""
    return _made(_digest())


def _made(digest: str) -> Kernel:
    def step_all(
        code: Any, numbers: Any, lanes: Any, reals: Any, traces: Any, texts: Any, hashes: Any, keys: Any, looks: Any,
        moves: Any, events: Any, actions: Any, anew: bool, places: Any, rewards: Any, terminated: Any, truncated: Any,
        begun: Any, counts: Any,
    ) -> None:  # fmt: skip
        """Execute one action in every lane. Where the trial is over, or (``anew``) in all of them, begin the next one.

        ``places`` and all that follow are written; the lane of the first mistake is ``counts[FAILED]``, or NOTHING.
        """
        counts[:] = 0
        counts[FAILED] = len(digest) * 0 + at.NOTHING
        for number in range(len(lanes)):
            beginning = anew or lanes[number, at.OVER] != 0
            happening = 0
            if not beginning:
                state, table, action = lanes[number, at.STATE], lanes[number, at.TABLE], actions[number]
                entry, steps = lanes[number, at.POSE] + action, lanes[number, at.STEPS] + 1
                pose, happening = moves[table, entry], events[table, entry]
                lanes[number, at.STEPS] = steps  # 6
                lanes[number, at.POSE] = pose  # 7
                if code[at.READS_TRACE]:
                    traces[number, 2 * steps - 2], traces[number, 2 * steps - 1] = entry, pose + action
                if not happening & code[state + at.LISTEN] and steps < lanes[number, at.WAKE]:
                    rewards[number] = numbers[code[state + at.PAY]]
                    places[number] = lanes[number, at.PAGE] + pose
                    continue
            lane, real, trace, text = lanes[number], reals[number], traces[number], texts[number]
            if beginning:
                begin(code, numbers, lane, real, trace, text)
                begun[number] = True
                counts[BEGUN] += 1
            else:
                rewards[number] = happen(code, numbers, lane, real, trace, text, happening)
                if lane[at.OVER]:
                    judge(code, numbers, lane, real, trace)
                    truncated[number], terminated[number] = lane[at.TRUNCATED], not lane[at.TRUNCATED]
                    counts[ENDED] += 1
            if lane[at.ERROR]:
                counts[FAILED] = number
                return
            if lane[at.STALE]:
                _see(code, lane, real, hashes, keys, looks, places, number, counts)
            else:
                places[number] = lane[at.PAGE] + lane[at.POSE]

    def note_look(code: Any, lane: Any, real: Any, hashes: Any, keys: Any, new: int) -> int:
        """Return the row that says how a lane looks; it is written, as row ``new``, where there is none."""
        row = find_look(code, lane, real, hashes, keys) + len(digest) * 0
        if row == at.NOTHING:
            remember_look(code, lane, real, hashes, keys, new)
            return new
        return row

    entries = (step_all, note_look)
    try:
        return Kernel(*(numba.njit(cache=True, **OPTIONS)(entry) for entry in entries))
    except RuntimeError:  # no folder that numba may write to
        return Kernel(*(numba.njit(**OPTIONS)(entry) for entry in entries))


@compiled
def _see(
    code: Any, lane: Any, real: Any, hashes: Any, keys: Any, looks: Any, places: Any, number: int, counts: Any
) -> None:
    """Find out how it looks where a lane is now; what is not known yet is counted, and its place stays negative."""
    lane[at.STALE] = 0
    row = find_look(code, lane, real, hashes, keys)
    if row == at.NOTHING:
        places[number] = -1
        counts[UNKNOWN] += 1
    else:
        lane[at.PAGE], lane[at.TABLE] = looks[row, PICTURES], looks[row, MOVES]
        places[number] = lane[at.PAGE] + lane[at.POSE]
