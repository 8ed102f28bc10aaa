"""The budget of a run, checked before every call, including the expected cost of calls in flight."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from cheesebench.chat import ChatRequest, Price, Usage
from cheesebench.errors import CheeseBenchError
from cheesebench.experiment.records import CallTotals

#: Seconds between two looks at what other processes have spent, at least; or so many times as long as one look takes.
INTERVAL, LOOKING = 0.02, 20.0
#: Assumptions before the first reply: tokens per character of the prompt (mazes are dense), tokens of a reply without
#: a limit, and the equivalent of a picture in characters.
DENSITY, REPLY, PICTURE = 0.6, 1024, 4000


class BudgetSpentError(CheeseBenchError):
    """The budget of the run is spent; unfinished trials are missing, with ``budget`` as the cause."""


class SubjectSettledError(CheeseBenchError):
    """A subject need not continue: nothing that it could do would change the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a whole run: dollars, tokens (prompt and reply), minutes of this session. None: unlimited."""

    cost: float | None = None
    tokens: int | None = None
    minutes: float | None = None


@dataclass(slots=True)
class CallSizes:
    """Expected size of a model's calls, from the densest prompt and the longest reply so far."""

    _density: float = 0.0
    _reply: int = 0

    def expected(self, request: ChatRequest, price: Price | None) -> CallTotals:
        """Return the expected tokens of a call, and dollars as if nothing were cached."""
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
    """Counts spending. ``began`` is the start of the session (UNIX time).

    ``recorded`` returns the spending recorded in the run log. It is called once; or, if several ``processes`` spend
    from the same budget, periodically, and whenever there is no room left by what is known. In between, each of the
    others is taken to spend, and to have in flight, four times as much as this one.
    """

    def __init__(self, limits: Limits, recorded: Callable[[], CallTotals], began: float, processes: int = 1) -> None:
        self._limits = limits
        self._began = began
        self._recorded = recorded
        self._processes = processes
        self._looks_again = processes > 1 and (limits.cost is not None or limits.tokens is not None)
        self._look_again_at = 0.0
        self.spent = recorded()
        #: What was counted here since the last look at what all have spent.
        self._since = CallTotals()
        #: Expected totals of the calls in flight.
        self._reserved = CallTotals()
        self._flying = 0
        self._landed = asyncio.Event()

    @property
    def counts_tokens(self) -> bool:
        """Whether there is a limit that needs token counts from servers."""
        return self._limits.cost is not None or self._limits.tokens is not None

    def share_of(self, spent: CallTotals) -> float:
        """Return the share of the dollar or token limit, whichever is larger; 0.0 without such a limit."""
        limits = self._limits
        dollars = spent.cost / limits.cost if limits.cost else 0.0
        return max(dollars, (spent.prompt + spent.completion) / limits.tokens if limits.tokens else 0.0)

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit; infinity without one, 0.0 after it."""
        if self._limits.minutes is None:
            return math.inf
        return max(0.0, self._began + 60 * self._limits.minutes - time.time())

    def add(self, call: CallTotals) -> None:
        """Count a call."""
        self.spent += call
        self._since += call

    @asynccontextmanager
    async def room(self, expected: CallTotals) -> AsyncIterator[None]:
        """Wait until the budget has room for one more call besides those in flight, and reserve it.

        A call is admitted while the spending and the expected cost of the calls in flight are below the limits, so that
        a limit is exceeded by at most one call if expectations hold. Raises BudgetSpentError like ``check``. The actual
        cost of a call must be counted (``add``) before control returns to the event loop.
        """
        if self._looks_again and not self._flying:
            self._look()
        self.check()
        while not self._fits():
            if self._since != CallTotals() and self._looks_again:
                self._look()
                self.check()
                continue
            if not self._flying:
                break  # one call may be too large for what is left
            self._landed.clear()
            await self._landed.wait()
            self.check()
        self._flying += 1
        self._reserved += expected
        try:
            yield
        finally:
            self._flying -= 1
            self._reserved = self._reserved - expected if self._flying else CallTotals()
            self._landed.set()

    def _look(self) -> None:
        began = time.monotonic()
        self.spent, self._since = self._recorded(), CallTotals()
        self._look_again_at = time.monotonic() + max(INTERVAL, LOOKING * (time.monotonic() - began))

    def _fits(self) -> bool:
        limits, others = self._limits, self._processes - 1
        # The others may be faster: taken for four times so, they stay within one call each (test_call_budgets.py).
        parts = ((self.spent, 1), (self._reserved, 1 + 4 * others), (self._since, 4 * others))
        cost = sum(times * part.cost for part, times in parts)
        tokens = sum(times * (part.prompt + part.completion) for part, times in parts)
        return (limits.cost is None or cost < limits.cost) and (limits.tokens is None or tokens < limits.tokens)

    def check(self) -> None:
        """Raise BudgetSpentError if no further call may be made."""
        if self._looks_again and time.monotonic() > self._look_again_at:
            self._look()
        limits, spent = self._limits, self.spent
        tokens = spent.prompt + spent.completion
        if limits.cost is not None and spent.cost >= limits.cost:
            raise BudgetSpentError(f"the run has cost ${spent.cost:.2f}; --max-cost {limits.cost:g} is reached")
        if limits.tokens is not None and tokens >= limits.tokens:
            raise BudgetSpentError(f"the run has used {tokens:,} tokens; --max-tokens {limits.tokens} is reached")
        minutes = (time.time() - self._began) / 60
        if limits.minutes is not None and minutes >= limits.minutes:
            raise BudgetSpentError(
                f"the run has taken {minutes:.1f} minutes; --max-minutes {limits.minutes:g} is reached"
            )
