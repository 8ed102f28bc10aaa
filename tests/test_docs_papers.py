"""The page on the papers: every row says where, and every command in it is one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cheesebench.cli import build_parser, main
from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.designs import find_design
from cheesebench.experiment.studies import find_study
from cheesebench.models import resolve_model
from cheesebench.options import OPTIONS
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue
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
PLUGINS = installed_plugins()
CATALOGUE = Catalogue(PLUGINS.protocol_directories)


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


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("cheesebench ")])
def test_the_command_is_one(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command)[1:]
    if words != ["--version"]:
        assert build_parser().parse_args(words)
    if words[0] in QUICK:
        assert main(words) in (0, 1), capsys.readouterr().err


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("pytest ")])
def test_pytest_would_take_it(command: str) -> None:
    words = shlex.split(command)[1:]
    known = {f"--{prefix}{option.name}": option.name for option in OPTIONS for prefix in ("", "cheese-")}
    given = list(zip(words[::2], words[1::2], strict=True))
    values = {known[option]: value for option, value in given if option != "-k"}
    if "model" in values and values["model"] not in {*PLUGINS.agents, *PLUGINS.respondents}:
        resolve_model(PLUGINS, values["model"])
    if "edition" in values:
        assert CATALOGUE.select(edition=values["edition"])
    if "design" in values:
        find_design(values["design"])
    if "study" in values:
        find_study(values["study"], Path())
    if "view" in values:
        PLUGINS.view(values["view"])
    assert "protocols" not in values or values["protocols"] in CATALOGUE.folders


def test_a_wrong_command_would_be_found() -> None:
    with pytest.raises(CheeseBenchError):
        build_parser().parse_args(["renders", "t_maze"])
    with pytest.raises(CheeseBenchError):
        find_study("ablation-prompts", Path())


def test_the_numbers_are_those_that_reports_show() -> None:
    text = numbers()
    for model in published()["models"].values():
        assert f"{model['overall']:.1%}".removesuffix("%") in text
    assert text.count("`ascii_3d`") == len(published()["models"])
    assert "57.0" in text
