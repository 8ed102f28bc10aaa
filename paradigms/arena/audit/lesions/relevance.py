"""What of a life can matter to what is to come."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from cheesebench.paradigms.arena.program import Program, names_in
from cheesebench.protocol import texts
from cheesebench.protocol.expressions import (
    Binary,
    BuiltIn,
    Call,
    Compute,
    Constant,
    Expression,
    Members,
    Recent,
    Variable,
    parts,
    reads_place,
    reads_trace,
    walk,
)
from cheesebench.protocol.specification import DrawSpec, EffectsSpec, Specification, StateSpec


class Relevance:
    """What of a life can matter to what is to come; measures are for reports only."""

    def __init__(self, program: Program, *, is_blind: bool = False) -> None:
        specification = program.specification
        effects = list(program.all_effects())
        rules = [rule for state in specification.states.values() for rule in state.rules] + list(specification.watch)
        measures = {id(tree) for tree in specification.measures.values()}
        sets = [assignment for one in effects for assignment in one.assignments]
        written = {id(assignment.value) for assignment in sets}
        deciding = [tree for tree in program.all_expressions() if id(tree) not in measures | written]
        #: Of each state, the events on which chance may have a say, and whether it may have without an event.
        self.chance = {name: self._chance(program, state) for name, state in specification.states.items()}
        start, named = specification.start, {name for tree in deciding for name in _variables(tree)}
        places = [
            start.at,
            *(one.place for one in effects if one.place),
            *(rule.target for rule in rules if rule.target),
        ]
        for state in specification.states.values():
            places += [*state.close, *state.open, *(place for pair in state.show for place in pair)]
        elsewhere = {place.name for place in places if place.variable}
        elsewhere |= {name for state in specification.states.values() for name in texts.names(state.say)}
        elsewhere |= {start.face} if start.face_variable else set()
        elsewhere |= {specification.limit} if isinstance(specification.limit, str) else set()
        turned = {specification.rotate} if specification.rotate is not None else set()
        # To the blind it is the same which side of the picture is up.
        more = named = named | elsewhere | (set() if is_blind else turned)
        while more:  # what is copied into a variable that matters, matters
            read = {name for one in sets if one.variable in more for name in _variables(one.value)}
            more = read - named
            named = named | more
        for draw in reversed(specification.draws):  # what is dealt out of a set that lasts matters
            named |= {draw.sample} if draw.sample is not None and named & {*draw.columns} else set()
        trees = deciding + [one.value for one in sets if one.variable in named]
        #: Whether a rule, an end or success reads where the subject has been; or the steps of the trial.
        self.trace = any(map(reads_trace, trees))
        #: Where a trace is read for the time in some places only, these are counted instead: place -> its number.
        self.timed_places: dict[tuple[str, ...], int] = {}
        self.timed: list[list[bool]] = []
        if self.trace and (timed := _timed_places(trees, specification)) is not None:
            self.trace = False
            self.timed_places = {places: number for number, places in enumerate(timed)}
            self.timed = [[bool(one) for one in program.geometry.inside(places)] for places in timed]
        self.clock = any(BuiltIn("steps") in walk(tree) for tree in trees)
        read = {part.name for tree in program.all_expressions() for part in walk(tree) if isinstance(part, BuiltIn)}
        #: What is read besides of what lasts for a trial at least.
        self.read = [name for name in ("it", "last") if name in read]
        #: What is read of which trial it is: it stays for the trial, and differs between trials that are alike.
        self.dates = [name for name in ("block", "session", "trial") if name in read]
        scope = {name: variable.per for name, variable in specification.variables.items()}
        scope |= {column: draw.per for draw in specification.draws for column in draw.columns}
        self.drawn = [column for draw in specification.draws for column in draw.columns if column in named]
        self.variables = [name for name in (*scope, *specification.counters) if name in named]
        self.lasting = [
            column for draw in specification.draws if draw.per != "trial" for column in draw.columns if column in named
        ]
        self.kept = [name for name in self.variables if scope.get(name, "trial") != "trial"]
        self.kept += [column for draw in specification.draws if draw.keep_if is not None for column in draw.columns]
        keeping = [name for draw in specification.draws for name in _variables(draw.keep_if)]
        self.kept = list(dict.fromkeys([*self.kept, *keeping]))
        everywhere = {*keeping, *elsewhere, *turned, *(draw.sample for draw in specification.draws)}
        #: Block -> the draws of which nothing is read in it: their rows change nothing there.
        self.unread = {
            block.name: frozenset(
                draw.name
                for draw in specification.draws
                if _begins_anew(draw, specification)
                and not {*draw.columns} & (everywhere | {name for one in trees for name in _read_in(one, block.name)})
            )
            for block in specification.schedule
        }
        self.carry = start.carry
        last = (*(entry.guard for entry in specification.entry), *(draw.keep_if for draw in specification.draws))
        self.last = any(BuiltIn("last") in walk(tree) for tree in last)
        #: Whether it matters how earlier trials ended, one by one.
        self.past = any(isinstance(node, Recent) for tree in trees for node in walk(tree))
        until = any(block.criteria for block in specification.schedule)
        #: Whether later trials depend on what a subject does.
        self.behaviour = (
            self.carry or until or self.last or self.past or bool({one.variable for one in sets} & set(self.kept))
        )
        #: Whether every state in which a trial begins puts the subject somewhere: where it was before is nothing.
        self.placed_on_entry = not program.geometry.member_at and all(
            program.states[name].entry.place is not None for _, name in program.entry
        )

        #: States in which the blind only wait for the end of the trial: how they are put there is nothing to them.
        is_told = self.carry or reads_place(specification.success) or any(one.go for one in specification.finish)
        self.stuck = {name for name, one in specification.states.items() if is_blind and not is_told and _is_stuck(one)}

    def counts_at(self, pose: int) -> bool:
        """Return whether a step that ends in this pose is counted."""
        return any(inside[pose] for inside in self.timed)

    def _chance(self, program: Program, state: StateSpec) -> tuple[int, bool]:
        specification, compiled = program.specification, program.states[state.name]
        pairs = [*zip(state.rules, compiled.rules, strict=True), *zip(specification.watch, program.watch, strict=True)]
        finished = [specification.states[one.go] for one in specification.finish if one.go]
        mask, by_itself = 0, any(_scatters(one, specification) for one in (state.each, specification.each))
        for rule, listening in pairs:
            others = [specification.states[rule.go]] if rule.go else []
            entered = [effects for other in (*others, *finished) for effects in (other.entry, other.each)]
            if rule.p is not None or any(_scatters(one, specification) for one in (rule.effects, *entered)):
                mask |= listening.mask
                by_itself = by_itself or not listening.mask
        return mask, by_itself


def _timed_places(trees: Sequence[Expression | None], specification: Specification) -> list[tuple[str, ...]] | None:
    """Return the places whose ``time`` is read, if nothing else of a trace is; None where they cannot be listed."""
    places: dict[tuple[str, ...], None] = {}
    for node in (node for tree in trees for node in walk(tree)):
        if not isinstance(node, Call | BuiltIn) or not reads_trace(node):
            continue
        match node:
            case Call("time", Constant(str(name))):
                places[tuple(names_in(name))] = None
            case Call("time", Members(values)):
                places[tuple(names_in(values))] = None
            case Call("time", Variable(name)) if specification.drawn(name) and not _is_set(name, specification):
                places.update(dict.fromkeys(tuple(names_in(one)) for one in specification.drawn(name)))
            case _:
                return None
    return list(places)


def _is_stuck(state: StateSpec) -> bool:
    return state.freeze and all(
        rule.after is not None and rule.end and rule.guard is None and rule.p is None for rule in state.rules
    )


def _is_set(column: str, specification: Specification) -> bool:
    return any(draw.pick is not None for draw in specification.draws if column in draw.columns)


def _scatters(effects: EffectsSpec, specification: Specification) -> bool:
    """Return whether effects may put the subject in one of several poses."""
    place, start = effects.place, specification.start
    if place is None:
        return False
    names = specification.drawn(place.name) if place.variable else [place.name]
    facing = start.face == "random" or start.face_variable
    return facing or not names or any(len(specification.arena.cells_of(name)) > 1 for name in names)


def _begins_anew(draw: DrawSpec, specification: Specification) -> bool:
    """Return whether what a draw gives in one block says nothing of what it gives in another.

    A shuffle must have whole rounds in each block: what is left of a round would tell what comes in the next block.
    """
    if draw.per != "trial" or draw.keep_if is not None or draw.sample is not None or draw.max_run is not None:
        return False
    if draw.order != "shuffle":
        return draw.order == "random"
    rows = len(draw.rows) if draw.pick is None else math.comb(len(draw.rows), draw.pick)
    return not any(block.criteria or block.planned % (rows * draw.copies) for block in specification.schedule)


def _read_in(tree: Expression | None, block: str) -> Iterator[str]:
    """Yield the variables of an expression that matter in a block: not those of a product with a factor of 0."""
    if isinstance(tree, Variable):
        yield tree.name
    elif tree is not None and not _cancels(tree, block):
        for part in parts(tree):
            yield from _read_in(part, block)


def _cancels(tree: Expression, block: str) -> bool:
    """Return whether an expression is 0 in a block, whatever the variables in it hold."""
    match tree:
        case Binary("and", left, right):
            return _is_zero(left, block) or _is_zero(right, block)
        case Binary("*", left, right):
            return (_is_zero(left, block) and _is_defined(right)) or (_is_zero(right, block) and _is_defined(left))
    return False


def _is_defined(tree: Expression) -> bool:
    """Return whether an expression always has a value: 0 times none is none."""
    return not any(
        isinstance(node, Call | Compute) or (isinstance(node, Binary) and node.operator in ("/", "%"))
        for node in walk(tree)
    )


def _is_zero(tree: Expression, block: str) -> bool:
    """Return whether an expression says no more than that this is another block."""
    match tree:
        case Binary("==", BuiltIn("block"), Constant(name)):
            return name != block
        case Binary("!=", BuiltIn("block"), Constant(name)):
            return name == block
    return False


def _variables(tree: Expression | None) -> list[str]:
    return [node.name for node in walk(tree) if isinstance(node, Variable)]
