"""Writes stored figures, which take long to measure, into tables of the documentation.

A benchmark with ``--keep`` puts its results into ``measured/``. This program turns them
into the tables that follow ``<!-- measured: NAME -->`` in the pages, and a test
compares pages and results.

    python benchmarks/large_logs.py --keep
    python benchmarks/pages.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from common import MEASURED

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("performance.md", "prompts.md", "scale.md", "servers.md")
#: Pattern for a marker and the table after it.
BLOCK = re.compile(r"(<!-- measured: ([a-z-]+) -->\n)((?:.+\n)*)")
#: ``CALLS`` is the number of calls in each trial of the logs. ``SUBJECTS`` are the
#: numbers of subjects in the cells without calls.
CALLS, SUBJECTS = 10, (1_000, 10_000, 100_000)
#: The settings with which prompts are counted: ``HISTORIES`` has the histories,
#: ``ACTIONS`` the numbers of actions in a reply.
HISTORIES, ACTIONS = ("1", "3", "5", "3-7", "10"), (1, 4, 8, 16)
#: Maximum memory in MB that the pages promise for every command that reads a log,
#: however large the log is.
LIMIT = 300
#: The export that keeps a summary of each trial, because Inspect AI reads them as a
#: whole.
INSPECT = "export --inspect"
#: Commands whose rate counts calls instead of trials, because they read or check every
#: call.
PER_CALL = (
    "report",
    "report --html",
    "export --csv, calls",
    "export --parquet, calls",
    INSPECT,
    "merge",
    "write",
)

Row = dict[str, float]


def kept(benchmark: str) -> dict[str, Row]:
    """Return the stored figures of a benchmark, by row."""
    found: dict[str, Row] = json.loads(
        (MEASURED / f"{benchmark}.json").read_text(encoding="utf-8")
    )
    return found


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is text and whose others are
    numbers.
    """
    lines = [headers, ["---", *["--:"] * (len(headers) - 1)], *rows]
    joined = [f"| {' | '.join(line)} |" for line in lines]
    joined[1] = joined[1].replace(" ", "")
    return "\n".join(joined) + "\n"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with its significant digits, or a dash for None."""
    if value is None:
        return "–"
    rounded = float(f"{value:.{digits}g}")
    return (
        f"{rounded:,.0f}"
        if rounded >= 100 or rounded == int(rounded)
        else f"{rounded:g}"
    )


def sizes() -> list[int]:
    """Return the measured sizes of logs in trials, the largest last."""
    found = (
        re.fullmatch(r"([\d,]+) trials, ([\d,]+) calls: .*", name)
        for name in kept("large_logs")
    )
    pairs = {
        tuple(int(one.replace(",", "")) for one in name.groups())
        for name in found
        if name
    }
    return sorted(trials for trials, calls in pairs if calls == CALLS * trials)


def size(trials: int) -> str:
    """Return the beginning of the row names for a log of that size."""
    return f"{trials:,} trials, {trials * CALLS:,} calls"


def commands() -> list[str]:
    """Return the names of all commands that were measured with logs."""
    named = {
        name.partition(": ")[2] for name in kept("large_logs") if " trials, " in name
    }
    return sorted(named, key=lambda name: (name != "write", name))


def large_logs() -> str:
    """Return the memory of each command by the size of the log, and its rate with the
    largest.
    """
    found = kept("large_logs")
    headers = [
        "peak MB",
        *(f"{trials:,}" for trials in sizes()),
        "trials/s",
        "calls/s",
        "at trials",
    ]
    rows = []
    for command in commands():
        measured = {
            trials: found.get(f"{size(trials)}: {command}") for trials in sizes()
        }
        largest = max(trials for trials, row in measured.items() if row)
        row = measured[largest]
        assert row is not None
        rate = largest / row["CPU s"]
        name = "writing" if command == "write" else f"`{command}`"
        peaks = [number(one and one["peak MB"]) for one in measured.values()]
        calls = number(CALLS * rate, 2) if command in PER_CALL else "–"
        rows.append([name, *peaks, number(rate, 2), calls, f"{largest:,}"])
    return table(headers, rows)


def subjects() -> str:
    """Return the memory of the driver by the number of planned subjects."""
    found = kept("large_logs")
    headers = ["planned subjects", *(f"{subjects:,}" for subjects in SUBJECTS)]
    peaks = (
        number(found[f"{subjects:,} subjects: drive"]["peak MB"])
        for subjects in SUBJECTS
    )
    return table(headers, [["peak of the driver, MB", *peaks]])


def executors() -> str:
    """Return the cost of trials in the local pool and on a Ray cluster."""
    found = kept("ray_speed")
    columns = ("trials", "start s", "wall s", "trials/s", "CPU ms")
    rows = [
        [name, *(number(found[name][column]) for column in columns)]
        for name in ("local", "ray")
    ]
    local, ray = (found[name] for name in ("local", "ray"))
    speeds = (ray["trials/s"] / local["trials/s"], local["CPU ms"] / ray["CPU ms"])
    rows.append(
        ["ray / local, speed", "–", "–", "–", *(number(speed) for speed in speeds)]
    )
    return table(
        [
            "executor",
            "trials",
            "start, s",
            "wall, s",
            "trials/s",
            "CPU of all processes, ms a trial",
        ],
        rows,
    )


def calls() -> str:
    """Return the figures of a run that asks a model, and the memory of one with very
    many calls.
    """
    found = kept("calls")
    headers = [
        "run",
        "calls/s",
        "of the capacity",
        "served",
        "CPU, ms a call",
        "MB after 10,000 calls",
        "after 100,000",
    ]
    rows = []
    for name, row in sorted(found.items(), reverse=True):
        rate = row["calls/s"] if "calls/s" in row else row["calls"] / row["wall s"]
        shares = (
            f"{row[column]:.0f} %" if column in row else "–"
            for column in ("calls/s, %", "served, %")
        )
        memory = (number(row.get(f"MB at {calls:,}")) for calls in (10_000, 100_000))
        rows.append(
            [name, number(rate, 4), *shares, number(row["CPU ms a call"], 2), *memory]
        )
    return table(headers, rows)


def driver() -> str:
    """Return the limits of every run: those of the process that calls models and writes
    the log.
    """
    logs, calls = kept("large_logs"), kept("calls")
    largest = sizes()[-1]
    wrote = logs["100,000 trials, 0 calls: write"]
    [steady] = [row for name, row in calls.items() if "calls/s" in row]
    local = kept("ray_speed")["local"]
    few, many = (
        logs[f"{subjects:,} subjects: drive"]["peak MB"]
        for subjects in (SUBJECTS[0], SUBJECTS[-1])
    )
    each = (many - few) * 2**20 / (SUBJECTS[-1] - SUBJECTS[0])
    reading = [
        row["peak MB"]
        for name, row in logs.items()
        if name.startswith(size(largest))
        and not name.endswith(("write", "merge", INSPECT))
    ]
    written, lived = 100_000 / wrote["CPU s"], 1000 / local["CPU ms"]
    rows = [
        ["calls to models: CPU time of each, ms", number(steady["CPU ms a call"], 2)],
        [
            "calls to models, in a second of CPU time",
            number(1000 / steady["CPU ms a call"], 2),
        ],
        [
            "trials of random actions that are run and written, in a second of CPU time",
            number(lived, 2),
        ],
        [
            "trials without calls that are written, in a second of CPU time",
            number(written, 2),
        ],
        [
            "cores that random actions keep busy before the driver becomes the bottleneck",
            number(written / lived, 2),
        ],
        ["memory for each planned subject, bytes", number(each, 2)],
        [
            f"memory to read a log of {largest:,} trials and {CALLS * largest:,} calls, MB",
            number(max(reading)),
        ],
    ]
    return table(["the driver", "measured"], rows)


def prompts(protocol: str) -> str:
    """Return the characters of prompt for each step of a protocol, and the new part
    with 8 actions.
    """
    found = kept("prompt_size")
    rows = []
    for history in HISTORIES:
        row = {
            actions: found[f"{protocol} full h={history} k={actions}"]
            for actions in ACTIONS
        }
        new = row[8]["new per step"] / row[8]["characters per step"]
        sent = (number(one["characters per step"], 4) for one in row.values())
        rows.append([f"`history={history}`", *sent, f"{100 * new:.0f} %"])
    return table(
        [
            "",
            "1 action",
            *(f"{actions} actions" for actions in ACTIONS[1:]),
            "new, with 8",
        ],
        rows,
    )


def gpu() -> str:
    """Return the figures of a vLLM server on a GPU for the nine protocols, by view and
    number of subjects.
    """
    headers = (
        "view, N",
        "calls/s",
        "s a call",
        "in the engine",
        "cache in use",
        "prompt tokens",
    )
    rows = []
    for one in json.loads((MEASURED / "gpu.json").read_text(encoding="utf-8"))["loads"]:
        count, seconds = one["request_success"], one["seconds"]
        latency = (
            one["e2e_request_latency_seconds_sum"]
            / one["e2e_request_latency_seconds_count"]
        )
        rows.append(
            [
                f"`{one['view']}`, {one['subjects']}",
                *(number(value, 2) for value in (count / seconds, latency)),
                f"{one['num_requests_running'] + one['num_requests_waiting']:.0f}",
                f"{one['kv_cache_usage_perc']:.0%}".replace("%", " %"),
                f"{one['prompt_tokens'] / count:,.0f}",
            ]
        )
    return table(headers, sorted(rows, key=lambda row: row[0].partition("`,")[0]))


def prompt_cache() -> str:
    """Return the numbers of prompt tokens that a small model on this machine computes:
    for a run, and for a bare loop.
    """
    found = json.loads((MEASURED / "prompt_cache.json").read_text(encoding="utf-8"))
    headers = ["", "calls", "prompt tokens", "computed", "of the prompt"]
    rows = [
        [
            one["way"],
            *(f"{one[name]:,}" for name in ("calls", "prompt", "computed")),
            f"{100 * one['computed'] / one['prompt']:.0f} %",
        ]
        for one in found["rows"]
    ]
    return table(headers, rows)


#: The blocks of the pages by name.
BLOCKS: dict[str, Callable[[], str]] = {
    "large-logs": large_logs,
    "subjects": subjects,
    "executors": executors,
    "calls": calls,
    "driver": driver,
    "gpu": gpu,
    "prompt-cache": prompt_cache,
    "prompts-t-maze": partial(prompts, "t_maze"),
    "prompts-water-maze": partial(prompts, "morris_water_maze"),
}


def filled(text: str) -> str:
    """Return a page with its blocks filled in."""
    return BLOCK.sub(lambda found: found[1] + BLOCKS[found[2]](), text)


if __name__ == "__main__":
    for page in PAGES:
        path = DOCS / page
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
