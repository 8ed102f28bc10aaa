"""Runs that ask a model, against a local server in a process of its own: how close to the bound, at which cost.

The bound of a run is the longest chain of calls of one subject, or all calls over the server's capacity, whichever is
larger, times its latency. CPU time is that of this process alone: prompts,
client, parser, steps and log.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import common

from cheesebench.experiment.contestants import language_model
from cheesebench.experiment.designs import find_design, plan_cell
from cheesebench.experiment.language_models import CallOptions, LanguageModels
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import installed_plugins
from cheesebench.protocol import Catalogue

LATENCY = 0.2
#: What the server answers: a subject that moves and turns, and never looks.
REPLY = "LEARNINGS: none\nACTIONS: FORWARD, FORWARD, ROTATE_LEFT, FORWARD, FORWARD, FORWARD, ROTATE_RIGHT, FORWARD"
VIEWS = ("ascii_2d", "ascii_2d_fpv", "ascii_3d")


@contextmanager
def server(latency: float, capacity: int) -> Iterator[str]:
    """Run the server and yield its URL."""
    command = [sys.executable, "-m", "cheesebench.fake_server", "--text", REPLY]
    command += ["--latency", str(latency), "--capacity", str(capacity)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def measure(latency: float, capacity: int, subjects: int, trials: int | None) -> dict[str, float]:
    """Return the figures of one run: nine protocols in three views (as far as there are), so many subjects each."""
    plugins = installed_plugins()
    catalogue = Catalogue(plugins.protocol_directories[:1])
    names = [name for name in catalogue.files if "." not in name]
    views = [view for view in VIEWS if view in plugins.views]
    with server(latency, capacity) as base_url, tempfile.TemporaryDirectory() as directory:
        model = language_model(plugins, resolve_model(plugins, "openai/tiny"), base_url=base_url)
        design = find_design("cohort", subjects)
        cells = {}
        for protocol in map(catalogue.find, names):
            for view in views:
                plan = plan_cell(protocol, "tiny", view, design, agent="llm", settings=model.settings)
                cells[plan if trials is None else replace(plan, trials=min(trials, plan.trials))] = protocol
        with RunLog.create(Path(directory), "run", cells.items(), options={"seed": 0}) as log:
            options = CallOptions(concurrency=capacity)
            language = LanguageModels(log, {"tiny": model}, options)
            cpu, start = time.process_time(), time.perf_counter()
            with RunSession(log, plugins, cells, seed=0, processes=1, language=language) as session:
                session.start()
                for plan in cells:
                    while not session.wait(plan, 60):
                        pass
            seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
            totals = log.calls.totals()
            life = "SELECT count(*) AS n FROM calls GROUP BY model, protocol, view, variant, subject"
            longest = log.select(f"SELECT max(n) FROM ({life})")[0][0]
            texts = "sum(length(CAST(asked AS BLOB)) + length(CAST(reply AS BLOB)))"
            text = log.select(f"SELECT {texts} FROM calls")[0][0]
            text += log.select("SELECT sum(length(CAST(text AS BLOB))) FROM texts")[0][0]
            size = log.path.stat().st_size
        bound = latency * max(longest, totals.calls / capacity)
        return {
            "cells": len(cells),
            "calls": totals.calls,
            "wall s": seconds,
            "over bound": seconds / bound if bound else 0.0,
            "times faster": totals.calls * latency / seconds,
            "capacity used": totals.calls * latency / capacity / seconds,
            "CPU ms a call": 1000 * cpu / totals.calls,
            "log over text": size / text,
            "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }


def main() -> None:
    """Measure what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--latency", type=float, default=LATENCY, help="seconds of a call (default: 0.2)")
    parser.add_argument("--capacity", type=int, default=64, help="calls that the server takes at once (default: 64)")
    parser.add_argument("--subjects", type=int, default=1, help="subjects of each cell (default: 1)")
    parser.add_argument("--trials", type=int, help="trials of each subject (default: the protocol's)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures to this file, for compare.py")
    options = parser.parse_args()
    name = f"{options.subjects} subjects, capacity {options.capacity}"
    figures = measure(options.latency, options.capacity, options.subjects, options.trials)
    common.report("calls", {name: figures}, options.json)


if __name__ == "__main__":
    main()
