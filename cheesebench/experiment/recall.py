"""A recorded call once more: its whole prompt, which is in no log, made again by living the subject's life again."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.dialogue import NO_VIEW
from cheesebench.errors import RunLogError
from cheesebench.experiment.call_log import CallRecord, digest
from cheesebench.experiment.conversations import converse
from cheesebench.experiment.dialogues import talk
from cheesebench.experiment.replay import recorded_dialogue, recorded_paradigm

if TYPE_CHECKING:
    from cheesebench.chat import ChatReply, ChatRequest, Message, ModelAgent, ModelAgentContext
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan
    from cheesebench.plugin_manager import PluginManager


@dataclass(frozen=True, slots=True)
class RecalledCall:
    """A call with its whole prompt. ``actions`` is what the agent read in the reply (none: it asked again)."""

    record: CallRecord
    request: ChatRequest
    actions: tuple[int, ...]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt."""
        return self.request.messages


def recall(log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, trial: int, call: int) -> RecalledCall:
    """Return call number ``call`` (from 0) of a subject's ``trial``.

    Every prompt on the way must be the one that was recorded: RunLogError names the first that is not, and says so
    when there is no such call, or when the protocol cannot be read as the run had it.
    """
    if plan.view == NO_VIEW:
        return _recall_dialogue(log, plugins, plan, subject, trial, call)
    spec = plugins.model_agent(plan.agent)
    view, seed = plugins.view(plan.view), log.manifest["options"]["seed"]
    paradigm = recorded_paradigm(log, plugins, plan)
    created: list[ModelAgent] = []

    def create(context: ModelAgentContext) -> ModelAgent:
        created.append(spec.create(context))
        return created[-1]

    async def live() -> None:
        life = converse(paradigm, view, dataclasses.replace(spec, create=create), plan, seed, subject, memory)
        async with contextlib.aclosing(life):
            async for _ in life:
                pass
        raise memory.different(trial, call)

    memory = _Memory(log, plan, subject, (trial, call))
    try:
        asyncio.run(live())
    except _FoundError as found:
        actions = () if found.record.fault else tuple(created[-1].read(found.record.reply))
        return RecalledCall(found.record, found.request, actions)
    raise AssertionError("a life that is over without the call raises")


def _recall_dialogue(
    log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, trial: int, call: int
) -> RecalledCall:
    """Do the same for a dialogue, whose replies are no actions."""
    dialogue, seed = recorded_dialogue(log, plugins, plan), log.manifest["options"]["seed"]
    memory = _Memory(log, plan, subject, (trial, call))

    async def live() -> None:
        async with contextlib.aclosing(talk(dialogue, plan, seed, subject, memory)) as life:
            async for _ in life:
                pass
        raise memory.different(trial, call)

    try:
        asyncio.run(live())
    except _FoundError as found:
        return RecalledCall(found.record, found.request, ())
    raise AssertionError("a life that is over without the call raises")


class _FoundError(Exception):
    """The wanted call is reached."""

    def __init__(self, record: CallRecord, request: ChatRequest) -> None:
        super().__init__()
        self.record, self.request = record, request


class _Memory:
    """Answers from the log, up to the wanted call."""

    def __init__(self, log: RunLog, plan: CellPlan, subject: int, wanted: tuple[int, int]) -> None:
        self.plan = plan
        self._subject = subject
        self._wanted = wanted
        self._records = {(record.trial, record.call): record for record in log.calls.of_life(plan, subject)}
        self._asked: dict[int, int] = {}
        if wanted not in self._records:
            raise RunLogError(f"{self.where(*wanted)} is not in the run.")

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        call = self._asked.get(trial, 0)
        self._asked[trial] = call + 1
        record = self._records.get((trial, call))
        if record is None or record.digest != digest(request):
            raise self.different(trial, call)
        if (trial, call) == self._wanted:
            raise _FoundError(record, request)
        if record.fault is not None:
            raise self.different(trial, call)
        return record.reply

    def different(self, trial: int, call: int) -> RunLogError:
        """Return the error for a life that leaves what was recorded."""
        return RunLogError(
            f"{self.where(trial, call)} does not come out as recorded. Use the version of CheeseBench, and the "
            "plugins, that the run was made with."
        )

    def where(self, trial: int, call: int) -> str:
        plan = self.plan
        return f"Call {call} of trial {trial} of subject {self._subject} ({plan.model} on {plan.protocol}, {plan.view})"
