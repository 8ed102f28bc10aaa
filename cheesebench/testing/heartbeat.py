"""Measures how long an event loop stands still."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

#: Seconds between two beats, and for which a loop may stand still beyond what it does by itself on this machine.
BEAT, GAP = 0.005, 0.1
#: Calls that are timed. All but one of them must be slow: that one was disturbed by somebody else is then no reason.
CALLS = 6
#: Maximum number of stalled calls that are reported, and the seconds after which a call counts as stalled.
ENOUGH, LONG = 3, 0.5


class Heartbeat:
    """A task that wakes up all the time, and knows when it could not."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._longest = 0.0

    async def __aenter__(self) -> Heartbeat:
        self._last = time.monotonic()
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    def longest(self) -> float:
        """Return the longest time (in seconds) between two beats since this was asked the last time."""
        self._note()
        found, self._longest = self._longest, 0.0
        return found

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            self._note()

    def _note(self) -> None:
        now = time.monotonic()
        self._longest, self._last = max(self._longest, now - self._last), now


async def standstill(call: Callable[[], Awaitable[object]], seconds: float) -> float:
    """Return for how many seconds the loop stands still in a call that takes ``seconds``; 0.0 if that is nothing.

    A busy machine makes every loop stand still at times: the longest gap without calls is allowed for, and what
    counts is a gap that nearly all of several calls have. The first call may import what it likes.
    """
    await call()
    gaps: list[float] = []
    async with Heartbeat() as heart:
        await asyncio.sleep(seconds)
        usual = heart.longest()
        for _ in range(CALLS):
            await call()
            gaps.append(heart.longest())
            if len(gaps) == ENOUGH and min(gaps) > LONG + usual:
                return min(gaps)
        await asyncio.sleep(seconds)
        usual = max(usual, heart.longest())
    gap = sorted(gaps)[1]
    return gap if gap > GAP + usual else 0.0
