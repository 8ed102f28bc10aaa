"""The dialogue family (``Family``): protocols of questions and answers. This module is
quick to import.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from cheesebench.errors import UnsuitableError
from cheesebench.experiment.replay import recorded_protocol
from cheesebench.family import Family, Listing
from cheesebench.paradigms.dialogue import life
from cheesebench.paradigms.dialogue.documents import DialogueDocument
from cheesebench.paradigms.dialogue.resolve import resolve_dialogue
from cheesebench.protocol.structure import read_structure

if TYPE_CHECKING:
    from pathlib import Path

    from cheesebench.diagnostics import Diagnostics
    from cheesebench.family import (
        Asker,
        CellRequest,
        Plugins,
        RecordedRun,
        SubjectContext,
        Trial,
        WatchedTrial,
    )
    from cheesebench.paradigms.dialogue.specification import DialogueSpecification
    from cheesebench.records import CellPlan, TrialRecord
    from cheesebench.source import Node

#: Keys that only a dialogue has. They identify a dialogue that lacks ``arena: graph:``,
#: so that the error is about the missing graph.
_KEYS = ("conditions", "scenes", "answer")


class DialogueFamily(Family["DialogueSpecification", life.GraphParadigm]):
    """Protocols whose arena is a graph described in words."""

    name = "dialogue"
    plural = "dialogues"
    recognised_by: ClassVar[Mapping[str, Any]] = {
        "anyOf": [
            {"properties": {"arena": {"required": ["graph"]}}, "required": ["arena"]},
            *({"required": [key]} for key in _KEYS),
        ]
    }

    @property
    def document(self) -> type[DialogueDocument]:
        return DialogueDocument

    def matches(self, tree: Node) -> bool:
        """Return whether a file declares a dialogue: its arena is a graph, or it has no
        arena but a key that only dialogues have.
        """
        arena = tree.child("arena")
        if arena is not None and isinstance(arena.value, Mapping) and arena.value:
            return "graph" in arena.value
        return any(tree.child(key) is not None for key in _KEYS)

    def load(
        self, tree: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics
    ) -> DialogueSpecification | None:
        document = read_structure(tree, diagnostics, self.document)
        return (
            None
            if document is None
            else resolve_dialogue(document, tree, path, ancestors, diagnostics)
        )

    def compile(self, specification: DialogueSpecification) -> life.GraphParadigm:
        return life.GraphParadigm(specification)

    def listing(self, specification: DialogueSpecification) -> Listing:
        nodes, edges = (
            len(specification.world.nodes),
            len(specification.document.arena.graph.edges),
        )
        domains, conditions = (
            list(specification.domains),
            list(specification.conditions),
        )
        return Listing(
            values={
                "dimension": specification.document.dimension,
                "nodes": nodes,
                "edges": edges,
                "domains": domains,
                "conditions": conditions,
            },
            row={
                "dialogue": specification.name,
                "title": specification.title,
                "nodes / edges": f"{nodes} / {edges}",
                "domains x conditions": f"{len(domains)} x {len(conditions)}",
            },
            by_folder=True,
        )

    def cells(
        self, specification: DialogueSpecification, request: CellRequest
    ) -> Iterable[CellPlan]:
        """Return one cell for every condition in every domain (and at every
        temperature). Raise UnsuitableError for a model or an option that dialogues do
        not support.
        """
        name, plugins = specification.name, request.plugins
        if request.model in plugins.agents:
            known = ", ".join(sorted(plugins.respondents))
            raise UnsuitableError(
                f"The agent '{request.model}' acts in arenas, but '{name}' is a dialogue. "
                f"Use a language model, or one of the baselines {known}."
            )
        if request.study is not None:
            raise UnsuitableError(
                f"'{name}' is a dialogue, and studies apply only to arenas. Remove --study."
            )
        if request.against is not None:
            raise UnsuitableError(
                f"'{name}' is a dialogue. The results published for dialogues are means over all graphs and domains, but a cell "
                "is one graph in one domain, so they cannot be compared. Run all graphs without --against, then "
                "compare whole conditions: cheesebench cogeval-stats RUN --published NAME"
            )
        if request.controls:
            raise UnsuitableError(
                f"'{name}' is a dialogue, which has no controls. Remove --control."
            )
        return life.plan_dialogues(specification, request)

    def live(
        self, paradigm: life.GraphParadigm, context: SubjectContext
    ) -> Iterator[Trial]:
        return life.respond(
            paradigm,
            context.plugins.respondent(context.plan.model),
            context.plan,
            context.seed,
            context.subject,
        )

    def converse(
        self, paradigm: life.GraphParadigm, context: SubjectContext, asker: Asker
    ) -> AsyncGenerator[Trial, None]:
        """Run a language model, which is sent nothing but the dialogue."""
        return life.talk(paradigm, context.plan, context.seed, context.subject, asker)

    def watch(
        self,
        log: RecordedRun,
        plugins: Plugins,
        plan: CellPlan,
        wanted: Mapping[int, set[int]],
    ) -> Iterator[WatchedTrial]:
        """Yield the conversations with scores computed anew: every question is an
        observation, and every answer a step.
        """
        paradigm = plugins.compile(recorded_protocol(log, plan, plugins))
        assert isinstance(paradigm, life.GraphParadigm)
        return life.watch(log, plugins, paradigm, plan, wanted)

    def explain(
        self,
        log: RecordedRun,
        plugins: Plugins,
        specification: DialogueSpecification,
        record: TrialRecord,
    ) -> str:
        return life.conversation(log, specification, record)
