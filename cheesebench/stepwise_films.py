"""Films of recorded trials of paradigms that run step by step, for reports and failure messages."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.call_replay import replay_calls
from cheesebench.experiment.conversations import create_agent
from cheesebench.experiment.lesioned import lesion_of
from cheesebench.experiment.replay import film, films, recorded_paradigm, steppable
from cheesebench.family import WatchedTrial
from cheesebench.film import film_strip

if TYPE_CHECKING:
    from cheesebench.chat import ModelAgent
    from cheesebench.experiment.call_log import CallRecord
    from cheesebench.experiment.call_replay import ReplayedCall
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.experiment.replay import Frame
    from cheesebench.interfaces import Paradigm, View
    from cheesebench.plugin_manager import PluginManager

_INDENT = "  "


def watch(
    log: RunLog, plugins: PluginManager, view: View, plan: CellPlan, wanted: Mapping[int, set[int]]
) -> Iterator[WatchedTrial]:
    """Yield the wanted trials, replayed from their actions, together with all trials before them."""
    paradigm = steppable(recorded_paradigm(log, plugins, plan), plan)
    seed = log.manifest["options"]["seed"]
    for subject, trials in wanted.items():
        played = [record for record in log.trials(plan, subject) if not record.missing][: max(trials) + 1]
        talk = _Talk(log, plugins, plan, subject, view)
        for record, frames in zip(played, films(paradigm.environment(view, seed, subject), played), strict=True):
            calls = talk.calls(record.trial, frames)
            if record.trial in trials:
                yield WatchedTrial(record=record, frames=frames, calls=calls, note=talk.problem)


def film_text(log: RunLog, paradigm: Paradigm, view: View, record: TrialRecord) -> str:
    """Return the film of a trial under a heading, or the reason why there is none."""
    steps = f"{record.steps} step" if record.steps == 1 else f"{record.steps} steps"
    heading = f"A failed trial: subject {record.subject}, trial {record.trial}, {record.outcome} after {steps}."
    try:
        frames = film(log, paradigm, view, record)
    except CheeseBenchError as error:
        return f"{heading}\n{error}"
    # Indented, because a CI service could interpret a line at column 0 as a command.
    strip = film_strip(frames, shutil.get_terminal_size().columns - len(_INDENT))
    return f"{heading}\n\n{textwrap.indent(strip, _INDENT)}"


class _Talk:
    """The calls of a subject that asks a model, trial by trial from its first one; nothing for other subjects."""

    def __init__(self, log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, view: View) -> None:
        #: Why replies are not shown (any more).
        self.problem = ""
        self._agent: ModelAgent | None = None
        self._calls: Callable[[int], Iterator[CallRecord]] = partial(log.calls.of_trial, plan, subject)
        if not plan.agent:
            return
        if lesion_of(plan).amnesia or lesion_of(plan).memoryless:
            self.problem = "The model's replies are not shown: this subject forgets between trials."
            return
        try:
            self._agent = create_agent(
                plugins.model_agent(plan.agent), view, plan, log.manifest["options"]["seed"], subject
            )
        except (CheeseBenchError, KeyError) as error:
            self.problem = f"The model's replies are not shown: {error}"
            return

    def calls(self, trial: int, frames: Sequence[Frame]) -> list[ReplayedCall]:
        """Return the calls of the next trial in their places."""
        if self._agent is None or self.problem:
            return []
        try:
            return replay_calls(self._agent, frames, self._calls(trial))
        except CheeseBenchError as error:
            self.problem = f"The model's replies are not shown: {error}"
            return []
