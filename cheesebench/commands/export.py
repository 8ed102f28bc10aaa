"""``cheesebench export``: a run as tables for other programs, or as Inspect AI logs."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from cheesebench.commands.common import counted, one_line, shown_path
from cheesebench.commands.parsing import add_run, describe
from cheesebench.errors import OptionError, UnknownNameError
from cheesebench.experiment.confined import inside
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate
from cheesebench.experiment.records import CellPlan
from cheesebench.plugin_manager import installed_plugins


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Writes tables of trials, values, steps, events and calls, or logs for 'inspect view' of Inspect AI.",
        "20250131-093000-ab12 --csv",
        "20250131-093000-ab12 --parquet --table trials,steps --observations",
        "20250131-093000-ab12 --inspect --output logs",
    )
    add_run(parser)
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument("--csv", dest="form", action="store_const", const="csv", help="one CSV file for each table")
    form.add_argument("--parquet", dest="form", action="store_const", const="parquet", help="Parquet (needs pyarrow)")
    form.add_argument(
        "--inspect",
        dest="form",
        action="store_const",
        const="inspect",
        help="an eval log for each model, protocol and view",
    )
    parser.add_argument("--table", metavar="NAME", action="append", help="only this table; repeatable (or use commas)")
    parser.add_argument("--observations", action="store_true", help="include the observation after each step")
    parser.add_argument(
        "--output", metavar="DIR", help="write into this directory (default: export/ in the run's directory)"
    )


def run(options: argparse.Namespace) -> int:
    """Write the files, and say on stderr which."""
    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        directory = Path(options.output) if options.output else inside(log.directory, "export")
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(f"{directory} cannot be created: {error.strerror}. Give another --output.") from None
        if options.form == "inspect":
            return _inspect(log, directory)
        return _tables(log, directory, options)


def _tables(log: RunLog, directory: Path, options: argparse.Namespace) -> int:
    from cheesebench.exporting.files import write_csv, write_parquet
    from cheesebench.exporting.tables import TABLES, Source

    write, suffix = (write_csv, "csv") if options.form == "csv" else (write_parquet, "parquet")
    source = Source(log, installed_plugins(), options.observations)
    for name in _chosen(options.table, TABLES):
        path = directory / f"{name}.{suffix}"
        rows = write(path, TABLES[name].header, source.rows(TABLES[name]))
        print(f"{one_line(shown_path(path))}: {counted(rows, 'row')}, {TABLES[name].about}", file=sys.stderr)
    return 0


def _chosen(given: list[str] | None, known: Iterable[str]) -> list[str]:
    known = list(known)
    wanted = [name.strip() for part in given or known for name in part.split(",")]
    for name in wanted:
        if name not in known:
            raise UnknownNameError("table", name, known)
    return list(dict.fromkeys(wanted))


def _inspect(log: RunLog, directory: Path) -> int:
    from cheesebench.exporting.inspect_log import write_inspect

    for number, plan in enumerate(log.plans()):
        path = directory / f"{_file_name(plan, number)}.eval"
        samples = write_inspect(path, log, plan)
        print(f"{one_line(shown_path(path))}: {counted(samples, 'sample')}", file=sys.stderr)
    print(f"To view them: inspect view --log-dir {one_line(shown_path(directory))}", file=sys.stderr)
    return 0


def _file_name(plan: CellPlan, number: int) -> str:
    """Return a portable file name; the number keeps cells distinct whose sanitised names are equal."""
    words = "_".join(filter(None, (plan.protocol, plan.view, str(plan.variant), plan.model)))
    return f"{number:03}_{re.sub(r'[^A-Za-z0-9._-]+', '-', words)[:120]}"
