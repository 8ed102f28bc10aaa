"""Runs one subject as a job, independently of run log and paths, so that it can be done anywhere."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cheesebench.errors import CheeseBenchError, PluginError, raised_where
from cheesebench.executor import Job, Report
from cheesebench.experiment.budget import BudgetSpentError, SubjectSettledError
from cheesebench.experiment.controls import controlled, yoked
from cheesebench.experiment.records import SETTLED
from cheesebench.family import Seat
from cheesebench.plugin_manager import installed_plugins

if TYPE_CHECKING:
    from cheesebench.family import Trial
    from cheesebench.plugin_manager import PluginManager

#: Paradigms that a job runner keeps. Subjects of one cell follow one another, so that more would only fill memory.
KEPT = 2
#: Causes of trials that were not run, by what was raised; a breakdown is any other.
_CAUSES: dict[type[Exception], str] = {BudgetSpentError: "budget", SubjectSettledError: SETTLED}


class ParadigmCache:
    """Paradigms compiled for each protocol and control; beyond ``most`` of them the oldest is dropped."""

    def __init__(self, plugins: PluginManager, most: int | None = None) -> None:
        self._plugins = plugins
        self._most = most
        self._paradigms: dict[tuple[str, str], Any] = {}

    def paradigm(self, job: Job) -> Any:
        """Return the paradigm of a job, as its family compiles it."""
        # Who is yoked has a paradigm of its own, made of the plain one.
        plan, yoke = job.plan, job.yoke
        key = (plan.protocol, plan.control if yoke is None else "")
        if key not in self._paradigms:
            if len(self._paradigms) == self._most:
                del self._paradigms[next(iter(self._paradigms))]
            plain = self._plugins.compile(job.specification)
            self._paradigms[key] = plain if yoke is not None else controlled(plain, plan, job.seed)
        found = self._paradigms[key]
        return found if yoke is None else yoked(found, plan, lambda subject: yoke)


class JobRunner:
    """Runs jobs with the given plugins and caches compiled paradigms between jobs. Not thread-safe."""

    def __init__(self, plugins: PluginManager) -> None:
        self._plugins = plugins
        self._cache = ParadigmCache(plugins, KEPT)

    def live(self, job: Job) -> Iterator[Trial]:
        """Yield every finished trial of the job's subject, with the rules that fired in it.

        Exceptions of the agent, the view or the environment propagate.
        """
        seat = Seat(plugins=self._plugins, plan=job.plan, seed=job.seed, subject=job.subject)
        return self._plugins.family(job.specification).live(self._cache.paradigm(job), seat)

    def reports(self, job: Job) -> Generator[Report, None, None]:
        """Yield the reports of a job: one for each finished trial, and a last one with how it ended.

        Exceptions of the agent, the view or the environment are in the last report; so are exceptions thrown into the
        generator because a report could not be sent.
        """
        trials = 0
        try:
            for record, events in self.live(job):
                yield Report(trials=((record, tuple(events)),))
                trials += 1
        except GeneratorExit:
            raise
        except BaseException as error:
            # BaseException, because sys.exit() and pytest.fail() must not end the worker either.
            yield stopped(trials, error)
        else:
            yield Report(ended=True)


@lru_cache(maxsize=1)
def _installed_runner() -> JobRunner:
    return JobRunner(installed_plugins())


def run_job(job: Job) -> Generator[Report, None, None]:
    """Yield the reports of a job, run in this process with the installed plugins. Not thread-safe."""
    return _installed_runner().reports(job)


def stopped(trials: int, error: BaseException) -> Report:
    """Return the last report of a job that ``error`` ended in trial number ``trials`` (from 0)."""
    explained = isinstance(error, CheeseBenchError) and not isinstance(error, PluginError)
    return Report(
        notes=() if explained else [("traceback", _traceback(error))],
        ended=True,
        missing=next((name for kind, name in _CAUSES.items() if isinstance(error, kind)), "infrastructure"),
        cause=" ".join(f"stopped in trial {trials}: {raised_where(error)}".split()),
    )


def _traceback(error: BaseException) -> str:
    """Return the traceback without carets.

    For carets Python parses the source lines, and up to 3.11.8 concurrent parsing in two threads fails (SystemError,
    "AST constructor recursion depth mismatch"). pytest parses in the main thread while subjects run in others.
    """
    captured = traceback.TracebackException.from_exception(error)
    chain: list[traceback.TracebackException | None] = [captured]
    while chain:
        one = chain.pop()
        if one is not None:
            chain += [one.__cause__, one.__context__, *(one.exceptions or ())]
            for frame in one.stack:
                frame.colno = None
    return "".join(captured.format())
