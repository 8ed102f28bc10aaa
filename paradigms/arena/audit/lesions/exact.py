"""Upper bounds by dynamic programming over beliefs, where these are few.

The bound is over one trial, so it holds where no trial tells anything about the next: under amnesia between trials, or
where all that is drawn is drawn for the trial alone. Time is not counted (unless a rule reads it), which can only help.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from cheesebench.interfaces import STAY
from cheesebench.paradigms.arena.audit.lesions.beliefs import Belief, World, merged, total, twins
from cheesebench.paradigms.arena.audit.lesions.living import Adversary, Parts
from cheesebench.paradigms.arena.audit.lesions.planner import has_ended

#: Beliefs, and steps of hypotheses, after which no bound is given (for an effort of 1).
BELIEFS, STEPS = 4_000, 500_000
#: Different ways in which a trial can begin, after which no bound is given.
BEGINNINGS = 6
#: Values that differ by less are equal.
EQUAL = 1e-10


@dataclass(slots=True)
class Node:
    """A belief: of each action what is gained at once, and where the rest of the weight goes."""

    gains: list[float] = field(default_factory=list)
    leads: list[list[tuple[float, int]]] = field(default_factory=list)
    value: float = 0.0


def upper_bound(adversary: Adversary, effort: float = 1.0) -> float | None:
    """Return how often a subject with the adversary's lesion can succeed in a trial at most; None: not proven."""
    world = adversary.world
    if world.lesion.memoryless or not _stands_alone(world):
        return None
    bounds: list[float] = []
    for beginning in _beginnings(adversary):
        if beginning is None or (bound := _bound(world, beginning, effort)) is None:
            return None
        bounds.append(bound)
    return max(bounds)


def _stands_alone(world: World) -> bool:
    """Return whether no trial tells anything about the next."""
    relevance = world.relevance
    if relevance.behaviour:
        return False
    draws = world.program.specification.draws
    alone = all(draw.per == "trial" and draw.order in ("random", "cycle") and draw.max_run is None for draw in draws)
    return world.lesion.forgets_trials or (alone and not any(draw.keep_if for draw in draws))


def _beginnings(adversary: Adversary) -> Iterable[Parts | None]:
    """Yield the different ways in which trials begin, or in which the state is entered at which all is forgotten."""
    world, forgets = adversary.world, adversary.world.lesion.forgets_at
    if len(forgets) > 1:
        yield None
        return
    known: set[Hashable] = set()
    belief = world.prior()
    for _ in range(world.program.specification.planned_trials):
        parts = world.begin(belief)
        if None in parts:
            return
        for state in forgets:
            parts_there = adversary.entries(parts, forgets, state)
        beginning = parts_there if forgets else parts
        key = frozenset(_signature(part) for part in beginning.values())
        if key not in known:
            known.add(key)
            yield None if len(known) > BEGINNINGS else beginning
        belief = adversary.carried(parts, [])


def _signature(belief: Belief) -> Hashable:
    """Return what is the same in beliefs of equal value: of later trials nothing matters here."""
    weights: dict[Hashable, float] = {}
    whole = total(belief)
    for weight, life in belief:
        key = life.key(), life.clock
        weights[key] = weights.get(key, 0.0) + weight / whole
    return frozenset((key, round(weight, 9)) for key, weight in weights.items())


def _bound(world: World, beginning: Parts, effort: float) -> float | None:
    nodes: list[Node] = []
    numbers: dict[Hashable, int] = {}
    pending: deque[tuple[int, Belief]] = deque()
    begun = world.spent

    def number(belief: Belief) -> int:
        key = _signature(belief)
        if key not in numbers:
            numbers[key] = len(nodes)
            nodes.append(Node())
            pending.append((numbers[key], merged(belief)))
        return numbers[key]

    roots = [(total(part), number(twins(part))) for part in beginning.values()]
    while pending:
        if len(nodes) > BELIEFS * effort or world.spent - begun > STEPS * effort:
            return None
        # The first to reach a belief are those with the fewest steps, and so with the most that are left.
        place, belief = pending.popleft()
        node = nodes[place]
        for action in [STAY] if belief[0].life.waiting else range(4):
            gain, leads, whole = 0.0, list[tuple[float, int]](), total(belief)
            for percept, part in world.step(twins(belief), action).items():
                if has_ended(percept):
                    gain += sum(weight for weight, life in part if life.is_success()) / whole
                else:
                    leads.append((total(part) / whole, number(part)))
            node.gains.append(gain)
            node.leads.append(leads)
    _iterate(nodes)
    entered = sum(weight for weight, _ in roots)
    return min(1.0, sum(weight * nodes[place].value for weight, place in roots) + max(0.0, 1.0 - entered))


def _iterate(nodes: list[Node]) -> None:
    """Set the value of every belief: the largest chance of success (value iteration, the last ones first)."""
    change = 1.0
    while change > EQUAL:
        change = 0.0
        for node in reversed(nodes):
            best = max(
                gain + sum(share * nodes[place].value for share, place in leads)
                for gain, leads in zip(node.gains, node.leads, strict=True)
            )
            change = max(change, best - node.value)
            node.value = best
