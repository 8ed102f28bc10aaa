"""Finds the part of a life that can matter later. Lives that agree in this part are one
hypothesis.

The key of a life holds the variables that may be read before they are set again. For
variables that no longer change, it holds only the values of the largest expressions
that consist of them (one value for each member that a rule may concern). It also holds
the pictures of the states that may still come, as a subject with the lesion sees them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any

from cheesebench.errors import ProtocolError
from cheesebench.interfaces import View
from cheesebench.lesions import INTACT, Lesion
from cheesebench.paradigms.arena.program import Program, compile_expression, names_in
from cheesebench.paradigms.arena.scenes import LookKey
from cheesebench.protocol import expressions as ex
from cheesebench.protocol import specification as spec
from cheesebench.protocol.names import TIMEOUT

#: Built-in names that do not change within a trial. (``last`` changes at its end, so
#: only expressions evaluated after the end see another value.)
DATES = ("block", "session", "trial", "subject", "last")
Tabulated = Callable[[Any], Hashable]
#: Name of the pseudo-measure that holds the grade of a trial without a value.
NEUTRAL = "?"


@dataclass(frozen=True, slots=True)
class Key:
    """The variables that matter in a state. ``live`` variables matter through their
    values, ``still`` variables only through the tables and pictures made from them.
    """

    live: tuple[str, ...]
    still: tuple[str, ...]
    dates: tuple[str, ...]
    """The names in ``DATES`` that matter."""
    tables: tuple[Tabulated, ...]
    pictures: tuple[Tabulated, ...]
    vain: tuple[Tabulated, ...]
    """Pictures that are seen only when the trial can no longer succeed."""
    form: int
    """A number for the state, the live variables and the expressions that may be
    evaluated. Where these differ, equal values do not mean equal futures.
    """


class Relevance:
    """Finds the part of a life that can matter for its future. Measures do not count,
    because no rule reads them.
    """

    def __init__(
        self, program: Program, lesion: Lesion = INTACT, view: View | None = None
    ) -> None:
        self._specification = program.specification
        self._program, self._lesion, self._view = program, lesion, view
        #: The grade of a trial without a value. None means that such a trial has the
        #: best grade, 1.
        self.neutral = (
            ex.constant(self._specification.measures[NEUTRAL])
            if NEUTRAL in self._specification.measures
            else None
        )
        self.written = {
            name for one in program.all_effects() for name in written_by(one)
        }
        self._keys: dict[tuple[str, str], Key] = {}
        self._numbers: dict[Hashable, int] = {}
        self._tabulated: dict[Hashable, int] = {}
        self._forms: dict[Hashable, int] = {}
        self._flow = self._flows()
        asked = [site for flow in self._flow.values() for site in flow.asked]
        trees = [tree for tree, _, _ in asked]
        self._read_traces(trees)
        self._read_variables()
        self._read_draws()
        self._read_dates(asked)
        #: Whether later trials may depend on the subject's actions.
        self.behaviour = (
            self.carry
            or any(block.criteria for block in self._specification.schedule)
            or self.last
            or self.past
            or bool(self.written & {*self.kept})
        )
        #: Whether the subject's pose before a trial does not matter, because every
        #: state that begins a trial places it and nothing there reads that pose.
        self.placed_on_entry = self._is_placed_on_entry()
        #: States in which a blind subject only waits for the end of the trial, so that
        #: its pose does not matter.
        self.stuck = self._stuck(trees)
        self._failed = {
            name
            for name, one in self._specification.states.items()
            if _lose(one.rules, self._specification)
        }

    def _flows(self) -> dict[str, Flow]:
        """Return the flow of each block. It is computed in several rounds, because an
        earlier trial must keep everything that a later trial reads.
        """
        passed_on: set[str] = set()
        while True:
            flows = {
                one.name: Flow(self._program, self._lesion, one.name, passed_on)
                for one in self._specification.schedule
            }
            named = set().union(*(flow.named for flow in flows.values()))
            later = {name for name in named & self.written if self._lasts(name)}
            if later <= passed_on:
                return flows
            passed_on = passed_on | later

    def _lasts(self, name: str) -> bool:
        """Return whether a variable, counter or column lasts longer than a trial."""
        if name in self._specification.variables:
            return self._specification.variables[name].per != "trial"
        return any(
            draw.per != "trial"
            for draw in self._specification.draws
            if name in draw.columns
        )

    def _read_traces(self, trees: Sequence[ex.Expression]) -> None:
        specification = self._specification
        #: Whether any expression that matters reads the subject's path, as ``time()``
        #: and ``moves`` do.
        self.trace = any(map(ex.reads_trace, trees))
        #: Groups of places -> their numbers, if the path is read only for the time
        #: spent in some places. Then only these steps are counted, and ``trace`` is
        #: False.
        self.timed_places: dict[tuple[str, ...], int] = {}
        self.timed: list[list[bool]] = []
        if self.trace and (timed := _timed_places(trees, specification)) is not None:
            self.trace = False
            self.timed_places = {places: number for number, places in enumerate(timed)}
            inside = self._program.geometry.inside
            self.timed = [[bool(one) for one in inside(places)] for places in timed]
        nodes = [node for tree in trees for node in ex.walk(tree)]
        self.clock = ex.BuiltIn("steps") in nodes
        self._visited = any(
            isinstance(one, ex.Call) and one.function == "where" for one in nodes
        )
        #: Whether judged trials read the subject's pose, its path or the number of its
        #: steps in any way other than through events and counted time.
        self.way = any(
            isinstance(node, ex.Call | ex.BuiltIn)
            and ex.reads_clock(node)
            and not (self.timed_places and ex.reads_trace(node))
            for name in specification.judged_blocks
            for tree, _, _ in self._flow[name].asked
            for node in ex.walk(tree)
        )

    def _read_variables(self) -> None:
        specification = self._specification
        named = set().union(*(flow.named for flow in self._flow.values()))
        columns = [column for draw in specification.draws for column in draw.columns]
        known = dict.fromkeys(
            [*specification.variables, *columns, *specification.counters]
        )
        self.variables = [name for name in known if name in named]
        lasting = [name for name in self.variables if self._lasts(name)]
        changed = [name for name in lasting if name in self.written]
        #: The lasting variables that a trial may change. Also the variables that decide
        #: whether a draw keeps its row (`keep_if`), and the columns of such draws.
        self.kept = list(dict.fromkeys([*changed, *_repeating(specification)]))
        self.held = [name for name in lasting if name not in self.kept]

    def _read_draws(self) -> None:
        specification = self._specification
        anew = [one for one in specification.draws if _begins_anew(one, specification)]
        repeating = {*_repeating(specification)}
        #: Block -> draws that are never read in it, and whose rows there say nothing
        #: about rows in other blocks.
        self.unread = {
            name: frozenset(
                draw.name
                for draw in anew
                if repeating.union(flow.named).isdisjoint(draw.columns)
            )
            for name, flow in self._flow.items()
        }
        #: Block -> state -> draws that are made when the state is entered.
        self.late = {name: flow.late for name, flow in self._flow.items()}
        self._drawing = {state for flow in self._flow.values() for state in flow.late}
        #: State -> the mask of the events that may involve chance, and whether chance
        #: may act without an event.
        self.chance = {
            name: self._chance(state) for name, state in specification.states.items()
        }

    def _read_dates(self, asked: Sequence[Asked]) -> None:
        specification = self._specification
        guards = [one.guard for one in specification.entry]
        repeated = [one.keep_if for one in specification.draws]
        # Whether a draw keeps its row, or which state begins a trial, may depend on
        # where the last trial ended.
        by_state = [one for one in guards if ex.BuiltIn("state") in ex.walk(one)]
        self.carry = specification.start.carry or any(
            map(_reads_where, [*repeated, *by_state])
        )
        begun = [node for tree in (*guards, *repeated) for node in ex.walk(tree)]
        during = [
            node for tree, _, is_end in asked if not is_end for node in ex.walk(tree)
        ]
        self.last = ex.BuiltIn("last") in begun or ex.BuiltIn("last") in during
        nodes = [*begun, *(node for tree, _, _ in asked for node in ex.walk(tree))]
        #: Whether anything reads `recent()`, so that not only the last outcome matters.
        self.past = any(isinstance(node, ex.Recent) for node in nodes)
        read = {node.name for node in nodes if isinstance(node, ex.BuiltIn)}
        #: Whether the protocol reads the subject's number, so that a subject may know
        #: it.
        self.subject = "subject" in read
        #: The parts of a trial's place in the schedule that the protocol reads. They
        #: are fixed within a trial, and distinguish trials that are otherwise equal.
        self.dates = [name for name in ("block", "session", "trial") if name in read]

    def _is_placed_on_entry(self) -> bool:
        specification = self._specification
        first = [specification.states[one.name].entry for one in specification.entry]
        values = [
            one.value
            for effects in first
            for one in effects.assignments
            if one.variable in self.variables
        ]
        guards = [one.guard for one in specification.entry]
        rewards = [effects.reward for effects in first]
        if self._program.geometry.member_at or any(
            map(_reads_where, (*guards, *rewards, *values))
        ):
            return False
        return all(effects.place is not None for effects in first)

    def _stuck(self, trees: Sequence[ex.Expression]) -> set[str]:
        specification = self._specification
        is_told = (
            self.carry
            or any(map(_reads_where, trees))
            or any(one.go for one in specification.finish)
            or any(rule.target is not None for rule in specification.watch)
        )
        if is_told or not self._lesion.sees_nothing:
            return set()
        return {name for name, one in specification.states.items() if _is_stuck(one)}

    def counts_at(self, pose: int) -> bool:
        return any(inside[pose] for inside in self.timed)

    # -- the key

    def tabulated(self, life: Any) -> int:
        """Return a number for the state, and for everything that matters and stays
        fixed for the rest of the trial. Lives with equal numbers continue alike if all
        that may change is equal, too.
        """
        values, key = life.values, self._key(life)
        raw = (
            life.block,
            life.state,
            *[values.get(name) for name in key.still],
            *[getattr(life, name) for name in key.dates],
        )
        number = self._tabulated.get(raw)
        if number is None:
            told = life.state, *self.told(life), *[one(life) for one in key.vain]
            number = self._tabulated[raw] = self._numbers.setdefault(
                told, len(self._numbers)
            )
        return number

    def told(self, life: Any) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
        """Return two tuples of fixed values: what the rules may read, and the pictures
        that may help in this trial.
        """
        key, it = self._key(life), life.it
        rules, pictures = (
            [one(life) for one in key.tables],
            tuple([one(life) for one in key.pictures]),
        )
        # The rules were evaluated with `it` as each member in turn, so restore the
        # life's own member.
        life.it = it
        return (key.form, *rules), pictures

    def live(self, life: Any) -> tuple[Any, ...]:
        """Return the values of variables that may still change, and may be read before
        they are set.
        """
        values = life.values
        return tuple(
            [
                life.it if name == "it" else values.get(name)
                for name in self._key(life).live
            ]
        )

    def outlasts(self, states: frozenset[str]) -> bool:
        """Return whether a subject can leave itself a note before it enters one of
        these states. A note is an action whose effects matter after the states, or in
        trials without the states. Choosing one of several states to enter is a note,
        too. So is the time, if an expression reads `steps`.
        """
        if not any(flow.acts_before(states) for flow in self._flow.values()):
            return self.clock
        judged = [self._flow[name] for name in self._specification.judged_blocks]
        noted = (
            not flow.is_placed(one) or flow.is_written(one) or not flow.pays_alike(one)
            for flow in self._flow.values()
            for one in states
        )
        visits = self._visited or bool(self.timed_places)
        return (
            len(states) > 1
            or self.clock
            or visits
            or any(noted)
            or any(one.goes_round(states) for one in judged)
        )

    def _key(self, life: Any) -> Key:
        where = life.block, life.state
        key = self._keys.get(where)
        if key is None:
            key = self._keys[where] = self._made(*where)
        return key

    def _made(self, block: str, state: str) -> Key:
        flow = self._flow[block]
        sites, changing = flow.ahead(state)
        live = [name for name in flow.live[state] if name in changing or name == "it"]
        # Later trials read the kept variables even if this trial no longer does.
        still = [name for name in self.kept if name not in changing]
        tables = list(map(_value_of, still))
        pictures, vain = list[Tabulated](), list[Tabulated]()
        dates: list[str] = []
        for site in dict.fromkeys(sites):
            if isinstance(site, spec.StateSpec):
                names = self._program.states[site.name].shows
                fixed = [name for name in names if name not in changing]
                still += fixed
                if len(fixed) < len(names):
                    tables += map(_value_of, fixed)
                elif site.name in self._failed:
                    vain.append(self._look(site.name))
                else:
                    pictures.append(self._look(site.name))
                continue
            tree, members, is_end = site
            for part in _largest(tree, changing, bool(members), is_end=is_end):
                tables.append(_table(part, members))
                still += variables(part)
                dates += _dates(part)
        return Key(
            live=tuple(live),
            still=tuple(dict.fromkeys(still)),
            dates=tuple(dict.fromkeys(dates)),
            tables=tuple(tables),
            pictures=tuple(pictures),
            vain=tuple(vain),
            form=self._forms.setdefault((state, *live, *sites), len(self._forms)),
        )

    def _look(self, name: str) -> Tabulated:
        state, program, view = self._program.states[name], self._program, self._view

        def look(life: Any) -> Hashable:
            try:
                key: LookKey = state.read_look(life)
            except ProtocolError:  # This state cannot be reached with these values.
                return tuple(_plain(life.values.get(one)) for one in state.shows)
            if view is None or self._lesion.sees_nothing:
                return key if view is None else key[0]
            scene = program.gallery(view).look(key).scene
            return key[0], view.render(scene, 0, 0, 0)

        return look

    def _chance(self, state: spec.StateSpec) -> tuple[int, bool]:
        specification, program = self._specification, self._program
        pairs = [
            *zip(state.rules, program.states[state.name].rules, strict=True),
            *zip(specification.watch, program.watch, strict=True),
        ]
        mask = 0
        by_itself = any(
            _scatters(one, specification) for one in (state.each, specification.each)
        )
        for rule, listening in pairs:
            if self._is_chancy(rule):
                mask |= listening.mask
                by_itself = by_itself or not listening.mask
        return mask, by_itself

    def _is_chancy(self, rule: spec.RuleSpec) -> bool:
        """Return whether chance may act in a rule (its ``p`` or its effects), or in the
        states that the rule or a `finish` leads to (their draws and effects).
        """
        specification = self._specification
        names = [one.go for one in specification.finish if one.go]
        names += [rule.go] if rule.go else []
        entered = [specification.states[name] for name in names]
        happens = [rule.effects, *(one.entry for one in entered)]
        happens += [one.each for one in entered]
        return (
            rule.p is not None
            or not self._drawing.isdisjoint(names)
            or any(_scatters(one, specification) for one in happens)
        )


#: An expression, the members that `it` may stand for in the expression (empty if `it`
#: stays the same), and whether the expression is evaluated after the end of the trial.
Asked = tuple[ex.Expression, tuple[str, ...], bool]
Site = Asked | spec.StateSpec
#: States, each with a rule that may fire in it.
Ways = Sequence[tuple[str, spec.RuleSpec]]


def written_by(effects: spec.EffectsSpec) -> tuple[str, ...]:
    return *(one.variable for one in effects.assignments), *effects.count


class Flow:
    """The variables that may still be read in each state of one block."""

    def __init__(
        self, program: Program, lesion: Lesion, block: str, passed_on: set[str]
    ) -> None:
        specification = self._specification = program.specification
        self._program, self._block = program, block
        # The product of 0 and an infinite or undefined value is undefined, so a factor
        # of 0 cancels nothing if such values may occur.
        assigned = [one for own in program.all_effects() for one in own.assignments]
        written = {one.variable for one in assigned}
        self._is_plain = all(_is_defined(one.value, written) for one in assigned)
        self._pays = not lesion.feels_no_reward
        self._sees = not (lesion.sees_nothing or lesion.sees_pose_only)
        self._read_rules()
        self._at_end = passed_on | self._read_at_end()
        self._facing = (
            {specification.start.face} if specification.start.face_variable else set()
        )
        #: State -> the draws that are made when it is entered, because nothing reads
        #: them earlier.
        self.late: dict[str, tuple[str, ...]] = {}
        self._columns: dict[str, set[str]] = {}
        for draw in specification.draws:
            if (name := self._first_read(draw)) is not None:
                self.late[name] = (*self.late.get(name, ()), draw.name)
                self._columns.setdefault(name, set()).update(draw.columns)
        #: State -> the names that may be read, from this state on, before they are set.
        #: ``_before`` is the same table for the moment just before the state is
        #: entered.
        self.live: dict[str, set[str]] = {name: set() for name in specification.states}
        self._before: dict[str, set[str]] = {name: set() for name in self.live}
        while self._read_further():
            pass
        sites = self._sites()
        #: All expressions whose values may matter.
        self.asked = [site for site in sites if not isinstance(site, spec.StateSpec)]
        self.named = self._named(sites, passed_on)

    def _read_rules(self) -> None:
        """Find the rules that may fire in this block, and the expressions that are
        evaluated at the end of a trial.
        """
        specification, block = self._specification, self._block

        def may_hold(one: spec.RuleSpec | spec.FinishSpec) -> bool:
            return not _is_false(one.guard, block)

        self._watch = [*filter(may_hold, specification.watch)]
        finish = [*filter(may_hold, specification.finish)]
        self._finish = [one.guard for one in finish if one.guard is not None]
        criteria = [
            one.condition
            for own in specification.schedule
            if own.name == block
            for one in own.criteria
        ]
        self._asked = [
            tree for tree in (specification.success, *criteria) if tree is not None
        ]
        self._rules = {
            name: [*self._watch, *filter(may_hold, state.rules)]
            for name, state in specification.states.items()
        }
        finished = {one.go for one in finish if one.go}
        self._next = {
            name: finished | {rule.go for rule in rules if rule.go}
            for name, rules in self._rules.items()
        }

    def _read_at_end(self) -> set[str]:
        """Return the names read at the end of a trial, or by ``keep_if`` when the next
        one makes its draws.
        """
        asked = {name for tree in self._asked for name in self._names(tree)}
        repeated = [one.keep_if for one in self._specification.draws]
        return asked.difference({"last"}).union(*map(variables, repeated))

    def _read_further(self) -> bool:
        """Update the names that may be read from each state on, with the names of the
        states that follow it. Return whether any set of names changed.
        """
        changed = False
        for name, state in self._specification.states.items():
            now = self._in_state(state)
            before = self._back(state.entry, now) - self._columns.get(name, set())
            changed = changed or (now, before) != (self.live[name], self._before[name])
            self.live[name], self._before[name] = now, before
        return changed

    def _sites(self) -> list[Site]:
        """Return all parts of a trial that may read variables."""
        entered = self._entered()
        sites = [site for one in entered for site in self.ahead(one)[0]]
        for one in entered:
            entry = self._specification.states[one].entry
            sites += self._effect_sites(entry, self.live[one], ())
        return sites

    def _named(self, sites: Iterable[Site], passed_on: set[str]) -> set[str]:
        """Return the variables, counters and columns that may be read in a trial."""
        specification = self._specification
        start, limit = specification.start.at, specification.limit
        named = {name for one in self._entered() for name in self._before[one]}
        named -= passed_on
        for site in sites:
            if not isinstance(site, spec.StateSpec):
                named |= self._names(site[0])
        named -= {"it", "last"}
        for site in sites:
            if isinstance(site, spec.StateSpec):
                named |= self._shown(site)
        named |= self._facing
        named.update(*(variables(one.guard) for one in specification.entry))
        named |= {start.name} if start.variable else set()
        named |= {limit} if isinstance(limit, str) else set()
        # If a draw takes its values from a lasting set, the set matters, too.
        for draw in reversed(specification.draws):
            if draw.sample is not None and not named.isdisjoint(draw.columns):
                named.add(draw.sample)
        return named

    def is_placed(self, state: str) -> bool:
        """Return whether nothing in a state depends on where the subject was before: it
        is always placed in the same way, or has not moved before.
        """
        states, way = self._specification.states, [state]
        while states[way[-1]].entry.place is None:
            ways = [
                one for one, following in self._next.items() if way[-1] in following
            ]
            if not ways:  # The state begins a trial.
                break
            if len(ways) > 1 or ways[0] in way or way[-1] in self._entered():
                return False  # The subject may choose its path to the state.
            if not states[ways[0]].freeze or self._is_moved(ways[0]):
                return False
            way += ways
        # On entry to a state, values are set and rewards paid before the subject is
        # placed, so they may depend on where it was.
        entry = states[way[-1]].entry
        read = self.live[way[-1]].union(*map(self._names, self._outcomes(entry)))
        told = [one.value for one in entry.assignments if one.variable in read]
        told += [entry.reward] if entry.reward is not None and self._pays else []
        return not any(map(_reads_where, told)) and not any(
            map(self.is_written, way[1:])
        )

    def pays_alike(self, state: str) -> bool:
        """Return whether the reward that comes with the first picture of a state is
        always the same, or is not felt.
        """
        own = self._specification
        # A `finish` rule may lead to the state after any event.
        finishes = any(one.go == state for one in own.finish)
        ways = [
            (one, rule)
            for one, rules in self._rules.items()
            for rule in rules
            if rule.go == state or (finishes and not rule.end)
        ]
        first = self._chosen_rewards(ways) | ({None} if finishes else set())
        is_one = len(first) <= 1 and all(
            isinstance(one, ex.Number | ex.Constant | None) for one in first
        )
        return not self._pays or (is_one and not self._is_paid_more(state, ways))

    def _chosen_rewards(self, ways: Ways) -> set[ex.Expression | None]:
        """Return the rewards of the rules through which a subject may choose to enter a
        state.

        Rules of a state that only waits, and is entered only at the beginning of a
        trial, are not chosen.
        """
        first_only, states = self._only_begun(), self._program.states
        return {
            rule.effects.reward
            for one, rule in ways
            if one not in first_only or not states[one].waits
        }

    def _is_paid_more(self, state: str, ways: Ways) -> bool:
        """Return whether anything but the rules of ``ways`` pays on the way into a
        state.
        """
        own, states = self._specification, self._specification.states
        more = [own.each.reward, states[state].entry.reward]
        more += [rule.effects.reward for rule in self._watch]
        more += [states[one].each.reward for one, _ in ways]
        more += [states[rule.go].entry.reward for _, rule in ways if rule.go]
        return any(more)

    def _is_moved(self, state: str) -> bool:
        happens = [rule.effects for rule in self._rules[state]]
        happens += [self._specification.states[state].each, self._specification.each]
        return any(one.place is not None or one.put is not None for one in happens)

    def goes_round(self, states: frozenset[str]) -> bool:
        """Return whether a trial may succeed without entering any of these states."""
        own, passed = self._specification, self._reachable(self._entered(), states)
        ends = {
            TIMEOUT,
            *(one.end for one in own.finish),
            *(rule.end for one in passed for rule in self._rules[one]),
        }
        return bool(passed) and any(
            holds_of(own.success, one) is not False for one in ends if one
        )

    def acts_before(self, states: frozenset[str]) -> bool:
        """Return whether a subject may act in a trial before it enters one of these
        states for the first time.
        """
        passed = self._reachable(self._entered(), states)
        return any(
            not self._program.states[one].waits
            for one in passed
            if not states.isdisjoint(self._behind(one))
        )

    def _only_begun(self) -> set[str]:
        """Return the states that begin trials and are never entered later."""
        begun = self._entered()
        return {*begun}.difference(
            self._reachable([there for one in begun for there in self._next[one]])
        )

    def is_written(self, state: str) -> bool:
        first_only, states = self._only_begun(), self._specification.states
        before = [one for one in states if one != state and state in self._behind(one)]
        # A state that begins a trial and is never entered later has effects that no
        # subject influences.
        chosen = [one for one in before if one not in first_only]
        ruled = [
            one
            for one in before
            if one in chosen or not self._program.states[one].waits
        ]
        happens = [
            self._specification.each,
            *(rule.effects for one in ruled for rule in self._rules[one]),
        ]
        happens += [
            *(states[one].each for one in before),
            *(states[one].entry for one in chosen),
        ]
        return not self._before[state].isdisjoint(
            ["it", *(name for one in happens for name in written_by(one))]
        )

    def ahead(self, state: str) -> tuple[list[Site], set[str]]:
        """Return the parts of the trial that may read variables from a state on, and
        the variables that may still change before the trial ends.
        """
        states, each = self._specification.states, self._specification.each
        entered = self._reachable(self._next[state])
        sites: list[Site] = [(tree, (), True) for tree in self._asked]
        sites += [(tree, (), False) for tree in self._finish]
        for name in dict.fromkeys((state, *entered)):
            one = states[name]
            sites.append(one)
            sites += self._effect_sites(one.each, self.live[name], ())
            if name in entered:
                sites += self._effect_sites(one.entry, self.live[name], ())
            for rule in self._rules[name]:
                if not self._is_idle(rule, self.live[name]):
                    sites += self._rule_sites(rule, name)
        sites += self._effect_sites(each, set().union(*self.live.values()), ())
        return sites, self._changing(state, entered)

    def _rule_sites(self, rule: spec.RuleSpec, state: str) -> Iterator[Site]:
        members: tuple[str, ...] = ()
        if rule.target is not None:
            members = tuple(self._program.targets(rule.target, rule.trigger))
            if rule.target.variable:
                yield ex.Variable(rule.target.name), (), False
        for tree in (rule.guard, rule.p, rule.after):
            if tree is not None:
                yield tree, members, False
        yield from self._effect_sites(rule.effects, self._after(rule, state), members)

    def _changing(self, state: str, entered: Sequence[str]) -> set[str]:
        """Return the variables that may change from a state on, if the states in
        ``entered`` may be entered.
        """
        states = self._specification.states
        happens = [self._specification.each, *(states[one].entry for one in entered)]
        for name in (state, *entered):
            happens += [states[name].each, *(one.effects for one in self._rules[name])]
        # A draw that is made on entry to a state keeps its values, even if the state is
        # entered again.
        drawn = [
            names
            for one, names in self._columns.items()
            if one in entered and state not in self._behind(one)
        ]
        return {name for one in happens for name in written_by(one)}.union(*drawn)

    def _first_read(self, draw: spec.DrawSpec) -> str | None:
        """Return the latest state at whose entry a draw can be made, because nothing
        reads it before. Return None if there is no such state, or if the draw cannot be
        postponed: only independent draws of a trial can.
        """
        specification, columns = self._specification, {*draw.columns}
        if (
            not _begins_anew(draw, specification)
            or draw.order != "random"
            or any(row[0] is None for row in draw.rows)
            or columns & self._read_anywhere()
        ):
            return None
        states, entered = specification.states, self._entered()
        reading = {
            name for name, one in states.items() if columns & self._read_in_state(one)
        }
        following = {one for first in entered for one in self._next[first]}
        found = []
        for name in states:
            after = self._behind(name)
            before = {*entered, *self._reachable(following, {name})}
            if reading <= after and not before & after and not reading & before:
                found.append((len(after), name))
        return min(found, default=(0, None))[1]

    def _read_anywhere(self) -> set[str]:
        """Return the names that may be read whatever the state is, or before the first
        state.
        """
        specification = self._specification
        trees = [tree for rule in self._watch for tree in self._asked_by(rule)]
        trees += [*self._finish, *self._asked, *self._of_effects(specification.each)]
        names = {name for tree in trees for name in variables(tree)}
        names.update(*(variables(one.guard) for one in specification.entry))
        names.update(*(variables(one.keep_if) for one in specification.draws))
        names |= {one.sample for one in specification.draws if one.sample is not None}
        names |= {specification.start.at.name, str(specification.limit)}
        return names | self._facing

    def _behind(self, state: str) -> set[str]:
        return {state, *self._reachable(self._next[state])}

    def _asked_by(self, rule: spec.RuleSpec) -> list[ex.Expression]:
        target = (
            [ex.Variable(rule.target.name)]
            if rule.target is not None and rule.target.variable
            else []
        )
        asked = [tree for tree in (rule.guard, rule.p, rule.after) if tree is not None]
        return [*target, *asked, *self._of_effects(rule.effects)]

    def _of_effects(self, effects: spec.EffectsSpec) -> list[ex.Expression]:
        place = (
            [ex.Variable(effects.place.name)]
            if effects.place is not None and effects.place.variable
            else []
        )
        # The reward is computed even for a subject that does not feel it, so its
        # variables must have been drawn.
        reward = [effects.reward] if effects.reward is not None else []
        return [
            *reward,
            *(effects.put or ()),
            *place,
            *(one.value for one in effects.assignments),
        ]

    def _read_in_state(self, state: spec.StateSpec) -> set[str]:
        trees = [
            tree for rule in self._rules[state.name] for tree in self._asked_by(rule)
        ]
        trees += [*self._of_effects(state.entry), *self._of_effects(state.each)]
        trees += [
            rule.after for rule in state.rules if rule.after is not None
        ]  # Clocks run in every block.
        names = {name for tree in trees for name in variables(tree)} | {
            *self._program.states[state.name].shows
        }
        return names | {place.name for place in (*state.close, *state.open)}

    def _entered(self) -> list[str]:
        entered = []
        for one in self._specification.entry:
            if not _is_false(one.guard, self._block):
                entered.append(one.name)
            if one.guard is None or one.guard == ex.Binary(
                "==", ex.BuiltIn("block"), ex.Constant(self._block)
            ):
                break
        return entered

    def _reachable(
        self, first: Iterable[str], without: Collection[str] = ()
    ) -> list[str]:
        found, pending = dict[str, None](), list(first)
        while pending:
            name = pending.pop()
            if name not in found and name not in without:
                found[name] = None
                pending += self._next[name]
        return [name for name in self._specification.states if name in found]

    def _names(self, tree: ex.Expression | None) -> set[str]:
        names = set(_read_in(tree, self._block, self._is_plain))
        return names | {
            node.name
            for node in ex.walk(tree)
            if isinstance(node, ex.BuiltIn) and node.name in ("it", "last")
        }

    def _shown(self, state: spec.StateSpec) -> set[str]:
        doors = {place.name for place in (*state.close, *state.open) if place.variable}
        return doors | (
            {*self._program.states[state.name].shows} if self._sees else set()
        )

    def _after(self, rule: spec.RuleSpec, state: str) -> set[str]:
        if rule.end is not None:  # The last picture of the trial belongs to this state.
            return self._at_end | self._shown(self._specification.states[state])
        return self._before[rule.go] if rule.go is not None else self.live[state]

    def _in_state(self, state: spec.StateSpec) -> set[str]:
        found = self._at_end | self._shown(state)
        found.update(*map(self._names, self._finish))
        for effects in (state.each, self._specification.each):
            found |= self._back(effects, self.live[state.name])
        finished = {end.go for end in self._specification.finish}
        for one in finished & self._next[state.name]:
            found |= self._before[str(one)]
        for rule in self._rules[state.name]:
            if not self._is_idle(rule, found | self.live[state.name]):
                found |= self._by_rule(rule, state.name)
        return found

    def _by_rule(self, rule: spec.RuleSpec, state: str) -> set[str]:
        """Return the names that may be read when a rule is evaluated, or later."""
        read = self._back(rule.effects, self._after(rule, state))
        read.update(*map(self._names, (rule.guard, rule.p, rule.after)))
        if rule.target is None:
            return read
        # Within the rule, `it` is the member that the rule concerns.
        return (read - {"it"}) | ({rule.target.name} if rule.target.variable else set())

    def _is_idle(self, rule: spec.RuleSpec, live: set[str]) -> bool:
        if rule.go or rule.end or rule not in self._watch or self._specification.finish:
            return False
        effects = rule.effects
        return (
            effects.place is None
            and not self._outcomes(effects)
            and not {*written_by(effects)} & live
        )

    def _back(self, effects: spec.EffectsSpec, after: set[str]) -> set[str]:
        """Return the names that may be read by these effects, or later before they are
        set.
        """
        read = after | {
            name for tree in self._outcomes(effects) for name in self._names(tree)
        }
        if effects.place is not None:
            read |= self._facing | (
                {effects.place.name} if effects.place.variable else set()
            )
        values = [
            one.value for one in effects.assignments if one.variable in after | read
        ]
        return (read - {one.variable for one in effects.set}) | {
            n for tree in values for n in self._names(tree)
        }

    def _outcomes(self, effects: spec.EffectsSpec) -> list[ex.Expression]:
        reward = [effects.reward] if effects.reward is not None and self._pays else []
        return [*reward, *(effects.put or ())]

    def _effect_sites(
        self, effects: spec.EffectsSpec, after: set[str], members: tuple[str, ...]
    ) -> Iterator[Site]:
        outcomes, place = self._outcomes(effects), effects.place
        if place is not None and place.variable and place.name != "it":
            outcomes.append(ex.Variable(place.name))
        outcomes += [ex.Variable(name) for name in self._facing if place is not None]
        read = {name for tree in outcomes for name in self._names(tree)}
        values = [
            one.value for one in effects.assignments if one.variable in after | read
        ]
        for tree in (*outcomes, *values):
            yield tree, members, False


def _repeating(specification: spec.Specification) -> list[str]:
    """Return the names that decide whether a draw keeps its row (`keep_if`), and the
    columns of such draws.
    """
    repeated = [draw for draw in specification.draws if draw.keep_if is not None]
    read = [name for draw in repeated for name in variables(draw.keep_if)]
    return [*read, *(column for draw in repeated for column in draw.columns)]


def _dates(tree: ex.Expression) -> list[str]:
    names = [node.name for node in ex.walk(tree) if isinstance(node, ex.BuiltIn)]
    return [name for name in names if name in DATES]


def _value_of(name: str) -> Tabulated:
    return lambda life: _plain(life.values.get(name))


def _table(tree: ex.Expression, members: Sequence[str]) -> Tabulated:
    if isinstance(tree, ex.Variable):
        return _value_of(tree.name)
    compute, names = compile_expression(tree), variables(tree)
    has_members = bool(members) and ex.BuiltIn("it") in ex.walk(tree)

    def table(life: Any) -> Hashable:
        found = []
        for member in members if has_members else (life.it,):
            life.it = member
            try:
                found.append(_plain(compute(life)))
            except (ProtocolError, TypeError, ValueError):
                return tuple(_plain(life.values.get(name)) for name in names)
        return tuple(found)

    return table


def _plain(value: Any) -> Hashable:
    """Return a value for use in a key, in which all undefined numbers (NaN) must be
    equal.
    """
    return "undefined" if isinstance(value, float) and math.isnan(value) else value


def _largest(
    tree: ex.Expression, changing: set[str], has_members: bool, *, is_end: bool
) -> list[ex.Expression]:
    """Return the largest subexpressions whose values stay fixed until the end of the
    trial.
    """

    def is_still(node: ex.Expression) -> bool:
        match node:
            case ex.Variable(name):
                return name not in changing
            case ex.BuiltIn("it"):
                return has_members
            case ex.BuiltIn(name):
                return name in DATES and not (is_end and name == "last")
            case ex.Recent():
                return False
            case ex.Call(function, _):
                return function in ("size", "column", "row") and all(
                    map(is_still, ex.parts(node))
                )
        return all(map(is_still, ex.parts(node)))

    def found(node: ex.Expression) -> list[ex.Expression]:
        if is_still(node):
            return (
                [node]
                if any(
                    isinstance(one, ex.Variable | ex.BuiltIn) for one in ex.walk(node)
                )
                else []
            )
        if isinstance(node, ex.Binary) and node.operator in ("and", "or"):
            conditions = list(operands(node, node.operator))
            still = [one for one in conditions if is_still(one)]
            whole = (
                [
                    reduce(
                        lambda left, right: ex.Binary(node.operator, left, right), still
                    )
                ]
                if still
                else []
            )
            return [
                *whole,
                *chain.from_iterable(
                    found(one) for one in conditions if one not in still
                ),
            ]
        return list(chain.from_iterable(map(found, ex.parts(node))))

    return found(tree)


def operands(tree: ex.Expression, operator: str) -> Iterator[ex.Expression]:
    if isinstance(tree, ex.Binary) and tree.operator == operator:
        yield from operands(tree.left, operator)
        yield from operands(tree.right, operator)
    else:
        yield tree


def _is_false(guard: ex.Expression | None, block: str) -> bool:
    """Return whether a guard never holds in a block, because one of its conditions
    excludes the block by its name.
    """
    return guard is not None and any(
        _is_zero(one, block) for one in operands(guard, "and")
    )


def _timed_places(
    trees: Sequence[ex.Expression | None], specification: spec.Specification
) -> list[tuple[str, ...]] | None:
    """Return the groups of places whose ``time`` is read, or None if a group is unknown
    or anything else reads the path.
    """
    places: dict[tuple[str, ...], None] = {}
    for node in (node for tree in trees for node in ex.walk(tree)):
        if not isinstance(node, ex.Call | ex.BuiltIn) or not ex.reads_trace(node):
            continue
        match node:
            case ex.Call("time", ex.Constant(str(name))):
                places[tuple(names_in(name))] = None
            case ex.Call("time", ex.Members(values)):
                places[tuple(names_in(values))] = None
            case ex.Call("time", ex.Variable(name)) if specification.drawn(
                name
            ) and not _is_set(name, specification):
                places.update(
                    dict.fromkeys(
                        tuple(names_in(one)) for one in specification.drawn(name)
                    )
                )
            case _:
                return None
    return list(places)


def _reads_where(tree: ex.Expression | None) -> bool:
    """Return whether an expression depends on the state, or on the subject's steps,
    path or pose.
    """
    visited = any(
        node == ex.BuiltIn("state")
        or (isinstance(node, ex.Call) and node.function == "where")
        for node in ex.walk(tree)
    )
    return visited or ex.reads_clock(tree)


def _is_stuck(state: spec.StateSpec) -> bool:
    return state.freeze and all(
        rule.after is not None and rule.end and rule.guard is None and rule.p is None
        for rule in state.rules
    )


def _is_set(column: str, specification: spec.Specification) -> bool:
    return any(
        draw.pick is not None for draw in specification.draws if column in draw.columns
    )


def _scatters(effects: spec.EffectsSpec, specification: spec.Specification) -> bool:
    """Return whether chance may decide where effects place the subject, or how it faces
    there.
    """
    place, start = effects.place, specification.start
    if place is None:
        return False
    if place.variable and _is_set(place.name, specification):
        return True
    names = specification.drawn(place.name) if place.variable else [place.name]
    facing = start.face == "random" or start.face_variable
    return (
        facing
        or not names
        or any(len(specification.arena.cells_of(name)) > 1 for name in names)
    )


def _begins_anew(draw: spec.DrawSpec, specification: spec.Specification) -> bool:
    """Return whether the rows of a draw in one block say nothing about its rows in
    another.

    A shuffle must complete its rounds in each block: the remainder of a round would
    reveal the first rows of the next block.
    """
    if (
        draw.per != "trial"
        or draw.keep_if is not None
        or draw.sample is not None
        or draw.max_run is not None
    ):
        return False
    if draw.order != "shuffle":
        return draw.order == "random"
    rows = len(draw.rows) if draw.pick is None else math.comb(len(draw.rows), draw.pick)
    return not any(
        block.criteria or block.planned % (rows * draw.copies)
        for block in specification.schedule
    )


def _read_in(tree: ex.Expression | None, block: str, is_plain: bool) -> Iterator[str]:
    """Yield the variables of an expression that matter in a block. Variables in a part
    that is always 0 there do not matter.
    """
    if isinstance(tree, ex.Variable):
        yield tree.name
    elif tree is not None and not _cancels(tree, block, is_plain):
        for part in ex.parts(tree):
            yield from _read_in(part, block, is_plain)


def _cancels(tree: ex.Expression, block: str, is_plain: bool) -> bool:
    """Return whether an expression is known to be 0 in a block, whatever the values of
    its variables.
    """
    match tree:
        case ex.Binary("and", left, right):
            return _is_zero(left, block) or _is_zero(right, block)
        case ex.Binary("*", left, right) if is_plain:
            return (_is_zero(left, block) and _is_defined(right)) or (
                _is_zero(right, block) and _is_defined(left)
            )
    return False


def _is_defined(tree: ex.Expression, written: Collection[str] = ()) -> bool:
    """Return whether an expression is known to have a finite value in any case.
    Otherwise its product with 0 may be undefined.

    Values that are set again and again may overflow: by a sum, unless one side contains
    no name in ``written``, and by a product, unless one side is a condition.
    """
    match tree:
        case ex.Call() | ex.Compute() | ex.Binary("/" | "%"):
            return False
        case ex.Binary("+" | "-", left, right):
            is_bounded = any(
                {*written}.isdisjoint(variables(one)) for one in (left, right)
            )
        case ex.Binary("*", left, right):
            is_bounded = _is_condition(left) or _is_condition(right)
        case _:
            is_bounded = True
    return is_bounded and all(_is_defined(one, written) for one in ex.parts(tree))


def _is_condition(tree: ex.Expression) -> bool:
    return isinstance(tree, ex.Binary) and tree.operator not in ex.ARITHMETIC_SIGNS


def _is_zero(tree: ex.Expression, block: str) -> bool:
    """Return whether an expression is a comparison that excludes a block by its name,
    and is therefore 0 there.
    """
    match tree:
        case ex.Binary("==", ex.BuiltIn("block"), ex.Constant(name)):
            return name != block
        case ex.Binary("!=", ex.BuiltIn("block"), ex.Constant(name)):
            return name == block
    return False


def variables(tree: ex.Expression | None) -> list[str]:
    return [node.name for node in ex.walk(tree) if isinstance(node, ex.Variable)]


def fails(rule: spec.RuleSpec, specification: spec.Specification) -> bool:
    """Return whether this rule leaves the state and rules out success in the trial."""
    return bool(rule.go or rule.end) and _lose([rule], specification)


def _lose(rules: Iterable[spec.RuleSpec], specification: spec.Specification) -> bool:
    """Return whether a trial cannot succeed if only these rules may fire next."""
    ends = {TIMEOUT} | {one.end for one in specification.finish if one.end}
    seen = {one.go for one in specification.finish if one.go}
    pending = [
        *rules,
        *(one for name in seen for one in specification.states[name].rules),
    ]
    while pending:
        one = pending.pop()
        ends |= {one.end} if one.end else set()
        if one.go and one.go not in seen:
            seen.add(one.go)
            pending += specification.states[one.go].rules
    return all(holds_of(specification.success, name) is False for name in ends)


def holds_of(tree: ex.Expression | None, outcome: str) -> bool | None:
    """Return True if a condition holds in all trials with this outcome, False if it
    holds in none, and None if neither is known.
    """
    match tree:
        case ex.Binary("==", ex.BuiltIn("last"), ex.Constant(name)):
            return name == outcome
        case ex.Binary("and", left, right):
            both = holds_of(left, outcome), holds_of(right, outcome)
            return False if False in both else (None if None in both else True)
        case ex.Binary("or", left, right):
            both = holds_of(left, outcome), holds_of(right, outcome)
            return True if True in both else (None if None in both else False)
    return None
