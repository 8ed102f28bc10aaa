"""Measures the rates in each of the nine paradigms by a learner's skill, and which
skills a protocol can distinguish, for the table of docs/agents.md.

``python benchmarks/skill.py`` (a minute) runs ``random`` (skill 0), the graded learners
and ``place-learner`` (100) with a few subjects, and prints the table; ``--write`` keeps
the results and puts the table into the page.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import cheesebench
from cheesebench.experiment.log import RunLog
from cheesebench.statistics import draw_sample

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from benchmarks.places import fill  # noqa: E402

PAGE = ROOT / "docs" / "agents.md"
KEPT = ROOT / "benchmarks" / "measured" / "skill.json"
#: The agents by their skill in per cent.
SKILLS = {
    0: "random",
    40: "graded-40",
    60: "graded-60",
    80: "graded-80",
    90: "graded-90",
    100: "place-learner",
}
#: ``SUBJECTS`` is the number of subjects in the measurement, ``COHORT`` that in the
#: design whose resolution is reported.
SUBJECTS, COHORT = 8, 20
#: Number of standard errors by which the rates of two skills must differ to be told
#: apart.
APART = 1.96

#: Rate and its standard deviation between subjects, by protocol and skill.
Measured = Mapping[str, Mapping[str, Sequence[float]]]


def measure(
    results: Path, protocols: Sequence[str] = ()
) -> dict[str, dict[str, list[float]]]:
    """Run the agents and return their rates and spreads."""
    run = cheesebench.run(
        list(SKILLS.values()),
        list(protocols),
        subjects=SUBJECTS,
        design="cohort",
        seed=0,
        results=results,
        progress=False,
    )
    skills = {agent: str(skill) for skill, agent in SKILLS.items()}
    found: dict[str, dict[str, list[float]]] = {}
    with RunLog.open_read_only(run.directory / "run.sqlite") as log:
        for plan in log.plans():
            sample = draw_sample(plan, log.trials_by_subject(plan))
            means = [one.total / one.scored for one in sample.judged() if one.scored]
            own = found.setdefault(plan.protocol, {})
            own[skills[plan.model]] = [round(fmean(means), 4), round(stdev(means), 4)]
    return found


def told_apart(rates: Mapping[str, Sequence[float]]) -> str:
    """Return the neighbouring skills that a cohort can tell apart."""
    found = []
    for low, high in pairwise(map(str, SKILLS)):
        (one, first), (other, second) = rates[low], rates[high]
        # A spread of 0 in a few subjects does not prove that it is 0.
        least = 1 / COHORT
        error = max(math.hypot(first, second) / math.sqrt(COHORT), least / 2)
        if abs(other - one) > APART * error:
            found.append(f"{low}-{high}")
    return ", ".join(found) or "none"


def table(measured: Measured) -> str:
    """Return the table in Markdown."""
    header = ["protocol", *(f"{skill}" for skill in SKILLS), "tells apart"]
    lines = [header, ["---", *["--:"] * len(SKILLS), "---"]]
    for name, rates in sorted(measured.items()):
        cells = [f"{100 * rates[str(skill)][0]:.0f}" for skill in SKILLS]
        lines.append([name, *cells, told_apart(rates)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Measure, print the table, and store it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--results", type=Path, default=Path("results"))
    asked = parser.parse_args()
    measured: dict[str, Any] = measure(asked.results)
    found = table(measured)
    print(found)
    if asked.write:
        KEPT.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        fill(PAGE, "skill", f"\n{found}")


if __name__ == "__main__":
    main()
