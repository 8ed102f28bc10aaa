"""The common parts of all benchmarks: command line, timing, tables, and JSON for
pyperf.

Times are CPU seconds of this process. The minimum of several repetitions is shown,
because other programs may use the machine at the same time. The JSON has all
repetitions, so that pyperf can distinguish a difference from noise.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tabulate import tabulate

from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue, Specification

if TYPE_CHECKING:
    import pyperf


#: The nine paradigms.
NINE = (
    *(
        "barnes_maze",
        "dnms",
        "morris_water_maze",
        "operant_chamber",
        "place_preference",
    ),
    *("radial_arm_maze", "shuttle_box", "star_maze", "t_maze"),
)

#: Figures that the documentation quotes (``pages.py``). They are stored, because they
#: take long to measure.
MEASURED = Path(__file__).parent / "measured"


@dataclass(frozen=True)
class Times:
    """The times of a piece of work in seconds, one for each repetition."""

    values: tuple[float, ...]

    @property
    def least(self) -> float:
        """The minimum."""
        return min(self.values)

    def each(self, number: int) -> Times:
        """Return the times of one of ``number`` equal parts."""
        return Times(tuple(value / number for value in self.values))


#: Row -> column -> number, or times. A column's name ends in its unit: ``/s``, ``s``,
#: ``ms``, ``us``, ``MB``, or none.
Row = dict[str, float | Times]
Table = dict[str, Row]

#: Number of repetitions of a piece of work.
REPETITIONS = 5
#: ``SECONDS`` has the units of time in seconds, ``BYTES`` the units of memory in bytes.
SECONDS, BYTES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}, {"MB": 2**20}


def cpu_times(work: Callable[[], object], repetitions: int = REPETITIONS) -> Times:
    """Return the CPU times that ``work`` took."""
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return Times(tuple(times))


def arguments(
    about: str | None, *, protocols: bool = True, keeps: bool = False
) -> argparse.Namespace:
    """Read the command line: ``--json PATH``, ``--keep`` if a page has the figures, and
    protocol files or names.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="PATH",
        help="write the figures to this file, for pyperf",
    )
    if keeps:
        parser.add_argument(
            "--keep",
            action="store_true",
            help="put the figures into measured/, for the documentation",
        )
    if protocols:
        parser.add_argument(
            "protocols",
            nargs="*",
            help="protocol files, or names of shipped ones (default: all)",
        )
    return parser.parse_args()


def specifications(named: list[str]) -> Iterator[Specification]:
    """Yield the requested protocols, or all shipped ones."""
    catalogue = Catalogue(installed_plugins().protocol_directories)
    for name in named or sorted(catalogue.files):
        yield catalogue.load(catalogue.files.get(name, Path(name)))


def report(benchmark: str, table: Table, path: Path | None = None) -> None:
    """Print the table; write it to ``path`` for ``pyperf compare_to``."""
    columns = list(dict.fromkeys(column for row in table.values() for column in row))
    rows = [
        [name, *(shown(column, row.get(column)) for column in columns)]
        for name, row in table.items()
    ]
    print(
        tabulate(
            rows,
            [benchmark, *columns],
            colalign=("left", *["right"] * len(columns)),
            disable_numparse=True,
        )
    )
    if path is not None:
        suite(benchmark, table).dump(str(path), replace=True)


def keep(benchmark: str, table: Table) -> None:
    """Merge rows into the stored figures for the documentation; rows that were not
    measured stay unchanged.
    """
    path = MEASURED / f"{benchmark}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    now = {
        "machine": machine(),
        "load": round(os.getloadavg()[1], 1),
        "commit": commit(),
    }
    for name, row in table.items():
        kept[name] = {
            column: float(f"{value:.4g}")
            for column, value in row.items()
            if isinstance(value, float | int)
        }
        kept[name] |= now
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def machine() -> str:
    """Return a description of this machine."""
    cores = len(os.sched_getaffinity(0))
    return f"{cores} virtual cores, {platform.system()}, Python {platform.python_version().rpartition('.')[0]}"


def shown(column: str, cell: float | Times | None) -> str:
    """Return a number with about three digits; for times, the minimum in the column's
    unit.
    """
    if isinstance(cell, Times):
        cell = (
            1 / cell.least
            if column.endswith("/s")
            else cell.least / SECONDS[unit(column)]
        )
    if cell is None:
        return "-"
    return f"{cell:,.0f}" if cell >= 100 else f"{cell:.3g}"


def unit(column: str) -> str:
    """Return the last word of a column's name."""
    return column.split()[-1]


def suite(benchmark: str, table: Table) -> pyperf.BenchmarkSuite:
    """Return all times (of a step, a call and so on) and all sizes as a suite of
    pyperf. Other numbers, such as shares, cannot be compared.
    """
    import pyperf

    found, made_of = [], commit() or "none"
    for name, row in table.items():
        for column, cell in row.items():
            kind, values = "second", ()
            if isinstance(cell, Times):
                values = cell.values
            elif column.endswith("/s"):
                values = (1 / cell,)
            elif unit(column) in SECONDS:
                values = (cell * SECONDS[unit(column)],)
            elif unit(column) in BYTES:
                kind, values = "byte", (round(cell * BYTES[unit(column)]),)
            if values and min(values) > 0:
                metadata = {
                    "name": f"{benchmark}: {name}, {column}",
                    "unit": kind,
                    "commit": made_of,
                }
                found.append(
                    pyperf.Benchmark(
                        [
                            pyperf.Run(
                                values, metadata=metadata, collect_metadata=not found
                            )
                        ]
                    )
                )
    return pyperf.BenchmarkSuite(found)


def commit() -> str:
    """Return the commit of this working tree, with ``+`` if it was changed, or ""
    outside one.
    """
    command = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--dirty=+",
        "--exclude=*",
    ]
    return subprocess.run(
        command, capture_output=True, text=True, check=False
    ).stdout.strip()
