"""``cheesebench audit``: the table, JSON, exit codes, mistakes; and the same for
authors' own tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cheesebench.testing import assert_sound, audit_protocol

Run = Callable[..., Any]


def test_a_table_with_a_verdict_for_every_rule(run: Run) -> None:
    result = run(
        "audit", "little", "--trials", 40, "--part", "solvable", "--part", "draws"
    )
    assert result.code == 0
    assert result.out.startswith("little (little.protocol.yaml), 40 trials, seed 0")
    assert "solvable" in result.out
    assert "nothing is drawn" in result.out
    assert "blind" not in result.out
    assert result.out.endswith("1 protocol: 0 failures\n")
    # The file that the name stands for; and, where stderr is no terminal, parts and
    # verdicts as lines as they come.
    lines = result.err.splitlines()
    assert lines[0].startswith("little: ")
    assert lines[0].endswith("little.protocol.yaml")
    assert lines[1:3] == ["little: solvable", "little: solvable: ok"]


def test_a_failure_is_an_exit_code(run: Run, here: Path, maze: str) -> None:
    (here / "short.protocol.yaml").write_text(
        maze.replace("limit: 9", "limit: 5"), encoding="utf-8"
    )
    result = run(
        "audit", "little", "short.protocol.yaml", "--trials", 40, "--part", "solvable"
    )
    assert result.code == 1
    assert "FAIL" in result.out
    assert result.out.endswith("2 protocols: 1 failure\n")


def test_json_has_the_numbers_and_equal_seeds_give_equal_ones(run: Run) -> None:
    arguments = (
        "audit",
        "little",
        "--json",
        "--trials",
        40,
        "--seed",
        3,
        "--part",
        "chance",
        "--processes",
        1,
    )
    first, second = run(*arguments), run(*arguments)
    assert first.out == second.out
    (report,) = json.loads(first.out)
    assert (report["protocol"], report["trials"], report["seed"]) == ("little", 40, 3)
    (uniform, stated, *_) = report["findings"]
    assert uniform["rule"] == "chance: uniform"
    assert uniform["numbers"]["trials"] >= 40
    # The file says 0.125, after 100 trials; corridor and limit decide whether that is
    # so, not this test.
    assert stated["verdict"] == ("FAIL" if first.code else "ok")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("audit", "t_mase"), "Did you mean 't_maze'?"),
        (("audit", "little", "--trials", 0), "'0' is not a whole number from 1"),
        (("audit", "little", "--view", "nowhere"), "There is no view 'nowhere'"),
        (("audit", "little", "--part", "tea"), "invalid choice: 'tea'"),
    ],
)
def test_mistakes_are_one_line(
    run: Run, arguments: tuple[object, ...], words: str
) -> None:
    result = run(*arguments)
    assert result.code == 2
    assert words in result.err
    assert len(result.err.splitlines()) == 1


def test_authors_can_test_their_own(here: Path, maze: str) -> None:
    assert assert_sound(
        here / "little.protocol.yaml", trials=40, parts=["solvable", "cues"]
    ).passed
    path = here / "short.protocol.yaml"
    path.write_text(maze.replace("limit: 9", "limit: 5"), encoding="utf-8")
    assert [
        one.rule for one in audit_protocol(path, trials=40, parts=["solvable"]).failures
    ] == ["solvable"]
    with pytest.raises(AssertionError, match=r"solvable: .* within half of the limit"):
        assert_sound(path, trials=40, parts=["solvable"])
