"""``benchmarks/size.py`` prints the size of the project, and CONTRIBUTING names the
files on the way that it traces.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks import meter

ROOT = Path(__file__).parents[1]
#: Eight decisions in the outer function, one in the inner one, and three imports.
SAMPLE = """
from typing import TYPE_CHECKING
from cheesebench.records import TrialRecord
if TYPE_CHECKING:
    from cheesebench import source
def outer(xs):
    from cheesebench import source
    for x in xs:
        if x and x > 0 or x < 9:
            return [y for y in x if y]
    def inner(z):
        return 1 if z else 2
    try:
        while inner(1):
            pass
    except OSError:
        pass
"""


@pytest.fixture(scope="module")
def printed() -> str:
    script = [sys.executable, "benchmarks/size.py"]
    return subprocess.run(
        script, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    ).stdout


@pytest.fixture(scope="module")
def figures(printed: str) -> dict[str, float]:
    found = re.findall(
        r"^(\S.*?\S) {2,}([\d,.]+)(?: {2,}[\d,.]+)?$", printed, re.MULTILINE
    )
    return {name: float(figure.replace(",", "")) for name, figure in found}


def test_all_figures_are_printed(figures: dict[str, float]) -> None:
    assert len(figures) == 21
    assert figures["decisions"] > 5000 < figures["lines that ship"]


def test_one_trial_passes_through_the_files_that_contributing_names(
    printed: str, figures: dict[str, float]
) -> None:
    traced = re.findall(r"^  (\S+\.py)$", printed, re.MULTILINE)
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = section.partition("## One trial")[2].partition("\n## ")[0]
    assert re.findall(r"^\d+\. `(\S+\.py)`", section, re.MULTILINE) == traced
    others = {
        name
        for name in re.findall(r"`(\S+\.py)`", section)
        if not any(file.endswith(f"/{name}") or file == name for file in traced)
    }
    assert others == {"scheduler.py"}, "a trial can be read without these"
    assert figures["files to read a trial"] == len(traced) <= 9
    assert figures["decisions in these"] <= 1000


def test_an_option_passes_through_the_functions_that_contributing_names(
    printed: str, figures: dict[str, float]
) -> None:
    traced = re.findall(r"^  (\S+) of (\S+\.py)$", printed, re.MULTILINE)
    functions, files = [name for name, _ in traced], {file for _, file in traced}
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = section.partition("## Settings")[2].partition("\n## ")[0]
    named = dict.fromkeys(re.findall(r"`(\S+)`", section))
    assert [name for name in named if name in functions] == functions
    assert files == {*re.findall(r"^\d+\. `(\S+\.py)`", section, re.MULTILINE)}
    assert figures["functions from an option to a cell"] <= 15
    assert figures["files from an option to a cell"] <= 6


def test_code_gets_simpler_only(figures: dict[str, float]) -> None:
    """The figures of ``tests/meter.toml`` are lowered when they fall."""
    most = tomllib.loads((ROOT / "tests/meter.toml").read_text(encoding="utf-8"))
    now = {name: figures[name.replace("_", " ")] for name in most}
    higher = {name: now[name] for name in most if now[name] > most[name]}
    assert higher == {}, "which function, which import? python benchmarks/meter.py"
    lower = {name: now[name] for name in most if now[name] < 0.97 * most[name]}
    assert lower == {}, "lower these numbers in tests/meter.toml"


def test_decisions_and_joints_are_counted() -> None:
    tree = ast.parse(SAMPLE)
    known = {"cheesebench.records", "cheesebench.source"}
    function, inner = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    assert meter.complexity(function) == 1 + 8
    assert meter.complexity(inner) == 1 + 1
    assert list(meter.imports(tree, known)) == [
        meter.Import("cheesebench.records", "TrialRecord", False, False),
        meter.Import("cheesebench.source", "*", False, True),
        meter.Import("cheesebench.source", "*", True, False),
    ]


def shown(table: str) -> dict[str, list[int]]:
    """Return the numbers of each row of a table of features."""
    rows = ([cell.strip() for cell in line.split("|")] for line in table.splitlines())
    return {
        row[1]: [int(cell.replace(",", "")) for cell in row[3:6]]
        for row in rows
        if len(row) == 7 and row[3].isdigit()
    }


def test_every_file_belongs_to_a_feature_and_the_page_says_so() -> None:
    """A file without a feature ends the script. Lines may have changed by a quarter
    since the page was written.
    """
    script = [sys.executable, "benchmarks/features.py"]
    printed = subprocess.run(
        script, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    ).stdout
    page = (ROOT / "benchmarks/features.md").read_text(encoding="utf-8")
    now, told = shown(printed), shown(page)
    assert len(now) > 30
    assert set(told) == set(now), "python benchmarks/features.py --write"
    for feature, numbers in now.items():
        assert numbers[0] > 0, feature
        for figure, then in zip(numbers, told[feature], strict=True):
            assert abs(figure - then) <= max(3, figure / 4), feature
