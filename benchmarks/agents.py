"""Measures the scores of the built-in agents, for the tables of docs/agents.md.

It runs the design ``cohort`` with every agent through the shipped protocols (seed 0,
view ``ascii_2d``) and prints two tables in Markdown: rates over the trials that are
judged, and rates of all trials by session. This takes about 20 seconds.

    python benchmarks/agents.py
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from statistics import fmean
from typing import Any

AGENTS = ("random", "bfs-oracle", "tabular-ql", "hippocampal-ql", "place-learner")


def cells(agents: Sequence[str] = AGENTS, only: str = "") -> list[dict[str, Any]]:
    """Run the agents through the protocols that ``-k only`` selects; return the cells
    of the JSON report.
    """
    with tempfile.TemporaryDirectory() as directory:
        run = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--cheese-exit-zero",
            "--seed=0",
        ]
        run += [
            "--cheese-run-id=agents",
            "-k",
            only,
            *(f"--model={agent}" for agent in agents),
        ]
        subprocess.run(run, cwd=directory, check=True, stdout=subprocess.DEVNULL)
        report = [
            sys.executable,
            "-m",
            "cheesebench",
            "report",
            "agents",
            "--format",
            "json",
        ]
        printed = subprocess.run(
            report, cwd=directory, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    found: list[dict[str, Any]] = json.loads(printed)["cells"]
    return found


def table(found: Sequence[dict[str, Any]]) -> str:
    """Return the table in the form of the page."""
    by_name = {
        (cell["plan"]["protocol"], cell["plan"]["model"]): cell for cell in found
    }
    names = list(dict.fromkeys(name for name, _ in by_name))
    agents = list(dict.fromkeys(agent for _, agent in by_name))
    rodent = {
        name: by_name[name, agents[0]]["plan"]["reference"]["value"] for name in names
    }
    lines = [
        _row(["protocol", *agents, "rodent"]),
        _row(["---", *["--:"] * (len(agents) + 1)]),
    ]
    for name in names:
        lines.append(
            _row(
                [
                    name,
                    *(_percent(by_name[name, agent]["rate"]) for agent in agents),
                    _percent(rodent[name]),
                ]
            )
        )
    means = [fmean(by_name[name, agent]["rate"] for name in names) for agent in agents]
    lines.append(
        _row(
            [
                f"*mean of the {len(names)}*",
                *map(_percent, [*means, fmean(rodent.values())]),
            ]
        )
    )
    return "\n".join(lines)


def _row(entries: Sequence[str]) -> str:
    return f"| {' | '.join(entries)} |"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


if __name__ == "__main__":
    print(table(cells()))
