"""The run log: one SQLite file per run, which several processes may write at once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sqlite3
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from cheesebench.chat import ChatReply, ChatRequest, Message, Usage
from cheesebench.errors import RunLogError
from cheesebench.experiment import log_file, provenance, recorder
from cheesebench.interfaces import TaskEvent
from cheesebench.records import (
    CallRecord,
    CallTotals,
    CellCalls,
    CellKey,
    CellPlan,
    TrialRecord,
)
from cheesebench.redaction import alike, quoted, redactor

if TYPE_CHECKING:
    from cheesebench.interfaces import BaseSpecification

#: Replaces a picture in a recorded question. The picture can be drawn again when the
#: subject is replayed.
PICTURE = "[picture]"
COLUMNS = (
    "model, protocol, view, variant, subject, trial, call, calls.digest, system, asked, reply, reasoning, finish, "
    "fault, served_by, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, cost, seconds, attempts, "
    "written_tokens, malformed"
)
_JOINED = "FROM calls LEFT JOIN texts ON texts.digest = calls.system"
INSERT = f"INSERT INTO calls VALUES ({', '.join('?' * 24)})"
_DELETE__REFUSED = f"DELETE FROM calls WHERE {log_file.LIFE} AND trial = ? AND call = ? AND fault != ''"
_TOTALS = (
    "count(*), sum(attempts), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), "
    "sum(reasoning_tokens), sum(cost), sum(seconds), sum(written_tokens), sum(malformed)"
)


def digest(request: ChatRequest) -> str:
    """Return a digest (32 hexadecimal digits) of everything in a request that can
    affect the reply.
    """
    state = hashlib.sha256(
        repr((request.model, request.sampling, sorted(request.extra.items()))).encode()
    )
    if request.form is not None:
        state.update(
            repr(
                (request.form.name, request.form.description, request.form.by_tool)
            ).encode()
        )
        state.update(json.dumps(request.form.schema, sort_keys=True).encode())
    for message in request.messages:
        for part in message.parts:
            content = (
                part.encode(errors="surrogatepass") if isinstance(part, str) else part
            )
            state.update(
                f"|{message.role}|{type(part).__name__}|{len(content)}|".encode()
            )
            state.update(content)
    return state.hexdigest()[:32]


def readable(message: Message) -> str:
    return "".join(part if isinstance(part, str) else PICTURE for part in message.parts)


class CallLog:
    """The calls in a run log. Each belongs to a trial of a subject in a cell."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        #: System messages in the log, each with its digest and its stored form. They
        #: are cached because the calls of a cell usually share one long message.
        self._known_texts: dict[str, tuple[str, str]] = {}
        self._redacted = redactor()
        #: Calls to be written together, each with the future that its task awaits.
        self._waiting: list[
            tuple[tuple[CellPlan, int, CallRecord], asyncio.Future[None]]
        ] = []
        #: Futures of the calls that ``_flush`` has handled, each with the error, or
        #: None if the call was written.
        self._written: deque[tuple[asyncio.Future[None], Exception | None]] = deque()
        #: The event loop that these futures belong to.
        self._loop: asyncio.AbstractEventLoop | None = None

    def count(self, plan: CellPlan, subject: int) -> int:
        return int(
            self._log.select(
                f"SELECT count(*) FROM calls WHERE {log_file.LIFE}",
                (*plan.key, subject),
            )[0][0]
        )

    def subjects(self, plan: CellPlan) -> list[int]:
        """Return the numbers of the subjects that have made calls, in order."""
        where, values = _selection(plan, None)
        query = f"SELECT DISTINCT subject FROM calls{where} ORDER BY 1"
        return [subject for (subject,) in self._log.select(query, values)]

    def to_repeat(self, plan: CellPlan) -> int:
        """Return the number of recorded replies that a resumed run replays, because
        their subjects are unfinished.
        """
        where, values = _selection(plan, None)
        [(count,)] = self._log.select(
            f"SELECT count(*) FROM calls{where} AND fault = '' AND subject NOT IN (SELECT subject FROM lives{where})",
            (*values, *values),
        )
        return int(count)

    def find(
        self, plan: CellPlan, subject: int, trial: int, call: int
    ) -> CallRecord | None:
        rows = self._rows(
            f"WHERE {log_file.LIFE} AND trial = ? AND call = ?",
            (*plan.key, subject, trial, call),
        )
        return next(rows, None)

    def of_life(self, plan: CellPlan, subject: int) -> Iterator[CallRecord]:
        return self._rows(
            f"WHERE {log_file.LIFE} ORDER BY trial, call", (*plan.key, subject)
        )

    def of_trial(
        self, plan: CellPlan, subject: int, trial: int
    ) -> Iterator[CallRecord]:
        """Yield the recorded calls of a trial in order. They are read one by one,
        because there may be any number.
        """
        for call in count():
            record = self.find(plan, subject, trial, call)
            if record is None:
                return
            yield record

    def latest(self, most: int) -> Iterator[tuple[CellKey, int, CallRecord]]:
        """Yield the calls that were written last, each with its cell and subject. The
        newest comes first. Only one is in memory at a time.
        """
        for place in self._log.select(
            "SELECT rowid FROM calls ORDER BY rowid DESC LIMIT ?", (most,)
        ):
            # A running session may have replaced the row in the meantime, because
            # refused calls are made again.
            for row in self._log.select(
                f"SELECT {COLUMNS}, texts.text {_JOINED} WHERE calls.rowid = ?", place
            ):
                with log_file.damage_explained(self._log.path):
                    record = _record(row)
                yield tuple(row[:4]), row[4], record

    def as_recorded(self, reply: ChatReply) -> ChatReply:
        """Return the reply in its stored form (without secrets), so that a resumed run
        reads the same reply.
        """
        text, reasoning, model = map(
            self._storable, (reply.text, reply.reasoning, reply.model)
        )
        if (text, reasoning, model) == (reply.text, reply.reasoning, reply.model):
            return reply
        return replace(reply, text=text, reasoning=reasoning, model=model)

    def _storable(self, text: str) -> str:
        """Return text that SQLite accepts (no lone surrogates), without secrets."""
        if not text:
            return text
        return self._redacted(
            text if text.isascii() else text.encode("utf-8", "replace").decode()
        )

    def write(self, plan: CellPlan, subject: int, *records: CallRecord) -> None:
        """Write calls in one transaction, replacing earlier refusals."""
        self._write([(plan, subject, record) for record in records])

    async def commit(self, plan: CellPlan, subject: int, record: CallRecord) -> None:
        """Write a call, and return when it is stored. The calls of one iteration of the
        event loop share a transaction.

        The call is written even if the task is cancelled in the meantime, because it
        has been paid for.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # The futures of a finished loop are not needed: their calls have been
            # written.
            self._loop = loop
            self._written.clear()
        if not self._waiting:
            loop.call_soon(self._flush)
        written: asyncio.Future[None] = loop.create_future()
        self._waiting.append(((plan, subject, record), written))
        await written

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        calls = [call for call, _ in waiting]
        problem = self._problem(calls)
        problems = [problem] * len(calls)
        if (
            problem is not None
            and len(calls) > 1
            and not isinstance(problem.__cause__, sqlite3.OperationalError)
        ):
            # One invalid call must not affect the others, so each is written
            # separately. (A full disk affects all of them.)
            problems = [self._problem([call]) for call in calls]
        if not self._written:
            asyncio.get_running_loop().call_soon(self._hand_back)
        self._written.extend(
            (written, problem)
            for (_, written), problem in zip(waiting, problems, strict=True)
        )

    def _problem(
        self, calls: Sequence[tuple[CellPlan, int, CallRecord]]
    ) -> Exception | None:
        try:
            self._write(calls)
        except Exception as error:
            return error
        return None

    def _hand_back(self) -> None:
        """In each iteration of the event loop, resume one task whose call is written.

        A subject's next steps take longer than reading a reply and sending the next
        prompt. If all tasks resumed at once, the server would be idle, then get all
        prompts at once, again and again.
        """
        written, problem = self._written.popleft()
        if self._written:
            asyncio.get_running_loop().call_soon(self._hand_back)
        if written.done():  # Its task was cancelled.
            return
        if problem is None:
            written.set_result(None)
        else:
            written.set_exception(problem)

    def _write(self, calls: Sequence[tuple[CellPlan, int, CallRecord]]) -> None:
        texts = {
            text: (
                hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16],
                self._storable(text),
            )
            for text in {record.system for _, _, record in calls}
            - self._known_texts.keys()
        }
        known = self._known_texts | texts if texts else self._known_texts
        rows = [
            self._row(plan, subject, record, known[record.system][0])
            for plan, subject, record in calls
        ]
        with self._log.transaction() as connection:
            if texts:
                connection.executemany(
                    "INSERT OR IGNORE INTO texts VALUES (?, ?)", texts.values()
                )
            # A reply is never replaced, because records depend on it. Only refused
            # calls may be made and written again.
            connection.executemany(_DELETE__REFUSED, [row[:7] for row in rows])
            connection.executemany(INSERT, rows)
        # Update the cache only now: after a failed transaction, the log does not
        # contain the texts, and calls would refer to nothing.
        self._known_texts = known

    def _row(
        self, plan: CellPlan, subject: int, record: CallRecord, text_digest: str
    ) -> tuple[object, ...]:
        reply, usage = record.reply, record.reply.usage
        return (
            *(
                *plan.key,
                subject,
                record.trial,
                record.call,
                record.digest,
                text_digest,
            ),
            *(self._storable(record.asked), reply.text, reply.reasoning, reply.finish),
            *(
                record.fault or "",
                reply.model,
                usage.prompt,
                usage.completion,
                usage.cached,
            ),
            *(
                usage.reasoning,
                record.cost,
                record.seconds,
                record.attempts,
                usage.written,
                record.malformed,
            ),
        )

    def served_by(self, model: str, most: int) -> set[str]:
        """Return up to ``most`` model names that the server reported for a model's
        calls.
        """
        query = "SELECT DISTINCT served_by FROM calls WHERE model = ? AND served_by != '' LIMIT ?"
        return {name for (name,) in self._log.select(query, (model, most))}

    def has_reply(self, model: str) -> bool:
        query = "SELECT 1 FROM calls WHERE model = ? AND fault = '' LIMIT 1"
        return bool(self._log.select(query, (model,)))

    def totals(self) -> CallTotals:
        """Return the totals of all calls, including calls that wait to be written."""
        recorded = _totals(self._log.select(f"SELECT {_TOTALS} FROM calls")[0])
        return sum((record.totals for (_, _, record), _ in self._waiting), recorded)

    def in_cells(self) -> int:
        """Return the number of replies in the run's cells, without those of cells that
        were begun anew.
        """
        calls = self.by_cell()
        found = [calls[plan.key] for plan in self._log.plans() if plan.key in calls]
        return sum(one.totals.calls for one in found)

    def by_cell(self) -> dict[CellKey, CellCalls]:
        return self._grouped("", ())

    def of_cell(self, plan: CellPlan) -> CellCalls | None:
        return self._grouped(
            f"WHERE {log_file.LIFE.rsplit(' AND ', 1)[0]}", plan.key
        ).get(plan.key)

    def _grouped(
        self, where: str, values: Sequence[object]
    ) -> dict[CellKey, CellCalls]:
        key = "model, protocol, view, variant"
        totals = self._log.select(
            f"SELECT {key}, {_TOTALS} FROM calls {where} GROUP BY {key}", values
        )
        names = self._log.select(
            f"SELECT DISTINCT {key}, served_by FROM calls {where} ORDER BY served_by",
            values,
        )
        answered = {
            row[:4]: row[4]
            for row in self._log.select(
                f"SELECT {key}, sum(fault = '') FROM calls {where} GROUP BY {key}",
                values,
            )
        }
        # If a query has min(id), SQLite takes `text` from the same row.
        unread = {
            row[:4]: row[4]
            for row in self._log.select(
                f"SELECT {key}, text, min(id) FROM journal {where or 'WHERE true'} "
                f"AND kind = 'unread' GROUP BY {key}",
                values,
            )
        }
        counts: dict[CellKey, dict[str, int]] = {}
        counted = f"FROM trials, json_each(iif(json_valid(tally), tally, '{{}}')) AS one {where}"
        query = f"SELECT {key}, one.key, sum(one.value) {counted} GROUP BY {key}, one.key ORDER BY min(one.id)"
        for *cell, name, number in self._log.select(query, values):
            counts.setdefault((cell[0], cell[1], cell[2], cell[3]), {})[str(name)] = (
                int(number or 0)
            )
        return {
            cell: CellCalls(
                totals=_totals(numbers),
                served_by=tuple(n[4] for n in names if n[:4] == cell and n[4]),
                counts=counts.get(cell, {}),
                answered=answered.get(cell, 0),
                unread=unread.get(cell, ""),
            )
            for cell, numbers in ((row[:4], row[4:]) for row in totals)
        }

    def _rows(self, where: str, values: Sequence[object]) -> Iterator[CallRecord]:
        found = self._log.select(
            f"SELECT {COLUMNS}, texts.text {_JOINED} {where}", values
        )
        for row in found:
            with log_file.damage_explained(self._log.path):
                record = _record(row)
            yield record


def _record(row: Sequence[Any]) -> CallRecord:
    (
        trial,
        call,
        request_digest,
        _,
        asked,
        text,
        reasoning,
        finish,
        fault,
        served_by,
        *numbers,
        system,
    ) = row[5:]
    prompt, completion, cached, thought, cost, seconds, attempts, written, malformed = (
        numbers
    )
    usage = Usage(
        prompt=prompt,
        completion=completion,
        cached=cached,
        reasoning=thought,
        written=written,
    )
    return CallRecord(
        trial=trial,
        call=call,
        digest=request_digest,
        system=system,
        asked=asked,
        reply=ChatReply(
            text=text, reasoning=reasoning, finish=finish, usage=usage, model=served_by
        ),
        fault=fault or None,
        cost=cost,
        seconds=seconds,
        attempts=attempts,
        malformed=malformed,
    )


def _totals(row: Sequence[Any]) -> CallTotals:
    return CallTotals(
        **dict(zip(CallTotals.__slots__, (number or 0 for number in row), strict=True))
    )


#: Number of rows to read at once from a result that may be large.
AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """A journal entry with its time (UTC, ISO 8601). Its ``kind`` is ``created``,
    ``error`` or another kind of the table ``journal``.
    """

    time: str
    kind: str
    text: str
    model: str | None = None
    protocol: str | None = None
    view: str | None = None
    variant: str | None = None
    subject: int | None = None


#: Words in the journal entry of a resume that was refused.
_REFUSED = "The run cannot be continued:"
#: Beginning of the journal's entry for the start of a cell, and the same with no
#: subject left to run.
_TO_RUN = "subjects to run: "
_IDLE = f"{_TO_RUN}0 of "
#: Matches a journal entry that says in which trial (from 1) a subject was stopped.
_STOPPED = re.compile(r"stopped in trial ([0-9]{1,9}):")
#: Matches the beginning of a journal entry about a subject that was stopped by a
#: recorded refusal. No call was made, so there was nothing to choose from. The words
#: cannot be a server's, which come after a colon.
_REPEATED = re.compile(
    r"stopped in trial [0-9]{1,9}: [a-z ]+ at call [0-9]+ of trial [0-9]+ of subject [0-9]+ \("
)
#: Matches the end of a journal entry that CheeseBench has added to a server's words:
#: how often a call was tried, and one sentence, the remedy.
_ADDED = re.compile(
    r"(?:, tried \d+ times)?(?:; there was no reply at all for [\d.]+ minutes)?"
    r"(?:\. [A-Z][^.]{1,200}\.)?$"
)
#: Maximum length, in characters, of a server's words in a cause.
_LONGEST = 240
#: Matches the sentence of a journal entry that quotes an answer.
_ANSWER = re.compile(r"\.? The answer begins: .*", re.DOTALL)
#: Limits on the stops after which trials were run anew. ``MOST_REDRAWN``: number of
#: these stops as a share of the trials that the cell has run. ``MOST_OF_SUBJECT``:
#: number of these stops of one subject. If either is exceeded, the trials of each
#: stopped subject count as lost from the first one that was run anew.
MOST_REDRAWN, MOST_OF_SUBJECT = 0.05, 2
#: Cause of missing trials that count as lost because too many trials were run anew.
RUN_ANEW = "run anew"
#: Kind of the journal entry for a cell that was begun anew.
_ANEW = "anew"


def _until(plan: CellPlan, life: list[TrialRecord], lost: int) -> list[TrialRecord]:
    """Return the life with the trials from number ``lost`` on as missing trials."""
    return [
        recorder.missing_trial(plan, one.subject, one.trial, one.missing or RUN_ANEW)
        if one.trial >= lost
        else one
        for one in life
    ]


def _shown(cause: str) -> str:
    """Return a cause in one line that is not too long for a sentence. The end of a
    server's long text is left out, but not what follows it: how often it was tried, and
    a remedy. Backticks, which would mark a command, become apostrophes.
    """
    text = quoted(cause, 10_000).replace("`", "'")
    added = _ADDED.search(text)
    tail = added[0] if added else ""
    said = text.removesuffix(tail)
    if len(said) > _LONGEST:
        # Cut between words, and with a mark that is not taken for a full stop.
        said = f"{said[:_LONGEST].rpartition(' ')[0] or said[:_LONGEST]} [...]"
        tail = tail.removeprefix(".")
    return said + tail


def _without_trial(text: str) -> str:
    return _STOPPED.sub("", text, count=1).lstrip()


class RunLog(recorder.LogWriter):
    """One run: its manifest, its cells, and every finished trial.

    Create an instance with ``create``, ``open`` or ``open_read_only``. Any number of
    processes may have the same log open and write to it, and several threads may use
    one instance. Every method raises RunLogError, with a remedy, if the file cannot be
    read or written.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__(path, connection)
        #: Log of the calls to models.
        self.calls = CallLog(self)

    @classmethod
    def create(
        cls,
        results: Path,
        run_id: str,
        cells: Iterable[tuple[CellPlan, BaseSpecification]],
        *,
        options: Mapping[str, Any],
        signed: bool = False,
        plugins: Mapping[str, str] | None = None,
    ) -> Self:
        """Create ``results/run_id/run.sqlite`` for ``cells``. The manifest records
        ``options`` (JSON values).

        With ``signed``, the manifest gets a signature that says that this user made it
        on this machine, if a key can be stored. ``plugins`` are third-party plugins
        with their versions.
        """
        cells = list(cells)
        specifications = {plan.protocol: specification for plan, specification in cells}
        manifest = provenance.describe_run(
            provenance.check_run_id(run_id), specifications.values(), options, plugins
        )
        log = cls.write_new(
            results, manifest, [plan for plan, _ in cells], signed=signed
        )
        log._resumable = True
        log.note("created", f"{len(cells)} cells")
        return log

    @classmethod
    def write_new(
        cls,
        results: Path,
        manifest: Mapping[str, Any],
        plans: Iterable[CellPlan],
        *,
        signed: bool,
    ) -> Self:
        if signed and (signature := provenance.signature(manifest)) is not None:
            manifest = {**manifest, provenance.SIGNATURE: signature}
        path = (
            log_file.make_directory(
                results, provenance.check_run_id(manifest["run_id"])
            )
            / log_file.FILE_NAME
        )
        with log_file.errors_explained(path):
            connection = log_file.connect(path, "rwc")
            connection.execute("PRAGMA journal_mode = WAL")
        log = cls(path, connection)
        with log.transaction():
            for statement in filter(str.strip, log_file.SCHEMA.split(";")):
                connection.execute(statement)
            connection.execute("INSERT INTO digest VALUES ('0')")
            log_file.watch(connection, log._count)
            connection.executemany(
                "INSERT INTO manifest VALUES (?, ?)",
                [_manifest_row(key, value) for key, value in manifest.items()],
            )
            log._insert_cells(plans)
        return log

    def add_cells(self, cells: Iterable[tuple[CellPlan, BaseSpecification]]) -> None:
        """Add cells to the run. Cells already in the log stay unchanged."""
        cells = list(cells)
        specifications = {plan.protocol: specification for plan, specification in cells}
        with self.transaction():
            known = self.manifest["protocols"]
            protocols = provenance.describe_protocols(specifications.values()) | known
            if protocols != known:
                self.add_to_manifest({"protocols": protocols})
            self._insert_cells(plan for plan, _ in cells)

    def add_to_manifest(self, entries: Mapping[str, Any]) -> None:
        with self.transaction() as connection:
            rows = [_manifest_row(key, value) for key, value in entries.items()]
            connection.executemany(
                "INSERT OR REPLACE INTO manifest VALUES (?, ?)", rows
            )

    def _insert_cells(self, plans: Iterable[CellPlan]) -> None:
        self._connection.executemany(
            "INSERT OR IGNORE INTO cells (model, protocol, view, variant, plan) VALUES (?, ?, ?, ?, ?)",
            [(*plan.key, log_file.plan_to_json(plan)) for plan in plans],
        )

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a run for writing. ``path`` is the run's directory or its file. After a
        crash, SQLite recovers the file from its write-ahead log.
        """
        log = cls._open(path, log_file.connect)
        with log_file.errors_explained(log.path):
            log_file.watch(log._connection, log._count)
        log._resumable = True
        return log

    @classmethod
    def open_read_only(cls, path: Path) -> Self:
        """Open a run for reading. The run may be in progress, and its directory may be
        read-only.

        If the run has ended, no file is created beside it.
        """
        return cls._open(path, log_file.connect_read_only)

    @classmethod
    def _open(cls, path: Path, connect: Any) -> Self:
        path = path.absolute()
        if path.is_dir():
            path = path / log_file.FILE_NAME
        if not path.is_file():
            raise RunLogError(
                f"There is no run log {path}. Give the directory of a run."
            )
        with log_file.damage_explained(path):
            connection = connect(path)
            try:
                log_file.check_format(connection, path)
            except BaseException:
                connection.close()
                raise
        log_file.OPENED.pop(path, None)
        log_file.OPENED[path] = None
        return cls(path, connection)

    @property
    def directory(self) -> Path:
        return self.path.parent

    @property
    def run_id(self) -> str:
        return str(self.manifest["run_id"])

    @property
    def manifest(self) -> dict[str, Any]:
        """Facts about how the run was started, such as the program, protocols and
        options (``provenance.describe_run``).
        """
        found = self.select("SELECT key, value FROM manifest")
        with log_file.damage_explained(self.path):
            return log_file.checked_manifest(
                {key: json.loads(value) for key, value in found}
            )

    def plans(self) -> list[CellPlan]:
        """Return the cells in the order in which they were planned."""
        found = self.select("SELECT plan FROM cells ORDER BY position")
        with log_file.damage_explained(self.path):
            return [log_file.read_plan(text) for (text,) in found]

    def trials(
        self, plan: CellPlan | None = None, subject: int | None = None
    ) -> list[TrialRecord]:
        """Return the records of trials in the order of their keys: all of them, or the
        records of one cell or of one subject in it.
        """
        where, values = _selection(plan, subject)
        order = "ORDER BY model, protocol, view, variant, subject, trial"
        with self._lock, log_file.damage_explained(self.path):
            found = self._connection.execute(
                f"{log_file.SELECT_TRIALS}{where} {order}", values
            )
            return [log_file.trial_from_row(row) for row in found]

    def trials_and_gaps(self) -> list[TrialRecord]:
        """Return all records of all cells, with gaps filled as in
        ``trials_by_subject``. The run must fit into memory.
        """
        return [
            record
            for plan in self.plans()
            for life in self.trials_by_subject(plan)
            for record in life
        ]

    def trials_by_subject(self, plan: CellPlan) -> Iterator[list[TrialRecord]]:
        """Yield the trials of a cell, one subject after the other. Only one life is in
        memory at a time.

        An unfinished life gets a missing record for every planned trial that it has not
        reached, because an interrupted subject has not finished early. Verdicts are
        based on these records. In a sequential cell, subjects that have not begun are
        left out, because it may never need them. If too many trials were run anew
        (``distrusts``), the trials of each stopped subject are missing from the first
        one that was run anew.
        """
        redrawn, lost = self.redrawn(plan), dict[int, int]()
        if self.distrusts(plan, redrawn):
            lost = dict(sorted(redrawn, reverse=True))
        complete, begun = (
            self.completed_subjects(plan),
            dict.fromkeys(self._begun(plan)),
        )
        planned = range(0 if plan.sequential else plan.subjects)
        for subject in chain(planned, (one for one in begun if one not in planned)):
            life = self.trials(plan, subject) if subject in begun else []
            self._check_whole(plan, subject, life, complete.get(subject))
            if subject not in complete and subject < plan.subjects:
                first = life[-1].trial + 1 if life else 0
                life += [
                    recorder.missing_trial(plan, subject, trial, "not run")
                    for trial in range(first, plan.trials)
                ]
            if life:
                yield _until(plan, life, lost[subject]) if subject in lost else life

    def redrawn(self, plan: CellPlan) -> dict[tuple[int, int], int]:
        """Return the trials (subject, trial) that were run anew after a stop, and how
        often each was stopped.

        A language model's trial continues from its recorded replies, so it counts only
        if a call in it was answered after a refusal or a malformed answer. A trial that
        a budget cut off does not count.
        """
        stopped = self._stopped(plan)
        if plan.agent:
            stopped = filter(self._asked_again(plan).__contains__, stopped)
        found = Counter(stopped)
        done = {
            (record.subject, record.trial)
            for subject in {subject for subject, _ in found}
            for record in self.trials(plan, subject)
            if not record.missing
        }
        return {key: count for key, count in found.items() if key in done}

    def _stopped(self, plan: CellPlan) -> Iterator[tuple[int, int]]:
        """Yield the trials (subject, trial) that were stopped, once for each stop that
        does not only repeat a recorded refusal.
        """
        where, values = _selection(plan, None)
        stops = f"SELECT subject, text FROM journal{where} AND kind = 'error' AND subject IS NOT NULL"
        for subject, text in self.select(stops, values):
            stopped = _STOPPED.match(str(text))
            if stopped and not _REPEATED.match(str(text)):
                yield subject, int(stopped[1]) - 1

    def _asked_again(self, plan: CellPlan) -> set[tuple[int, int]]:
        """Return the trials with a call that was answered after a refusal or a
        malformed answer.
        """
        where, values = _selection(plan, None)
        calls = self.select(
            f"SELECT subject, trial, malformed FROM calls{where} AND malformed > 0 AND fault = ''",
            values,
        )
        return {(subject, trial) for subject, trial, _ in calls}

    def distrusts(self, plan: CellPlan, redrawn: Mapping[tuple[int, int], int]) -> bool:
        """Return whether too many trials were run anew to trust the cell. Somebody may
        have stopped subjects whenever they were wrong. For a subject with
        a recorded exception, one stop does not count, because the error may have been
        mended.
        """
        if not redrawn:
            return False
        where, values = _selection(plan, None)
        [(trials,)] = self.select(
            f"SELECT count(*) FROM trials{where} AND missing = ''", values
        )
        return self._are_many(plan, redrawn, trials)

    def may_retry(self, plan: CellPlan) -> bool:
        """Return whether a cell would still be trusted if all of its refused calls were
        made again (``--retry-errors``) and answered.
        """
        where, values = _selection(plan, None)
        refused = self.select(
            f"SELECT DISTINCT subject, trial FROM calls{where} AND fault != ''", values
        )
        anew = {(subject, trial) for subject, trial in refused}
        anew |= self._asked_again(plan)
        again = Counter(filter(anew.__contains__, self._stopped(plan)))
        trials = len(set(self._begun(plan))) * plan.trials
        return not self._are_many(plan, again, trials)

    def _are_many(
        self, plan: CellPlan, redrawn: Mapping[tuple[int, int], int], trials: int
    ) -> bool:
        raised = {entry.subject for entry in self.journal(plan, "traceback")}
        by_subject = Counter[int]({one: -1 for one in raised if one is not None})
        for (subject, _), times in redrawn.items():
            by_subject[subject] += times
        by_subject = +by_subject
        return (
            by_subject.total() > MOST_REDRAWN * trials
            or max(by_subject.values(), default=0) > MOST_OF_SUBJECT
        )

    def begin_anew(self, plan: CellPlan) -> None:
        """Put everything that the log has of a cell aside, under a variant that is not
        planned, so that a session runs the cell from its beginning. No row is lost.
        """
        aside = _variant_aside(plan, len(self.set_aside(plan)) + 1)
        where, values = _selection(plan, None)
        with self.transaction() as connection:
            for table in ("trials", "events", "lives", "calls", "journal"):
                columns = log_file.tables()[table]
                at = columns.index("variant")
                those = f"{table}{where}"
                those += f" AND kind != '{_ANEW}'" * (table == "journal")
                # A row of the journal keeps its id, so the old row is deleted before
                # the new one is inserted.
                rows = self.select(f"SELECT {', '.join(columns)} FROM {those}", values)
                connection.execute(f"DELETE FROM {those}", values)
                connection.executemany(
                    f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                    [(*row[:at], aside, *row[at + 1 :]) for row in rows],
                )
            self._note(_ANEW, f"earlier calls: variant '{aside}'", plan, None)

    def set_aside(self, plan: CellPlan) -> list[str]:
        """Return the variants under which the log keeps what it had of a cell before
        the cell was begun anew.
        """
        times = len(self.journal(plan, _ANEW))
        return [_variant_aside(plan, number) for number in range(1, times + 1)]

    def remarks(self, plan: CellPlan) -> tuple[str, ...]:
        """Return remarks on how the cell was run that a reader of the verdict must
        know. Usually there are none.
        """
        return (*self._remarks_on_beginnings(plan), *self._remarks_on_stops(plan))

    def _remarks_on_beginnings(self, plan: CellPlan) -> Iterator[str]:
        if not (aside := self.set_aside(plan)):
            return
        [(calls,)] = self.select(
            "SELECT count(*) FROM calls WHERE model = ? AND protocol = ? AND view = ? "
            f"AND variant IN ({', '.join('?' * len(aside))})",
            (*plan.key[:3], *aside),
        )
        often = "" if len(aside) == 1 else f" {len(aside)} times"
        yield (
            f"The cell was begun anew{often}: none of {calls:,} earlier replies named an action, and they do not count "
            "(except towards --max-cost and --max-tokens)."
        )

    def _remarks_on_stops(self, plan: CellPlan) -> tuple[str, ...]:
        if not (redrawn := self.redrawn(plan)):
            return ()
        trials, resumes = sum(redrawn.values()), self.resumes(plan)
        said = (
            f"{trials} {'trial was' if trials == 1 else 'trials were'} run anew after a stop, over {resumes} "
            f"{'resume' if resumes == 1 else 'resumes'}"
        )
        if self.distrusts(plan, redrawn):
            return (
                f"{said}: too many, so their subjects count as lost from these trials on.",
            )
        return (f"{said}.",)

    def note_killed(self, plan: CellPlan, wanted: Sequence[int]) -> None:
        """Record which of the wanted subjects may have been in a trial when an earlier
        run of the cell was killed.

        A run that ends in any other way notes in its journal that it was closed. For
        language models nothing is recorded here, because their calls are in the log in
        any case. The interrupted trial of a subject is the first one that was not
        written.
        """
        where, values = _selection(plan, None)
        query = f"SELECT max(id) FROM journal{where} AND kind = 'started'"
        [(started,)] = self.select(query, values)
        [(closed,)] = self.select("SELECT max(id) FROM journal WHERE kind = 'closed'")
        if plan.agent or started is None or started < (closed or 0):
            return
        begun = set(self._begun(plan))
        # A subject without a finished trial may have been in its first one.
        alive = [one for one in wanted if one in begun] + [
            one for one in wanted if one not in begun
        ][:1]
        for subject in alive:
            self.note(
                "error",
                f"stopped in trial {len(self.trials(plan, subject)) + 1}: the run was killed",
                plan,
                subject,
            )

    def resumes(self, plan: CellPlan) -> int:
        """Return how often the cell was resumed with subjects left to run."""
        begun = self.journal(plan, "started")
        return max(0, sum(not one.text.startswith(_IDLE) for one in begun) - 1)

    def note_started(self, plan: CellPlan, due: int, asked: int) -> None:
        """Record that a cell begins, or goes on, with ``due`` of its subjects."""
        self.note("started", f"{_TO_RUN}{due} of {asked}", plan)

    def _check_whole(
        self,
        plan: CellPlan,
        subject: int,
        life: Sequence[TrialRecord],
        complete: int | None,
    ) -> None:
        """Raise RunLogError if trials are missing from the log: before a recorded
        trial, or at the end of a complete life.
        """
        if [record.trial for record in life] == list(range(len(life))) and complete in (
            None,
            len(life),
        ):
            return
        raise log_file.damaged(
            self.path,
            f"trials of subject {subject} ({plan.model} on {plan.protocol}) are missing",
        )

    def recorded_subjects(self, plan: CellPlan) -> Iterator[list[TrialRecord]]:
        for subject in self._begun(plan):
            yield self.trials(plan, subject)

    def _begun(self, plan: CellPlan) -> list[int]:
        where, values = _selection(plan, None)
        return [
            subject
            for (subject,) in self.select(
                f"SELECT DISTINCT subject FROM trials{where} ORDER BY 1", values
            )
        ]

    def trial_counts(self) -> dict[CellKey, dict[int, tuple[int, int]]]:
        """Return, by cell and subject, the number of trials that were run, and the
        number of missing trials.
        """
        query = "SELECT model, protocol, view, variant, subject, sum(missing = ''), sum(missing != '') FROM trials"
        found: dict[CellKey, dict[int, tuple[int, int]]] = {}
        for model, protocol, view, variant, subject, *counts in self.select(
            f"{query} GROUP BY 1, 2, 3, 4, 5"
        ):
            found.setdefault((model, protocol, view, variant), {})[subject] = (
                counts[0],
                counts[1],
            )
        return found

    def events(self, record: TrialRecord) -> tuple[TaskEvent, ...]:
        found = self.select(
            log_file.SELECT_EVENTS, (*record.key, record.subject, record.trial)
        )
        return tuple(TaskEvent(*row) for row in found)

    def completed_subjects(self, plan: CellPlan) -> dict[int, int]:
        """Return the complete subjects of a cell, with their numbers of trials."""
        where, values = _selection(plan, None)
        return dict(
            self.select(
                f"SELECT subject, trials FROM lives{where} ORDER BY subject", values
            )
        )

    def journal(
        self, plan: CellPlan | None = None, kind: str | None = None
    ) -> list[JournalEntry]:
        where, values = _selection(plan, None)
        if kind is not None:
            where, values = (
                (f"{where} AND" if where else " WHERE") + " kind = ?",
                (*values, kind),
            )
        columns = "time, kind, text, model, protocol, view, variant, subject"
        names = columns.split(", ")
        found = self.select(f"SELECT {columns} FROM journal{where} ORDER BY id", values)
        return [JournalEntry(**dict(zip(names, row, strict=True))) for row in found]

    def causes(self, plan: CellPlan | None = None) -> dict[CellKey, tuple[str, ...]]:
        """Return the reasons why trials of each cell could not be run since the cell
        was last started. The most frequent reason comes first. A reason that stopped
        several trials is listed once, in the words of its first entry, but without the
        answer that this quotes. If the last start was refused, the reasons of the start
        before it still hold.
        """
        #: The reasons of each cell, each with all of its texts. The key of a reason is
        #: what its texts have in common (``alike``).
        found: dict[CellKey, dict[str, list[str]]] = {}
        earlier: dict[CellKey, dict[str, list[str]]] = {}
        where, values = _selection(plan, None)
        where = (
            f"{where} AND" if where else " WHERE"
        ) + " kind IN ('started', 'error') AND variant IS NOT NULL"
        for kind, text, *key in self.stream(
            f"SELECT kind, text, model, protocol, view, variant FROM journal{where} ORDER BY id",
            values,
        ):
            cell = cast("CellKey", tuple(map(str, key)))
            if kind == "started":
                earlier[cell] = found.pop(cell, {})
            else:
                kept = earlier.get(cell, {}) if _REFUSED in text else {}
                notes = found.setdefault(cell, dict(kept))
                text = _ANSWER.sub("", text)
                notes.setdefault(alike(_without_trial(text)), []).append(text)
        return {
            key: tuple(
                _shown(texts[0] if len({*texts}) == 1 else _without_trial(texts[0]))
                for texts in sorted(notes.values(), key=len, reverse=True)
            )
            for key, notes in found.items()
        }

    def dump(self) -> Iterator[str]:
        """Yield every trial with its events as a line of canonical JSON, for
        byte-by-byte comparison of runs.
        """
        for row in self.stream(
            f"{log_file.SELECT_TRIALS} ORDER BY model, protocol, view, variant, subject, trial"
        ):
            with log_file.damage_explained(self.path):
                record = log_file.trial_from_row(row)
            yield log_file.dump_line(record, self.events(record))

    def check_pages(self) -> None:
        """Raise RunLogError if the file is damaged. This takes a few seconds per
        gigabyte.
        """
        with self._lock, self._errors_explained():
            log_file.check_pages(self._connection, self.path)

    def rows_digest(self) -> str:
        """Return the recorded digest of all rows, which changes with every row."""
        [(total,)] = self.select("SELECT total FROM digest")
        return str(total)

    def verify(self) -> int:
        """Return the number of rows. Raise RunLogError if the file is damaged, or rows
        were added, changed or removed.
        """
        self.check_pages()
        rows = total = 0
        with self.snapshot(), log_file.damage_explained(self.path):
            recorded = self.rows_digest()
            for table, columns in log_file.tables().items():
                for row in self.stream(f"SELECT {', '.join(columns)} FROM {table}"):
                    rows, total = rows + 1, total + log_file.row_digest(table, row)
            if total % recorder.DIGESTS != int(recorded, 16):
                raise ValueError("its rows differ from the rows that were written")
        return rows

    def select(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock, self._errors_explained():
            return self._connection.execute(query, values).fetchall()

    def stream(self, query: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield the rows of a query. Memory stays small even for a large result,
        because only a few rows are loaded at a time.
        """
        with self._lock, self._errors_explained():
            cursor = self._connection.execute(query, values)
        while True:
            with self._lock, self._errors_explained():
                found = cursor.fetchmany(AT_ONCE)
            if not found:
                return
            yield from found

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let the ``with`` block read one consistent state, whatever another process
        writes in the meantime.
        """
        with self._lock, self._errors_explained():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _manifest_row(key: str, value: Any) -> tuple[str, str]:
    return key, log_file.to_json(value)


def _variant_aside(plan: CellPlan, number: int) -> str:
    """Return the variant for what a cell had before it was begun anew."""
    return ",".join(filter(None, (str(plan.variant), f"given up {number}")))


def _selection(
    plan: CellPlan | None, subject: int | None
) -> tuple[str, tuple[Any, ...]]:
    if plan is None:
        return "", ()
    if subject is None:
        return (
            " WHERE model = ? AND protocol = ? AND view = ? AND variant = ?",
            plan.key,
        )
    return f" WHERE {log_file.LIFE}", (*plan.key, subject)
