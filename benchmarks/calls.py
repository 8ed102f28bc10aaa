"""Measures the speed and the cost of runs that ask a model, against a local server in a
process of its own.

Three runs by default: nine protocols in three text views, at capacity 64, with one
subject per cell and with several (a run can be ``times faster`` than one call at a time
only with that many lives); and forty subjects of nine protocols at capacity 256,
measured while there are subjects for the whole capacity. ``--long`` makes 100,000 calls
instead, for the memory.

The bound of a run is the longest chain of calls of one subject, or all calls over the
server's capacity, whichever is larger, times its latency. The column for one call at a
time is for the same cells with one call in flight, measured over some calls and
multiplied. ``served`` comes from the server itself: the calls that it is serving, as a
share of its capacity; ``calls/s, %`` is its number of replies per second, as a share of
capacity / latency. CPU time of a call is that of this process alone: prompts, client,
parser, steps and log.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import common

from cheesebench.experiment.cells import find_design, language_model, plan_cell
from cheesebench.experiment.language_models import CallOptions, LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue

#: Latency of the server in seconds: ``LATENCY`` normally, ``BRIEF`` in the long run.
LATENCY, BRIEF = 0.2, 0.02
#: Reply of the server, for a subject that moves and turns, and never looks.
REPLY = "LEARNINGS: none\nACTIONS: FORWARD, FORWARD, ROTATE_LEFT, FORWARD, FORWARD, FORWARD, ROTATE_RIGHT, FORWARD"
VIEWS = ("ascii_2d", "ascii_2d_fpv", "ascii_3d")
#: Number of calls made one at a time, to measure a single call.
ONE_BY_ONE = 60
#: The measured part of a run, in seconds from its start. It has enough subjects, the
#: limiter has opened, and everything is compiled.
STEADY = (6.0, 18.0)
#: ``LONG`` is the number of calls in the long run, ``READINGS`` the numbers of calls
#: after which the memory is read.
LONG, READINGS = 100_000, (10_000, 50_000, 100_000)
MB = 1024**2


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A run with this many subjects of every protocol in every view, with this many
    trials each (None: the protocol's).
    """

    subjects: int
    capacity: int
    latency: float
    views: tuple[str, ...] = VIEWS
    trials: int | None = None
    concurrency: int | None = None

    @property
    def name(self) -> str:
        """The name of the row."""
        return f"{self.subjects} subjects a cell, capacity {self.capacity}"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The state of a run at one moment: calls, lives, the server's own figures, and
    bytes of this process.
    """

    time: float
    calls: int
    lives: int
    memory: int
    cpu: float
    server: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A finished run, with samples from start to end. ``log`` is empty if it was not
    requested.
    """

    setup: Setup
    cells: int
    samples: list[Sample]
    seconds: float
    cpu: float
    calls: int
    longest: int
    text: int
    size: int


@contextmanager
def server(latency: float, capacity: int) -> Iterator[str]:
    """Run the server and yield its URL."""
    command = [sys.executable, "-m", "cheesebench.testing.fake_server", "--text", REPLY]
    command += ["--latency", str(latency), "--capacity", str(capacity)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def run(
    setup: Setup, enough: Callable[[Sample], bool] = lambda sample: False
) -> Outcome:
    """Make a run with a server of its own, until the run is finished or ``enough``
    returns true.
    """
    plugins = installed_plugins()
    catalogue = Catalogue(plugins.protocol_directories[:1])
    names = [name for name in catalogue.files if "." not in name]
    with (
        server(setup.latency, setup.capacity) as base_url,
        tempfile.TemporaryDirectory() as directory,
    ):
        model = language_model(
            plugins, resolve_model(plugins, "openai/tiny"), base_url=base_url
        )
        design = find_design("cohort", setup.subjects)
        cells = {}
        for protocol in map(catalogue.find, names):
            for view in setup.views:
                plan = plan_cell(
                    protocol, "tiny", view, design, agent="llm", settings=model.settings
                )
                trials = (
                    plan.trials
                    if setup.trials is None
                    else min(setup.trials, plan.trials)
                )
                cells[replace(plan, trials=trials)] = protocol
        with RunLog.create(
            Path(directory), "run", cells.items(), options={"seed": 0}
        ) as log:
            options = CallOptions(concurrency=setup.concurrency or setup.capacity)
            language = LanguageModels(log, {"tiny": model}, options)
            samples: list[Sample] = []
            cpu, start = time.process_time(), time.perf_counter()

            def look() -> Sample:
                with urllib.request.urlopen(
                    base_url.removesuffix("/v1") + "/stats", timeout=30
                ) as answer:
                    said = json.load(answer)
                lives = log.select("SELECT count(*) FROM lives")[0][0]
                calls, passed = language.budget.spent.calls, time.perf_counter() - start
                now = Sample(
                    time=passed,
                    calls=calls,
                    lives=lives,
                    memory=memory(),
                    cpu=time.process_time(),
                    server=said,
                )
                samples.append(now)
                return now

            with RunSession(
                log, plugins, cells, seed=0, processes=1, language=language
            ) as session:
                session.start()
                for plan in cells:
                    while not session.wait(plan, 0.5) and not enough(look()):
                        pass
                    if samples and enough(samples[-1]):
                        break
                look()
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            # Data in the write-ahead log count towards the size of the file.
            log.select("PRAGMA wal_checkpoint(TRUNCATE)")
            life = "SELECT count(*) AS n FROM calls GROUP BY model, protocol, view, variant, subject"
            texts = "sum(length(CAST(asked AS BLOB)) + length(CAST(reply AS BLOB)))"
            text = log.select(f"SELECT {texts} FROM calls")[0][0]
            text += log.select("SELECT sum(length(CAST(text AS BLOB))) FROM texts")[0][
                0
            ]
            return Outcome(
                setup=setup,
                cells=len(cells),
                samples=samples,
                seconds=seconds,
                cpu=cpu,
                calls=log.calls.totals().calls,
                longest=log.select(f"SELECT max(n) FROM ({life})")[0][0],
                text=text,
                size=log.path.stat().st_size,
            )


def finished(setup: Setup) -> dict[str, float]:
    """Return the figures of a run that is finished."""
    some = run(replace(setup, concurrency=1), lambda sample: sample.calls >= ONE_BY_ONE)
    # The time runs from the first sample with a call to the last sample, so that the
    # start and the end of the run do not count.
    first, last = (
        next(sample for sample in some.samples if sample.calls),
        some.samples[-1],
    )
    one = (last.time - first.time) / (last.calls - first.calls)
    whole = run(setup)
    bound = setup.latency * max(whole.longest, whole.calls / setup.capacity)
    return {
        "calls": whole.calls,
        "longest chain": whole.longest,
        "wall s": whole.seconds,
        "over bound": whole.seconds / bound,
        "one by one, s": one,
        "times faster": one * whole.calls / whole.seconds,
        **costs(whole),
    }


def steady(setup: Setup) -> dict[str, float]:
    """Return the figures of the part of a run with enough subjects for the whole
    capacity.
    """
    part = run(setup, lambda sample: sample.time > STEADY[1])
    subjects = part.cells * setup.subjects
    busy = [
        s
        for s in part.samples
        if STEADY[0] <= s.time and subjects - s.lives >= setup.capacity
    ]
    first, last = busy[0], busy[-1]
    seconds, clock = (
        last.time - first.time,
        last.server["clock"] - first.server["clock"],
    )
    rate = (last.calls - first.calls) / seconds
    served = last.server["calls"] - first.server["calls"]
    return {
        "calls": last.calls - first.calls,
        "wall s": seconds,
        "calls/s": rate,
        "calls/s, %": 100 * rate * setup.latency / setup.capacity,
        "served, %": 100
        * (last.server["busy"] - first.server["busy"])
        / clock
        / setup.capacity,
        "CPU ms a call": 1000 * (last.cpu - first.cpu) / (last.calls - first.calls),
        "server, CPU ms a call": 1000
        * (last.server["cpu"] - first.server["cpu"])
        / served,
    }


def long(setup: Setup) -> dict[str, float]:
    """Return the memory of this process in MB after each number of calls in
    ``READINGS``.
    """
    whole = run(setup, lambda sample: sample.calls >= LONG)
    readings = {
        f"MB at {n:,}": next(
            (s.memory / MB for s in whole.samples if s.calls >= n), 0.0
        )
        for n in READINGS
    }
    return {"calls": whole.calls, "wall s": whole.seconds, **readings, **costs(whole)}


def costs(outcome: Outcome) -> dict[str, float]:
    """Return what a run costs apart from time."""
    return {
        "CPU ms a call": 1000 * outcome.cpu / outcome.calls,
        "log over text": outcome.size / outcome.text,
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def memory() -> int:
    """Return the memory of this process in bytes: the current value, or the maximum so
    far if the current value cannot be read.
    """
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Take the requested measurements, and print them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--latency",
        type=float,
        default=LATENCY,
        help="seconds of a call (default: %(default)s)",
    )
    parser.add_argument(
        "--subjects",
        type=int,
        nargs="+",
        default=[1, 2],
        help="subjects of a cell (default: 1 2)",
    )
    parser.add_argument(
        "--trials", type=int, default=3, help="most trials of each of them (default: 3)"
    )
    parser.add_argument(
        "--only",
        choices=("paper", "steady"),
        help="only the first two runs, or the third",
    )
    parser.add_argument(
        "--long",
        action="store_true",
        help=f"{LONG:,} calls of {1000 * BRIEF:g} ms, and their memory",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="PATH",
        help="write the figures to this file, for pyperf",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="put the figures into measured/, for the documentation",
    )
    options = parser.parse_args()
    table: common.Table = {}
    if options.long:
        setup = Setup(subjects=1000, capacity=64, latency=BRIEF, views=VIEWS[:1])
        table[setup.name] = long(setup)
    elif options.only != "steady":
        for subjects in options.subjects:
            setup = Setup(
                subjects=subjects,
                capacity=64,
                latency=options.latency,
                trials=options.trials,
            )
            table[setup.name] = finished(setup)
    if not options.long and options.only != "paper":
        setup = Setup(
            subjects=40, capacity=256, latency=options.latency, views=VIEWS[:1]
        )
        table[setup.name] = steady(setup)
    if options.keep:
        common.keep("calls", table)
    common.report("calls", table, options.json)


if __name__ == "__main__":
    main()
