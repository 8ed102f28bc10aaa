"""Runs that are killed, interrupted and continued: real processes, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cheesebench.errors import RunLogError
from cheesebench.experiment.cells import find_design, plan_cell
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import check_resumable
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import PluginManager
from tests.signals import reset_signals

#: Seconds after which a test gives up waiting for another process.
PATIENCE = 60


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def finished_trials(directory: Path) -> int:
    if not (directory / "run.sqlite").exists():
        return 0
    try:
        with RunLog.open_read_only(directory) as log:
            return len(log.trials())
    except RunLogError:
        return 0  # it is being created at this moment


def children(process: int) -> set[int]:
    """Return the processes that ``process`` has started."""
    found = Path(f"/proc/{process}/task").glob("*/children")
    return {int(child) for path in found for child in path.read_text().split()}


def alive(process: int) -> bool:
    try:
        return (
            Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            != "Z"
        )
    except OSError:
        return False


def interrupted(
    arguments: list[str], directory: Path, sent: signal.Signals
) -> tuple[int, set[int], int]:
    """Send a signal to a run once some trials are finished; return exit code, its
    workers, and remaining trials.
    """
    process = subprocess.Popen(
        arguments,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=reset_signals,
    )
    until(lambda: finished_trials(directory) >= 4)
    workers = children(process.pid) if sys.platform == "linux" else set()
    process.send_signal(sent)
    code = process.wait(PATIENCE)
    until(lambda: not any(map(alive, workers)))
    return code, workers, finished_trials(directory)


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("processes", "sent"), [(2, signal.SIGKILL), (0, signal.SIGINT)]
)
def test_a_killed_run_loses_nothing_and_is_continued_as_if_nothing_had_happened(
    command: Callable[..., list[str]],
    stranger: ModuleType,
    tmp_path: Path,
    processes: int,
    sent: signal.Signals,
) -> None:
    subjects, names = 4, "corridor,hall"
    cells = stranger.cells(["slow"], subjects, names.split(","))
    with RunLog.create(tmp_path, "whole", cells.items(), options={"seed": 1}) as log:
        expected = stranger.run(log, cells, processes=8)

    arguments = command(tmp_path, "killed", "slow", subjects, processes, names)
    code, workers, left = interrupted(arguments, tmp_path / "killed", sent)
    # After an uncaught KeyboardInterrupt, Python ends itself by the signal.
    assert code == -sent
    assert len(workers) >= processes or sys.platform != "linux"
    assert 4 <= left < len(expected)
    with RunLog.open_read_only(tmp_path / "killed") as log:
        assert set(log.dump()) < set(expected)
        assert not any(record.missing for record in log.trials())

    continued = subprocess.run(
        arguments, capture_output=True, encoding="utf-8", check=True
    )
    assert continued.stdout.splitlines() == expected


def test_a_life_that_failed_is_lived_again(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"])
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "whole", cells.items(), options={"seed": 1}) as log:
        expected = stranger.run(log, cells, processes=0)
        first = log.trials(plan, 1)[0]
        events = log.events(first)
        rest = [(record, log.events(record)) for record in log.trials(plan, 0)]
    with RunLog.create(tmp_path, "failed", cells.items(), options={"seed": 1}) as log:
        log.write_trial(first, events)
        log.write_missing(plan, 1, "the network was down")
        log.write_missing(plan, 2, "the network was down")
        for record, fired in rest:
            log.write_trial(record, fired)
        log.write_life(plan, 0, len(rest))
        with RunSession(log, plugins, cells, seed=1, processes=1) as session:
            session.finish()
        assert list(log.dump()) == expected
        assert log.journal(plan, "started")[0].text == "subjects to run: 2 of 3"


@pytest.mark.parametrize("processes", [0, 1])
def test_a_life_that_comes_out_differently_is_an_error(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path, processes: int
) -> None:
    cells = stranger.cells(["moody"], subjects=1)
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        stranger.run(log, cells, processes=0)
        recorded = list(log.dump())
        # Pretend that the run was killed before its end.
        log._connection.execute("DELETE FROM lives")
        message = r"cannot be continued: trial 1 of subject 0 .* came out differently"
        with (
            RunSession(log, plugins, cells, seed=1, processes=processes) as session,
            pytest.raises(RunLogError, match=message),
        ):
            session.wait(plan, PATIENCE)
        assert "came out differently" in log.journal(plan, "error")[0].text
        assert list(log.dump()) == recorded


@pytest.mark.parametrize(
    ("now", "seen"),
    [
        ("walker", ""),
        ("moody", "trial 1 of subject 0 .* came out differently when replayed"),
        ("raiser", "subject 0 .* when replayed, it stopped in trial 3: ValueError"),
    ],
)
def test_a_whole_life_is_lived_again_before_the_rest(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path, now: str, seen: str
) -> None:
    """The agent's name is the same, but another agent has taken its place."""
    cells = stranger.cells(["walker"])
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "whole", cells.items(), options={"seed": 1}) as log:
        expected = stranger.run(log, cells, processes=0)
        lives = [
            [(one, log.events(one)) for one in log.trials(plan, subject)]
            for subject in (0, 1)
        ]
    other = replace(plugins.agent(now), name="walker")
    plugins.register(SimpleNamespace(cheesebench_agents=lambda: [other]), "other")
    with RunLog.create(tmp_path, "cut", cells.items(), options={"seed": 1}) as log:
        for subject, life in enumerate(lives):
            for record, events in life:
                log.write_trial(record, events)
            log.write_life(plan, subject, len(life))
        before = list(log.dump())
        with RunSession(log, plugins, cells, seed=1, processes=0) as session:
            session.start()
            if seen:
                with pytest.raises(RunLogError, match=f"cannot be continued: {seen}"):
                    session.wait(plan, PATIENCE)
            else:
                session.finish()
                done = session.progress(plan)
                assert done.done == done.planned == len(log.trials(plan))
        assert list(log.dump()) == (before if seen else expected)
        assert log.verify()
        assert not log.remarks(plan)
        assert log.journal(plan, "started")[0].text == "subjects to run: 1 of 3"


def test_closing_stops_at_once_and_waits_for_nobody(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["slow"], subjects=1000)
    plan = next(iter(cells))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        session = RunSession(log, plugins, cells, seed=1, processes=2)
        session.start()
        until(lambda: log.trials(plan))
        session.close()
        session.close()
        left = list(log.dump())
        assert session.progress(plan).done < 1000
        assert log.journal(kind="closed")[-1].text == "cells finished: 0 of 1"
        assert list(log.dump()) == left
        assert not any(record.missing for record in log.trials())


def test_only_the_same_run_can_be_continued(
    stranger: ModuleType, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"], names=["corridor", "hall"])
    some = dict(list(cells.items())[:1])
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        check_resumable(log, cells, seed=1)
        check_resumable(log, some.items(), seed=1)
        for changed, seed, message in (
            (
                cells,
                2,
                "Run 'r1' cannot be continued: the seed was 1 and is now 2. Use the options",
            ),
            (
                stranger.cells(["slow"]),
                1,
                "the model 'slow' is not part of it (only walker)",
            ),
            (
                stranger.cells(["walker"], names=["attic"]),
                1,
                "the protocol 'attic' is not part of it",
            ),
            (
                stranger.cells(["walker"], subjects=5),
                1,
                "number of subjects of corridor was 3 and is now 5",
            ),
        ):
            with pytest.raises(RunLogError) as refusal:
                check_resumable(log, changed, seed)
            assert message in str(refusal.value)
        longer = stranger.corridor("corridor", trials=7)
        plan = plan_cell(longer, "walker", "ascii_2d", find_design("smoke"))
        with pytest.raises(
            RunLogError,
            match=r"the protocol 'corridor' has changed \(was [0-9a-f]{8}, is now",
        ):
            check_resumable(log, {plan: longer}, 1)
        corridor = stranger.corridor()
        plan = plan_cell(corridor, "walker", "ascii_2d", find_design("smoke"))
        with pytest.raises(
            RunLogError,
            match="the design of corridor was cohort and is now smoke; the number of s",
        ):
            check_resumable(log, {plan: corridor}, 1)
