"""Measures the success rates of random actions under the paper's rules, in the edition
``paper`` and in the published package.

``python benchmarks/random_rates.py`` (some minutes) prints the rates over 6,000 trials
of each paradigm beside the package's intervals over 99 seeds. ``--peer PYTHON`` runs
the package as well, with the Python of an environment that has it (``--seeds`` of each
paradigm), twice: unchanged, and with sines and cosines rounded to 12 decimals.
``--write`` puts the table into docs/explanation/earlier-numbers.md.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))
from benchmarks.places import fill  # noqa: E402

PAGE = PROJECT / "docs" / "explanation" / "earlier-numbers.md"
TRIALS, SEEDS = 6000, 99


class Task(NamedTuple):
    """A paradigm in the package: its name, trials and steps, and its random agent's
    rate over 99 seeds, in percent.
    """

    package: str
    trials: int
    steps: int
    rate: float
    low: float
    high: float


TASKS = {
    "morris_water_maze": Task("MorrisWaterMaze", 20, 500, 29.9, 28.0, 32.0),
    "barnes_maze": Task("BarnesMaze", 16, 300, 29.0, 26.9, 31.3),
    "star_maze": Task("StarMaze", 40, 300, 5.4, 4.7, 6.1),
    "t_maze": Task("TMaze", 40, 200, 43.9, 42.4, 45.5),
    "radial_arm_maze": Task("RadialArmMaze", 20, 400, 0.0, 0.0, 0.2),
    "dnms": Task("DNMSTask", 100, 50, 50.6, 49.6, 51.5),
    "operant_chamber": Task("OperantChamber", 50, 100, 31.5, 30.2, 32.8),
    "shuttle_box": Task("ShuttleBox", 40, 50, 26.6, 25.3, 28.0),
    "place_preference": Task("PlacePreference", 12, 300, 70.4, 67.7, 72.9),
}


class Rate(NamedTuple):
    """A mean over subjects and its standard error between subjects, both in percent."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {1.96 * self.error:.1f}"


def rate_of(successes: Sequence[int], trials: int) -> Rate:
    """Return the rate of lives, given the number of successes of each."""
    rates = [100 * found / trials for found in successes]
    return Rate(
        statistics.fmean(rates), statistics.stdev(rates) / math.sqrt(len(rates))
    )


def here(name: str, subjects: int, seed: int = 1) -> Rate:
    """Return the rate of ``subjects`` random subjects in the edition ``paper``."""
    specification = with_arena(
        Catalogue(installed_plugins().protocol_directories).find(name, "paper")
    )
    program, view = (
        ArenaParadigm(specification).program,
        installed_plugins().view("ascii_2d"),
    )
    found = []
    for subject in range(subjects):
        life, chance, successes = (
            ArenaSubject(program, view, seed, subject),
            random.Random(f"{seed} {subject}"),
            0,
        )
        step = life.step
        while life.begin_trial() is not None:
            while not step(int(4 * chance.random()))[2]:
                pass
            successes += bool(life.ending().success)
        found.append(successes)
    return rate_of(found, TASKS[name].trials)


def there(python: Path, name: str, seeds: int, *, rounded: bool) -> Rate:
    """Return the rate in the package's environment; ``rounded`` rounds sines and
    cosines to 12 places.
    """
    task = TASKS[name]
    question = {
        "task": task.package,
        "seeds": [0, seeds],
        "trials": task.trials,
        "steps": task.steps,
    }
    driver = PROJECT / "tests" / "peer" / "random_driver.py"
    asked = json.dumps({**question, "rounded": rounded})
    child = subprocess.run(
        [python, driver],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
        cwd=driver.parent,
    )
    return rate_of(json.loads(child.stdout), task.trials)


def table(trials: int, peer: Path | None, seeds: int) -> str:
    """Return the table in Markdown."""
    headers = [
        "protocol",
        "subjects",
        f"here, {trials:,} trials",
        "package, 99 seeds",
        "inside",
    ]
    headers += [f"package, {seeds:,} seeds", "the same, rounded"] if peer else []
    lines = [headers, ["---"] * len(headers)]
    for name, task in TASKS.items():
        subjects = trials // task.trials
        own = here(name, subjects)
        inside = "yes" if task.low <= round(own.mean, 1) <= task.high else "no"
        line = [
            f"`{name}@paper`",
            str(subjects),
            str(own),
            f"{task.rate:.1f} [{task.low:.1f}, {task.high:.1f}]",
            inside,
        ]
        line += (
            [
                str(there(peer, name, seeds, rounded=rounded))
                for rounded in (False, True)
            ]
            if peer
            else []
        )
        lines.append(line)
        print(*line, sep="  ", flush=True)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--peer", type=Path, metavar="PYTHON")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    found = table(asked.trials, asked.peer, asked.seeds)
    if asked.write:
        fill(PAGE, "random", f"\n{found}")


if __name__ == "__main__":
    main()
