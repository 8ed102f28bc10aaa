"""One call to a model: looked up in the log, else made within budget and limits, with retries."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cheesebench.chat import FATAL, TRANSIENT, ChatFaultError, ChatReply, ChatRequest, Price
from cheesebench.errors import CheeseBenchError, RunLogError
from cheesebench.experiment.budget import Budget, BudgetSpentError, CallSizes, SubjectSettledError
from cheesebench.experiment.call_log import CallRecord, digest, readable
from cheesebench.experiment.records import SETTLED, CallTotals
from cheesebench.experiment.servers import THROTTLES, ModelServer, ServerPool, Stay

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.experiment.records import CellPlan

#: Seconds before the first retry; doubled for each further one, up to LONGEST_PAUSE.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
#: Seconds that a call may take with all of its attempts and pauses (or two attempts, where they may take longer);
#: waiting for a place does not count. Throttling faults are waited out for so long at most.
PATIENCE = 900.0
#: Subjects that must have given up, one after the other with no reply in between, before a server that has been
#: silent for PATIENCE counts as gone: one alone may ask something that no server bears.
MIN_FAILED_SUBJECTS = 2
#: Seconds without any reply, before a run that is out of time counts as one whose server did not answer.
SILENCE = 60.0
#: Replies in a row that may come without a count of tokens where a budget needs one.
UNCOUNTED = 10
#: Names of a server that are remembered: a server that takes a new one for every reply must not fill the journal.
MOST_NAMES = 8


class _FailedError(Exception):
    """A call has failed: at which server, why, and when it had been sent (monotonic)."""

    def __init__(self, server: ModelServer, fault: ChatFaultError, sent: float) -> None:
        super().__init__(str(fault))
        # With several servers, every fault says whose it is; those of our own clients do already.
        named = server.name and server.name not in str(fault)
        self.fault = ChatFaultError(fault.kind, f"{server.name}: {fault}", fault.retry_after) if named else fault
        self.server, self.sent = server, sent


class SubjectStoppedError(CheeseBenchError):
    """A subject cannot continue for external reasons, given in the text."""


#: How often a call is tried again that is refused for the account (a wrong key, no such model) by a server that has
#: answered before.
MAX_AUTH_RETRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeouts in seconds of calls in flight (time spent waiting for a slot or pausing does not count).

    ``request`` limits one attempt, ``trial`` all calls of a trial; ``retries`` is the number of retries after faults
    other than throttling.
    """

    request: float = 300.0
    trial: float = 3600.0
    retries: int = 6


@dataclass(slots=True)
class ModelChannel:
    """The way to one model: its servers, and whether anybody still answers there.

    ``replaying`` says that only recorded replies count.
    """

    pool: ServerPool
    price: Price | None = None
    patience: Patience = Patience()
    replaying: bool = False
    retry_errors: bool = False
    #: Why no call of this model can succeed, once that is known.
    stop_reason: str = ""
    #: Whether a reply has ever come: what is refused afterwards may be somebody on the way having a bad moment.
    has_replied: bool = False
    served_by: set[str] = field(default_factory=set)
    sizes: CallSizes = field(default_factory=CallSizes)
    #: Whether no further call is sent, because the session ends; and how many are in flight.
    closing: bool = False
    flying: int = 0
    #: Subjects that wait for a reply, and since when none has come.
    _asking: int = 0
    _waiting_since: float = 0.0
    #: Replies in a row of which the server did not say what they took.
    _uncounted: int = 0
    #: When the first of the faults came that no reply has followed yet, and how many subjects they have stopped.
    _silent_since: float | None = None
    #: What the last fault said.
    _last_fault: str = ""
    _given_up: int = 0

    def answered(self) -> None:
        """A reply has come."""
        self.has_replied = True
        self._silent_since, self._given_up, self._waiting_since = None, 0, time.monotonic()

    def count(self, tokens: int) -> None:
        """Stop where the server keeps to itself what its replies take: no budget can be kept."""
        self._uncounted = 0 if tokens else self._uncounted + 1
        if self._uncounted >= UNCOUNTED:
            self.stop(
                "the server does not report the tokens of its replies, so --max-tokens and --max-cost cannot be "
                "enforced. Use --max-minutes instead"
            )

    def failed(self, text: str) -> bool:
        """A call has failed; return whether there has been no reply for longer than anybody waits."""
        now, self._last_fault = time.monotonic(), text
        self._silent_since = now if self._silent_since is None else self._silent_since
        return now - self._silent_since > PATIENCE

    @contextmanager
    def asks(self) -> Iterator[None]:
        """Somebody waits for a reply."""
        if not self._asking:
            self._waiting_since = time.monotonic()
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1

    @property
    def waited(self) -> tuple[float, str]:
        """Seconds since anybody who waits has had a reply, and what the last fault said (maybe nothing)."""
        return (time.monotonic() - self._waiting_since if self._asking else 0.0), self._last_fault

    @property
    def silence(self) -> str:
        """What the last fault said, if nothing has been answered in this session, or for a minute; else nothing."""
        since = self._silent_since
        if since is None or (self.has_replied and time.monotonic() - since < SILENCE):
            return ""
        return self._last_fault

    @property
    def trouble(self) -> str:
        """What is said beside a budget that ends while faults wait for a first reply; else nothing."""
        return "" if self._silent_since is None else f" while the server did not answer ({self._last_fault})"

    def lose(self, text: str, silent: bool) -> None:
        """Record that a subject has given up; if the server seems gone, stop all others."""
        self._given_up += 1
        if silent and self._given_up >= MIN_FAILED_SUBJECTS:
            self.stop(f"{text}; there was no reply at all for {PATIENCE / 60:g} minutes")

    def stop(self, text: str) -> None:
        """Record that no call of this model can succeed; waiting calls fail at once."""
        self.stop_reason = text
        self.pool.resume()


@dataclass(slots=True)
class Caller:
    """Makes the calls of one subject, and writes them into ``log``; those that ``source`` has are not made."""

    channel: ModelChannel
    log: RunLog
    source: RunLog
    budget: Budget
    plan: CellPlan
    subject: int
    work: float = 0.0
    #: How many recorded calls there are to answer from; without any, the log is not asked.
    recorded: int = 0
    #: Whether it makes no further calls, because nothing depends on them.
    stopped: bool = False
    _trial: int = -1
    _call: int = 0
    _in_flight: float = 0.0
    #: The call as it was refused, if it is asked again; and the server that it stays with.
    _refused: CallRecord | None = None
    _stay: Stay = field(default_factory=Stay)

    def read_as(self, actions: Sequence[int]) -> None:
        """See ``Asker``; nothing to do, because actions are in the log."""

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        """Return the reply to the next call of ``trial``: the recorded one, or a new one which is then recorded.

        Raises SubjectStoppedError, BudgetSpentError, and RunLogError when what was recorded is not what is asked now.
        """
        if trial != self._trial:
            self._trial, self._call, self._in_flight = trial, 0, 0.0
        call, self._call = self._call, self._call + 1
        request_digest = digest(request)
        self._check_stopped()
        self._refused = known = self._find(trial, call, request_digest)
        if known is not None and known.fault is None:
            return known.reply
        with self.channel.asks():
            reply, how = await self._answered(request, trial, call, request_digest)
        cost = None if (price := self.channel.price) is None else price.cost(reply.usage)
        record = self._record(request, trial, call, request_digest, reply, cost=cost, **how)
        self.budget.add(record.totals)
        await self.log.calls.commit(self.plan, self.subject, record)
        if self.budget.counts_tokens:
            self.channel.sizes.learn(request, reply.usage)
            self.channel.count(reply.usage.prompt + reply.usage.completion)
        return reply

    def _check_stopped(self) -> None:
        if self.stopped:
            raise SubjectSettledError("the verdict is settled")

    def _record(
        self, request: ChatRequest, trial: int, call: int, request_digest: str, reply: ChatReply, **how: Any
    ) -> CallRecord:
        if (refused := self._refused) is not None:
            # Who asks until a filter lets an answer through must not look like somebody who was answered at once.
            how["attempts"] += refused.attempts
            how["malformed"] = how.get("malformed", 0) + refused.malformed + 1
        return CallRecord(
            trial=trial,
            call=call,
            digest=request_digest,
            system=_system(request),
            asked=readable(request.messages[-1]),
            reply=reply,
            **how,
        )

    def _find(self, trial: int, call: int, request_digest: str) -> CallRecord | None:
        """Return the recorded call; None, or the refused one, if it is to be made."""
        known = self.source.calls.find(self.plan, self.subject, trial, call) if self.recorded else None
        where = f"call {call} of trial {trial} of subject {self.subject} ({self.plan.model} on {self.plan.protocol})"
        if known is None:
            if self.channel.replaying:
                missing = {record.missing for record in self.source.trials(self.plan, self.subject)}
                # A subject that was stopped may be ahead of the others here, and waits for them.
                causes = {"budget": BudgetSpentError, SETTLED: SubjectSettledError}
                raise next((causes[one] for one in causes if one in missing), SubjectStoppedError)(
                    f"{where} is not in the replayed run"
                )
            return None
        if known.digest != request_digest:
            raise RunLogError(
                f"The run cannot be continued: {where} differs from the recorded one. The prompt, a parameter "
                "or the program has changed. Start a new run."
            )
        if known.fault is None:
            return known
        if self.channel.retry_errors and not self.channel.replaying:
            return known
        remedy = "" if self.channel.replaying else " (--retry-errors asks again)"
        raise SubjectStoppedError(f"{known.fault} at {where}, as recorded: {known.reply.text}{remedy}")

    async def _answered(
        self, request: ChatRequest, trial: int, call: int, request_digest: str
    ) -> tuple[ChatReply, dict[str, Any]]:
        """Return the reply, the seconds of the answered attempt, and the numbers of attempts and malformed answers."""
        jitter: random.Random | None = None
        taken, faults, attempts, moves, malformed = 0.0, 0, 0, 0, 0
        deadline = max(PATIENCE, 2 * self.channel.patience.request)
        before = self._in_flight
        pool = self.channel.pool
        while True:
            attempts += 1
            try:
                reply, seconds = await self._attempt(request)
                self.channel.answered()
                return reply, {"seconds": seconds, "attempts": attempts, "malformed": malformed}
            except BudgetSpentError as spent:
                if self.channel.silence:  # it was not for want of a budget that nothing was measured
                    raise SubjectStoppedError(f"{self.channel.silence}; no reply came until {spent}") from None
                raise BudgetSpentError(f"{spent}{self.channel.trouble}") from None
            except _FailedError as failure:
                fault, server = failure.fault, failure.server
                if pool.failed(server, fault, failure.sent) and moves < len(pool.servers):
                    # It was in flight when its server died: another one is asked, at once. Not for ever: what is asked
                    # may be what they all die of.
                    moves += 1
                    self.channel.failed(_said(fault))
                    continue
                throttled = fault.kind in THROTTLES
                faults += not throttled
                malformed += fault.kind == "malformed"
                # The subject counts too: where no seed is sent all first calls are alike, and would come back together.
                jitter = jitter or random.Random(f"{request_digest}|{self.subject}")
                pause = min(FIRST_PAUSE * 2 ** min(attempts - 1, 20), LONGEST_PAUSE) * jitter.uniform(0.5, 1.0)
                pause = max(pause, fault.retry_after or 0.0)
                silent = self.channel.failed(_said(fault))
                gives_up = silent if throttled else faults > self.channel.patience.retries
                # A wish for a pause is no licence to hold us for a day, nor are many slow attempts.
                gives_up = gives_up or taken + (self._in_flight - before) + pause > deadline
                passing = fault.kind in TRANSIENT or (
                    fault.kind in FATAL and self.channel.has_replied and faults <= MAX_AUTH_RETRIES
                )
                if not passing and fault.kind in FATAL and pool.retire(server, _said(fault)):
                    faults = 0
                    continue
                if not passing or gives_up:
                    self._give_up(failure, request, trial, call, request_digest, attempts, silent)
                taken += pause
                most = None if throttled else self.channel.patience.retries
                pool.retrying(_said(fault), attempts if throttled else faults, most, pause)
            # When the time is over, so is the pause: the next attempt says why there is none.
            await asyncio.sleep(min(pause, self.budget.seconds_left))

    async def _attempt(self, request: ChatRequest) -> tuple[ChatReply, float]:
        """Return the reply and the seconds that it took; raises _FailedError."""
        channel, pool = self.channel, self.channel.pool
        counts = self.budget.counts_tokens
        while True:
            expected = channel.sizes.expected(request, channel.price) if counts else CallTotals()
            server = pool.server_for(self._stay)
            async with server.limiter.slot(self.work), self.budget.room(expected):
                if pool.server_for(self._stay) is server:
                    reply, seconds = await self._ask(server, request)
                    break
            # It has died while we waited for a place.
        reply = self.log.calls.as_recorded(reply)
        if reply.model and reply.model not in channel.served_by and len(channel.served_by) < MOST_NAMES:
            channel.served_by.add(reply.model)
            if len(channel.served_by) > 1:
                self.log.note(
                    "warning", f"answered by several models: {', '.join(sorted(channel.served_by))}", self.plan
                )
        return reply, seconds

    async def _ask(self, server: ModelServer, request: ChatRequest) -> tuple[ChatReply, float]:
        """Ask one server, where there is a place; raises _FailedError."""
        channel = self.channel
        self._check_stopped()
        if channel.stop_reason:
            raise SubjectStoppedError(channel.stop_reason)
        left = channel.patience.trial - self._in_flight
        if left <= 0:
            raise SubjectStoppedError(
                f"the calls of one trial took more than {channel.patience.trial:g} s (--trial-timeout)"
            )
        timeout = min(channel.patience.request, left)
        if channel.closing:
            await asyncio.get_running_loop().create_future()  # the session is over, and cancels us
        assert server.connection is not None
        began = time.monotonic()
        channel.flying += 1
        try:
            # The backend keeps the time too; whatever it forgets, nothing hangs.
            async with asyncio.timeout(timeout + 5):
                reply = await server.connection.complete(replace(request, timeout=timeout))
        except TimeoutError:
            late = ChatFaultError("timeout", f"no reply within {timeout:g} s")
            raise _FailedError(server, late, began) from None
        except ChatFaultError as fault:
            if fault.kind in THROTTLES:
                # Nobody waits for longer than PATIENCE, therefore nobody is to be held back for longer.
                wish = fault.retry_after or 0.0
                server.limiter.objected(min(wish, self.budget.seconds_left) if wish <= PATIENCE else None)
            raise _FailedError(server, fault, began) from fault
        finally:
            self._stay.trying = None
            channel.flying -= 1
            seconds = time.monotonic() - began
            self._in_flight += seconds
        server.limiter.succeeded()
        channel.pool.answered(server)
        return reply, seconds

    def _give_up(
        self,
        failure: _FailedError,
        request: ChatRequest,
        trial: int,
        call: int,
        request_digest: str,
        attempts: int,
        silent: bool,
    ) -> None:
        """Raise SubjectStoppedError; a fault of the account stops everybody, one of the request is recorded."""
        fault, server = failure.fault, failure.server
        tried = f" (tried {attempts} times)" if attempts > 1 else ""
        text = f"{self.channel.pool.none_left}{_said(fault)}{tried}"
        if fault.kind in FATAL:
            self.channel.stop(text)
        elif fault.kind in TRANSIENT:
            self.channel.lose(text, silent)
        else:
            # A record does not say which of several servers it was.
            words = str(fault).replace(server.name, "the server") if server.name else str(fault)
            said = self.log.calls.as_recorded(ChatReply(text=words, finish="other"))
            record = self._record(request, trial, call, request_digest, said, fault=fault.kind, attempts=attempts)
            self.log.calls.write(self.plan, self.subject, record)
        raise SubjectStoppedError(text) from fault


def _said(fault: ChatFaultError) -> str:
    return f"{fault.kind.replace('_', ' ')}: {fault}"


def _system(request: ChatRequest) -> str:
    first = request.messages[0]
    return readable(first) if first.role == "system" else ""
