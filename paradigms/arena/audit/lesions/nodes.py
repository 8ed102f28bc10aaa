"""Hypotheses that differ in nothing are one node, and what a step leads to is worked out once.

A node keeps no time: all of a belief are at the same step, and the last one before the limit is another transition.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from cheesebench.interfaces import RUNNING
from cheesebench.paradigms.arena.audit.lesions.hypotheses import Hypothesis, Script
from cheesebench.paradigms.arena.audit.lesions.plans import Plan
from cheesebench.paradigms.arena.audit.lesions.relevance import Relevance

#: Returns the number of what is perceived: of an observation, reward, ending and waiting.
Perceive = Callable[[str, float, bool, bool], int]


class Node:
    """All hypotheses that differ in nothing that the rest of the trial depends on.

    One of them stands at ``pose``, ``ahead`` steps after ``origin``; nothing has happened since. Few nodes hold a life.
    """

    __slots__ = (
        "ahead",
        "circumstances",
        "kind",
        "lasting",
        "leads",
        "limit",
        "number",
        "origin",
        "plans",
        "pose",
        "success",
    )

    def __init__(
        self, number: int, origin: Hypothesis, limit: int, circumstances: int, kind: int, lasting: int
    ) -> None:
        #: Nodes are told apart by their numbers, which depend on nothing but the order in which they were met.
        self.number = number
        self.origin, self.limit, self.circumstances = origin, limit, circumstances
        self.kind, self.lasting, self.pose, self.ahead = kind, lasting, origin.pose, 0
        #: What the actions lead to; then what they do on the last step before the limit.
        self.leads: list[tuple[Lead, ...] | None] = [None] * 8
        #: By the steps that were taken in the trial.
        self.plans: dict[int, Plan] | None = None
        #: Of a trial that has ended: whether it is a success.
        self.success = False

    @property
    def waiting(self) -> bool:
        """Whether a runner would wait."""
        return self.origin.waiting

    @property
    def state(self) -> str:
        """The state of the trial."""
        return self.origin.state


#: One way in which a step goes: its chance, what is perceived (see ``Nodes.step``), and the node.
Lead = tuple[float, int, Node]
Cloud = dict[Node, float]
"""A belief within a trial: nodes and weights."""


class Nodes:
    """The nodes of one world."""

    def __init__(self, relevance: Relevance, script: Script, perceive: Perceive) -> None:
        self._relevance, self._script, self._perceive = relevance, script, perceive
        self._nodes: dict[Hashable, Node] = {}
        self._circumstances: dict[Hashable, int] = {}
        self._kinds: dict[Hashable, int] = {}
        self._lasting: dict[Hashable, int] = {}
        self._count = 0
        #: Lives that nodes hold, which is what takes memory.
        self.lives = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def clear(self) -> None:
        """Forget all nodes: those that are still held by somebody are no longer met again."""
        self._nodes.clear()
        self._circumstances.clear()
        self.lives = 0

    def leads(self, node: Node, action: int, steps: int) -> tuple[Lead, ...]:
        """Return what an action leads to, the likeliest first; ``-1 - percept`` where the trial ends.

        ``steps`` is how many have been taken in the trial.
        """
        place = action if steps + 1 < node.limit else action + 4
        leads = node.leads[place]
        if leads is None:
            leads = node.leads[place] = tuple(self._expanded(node, action, is_last=place >= 4))
        return leads

    def step(self, cloud: Cloud, action: int, steps: int) -> dict[int, Cloud]:
        """Return the clouds after an action, by what is perceived, those whose trial has ended under ``-1 - percept``.

        ``steps`` is how many have been taken in the trial.
        """
        parts: dict[int, Cloud] = {}
        for node, weight in cloud.items():
            place = action if steps + 1 < node.limit else action + 4
            for chance, percept, there in node.leads[place] or self.leads(node, action, steps):
                part = parts.get(percept)
                if part is None:
                    parts[percept] = {there: weight * chance}
                else:
                    part[there] = part.get(there, 0.0) + weight * chance
        return parts

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
            yield 1.0, self._perceive(observation, reward, False, waiting), self._moved(node, pose)
            return
        life = origin.further(node.pose, ahead)
        if is_last:
            life.shorten(life.steps + 1)

        def step() -> tuple[Hypothesis, tuple[str, float, int]]:
            twin = life.twin()
            return twin, twin.step(action)

        ways = self._script.all_of(step) if life.can_branch(action) else [(1.0, (life, life.step(action)))]
        for chance, (twin, (observation, reward, status)) in ways:
            percept = self._perceive(observation, reward, status != RUNNING, twin.waiting)
            if status == RUNNING:
                yield chance, percept, self.node(twin, node.limit)
            else:
                there = self._ended(twin, node.limit)
                yield chance, -1 - percept, there

    def _moved(self, node: Node, pose: int) -> Node:
        """Return the node one step on, where nothing happens but that."""
        origin, ahead = node.origin, node.ahead + 1
        key = node.circumstances, pose, *origin.clocks(ahead)
        there = self._nodes.get(key)
        if there is None:
            there = self._nodes[key] = self._new(origin, node.limit, node.circumstances)
            there.pose, there.ahead = pose, ahead
        return there

    def node(self, life: Hypothesis, limit: int) -> Node:
        """Return the node of a life without a limit, which nobody else goes on with."""
        if self._relevance.trace:
            return self._new(life, limit, 0)
        around = life.circumstances(), life.counted, life.read_values, limit
        circumstances = self._circumstances.setdefault(around, len(self._circumstances))
        key = circumstances, life.pose, *life.clocks(0)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = self._new(life, limit, circumstances)
            self.lives += 1
        return node

    def _ended(self, life: Hypothesis, limit: int) -> Node:
        """Return the node of a trial that has ended: how, and what later trials may depend on."""
        success = life.is_success()
        pose = life.pose if self._relevance.carry else 0
        key = "ended", success, life.outcome, life.noted, life.kept(), life.drawn, life.lasting, pose
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = self._new(life, limit, 0)
            node.success = success
            self.lives += 1
        return node

    def _new(self, life: Hypothesis, limit: int, circumstances: int) -> Node:
        kind = self._kinds.setdefault(life.drawn, len(self._kinds))
        lasting = self._lasting.setdefault(life.lasting, len(self._lasting))
        self._count += 1
        return Node(self._count, life, limit, circumstances, kind, lasting)
