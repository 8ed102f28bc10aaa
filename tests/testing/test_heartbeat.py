"""Measuring the stalls of an event loop."""

from __future__ import annotations

import asyncio
import time

from cheesebench.testing.backends import CALLS, standstill


def measured(*blocked: int) -> float:
    """Return the measured stall if these calls block (-1: the first, which is not
    counted).
    """
    numbers = iter(range(-1, CALLS))

    async def call() -> None:
        await asyncio.sleep(0.01)
        if next(numbers) in blocked:
            time.sleep(0.6)

    return asyncio.run(standstill(call, 0.05))


def test_what_stands_still_in_nearly_every_call_is_found() -> None:
    assert measured(*range(CALLS)) >= 0.6
    assert measured(*range(1, CALLS)) >= 0.6


def test_what_happens_now_and_then_is_the_machine_s() -> None:
    assert measured() == 0.0
    assert measured(-1, 2) == 0.0
