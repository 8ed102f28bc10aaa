"""Checks edges and edits: unknown nodes, missing or duplicate edges, probabilities that do not add up to 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from cheesebench.errors import did_you_mean
from cheesebench.paradigms.dialogue.language import documents as doc
from cheesebench.paradigms.dialogue.language.worlds import World, both_ways, neighbours
from cheesebench.protocol.diagnostics import Diagnostics, Position, listed
from cheesebench.protocol.source import Node

_Path = tuple[str | int, ...]


class EditChecks:
    """Reports at the place of each edge and node; every method goes on after an error."""

    def __init__(self, graph: doc.Graph, root: Node, diagnostics: Diagnostics) -> None:
        self._directed = graph.directed
        self._root, self._diagnostics = root, diagnostics

    def known(self, nodes: Iterable[str], known: Sequence[str], place: Callable[[str], Position] | Position) -> bool:
        """Report nodes that the graph does not have; return whether it has all."""
        missing = [node for node in nodes if node not in known]
        for node in missing:
            hint = did_you_mean(node, known).strip() or f"Nodes are {listed(known)}."
            position = place if isinstance(place, Position) else place(node)
            self._diagnostics.error(230, position, f"The graph has no node '{node}'.", hint)
        return not missing

    def distinct(self, edges: Sequence[tuple[str, str]], where: _Path) -> None:
        """Report edges from a node to itself, and edges that stand twice."""
        seen: set[tuple[str, str]] = set()
        for number, (a, b) in enumerate(edges):
            position = self._root.find((*where, number)).position
            if a == b:
                sentence = f"The edge [{a}, {b}] leads from a node to itself."
                self._diagnostics.error(241, position, sentence, "Remove it.")
            elif (a, b) in seen:
                self._diagnostics.error(241, position, f"The edge [{a}, {b}] appears twice.", "Remove one.")
            seen.update([(a, b)] if self._directed else both_ways([(a, b)]))

    def check(self, edit: doc.Edit, world: World, where: _Path) -> None:
        """Report all that cannot be done to a world."""
        self.distinct(edit.remove, (*where, "remove"))
        self.distinct(edit.add, (*where, "add"))
        for number, edge in enumerate(edit.remove):
            if edge not in world.arcs:
                self._absent(edge, world, (*where, "remove", number))
        for number, (a, b) in enumerate(edit.add):
            if (a, b) in world.arcs and (a, b) not in edit.remove:
                position = self._root.find((*where, "add", number)).position
                self._diagnostics.error(234, position, f"The edge [{a}, {b}] already exists.", "Remove it here.")
        nodes = list(dict.fromkeys([*world.nodes, *(node for edge in edit.add for node in edge)]))
        rewards = self._root.find((*where, "rewards"))
        self.known(edit.rewards, nodes, rewards.key_position)
        self._portals(edit, world, nodes, where)
        self._chances(edit, nodes, where)

    def _absent(self, edge: tuple[str, str], world: World, where: _Path) -> None:
        a, b = edge
        position = self._root.find(where).position
        sentence = f"There is no edge [{a}, {b}] to remove."
        if self.known([a, b], world.nodes, position):
            if (b, a) in world.arcs:
                remedy = f"Did you mean [{b}, {a}]?"
            else:
                remedy = f"'{a}' has edges with {listed(neighbours(world, a))}."
            self._diagnostics.error(233, position, sentence, remedy)

    def _portals(self, edit: doc.Edit, world: World, nodes: Sequence[str], where: _Path) -> None:
        place = self._root.find((*where, "portal"))
        for number, portal in enumerate(edit.portal):
            node = place.child(number) if isinstance(place.value, list) else place
            position = (node or place).position
            self.known([portal.at], nodes, position)
            # Neighbours before the edit: a node that the edit adds had none.
            self.known([portal.to_neighbours_of], world.nodes, position)

    def _chances(self, edit: doc.Edit, nodes: Sequence[str], where: _Path) -> None:
        place = self._root.find((*where, "chances"))
        self.known(edit.chances, nodes, place.key_position)
        for node, outcomes in edit.chances.items():
            inner = self._root.find((*where, "chances", node))
            self.known(outcomes, nodes, inner.key_position)
            total = sum(outcomes.values())
            if not math.isclose(total, 1, abs_tol=1e-6):
                sentence = f"The probabilities of leaving '{node}' add up to {total:g}."
                self._diagnostics.error(237, inner.position, sentence, "Make them add up to 1.")
