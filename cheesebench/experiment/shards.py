"""Shards: the cells of one run, divided among sessions that do not communicate."""

from __future__ import annotations

import heapq
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cheesebench.errors import NOT_AS_WRITTEN, OptionError, RunLogError
from cheesebench.experiment import log_file
from cheesebench.experiment.log import COLUMNS as CALL_COLUMNS
from cheesebench.experiment.log import INSERT as INSERT_CALL
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.provenance import SIGNATURE, made_here, new_run_id
from cheesebench.files import draft_directory
from cheesebench.options import OPTIONS
from cheesebench.redaction import quoted

if TYPE_CHECKING:
    from cheesebench.records import CellPlan

#: Maximum number of shards. It is far above any use.
MOST = 100_000
#: The manifest's key for the shard and the plans of all cells.
KEY = "shard"


@dataclass(frozen=True, slots=True, order=True)
class Shard:
    """Part number ``index`` (from 1) of the ``of`` parts of a run."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Self:
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text, re.ASCII)
        index, of = map(int, found.groups()) if found else (0, 0)
        if not 1 <= index <= of <= MOST:
            raise OptionError(
                f"--shard {text}: give the number of the part and the number of parts, from 1/N to N/N, for example 2/8."
            )
        return cls(index, of)

    def part(self, plans: Sequence[CellPlan]) -> list[CellPlan]:
        return deal(plans, self.of).get(self, [])


def deal(plans: Sequence[CellPlan], of: int) -> dict[Shard, list[CellPlan]]:
    """Return the cells of each of ``of`` shards, in the order of ``plans``. Empty
    shards are left out.

    Equal plans are always divided in the same way. Cells with many trials come first,
    and each goes to the shard with the fewest trials so far. Cells are never split,
    because a verdict needs all its subjects.
    """
    # If there are more shards than cells, the last shards stay empty.
    lightest = [(0, index) for index in range(1, min(of, len(plans)) + 1)]
    shard_of = {}
    for at in sorted(
        range(len(plans)), key=lambda at: (-plans[at].subjects * plans[at].trials, at)
    ):
        trials, index = lightest[0]
        heapq.heapreplace(
            lightest, (trials + max(1, plans[at].subjects * plans[at].trials), index)
        )
        shard_of[at] = Shard(index, of)
    dealt: dict[Shard, list[CellPlan]] = {}
    for at, plan in enumerate(plans):
        dealt.setdefault(shard_of[at], []).append(plan)
    return dealt


def describe_shard(shard: Shard, plans: Sequence[CellPlan]) -> dict[str, Any]:
    """Return the manifest's entry for a shard: its number, and the cells of all
    shards.
    """
    cells = [log_file.plan_to_json(plan) for plan in plans]
    return {KEY: {"index": shard.index, "of": shard.of, "cells": cells}}


def read_shard(manifest: dict[str, Any]) -> tuple[Shard, list[CellPlan]] | None:
    """Return the shard of a run and the cells of all shards, or None for a whole run.
    Raise RunLogError for an entry that no run can have written.
    """
    found = manifest.get(KEY)
    if found is None:
        return None
    try:
        shard = Shard.parse(f"{found['index']}/{found['of']}")
        plans = [log_file.read_plan(text) for text in found["cells"]]
        if len({plan.key for plan in plans}) != len(plans):
            raise ValueError("a cell is planned twice")
    except (
        OptionError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RecursionError,
    ) as error:
        raise RunLogError(
            f"The manifest of run '{manifest['run_id']}' has no valid shard ({log_file.to_json(str(error))}). Use an "
            "undamaged copy, or run the shard again."
        ) from None
    return shard, plans


#: Names of versions that may differ between shards, because the machine does not affect
#: records.
_FREE = ("platform",)
#: Options that may differ between shards: the shard itself, and the options that a
#: resumed run may change.
_OWN = {option.key for option in OPTIONS if option.overridable} | {KEY}
#: Maximum number of differences to list.
_MOST = 5


@dataclass(frozen=True, slots=True)
class Part:
    """A shard: its log, its manifest, and the cells of all shards."""

    log: RunLog
    manifest: Mapping[str, Any]
    shard: Shard
    whole: Sequence[CellPlan]

    @property
    def name(self) -> str:
        return f"shard {self.shard} ({quoted(str(self.log.directory.name), 100)})"


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged run: its path, how many shards and cells it has, and the cells of
    missing shards, by shard.
    """

    path: Path
    parts: int
    cells: int
    missing: Mapping[Shard, Sequence[CellPlan]]


def merge_runs(
    paths: Sequence[Path],
    results: Path,
    run_id: str | None = None,
    complete: Callable[[RunLog], None] = lambda log: None,
) -> Merged:
    """Merge shards into the run ``results/run_id`` (None: a new id). ``complete`` may
    add files to the run's directory before it appears in ``results``.

    Raise RunLogError, and leave no new run, for a log that is damaged or no shard, if
    the shards are not parts of one run, and if the run exists.
    """
    with ExitStack() as stack:
        parts = sorted(
            (
                _open(stack, path)
                for path in dict.fromkeys(path.resolve() for path in paths)
            ),
            key=lambda part: part.shard,
        )
        first = parts[0]
        _check_fit(parts)
        for part in parts:
            _check_cells(part)
        manifest = _merged_manifest(parts)
        name = manifest["run_id"] = run_id or new_run_id()
        # A run is trusted to decide which programs are started and which servers are
        # called only if it was made here.
        signed = all(made_here(part.manifest) for part in parts)
        final = results.absolute() / name
        log_file.check_new(final)
        # A half-merged run must not appear in ``results``, because resuming it would
        # pay for the rest again.
        with log_file.errors_explained(final), draft_directory(results) as draft:
            with RunLog.write_new(draft, manifest, first.whole, signed=signed) as log:
                for part in parts:
                    _copy(part, log)
                log.note(
                    "created",
                    f"merged from {len(parts)} of {first.shard.of} shards",
                )
            with RunLog.open_read_only(draft / name / log_file.FILE_NAME) as whole:
                complete(whole)
            log_file.check_new(final)
            (draft / name).rename(final)
        dealt = deal(first.whole, first.shard.of)
        return Merged(
            path=final / log_file.FILE_NAME,
            parts=len(parts),
            cells=len(first.whole),
            missing={
                shard: dealt[shard]
                for shard in sorted(dealt.keys() - {part.shard for part in parts})
            },
        )


def _check_fit(parts: Sequence[Part]) -> None:
    """Raise RunLogError unless these are different shards of one run."""
    first = parts[0]
    for one, other in pairwise(parts):
        if found := _differences(first, other):
            more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
            raise RunLogError(
                f"{first.name} and {other.name} are not parts of one run: {'; '.join(found[:_MOST])}{more}. "
                "Merge only shards of the same command."
            )
        if one.shard == other.shard:
            raise RunLogError(
                f"Shard {one.shard} is there twice: {one.name} and {other.name}. Leave one of them out."
            )


def _merged_manifest(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the first part's manifest without its shard and signature. It calls the
    work tree dirty if any part does.
    """
    manifest = {
        key: value
        for key, value in parts[0].manifest.items()
        if key not in (KEY, SIGNATURE)
    }
    manifest["options"] = {**manifest["options"], KEY: None}
    if manifest["git"] is not None:
        dirty = any(_git(part).get("dirty") for part in parts)
        manifest["git"] = {**manifest["git"], "dirty": dirty}
    return manifest


def _open(stack: ExitStack, path: Path) -> Part:
    log = stack.enter_context(RunLog.open_read_only(path))
    log.verify()
    manifest = log.manifest
    found = read_shard(manifest)
    if found is None:
        raise RunLogError(
            f"{log.directory} was not made with --shard. Only shards of one run can be merged."
        )
    return Part(log, manifest, *found)


def _differences(one: Part, other: Part) -> list[str]:
    found = list(_unequal("options", one.manifest, other.manifest, but=_OWN))
    if one.shard.of != other.shard.of:
        found.append(
            f"{one.name} is one of {one.shard.of} shards, {other.name} one of {other.shard.of}"
        )
    found += _unequal("versions", one.manifest, other.manifest, but=_FREE)
    revisions = [_git(part).get("revision") for part in (one, other)]
    if revisions[0] != revisions[1]:
        found.append(
            f"the git revision is {quoted(str(revisions[0])[:12], 12)} and {quoted(str(revisions[1])[:12], 12)}"
        )
    plugins = [
        {
            name: what
            for name, what in part.manifest["plugins"].items()
            if not name.startswith("pytest:")
        }
        for part in (one, other)
    ]
    found += _pairs("plugin", *plugins)
    hashes = [
        {name: text.get("sha256") for name, text in part.manifest["protocols"].items()}
        for part in (one, other)
    ]
    found += _pairs("the protocol", *hashes)
    return found + list(_plan_differences(one, other))


def _git(part: Part) -> Mapping[str, Any]:
    return part.manifest["git"] or {}


def _unequal(
    key: str, one: Mapping[str, Any], other: Mapping[str, Any], but: Any
) -> list[str]:
    return _pairs(
        "",
        *(
            {k: v for k, v in manifest[key].items() if k not in but}
            for manifest in (one, other)
        ),
    )


def _pairs(what: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [
        f"{what} {quoted(name, 60)} is {_shown(one, name)} and {_shown(other, name)}".strip()
        for name in {**one, **other}
        if one.get(name) != other.get(name)
    ]


def _shown(values: Mapping[str, Any], name: str) -> str:
    return (
        quoted(str(values[name]), 40) if values.get(name) is not None else "not given"
    )


def _plan_differences(one: Part, other: Part) -> Iterator[str]:
    if list(map(log_file.plan_to_json, one.whole)) == list(
        map(log_file.plan_to_json, other.whole)
    ):
        return
    then = {plan.key: plan for plan in one.whole}
    now = {plan.key: plan for plan in other.whole}
    owners = dict.fromkeys(now, other.name) | dict.fromkeys(then, one.name)
    for key in {**then, **now}:
        name = f"{key[1]} in {key[2]} by {key[0]}"
        if key not in then or key not in now:
            yield f"only {owners[key]} has {quoted(name, 100)}"
        elif then[key] != now[key] or then[key].settings != now[key].settings:
            yield f"{quoted(name, 100)} is planned in different ways"
    if list(then) != list(now):
        yield "the order of the cells differs"


def _check_cells(part: Part) -> None:
    """Raise RunLogError unless a log has exactly the cells of its shard."""
    mine = {
        plan.key: log_file.plan_to_json(plan) for plan in part.shard.part(part.whole)
    }
    plans = {plan.key: log_file.plan_to_json(plan) for plan in part.log.plans()}
    if mine != plans:
        raise RunLogError(
            f"The cells of {part.name} differ from the cells that this shard must have. Run the shard again."
        )


@contextmanager
def _blamed(shard: Path) -> Iterator[None]:
    """Say that a shard is damaged if its rows cannot be copied, unless the merged log
    cannot be written, such as on a full disk.
    """
    try:
        yield
    except sqlite3.OperationalError:
        raise
    except (sqlite3.Error, *NOT_AS_WRITTEN) as error:
        raise log_file.damaged(shard, str(error)) from error


def _copy(part: Part, log: RunLog) -> None:
    where = " WHERE model = ? AND protocol = ? AND view = ? AND variant = ?"
    for plan in part.shard.part(part.whole):
        with log.transaction() as connection, _blamed(part.log.path):
            # Lives are copied first, so that a life recorded as complete has all its
            # trials, even while the shard is running.
            _insert(
                connection,
                "INSERT INTO lives VALUES (?, ?, ?, ?, ?, ?)",
                part.log,
                f"lives{where}",
                plan.key,
            )
            for row in part.log.stream(f"{log_file.SELECT_TRIALS}{where}", plan.key):
                connection.execute(log_file.INSERT_TRIAL, row)
            _insert(
                connection, log_file.INSERT_EVENT, part.log, f"events{where}", plan.key
            )
            for variant in (str(plan.variant), *part.log.set_aside(plan)):
                _copy_calls(part.log, connection, where, (*plan.key[:3], variant))
    with log.transaction() as connection:
        columns = "time, kind, text, model, protocol, view, variant, subject"
        for row in part.log.stream(f"SELECT {columns} FROM journal ORDER BY id"):
            connection.execute(log_file.INSERT_JOURNAL, row)


def _insert(
    connection: sqlite3.Connection,
    statement: str,
    source: RunLog,
    table: str,
    key: Sequence[Any],
) -> None:
    for row in source.stream(f"SELECT * FROM {table}", key):
        connection.execute(statement, row)


def _copy_calls(
    source: RunLog,
    connection: sqlite3.Connection,
    where: str,
    key: Sequence[str],
) -> None:
    joined = f"SELECT {CALL_COLUMNS}, texts.text FROM calls LEFT JOIN texts ON texts.digest = calls.system"
    known: dict[str, str] = {}
    for *row, text in source.stream(f"{joined}{where} ORDER BY calls.rowid", key):
        digest = row[8]
        if digest not in known:
            connection.execute(
                "INSERT OR IGNORE INTO texts VALUES (?, ?)", (digest, text)
            )
            [(known[digest],)] = connection.execute(
                "SELECT text FROM texts WHERE digest = ?", (digest,)
            )
        if known[digest] != text:
            raise ValueError("two system prompts have the same digest")
        connection.execute(INSERT_CALL, row)
