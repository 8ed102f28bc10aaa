"""Limits on cost, tokens and time, and the amounts spent when they are reached."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from cheesebench.chat import ChatFaultError
from cheesebench.experiment import calling
from cheesebench.experiment.calling import Budget, BudgetSpentError, Limits
from cheesebench.experiment.cells import replayed_models
from cheesebench.experiment.language_models import CallOptions
from cheesebench.records import CallTotals
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.experiment.laboratory import Laboratory, errors, walk


def test_a_budget_stops_before_the_next_call(laboratory: Laboratory) -> None:
    def usage(call: Call) -> Answer:
        return Answer(
            text=walk(call), usage={"prompt_tokens": 100, "completion_tokens": 10}
        )

    with FakeServer(usage) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        limits = {
            "tokens": (Limits(tokens=1000), "--max-tokens 1000 is reached"),
            "cost": (Limits(cost=0.0012), "--max-cost 0.0012 is reached"),
            "minutes": (Limits(minutes=1e-9), "--max-minutes 1e-09 is reached"),
        }
        for name, (limit, said) in limits.items():
            laboratory.options = CallOptions(concurrency=1, limits=limit)
            with laboratory.log(name, cells) as log:
                laboratory.run(log, model, cells)
                assert log.calls.totals().calls == (0 if name == "minutes" else 10)
                assert {
                    record.missing for record in log.trials() if record.missing
                } == {"budget"}
                assert all(said in text for text in errors(log))


#: Spellings of 100 tokens of prompt and 400 of reply, 390 of them reasoning, in the
#: counts of various servers.
SPELLINGS: dict[str, dict[str, Any]] = {
    "OpenAI": {
        "prompt_tokens": 100,
        "completion_tokens": 400,
        "total_tokens": 500,
        "completion_tokens_details": {"reasoning_tokens": 390},
    },
    "reasoning beside": {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "total_tokens": 500,
        "completion_tokens_details": {"reasoning_tokens": 390},
    },
    "reasoning in the total alone": {
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "total_tokens": 500,
    },
    "input and output": {"input_tokens": 100, "output_tokens": 400},
    "prompt without its cached part": {
        "prompt_tokens": 20,
        "completion_tokens": 400,
        "total_tokens": 500,
        "prompt_tokens_details": {"cached_tokens": 80},
    },
    "cached at the top": {
        "prompt_tokens": 100,
        "completion_tokens": 400,
        "total_tokens": 500,
        "cached_tokens": 80,
    },
    "fractions": {"prompt_tokens": 100.0, "completion_tokens": 400.0},
}


@pytest.mark.parametrize("usage", SPELLINGS.values(), ids=SPELLINGS)
def test_a_budget_holds_however_a_server_counts(
    laboratory: Laboratory, usage: dict[str, Any]
) -> None:
    with FakeServer(lambda call: Answer(text=walk(call), usage=usage)) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        # Limits that suffice for ten calls of 500 tokens, at 900 millionths of a dollar
        # each.
        for name, limit in {
            "tokens": Limits(tokens=4999),
            "cost": Limits(cost=0.00899),
        }.items():
            laboratory.options = CallOptions(concurrency=1, limits=limit)
            before = server.count
            with laboratory.log(name, cells) as log:
                laboratory.run(log, model, cells)
                assert log.calls.totals().prompt == 1000
                assert log.calls.totals().completion == 4000
            assert server.count - before == 10


@pytest.mark.parametrize("limited", ["tokens", "cost"])
def test_what_is_in_flight_overshoots_a_budget_by_one_call_at_most(
    laboratory: Laboratory, limited: str
) -> None:
    sizes: list[int] = []

    def usage(call: Call) -> Answer:
        # Replies of many lengths, with the longest ones early, and prompts counted by
        # their real length.
        tokens = sum(len(message["content"]) for message in call.body["messages"]) // 3
        reply = 40 if call.number % 7 == 0 else 5
        sizes.append(tokens + reply)
        return Answer(
            text=walk(call),
            usage={"prompt_tokens": tokens, "completion_tokens": reply},
            delay=0.01 * (call.number % 3),
        )

    with FakeServer(usage) as server:
        model = laboratory.model(server)
        assert model.entry.price is not None
        price = model.entry.price.prompt / 1e6
        cells = laboratory.cells(model, subjects=40)
        most = 10_000
        limits = (
            Limits(tokens=most) if limited == "tokens" else Limits(cost=most * price)
        )
        laboratory.options = CallOptions(concurrency=64, limits=limits)
        with laboratory.log(limited, cells) as log:
            laboratory.run(log, model, cells)
            totals = log.calls.totals()
            assert {record.missing for record in log.trials()} == {"", "budget"}
    spent = (
        totals.prompt + totals.completion
        if limited == "tokens"
        else totals.cost / price
    )
    one = max(sizes) if limited == "tokens" else max(sizes) * 2
    assert server.peak > 4, "it waits for room near the end only"
    assert most <= spent < most + one


def test_a_place_in_the_budget_is_given_back_whatever_happens() -> None:
    async def main() -> list[str]:
        budget = Budget(Limits(tokens=100), CallTotals, began=0.0)
        said: list[str] = []

        async def call(name: str, expected: int, taken: int | None) -> None:
            try:
                async with budget.room(CallTotals(prompt=expected)):
                    said.append(f"{name} begins")
                    await asyncio.sleep(0.01)
                    if taken is None:
                        raise ChatFaultError("server", "no")
                budget.add(CallTotals(prompt=taken))
            except ChatFaultError:
                said.append(f"{name} fails")
            except BudgetSpentError:
                said.append(f"{name} is refused")

        waiting = asyncio.create_task(call("dropped", 10, 10))
        await asyncio.gather(
            call("a", 300, None), call("b", 60, 60), call("c", 60, 60), _cancel(waiting)
        )
        await call("d", 1, 1)
        return said

    async def _cancel(task: asyncio.Task[None]) -> None:
        await asyncio.sleep(0)
        task.cancel()

    said = asyncio.run(main())
    assert said == [
        "dropped begins",
        "a begins",
        "a fails",
        "b begins",
        "c begins",
        "d is refused",
    ]


def test_no_pause_outlasts_the_time(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each pause alone would exceed the time of a test: the server's wish, which holds
    # up all calls, and our own.
    monkeypatch.setattr(calling, "FIRST_PAUSE", 600.0)
    monkeypatch.setattr(calling, "LONGEST_PAUSE", 600.0)
    for answer in (
        Answer(status=429, headers={"Retry-After": "600"}),
        Answer(status=500),
    ):
        with FakeServer(answer) as server:
            model = laboratory.model(server)
            cells = laboratory.cells(model, subjects=20)
            laboratory.options = CallOptions(
                concurrency=4, limits=Limits(minutes=2 / 60)
            )
            with laboratory.log(f"pause-{answer.status}", cells) as log:
                with laboratory.session(log, model, cells) as session:
                    assert all(session.wait(plan, 60) for plan in cells)
                assert all(
                    "no reply came before" in text and "--max-minutes" in text
                    for text in errors(log)
                )
                assert {record.missing for record in log.trials()} == {
                    "infrastructure"
                }, "nothing has ever answered"


def test_time_that_ran_out_while_a_server_answered_is_a_budget(
    laboratory: Laboratory,
) -> None:
    with FakeServer(
        lambda call: Answer(status=500) if call.number % 3 == 0 else walk(call)
    ) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=20)
        laboratory.options = CallOptions(concurrency=1, limits=Limits(minutes=2 / 60))
        with laboratory.log("answered", cells) as log:
            laboratory.run(log, model, cells)
            assert {record.missing for record in log.trials() if record.missing} == {
                "budget"
            }


def test_time_that_runs_out_while_a_server_is_away_for_a_moment_is_both(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 600.0)
    with FakeServer(
        lambda call: Answer(status=500) if call.number > 3 else walk(call)
    ) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=1)
        laboratory.options = CallOptions(concurrency=1, limits=Limits(minutes=2 / 60))
        with laboratory.log("both", cells) as log:
            laboratory.run(log, model, cells)
            assert {record.missing for record in log.trials() if record.missing} == {
                "budget"
            }
            for text in errors(log):
                assert "--max-minutes" in text
                assert "is reached while the server did not answer (server: " in text


def test_a_budget_that_cannot_be_kept_stops_the_run(laboratory: Laboratory) -> None:
    with FakeServer(lambda call: Answer(text=walk(call), usage={})) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        laboratory.options = CallOptions(concurrency=1, limits=Limits(tokens=1))
        with laboratory.log("uncounted", cells) as log:
            laboratory.run(log, model, cells)
            assert server.count == calling.UNCOUNTED
            assert all("does not report the tokens" in text for text in errors(log))
            assert {record.missing for record in log.trials() if record.missing} == {
                "infrastructure"
            }


def test_a_run_that_spent_its_budget_is_replayed_as_it_was(
    laboratory: Laboratory,
) -> None:
    with FakeServer(walk) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        laboratory.options = CallOptions(concurrency=1, limits=Limits(tokens=500))
        with (
            laboratory.log("spent", cells) as log,
            laboratory.log("replay", cells) as replay,
        ):
            dump = laboratory.run(log, model, cells)
            assert {record.missing for record in log.trials()} == {"", "budget"}
            replayed = replayed_models(laboratory.plugins, log.plans())["tiny"]
            assert laboratory.run(replay, replayed, cells, log) == dump


def test_a_resumed_run_counts_what_was_spent_before(laboratory: Laboratory) -> None:
    with FakeServer(walk) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("spent", cells) as log:
            laboratory.options = CallOptions(concurrency=1, limits=Limits(tokens=200))
            laboratory.run(log, model, cells)
            calls = server.count
            laboratory.run(log, model, cells)
            assert server.count == calls


def test_processes_that_share_a_budget_see_what_the_others_spend(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "INTERVAL", 0.0)
    spent = CallTotals(prompt=90)
    both = Budget(Limits(tokens=100), lambda: spent, began=0.0, processes=2)
    both.check()
    spent += CallTotals(prompt=10)
    with pytest.raises(
        BudgetSpentError,
        match="the run has used 100 tokens; --max-tokens 100 is reached",
    ):
        both.check()


@pytest.mark.parametrize("slower", [0, 3])
def test_processes_that_share_a_budget_exceed_it_by_one_call_each_at_most(
    monkeypatch: pytest.MonkeyPatch, slower: int
) -> None:
    # Effectively never, so that only a reason causes a check.
    monkeypatch.setattr(calling, "INTERVAL", 3600.0)
    recorded, one = CallTotals(), CallTotals(prompt=10)

    async def process(seed: int) -> None:
        own, chance = (
            Budget(Limits(tokens=1000), lambda: recorded, began=0.0, processes=3),
            random.Random(seed),
        )

        async def subject() -> None:
            nonlocal recorded
            while True:
                async with own.room(one):
                    await asyncio.sleep(0.001 * chance.random() * (1 + slower * seed))
                own.add(one)
                recorded += one

        subjects = [asyncio.create_task(subject()) for _ in range(16)]
        done, _ = await asyncio.wait(subjects)
        assert all(isinstance(task.exception(), BudgetSpentError) for task in done)

    async def main() -> None:
        await asyncio.gather(*map(process, range(3)))

    asyncio.run(main())
    assert 1000 <= recorded.prompt <= 1000 + 3 * one.prompt
