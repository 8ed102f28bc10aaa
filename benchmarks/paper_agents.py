"""Measures the paper's own baselines, Tabular-QL and the BFS oracle, in the edition
``paper`` and in the published package, and shows the results next to the published
rates.

``python benchmarks/paper_agents.py`` (some minutes) prints the rates of 200 trials of
each paradigm. ``--peer PYTHON`` runs the package as well, with the Python of an
environment that has it; ``--write`` keeps the results, and puts the table into
docs/explanation/earlier-numbers.md.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cheesebench.interfaces import RUNNING, AgentContext
from cheesebench.paradigms.arena import ArenaParadigm
from cheesebench.paradigms.arena.life import ArenaSubject
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, with_arena
from cheesebench.published import published

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))
from benchmarks.places import fill  # noqa: E402
from benchmarks.random_rates import TASKS, rate_of  # noqa: E402

PAGE = PROJECT / "docs" / "explanation" / "earlier-numbers.md"
#: Page that shows our result next to each row of the paper.
PAPERS = PROJECT / "docs" / "papers.md"
KEPT = PROJECT / "benchmarks" / "measured" / "paper_agents.json"
#: Minimum number of trials of each paradigm.
TRIALS = 200
#: Each agent, with the name of its row in the published numbers.
AGENTS = {"tabular-ql": "tabular-ql", "bfs-oracle": "bfs"}


class Lived(NamedTuple):
    """A trial: the observation and the reward before each action, the actions, and
    whether it succeeded.
    """

    seen: list[str]
    paid: list[float]
    actions: list[int]
    success: bool


def lives(agent: str, name: str, subjects: int) -> Iterator[list[Lived]]:
    """Yield the life of each subject. The number of a subject is also its seed."""
    plugins = installed_plugins()
    protocol = Catalogue(plugins.protocol_directories).find(name, "paper")
    program = ArenaParadigm(with_arena(protocol)).program
    view, create = plugins.view("ascii_2d"), plugins.agent(agent, protocol.name).create
    for subject in range(subjects):
        mind = create(AgentContext(seed=subject, view=view.name))
        life, trials = ArenaSubject(program, view, 1, subject), list[Lived]()
        while (picture := life.begin_trial()) is not None:
            mind.begin_trial(picture)
            seen, paid, actions = list[str](), list[float](), list[int]()
            reward, status = 0.0, RUNNING
            while status == RUNNING:
                [action] = mind.act(picture)
                seen.append(picture)
                paid.append(reward)
                actions.append(action)
                picture, reward, status = life.step(action)
                mind.observe(action, reward, picture, status != RUNNING)
            success = bool(life.ending().success)
            trials.append(Lived(seen, paid, actions, success))
        yield trials


def subjects_of(name: str) -> int:
    """Return the number of subjects that together have 200 trials."""
    return math.ceil(TRIALS / TASKS[name].trials)


def here(agent: str, name: str, subjects: int | None = None) -> list[int]:
    """Return the successes of each subject in the edition ``paper``."""
    found = lives(agent, name, subjects or subjects_of(name))
    return [sum(trial.success for trial in life) for life in found]


def asked_of_package(python: Path, question: dict[str, Any]) -> Any:
    """Return the answer of the package's agents to a question; see
    ``tests/peer/agents_driver.py``.
    """
    driver = PROJECT / "tests" / "peer" / "agents_driver.py"
    child = subprocess.run(
        [python, driver],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        check=True,
        cwd=driver.parent,
    )
    return json.loads(child.stdout)


def there(python: Path, agent: str, name: str) -> list[int]:
    """Return the successes of each seed in the published package."""
    task = TASKS[name]
    found: list[int] = asked_of_package(
        python,
        {
            "agent": agent,
            "task": task.package,
            "seeds": list(range(subjects_of(name))),
            "trials": task.trials,
            "steps": task.steps,
        },
    )
    return found


def shown(successes: Sequence[int], trials: int) -> str:
    """Return the rate in percent with its 95 % interval over subjects.

    The interval is at least as wide as for independent trials, because some agents have
    few subjects.
    """
    mean, error = rate_of(successes, trials)
    share, number = mean / 100, trials * len(successes)
    least = 100 * math.sqrt(share * (1 - share) / number)
    return f"{mean:.0f} ± {1.96 * max(error, least):.0f}"


def table(measured: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    header = ["protocol"]
    for agent in AGENTS:
        header += [f"`{agent}`: published", "package", "here"]
    lines = [header, ["---"] + ["--:"] * (len(header) - 1)]
    for name, task in TASKS.items():
        line = [f"`{name}@paper`"]
        for agent, row in AGENTS.items():
            rate = published()["baselines"][row]["rates"][name]
            cells = measured[agent][name]
            line.append(f"{100 * rate:.0f}")
            line += [shown(cells[where], task.trials) for where in ("package", "here")]
        lines.append(line)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Measure, print the table, and store it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, metavar="PYTHON")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    measured = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for agent in AGENTS:
        for name in TASKS:
            cell = measured.setdefault(agent, {}).setdefault(name, {})
            cell["here"] = here(agent, name)
            if asked.peer:
                cell["package"] = there(asked.peer, agent, name)
            print(agent, name, cell, file=sys.stderr, flush=True)
    found = table(measured)
    print(found)
    if asked.write:
        KEPT.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        fill(PAGE, "agents", f"\n{found}")


if __name__ == "__main__":
    main()
