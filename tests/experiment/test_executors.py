"""Any executor gives the same log; and the mistakes of a plugin's executor."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib
import re
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cheesebench import (
    Executor,
    ExecutorContext,
    ExecutorSpec,
    Job,
    Report,
    WorkerDiedError,
    hookimpl,
    run_job,
)
from cheesebench.errors import (
    CheeseBenchError,
    PluginError,
    RunLogError,
    UnknownNameError,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.recorder import WRITE_AT_REPORTS, Recorder
from cheesebench.experiment.session import RunSession
from cheesebench.experiment.subjects import (
    JobRunner,
    _installed_runner,
    read_result,
    stopped,
)
from cheesebench.family import Plugins
from cheesebench.interfaces import TrialResult
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.plugins.executors import pipes
from cheesebench.records import CellPlan

PAGE = Path(__file__).parents[2] / "docs/plugins.md"
#: The contents of a run except times. Journal entries of a cell are sorted, because
#: they are written in the order in which its subjects end.
CONTENT = (
    "SELECT * FROM cells ORDER BY position",
    "SELECT * FROM trials ORDER BY model, protocol, view, variant, subject, trial",
    "SELECT * FROM events ORDER BY model, protocol, view, variant, subject, trial, position",
    "SELECT * FROM lives ORDER BY model, protocol, view, variant, subject",
    "SELECT kind, text, model, protocol, subject FROM journal WHERE kind != 'traceback' ORDER BY 1, 2, 3, 4, 5",
)


@pytest.fixture
def documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugins: PluginManager
) -> PluginManager:
    """A plugin manager that knows the executor of the documentation."""
    [code] = re.findall(
        r"test: file: pool\.py -->\n```python\n(.*?)```",
        PAGE.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    (tmp_path / "pool_of_the_page.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.register(importlib.import_module("pool_of_the_page"), name="pool")
    return plugins


def content(log: RunLog) -> list[list[Any]]:
    return [log.select(query) for query in CONTENT]


@pytest.fixture
def run(tmp_path: Path, stranger: ModuleType) -> Callable[..., RunLog]:
    """Runs cells with an executor; the log stays open."""

    def started(
        plugins: PluginManager,
        cells: dict[CellPlan, Any],
        executor: str,
        name: str = "",
    ) -> RunLog:
        log = RunLog.create(
            tmp_path, name or executor, cells.items(), options={"seed": 1}
        )
        with RunSession(
            log, plugins, cells, seed=1, processes=2, executor=executor
        ) as session:
            session.finish()
        return log

    return started


def test_the_executor_changes_nothing(
    stranger: ModuleType, documented: PluginManager, run: Callable[..., RunLog]
) -> None:
    cells = stranger.cells(["walker", "raiser", "quitter"], names=["corridor", "hall"])
    with run(documented, cells, "local") as local:
        expected, dump = content(local), list(local.dump())
    assert [len(expected[table]) for table in (0, 3, 4)] == [6, 6, 1 + 6 + 6 + 1 + 12]
    for name in ("threads", "pool"):
        with run(documented, cells, name) as log:
            assert list(log.dump()) == dump
            assert content(log) == expected


def test_a_job_and_its_reports_hold_no_path(
    stranger: ModuleType, plugins: PluginManager
) -> None:
    [(plan, specification)] = stranger.cells(["walker"], subjects=1).items()
    job = Job(plan=plan, specification=specification, seed=1, subject=0)
    *trials, last = JobRunner(plugins).reports(job)
    assert all(len(report.trials) == 1 and not report.ended for report in trials)
    assert last == Report(ended=True)
    assert [report.trials[0][0] for report in trials] == [
        record for record, _ in JobRunner(plugins).live(job)
    ]


class InProcess:
    """An executor that does jobs at once, and applies ``change`` to their reports."""

    def __init__(
        self, plugins: Plugins, change: Callable[[list[Report]], list[Report]]
    ) -> None:
        self.capacity = 1
        self._runner = JobRunner(plugins)
        self._change = change

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        for message in self._change(list(self._runner.reports(job))):
            report(message)

    async def close(self) -> None:
        raise RuntimeError("closing fails, too")


def register(
    plugins: PluginManager, change: Callable[[list[Report]], list[Report]]
) -> None:
    def create(context: ExecutorContext) -> Executor:
        assert context.directory.is_dir()
        assert context.processes == 2
        return InProcess(context.plugins, change)

    spec = ExecutorSpec("odd", create, in_process=True)
    plugins.register(
        SimpleNamespace(cheesebench_executors=hookimpl(lambda: [spec])), name="odd"
    )


def at_once(reports: list[Report]) -> list[Report]:
    return [
        Report(
            trials=[trial for report in reports for trial in report.trials], ended=True
        )
    ]


def from_the_beginning(reports: list[Report]) -> list[Report]:
    return [*reports[:2], *reports]


def after_the_end(reports: list[Report]) -> list[Report]:
    return [*reports, *reports]


@pytest.mark.parametrize("change", [at_once, from_the_beginning, after_the_end])
def test_reports_may_be_grouped_and_repeated(
    stranger: ModuleType,
    plugins: PluginManager,
    run: Callable[..., RunLog],
    change: Any,
) -> None:
    cells = stranger.cells(["walker"])
    register(plugins, change)
    with run(plugins, cells, "threads") as expected, run(plugins, cells, "odd") as log:
        assert content(log) == content(expected)


def without_the_last(reports: list[Report]) -> list[Report]:
    return reports[:-1]


def of_words(reports: list[Report]) -> list[Any]:
    return ["done"]


def with_a_gap(reports: list[Report]) -> list[Report]:
    return reports[1:]


def fails(reports: list[Report]) -> list[Report]:
    raise ZeroDivisionError("the cluster is gone")


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (
            without_the_last,
            PluginError,
            "The executor 'odd' ended a job without its last report",
        ),
        (
            of_words,
            PluginError,
            "'odd': run reported 'done', a str. Pass on the reports of run_job",
        ),
        (
            with_a_gap,
            PluginError,
            r"reported trial 2 of subject 0 \(walker on corridor\) where trial 1 of subject 0",
        ),
        (fails, ZeroDivisionError, "the cluster is gone"),
    ],
)
def test_who_waits_hears_of_a_broken_executor(
    stranger: ModuleType,
    plugins: PluginManager,
    run: Callable[..., RunLog],
    change: Any,
    kind: Any,
    message: str,
) -> None:
    register(plugins, change)
    with pytest.raises(kind, match=message):
        run(plugins, stranger.cells(["walker"], subjects=1), "odd")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "close",
            None,
            r"create returned an InProcess, whose 'close' is None. Write 'async def close\(self\)'",
        ),
        (
            "run",
            lambda job: None,
            r"an InProcess, whose 'run' is a 'def'. Write 'async def run\(self, job, report\)'",
        ),
        ("capacity", 0, "The executor 'odd' has capacity 0"),
        ("capacity", "two", "The executor 'odd' has capacity 'two'"),
    ],
)
def test_what_an_executor_lacks_is_said(
    name: str,
    value: object,
    message: str,
    stranger: ModuleType,
    plugins: PluginManager,
    run: Callable[..., RunLog],
) -> None:
    def create(context: ExecutorContext) -> Executor:
        executor = InProcess(context.plugins, list)
        setattr(executor, name, value)
        return executor

    spec = ExecutorSpec("odd", create, in_process=True)
    plugins.register(
        SimpleNamespace(cheesebench_executors=hookimpl(lambda: [spec])), name="odd"
    )
    with pytest.raises(PluginError, match=message):
        run(plugins, stranger.cells(["walker"], subjects=1), "odd")


def test_a_worker_that_died_leaves_the_rest_missing(
    stranger: ModuleType, plugins: PluginManager, run: Callable[..., RunLog]
) -> None:
    class Dies(InProcess):
        async def run(self, job: Job, report: Callable[[Report], None]) -> None:
            report(next(self._runner.reports(job)))
            raise WorkerDiedError("the node is gone")

    spec = ExecutorSpec(
        "dies", lambda context: Dies(context.plugins, list), in_process=True
    )
    plugins.register(
        SimpleNamespace(cheesebench_executors=hookimpl(lambda: [spec])), name="dies"
    )
    cells = stranger.cells(["walker"], subjects=2)
    with run(plugins, cells, "dies") as log:
        [plan] = cells
        for subject in range(2):
            missing = ["", *["infrastructure"] * (plan.trials - 1)]
            assert [record.missing for record in log.trials(plan, subject)] == missing
        assert [entry.text for entry in log.journal(plan, "error")] == [
            "stopped in trial 2: the node is gone"
        ] * 2


def test_a_machine_without_room_for_a_process_is_a_cause_and_no_traceback(
    stranger: ModuleType,
    documented: PluginManager,
    run: Callable[..., RunLog],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    cells = stranger.cells(["walker"], subjects=1)
    with run(documented, cells, "local") as log:
        [plan] = cells
        [cause] = [entry.text for entry in log.journal(plan, "error")]
    assert re.fullmatch(
        r"stopped in trial 1: no process could be started: .*'/nowhere/python'", cause
    )


@pytest.mark.parametrize(("shortages", "completed"), [(2, 1), (3, 0)])
def test_a_machine_that_is_short_for_a_moment_is_asked_again(
    shortages: int,
    completed: int,
    stranger: ModuleType,
    documented: PluginManager,
    run: Callable[..., RunLog],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, tries = asyncio.create_subprocess_exec, []

    async def short(*command: str, **options: Any) -> Process:
        tries.append(command)
        if len(tries) <= shortages:
            raise OSError(errno.EFAULT, "Bad address", sys.executable)
        return await start(*command, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", short)
    monkeypatch.setattr(pipes, "_PAUSES", (0, 0))
    cells = stranger.cells(["walker"], subjects=1)
    with run(documented, cells, "local") as log:
        [plan] = cells
        assert len(log.completed_subjects(plan)) == completed


@pytest.mark.parametrize("executor", ["local", "threads"])
@pytest.mark.parametrize(
    ("model", "cause"),
    [("strange", "is not JSON serializable"), ("mumbler", "surrogates")],
)
def test_what_cannot_be_stored_ends_its_subject(
    stranger: ModuleType,
    plugins: PluginManager,
    run: Callable[..., RunLog],
    executor: str,
    model: str,
    cause: str,
) -> None:
    cells = stranger.cells([model, "walker"], subjects=2, names=["corridor"])
    plan, other = cells
    with run(plugins, cells, executor) as log:
        assert len(log.completed_subjects(other)) == 2
        assert log.completed_subjects(plan) == {}
        for subject in range(2):
            missing = [record.missing for record in log.trials(plan, subject)]
            assert missing == ["", *["infrastructure"] * (plan.trials - 1)]
        [entry, _] = log.journal(plan, "error")
        assert entry.text.startswith("stopped in trial 2: ")
        assert cause in entry.text
        assert len(log.journal(plan, "traceback")) == 2


def test_what_cannot_be_sent_ends_its_subject(
    stranger: ModuleType, plugins: PluginManager, run: Callable[..., RunLog]
) -> None:
    cells = stranger.cells(["secretive", "walker"], subjects=1)
    plan, other = cells
    with run(plugins, cells, "local") as log:
        assert len(log.completed_subjects(other)) == 1
        assert [record.missing for record in log.trials(plan)] == [
            "",
            *["infrastructure"] * (plan.trials - 1),
        ]
        assert "stopped in trial 2: " in log.journal(plan, "error")[0].text
        assert "pickle" in log.journal(plan, "error")[0].text


def test_a_list_that_the_environment_keeps_is_recorded_as_it_was() -> None:
    seen = ["box"]
    result = TrialResult(
        block="b", session=1, outcome="o", success=None, compared=True, counters={}, measures={"at": seen},
        variables={"seen": seen}, path_length=0, bumps=0, events=(),
    )  # fmt: skip
    recorded = read_result(result)
    seen.append("lever")
    assert (recorded["variables"], recorded["measures"]) == (
        {"seen": ["box"]},
        {"at": ["box"]},
    )


def test_an_executor_that_nobody_supplies_is_named(
    stranger: ModuleType, plugins: PluginManager, run: Callable[..., RunLog]
) -> None:
    with pytest.raises(
        UnknownNameError, match=r"There is no executor 'lokal'. Did you mean 'local'\?"
    ):
        run(plugins, stranger.cells(["walker"]), "lokal")


def test_a_report_that_contradicts_the_log_takes_no_other_along(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    [(plan, specification)] = stranger.cells(["walker"], subjects=2).items()
    jobs = [
        Job(plan=plan, specification=specification, seed=1, subject=subject)
        for subject in range(2)
    ]
    reports = [list(JobRunner(plugins).reports(job)) for job in jobs]
    written: list[tuple[int, int, CheeseBenchError | None]] = []

    def note(job: Job, report: Report, trials: int, error: Any) -> None:
        written.append((job.subject, trials, error))

    with RunLog.create(
        tmp_path, "r1", [(plan, specification)], options={"seed": 1}
    ) as log:
        [[record, events]] = reports[0][1].trials
        log.write_trial(record, ())
        recorder = Recorder(log, note, stopped)
        # Without a loop: this many reports are written at once.
        for _ in range(WRITE_AT_REPORTS):
            recorder._waiting.append((jobs[1], Report()))
        for job, own in zip(jobs, reports, strict=True):
            recorder._waiting += [(job, report) for report in own]
        recorder.flush()
        assert events
        assert [record.trial for record in log.trials(plan, 0)] == [0, 1], (
            "what comes after the contradiction is not"
        )
        assert log.completed_subjects(plan) == {1: len(reports[1]) - 1}
        [error] = [error for _, _, error in written if error is not None]
        assert isinstance(error, RunLogError)
        assert "came out differently" in str(error)
        assert [trials for subject, trials, _ in written if subject == 1][-2:] == [
            len(reports[1]) - 1
        ] * 2


@pytest.fixture
def installed_anew() -> Iterator[None]:
    """Plugins are looked up once per process, so a plugin installed for one test needs
    new caches.
    """
    for cached in (installed_plugins, _installed_runner):
        cached.cache_clear()
    yield
    for cached in (installed_plugins, _installed_runner):
        cached.cache_clear()


@pytest.mark.usefixtures("installed_anew")
def test_run_job_uses_the_installed_plugins(stranger: ModuleType) -> None:
    [(plan, specification)] = stranger.cells(["nobody"], subjects=1).items()
    [last] = run_job(Job(plan=plan, specification=specification, seed=1, subject=0))
    assert last.ended
    assert last.missing == "infrastructure"
    assert "There is no model 'nobody'." in last.cause


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(),
    reason="what a process has started is read from /proc",
)
def test_the_end_of_a_worker_is_the_end_of_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray's workers lead process groups of their own, and wait long for a cluster that
    is gone.
    """
    code = """
import subprocess
def main(jobs):
    child = subprocess.Popen(["sleep", "300"], process_group=0)
    print(child.pid, flush=True)
    jobs.read()
"""
    (tmp_path / "parent_of_a_group.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)

    async def ended() -> str:
        process = await pipes.start("parent_of_a_group", tmp_path / "log")
        assert process.stdout is not None
        child = int(await process.stdout.readline())
        await pipes.end(process)
        state = "gone"
        for _ in range(500):  # a busy machine takes time to end killed processes
            state = "gone"
            with contextlib.suppress(OSError):
                state = (
                    Path(f"/proc/{child}/stat")
                    .read_text(encoding="utf-8")
                    .rpartition(")")[2]
                    .split()[0]
                )
            if state in ("gone", "Z"):
                break
            await asyncio.sleep(0.01)
        return state

    assert asyncio.run(ended()) in ("gone", "Z")
