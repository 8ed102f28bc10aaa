"""The benchmarks run, and pyperf reads what they write. How fast anything is, is not tested."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyperf
import pytest

from cheesebench.planning.profiles import Profiles, shipped_profiles

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def python(*arguments: str | Path) -> str:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, timeout=120).stdout


def test_two_commits_can_be_compared(tmp_path: Path) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    table = python(BENCHMARKS / "engine.py", "t_maze", "--json", before)
    assert table.split()[:7] == ["engine", "steps/s", "reset", "us", "load", "ms", "compile"]
    suite = pyperf.BenchmarkSuite.load(str(before))
    assert suite.get_benchmark_names() == [
        f"engine: t_maze, {column}" for column in ("steps/s", "reset us", "load ms", "compile ms")
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


@pytest.mark.slow
def test_the_shipped_profiles_are_what_respondents_take(tmp_path: Path) -> None:
    profiles = tmp_path / "profiles.json"
    script = BENCHMARKS / "verdict_cost.py"
    table = python(script, "barnes_maze", "--kinds", "competent", "--profiles", profiles)
    assert "competent     sequential" in table
    shipped, played = shipped_profiles(), Profiles.read(profiles.read_text(encoding="utf-8"))
    if shipped.sha256["barnes_maze"] != played.sha256["barnes_maze"]:
        pytest.skip("the protocol has changed since profiles were made")
    one, other = (found.by_protocol["barnes_maze"]["competent"] for found in (shipped, played))
    assert (one.verdict, one.stopped) == (other.verdict, other.stopped)
    for look in one.looks:
        assert other.looks[look].calls == one.looks[look].calls
        assert other.looks[look].prompt == one.looks[look].prompt
        # What is cached depends a little on who comes first.
        assert other.looks[look].cached == pytest.approx(one.looks[look].cached, rel=0.02)
