"""``cheesebench measures``: the trials of a run, summarised by block, or trial by trial as CSV."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cheesebench.commands.common import counted, one_line, table, write_lines
from cheesebench.commands.csv_text import csv_lines
from cheesebench.commands.parsing import add_run, describe
from cheesebench.errors import UnknownNameError
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.log_file import locate

if TYPE_CHECKING:
    from cheesebench.experiment.records import CellPlan, TrialRecord
    from cheesebench.interfaces import Value
    from cheesebench.statistics.blocks import BlockSummary
    from cheesebench.statistics.choices import Choices

#: The columns that say which trial it is.
KEYS = ("model", "protocol", "view", "variant", "subject", "trial", "block", "session")

_HEADERS = ("", "measure", "mean", "sd", "sd of subjects", "n")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and the help."""
    describe(
        parser,
        "Prints the protocol's measures and counters, and how the agent moved: mean, spread and number of trials by "
        "block; --csv writes every trial. The members of a set are joined with |, as in a|b.",
        "20250131-093000-ab12",
        "20250131-093000-ab12 --csv trials.csv",
        "20250131-093000-ab12 --protocol t_maze --csv t_maze.csv",
    )
    add_run(parser)
    parser.add_argument(
        "--protocol", metavar="NAME", help="only this protocol; its CSV has one row per trial instead of one per value"
    )
    parser.add_argument("--csv", metavar="PATH", help="write all trials to this file ('-': standard output)")


def run(options: argparse.Namespace) -> int:
    """Print the summary, or write the CSV."""
    with RunLog.open_read_only(locate(Path(options.results), options.run_id)) as log:
        plans = _selected(log.plans(), options.protocol)
        if options.csv is None:
            print("\n\n".join(_cell(plan, _Records(log, [plan])) for plan in plans) or "No cell was run.")
            return 0
        records = _Records(log, plans)
        by = {plan.protocol: plan.by for plan in plans}
        lines = long_lines(records, by) if options.protocol is None else wide_lines(records)
        write_lines(lines, None if options.csv == "-" else options.csv)
    if options.csv != "-":
        print(f"cheesebench: {counted(records.count, 'trial')} written to {one_line(options.csv)}.", file=sys.stderr)
    return 0


class _Records:
    """The recorded trials of some cells, read anew whenever they are iterated over; one life is in memory."""

    def __init__(self, log: RunLog, plans: Sequence[CellPlan]) -> None:
        self._log = log
        self._plans = plans
        #: Trials yielded by the latest iteration.
        self.count = 0

    def __iter__(self) -> Iterator[TrialRecord]:
        self.count = 0
        for plan in self._plans:
            for life in self._log.recorded_subjects(plan):
                self.count += len(life)
                yield from life


def _selected(plans: Sequence[CellPlan], protocol: str | None) -> list[CellPlan]:
    chosen = [plan for plan in plans if protocol in (None, plan.protocol)]
    if protocol is not None and not chosen:
        raise UnknownNameError("protocol in this run called", protocol, {plan.protocol for plan in plans})
    return chosen


def wide_lines(records: Iterable[TrialRecord]) -> Iterator[str]:
    """Yield CSV with one row for each trial, and a column for each value of it; ``records`` are gone through twice.

    Columns of the protocol are named ``counter.NAME``, ``measure.NAME`` and ``variable.NAME``, in its order.
    """
    from cheesebench.statistics.blocks import KINDS, TRIAL_FIELDS, trial_values

    names: dict[str, dict[str, None]] = {kind: {} for kind in KINDS[1:]}
    for record in records:
        for kind, values in trial_values(record).items():
            if kind in names:
                names[kind].update(dict.fromkeys(values))
    columns = [("trial", name) for name in TRIAL_FIELDS]
    columns += [(kind, name) for kind, found in names.items() for name in found]
    header = [*KEYS, *(name if kind == "trial" else f"{kind}.{name}" for kind, name in columns)]
    pairs = ((record, trial_values(record)) for record in records)
    rows = ([*_key(record), *(values[kind].get(name) for kind, name in columns)] for record, values in pairs)
    yield from csv_lines(header, rows)


def long_lines(
    records: Iterable[TrialRecord], by: Mapping[str, Sequence[tuple[str, str]]] | None = None
) -> Iterator[str]:
    """Yield CSV with one row per value of each trial, because protocols differ in what they measure.

    ``by`` has each protocol's pairs of a measure and a variable by whose values it is given: one more row each.
    """
    yield from csv_lines([*KEYS, "kind", "name", "value"], _long_rows(records, by or {}))


def _long_rows(records: Iterable[TrialRecord], by: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[list[Value]]:
    from cheesebench.statistics.blocks import trial_values
    from cheesebench.statistics.measures import by_condition

    for record in records:
        for kind, values in trial_values(record).items():
            for name, value in values.items():
                yield [*_key(record), kind, name, value]
        for condition, measured in by_condition(record, by.get(record.protocol, ())):
            yield [*_key(record), "measure", str(condition), measured]


def _key(record: TrialRecord) -> list[Value]:
    return [getattr(record, name) for name in KEYS]


def _cell(plan: CellPlan, records: Iterable[TrialRecord]) -> str:
    from cheesebench.statistics.blocks import block_summaries

    title = one_line(f"{plan.model} on {plan.protocol} in {plan.view}")
    blocks = block_summaries(records, plan.split, plan.by)
    if not blocks:
        return f"{title}: no trial was run."
    return "\n\n".join(_block(title, block) for block in blocks)


def _block(title: str, block: BlockSummary) -> str:
    from cheesebench.statistics.wording import shares, shown_value

    missing = f", {block.missing} missing" if block.missing else ""
    size = f"{counted(block.trials, 'trial')} of {counted(block.subjects, 'subject')}{missing}"
    heading = f"{title}, block {one_line(block.block) or '(none)'} ({size})"
    rows = [
        (m.kind, m.name, *(None if value is None else f"{value:.4g}" for value in (m.mean, m.sd, m.sd_subjects)), m.n)
        for m in block.measures
    ]
    parts = [heading, table(_HEADERS, rows)] if rows else [heading]
    if block.classes:
        parts.append("\n".join(one_line(f"{found.name}: {shares(found)}") for found in block.classes))
    if block.splits:
        split = [(s.variable, shown_value(s.value), f"{s.passed / s.trials:.1%}", s.trials) for s in block.splits]
        parts.append(table(("split by", "value", "right", "n"), split))
    if block.choices:
        parts.append("\n".join(map(_choice, block.choices)))
    return "\n\n".join(parts)


def _choice(choices: Choices) -> str:
    side = "" if choices.side_bias is None else f", side bias of a subject {choices.side_bias:.2f}"
    given = f" ({choices.given})" if choices.given else ""
    return one_line(
        f"{choices.variable}{given}: right on {choices.right_on_first}/{choices.trials_of_first} {choices.first}, "
        f"{choices.right_on_second}/{choices.trials_of_second} {choices.second}: "
        f"d' {choices.d_prime:.2f}, bias {choices.bias:+.2f}{side}"
    )
