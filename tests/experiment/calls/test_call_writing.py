"""Calls in the run log: written together, before they count, never replaced, and
without keys.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from cheesebench.chat import ChatReply, ChatRequest, Message, Sampling, Usage
from cheesebench.errors import RunLogError
from cheesebench.experiment import calling
from cheesebench.experiment.calling import Limits
from cheesebench.experiment.language_models import CallOptions
from cheesebench.experiment.log import RunLog, digest
from cheesebench.records import CallRecord
from cheesebench.testing.fake_server import Answer, FakeServer
from tests.experiment.laboratory import HASTE, Laboratory, walk


def test_a_name_for_every_reply_does_not_fill_the_journal(
    laboratory: Laboratory,
) -> None:
    with FakeServer(
        lambda call: Answer(text=walk(call), model=f"model-{call.number}")
    ) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("names", cells) as log:
            laboratory.run(log, model, cells)
            assert server.count > 30
            assert len(log.journal(kind="warning")) == calling.MOST_NAMES - 1


def test_a_call_whose_writing_failed_can_be_written_and_found_later(
    laboratory: Laboratory,
) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server))
    plan = next(iter(cells))
    record = CallRecord(
        trial=0,
        call=0,
        digest="d",
        system="be a mouse",
        asked="?",
        reply=ChatReply(text="F"),
    )
    with laboratory.log("full", cells) as log:
        with log.transaction() as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'is full'); END"
            )
        with pytest.raises(RunLogError, match="the disk is full"):
            log.calls.write(plan, 0, record)
        with log.transaction() as connection:
            connection.execute("DROP TRIGGER full")
        log.calls.write(plan, 0, record)
        assert log.calls.find(plan, 0, 0, 0) == record


def test_calls_of_one_moment_are_written_together_and_each_before_its_reply_counts(
    laboratory: Laboratory,
) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server), subjects=20)
    plan = next(iter(cells))
    record = CallRecord(
        trial=0,
        call=0,
        digest="d",
        system="be a mouse",
        asked="?",
        reply=ChatReply(text="F"),
    )
    order: list[int] = []

    async def call(log: RunLog, subject: int) -> None:
        await log.calls.commit(plan, subject, record)
        with sqlite3.connect(log.path) as other:
            life = other.execute(
                "SELECT count(*) FROM calls WHERE subject = ?", (subject,)
            ).fetchone()
        other.close()
        assert life == (1,)
        order.append(subject)

    async def crowd(log: RunLog) -> None:
        tasks = [asyncio.create_task(call(log, subject)) for subject in range(20)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert tasks[3].cancelled()
        assert not [task for task in tasks if not task.cancelled() and task.exception()]

    with laboratory.log("together", cells) as log:
        asyncio.run(crowd(log))
        assert order == [subject for subject in range(20) if subject != 3]
        # Cancelled calls are paid for all the same.
        assert [log.calls.count(plan, subject) for subject in range(20)] == [1] * 20


def test_all_hear_of_it_when_their_calls_cannot_be_written(
    laboratory: Laboratory,
) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server))
    plan = next(iter(cells))
    record = CallRecord(
        trial=0,
        call=0,
        digest="d",
        system="be a mouse",
        asked="?",
        reply=ChatReply(text="F"),
    )

    async def crowd(log: RunLog) -> list[BaseException | None]:
        calls = (log.calls.commit(plan, subject, record) for subject in range(3))
        return await asyncio.gather(*calls, return_exceptions=True)

    with laboratory.log("full", cells) as log:
        with log.transaction() as connection:
            connection.execute(
                "CREATE TRIGGER full BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'is full'); END"
            )
        errors = asyncio.run(crowd(log))
        assert [type(error) for error in errors] == [RunLogError] * 3
        with log.transaction() as connection:
            connection.execute("DROP TRIGGER full")
        assert asyncio.run(crowd(log)) == [None] * 3
        assert log.calls.totals().calls == 3


def test_a_call_that_cannot_be_written_takes_no_other_along(
    laboratory: Laboratory,
) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server))
    plan = next(iter(cells))
    record = CallRecord(
        trial=0,
        call=0,
        digest="d",
        system="be a mouse",
        asked="?",
        reply=ChatReply(text="F"),
    )
    odd = replace(record, reply=replace(record.reply, usage=Usage(prompt=2**70)))

    async def crowd(log: RunLog) -> list[BaseException | None]:
        calls = (
            log.calls.commit(plan, subject, odd if subject == 1 else record)
            for subject in range(4)
        )
        return await asyncio.gather(*calls, return_exceptions=True)

    with laboratory.log("odd", cells) as log:
        errors = asyncio.run(crowd(log))
        assert [type(error) for error in errors] == [
            type(None),
            OverflowError,
            type(None),
            type(None),
        ]
        assert [log.calls.count(plan, subject) for subject in range(4)] == [1, 0, 1, 1]


def test_calls_of_a_loop_that_was_stopped_hold_up_no_later_one(
    laboratory: Laboratory,
) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server))
    plan = next(iter(cells))
    record = CallRecord(
        trial=0,
        call=0,
        digest="d",
        system="be a mouse",
        asked="?",
        reply=ChatReply(text="F"),
    )

    async def stopped(log: RunLog) -> None:
        tasks = [
            asyncio.create_task(log.calls.commit(plan, subject, record))
            for subject in range(9)
        ]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    async def again(log: RunLog) -> None:
        for subject in range(9, 12):
            await asyncio.wait_for(log.calls.commit(plan, subject, record), 30)

    with laboratory.log("twice", cells) as log:
        asyncio.run(stopped(log))
        asyncio.run(again(log))
        assert log.calls.totals().calls == 12


def test_what_is_about_to_be_written_is_spent(laboratory: Laboratory) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server))
    plan = next(iter(cells))
    reply = ChatReply(text="F", usage=Usage(prompt=7))
    record = CallRecord(
        trial=0, call=0, digest="d", system="be a mouse", asked="?", reply=reply
    )

    async def look(log: RunLog) -> tuple[int, int]:
        task = asyncio.create_task(log.calls.commit(plan, 0, record))
        await asyncio.sleep(0)
        before, written = log.calls.totals().prompt, log.calls.count(plan, 0)
        await task
        assert log.calls.totals().prompt == 7
        return before, written

    with laboratory.log("waiting", cells) as log:
        assert asyncio.run(look(log)) == (7, 0)


def test_a_new_name_of_the_server_is_noticed_in_a_resumed_run(
    laboratory: Laboratory,
) -> None:
    name = ["old"]
    with FakeServer(lambda call: Answer(text=walk(call), model=name[0])) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("renamed", cells) as log:
            laboratory.options = CallOptions(concurrency=1, limits=Limits(tokens=200))
            laboratory.run(log, model, cells)
            assert log.journal(kind="warning") == []
            name[0] = "new"
            laboratory.options = HASTE
            laboratory.run(log, model, cells)
            assert [entry.text for entry in log.journal(kind="warning")] == [
                "answered by several models: new, old"
            ]


def test_keys_are_nowhere(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, undisturbed: list[str]
) -> None:
    secret = "swordfish-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    refusal = Answer(status=500, error={"message": f"bad key {secret}"})
    told = Answer(text=f"FF {secret}", reasoning=secret, model=f"m {secret}")
    with FakeServer(
        lambda call: (told, refusal, told)[call.number % 3], key=secret
    ) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=1)
        with laboratory.log("secret", cells) as log:
            laboratory.run(log, model, cells)
            assert log.calls.totals().calls > 0
    for path in (laboratory.results / "secret").iterdir():
        assert secret.encode() not in path.read_bytes()


def test_the_digest_tells_apart_what_can_change_a_reply() -> None:
    def request(
        *parts: str | bytes,
        temperature: float = 0.0,
        extra: Mapping[str, Any] | None = None,
    ) -> ChatRequest:
        messages = (Message("system", ("s",)), Message("user", parts))
        return ChatRequest(
            model="m",
            messages=messages,
            sampling=Sampling(temperature=temperature),
            extra=extra or {},
        )

    requests = [
        request("a"),
        request("b"),
        request("a", "b"),
        request("ab"),
        request(b"ab"),
        request("a", temperature=1.0),
        request("a", extra={"top_k": 1}),
        request("\ud800"),
    ]
    assert len({digest(one) for one in requests}) == len(requests)
    assert digest(request("a")) == digest(request("a"))


def test_a_recorded_reply_is_never_replaced(
    laboratory: Laboratory, undisturbed: list[str]
) -> None:
    with RunLog.open(laboratory.results / "undisturbed") as log:
        plan = log.plans()[0]
        first = next(log.calls.of_life(plan, 0))
        with pytest.raises(RunLogError):
            log.calls.write(plan, 0, replace(first, reply=ChatReply(text="other")))
        assert next(log.calls.of_life(plan, 0)) == first
