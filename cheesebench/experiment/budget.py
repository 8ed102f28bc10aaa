"""What a run may cost: checked before every call, with what the calls in flight will take."""

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

#: Seconds between two looks at what other processes have spent.
INTERVAL = 2.0
#: What a call is taken to need before there was a reply: tokens per character of the prompt (mazes are dense), tokens
#: of a reply without a limit, and characters that a picture is as long as.
DENSITY, REPLY, PICTURE = 0.6, 1024, 4000


class BudgetSpentError(CheeseBenchError):
    """The run has spent what it may; unfinished trials are missing, with ``budget`` as the cause."""


class SubjectSettledError(CheeseBenchError):
    """A subject need not go on: nothing that it could do would change the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a whole run: dollars, tokens (prompt and reply), minutes of this session. None: unlimited."""

    cost: float | None = None
    tokens: int | None = None
    minutes: float | None = None


@dataclass(slots=True)
class CallSizes:
    """What a model's calls take, as far as its replies have shown: the densest prompt and the longest reply so far."""

    _density: float = 0.0
    _reply: int = 0

    def expected(self, request: ChatRequest, price: Price | None) -> CallTotals:
        """Return what a call is going to take: tokens, and dollars as if nothing of it was cached."""
        prompt = math.ceil(_length(request) * (self._density or DENSITY))
        most = request.sampling.max_tokens
        reply = self._reply or most or REPLY
        dear = price is not None and (price.written or 0.0) > price.prompt
        usage = Usage(prompt=prompt, completion=reply, written=prompt if dear else 0)
        cost = 0.0 if price is None else price.cost(usage)
        return CallTotals(prompt=prompt, completion=reply, cost=cost)

    def learn(self, request: ChatRequest, usage: Usage) -> None:
        """Take notice of what a call has taken."""
        self._density = max(self._density, usage.prompt / max(1, _length(request)))
        self._reply = max(self._reply, usage.completion)


def _length(request: ChatRequest) -> int:
    parts = (part for message in request.messages for part in message.parts)
    return sum(len(part) if isinstance(part, str) else PICTURE for part in parts)


class Budget:
    """Counts what is spent. ``began`` is when the session began (UNIX time).

    ``recorded`` returns what the run log says is spent: asked once, or now and then if ``shared`` (other processes
    spend from the same budget).
    """

    def __init__(self, limits: Limits, recorded: Callable[[], CallTotals], began: float, shared: bool = False) -> None:
        self._limits = limits
        self._began = began
        self._recorded = recorded
        self._looks_again = shared and (limits.cost is not None or limits.tokens is not None)
        self._looked_at = time.monotonic()
        self.spent = recorded()
        #: What the calls in flight are expected to take.
        self._reserved = CallTotals()
        self._flying = 0
        self._landed = asyncio.Event()

    @property
    def counts_tokens(self) -> bool:
        """Whether it can only be kept if servers say what their replies take."""
        return self._limits.cost is not None or self._limits.tokens is not None

    def share_of(self, spent: CallTotals) -> float:
        """Return which part of the dollars or tokens this is, whichever is the larger; 0.0 without such a limit."""
        limits = self._limits
        dollars = spent.cost / limits.cost if limits.cost else 0.0
        return max(dollars, (spent.prompt + spent.completion) / limits.tokens if limits.tokens else 0.0)

    @property
    def seconds_left(self) -> float:
        """Seconds until the time is over: infinitely many without a limit, 0.0 when it is."""
        if self._limits.minutes is None:
            return math.inf
        return max(0.0, self._began + 60 * self._limits.minutes - time.time())

    def add(self, call: CallTotals) -> None:
        """Count a call."""
        self.spent += call

    @asynccontextmanager
    async def room(self, expected: CallTotals) -> AsyncIterator[None]:
        """Wait until what is in flight leaves room for one more call, and keep it for this one.

        A call is let through while what is spent and what is expected of the others in flight lie below the limits, so
        that these are overshot by one call at most, as far as expectations hold. Raises BudgetSpentError as ``check``
        does. What a call has really taken is to be counted (``add``) before anybody else gets a turn.
        """
        self.check()
        while self._flying and not self._fits():
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

    def _fits(self) -> bool:
        limits, total = self._limits, self.spent + self._reserved
        fits_cost = limits.cost is None or total.cost < limits.cost
        return fits_cost and (limits.tokens is None or total.prompt + total.completion < limits.tokens)

    def check(self) -> None:
        """Raise BudgetSpentError if no further call may be made."""
        if self._looks_again and time.monotonic() - self._looked_at > INTERVAL:
            self._looked_at, self.spent = time.monotonic(), self._recorded()
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
