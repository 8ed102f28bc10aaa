"""Vocabularies: a name for every node, no name twice, and a scene whose sentences can be filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cheesebench.errors import did_you_mean
from cheesebench.paradigms.dialogue.language import documents as doc
from cheesebench.paradigms.dialogue.language.scenes import (
    COMMON_SLOTS,
    SLOTS,
    shipped_scenes,
    slots_of,
    usual_scene,
    wording,
)
from cheesebench.paradigms.dialogue.language.specification import Domain
from cheesebench.protocol.diagnostics import Diagnostics, listed
from cheesebench.protocol.source import Node

#: Longest name of a node, in characters.
MAX_LENGTH = 60


class VocabularyChecks:
    """Resolves the vocabularies of a document; reports at the place of each name."""

    def __init__(self, document: doc.DialogueDocument, root: Node, diagnostics: Diagnostics) -> None:
        self._document, self._root, self._diagnostics = document, root, diagnostics

    def domains(self, nodes: Sequence[str]) -> dict[str, Domain]:
        """Return all domains; ``nodes`` are those of the graph and of all edits."""
        self._scenes()
        if self._diagnostics.errors:
            return {}
        domains = {}
        for name, vocabulary in self._document.arena.graph.vocabulary.items():
            place = self._root.find(("arena", "graph", "vocabulary", name))
            scene = self._scene(name, vocabulary, place)
            names = self._names(vocabulary, nodes, name, place)
            if scene is not None and names is not None:
                domains[name] = Domain(name, names, wording(scene, self._document.scenes))
        return domains

    def _scene(self, domain: str, vocabulary: doc.Vocabulary, place: Node) -> str | None:
        known = [*self._document.scenes, *shipped_scenes()]
        name = vocabulary.scene
        if name is None:
            return domain if domain in self._document.scenes else usual_scene(domain)
        if name not in known:
            hint = did_you_mean(name, known).strip() or f"Known: {listed(known)}."
            position = place.find(["scene"]).position
            self._diagnostics.error(201, position, f"There is no scene '{name}'.", hint)
            return None
        return name

    def _scenes(self) -> None:
        """Check the protocol's own scenes: ``like`` exists, and braces contain known slots."""
        for name, scene in self._document.scenes.items():
            place = self._root.find(("scenes", name))
            if scene.like not in shipped_scenes():
                hint = did_you_mean(scene.like, shipped_scenes()).strip() or f"Known: {listed(shipped_scenes())}."
                position = place.find(["like"]).position
                self._diagnostics.error(201, position, f"There is no shipped scene '{scene.like}'.", hint)
            for key, sentence in scene.model_dump(by_alias=True).items():
                if isinstance(sentence, str) and key != "like":
                    self._braces(key, sentence, place)

    def _braces(self, key: str, sentence: str, place: Node) -> None:
        known = [*SLOTS.get(key, ()), *COMMON_SLOTS]
        found = slots_of(sentence)
        position = place.find([key]).position
        if found is None:
            self._diagnostics.error(
                240, position, f"The braces in '{key}' do not match.", "Write placeholders such as '{place}'."
            )
            return
        for slot in found:
            if slot not in known:
                hint = did_you_mean(slot, known).strip() or f"Known here: {listed(known)}."
                self._diagnostics.error(240, position, f"'{key}' has no value for '{{{slot}}}'.", hint)

    def _names(
        self, vocabulary: doc.Vocabulary, nodes: Sequence[str], domain: str, place: Node
    ) -> Mapping[str, str] | None:
        errors = len(self._diagnostics.errors)
        own = place.child("names") or place
        for node in vocabulary.names:
            if node not in nodes:
                hint = did_you_mean(node, nodes).strip() or f"Nodes are {listed(nodes)}."
                sentence = f"Neither the graph nor an edit has a node '{node}'."
                self._diagnostics.error(230, own.key_position(node), sentence, hint)
        if vocabulary.each is not None and "{n}" not in vocabulary.each:
            sentence = f"'{vocabulary.each}' would be the name of every node."
            self._diagnostics.error(232, place.position, sentence, "Put {n} in place of the node's number.")
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
                231, place.position, sentence, "Name every node, including those that an edit adds."
            )
        self._distinct(names, own)
        return names if len(self._diagnostics.errors) == errors else None

    def _distinct(self, names: Mapping[str, str], own: Node) -> None:
        first: dict[str, str] = {}
        for node, name in names.items():
            position = own.key_position(node)
            if not any(character.isalnum() for character in name) or len(name) > MAX_LENGTH:
                remedy = f"Use letters or digits, at most {MAX_LENGTH} characters."
                self._diagnostics.error(232, position, f"'{name[:MAX_LENGTH]}' cannot be the name of a node.", remedy)
            other = first.setdefault(name.casefold(), node)
            if other != node:
                sentence = f"'{name}' is the name of both {other} and {node}."
                self._diagnostics.error(232, position, sentence, "Give one of them another name.")
