"""Which jobs the driver of Ray puts into one task, and what it does with those that
failed. No cluster is needed.
"""

from __future__ import annotations

import asyncio
import io
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra ray: pip install -e '.[ray]'")

from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    RayTaskError,
    WorkerCrashedError,
)

from cheesebench.plugins.executors import pipes, ray_driver
from cheesebench.plugins.executors.ray_driver import (
    CRASHES,
    DEATHS,
    TASK_JOBS,
    Cell,
    Driver,
    Work,
)


class Pipe(io.BytesIO):
    """The pipe to the session."""

    def said(self) -> list[tuple[Any, ...]]:
        self.seek(0)
        return [pickle.loads(content) for content in pipes.read_messages(self)]


def driver(pipe: Pipe | None = None, slots: int = 1) -> Driver:
    options: dict[str, Any] = {
        "path": [],
        "processes": None,
        "num_cpus": 1.0,
        "num_gpus": 0.0,
    }
    one = Driver(pipe or Pipe(), options)
    one._slots = slots
    return one


def works(cell: Cell, count: int, first: int = 0) -> list[Work]:
    return [Work(first + number, cell, number, None) for number in range(count)]


def taken(one: Driver) -> list[list[int]]:
    """Return the numbers of the jobs in each task, until nothing waits."""
    tasks = []
    while one._waiting:
        tasks.append([work.number for work in one._next()])
    return tasks


@pytest.mark.parametrize(
    ("seconds", "count", "slots", "sizes"),
    [
        (None, 3, 1, [1, 1, 1]),  # nothing is known yet
        (9.0, 3, 1, [1, 1, 1]),
        (0.1, 12, 1, [5, 5, 1, 1]),  # half a second each
        (0.1, 8, 4, [2, 2, 1, 1, 1, 1]),  # enough is left for the others
        (0.0, 200, 1, [TASK_JOBS, TASK_JOBS, TASK_JOBS, 7, 1]),
    ],
)
def test_a_task_has_the_jobs_of_half_a_second(
    seconds: float | None, count: int, slots: int, sizes: list[int]
) -> None:
    one = driver(slots=slots)
    one._waiting.extend(works(Cell(b"", seconds), count))
    tasks = taken(one)
    assert [len(task) for task in tasks] == sizes
    assert [number for task in tasks for number in task] == list(range(count))


def test_a_task_has_jobs_of_one_cell_and_none_that_failed() -> None:
    first, second = Cell(b"1", 0.1), Cell(b"2", 0.1)
    one = driver()
    failed = Work(9, second, 0, None, crashes=1)
    one._waiting.extend([*works(first, 2), *works(second, 2, 2), failed])
    assert taken(one) == [[0, 1], [2, 3], [9]]


@pytest.mark.parametrize(("kind", "most"), [("crashes", CRASHES), ("deaths", DEATHS)])
def test_jobs_are_tried_again_alone_and_in_order_until_it_is_too_often(
    kind: str, most: int
) -> None:
    pipe = Pipe()
    one = driver(pipe)
    interrupted, other = works(Cell(b"", 0.1), 2)
    for _ in range(most - 1):
        one._again([interrupted, other], why="it fell", **{kind: 1})
        assert taken(one) == [[0], [1]]
    setattr(other, kind, 0)
    one._again([interrupted, other], why="it fell", **{kind: 1})
    assert taken(one) == [[1]]
    assert pipe.said() == [
        *[("again", 0, "it fell")] * (most - 1),
        ("died", 0, f"it fell; all {most} attempts failed"),
    ]


def test_a_job_waits_with_its_cell_until_there_is_a_place() -> None:
    async def hear() -> tuple[int, list[int]]:
        one = driver()
        one._running.add(asyncio.current_task())  # type: ignore[arg-type]
        one.hear("cell", 5, b"content")
        one.hear("job", 7, 5, 3, "yoke")
        [work] = one._waiting
        assert (work.cell.content, work.subject, work.yoke) == (b"content", 3, "yoke")
        return len(one._running), [work.number]

    assert asyncio.run(hear()) == (1, [7])


class Task:
    """What Ray calls for some jobs: messages, and then perhaps an error."""

    def __init__(self, *messages: tuple[Any, ...], error: Exception | None = None):
        self.messages, self.error = messages, error

    async def remote(self, *_: object) -> AsyncIterator[Any]:
        async def sent(message: tuple[Any, ...]) -> bytes:
            return pickle.dumps(message)

        for message in self.messages:
            yield sent(message)
        if self.error is not None:
            raise self.error


def done(task: Task, count: int = 2) -> tuple[Driver, list[Work], list[Any]]:
    """Let a task do some jobs. Return what waits after it, and what was said."""
    pipe = Pipe()
    one = driver(pipe)
    one._task = task
    jobs = works(Cell(b""), count)
    asyncio.run(one._do(jobs))
    return one, jobs, pipe.said()


def test_reports_are_passed_on_and_the_time_of_a_job_is_learnt() -> None:
    first = ("reports", 1.0, [(0, False, b"a"), (0, True, b"b")])
    one, jobs, said = done(Task(first, ("reports", 3.0, [(1, True, b"c")])))
    assert said == [("reports", [(0, b"a"), (0, b"b")]), ("reports", [(1, b"c")])]
    assert jobs[0].cell.seconds == 1.5
    assert not one._waiting
    # While a job is not finished, its time is unknown.
    assert done(Task(first))[1][0].cell.seconds is None


@pytest.mark.parametrize(
    ("error", "kind", "why"),
    [
        (NodeDiedError("gone"), "deaths", "a Ray node died (gone"),
        (ObjectLostError("0" * 56, None, ""), "deaths", "a Ray node died ("),
        (RayTaskError("do", "trace", ValueError("odd")), "crashes", "odd"),
        (WorkerCrashedError(), "crashes", "the Ray worker died ("),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_was_not_finished_when_it_fell_is_tried_again(
    error: Exception, kind: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_driver, "MISSED_SECONDS", 0.0)
    first = ("reports", 1.0, [(0, True, b"a")])
    one, jobs, said = done(Task(first, error=error), 3)
    assert taken(one) == [[1], [2]]
    assert [getattr(work, kind) for work in jobs] == [0, 1, 1]
    assert [work.alone for work in jobs] == [False, True, True]
    assert said[0] == ("reports", [(0, b"a")])
    [(again, number, told)] = said[1:]
    assert (again, number) == ("again", 1)
    assert told.startswith(why)


def test_a_node_with_another_installation_is_refused() -> None:
    one, _, said = done(Task(("differs", ["numpy 1, not 2"])))
    [(refused, why)] = said
    assert refused == "refused"
    assert why.startswith("Ray node (joined later) differs: numpy 1, not 2.")
    assert not one._waiting


def test_a_session_that_has_ended_is_over() -> None:
    class Closed(Pipe):
        def write(self, _: Any) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            raise BrokenPipeError

    one = driver(Closed())
    one._again(works(Cell(b""), 1), crashes=1, why="it fell")
    assert one.over.is_set()
