"""The paper's own baselines: the page has the measurements, here and in the package,
and they agree.
"""

from __future__ import annotations

import json
import math
import re

import pytest

from benchmarks.paper_agents import AGENTS, KEPT, PAGE, PAPERS, here, table
from benchmarks.papers import QL_LEARNS
from benchmarks.random_rates import TASKS, rate_of

MEASURED = json.loads(KEPT.read_text(encoding="utf-8"))


def mean(agent: str, where: str) -> float:
    """Return the mean over the nine, in percent."""
    rates = [rate_of(MEASURED[agent][name][where], task.trials) for name, task in TASKS.items()]  # fmt: skip
    return sum(rate.mean for rate in rates) / len(rates)


def test_the_pages_have_what_was_measured() -> None:
    assert table(MEASURED) in PAGE.read_text(encoding="utf-8")
    papers = PAPERS.read_text(encoding="utf-8")
    [ours] = [line for line in papers.splitlines() if line.startswith("| Tabular-QL")]
    barnes, operant, shuttle = (
        f"{rate_of(MEASURED['tabular-ql'][name]['here'], TASKS[name].trials).mean:.0f}"
        for name in QL_LEARNS
    )
    assert (
        f"0 in four mazes and {barnes} in Barnes', {operant} operant, {shuttle} shuttle, "
        f"{mean('tabular-ql', 'here'):.1f} in all;" in ours
    )
    [ours] = [line for line in papers.splitlines() if line.startswith("| BFS oracle")]
    own, other = (mean("bfs-oracle", where) for where in ("here", "package"))
    assert f"and {own:.1f} in all (the package itself: {other:.1f})" in ours


def test_random_actions_have_the_mean_of_their_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rates = re.findall(r"^\| `\w+@paper` \| \d+ \| (\d+\.\d) ±", text, re.MULTILINE)
    assert len(rates) == len(TASKS)
    said = f"[{sum(map(float, rates)) / len(rates):.1f} in one view]"
    assert said in PAPERS.read_text(encoding="utf-8")


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("name", TASKS)
def test_here_and_there_agree(agent: str, name: str) -> None:
    cell, trials = MEASURED[agent][name], TASKS[name].trials
    own, other = (rate_of(cell[where], trials) for where in ("here", "package"))
    number = min(len(cell["here"]), len(cell["package"]))
    assert number * trials >= 200
    share = (own.mean + other.mean) / 200
    least = 100 * math.sqrt(2 * share * (1 - share) / number / trials)
    # Eighteen comparisons: three errors.
    assert abs(own.mean - other.mean) <= 3 * max(math.hypot(own.error, other.error), least)  # fmt: skip


def test_the_rates_are_measured_as_they_are_kept() -> None:
    for agent in AGENTS:
        assert here(agent, "t_maze", 1) == MEASURED[agent]["t_maze"]["here"][:1]
    assert here("tabular-ql", "operant_chamber", 1) == MEASURED["tabular-ql"]["operant_chamber"]["here"][:1]  # fmt: skip
