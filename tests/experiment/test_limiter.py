"""The number of calls in flight, found out while running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from cheesebench.experiment import calling
from cheesebench.experiment.calling import START, Limiter


async def crowd(
    limited: Limiter,
    calls: int,
    serve: Callable[[], Coroutine[Any, Any, bool]],
    seen: list[int] | None = None,
) -> None:
    async def one(number: int) -> None:
        while True:
            async with limited.slot():
                if seen is not None:
                    seen.append(limited.in_flight)
                if await serve():
                    limited.succeeded()
                    return
                limited.objected(None)

    await asyncio.gather(*(one(number) for number in range(calls)))


def test_it_opens_until_the_server_objects() -> None:
    async def serve() -> bool:
        await asyncio.sleep(0.001)
        return True

    seen: list[int] = []
    limited = Limiter(200)
    asyncio.run(crowd(limited, 2000, serve, seen))
    assert seen[:START] == list(range(1, START + 1))
    assert max(seen) == limited.limit == 200
    assert limited.in_flight == 0


def test_it_never_exceeds_what_it_was_given() -> None:
    async def serve() -> bool:
        await asyncio.sleep(0)
        return True

    seen: list[int] = []
    asyncio.run(crowd(Limiter(3), 50, serve, seen))
    assert max(seen) == 3


def test_it_settles_near_what_the_server_bears(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "GRACE", 0.02)
    busy = peak = refused = 0

    async def serve() -> bool:
        nonlocal busy, peak, refused
        if busy >= 40:
            refused += 1
            return False
        busy += 1
        peak = max(peak, busy)
        await asyncio.sleep(0.002)
        busy -= 1
        return True

    limited = Limiter(1000)
    asyncio.run(crowd(limited, 3000, serve))
    assert peak == 40
    assert limited.throttled == refused > 0
    assert limited.limit <= 60


def test_a_pause_holds_everybody_back() -> None:
    async def main() -> list[str]:
        order: list[str] = []
        limited = Limiter(5)
        limited.objected(0.05)

        async def one() -> None:
            async with limited.slot():
                order.append("call")

        tasks = [asyncio.create_task(one()) for _ in range(3)]
        await asyncio.sleep(0.01)
        order.append("pause")
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(main()) == ["pause", "call", "call", "call"]


def test_whoever_has_most_work_left_goes_first() -> None:
    async def main() -> list[float]:
        order: list[float] = []
        limited = Limiter(1)

        async def one(work: float) -> None:
            async with limited.slot(work):
                order.append(work)
                await asyncio.sleep(0)

        await asyncio.gather(*(one(work) for work in (0.0, 1.0, 5.0, 3.0, 3.0)))
        return order

    assert asyncio.run(main()) == [0.0, 5.0, 3.0, 3.0, 1.0]


@pytest.mark.parametrize("victims", [1, 3])
def test_who_is_cancelled_leaves_the_place_to_others(victims: int) -> None:
    async def main() -> Limiter:
        limited = Limiter(2)

        async def one() -> None:
            async with limited.slot():
                await asyncio.sleep(0.01)

        tasks = [asyncio.create_task(one()) for _ in range(6)]
        await asyncio.sleep(0)
        for task in tasks[:victims]:
            task.cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
        return limited

    assert asyncio.run(main()).in_flight == 0
