"""Graphs that change: arcs, rewards, local edits, and the optimal answers on them. All paths are networkx's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cheesebench.paradigms.dialogue.language.documents import Edit, Graph

#: Maximum optimal paths of an item; with more, the question has no meaningful answer.
MAX_KEYS = 1_000
#: Maximum simple paths for the chance level; beyond it, the longest lengths are left out.
MAX_SIMPLE_PATHS = 20_000
#: Iterations of value iteration; expected rewards of a finite graph converge long before.
_ROUNDS = 1_000
_EQUAL = 1e-9

Path = tuple[str, ...]
Arc = tuple[str, str]


@dataclass(frozen=True)
class World:
    """A graph at one moment: arcs in the order told (an undirected edge is two of them), rewards by node.

    ``chances``: nodes with random transitions, with the probability of every successor.
    """

    arcs: tuple[Arc, ...]
    rewards: Mapping[str, float] = field(default_factory=dict)
    chances: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        """All nodes, in their natural order (``2`` before ``10``)."""
        return list(_nodes(self.arcs))

    def steps(self, node: str) -> list[str]:
        """Return the nodes that one step leads to, in the order told."""
        return [after for before, after in self.arcs if before == node]

    def graph(self) -> Any:
        """Return it as a ``networkx.DiGraph``, which cannot be changed."""
        return _graph(self.arcs)


# Hundreds of questions are asked about one graph.
@lru_cache(maxsize=64)
def _nodes(arcs: tuple[Arc, ...]) -> tuple[str, ...]:
    return tuple(sorted({node for arc in arcs for node in arc}, key=natural))


@lru_cache(maxsize=64)
def _graph(arcs: tuple[Arc, ...]) -> Any:
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from(_nodes(arcs))
    graph.add_edges_from(arcs)
    return networkx.freeze(graph)


def natural(node: str) -> tuple[tuple[int, int, str], ...]:
    """Return the key by which nodes are sorted: numbers by value, before words."""
    parts = re.findall(r"\d+|\D+", node)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def both_ways(edges: Iterable[Sequence[str]]) -> list[Arc]:
    """Return the arcs of undirected edges."""
    return [arc for a, b in edges for arc in ((a, b), (b, a))]


def first_world(graph: Graph) -> World:
    """Return the world of a declared graph before any edit."""
    arcs = [(a, b) for a, b in graph.edges] if graph.directed else both_ways(graph.edges)
    return World(tuple(dict.fromkeys(arcs)), dict(graph.rewards))


def edges_of(world: World, directed: bool) -> list[Arc]:
    """Return every edge once, in the order told."""
    return list(dict.fromkeys(as_told(world.arcs, directed)))


def as_told(arcs: Iterable[Arc], directed: bool) -> Iterator[Arc]:
    """Yield arcs as edges: where they can be walked both ways, the order of their nodes does not count."""
    for a, b in arcs:
        yield (a, b) if directed or a <= b else (b, a)


def edited(world: World, edit: Edit, directed: bool) -> World:
    """Return the world after an edit: removed, added, portal (to the neighbours before the edit), rewards, chances."""
    of = (lambda edges: [(a, b) for a, b in edges]) if directed else both_ways
    gone = set(of(edit.remove))
    arcs = [arc for arc in world.arcs if arc not in gone] + of(edit.add)
    for portal in edit.portal:
        arcs += [(portal.at, node) for node in neighbours(world, portal.to_neighbours_of) if node != portal.at]
    for node, outcomes in edit.chances.items():
        arcs = [arc for arc in arcs if arc[0] != node] + [(node, after) for after in outcomes]
    return replace(
        world,
        arcs=tuple(dict.fromkeys(arcs)),
        rewards={**world.rewards, **edit.rewards},
        chances={**world.chances, **{node: dict(outcomes) for node, outcomes in edit.chances.items()}},
    )


def neighbours(world: World, node: str) -> list[str]:
    """Return the nodes that share an arc with a node, whatever its direction."""
    neighbours = [b if a == node else a for a, b in world.arcs if node in (a, b)]
    return sorted(dict.fromkeys(neighbours), key=natural)


def best_goals(world: World, start: str) -> list[str]:
    """Return the nodes with the largest reward among those that can be reached; none if there is no reward there."""
    import networkx

    if start not in world.nodes:
        return []
    reachable = networkx.descendants(world.graph(), start)
    rewards = {node: world.rewards[node] for node in world.nodes if node in reachable and node in world.rewards}
    most = max(rewards.values(), default=0)
    return [node for node, reward in rewards.items() if reward == most] if most > 0 else []


def shortest_paths(world: World, start: str, goals: Sequence[str]) -> tuple[Path, ...]:
    """Return all shortest paths from the start to the nearest of the goals, start included; none if no way leads."""
    import networkx

    graph, found = world.graph(), list[Path]()
    for goal in goals:
        if start in graph and goal in graph and networkx.has_path(graph, start, goal):
            paths = networkx.all_shortest_paths(graph, start, goal)
            found += map(tuple, islice(paths, MAX_KEYS + 1))
    shortest = min(map(len, found), default=0)
    return tuple(sorted({path for path in found if len(path) == shortest}, key=lambda p: tuple(map(natural, p))))


def best_first_steps(world: World, start: str) -> tuple[Path, ...]:
    """Return the first steps (as paths of two nodes) with the largest expected reward, with random transitions."""
    worth = {node: float(world.rewards.get(node, 0)) for node in world.nodes}
    for _ in range(_ROUNDS):
        before = dict(worth)
        for node in worth:
            worth[node] = max(worth[node], _onward(world, node, before))
        if all(abs(worth[node] - before[node]) < _EQUAL for node in worth):
            break
    steps = world.steps(start)
    most = max((worth[node] for node in steps), default=0.0)
    return tuple((start, node) for node in steps if most > 0 and worth[node] > most - _EQUAL)


def _onward(world: World, node: str, worth: Mapping[str, float]) -> float:
    if node in world.chances:
        return sum(p * worth[after] for after, p in world.chances[node].items())
    return max((worth[after] for after in world.steps(node)), default=0.0)


def count_groups(world: World) -> int:
    """Return the number of densely connected groups: communities of largest modularity, found greedily."""
    from networkx.algorithms.community import greedy_modularity_communities

    return len(greedy_modularity_communities(world.graph().to_undirected()))


def pairs_at(world: World, distance: int) -> list[tuple[str, str]]:
    """Return all ordered pairs of nodes whose shortest path has so many steps, in natural order."""
    import networkx

    lengths = dict(networkx.all_pairs_shortest_path_length(world.graph(), cutoff=distance))
    nodes = world.nodes
    return [(a, b) for a in nodes for b in nodes if lengths[a].get(b) == distance]


@lru_cache(maxsize=512)
def _simple_paths(arcs: tuple[Arc, ...], start: str) -> tuple[Path, ...]:
    after: dict[str, list[str]] = {}
    for a, b in arcs:
        after.setdefault(a, []).append(b)
    found: list[Path] = []
    level: list[Path] = [(start,)]
    while level:
        longer = []
        for path in level:
            longer += [(*path, node) for node in after.get(path[-1], ()) if node not in path]
            if len(found) + len(longer) > MAX_SIMPLE_PATHS and found:
                return tuple(found)
        found += longer
        level = longer
    return tuple(found)


def simple_paths(world: World, start: str) -> tuple[Path, ...]:
    """Return the simple paths (no node twice) of at least one step from a start, short ones first.

    All of them, or as many whole lengths as there are at most MAX_SIMPLE_PATHS paths of: uniform choice among those
    is chance. (Leaving the longest out makes chance larger, never smaller.)
    """
    return _simple_paths(world.arcs, start)
