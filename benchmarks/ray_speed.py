"""Measures how many T-maze trials of the random agent run per second on a Ray cluster,
and in the local pool on as many cores.

Both run the same cells with the same number of processes, in turns, and the best of
several is shown. The clocks start when the first trial is written and stop at the last:
starting Ray, or worker processes, has a column of its own. *CPU* is that of all
processes, Ray's own included, in milliseconds for each trial. If the cores are busy,
the speed depends on this figure; other programs on the machine hardly affect it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from pathlib import Path

import common
from whole_runs import family

from cheesebench.experiment.cells import find_design
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.family import CellRequest
from cheesebench.plugin_manager import PluginManager

#: Seconds between two checks of the log.
LOOK = 0.02


def spent() -> float:
    """Return the CPU seconds of this process and all that it has started."""
    ticks = 0
    for process in family(os.getpid()):
        with contextlib.suppress(OSError):
            fields = (
                Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            )
            # The fields have the ticks of the process itself and of its ended children.
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def run(executor: str, subjects: int, processes: int) -> dict[str, float]:
    """Run ``subjects`` subjects once; return the figures."""
    plugins = PluginManager()
    [specification] = common.specifications(["t_maze"])
    request = CellRequest(
        model="random",
        plugins=plugins,
        design=find_design("cohort", subjects),
        views=("ascii_2d",),
    )
    cells = dict.fromkeys(
        plugins.family(specification).cells(specification, request), specification
    )
    given = {"address": "local"} if executor == "ray" else {}
    start = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as directory,
        RunLog.create(
            Path(directory), executor, cells.items(), options={"seed": 1}
        ) as log,
        RunSession(
            log,
            plugins,
            cells,
            seed=1,
            processes=processes,
            executor=executor,
            executor_options=given,
        ) as session,
    ):
        session.connect()
        session.start()
        [plan] = cells
        while not session.progress(plan).done:
            time.sleep(LOOK)
        first, before, used = time.perf_counter(), session.progress(plan).done, spent()
        session.finish()
        seconds, used = time.perf_counter() - first, spent() - used
        done = session.progress(plan).done - before
    return {
        "trials": done,
        "start s": first - start,
        "wall s": seconds,
        "trials/s": done / seconds,
        "CPU ms": 1000 * used / done,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="PATH",
        help="write the figures to this file, for pyperf",
    )
    parser.add_argument(
        "--subjects",
        type=int,
        default=2778,
        metavar="N",
        help="of 36 trials (default: 100,000 trials)",
    )
    parser.add_argument("--repetitions", type=int, default=3, metavar="N")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="put the figures into measured/, for the documentation",
    )
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    found: dict[str, list[dict[str, float]]] = {"local": [], "ray": []}
    for _ in range(options.repetitions):
        for executor, figures in found.items():
            figures.append(run(executor, options.subjects, cores))
            print(executor, figures[-1], flush=True)
    table = {
        name: min(figures, key=lambda one: one["CPU ms"])
        for name, figures in found.items()
    }
    local, ray = table["local"], table["ray"]
    print(
        f"{cores} cores; load {os.getloadavg()[0]:.1f}; speed of ray / local: ", end=""
    )
    print(
        f"{ray['trials/s'] / local['trials/s']:.2f} by the clock, {local['CPU ms'] / ray['CPU ms']:.2f} by CPU time"
    )
    if options.keep:
        common.keep("ray_speed", {name: dict(row) for name, row in table.items()})
    common.report(
        "executors", {name: dict(row) for name, row in table.items()}, options.json
    )
