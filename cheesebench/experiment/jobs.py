"""One subject as a job: what a worker is told, what it does, and what it tells back."""

from __future__ import annotations

import pickle
import struct
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cheesebench.errors import CheeseBenchError, PluginError, RunLogError
from cheesebench.experiment.budget import BudgetSpentError
from cheesebench.experiment.controls import controlled
from cheesebench.experiment.dialogues import respond
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.experiment.subjects import live
from cheesebench.protocol import DialogueSpecification

if TYPE_CHECKING:
    from cheesebench.interfaces import Paradigm, TaskEvent
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import AnySpecification, Specification

#: Length of a message in a pipe, before the message.
HEADER = struct.Struct(">I")
#: Paradigms that a workplace keeps. Subjects of one cell follow one another, so that more would only fill memory.
KEPT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One subject of one cell. ``wants_records``: somebody observes, records are sent as well as written."""

    plan: CellPlan
    specification: AnySpecification
    seed: int
    subject: int
    log: Path
    wants_records: bool


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker says: so many trials are done, with the latest record if it is wanted; finally ``ended``.

    ``complete``: the life was lived to its end. ``error`` is why the run log could not be written; it concerns
    the whole cell.
    """

    trials: int = 0
    record: TrialRecord | None = None
    ended: bool = False
    complete: bool = False
    error: str = ""


class Stopped(BaseException):
    """Raised by ``finished`` to stop a life that nobody waits for any longer."""


def pack(message: Any) -> bytes:
    """Return the bytes that carry a message through a pipe."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return HEADER.pack(len(content)) + content


class Compiled:
    """What subjects live in, compiled for each protocol and control; beyond ``most`` of them the oldest is dropped."""

    def __init__(self, plugins: PluginManager, most: int | None = None) -> None:
        self._plugins = plugins
        self._most = most
        self._paradigms: dict[tuple[str, str], Paradigm] = {}

    def paradigm(self, job: Job, specification: Specification) -> Paradigm:
        """Return the paradigm of a job; ``specification`` is the job's own."""
        key = (job.plan.protocol, job.plan.control)
        if key not in self._paradigms:
            if len(self._paradigms) == self._most:
                del self._paradigms[next(iter(self._paradigms))]
            plain = self._plugins.compile(specification)
            self._paradigms[key] = controlled(plain, job.plan, job.seed, job.log.parent.parent)
        return self._paradigms[key]


class Workplace:
    """Where jobs are done: the last compiled paradigms are kept from job to job. To be used by one thread."""

    def __init__(self, plugins: PluginManager) -> None:
        self._plugins = plugins
        self._compiled = Compiled(plugins, KEPT)

    def do(self, job: Job, finished: Callable[[TrialRecord], None]) -> bool:
        """Live a subject's life into the run log; return whether it is complete.

        ``finished`` is called for every trial once it is written.
        Whatever goes wrong in the agent, the view or the environment makes the rest of the life missing, with
        the cause in the journal. Raises RunLogError when the log cannot be written or contradicts the life.
        """
        plan, subject = job.plan, job.subject
        trials = 0
        with RunLog.open(job.log) as log:
            try:
                for record, events in self._life(job):
                    log.write_trial(record, events)
                    trials += 1
                    finished(record)
            except (RunLogError, Stopped):
                raise
            except BaseException as error:
                # BaseException, because sys.exit() and pytest.fail() are no reason to end the worker either.
                write_stopped(log, plan, subject, trials, error)
                return False
            log.write_life(plan, subject, trials)
            return True

    def _life(self, job: Job) -> Iterator[tuple[TrialRecord, Sequence[TaskEvent]]]:
        plan, plugins = job.plan, self._plugins
        if isinstance(job.specification, DialogueSpecification):
            talked = plugins.compile_dialogue(job.specification)
            return respond(talked, plugins.respondent(plan.model), plan, job.seed, job.subject)
        agent, view = plugins.agent(plan.model), plugins.view(plan.view)
        return live(self._compiled.paradigm(job, job.specification), view, agent, plan, job.seed, job.subject)


def write_stopped(log: RunLog, plan: CellPlan, subject: int, trials: int, error: BaseException) -> None:
    """Record that a life was broken off in its trial ``trials`` (from 0) by ``error``, the rest being missing."""
    if not isinstance(error, CheeseBenchError) or isinstance(error, PluginError):
        log.note("traceback", _traceback(error), plan, subject)
    missing = "budget" if isinstance(error, BudgetSpentError) else "infrastructure"
    log.write_missing(plan, subject, f"stopped in trial {trials}: {_one_line(error)}", missing)


def _traceback(error: BaseException) -> str:
    """Return the traceback without carets under its lines.

    For carets Python parses the lines, and up to 3.11.8 two threads that parse at once break one another (SystemError,
    "AST constructor recursion depth mismatch"): pytest parses in the main thread while subjects run in others.
    """
    told = traceback.TracebackException.from_exception(error)
    chain: list[traceback.TracebackException | None] = [told]
    while chain:
        one = chain.pop()
        if one is not None:
            chain += [one.__cause__, one.__context__, *(one.exceptions or ())]
            for frame in one.stack:
                frame.colno = None
    return "".join(told.format())


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, CheeseBenchError):
        return text
    kind = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{kind}: {text}{where}" if text else f"{kind}{where}"
