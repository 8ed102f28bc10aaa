"""The lanes of a vector environment, stepped by compiled code: like ``vector``, but several times as fast."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from cheesebench.interfaces import View
from cheesebench.paradigms.arena.endings import plain_value
from cheesebench.paradigms.arena.jit import layout as at
from cheesebench.paradigms.arena.jit.compiled import announce_compilation
from cheesebench.paradigms.arena.jit.kernel import BEGUN, ENDED, FAILED, MOVES, PICTURES, UNKNOWN, kernel
from cheesebench.paradigms.arena.jit.translate import Translation, translate
from cheesebench.paradigms.arena.jit.vocabulary import UntranslatableError
from cheesebench.paradigms.arena.mistakes import bad_face, bad_limit, bad_reward, no_floor
from cheesebench.paradigms.arena.pages import Album
from cheesebench.paradigms.arena.program import Program
from cheesebench.paradigms.arena.streams import ALL_SUBJECTS
from cheesebench.paradigms.arena.tables import Tables
from cheesebench.paradigms.arena.vector import Infos, Steps

__all__ = ["CompiledLanes", "UntranslatableError"]

#: Most looks that are known at a time, for few lanes.
LOOKS = 4096
#: Bytes of a line of the cache.
LINE = 64
#: Steps of a trial for which there is room at first, where the path is read.
TRACE_ROWS = 256

MISTAKES = {
    at.NO_FLOOR: no_floor,
    at.BAD_LIMIT: bad_limit,
    at.BAD_REWARD: bad_reward,
    at.BAD_FACE: bad_face,
}
_translations: WeakKeyDictionary[Program, Translation] = WeakKeyDictionary()


class CompiledLanes:
    """Lanes whose steps are executed by ``kernel``; raises UntranslatableError for what does not fit into arrays."""

    def __init__(self, program: Program, view: View, num_envs: int) -> None:
        self._program, self._count = program, num_envs
        self._gallery = program.gallery(view)
        self.album = Album(self._gallery)
        if program not in _translations:
            _translations[program] = translate(program)
        self._made = _translations[program]
        self._names = np.array([*self._made.names, None], dtype=object)  # the last one is that of NOTHING, -1
        self._state_names = np.array(self._made.states, dtype=object)
        self._kernel = kernel()
        self.places = np.zeros(num_envs, np.int64)
        #: Actions as the kernel knows them: for arrays that are no rows, or read-only, it would be compiled anew.
        self._actions = np.zeros(num_envs, np.int64)
        self._lanes = _spread(num_envs, self._made.lane_size, np.int64)
        self._reals = _spread(num_envs, self._made.real_size, np.float64)
        self._texts = np.zeros((num_envs, 0), np.uint8)
        #: Steps that can be executed until the trace of a trial may be too long.
        self._room = TRACE_ROWS if program.reads_trace else 0
        self._traces = _spread(num_envs, 2 * self._room, np.int32)
        self._counts = np.zeros(4, np.int64)
        # What is known of looks; see ``kernel.find_look``.
        most = 1 << max(LOOKS, 2 * num_envs).bit_length()
        self._hashes = np.zeros(4 * most, np.int64)
        self._keys = np.zeros((most, self._made.look_columns), np.int64)
        self._looks = np.zeros((most, 2), np.int64)
        self._known = 0
        self._tables: list[Tables] = []
        self._moves = np.zeros((1, program.geometry.poses * 4), np.int64)
        self._events = np.zeros((1, program.geometry.poses * 4), np.int64)

    def live(self, seeds: Sequence[int], first: int) -> None:
        """Begin new lives: a seed each, and subjects that are numbered from ``first``."""
        lanes, subjects = self._lanes, range(first, first + self._count)
        prefixes = [self._prefix(seed, subject) for seed, subject in zip(seeds, subjects, strict=True)]
        shared = [self._prefix(seed, ALL_SUBJECTS) for seed in seeds]
        lanes[:], self._reals[:] = 0, 0.0
        lanes[:, at.SUBJECT] = subjects
        lanes[:, at.TRIAL_NUMBER] = -1
        lanes[:, at.BEGAN] = at.SUBJECT_SCOPE
        lanes[:, [at.OUTCOME, at.LAST, at.IT, at.PLACED_STEP]] = at.NOTHING
        for memory in self._made.memories:
            lanes[:, memory + at.RUN_VALUE] = at.NOTHING
        occupied = int(self._made.code[at.OCCUPIED])
        lanes[:, occupied : occupied + int(self._made.code[at.GROUPS])] = at.NOTHING
        lanes[:, at.PREFIX] = [len(prefix) for prefix in prefixes]
        lanes[:, at.SHARED] = begins = max(map(len, prefixes)) + self._made.key_size
        lanes[:, at.SHARED_PREFIX] = [len(prefix) for prefix in shared]
        self._texts = np.zeros((self._count, begins + max(map(len, shared)) + self._made.key_size), np.uint8)
        for text, own, of_all in zip(self._texts, prefixes, shared, strict=True):
            text[: len(own)] = np.frombuffer(own, np.uint8)
            text[begins : begins + len(of_all)] = np.frombuffer(of_all, np.uint8)

    def _prefix(self, seed: int, subject: int | str) -> bytes:
        """Return what the keys of all random numbers of a subject begin with; see ``streams.Stream``."""
        return f"{seed}|{self._program.specification.paradigm}|{subject}|".encode()

    def begin(self) -> Infos:
        """Begin the next trial in every lane; return the infos."""
        if self._crowded():
            self._forget_looks()
        begun = np.zeros(self._count, bool)
        with announce_compilation():
            self._call(True, begun)
        return self._beginnings(begun)

    def step(self, actions: NDArray[np.int64]) -> Steps:
        """Execute one action in every lane; a lane whose trial is over begins the next one instead."""
        self._make_room()
        begun = np.zeros(self._count, bool)
        self._actions[:] = actions
        steps = self._call(False, begun)
        if self._counts[ENDED]:
            steps.infos.update(self._endings(steps.terminated | steps.truncated))
        if self._counts[BEGUN]:
            steps.infos.update(self._beginnings(begun))
        states = self._state_names.take(self._made.code.take(self._lanes[:, at.STATE] + at.STATE_NUMBER))
        states[begun] = None
        steps.infos["state"], steps.infos["_state"] = states, ~begun
        return steps

    def _call(self, anew: bool, begun: NDArray[np.bool_]) -> Steps:
        """Call the kernel and handle what it leaves to Python."""
        made, count = self._made, self._count
        steps = Steps(np.zeros(count), np.zeros(count, bool), np.zeros(count, bool), {})
        self._kernel.step_all(
            made.code, made.numbers, self._lanes, self._reals, self._traces, self._texts, self._hashes, self._keys,
            self._looks, self._moves, self._events, self._actions, anew, self.places, steps.rewards, steps.terminated,
            steps.truncated, begun, self._counts,
        )  # fmt: skip
        failed = int(self._counts[FAILED])
        if self._counts[UNKNOWN]:
            for lane in (self.places[: None if failed == at.NOTHING else failed] < 0).nonzero()[0].tolist():
                self._look(lane)
        if failed != at.NOTHING:
            self._raise(failed)
        return steps

    # -- infos

    def _beginnings(self, begun: NDArray[np.bool_]) -> Infos:
        lanes = begun.nonzero()[0]
        rows = self._lanes[lanes]
        block = np.full(self._count, None, dtype=object)
        block[lanes] = self._names[self._made.code[rows[:, at.BLOCK] + at.BLOCK_NAME]]
        infos: Infos = {"block": block, "_block": begun.copy()}
        for key, field in {"session": at.SESSION, "trial": at.TRIAL, "subject": at.SUBJECT}.items():
            infos[key] = np.zeros(self._count, int)
            infos[key][lanes] = rows[:, field]
            infos[f"_{key}"] = begun.copy()
        return infos

    def _endings(self, ended: NDArray[np.bool_]) -> Infos:
        lanes, code = ended.nonzero()[0], self._made.code
        outcome = np.full(self._count, None, dtype=object)
        outcome[lanes] = self._names[self._lanes[lanes, at.OUTCOME]]
        success = int(code[at.SUCCESS])
        specification = self._program.specification
        values = {name: success + 1 + number for number, name in enumerate(specification.measures)}
        counters = {name: self._made.slots[name] for name in specification.counters}
        return {
            "outcome": outcome, "_outcome": ended.copy(),
            "success": self._column(lanes, success), "_success": ended.copy(),
            "measures": self._columns(ended, lanes, values), "_measures": ended.copy(),
            "counters": self._columns(ended, lanes, counters), "_counters": ended.copy(),
            "life_over": ended & (self._lanes[:, at.LIFE_OVER] != 0), "_life_over": ended.copy(),
        }  # fmt: skip

    def _columns(self, ended: NDArray[np.bool_], lanes: NDArray[np.intp], slots: dict[str, int]) -> Infos:
        infos: Infos = {}
        for name, slot in slots.items():
            infos[name], infos[f"_{name}"] = self._column(lanes, slot), ended.copy()
        return infos

    def _column(self, lanes: NDArray[np.intp], slot: int) -> NDArray[Any]:
        """Return what a slot holds in some lanes, as ``infos.gather`` would."""
        kinds, numbers = self._lanes[lanes, at.SLOTS + 2 * slot], self._reals[lanes, at.REALS + slot]
        lowest, highest = kinds.min(), kinds.max()
        column: NDArray[Any]
        if lowest == highest == at.TRUTH:
            column = np.zeros(self._count, bool)
        elif lowest == highest == at.WHOLE:
            column = np.zeros(self._count, int)
        elif lowest >= at.WHOLE and highest <= at.REAL and np.isfinite(numbers).all():
            column = np.zeros(self._count)
        else:
            column = np.full(self._count, None, dtype=object)
            for lane in lanes.tolist():
                column[lane] = plain_value(self._value(lane, slot))
            return column
        column[lanes] = numbers
        return column

    def _value(self, lane: int, slot: int) -> Any:
        """Return what a slot of a lane holds."""
        kind, refers = self._lanes[lane, at.SLOTS + 2 * slot : at.SLOTS + 2 * slot + 2].tolist()
        return self._python_value(kind, refers, float(self._reals[lane, at.REALS + slot]))

    def _python_value(self, kind: int, refers: int, number: float) -> Any:
        if kind == at.NAME:
            return self._made.names[refers]
        if kind == at.SET:
            return frozenset(element for bit, element in enumerate(self._made.elements) if refers >> bit & 1)
        if kind == at.TRUTH:
            return bool(number)
        return int(number) if kind == at.WHOLE else number if kind == at.REAL else None

    # -- looks, room, mistakes

    def _look(self, lane: int) -> None:
        """Write down what a lane looks like; another one of the same call may have looked like it."""
        state = self._program.states[self._state_name(int(self._lanes[lane, at.STATE]))]
        memory = self._memory(lane)
        key = state.look if state.look is not None else state.read_look(memory)
        look = self._gallery.look(key, self._program.quarters(memory))
        lanes, reals = self._lanes[lane], self._reals[lane]
        row = self._kernel.note_look(self._made.code, lanes, reals, self._hashes, self._keys, self._known)
        if row == self._known:
            self._known += 1
            self._looks[row, PICTURES], self._looks[row, MOVES] = self.album.page_of(look), self._table(look.tables)
        self._lanes[lane, at.PAGE], self._lanes[lane, at.TABLE] = self._looks[row]
        self.places[lane] = self._lanes[lane, at.PAGE] + self._lanes[lane, at.POSE]

    def _state_name(self, state: int) -> str:
        return self._made.names[int(self._made.code[state + at.STATE_NAME])]

    def _memory(self, lane: int) -> SimpleNamespace:
        """Return what a function of the program that reads variables takes for a life."""
        return SimpleNamespace(values={name: self._value(lane, slot) for name, slot in self._made.slots.items()})

    def _table(self, tables: Tables) -> int:
        """Return the row of ``_moves`` and ``_events`` that holds these tables."""
        for row, known in enumerate(self._tables):
            if known is tables:
                return row
        row = len(self._tables)
        if row == len(self._moves):
            self._moves = np.concatenate([self._moves, np.zeros_like(self._moves)])
            self._events = np.concatenate([self._events, np.zeros_like(self._events)])
        self._tables.append(tables)
        self._moves[row], self._events[row] = tables.moves, tables.events
        return row

    def _crowded(self) -> bool:
        """Return whether there may be no room for what the lanes look like after the next call."""
        return self.album.full or self._known + self._count > len(self._looks)

    def _forget_looks(self) -> None:
        self.album.forget_pages()
        self._tables.clear()
        self._hashes[:], self._known = 0, 0

    def _make_room(self) -> None:
        if self._crowded():
            self._forget_looks()
            for lane in range(self._count):
                self._look(lane)
        if self._program.reads_trace:
            self._room -= 1
            if self._room < 1:
                longest, room = int(self._lanes[:, at.STEPS].max()), self._traces.shape[1] // 2
                if longest >= room:
                    longer = _spread(self._count, 4 * room, np.int32)
                    longer[:, : 2 * room] = self._traces[:, : 2 * room]
                    self._traces, room = longer, 2 * room
                self._room = room - longest

    def _raise(self, lane: int) -> NoReturn:
        """Raise the same error as ``life.ArenaSubject`` for a run-time error of the protocol."""
        fields, real = self._lanes[lane], self._reals[lane]
        value = self._python_value(
            int(fields[at.ERROR_KIND]), int(fields[at.ERROR_REFERS]), float(real[at.ERROR_NUMBER])
        )
        where = self._state_name(int(fields[at.ERROR_STATE])) if fields[at.STEPS] else None
        error = int(fields[at.ERROR])
        if error == at.NOT_A_NUMBER:
            raise TypeError("An expression computes with something that is not a number.")
        raise MISTAKES[error](self._program, value, where)


def _spread(rows: int, columns: int, kind: type[Any]) -> NDArray[Any]:
    """Return zeros whose rows begin at lines of the cache, an odd number of them: even ones would share its places."""
    entries = LINE // np.dtype(kind).itemsize
    lines = -(-columns // entries) | 1
    room = np.zeros((rows * lines + 1) * entries, kind)
    first = -room.ctypes.data // room.itemsize % entries
    return room[first : first + rows * lines * entries].reshape(rows, lines * entries)
