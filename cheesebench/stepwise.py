"""Shared parts of families whose paradigms run step by step (``interfaces.Paradigm``): subjects, films, explanations.

A subclass of ``StepwiseFamily`` must define how its documents are read and compiled, how they are listed, and which
cells they have.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from cheesebench.errors import UnknownNameError
from cheesebench.interfaces import PictureView

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.family import Asker, CellRequest, Seat, Trial, WatchedTrial
    from cheesebench.interfaces import Paradigm
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import BaseSpecification


class StepwiseFamily:
    """The methods of ``Family`` that are the same for all paradigms that run step by step."""

    recognised_by: ClassVar[Mapping[str, Any]] = {}

    def plan(
        self, specification: BaseSpecification, request: CellRequest, view: str, trials: int, **more: Any
    ) -> CellPlan:
        """Return the plan of one cell; ``trials`` are those of one subject, ``more`` are other fields of the plan."""
        from cheesebench.experiment.records import CellPlan

        language, design = request.language, request.design
        memory = language.agent.memory if language else request.plugins.agent(request.model).memory
        fields = {
            "model": request.model,
            "protocol": specification.name,
            "view": view,
            "title": specification.title,
            "dimension": getattr(specification.document, "dimension", ""),
            "species": getattr(specification.document, "species", None) or "",
            "sha256": specification.sha256,
            "design": design.name,
            "subjects": design.subjects,
            "trials": trials if design.trials is None else min(trials, design.trials),
            "memory": memory,
            "claims": design.claims,
            "agent": language.agent.name if language else "",
            "settings": language.settings if language else {},
        }
        return CellPlan(**{**fields, **more})

    def live(self, paradigm: Paradigm, seat: Seat) -> Iterator[Trial]:
        """Run an agent without a language model."""
        from cheesebench.experiment.subjects import live

        plan, agent = seat.plan, seat.plugins.agent(seat.plan.model)
        return live(paradigm, seat.plugins.view(plan.view), agent, plan, seat.seed, seat.subject)

    def converse(self, paradigm: Paradigm, seat: Seat, asker: Asker) -> AsyncGenerator[Trial, None]:
        """Run a language model with its agent."""
        from cheesebench.experiment.conversations import converse

        plan, agent = seat.plan, seat.plugins.model_agent(seat.plan.agent)
        return converse(paradigm, seat.plugins.view(plan.view), agent, plan, seat.seed, seat.subject, asker)

    def watch(
        self, log: RunLog, plugins: PluginManager, plan: CellPlan, wanted: Mapping[int, set[int]]
    ) -> Iterator[WatchedTrial]:
        """Yield the wanted trials, replayed from their actions."""
        from cheesebench.stepwise_films import watch

        return watch(log, plugins, plugins.view(plan.view), plan, wanted)

    def explain(self, log: RunLog, plugins: PluginManager, specification: Any, record: TrialRecord) -> str:
        """Return the film of a trial as text, or the reason why there is none."""
        from cheesebench.stepwise_films import film_text

        paradigm: Any = plugins.compile(specification)
        try:
            view = plugins.view(record.view)
            if isinstance(
                view, PictureView
            ):  # replay in a view that can be printed; the trial is the same in every view
                view = plugins.view("ascii_2d")
        except UnknownNameError as error:
            return str(error)
        return film_text(log, paradigm, view, record)
