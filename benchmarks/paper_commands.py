"""Carries out every command of docs/papers.md as a reader types it, and keeps its
result:

    python benchmarks/paper_commands.py FOLDER --scores scores.csv --minutes 20

Run it in an environment with CheeseBench, if possible in a fresh clone. FOLDER gets the
example runs and the files that the commands write. Runs have the seed 0, and their
success rates are kept, for the page. A command with a kept result is not carried out
again, except with ``--only TEXT``, which carries out all commands with this text and no
others. A command that takes more than ``--minutes`` is stopped, and its result is not
kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import cheesebench

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

PAGE = PROJECT / "docs" / "papers.md"
KEPT = PROJECT / "benchmarks" / "measured" / "paper_commands.json"
#: ``EXAMPLE`` is the run in the examples of the page. ``EXAMPLES`` are the runs that
#: replace it, one of trials and one of dialogues.
EXAMPLE = "20250131-093000-ab12"
EXAMPLES = {
    "trials": "pytest --model random --edition paper --protocols t_maze@paper",
    "dialogues": "pytest --model random-walk --protocols cogeval -k n7line",
}


class Done(NamedTuple):
    """The end of a command: its exit code, and the last lines that it printed."""

    code: int
    said: str


def commands() -> list[str]:
    """Return the commands in the last column of the page's tables."""
    rows = [
        line.strip("|\n").split(" | ")[-1]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    found = (re.findall(r"`((?:cheesebench|pytest) [^`]+)`", row) for row in rows)
    return sorted({command for row in found for command in row})


def carried_out(command: str, here: Path, seconds: float) -> Done | None:
    """Return the end of a command, or None if it takes longer than this."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTEST_ADDOPTS": "--seed 0 --cheese-run-id this",
    }
    if command.startswith("pytest"):
        shutil.rmtree(here / "results" / "this", ignore_errors=True)
    try:
        done = subprocess.run(
            ["bash", "-c", command], cwd=here, env=environment, timeout=seconds,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    return Done(done.returncode, (done.stdout + done.stderr)[-2000:])


def rates(run: Path) -> dict[str, dict[str, float]]:
    """Return the success rates of a run's plain cells in percent, by their views."""
    found = dict[str, dict[str, float]]()
    for cell in cheesebench.open_run(run).summary.cells:
        if cell.rate is not None and not str(cell.plan.variant):
            rate = round(100 * cell.rate, 2)
            found.setdefault(cell.plan.view, {})[cell.plan.protocol] = rate
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--scores", type=Path, metavar="CSV", required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--only", metavar="TEXT")
    asked = parser.parse_args()
    here = asked.folder
    here.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(asked.scores, here / "scores.csv")
    for name, command in EXAMPLES.items():
        if not (here / "results" / name).exists():
            carried_out(f"{command} --cheese-run-id {name}", here, 600)
    kept: dict[str, Any] = (
        json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    )
    for command in commands():
        if command in kept if asked.only is None else asked.only not in command:
            continue
        example = "dialogues" if "cogeval-stats" in command else "trials"
        done = carried_out(command.replace(EXAMPLE, example), here, 60 * asked.minutes)
        print(f"{'cut off' if done is None else done.code}\t{command}", flush=True)
        if done is None:
            continue
        kept[command] = {"exit": done.code}
        if command.startswith("pytest") and "Report: " in done.said:
            kept[command]["rates"] = rates(here / "results" / "this")
        elif done.code:
            print(done.said, file=sys.stderr)
        text = json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False)
        KEPT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
