"""The compiled form of a protocol: rules with event masks, states with clocks and
looks, and expressions as closures.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import ACTIONS, HEADINGS, View
from cheesebench.paradigms.arena.scenes import LANDMARK, Gallery, LookKey
from cheesebench.paradigms.arena.tables import BLOCKED, Event, Geometry
from cheesebench.paradigms.arena.turning import Turning
from cheesebench.protocol import expressions as ex
from cheesebench.protocol import specification as spec

#: Function of a life (``life.ArenaSubject``), whose attributes and methods are the
#: names and functions of the language.
Function = Callable[[Any], Any]
#: A step number that no trial reaches.
NEVER = 2**62
#: Limit below which floats represent every whole number exactly.
EXACT = 2.0**53


def _divide(left: float, right: float) -> float:
    # NaN stands for an undefined value: comparisons with it are false, and a measure is
    # recorded as missing.
    return left / right + 0 if right else float("nan")


def _bounded(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the function with integer results converted to floats if their size is
    2**53 or more: as integers, they could grow without end (`n: n * n`) and fill the
    memory. ``+ 0`` turns -0.0 into 0.0, so that equal numbers of one type are
    identical.
    """

    def compute_bounded(left: float, right: float) -> float:
        result: float = compute(left, right) + 0
        return result if -EXACT < result < EXACT else float(result)

    return compute_bounded


def _modulo(left: float, right: float) -> float:
    """Return the remainder with the sign of the divisor, as Python does, or NaN if it
    is undefined.
    """
    if not right or math.isinf(left):
        return math.nan
    rest = float(left) % float(right) + 0.0
    return int(rest) if isinstance(left, int) and isinstance(right, int) else rest


def _whole(compute: Callable[[float], int]) -> Callable[[float], float]:
    """Return a rounding function that leaves infinite, undefined and very large numbers
    unchanged.
    """
    return lambda number: compute(number) if -EXACT < number < EXACT else float(number)


def _exponential(number: float) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return math.inf


def _logarithm(number: float) -> float:
    return math.log(number) if number > 0 else math.nan


def _smallest(numbers: Sequence[float]) -> float:
    return math.nan if any(map(math.isnan, numbers)) else min(numbers) + 0


def _largest(numbers: Sequence[float]) -> float:
    return math.nan if any(map(math.isnan, numbers)) else max(numbers) + 0


#: ``_ONE``: functions of one number. ``_SEVERAL``: functions of several numbers.
_ONE: Mapping[str, Callable[[float], float]] = {
    "abs": lambda number: abs(number) + 0, "round": _whole(round), "floor": _whole(math.floor),
    "exp": _exponential, "log": _logarithm,
}  # fmt: skip
_SEVERAL: Mapping[str, Callable[[Sequence[float]], float]] = {
    "min": _smallest,
    "max": _largest,
}
#: The values of an expression are cached if it has at least ``_LONG`` operators and
#: reads at most ``_FEW`` variables (or ``it``) and nothing else of a life.
_LONG, _FEW = 6, 3
_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "+": _bounded(operator.add), "-": _bounded(operator.sub), "*": _bounded(operator.mul), "/": _divide, "%": _modulo,
    "in": lambda member, collection: member in collection,
}  # fmt: skip


def compile_expression(tree: ex.Expression) -> Function:
    """Return a function of a subject (``life.ArenaSubject``) that computes the
    expression's value.
    """
    names = _read_by_long(tree)
    return (
        _function(tree, compile_expression)
        if names is None
        else _remembering(_plain_function(tree), names)
    )


def _read_by_long(tree: ex.Expression) -> Sequence[str] | None:
    """Return the names that an expression reads, if its values are worth caching: it
    must be long, and read only few variables (or ``it``) and nothing else of a life.
    Return None for any other expression.
    """
    nodes = list(ex.walk(tree))
    length = sum(isinstance(node, ex.Unary | ex.Binary) for node in nodes)
    if length < _LONG or any(map(_reads_life, nodes)):
        return None
    names = dict.fromkeys(
        node.name for node in nodes if isinstance(node, ex.Variable | ex.BuiltIn)
    )
    return list(names) if len(names) <= _FEW else None


def _reads_life(node: ex.Expression) -> bool:
    """Return whether a node reads more of a life than variables and ``it``."""
    match node:
        case ex.BuiltIn(name):
            return name != "it"
        case ex.Call(function, _):
            return function != "size"
    return isinstance(node, ex.Recent)


@dataclass(slots=True)
class _Held:
    """The part of a life that a cached expression reads."""

    values: dict[str, Any]
    it: str | None


def _remembering(function: Function, names: Sequence[str]) -> Function:
    """Return the function with a cache, whose key is the values of these names. Numbers
    of different types are different keys.
    """

    @lru_cache(maxsize=1024, typed=True)
    def compute(it: str | None, *values: Any) -> Any:
        return function(_Held(dict(zip(variables, values, strict=True)), it))

    variables = [name for name in names if name != "it"]
    if "it" not in names:
        return lambda memory: compute(
            None, *[memory.values[name] for name in variables]
        )
    return lambda memory: compute(
        memory.it, *[memory.values[name] for name in variables]
    )


def _plain_function(tree: ex.Expression) -> Function:
    return _function(tree, _plain_function)


#: Function that compiles the operands of an expression.
_Compile = Callable[[ex.Expression], Function]


def _function(tree: ex.Expression, compiled: _Compile) -> Function:
    return _BY_NODE[type(tree)](tree, compiled)


def _literal(tree: ex.Number | ex.Constant, compiled: _Compile) -> Function:
    value = tree.value
    return lambda memory: value


def _members_named(tree: ex.Members, compiled: _Compile) -> Function:
    values = tree.values
    return lambda memory: values


def _variable(tree: ex.Variable, compiled: _Compile) -> Function:
    name = tree.name
    return lambda memory: memory.values[name]


def _built_in(tree: ex.BuiltIn, compiled: _Compile) -> Function:
    return operator.attrgetter(tree.name)


def _call(tree: ex.Call, compiled: _Compile) -> Function:
    match tree:
        case ex.Call("where", ex.Constant(group)):
            return lambda memory: memory.occupied[group]
        case ex.Call("size", argument):
            collection = compiled(argument)
            return lambda memory: len(collection(memory))
    place, method = compiled(tree.argument), operator.attrgetter(tree.function)
    return lambda memory: method(memory)(place(memory))


def _recent(tree: ex.Recent, compiled: _Compile) -> Function:
    return lambda memory: memory.recent(tree)


def _computed(tree: ex.Compute, compiled: _Compile) -> Function:
    numbers = [compiled(argument) for argument in tree.arguments]
    if len(numbers) == 1:
        (number,), of_one = numbers, _ONE[tree.function]
        return lambda memory: of_one(number(memory))
    of_all = _SEVERAL[tree.function]
    return lambda memory: of_all([number(memory) for number in numbers])


def _classes(tree: ex.Classes, compiled: _Compile) -> Function:
    guarded = [
        (None if guard is None else compiled(guard), name) for guard, name in tree.cases
    ]
    return lambda memory: next(
        (name for guard, name in guarded if guard is None or guard(memory)), None
    )


def _unary(tree: ex.Unary, compiled: _Compile) -> Function:
    operand = compiled(tree.operand)
    if tree.operator == "not":
        return lambda memory: not operand(memory)
    return lambda memory: 0 - operand(memory)


def _binary(tree: ex.Binary, compiled: _Compile) -> Function:
    match tree:
        case ex.Binary("and", left, right):
            first, second = compiled(left), compiled(right)
            return lambda memory: bool(first(memory) and second(memory))
        case ex.Binary("or", left, right):
            first, second = compiled(left), compiled(right)
            return lambda memory: bool(first(memory) or second(memory))
    compute = _OPERATORS[tree.operator]
    match tree.left, tree.right:
        case left, ex.Number(value) | ex.Constant(value) | ex.Members(value):
            first = compiled(left)
            return lambda memory: compute(first(memory), value)
        case ex.Number(value), right:
            second = compiled(right)
            return lambda memory: compute(value, second(memory))
    first, second = compiled(tree.left), compiled(tree.right)
    return lambda memory: compute(first(memory), second(memory))


#: A compiler for each kind of node. Words have none, because resolution has replaced
#: them all.
_BY_NODE: Mapping[type, Callable[[Any, _Compile], Function]] = {
    ex.Number: _literal,
    ex.Constant: _literal,
    ex.Members: _members_named,
    ex.Variable: _variable,
    ex.BuiltIn: _built_in,
    ex.Call: _call,
    ex.Recent: _recent,
    ex.Compute: _computed,
    ex.Classes: _classes,
    ex.Unary: _unary,
    ex.Binary: _binary,
}


def constant_value(tree: ex.Expression | None) -> float | None:
    """Return the value of a literal number, which may be negative, or None for any
    other expression.
    """
    match tree:
        case ex.Number(value):
            return float(value)
        case ex.Unary("-", ex.Number(value)):
            return -float(value)
    return None


def groups_watched(tree: ex.Expression | None) -> frozenset[str]:
    found = set()
    for node in ex.walk(tree):
        match node:
            case ex.Call("where", ex.Constant(str(group))):
                found.add(group)
    return frozenset(found)


#: Function of a life and event bits. It returns the member of the target that caused
#: the events, which becomes ``it``, or None.
Who = Callable[[Any, int], str | None]
_ACTS: Sequence[Event] = [("act", name) for name in ACTIONS]
#: An entry of `finish`: condition, outcome, state to go to, source.
Finish = tuple[Function | None, str | None, str | None, str]


@dataclass(frozen=True, slots=True)
class Effects:
    """Compiled effects. ``reward`` is a function, or None. ``constant`` is the reward
    if it is a literal, or else None. ``place`` and ``put`` (column and row) are None if
    the effects have none.
    """

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
    """Whether these effects do nothing but pay a fixed reward (or none)."""
    assigns: bool
    """Whether these effects change variables or counters."""

    @property
    def may_pay(self) -> bool:
        """Whether there is a reward other than a literal that is 0 or a cost."""
        return self.reward is not None and (self.constant is None or self.constant > 0)

    def assign(self, life: Any) -> None:
        """Apply set (all at once), add, remove and count."""
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
    """A compiled rule. ``mask`` has every event bit that can fire it. For a rule with a
    target, ``who`` decides whether one of them fires it now; for other rules it is
    None.
    """

    mask: int
    who: Who | None
    varies: bool
    """Whether the events depend on a variable."""
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
    """A compiled state. ``look`` is its look, or None if the look depends on variables
    (then ``read_look`` computes it).
    """

    name: str
    entry: Effects
    each: Effects
    rules: tuple[Rule, ...]
    listen: int
    timed: bool
    due: int
    """Number of steps from the entry until the first timer with a literal duration is
    due, or ``NEVER`` if there is none.
    """
    timers: tuple[Function, ...]
    """The durations of timers that are not literals, and must be computed."""
    busy: bool
    """Whether every step takes the slow path: ``each`` does more than pay a fixed
    reward, or the duration of a timer may change without an event.
    """
    pay: float
    steady: bool
    """Whether neither look nor timers can change within the state."""
    shows: tuple[str, ...]
    """The variables that determine the text, glyphs and closed doors of the state."""
    look: LookKey | None
    read_look: Function
    freeze: bool
    waits: bool
    """Whether the state is frozen, and neither its rules nor `watch` react to actions:
    the runner may step it without asking the agent.
    """


class Program:
    """Everything that all lives of a paradigm share."""

    def __init__(self, specification: spec.Specification) -> None:
        self.specification = specification
        self.geometry = Geometry(
            specification.arena, list(dict.fromkeys(self._events()))
        )
        self.each = self._effects(specification.each)
        self.watch = tuple(self._rule(rule) for rule in specification.watch)
        self.where_mask = self._mask(
            ("where", group) for group in self.geometry.member_at
        )
        self.states = {
            name: self._state(state) for name, state in specification.states.items()
        }
        self.entry = [
            (_optional(entry.guard), entry.name) for entry in specification.entry
        ]
        self.finish: list[Finish] = [
            (_optional(one.guard), one.end, one.go, _source(one.position))
            for one in specification.finish
        ]
        #: Name of a draw -> the condition under which it keeps its values.
        self.keep_if = _kept_on(specification.draws)
        #: Block -> the conditions that end a repetition and the block (None if there is
        #: none). Only blocks with such a condition are keys.
        self.criteria = _criteria(specification.schedule)
        self.success = _optional(specification.success)
        self.where = _optional(specification.where)
        self.measures = {
            name: compile_expression(tree)
            for name, tree in specification.measures.items()
        }
        #: The heading of a placed subject, or None if the heading is random or given by
        #: a variable.
        self.face = _fixed_heading(specification.start)
        #: Whether an expression relates the subject's position or path to a place.
        self.reads_path = any(map(ex.reads_place, self.all_expressions()))
        #: Each ``recent()`` in an expression -> its index in a life's past.
        self.recents = _recents(self.all_expressions())
        #: How landmarks go round between trials, or None if they stay.
        self.turning = Turning.of(specification)
        self._galleries: dict[str, tuple[View, Gallery]] = {}

    @property
    def shown_at_rest(self) -> tuple[tuple[str, str], ...]:
        """The places and glyphs of landmarks that go round, as in the first row of
        their draw. Empty for other mazes, and if no state shows these landmarks alone.
        """
        held = {} if self.turning is None else self.turning.held
        memory = SimpleNamespace(values=held)
        for state in self.states.values():
            if state.shows and held.keys() >= set(state.shows):
                look: LookKey = state.read_look(memory)
                return look[2]
        return ()

    def gallery(self, view: View) -> Gallery:
        known = self._galleries.get(view.name)
        if known is None or known[0] is not view:
            known = self._galleries[view.name] = (view, Gallery(self.geometry, view))
        return known[1]

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
        if rule.whatever:
            return list(_ACTS) if rule.trigger == "act" else [BLOCKED]
        return [] if rule.action is None else [("act", ACTIONS[rule.action])]

    def _all_rules(self) -> Iterator[spec.RuleSpec]:
        for state in self.specification.states.values():
            yield from state.rules
        yield from self.specification.watch

    def all_expressions(self) -> Iterator[ex.Expression | None]:
        """Yield every expression of the program. None stands for an omitted
        expression.
        """
        specification = self.specification
        yield from (
            specification.success,
            specification.where,
            *specification.measures.values(),
        )
        yield from (entry.guard for entry in specification.entry)
        yield from (one.guard for one in specification.finish)
        yield from (
            one.condition for block in specification.schedule for one in block.criteria
        )
        for draw in specification.draws:
            yield draw.keep_if
        for rule in self._all_rules():
            yield from (rule.guard, rule.p, rule.after)
        for effect in self.all_effects():
            yield effect.reward
            yield from effect.put or ()
            yield from (assignment.value for assignment in effect.assignments)

    def all_effects(self) -> Iterator[spec.EffectsSpec]:
        yield self.specification.each
        for state in self.specification.states.values():
            yield from (state.entry, state.each)
        for rule in self._all_rules():
            yield rule.effects

    def targets(self, place: spec.Place, trigger: str) -> list[str]:
        """Return the zones (or solids) that the target of a trigger can be, or
        contain.
        """
        specification = self.specification
        arena = specification.arena
        grounds = arena.solids if trigger == "press" else arena.zones
        if not place.variable:
            return list(arena.members(place.name))
        held = (
            specification.drawn(place.name)
            or self._assigned(place.name)
            or list(grounds)
        )
        return list(
            dict.fromkeys(
                member
                for name in held
                for member in arena.members(name)
                if member in grounds
            )
        )

    def _assigned(self, variable: str) -> list[str]:
        """Return the names that a variable can hold, or an empty list if they cannot be
        determined.
        """
        given = self.values_at_start(variable)
        for one in self.assignments_of(variable):
            names = self._names_of(one.value)
            if names is None:
                return []
            given += names
        if any(isinstance(value, frozenset) for value in given):
            return []
        return [str(one) for one in given if one is not None]

    def values_at_start(self, variable: str) -> list[ex.RuntimeValue]:
        specification = self.specification
        given = [
            value
            for block in specification.schedule
            for name, value in block.set
            if name == variable
        ]
        if variable in specification.variables:
            given.insert(0, specification.variables[variable].initial)
        return given

    def assignments_of(self, variable: str) -> Iterator[spec.Assignment]:
        for effects in self.all_effects():
            yield from (one for one in effects.assignments if one.variable == variable)

    def _names_of(self, value: ex.Expression) -> Sequence[ex.RuntimeValue] | None:
        """Return the names that an expression's value can be, or None if they cannot be
        determined.
        """
        match value:
            case ex.Constant(name):
                return [name]
            case ex.Classes(cases):
                return [name for _, name in cases]
            case ex.Variable(other):
                return self.specification.drawn(other) or None
        return None

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

    def _who(
        self, target: spec.Place, trigger: str, possible: list[str], mask: int
    ) -> Who:
        """Return a function that gives the member of a target that caused the events:
        the first one in the order of the file.
        """
        arena, bit, name = self.specification.arena, self.geometry.bit, target.name

        def first(members: Iterable[str], bits: int) -> str | None:
            return next(
                (member for member in members if bits & bit.get((trigger, member), 0)),
                None,
            )

        if not target.variable:
            # The results are cached, because there are only a few different arguments.
            named = lru_cache(maxsize=1024)(partial(first, possible))
            return lambda life, bits: named(bits & mask)

        @lru_cache(maxsize=1024)
        def held(value: ex.RuntimeValue, bits: int) -> str | None:
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
            set=_compiled(effects.set),
            add=_compiled(effects.add),
            remove=_compiled(effects.remove),
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
        shows = tuple(dict.fromkeys(_variables_shown(state)))
        read_look = self._look_function(state, shows)
        durations = _durations(state.rules)
        timers = _computed_timers(durations)
        return State(
            name=state.name,
            entry=self._effects(state.entry),
            each=each,
            rules=rules,
            listen=listen,
            timed=bool(durations),
            due=_first_due(durations),
            timers=timers,
            busy=not calm or any(map(ex.reads_clock, durations)),
            pay=_constant_pay(each, self.each) if calm else 0.0,
            steady=not (shows or timers) and calm,
            shows=shows,
            look=None if shows else read_look(None),
            read_look=read_look,
            freeze=state.freeze,
            waits=state.freeze and not listen & self._mask(_ACTS),
        )

    def _look_function(
        self, state: spec.StateSpec, variables: Sequence[str]
    ) -> Function:
        """Return a function of a life that gives the look of a state: doors, freezing,
        glyphs and text. The function raises ProtocolError if a variable holds no door,
        or no single visible character.
        """
        arena = self.specification.arena

        def mistake(what: str) -> ProtocolError:
            return ProtocolError(
                f"{self.specification.path}: In the state '{state.name}', {what}. Give the variable that holds it another value."
            )

        # The results are cached, because this function is called after every event,
        # nearly always with the same arguments.
        @lru_cache(maxsize=1024, typed=True)
        def look_key(*values: ex.RuntimeValue) -> LookKey:
            held = dict(zip(variables, values, strict=True))

            def meant(place: spec.Place) -> ex.RuntimeValue:
                return held[place.name] if place.variable else place.name

            def doors(places: Sequence[spec.Place], what: str) -> frozenset[str]:
                found = frozenset(
                    member
                    for door in places
                    for name in names_in(meant(door))
                    for member in arena.members(name)
                )
                if odd := set(found - arena.doors.keys()):
                    raise mistake(f"'{min(odd)}' is {what}, but is not a door")
                return found

            closed = doors(state.close, "closed") - doors(state.open, "open")
            shown = tuple(
                (
                    place if arena.landmark(place) is None else LANDMARK + place,
                    str(meant(glyph)),
                )
                for where, glyph in state.show
                for place in names_in(meant(where))
                if meant(glyph) is not None
            )
            if odd := {
                glyph
                for _, glyph in shown
                if len(glyph) != 1 or not glyph.isprintable()
            }:
                raise mistake(
                    f"'{min(odd)}' is shown, but is not one visible character"
                )
            return (
                closed,
                state.freeze,
                shown,
                tuple(ex.filled(line, held) for line in state.say),
            )

        return lambda memory: look_key(*[memory.values[name] for name in variables])


def _members(value: ex.RuntimeValue) -> frozenset[str | float | int]:
    if isinstance(value, frozenset):
        return value
    return frozenset() if value is None else frozenset([value])


def names_in(value: ex.RuntimeValue) -> list[str]:
    """Return the names in a value (one, none, or a set of them), sorted so that no
    order depends on hashes.
    """
    if value is None:
        return []
    return sorted(map(str, value)) if isinstance(value, frozenset) else [str(value)]


def plain_name(value: ex.RuntimeValue) -> str:
    return "none" if value is None else " or ".join(names_in(value))


def read_place(place: spec.Place) -> Function:
    """Return a function of a life that gives the name of the place (or a set of names,
    or None).
    """
    name = place.name
    if not place.variable:
        return lambda memory: name
    if name == "it":
        return lambda memory: memory.it
    return lambda memory: memory.values[name]


def _variables_shown(state: spec.StateSpec) -> Iterator[str]:
    """Yield the variables that determine a state's text, glyphs and closed doors."""
    pairs = chain.from_iterable(state.show)
    for place in (*state.close, *state.open, *pairs):
        if place.variable:
            yield place.name
    yield from ex.names_in_text(state.say)


def _durations(rules: Iterable[spec.RuleSpec]) -> list[ex.Expression]:
    return [rule.after for rule in rules if rule.after is not None]


def _first_due(durations: Iterable[ex.Expression]) -> int:
    """Return the number of steps after which the first timer with a literal duration is
    due, or ``NEVER`` if there is none.
    """
    literal = (constant_value(duration) for duration in durations)
    return min(
        (math.ceil(max(value, 0)) for value in literal if value is not None),
        default=NEVER,
    )


def _computed_timers(durations: Iterable[ex.Expression]) -> tuple[Function, ...]:
    return tuple(
        compile_expression(duration)
        for duration in durations
        if constant_value(duration) is None
    )


def _constant_pay(*effects: Effects) -> float:
    return sum((one.constant or 0.0 for one in effects), 0.0)


def _compiled(
    assignments: Iterable[spec.Assignment],
) -> tuple[tuple[str, Function], ...]:
    return tuple((one.variable, compile_expression(one.value)) for one in assignments)


def _kept_on(draws: Iterable[spec.DrawSpec]) -> dict[str, Function]:
    return {
        draw.name: compile_expression(draw.keep_if)
        for draw in draws
        if draw.keep_if is not None
    }


def _criteria(
    schedule: Iterable[spec.BlockSpec],
) -> dict[str, tuple[Function | None, Function | None]]:
    return {
        block.name: (_condition(block.until), _condition(block.ends))
        for block in schedule
        if any(one.condition is not None for one in block.criteria)
    }


def _fixed_heading(start: spec.StartSpec) -> int | None:
    if start.face_variable or start.face == "random":
        return None
    return HEADINGS.index(start.face)


def _recents(trees: Iterable[ex.Expression | None]) -> dict[ex.Recent, int]:
    nodes = chain.from_iterable(map(ex.walk, trees))
    found = dict.fromkeys(node for node in nodes if isinstance(node, ex.Recent))
    return {node: number for number, node in enumerate(found)}


def _optional(tree: ex.Expression | None) -> Function | None:
    return None if tree is None else compile_expression(tree)


def _condition(until: spec.UntilSpec | None) -> Function | None:
    return None if until is None else _optional(until.condition)


def _source(position: object) -> str:
    line = getattr(position, "line", 0)
    return f"{Path(getattr(position, 'file', '')).name}:{line}"
