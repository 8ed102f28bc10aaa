"""What all benchmarks share: the command line, taking the time, the table, and the JSON that compare.py reads.

Times are CPU seconds of this process, and the least of several repetitions: the machine may do other things meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tabulate import tabulate

from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification

#: Row -> column -> number. A column whose name ends in "/s" is better the larger it is, every other the smaller.
Table = dict[str, dict[str, float]]


#: Times that a measured piece of work is done; the least counts.
REPETITIONS = 5


def least_cpu(work: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """Return the least CPU time that ``work`` took, in seconds."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def arguments(about: str | None, *, protocols: bool = True) -> argparse.Namespace:
    """Read the command line: ``--json PATH``, and protocol files or names."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures to this file, for compare.py")
    if protocols:
        parser.add_argument("protocols", nargs="*", help="protocol files, or names of shipped ones (default: all)")
    return parser.parse_args()


def specifications(named: list[str]) -> Iterator[Specification]:
    """Yield the protocols that were asked for, or all that are shipped."""
    catalogue = Catalogue(installed_plugins().protocol_directories)
    for name in named or sorted(catalogue.files):
        yield catalogue.load(catalogue.files.get(name, Path(name)))


def report(benchmark: str, table: Table, path: Path | None = None) -> None:
    """Print the table; write it to ``path`` together with what it was measured on."""
    columns = list(dict.fromkeys(column for row in table.values() for column in row))
    rows = [[name, *(shown(row.get(column)) for column in columns)] for name, row in table.items()]
    print(tabulate(rows, [benchmark, *columns], colalign=("left", *["right"] * len(columns)), disable_numparse=True))
    if path is not None:
        content = {"benchmark": benchmark, "machine": machine(), "commit": commit(), "table": table}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def shown(number: float | None) -> str:
    """Return a number with about three digits."""
    if number is None:
        return "-"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def machine() -> Mapping[str, object]:
    """Return what the figures depend on besides the code."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }


def commit() -> str:
    """Return the commit of this working tree, with ``+`` when it was changed; empty outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
