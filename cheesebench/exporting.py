"""Exports a run for other programs, as tables in CSV or Parquet."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cheesebench.errors import OptionError
from cheesebench.experiment.replay import films, recorded_paradigm, steppable
from cheesebench.extras import install_command
from cheesebench.files import written_whole
from cheesebench.interfaces import ACTION_OF_LETTER, ACTIONS, Value
from cheesebench.records import TrialRecord
from cheesebench.statistics.measures import STRATEGY
from cheesebench.statistics.sample import enter_estimand
from cheesebench.terminal import printable

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.interfaces import Paradigm
    from cheesebench.plugin_manager import PluginManager
    from cheesebench.records import CellPlan

#: Characters that start a formula in a spreadsheet (also after spaces and line feeds),
#: from OWASP's list. The last four are full-width forms.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
#: Separates the members of a set.
SEPARATOR = "|"


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    """Yield a table as CSV, row by row. Lines end with a line feed, floats have full
    precision, truth values are ``true`` and ``false``, and None is empty.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain(
        [[_cell_text(name) for name in header]],
        ([cell(value) for value in row] for row in rows),
    ):
        writer.writerow(row)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def cell(value: Value) -> str:
    """Return a value as text for a CSV file. Text that a spreadsheet would run as a
    formula gets a leading ``'``, and the members of a set are joined by SEPARATOR.
    """
    if isinstance(value, str):
        return _cell_text(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return _cell_text(SEPARATOR.join(value))


def _cell_text(text: str) -> str:
    safe = printable(text)
    return f"'{safe}" if text.lstrip(" \n").startswith(_FORMULA) else safe


Kind = Literal["text", "integer", "number", "truth"]
Row = list[Any]

#: Columns that identify a trial. Every table begins with them.
KEY: Mapping[str, Kind] = {
    "model": "text", "protocol": "text", "view": "text", "variant": "text", "subject": "integer", "trial": "integer",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what a row is, the columns after KEY with their types, and a function
    that yields the rows of a subject (its number and its trials).
    """

    name: str
    about: str
    columns: Mapping[str, Kind]
    rows: Callable[[Source, CellPlan, int, Sequence[TrialRecord]], Iterator[Row]]

    @property
    def header(self) -> dict[str, Kind]:
        return {**KEY, **self.columns}


@dataclass(slots=True)
class Source:
    """A run to export. With ``observations``, each step has the observation that
    follows it.
    """

    log: RunLog
    plugins: PluginManager
    observations: bool = False
    _paradigm: tuple[CellPlan, Paradigm] | None = None

    def paradigm(self, plan: CellPlan) -> Paradigm:
        """Return the paradigm of a cell as the run had it. Only the latest one is
        cached.
        """
        if self._paradigm is None or self._paradigm[0].key != plan.key:
            self._paradigm = (
                plan,
                steppable(recorded_paradigm(self.log, self.plugins, plan), plan),
            )
        return self._paradigm[1]

    @property
    def seed(self) -> int:
        return int(self.log.manifest["options"]["seed"])

    def rows(self, table: Table) -> Iterator[list[Row]]:
        """Yield each subject's rows. Only one subject is in memory at a time."""
        for plan in self.log.plans():
            for subject, records in lives(self.log, plan):
                yield list(table.rows(self, plan, subject, records))


def lives(log: RunLog, plan: CellPlan) -> Iterator[tuple[int, Sequence[TrialRecord]]]:
    """Yield the number and the trials of each subject of a cell. In a sequential cell,
    a subject that was stopped in its first trial has no trials, but may have calls.
    """
    found = set[int]()
    for records in log.trials_by_subject(plan):
        found.add(records[0].subject)
        yield records[0].subject, records
    for subject in log.calls.subjects(plan):
        if subject not in found:
            yield subject, []


def _key(record: TrialRecord) -> Row:
    # The log counts trials from 0, but tables are for people and count from 1.
    return [
        *(getattr(record, name) for name in KEY if name != "trial"),
        record.trial + 1,
    ]


def _trials(
    source: Source, plan: CellPlan, subject: int, records: Iterable[TrialRecord]
) -> Iterator[Row]:
    life = list(records)
    judged = {record.trial for record in enter_estimand(plan.estimand, life)}
    for record in life:
        strategy = [
            None if record.missing else measure(record) for measure in _MOVES.values()
        ]
        known: dict[str, Any] = {
            "judged": record.trial in judged,
            "missing": record.missing,
        }
        if record.missing:  # the planned block and session, if they are known
            known |= {"block": record.block or None, "session": record.session or None}
        fields = [
            known.get(name, None if record.missing else getattr(record, name, None))
            for name in _TRIAL
        ]
        yield [*_key(record), *fields, *strategy]


def _values(
    source: Source, plan: CellPlan, subject: int, records: Iterable[TrialRecord]
) -> Iterator[Row]:
    for record in records:
        held = {
            "counter": record.counters,
            "measure": record.measures,
            "variable": record.variables,
        }
        # A trial that was not run has only the agent's counts.
        for kind, values in {
            **({} if record.missing else held),
            "tally": record.tally,
        }.items():
            for name, value in values.items():
                number = float(value) if isinstance(value, (int, float)) else None
                yield [*_key(record), kind, name, number, _text(value)]


def _text(value: Value) -> str | None:
    """Return a value as text (a set as a JSON list), or None for a number, a truth
    value or None.
    """
    if value is None or isinstance(value, (int, float)):
        return None
    return (
        value if isinstance(value, str) else json.dumps(list(value), ensure_ascii=False)
    )


def _steps(
    source: Source, plan: CellPlan, subject: int, records: Sequence[TrialRecord]
) -> Iterator[Row]:
    run = [record for record in records if not record.missing]
    environment = source.paradigm(plan).environment(
        source.plugins.view(plan.view), source.seed, subject
    )
    for record, frames in zip(run, films(environment, run), strict=True):
        for number, frame in enumerate(frames):
            shown = [str(frame.observation)] if source.observations else [None]
            at = (None,) * 4 if frame.at is None else frame.at[:4]
            yield [
                *_key(record),
                number,
                frame.action,
                _action(frame.action),
                frame.reward,
                *at,
                *shown,
            ]


def _action(letter: str) -> str | None:
    """Return the name of an action, or None for the start. A frozen step counts as
    STAY.
    """
    return ACTIONS[ACTION_OF_LETTER[letter]] if letter else None


def _calls(
    source: Source, plan: CellPlan, subject: int, records: Sequence[TrialRecord]
) -> Iterator[Row]:
    key = [*plan.key, subject]
    for call in source.log.calls.of_life(plan, subject):
        reply, usage = call.reply, call.reply.usage
        yield [
            *key, call.trial + 1, call.call + 1, call.asked, reply.text, reply.reasoning, reply.finish, call.fault or "",
            reply.model, usage.prompt, usage.completion, usage.cached, usage.reasoning, call.cost, call.seconds,
            call.attempts, call.digest, usage.written, call.malformed,
        ]  # fmt: skip


def _events(
    source: Source, plan: CellPlan, subject: int, records: Iterable[TrialRecord]
) -> Iterator[Row]:
    for record in records:
        for position, event in enumerate(source.log.events(record)):
            yield [*_key(record), position, *dataclasses.astuple(event)]


_TRIAL: Mapping[str, Kind] = {
    "block": "text", "session": "integer", "outcome": "text", "success": "truth", "judged": "truth",
    "missing": "text", "reward": "number", "steps": "integer", "path_length": "integer", "bumps": "integer",
    "actions": "text",
}  # fmt: skip
_MOVES = {name: measure for name, measure in STRATEGY.items() if name not in _TRIAL}

_MOVE_COLUMNS: Mapping[str, Kind] = dict.fromkeys(_MOVES, "number")

#: The tables by name.
TABLES = {
    table.name: table
    for table in (
        Table(
            "trials",
            "one row per trial, including missing ones; `success` is as recorded, `judged` says whether the trial counts for "
            "the verdict",
            {**_TRIAL, **_MOVE_COLUMNS},
            _trials,
        ),
        Table(
            "values",
            "one row per value of a trial: counters, measures, variables (not of missing trials) and counts of the agent",
            {"kind": "text", "name": "text", "number": "number", "text": "text"},
            _values,
        ),
        Table(
            "steps",
            "one row per step, replayed from the actions; step 0 is the start; `x` and `y` are column and row",
            {
                "step": "integer", "letter": "text", "action": "text", "reward": "number", "x": "integer",
                "y": "integer", "heading": "integer", "state": "text", "observation": "text",
            },
            _steps,
        ),
        Table(
            "events",
            "one row per rule that fired",
            {"position": "integer", "step": "integer", "state": "text", "event": "text", "source": "text"},
            _events,
        ),
        Table(
            "calls",
            "one row per call to a model",
            {
                "call": "integer", "asked": "text", "reply": "text", "reasoning": "text", "finish": "text",
                "fault": "text", "served_by": "text", "prompt_tokens": "integer", "completion_tokens": "integer",
                "cached_tokens": "integer", "reasoning_tokens": "integer", "cost": "number", "seconds": "number",
                "attempts": "integer", "digest": "text", "written_tokens": "integer", "malformed": "integer",
            },
            _calls,
        ),
    )
}  # fmt: skip


#: A row group of a Parquet file is written when it has ``GROUP`` rows or ``GROUP_TEXT``
#: characters of text. This is enough to compress well, and fits into any machine's
#: memory (pyarrow holds two copies, Python one).
GROUP, GROUP_TEXT = 50_000, 8_000_000


def write_csv(
    path: Path, header: Mapping[str, Kind], subjects: Iterable[list[Row]]
) -> int:
    """Write a table as CSV, with spreadsheet formulas escaped, and return the number of
    rows.
    """
    written = 0
    with written_whole(path, newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for rows in subjects:
            writer.writerows([cell(value) for value in row] for row in rows)
            written += len(rows)
    return written


def write_parquet(
    path: Path, header: Mapping[str, Kind], subjects: Iterable[list[Row]]
) -> int:
    """Write a table as Parquet, and return the number of rows. Raise OptionError if
    pyarrow is not installed.
    """
    arrow, parquet = _pyarrow()
    types = {
        "text": arrow.string(),
        "integer": arrow.int64(),
        "number": arrow.float64(),
        "truth": arrow.bool_(),
    }
    schema = arrow.schema([(name, types[kind]) for name, kind in header.items()])
    written, text, waiting = 0, 0, list[Row]()
    texts = [place for place, kind in enumerate(header.values()) if kind == "text"]
    with (
        written_whole(path, "wb") as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):

        def flush() -> None:
            columns = zip(*waiting, strict=True) if waiting else ([] for _ in header)
            arrays = [
                arrow.array(column, type=field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            waiting.clear()

        for rows in subjects:
            waiting += rows
            written += len(rows)
            text += sum(len(row[place] or "") for row in rows for place in texts)
            if len(waiting) >= GROUP or text >= GROUP_TEXT:
                flush()
                text = 0
        flush()
    return written


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise OptionError(
            "--parquet needs pyarrow, which is not installed. "
            f"Install it with: {install_command('parquet')}, or use --csv."
        ) from None
    return pyarrow, pyarrow.parquet
