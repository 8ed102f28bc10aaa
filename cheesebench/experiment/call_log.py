"""The calls of a run: every paid reply is stored, so that it never has to be paid for again."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from cheesebench.chat import ChatReply, ChatRequest, FaultKind, Message, Usage
from cheesebench.experiment.log_file import LIFE, damage_explained
from cheesebench.experiment.records import CallTotals, CellCalls, CellKey, CellPlan
from cheesebench.experiment.rows import DamagedRowError, seal, unsealed
from cheesebench.redaction import redactor

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog

#: Stands in a recorded question where a picture was; subjects can be replayed, and the picture drawn again.
PICTURE = "[picture]"
COLUMNS = (
    "model, protocol, view, variant, subject, trial, call, calls.digest, system, asked, reply, reasoning, finish, "
    "fault, served_by, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, cost, seconds, attempts, "
    "written_tokens, malformed, seal"
)
_JOINED = "FROM calls LEFT JOIN texts ON texts.digest = calls.system"
INSERT = f"INSERT INTO calls VALUES ({', '.join('?' * 25)})"
_DELETE_REFUSED = f"DELETE FROM calls WHERE {LIFE} AND trial = ? AND call = ? AND fault != ''"
_TOTALS = (
    "count(*), sum(attempts), sum(prompt_tokens), sum(completion_tokens), sum(cached_tokens), "
    "sum(reasoning_tokens), sum(cost), sum(seconds), sum(written_tokens), sum(malformed)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call of one subject: ``call`` counts from 0 in its trial.

    ``digest`` covers the whole prompt and every parameter; ``system`` and ``asked`` are its system message and its last
    message as text (the messages in between repeat earlier calls). A call that was refused because of its content has
    ``fault`` set and no reply. ``cost`` is in dollars, None if the price is unknown; ``seconds`` is the time of the
    successful attempt; ``attempts`` includes retries, and ``malformed`` of them had an answer that was no reply,
    or were refused for what was asked before it was asked again.
    """

    trial: int
    call: int
    digest: str
    system: str
    asked: str
    reply: ChatReply
    fault: FaultKind | None = None
    cost: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    malformed: int = 0

    @property
    def totals(self) -> CallTotals:
        """The numbers of this call."""
        usage = self.reply.usage
        return CallTotals(
            calls=1,
            attempts=self.attempts,
            prompt=usage.prompt,
            completion=usage.completion,
            cached=usage.cached,
            reasoning=usage.reasoning,
            cost=self.cost or 0.0,
            seconds=self.seconds,
            written=usage.written,
            malformed=self.malformed,
        )


def digest(request: ChatRequest) -> str:
    """Return a digest (32 hexadecimal digits) of everything that can affect the reply."""
    state = hashlib.sha256(repr((request.model, request.sampling, sorted(request.extra.items()))).encode())
    for message in request.messages:
        for part in message.parts:
            content = part.encode(errors="surrogatepass") if isinstance(part, str) else part
            state.update(f"|{message.role}|{type(part).__name__}|{len(content)}|".encode())
            state.update(content)
    return state.hexdigest()[:32]


def readable(message: Message) -> str:
    """Return a message as text."""
    return "".join(part if isinstance(part, str) else PICTURE for part in message.parts)


class CallLog:
    """The calls in a run log, by life."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        #: System messages that are in the log, with their digests and as they are stored: every call has a long one.
        self._known_texts: dict[str, tuple[str, str]] = {}
        self._redacted = redactor()
        #: Calls to be written in this turn of the event loop, and who waits for each.
        self._waiting: list[tuple[tuple[CellPlan, int, CallRecord], asyncio.Future[None]]] = []
        #: Those whose calls are written, or could not be.
        self._written: deque[tuple[asyncio.Future[None], Exception | None]] = deque()
        #: That all of these belong to.
        self._loop: asyncio.AbstractEventLoop | None = None

    def count(self, plan: CellPlan, subject: int) -> int:
        """Return the number of recorded calls of a subject."""
        return int(self._log.select(f"SELECT count(*) FROM calls WHERE {LIFE}", (*plan.key, subject))[0][0])

    def find(self, plan: CellPlan, subject: int, trial: int, call: int) -> CallRecord | None:
        """Return a recorded call; None if there is none."""
        rows = self._rows(f"WHERE {LIFE} AND trial = ? AND call = ?", (*plan.key, subject, trial, call))
        return next(rows, None)

    def of_life(self, plan: CellPlan, subject: int) -> Iterator[CallRecord]:
        """Yield the recorded calls of a subject in order."""
        return self._rows(f"WHERE {LIFE} ORDER BY trial, call", (*plan.key, subject))

    def check(self) -> None:
        """Raise RunLogError for a call that is not what was written; lives are read one after the other."""
        lives = "SELECT DISTINCT model, protocol, view, variant, subject FROM calls"
        calls = f"SELECT {COLUMNS}, texts.text {_JOINED} WHERE {LIFE}"
        for life in self._log.select(lives):
            with damage_explained(self._log.path):  # once for a life: there may be millions of calls
                for row in self._log.select(calls, life):
                    _unsealed(row)

    def of_trial(self, plan: CellPlan, subject: int, trial: int) -> Iterator[CallRecord]:
        """Yield the recorded calls of a trial in order, each read when it is asked for: there may be any number."""
        for call in count():
            record = self.find(plan, subject, trial, call)
            if record is None:
                return
            yield record

    def latest(self, most: int) -> Iterator[tuple[CellKey, int, CallRecord]]:
        """Yield the calls that were written last, newest first, each with its cell and its subject.

        One is in memory at a time.
        """
        for place in self._log.select("SELECT rowid FROM calls ORDER BY rowid DESC LIMIT ?", (most,)):
            # A running session may have replaced it by now: what was refused is asked again.
            for row in self._log.select(f"SELECT {COLUMNS}, texts.text {_JOINED} WHERE calls.rowid = ?", place):
                with damage_explained(self._log.path):
                    record = _record(row)
                yield tuple(row[:4]), row[4], record

    def as_recorded(self, reply: ChatReply) -> ChatReply:
        """Return the reply as it is stored (without secrets), so that a resumed run reads the same reply."""
        text, reasoning, model = map(self._storable, (reply.text, reply.reasoning, reply.model))
        if (text, reasoning, model) == (reply.text, reply.reasoning, reply.model):
            return reply
        return replace(reply, text=text, reasoning=reasoning, model=model)

    def _storable(self, text: str) -> str:
        """Return text that SQLite accepts (no lone surrogates), without secrets."""
        if not text:
            return text
        return self._redacted(text if text.isascii() else text.encode("utf-8", "replace").decode())

    def write(self, plan: CellPlan, subject: int, *records: CallRecord) -> None:
        """Write calls in one transaction, replacing those that were refused before."""
        self._write([(plan, subject, record) for record in records])

    async def commit(self, plan: CellPlan, subject: int, record: CallRecord) -> None:
        """Write a call and return once it is stored; calls of one iteration of the event loop share a transaction.

        The call is written even if the task is cancelled meanwhile, because it has been paid for.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # futures of a finished loop are obsolete; their calls have been written
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
        if problem is not None and len(calls) > 1 and not isinstance(problem.__cause__, sqlite3.OperationalError):
            # One invalid call must not affect the others: write each separately. (A full disk affects all.)
            problems = [self._problem([call]) for call in calls]
        if not self._written:
            asyncio.get_running_loop().call_soon(self._hand_back)
        self._written.extend((written, problem) for (_, written), problem in zip(waiting, problems, strict=True))

    def _problem(self, calls: Sequence[tuple[CellPlan, int, CallRecord]]) -> Exception | None:
        try:
            self._write(calls)
        except Exception as error:
            return error
        return None

    def _hand_back(self) -> None:
        """Resume one task whose call is written, in each iteration of the event loop.

        A subject's next steps take longer than reading a reply and sending the next prompt. If all resumed at once, the
        server would idle, then receive all prompts at once, and this would repeat.
        """
        written, problem = self._written.popleft()
        if self._written:
            asyncio.get_running_loop().call_soon(self._hand_back)
        if written.done():  # cancelled
            return
        if problem is None:
            written.set_result(None)
        else:
            written.set_exception(problem)

    def _write(self, calls: Sequence[tuple[CellPlan, int, CallRecord]]) -> None:
        texts = {
            text: (hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16], self._storable(text))
            for text in {record.system for _, _, record in calls} - self._known_texts.keys()
        }
        known = self._known_texts | texts if texts else self._known_texts
        rows = [self._row(plan, subject, record, *known[record.system]) for plan, subject, record in calls]
        with self._log.transaction() as connection:
            if texts:
                connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", texts.values())
            # A reply stays: records have been made from it. Only what was refused may be asked, and written, again.
            connection.executemany(_DELETE_REFUSED, [row[:7] for row in rows])
            connection.executemany(INSERT, rows)
        # Only now: a transaction that failed has not written the text, and no call can be found without it.
        self._known_texts = known

    def _row(
        self, plan: CellPlan, subject: int, record: CallRecord, text_digest: str, system: str
    ) -> tuple[object, ...]:
        reply, usage = record.reply, record.reply.usage
        values = (
            *(*plan.key, subject, record.trial, record.call, record.digest, text_digest),
            *(self._storable(record.asked), reply.text, reply.reasoning, reply.finish),
            *(record.fault or "", reply.model, usage.prompt, usage.completion, usage.cached),
            *(usage.reasoning, record.cost, record.seconds, record.attempts, usage.written, record.malformed),
        )
        return (*values, seal((*values, system)))

    def served_by(self, model: str, most: int) -> set[str]:
        """Return up to ``most`` model names that the server reported for a model's calls."""
        query = "SELECT DISTINCT served_by FROM calls WHERE model = ? AND served_by != '' LIMIT ?"
        return {name for (name,) in self._log.select(query, (model, most))}

    def totals(self) -> CallTotals:
        """Return the totals of all calls, including those that are about to be written."""
        recorded = _totals(self._log.select(f"SELECT {_TOTALS} FROM calls")[0])
        return sum((record.totals for (_, _, record), _ in self._waiting), recorded)

    def by_cell(self) -> dict[CellKey, CellCalls]:
        """Return the totals of every cell that made calls."""
        return self._grouped("", ())

    def of_cell(self, plan: CellPlan) -> CellCalls | None:
        """Return the totals of one cell; None if it made no calls."""
        return self._grouped(f"WHERE {LIFE.rsplit(' AND ', 1)[0]}", plan.key).get(plan.key)

    def _grouped(self, where: str, values: Sequence[object]) -> dict[CellKey, CellCalls]:
        key = "model, protocol, view, variant"
        totals = self._log.select(f"SELECT {key}, {_TOTALS} FROM calls {where} GROUP BY {key}", values)
        names = self._log.select(f"SELECT DISTINCT {key}, served_by FROM calls {where} ORDER BY served_by", values)
        return {
            cell: CellCalls(totals=_totals(numbers), served_by=tuple(n[4] for n in names if n[:4] == cell and n[4]))
            for cell, numbers in ((row[:4], row[4:]) for row in totals)
        }

    def _rows(self, where: str, values: Sequence[object]) -> Iterator[CallRecord]:
        found = self._log.select(f"SELECT {COLUMNS}, texts.text {_JOINED} {where}", values)
        for row in found:
            with damage_explained(self._log.path):
                record = _record(row)
            yield record


def _unsealed(row: Sequence[Any]) -> Sequence[Any]:
    """Return the columns of a call without its seal and its system prompt, the last two; DamagedRowError if damaged."""
    *values, system = row
    if system is None:
        raise DamagedRowError("the system prompt of a call is missing")
    return unsealed(values, system)


def _record(row: Sequence[Any]) -> CallRecord:
    system, values = row[-1], _unsealed(row)
    trial, call, request_digest, _, asked, text, reasoning, finish, fault, served_by, *numbers = values[5:]
    prompt, completion, cached, thought, cost, seconds, attempts, written, malformed = numbers
    usage = Usage(prompt=prompt, completion=completion, cached=cached, reasoning=thought, written=written)
    return CallRecord(
        trial=trial,
        call=call,
        digest=request_digest,
        system=system,
        asked=asked,
        reply=ChatReply(text=text, reasoning=reasoning, finish=finish, usage=usage, model=served_by),
        fault=fault or None,
        cost=cost,
        seconds=seconds,
        attempts=attempts,
        malformed=malformed,
    )


def _totals(row: Sequence[Any]) -> CallTotals:
    return CallTotals(**dict(zip(CallTotals.__slots__, (number or 0 for number in row), strict=True)))
