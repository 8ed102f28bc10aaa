"""The page on the agents names every shipped agent; its tables must equal the output of
``benchmarks/agents.py``.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from cheesebench.plugin_manager import PluginManager
from cheesebench.plugins.agents.graded import SKILLS
from cheesebench.protocol import Catalogue

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


def script(name: str = "agents") -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        f"{name}_script", ROOT / "benchmarks" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(text: str) -> list[str]:
    """Return the rows of the tables in a text, without the means."""
    return [
        line
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith("| *mean")
    ]


def test_every_agent_is_described_and_measured() -> None:
    described = set(re.findall(r"^\| `([a-z0-9@-]+)` \|", PAGE, re.MULTILINE))
    agents = set(PluginManager().agents)
    assert described == agents
    # The paper's rules have a page of their own, and graded learners a table of their
    # own.
    shipped = {name for name in agents if not re.search(r"@|^graded-", name)}
    [header] = [
        line for line in PAGE.splitlines() if line.startswith("| protocol | random")
    ]
    assert (
        {cell.strip() for cell in header.split("|")} >= shipped == set(script().AGENTS)
    )


def test_the_nine_are_measured() -> None:
    specifications = Catalogue([ROOT / "protocols"]).select()
    rates = re.findall(
        rf"^\| (\w+) \|(?: *\d+ \|){{{len(script().AGENTS) + 1}}}$", PAGE, re.MULTILINE
    )
    assert sorted(rates) == sorted(
        specification.name for specification in specifications
    )


def test_the_curves_over_skill_are_those_that_were_measured() -> None:
    skill = script("skill")
    measured = json.loads(skill.KEPT.read_text(encoding="utf-8"))
    assert skill.table(measured) in PAGE
    nine = {one.name for one in Catalogue([ROOT / "protocols"]).select()}
    assert set(measured) == nine
    assert set(skill.SKILLS.values()) - {"random", "place-learner"} == {
        f"graded-{one}" for one in SKILLS
    }
    # By hand: 40 points, spread 0.3 in both: an error of 0.095.
    rates = {str(one): [0.0, 0.3] for one in skill.SKILLS} | {"100": [0.4, 0.3]}
    assert skill.told_apart(rates) == "90-100"
    assert skill.told_apart(rates | {"100": [0.18, 0.3]}) == "none"


@pytest.mark.slow
def test_the_script_measures_the_curve_of_the_page(tmp_path: Path) -> None:
    skill = script("skill")
    measured = json.loads(skill.KEPT.read_text(encoding="utf-8"))
    assert skill.measure(tmp_path, ["t_maze"]) == {"t_maze": measured["t_maze"]}


@pytest.mark.slow
def test_the_script_prints_what_the_page_says_of_the_chambers() -> None:
    measured = script()
    printed = rows(
        measured.table(measured.cells(only="operant_chamber or shuttle_box"))
    )
    assert len(printed) == 4
    assert [row for row in printed if row not in PAGE.splitlines()] == []


@pytest.mark.slow
def test_the_script_prints_the_table_of_the_page() -> None:
    measured = script()
    assert measured.table(measured.cells()) in PAGE


@pytest.mark.slow
def test_the_script_prints_what_lesions_leave_of_a_learner_in_the_chamber() -> None:
    learner = script("lesioned_learner")
    assert (
        learner.row(
            "hippocampal-ql", "operant_chamber", learner.lesions()["operant_chamber"]
        )
        in PAGE.splitlines()
    )
