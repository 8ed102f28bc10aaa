"""The README is the contract: its protocol loads without a finding, its agent lives, its environment steps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cheesebench.protocol import Catalogue

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_protocol_has_no_finding_and_runs(pytester: pytest.Pytester) -> None:
    [text] = blocks("yaml")
    specification, found = Catalogue().examine_text(text, "y_maze.protocol.yaml")
    assert specification is not None
    assert [finding for finding in found if finding.severity != "info"] == []
    pytester.path.joinpath("y_maze.protocol.yaml").write_text(text, encoding="utf-8")
    result = pytester.runpytest_subprocess("--model", "tabular-ql", "--subjects", "2", "y_maze.protocol.yaml")
    result.stdout.fnmatch_lines(["*y_maze *", "*2 subjects x 20 trials (40/40 valid)*"])


def test_the_agent_of_the_conftest_runs(pytester: pytest.Pytester) -> None:
    [text] = [block for block in blocks("python") if "TurnsLeft" in block]
    pytester.makeconftest(text)
    result = pytester.runpytest_subprocess("--model", "turns-left", "--design", "smoke", "-k", "t_maze")
    result.stdout.fnmatch_lines(["*t_maze *", "*2 subjects (1 distinct) x 2 trials (4/4 valid)*"])


def test_the_environment_steps() -> None:
    [text] = [block for block in blocks("python") if "gymnasium.make" in block]
    names: dict[str, object] = {}
    exec(text, names)
    assert isinstance(names["observation"], str)


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README):
        assert (ROOT / link).exists(), link
