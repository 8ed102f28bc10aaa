"""Checks that an amnesia at a state abolishes success because it removes the item to
remember. The amnesia removes everything before the state, and so also any information
that is given after the item. Therefore the same limit must hold for amnesias at earlier
states.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from cheesebench.lesions import Lesion
from cheesebench.paradigms.arena.audit import beliefs, exact, runs, walks
from cheesebench.paradigms.arena.audit.adversary import Adversary
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.protocol import Specification
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.specification import ConstructSpec, RuleSpec

#: At most this many different beginnings of a trial are searched for information given
#: before a state. If there are more, the information counts as given.
BEGINNINGS = 16
#: Number of random trials that show which states follow which.
WANDERED = 60
#: The states that may follow each state.
Following = Mapping[str, set[str]]


def earlier_amnesias(
    paradigm: ArenaParadigm, effort: float, seed: int = 0
) -> dict[Lesion, float]:
    """Return amnesias at earlier states under which subjects may succeed more often
    than the construct allows. Each has its limit of the pass rate. There are none
    unless the construct is a memory.

    The construct of a memory task names an amnesia at a state (of the choice, say). The
    same limit must hold for an amnesia at every state after the one that first tells
    the item to remember. A state from which all paths lead through another amnesia of
    the construct is left to that amnesia.
    """
    construct = paradigm.specification.construct
    found: dict[Lesion, float] = {}
    if construct is None or construct.kind != "memory":
        return found
    named = [one for one in construct.abolished_by if one[0].forgets_at]
    ways = [following(paradigm.specification)]
    ways += [wandered(paradigm, seed)] if named else []
    for lesion, at_most in named:
        for states in places_between(paradigm.specification, lesion, ways):
            earlier = replace(
                lesion, amnesia=states | (lesion.amnesia - lesion.forgets_at)
            )
            if is_told(paradigm, earlier, states, effort):
                found[earlier] = min(at_most, found.get(earlier, 1.0))
    return found


def places_between(
    specification: Specification, lesion: Lesion, ways: Iterable[Following]
) -> list[frozenset[str]]:
    """Return the states between the first states of a trial and the states of an
    amnesia. Each is returned alone, and together with its alternatives, because the
    choice between them may reveal the item to remember.

    ``ways`` has two tables of the states that follow each state: by the protocol, and
    in actual trials. A rule that never fires makes alternatives look as if one followed
    the other.
    """
    between = states_between(specification, lesion)
    places = [frozenset({one}) for one in between]
    for following in ways:
        after = {one: _reached({one}, following, lesion.forgets_at) for one in between}
        places += [frozenset({one, *_beside(one, after)}) for one in between]
    return [*dict.fromkeys(places)]


def _beside(state: str, after: Mapping[str, set[str]]) -> list[str]:
    """Return the first states of the paths that neither lead to this state nor follow
    it. ``after`` has the states that each state leads to.
    """
    apart = [n for n in after if n not in after[state] and state not in after[n]]
    return [n for n in apart if not any(n in after[m] for m in apart if m != n)]


def states_between(specification: Specification, lesion: Lesion) -> list[str]:
    """Return the states between the first states of a trial and the states of an
    amnesia, in the order of the file. A state from which all paths lead through another
    amnesia of the construct is left out. A first state is included if a trial may
    return to it.
    """
    if not lesion.forgets_at or specification.construct is None:
        return []
    ways = following(specification)
    passed = _reached(_begun_in(specification), ways, lesion.forgets_at)
    entered = set[str]().union(*(ways[one] for one in passed))
    named = _named(specification.construct) - lesion.forgets_at
    return [
        name
        for name in specification.states
        if name in passed & entered
        and _reached({name}, ways, named) & lesion.forgets_at
    ]


def _begun_in(specification: Specification) -> set[str]:
    return {one.name for one in specification.entry}


def _named(construct: ConstructSpec) -> set[str]:
    lesions = [*(one for one, _ in construct.abolished_by), *construct.spared_by]
    return {state for one in lesions for state in one.forgets_at}


def following(specification: Specification) -> Following:
    """Return, for each state, the states that may follow it by the rules of the
    protocol.
    """
    always = {rule.go for rule in specification.watch if rule.go}
    always |= {one.go for one in specification.finish if one.go}
    return {
        name: always | {rule.go for rule in state.rules if rule.go}
        for name, state in specification.states.items()
    }


def wandered(paradigm: ArenaParadigm, seed: int) -> Following:
    """Return, for each state, the states that follow it in trials of subjects that go
    from event to event at random. The key '' has the states that begin a trial.
    """
    specification = paradigm.specification
    found: dict[str, set[str]] = {name: set() for name in ("", *specification.states)}
    for own_seed, subject, count in runs.lives_for(specification, WANDERED, seed):
        chance = random.Random(f"{own_seed}|{subject}|states")
        walker = runs.Walker(paradigm.program, runs.event_random(chance))
        life = ArenaSubject(paradigm.program, runs.DARKNESS, own_seed, subject)
        seen = [""]
        for _ in runs.walk(
            life,
            walker,
            specification,
            count,
            lambda one, _, seen=seen: seen.append(one.state),  # type: ignore[misc]
            every_block=True,
        ):
            for one, other in pairwise(seen):
                found[one].add(other)
            del seen[1:]
    return found


def _reached(first: set[str], ways: Following, without: Collection[str]) -> set[str]:
    """Return these states and all that may follow them. Paths end before the states in
    ``without``, which are left out.
    """
    found, pending = set[str](), [one for one in first if one not in without]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += ways[name] - set(without)
    return found


def is_told(
    paradigm: ArenaParadigm, lesion: Lesion, states: frozenset[str], effort: float
) -> bool:
    """Return whether subjects may know different things just before they enter one of
    these states, from the results of their actions or from the pictures. Also return
    True if a trial may begin in one of the states, has more than ``BEGINNINGS``
    beginnings, or leaves chance too many ways.
    """
    specification = paradigm.specification
    ways, begun_in = following(specification), _begun_in(specification)
    earlier = [
        one
        for name, one in specification.states.items()
        if name in _reached(begun_in, ways, states) | (begun_in & states)
        and states & _reached({name}, ways, ())
    ]
    if states & begun_in or any(
        _answers(rule) for one in earlier for rule in one.rules
    ):
        return True
    adversary = Adversary(paradigm, lesion, effort)
    if math.prod(adversary.world.ways()) > beliefs.MOST_WAYS:
        return True  # That is not known.
    beginnings = exact.beginnings(adversary)
    for number, root in enumerate(beginnings):
        known = _known(adversary, root, states)
        if (
            number == BEGINNINGS
            or len({walks.shares(one.items()) for one in known if one}) != 1
        ):
            return True
    return False


def _known(
    adversary: Adversary, ways: beliefs.Parts, states: frozenset[str]
) -> Iterable[dict[int, float]]:
    """Return, for each group of subjects with equal percepts, the weight of each
    circumstance on entry to one of these states.
    """
    known: dict[int, dict[int, float]] = {}
    for state in sorted(states):
        for before, _, part in adversary.arrivals(ways, 0, states, state):
            expected = known.setdefault(before, {})
            for (node, _), weight in part.items():
                kind = node.circumstances
                expected[kind] = expected.get(kind, 0.0) + weight
    return known.values()


def _answers(rule: RuleSpec) -> bool:
    """Return whether, by this rule, the result of an action may tell the subject
    something about a draw.
    """
    reads = [rule.guard, rule.p, rule.effects.reward]
    aims = rule.target is not None and rule.target.variable
    acts = rule.trigger != "after"
    return acts and (aims or not all(map(_is_plain, reads)))


def _is_plain(tree: ex.Expression | None) -> bool:
    return tree is None or isinstance(tree, ex.Number | ex.Constant)
