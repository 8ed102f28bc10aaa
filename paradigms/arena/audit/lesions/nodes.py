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

#: Nodes that are kept; beyond, all are forgotten.
MOST = 30_000


class Node:
    """All hypotheses that differ in nothing that the rest of the trial depends on.

    One of them stands at ``pose``, ``ahead`` steps after ``origin``; nothing has happened since. Few nodes hold a life.
    """

    __slots__ = ("ahead", "circumstances", "kind", "lasting", "leads", "limit", "origin", "plans", "pose", "success")

    def __init__(self, origin: Hypothesis, limit: int, circumstances: int, kind: int, lasting: int) -> None:
        self.origin, self.limit, self.circumstances = origin, limit, circumstances
        self.kind, self.lasting, self.pose, self.ahead = kind, lasting, origin.pose, 0
        #: What the actions lead to; then what they do on the last step before the limit.
        self.leads: list[tuple[Lead, ...] | None] = [None] * 8
        #: By the steps that were taken in the trial.
        self.plans: dict[int, Plan] = {}
        #: Of a trial that has ended: whether it is a success.
        self.success = False

    @property
    def waiting(self) -> bool:
        """Whether a runner would wait."""
        return self.origin.waiting


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
        self._circumstances: dict[Hashable, int] = {}
        self._percepts: dict[Percept, int] = {}
        self._kinds: dict[Hashable, int] = {}
        self._lasting: dict[Hashable, int] = {}

    def cloud(self, belief: Belief) -> Cloud:
        """Return a belief as nodes; the hypotheses are left as they are."""
        if len(self._nodes) > MOST:
            self._nodes.clear()
            self._circumstances.clear()
            gc.collect()  # they lead to one another
        found: Cloud = {}
        for weight, life in belief:
            node = self._node(life.at(life.steps, NEVER), life.limit)
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
        return node.origin.further(node.pose, node.ahead).at(steps, node.limit)

    def _expanded(self, node: Node, action: int, *, is_last: bool) -> Iterable[Lead]:
        origin, ahead = node.origin, node.ahead
        if not is_last and not self._relevance.trace and (pose := origin.quietly(node.pose, ahead, action)) is not None:
            observation, reward, waiting = origin.seen_from(pose)
            yield Lead(1.0, self._number(observation, reward, False, waiting), self._moved(node, pose), False)
            return
        life = origin.further(node.pose, ahead)
        if is_last:
            life.shorten(life.steps + 1)

        def step() -> tuple[Hypothesis, tuple[str, float, int]]:
            twin = life.twin()
            return twin, twin.step(action)

        ways = self._world.script.all_of(step) if life.can_branch(action) else [(1.0, (life, life.step(action)))]
        for chance, (twin, (observation, reward, status)) in ways:
            ends = status != RUNNING
            there = self._new(twin, node.limit, 0) if ends else self._node(twin, node.limit)
            if ends:
                there.success = twin.is_success()
            yield Lead(chance, self._number(observation, reward, ends, twin.waiting), there, ends)

    def _number(self, observation: str, reward: float, ended: bool, waiting: bool) -> int:
        """Return the number of what is perceived."""
        percept = self._world.percept(observation, reward, ended, waiting)
        return self._percepts.setdefault(percept, len(self._percepts))

    def _moved(self, node: Node, pose: int) -> Node:
        """Return the node one step on, where nothing happens but that."""
        origin, ahead = node.origin, node.ahead + 1
        key = node.circumstances, pose, *origin.clocks(ahead)
        there = self._nodes.get(key)
        if there is None:
            there = self._nodes[key] = Node(origin, node.limit, node.circumstances, node.kind, node.lasting)
            there.pose, there.ahead = pose, ahead
        return there

    def _node(self, life: Hypothesis, limit: int) -> Node:
        """Return the node of a life, which no other code continues."""
        if self._relevance.trace:
            return self._new(life, limit, 0)
        around = life.circumstances(), life.read_values, limit
        circumstances = self._circumstances.setdefault(around, len(self._circumstances))
        key = circumstances, life.pose, *life.clocks(0)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = self._new(life, limit, circumstances)
        return node

    def _new(self, life: Hypothesis, limit: int, circumstances: int) -> Node:
        kind = self._kinds.setdefault(life.drawn, len(self._kinds))
        lasting = self._lasting.setdefault(life.lasting, len(self._lasting))
        return Node(life, limit, circumstances, kind, lasting)
