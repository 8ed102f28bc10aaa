"""Adaptive limit of the calls in flight for one account, based on the server's rejections.

Additive increase and multiplicative decrease, as in TCP: the limit doubles with each window until the server first
rejects a call for load, then grows by one call per window, and halves on each further rejection.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

#: Initial limit of calls in flight.
START = 16
#: Seconds after a halving in which further rejections are attributed to the same load and ignored.
GRACE = 1.0


class Limiter:
    """Admits calls, those with the most remaining work first. For one event loop.

    ``most`` is the maximum number in flight.
    """

    def __init__(self, most: int, start: int = START) -> None:
        self.most = most
        self._limit = float(min(start, most))
        self.in_flight = 0
        self.throttled = 0
        """Number of rejections by the server."""
        self._doubling = True
        self._halved_at = float("-inf")
        self._paused_until = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """Present limit of calls in flight."""
        return int(self._limit)

    @asynccontextmanager
    async def slot(self, work: float = 0.0) -> AsyncIterator[None]:
        """Wait for a slot among the calls in flight; calls with more remaining ``work`` go first."""
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
                # Admitted and cancelled at the same time: release the slot.
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
        """End a pause early."""
        self._paused_until = 0.0
        self._admit()

    def succeeded(self) -> None:
        """Record a reply; if the limit was reached, let it grow."""
        if self.in_flight + 1 >= self.limit and self._limit < self.most:
            self._limit = min(self.most, self._limit + (1.0 if self._doubling else 1.0 / self._limit))

    def objected(self, retry_after: float | None) -> None:
        """Record a rejection for load: halve the limit, and pause for as long as the server asks."""
        now = time.monotonic()
        self.throttled += 1
        self._doubling = False
        if now - self._halved_at >= GRACE:
            self._halved_at = now
            self._limit = max(1.0, min(self._limit, float(self.in_flight + 1)) / 2)
        if retry_after:
            self._paused_until = max(self._paused_until, now + retry_after)
