"""The arena family (``Family``): protocols that place a subject in an arena."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cheesebench.amounts import percent
from cheesebench.errors import UnsuitableError, closest
from cheesebench.experiment.cells import (
    plan_cell,
    variant_of,
    varied,
)
from cheesebench.family import Listing
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.audit import validity
from cheesebench.protocol import validation
from cheesebench.protocol.checks import check
from cheesebench.protocol.csv_files import embed_animals, embed_tables
from cheesebench.protocol.documents import ProtocolDocument
from cheesebench.protocol.resolve import resolve
from cheesebench.protocol.structure import read_structure
from cheesebench.published import why_not
from cheesebench.statistics.ability import index
from cheesebench.statistics.wording import on_scale
from cheesebench.stepwise import StepwiseFamily

if TYPE_CHECKING:
    from pathlib import Path

    from cheesebench.diagnostics import Diagnostics
    from cheesebench.family import CellRequest
    from cheesebench.interfaces import View
    from cheesebench.protocol import Specification
    from cheesebench.protocol.specification import ReferenceSpec
    from cheesebench.records import CellPlan
    from cheesebench.source import Node

#: The view from above, which shows everything that is drawn.
FROM_ABOVE = "ascii_2d"


class ArenaFamily(StepwiseFamily["Specification", "ArenaParadigm"]):
    """Protocols whose arena is a map or a generator."""

    name = "arena"
    plural = "protocols"

    @property
    def document(self) -> type[ProtocolDocument]:
        return ProtocolDocument

    def matches(self, tree: Node) -> bool:
        """Return True: the arena accepts every file that no other family accepts."""
        return True

    def load(
        self, tree: Node, path: Path, ancestors: Sequence[str], diagnostics: Diagnostics
    ) -> Specification | None:
        errors = len(diagnostics.errors)
        tree = embed_tables(tree, diagnostics)
        if len(diagnostics.errors) > errors:
            # Without the columns of the draws, every expression that reads them would
            # be reported, too.
            return None
        tree = embed_animals(tree, diagnostics)
        if self._is_strange(tree, diagnostics):
            return None
        document = read_structure(
            tree,
            diagnostics,
            self.document,
            lambda other, found: resolve(other, tree, path, ancestors, found),
        )
        resolved = document and resolve(document, tree, path, ancestors, diagnostics)
        return check(*resolved, tree, diagnostics) if resolved else None

    def _is_strange(self, tree: Node, diagnostics: Diagnostics) -> bool:
        """Return whether a file has no arena and a key that resembles none of ours.
        Report such a file: the family that reads it is probably not installed.
        """
        known = self.document.model_fields
        strange = [
            name for name in tree.keys if name not in known and not closest(name, known)
        ]
        if (
            tree.find(["version"]).value != 1
            or tree.child("arena") is not None
            or not strange
        ):
            return False
        remedy = (
            "Add 'arena: ...'. If a plugin's family reads such files, install the plugin (only pytest knows a "
            "family in a conftest.py)."
        )
        sentence = f"There is no key '{strange[0]}', and no arena."
        diagnostics.error(121, tree.key_position(strange[0]), sentence, remedy)
        return True

    def compile(self, specification: Specification) -> ArenaParadigm:
        return ArenaParadigm(specification)

    def listing(self, specification: Specification) -> Listing:
        document = specification.document
        rodent = (
            None if specification.reference is None else specification.reference.value
        )
        chance = document.chance.value if document.chance else None
        scale = validation.ability_scale(specification)
        scaled = None if scale is None or rodent is None else index(scale, rodent)
        construct = specification.construct
        proved = (
            construct is not None
            and next(validation.doubts(specification), None) is None
        )
        validity = (
            validation.construct_status(specification) if proved else "not validated"
        )
        trials, limit = specification.planned_trials, specification.limit
        return Listing(
            values={
                "dimension": document.dimension,
                "trials": trials,
                "limit": limit,
                "reference": rodent,
                "ability": scaled,
                "random": chance,
                "construct": construct and construct.name,
                "validity": validity,
            },
            row={
                "protocol": specification.name,
                "edition": specification.edition,
                "dimension": document.dimension,
                "trials x limit": f"{trials} x {limit}",
                "rodent": _animals(specification.judged),
                "ability": on_scale(scaled),
                "validity": "not validated"
                if validity == "not validated"
                else validation.SAID[validity],
            },
        )

    def cells(
        self, specification: Specification, request: CellRequest
    ) -> Iterable[CellPlan]:
        """Return the cells of a protocol or study, in every view, each followed by its
        controls. Raise UnsuitableError for a model, an option, a view or a published
        model that does not suit the protocol.
        """
        _check_request(specification, request)
        language = request.language
        memory = self._memory(specification, request)
        settings = language.settings if language else None
        cells: list[CellPlan] = []
        for view in request.views:
            for changes in request.study.variants() if request.study else ({},):
                plain = plan_cell(
                    specification,
                    request.model,
                    view,
                    request.design,
                    memory,
                    agent=language.agent.name if language else "",
                    settings=varied(language, changes)
                    if language and changes
                    else settings,
                    variant=variant_of(changes),
                )
                if _must_show_cues(specification, plain):
                    self._check_view(specification, request.plugins.view(view))
                cells += self.with_controls(plain, specification, request)
        if request.against is not None:
            _check_published(request.against, cells, specification)
        return cells

    def _check_view(self, specification: Specification, view: View) -> None:
        """Raise UnsuitableError if the view hides a cue, because a failure there would
        say nothing about ability.
        """
        paradigm = self.compile(specification)
        looks = validity.looks(paradigm, validity.FEWEST_LOOKS, 0)
        seen = validity.visible_cues(paradigm, view, looks, random.Random(0))
        if hidden := [name for name, is_visible in seen.items() if not is_visible]:
            more = f" (and {len(hidden) - 1} more)" if len(hidden) > 1 else ""
            raise UnsuitableError(
                f"'{specification.name}' cannot be judged in the view '{view.name}', which does not show: "
                f"{hidden[0]}{more}. Choose another view, or --design smoke, which makes no claim."
            )


def _check_request(specification: Specification, request: CellRequest) -> None:
    """Raise UnsuitableError for a baseline, or an option, that only dialogues have."""
    if request.model in request.plugins.respondents:
        known = ", ".join(sorted(request.plugins.agents))
        raise UnsuitableError(
            f"The baseline '{request.model}' answers questions, but '{specification.name}' is an arena. "
            f"Choose dialogues (--protocols cogeval), or one of the agents {known}."
        )
    if len(request.temperatures) > 1:
        raise UnsuitableError(
            f"Several temperatures work only with dialogues; '{specification.name}' is an arena. Give one temperature."
        )


def _check_published(
    model: str, cells: Iterable[CellPlan], specification: Specification
) -> None:
    """Raise UnsuitableError if a cell cannot be shown beside the published model."""
    # Protocols with the published rules never draw their limit.
    most = specification.limit if isinstance(specification.limit, int) else 0
    for cell in cells:
        if reason := why_not(model, cell, most):
            raise UnsuitableError(reason)


def _must_show_cues(specification: Specification, plan: CellPlan) -> bool:
    """Return whether every cue must be visible in the plan's view, because its verdict
    would concern the ability that the protocol names.

    The view from above is exempt, because it shows everything that is drawn.
    """
    named = specification.construct is not None
    return named and plan.claims and plan.view != FROM_ABOVE


def _animals(judged: ReferenceSpec | None) -> str:
    """Return, in words, the value that the verdict compares with, and its kind unless
    it was measured.
    """
    if judged is None:
        return "no reference"
    value = _rate(judged.value) if judged.measure == "success" else f"{judged.value:g}"
    return value if judged.kind == "measured" else f"{value} {judged.nature}"


def _rate(value: float | None) -> str:
    return "" if value is None else percent(value)
