"""Counts the tokens that a small model on this machine computes, with CheeseBench and
in a bare loop with the same prompts, and what llama.cpp's own choice of a slot costs.

    python benchmarks/prompt_cache.py --output benchmarks/measured/prompt_cache.json

A run of the smoke design gives the prompts (of two protocols, rebuilt from its log).
They are sent again, in the same order, to a server with the same settings, without
CheeseBench. Then four lives with five calls each are sent in turn to a server with our
settings, and to one with llama.cpp's default, where a prompt takes the slot whose last
prompt has the same beginning. *Computed* are tokens of prompts that were in no cache.
CPU seconds are those of the server and, for the run, also of CheeseBench; they are
meaningful only on an idle machine. It needs the extra ``local`` and the model's
weights.
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
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tabulate import tabulate

from cheesebench import BackendContext, ChatRequest
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import RebuiltCall, rebuild_calls
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.backends.llamacpp import cores, threads_for
from cheesebench.plugins.backends.openai import encode
from cheesebench.plugins.backends.processes import free_port, is_healthy
from cheesebench.plugins.backends.weights import weights

#: Number of calls of each life in the measurements in which lives take turns.
CALLS = 5
#: llama.cpp's default: the common part of a prompt for which its slot is taken.
DEFAULT = 0.1
PROTOCOLS = "t_maze,operant_chamber"
#: Tokens of a reply in the bare loops, which only compare prompts.
REPLY = 8
SERVER = """
import json, sys, threading, xllamacpp
path, port, slots, similarity, threads = json.loads(sys.argv[1])
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.port, parameters.n_parallel = path, port, slots
parameters.n_ctx, parameters.slot_prompt_similarity = 8192 * slots, similarity
parameters.cache_ram_mib, parameters.ui = 2048, False
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(parameters)
threading.Event().wait()
"""


@dataclass(frozen=True)
class Row:
    """The figures for one way of asking."""

    way: str
    calls: int
    prompt: int
    computed: int
    cpu: float
    """Seconds."""


def spent() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def by_the_product(model: str, place: Path) -> tuple[Row, list[RebuiltCall]]:
    """Make a run; return its figures, and its calls in the order of its log."""
    before = spent()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--model", model, "--protocols", PROTOCOLS, "--design", "smoke"]
    command += ["--seed", "0", "--run-id", "run", "--results", str(place)]
    subprocess.run(command, cwd=place, capture_output=True, check=False)
    cpu = spent() - before
    calls = logged(place / "run" / "run.sqlite")
    usages = [one.record.reply.usage for one in calls]
    prompt = sum(one.prompt for one in usages)
    computed = prompt - sum(one.cached for one in usages)
    return Row("a run", len(calls), prompt, computed, cpu), calls


def logged(path: Path) -> list[RebuiltCall]:
    """Return the calls of a log with their prompts, in the order of their replies."""
    plugins = installed_plugins()
    with RunLog.open_read_only(path) as log:
        order = log.select(
            "SELECT protocol, subject, trial, call FROM calls ORDER BY rowid"
        )
        found = {}
        for plan in log.plans():
            for subject in range(plan.subjects):
                *_, last = log.calls.of_life(plan, subject)
                wanted = (last.trial, last.call)
                for one in rebuild_calls(log, plugins, plan, subject, wanted):
                    key = (plan.protocol, subject, one.record.trial, one.record.call)
                    found[key] = one
    return [found[tuple(row)] for row in order]


def in_turn(calls: Sequence[RebuiltCall]) -> list[ChatRequest]:
    """Return the first calls of each life, in rounds that have one call of every
    life.
    """
    lives: dict[str, list[ChatRequest]] = defaultdict(list)
    for one in calls:
        lives[one.request.conversation].append(one.request)
    turns = zip(*(requests[:CALLS] for requests in lives.values()), strict=True)
    return [request for turn in turns for request in turn]


def asked_bare(way: str, requests: Sequence[ChatRequest], server: str) -> Row:
    """Ask a server in a loop; return the figures (the CPU time is added later)."""
    prompt = computed = 0
    for request in requests:
        body = json.loads(encode(request)) | {"max_tokens": REPLY}
        call = urllib.request.Request(
            f"{server}/v1/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(call) as response:
            usage = json.load(response)["usage"]
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        prompt += usage["prompt_tokens"]
        computed += usage["prompt_tokens"] - cached
    return Row(way, len(requests), prompt, computed, 0.0)


@contextmanager
def serving(file: Path, slots: int, similarity: float) -> Iterator[tuple[str, int]]:
    """Yield the address of a server, and its process."""
    port = free_port("127.0.0.1")
    settings = json.dumps([str(file), port, slots, similarity, threads_for(cores())])
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, settings],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not is_healthy("127.0.0.1", port):
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait()


def used(process: int) -> float:
    """Return the CPU seconds of a process that runs (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(model: str) -> list[Row]:
    """Return the rows of the table."""
    entry = resolve_model(installed_plugins(), model)
    with tempfile.TemporaryDirectory() as place:
        context = BackendContext(
            entry=entry, directory=Path(place), options=entry.options
        )
        file = weights(context)
        run, calls = by_the_product(model, Path(place))
    rows = [run]
    same, turns = [one.request for one in calls], in_turn(calls)
    for way, requests, slots, similarity in (
        ("the same prompts, in a bare loop", same, 1, 0.0),
        ("four lives in turn, as we start it", turns, 1, 0.0),
        ("four lives in turn, two slots", turns, 2, 0.0),
        ("four lives in turn, two slots, llama.cpp's default", turns, 2, DEFAULT),
    ):
        with serving(file, slots, similarity) as (server, process):
            before = used(process)
            row = asked_bare(way, requests, server)
            rows.append(replace(row, cpu=used(process) - before))
    return rows


def main() -> None:
    """Measure, print the table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rows = measure(options.model)
    table = [
        (one.way, one.calls, one.prompt, one.computed, f"{one.cpu / one.calls:.2f}")
        for one in rows
    ]
    names = ("", "calls", "prompt tokens", "computed", "CPU s a call")
    print(tabulate(table, headers=names, tablefmt="github"))
    if options.output:
        found = {"model": options.model, "rows": [asdict(one) for one in rows]}
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
