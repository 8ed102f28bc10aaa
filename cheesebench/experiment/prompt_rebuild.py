"""Rebuilds the whole prompt of a recorded call, which is not stored, by replaying the subject."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cheesebench.errors import RunLogError
from cheesebench.experiment.call_log import CallRecord, digest
from cheesebench.experiment.event_loop import run_blocking
from cheesebench.experiment.log_file import NOT_AS_WRITTEN
from cheesebench.experiment.replay import recorded_paradigm, recorded_protocol
from cheesebench.family import Seat
from cheesebench.redaction import quoted

if TYPE_CHECKING:
    from cheesebench.chat import ChatReply, ChatRequest, Message
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan
    from cheesebench.plugin_manager import PluginManager


@dataclass(frozen=True, slots=True)
class RebuiltCall:
    """A call with its whole prompt.

    ``actions`` is how the agent parsed the reply (empty: it asked again); None for a fault, and in families without
    actions.
    """

    record: CallRecord
    request: ChatRequest
    actions: tuple[int, ...] | None

    @property
    def messages(self) -> tuple[Message, ...]:
        """The prompt."""
        return self.request.messages


def rebuild_call(
    log: RunLog, plugins: PluginManager, plan: CellPlan, subject: int, trial: int, call: int
) -> RebuiltCall:
    """Return call number ``call`` (from 0) of a subject's ``trial``.

    Raises RunLogError if a rebuilt prompt on the way differs from the recorded one, if there is no such call, or if the
    protocol cannot be read as the run used it.
    """
    specification = recorded_protocol(log, plan, plugins)
    paradigm = recorded_paradigm(log, plugins, plan)
    seat = Seat(plugins=plugins, plan=plan, seed=log.manifest["options"]["seed"], subject=subject)
    memory = _Memory(log, plan, subject, (trial, call))

    async def live() -> None:
        async with contextlib.aclosing(plugins.family(specification).converse(paradigm, seat, memory)) as life:
            async for _ in life:
                pass

    # A family without actions never calls ``read_as``; then the call is reached without _ReachedError.
    try:
        run_blocking(live())
    except _ReachedError:
        pass
    except NOT_AS_WRITTEN as error:
        # What the agent or the family makes of settings that are not those it was recorded with.
        raise memory.different(trial, call, f" ({quoted(f'{type(error).__name__}: {error}', 120)})") from error
    if memory.reached is None:
        raise memory.different(trial, call)
    return memory.reached


class _ReachedError(Exception):
    """The wanted call has been made."""


class _Memory:
    """Answers from the log, up to the wanted call."""

    def __init__(self, log: RunLog, plan: CellPlan, subject: int, wanted: tuple[int, int]) -> None:
        self.plan = plan
        self._subject = subject
        self._wanted = wanted
        self._records = {(record.trial, record.call): record for record in log.calls.of_life(plan, subject)}
        self._asked: dict[int, int] = {}
        #: The wanted call, once it has been made.
        self.reached: RebuiltCall | None = None
        if wanted not in self._records:
            raise RunLogError(f"{self.where(*wanted)} is not in the run.")

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        if self.reached is not None:
            raise _ReachedError
        call = self._asked.get(trial, 0)
        self._asked[trial] = call + 1
        record = self._records.get((trial, call))
        if record is None or record.digest != digest(request):
            raise self.different(trial, call)
        if (trial, call) == self._wanted:
            self.reached = RebuiltCall(record, request, None)
            if record.fault is not None:
                raise _ReachedError
        elif record.fault is not None:
            raise self.different(trial, call)
        return record.reply

    def read_as(self, actions: Sequence[int]) -> None:
        if self.reached is not None:
            self.reached = dataclasses.replace(self.reached, actions=tuple(actions))
            raise _ReachedError

    def different(self, trial: int, call: int, why: str = "") -> RunLogError:
        """Return the error for a life that leaves what was recorded."""
        return RunLogError(
            f"{self.where(trial, call)} cannot be rebuilt as recorded{why}. Use the version of CheeseBench, and the "
            "plugins, that the run was made with."
        )

    def where(self, trial: int, call: int) -> str:
        plan = self.plan
        return f"Call {call} of trial {trial} of subject {self._subject} ({plan.model} on {plan.protocol}, {plan.view})"
