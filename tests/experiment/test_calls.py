"""Runs that ask a language model, against a real server that fails in every way it knows."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cheesebench.chat import ChatFaultError, ChatReply, ChatRequest, Message, ModelEntry, Price, Sampling, Usage
from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment import budget, calling
from cheesebench.experiment.budget import Budget, BudgetSpentError, Limits
from cheesebench.experiment.call_log import CallRecord, digest
from cheesebench.experiment.calling import Patience
from cheesebench.experiment.contestants import LanguageModel, language_model, replayed_models
from cheesebench.experiment.designs import find_design, plan_cell
from cheesebench.experiment.language_models import CallOptions, LanguageModels, UnreachableModelError, probe
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.records import CallTotals, CellPlan
from cheesebench.experiment.resume import check_resumable
from cheesebench.experiment.session import RunSession
from cheesebench.plugin_manager import PluginManager
from cheesebench.protocol import Specification
from cheesebench.testing.fake_server import Answer, Call, FakeServer

SEED = 5
#: Nothing is waited for longer than it must be.
HASTE = CallOptions(concurrency=8, patience=Patience(request=2.0, retries=2))
ENTRY = ModelEntry(
    name="tiny",
    backend="openai",
    id="tiny-1",
    price=Price(prompt=1.0, completion=2.0, on=date(2026, 1, 1)),
)

Cells = dict[CellPlan, Specification]


def walk(call: Call) -> str:
    """Reply with a few letters that follow from the seed of the call alone."""
    return "".join(random.Random(call.body["seed"]).choices("FLRS ", weights=(6, 1, 1, 1, 1), k=3))


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)


@pytest.fixture
def plugins(plugins: PluginManager, stranger: ModuleType) -> PluginManager:
    import talker  # type: ignore[import-not-found]

    plugins.register(SimpleNamespace(cheesebench_model_agents=lambda: [talker.TALKER]), name="talker")
    return plugins


class Laboratory:
    """Runs the cells of one model, in one place."""

    def __init__(self, plugins: PluginManager, stranger: ModuleType, results: Path) -> None:
        self.plugins, self.stranger, self.results = plugins, stranger, results
        self.options = HASTE

    def model(self, server: FakeServer, entry: ModelEntry = ENTRY, **settings: Any) -> LanguageModel:
        return language_model(self.plugins, entry, agent="talker", settings=settings, base_url=server.base_url)

    def cells(self, model: LanguageModel, subjects: int = 3, names: tuple[str, ...] = ("corridor", "hall")) -> Cells:
        design = find_design("cohort", subjects)
        return {
            plan_cell(
                protocol, model.entry.name, "ascii_2d", design, agent=model.agent.name, settings=model.settings
            ): protocol
            for protocol in map(self.stranger.corridor, names)
        }

    def log(self, name: str, cells: Cells) -> RunLog:
        return RunLog.create(self.results, name, cells.items(), options={"seed": SEED})

    def session(self, log: RunLog, model: LanguageModel, cells: Cells, source: RunLog | None = None) -> RunSession:
        models = LanguageModels(log, {model.entry.name: model}, self.options, source)
        return RunSession(log, self.plugins, cells, seed=SEED, processes=0, language=models)

    def run(self, log: RunLog, model: LanguageModel, cells: Cells, source: RunLog | None = None) -> list[str]:
        with self.session(log, model, cells, source) as session:
            session.finish()
        return list(log.dump())


@pytest.fixture
def laboratory(plugins: PluginManager, stranger: ModuleType, tmp_path: Path) -> Laboratory:
    return Laboratory(plugins, stranger, tmp_path)


@pytest.fixture
def undisturbed(laboratory: Laboratory) -> list[str]:
    """The results of the run if nothing goes wrong."""
    with FakeServer(walk) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("undisturbed", cells) as log:
            dump = laboratory.run(log, model, cells)
            assert server.count == log.calls.totals().calls > 30
    assert len(dump) > 15
    return dump


def errors(log: RunLog) -> list[str]:
    return [entry.text for entry in log.journal(kind="error")]


@pytest.mark.parametrize("concurrency", [1, 2, 64])
def test_the_order_of_calls_changes_nothing(laboratory: Laboratory, undisturbed: list[str], concurrency: int) -> None:
    laboratory.options = CallOptions(concurrency=concurrency)
    with FakeServer(lambda call: Answer(text=walk(call), delay=random.Random(call.number).random() / 100)) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("again", cells) as log:
            assert laboratory.run(log, model, cells) == undisturbed
        assert server.peak <= concurrency


def test_a_finished_run_is_replayed_without_a_call(laboratory: Laboratory, undisturbed: list[str]) -> None:
    with RunLog.open_read_only(laboratory.results / "undisturbed") as source:
        model = replayed_models(laboratory.plugins, source.plans())["tiny"]
        cells = laboratory.cells(model)
        check_resumable(source, cells, SEED, "replayed")
        with laboratory.log("replay", cells) as log:
            assert laboratory.run(log, model, cells, source) == undisturbed
            assert log.calls.totals().calls == 0


def test_what_the_replayed_run_does_not_have_is_missing(laboratory: Laboratory, undisturbed: list[str]) -> None:
    connection = sqlite3.connect(laboratory.results / "undisturbed" / "run.sqlite")
    with connection:
        connection.execute("DELETE FROM calls WHERE protocol = 'hall' AND subject = 1 AND trial > 0")
    connection.close()
    with RunLog.open_read_only(laboratory.results / "undisturbed") as source:
        model = replayed_models(laboratory.plugins, source.plans())["tiny"]
        cells = laboratory.cells(model)
        with laboratory.log("replay", cells) as log:
            laboratory.run(log, model, cells, source)
            assert [record.subject for record in log.trials() if record.missing] == [1] * 5
            assert "is not in the replayed run" in errors(log)[0]


@pytest.mark.parametrize("stop_after", [1, 7, 40])
def test_a_resumed_run_pays_nothing_twice(laboratory: Laboratory, undisturbed: list[str], stop_after: int) -> None:
    enough = threading.Event()

    def script(call: Call) -> Answer:
        if server.count >= stop_after:
            enough.set()
        return Answer(text=walk(call))

    with FakeServer(script, latency=0.005) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("broken", cells) as log, laboratory.session(log, model, cells) as session:
            session.start()
            assert enough.wait(30)
            session.close()
            paid = log.calls.totals().calls
        with RunLog.open(laboratory.results / "broken") as log:
            before = server.count
            check_resumable(log, cells, SEED)
            assert laboratory.run(log, model, cells) == undisturbed
            assert server.count - before == log.calls.totals().calls - paid


FAULTS: Mapping[str, Answer] = {
    "rate limit": Answer(status=429, headers={"Retry-After": "0.02"}),
    "overload": Answer(status=503),
    "server error": Answer(status=500, body=b"<html>oops"),
    "reset": Answer(fault="reset"),
    "reset in body": Answer(fault="reset_in_body"),
    "noise": Answer(fault="noise"),
    "garbage": Answer(body=b"\x00{not json"),
    "wrong shape": Answer(body={"choices": "none"}),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_faults_that_pass_leave_no_trace_in_the_records(
    laboratory: Laboratory, undisturbed: list[str], fault: Answer
) -> None:
    with FakeServer(lambda call: fault if call.number % 5 == 2 else walk(call)) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        laboratory.options = CallOptions(concurrency=8, patience=Patience(request=2.0, retries=20))
        with laboratory.log("faulty", cells) as log:
            assert laboratory.run(log, model, cells) == undisturbed
            totals = log.calls.totals()
            assert totals.attempts == server.count > totals.calls


LASTING: Mapping[str, tuple[Answer, str]] = {
    "hang": (Answer(fault="hang"), "timeout: "),
    "drip": (Answer(fault="drip"), "timeout: "),
    "server error": (Answer(status=500), "server: "),
    "reset": (Answer(fault="reset"), "connection: "),
    "empty": (Answer(text=""), "10 empty replies in a row"),
    "empty and cut off": (Answer(text="", finish="length"), "10 empty replies in a row"),
    "key": (Answer(status=401), "authentication: "),
    "quota": (Answer(status=429, error={"code": "insufficient_quota"}), "quota: "),
    "filter": (Answer(status=400, error={"code": "content_filter"}), "content filter: "),
    "length": (Answer(status=400, error={"code": "context_length_exceeded"}), "context too long: "),
    "wish for a day": (Answer(status=429, headers={"Retry-After": "86400"}), "rate limit: "),
    "wish of the broken": (Answer(status=500, headers={"Retry-After": "86400"}), "server: "),
    "broken off": (Answer(text="F", finish="abort"), "server: "),
}


@pytest.mark.parametrize(("fault", "said"), LASTING.values(), ids=list(LASTING))
def test_faults_that_last_make_trials_missing_and_nothing_worse(
    laboratory: Laboratory, fault: Answer, said: str
) -> None:
    laboratory.options = CallOptions(concurrency=8, patience=Patience(request=0.3, retries=1))
    with FakeServer(fault) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=2, names=("corridor",))
        with laboratory.log("lost", cells) as log:
            laboratory.run(log, model, cells)
            assert {record.missing for record in log.trials()} == {"infrastructure"}
            assert all(said in text for text in errors(log)), errors(log)


def test_a_server_that_refuses_for_ever_is_given_up_for_all(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "PATIENCE", 0.3)
    laboratory.options = CallOptions(concurrency=2)
    with FakeServer(Answer(status=429, headers={"Retry-After": "0.1"})) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=100, names=("corridor",))
        with laboratory.log("storm", cells) as log:
            laboratory.run(log, model, cells)
            assert {record.missing for record in log.trials()} == {"infrastructure"}
            assert len(errors(log)) == 100
            assert "there was no reply at all for" in errors(log)[-1]
        assert server.count < 100


def test_one_hopeless_subject_does_not_stop_the_others(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "PATIENCE", 0.0)
    laboratory.options = CallOptions(concurrency=1, patience=Patience(request=2.0, retries=1))
    hopeless: set[str] = set()

    def script(call: Call) -> Answer | str:
        seed = str(call.body["seed"])
        hopeless.update([seed] if call.number == 0 else [])
        return Answer(status=500) if seed in hopeless else walk(call)

    with FakeServer(script) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=3, names=("hall",))
        with laboratory.log("hopeless", cells) as log:
            laboratory.run(log, model, cells)
            assert len({record.subject for record in log.trials() if record.missing}) == 1


def test_a_name_for_every_reply_does_not_fill_the_journal(laboratory: Laboratory) -> None:
    with FakeServer(lambda call: Answer(text=walk(call), model=f"model-{call.number}")) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("names", cells) as log:
            laboratory.run(log, model, cells)
            assert server.count > 30
            assert len(log.journal(kind="warning")) == calling.MOST_NAMES - 1


def test_a_call_whose_writing_failed_can_be_written_and_found_later(laboratory: Laboratory) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server))
    plan = next(iter(cells))
    record = CallRecord(trial=0, call=0, digest="d", system="be a mouse", asked="?", reply=ChatReply(text="F"))
    with laboratory.log("full", cells) as log:
        with log.transaction() as connection:
            connection.execute("CREATE TRIGGER full BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'is full'); END")
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
    record = CallRecord(trial=0, call=0, digest="d", system="be a mouse", asked="?", reply=ChatReply(text="F"))
    order: list[int] = []

    async def call(log: RunLog, subject: int) -> None:
        await log.calls.commit(plan, subject, record)
        with sqlite3.connect(log.path) as other:
            life = other.execute("SELECT count(*) FROM calls WHERE subject = ?", (subject,)).fetchone()
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
        # Who was cancelled has paid all the same.
        assert [log.calls.count(plan, subject) for subject in range(20)] == [1] * 20


def test_all_hear_of_it_when_their_calls_cannot_be_written(laboratory: Laboratory) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server))
    plan = next(iter(cells))
    record = CallRecord(trial=0, call=0, digest="d", system="be a mouse", asked="?", reply=ChatReply(text="F"))

    async def crowd(log: RunLog) -> list[BaseException | None]:
        calls = (log.calls.commit(plan, subject, record) for subject in range(3))
        return await asyncio.gather(*calls, return_exceptions=True)

    with laboratory.log("full", cells) as log:
        with log.transaction() as connection:
            connection.execute("CREATE TRIGGER full BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'is full'); END")
        errors = asyncio.run(crowd(log))
        assert [type(error) for error in errors] == [RunLogError] * 3
        with log.transaction() as connection:
            connection.execute("DROP TRIGGER full")
        assert asyncio.run(crowd(log)) == [None] * 3
        assert log.calls.totals().calls == 3


def test_a_call_that_cannot_be_written_takes_no_other_along(laboratory: Laboratory) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server))
    plan = next(iter(cells))
    record = CallRecord(trial=0, call=0, digest="d", system="be a mouse", asked="?", reply=ChatReply(text="F"))
    odd = replace(record, reply=replace(record.reply, usage=Usage(prompt=2**70)))

    async def crowd(log: RunLog) -> list[BaseException | None]:
        calls = (log.calls.commit(plan, subject, odd if subject == 1 else record) for subject in range(4))
        return await asyncio.gather(*calls, return_exceptions=True)

    with laboratory.log("odd", cells) as log:
        errors = asyncio.run(crowd(log))
        assert [type(error) for error in errors] == [type(None), OverflowError, type(None), type(None)]
        assert [log.calls.count(plan, subject) for subject in range(4)] == [1, 0, 1, 1]


def test_calls_of_a_loop_that_was_stopped_hold_up_no_later_one(laboratory: Laboratory) -> None:
    with FakeServer(walk) as server:
        cells = laboratory.cells(laboratory.model(server))
    plan = next(iter(cells))
    record = CallRecord(trial=0, call=0, digest="d", system="be a mouse", asked="?", reply=ChatReply(text="F"))

    async def stopped(log: RunLog) -> None:
        tasks = [asyncio.create_task(log.calls.commit(plan, subject, record)) for subject in range(9)]
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
    record = CallRecord(trial=0, call=0, digest="d", system="be a mouse", asked="?", reply=reply)

    async def look(log: RunLog) -> tuple[int, int]:
        task = asyncio.create_task(log.calls.commit(plan, 0, record))
        await asyncio.sleep(0)
        before, written = log.calls.totals().prompt, log.calls.count(plan, 0)
        await task
        assert log.calls.totals().prompt == 7
        return before, written

    with laboratory.log("waiting", cells) as log:
        assert asyncio.run(look(log)) == (7, 0)


def test_a_fault_of_the_account_stops_everybody_at_once(laboratory: Laboratory) -> None:
    with FakeServer(walk, key="right") as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=30)
        laboratory.options = CallOptions(concurrency=4)
        with laboratory.log("refused", cells) as log:
            laboratory.run(log, model, cells)
            assert len(errors(log)) == 60
        assert server.count <= 4


def test_what_was_refused_for_what_it_asks_is_asked_again_only_on_demand(laboratory: Laboratory) -> None:
    refusing = threading.Event()
    refusing.set()

    def script(call: Call) -> Answer | str:
        return Answer(status=400, error={"code": "content_filter"}) if refusing.is_set() else walk(call)

    with FakeServer(script) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=2, names=("hall",))
        with laboratory.log("filtered", cells) as log:
            laboratory.run(log, model, cells)
            assert server.count == 2
            refusing.clear()
            laboratory.run(log, model, cells)
            assert server.count == 2
            assert "as recorded" in errors(log)[-1]
            assert "--retry-errors" in errors(log)[-1]
            laboratory.options = CallOptions(retry_errors=True)
            replayed = replayed_models(laboratory.plugins, log.plans())["tiny"]
            with laboratory.log("replay", cells) as replay:
                laboratory.run(replay, replayed, cells, log)
                assert all("as recorded" in text and "--retry-errors" not in text for text in errors(replay))
                assert len(errors(replay)) == 2
            laboratory.run(log, model, cells)
            assert not any(record.missing for record in log.trials())


def test_a_changed_prompt_is_no_continuation(laboratory: Laboratory, undisturbed: list[str]) -> None:
    with FakeServer(walk) as server:
        model = laboratory.model(server, history=2)
        cells = laboratory.cells(model)
        with RunLog.open(laboratory.results / "undisturbed") as log:
            with pytest.raises(RunLogError, match="history of tiny was 3 and is now 2"):
                check_resumable(log, cells, SEED)
            connection = sqlite3.connect(log.path)
            with connection:
                connection.execute("DELETE FROM lives")
            connection.close()
            with pytest.raises(RunLogError, match="differs from the recorded one"):
                laboratory.run(log, model, cells)
        assert server.count == 0


def test_a_budget_stops_before_the_next_call(laboratory: Laboratory) -> None:
    def usage(call: Call) -> Answer:
        return Answer(text=walk(call), usage={"prompt_tokens": 100, "completion_tokens": 10})

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
                assert {record.missing for record in log.trials() if record.missing} == {"budget"}
                assert all(said in text for text in errors(log))


@pytest.mark.parametrize("limited", ["tokens", "cost"])
def test_what_is_in_flight_overshoots_a_budget_by_one_call_at_most(laboratory: Laboratory, limited: str) -> None:
    sizes: list[int] = []

    def usage(call: Call) -> Answer:
        # Replies of many lengths, the longest of them early; prompts as long as they are.
        tokens = sum(len(message["content"]) for message in call.body["messages"]) // 3
        reply = 40 if call.number % 7 == 0 else 5
        sizes.append(tokens + reply)
        return Answer(
            text=walk(call), usage={"prompt_tokens": tokens, "completion_tokens": reply}, delay=0.01 * (call.number % 3)
        )

    with FakeServer(usage) as server:
        model = laboratory.model(server)
        assert model.entry.price is not None
        price = model.entry.price.prompt / 1e6
        cells = laboratory.cells(model, subjects=40)
        most = 10_000
        limits = Limits(tokens=most) if limited == "tokens" else Limits(cost=most * price)
        laboratory.options = CallOptions(concurrency=64, limits=limits)
        with laboratory.log(limited, cells) as log:
            laboratory.run(log, model, cells)
            totals = log.calls.totals()
            assert {record.missing for record in log.trials()} == {"", "budget"}
    spent = totals.prompt + totals.completion if limited == "tokens" else totals.cost / price
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
        await asyncio.gather(call("a", 300, None), call("b", 60, 60), call("c", 60, 60), _cancel(waiting))
        await call("d", 1, 1)
        return said

    async def _cancel(task: asyncio.Task[None]) -> None:
        await asyncio.sleep(0)
        task.cancel()

    said = asyncio.run(main())
    assert said == ["dropped begins", "a begins", "a fails", "b begins", "c begins", "d is refused"]


def test_no_pause_outlasts_the_time(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    # Each pause alone would take longer than a test may: the server's wish, which holds everybody, and our own.
    monkeypatch.setattr(calling, "FIRST_PAUSE", 600.0)
    monkeypatch.setattr(calling, "LONGEST_PAUSE", 600.0)
    for answer in (Answer(status=429, headers={"Retry-After": "600"}), Answer(status=500)):
        with FakeServer(answer) as server:
            model = laboratory.model(server)
            cells = laboratory.cells(model, subjects=20)
            laboratory.options = CallOptions(concurrency=4, limits=Limits(minutes=2 / 60))
            with laboratory.log(f"pause-{answer.status}", cells) as log:
                with laboratory.session(log, model, cells) as session:
                    assert all(session.wait(plan, 60) for plan in cells)
                assert all("no reply came until" in text and "--max-minutes" in text for text in errors(log))
                assert {record.missing for record in log.trials()} == {"infrastructure"}, "nothing has ever answered"


def test_time_that_ran_out_while_a_server_answered_is_a_budget(laboratory: Laboratory) -> None:
    with FakeServer(lambda call: Answer(status=500) if call.number % 3 == 0 else walk(call)) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=20)
        laboratory.options = CallOptions(concurrency=1, limits=Limits(minutes=2 / 60))
        with laboratory.log("answered", cells) as log:
            laboratory.run(log, model, cells)
            assert {record.missing for record in log.trials() if record.missing} == {"budget"}


def test_one_call_has_a_total_deadline(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
    # Six retries of a second each would be allowed: the total ends it before.
    monkeypatch.setattr(calling, "PATIENCE", 0.5)
    with FakeServer(Answer(fault="hang")) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=1, names=("hall",))
        laboratory.options = CallOptions(patience=Patience(request=0.5, retries=6))
        with laboratory.log("deadline", cells) as log:
            laboratory.run(log, model, cells)
            assert all("timeout" in text for text in errors(log)), errors(log)
        assert server.count <= 2


def test_what_is_on_its_way_when_a_session_ends_is_recorded(laboratory: Laboratory) -> None:
    with FakeServer(walk, latency=0.5) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        laboratory.options = CallOptions(concurrency=4)
        with laboratory.log("ended", cells) as log:
            session = laboratory.session(log, model, cells)
            session.start()
            while server.in_flight < 4:
                time.sleep(0.01)
            session.close()
            # Nothing received is lost, and nothing was sent after the end.
            assert log.calls.totals().calls == server.count == 4
        assert server.in_flight == 0


def test_a_budget_that_cannot_be_kept_stops_the_run(laboratory: Laboratory) -> None:
    with FakeServer(lambda call: Answer(text=walk(call), usage={})) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        laboratory.options = CallOptions(concurrency=1, limits=Limits(tokens=1))
        with laboratory.log("uncounted", cells) as log:
            laboratory.run(log, model, cells)
            assert server.count == calling.UNCOUNTED
            assert all("does not report the tokens" in text for text in errors(log))
            assert {record.missing for record in log.trials() if record.missing} == {"infrastructure"}


def test_a_run_that_spent_its_budget_is_replayed_as_it_was(laboratory: Laboratory) -> None:
    with FakeServer(walk) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        laboratory.options = CallOptions(concurrency=1, limits=Limits(tokens=500))
        with laboratory.log("spent", cells) as log, laboratory.log("replay", cells) as replay:
            dump = laboratory.run(log, model, cells)
            assert {record.missing for record in log.trials()} == {"", "budget"}
            replayed = replayed_models(laboratory.plugins, log.plans())["tiny"]
            assert laboratory.run(replay, replayed, cells, log) == dump


def test_a_new_name_of_the_server_is_noticed_in_a_resumed_run(laboratory: Laboratory) -> None:
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
            assert [entry.text for entry in log.journal(kind="warning")] == ["answered by several models: new, old"]


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
    monkeypatch.setattr(budget, "INTERVAL", 0.0)
    spent = CallTotals(prompt=90)
    both = Budget(Limits(tokens=100), lambda: spent, began=0.0, processes=2)
    both.check()
    spent += CallTotals(prompt=10)
    with pytest.raises(BudgetSpentError, match="the run has used 100 tokens; --max-tokens 100 is reached"):
        both.check()


@pytest.mark.parametrize("slower", [0, 3])
def test_processes_that_share_a_budget_exceed_it_by_one_call_each_at_most(
    monkeypatch: pytest.MonkeyPatch, slower: int
) -> None:
    monkeypatch.setattr(budget, "INTERVAL", 3600.0)  # nobody looks unless there is a reason
    recorded, one = CallTotals(), CallTotals(prompt=10)

    async def process(seed: int) -> None:
        own, chance = Budget(Limits(tokens=1000), lambda: recorded, began=0.0, processes=3), random.Random(seed)

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


def test_keys_are_nowhere(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, undisturbed: list[str]) -> None:
    secret = "swordfish-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    refusal = Answer(status=500, error={"message": f"bad key {secret}"})
    told = Answer(text=f"FF {secret}", reasoning=secret, model=f"m {secret}")
    with FakeServer(lambda call: (told, refusal, told)[call.number % 3], key=secret) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=1)
        with laboratory.log("secret", cells) as log:
            laboratory.run(log, model, cells)
            assert log.calls.totals().calls > 0
    for path in (laboratory.results / "secret").iterdir():
        assert secret.encode() not in path.read_bytes()


@pytest.mark.parametrize("kind", [ZeroDivisionError, SystemExit])
def test_a_mistake_of_the_agent_is_said_with_its_traceback(
    laboratory: Laboratory, monkeypatch: Any, kind: type[BaseException]
) -> None:
    import talker

    def broken(self: object, reply: ChatReply) -> list[int]:
        raise kind("in read")

    monkeypatch.setattr(talker.Talker, "read", broken)
    with FakeServer(walk) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=1, names=("hall",))
        with laboratory.log("bug", cells) as log:
            laboratory.run(log, model, cells)
            assert f"{kind.__name__}: in read" in errors(log)[0]
            assert "Traceback" in log.journal(kind="traceback")[0].text


def test_closing_cuts_calls_off(laboratory: Laboratory) -> None:
    with FakeServer(Answer(fault="hang")) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        laboratory.options = CallOptions()
        with laboratory.log("hanging", cells) as log:
            with laboratory.session(log, model, cells) as session:
                session.start()
                while server.in_flight < 6:
                    pass
            assert log.trials() == []
            assert log.calls.totals().calls == 0


def test_the_probe_finds_what_no_retry_can_mend(laboratory: Laboratory, tmp_path: Path) -> None:
    with FakeServer(walk, key="right") as server:
        with pytest.raises(UnreachableModelError, match="The model 'tiny' does not answer: authentication"):
            probe({"tiny": laboratory.model(server)}, tmp_path)
        assert server.count == 1
    with (
        FakeServer("READY", models=["other"]) as server,
        pytest.raises(UnreachableModelError, match=r"unknown model: .*tiny-1"),
    ):
        probe({"tiny": laboratory.model(server)}, tmp_path)
    with FakeServer(Answer(status=429)) as server:
        probe({"tiny": laboratory.model(server)}, tmp_path)


def test_settings_are_checked_before_anything_runs(laboratory: Laboratory) -> None:
    with FakeServer(walk) as server:
        assert laboratory.model(server, history="2").settings["history"] == 2
        with pytest.raises(OptionError, match=r"no setting 'histroy'. Did you mean 'history'\?"):
            laboratory.model(server, histroy=2)
        with pytest.raises(OptionError, match="history=two: expected a value such as 3"):
            laboratory.model(server, history="two")
        refuses = ModelEntry(name="thinker", backend="openai", id="thinker-1", drops=("temperature", "seed"))
        model = laboratory.model(server, refuses)
        assert model.settings["dropped"] == ["temperature", "seed"]
        assert model.settings["temperature"] is None
        with pytest.raises(OptionError, match=r"--temperature 0\.5: the model 'thinker' does not support it"):
            laboratory.model(server, refuses, temperature=0.5)
        cells = laboratory.cells(model, subjects=1, names=("hall",))
        with laboratory.log("drops", cells) as log:
            with FakeServer("FF") as thinking:
                laboratory.run(log, laboratory.model(thinking, refuses), cells)
            assert not {"temperature", "seed"} & set(thinking.calls[0].body)


def test_the_digest_tells_apart_what_can_change_a_reply() -> None:
    def request(*parts: str | bytes, temperature: float = 0.0, extra: Mapping[str, Any] | None = None) -> ChatRequest:
        messages = (Message("system", ("s",)), Message("user", parts))
        return ChatRequest(model="m", messages=messages, sampling=Sampling(temperature=temperature), extra=extra or {})

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


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert "cheesebench-session" not in names


def test_one_refusal_on_the_way_stops_nobody(laboratory: Laboratory, undisturbed: list[str]) -> None:
    stray = (Answer(status=403), Answer(status=404), Answer(status=401))
    with FakeServer(lambda call: stray[call.number % 3] if call.number in (9, 20, 31) else walk(call)) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("stray", cells) as log:
            assert laboratory.run(log, model, cells) == undisturbed


def test_a_recorded_reply_is_never_replaced(laboratory: Laboratory, undisturbed: list[str]) -> None:
    with RunLog.open(laboratory.results / "undisturbed") as log:
        plan = log.plans()[0]
        first = next(log.calls.of_life(plan, 0))
        with pytest.raises(RunLogError):
            log.calls.write(plan, 0, replace(first, reply=ChatReply(text="other")))
        assert next(log.calls.of_life(plan, 0)) == first
