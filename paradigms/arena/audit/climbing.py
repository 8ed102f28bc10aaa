"""Searches for the best subject with a few states of memory.

Behaviours without memory are found first. Behaviours that succeed in different trials
become the states of larger automata, which are then improved part by part. The reported
rate comes from other lives, led step by step.
"""

from __future__ import annotations

import itertools
import random
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from cheesebench.paradigms.arena.audit import automata, runs

#: ``FAR``: a rule is dropped if its score on a quarter of the lives is lower than a
#: rival's by more than this. ``OPTIONS``: maximum number of aims that are tried for one
#: change (all of them without memory). ``PROMISING``: number of these that are the most
#: promising.
FAR, OPTIONS, PROMISING = 0.06, 50, 20
#: Of the starting points that do not grow from a smaller automaton, the share whose
#: states are behaviours of the repertoire. The others are random.
FROM_REPERTOIRE = 0.6
#: ``POOL``: approximate number of behaviours from which pairs are formed. ``PAIRED``:
#: maximum share of the effort for trying pairs. ``PAIRS``: number of the best pairs
#: that are then improved.
POOL, PAIRED, PAIRS = 20, 0.4, 3
#: Number of attempts without gain after which the best rule so far is final:
#: ``IN_VAIN`` for subjects without memory, ``LONG_IN_VAIN`` for subjects with memory.
IN_VAIN, LONG_IN_VAIN = 5, 15
#: A rule is run in fresh lives with ``FRESH`` judged trials. The run ends earlier if it
#: has taken ``CONFIRMED`` steps (at an effort of 1), but not before ``FEWEST`` balanced
#: groups of subjects. While the interval contains the bar, the run goes on, up to
#: ``UNSETTLED`` times as far. The interval is checked only after each doubling, so that
#: it seldom excludes the bar by chance.
FRESH, CONFIRMED, FEWEST, UNSETTLED = 4000, 1_000_000, 4, 16


class Part(NamedTuple):
    """A part of an automaton that a change concerns. ``sight`` and ``kind``: the aim in
    one state, at one sight or at all sights of a kind (``number``). ``behaviour``: all
    aims of a state. ``rule``: the next state after a situation (``at``). ``zero``: what
    the ranks of places are counted from.
    """

    what: Literal["sight", "kind", "behaviour", "rule", "zero"]
    number: int = 0
    state: int = 0
    at: automata.Situation = (0, 0, 0)


class Search:
    """Coordinate ascent with restarts over the automata of one class."""

    def __init__(
        self,
        world: automata.Experience,
        memory: automata.Memory,
        seed: int,
        effort: float,
        begin: Sequence[automata.Automaton] = (),
    ) -> None:
        self._world, self._memory, self._begin = world, memory, begin
        self._most, self._effort = world.spent + effort, effort
        self._chance = random.Random(f"{seed}|{memory}")
        #: Aims that this class may use. An aim that depends on which members were
        #: visited needs memory.
        self._options = [
            [n for n, aim in enumerate(own) if memory.within or not aim.past]
            for own in world.aims
        ]
        members = [len(members) for _, members in world.places.groups]
        self._ranks = [*range(automata.NOWHERE, max(members, default=0))]
        #: Whether this attempt distinguishes sights of one kind. Every other attempt
        #: does not, because a rule that counts from a glyph would otherwise have to be
        #: learnt for each place anew.
        self._is_fine, self._repertoire = False, list[automata.Row]()
        self._has_sights = any(len(own) > 1 for own in world.of_kind)
        has_memory = memory.states > 1
        self._repertoires = {
            fine: world.repertoire(fine=fine) if has_memory else []
            for fine in (False, True)
        }
        #: Kind -> its aims, the most promising first.
        self._promising: dict[int, list[int]] = {}
        #: Number of rules tried, and the score of the last one on a quarter of the
        #: lives.
        self.tried, self._quarter = 0, -1.0

    def find(self) -> tuple[float, automata.Automaton]:
        """Return the best score that the search finds within its effort, and the
        automaton that reaches it.
        """
        begun = [self._start(is_first=True), *self._paired(), *self._copies()]
        best = max(map(self._climbed, begun), key=lambda one: one[0])
        vain, most = 0, IN_VAIN if self._memory.states == 1 else LONG_IN_VAIN
        while not self._is_over and best[0] < 1 and vain < most:
            found = self._climbed(self._start(is_first=False))
            vain += 1
            if found[0] > best[0] + 1e-12:
                best, vain = found, 0
        self._spell_out(best[1])
        return best

    @property
    def _is_over(self) -> bool:
        return self._world.spent > self._most

    # -- scoring

    def _keys(self) -> list[automata.Situation]:
        """Return the situations that the next state may depend on. A component that the
        class of memory ignores is 0.
        """
        codes, ranks = [*range(len(self._world.codes))], self._ranks
        if self._memory.states == 1:
            return []
        match self._memory.name:
            case "outcome":
                return [(0, code, 0) for code in codes]
            case "place":
                return [(0, 0, rank) for rank in ranks]
        states = range(self._memory.states)
        return [(s, code, rank) for s in states for code in codes for rank in ranks]

    def _spell_out(self, automaton: automata.Automaton) -> None:
        """Fill the table of next states. A subject whose class depends on the outcome
        or the place goes to the first state after a situation without a rule, because
        staying in its state would make the state matter.
        """
        name, rules, table = self._memory.name, automaton.rules, automaton.table
        if self._memory.states == 1:
            return
        if name == "any":
            automaton.table = rules
            return
        for state in range(self._memory.states):
            for code in range(len(self._world.codes) + 6):
                for rank in self._ranks:
                    key = (0, code, 0) if name == "outcome" else (0, 0, rank)
                    table[state, code, rank] = rules.get(key, 0)

    def _score(self, automaton: automata.Automaton, rival: float = -1.0) -> float:
        """Return the mean over judged trials, or -1 if it is far behind a rival on a
        quarter of the lives.
        """
        self._spell_out(automaton)
        self.tried += 1
        world = self._world
        total, judged, quarter = 0.0, 0, len(world.lives) // 4
        marks: list[float] = []
        for number, trials in enumerate(world.play(automaton), 1):
            total, judged = total + sum(trials), judged + len(trials)
            if number <= quarter:
                marks += trials
            if number == quarter:
                self._quarter = total / max(1, judged)
                if self._memory.states == 1 and not self._memory.within:
                    world.note(automaton.of_state()[0], marks)
                if self._quarter < rival - FAR:
                    return -1.0
        return total / max(1, judged)

    # -- beginnings

    def _start(self, *, is_first: bool) -> automata.Automaton:
        chance, states = self._chance, self._memory.states
        self._is_fine = self._has_sights and not (is_first or self._is_fine)
        self._repertoire = self._repertoires[self._is_fine]
        if is_first and states == 1:
            return automata.Automaton(self._memory, [[0] for _ in self._world.kind_of])
        if self._begin and (is_first or chance.random() < 0.3):
            return self._grown(
                self._begin[-1] if is_first else chance.choice(self._begin)
            )
        aims = self._first_aims()
        zero = chance.randrange(len(self._world.zeros))
        automaton = automata.Automaton(self._memory, aims, zero)
        if self._begin and chance.random() < 0.5:
            automaton.zero = self._begin[-1].zero
        automaton.rules = self._partition()
        return automaton

    def _first_aims(self) -> list[list[int]]:
        """Return behaviours of the repertoire, or random aims."""
        chance, states = self._chance, range(self._memory.states)
        if self._repertoire and chance.random() < FROM_REPERTOIRE:
            return [list(own) for own in zip(*self._behaviours(), strict=True)]
        kinds = self._world.kind_of
        if self._is_fine:
            return [[chance.choice(self._options[k]) for _ in states] for k in kinds]
        alike = [[chance.choice(own) for _ in states] for own in self._options]
        return [list(alike[kind]) for kind in kinds]

    def _paired(self) -> list[automata.Automaton]:
        """Return the best pairs of behaviours. A pair swaps its behaviours after one
        kind of news. One behaviour alone may be poor, so changing one part at a time
        would not find the pair.
        """
        if self._memory.states != 2 or self._memory.name == "place":
            return []
        most = self._world.spent + PAIRED * self._effort
        pairs = [*itertools.permutations(self._pool(), 2)]
        self._chance.shuffle(pairs)
        found: list[tuple[float, automata.Automaton]] = []
        rival = -1.0
        for pair, rules in itertools.product(pairs, self._changes()):
            if self._world.spent > most:
                break
            rows = [list(own) for own in zip(*pair, strict=True)]
            automaton = automata.Automaton(self._memory, rows, rules=rules)
            score = self._score(automaton, rival)
            rival = max(rival, self._quarter)
            found.append((score, automaton))
        found.sort(key=lambda one: -one[0])
        return [automaton for _, automaton in found[:PAIRS]]

    def _copies(self) -> list[automata.Automaton]:
        """Return the best copying subject, if there is one. Its state is the place that
        paid last, and at one kind of picture it goes there: it copies a sample, or the
        last trial.

        A search by single changes would seldom find it, because all of its states and
        rules must be there before any of them helps.
        """
        if self._memory.states == 1 or self._memory.name == "outcome":
            return []
        found, rival = list[tuple[float, automata.Automaton]](), -1.0
        for automaton in self._copying():
            score = self._score(automaton, rival)
            rival = max(rival, self._quarter)
            found.append((score, automaton))
        found.sort(key=lambda one: -one[0])
        return [automaton for _, automaton in found[:1]]

    def _copying(self) -> Iterator[automata.Automaton]:
        world, states = self._world, range(self._memory.states)
        base = next(iter(world.best(1)), (0,) * len(world.kind_of))
        for kind, sights in enumerate(world.of_kind):
            for (zero, _), firsts in self._families(kind).items():
                own = [firsts[s * len(firsts) // len(states)] for s in states]
                rows = [
                    [*own] if n in sights else [old for _ in states]
                    for n, old in enumerate(base)
                ]
                yield automata.Automaton(
                    self._memory, rows, zero, self._rules_of_copy(len(firsts))
                )

    def _families(self, kind: int) -> dict[tuple[int, object], list[int]]:
        """Return the aims of a kind in families. The aims of a family differ only in
        the member that they go to, and are in the order of the members. A key begins
        with the zero that they count from. Families with fewer members than there are
        states are left out.
        """
        world, found = self._world, dict[tuple[int, object], dict[int, int]]()
        for number in self._options[kind]:
            aim = world.aims[kind][number]
            if aim.zero in world.zeros and aim == aim.simple:
                key = (world.zeros.index(aim.zero), aim._replace(first=0))
                found.setdefault(key, {})[aim.first] = number
        return {
            key: [firsts[n] for n in sorted(firsts)]
            for key, firsts in found.items()
            if len(firsts) >= self._memory.states
        }

    def _rules_of_copy(self, members: int) -> dict[automata.Situation, int]:
        paid = {
            code
            for (what, _), code in self._world.codes.items()
            if what in automata.PAID[1:]
        }
        is_place, states = self._memory.name == "place", self._memory.states
        return {
            (state, code, rank): rank * states // members
            if rank != automata.NOWHERE
            and rank < members
            and (is_place or code in paid)
            else state
            for state, code, rank in self._keys()
        }

    def _pool(self) -> list[automata.Row]:
        """Return behaviours of the repertoire, and variants of the best behaviour. A
        variant has, at one kind of picture, one of the simplest or most promising aims
        instead.
        """
        world, pool = self._world, dict.fromkeys(self._repertoires[False])
        base = next(iter(world.best(1)), (0,) * len(world.kind_of))
        each = max(3, POOL // len(world.of_kind)) // 2
        for kind, sights in enumerate(world.of_kind):
            own = world.aims[kind]
            options = sorted(
                self._options[kind], key=lambda n: automata.simplicity(own[n])
            )
            for aim in (*options[:each], *self._ranked(kind)[:each]):
                row = [aim if n in sights else old for n, old in enumerate(base)]
                pool[tuple(row)] = None
        return [*pool]

    def _changes(self) -> list[dict[automata.Situation, int]]:
        """Return rules that change the state after one kind of news, or after all other
        kinds. Rules on outcomes give the next state whatever the present one is.
        """
        codes, is_any = range(len(self._world.codes)), self._memory.name == "any"
        chosen = [{code} for code in codes]
        chosen += [{*codes} - one for one in chosen if len(codes) > 2]
        return [
            {
                (state, code, rank): 1 - state if code in one else state
                for state, code, rank in self._keys()
            }
            if is_any
            else {(0, code, 0): int(code in one) for code in codes}
            for one in chosen
        ]

    def _behaviours(self) -> list[automata.Row]:
        """Return one behaviour for each state. In about a quarter of the attempts (and
        if there are no others), these are the behaviours that complement each other
        best. Otherwise they are a random sample.
        """
        states, known = self._memory.states, self._repertoire
        if len(known) <= states or self._chance.random() < 0.25:
            return [known[n % len(known)] for n in range(states)]
        return self._chance.sample(known, states)

    def _grown(self, smaller: automata.Automaton) -> automata.Automaton:
        """Return an automaton of this class that behaves like a smaller one."""
        states, had = self._memory.states, smaller.memory.states
        aims = [[row[s % had] for s in range(states)] for row in smaller.aims]
        automaton = automata.Automaton(self._memory, aims, smaller.zero)
        for key in self._keys():
            state, code, rank = key
            following = smaller.table.get((state % had, code, rank))
            if following is not None:
                automaton.rules[key] = following
            elif had == 1 and self._chance.random() < 0.5:
                automaton.rules[key] = self._chance.randrange(states)
        return automaton

    def _partition(self) -> dict[automata.Situation, int]:
        """Return random but plausible rules. For example, neighbouring places lead to
        the same state, or the state stays the same after a failure.
        """
        chance, states = self._chance, self._memory.states
        count = max(self._ranks) + 1
        turn, is_arc = chance.randrange(max(1, count)), chance.random() < 0.5
        part = {
            rank: (rank + turn) % count * states // count
            if is_arc
            else chance.randrange(states)
            for rank in range(count)
        }
        by_place = self._memory.clock == "trial" and chance.random() < 0.5
        after = "place" if by_place else chance.choice(("stay", "next", "place"))
        pays = {
            code: what in automata.PAID[1:]
            if chance.random() < 0.8
            else chance.random() < 0.5
            for (what, _), code in self._world.codes.items()
        }
        rules: dict[automata.Situation, int] = {}
        for state, code, rank in self._keys():
            if self._memory.name == "outcome":
                following = chance.randrange(states)
            elif self._memory.name == "place" or pays.get(code) or after == "place":
                following = part.get(rank, state)
            else:
                following = state if after == "stay" else (state + 1) % states
            rules[state, code, rank] = following
        return rules

    # -- climbing

    def _climbed(
        self, automaton: automata.Automaton
    ) -> tuple[float, automata.Automaton]:
        """Improve one part at a time, in random order, until no change helps or the
        effort is spent. Return the score and the automaton.
        """
        score, vain = self._score(automaton), 0
        rival = self._quarter
        while vain < 2 and score < 1:
            vain += 1
            parts = self._parts()
            self._chance.shuffle(parts)
            for part in parts:
                if self._is_over:
                    return score, automaton
                for other in self._changed(automaton, part):
                    there = self._score(other, rival)
                    if there > score + 1e-12:
                        automaton, score, vain, rival = other, there, 0, self._quarter
        return score, automaton

    def _parts(self) -> list[Part]:
        world, states = self._world, range(self._memory.states)
        parts = [Part("kind", n, s) for n in range(len(world.of_kind)) for s in states]
        if self._is_fine:
            parts += [
                Part("sight", n, s) for n in range(len(world.kind_of)) for s in states
            ]
        return parts + (self._parts_of_memory() if self._memory.states > 1 else [])

    def _parts_of_memory(self) -> list[Part]:
        states = range(self._memory.states) if self._repertoire else []
        parts = [Part("rule", at=key) for key in self._keys()]
        parts += [Part("behaviour", state=s) for s in states]
        return parts + ([Part("zero")] if self._memory.name != "outcome" else [])

    def _changed(
        self, automaton: automata.Automaton, part: Part
    ) -> Iterator[automata.Automaton]:
        match part.what:
            case "zero":
                for zero in range(len(self._world.zeros)):
                    yield replace(automaton.copy(), zero=zero)
            case "rule":
                for following in range(self._memory.states):
                    if following != automaton.rules.get(part.at):
                        other = automaton.copy()
                        other.rules[part.at] = following
                        yield other
            case "behaviour":
                for behaviour in self._repertoire:
                    yield _with(automaton, part.state, dict(enumerate(behaviour)))
            case "sight":
                kind = self._world.kind_of[part.number]
                for aim in self._some(kind):
                    yield _with(automaton, part.state, {part.number: aim})
            case "kind":
                for aim in self._some(part.number):
                    own = dict.fromkeys(self._world.of_kind[part.number], aim)
                    yield _with(automaton, part.state, own)

    def _some(self, kind: int) -> list[int]:
        """Return the aims to try for a kind: all of them, or the most promising ones
        and a sample of the others.
        """
        options = self._options[kind]
        if len(options) <= OPTIONS or self._memory.states == 1:
            return options
        first = self._ranked(kind)[:PROMISING]
        rest = [one for one in options if one not in first]
        return [*first, *self._chance.sample(rest, OPTIONS - len(first))]

    def _ranked(self, kind: int) -> list[int]:
        if kind not in self._promising:
            promise = self._world.promise(kind)
            self._promising[kind] = sorted(
                self._options[kind], key=lambda aim: -promise[aim]
            )
        return self._promising[kind]


def without_memory(row: automata.Row) -> automata.Automaton:
    """Return the subject that always shows this behaviour."""
    return automata.Automaton(automata.Memory("nothing"), [[aim] for aim in row])


def _with(
    automaton: automata.Automaton, state: int, aims: dict[int, int]
) -> automata.Automaton:
    """Return a copy whose aims at some sights are replaced in one state."""
    other = automaton.copy()
    for sight, aim in aims.items():
        other.aims[sight][state] = aim
    return other


def _share(counts: Sequence[tuple[float, int]]) -> float:
    return sum(p for p, _ in counts) / max(1, sum(n for _, n in counts))


@dataclass(frozen=True, slots=True)
class Fresh:
    """The result of an automaton in lives that were not used for its selection: the
    mean over judged trials, and a 99 % interval.
    """

    value: float
    low: float
    high: float
    trials: int

    def passes(self, bar: float) -> bool | None:
        """Return whether the whole interval is above the bar, or None if the bar is in
        the interval.
        """
        return None if self.low <= bar <= self.high else self.low > bar


def confirmed(
    world: automata.Experience,
    automaton: automata.Automaton,
    seed: int,
    effort: float,
    used: Counter[automata.Situation],
    bar: float | None = None,
) -> Fresh:
    """Lead fresh lives, and return the result. While the interval contains ``bar``, if
    there is one, more lives are led, up to ``UNSETTLED`` times as many. ``used`` counts
    the situations in all of them. Each balanced group of subjects is one observation,
    because a habit does best with some subjects of a group and worst with others.
    """
    groups: list[tuple[float, int]] = []
    begun, planned, far = world.spent, 0, 1
    lives = runs.lives_for(world.specification, FRESH * UNSETTLED, seed, judged=True)
    for _, group in itertools.groupby(lives, key=lambda one: one[0]):
        spent = (world.spent - begun) / (CONFIRMED * effort)
        if planned >= FRESH * far or (spent > far and len(groups) >= FEWEST):
            is_settled = bar is None or _fresh(world, groups).passes(bar) is not None
            if is_settled or far == UNSETTLED:
                break
            far *= 2
        subjects = list(group)
        planned += sum(trials for _, _, trials in subjects)
        scores = [world.live(automaton, *own[:2], used) for own in subjects]
        groups.append((sum(p for p, _ in scores), sum(n for _, n in scores)))
    return _fresh(world, groups)


def _fresh(world: automata.Experience, groups: Sequence[tuple[float, int]]) -> Fresh:
    value, trials = _share(groups), sum(n for _, n in groups)
    if world.measure is None:
        there = runs.rate([(round(p), n) for p, n in groups], runs.Z99)
        return Fresh(value, there.low, there.high, trials)
    means = [p / n for p, n in groups if n]
    error = (
        runs.Z99 * statistics.stdev(means) / len(means) ** 0.5
        if len(means) > 1
        else 1e9
    )
    return Fresh(value, value - error, value + error, trials)
