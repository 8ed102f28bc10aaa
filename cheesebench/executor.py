"""Where jobs are done: what an executor is given, what it reports, and how a plugin supplies one.

A job is one subject of one cell. An executor does jobs anywhere (``run_job``) and hands the reports back; only the
driver, which is the process of the session, writes the run log. So a job holds no path, and the records do not depend
on the executor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cheesebench.errors import CheeseBenchError

if TYPE_CHECKING:
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.interfaces import TaskEvent
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.protocol import BaseSpecification


class WorkerDiedError(CheeseBenchError):
    """What did a job ended before the job did: the rest of this subject's trials is missing. The text says how."""


@dataclass(frozen=True, slots=True)
class Yoke:
    """The subject of another run that a job's subject is yoked to: its run's seed, its number, its actions by trial."""

    seed: int
    subject: int
    trials: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """One subject of one cell, with all that its life depends on. Jobs can be pickled.

    ``seed`` is the run's; ``yoke`` is set in the cells of the control ``yoked:RUN`` only.
    """

    plan: CellPlan
    specification: BaseSpecification
    seed: int
    subject: int
    yoke: Yoke | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What has happened in a job since the last report. Reports can be pickled.

    ``trials`` are finished trials, each with the rules that fired in it. The last report of a job has ``ended`` set;
    there, ``missing`` says why the trials that are left could not be run (``"infrastructure"`` or ``"budget"``; empty
    when the subject is complete), and ``cause`` is the sentence for the journal. ``notes`` are further entries of the
    journal, as kind and text: ``("traceback", ...)``.
    """

    trials: Sequence[tuple[TrialRecord, Sequence[TaskEvent]]] = ()
    notes: Sequence[tuple[str, str]] = ()
    ended: bool = False
    missing: str = ""
    cause: str = ""


class Executor(Protocol):
    """Does jobs. Its methods are called in the event loop of the session."""

    capacity: int
    """How many jobs it can do at the same time (at least 1)."""

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """Do the job, and hand every report of ``run_job`` to ``report`` in its order, in this event loop.

        ``report`` should get each finished trial at once: what it has got is safe. It is called for at most
        ``capacity`` jobs at a time. A job may be done again from its beginning, because equal trials are written
        once. When the session is closed the task is cancelled. Raises WorkerDiedError when whatever did the job has
        died; any other exception ends the cell.
        """
        ...

    async def close(self) -> None:
        """Stop everything at once, and wait a few seconds at most. No job is under way any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorContext:
    """What an executor is created with.

    ``directory`` is the run's own, for logs of the executor; ``processes`` is how many jobs the user wants at a time.
    ``plugins`` are those of the session, a conftest.py's among them.
    """

    plugins: PluginManager
    directory: Path
    processes: int


@dataclass(frozen=True, slots=True)
class ExecutorSpec:
    """An executor that can be named with ``--executor`` (hook ``cheesebench_executors``).

    ``in_process`` says that jobs are done in this process with the plugins of the context. Other executors get only
    cells whose agent, view and family an installed plugin supplies.
    """

    name: str
    create: Callable[[ExecutorContext], Executor]
    summary: str = ""
    in_process: bool = False
