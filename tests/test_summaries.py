"""Runs that are judged alone, while they go on, and together."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, cast

import pytest

from cheesebench.errors import OptionError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Specification
from cheesebench.statistics import CellResult
from cheesebench.summaries import summarise_log, summarise_logs
from tests.reports.html.conftest import make_log, maze


def run(
    directory: Path, model: str = "walker", name: str = "little", **changes: Any
) -> RunLog:
    directory.mkdir()
    return make_log(directory, [maze(directory, name)], model, 2, **changes)[0]


def untitled(cell: CellResult) -> CellResult:
    return dataclasses.replace(cell, plan=dataclasses.replace(cell.plan, title=""))


def test_runs_are_judged_as_one(tmp_path: Path) -> None:
    first, second = run(tmp_path / "a"), run(tmp_path / "b", "runner")
    third = run(tmp_path / "c", name="pool")
    joint = summarise_logs([first, second, third])
    assert [(cell.plan.model, cell.plan.protocol) for cell in joint.cells] == [
        ("walker", "little"),
        ("runner", "little"),
        ("walker", "pool"),
    ]
    alone = [
        cell for log in (first, second, third) for cell in summarise_log(log).cells
    ]
    assert [untitled(cell) for cell in joint.cells] == [
        untitled(cell) for cell in alone
    ]
    title = alone[
        0
    ].plan.title  # Shared by two protocols, so their ids stand beside it.
    assert [cell.plan.title for cell in joint.cells] == [
        f"{title} ({cell.plan.protocol})" for cell in alone
    ]
    ids = ", ".join([first.run_id] * 3)
    assert (joint.manifest["run_id"], joint.manifest["options"]) == (
        ids,
        {"seed": "3, 3, 3"},
    )
    assert sorted(cast(dict[str, str], joint.manifest["protocols"])) == [
        "little",
        "pool",
    ]
    assert joint.frozen_set == summarise_log(first).frozen_set == ""


def test_a_cell_that_is_in_two_runs_is_named(tmp_path: Path) -> None:
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    with pytest.raises(OptionError) as raised:
        summarise_logs([first, second])
    assert str(raised.value) == (
        f"{first.path} and {second.path} both have walker on little in ascii_2d. "
        "Leave one of them out."
    )


@pytest.mark.parametrize(
    "change", [{"margin": 0.3}, {"estimand": "last:2"}, {"design": "other"}]
)
def test_other_rules_cannot_be_compared(tmp_path: Path, change: dict[str, Any]) -> None:
    first, second = run(tmp_path / "a"), run(tmp_path / "b", "runner", **change)
    with pytest.raises(OptionError) as raised:
        summarise_logs([first, second])
    assert str(raised.value) == (
        f"little has other rules in {second.path} than in {first.path} (protocol, design, "
        "trials, estimand or margin). Their results cannot be compared: leave one of them out."
    )


def unfinished_run(directory: Path) -> tuple[RunLog, PluginManager, Specification]:
    """Return a run with the cells of two models, one of which has not begun."""
    directory.mkdir()
    little = maze(directory)
    done, plugins = make_log(directory, [little], subjects=2)
    plan = done.plans()[0]
    done.close()
    other = dataclasses.replace(plan, model="runner")
    log = RunLog.create(
        directory,
        "half",
        [(plan, little), (other, little)],
        options={"seed": 3, "design": "cohort"},
    )
    with RunSession(log, plugins, [(plan, little)], seed=3, processes=0) as session:
        session.finish()
    return log, plugins, little


def test_while_a_run_goes_on_its_finished_cells_are_judged(tmp_path: Path) -> None:
    log, _, _ = unfinished_run(tmp_path / "a")
    whole = summarise_log(log)
    assert [cell.plan.model for cell in whole.cells] == ["walker", "runner"]
    assert "in_progress" not in whole.manifest
    part = summarise_log(log, finished_only=True)
    assert [cell.plan.model for cell in part.cells] == ["walker"]
    assert part.manifest["in_progress"] == "1 of 2 cells"


def test_an_unfinished_run_is_not_judged_beside_others(tmp_path: Path) -> None:
    log, _, _ = unfinished_run(tmp_path / "a")
    with pytest.raises(OptionError) as raised:
        summarise_logs([log])
    assert str(raised.value) == (
        "half is incomplete: little (runner) is not finished. Continue the run "
        "with --resume half, or leave it out."
    )
