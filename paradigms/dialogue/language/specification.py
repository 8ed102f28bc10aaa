"""A dialogue protocol after all checks: what the dialogue family reads. Plain frozen data, picklable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cheesebench.paradigms.dialogue.language.documents import DialogueDocument, Edit
from cheesebench.paradigms.dialogue.language.scenes import Wording
from cheesebench.paradigms.dialogue.language.worlds import Path, World, simple_paths
from cheesebench.protocol.diagnostics import Diagnostic
from cheesebench.protocol.specification import BaseSpecification

#: Form in which an answer is parsed.
Form = Literal["path", "first_step", "number", "edges"]
Ask = Literal["best_path", "shortest_path", "groups", "edges"]


@dataclass(frozen=True)
class Domain:
    """A vocabulary with its scene: what every node is called, new nodes of edits included."""

    name: str
    names: Mapping[str, str]
    wording: Wording


@dataclass(frozen=True)
class Item:
    """One question with its key: ``keys`` are all optimal paths, start included (first steps: two nodes).

    Where edges are asked for there is one key, their nodes two by two.
    """

    start: str
    goals: tuple[str, ...] = ()
    keys: tuple[Path, ...] = ()
    number: int | None = None


@dataclass(frozen=True)
class ConditionSpec:
    """One condition: ``world`` is the graph after all edits, ``after`` the condition that is asked before it.

    ``items`` has one question for every start-goal pair, or a single question; ``each`` is how many of them a subject
    is asked, who takes the next where the last one stopped (0: all).
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
        """Return the questions of one subject."""
        every = len(self.items)
        if not 0 < self.each < every:
            return self.items
        return tuple(self.items[(subject * self.each + number) % every] for number in range(self.each))

    def right(self, item: Item, path: Path) -> bool:
        """Whether a path that begins at the item's start answers it."""
        if self.form == "first_step":
            return any(path[:2] == key[:2] for key in item.keys)
        return path in item.keys

    def chance(self, subjects: int = 1) -> float:
        """Return the share of right answers when a simple path from the start is drawn uniformly.

        It is that of the questions that so many subjects are asked. A number of groups is drawn from 1 to the number of
        nodes; nobody lists all edges by chance. See ``worlds.simple_paths`` for large graphs.
        """
        asked = self.items[: self.each * subjects] if self.each else self.items
        return sum(map(self._chance, asked)) / len(asked)

    def _chance(self, item: Item) -> float:
        if self.form == "number":
            return 1 / len(self.world.nodes)
        if self.form == "edges":
            return 0.0
        paths = simple_paths(self.world, item.start)
        return sum(self.right(item, path) for path in paths) / len(paths)


@dataclass(frozen=True)
class DialogueSpecification(BaseSpecification):
    """One dialogue protocol in one edition, resolved and checked; ``world`` is the graph before any edit."""

    document: DialogueDocument
    world: World
    domains: Mapping[str, Domain]
    conditions: Mapping[str, ConditionSpec]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def variants(self) -> list[tuple[str, str]]:
        """All pairs of domain and condition, in file order: each is a cell."""
        return [(domain, condition) for domain in self.domains for condition in self.conditions]


def variant_name(domain: str, condition: str, temperature: float | None = None) -> str:
    """Return the name of a cell's variant, such as ``ordered_rooms-transReval-t0.5``."""
    return "-".join([domain, condition] + ([] if temperature is None else [f"t{temperature:g}"]))
