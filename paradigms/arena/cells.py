"""The cells of a protocol with an arena: every view and level of a study, with controls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cheesebench.experiment.contestants import varied
from cheesebench.experiment.controls import control_cell, has_control
from cheesebench.experiment.designs import plan_cell
from cheesebench.experiment.studies import variant_of

if TYPE_CHECKING:
    from cheesebench.experiment.records import CellPlan
    from cheesebench.family import CellRequest
    from cheesebench.protocol import Specification


def plan_cells(specification: Specification, request: CellRequest) -> Iterator[CellPlan]:
    """Yield the plans of a model's cells on a protocol: the plain one or a study's, each with its controls."""
    language = request.language
    memory = language.agent.memory if language else request.plugins.agent(request.model).memory
    for view in request.views:
        for changes in request.study.variants() if request.study else ({},):
            plain = plan_cell(
                specification,
                request.model,
                view,
                request.design,
                memory,
                agent=language.agent.name if language else "",
                settings=varied(language, changes) if language else None,
                variant=variant_of(changes),
            )
            yield plain
            for control in request.controls:
                # Skip lesions of things that a protocol does not have (landmarks, a state).
                if has_control(specification, control):
                    yield control_cell(plain, control, specification)
