"""A dialogue protocol after all checks: its graphs and their changes, its scenes and
its conditions.

The specification is frozen data that can be pickled. networkx finds the shortest paths
and the groups.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any, Literal

import yaml

from cheesebench.diagnostics import Diagnostic
from cheesebench.interfaces import BaseSpecification
from cheesebench.paradigms.dialogue.documents import (
    DialogueDocument,
    Edit,
    Graph,
    Scene,
)

#: Maximum number of optimal paths of an item. A question with more of them is refused.
MAX_KEYS = 1_000
#: Maximum number of simple paths for the chance level. If there are more, the longest
#: ones are left out.
MAX_SIMPLE_PATHS = 20_000
#: Maximum number of rounds of value iteration. The expected rewards of usual graphs
#: converge long before.
_ROUNDS = 1_000
_EQUAL = 1e-9

Path = tuple[str, ...]
Arc = tuple[str, str]


@dataclass(frozen=True)
class World:
    """A graph at one moment: its arcs in the order of description (an undirected edge
    is two arcs), and the rewards by node.

    ``chances`` has the nodes with random transitions, each with the probability of
    every successor.
    """

    arcs: tuple[Arc, ...]
    rewards: Mapping[str, float] = field(default_factory=dict)
    chances: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        """All nodes, in their natural order (``2`` before ``10``)."""
        return list(_nodes(self.arcs))

    def steps(self, node: str) -> list[str]:
        """Return the successors of a node, in the order of description."""
        return [after for before, after in self.arcs if before == node]

    def graph(self) -> Any:
        return _graph(self.arcs)


# The results are cached, because hundreds of questions concern one graph.
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
    """Return the sort key of a node. Numbers are ordered by value, and come before
    words.
    """
    parts = re.findall(r"\d+|\D+", node)
    return tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts
    )


def both_ways(edges: Iterable[Sequence[str]]) -> list[Arc]:
    return [arc for a, b in edges for arc in ((a, b), (b, a))]


def first_world(graph: Graph) -> World:
    arcs = (
        [(a, b) for a, b in graph.edges] if graph.directed else both_ways(graph.edges)
    )
    return World(tuple(dict.fromkeys(arcs)), dict(graph.rewards))


def edges_of(world: World, directed: bool) -> list[Arc]:
    """Return every edge once, in the order of description."""
    return list(dict.fromkeys(as_told(world.arcs, directed)))


def as_told(arcs: Iterable[Arc], directed: bool) -> Iterator[Arc]:
    """Yield arcs as edges. The nodes of an undirected edge are sorted, so that both of
    its arcs become the same edge.
    """
    for a, b in arcs:
        yield (a, b) if directed or a <= b else (b, a)


def edited(world: World, edit: Edit, directed: bool) -> World:
    """Return the world after an edit: removed and added edges, portals (to the
    neighbours before the edit), rewards, and chances.
    """
    of = (lambda edges: [(a, b) for a, b in edges]) if directed else both_ways
    gone = set(of(edit.remove))
    arcs = [arc for arc in world.arcs if arc not in gone] + of(edit.add)
    for portal in edit.portal:
        arcs += [
            (portal.at, node)
            for node in neighbours(world, portal.to_neighbours_of)
            if node != portal.at
        ]
    for node, outcomes in edit.chances.items():
        arcs = [arc for arc in arcs if arc[0] != node] + [
            (node, after) for after in outcomes
        ]
    return replace(
        world,
        arcs=tuple(dict.fromkeys(arcs)),
        rewards={**world.rewards, **edit.rewards},
        chances={
            **world.chances,
            **{node: dict(outcomes) for node, outcomes in edit.chances.items()},
        },
    )


def neighbours(world: World, node: str) -> list[str]:
    """Return the nodes that share an arc with a node, in either direction."""
    neighbours = [b if a == node else a for a, b in world.arcs if node in (a, b)]
    return sorted(dict.fromkeys(neighbours), key=natural)


def best_goals(world: World, start: str) -> list[str]:
    """Return the nodes with the largest reward that can be reached from the start
    (which does not count itself), or an empty list if no reward can be reached.
    """
    import networkx

    if start not in world.nodes:
        return []
    reachable = networkx.descendants(world.graph(), start)
    rewards = {
        node: world.rewards[node]
        for node in world.nodes
        if node in reachable and node in world.rewards
    }
    most = max(rewards.values(), default=0)
    return (
        [node for node, reward in rewards.items() if reward == most] if most > 0 else []
    )


def shortest_paths(world: World, start: str, goals: Sequence[str]) -> tuple[Path, ...]:
    """Return all shortest paths from the start to the nearest goals, start included,
    but at most MAX_KEYS + 1 per goal. The tuple is empty if no goal is reachable.
    """
    import networkx

    graph, found = world.graph(), list[Path]()
    for goal in goals:
        if start in graph and goal in graph and networkx.has_path(graph, start, goal):
            paths = networkx.all_shortest_paths(graph, start, goal)
            found += map(tuple, islice(paths, MAX_KEYS + 1))
    shortest = min(map(len, found), default=0)
    return tuple(
        sorted(
            {path for path in found if len(path) == shortest},
            key=lambda p: tuple(map(natural, p)),
        )
    )


def best_first_steps(world: World, start: str) -> tuple[Path, ...]:
    """Return the first steps (as paths of two nodes) with the largest expected reward
    under random transitions, or an empty tuple if no reward can be expected.
    """
    worth = {node: float(world.rewards.get(node, 0)) for node in world.nodes}
    for _ in range(_ROUNDS):
        before = dict(worth)
        for node in worth:
            worth[node] = max(worth[node], _onward(world, node, before))
        if all(abs(worth[node] - before[node]) < _EQUAL for node in worth):
            break
    steps = world.steps(start)
    most = max((worth[node] for node in steps), default=0.0)
    return tuple(
        (start, node) for node in steps if most > 0 and worth[node] > most - _EQUAL
    )


def _onward(world: World, node: str, worth: Mapping[str, float]) -> float:
    if node in world.chances:
        return sum(p * worth[after] for after, p in world.chances[node].items())
    return max((worth[after] for after in world.steps(node)), default=0.0)


def count_groups(world: World) -> int:
    """Return the number of densely connected groups (communities of largest modularity,
    found greedily).
    """
    from networkx.algorithms.community import greedy_modularity_communities

    return len(greedy_modularity_communities(world.graph().to_undirected()))


def pairs_at(world: World, distance: int) -> list[tuple[str, str]]:
    """Return all ordered pairs of nodes whose shortest path has ``distance`` steps, in
    natural order.
    """
    import networkx

    lengths = dict(
        networkx.all_pairs_shortest_path_length(world.graph(), cutoff=distance)
    )
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
            longer += [
                (*path, node) for node in after.get(path[-1], ()) if node not in path
            ]
            if len(found) + len(longer) > MAX_SIMPLE_PATHS and found:
                return tuple(found)
        found += longer
        level = longer
    return tuple(found)


def simple_paths(world: World, start: str) -> tuple[Path, ...]:
    """Return the simple paths (no node twice) of at least one step from a start, short
    ones first.

    At most MAX_SIMPLE_PATHS paths are returned, and all paths of a length or none.
    Chance is a uniform choice among them. Omitting the longest paths makes chance
    larger if the right ones remain.
    """
    return _simple_paths(world.arcs, start)


#: Names allowed in braces, by sentence. All sentences also allow {thing}, {things},
#: {count} and {start}.
SLOTS: Mapping[str, tuple[str, ...]] = {
    "link": ("place", "places"),
    "reward": ("place", "amount"),
    "shortest_path": ("goal",),
    "closed": ("place", "other"),
    "opened": ("place", "other"),
    "closed_one_way": ("place", "other"),
    "opened_one_way": ("place", "other"),
    "new_reward": ("place", "amount"),
    "portal": ("place", "other"),
    "chances": ("place", "outcomes"),
    "outcome": ("place", "percent"),
}
COMMON_SLOTS = ("thing", "things", "count", "start")
#: The scene of a vocabulary that names none, and whose own name is neither a scene of
#: the protocol nor a known domain.
DEFAULT_SCENE = "places"


@dataclass(frozen=True)
class Wording:
    """A scene with every sentence. ``nouns`` are the words of a name that an answer may
    leave out.
    """

    nouns: tuple[str, ...]
    sentences: Mapping[str, str]


@cache
def shipped() -> dict[str, Any]:
    text = (
        files("cheesebench.paradigms.dialogue")
        .joinpath("scenes.yaml")
        .read_text(encoding="utf-8")
    )
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def requests() -> Mapping[str, str]:
    """Return the sentences that end a question: requests by form of the answer, and
    instructions by name.
    """
    found: dict[str, str] = shipped()["requests"]
    return found


def shipped_scenes() -> list[str]:
    return list(shipped()["scenes"])


def usual_scene(domain: str) -> str:
    return str(shipped()["domains"].get(domain, DEFAULT_SCENE))


def wording(name: str, own: Mapping[str, Scene]) -> Wording:
    """Return the scene with this name, which must exist. The protocol's own scenes come
    first.
    """
    if name not in own:
        texts = dict(shipped()["scenes"][name])
        return Wording(tuple(texts.pop("nouns")), texts)
    scene = own[name]
    base = wording(scene.like, {})
    given = {
        key: text
        for key, text in scene.model_dump(by_alias=True).items()
        if isinstance(text, str)
    }
    given.pop("like")
    nouns = base.nouns if scene.nouns is None else tuple(scene.nouns)
    return Wording(nouns, {**base.sentences, **given})


def slots_of(sentence: str) -> list[str] | None:
    """Return the names in braces, or None if braces are unbalanced or hold anything but
    a name.
    """
    try:
        parts = list(string.Formatter().parse(sentence))
    except ValueError:
        return None
    names = [name for _, name, _, _ in parts if name is not None]
    plain = all(name.isidentifier() for name in names) and not any(
        spec or change for _, _, spec, change in parts
    )
    return names if plain else None


#: Form in which an answer is parsed.
Form = Literal["path", "first_step", "number", "edges"]
Ask = Literal["best_path", "shortest_path", "groups", "edges"]


@dataclass(frozen=True)
class Domain:
    """A vocabulary with its scene: the name of every node, including nodes that edits
    add.
    """

    name: str
    names: Mapping[str, str]
    wording: Wording


@dataclass(frozen=True)
class Item:
    """One question with its correct answers. ``keys`` are all optimal paths, each with
    its start. If transitions are random, they are the best first steps, as paths of two
    nodes.

    If edges are asked for, the only key is a flat list of two nodes per edge. If groups
    are asked for, there are no keys, and ``number`` is the number of groups.
    """

    start: str
    goals: tuple[str, ...] = ()
    keys: tuple[Path, ...] = ()
    number: int | None = None


@dataclass(frozen=True)
class ConditionSpec:
    """One condition. ``world`` is the graph after all edits, and ``after`` the
    condition that is asked before this one (None: there is none).

    ``items`` has one question for each start-goal pair, or a single question. Each
    subject answers ``each`` of them, and starts where the last subject stopped. If
    ``each`` is 0, or not below their number, every subject answers all.
    """

    name: str
    ask: Ask
    form: Form
    include_start: bool
    group: str
    world: World
    items: tuple[Item, ...]
    after: str | None = None
    edit: Edit | None = None
    instruct: str | None = None
    each: int = 0
    directed: bool = False

    def asked_of(self, subject: int) -> tuple[Item, ...]:
        every = len(self.items)
        if not 0 < self.each < every:
            return self.items
        return tuple(
            self.items[(subject * self.each + number) % every]
            for number in range(self.each)
        )

    def right(self, item: Item, path: Path) -> bool:
        """Return whether a path that begins at the item's start is a correct answer."""
        if self.form == "first_step":
            return any(path[:2] == key[:2] for key in item.keys)
        return path in item.keys

    def chance(self, subjects: int = 1) -> float:
        """Return the rate of correct answers if a simple path from the start is drawn
        uniformly.

        The rate is a mean over the questions of ``subjects`` subjects. A number of
        groups is drawn from 1 to the number of nodes. For a list of all edges the rate
        is 0. See ``simple_paths`` for large graphs.
        """
        different = range(subjects if self.each else 1)
        asked = Counter(one for subject in different for one in self.asked_of(subject))
        right = sum(times * self._chance(one) for one, times in asked.items())
        return right / asked.total()

    def _chance(self, item: Item) -> float:
        if self.form == "number":
            return 1 / len(self.world.nodes)
        if self.form == "edges":
            return 0.0
        paths = simple_paths(self.world, item.start)
        return sum(self.right(item, path) for path in paths) / len(paths)


@dataclass(frozen=True)
class DialogueSpecification(BaseSpecification):
    """One dialogue protocol in one edition, resolved and checked. ``world`` is the
    graph before any edit.
    """

    document: DialogueDocument
    world: World
    domains: Mapping[str, Domain]
    conditions: Mapping[str, ConditionSpec]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def variants(self) -> list[tuple[str, str]]:
        """All pairs of domain and condition, in file order."""
        return [
            (domain, condition)
            for domain in self.domains
            for condition in self.conditions
        ]


def variant_name(domain: str, condition: str, temperature: float | None = None) -> str:
    """Return the name of a cell's variant, such as
    ``ordered_rooms-transReval-t0.5``.
    """
    return "-".join(
        [domain, condition] + ([] if temperature is None else [f"t{temperature:g}"])
    )
