"""Makes the calls to models, within budgets and limits, and with retries."""

from __future__ import annotations

import asyncio
import heapq
import ipaddress
import itertools
import math
import random
import re
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cheesebench.amounts import dollars, rounded
from cheesebench.chat import (
    FATAL,
    TRANSIENT,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Connection,
    FaultKind,
    Price,
    Usage,
)
from cheesebench.errors import CheeseBenchError, RunLogError
from cheesebench.experiment.log import digest, readable
from cheesebench.records import CallRecord, CallTotals, CellKey, sets_until
from cheesebench.redaction import quoted

if TYPE_CHECKING:
    from cheesebench.experiment.log import RunLog
    from cheesebench.records import CellPlan

#: Initial limit on the number of calls in flight.
START = 16
#: For this many seconds after the limit was halved, further calls that are rejected or
#: time out do not halve it again, because they come from the same load.
GRACE = 1.0


class Limiter:
    """Limits how many calls of one event loop are in flight. The waiting call with the
    most remaining work goes first. ``most`` is the highest limit.
    """

    def __init__(self, most: int, start: int = START) -> None:
        self.most = most
        self._limit = float(min(start, most))
        self.in_flight = 0
        self.throttled = 0
        """Number of calls that the server rejected, or let time out, because of its
        load.
        """
        self._doubling = True
        self._halved_at = float("-inf")
        self._paused_until = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        return int(self._limit)

    @asynccontextmanager
    async def slot(self, work: float = 0.0) -> AsyncIterator[None]:
        """Wait for a slot among the calls in flight. Calls with more remaining ``work``
        go first.
        """
        await self._enter(work)
        try:
            yield
        finally:
            self.in_flight -= 1
            self._admit()

    async def _enter(self, work: float) -> None:
        place = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (-work, next(self._numbers), place))
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                # The call was cancelled just after it was admitted: release its slot.
                self.in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        pause = self._paused_until - time.monotonic()
        if pause > 0:
            if self._waiting and self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(pause, self._wake)
            return
        while self._waiting and self.in_flight < self.limit:
            _, _, place = heapq.heappop(self._waiting)
            if not place.done():
                self.in_flight += 1
                place.set_result(None)

    def _wake(self) -> None:
        self._timer = None
        self._admit()

    def resume(self) -> None:
        self._paused_until = 0.0
        self._admit()

    def lower(self, most: int) -> None:
        self.most = min(self.most, most)
        self._limit = min(self._limit, float(self.most))

    def succeeded(self) -> None:
        """Record a reply. Raise the limit, up to ``most``, if at most one of its slots
        was free.
        """
        if self.in_flight + 1 >= self.limit and self._limit < self.most:
            self._limit = min(
                self.most, self._limit + (1.0 if self._doubling else 1.0 / self._limit)
            )

    def objected(self, retry_after: float | None) -> None:
        """Record that the server is overloaded: it rejected a call, or let one time
        out. Halve the limit (at most once per ``GRACE`` seconds), and pause for
        ``retry_after`` seconds, if given.
        """
        now = time.monotonic()
        self.throttled += 1
        self._doubling = False
        if now - self._halved_at >= GRACE:
            self._halved_at = now
            self._limit = max(1.0, min(self._limit, float(self.in_flight + 1)) / 2)
        if retry_after:
            self._paused_until = max(self._paused_until, now + retry_after)


#: Minimum time between two routine polls of what other processes have spent:
#: ``INTERVAL`` seconds, and ``POLL_SHARE`` times the duration of the last poll. A call
#: polls at once if no other call of this process is in flight, or if the budget seems
#: to have no room for it.
INTERVAL, POLL_SHARE = 0.02, 20.0
#: Estimates of the size of a call. ``DENSITY``: tokens per character of the prompt
#: (mazes are dense), until a reply gives the actual number. ``REPLY``: tokens of a
#: reply, until one is known, if the request sets no limit. ``PICTURE``: number of
#: characters that a picture counts as.
DENSITY, REPLY, PICTURE = 0.6, 1024, 4000


class UnansweredError(CheeseBenchError):
    """A call was not made, or not answered. The subject's unfinished trials are
    missing.
    """

    #: Counters of the agent in the trial that was interrupted.
    tally: Mapping[str, int] = {}


class BudgetSpentError(UnansweredError):
    """The budget of the run is spent. Unfinished trials are missing, with ``budget`` as
    the cause.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on the dollars and the tokens (prompts plus replies) of a whole run, and
    on the minutes of this session. None means unlimited.
    """

    cost: float | None = None
    tokens: int | None = None
    minutes: float | None = None

    @property
    def counts_tokens(self) -> bool:
        """Whether a limit needs the servers' token counts."""
        return self.cost is not None or self.tokens is not None


@dataclass(slots=True)
class CallSizes:
    """Predicts the size of a model's calls from the densest prompt and the longest
    reply so far.
    """

    _density: float = 0.0
    _reply: int = 0

    def expected(self, request: ChatRequest, price: Price | None) -> CallTotals:
        """Return the expected tokens of a call, and its cost in dollars if nothing is
        cached.
        """
        prompt = math.ceil(_length(request) * (self._density or DENSITY))
        most = request.sampling.max_tokens
        reply = self._reply or most or REPLY
        dear = price is not None and (price.written or 0.0) > price.prompt
        usage = Usage(prompt=prompt, completion=reply, written=prompt if dear else 0)
        cost = 0.0 if price is None else price.cost(usage)
        return CallTotals(prompt=prompt, completion=reply, cost=cost)

    def learn(self, request: ChatRequest, usage: Usage) -> None:
        """Update the expectations with the actual usage of a call."""
        self._density = max(self._density, usage.prompt / max(1, _length(request)))
        self._reply = max(self._reply, usage.completion)


def _length(request: ChatRequest) -> int:
    parts = (part for message in request.messages for part in message.parts)
    return sum(len(part) if isinstance(part, str) else PICTURE for part in parts)


class Budget:
    """Counts what is spent, and enforces the limits.

    ``began`` is the start of the session (UNIX time). ``recorded`` returns the spending
    recorded in the run log, and is called once. If several ``processes`` share the
    budget, it is called again from time to time, and whenever the budget seems to have
    no room. In between, each other process is assumed to spend, and to have in flight,
    four times as much as this one.
    """

    def __init__(
        self,
        limits: Limits,
        recorded: Callable[[], CallTotals],
        began: float,
        processes: int = 1,
    ) -> None:
        self._limits = limits
        self._began = began
        self._recorded = recorded
        self._processes = processes
        self._polls = processes > 1 and limits.counts_tokens
        self._next_poll = 0.0
        self.spent = recorded()
        #: Spending of this process since the last poll.
        self._since = CallTotals()
        #: Expected totals of the calls in flight.
        self._reserved = CallTotals()
        self._in_flight = 0
        self._landed = asyncio.Event()

    @property
    def counts_tokens(self) -> bool:
        """Whether a limit needs the servers' token counts."""
        return self._limits.counts_tokens

    def share_of(self, spent: CallTotals) -> float:
        """Return the share of the dollar limit or of the token limit that is spent,
        whichever is larger, or 0.0 if there is neither.
        """
        limits = self._limits
        dollars = spent.cost / limits.cost if limits.cost else 0.0
        return max(
            dollars,
            (spent.prompt + spent.completion) / limits.tokens if limits.tokens else 0.0,
        )

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit: infinity if there is none, and 0.0 once it has
        passed.
        """
        if self._limits.minutes is None:
            return math.inf
        return max(0.0, self._began + 60 * self._limits.minutes - time.time())

    def add(self, call: CallTotals) -> None:
        self.spent += call
        self._since += call

    @asynccontextmanager
    async def room(self, expected: CallTotals) -> AsyncIterator[None]:
        """Wait until the budget has room for one more call in addition to the calls in
        flight, and reserve this room.

        A call is admitted while the spending plus the expected cost of the calls in
        flight is below the limits. So, if the expectations hold, a limit is exceeded by
        at most one call of each process. Raise BudgetSpentError, as ``check`` does. The
        actual cost of a call must be counted (``add``) before control returns to the
        event loop.
        """
        if self._polls and not self._in_flight:
            self._look()
        self.check()
        while not self._fits():
            if self._since != CallTotals() and self._polls:
                self._look()
                self.check()
                continue
            if not self._in_flight:
                break  # A single call is admitted even if it may exceed the rest of the budget.
            self._landed.clear()
            await self._landed.wait()
            self.check()
        self._in_flight += 1
        self._reserved += expected
        try:
            yield
        finally:
            self._in_flight -= 1
            self._reserved = (
                self._reserved - expected if self._in_flight else CallTotals()
            )
            self._landed.set()

    def _look(self) -> None:
        began = time.monotonic()
        self.spent, self._since = self._recorded(), CallTotals()
        self._next_poll = time.monotonic() + max(
            INTERVAL, POLL_SHARE * (time.monotonic() - began)
        )

    def _fits(self) -> bool:
        limits, others = self._limits, self._processes - 1
        # The other processes may be faster. If each is assumed to be four times as fast
        # as this one, the excess stays within one call of each (test_call_budgets.py).
        parts = (
            (self.spent, 1),
            (self._reserved, 1 + 4 * others),
            (self._since, 4 * others),
        )
        cost = sum(times * part.cost for part, times in parts)
        tokens = sum(times * (part.prompt + part.completion) for part, times in parts)
        return (limits.cost is None or cost < limits.cost) and (
            limits.tokens is None or tokens < limits.tokens
        )

    @property
    def is_spent(self) -> bool:
        """Whether no further call may be made."""
        try:
            self.check()
        except BudgetSpentError:
            return True
        return False

    def check(self) -> None:
        """Raise BudgetSpentError if no further call may be made."""
        if self._polls and time.monotonic() > self._next_poll:
            self._look()
        limits, spent = self._limits, self.spent
        tokens = spent.prompt + spent.completion
        if limits.cost is not None and spent.cost >= limits.cost:
            raise BudgetSpentError(
                f"the run has cost {dollars(spent.cost)}; --max-cost {limits.cost:g} is reached"
            )
        if limits.tokens is not None and tokens >= limits.tokens:
            raise BudgetSpentError(
                f"the run has used {tokens:,} tokens; --max-tokens {limits.tokens} is reached"
            )
        self.check_time()

    def check_time(self) -> None:
        """Raise BudgetSpentError if the time limit has passed. The limit also applies
        to agents that make no calls.
        """
        most, minutes = self._limits.minutes, (time.time() - self._began) / 60
        if most is not None and minutes >= most:
            raise BudgetSpentError(
                f"the run has taken {rounded(minutes, 1)} minutes; --max-minutes {most:g} is reached"
            )


#: A function that receives a line of text about a call that is retried.
Notify = Callable[[str], None]
#: Faults that are caused by the load, not by the call itself.
THROTTLES: frozenset[FaultKind] = frozenset({"rate_limit", "overload"})
#: ``NOTICED``: a retry is reported if its pause is at least this long. ``HUSH``:
#: minimum time between reports. Both are in seconds.
NOTICED, HUSH = 1.5, 60.0


def is_private(url: str) -> bool:
    """Return whether a URL's host is this machine, or is in a private network."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".localhost", ".local"))


#: Longest pause before the first retry, in seconds. It doubles with each attempt, up to
#: LONGEST_PAUSE. The actual pause is drawn between half of it and all of it, but is
#: longer if the server asks for a longer one.
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
#: A call is given up if its attempts, its pauses and the next pause would take more
#: than this many seconds in all, or more than two full attempts if these take longer.
#: The wait for a slot does not count. The limit holds for throttled calls, too. A
#: server counts as silent if no call has been answered for this many seconds after a
#: fault.
PATIENCE = 900.0
#: Until when throttled calls are tried again, in words.
_MOST = f"for at most {PATIENCE / 60:g} minutes without any reply"
#: Refused connections use up no retry until a call has paused for this many seconds in
#: all, because a local server may still be loading its model.
LOADING = 300.0
#: A server counts as gone if it has been silent for PATIENCE while at least this many
#: subjects gave up. One subject is not enough, because its request may be one that
#: crashes any server.
MIN_FAILED_SUBJECTS = 2
#: If the budget runs out after the server has failed for this many seconds without a
#: reply, the message names the server as the cause. If there has never been a reply, it
#: does so at once.
SILENCE = 60.0
#: If a budget needs token counts, calls stop after this many consecutive replies
#: without one.
UNCOUNTED = 10
UNCOUNTABLE = (
    "the server does not report the tokens of its replies, so no limit can be kept. Use --max-minutes instead; a backend of "
    "your own counts them by ChatReply(text=..., usage=Usage(prompt=..., completion=...))"
)
#: Maximum number of different names of a model to note from its server's replies. A
#: server with a new name in every reply must not fill the journal.
MOST_NAMES = 8


class SubjectStoppedError(UnansweredError):
    """A subject cannot continue. The text gives the reason, which lies outside the
    subject.
    """


#: Maximum number of retries after a fault in ``FATAL`` (a wrong key, say). There are
#: retries only if the server has answered before.
MAX_AUTH_RETRIES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Timeouts of calls in flight, in seconds. Time spent waiting for a slot or pausing
    does not count.

    ``request`` limits one attempt or, if the server reports its activity, the time
    without any. ``trial`` limits all calls of a trial. ``retries`` is the maximum
    number of retries after faults other than throttling.
    """

    request: float = 300.0
    trial: float = 3600.0
    retries: int = 6


async def in_time(
    connection: Connection, request: ChatRequest, patience: float, most: float
) -> ChatReply:
    """Return the reply. The backend must report a fault after ``patience`` seconds. If
    it has not done so five seconds later, TimeoutError is raised.

    A server that reports its activity may take longer while it is active: the backend
    has up to ``most`` seconds.
    """
    progress = getattr(connection, "progress", None)
    limit = patience if progress is None else most
    # The backend should enforce the timeout itself. This is a safeguard.
    async with asyncio.timeout(limit + 5) as end:
        call = connection.complete(replace(request, timeout=limit))
        if progress is None:
            return await call
        watch = asyncio.create_task(_end_idle(progress, patience, end))
        try:
            return await call
        finally:
            watch.cancel()


async def _end_idle(
    progress: Callable[[], Awaitable[object]], patience: float, end: asyncio.Timeout
) -> None:
    seen: object = None
    while True:
        await asyncio.sleep(patience)
        now = await progress()
        if now is None or now == seen:
            end.reschedule(asyncio.get_running_loop().time())
            return
        seen = now


#: A cell is given up after ``HOPELESS_REPLIES`` replies to at least
#: ``HOPELESS_SUBJECTS`` subjects if none of the replies could be read. More replies
#: would cost money, and hardly change this.
HOPELESS_REPLIES, HOPELESS_SUBJECTS = 12, 2


@dataclass(slots=True)
class Hope:
    """The evidence on whether a cell's replies can be read."""

    unread: int = 0
    subjects: set[int] = field(default_factory=set)
    was_read: bool = False
    #: Number of recorded replies that are still to be replayed, in any order. One of
    #: them may be readable.
    to_repeat: int = 0
    #: Whether this session has noted an unreadable reply in the journal.
    noted: bool = False

    def see(self, subject: int, unread: bool) -> None:
        self.was_read = self.was_read or not unread
        if not self.was_read:
            self.unread += 1
            self.subjects.add(subject)

    @property
    def enough(self) -> bool:
        """Whether enough replies were seen, and none could be read."""
        return (
            not self.was_read
            and self.unread >= HOPELESS_REPLIES
            and len(self.subjects) >= HOPELESS_SUBJECTS
        )

    @property
    def gone(self) -> bool:
        return self.to_repeat <= 0 and self.enough


@dataclass(slots=True)
class ModelChannel:
    """The connection to one model, and whether its server still answers.

    ``replaying`` is true if only recorded replies are used. ``tell`` receives a line
    when a call is retried.
    """

    connection: Connection | None
    limiter: Limiter
    tell: Notify = lambda line: None
    price: Price | None = None
    patience: Patience = Patience()
    replaying: bool = False
    retry_errors: bool = False
    #: Why no more calls are made to this model, or an empty string.
    stop_reason: str = ""
    #: Whether any reply has come. If so, an error about the account may be a temporary
    #: fault of a proxy.
    has_replied: bool = False
    served_by: set[str] = field(default_factory=set)
    #: Whether contradictory token counts have been noted in the journal.
    doubted: bool = False
    #: Number of replies that the agents have read in this session.
    read: int = 0
    #: Number of these replies without any action.
    unreadable: int = 0
    hopes: dict[CellKey, Hope] = field(default_factory=dict)
    sizes: CallSizes = field(default_factory=CallSizes)
    #: Whether no more calls are sent because the session is ending.
    closing: bool = False
    #: Number of calls in flight.
    in_flight: int = 0
    #: Number of calls that wait for a reply, retries and pauses included.
    _asking: int = 0
    #: Time (monotonic) since which calls have waited without any reply.
    _waiting_since: float = 0.0
    #: Number of consecutive replies without a token count.
    _uncounted: int = 0
    #: Time (monotonic) of the first fault since the last reply, or None if there was
    #: none.
    _silent_since: float | None = None
    #: Text of the last fault.
    _last_fault: str = ""
    #: Number of subjects that have given up since the last reply.
    _given_up: int = 0
    #: No further retry is reported until this (monotonic) time.
    _hushed_until: float = 0.0

    def answered(self) -> None:
        self.has_replied = True
        self._silent_since, self._given_up, self._waiting_since = (
            None,
            0,
            time.monotonic(),
        )

    def doubts(self, reply: ChatReply) -> list[str]:
        """Return new doubts about a reply, as lines for the journal."""
        found = []
        if reply.doubt and not self.doubted:
            self.doubted = True
            found.append(
                f"the server's token counts contradict one another: {reply.doubt}"
            )
        known = self.served_by
        if reply.model and reply.model not in known and len(known) < MOST_NAMES:
            known.add(reply.model)
            if len(known) > 1:
                found.append(f"answered by several models: {', '.join(sorted(known))}")
        return found

    def count(self, tokens: int) -> None:
        """Note how many ``tokens`` a reply reports. Stop all calls if too many replies
        in a row report none, because a budget needs the counts.
        """
        self._uncounted = 0 if tokens else self._uncounted + 1
        if self._uncounted >= UNCOUNTED:
            self.stop(UNCOUNTABLE)

    def failed(self, text: str) -> bool:
        """Record a failed call. Return whether more than PATIENCE has passed since the
        first fault after the last reply.
        """
        now, self._last_fault = time.monotonic(), text
        self._silent_since = now if self._silent_since is None else self._silent_since
        return now - self._silent_since > PATIENCE

    @contextmanager
    def asks(self) -> Iterator[None]:
        """Count a call as waiting for the duration of the block."""
        if not self._asking:
            self._waiting_since = time.monotonic()
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1

    @property
    def waited(self) -> tuple[float, str]:
        """Seconds for which calls have waited without any reply (0.0 if none waits),
        and what to say of such a wait: the last fault since the last reply, how long
        the wait may last, and what ends it sooner.
        """
        seconds = time.monotonic() - self._waiting_since if self._asking else 0.0
        return seconds, self._limit_of_wait()

    def _limit_of_wait(self) -> str:
        fault = "" if self._silent_since is None else self._last_fault.rstrip(".")
        if not fault or fault.startswith("timeout: "):
            cause = f" ({fault})" * bool(fault)
            return (
                f"{cause}. Each may take {self.patience.request:g} s (--cheese-timeout), or longer while a server reports "
                "progress. --reply-tokens makes replies shorter."
            )
        limits = fault.startswith(tuple(kind.replace("_", " ") for kind in THROTTLES))
        why, less = "Calls are", ""
        if limits:
            why, less = "The server limits the rate, so calls are", ", and a lower --concurrency asks less at a time"  # fmt: skip
        return f" ({fault}). {why} tried again, with pauses, {_MOST}. --max-minutes ends that sooner{less}."

    @property
    def silence(self) -> str:
        """The text of the last fault, or "" if there has been none since the last
        reply. After a reply, it stays empty until ``SILENCE`` seconds after the next
        fault.
        """
        since = self._silent_since
        if since is None or (self.has_replied and time.monotonic() - since < SILENCE):
            return ""
        return self._last_fault

    @property
    def trouble(self) -> str:
        """A remark for the message on a spent budget: that the server did not answer.
        It is empty if the server answers.
        """
        return (
            ""
            if self._silent_since is None
            else f" while the server did not answer ({self._last_fault})"
        )

    def lose(self, text: str, silent: bool) -> None:
        """Record that a subject has given up. Stop all others if the server seems
        gone.
        """
        self._given_up += 1
        if silent and self._given_up >= MIN_FAILED_SUBJECTS:
            self.stop(
                f"{text.rstrip('.')}; there was no reply at all for {PATIENCE / 60:g} minutes"
            )

    def stop(self, text: str) -> None:
        """Make no more calls to this model. Waiting calls fail at once."""
        self.stop_reason = text
        self.limiter.resume()

    def retrying(self, text: str, retry: int, most: int | None, pause: float) -> None:
        """Report that a call is retried in ``pause`` seconds. Short pauses are not
        reported, and nothing is reported more than once a minute.
        """
        now = time.monotonic()
        if pause < NOTICED or now < self._hushed_until:
            return
        self._hushed_until = now + HUSH
        of, until = (f" of {most}", "") if most is not None else ("", f", {_MOST}")
        self.tell(
            f"{text.rstrip('.')}; retry {retry}{of} in {rounded(pause, 0)} s{until}"
        )


def _said_in(reply: ChatReply) -> str:
    thought = reply.finish == "length" and reply.usage.reasoning
    if not (reply.text.strip() or reply.reasoning.strip()):
        unread = "(a call that the server could not read)"
        return unread if reply.finish == "unread" else "(cut off)" * bool(thought)
    return reply.text.strip() or reply.reasoning.strip()


#: Why a subject that was stopped (``Caller.stopped``) makes no more calls.
_DECIDED = "the cell is decided"


def is_given_up(log: RunLog, plan: CellPlan) -> bool:
    """Return whether a cell is over, and none of its replies named an action. It is not
    over while replies outside of its recorded trials remain to be replayed, because
    these may be readable.
    """
    if not plan.agent:
        return False
    hope = _evidence(log, plan, range(plan.subjects))
    if hope.was_read or not hope.unread or _outside_of_trials(log, plan) > 0:
        return False
    return hope.enough or _has_ended(log, plan)


def _has_ended(log: RunLog, plan: CellPlan) -> bool:
    """Return whether every subject of a cell, or of its first set, was run to its end,
    or was stopped by a fault.
    """
    complete = log.completed_subjects(plan)
    ended = [
        life[0].subject in complete or life[-1].missing == "infrastructure"
        for life in log.recorded_subjects(plan)
    ]
    first = sets_until(plan.subjects)[0] if plan.sequential else plan.subjects
    return len(ended) >= first and all(ended)


def _outside_of_trials(log: RunLog, plan: CellPlan) -> int:
    """Return the number of replies that will be replayed, but belong to no recorded
    trial.
    """
    finished = log.completed_subjects(plan)
    return log.calls.to_repeat(plan) - sum(
        record.tally.get("calls", 0)
        for records in log.recorded_subjects(plan)
        for record in records
        if record.subject not in finished
    )


def _hope_of(log: RunLog, plan: CellPlan) -> Hope:
    """Return the evidence in a log on whether a cell's replies can be read. Unreadable
    replies count only for finished subjects, because the others will be replayed.
    """
    hope = _evidence(log, plan, log.completed_subjects(plan))
    hope.to_repeat = log.calls.to_repeat(plan)
    return hope


def _evidence(log: RunLog, plan: CellPlan, counted: Container[int]) -> Hope:
    """Return the evidence of a cell's trials, up to the first trial with a reply that
    could be read. Unreadable replies count only for the ``counted`` subjects.
    """
    hope = Hope()
    for record in itertools.chain.from_iterable(log.recorded_subjects(plan)):
        asked = record.tally.get("calls", 0) - record.tally.get("notes", 0)
        if asked > record.tally.get("unparsed", 0):
            hope.was_read = True
            break
        if asked > 0 and record.subject in counted:
            hope.unread += asked
            hope.subjects.add(record.subject)
    return hope


@dataclass(slots=True)
class Caller:
    """Makes the calls of one subject, and writes them into ``log``. Calls that are in
    ``source`` are not made again.
    """

    channel: ModelChannel
    log: RunLog
    source: RunLog
    budget: Budget
    plan: CellPlan
    subject: int
    work: float = 0.0
    #: Number of recorded calls. The log is read only if there are any.
    recorded: int = 0
    #: Whether no more calls are made, because nothing depends on this subject any more.
    stopped: bool = False
    _trial: int = -1
    _call: int = 0
    _unparsed: int = 0
    _notes: int = 0
    #: Text or reasoning of the last reply.
    _said: str = ""
    _seconds_in_flight: float = 0.0
    #: Record of the last call, if it was refused and is not yet answered.
    _refused: CallRecord | None = None

    def read_as(
        self, actions: Sequence[int], tally: Callable[[], Mapping[str, int]]
    ) -> None:
        """Count a reply, for the progress line and for giving the cell up; see
        ``Asker``. The actions are not needed here: the trial's record contains them.
        """
        counts = tally()
        unparsed, notes = counts.get("unparsed", 0), counts.get("notes", 0)
        self.channel.read += 1
        self.channel.unreadable += unparsed > self._unparsed
        # A reply to a call for learnings needs no actions, so it does not show whether
        # the cell's replies can be read.
        if notes == self._notes:
            self._see(unparsed > self._unparsed)
        self._unparsed, self._notes = unparsed, notes

    def _see(self, unread: bool) -> None:
        self._hope.see(self.subject, unread)
        if unread and not self._hope.noted:
            self._hope.noted = True
            where = f"trial {self._trial + 1}, call {self._call}"
            said = f"'{quoted(self._said, 160)}'" if self._said else "empty"
            said = f"subject {self.subject}, {where}: {said}"
            self.log.note("unread", said, self.plan, self.subject)

    @property
    def _hope(self) -> Hope:
        hopes, plan = self.channel.hopes, self.plan
        if plan.key not in hopes:
            hopes[plan.key] = _hope_of(self.log, plan)
        return hopes[plan.key]

    async def ask(self, trial: int, request: ChatRequest) -> ChatReply:
        """Return the reply to the next call of ``trial``. It is the recorded reply or,
        if there is none, a new one, which is recorded.

        Raise SubjectStoppedError or BudgetSpentError if the call cannot be made, or is
        not answered, and RunLogError if the recorded request differs from this one.
        """
        if trial != self._trial:
            self._trial, self._call, self._unparsed, self._notes = trial, 0, 0, 0
            self._seconds_in_flight = 0.0
        call, self._call = self._call, self._call + 1
        request_digest = digest(request)
        if self.stopped:
            raise SubjectStoppedError(_DECIDED)
        self._refused = known = self._find(trial, call, request_digest)
        if known is not None and known.fault is None:
            self._hope.to_repeat -= 1
            self._said = _said_in(known.reply)
            return known.reply
        self._check_stopped()
        with self.channel.asks():
            reply, how = await self._answered(request, trial, call, request_digest)
        cost = (
            None if (price := self.channel.price) is None else price.cost(reply.usage)
        )
        record = self._record(
            request, trial, call, request_digest, reply, cost=cost, **how
        )
        self.budget.add(record.totals)
        await self.log.calls.commit(self.plan, self.subject, record)
        if self.budget.counts_tokens:
            self.channel.sizes.learn(request, reply.usage)
            self.channel.count(reply.usage.prompt + reply.usage.completion)
        self._said = _said_in(reply)
        return reply

    def _check_stopped(self) -> None:
        if self.stopped:
            raise SubjectStoppedError(_DECIDED)
        if self._hope.gone and not self.channel.replaying:
            subjects = len(self._hope.subjects)
            raise SubjectStoppedError(
                f"none of {self._hope.unread} replies of {subjects} subject{'s' * (subjects != 1)} could be read"
            )

    def _record(
        self,
        request: ChatRequest,
        trial: int,
        call: int,
        request_digest: str,
        reply: ChatReply,
        **how: Any,
    ) -> CallRecord:
        if (refused := self._refused) is not None:
            # Earlier refusals count as attempts. Otherwise a call that was repeated
            # until a filter let the answer through would look like one that was
            # answered at once.
            how["attempts"] += refused.attempts
            how["malformed"] = how.get("malformed", 0) + refused.malformed + 1
        return _record_of(request, trial, call, request_digest, reply, **how)

    def _absence(self, where: str) -> BudgetSpentError | SubjectStoppedError:
        """Return the error for a call that is not in the replayed run."""
        records = self.source.trials(self.plan, self.subject)
        is_spent = any(record.missing == "budget" for record in records)
        kind = BudgetSpentError if is_spent else SubjectStoppedError
        return kind(f"{where} is not in the replayed run")

    def _find(self, trial: int, call: int, request_digest: str) -> CallRecord | None:
        """Return the recorded call, or None if the call has not been made.

        Raise RunLogError if the recorded request differs. Raise SubjectStoppedError for
        a recorded refusal, unless refused calls are made again. In a replay, a call
        that has not been made raises the error of ``_absence``.
        """
        known = (
            self.source.calls.find(self.plan, self.subject, trial, call)
            if self.recorded
            else None
        )
        where = f"call {call + 1} of trial {trial + 1} of subject {self.subject} ({self.plan.model} on {self.plan.protocol})"
        if known is None:
            if self.channel.replaying:
                raise self._absence(where)
            return None
        if known.digest != request_digest:
            raise RunLogError(
                f"{where} differs from the recorded one, so the recorded reply does not answer it: the prompt, a "
                "parameter or the program has changed. Start a new run."
            )
        if known.fault is None:
            return known
        if self.channel.retry_errors and not self.channel.replaying:
            return known
        raise SubjectStoppedError(
            f"{known.fault.replace('_', ' ')} at {where}, as recorded: {known.reply.text}"
        )

    async def _answered(
        self, request: ChatRequest, trial: int, call: int, request_digest: str
    ) -> tuple[ChatReply, dict[str, Any]]:
        """Return the reply and, as fields of its record, the duration of the successful
        attempt and the numbers of attempts and malformed answers.
        """
        # The pauses depend on the subject. Without seeds the first calls of all
        # subjects are equal, and would otherwise be retried at the same moment.
        attempts = Attempts(self.channel, f"{request_digest}|{self.subject}")
        before = self._seconds_in_flight
        while True:
            attempts.number += 1
            try:
                reply, seconds = await self._attempt(request)
            except BudgetSpentError as spent:
                raise self._unanswered(spent) from None
            except ChatFaultError as fault:
                pause = attempts.pause_after(fault, self._seconds_in_flight - before)
                if pause is None:
                    record = self._refusal(
                        fault, request, trial, call, request_digest, attempts.number
                    )
                    raise self._stopped(fault, attempts, record) from fault
            else:
                self.channel.answered()
                return reply, {
                    "seconds": seconds,
                    "attempts": attempts.number,
                    "malformed": attempts.malformed,
                }
            # A pause never goes beyond the time limit, after which the next attempt
            # raises BudgetSpentError.
            await asyncio.sleep(min(pause, self.budget.seconds_left))

    def _unanswered(self, spent: BudgetSpentError) -> UnansweredError:
        if self.channel.silence:
            # The server failed before the budget was spent, so the server is the cause
            # of the stop.
            return SubjectStoppedError(
                f"{self.channel.silence.rstrip('.')}; no reply came before the limit: {spent}"
            )
        return BudgetSpentError(f"{spent}{self.channel.trouble}")

    async def _attempt(self, request: ChatRequest) -> tuple[ChatReply, float]:
        """Return the reply and its duration in seconds. Raise ChatFaultError if the
        attempt fails, and the errors of ``_ask`` and ``Budget.room`` if none may be
        made.
        """
        channel = self.channel
        counts = self.budget.counts_tokens
        expected = (
            channel.sizes.expected(request, channel.price) if counts else CallTotals()
        )
        async with channel.limiter.slot(self.work), self.budget.room(expected):
            reply, seconds = await self._ask(request)
        reply = _thoughts_apart(reply, self.plan)
        for doubt in channel.doubts(reply):
            self.log.note("warning", doubt, self.plan)
        return self.log.calls.as_recorded(replace(reply, doubt="")), seconds

    async def _ask(self, request: ChatRequest) -> tuple[ChatReply, float]:
        """Ask the server. Raise ChatFaultError if there is no reply, and
        SubjectStoppedError if no call may be made any more.
        """
        channel = self.channel
        self._check_stopped()
        if channel.stop_reason:
            raise SubjectStoppedError(channel.stop_reason)
        left = channel.patience.trial - self._seconds_in_flight
        if left <= 0:
            raise SubjectStoppedError(
                f"the calls of one trial took more than {channel.patience.trial:g} s (--trial-timeout)"
            )
        timeout = min(channel.patience.request, left)
        if channel.closing:
            # The session is ending, and will cancel this task: wait for that.
            await asyncio.get_running_loop().create_future()
        assert channel.connection is not None
        began = time.monotonic()
        channel.in_flight += 1
        try:
            reply = await in_time(channel.connection, request, timeout, left)
        except TimeoutError:
            channel.limiter.objected(None)
            raise ChatFaultError("timeout", f"no reply within {timeout:g} s") from None
        except ChatFaultError as fault:
            self._slow_down(fault)
            raise
        finally:
            channel.in_flight -= 1
            seconds = time.monotonic() - began
            self._seconds_in_flight += seconds
        channel.limiter.succeeded()
        return reply, seconds

    def _slow_down(self, fault: ChatFaultError) -> None:
        limiter = self.channel.limiter
        # A timeout counts as overload, because a server may queue calls instead of
        # refusing them.
        if fault.kind == "timeout":
            limiter.objected(None)
        elif fault.kind in THROTTLES:
            # A pause longer than PATIENCE, if the server asks for one, delays only this
            # call. Here it would hold up all other calls, too.
            wish = fault.retry_after or 0.0
            limiter.objected(
                min(wish, self.budget.seconds_left) if wish <= PATIENCE else None
            )

    def _refusal(
        self,
        fault: ChatFaultError,
        request: ChatRequest,
        trial: int,
        call: int,
        request_digest: str,
        attempts: int,
    ) -> CallRecord | None:
        """Return the record of a call that the server refused because of its content,
        or None for other faults.
        """
        if fault.kind in FATAL or fault.kind in TRANSIENT:
            return None
        return self._record(
            request,
            trial,
            call,
            request_digest,
            self.log.calls.as_recorded(ChatReply(text=str(fault), finish="other")),
            fault=fault.kind,
            attempts=attempts,
        )

    def _stopped(
        self, fault: ChatFaultError, attempts: Attempts, refusal: CallRecord | None
    ) -> SubjectStoppedError:
        """Return the error that says why the subject stops. Record a refusal. A fault
        of the account stops all subjects.
        """
        text = said(fault, attempts.number)
        if refusal is not None:
            self.log.calls.write(self.plan, self.subject, refusal)
        elif fault.kind in FATAL:
            self.channel.stop(text)
        else:
            self.channel.lose(text, attempts.silent)
        return SubjectStoppedError(advised(text, begins(fault)))


def early_record(
    log: RunLog,
    plan: CellPlan,
    place: tuple[int, int],
    request: ChatRequest,
    reply: ChatReply,
    price: Price | None,
    **how: Any,
) -> CallRecord:
    """Return the record of a call that was made before its subject started or
    continued. ``place`` is the trial and the call's number in it.

    Later, the subject reads the recorded reply, as in a resumed run.
    """
    said = log.calls.as_recorded(replace(_thoughts_apart(reply, plan), doubt=""))
    cost = None if price is None else price.cost(reply.usage)
    return _record_of(request, *place, digest(request), said, cost=cost, **how)


def _record_of(
    request: ChatRequest,
    trial: int,
    call: int,
    request_digest: str,
    reply: ChatReply,
    **how: Any,
) -> CallRecord:
    return CallRecord(
        trial=trial,
        call=call,
        digest=request_digest,
        reply=reply,
        system=_system(request),
        asked=readable(request.messages[-1]),
        **how,
    )


def _thoughts_apart(reply: ChatReply, plan: CellPlan) -> ChatReply:
    """Return the reply. If a reasoning model's reply was cut off and has no separate
    reasoning, all its text becomes reasoning.
    """
    thinking = plan.settings.get("reasoning") and not reply.reasoning
    if thinking and reply.finish == "length":
        return replace(reply, text="", reasoning=reply.text)
    return reply


@dataclass(slots=True)
class Attempts:
    """The attempts of one call: their number, the pauses between them, and when to give
    up. ``seed`` determines the random part of the pauses.
    """

    channel: ModelChannel
    seed: str
    number: int = 0
    #: Number of faults that used up a retry.
    faults: int = 0
    #: Number of malformed answers.
    malformed: int = 0
    #: Duration of all pauses, in seconds.
    paused: float = 0.0
    #: Whether the model has answered no call for longer than PATIENCE.
    silent: bool = False
    _jitter: random.Random | None = None

    def pause_after(self, fault: ChatFaultError, in_flight: float) -> float | None:
        """Return the seconds from this fault to the next attempt, or None if there is
        no further attempt. ``in_flight`` is the duration of all attempts so far, in
        seconds.
        """
        # A server that refuses connections may be loading or restarting, so wait for it
        # as for a busy one.
        throttled = fault.kind in THROTTLES or (fault.refused and self.paused < LOADING)
        self.faults += not throttled
        self.malformed += fault.kind == "malformed"
        self.silent = self.channel.failed(said(fault))
        pause = max(self._pause(), fault.retry_after or 0.0)
        retries = self.channel.patience.retries
        enough = self.silent if throttled else self.faults > retries
        # The deadline also ends many slow attempts, and the wait for a server that asks
        # for a pause of a day.
        deadline = max(PATIENCE, 2 * self.channel.patience.request)
        enough = enough or self.paused + in_flight + pause > deadline
        if enough or not self._may_pass(fault):
            return None
        self.paused += pause
        self.channel.retrying(
            said(fault),
            self.number if throttled else self.faults,
            None if throttled else retries,
            pause,
        )
        return pause

    def _may_pass(self, fault: ChatFaultError) -> bool:
        return fault.kind in TRANSIENT or (
            fault.kind in FATAL
            and self.channel.has_replied
            and self.faults <= MAX_AUTH_RETRIES
        )

    def _pause(self) -> float:
        self._jitter = self._jitter or random.Random(self.seed)
        most = min(FIRST_PAUSE * 2.0 ** min(self.number - 1, 20), LONGEST_PAUSE)
        return most * self._jitter.uniform(0.5, 1.0)


#: Words with which a server says that it does not know a parameter.
_UNKNOWN = r"(\bun(supported|known|recogni[sz]ed|expected)|\bextra\b|not (supported|permitted|allowed))"
_LIMIT = "max_(completion_)?tokens"
_LISTED = "List the model in a file of models (--models) with 'drops: [{}]'"
#: Patterns in a server's reasons for refusing a request, each with a remedy.
_REMEDIES = tuple(
    (re.compile(pattern, re.IGNORECASE), remedy)
    for pattern, remedy in (
        (
            r"(limit|quota).{0,30}(reached|exceeded).{0,30}(organi[sz]ation|account|project|plan)",
            "Raise the limit at the provider, or resume the run later.",
        ),
        (
            r"system.{0,12}(role|message|prompt|instruction)|roles? must alternate"
            r"|(role|message)s?\b.{0,20}\bsystem\b|developer instruction"
            r"|\buser\W{1,3}((and|or)\W{1,3})?assistant\b",
            f"{_LISTED.format('system')}, which moves the system prompt to the beginning of the first user message.",
        ),
        (
            r"\btools?\b|tool_choice|function.?call|\bfunctions?\b.{0,20}support",
            "Try --agent llm, which needs no tools.",
        ),
        (
            r"response_format|json_schema|guided|structured output",
            "Try --agent llm, which asks for no output format.",
        ),
        (r"temperature", "Try --temperature none, which leaves it to the server."),
        (
            rf"{_UNKNOWN}.{{0,40}}{_LIMIT}|{_LIMIT}.{{0,40}}{_UNKNOWN}",
            f"{_LISTED.format('max_tokens')}.",
        ),
        (
            rf"{_LIMIT}|budget_tokens|output.{{0,20}}tokens",
            "Set the limit with --reply-tokens N.",
        ),
        (r"reasoning_effort", "Change or remove --reasoning-effort."),
        (r"top_p", "Change or remove --top-p."),
        (r"\bseed\b", f"{_LISTED.format('seed')}."),
        (
            r"image|vision|multi.?modal",
            "Choose a text view (--view ascii_2d).",
        ),
    )
)


#: Patterns for texts of malformed answers, each with what to do about them.
_MALFORMED = tuple(
    (re.compile(f"malformed: {pattern}"), what)
    for pattern, what in (
        (
            "The answer (breaks off|is empty)",
            "Mend what ends the server's answers too early (a crash, a time limit, a proxy)",
        ),
        (
            "The answer ",
            "Mend what answers in the server's place (a proxy, a login page, another program)",
        ),
        ("", "Mend the model or its server (template, stop words, limits)"),
    )
)


def to_mend(told: str) -> str:
    """Return what to do about a malformed answer, from the text of its fault. Return ""
    for other faults.
    """
    return next((what for pattern, what in _MALFORMED if pattern.match(told)), "")


def said(fault: ChatFaultError, attempts: int = 1) -> str:
    """Return the kind and text of a fault, with a remedy if one is known. Several
    attempts are counted.
    """
    text = f"{fault.kind.replace('_', ' ')}: {fault}"
    if attempts > 1:
        text = f"{text.rstrip('.')}, tried {attempts} times"
    if fault.kind == "context_too_long":
        return advised(
            text, "Shorten prompts with --history N, or replies with --reply-tokens N."
        )
    if fault.kind not in ("bad_request", "server") or "drops:" in text:
        return text
    remedy = next(
        (remedy for pattern, remedy in _REMEDIES if pattern.search(str(fault))), ""
    )
    return advised(text, remedy)


def begins(fault: ChatFaultError) -> str:
    """Return a sentence with the beginning of the answer that was no reply, or "".
    ``RunLog.causes`` leaves it out.
    """
    shown = quoted(fault.answer, 120)
    return f"The answer begins: {shown}" if shown else ""


def advised(text: str, remedy: str) -> str:
    """Return a server's words, followed by a remedy, if there is one. Add the full stop
    that the words may lack.
    """
    stop = "" if not remedy or text.endswith((".", "!", "?")) else "."
    return f"{text}{stop} {remedy}".rstrip()


def _system(request: ChatRequest) -> str:
    first = request.messages[0]
    return readable(first) if first.role == "system" else ""
