"""The benchmarks run, and pyperf reads their output. Speed is not tested."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pyperf
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
EXAMPLES = BENCHMARKS.parent / "docs/examples"


def python(*arguments: str | Path) -> str:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout


def test_two_commits_can_be_compared(tmp_path: Path) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    table = python(BENCHMARKS / "engine.py", "t_maze", "--json", before)
    assert table.split()[:7] == [
        "engine",
        "steps/s",
        "reset",
        "us",
        "load",
        "ms",
        "compile",
    ]
    suite = pyperf.BenchmarkSuite.load(str(before))
    assert suite.get_benchmark_names() == [
        f"engine: t_maze, {column}"
        for column in ("steps/s", "reset us", "load ms", "compile ms")
    ]
    least = min(suite.get_benchmark("engine: t_maze, steps/s").get_values())
    assert f"{1 / least:,.0f}" in table
    suite.dump(str(after))
    compared = python("-m", "pyperf", "compare_to", "--table", before, after)
    assert "Benchmark hidden because not significant (4)" in compared


def test_imports_are_measured() -> None:
    table = python(BENCHMARKS / "imports.py")
    assert "pytest plugin, after pytest" in table
    assert "cheesebench --help, after Python" in table


@pytest.mark.parametrize(
    "script",
    [*BENCHMARKS.glob("*.py"), *EXAMPLES.glob("[!c]*.py")],
    ids=lambda it: it.stem,
)
def test_each_command_of_a_docstring_stands_on_a_line_of_its_own(script: Path) -> None:
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
    shown = [line for line in text.splitlines() if line.startswith("    ")]
    bare = [line.partition("#")[0].strip() for line in shown]
    commands = [line for line in bare if line]
    assert all(line.split()[0].endswith("python") for line in commands)
    assert all(f"{line} ".count(".py ") == 1 for line in commands)
