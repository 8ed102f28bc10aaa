"""A run at one moment: what is left, what it costs, and its line in a list."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cheesebench.experiment.log import RunLog
from cheesebench.protocol import Specification
from cheesebench.records import CallTotals, CellCalls
from cheesebench.server.watch import (
    OPEN,
    CellState,
    RunLine,
    RunState,
    RunWatch,
    _cost_left,
    _line,
    _newest,
    _summaries,
    line_to_json,
    stamp_of,
)
from tests.reports.test_rich_run import told_run


def cell(
    model: str, *, left: int, done: int = 10, cost: float = 0.0, **changes: Any
) -> CellState:
    found = told_run().cells[0]
    calls = CellCalls(totals=CallTotals(cost=cost)) if cost else None
    decided = changes.pop("decided", False)
    result = replace(
        found, plan=replace(found.plan, model=model), calls=calls, **changes
    )
    return CellState(
        result=result, decided=decided, begun=1, done=done, left=left, most=left
    )


def state(*cells: CellState, status: Any = "running") -> RunState:
    return RunState(
        run_id="r1", created="2026", design="cohort", status=status, cells=cells,
        models=_summaries(one.result for one in cells), calls=CallTotals(cost=2.5),
        seconds=1.0, seconds_left=None, cost_left=None, max_cost=None, flight=None, replies=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "cost"),
    [
        ([cell("a", left=0, cost=2.0)], 0.0),
        ([cell("a", left=5, cost=2.0)], 1.0),
        ([cell("a", left=5, cost=2.0), cell("a", left=5, done=30)], 0.5),
        ([cell("a", left=5, cost=2.0), cell("b", left=5, cost=4.0)], 3.0),
        ([cell("a", left=5, cost=2.0), cell("b", left=5, done=0)], None),
        ([cell("a", left=5, cost=2.0), cell("b", left=0, done=0)], 1.0),
    ],
)
def test_what_is_left_costs_as_much_as_the_model_s_trials_so_far(
    cells: list[CellState], cost: float | None
) -> None:
    assert _cost_left(cells) == cost


def test_a_run_adds_up_its_cells() -> None:
    whole = state(cell("a", left=5), cell("b", left=2, done=3), cell("a", left=0))
    assert (whole.done, whole.left, whole.names) == (23, 7, ("a", "b"))
    assert cell("a", left=1).calls == CallTotals()
    assert cell("a", left=1, cost=2.0).calls.cost == 2.0


def test_a_cell_that_is_not_decided_is_open_while_the_run_goes_on() -> None:
    cells = (
        cell("a", left=5, warnings=("odd",)),
        cell("b", left=0, decided=True, warnings=("odd",)),
    )
    line = _line("r1", state(*cells))
    assert {name: n for name, n in line.verdicts.items() if n} == {"PASS": 1, OPEN: 1}
    assert line.verdict_text == "1 PASS, 1 OPEN (1 doubtful)"
    assert (line.models, line.protocols, line.cost) == (("a", "b"), 1, 2.5)
    assert (line.done, line.left, len(line.rates)) == (20, 5, 2)
    assert [where for where, _ in line.gates] == ["a in ascii_2d", "b in ascii_2d"]
    assert [rate.decided for rate in line.rates] == [False, True]
    over = _line("r1", state(*cells, status="finished"))
    assert over.verdict_text == "2 PASS (2 doubtful)"
    assert (
        RunLine(run_id="r1", verdicts={"PASS": 1, "FAIL": 0}).verdict_text == "1 PASS"
    )
    values = line_to_json(line)
    assert (values["run"], values["trials"], values["left"]) == ("r1", 20, 5)
    assert values["gates"] == [list(gate) for gate in line.gates]
    assert values["models"] == ["a", "b"]
    assert "rates" not in values


def test_a_cell_that_the_budget_stopped_is_not_finished(
    tmp_path: Path, maze: Specification, lived: Callable[..., RunLog]
) -> None:
    with lived(tmp_path, maze, "stopped") as log:
        [plan] = log.plans()
        assert RunWatch(log.path).poll().status == "finished"
        with log.transaction() as connection:
            connection.execute("DELETE FROM lives WHERE subject = 3")
            connection.execute(
                "CREATE TEMP TABLE own AS SELECT * FROM trials WHERE subject = 3"
            )
            connection.execute("DELETE FROM trials WHERE subject = 3")
            connection.execute(
                "UPDATE own SET missing = 'budget', success = NULL, outcome = NULL"
            )
            connection.execute("INSERT INTO trials SELECT * FROM own")
        found = RunWatch(log.path).poll()
        assert found.status == "interrupted"
        assert not found.cells[0].decided
        assert (found.done, found.left) == (3 * plan.trials, plan.trials)


def test_the_newest_trial_is_the_last_of_a_subject_that_has_grown() -> None:
    key = ("m", "p", "v", "")
    assert _newest(key, {0: (3, 0), 1: (2, 0)}, {0: (3, 0), 1: (1, 0)}) == (key, 1, 1)
    assert _newest(key, {0: (3, 0), 2: (1, 0)}, {}) == (key, 2, 0)
    assert _newest(key, {0: (3, 0)}, {0: (3, 0)}) is None


def test_a_file_that_was_just_written_has_no_stamp(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    assert stamp_of(path) == ()
    path.write_text("a")
    assert stamp_of(path) is None
    old = time.time() - 60
    os.utime(path, (old, old))
    first = stamp_of(path)
    assert first is not None
    assert stamp_of(path) == first
    os.utime(path, (old, old + 1))
    assert stamp_of(path) != first
    (tmp_path / "run.sqlite-wal").write_text("b")
    assert stamp_of(path) is None
