"""Measures whole runs as a user starts them, each in an empty directory: wall time, CPU
time and peak memory of all processes.

Memory is the largest sum of the resident sizes of pytest and its workers, sampled ten
times a second (Linux only). Pages of memory that processes share are counted once for
each process, which adds some 55 MB. Other programs on the machine do not affect the
figure.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import common

COHORT = ["--design", "cohort"]
RUNS = {
    "no --model": [],
    "--collect-only": ["--model", "random", *COHORT, "--collect-only"],
    "random, cohort": ["--model", "random", *COHORT],
    "tabular-ql, cohort": ["--model", "tabular-ql", *COHORT],
    **{
        f"random, {subjects} subjects of t_maze": [
            "--model",
            "random",
            "--subjects",
            str(subjects),
            "-k",
            "t_maze",
        ]
        for subjects in (1, 10, 100, 1000)
    },
    **{
        f"random, {subjects} subjects of all nine": [
            "--model",
            "random",
            "--subjects",
            str(subjects),
        ]
        for subjects in (1, 100, 1000)
    },
}
#: Seconds between two checks of the memory.
INTERVAL = 0.1


def measure(given: list[str]) -> dict[str, float]:
    """Return the figures of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    peak = 0
    with tempfile.TemporaryDirectory() as directory:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *given,
        ]
        with subprocess.Popen(
            command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None:
                peak = max(peak, sum(map(memory, family(process.pid))))
                time.sleep(INTERVAL)
        seconds = time.perf_counter() - start
        logs = sum(path.stat().st_size for path in Path(directory).rglob("*.sqlite"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall s": seconds,
        "CPU s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak MB": peak / 2**20,
        "log MB": logs / 2**20,
    }


def family(process: int) -> list[int]:
    """Return a process and all its descendants that are still running."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The program's name, in parentheses, may contain anything; the parent is
            # the second word after it.
            parents[int(status.parent.name)] = int(
                status.read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
    found = [process]
    for parent in found:
        found += [
            child for child, its_parent in parents.items() if its_parent == parent
        ]
    return found


def memory(process: int) -> int:
    """Return the resident bytes of a process, or 0 when it has ended."""
    try:
        return (
            int(Path(f"/proc/{process}/statm").read_text().split()[1])
            * resource.getpagesize()
        )
    except OSError:
        return 0


if __name__ == "__main__":
    options = common.arguments(__doc__, protocols=False)
    print(f"{os.cpu_count()} cores")
    common.report(
        "whole runs",
        {name: measure(given) for name, given in RUNS.items()},
        options.json,
    )
