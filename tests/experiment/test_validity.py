"""Seeds, crashes and impossible results must not earn a verdict."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cheesebench.experiment.log import RunLog
from cheesebench.experiment.provenance import draw_seed
from cheesebench.experiment.subjects import agent_seed, call_seed
from cheesebench.pytest_session import explanations
from cheesebench.records import Ceilings, CellPlan, TrialRecord
from cheesebench.statistics import judge, summarise_run
from cheesebench.statistics.plausibility import tail
from cheesebench.summaries import summarise_log


@pytest.fixture
def plan(stranger: ModuleType) -> CellPlan:
    plan: CellPlan
    [plan] = stranger.cells(["walker"], subjects=20, names=["corridor"])
    return plan


def trial(plan: CellPlan, subject: int, number: int, success: bool) -> TrialRecord:
    model, protocol, view, variant = plan.key
    return TrialRecord(
        model=model, protocol=protocol, view=view, variant=variant, subject=subject, trial=number, success=success,
        outcome="food" if success else "timeout", steps=1, actions="F",
    )  # fmt: skip


def test_a_drawn_seed_can_be_typed_and_no_small_seed_gives_its_agents(
    plan: CellPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    seeds = [draw_seed() for _ in range(50)]
    assert len(set(seeds)) == 50
    assert 2**45 < max(seeds) < 2**53 < 10**16
    given = {agent_seed(plan, seed, 0) for seed in seeds}
    asked = {call_seed(one, 1) for one in given}
    looked_up = {agent_seed(plan, seed, 0) for seed in range(20_000)}
    assert given.isdisjoint(looked_up)
    assert asked.isdisjoint({call_seed(one, 1) for one in sorted(looked_up)[:100]})


@pytest.mark.parametrize(("stops", "lost"), [(1, 0), (2, 0), (3, 5)])
def test_trials_that_were_run_anew_are_counted_and_are_lost_where_they_are_many(
    stranger: ModuleType, tmp_path: Path, stops: int, lost: int
) -> None:
    cells = stranger.cells(["walker"], subjects=30, names=["corridor"])
    [plan] = cells
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        for subject in range(plan.subjects):
            for number in range(plan.trials):
                for _ in range(stops if (subject, number) == (0, 1) else 0):
                    log.write_missing(
                        plan, 0, "stopped in trial 2: the machine was switched off"
                    )
                log.write_trial(trial(plan, subject, number, True), ())
            log.write_life(plan, subject, plan.trials)
        assert log.redrawn(plan) == {(0, 1): stops}
        lives = list(log.trials_by_subject(plan))
        missing = [(r.subject, r.trial) for life in lives for r in life if r.missing]
        assert missing == [(0, trial) for trial in range(1, 1 + lost)]
        assert judge(plan, chain.from_iterable(lives)).missing == lost
        [said] = log.remarks(plan)
        assert said.startswith(
            f"{stops} trial{'s were' if stops > 1 else ' was'} run anew after a stop"
        )
        assert ("count as lost" in said) == bool(lost)


def test_a_stop_that_repeats_a_recorded_refusal_is_none(
    stranger: ModuleType, tmp_path: Path
) -> None:
    """A server's own words are no such stop, whatever they are."""
    cells = stranger.cells(["walker"], subjects=30, names=["corridor"])
    [plan] = cells
    repeated = "context too long at call 1 of trial 2 of subject 0 (walker on corridor), as recorded: no"
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        for text in ("context too long: no", repeated, repeated, f"server: {repeated}"):
            log.write_missing(plan, 0, f"stopped in trial 2: {text}")
        assert list(log._stopped(plan)) == [(0, 1), (0, 1)]


def test_a_bug_that_stopped_every_subject_once_leaves_no_doubt(
    stranger: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = stranger.cells(["raiser"], subjects=4)
    [plan] = cells
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        stranger.run(log, cells, processes=0)
        assert {record.trial for record in log.trials(plan) if record.missing} == {
            *range(2, plan.trials)
        }
        monkeypatch.setattr(stranger.Raiser, "act", stranger.Walker.act)
        stranger.run(log, cells, processes=0)
        assert len(log.completed_subjects(plan)) == 4
        assert log.redrawn(plan) == {(subject, 2): 1 for subject in range(4)}
        assert not any(
            one.missing for life in log.trials_by_subject(plan) for one in life
        )
        assert log.remarks(plan) == (
            "4 trials were run anew after a stop, over 1 resume.",
        )


def test_a_cause_that_stops_subjects_in_several_trials_is_one(
    stranger: ModuleType, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"], subjects=3, names=["corridor"])
    [plan] = cells
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        log.write_missing(plan, 0, "stopped in trial 2: the disk is full")
        for subject in (1, 2):
            log.write_missing(
                plan, subject, f"stopped in trial {subject}: out of memory"
            )
        causes = log.causes()
        assert causes == {
            plan.key: ("out of memory", "stopped in trial 2: the disk is full")
        }
        [cell] = summarise_log(log, finished_only=False).cells
        assert cell.reason.endswith(" Cause: out of memory (1 other cause).")


def test_an_agent_that_ends_its_process_until_it_is_right_is_found_out(
    stranger: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = tmp_path / "tries"
    tries.touch()
    monkeypatch.setenv("TRIES", str(tries))
    cells = stranger.cells(["loser"], subjects=1)
    [plan] = cells
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        while not log.completed_subjects(plan):
            stranger.run(log, cells, processes=1)
        assert log.redrawn(plan) == {(0, 1): 3}
        [life] = log.trials_by_subject(plan)
        assert [record.missing for record in life[:2]] == ["", "run anew"]
        assert "3 trials were run anew" in log.remarks(plan)[0]
        [cell] = summarise_log(log, finished_only=False).cells
        run: Any = SimpleNamespace(log=log, trials_by_subject=log.trials_by_subject)
        said = explanations.missing_trials(run, cell)
        assert "too many trials were run anew" in said
        assert said.endswith("Start a new run.")


def test_an_agent_that_kills_the_run_until_it_is_right_is_found_out(
    stranger: ModuleType,
    command: Callable[..., list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = tmp_path / "tries"
    tries.touch()
    monkeypatch.setenv("TRIES", str(tries))
    in_its_process = command(tmp_path, "r1", "loser", 1, 0, "corridor")
    ends = [
        subprocess.run(
            in_its_process, check=False, stdout=subprocess.DEVNULL
        ).returncode
        for _ in range(4)
    ]
    assert ends == [3, 3, 3, 0]
    [plan] = stranger.cells(["loser"], subjects=1)
    with RunLog.open(tmp_path / "r1") as log:
        assert sum(log.redrawn(plan).values()) == 3
        assert "3 trials were run anew" in log.remarks(plan)[0]


@pytest.mark.parametrize(
    ("passed", "most", "said"), [(20, 0.25, True), (9, 0.25, False), (20, 1.0, False)]
)
def test_first_trials_that_nobody_can_have_are_named(
    plan: CellPlan, passed: int, most: float, said: bool
) -> None:
    plan = replace(plan, ceilings=Ceilings(first=most))
    trials = [trial(plan, subject, 0, subject < passed) for subject in range(20)]
    [cell] = summarise_run({}, [plan], trials).cells
    assert any("In trial 1, 20 of 20 succeed" in one for one in cell.remarks) == said


def test_the_binomial_tail_is_exact() -> None:
    assert tail(0, 5, 0.3) == 1.0
    assert tail(5, 5, 0.3) == pytest.approx(0.3**5)
    assert tail(2, 3, 0.5) == pytest.approx(0.5)
