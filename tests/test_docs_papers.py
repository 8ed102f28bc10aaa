"""The page on the papers: every row says where, and every command in it is one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cheesebench.cli import main
from cheesebench.statistics.published import published
from website.published import numbers

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split(" | ")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| what |"))
]
COMMANDS = sorted({command for row in ROWS for command in re.findall(r"`((?:cheesebench|pytest) [^`]+)`", row[-1])})
#: Commands that need no run, no model and no minute; they are carried out.
QUICK = ("play", "trace", "render", "lint", "reference", "diff", "models", "study")


def test_every_row_has_a_place_and_a_command_or_a_reason() -> None:
    assert len(ROWS) > 150
    for row in ROWS:
        assert len(row) == 4, row
        what, _, here, last = row
        assert what
        assert last
        if here.startswith("not "):
            assert "`pytest" not in last, f"{what}: it is not here, and has a command"
        assert "partly" not in " ".join(row)


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.split()[1] in QUICK])
def test_the_command_runs(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """That the others are commands is tested with all pages."""
    assert main(shlex.split(command)[1:]) in (0, 1), capsys.readouterr().err


def test_most_kinds_of_commands_are_carried_out() -> None:
    assert {command.split()[1] for command in COMMANDS} >= set(QUICK)
    assert any(command.startswith("pytest ") for command in COMMANDS)


def test_the_numbers_are_those_that_reports_show() -> None:
    text = numbers()
    for model in published()["models"].values():
        assert f"{model['overall']:.1%}".removesuffix("%") in text
    assert text.count("`ascii_3d`") == len(published()["models"])
    assert "57.0" in text
