"""How many calls of one account are in flight: found out while running, from what the server says.

Additive increase, multiplicative decrease, as in TCP: the limit doubles from window to window until the server
objects for the first time, then it grows by one call a window, and halves whenever the server objects.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

#: Calls in flight to begin with.
START = 16
#: Seconds after a halving in which further complaints are about the same crowd, and change nothing.
GRACE = 1.0


class Limiter:
    """Lets calls through, those with the most work behind them first. For one event loop.

    ``most`` is the largest number in flight, whatever the server bears.
    """

    def __init__(self, most: int, start: int = START) -> None:
        self.most = most
        self._limit = float(min(start, most))
        self.in_flight = 0
        self.throttled = 0
        """How often the server has objected."""
        self._doubling = True
        self._halved_at = float("-inf")
        self._paused_until = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return int(self._limit)

    @asynccontextmanager
    async def slot(self, work: float = 0.0) -> AsyncIterator[None]:
        """Wait for a place among the calls in flight; more ``work`` left goes first."""
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
                # Admitted and cancelled in the same moment: give the place back.
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
        """Cut a pause short."""
        self._paused_until = 0.0
        self._admit()

    def succeeded(self) -> None:
        """A reply has come: if the limit was what held us back, let it grow."""
        if self.in_flight + 1 >= self.limit and self._limit < self.most:
            self._limit = min(self.most, self._limit + (1.0 if self._doubling else 1.0 / self._limit))

    def objected(self, retry_after: float | None) -> None:
        """The server has too much to do: halve the limit, and pause for as long as it wishes."""
        now = time.monotonic()
        self.throttled += 1
        self._doubling = False
        if now - self._halved_at >= GRACE:
            self._halved_at = now
            self._limit = max(1.0, min(self._limit, float(self.in_flight + 1)) / 2)
        if retry_after:
            self._paused_until = max(self._paused_until, now + retry_after)
