"""Measures the memory and the time of commands that read large logs, by the number of
trials.

A log of each size is written through the log's own writer: lives of the random agent on
t_maze, under the name of a language model, with calls of the usual length (a shared
system prompt, a question of 400 characters, a short reply). The calls are invented, so
a page replays the trials and does not show their replies. After the first 5,000
subjects, a few lives are repeated under other numbers.

Then each command reads the log in a process of its own. *Peak* is the largest resident
size of that process, *CPU* its processor time; rates are per second of CPU time, so
that other programs on the machine hardly affect them. If a command's memory is bounded,
its peak is the same for every size.

    python benchmarks/large_logs.py --trials 10000 100000 1000000 --directory DIR

A million trials with ten million calls take some 7 GB there (and twice that while they
are merged or exported), and most of an hour of one core. ``--only`` selects some of the
commands; the log of each size is deleted at the end.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import common

from cheesebench import ExecutorContext, ExecutorSpec, Report, hookimpl
from cheesebench.chat import ChatReply, Usage
from cheesebench.executor import Job
from cheesebench.experiment.cells import find_design, language_model
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.session import RunSession
from cheesebench.experiment.shards import KEY, Shard, describe_shard
from cheesebench.experiment.subjects import run_job
from cheesebench.family import CellRequest
from cheesebench.interfaces import TaskEvent
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import PluginManager, installed_plugins
from cheesebench.records import CallRecord, TrialRecord

#: This program, run as a separate process.
SCRIPT = (sys.executable, str(Path(__file__).absolute()))
#: Number of subjects that are really run (``report --html`` replays no more), number of
#: lives that later ones repeat, and number of subjects per transaction.
REPLAYED, LIVES, TOGETHER = 5_000, 40, 25
#: A system prompt, a question and a reply that are as long as those of a run in
#: ascii_2d.
SYSTEM, ASKED, REPLY = (
    "You are in a maze. " * 150,
    "You see:\n" + "#####....\n" * 40,
    "I go on.\nACTIONS: FORWARD, FORWARD",
)
COMMANDS = {
    "report": ["report", "RUN", "--format", "markdown", "--output", "out.md"],
    "report --html": ["report", "RUN", "--html", "out.html"],
    "compare": ["compare", "RUN", "RUN", "--output", "out.txt"],
    "runs": ["runs"],
    "show": ["show", "RUN", "--subject", "7"],
    "export --csv, trials": [
        "export",
        "RUN",
        "--csv",
        "--table",
        "trials",
        "--output",
        "out",
    ],
    "export --csv, events": [
        "export",
        "RUN",
        "--csv",
        "--table",
        "events",
        "--output",
        "out",
    ],
    "export --csv, calls": [
        "export",
        "RUN",
        "--csv",
        "--table",
        "calls",
        "--output",
        "out",
    ],
    "export --parquet, trials": [
        "export",
        "RUN",
        "--parquet",
        "--table",
        "trials",
        "--output",
        "out",
    ],
    "export --parquet, calls": [
        "export",
        "RUN",
        "--parquet",
        "--table",
        "calls",
        "--output",
        "out",
    ],
    "export --inspect": ["export", "RUN", "--inspect", "--output", "out"],
    "merge": ["merge", "RUN", "--run-id", "merged"],
}


def write(directory: Path, trials: int, calls: int) -> None:
    """Write a log of at least ``trials`` trials, with ``calls`` calls each, below
    ``directory``.
    """
    plugins = installed_plugins()
    [specification] = common.specifications(["t_maze"])
    request = CellRequest(
        model="random",
        plugins=plugins,
        design=find_design("cohort", 1),
        views=("ascii_2d",),
    )
    [random] = plugins.family(specification).cells(specification, request)

    def live(subject: int) -> list[tuple[TrialRecord, Sequence[TaskEvent]]]:
        job = Job(plan=random, specification=specification, seed=1, subject=subject)
        return [trial for report in run_job(job) for trial in report.trials]

    lives = [live(subject) for subject in range(LIVES)]
    subjects = -(-trials // len(lives[0]))
    model = resolve_model(plugins, "openai/tiny")
    settings = language_model(plugins, model, base_url="http://127.0.0.1:1/v1").settings
    plan = dataclasses.replace(
        random, subjects=subjects, model="tiny", agent="llm", settings=settings
    )
    options = {"seed": 1, KEY: "1/1"}
    with RunLog.create(
        directory, "RUN", [(plan, specification)], options=options
    ) as log:
        log.add_to_manifest({KEY: describe_shard(Shard(1, 1), [plan])})
        for first in range(0, subjects, TOGETHER):
            with log.transaction():
                for subject in range(first, min(first + TOGETHER, subjects)):
                    # A page replays these subjects, so their lives must be real. Later
                    # subjects repeat some lives under their own number, so that no two
                    # are equal.
                    life = (
                        live(subject) if subject < REPLAYED else lives[subject % LIVES]
                    )
                    for record, events in life:
                        variables = (
                            {**record.variables, "number": subject}
                            if subject >= REPLAYED
                            else record.variables
                        )
                        life_of = dataclasses.replace(
                            record, model="tiny", subject=subject, variables=variables
                        )
                        log.write_trial(life_of, events)
                    made = (
                        some_call(subject, record.trial, call)
                        for record, _ in life
                        for call in range(calls)
                    )
                    log.calls.write(plan, subject, *made)
                    log.write_life(plan, subject, len(life))


class Nothing:
    """An executor whose jobs end at once, so that only the driver's cost for a subject
    remains.
    """

    capacity = 8

    def __init__(self, context: ExecutorContext) -> None:
        pass

    async def run(self, job: Job, report: Callable[[Report], None]) -> None:
        """End the job."""
        report(Report(ended=True))

    async def close(self) -> None:
        """Do nothing."""


def drive(directory: Path, subjects: int) -> None:
    """Run a cell with ``subjects`` subjects, without a single trial."""
    plugins = PluginManager()
    spec = ExecutorSpec("nothing", Nothing, in_process=True)
    plugins.register(
        SimpleNamespace(cheesebench_executors=hookimpl(lambda: [spec])), name="nothing"
    )
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
    with (
        RunLog.create(directory, "DRIVE", cells.items(), options={"seed": 1}) as log,
        RunSession(log, plugins, cells, seed=1, executor="nothing") as session,
    ):
        session.finish()


def some_call(subject: int, trial: int, call: int) -> CallRecord:
    """Return a call of typical length."""
    return CallRecord(
        trial=trial,
        call=call,
        digest=hashlib.sha256(f"{subject}|{trial}|{call}".encode()).hexdigest()[:32],
        system=SYSTEM,
        asked=ASKED,
        reply=ChatReply(
            text=REPLY,
            usage=Usage(prompt=1500, completion=12, cached=1000),
            model="tiny",
        ),
        cost=0.001,
        seconds=0.5,
    )


def measured(command: list[str], directory: Path, trials: int) -> dict[str, float]:
    """Run a command; return its time, memory and rate."""
    start = time.perf_counter()
    with (directory / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, cwd=directory, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError((directory / "said.txt").read_text())
    spent = usage.ru_utime + usage.ru_stime
    return {
        "peak MB": usage.ru_maxrss / 2**10,
        "CPU s": spent,
        "wall s": time.perf_counter() - start,
        "trials/s": trials / spent,
    }


def rows(
    trials: int, calls: int, directory: Path, only: Sequence[str]
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield a row for writing a log, and one for each command that reads it."""
    size = f"{trials:,} trials, {trials * calls:,} calls"
    given = [
        "--write",
        "--trials",
        str(trials),
        "--calls",
        str(calls),
        "--directory",
        str(directory),
    ]
    wrote = measured([*SCRIPT, *given], directory, trials)
    log = directory / "results/RUN/run.sqlite"
    yield f"{size}: write", {**wrote, "log MB": log.stat().st_size / 2**20}
    for name in only:
        yield (
            f"{size}: {name}",
            measured(
                [sys.executable, "-m", "cheesebench", *COMMANDS[name]],
                directory,
                trials,
            ),
        )
        for left in ("out", "results/merged"):
            shutil.rmtree(directory / left, ignore_errors=True)


def every(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield all rows that the command line asks for."""
    for subjects in options.drive:
        with tempfile.TemporaryDirectory(dir=options.directory) as made:
            given = ["--driving", str(subjects), "--directory", made]
            row = measured([*SCRIPT, *given], Path(made), subjects)
        yield (
            f"{subjects:,} subjects: drive",
            {"peak MB": row["peak MB"], "CPU s": row["CPU s"]},
        )
    for trials in options.trials:
        with tempfile.TemporaryDirectory(dir=options.directory) as made:
            yield from rows(trials, options.calls, Path(made), options.only)


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
        "--keep",
        action="store_true",
        help="put the figures into measured/, for the documentation",
    )
    parser.add_argument(
        "--trials", type=int, nargs="*", default=[10_000, 100_000], metavar="N"
    )
    parser.add_argument(
        "--calls",
        type=int,
        default=10,
        metavar="N",
        help="calls of each trial (default: 10)",
    )
    parser.add_argument(
        "--drive",
        type=int,
        nargs="*",
        default=[],
        metavar="N",
        help="also cells with N subjects",
    )
    parser.add_argument(
        "--directory",
        type=Path,
        metavar="DIR",
        help="where there is room: 0.7 kB for each call",
    )
    parser.add_argument(
        "--only",
        nargs="*",
        default=list(COMMANDS),
        choices=COMMANDS,
        metavar="COMMAND",
        help="these only",
    )
    parser.add_argument("--driving", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.driving:
        drive(options.directory / "results", options.driving)
    elif options.write:
        write(options.directory / "results", options.trials[0], options.calls)
    else:
        table: common.Table = {}
        for name, row in every(options):
            table[name] = {**row}
            print(
                f"{name}: {', '.join(f'{key} {value:,.1f}' for key, value in row.items())}",
                file=sys.stderr,
            )
            # Each row is stored at once, because a later one may take an hour and be
            # interrupted.
            if options.keep:
                common.keep("large_logs", {name: table[name]})
        common.report("large logs", table, options.json)
