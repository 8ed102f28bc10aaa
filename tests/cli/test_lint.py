"""``lint``: errors, warnings and notes about protocols, and what codes mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cheesebench.protocols

#: The fixture ``run``: calls the command and returns its code, out and err.
Run = Callable[..., Any]


def test_lint_prints_findings_in_file_order_and_a_summary(
    run: Run, here: Path, maze: str
) -> None:
    bad = maze.replace("enter: goal", "enter: gaol").replace("found}}]", "lost}}]")
    (here / "bad.protocol.yaml").write_text(bad, encoding="utf-8")
    result = run("lint", "bad.protocol.yaml", "little")
    *findings, summary = result.out.splitlines()
    assert result.code == 1
    lines = [int(line.split(":")[1]) for line in findings]
    assert lines == sorted(lines)
    assert any("Did you mean 'goal'?" in line for line in findings)
    assert summary == f"2 files: {len(findings)} errors, 0 warnings, 0 notes"


def test_lint_fails_for_warnings_only_when_it_is_strict(
    run: Run, here: Path, maze: str
) -> None:
    (here / "unused.protocol.yaml").write_text(
        maze + "vars: {unused: 0}\n", encoding="utf-8"
    )
    result = run("lint", "unused.protocol.yaml")
    assert (result.code, ": warning W" in result.out) == (0, True)
    assert run("lint", "--strict", "unused.protocol.yaml").code == 1
    assert run("lint", "--strict", "little").code == 0


def test_lint_can_leave_out_notes(run: Run, here: Path, maze: str) -> None:
    both = maze.replace("end: found}", "end: found}\n        - {after: 3, end: late}")
    (here / "both.protocol.yaml").write_text(both, encoding="utf-8")
    assert ": info I" in run("lint", "both.protocol.yaml").out
    quiet = run("lint", "-q", "both.protocol.yaml")
    assert ": info I" not in quiet.out
    assert "1 note" in quiet.out


def test_lint_takes_directories_and_each_file_once(
    run: Run, here: Path, maze: str
) -> None:
    deep = here / "deep" / "er"
    deep.mkdir(parents=True)
    (deep / "one.protocol.yaml").write_text(maze, encoding="utf-8")
    assert run("lint", ".", "little", here).out.startswith("2 files: ")


def test_lint_takes_an_edition_by_its_name(
    run: Run, strangers: Path, maze: str
) -> None:
    (strangers / "little.protocol.yaml").write_text(maze, encoding="utf-8")
    edition = "version: 1\nextends: little\nparadigm: little\nedition: rodent\ntrial: {limit: 8}\n"
    (strangers / "little_for_rodents.protocol.yaml").write_text(
        edition, encoding="utf-8"
    )
    assert run("lint", "little@rodent").out.startswith("1 file: 0 errors")


def test_a_mistyped_name_is_looked_for_here_and_among_what_is_installed(
    run: Run, here: Path, maze: str
) -> None:
    (here / "tmax.protocol.yaml").write_text(maze, encoding="utf-8")
    said = run("lint", "tmaz").err
    assert "Did you mean 'tmax'?" in said
    assert "The installed protocol 't_maze' has a similar name, too." in said
    (here / "tmax.protocol.yaml").rename(here / "qqq.protocol.yaml")
    assert "Did you mean 't_maze'?" in run("lint", "tmaz").err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("E226", "E226, error: A reference contradicts itself"),
        ("w335", "W335, warning: The animals' values seem to be in percent"),
        ("I401", "I401, note: Two rules can fire on the same step"),
        ("estimand", "estimand: The trials that count for the pass rate."),
        ("at_most", "at_most, in Abolished: The highest pass rate that may remain"),
    ],
)
def test_lint_explains_codes_and_keys(run: Run, name: str, said: str) -> None:
    result = run("lint", "--explain", name)
    assert result.code == 0
    assert result.out.startswith(said)


def test_what_lint_cannot_explain_is_said(run: Run) -> None:
    result = run("lint", "--explain", "estimmand")
    assert result.code == 2
    assert "no code or key 'estimmand'. Did you mean 'estimand'?" in result.err


def test_lint_passes_every_shipped_protocol(run: Run) -> None:
    result = run("lint", "-q", Path(cheesebench.protocols.__path__[0]))
    assert result.code == 0, result.out
