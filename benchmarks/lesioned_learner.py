"""Measures the pass rates that remain to a learner with lesions, for the tables of
docs/agents.md.

It runs an agent through the shipped protocols, or the named ones, with every lesion of
their constructs as a control (design ``cohort``, seed 0, view ``ascii_2d``), and prints
the pass rate under each lesion, next to the highest rate that the construct allows.

    python benchmarks/lesioned_learner.py [AGENT [PROTOCOL...]]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cheesebench.commands.common import installed_catalogue
from cheesebench.protocol import with_arena

AGENT = "place-learner"
HEADER = ["protocol", "intact", "verdict", "under each lesion (at most)"]


def lesions() -> dict[str, dict[str, float]]:
    """Return by protocol the rate that may remain under each lesion
    of its construct.
    """
    found = {}
    for one in installed_catalogue().select():
        construct = with_arena(one).construct
        found[one.name] = (
            {str(lesion): at_most for lesion, at_most in construct.abolished_by}
            if construct
            else {}
        )
    return found


def cells(agent: str, name: str, controls: Iterable[str]) -> list[dict[str, Any]]:
    """Run the agent through a protocol with each control; return the cells of the JSON
    report.
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
        run += ["--cheese-run-id=lesions", f"--model={agent}", f"--protocols={name}"]
        run += [f"--control={control}" for control in controls]
        subprocess.run(run, cwd=directory, check=True, stdout=subprocess.DEVNULL)
        report = [
            sys.executable,
            "-m",
            "cheesebench",
            "report",
            "lesions",
            "--format",
            "json",
        ]
        printed = subprocess.run(
            report, cwd=directory, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
    found: list[dict[str, Any]] = json.loads(printed)["cells"]
    return found


def row(agent: str, name: str, allowed: Mapping[str, float]) -> str:
    """Return the row of a protocol: the remaining pass rates under the lesions that it
    names.
    """
    found = {
        one["plan"]["variant"].removeprefix("control="): one
        for one in cells(agent, name, allowed)
    }
    left = [
        f"{one} {_percent(found[one]['rate'])} ({_percent(at_most)})"
        for one, at_most in allowed.items()
    ]
    return _row(
        [name, _percent(found[""]["rate"]), found[""]["verdict"], ", ".join(left)]
    )


def _row(entries: Sequence[str]) -> str:
    return f"| {' | '.join(entries)} |"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


if __name__ == "__main__":
    agent = sys.argv[1] if len(sys.argv) > 1 else AGENT
    print(_row(HEADER), _row(["---", "--:", "---", "---"]), sep="\n")
    allowed = lesions()
    for name in sys.argv[2:] or allowed:
        print(row(agent, name, allowed[name]), flush=True)
