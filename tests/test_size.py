"""``benchmarks/size.py`` prints the size of the project, and CONTRIBUTING names the
files of the way that it traces.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def printed() -> str:
    script = [sys.executable, "benchmarks/size.py"]
    return subprocess.run(
        script, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    ).stdout


def test_all_figures_are_printed(printed: str) -> None:
    figures = dict(
        re.findall(r"^(\S.*\S) {2,}([\d,]+) {2,}[\d,]+$", printed, re.MULTILINE)
    )
    assert len(figures) == 10
    assert min(int(figure.replace(",", "")) for figure in figures.values()) > 0


def test_one_trial_passes_through_the_files_that_contributing_names(
    printed: str,
) -> None:
    traced = re.findall(r"^  (\S+\.py)$", printed, re.MULTILINE)
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = section.partition("## One trial")[2].partition("\n## ")[0]
    assert re.findall(r"^\d+\. `(\S+\.py)`", section, re.MULTILINE) == traced


def test_packages_only_shrink() -> None:
    """A package may not have more lines than ``sizes.toml`` says, which is lowered when
    there are far fewer.
    """
    stated = tomllib.loads((ROOT / "tests" / "sizes.toml").read_text(encoding="utf-8"))[
        "lines"
    ]
    counted = Counter[str]()
    for folder in ("cheesebench", "paradigms", "plugins", "reports"):
        for path in (ROOT / folder).rglob("*.py"):
            inside = path.relative_to(ROOT).parts
            # The linked folders are counted where they are.
            if not any(
                (ROOT / Path(*inside[: depth + 1])).is_symlink()
                for depth in range(len(inside))
            ):
                package = (
                    inside[:2]
                    if len(inside) > 2 and folder in ("cheesebench", "paradigms")
                    else inside[:1]
                )
                counted["/".join(package)] += len(
                    path.read_text(encoding="utf-8").splitlines()
                )
    assert counted.keys() == stated.keys()
    assert {
        name: lines for name, lines in counted.items() if lines > stated[name]
    } == {}, "less code, not more"
    lower = {
        name: lines
        for name, lines in counted.items()
        if lines < 0.9 * stated[name] - 100
    }
    assert lower == {}, "lower these numbers in tests/sizes.toml"
