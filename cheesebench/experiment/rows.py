"""Exact conversion of records to rows of the run log and back."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from cheesebench.experiment.log_types import MOST_DIGITS, MOST_OF_LIFE, check_letters
from cheesebench.experiment.records import CellPlan, TrialRecord
from cheesebench.interfaces import ACTION_OF_LETTER, TaskEvent

#: Columns of the table ``trials``, in the order of the record's fields.
TRIAL_COLUMNS = tuple(field.name for field in dataclasses.fields(TrialRecord))
EVENT_COLUMNS = tuple(field.name for field in dataclasses.fields(TaskEvent))
_BOOLEANS = frozenset({"success", "compared"})
_NAMES = ("model", "protocol", "view", "variant", "block", "outcome")
_MAPPINGS = frozenset({"counters", "measures", "variables", "tally"})
_COUNTS = frozenset({"counters", "tally"})
#: More counters, measures, variables or counts of a trial than any protocol has.
MOST_VALUES = 10_000
_TOO_LARGE = 10**MOST_DIGITS
_LETTERS = frozenset(ACTION_OF_LETTER)


class DamagedRowError(ValueError):
    """A row is not what was written."""


def seal(values: Iterable[Any]) -> int:
    """Return the checksum of a row's values: 64 bits, the same before they are written and after they are read."""
    parts = []
    for value in values:
        if isinstance(value, str):
            content = value.encode(errors="surrogatepass")
            parts.append(b"text %d " % len(content))
            parts.append(content)
        elif value is None:
            parts.append(b"null ")
        else:  # SQLite keeps 1.0 as 1 and -0.0 as 0 where that is shorter, and has no booleans
            parts.append(b"number %r " % (float(value) + 0.0))
    return int.from_bytes(hashlib.blake2b(b"".join(parts), digest_size=8).digest(), "big", signed=True)


def unsealed(row: Sequence[Any], *more: Any) -> Sequence[Any]:
    """Return a row without its seal, the last value; DamagedRowError unless that is the seal of it and ``more``."""
    if row[-1] != seal((*row[:-1], *more)):
        raise DamagedRowError("a row is not what was written")
    return row[:-1]


def to_json(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def trial_to_row(record: TrialRecord) -> tuple[Any, ...]:
    """Return the values of TRIAL_COLUMNS, and their seal."""
    values = tuple(
        to_json(dict(getattr(record, name))) if name in _MAPPINGS else getattr(record, name) for name in TRIAL_COLUMNS
    )
    return (*values, seal(values))


def trial_from_row(row: Sequence[Any]) -> TrialRecord:
    """Return the record that ``trial_to_row`` made the row from; DamagedRowError if it did not."""
    values = dict(zip(TRIAL_COLUMNS, unsealed(row), strict=True))
    for name in _MAPPINGS:
        values[name] = _mapping(values[name], name in _COUNTS)
    counts = (values["trial"], values["session"])
    if min(values["subject"], values["steps"], *counts) < 0 or max(counts) > MOST_OF_LIFE:
        raise DamagedRowError("an impossible trial")
    if not _LETTERS.issuperset(values["actions"]):
        raise DamagedRowError("an impossible trial")
    for name in _NAMES:
        values[name] = values[name] and sys.intern(values[name])
    for name in _BOOLEANS:
        if values[name] is not None:
            values[name] = bool(values[name])
    return TrialRecord(**values)


@lru_cache(maxsize=4096)
def _mapping(text: str, counts: bool) -> Mapping[str, Any]:
    """Return a JSON object; trials that are alike share it, because a large run is read as a whole."""
    mapping = json.loads(text)
    if isinstance(mapping, dict) and len(mapping) > MOST_VALUES:
        raise DamagedRowError(f"a trial has more than {MOST_VALUES:,} values of a kind")
    kinds = int if counts else int | float | str | list | None
    if not isinstance(mapping, dict) or not all(isinstance(value, kinds) for value in mapping.values()):
        raise DamagedRowError("a trial's values are invalid")
    if any(isinstance(value, int) and abs(value) >= _TOO_LARGE for value in mapping.values()):
        raise DamagedRowError(f"a value of a trial has more than {MOST_DIGITS} digits")
    check_letters(text, mapping)
    if any(not isinstance(item, str) for value in mapping.values() if isinstance(value, list) for item in value):
        raise DamagedRowError("a list of a trial's values has something other than texts")
    return mapping


def events_to_rows(events: Iterable[TaskEvent]) -> list[tuple[Any, ...]]:
    """Return the values of EVENT_COLUMNS for each event."""
    return [(event.step, event.state, event.event, event.source) for event in events]


def plan_to_json(plan: CellPlan) -> str:
    """Return the plan as a JSON object with its field names as keys."""
    return to_json(dataclasses.asdict(plan) | {"variant": str(plan.variant)})


def dump_line(record: TrialRecord, events: Sequence[TaskEvent]) -> str:
    """Return a trial and its events as one line of canonical JSON."""
    values = {name: getattr(record, name) for name in TRIAL_COLUMNS}
    values |= {name: dict(values[name]) for name in _MAPPINGS}
    values["events"] = events_to_rows(events)
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
