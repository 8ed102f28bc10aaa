"""Lines of runs: in a table, or in paragraphs where there is no room for one."""

from __future__ import annotations

import pytest

from cheesebench.commands.runs import _paragraphs, _row, _text, _trials
from cheesebench.server.watch import RunLine

LINE = RunLine(
    run_id="r1",
    created="2026-10-21T08:30:59",
    status="finished",
    models=("a", "b"),
    verdicts={"PASS": 2},
    done=1200,
)
COSTLY = RunLine(
    run_id="r2", created="2026-10-22T09:00:00", status="running", models=("a",),
    done=1, left=3000, cost=2.5,
)  # fmt: skip
BROKEN = RunLine(run_id="r3", problem="The file is damaged.")


def test_a_run_as_a_row() -> None:
    assert _row(LINE) == ["r1", "2026-10-21 08:30", "a, b", "finished", "1,200", "", "2 PASS"]  # fmt: skip
    assert _row(COSTLY) == ["r2", "2026-10-22 09:00", "a", "running", "1 + 3,000", "$2.50", ""]  # fmt: skip
    assert _row(BROKEN) == ["r3", "", "", "unreadable", "", "", ""]
    stopped = RunLine(run_id="r4", status="stopped", done=1, left=5)
    assert _trials(stopped) == "1"


def test_a_run_as_a_paragraph() -> None:
    assert _paragraphs(LINE) == (
        "r1  2026-10-21 08:30 UTC  finished\n  a, b; 1,200 trials; 2 PASS"
    )
    assert _paragraphs(COSTLY).endswith("a; 1 + 3,000 trials; $2.50; no verdicts")
    one = RunLine(run_id="r4", status="finished", models=("a",), done=1)
    assert _paragraphs(one).endswith("a; 1 trial; no verdicts")
    assert _paragraphs(BROKEN) == "r3  unreadable"


def test_there_is_a_column_of_costs_only_if_there_are_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    head = _text([LINE]).splitlines()[0].split()
    assert head == ["run", "UTC", "models", "trials", "verdicts"]
    table = _text([LINE, COSTLY, BROKEN]).splitlines()
    assert table[0].split() == ["run", "UTC", "models", "trials", "cost", "verdicts"]
    assert table[-1] == "r3: The file is damaged."
    monkeypatch.setenv("COLUMNS", "20")
    assert _text([LINE]) == _paragraphs(LINE)
