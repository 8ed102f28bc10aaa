"""The interface of executors: their jobs, their reports, and how a plugin supplies one.

A job is one subject of one cell. An executor runs jobs anywhere (with ``run_job``) and
passes their reports back. Only the driver, in the session's process, writes the run
log, so a job contains no paths, and the records do not depend on the executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from cheesebench.errors import CheeseBenchError

if TYPE_CHECKING:
    from cheesebench.family import Plugins
    from cheesebench.interfaces import BaseSpecification, TaskEvent
    from cheesebench.records import CellPlan, TrialRecord


class WorkerDiedError(CheeseBenchError):
    """The worker of a job died, so the rest of the subject's trials are missing. The
    text says how it died.
    """


@dataclass(frozen=True, slots=True)
class Yoke:
    """The subject of another run that a job's subject is yoked to: the other run's
    seed, the other subject's number, and its actions in each trial.
    """

    seed: int
    subject: int
    trials: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """One subject of one cell, with everything that its trials depend on. Jobs can be
    pickled.

    ``seed`` is the run's seed. ``yoke`` is set only in cells of the control
    ``yoked:RUN``.
    """

    plan: CellPlan
    specification: BaseSpecification
    seed: int
    subject: int
    yoke: Yoke | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Progress of a job since its last report. Reports can be pickled.

    ``trials`` are finished trials, each with the rules that fired in it. ``notes`` are
    entries for the journal, as kind and text: ``("traceback", ...)``.

    Only the last report of a job has ``ended`` set. If the subject is not complete, it
    also says why the remaining trials could not be run (``missing``:
    ``"infrastructure"`` or ``"budget"``) and has a sentence on this for the journal
    (``cause``) and the agent's counts in the interrupted trial (``tally``).
    """

    trials: Sequence[tuple[TrialRecord, Sequence[TaskEvent]]] = ()
    notes: Sequence[tuple[str, str]] = ()
    ended: bool = False
    missing: str = ""
    cause: str = ""
    tally: Mapping[str, int] = field(default_factory=dict)


class Executor(Protocol):
    """Runs jobs. Its methods are called in the event loop of the session."""

    capacity: int
    """Maximum number of concurrent jobs (at least 1)."""

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """Run the job, and pass every report of ``run_job`` to ``report``, in order and
        in this event loop.

        Pass on each finished trial as soon as possible, because reported trials cannot
        be lost. The method is called for at most ``capacity`` jobs at a time. It may
        repeat a job from the beginning, because equal trials are written only once.
        When the session closes, the task is cancelled. Raise WorkerDiedError if the
        worker has died; any other exception ends the cell.
        """
        ...

    async def close(self) -> None:
        """Stop everything, within a few seconds. No job is running when this is
        called.
        """
        ...


@runtime_checkable
class StartedExecutor(Protocol):
    """Optional interface of an executor that must first connect to something."""

    async def start(self) -> None:
        """Connect. This is called before the first job. If it raises a
        CheeseBenchError, the session ends with its message.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorContext:
    """Arguments for creating an executor.

    ``directory`` is the run's directory, for the executor's own logs. ``processes`` is
    the number of parallel jobs: what the user has asked for if ``processes_given``,
    otherwise the number of this machine's processors. ``plugins`` are the session's
    plugins, including a conftest.py. ``options`` come from ``--executor-option``.
    """

    plugins: Plugins
    directory: Path
    processes: int
    processes_given: bool = False
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExecutorSpec:
    """An executor that can be named with ``--executor`` (hook
    ``cheesebench_executors``).

    If the executor is ``in_process``, jobs run in this process, with the plugins of the
    context. Otherwise it only gets cells whose agent, view and family come from
    installed plugins. Other agents' cells run in threads of this process, or are
    refused if the executor runs jobs ``elsewhere`` (on other machines).
    """

    name: str
    create: Callable[[ExecutorContext], Executor]
    summary: str = ""
    in_process: bool = False
    elsewhere: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    """Meaning of each option by name; other options are refused."""
