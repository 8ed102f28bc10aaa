"""``cheesebench export``: writes a run as tables, as Inspect AI logs, or in formats for
sharing results.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from cheesebench.commands.common import add_run, counted, describe, one_line, shown_path
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import inside, locate
from cheesebench.exporting import TABLES, Source, write_csv, write_parquet
from cheesebench.files import remove_drafts
from cheesebench.interop.inspect_log import write_inspect
from cheesebench.interop.shared import (
    write_every_eval_ever,
    write_hugging_face,
    write_psych_ds,
)
from cheesebench.plugin_manager import installed_plugins
from cheesebench.records import CellPlan
from cheesebench.verification import rows_only


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Writes tables (trials, values, steps, events and calls), logs for 'inspect view' of Inspect AI, or files for "
        "Every Eval Ever, for Psych-DS, or for a model's repository on the Hugging Face Hub.",
        "20250131-093000-ab12 --csv",
        "20250131-093000-ab12 --parquet --table trials,steps --observations",
        "20250131-093000-ab12 --inspect --output logs",
        "20250131-093000-ab12 --hugging-face my-lab/cheesebench",
    )
    add_run(parser)
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument(
        "--csv",
        dest="form",
        action="store_const",
        const="csv",
        help="one CSV file for each table",
    )
    form.add_argument(
        "--parquet",
        dest="form",
        action="store_const",
        const="parquet",
        help="Parquet (needs pyarrow)",
    )
    for name, about in (
        ("inspect", "an eval log for each cell"),
        (
            "every-eval-ever",
            "a record for each plain cell, and a line for each scored trial",
        ),
        ("psych-ds", "the trials of people and models as a Psych-DS folder"),
    ):
        form.add_argument(
            f"--{name}", dest="form", action="store_const", const=name, help=about
        )
    form.add_argument(
        "--hugging-face",
        metavar="DATASET",
        help="an .eval_results folder for each model, with its results on this data set of the Hub",
    )
    parser.add_argument(
        "--table",
        metavar="NAME",
        action="append",
        help="with --csv or --parquet: only this table; repeatable (or use commas)",
    )
    parser.add_argument(
        "--observations",
        action="store_true",
        help="with --csv or --parquet: include the observation after each step",
    )
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="write into this directory (default: export/ in the run's directory)",
    )


def run(options: argparse.Namespace) -> int:
    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        directory = (
            Path(options.output) if options.output else inside(log.directory, "export")
        )
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(
                f"{directory} cannot be created: {error.strerror}. Choose another --output."
            ) from None
        shared = options.form == "every-eval-ever" or options.hugging_face
        print(rows_only(log, ranked=bool(shared)), file=sys.stderr)
        remove_drafts(directory)
        if options.form == "inspect":
            return _inspect(log, directory)
        if options.form in ("csv", "parquet"):
            return _tables(log, directory, options)
        return _shared(log, directory, options)


def _shared(log: RunLog, directory: Path, options: argparse.Namespace) -> int:
    if options.hugging_face:
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", options.hugging_face):
            raise OptionError(
                f"--hugging-face {options.hugging_face}: name a data set of the Hub, as in my-lab/mazes."
            )
        paths: Iterable[Path] = write_hugging_face(directory, log, options.hugging_face)
    elif options.form == "psych-ds":
        paths = [write_psych_ds(directory, Source(log, installed_plugins()))]
    else:
        paths = write_every_eval_ever(directory, log)
    for path in paths:
        print(one_line(shown_path(path)), file=sys.stderr)
    return 0


def _tables(log: RunLog, directory: Path, options: argparse.Namespace) -> int:
    write, suffix = (
        (write_csv, "csv") if options.form == "csv" else (write_parquet, "parquet")
    )
    source = Source(log, installed_plugins(), options.observations)
    for name in _chosen(options.table, TABLES):
        path = directory / f"{name}.{suffix}"
        rows = write(path, TABLES[name].header, source.rows(TABLES[name]))
        print(
            f"{one_line(shown_path(path))}: {counted(rows, 'row')}, {TABLES[name].about}",
            file=sys.stderr,
        )
    return 0


def _chosen(given: list[str] | None, known: Iterable[str]) -> list[str]:
    known = list(known)
    wanted = [name.strip() for part in given or known for name in part.split(",")]
    for name in wanted:
        if name not in known:
            raise UnknownNameError("table", name, known)
    return list(dict.fromkeys(wanted))


def _inspect(log: RunLog, directory: Path) -> int:
    for number, plan in enumerate(log.plans()):
        path = directory / f"{_file_name(plan, number)}.eval"
        samples = write_inspect(path, log, plan)
        print(
            f"{one_line(shown_path(path))}: {counted(samples, 'sample')}",
            file=sys.stderr,
        )
    print(
        f"To view them: inspect view --log-dir {one_line(shown_path(directory))}",
        file=sys.stderr,
    )
    return 0


def _file_name(plan: CellPlan, number: int) -> str:
    """Return a portable file name. It contains the number, because cells may have equal
    names after unsafe characters are replaced.
    """
    words = "_".join(
        filter(None, (plan.protocol, plan.view, str(plan.variant), plan.model))
    )
    return f"{number:03}_{re.sub(r'[^A-Za-z0-9._-]+', '-', words)[:120]}"
