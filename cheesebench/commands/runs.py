"""``cheesebench runs``: lists the runs of a results directory, with their results."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from cheesebench.amounts import dollars
from cheesebench.commands import common
from cheesebench.errors import OptionError
from cheesebench.server import watch
from cheesebench.terminal import coloured


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.describe(
        parser,
        "Lists runs, the latest first, with model, date, cost and verdicts. Runs that are in progress are included.",
        "",
        "--model random",
        "--results results --json",
    )
    common.add_option(parser, "results")
    parser.add_argument("--model", metavar="NAME", help="only runs of this model")
    common.add_json(parser)


def run(options: argparse.Namespace) -> int:
    results = Path(options.results)
    if not results.is_dir():
        raise OptionError(
            f"There is no directory {results}. Name the directory that holds the runs: --results DIR."
        )
    matching = [
        line
        for line in watch.Overview(results).lines()
        if options.model is None or options.model in line.models
    ]
    if options.json:
        print(json.dumps([watch.line_to_json(line) for line in matching], indent=2))
        return 0
    if not matching:
        whose = "" if options.model is None else f" of '{options.model}'"
        print(f"{results} holds no runs{whose}.")
        return 0

    print(_text(matching))
    return 0


def _text(lines: Sequence[watch.RunLine]) -> str:
    """Return a table of runs, or paragraphs if the terminal is too narrow for a table,
    followed by the problems of unreadable runs.
    """
    columns = ["run", "UTC", "models", "", "trials", "cost", "verdicts"]
    rows = [_row(line) for line in lines]
    if not any(row[5] for row in rows):  # The column of costs would be empty.
        columns, *rows = ([*row[:5], row[6]] for row in (columns, *rows))
    text = (
        coloured("\n".join(map(_paragraphs, lines)))
        if common.breaks_words(columns, rows)
        else common.table(columns, rows)
    )
    problems = [f"{line.run_id}: {line.problem}" for line in lines if line.problem]
    return "\n".join([text, *map(common.paragraph, problems)])


def _row(line: watch.RunLine) -> list[str]:
    if line.problem:
        return [line.run_id, "", "", "unreadable", "", "", ""]
    cost = dollars(line.cost) if line.cost else ""
    return [
        line.run_id,
        _date(line),
        ", ".join(line.models),
        line.status,
        _trials(line),
        cost,
        line.verdict_text,
    ]


def _date(line: watch.RunLine) -> str:
    return line.created[:16].replace("T", " ")


def _trials(line: watch.RunLine) -> str:
    return (
        f"{line.done:,}"
        if not line.left or line.status != "running"
        else f"{line.done:,} + {line.left:,}"
    )


def _paragraphs(line: watch.RunLine) -> str:
    if line.problem:
        return f"{common.one_line(line.run_id)}  unreadable"
    trials = (
        common.counted(line.done, "trial")
        if _trials(line) == "1"
        else f"{_trials(line)} trials"
    )
    cost = f"; {dollars(line.cost)}" if line.cost else ""
    about = f"{', '.join(line.models)}; {trials}{cost}; {line.verdict_text or 'no verdicts'}"
    return f"{common.one_line(line.run_id)}  {_date(line)} UTC  {line.status}\n{common.paragraph(about, '  ')}"
