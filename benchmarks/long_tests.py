"""Lists the tests that take more than 0.4 seconds of CPU time, or wait for more than
three seconds, in ``tests/long.txt``.

    python benchmarks/long_tests.py            # measures for an hour, writes the list
    python benchmarks/long_tests.py TABLE...   # writes it from measured tables

They are an eighth of the suite, take nine tenths of its time, and carry the marker
``long``: ``pytest`` leaves them out, ``pytest -m long`` and ``.ci/run`` run them. CPU
time includes that of child processes. It hardly depends on what else runs on the
machine, but the time that a test waits does: measure on an idle one.

This module is also the plugin that measures: each process appends to a table of its own
the seconds of CPU, the seconds of waiting and the id of every test, separated by tabs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "long.txt"
#: A test that takes at least this many seconds of CPU time is long.
LONG = 0.4
#: So is a test that waits this many seconds, such as for a server's timeout.
WAITS = 3.0
#: Environment variable that names the directory of the tables.
TABLES = "CHEESEBENCH_TEST_TIMES"


def cpu() -> float:
    """Return the seconds of CPU of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    begun, began = cpu(), time.monotonic()
    outcome = yield
    spent, waited = cpu() - begun, time.monotonic() - began
    table = Path(os.environ[TABLES]) / f"{os.getpid()}.tsv"
    with table.open("a", encoding="utf-8") as file:
        file.write(f"{spent:.2f}\t{waited - spent:.2f}\t{item.nodeid}\n")
    return outcome


def measure() -> list[Path]:
    """Run the short and the long tests; return the tables of all processes."""
    directory = Path(tempfile.mkdtemp())
    for chosen in ([], ["-m", "long"]):
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "long_tests", *chosen],
            cwd=ROOT,
            env={
                **os.environ,
                TABLES: str(directory),
                "PYTHONPATH": str(Path(__file__).parent),
            },
            check=False,  # The time of a test is also measured if it fails.
        )
    return sorted(directory.glob("*.tsv"))


def long_ones(tables: Iterable[Path]) -> dict[str, float]:
    """Return the seconds of CPU of the tests that are long, by id."""
    lines = [line for table in tables for line in table.read_text("utf-8").splitlines()]
    rows = sorted(line.split("\t")[::-1] for line in lines)
    return {
        name: float(spent)
        for name, waited, spent in rows
        if float(spent) >= LONG or float(waited) >= WAITS
    }


def main() -> None:
    found = long_ones(map(Path, sys.argv[1:]) if len(sys.argv) > 1 else measure())
    LIST.write_text("".join(f"{name}\n" for name in found), encoding="utf-8")
    print(f"{len(found)} long tests take {sum(found.values()):.0f} s of CPU: {LIST}")


if __name__ == "__main__":
    main()
