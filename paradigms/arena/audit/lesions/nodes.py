"""Roll-outs: hypotheses that differ in nothing are one node, and what a step leads to is worked out once.

A node keeps no time: all of a roll-out are at the same step, and the last one before the limit is another transition.
"""

from __future__ import annotations

import gc
from collections.abc import Hashable, Iterable
from typing import NamedTuple

from cheesebench.interfaces import RUNNING
from cheesebench.paradigms.arena.audit.lesions.beliefs import Belief, Percept, World
from cheesebench.paradigms.arena.audit.lesions.hypotheses import Hypothesis
from cheesebench.paradigms.arena.audit.lesions.plans import Plan
from cheesebench.paradigms.arena.life import NEVER

#: Nodes that are kept; beyond, all are forgotten (each holds a life).
MOST = 30_000


class Node:
    """All hypotheses that differ in nothing that the rest of the trial depends on; ``life`` is one of them."""

    __slots__ = ("kind", "lasting", "leads", "life", "limit", "plans", "success")

    def __init__(self, life: Hypothesis, limit: int, kind: int, lasting: int) -> None:
        self.life, self.limit, self.kind, self.lasting = life, limit, kind, lasting
        #: What the actions lead to; then what they do on the last step before the limit.
        self.leads: list[tuple[Lead, ...] | None] = [None] * 8
        #: By the steps that were taken in the trial.
        self.plans: dict[int, Plan] = {}
        #: Of a trial that has ended: whether it is a success.
        self.success = False


class Lead(NamedTuple):
    """One way in which a step goes: its chance, the number of what is perceived, the node, whether the trial ends."""

    chance: float
    percept: int
    node: Node
    ends: bool


Cloud = dict[Node, float]
"""A belief: nodes and weights."""


class Nodes:
    """The nodes of one world."""

    def __init__(self, world: World) -> None:
        self._world, self._relevance = world, world.relevance
        self._nodes: dict[Hashable, Node] = {}
        self._percepts: dict[Percept, int] = {}
        self._kinds: dict[Hashable, int] = {}
        self._lasting: dict[Hashable, int] = {}

    def cloud(self, belief: Belief) -> Cloud:
        """Return a belief as nodes; the hypotheses are left as they are."""
        if len(self._nodes) > MOST:
            self._nodes.clear()
            gc.collect()  # they lead to one another
        found: Cloud = {}
        for weight, life in belief:
            node = self._node(life, life.limit, is_mine=False)
            found[node] = found.get(node, 0.0) + weight
        return found

    def step(self, cloud: Cloud, action: int, steps: int) -> dict[int, Cloud]:
        """Return the clouds after an action, by what is perceived, those whose trial has ended under ``-1 - percept``.

        ``steps`` is how many have been taken in the trial.
        """
        parts: dict[int, Cloud] = {}
        self._world.spent += len(cloud)
        for node, weight in cloud.items():
            for chance, percept, there, ends in self.leads(node, action, steps):
                key = -1 - percept if ends else percept
                part = parts.get(key)
                if part is None:
                    parts[key] = {there: weight * chance}
                else:
                    part[there] = part.get(there, 0.0) + weight * chance
        return parts

    def leads(self, node: Node, action: int, steps: int) -> tuple[Lead, ...]:
        """Return what an action leads to, the likeliest first."""
        place = action if steps + 1 < node.limit else action + 4
        leads = node.leads[place]
        if leads is None:
            leads = node.leads[place] = tuple(self._expanded(node, action, is_last=place >= 4))
        return leads

    def release(self, cloud: Cloud) -> None:
        """Forget what the nodes of a cloud lead to, where no others will ever share it."""
        if self._relevance.trace:
            for node in cloud:
                node.leads = [None] * 8

    def life(self, node: Node, steps: int) -> Hypothesis:
        """Return a life of the node that has taken so many steps."""
        return node.life.at(steps, node.limit)

    def _expanded(self, node: Node, action: int, *, is_last: bool) -> Iterable[Lead]:
        limit = node.life.steps + 1 if is_last else NEVER

        def step() -> tuple[Hypothesis, tuple[str, float, int]]:
            twin = node.life.at(node.life.steps, limit)
            return twin, twin.step(action)

        for chance, (twin, (observation, reward, status)) in self._world.script.all_of(step):
            ends = status != RUNNING
            percept = self._world.percept(observation, reward, ends, twin.waiting)
            there = self._new(twin, node.limit) if ends else self._node(twin, node.limit)
            if ends:
                there.success = twin.is_success()
            yield Lead(chance, self._percepts.setdefault(percept, len(self._percepts)), there, ends)

    def _node(self, life: Hypothesis, limit: int, *, is_mine: bool = True) -> Node:
        """Return the node of a life, which is copied if others go on with it."""
        if self._relevance.trace:
            return self._new(life if is_mine else life.twin(), limit)
        key = life.identity(), limit
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = self._new(life if is_mine else life.twin(), limit)
        return node

    def _new(self, life: Hypothesis, limit: int) -> Node:
        kind = self._kinds.setdefault(life.drawn, len(self._kinds))
        lasting = self._lasting.setdefault(life.lasting, len(self._lasting))
        return Node(life, limit, kind, lasting)
