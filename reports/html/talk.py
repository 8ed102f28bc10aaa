"""What a model was asked and what it replied, for the page's player."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.conversations import create_agent
from cheesebench.experiment.retelling import ToldCall, retell
from cheesebench.reports.escaping import clean, visible

if TYPE_CHECKING:
    from cheesebench.chat import ModelAgent
    from cheesebench.experiment.call_log import CallRecord
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan
    from cheesebench.experiment.replay import Frame
    from cheesebench.plugin_manager import PluginManager

#: Characters of a question, a reply, its reasoning or learnings that the page shows.
LONGEST = 20_000


class Talk:
    """What a subject that asks a model was told, trial by trial from its first one; nothing for other subjects."""

    def __init__(self, log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int) -> None:
        #: Why replies are not told (any more).
        self.problem = ""
        self._agent: ModelAgent | None = None
        self._calls: dict[int, list[CallRecord]] = {}
        if not plan.agent:
            return
        try:
            self._agent = create_agent(
                plugins.model_agent(plan.agent), plugins.view(plan.view), plan, log.manifest["options"]["seed"], subject
            )
        except (CheeseBenchError, KeyError) as error:
            self.problem = f"What the model replied is not shown: {error}"
            return
        for call in log.calls.of_life(plan, subject):
            self._calls.setdefault(call.trial, []).append(call)

    def calls(self, trial: int, frames: Sequence[Frame]) -> list[dict[str, Any]]:
        """Return the calls of the next trial as JSON values."""
        if self._agent is None or self.problem:
            return []
        try:
            return [call_of(told) for told in retell(self._agent, frames, self._calls.pop(trial, []))]
        except CheeseBenchError as error:
            self.problem = f"What the model replied is not shown: {error}"
            return []


def call_of(told: ToldCall) -> dict[str, Any]:
    """Return a call in its place as JSON values."""
    record = told.record
    return {
        "step": told.step,
        "asked": visible(record.asked, LONGEST),
        "reply": visible(record.reply.text, LONGEST),
        "reasoning": visible(record.reply.reasoning, LONGEST),
        "learnings": visible(told.learnings, LONGEST),
        "usage": clean(_usage(record)),
    }


def _usage(record: CallRecord) -> str:
    """Return what a call took, in a line."""
    used = record.reply.usage
    parts = [f"{used.prompt:,} tokens asked" + (f" ({used.cached:,} cached)" if used.cached else "")]
    parts.append(f"{used.completion:,} replied" + (f" ({used.reasoning:,} reasoning)" if used.reasoning else ""))
    parts.append(f"{record.seconds:.1f} s")
    if record.attempts > 1:
        parts.append(f"{record.attempts} attempts")
    if record.reply.finish == "length":
        parts.append("cut off at the limit")
    if record.cost is not None:
        parts.append(f"${record.cost:.4f}")
    if record.reply.model:
        parts.append(record.reply.model)
    return ", ".join(parts)
