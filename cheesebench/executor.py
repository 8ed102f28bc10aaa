"""The interface of executors: their jobs, their reports, and how a plugin supplies one.

A job is one subject of one cell. An executor runs jobs anywhere (with ``run_job``) and
passes the reports back; only the driver, in the process of the session, writes the run
log. So a job contains no paths, and the records do not depend on the executor.
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
    """The worker of a job died; the rest of this subject's trials is missing. The text
    says how it died.
    """


@dataclass(frozen=True, slots=True)
class Yoke:
    """The subject of another run that a job's subject is yoked to: its run's seed, its
    number, its actions by trial.
    """

    seed: int
    subject: int
    trials: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """One subject of one cell, with everything that its trials depend on. Jobs can be
    pickled.

    ``seed`` is the run's; ``yoke`` is set in the cells of the control ``yoked:RUN``
    only.
    """

    plan: CellPlan
    specification: BaseSpecification
    seed: int
    subject: int
    yoke: Yoke | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Progress of a job since its last report. Reports can be pickled.

    ``trials`` are finished trials, each with the rules that fired in it. The last
    report of a job has ``ended`` set; there, ``missing`` is why the remaining trials
    could not be run (``"infrastructure"`` or ``"budget"``; empty if the subject is
    complete), ``cause`` is a sentence for the journal, and ``tally`` has the agent's
    counts in the interrupted trial. ``notes`` are further journal entries, as kind and
    text: ``("traceback", ...)``.
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

        Pass each finished trial as soon as possible, because reported trials are safe.
        The method is called for at most ``capacity`` jobs at a time. A job may be
        repeated from its beginning, because equal trials are written once. When the
        session is closed, the task is cancelled. Raises WorkerDiedError if the worker
        has died; any other exception ends the cell.
        """
        ...

    async def close(self) -> None:
        """Stop everything, waiting at most a few seconds. No job is running when this
        is called.
        """
        ...


@runtime_checkable
class StartedExecutor(Protocol):
    """An executor with a connection to something, so that it has ``start``, too."""

    async def start(self) -> None:
        """Connect. This is called before the first job. A CheeseBenchError ends the
        session with its message.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorContext:
    """Arguments for creating an executor.

    ``directory`` is the run's, for logs of the executor; ``processes`` is the number of
    parallel jobs, which the user has asked for if ``processes_given``, else the number
    of processors of this machine. ``plugins`` are those of the session, including those
    of a conftest.py; ``options`` are those of ``--executor-option``.
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

    ``in_process``: jobs run in this process with the plugins of the context. Other
    executors get only cells whose agent, view and family are supplied by installed
    plugins; the others are run in threads of this process, or refused if jobs are run
    ``elsewhere`` (on other machines).
    """

    name: str
    create: Callable[[ExecutorContext], Executor]
    summary: str = ""
    in_process: bool = False
    elsewhere: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    """Meaning of each option by name; other options are refused."""
