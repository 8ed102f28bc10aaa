"""Makes the board of the built-in agents on the frozen set, which is in
docs/results.md, by ``cheesebench report --board`` from the logs that are kept.

    python benchmarks/baseline_board.py --measure --write

``--measure`` runs the agents again, by the rules for entries of the board, and keeps
their logs. Without it, the board is made from the stored logs.
"""

from __future__ import annotations

import argparse
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))
from benchmarks.places import filled  # noqa: E402

KEPT = PROJECT / "benchmarks" / "measured" / "board"
#: The board made from the logs, as it appears on the page.
BOARD = KEPT / "board.md"
PAGE = PROJECT / "docs" / "results.md"
SET = "2026.1"
AGENTS = ("random", "tabular-ql", "hippocampal-ql", "place-learner")
LOG = "run.sqlite"
#: The declarations of an entry that is a program. It reads no prompts, and costs
#: nothing.
ENTRY = """trained_on: []
prompts: the set's
dollars: 0
failed_runs: []
contact: the maintainers
"""


def measure() -> None:
    """Run the agents by the rules of the board, and store their logs."""
    with tempfile.TemporaryDirectory() as here:
        for agent in AGENTS:
            words = ["--model", agent, "--set", SET, "--design", "leaderboard"]
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *words, "--run-id", agent],
                cwd=here,
                check=False,
            )
            assert done.returncode in (0, 1), f"{agent} was not run"
            log = Path(here) / "results" / agent / LOG
            (KEPT / f"{agent}.{LOG}.xz").write_bytes(lzma.compress(log.read_bytes()))


def made() -> str:
    """Return the board that the command makes from the stored logs."""
    with tempfile.TemporaryDirectory() as here:
        for agent in AGENTS:
            folder = Path(here) / "results" / agent
            folder.mkdir(parents=True)
            kept = KEPT / f"{agent}.{LOG}.xz"
            (folder / LOG).write_bytes(lzma.decompress(kept.read_bytes()))
            (folder / "entry.yaml").write_text(ENTRY, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "cheesebench", "report", *AGENTS, "--board"],
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout


def page(board: str) -> str:
    """Return the page with a board, without its title."""
    _, _, below = board.partition("\n\n")
    return filled(PAGE, "board", f"\n{below.rstrip()}\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if asked.measure:
        measure()
    board = made()
    print(board)
    if asked.write:
        BOARD.write_text(board, encoding="utf-8")
        PAGE.write_text(page(board), encoding="utf-8")


if __name__ == "__main__":
    main()
