"""Options and help of the commands that plan, compare and export runs; the work is in ``cheesebench.commands``."""

from __future__ import annotations

import argparse

from cheesebench.arguments import Command, add_output, add_run, positive_number, proportion, whole_number


def add_compare(command: Command) -> None:
    """Add ``compare``."""
    parser = command(
        "compare",
        "say whether a run is better or worse than another",
        "Subject by subject (the same seeds),\nby protocol and over all of them; the answer is about the first. "
        "Runs whose protocols, seeds\nor trials differ are refused. A baseline can stand for a run.",
        "20250131-093000-ab12 main",
        "new old --format markdown --fail worse",
        "monday monday --first-model random --second-model tabular-ql",
    )
    parser.add_argument("first", metavar="RUN_A", help="a run's id, directory or run.sqlite, or a baseline")
    parser.add_argument("second", metavar="RUN_B", help="what it is compared with")
    parser.add_argument("--results", metavar="DIR", default="results", help="where the runs are (default: results)")
    _add_baselines(parser)
    parser.add_argument("--protocol", metavar="NAME", action="append", help="this protocol only; repeatable")
    parser.add_argument("--first-model", metavar="NAME", help="the model of RUN_A, where it has several")
    parser.add_argument("--second-model", metavar="NAME", help="the model of RUN_B, where it has several")
    parser.add_argument("--format", metavar="NAME", default="text", help="text (default), markdown, json, ...")
    parser.add_argument("--fail", choices=("never", "worse"), default="never", help="worse: exit 1 if RUN_A is worse")
    add_output(parser)


def add_bless(command: Command) -> None:
    """Add ``bless``."""
    parser = command(
        "bless",
        "keep what a run came to as a baseline",
        "A small JSON file of counts, to be committed:\nlater runs are compared with it, when the run is long gone.",
        "20250131-093000-ab12 main",
    )
    add_run(parser)
    parser.add_argument("name", metavar="NAME", help="name of the baseline")
    _add_baselines(parser)
    parser.add_argument("--incomplete", action="store_true", help="also a run with missing trials")


def _add_baselines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baselines", metavar="DIR", default="baselines", help="where they are (default: baselines)")


def add_plan(command: Command) -> None:
    """Add ``plan``."""
    parser = command(
        "plan",
        "say what a run would take, and what it could say",
        "Before any call: calls, tokens, minutes and dollars (at most,\nand about, from earlier runs), power, "
        "and how often the verdict would be another one\nif the same model were run again.",
        "--model gpt-4o-mini",
        "--model random --design paper --view ascii_2d",
        "--model NAME --subjects 20 --protocols t_maze --history 1",
    )
    parser.add_argument(
        "--model", metavar="NAME", action="append", required=True, help="as for pytest; repeatable, or with commas"
    )
    parser.add_argument("--design", metavar="NAME", default="cohort", help="smoke, paper or cohort (default)")
    parser.add_argument("--subjects", metavar="N", type=positive_number, help="instead of the design's")
    parser.add_argument("--view", metavar="NAME", action="append", help="repeatable (default: the design's)")
    parser.add_argument("--protocols", metavar="WHAT", action="append", help="names, files, directories; repeatable")
    parser.add_argument("--edition", metavar="NAME", help="edition of the protocols (default: paper)")
    parser.add_argument("--results", metavar="DIR", default="results", help="where earlier runs are (default: results)")
    parser.add_argument(
        "--concurrency", metavar="N", type=positive_number, default=16, help="calls in flight (default: 16)"
    )
    parser.add_argument("--seed", metavar="N", type=whole_number, default=0, help="of the simulation (default: 0)")
    parser.add_argument("--icc", metavar="X", type=proportion, help="how alike a subject's trials are (default: 0.3)")
    parser.add_argument("--agent", metavar="NAME", default="llm", help="the agent that asks (default: llm)")
    for name in ("history", "actions", "prompt", "temperature", "reply-tokens"):
        parser.add_argument(f"--{name}", metavar="VALUE", help="as for pytest")
    for name in ("agent-option", "backend-option"):
        parser.add_argument(f"--{name}", metavar="NAME=VALUE", action="append", help="as pytest's --cheese-" + name)
    parser.add_argument("--models", metavar="FILE", help="a list of your own (default: what CHEESEBENCH_MODELS names)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")


def add_export(command: Command) -> None:
    """Add ``export``."""
    parser = command(
        "export",
        "write a run for other programs",
        "Tables of trials, values, steps, events and calls\n(docs/run-log.md says what is in them), "
        "or logs that 'inspect view' of Inspect AI opens.",
        "20250131-093000-ab12 --csv",
        "20250131-093000-ab12 --parquet --table trials,steps --observations",
        "20250131-093000-ab12 --inspect --output logs",
    )
    add_run(parser)
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument("--csv", dest="form", action="store_const", const="csv", help="one CSV file for each table")
    form.add_argument("--parquet", dest="form", action="store_const", const="parquet", help="Parquet (needs pyarrow)")
    form.add_argument("--inspect", dest="form", action="store_const", const="inspect", help="an eval log for each cell")
    parser.add_argument("--table", metavar="NAME", action="append", help="this table only; repeatable, or with commas")
    parser.add_argument("--observations", action="store_true", help="steps with what was perceived after them")
    parser.add_argument("--output", metavar="DIR", help="write into this directory (default: export/ in the run's own)")
