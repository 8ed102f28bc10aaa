"""Rule: an amnesia at a state must remove exactly the item that the construct names.
But it removes everything before the state, including information that came too late to
be the item.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import islice

from cheesebench.lesions import TRIAL, Lesion
from cheesebench.paradigms.arena.audit import beliefs
from cheesebench.paradigms.arena.audit.adversary import Adversary, begun
from cheesebench.paradigms.arena.audit.walks import shares
from cheesebench.paradigms.arena.compiled import CompiledArena as ArenaParadigm
from cheesebench.protocol import Specification
from cheesebench.protocol import expressions as ex
from cheesebench.protocol.specification import ConstructSpec, RuleSpec

#: Number of trials of a life that are searched for information given before a state.
TRIALS = 3


def earlier_amnesias(paradigm: ArenaParadigm, effort: float) -> dict[Lesion, float]:
    """Return the amnesias at earlier states under which more may succeed than the
    construct allows, each with its limit.

    In a memory task, an amnesia named at a state (of the choice, say) must hold at
    every state after the one that first tells the item to remember. States at which the
    construct itself names an amnesia, and those before them, are left out.
    """
    construct = paradigm.specification.construct
    found: dict[Lesion, float] = {}
    if construct is None or construct.kind != "memory":
        return found
    for lesion, at_most in construct.abolished_by:
        for states in places_between(paradigm.specification, lesion):
            earlier = replace(lesion, amnesia=states | (lesion.amnesia & {TRIAL}))
            if is_told(paradigm, earlier, states, effort):
                found[earlier] = min(at_most, found.get(earlier, 1.0))
    return found


def places_between(
    specification: Specification, lesion: Lesion
) -> list[frozenset[str]]:
    """Return each state between the first states of a trial and those of an amnesia,
    alone and together with its alternatives. Alternatives are included because the
    choice between them may reveal the item to remember.
    """
    between, following = (
        states_between(specification, lesion),
        _following(specification),
    )
    after = {one: _reached({one}, following, lesion.forgets_at) for one in between}
    places = [frozenset({one}) for one in between]
    places += [frozenset({one, *_beside(one, after)}) for one in between]
    return [*dict.fromkeys(places)]


def _beside(state: str, after: Mapping[str, set[str]]) -> list[str]:
    """Return the first states of the paths that neither lead to a state nor follow it.
    ``after`` has the states that each state leads to.
    """
    apart = [n for n in after if n not in after[state] and state not in after[n]]
    return [n for n in apart if not any(n in after[m] for m in apart if m != n)]


def states_between(specification: Specification, lesion: Lesion) -> list[str]:
    """Return the states between the first ones of a trial and those of an amnesia, in
    the order of the file. States that the construct names itself are left out.
    """
    if not lesion.forgets_at or specification.construct is None:
        return []
    following = _following(specification)
    begun_in = {one.name for one in specification.entry}
    passed = _reached(begun_in, following, lesion.forgets_at)
    named = _named(specification.construct) - lesion.forgets_at
    return [
        name
        for name in specification.states
        if name in passed - begun_in
        and _reached({name}, following, ()) & lesion.forgets_at
        and not _reached({name}, following, ()) & named
    ]


def _named(construct: ConstructSpec) -> set[str]:
    lesions = [*(one for one, _ in construct.abolished_by), *construct.spared_by]
    return {state for one in lesions for state in one.forgets_at}


def _following(specification: Specification) -> dict[str, set[str]]:
    always = {rule.go for rule in specification.watch if rule.go}
    always |= {one.go for one in specification.finish if one.go}
    return {
        name: always | {rule.go for rule in state.rules if rule.go}
        for name, state in specification.states.items()
    }


def _reached(
    first: set[str], following: dict[str, set[str]], without: Collection[str]
) -> set[str]:
    """Return these states and all that may follow them, up to those in ``without``."""
    found, pending = set[str](), [one for one in first if one not in without]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += following[name] - set(without)
    return found


def is_told(
    paradigm: ArenaParadigm, lesion: Lesion, states: frozenset[str], effort: float
) -> bool:
    """Return whether subjects may have different knowledge just before they enter one
    of these states. They can get it from answers to their actions, if they can act
    before; otherwise from the pictures.
    """
    specification = paradigm.specification
    following = _following(specification)
    begun_in = {one.name for one in specification.entry}
    earlier = [
        one
        for name, one in specification.states.items()
        if name in _reached(begun_in, following, states)
        and states & _reached({name}, following, ())
    ]
    if any(_answers(rule) for one in earlier for rule in one.rules):
        return True
    adversary = Adversary(paradigm, lesion, effort)
    rest = adversary.world.prior()
    for _ in islice(range(specification.planned_trials), TRIALS):
        ensemble = adversary.world.begin(rest)
        known = _known(adversary, begun(ensemble), states)
        if len({shares(one.items()) for one in known if one}) != 1:
            return True
        rest = adversary.carried(ensemble)
    return False


def _known(
    adversary: Adversary, ways: beliefs.Parts, states: frozenset[str]
) -> Iterable[dict[int, float]]:
    """Return, for each group of subjects with equal percepts, the probability of each
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
    """Return whether the result of an action here may tell the subject something about
    a draw.
    """
    reads = [rule.guard, rule.p, rule.effects.reward]
    aims = rule.target is not None and rule.target.variable
    acts = rule.trigger != "after"
    return acts and (aims or not all(map(_is_plain, reads)))


def _is_plain(tree: ex.Expression | None) -> bool:
    return tree is None or isinstance(tree, ex.Number | ex.Constant)
