"""The compiled form of a specification: rules with event masks and functions, states with clocks and looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import ACTIONS, View
from cheesebench.paradigms.arena.evaluate import (
    Function,
    compile_expression,
    constant_value,
    groups_watched,
)
from cheesebench.paradigms.arena.scenes import LANDMARK, Gallery, LookKey
from cheesebench.paradigms.arena.tables import BLOCKED, Event, Geometry
from cheesebench.protocol import specification as spec
from cheesebench.protocol import texts
from cheesebench.protocol.expressions import Expression, Recent, reads_clock, reads_place, reads_trace, walk

#: Which member of a trigger's target events are about: of a life and event bits, the name that ``it`` takes, or None.
Who = Callable[[Any, int], str | None]
#: An entry of `finish`: condition, outcome, state to go to, source.
Finish = tuple[Function | None, str | None, str | None, str]


@dataclass(frozen=True, slots=True)
class Effects:
    """Compiled effects. ``reward`` is a function, or None; ``constant`` its value when it is a literal."""

    set: tuple[tuple[str, Function], ...]
    add: tuple[tuple[str, Function], ...]
    remove: tuple[tuple[str, Function], ...]
    count: tuple[str, ...]
    reward: Function | None
    constant: float | None
    place: Function | None
    put: tuple[Function, ...] | None

    nothing: bool
    only_constant_reward: bool
    """Whether these effects only pay a fixed reward (or nothing)."""
    assigns: bool
    """Whether they change variables or counters."""

    def assign(self, life: Any) -> None:
        """Set (in parallel), add, remove, count."""
        values = life.values
        if self.set:
            values.update([(name, value(life)) for name, value in self.set])
        for name, value in self.add:
            values[name] = values[name] | _members(value(life))
        for name, value in self.remove:
            values[name] = values[name] - _members(value(life))
        for name in self.count:
            values[name] += 1


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule. ``mask`` has every event bit that can fire it; ``who`` tells whether one does now."""

    mask: int
    who: Who | None
    varies: bool
    """Whether these events depend on a variable."""
    after: Function | None
    guard: Function | None
    p: Function | None
    effects: Effects
    go: str | None
    end: str | None
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class State:
    """A compiled state. ``look`` is fixed, or None where it depends on variables (then ``read_look``)."""

    name: str
    entry: Effects
    each: Effects
    rules: tuple[Rule, ...]
    listen: int
    timed: bool
    busy: bool
    """Whether every step needs the slow path: ``each`` does more than pay a fixed reward, or a timer reads the pose."""
    pay: float
    steady: bool
    """Whether neither its look nor its timers can change while it lasts."""
    shows: tuple[str, ...]
    """The variables that say what it shows or closes, or that its text is filled with."""
    look: LookKey | None
    read_look: Function
    freeze: bool
    waits: bool
    """Frozen and without 'act' rules: the runner may step it without asking the agent."""


class Program:
    """Everything of a paradigm that is the same in all its lives."""

    def __init__(self, specification: spec.Specification) -> None:
        self.specification = specification
        self.geometry = Geometry(specification.arena, list(dict.fromkeys(self._events())))
        self.each = self._effects(specification.each)
        self.watch = tuple(self._rule(rule) for rule in specification.watch)
        self.where_mask = self._mask(("where", group) for group in self.geometry.member_at)
        self.states = {name: self._state(state) for name, state in specification.states.items()}
        self.entry = [(_optional(entry.guard), entry.name) for entry in specification.entry]
        self.finish: list[Finish] = [
            (_optional(one.guard), one.end, one.go, _source(one.position)) for one in specification.finish
        ]
        self.keep_if = {
            draw.name: compile_expression(draw.keep_if) for draw in specification.draws if draw.keep_if is not None
        }
        #: Of each block of which a repetition, or the block itself, ends on a condition: both conditions.
        self.criteria = {
            block.name: (_condition(block.until), _condition(block.ends))
            for block in specification.schedule
            if any(one.condition is not None for one in block.criteria)
        }
        self.success = _optional(specification.success)
        self.where = _optional(specification.where)
        self.measures = {name: compile_expression(tree) for name, tree in specification.measures.items()}
        #: Whether any expression depends on the path; otherwise no trace is kept during a trial.
        self.reads_trace = any(map(reads_trace, self.all_expressions()))
        #: Whether an expression reads where the subject is, or has been, in relation to a place.
        self.reads_path = any(map(reads_place, self.all_expressions()))
        #: Whether ``finish`` can become true without an event since it was last tested.
        self.finish_ripens = any(reads_clock(entry.guard) for entry in specification.finish)
        nodes = (node for tree in self.all_expressions() for node in walk(tree))
        #: What is counted of earlier trials, and which part of a life's past that is.
        self.recents = {node: n for n, node in enumerate(dict.fromkeys(n for n in nodes if isinstance(n, Recent)))}
        self._galleries: dict[str, tuple[View, Gallery]] = {}

    def gallery(self, view: View) -> Gallery:
        """Return the gallery of a view; one for all lives that use it."""
        known = self._galleries.get(view.name)
        if known is None or known[0] is not view:
            known = self._galleries[view.name] = (view, Gallery(self.geometry, view))
        return known[1]

    def quarters(self, memory: Any) -> int:
        """Return by how many quarters of a circle the picture is turned clockwise in this trial."""
        rotate = self.specification.rotate
        return 0 if rotate is None else int(memory.values[rotate]) // 90

    # -- events

    def _events(self) -> Iterator[Event]:
        for rule in self._all_rules():
            yield from self._plain_events(rule)
            if rule.target is not None:
                for name in self.targets(rule.target, rule.trigger):
                    yield (rule.trigger, name)
        for tree in self.all_expressions():
            for group in sorted(groups_watched(tree)):
                yield ("where", group)

    @staticmethod
    def _plain_events(rule: spec.RuleSpec) -> list[Event]:
        """Return the events of a trigger that names no place."""
        if rule.whatever:
            return [("act", name) for name in ACTIONS] if rule.trigger == "act" else [BLOCKED]
        return [] if rule.action is None else [("act", ACTIONS[rule.action])]

    def _all_rules(self) -> Iterator[spec.RuleSpec]:
        for state in self.specification.states.values():
            yield from state.rules
        yield from self.specification.watch

    def all_expressions(self) -> Iterator[Expression | None]:
        """Yield every expression; None stands for those that were left out."""
        specification = self.specification
        yield from (specification.success, specification.where, *specification.measures.values())
        yield from (entry.guard for entry in specification.entry)
        yield from (one.guard for one in specification.finish)
        yield from (one.condition for block in specification.schedule for one in block.criteria)
        for draw in specification.draws:
            yield draw.keep_if
        for rule in self._all_rules():
            yield from (rule.guard, rule.p, rule.after)
        for effect in self.all_effects():
            yield effect.reward
            yield from effect.put or ()
            yield from (assignment.value for assignment in effect.assignments)

    def all_effects(self) -> Iterator[spec.EffectsSpec]:
        """Yield the effects of all rules and states, and those of every step."""
        yield self.specification.each
        for state in self.specification.states.values():
            yield from (state.entry, state.each)
        for rule in self._all_rules():
            yield rule.effects

    def targets(self, place: spec.Place, trigger: str) -> list[str]:
        """Return the zones (or solids) that a trigger's target can be or hold."""
        specification = self.specification
        arena = specification.arena
        grounds = arena.solids if trigger == "press" else arena.zones
        if not place.variable:
            return list(arena.members(place.name))
        held = specification.drawn(place.name) or list(grounds)  # a mutable variable can hold any of them
        return [member for name in held for member in arena.members(name) if member in grounds]

    def _mask(self, events: Iterable[Event]) -> int:
        mask = 0
        for event in events:
            mask |= self.geometry.bit.get(event, 0)
        return mask

    # -- rules, effects, states

    def _rule(self, rule: spec.RuleSpec) -> Rule:
        who: Who | None = None
        mask = self._mask(self._plain_events(rule))
        if rule.target is not None:
            possible = self.targets(rule.target, rule.trigger)
            mask = self._mask((rule.trigger, name) for name in possible)
            who = self._who(rule.target, rule.trigger, possible, mask)
        return Rule(
            mask=mask,
            who=who,
            varies=rule.target is not None and rule.target.variable,
            after=_optional(rule.after),
            guard=_optional(rule.guard),
            p=_optional(rule.p),
            effects=self._effects(rule.effects),
            go=rule.go,
            end=rule.end,
            text=rule.text,
            source=_source(rule.position),
        )

    def _who(self, target: spec.Place, trigger: str, possible: list[str], mask: int) -> Who:
        """Return a function that tells which member of a target events are about: the first in the protocol's order."""
        arena, bit, name = self.specification.arena, self.geometry.bit, target.name

        def first(members: Iterable[str], bits: int) -> str | None:
            return next((member for member in members if bits & bit.get((trigger, member), 0)), None)

        if not target.variable:
            # Asked for at every event, and few different ones.
            named = lru_cache(maxsize=1024)(partial(first, possible))
            return lambda life, bits: named(bits & mask)

        @lru_cache(maxsize=1024)
        def held(value: spec.RuntimeValue, bits: int) -> str | None:
            if isinstance(value, frozenset):
                return first([member for member in possible if member in value], bits)
            return first(arena.members(value) if isinstance(value, str) else (), bits)

        return lambda life, bits: held(life.values[name], bits & mask)

    def _effects(self, effects: spec.EffectsSpec) -> Effects:
        constant = constant_value(effects.reward)
        rewards = effects.reward is not None
        assigns = bool(effects.assignments or effects.count)
        changes = bool(assigns or effects.place or effects.put)
        return Effects(
            set=tuple((assignment.variable, compile_expression(assignment.value)) for assignment in effects.set),
            add=tuple((assignment.variable, compile_expression(assignment.value)) for assignment in effects.add),
            remove=tuple((assignment.variable, compile_expression(assignment.value)) for assignment in effects.remove),
            count=effects.count,
            reward=_optional(effects.reward),
            constant=constant,
            place=None if effects.place is None else read_place(effects.place),
            put=tuple(map(compile_expression, effects.put)) if effects.put else None,
            nothing=not changes and not rewards,
            only_constant_reward=not changes and (constant is not None or not rewards),
            assigns=assigns,
        )

    def _state(self, state: spec.StateSpec) -> State:
        rules = tuple(self._rule(rule) for rule in state.rules)
        each = self._effects(state.each)
        listen = self.where_mask
        for rule in (*rules, *self.watch):
            listen |= rule.mask
        calm = each.only_constant_reward and self.each.only_constant_reward
        named = [*state.close, *state.open, *(place for pair in state.show for place in pair)]
        held = [*(place.name for place in named if place.variable), *texts.names(state.say)]
        shows = tuple(dict.fromkeys(held))
        read_look = self._look_function(state, shows)
        acts = self._mask(("act", name) for name in ACTIONS)
        timed = any(rule.after is not None for rule in rules)
        return State(
            name=state.name,
            entry=self._effects(state.entry),
            each=each,
            rules=rules,
            listen=listen,
            timed=timed,
            busy=not calm or any(reads_clock(rule.after) for rule in state.rules),
            pay=(each.constant or 0.0) + (self.each.constant or 0.0) if calm else 0.0,
            steady=not shows and calm and not timed,
            shows=shows,
            look=None if shows else read_look(None),
            read_look=read_look,
            freeze=state.freeze,
            waits=state.freeze and not listen & acts,
        )

    def _look_function(self, state: spec.StateSpec, variables: Sequence[str]) -> Function:
        """Return a function of the memory that gives the state's look: doors, freeze, shown glyphs, text."""
        arena = self.specification.arena

        def mistake(what: str) -> ProtocolError:
            where = f"{self.specification.path}: {what}, in the state '{state.name}'."
            return ProtocolError(f"{where} Give the variable another value.")

        @lru_cache(maxsize=1024, typed=True)  # asked for after every event, and hardly ever another one
        def look_key(*values: spec.RuntimeValue) -> LookKey:
            held = dict(zip(variables, values, strict=True))

            def meant(place: spec.Place) -> spec.RuntimeValue:
                return held[place.name] if place.variable else place.name

            def doors(places: Sequence[spec.Place], what: str) -> frozenset[str]:
                found = frozenset(
                    member for door in places for name in names_in(meant(door)) for member in arena.members(name)
                )
                if odd := set(found - arena.doors.keys()):
                    raise mistake(f"'{min(odd)}' is {what}, but it is not a door")
                return found

            closed = doors(state.close, "closed") - doors(state.open, "open")
            shown = tuple(
                (place if arena.landmark(place) is None else LANDMARK + place, str(meant(glyph)))
                for where, glyph in state.show
                for place in names_in(meant(where))
                if meant(glyph) is not None
            )
            if odd := {glyph for _, glyph in shown if len(glyph) != 1 or not glyph.isprintable()}:
                raise mistake(f"'{min(odd)}' is shown, but it is not a glyph")
            return (closed, state.freeze, shown, tuple(texts.filled(line, held) for line in state.say))

        return lambda memory: look_key(*[memory.values[name] for name in variables])


def _members(value: spec.RuntimeValue) -> frozenset[str | float | int]:
    """Return what is added to a set, or taken out: all of a set, or one member; `none` is nothing."""
    if isinstance(value, frozenset):
        return value
    return frozenset() if value is None else frozenset([value])


def names_in(value: spec.RuntimeValue) -> list[str]:
    """Return the names in a value: one, none, or those of a set (sorted, so that order never depends on hashes)."""
    if value is None:
        return []
    return sorted(map(str, value)) if isinstance(value, frozenset) else [str(value)]


def plain_name(value: spec.RuntimeValue) -> str:
    """Return a value as a person would write it."""
    return "none" if value is None else " or ".join(names_in(value))


def read_place(place: spec.Place) -> Function:
    """Return a function of the memory that gives the place's name (or the set, or None)."""
    name = place.name
    if not place.variable:
        return lambda memory: name
    if name == "it":
        return lambda memory: memory.it
    return lambda memory: memory.values[name]


def _optional(tree: Expression | None) -> Function | None:
    return None if tree is None else compile_expression(tree)


def _condition(until: spec.UntilSpec | None) -> Function | None:
    return None if until is None else _optional(until.condition)


def _source(position: object) -> str:
    line = getattr(position, "line", 0)
    return f"{Path(getattr(position, 'file', '')).name}:{line}"
