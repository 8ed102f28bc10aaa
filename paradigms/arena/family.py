"""The arena family (``Family``): protocols with an arena. Cheap to import."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cheesebench.errors import UnsuitableError, closest
from cheesebench.family import Listing
from cheesebench.stepwise import StepwiseFamily

if TYPE_CHECKING:
    from pathlib import Path

    from cheesebench.experiment.records import CellPlan
    from cheesebench.family import CellRequest
    from cheesebench.paradigms.arena import ArenaParadigm
    from cheesebench.protocol import Specification
    from cheesebench.protocol.diagnostics import Diagnostics
    from cheesebench.protocol.documents import ProtocolDocument
    from cheesebench.protocol.source import Node


class ArenaFamily(StepwiseFamily):
    """Protocols whose arena is a map or a generator."""

    name = "arena"
    plural = "protocols"

    @property
    def document(self) -> type[ProtocolDocument]:
        """The model of its files."""
        from cheesebench.protocol.documents import ProtocolDocument

        return ProtocolDocument

    def matches(self, tree: Node) -> bool:
        """Return True: the arena accepts every file that no other family accepts."""
        return True

    def load(self, tree: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics) -> Specification | None:
        """Return the checked specification; None with errors."""
        from cheesebench.protocol.animals import embed_animals
        from cheesebench.protocol.checks import check
        from cheesebench.protocol.csv_files import embed_tables
        from cheesebench.protocol.resolve import resolve
        from cheesebench.protocol.structure import read_structure

        errors = len(diagnostics.errors)
        tree = embed_tables(tree, diagnostics)
        if len(diagnostics.errors) > errors:
            return None  # without its columns, everything that reads them would be an error, too
        tree = embed_animals(tree, diagnostics)
        if self._is_strange(tree, diagnostics):
            return None
        document = read_structure(tree, diagnostics, self.document)
        resolved = document and resolve(document, tree, path, ancestors, diagnostics)
        return check(*resolved, tree, diagnostics) if resolved else None

    def _is_strange(self, tree: Node, diagnostics: Diagnostics) -> bool:
        """Report a file that is of a family which is not there: it has no arena, but a key that nobody knows."""
        known = self.document.model_fields
        strange = [name for name in tree.keys if name not in known and not closest(name, known)]
        if tree.find(["version"]).value != 1 or tree.child("arena") is not None or not strange:
            return False
        remedy = (
            "Write 'arena: ...' instead; or, if a plugin's family reads such files, install the plugin (a family in a "
            "conftest.py is known to pytest only)."
        )
        sentence = f"There is no key '{strange[0]}', and no arena."
        diagnostics.error(121, tree.key_position(strange[0]), sentence, remedy)
        return True

    def compile(self, specification: Specification) -> ArenaParadigm:
        """Return the compiled paradigm."""
        from cheesebench.paradigms.arena import ArenaParadigm

        return ArenaParadigm(specification)

    def listing(self, specification: Specification) -> Listing:
        """Return the size of the schedule, chance and reference rates, and the status of its construct."""
        from cheesebench.protocol.validation import SAID, construct_status

        document = specification.document
        rodent = None if specification.reference is None else specification.reference.value
        chance = document.chance.value if document.chance else None
        construct = specification.construct
        validity = construct_status(specification) if construct else "not validated"
        trials, limit = specification.planned_trials, specification.limit
        return Listing(
            values={
                "dimension": document.dimension,
                "trials": trials,
                "limit": limit,
                "reference": rodent,
                "random": chance,
                "construct": construct and construct.name,
                "validity": validity,
            },
            row={
                "protocol": specification.name,
                "edition": specification.edition,
                "dimension": document.dimension,
                "trials x limit": f"{trials} x {limit}",
                "rodent": _rate(rodent),
                "random": _rate(chance),
                "validity": "not validated" if validity == "not validated" else SAID[validity],
            },
        )

    def cells(self, specification: Specification, request: CellRequest) -> Iterable[CellPlan]:
        """Return the plain cell, or a study's, in every view; each with its controls."""
        from cheesebench.paradigms.arena.cells import plan_cells

        if request.model in request.plugins.respondents:
            known = ", ".join(sorted(request.plugins.agents))
            raise UnsuitableError(
                f"The baseline '{request.model}' answers questions, but '{specification.name}' is an arena. "
                f"Choose dialogues (--protocols cogeval), or one of the agents {known}."
            )
        if len(request.temperatures) > 1:
            raise UnsuitableError(
                f"Several temperatures work only with dialogues; '{specification.name}' is an arena. Give one."
            )
        cells = list(plan_cells(specification, request))
        if request.against is not None:
            from cheesebench.statistics.against_published import why_not

            # A limit that is drawn anew is in no protocol of the published rules.
            most = specification.limit if isinstance(specification.limit, int) else 0
            for cell in cells:
                if reason := why_not(request.against, cell, most):
                    raise UnsuitableError(reason)
        return cells


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"
