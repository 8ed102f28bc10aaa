"""``cheesebench verdict``: judges logs of other evaluations, and runs."""

from __future__ import annotations

import argparse
import dataclasses

from cheesebench.commands import FINDINGS
from cheesebench.commands.common import (
    add_json,
    add_option,
    add_output,
    describe,
    write_output,
)
from cheesebench.files import strict_json
from cheesebench.interop.verdicts import verdict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Compares A with B on paired items, and says for each task whether A is better or worse, or whether that is "
        "undecided. With --value, it says whether the mean of A is above the value (PASS), below it (FAIL), or "
        "undecided. A and B are Inspect logs "
        "(.eval), samples_*.jsonl of lm-eval, *_samples.jsonl of Every Eval Ever, CSV files (item, score, perhaps "
        "subject and task), or directories. Logs of 'inspect eval cheesebench/...' and runs of CheeseBench (by their ids) "
        "are judged against the "
        "animals, without B and --value. Two runs can also be compared.",
        "new.eval old.eval",
        "new/ old/ --score exact_match,strict-match --fail",
        "answers.csv --value 0.8",
        "logs",
    )
    parser.add_argument(
        "first", metavar="A", help="a log, a directory of logs, or a run"
    )
    parser.add_argument(
        "second", metavar="B", nargs="?", help="the log or run with which A is compared"
    )
    parser.add_argument(
        "--value",
        metavar="X",
        type=float,
        help="compare the mean score of A with this number instead",
    )
    parser.add_argument(
        "--score", metavar="NAME", help="the score to compare, if items have several"
    )
    parser.add_argument(
        "--cluster",
        metavar="FIELD",
        help="items with the same value of this field are one subject",
    )
    parser.add_argument(
        "--range",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        default=(0.0, 1.0),
        help="the lowest and the highest possible score (default: 0 1)",
    )
    parser.add_argument(
        "--fail",
        action="store_true",
        help="exit with 1 if a task is worse, or has the verdict FAIL",
    )
    parser.add_argument(
        "--first-model", metavar="NAME", help="the model of run A, if it has several"
    )
    parser.add_argument(
        "--second-model",
        metavar="NAME",
        help="the model of run B, if it has several; without B, a second model of run A",
    )
    parser.add_argument(
        "--only-seen",
        action="store_true",
        help="imagine no pair that fails totally: for graded scores where that cannot happen",
    )
    add_option(parser, "results")
    add_json(parser)
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    found = verdict(
        options.first,
        options.second,
        value=options.value,
        score=options.score,
        cluster=options.cluster,
        limits=tuple(options.range),
        models=(options.first_model, options.second_model),
        only_seen=options.only_seen,
        results=options.results,
    )
    text = (
        strict_json(dataclasses.asdict(found), indent=2) if options.json else str(found)
    )
    write_output(f"{text}\n", options.output)
    return FINDINGS if options.fail and found.worse else 0
