"""Translates a program to arrays; see ``layout``."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cheesebench.interfaces import HEADINGS
from cheesebench.paradigms.arena.draws import as_sets
from cheesebench.paradigms.arena.jit import layout as at
from cheesebench.paradigms.arena.jit.formulas import Formulas
from cheesebench.paradigms.arena.jit.vocabulary import UntranslatableError, Vocabulary
from cheesebench.paradigms.arena.program import Effects, Program, Rule
from cheesebench.protocol.declare import TIMEOUT
from cheesebench.protocol.specification import DrawSpec, EffectsSpec, Place, RuleSpec, StateSpec

SCOPES = {
    "subject": at.SUBJECT_SCOPE, "block": at.BLOCK_SCOPE, "session": at.SESSION_SCOPE, "trial": at.TRIAL_SCOPE,
}  # fmt: skip
#: The triggers and effects that there is compiled code for; see ``features``.
TRIGGERS = ("enter", "inside", "press", "after", "act")
EFFECTS = ("set", "add", "remove", "count", "reward", "place")
ORDERS = {
    "random": at.RANDOM, "shuffle": at.SHUFFLE, "cycle": at.CYCLE, "balanced": at.BALANCED,
    "by_subject": at.BY_SUBJECT,
}  # fmt: skip
#: Most rows of a draw, with all its subsets; most entries of a lane (permuted rows, outcomes that `until` looks at).
MAX_ROWS, MAX_LANE = 10_000, 10_000


class Translation(NamedTuple):
    """A program in arrays, and how to read what comes of it."""

    code: NDArray[np.int64]
    numbers: NDArray[np.float64]
    names: Sequence[str]
    elements: Sequence[str | float]
    """What each bit of a set stands for."""
    states: Sequence[str]
    slots: dict[str, int]
    lane_size: int
    real_size: int
    key_size: int
    """Most bytes of a key of random numbers, without what is the same for all keys of a life."""
    look_columns: int
    memories: Sequence[int]
    """Where draws begin in a lane."""


def translate(program: Program) -> Translation:
    """Return a program as arrays; raises UntranslatableError."""
    return _Translator(program).result()


class _Translator(Formulas):
    def __init__(self, program: Program) -> None:
        specification = program.specification
        columns = [column for draw in specification.draws for column in draw.columns]
        named = dict.fromkeys([*specification.counters, *specification.variables, *columns])
        super().__init__(
            [0] * at.HEAD,
            Vocabulary(program),
            {name: slot for slot, name in enumerate(named)},
            {group: number for number, group in enumerate(program.geometry.member_at)},
        )
        self._program, self._specification = program, specification
        self._states: dict[str, int] = {}
        self._chances: dict[tuple[str, int], int] = {}
        self._bits_of_names: list[tuple[int, str]] = []
        self._texts: list[int] = [0]
        self._memories: list[int] = []
        self._keep_if: dict[str, int] = {}

    def result(self) -> Translation:
        """Translate everything, in an order in which what is referred to is there already."""
        head, specification = self.code, self._specification
        for number, name in enumerate(specification.states):
            self._states[name] = len(self.code)
            self.code += [self.vocabulary.number(name), *[0] * (at.STATE_SIZE - 1)]
            self.code[self._states[name] + at.STATE_NUMBER] = number
        head[at.EACH] = self._effects(self._program.each, specification.each)
        head[at.WATCH] = self._rules("watch", self._program.watch, specification.watch)
        for name, state in specification.states.items():
            self._state(name, state)
        name_of, states = self.vocabulary.number, self._states
        finish = [
            (self.expression(one.guard), name_of(one.end) if one.end else at.NOTHING, states[one.go] if one.go else 0)
            for one in specification.finish
        ]
        head[at.FINISH] = self.records(finish, 3)
        entry = [(self.expression(one.guard), states[one.name]) for one in specification.entry]
        head[at.ENTRY] = self.records(entry, 2)
        head[at.TIMEOUT_NAME] = self.vocabulary.number(TIMEOUT)
        head[at.SUCCEEDED] = self.expression(specification.success)
        measures = [self.expression(tree) for tree in specification.measures.values()]
        head[at.MEASURED] = self.listed(measures)
        self._keep_if = {draw.name: self.expression(draw.keep_if) for draw in specification.draws}
        self._life()
        lane_size = self._lane(len(measures))
        self._texts_of_keys()
        self._arena()
        return Translation(
            np.array(self.code, np.int64), np.array(self.numbers, np.float64), list(self.vocabulary.numbers),
            list(self.vocabulary.elements), list(specification.states), self.slots, lane_size,
            at.REALS + self.code[at.STACK] + self._stack(), max(self._texts) + 100,
            1 + 2 * max(self.code[self.code[state + at.LOOK_SLOTS]] for state in self._states.values()), self._memories,
        )  # fmt: skip

    # -- what happens in steps

    def _rules(self, where: str, rules: Sequence[Rule], specs: Sequence[RuleSpec]) -> int:
        records = [
            self._rule(where, number, rule, spec) for number, (rule, spec) in enumerate(zip(rules, specs, strict=True))
        ]
        return self.records(records, at.RULE_SIZE)

    def _rule(self, where: str, number: int, rule: Rule, spec: RuleSpec) -> list[int]:
        if spec.trigger not in TRIGGERS:
            raise UntranslatableError(f"a rule has the trigger '{spec.trigger}', which only the scalar kernel supports")
        who, slot, possible, name_bits = at.NO_TARGET, 0, 0, 0
        if spec.target is not None:
            possible = self.listed(map(self.vocabulary.number, self._program.targets(spec.target, spec.trigger)))
            name_bits = len(self.code)
            self.code += [0]  # what is known of names is added when all names are known
            self._bits_of_names.append((name_bits, spec.trigger))
            who = at.HELD if spec.target.variable else at.FIXED
            slot = self.slots[spec.target.name] if spec.target.variable else 0
        chance, text = 0, 0
        if spec.p is not None:
            chance = self._chances.setdefault((where, number), len(self._chances))
            text = self._text(f"|{where}|{number}|")
        return [
            rule.mask, self.expression(spec.after), who, slot, possible, name_bits, self.expression(spec.guard),
            self.expression(spec.p), chance, text,
            self._effects(rule.effects, spec.effects), self._states[rule.go] if rule.go is not None else 0,
            at.NOTHING if rule.end is None else self.vocabulary.number(rule.end),
        ]  # fmt: skip

    def _effects(self, effects: Effects, spec: EffectsSpec) -> int:
        for part in dataclasses.fields(spec):
            if part.name not in EFFECTS and getattr(spec, part.name) != part.default:
                raise UntranslatableError(f"a rule has the effect '{part.name}', which only the scalar kernel supports")
        sets = [(self.slots[one.variable], self.expression(one.value)) for one in spec.set]
        adds = [(self.slots[one.variable], self.expression(one.value)) for one in spec.add]
        removes = [(self.slots[one.variable], self.expression(one.value)) for one in spec.remove]
        self.widest = max(self.widest, len(sets))
        pays = self.expression(spec.reward) if effects.constant is None else 0
        how, refers = self._place(spec.place)
        record = [
            int(not effects.nothing), self.records(sets, 2), self.records(adds, 2), self.records(removes, 2),
            self.listed(self.slots[name] for name in spec.count), pays, self.number(effects.constant or 0.0), how,
            refers,
        ]  # fmt: skip
        return self.records([record], at.EFFECTS_SIZE) + 1

    def _turned_by(self) -> list[str]:
        """Return the column by which the picture is turned, where there is one."""
        rotate = self._specification.rotate
        return [] if rotate is None else [rotate]

    def _place(self, place: Place | None) -> tuple[int, int]:
        if place is None:
            return at.NOWHERE, 0
        if not place.variable:
            return at.BY_NAME, self.vocabulary.number(place.name)
        return (at.IN_IT, at.NOTHING) if place.name == "it" else (at.IN_SLOT, self.slots[place.name])

    def _state(self, name: str, spec: StateSpec) -> None:
        state = self._program.states[name]
        fields = {
            at.ENTERING: self._effects(state.entry, spec.entry),
            at.DURING: self._effects(state.each, spec.each),
            at.STATE_RULES: self._rules(name, state.rules, spec.rules),
            at.LISTEN: state.listen,
            at.TIMED: state.timed,
            at.BUSY: state.busy,
            at.PAY: self.number(state.pay),
            at.STEADY: state.steady,
            at.LOOK_SLOTS: self.listed(self.slots[name] for name in (*state.shows, *self._turned_by())),
        }
        for field, value in fields.items():
            self.code[self._states[name] + field] = int(value)

    # -- schedule, scopes, draws, start

    def _life(self) -> None:
        head, specification = self.code, self._specification
        variables = specification.variables
        head[at.COUNTERS] = self.listed(self.slots[name] for name in specification.counters)
        head[at.VARIABLES] = self._scoped((v.name, v.initial) for v in variables.values())
        if self._program.criteria:
            raise UntranslatableError("a block ends on a condition, which only the scalar kernel supports")
        if any(block.ends is not None for block in specification.schedule):
            raise UntranslatableError("a block is repeated until a criterion, which only the scalar kernel supports")
        blocks = [
            [
                self.vocabulary.number(block.name), block.sessions, block.trials, block.repeat, self._scoped(block.set),
                block.until.count if block.until else 0, block.until.of if block.until else 0,
                self.listed(map(self.vocabulary.number, sorted(block.until.outcomes)) if block.until else ()),
                block.most or 0,
            ]
            for block in specification.schedule
        ]  # fmt: skip
        head[at.BLOCKS] = self.records(blocks, at.BLOCK_SIZE) + 1
        head[at.BLOCKS_END] = len(self.code)
        limit = specification.limit
        head[at.LIMIT_FIXED] = limit if isinstance(limit, int) else 0
        head[at.LIMIT_SLOT] = 0 if isinstance(limit, int) else self.slots[limit]
        start = specification.start
        head[at.START], head[at.START_REFERS] = self._place(start.at)
        head[at.CARRY] = start.carry
        head[at.FACE] = self.vocabulary.number(start.face)
        head[at.FACE_SLOT] = self.slots[start.face] if start.face_variable else at.NOTHING
        head[at.RANDOM_NAME] = self.vocabulary.number("random")
        headings = [HEADINGS[heading] for heading in specification.arena.headings]
        head[at.HEADING_NAMES] = self.record(*map(self.vocabulary.number, headings))
        head[at.WHERE_MASK] = self._program.where_mask
        head[at.READS_TRACE] = self._program.reads_trace

    def _scoped(self, values: Iterable[tuple[str, Any]]) -> int:
        entries = [
            (self.slots[name], SCOPES[self._specification.variables[name].per], self.constant(value))
            for name, value in values
        ]
        return self.records(entries, 3)

    def _draw(self, draw: DrawSpec, memory: int) -> tuple[list[int], int]:
        """Return the record of a draw, and how much memory it needs in a lane."""
        if draw.sample is not None:
            raise UntranslatableError("a draw deals out a set")
        subset = draw.pick is not None and draw.order == "random"
        rows = list(draw.rows)
        if draw.pick is not None and not subset:
            subsets = itertools.islice(itertools.combinations(draw.rows, draw.pick), MAX_ROWS + 1)
            rows = [as_sets(chosen) for chosen in subsets]
        if len(rows) * draw.copies > MAX_ROWS:
            raise UntranslatableError("a draw has too many rows")
        values = [value for row in rows for value in row]
        elements: list[int] = []
        if subset:
            known = self.vocabulary.elements
            elements = [at.NOTHING if value is None else known[value] for value in values]  # type: ignore[index]
        cells = [] if subset else [self.constant_fields(value) for value in values]
        firsts: dict[Any, int] = {}
        record = [
            SCOPES[draw.per], ORDERS[draw.order], self.listed(self.slots[column] for column in draw.columns), len(rows),
            self.record(*itertools.chain.from_iterable(cells)),
            self.record(*(firsts.setdefault(row[0], len(firsts)) for row in rows)), self.record(*elements),
            draw.pick or 0, draw.copies, draw.max_run or 0, self._keep_if[draw.name], self._text(draw.name), memory,
        ]  # fmt: skip
        permuted = subset or draw.order in ("shuffle", "balanced")
        return record, at.DRAWN_BLOCK + (len(rows) * draw.copies if permuted else 0)

    # -- what a lane is made of

    def _stack(self) -> int:
        return self.widest + self.deepest + 1

    def _lane(self, measures: int) -> int:
        """Lay out the slots and the other parts of a lane; return its size."""
        head = self.code
        head[at.SUCCESS] = len(self.slots)
        head[at.MEASURES] = head[at.SUCCESS] + 1
        head[at.STACK] = head[at.MEASURES] + measures
        head[at.GROUPS] = len(self.groups)
        head[at.CHANCES] = len(self._chances)
        head[at.OCCUPIED] = at.SLOTS + 2 * (head[at.STACK] + self._stack())
        head[at.CONSIDERED] = head[at.OCCUPIED] + head[at.GROUPS]
        head[at.RECENT] = head[at.CONSIDERED] + head[at.CHANCES]
        size = head[at.RECENT] + max(block.until.of if block.until else 1 for block in self._specification.schedule)
        records = []
        for draw in self._specification.draws:
            self._memories.append(size)
            record, room = self._draw(draw, size)
            records.append(record)
            size += room
        head[at.DRAWS] = self.records(records, at.DRAW_SIZE)
        if size > MAX_LANE:
            raise UntranslatableError("a subject has too many possible states")
        return size

    # -- texts, names, the arena

    def _text(self, text: str) -> int:
        self._texts.append(len(text.encode()))
        return self.listed(text.encode())

    def _texts_of_keys(self) -> None:
        keys = {
            at.TEXT_START: "start|", at.TEXT_FACE: "|face", at.TEXT_EACH: "each|", at.TEXT_PLACE: "place|",
            at.TEXT_CHANCE: "p|", at.TEXT_COMPOSED: "composed",
        }  # fmt: skip
        for field, text in keys.items():
            self.code[field] = self._text(text)

    def _arena(self) -> None:
        head, geometry = self.code, self._program.geometry
        arena, number = geometry.arena, self.vocabulary.number
        for name in (*arena.zones, *arena.doors, *arena.solids, *arena.groups):
            number(name)
        for name in list(self.vocabulary.numbers):
            for member in arena.members(name):
                number(member)
        for element in self.vocabulary.elements:
            if isinstance(element, str):
                number(element)
        member_at = [at.NOTHING if m is None else number(m) for column in geometry.member_at.values() for m in column]
        names = list(self.vocabulary.numbers)
        head[at.TURNS], head[at.CELLS] = geometry.turns, len(arena.cells)
        head[at.COLUMNS] = self.record(*(column for column, _ in arena.cells))
        head[at.ROWS] = self.record(*(row for _, row in arena.cells))
        head[at.MEMBER_AT] = self.record(*member_at)
        places = [arena.cells_of(name) for name in names]
        head[at.PLACE_CELLS] = self.record(*[self.listed(cells) for cells in places])
        nowhere = self.record(*[0] * len(arena.cells))
        insides = [self._inside(cells) if cells else nowhere for cells in places]
        head[at.PLACE_INSIDE] = self.record(*insides)
        head[at.SOLIDS] = self.record(*itertools.chain.from_iterable(map(self._solid, names)))
        head[at.MEMBERS] = self.record(*[self.listed(map(number, arena.members(name))) for name in names])
        elements = list(self.vocabulary.elements)
        head[at.ELEMENT_OF] = self.record(*(self.vocabulary.elements.get(name, at.NOTHING) for name in names))
        head[at.ELEMENT_NAMES] = self.listed(number(e) if isinstance(e, str) else at.NOTHING for e in elements)
        head[at.ELEMENT_NUMBERS] = len(self.numbers)
        self.numbers += [float("nan") if isinstance(element, str) else float(element) for element in elements]
        bits = {
            trigger: self.record(*(geometry.bit.get((trigger, name), 0) for name in names))
            for trigger in {trigger: None for _, trigger in self._bits_of_names}
        }
        for place, trigger in self._bits_of_names:
            self.code[place] = bits[trigger]

    def _inside(self, cells: Sequence[int]) -> int:
        inside = set(cells)
        return self.record(*(cell in inside for cell in range(self.code[at.CELLS])))

    def _solid(self, name: str) -> tuple[int, int, int]:
        arena = self._program.geometry.arena
        squares = [square for member in arena.members(name) for square in arena.solids.get(member, ())]
        return len(squares), sum(column for column, _ in squares), sum(row for _, row in squares)
