"""The tables of a run: their columns, and their rows one subject at a time."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cheesebench.experiment.records import TrialRecord
from cheesebench.experiment.replay import films, recorded_paradigm, steppable
from cheesebench.interfaces import ACTION_OF_LETTER, ACTIONS, Value
from cheesebench.statistics.blocks import TRIAL_FIELDS, trial_values
from cheesebench.statistics.measures import STRATEGY

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan
    from cheesebench.interfaces import Paradigm
    from cheesebench.plugin_manager import PluginManager

Kind = Literal["text", "integer", "number", "truth"]
Row = list[Any]

#: Says which trial it is: the first columns of every table.
KEY: Mapping[str, Kind] = {
    "model": "text", "protocol": "text", "view": "text", "variant": "text", "subject": "integer", "trial": "integer",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what it has a row for, its columns (after KEY) with their types, and the rows of a subject."""

    name: str
    about: str
    columns: Mapping[str, Kind]
    rows: Callable[[Source, CellPlan, Sequence[TrialRecord]], Iterator[Row]]

    @property
    def header(self) -> dict[str, Kind]:
        """All columns in order."""
        return {**KEY, **self.columns}


@dataclass(slots=True)
class Source:
    """A run that is exported. ``observations``: steps have what was perceived after them."""

    log: RunLog
    plugins: PluginManager
    observations: bool = False
    _paradigm: tuple[CellPlan, Paradigm] | None = None

    def paradigm(self, plan: CellPlan) -> Paradigm:
        """Return the paradigm of a cell as the run had it; only the latest is kept."""
        if self._paradigm is None or self._paradigm[0].key != plan.key:
            self._paradigm = plan, steppable(recorded_paradigm(self.log, self.plugins, plan), plan)
        return self._paradigm[1]

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(self.log.manifest["options"]["seed"])

    def rows(self, table: Table) -> Iterator[list[Row]]:
        """Yield the rows of every subject; one subject is in memory at a time."""
        for plan in self.log.plans():
            for records in self.log.trials_by_subject(plan):
                yield list(table.rows(self, plan, records))


def _key(record: TrialRecord) -> Row:
    return [getattr(record, name) for name in KEY]


def _trials(source: Source, plan: CellPlan, records: Iterable[TrialRecord]) -> Iterator[Row]:
    for record in records:
        strategy = [None if record.missing else measure(record) for measure in _MOVES.values()]
        fields = [getattr(record, name) if name == "missing" or not record.missing else None for name in _TRIAL]
        yield [*_key(record), *fields, *strategy]


def _values(source: Source, plan: CellPlan, records: Iterable[TrialRecord]) -> Iterator[Row]:
    for record in records:
        kinds = {kind: v for kind, v in trial_values(record).items() if kind in ("counter", "measure", "variable")}
        for kind, values in {**kinds, "tally": record.tally}.items():
            for name, value in values.items():
                number = float(value) if isinstance(value, (int, float)) else None
                yield [*_key(record), kind, name, number, _text(value)]


def _text(value: Value) -> str | None:
    """Return a value that is no number as text; sets as JSON lists."""
    if value is None or isinstance(value, (int, float)):
        return None
    return value if isinstance(value, str) else json.dumps(list(value), ensure_ascii=False)


def _steps(source: Source, plan: CellPlan, records: Sequence[TrialRecord]) -> Iterator[Row]:
    run = [record for record in records if not record.missing]
    environment = source.paradigm(plan).environment(source.plugins.view(plan.view), source.seed, records[0].subject)
    for record, frames in zip(run, films(environment, run), strict=True):
        for number, frame in enumerate(frames):
            shown = [str(frame.observation)] if source.observations else [None]
            yield [*_key(record), number, frame.action, _action(frame.action), frame.reward, *shown]


def _action(letter: str) -> str | None:
    """Return the name of an action; the frozen steps that the runner waited through are STAY too."""
    return ACTIONS[ACTION_OF_LETTER[letter]] if letter else None


def _calls(source: Source, plan: CellPlan, records: Sequence[TrialRecord]) -> Iterator[Row]:
    key = _key(records[0])[:-1]
    for call in source.log.calls.of_life(plan, records[0].subject):
        reply, usage = call.reply, call.reply.usage
        yield [
            *key, call.trial, call.call, call.asked, reply.text, reply.reasoning, reply.finish, call.fault or "",
            reply.model, usage.prompt, usage.completion, usage.cached, usage.reasoning, call.cost, call.seconds,
            call.attempts, call.digest, usage.written, call.malformed,
        ]  # fmt: skip


def _events(source: Source, plan: CellPlan, records: Iterable[TrialRecord]) -> Iterator[Row]:
    for record in records:
        for position, event in enumerate(source.log.events(record)):
            yield [*_key(record), position, *dataclasses.astuple(event)]


_TRIAL: Mapping[str, Kind] = {
    "block": "text", "session": "integer", "outcome": "text", "success": "truth", "compared": "truth",
    "missing": "text", "reward": "number", "steps": "integer", "path_length": "integer", "bumps": "integer",
    "actions": "text",
}  # fmt: skip
_MOVES = {name: measure for name, measure in STRATEGY.items() if name not in TRIAL_FIELDS}

_MOVE_COLUMNS: Mapping[str, Kind] = dict.fromkeys(_MOVES, "number")

#: The tables by name.
TABLES = {
    table.name: table
    for table in (
        Table("trials", "one row per trial, including missing ones", {**_TRIAL, **_MOVE_COLUMNS}, _trials),
        Table(
            "values",
            "one row per counter, measure and variable of the protocol, and per count of the agent",
            {"kind": "text", "name": "text", "number": "number", "text": "text"},
            _values,
        ),
        Table(
            "steps",
            "one row per step, replayed from the actions; step 0 is the start of a trial",
            {"step": "integer", "letter": "text", "action": "text", "reward": "number", "observation": "text"},
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
