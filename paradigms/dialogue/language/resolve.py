"""The typed dialogue document -> the specification: every node, name and edit resolved, every key computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from cheesebench.errors import did_you_mean
from cheesebench.paradigms.dialogue.language import documents as doc
from cheesebench.paradigms.dialogue.language.edits import EditChecks
from cheesebench.paradigms.dialogue.language.specification import (
    ConditionSpec,
    DialogueSpecification,
    Domain,
    Form,
    Item,
)
from cheesebench.paradigms.dialogue.language.vocabularies import VocabularyChecks
from cheesebench.paradigms.dialogue.language.worlds import (
    MAX_KEYS,
    World,
    best_first_steps,
    best_goals,
    count_groups,
    edges_of,
    edited,
    first_world,
    natural,
    pairs_at,
    shortest_paths,
)
from cheesebench.protocol.diagnostics import Diagnostics, listed
from cheesebench.protocol.resolve import canonical, protocol_hash
from cheesebench.protocol.source import Node
from cheesebench.protocol.structure import without_nulls

#: Most conditions that are asked one after the other.
MAX_TURNS = 10
#: Most nodes of a graph, edits included.
MAX_NODES = 200


def resolve_dialogue(
    document: doc.DialogueDocument, root: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics
) -> DialogueSpecification | None:
    """Resolve a document; None when there are errors (all reported)."""
    resolver = _Resolver(document, root, diagnostics)
    world = resolver.first_world()
    if diagnostics.errors:
        return None
    conditions = resolver.conditions(world)
    nodes = dict.fromkeys(world.nodes)
    for condition in conditions.values():
        nodes.update(dict.fromkeys(condition.world.nodes))
    domains = VocabularyChecks(document, root, diagnostics).domains(sorted(nodes, key=natural))
    if diagnostics.errors:
        return None
    plain = without_nulls(root.plain())
    return DialogueSpecification(
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


def _wording(domains: Mapping[str, Domain]) -> dict[str, object]:
    """Return all sentences: a change of a shipped scene makes another protocol."""
    return {name: dict(domain.wording.sentences) for name, domain in domains.items()}


class _Resolver:
    def __init__(self, document: doc.DialogueDocument, root: Node, diagnostics: Diagnostics) -> None:
        self.document, self.root, self.diagnostics = document, root, diagnostics
        self.graph = document.arena.graph
        self.edits = EditChecks(self.graph, root, diagnostics)
        self._done: dict[str, ConditionSpec | None] = {}

    def _error(self, code: int, path: Sequence[str | int], sentence: str, remedy: str) -> None:
        self.diagnostics.error(code, self.root.find(path).position, sentence, remedy)

    def first_world(self) -> World:
        """Check the graph itself."""
        world = first_world(self.graph)
        where = ("arena", "graph")
        nodes = world.nodes
        if len(nodes) > MAX_NODES:
            self._error(
                241, (*where, "edges"), f"The graph has {len(nodes)} nodes.", f"At most {MAX_NODES} are allowed."
            )
        self.edits.distinct(self.graph.edges, (*where, "edges"))
        self.edits.known([self.graph.start], nodes, self.root.find((*where, "start")).position)
        rewards = self.root.find((*where, "rewards"))
        self.edits.known(self.graph.rewards, nodes, rewards.key_position)
        return world

    def conditions(self, world: World) -> dict[str, ConditionSpec]:
        """Resolve all conditions, in file order."""
        conditions = {name: self._condition(name, world, ()) for name in self.document.conditions}
        return {name: condition for name, condition in conditions.items() if condition is not None}

    def _condition(self, name: str, first: World, below: tuple[str, ...]) -> ConditionSpec | None:
        if name in self._done:
            return self._done[name]
        errors = len(self.diagnostics.errors)
        self._done[name] = None
        found = self._resolve(name, first, below)
        if len(self.diagnostics.errors) == errors:
            self._done[name] = found
        return self._done[name]

    def _resolve(self, name: str, first: World, below: tuple[str, ...]) -> ConditionSpec | None:
        condition, where = self.document.conditions[name], ("conditions", name)
        world = first
        if condition.after is not None:
            before = self._before(condition.after, (*where, "after"), first, (*below, name))
            if before is None:
                return None
            world = before.world
        after = world
        if condition.edit is not None:
            self.edits.check(condition.edit, world, (*where, "edit"))
            after = edited(world, condition.edit, self.graph.directed)
        shape = condition.answer or self.document.answer
        form = _FORMS.get(condition.ask, shape.form)
        if condition.ask == "shortest_path" and condition.answer is None:
            form = "path"
        if after.chances and form != "first_step":
            self._error(238, where, "If steps are partly random, only a first step can be best.", _FIRST_STEP)
            return None
        items = self._items(condition, after, form, where)
        if items is None:
            return None
        spec = ConditionSpec(
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
            each=condition.pairs.each or 0 if isinstance(condition.pairs, doc.Pairs) else 0,
            directed=self.graph.directed,
        )
        if condition.edit is not None and condition.ask == "best_path" and not condition.same_policy:
            self._prove_new_policy(spec, world, where)
        return spec

    def _before(
        self, name: str, where: Sequence[str | int], first: World, below: tuple[str, ...]
    ) -> ConditionSpec | None:
        if name in below or len(below) > MAX_TURNS:
            self._error(238, where, f"'{name}' would have to come before itself.", "Remove one 'after'.")
            return None
        if name not in self.document.conditions:
            known = list(self.document.conditions)
            hint = did_you_mean(name, known).strip() or f"Known: {listed(known)}."
            self._error(201, where, f"There is no condition '{name}'.", hint)
            return None
        return self._condition(name, first, below)

    def _items(
        self, condition: doc.Condition, world: World, form: Form, where: tuple[str, str]
    ) -> tuple[Item, ...] | None:
        if condition.ask != "shortest_path" and condition.pairs is not None:
            self._error(238, (*where, "pairs"), "Only 'ask: shortest_path' has pairs.", "Remove them.")
            return None
        if condition.ask == "groups":
            return (Item(self.graph.start, number=count_groups(world)),)
        if condition.ask == "edges":
            every = edges_of(world, self.graph.directed)
            return (Item(self.graph.start, keys=(tuple(node for edge in every for node in edge),)),)
        if condition.ask == "best_path":
            return self._best(world, where)
        return self._between(condition, world, where)

    def _best(self, world: World, where: tuple[str, str]) -> tuple[Item, ...] | None:
        start = self.graph.start
        goals = best_goals(world, start)
        if not goals:
            sentence = f"There is no path from the start '{start}' to a reward."
            if not world.rewards:
                self._error(235, where, sentence, "Give the graph 'rewards', a number for some of its nodes.")
            else:
                self._error(235, where, sentence, "Fix the edges or the edit.")
            return None
        keys = best_first_steps(world, start) if world.chances else shortest_paths(world, start, goals)
        return (Item(start, tuple(goals), keys),) if self._few(len(keys), where) else None

    def _few(self, keys: int, where: tuple[str, str]) -> bool:
        if keys > MAX_KEYS:
            self._error(242, where, f"More than {MAX_KEYS} paths would be right.", "Ask about a smaller graph.")
        return keys <= MAX_KEYS

    def _between(self, condition: doc.Condition, world: World, where: tuple[str, str]) -> tuple[Item, ...] | None:
        if not condition.pairs:
            remedy = "Add 'pairs: {distance: 2}' or 'pairs: [[1, 3]]'."
            self._error(
                238,
                where if condition.pairs is None else (*where, "pairs"),
                "'ask: shortest_path' needs its starts and goals.",
                remedy,
            )
            return None
        place = (*where, "pairs")
        if isinstance(condition.pairs, doc.Pairs):
            distance = condition.pairs.distance
            every = pairs_at(world, distance)
            if not every:
                sentence = f"No two nodes are {distance} steps apart."
                self._error(239, place, sentence, "Ask for a smaller distance, or remove this condition.")
                return None
            pairs = _spread(every, condition.pairs.count)
            if condition.pairs.each:
                pairs = _scattered(pairs)
        else:
            pairs = list(condition.pairs)
            for number, (start, goal) in enumerate(pairs):
                position = self.root.find((*place, number)).position
                known = self.edits.known([start, goal], world.nodes, position)
                if known and (start == goal or not shortest_paths(world, start, [goal])):
                    sentence = f"There is no path from '{start}' to '{goal}'."
                    self.diagnostics.error(235, position, sentence, "Choose another pair.")
        if self.diagnostics.errors:
            return None
        items = tuple(Item(start, (goal,), shortest_paths(world, start, [goal])) for start, goal in pairs)
        return items if self._few(max((len(item.keys) for item in items), default=0), where) else None

    def _prove_new_policy(self, condition: ConditionSpec, world: World, where: tuple[str, str]) -> None:
        """Check that answers that were correct before the edit are wrong after it."""
        goals = best_goals(world, self.graph.start)
        old = best_first_steps(world, self.graph.start) if world.chances else None
        if old is None:
            old = shortest_paths(world, self.graph.start, goals)
        kept = next((path for path in old if condition.right(condition.items[0], path)), None)
        if kept is not None:
            shown = " - ".join(kept[:2] if condition.form == "first_step" else kept)
            self._error(
                236,
                (*where, "edit"),
                f"The edit changes no policy: '{shown}' is best before and after it.",
                "Change the edit, or write 'same_policy: true'.",
            )


#: Where the question leaves no choice of a form.
_FORMS: Mapping[str, Form] = {"groups": "number", "edges": "edges"}
_FIRST_STEP = "Write 'answer: {form: first_step}'."


def _spread(pairs: Sequence[tuple[str, str]], count: int) -> list[tuple[str, str]]:
    """Return so many of the pairs, evenly spread over the list; all of them where there are no more."""
    if len(pairs) <= count:
        return list(pairs)
    return [pairs[(2 * number + 1) * len(pairs) // (2 * count)] for number in range(count)]


def _scattered(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return all pairs in an order of which every beginning is spread over the list: few subjects see many starts."""
    step = next(step for step in range(round(len(pairs) * 0.618) or 1, 0, -1) if math.gcd(step, len(pairs)) == 1)
    return [pairs[number * step % len(pairs)] for number in range(len(pairs))]


def _group(condition: doc.Condition) -> str:
    """Return the group of conditions (the paper's Table 1) that an edit belongs to by what it does."""
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
