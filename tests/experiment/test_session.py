from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cheesebench.errors import RunLogError
from cheesebench.experiment.calling import BudgetSpentError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import Progress, RunSession
from cheesebench.interfaces import Agent, AgentContext, AgentSpec
from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.executors.local import LOG_NAME
from cheesebench.records import CellPlan, SetResult, TrialRecord

NAMES = ["corridor", "hall", "alley"]


def errors(log: RunLog, plan: CellPlan) -> list[tuple[int | None, str]]:
    return sorted(
        (entry.subject, entry.text)
        for entry in log.journal(plan, "error")
        if entry.subject is not None
    )


@pytest.fixture
def expected(stranger: ModuleType, tmp_path: Path) -> list[str]:
    """The dump of the run that every other way of running it must reproduce."""
    cells = stranger.cells(["walker"], names=NAMES)
    with RunLog.create(tmp_path, "expected", cells.items(), options={"seed": 1}) as log:
        dump: list[str] = stranger.run(log, cells, processes=0)
    assert len(dump) > 9
    return dump


@pytest.mark.parametrize(
    ("processes", "names"), [(0, NAMES[::-1]), (3, NAMES[::-1]), (None, NAMES)]
)
def test_processes_and_order_change_nothing(
    stranger: ModuleType,
    tmp_path: Path,
    expected: list[str],
    processes: int | None,
    names: list[str],
) -> None:
    cells = stranger.cells(["walker"], names=names)
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        assert stranger.run(log, cells, processes=processes) == expected


def test_the_hash_seed_changes_nothing(
    command: Callable[..., list[str]],
    environment: Callable[..., dict[str, str]],
    tmp_path: Path,
    expected: list[str],
) -> None:
    finished = subprocess.run(
        command(tmp_path, "r1", "walker", 3, 2, ",".join(NAMES)),
        env=environment(PYTHONHASHSEED="4711", PYTHONIOENCODING="utf-8"),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert finished.stdout.splitlines() == expected


def test_another_seed_is_another_run(
    stranger: ModuleType, tmp_path: Path, expected: list[str]
) -> None:
    cells = stranger.cells(["walker"], names=NAMES)
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 2}) as log:
        assert stranger.run(log, cells, seed=2, processes=0) != expected


def test_two_sessions_may_run_the_same_cells_at_once(
    command: Callable[..., list[str]],
    stranger: ModuleType,
    tmp_path: Path,
    expected: list[str],
) -> None:
    cells = stranger.cells(["walker"], names=NAMES)
    RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}).close()
    runs = [
        subprocess.Popen(
            command(tmp_path, "r1", "walker", 3, 1, ",".join(names)),
            stdout=subprocess.DEVNULL,
        )
        for names in (NAMES, NAMES[::-1])
    ]
    assert [run.wait() for run in runs] == [0, 0]
    with RunLog.open_read_only(tmp_path / "r1") as log:
        assert list(log.dump()) == expected


@pytest.mark.parametrize("processes", [0, 2])
@pytest.mark.parametrize(
    ("model", "trials", "cause"),
    [
        (
            "raiser",
            2,
            "stopped in trial 3: ValueError: no idea what to do (stranger.py:",
        ),
        ("quitter", 1, "stopped in trial 2: SystemExit: enough (stranger.py:"),
        (
            "answers",
            0,
            "stopped in trial 1: The agent 'answers' returned the action 7. Actions are 0 (FORWARD)",
        ),
    ],
)
def test_an_agent_that_fails_is_not_a_model_that_fails(
    stranger: ModuleType,
    tmp_path: Path,
    processes: int,
    model: str,
    trials: int,
    cause: str,
) -> None:
    cells = stranger.cells([model], subjects=2)
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        stranger.run(log, cells, processes=processes)
        missing = [
            ["" if trial < trials else "infrastructure" for trial in range(plan.trials)]
        ] * 2
        assert [
            [r.missing for r in log.trials(plan, subject)] for subject in (0, 1)
        ] == missing
        assert all(
            r.success is None and r.outcome is None for r in log.trials() if r.missing
        )
        assert [(s, text[: len(cause)]) for s, text in errors(log, plan)] == [
            (0, cause),
            (1, cause),
        ]
        text = log.journal(plan, "traceback")[0].text
        assert "Traceback" in text
        assert "^" not in text, "carets need a parser that is not safe in threads"
        assert log.completed_subjects(plan) == {}


def test_a_worker_that_dies_takes_only_its_subject_with_it(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["dying", "walker"], subjects=8)
    plan, other = cells
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(log, plugins, cells, seed=1, processes=2) as session:
            session.finish()
            done = session.progress(plan).done
        whole = log.completed_subjects(plan)
        dead = [subject for subject in range(8) if subject not in whole]
        assert whole
        assert dead
        for subject in dead:
            assert [r.missing for r in log.trials(plan, subject)] == [
                "",
                *["infrastructure"] * (plan.trials - 1),
            ]
        cause = f"stopped in trial 2: the worker process ended with exit code 3; {LOG_NAME} has what it printed"
        assert errors(log, plan) == [(subject, cause) for subject in dead]
        assert done == sum(whole.values()) + len(dead)
        assert len(log.completed_subjects(other)) == 8
        # Without the end of the line, because another process may write before it if
        # Python's output is unbuffered.
        assert (log.directory / LOG_NAME).read_text().count("dying") == len(dead)


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(),
    reason="processes of a session are known from /proc",
)
@pytest.mark.timeout(120)
def test_what_a_dead_worker_has_forked_does_not_keep_the_run(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    """The forked process holds the pipe that would show the worker's end."""
    cells = stranger.cells(["forking"], subjects=8)
    [plan] = cells
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(log, plugins, cells, seed=1, processes=2) as session:
            session.finish()
        assert {*dict(errors(log, plan)), *log.completed_subjects(plan)} == set(
            range(8)
        )
        forked = re.findall(r"forked (\d+)", (log.directory / LOG_NAME).read_text())
    assert forked
    # A killed process ends when the machine lets it.
    end = time.monotonic() + 60
    while left := [process for process in forked if _runs(process)]:
        assert time.monotonic() < end, left
        time.sleep(0.05)


def _runs(process: str) -> bool:
    with contextlib.suppress(OSError):
        return (
            Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            != "Z"
        )
    return False


def test_what_an_agent_prints_does_no_harm(
    stranger: ModuleType, tmp_path: Path, expected: list[str]
) -> None:
    cells = stranger.cells(["talker"])
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        stranger.run(log, cells, processes=2)
        assert len(log.completed_subjects(next(iter(cells)))) == 3
        assert "thinking aloud" in (log.directory / LOG_NAME).read_text()


@pytest.mark.parametrize("processes", [0, 2])
def test_observers_see_every_trial_here(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path, processes: int
) -> None:
    seen: list[tuple[CellPlan, TrialRecord]] = []

    def cheesebench_trial_finished(plan: CellPlan, record: TrialRecord) -> None:
        seen.append((plan, record))

    plugins.register(
        SimpleNamespace(cheesebench_trial_finished=cheesebench_trial_finished),
        "conftest",
    )
    cells = stranger.cells(["walker"])
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(log, plugins, cells, seed=1, processes=processes) as session:
            session.finish()
        assert sorted((r for _, r in seen), key=stranger.key) == log.trials(plan)
        assert {p for p, _ in seen} == {plan}


def test_only_models_are_silent(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"])
    with (
        RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log,
        RunSession(log, plugins, cells, seed=1, processes=0) as session,
    ):
        assert session.silence() is None
        session._language = SimpleNamespace(silence=lambda: ("m", 9.0, "slow"))  # type: ignore[assignment]
        assert session.silence() == ("m", 9.0, "slow")
        session._language = None


def test_an_observer_that_raises_does_not_stop_the_run(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    def cheesebench_trial_finished(plan: CellPlan, record: TrialRecord) -> None:
        raise ZeroDivisionError("oh")

    seen: list[TrialRecord] = []
    others = SimpleNamespace(
        cheesebench_trial_finished=lambda record: seen.append(record)
    )
    plugins.register(
        SimpleNamespace(cheesebench_trial_finished=cheesebench_trial_finished),
        "conftest",
    )
    plugins.register(others, "others")
    cells = stranger.cells(["walker"])
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(log, plugins, cells, seed=1, processes=0) as session:
            session.finish()
        assert len(log.completed_subjects(plan)) == 3
        assert [entry.text for entry in log.journal(plan, "warning")] == [
            "the observer 'conftest' failed in cheesebench_trial_finished: ZeroDivisionError: oh; "
            "it is not called again"
        ]
        assert seen == log.trials(plan), "others go on"


def test_agents_that_only_this_process_knows_run_here(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    homes: set[int] = set()

    def create(context: AgentContext) -> Agent:
        homes.add(os.getpid())
        walker: Agent = stranger.Walker(context)
        return walker

    # It has the name of an installed agent, which a worker process would run instead.
    plugins.register(
        SimpleNamespace(cheesebench_agents=lambda: [AgentSpec("walker", create)]),
        "conftest",
    )
    cells = stranger.cells(["walker"])
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(log, plugins, cells, seed=1, processes=2) as session:
            session.finish()
        assert len(log.completed_subjects(plan)) == 3
    assert homes == {os.getpid()}


def test_a_model_that_nobody_supplies_is_missing_with_its_cause(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["wlaker"], subjects=1)
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(log, plugins, cells, seed=1) as session:
            session.finish()
        assert (
            "There is no model 'wlaker'. Did you mean 'walker'?"
            in errors(log, plan)[0][1]
        )


def test_progress_counts_what_is_done_and_what_will_not_be(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker", "raiser"])
    walker, raiser = cells
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(log, plugins, cells, seed=1, processes=1) as session:
            assert session.progress(walker) == Progress(0, 18, to_come=18)
            session.start()
            session.start([walker])  # already queued
            session.finish()
            session.finish()
            # `until` cut the walkers' lives short; the raisers' trials are missing, not
            # unplanned.
            trials = len(log.trials(walker))
            assert trials < 18
            assert session.progress(walker) == Progress(trials, trials)
            assert session.progress(raiser) == Progress(6, 18, to_come=12)
        assert [entry.kind for entry in log.journal(walker)] == ["started", "finished"]
        assert log.journal(kind="closed")[0].text == "cells finished: 1 of 2"


def test_a_log_that_cannot_be_written_is_said_to_the_one_who_waits(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs a small disk of its own")
    small = tmp_path / "small"
    small.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(small)],
        capture_output=True,
    )
    if mount.returncode:
        pytest.skip("this machine does not let a small disk be mounted")
    try:
        cells = stranger.cells(["walker"], subjects=400)
        plan = next(iter(cells))
        with RunLog.create(small, "r1", cells.items(), options={"seed": 1}) as log:
            with (
                RunSession(log, plugins, cells, seed=1, processes=2) as session,
                pytest.raises(
                    RunLogError, match=r"(is full|cannot be written).* --resume r1"
                ),
            ):
                session.finish()
            finished = log.trials(plan)
            assert finished
            assert not any(record.missing for record in finished)
        with RunLog.open_read_only(small / "r1") as log:
            assert log.trials(plan) == finished
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_hook_that_raises_while_running_ends_the_waiting(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    def cheesebench_agents() -> list[AgentSpec]:
        raise ValueError("the plugin has lost its list")

    plugins.register(
        SimpleNamespace(cheesebench_agents=cheesebench_agents), name="forgetful"
    )
    cells = stranger.cells(["walker"], subjects=1)
    with (
        RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log,
        RunSession(log, plugins, cells, seed=1, processes=1) as session,
        pytest.raises(ValueError, match="lost its list"),
    ):
        session.finish()


Judge = Callable[[CellPlan, Iterable[Sequence[TrialRecord]]], SetResult]


def judging(
    decided_at: int | None, futile_at: int | None = None
) -> tuple[Judge, list[int]]:
    """Return a judge that decides after so many subjects, and the numbers that it
    saw.
    """
    seen: list[int] = []

    def judge(_: CellPlan, lives: Iterable[Sequence[TrialRecord]]) -> SetResult:
        number = len([*lives])
        if number:
            seen.append(number)
        return SetResult(
            number, number == decided_at, number == futile_at, 12, f"{number} seen"
        )

    return judge, seen


def played(log: RunLog, kind: str) -> list[str]:
    return [entry.text for entry in log.journal(kind=kind)]


@pytest.mark.parametrize(
    ("decided_at", "futile_at", "sets"),
    [
        (6, None, [6]),
        (10, None, [6, 10]),
        (None, 10, [6, 10]),
        (None, None, [6, 10, 12]),
    ],
)
def test_sets_are_run_until_one_decides(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path, decided_at: int | None, futile_at: int | None,
    sets: list[int],
) -> None:  # fmt: skip
    [(plan, specification)] = stranger.cells(["walker"], subjects=12).items()
    plan = replace(plan, sequential=True)
    cells = {plan: specification}
    judge, seen = judging(decided_at, futile_at)
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(
            log, plugins, cells, seed=1, processes=0, judge=judge
        ) as session:
            before = session.progress(plan)
            session.finish()
            found = session.progress(plan)
        subjects = sets[-1]
        trials = len(log.trials(plan))
        assert seen == sets
        assert list(log.completed_subjects(plan)) == list(range(subjects))
        assert played(log, "set") == [f"{number} seen" for number in sets]
        assert played(log, "started") == ["subjects to run: 6 of 6"]
        assert played(log, "finished") == [f"{trials} trials"]
        assert played(log, "closed") == ["cells finished: 1 of 1"]
        to_come = (12 - subjects) * plan.trials
        assert found == Progress(trials, trials, "", subjects, 12, to_come)
        assert (before.done, before.subjects, before.most) == (0, None, 0)
        if futile_at is not None:
            return
        # A resumed run takes up the cell where it was.
        with RunSession(
            log, plugins, cells, seed=1, processes=0, judge=judge
        ) as session:
            session.finish()
            assert session.progress(plan) == found
        assert list(log.completed_subjects(plan)) == list(range(subjects))
        assert played(log, "started")[1:] == [f"subjects to run: 0 of {subjects}"]


def test_a_cell_that_cannot_be_taken_up_fails_alone(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    walker, other = stranger.cells(["walker", "talker"], subjects=6).items()
    sequential = replace(walker[0], sequential=True)
    cells = [(sequential, walker[1]), other]

    def judge(plan: CellPlan, lives: Iterable[Sequence[TrialRecord]]) -> SetResult:
        raise ZeroDivisionError("no judge")

    with RunLog.create(tmp_path, "r1", cells, options={"seed": 1}) as log:
        log.write_life(sequential, 0, 0)
        with RunSession(
            log, plugins, cells, seed=1, processes=0, judge=judge
        ) as session:
            session.start()
            with pytest.raises(ZeroDivisionError, match="no judge"):
                session.wait(sequential, 60)
            while not session.wait(other[0], 60):
                pass
        assert played(log, "error") == ["ZeroDivisionError: no judge"]
        assert played(log, "closed") == ["cells finished: 1 of 2"]
        assert len(log.completed_subjects(other[0])) == 6
        assert not log.trials(sequential)
        session.close()  # A second time does nothing.
        assert len(played(log, "closed")) == 1
        with pytest.raises(RuntimeError, match="the session is closed"):
            session.start()


def test_nothing_was_started_and_nothing_is_noted(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"])
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(log, plugins, cells, seed=1, processes=0) as session:
            session.stop_sending()
        assert played(log, "closed") == []


def test_only_the_cells_that_are_named_are_started(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker", "talker"])
    one, other = cells
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        with RunSession(log, plugins, cells, seed=1, processes=0) as session:
            session.start([other])
            while not session.wait(other, 60):
                pass
            session.start([other])
            assert session.wait(other, 0)
        assert (
            len(log.completed_subjects(one)),
            len(log.completed_subjects(other)),
        ) == (0, 3)
        assert played(log, "started") == ["subjects to run: 3 of 3"]
        assert played(log, "finished") == [f"{len(log.trials(other))} trials"]
        assert played(log, "closed") == ["cells finished: 1 of 2"]


def test_after_the_time_limit_no_subject_of_an_agent_begins(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"])
    [plan] = cells

    class Spent:
        def check_time(self) -> None:
            raise BudgetSpentError("the time is over")

    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        budget: Any = Spent()
        for _ in range(3):
            with RunSession(
                log, plugins, cells, seed=1, processes=0, budget=budget
            ) as session:
                session.finish()
                assert session.progress(plan).done == 0
        assert {one.missing for one in log.trials(plan)} == {"budget"}
        assert len(errors(log, plan)) == 9
        assert {text for _, text in errors(log, plan)} == {"the time is over"}
        # No trial was begun, so none was run anew.
        stranger.run(log, cells, processes=0)
        assert not log.remarks(plan)
