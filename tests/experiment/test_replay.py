from __future__ import annotations

import dataclasses
from pathlib import Path
from types import ModuleType

import pytest

from cheesebench.errors import RunLogError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import film, replay
from cheesebench.plugin_manager import PluginManager


def test_every_trial_of_a_run_can_be_filmed(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"])
    plan, specification = next(iter(cells.items()))
    view = plugins.view("ascii_2d")
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 4}) as log:
        stranger.run(log, cells, seed=4, processes=0)
        for record in log.trials(plan):
            frames = film(log, plugins.compile(specification), view, record)
            assert "".join(frame.action for frame in frames) == record.actions
            assert sum(frame.reward for frame in frames) == record.reward
            assert frames[0].observation.startswith(">")
            assert frames[-1].observation.endswith(">") == (record.outcome == "found")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"reward": 5.0},
            "Trial 2 of subject 0 .* differs from the record: reward was 5.0",
        ),
        ({"variables": {}}, "variables was {} and is now"),
        ({"actions": "FF"}, "it does not end with its last action"),
        ({"actions": "F" * 40}, "it ends before its last action"),
        ({"missing": "infrastructure"}, "was not run \\(infrastructure\\)"),
    ],
)
def test_a_record_that_does_not_come_out_is_refused(
    stranger: ModuleType,
    plugins: PluginManager,
    tmp_path: Path,
    changes: dict[str, object],
    message: str,
) -> None:
    cells = stranger.cells(["walker"], subjects=1)
    plan, specification = next(iter(cells.items()))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        stranger.run(log, cells, processes=0)
        records = log.trials(plan)
    records[1] = dataclasses.replace(records[1], **changes)  # type: ignore[arg-type]
    life = plugins.compile(specification).environment(plugins.view("ascii_2d"), 1, 0)
    with pytest.raises(RunLogError, match=message):
        replay(life, records)


def test_a_life_has_an_end(
    stranger: ModuleType, plugins: PluginManager, tmp_path: Path
) -> None:
    cells = stranger.cells(["walker"], subjects=1)
    plan, specification = next(iter(cells.items()))
    with RunLog.create(tmp_path, "r1", cells.items(), options={"seed": 1}) as log:
        stranger.run(log, cells, processes=0)
        records = log.trials(plan)
    life = plugins.compile(specification).environment(plugins.view("ascii_2d"), 1, 0)
    with pytest.raises(RunLogError, match="the schedule ends before it"):
        replay(life, [*records, records[-1]])
