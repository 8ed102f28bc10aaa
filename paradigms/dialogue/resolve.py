"""Turns the typed dialogue document into a specification: resolves every node, name and
edit, and computes the correct answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from cheesebench.diagnostics import Diagnostics, Position, listed
from cheesebench.errors import did_you_mean
from cheesebench.paradigms.dialogue import documents as doc
from cheesebench.paradigms.dialogue import specification as spec
from cheesebench.protocol.resolve import canonical, protocol_hash
from cheesebench.protocol.structure import without_nulls
from cheesebench.source import Node

_Path = tuple[str | int, ...]


#: Maximum number of conditions that may come after another one in a chain of `after`.
MAX_TURNS = 10
#: Maximum number of nodes of a graph, before any edit.
MAX_NODES = 200


def resolve_dialogue(
    document: doc.DialogueDocument,
    root: Node,
    path: Path,
    ancestors: Sequence[str],
    diagnostics: Diagnostics,
) -> spec.DialogueSpecification | None:
    resolver = _Resolver(document, root, diagnostics)
    world = resolver.first_world()
    if diagnostics.errors:
        return None
    conditions = resolver.conditions(world)
    nodes = dict.fromkeys(world.nodes)
    for condition in conditions.values():
        nodes.update(dict.fromkeys(condition.world.nodes))
    domains = VocabularyChecks(document, root, diagnostics).domains(
        sorted(nodes, key=spec.natural)
    )
    if diagnostics.errors:
        return None
    plain = without_nulls(root.plain())
    return spec.DialogueSpecification(
        paradigm=document.paradigm,
        edition=document.edition,
        family="dialogue",
        path=str(path),
        text=canonical(plain),
        sha256=protocol_hash({**plain, "wording": _wording(domains)}),
        ancestors=tuple(ancestors),
        document=document,
        world=world,
        domains=domains,
        conditions=conditions,
        warnings=tuple(d for d in diagnostics.found if d.severity == "warning"),
    )


def _wording(domains: Mapping[str, spec.Domain]) -> dict[str, object]:
    """Return all sentences, for the protocol's hash, which must change if a sentence of
    a shipped scene changes.
    """
    return {name: dict(domain.wording.sentences) for name, domain in domains.items()}


class _Resolver:
    def __init__(
        self, document: doc.DialogueDocument, root: Node, diagnostics: Diagnostics
    ) -> None:
        self.document, self.root, self.diagnostics = document, root, diagnostics
        self.graph = document.arena.graph
        self.edits = EditChecks(self.graph, root, diagnostics)
        self._done: dict[str, spec.ConditionSpec | None] = {}

    def _error(
        self, code: int, path: Sequence[str | int], sentence: str, remedy: str
    ) -> None:
        self.diagnostics.error(code, self.root.find(path).position, sentence, remedy)

    def first_world(self) -> spec.World:
        """Check the graph itself, and return it as it is before all edits."""
        world = spec.first_world(self.graph)
        where = ("arena", "graph")
        nodes = world.nodes
        if len(nodes) > MAX_NODES:
            self._error(
                241,
                (*where, "edges"),
                f"The graph has {len(nodes)} nodes.",
                f"Use at most {MAX_NODES}.",
            )
        self.edits.distinct(self.graph.edges, (*where, "edges"))
        self.edits.known(
            [self.graph.start], nodes, self.root.find((*where, "start")).position
        )
        rewards = self.root.find((*where, "rewards"))
        self.edits.known(self.graph.rewards, nodes, rewards.key_position)
        return world

    def conditions(self, world: spec.World) -> dict[str, spec.ConditionSpec]:
        conditions = {
            name: self._condition(name, world, ()) for name in self.document.conditions
        }
        return {
            name: condition
            for name, condition in conditions.items()
            if condition is not None
        }

    def _condition(
        self, name: str, first: spec.World, below: tuple[str, ...]
    ) -> spec.ConditionSpec | None:
        if name in self._done:
            return self._done[name]
        errors = len(self.diagnostics.errors)
        self._done[name] = None
        found = self._resolve(name, first, below)
        if len(self.diagnostics.errors) == errors:
            self._done[name] = found
        return self._done[name]

    def _resolve(
        self, name: str, first: spec.World, below: tuple[str, ...]
    ) -> spec.ConditionSpec | None:
        condition, where = self.document.conditions[name], ("conditions", name)
        world = first
        if condition.after is not None:
            before = self._before(
                condition.after, (*where, "after"), first, (*below, name)
            )
            if before is None:
                return None
            world = before.world
        after = world
        if condition.edit is not None:
            self.edits.check(condition.edit, world, (*where, "edit"))
            after = spec.edited(world, condition.edit, self.graph.directed)
        shape = condition.answer or self.document.answer
        form = _FORMS.get(condition.ask, shape.form)
        if condition.ask == "shortest_path" and condition.answer is None:
            form = "path"
        if after.chances and form != "first_step":
            self._error(
                238,
                where,
                "If steps are partly random, only the best first step can be asked for.",
                _FIRST_STEP
                if condition.ask not in _FORMS
                else f"{_FIRST_STEP[:-1]} and 'ask: best_path', or remove the chances.",
            )
            return None
        items = self._items(condition, after, form, where)
        if items is None:
            return None
        resolved = spec.ConditionSpec(
            name=name,
            ask=condition.ask,
            form=form,
            include_start=shape.include_start or condition.ask == "shortest_path",
            group=condition.group or _group(condition),
            world=after,
            items=items,
            after=condition.after,
            edit=condition.edit,
            instruct=condition.instruct,
            each=condition.pairs.each or 0
            if isinstance(condition.pairs, doc.Pairs)
            else 0,
            directed=self.graph.directed,
        )
        if (
            condition.edit is not None
            and condition.ask == "best_path"
            and not condition.same_policy
        ):
            self._prove_new_policy(resolved, world, where)
        return resolved

    def _before(
        self,
        name: str,
        where: Sequence[str | int],
        first: spec.World,
        below: tuple[str, ...],
    ) -> spec.ConditionSpec | None:
        if name in below or len(below) > MAX_TURNS:
            sentence = (
                f"'{name}' comes before itself."
                if name in below
                else f"More than {MAX_TURNS} conditions come after '{name}'."
            )
            self._error(238, where, sentence, "Remove one 'after'.")
            return None
        if name not in self.document.conditions:
            known = list(self.document.conditions)
            hint = did_you_mean(name, known).strip() or f"Known: {listed(known)}."
            self._error(201, where, f"There is no condition '{name}'.", hint)
            return None
        return self._condition(name, first, below)

    def _items(
        self,
        condition: doc.Condition,
        world: spec.World,
        form: spec.Form,
        where: tuple[str, str],
    ) -> tuple[spec.Item, ...] | None:
        if condition.ask != "shortest_path" and condition.pairs is not None:
            self._error(
                238,
                (*where, "pairs"),
                "Only 'ask: shortest_path' has pairs.",
                "Remove 'pairs'.",
            )
            return None
        if condition.ask == "groups":
            return (spec.Item(self.graph.start, number=spec.count_groups(world)),)
        if condition.ask == "edges":
            every = spec.edges_of(world, self.graph.directed)
            return (
                spec.Item(
                    self.graph.start,
                    keys=(tuple(node for edge in every for node in edge),),
                ),
            )
        if condition.ask == "best_path":
            return self._best(world, where)
        return self._between(condition, world, where)

    def _best(
        self, world: spec.World, where: tuple[str, str]
    ) -> tuple[spec.Item, ...] | None:
        start = self.graph.start
        goals = spec.best_goals(world, start)
        if not goals:
            sentence = f"There is no path from the start '{start}' to a reward above 0."
            if not world.rewards:
                self._error(
                    235,
                    where,
                    sentence,
                    "Give the graph 'rewards', a number above 0 for some of its nodes.",
                )
            else:
                self._error(235, where, sentence, "Change the edges or the rewards.")
            return None
        keys = (
            spec.best_first_steps(world, start)
            if world.chances
            else spec.shortest_paths(world, start, goals)
        )
        return (
            (spec.Item(start, tuple(goals), keys),)
            if self._few(len(keys), where)
            else None
        )

    def _few(self, keys: int, where: tuple[str, str]) -> bool:
        if keys > spec.MAX_KEYS:
            self._error(
                242,
                where,
                f"More than {spec.MAX_KEYS} paths would be right.",
                "Ask about a smaller graph.",
            )
        return keys <= spec.MAX_KEYS

    def _between(
        self, condition: doc.Condition, world: spec.World, where: tuple[str, str]
    ) -> tuple[spec.Item, ...] | None:
        if not condition.pairs:
            remedy = "Add 'pairs: {distance: STEPS}' or 'pairs: [[START, GOAL]]'."
            self._error(
                238,
                where if condition.pairs is None else (*where, "pairs"),
                "'ask: shortest_path' needs starts and goals.",
                remedy,
            )
            return None
        place = (*where, "pairs")
        if isinstance(condition.pairs, doc.Pairs):
            distance = condition.pairs.distance
            every = spec.pairs_at(world, distance)
            if not every:
                sentence = (
                    f"No two nodes are {distance} step{'s' * (distance != 1)} apart."
                )
                self._error(
                    239,
                    place,
                    sentence,
                    "Ask for a smaller distance, or remove this condition.",
                )
                return None
            pairs = _spread(every, condition.pairs.count)
            if condition.pairs.each:
                pairs = _scattered(pairs)
        else:
            pairs = list(condition.pairs)
            for number, (start, goal) in enumerate(pairs):
                position = self.root.find((*place, number)).position
                known = self.edits.known([start, goal], world.nodes, position)
                if known and (
                    start == goal or not spec.shortest_paths(world, start, [goal])
                ):
                    sentence = (
                        f"'{start}' is both the start and the goal."
                        if start == goal
                        else f"There is no path from '{start}' to '{goal}'."
                    )
                    self.diagnostics.error(
                        235, position, sentence, "Choose another pair."
                    )
        if self.diagnostics.errors:
            return None
        items = tuple(
            spec.Item(start, (goal,), spec.shortest_paths(world, start, [goal]))
            for start, goal in pairs
        )
        return (
            items
            if self._few(max((len(item.keys) for item in items), default=0), where)
            else None
        )

    def _prove_new_policy(
        self, condition: spec.ConditionSpec, world: spec.World, where: tuple[str, str]
    ) -> None:
        """Check that every answer that was correct before the edit is wrong after
        it.
        """
        goals = spec.best_goals(world, self.graph.start)
        old = spec.best_first_steps(world, self.graph.start) if world.chances else None
        if old is None:
            old = spec.shortest_paths(world, self.graph.start, goals)
        kept = next(
            (path for path in old if condition.right(condition.items[0], path)), None
        )
        if kept is not None:
            shown = " - ".join(kept[:2] if condition.form == "first_step" else kept)
            self._error(
                236,
                (*where, "edit"),
                f"'{shown}' is a right answer both before and after the edit.",
                "Change the edit, or write 'same_policy: true'.",
            )


#: Question -> form of its answer. Other questions leave the form open.
_FORMS: Mapping[str, spec.Form] = {"groups": "number", "edges": "edges"}
_FIRST_STEP = "Write 'answer: {form: first_step}'."


def _spread(pairs: Sequence[tuple[str, str]], count: int) -> list[tuple[str, str]]:
    """Return ``count`` of the pairs, spread evenly over the list, or all pairs if there
    are fewer.
    """
    if len(pairs) <= count:
        return list(pairs)
    return [
        pairs[(2 * number + 1) * len(pairs) // (2 * count)] for number in range(count)
    ]


def _scattered(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return all pairs in a new order, in which neighbours are pairs that were far
    apart. So the first few subjects already see many different starts.
    """
    step = next(
        step
        for step in range(round(len(pairs) * 0.618) or 1, 0, -1)
        if math.gcd(step, len(pairs)) == 1
    )
    return [pairs[number * step % len(pairs)] for number in range(len(pairs))]


def _group(condition: doc.Condition) -> str:
    """Return the group of a condition (the paper's Table 1) by its question and the
    effect of its edit.
    """
    edit = condition.edit
    if condition.ask == "groups":
        return "Groups"
    if condition.ask == "edges":
        return "Map"
    if edit is None:
        return "Traversal"
    if edit.chances or (edit.remove and edit.add and not edit.portal):
        return "TransReval"
    if edit.remove:
        return "Detour"
    return "Shortcut" if edit.add or edit.portal else "RewReval"


class EditChecks:
    """Reports errors at the place of each edge and node. Every method goes on after an
    error.
    """

    def __init__(self, graph: doc.Graph, root: Node, diagnostics: Diagnostics) -> None:
        self._directed = graph.directed
        self._root, self._diagnostics = root, diagnostics

    def known(
        self,
        nodes: Iterable[str],
        known: Sequence[str],
        place: Callable[[str], Position] | Position,
    ) -> bool:
        """Report nodes that are not among ``known``. Return whether there are none."""
        missing = [node for node in nodes if node not in known]
        for node in missing:
            hint = did_you_mean(node, known).strip() or f"Nodes are {listed(known)}."
            position = place if isinstance(place, Position) else place(node)
            self._diagnostics.error(
                230, position, f"The graph has no node '{node}'.", hint
            )
        return not missing

    def distinct(self, edges: Sequence[tuple[str, str]], where: _Path) -> None:
        """Report edges from a node to itself, and duplicate edges."""
        seen: set[tuple[str, str]] = set()
        for number, (a, b) in enumerate(edges):
            position = self._root.find((*where, number)).position
            if a == b:
                sentence = f"The edge [{a}, {b}] leads from a node to itself."
                self._diagnostics.error(241, position, sentence, "Remove it.")
            elif (a, b) in seen:
                sentence = (
                    f"The edge [{a}, {b}] appears twice."
                    if (a, b) in edges[:number]
                    else f"The edge [{a}, {b}] is [{b}, {a}] again, because edges lead both ways."
                )
                self._diagnostics.error(241, position, sentence, "Remove one.")
            seen.update([(a, b)] if self._directed else spec.both_ways([(a, b)]))

    def check(self, edit: doc.Edit, world: spec.World, where: _Path) -> None:
        self.distinct(edit.remove, (*where, "remove"))
        self.distinct(edit.add, (*where, "add"))
        for number, edge in enumerate(edit.remove):
            if edge not in world.arcs:
                self._absent(edge, world, (*where, "remove", number))
        for number, (a, b) in enumerate(edit.add):
            if (a, b) in world.arcs and (a, b) not in edit.remove:
                position = self._root.find((*where, "add", number)).position
                self._diagnostics.error(
                    234,
                    position,
                    f"The edge [{a}, {b}] already exists.",
                    "Remove it from 'add'.",
                )
        nodes = list(
            dict.fromkeys([*world.nodes, *(node for edge in edit.add for node in edge)])
        )
        rewards = self._root.find((*where, "rewards"))
        self.known(edit.rewards, nodes, rewards.key_position)
        self._portals(edit, world, nodes, where)
        self._chances(edit, nodes, where)

    def _absent(self, edge: tuple[str, str], world: spec.World, where: _Path) -> None:
        a, b = edge
        position = self._root.find(where).position
        sentence = f"There is no edge [{a}, {b}] to remove."
        if self.known([a, b], world.nodes, position):
            if (b, a) in world.arcs:
                remedy = f"Did you mean [{b}, {a}]?"
            else:
                remedy = f"Name an edge that exists: '{a}' leads to {listed(spec.neighbours(world, a))}."
            self._diagnostics.error(233, position, sentence, remedy)

    def _portals(
        self, edit: doc.Edit, world: spec.World, nodes: Sequence[str], where: _Path
    ) -> None:
        place = self._root.find((*where, "portal"))
        for number, portal in enumerate(edit.portal):
            node = place.child(number) if isinstance(place.value, list) else place
            position = (node or place).position
            self.known([portal.at], nodes, position)
            # A portal leads to the neighbours before the edit, and a node that the edit
            # adds has none.
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
                self._diagnostics.error(
                    237, inner.position, sentence, "Make them add up to 1."
                )


#: Maximum length of a node's name, in characters.
MAX_LENGTH = 60


class VocabularyChecks:
    """Resolves the vocabularies of a document. Reports errors at the place of each
    name.
    """

    def __init__(
        self, document: doc.DialogueDocument, root: Node, diagnostics: Diagnostics
    ) -> None:
        self._document, self._root, self._diagnostics = document, root, diagnostics

    def domains(self, nodes: Sequence[str]) -> dict[str, spec.Domain]:
        """Return all domains. ``nodes`` are the nodes of the graph and of every edit. A
        domain with an error is left out (all are, if a scene has one).
        """
        self._scenes()
        if self._diagnostics.errors:
            return {}
        domains = {}
        for name, vocabulary in self._document.arena.graph.vocabulary.items():
            place = self._root.find(("arena", "graph", "vocabulary", name))
            scene = self._scene(name, vocabulary, place)
            names = self._names(vocabulary, nodes, name, place)
            if scene is not None and names is not None:
                domains[name] = spec.Domain(
                    name, names, spec.wording(scene, self._document.scenes)
                )
        return domains

    def _scene(
        self, domain: str, vocabulary: doc.Vocabulary, place: Node
    ) -> str | None:
        known = [*self._document.scenes, *spec.shipped_scenes()]
        name = vocabulary.scene
        if name is None:
            return (
                domain if domain in self._document.scenes else spec.usual_scene(domain)
            )
        if name not in known:
            hint = did_you_mean(name, known).strip() or f"Known: {listed(known)}."
            position = place.find(["scene"]).position
            self._diagnostics.error(201, position, f"There is no scene '{name}'.", hint)
            return None
        return name

    def _scenes(self) -> None:
        """Check the protocol's own scenes: ``like`` must name a shipped scene, and
        braces must contain known slots.
        """
        for name, scene in self._document.scenes.items():
            place = self._root.find(("scenes", name))
            if scene.like not in spec.shipped_scenes():
                hint = (
                    did_you_mean(scene.like, spec.shipped_scenes()).strip()
                    or f"Known: {listed(spec.shipped_scenes())}."
                )
                position = place.find(["like"]).position
                self._diagnostics.error(
                    201, position, f"There is no shipped scene '{scene.like}'.", hint
                )
            for key, sentence in scene.model_dump(by_alias=True).items():
                if isinstance(sentence, str) and key != "like":
                    self._braces(key, sentence, place)

    def _braces(self, key: str, sentence: str, place: Node) -> None:
        known = [*spec.SLOTS.get(key, ()), *spec.COMMON_SLOTS]
        found = spec.slots_of(sentence)
        position = place.find([key]).position
        if found is None:
            self._diagnostics.error(
                240,
                position,
                f"The braces in '{key}' are not placeholders.",
                f"Between braces, write only a name: {listed(known)}. Double any other brace.",
            )
            return
        for slot in found:
            if slot not in known:
                hint = (
                    did_you_mean(slot, known).strip() or f"Known here: {listed(known)}."
                )
                self._diagnostics.error(
                    240,
                    position,
                    f"'{key}' has an unknown placeholder, '{{{slot}}}'.",
                    hint,
                )

    def _names(
        self, vocabulary: doc.Vocabulary, nodes: Sequence[str], domain: str, place: Node
    ) -> Mapping[str, str] | None:
        errors = len(self._diagnostics.errors)
        own = place.child("names") or place
        for node in vocabulary.names:
            if node not in nodes:
                hint = (
                    did_you_mean(node, nodes).strip() or f"Nodes are {listed(nodes)}."
                )
                sentence = f"Neither the graph nor an edit has a node '{node}'."
                self._diagnostics.error(230, own.key_position(node), sentence, hint)
        if vocabulary.each is not None and "{n}" not in vocabulary.each:
            sentence = f"'{vocabulary.each}' has no {{n}}, so several nodes would have this name."
            self._diagnostics.error(
                232,
                place.position,
                sentence,
                "Put {n} where the node's number or name belongs.",
            )
            return None
        names = {}
        for node in nodes:
            if node in vocabulary.names:
                names[node] = " ".join(vocabulary.names[node].split())
            elif vocabulary.each is not None:
                names[node] = " ".join(vocabulary.each.replace("{n}", node).split())
        missing = [node for node in nodes if node not in names]
        if missing:
            sentence = f"The vocabulary '{domain}' has no name for {listed(missing)}."
            self._diagnostics.error(
                231,
                place.position,
                sentence,
                "Name every node, including nodes that an edit adds.",
            )
        self._distinct(names, own)
        return names if len(self._diagnostics.errors) == errors else None

    def _distinct(self, names: Mapping[str, str], own: Node) -> None:
        first: dict[str, str] = {}
        for node, name in names.items():
            position = own.key_position(node)
            if (
                not any(character.isalnum() for character in name)
                or len(name) > MAX_LENGTH
            ):
                remedy = f"Use at least one letter or digit, and at most {MAX_LENGTH} characters."
                self._diagnostics.error(
                    232,
                    position,
                    f"'{name[:MAX_LENGTH]}' cannot be the name of a node.",
                    remedy,
                )
            other = first.setdefault(name.casefold(), node)
            if other != node:
                sentence = f"The nodes '{other}' and '{node}' have the same name, '{name}' (capitals do not count)."
                self._diagnostics.error(
                    232, position, sentence, "Give one of them another name."
                )
