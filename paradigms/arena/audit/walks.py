"""Removes clocks that only end a trial in failure, and computes a bound for protocols
without other clocks (``Walks``).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from cheesebench.interfaces import STAY
from cheesebench.paradigms.arena.audit import beliefs
from cheesebench.paradigms.arena.audit.hypotheses import Hypothesis
from cheesebench.paradigms.arena.audit.relevance import fails, holds_of
from cheesebench.protocol.names import TIMEOUT
from cheesebench.protocol.specification import Specification

#: Limit of the effort, in steps of nodes within beliefs, at an effort of 1.
WALKED = 1_600_000
#: Values that differ by less than this count as equal.
EQUAL = 1e-10


def without_deadlines(specification: Specification) -> Specification:
    """Return the protocol without the clocks that only end a trial in failure, or the
    same object if it has none.
    """
    states = {}
    for name, state in specification.states.items():
        rules = tuple(
            rule
            for rule in state.rules
            if rule.after is None or not fails(rule, specification)
        )
        states[name] = (
            state if len(rules) == len(state.rules) else replace(state, rules=rules)
        )
    if all(states[name] is state for name, state in specification.states.items()):
        return specification
    return replace(specification, states=states)


def shares(weights: Iterable[tuple[Hashable, float]]) -> Hashable:
    """Return a key for the way a weight is divided. Divisions into equal shares have
    equal keys.
    """
    together: dict[Hashable, float] = defaultdict(float)
    for one, weight in weights:
        together[one] += weight
    whole = sum(together.values())
    return frozenset(
        (one, round(weight / whole, 9)) for one, weight in together.items()
    )


class Walks:
    """Upper bounds for protocols whose clocks only end trials in failure, so that the
    best way from one event to the next is the shortest.

    The subject knows its position, the state, the doors and all pictures that may help
    in the trial. So it learns nothing on the way. A hypothesis whose clock fires before
    the end of the way has failed.
    """

    def __init__(self, world: beliefs.World, effort: float) -> None:
        self._world, self._nodes = world, world.nodes
        self._most = self._nodes.work + WALKED * effort
        self._values: dict[Hashable, float] = {}
        self._open: set[Hashable] = set()
        self._begun: dict[Hashable, float] = {}
        self._ways: dict[Hashable, tuple[list[tuple[int, int]], dict[int, int]]] = {}
        self._known: dict[Hypothesis, tuple[int, Hashable, Hashable]] = {}
        self._fit: dict[str, bool] = {}
        specification = world.program.specification
        self._has_doors = bool(specification.arena.doors)
        counts_time = world.relevance.clock or world.relevance.timed_places
        self._is_unfit = (
            bool(counts_time) or holds_of(specification.success, TIMEOUT) is not False
        )

    def value(self, parts: beliefs.Parts) -> float:
        """Return the bound for one beginning of a trial. Raise TooManyError if the
        bound does not apply, or the effort is too small.
        """
        if self._is_unfit:
            raise beliefs.TooManyError
        whole, total = sum(sum(part.values()) for part in parts.values()), 0.0
        for part in parts.values():
            for group in self._alike(beliefs.cloud_of(part)):
                weight = sum(group.values())
                key = (
                    next(iter(group)).pose,
                    shares((self._matters(node), own) for node, own in group.items()),
                )
                if key not in self._begun:
                    self._begun[key] = self._value(group) / weight
                total += weight * self._begun[key]
        return min(1.0, total + max(0.0, 1.0 - whole))

    def _matters(self, node: beliefs.Node) -> tuple[Hashable, ...]:
        """Return everything that affects the rest of a trial, except the pose. Without
        doors, the pictures are left out, because they are equal within a group.
        """
        _, rules, pictures = self._told(node)
        return (
            rules,
            pictures if self._has_doors else (),
            node.origin.shared,
            node.origin.clocks(node.ahead),
        )

    def _alike(self, cloud: beliefs.Cloud) -> Iterable[beliefs.Cloud]:
        groups: dict[Hashable, beliefs.Cloud] = defaultdict(dict)
        for node, weight in cloud.items():
            one = node.origin
            key = (
                node.pose,
                one.state,
                id(one.tables),
                one.seen_from(node.pose),
                self._told(node)[2],
            )
            groups[key][node] = weight
        return groups.values()

    def _value(self, cloud: beliefs.Cloud) -> float:
        """Return the largest weight that can succeed."""
        return sum(map(self._of, self._alike(cloud)))

    def _of(self, cloud: beliefs.Cloud) -> float:
        first, whole = next(iter(cloud)), sum(cloud.values())
        if first.waiting:
            return self._waited(cloud)
        key = beliefs.signature(cloud)
        if key in self._open or not self._fits(first.state):
            raise beliefs.TooManyError  # A cycle of ways, or a state to which no bound applies.
        if key not in self._values:
            self._open.add(key)
            self._values[key] = (
                max(map(self._after, self._choices(cloud, first)), default=0.0) / whole
            )
            self._open.remove(key)
        return self._values[key] * whole

    def _waited(self, cloud: beliefs.Cloud) -> float:
        ended, groups = 0.0, [cloud]
        while len(groups) == 1 and next(iter(groups[0])).waiting:
            self._nodes.work += len(groups[0])
            if self._nodes.work > self._most:
                raise beliefs.TooManyError
            parts = self._nodes.step(groups[0], STAY, 0)
            ended += self._ended(parts)
            further = (
                part
                for percept, part in parts.items()
                if percept >= 0 and any(part.values())
            )
            groups = [group for part in further for group in self._alike(part)]
        return ended + sum(map(self._of, groups))

    def _choices(
        self, cloud: beliefs.Cloud, first: beliefs.Node
    ) -> Iterator[dict[int, beliefs.Cloud]]:
        """Yield the result of each possible next event. An event is left out if the
        subject can pass another one on the way, arrive no later, and lose nothing.
        """
        due = {node: self._due(node) for node in cloud}
        most = max(due.values())
        before: list[
            tuple[int, float, dict[tuple[int, int], float], dict[int, int]]
        ] = []
        for steps, entry in self._ways_from(first)[0]:
            if steps >= most:
                break
            self._nodes.work += len(cloud)
            if self._nodes.work > self._most:
                raise beliefs.TooManyError
            there = beliefs.Cloud()
            for node, weight in cloud.items():
                if steps < due[node]:
                    placed = self._nodes.moved(node, entry & ~3, node.ahead + steps)
                    # ``moved`` drops ``lasting``, so nodes that differ only in it
                    # become one. Add up their weights.
                    there[placed] = there.get(placed, 0.0) + weight
            parts = self._nodes.step(there, entry & 3, 0)
            [(percept, rest), *others] = sorted(parts.items(), reverse=True)
            is_one = len({node.pose for node in rest}) == 1
            if (
                percept >= 0
                and is_one
                and not any(other >= 0 for other, _ in others)
                and not next(iter(rest)).waiting
            ):
                ends, pose = self._ended(parts), next(iter(rest)).pose
                left = {
                    (node.circumstances, self._due(node) + steps): weight
                    for node, weight in rest.items()
                }
                if len(left) == len(rest) and any(
                    ways.get(pose, steps + 1) + early <= steps
                    and ends <= sure + EQUAL
                    and left.items() <= kept.items()
                    for early, sure, kept, ways in before
                ):
                    continue
                before.append((steps, ends, left, self._ways_from(next(iter(rest)))[1]))
            yield parts

    def _due(self, node: beliefs.Node) -> int:
        return self._told(node)[0] - node.ahead

    def _told(self, node: beliefs.Node) -> tuple[int, Hashable, Hashable]:
        """Return the steps to the next clock, the values that rules may read, and the
        pictures that may help in this trial.
        """
        if node.origin not in self._known:
            self._known[node.origin] = (
                node.origin.due,
                *self._world.relevance.told(node.origin),
            )
        return self._known[node.origin]

    def _after(self, parts: dict[int, beliefs.Cloud]) -> float:
        return self._ended(parts) + sum(
            self._value(part)
            for percept, part in parts.items()
            if percept >= 0 and any(part.values())
        )

    def _ended(self, parts: dict[int, beliefs.Cloud]) -> float:
        ended = (part for percept, part in parts.items() if percept < 0)
        return sum(map(self._nodes.succeeded, ended))

    def _fits(self, name: str) -> bool:
        """Return whether a state changes only by events at places, without chance, or
        by clocks that end the trial in failure.
        """
        if name not in self._fit:
            specification, state = (
                self._world.program.specification,
                self._world.program.states[name],
            )
            rules = (*specification.states[name].rules, *specification.watch)
            plain = all(
                rule.p is None and rule.action is None and not rule.whatever
                for rule in rules
            )
            lost = all(
                rule.after is None
                or (rule.guard is None and fails(rule, specification))
                for rule in rules
            )
            self._fit[name] = plain and lost and not state.busy
        return self._fit[name]

    def _ways_from(
        self, node: beliefs.Node
    ) -> tuple[list[tuple[int, int]], dict[int, int]]:
        """Return the possible next events, each as the fewest steps before it and pose
        + action. Also return the fewest steps to each pose.
        """
        tables, listen = (
            node.origin.tables,
            self._world.program.states[node.state].listen,
        )
        key = node.pose, node.state, id(tables)
        if key not in self._ways:
            found, reached, pending = [], {node.pose: 0}, deque([node.pose])
            while pending:
                pose = pending.popleft()
                for entry in range(pose, pose + 4):
                    if tables.events[entry] & listen:
                        found.append((reached[pose], entry))
                    elif (there := tables.moves[entry]) not in reached:
                        reached[there] = reached[pose] + 1
                        pending.append(there)
            self._ways[key] = found, reached
        return self._ways[key]
