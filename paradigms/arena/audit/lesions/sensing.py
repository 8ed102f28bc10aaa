"""What tells two hypotheses apart before it is too late: the shortest actions after which they differ in percepts.

Following the plan of a hypothesis shows that it was wrong, but often only by the mistake itself. This searches all that
two hypotheses could do in step, so that it finds a wall to feel on the way where no plan and no macro leads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from cheesebench.paradigms.arena.audit.lesions.nodes import Cloud, Node, Nodes

#: Pairs that are looked at for one question, and circumstances of which it is asked whether success is still possible.
PAIRS, ASKED = 3000, 30

IsAlive = Callable[[Node, int], bool]
"""Returns whether success is still possible from a node after so many steps."""


def mistaken(
    nodes: Nodes, cloud: Cloud, leader: Node, actions: tuple[int, ...], steps: int, is_alive: IsAlive
) -> list[Node]:
    """Return the hypotheses in which the leader's plan fails before it shows that it is wrong; the likeliest first."""
    percepts, there = [], leader
    for number, action in enumerate(actions):
        _, percept, there = nodes.leads(there, action, steps + number)[0]
        percepts.append(percept)
        if percept < 0:
            break
    found = []
    for node, weight in cloud.items():
        here = node
        for number, expected in enumerate(percepts):
            _, percept, here = nodes.leads(here, actions[number], steps + number)[0]
            if percept < 0 or percept != expected:
                if not (here.success if percept < 0 else is_alive(here, steps + number + 1)):
                    found.append((weight, node))
                break
    return [node for _, node in sorted(found, key=lambda entry: (-entry[0], entry[1].number))]


def tell_apart(
    nodes: Nodes, pair: tuple[Node, Node], steps: int, is_alive: IsAlive, *, pairs: int = PAIRS, asked: int = ASKED
) -> tuple[tuple[int, ...], int]:
    """Return the actions after which two hypotheses differ and both can still succeed, and the effort in steps.

    No actions: none were found among so many pairs and circumstances. Of random events the likeliest happen.
    """
    pending: deque[tuple[Node, Node, tuple[int, ...]]] = deque([(*pair, ())])
    seen = {(pair[0].number, pair[1].number)}
    alive = {node.circumstances: True for node in pair}
    spent = 0

    def is_lost(node: Node, percept: int, taken: int) -> bool:
        if percept < 0:
            return not node.success
        if node.circumstances not in alive:
            alive[node.circumstances] = is_alive(node, steps + taken)
        return not alive[node.circumstances]

    while pending and len(seen) < pairs and len(alive) < asked:
        one, other, taken = pending.popleft()
        for action in range(4):
            spent += 2
            _, percept, here = nodes.leads(one, action, steps + len(taken))[0]
            _, opposite, there = nodes.leads(other, action, steps + len(taken))[0]
            if is_lost(here, percept, len(taken) + 1) or is_lost(there, opposite, len(taken) + 1):
                continue
            if percept != opposite:
                return (*taken, action), spent
            key = here.number, there.number
            if percept >= 0 and key not in seen:
                seen.add(key)
                pending.append((here, there, (*taken, action)))
    return (), spent
