"""Shared code of families whose paradigms run step by step (``interfaces.Paradigm``):
how subjects are run, shown and explained.

A subclass of ``StepwiseFamily`` must define how its documents are read and compiled,
how they are listed, and which cells they have.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from cheesebench.errors import CheeseBenchError, UnknownNameError
from cheesebench.experiment.controls import control_cell, has_control, lesion_of
from cheesebench.experiment.replay import (
    film,
    films,
    recorded_paradigm,
    replay_calls,
    steppable,
)
from cheesebench.experiment.subjects import (
    StepwiseSubjects,
    create_agent,
    interrupts_of,
)
from cheesebench.family import P, S, WatchedTrial
from cheesebench.interfaces import PictureView
from cheesebench.records import CellPlan
from cheesebench.terminal import film_strip

if TYPE_CHECKING:
    from cheesebench.chat import ModelAgent
    from cheesebench.family import (
        CellRequest,
        Plugins,
        RecordedRun,
    )
    from cheesebench.interfaces import BaseSpecification, Memory, Paradigm, View
    from cheesebench.records import CallRecord, Frame, ReplayedCall, TrialRecord

_INDENT = "  "


def watch(
    log: RecordedRun,
    plugins: Plugins,
    view: View,
    plan: CellPlan,
    wanted: Mapping[int, set[int]],
) -> Iterator[WatchedTrial]:
    """Yield the wanted trials, replayed from their actions. All earlier trials of their
    subjects are replayed too, but not yielded.
    """
    paradigm = steppable(recorded_paradigm(log, plugins, plan), plan)
    seed = log.manifest["options"]["seed"]
    for subject, trials in wanted.items():
        played = [record for record in log.trials(plan, subject) if not record.missing][
            : max(trials) + 1
        ]
        talk = _Conversation(log, plugins, plan, subject, view)
        for record, frames in zip(
            played,
            films(paradigm.environment(view, seed, subject), played),
            strict=True,
        ):
            calls = talk.calls(record, frames)
            if record.trial in trials:
                yield WatchedTrial(
                    record=record,
                    frames=frames,
                    calls=calls,
                    note=talk.problem,
                    differs=talk.differs,
                )


def film_text(
    log: RecordedRun, paradigm: Paradigm, view: View, record: TrialRecord
) -> str:
    """Return the film of a failed trial, or the reason why there is none, under a
    heading.
    """
    steps = f"{record.steps} step" if record.steps == 1 else f"{record.steps} steps"
    heading = f"A failed trial: subject {record.subject}, trial {record.trial + 1}, {record.outcome} after {steps}."
    try:
        frames = film(log, paradigm, view, record)
    except CheeseBenchError as error:
        return f"{heading}\n{error}"
    # A CI service could take a line at column 0 for a command, so indent the film.
    strip = film_strip(frames, shutil.get_terminal_size().columns - len(_INDENT))
    return f"{heading}\n\n{textwrap.indent(strip, _INDENT)}"


class _Conversation:
    """The calls of one subject, to be read trial by trial from the first. A subject
    without a language model has none.
    """

    def __init__(
        self,
        log: RecordedRun,
        plugins: Plugins,
        plan: CellPlan,
        subject: int,
        view: View,
    ) -> None:
        #: Why replies are not shown, or an empty string if they are shown or there are
        #: none.
        self.problem = ""
        #: Whether the replies do not lead to the recorded trials.
        self.differs = False
        self._interrupts = interrupts_of(plan)
        self._agent: ModelAgent | None = None
        self._calls: Callable[[int], Iterator[CallRecord]] = partial(
            log.calls.of_trial, plan, subject
        )
        if not plan.agent:
            return
        if lesion_of(plan).amnesia or lesion_of(plan).memoryless:
            self.problem = "The model's replies are not shown: the control makes this subject forget, so they cannot be replayed."
            return
        try:
            self._agent = create_agent(
                plugins.model_agent(plan.agent),
                view,
                plan,
                log.manifest["options"]["seed"],
                subject,
            )
        except (CheeseBenchError, KeyError) as error:
            self.problem = f"The model's replies are not shown: {error}"
            return

    def calls(self, record: TrialRecord, frames: Sequence[Frame]) -> list[ReplayedCall]:
        """Return the calls of the next trial, each with its step."""
        if self._agent is None or self.problem:
            return []
        try:
            return replay_calls(
                self._agent, frames, self._calls(record.trial), self._interrupts
            )
        except CheeseBenchError as error:
            self.differs = True
            self.problem = f"The model's replies are not shown: {error}"
            return []


class StepwiseFamily(StepwiseSubjects[S, P]):
    """A family whose paradigms run step by step: how subjects are run, shown and
    explained.
    """

    def plan(
        self,
        specification: BaseSpecification,
        request: CellRequest,
        view: str,
        trials: int,
        **more: Any,
    ) -> CellPlan:
        """Return the plan of one cell. ``trials`` is the number of trials per subject,
        unless the design has fewer. ``more`` has other fields of the plan.
        """
        language, design = request.language, request.design
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
            "memory": self._memory(specification, request),
            "claims": design.claims,
            "agent": language.agent.name if language else "",
            "settings": language.settings if language else {},
        }
        return CellPlan(**{**fields, **more})

    def _memory(self, specification: BaseSpecification, request: CellRequest) -> Memory:
        """Return how long a cell's agent remembers."""
        if request.language:
            return request.language.agent.memory
        return request.plugins.agent(request.model, specification.name).memory

    def with_controls(
        self, plain: CellPlan, specification: BaseSpecification, request: CellRequest
    ) -> Iterator[CellPlan]:
        """Yield a cell, then its requested controls that the protocol can have."""
        yield plain
        for control in request.controls:
            if has_control(specification, control):
                yield control_cell(plain, control, specification)

    def watch(
        self,
        log: RecordedRun,
        plugins: Plugins,
        plan: CellPlan,
        wanted: Mapping[int, set[int]],
    ) -> Iterator[WatchedTrial]:
        """Yield the wanted trials, replayed from their actions."""
        return watch(log, plugins, plugins.view(plan.view), plan, wanted)

    def explain(
        self, log: RecordedRun, plugins: Plugins, specification: S, record: TrialRecord
    ) -> str:
        """Return the film of a trial as text, or the reason why there is none."""
        paradigm = plugins.compile(specification)
        try:
            view = plugins.view(record.view)
            if isinstance(view, PictureView):
                # The trial is the same in any view, but only text can be printed.
                view = plugins.view("ascii_2d")
        except UnknownNameError as error:
            return str(error)
        return film_text(log, paradigm, view, record)
