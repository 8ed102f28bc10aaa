"""The page of results must equal the script's output from the stored logs; and the
script works on parts of smoke size.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import baseline_board

ROOT = Path(__file__).parents[1]


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "results", raising=False)
    return importlib.import_module("results")


def test_the_page_is_what_its_script_makes_of_the_logs(results: Any) -> None:
    assert results.page() == results.PAGE.read_text(encoding="utf-8"), (
        "run: python benchmarks/results.py --write"
    )


def test_the_readme_says_how_many_are_passed(results: Any) -> None:
    lines = results.PAGE.read_text(encoding="utf-8").splitlines()
    passed = {
        line.split("|")[1].strip(): line.count("✔")
        for line in lines[: lines.index("## random")]
        if line.startswith("| ")
    }
    words = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight")
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"moves at random passes {words[passed['random']]} of the nine; " in readme
    learner = "`place-learner`, a small learner without a language model, passes "
    assert f"{learner}{words[passed['place-learner']]}; " in readme
    models = {row: n for row, n in passed.items() if row.startswith(results.MODELS)}
    assert len(models) == 6
    assert not any(models.values())
    assert "the small language models that were tried have passed none yet" in readme


def test_a_part_is_kept_taken_up_and_told(
    results: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "KEPT", tmp_path / "kept")
    cell, other = results.cells(["random"], ["t_maze", "star_maze"])[::-1]
    assert (cell.name, results.read(cell)) == ("random.t_maze", None)
    results.measure(cell, 5.0, ["--design", "smoke"])
    found = results.read(cell)
    assert not found.unfinished
    hashes = {"t_maze": found.judged["plan"]["sha256"], "star_maze": "?"}
    text = results.rendered({other: None, cell: found}, hashes)
    assert "| star_maze  | not measured yet |" in text
    assert f"| `{found.digest[:16]}` " in text
    assert "| INCONCLUSIVE " in text
    assert "Of 128 steps: FORWARD " in text
    # A run that is resumed from its stored log does nothing twice.
    results.measure(cell, 5.0, ["--design", "smoke"])
    again = results.read(cell)
    assert again.actions == found.actions
    assert again.judged["rate"] == found.judged["rate"]
    stale = results.rendered({cell: found}, {"t_maze": "another"})
    assert "stale: the protocol has changed (was INCONCLUSIVE)" in stale


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("LEARNINGS: none\nACTIONS: STAY", False),
        ('{"learnings": "None", "actions": ["STAY"]}', False),
        ("ACTIONS: STAY", False),
        ("LEARNINGS: the east arm pays\nACTIONS: FORWARD", True),
        ('{"actions": ["STAY"], "learnings": "walls"}', True),
    ],
)
def test_learnings_that_say_something(results: Any, reply: str, says: bool) -> None:
    assert results.says_something(reply) == says


def test_the_page_has_the_board_that_is_kept() -> None:
    board = baseline_board.BOARD.read_text(encoding="utf-8")
    assert baseline_board.page(board) == baseline_board.PAGE.read_text("utf-8"), (
        "run: python benchmarks/baseline_board.py --write"
    )
    assert board.startswith(f"# Board of {baseline_board.SET}: 9 protocols")
    for agent in baseline_board.AGENTS:
        assert f"| {agent} |" in board


@pytest.mark.slow
def test_the_command_makes_that_board_of_the_kept_logs() -> None:
    assert baseline_board.made() == baseline_board.BOARD.read_text(encoding="utf-8")
