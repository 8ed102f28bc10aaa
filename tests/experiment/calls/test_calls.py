"""Runs that ask a language model, against a real server that fails in every way it
knows.
"""

from __future__ import annotations

import random
import re
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cheesebench.chat import ChatReply, ModelEntry
from cheesebench.errors import OptionError, RunLogError
from cheesebench.experiment import calling, unfinished
from cheesebench.experiment.calling import (
    HOPELESS_REPLIES,
    Limiter,
    Limits,
    ModelChannel,
    Patience,
)
from cheesebench.experiment.cells import language_model, replayed_models
from cheesebench.experiment.language_models import (
    CallOptions,
    UnreachableModelError,
    probe,
)
from cheesebench.experiment.log import RunLog
from cheesebench.experiment.replay import check_resumable
from cheesebench.experiment.subjects import agent_seed, call_seed
from cheesebench.testing.fake_server import Answer, Call, FakeServer
from tests.experiment.laboratory import ENTRY, SEED, Laboratory, errors, walk


@pytest.mark.parametrize("concurrency", [1, 2, 64])
def test_the_order_of_calls_changes_nothing(
    laboratory: Laboratory, undisturbed: list[str], concurrency: int
) -> None:
    laboratory.options = CallOptions(concurrency=concurrency)
    with FakeServer(
        lambda call: Answer(
            text=walk(call), delay=random.Random(call.number).random() / 100
        )
    ) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("again", cells) as log:
            assert laboratory.run(log, model, cells) == undisturbed
        assert server.peak <= concurrency


def test_a_finished_run_is_replayed_without_a_call(
    laboratory: Laboratory, undisturbed: list[str]
) -> None:
    with RunLog.open_read_only(laboratory.results / "undisturbed") as source:
        model = replayed_models(laboratory.plugins, source.plans())["tiny"]
        cells = laboratory.cells(model)
        check_resumable(source, cells, SEED, "replayed")
        with laboratory.log("replay", cells) as log:
            assert laboratory.run(log, model, cells, source) == undisturbed
            assert log.calls.totals().calls == 0


def test_what_the_replayed_run_does_not_have_is_missing(
    laboratory: Laboratory, undisturbed: list[str]
) -> None:
    connection = sqlite3.connect(laboratory.results / "undisturbed" / "run.sqlite")
    with connection:
        connection.execute(
            "DELETE FROM calls WHERE protocol = 'hall' AND subject = 1 AND trial > 0"
        )
    connection.close()
    with RunLog.open_read_only(laboratory.results / "undisturbed") as source:
        model = replayed_models(laboratory.plugins, source.plans())["tiny"]
        cells = laboratory.cells(model)
        with laboratory.log("replay", cells) as log:
            laboratory.run(log, model, cells, source)
            assert [record.subject for record in log.trials() if record.missing] == [
                1
            ] * 5
            assert "is not in the replayed run" in errors(log)[0]


@pytest.mark.parametrize("stop_after", [1, 7, 40])
def test_a_resumed_run_pays_nothing_twice(
    laboratory: Laboratory, undisturbed: list[str], stop_after: int
) -> None:
    enough = threading.Event()

    def script(call: Call) -> Answer:
        if server.count >= stop_after:
            enough.set()
        return Answer(text=walk(call))

    with FakeServer(script, latency=0.005) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with (
            laboratory.log("broken", cells) as log,
            laboratory.session(log, model, cells) as session,
        ):
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
    with FakeServer(
        lambda call: fault if call.number % 5 == 2 else walk(call)
    ) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        laboratory.options = CallOptions(
            concurrency=8, patience=Patience(request=2.0, retries=20)
        )
        with laboratory.log("faulty", cells) as log:
            assert laboratory.run(log, model, cells) == undisturbed
            totals = log.calls.totals()
            assert totals.attempts == server.count > totals.calls


LASTING: Mapping[str, tuple[Answer, str]] = {
    "hang": (Answer(fault="hang"), "timeout: "),
    "drip": (Answer(fault="drip"), "timeout: "),
    "server error": (Answer(status=500), "server: "),
    "reset": (Answer(fault="reset"), "connection: "),
    "empty": (Answer(text=""), "replies of 2 subjects could be read"),
    "empty and cut off": (
        Answer(text="", finish="length"),
        "replies of 2 subjects could be read",
    ),
    "key": (Answer(status=401), "authentication: "),
    "quota": (Answer(status=429, error={"code": "insufficient_quota"}), "quota: "),
    "filter": (
        Answer(status=400, error={"code": "content_filter"}),
        "content filter: ",
    ),
    "length": (
        Answer(status=400, error={"code": "context_length_exceeded"}),
        "context too long: ",
    ),
    "wish for a day": (
        Answer(status=429, headers={"Retry-After": "86400"}),
        "rate limit: ",
    ),
    "wish of the broken": (
        Answer(status=500, headers={"Retry-After": "86400"}),
        "server: ",
    ),
    "broken off": (Answer(text="F", finish="abort"), "server: "),
}


@pytest.mark.parametrize(("fault", "said"), LASTING.values(), ids=list(LASTING))
def test_faults_that_last_make_trials_missing_and_nothing_worse(
    laboratory: Laboratory, fault: Answer, said: str
) -> None:
    laboratory.options = CallOptions(
        concurrency=8, patience=Patience(request=0.3, retries=1)
    )
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


def test_one_hopeless_subject_does_not_stop_the_others(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "PATIENCE", 0.0)
    laboratory.options = CallOptions(
        concurrency=1, patience=Patience(request=2.0, retries=1)
    )
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
            assert (
                len({record.subject for record in log.trials() if record.missing}) == 1
            )


@pytest.mark.parametrize("tokens", [2500, 9000], ids=["first trial", "later"])
def test_a_resumed_run_gives_up_no_model_that_it_has_read(
    laboratory: Laboratory, tokens: int
) -> None:
    """Recorded replies come in a new order: first all of the first subject, which never
    names an action, then all of the second, which does not either, then the others'.
    """

    def script(call: Call) -> str:
        return "no" if call.body["seed"] in mute else "F"

    with FakeServer(script) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=6, names=("corridor",))
        [plan] = cells
        origins = [agent_seed(plan, SEED, subject) for subject in range(2)]
        mute = {call_seed(one, number) for one in origins for number in range(400)}
        laboratory.options = CallOptions(limits=Limits(tokens=tokens))
        with laboratory.log("cut", cells) as log:
            laboratory.run(log, model, cells)
            asked = log.calls.totals().calls
            assert asked > 2 * HOPELESS_REPLIES
        laboratory.options = CallOptions()
        with RunLog.open(laboratory.results / "cut") as log:
            laboratory.run(log, model, cells)
            assert len(log.completed_subjects(plan)) == 6
            assert not [text for text in errors(log) if "could be read" in text]


def test_a_resumed_run_gives_up_a_mute_model_where_it_would_have_been(
    laboratory: Laboratory,
) -> None:
    with FakeServer("no") as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=6, names=("corridor",))
        laboratory.options = CallOptions(concurrency=1)
        with laboratory.log("whole", cells) as log:
            laboratory.run(log, model, cells)
            enough = log.calls.totals().calls
            assert "could be read" in errors(log)[-1]
        laboratory.options = CallOptions(concurrency=1, limits=Limits(tokens=250))
        with laboratory.log("cut", cells) as log:
            laboratory.run(log, model, cells)
            assert 0 < log.calls.totals().calls < enough
        laboratory.options = CallOptions(concurrency=1)
        for _ in range(2):
            with RunLog.open(laboratory.results / "cut") as log:
                laboratory.run(log, model, cells)
                assert log.calls.totals().calls == enough
                assert "could be read" in errors(log)[-1]


def test_a_cell_that_was_given_up_is_begun_anew_and_nothing_of_it_is_lost(
    laboratory: Laboratory,
) -> None:
    """Its replies are kept, and must not be mixed with later ones."""
    mended = threading.Event()
    with FakeServer(lambda call: "F" if mended.is_set() else "no") as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=12, names=("corridor",))
        laboratory.options = CallOptions(concurrency=8)
        with laboratory.log("mute", cells) as log:
            laboratory.run(log, model, cells)
            asked, [plan] = server.count, log.plans()
            assert "could be read" in errors(log)[-1]
            mended.set()
            rows = log.verify()
            for _ in range(2):
                unfinished.begin_anew(log, plan)
                assert log.verify() == rows + 1, "the journal has one entry more"
                assert log.calls.totals().attempts == asked
            assert (log.trials(plan), log.calls.of_cell(plan)) == ([], None)
            laboratory.run(log, model, cells)
            assert not any(one.missing for one in log.trials(plan))
            assert f"none of {asked} earlier replies" in log.remarks(plan)[0]
            assert log.calls.totals().attempts == server.count


def test_a_fault_of_the_account_stops_everybody_at_once(laboratory: Laboratory) -> None:
    with FakeServer(walk, key="right") as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=30)
        laboratory.options = CallOptions(concurrency=4)
        with laboratory.log("refused", cells) as log:
            laboratory.run(log, model, cells)
            assert len(errors(log)) == 60
        assert server.count <= 4


def test_what_was_refused_for_what_it_asks_is_asked_again_only_on_demand(
    laboratory: Laboratory,
) -> None:
    refusing = threading.Event()
    refusing.set()

    def script(call: Call) -> Answer | str:
        return (
            Answer(status=400, error={"code": "content_filter"})
            if refusing.is_set()
            else walk(call)
        )

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
            laboratory.options = CallOptions(retry_errors=True)
            replayed = replayed_models(laboratory.plugins, log.plans())["tiny"]
            with laboratory.log("replay", cells) as replay:
                laboratory.run(replay, replayed, cells, log)
                assert all(
                    "as recorded" in text and "--retry-errors" not in text
                    for text in errors(replay)
                )
                assert len(errors(replay)) == 2
            refusing.set()
            laboratory.run(log, model, cells)
            assert server.count == 4
            refusing.clear()
            laboratory.run(log, model, cells)
            assert not any(record.missing for record in log.trials())
            totals = log.calls.totals()
        assert totals.attempts == server.count
        # Two subjects with two refusals each: an answer that a filter finally lets
        # through must not look immediate.
        assert totals.malformed == 4
        assert totals.calls == server.count - 4


def test_a_changed_prompt_is_no_continuation(
    laboratory: Laboratory, undisturbed: list[str]
) -> None:
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


def test_one_call_has_a_total_deadline(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Six retries of a second each would be allowed, but the total time ends them
    # earlier.
    monkeypatch.setattr(calling, "PATIENCE", 0.5)
    with FakeServer(Answer(fault="hang")) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=1, names=("hall",))
        laboratory.options = CallOptions(patience=Patience(request=0.5, retries=6))
        with laboratory.log("deadline", cells) as log:
            laboratory.run(log, model, cells)
            assert all("timeout" in text for text in errors(log)), errors(log)
        assert server.count <= 2


def test_what_is_on_its_way_when_a_session_ends_is_recorded(
    laboratory: Laboratory,
) -> None:
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
            # No received reply is lost, and nothing was sent after the end.
            assert log.calls.totals().calls == server.count == 4
        assert server.in_flight == 0


@pytest.mark.parametrize("kind", [ZeroDivisionError, SystemExit])
def test_a_mistake_of_the_agent_is_said_with_its_traceback(
    laboratory: Laboratory, monkeypatch: Any, kind: type[BaseException]
) -> None:
    import talker  # type: ignore[import-not-found]

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


def test_the_probe_finds_what_no_retry_can_mend(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    with FakeServer(walk, key="right") as server:
        with pytest.raises(
            UnreachableModelError,
            match="The model 'tiny' does not answer: authentication",
        ):
            probe({"tiny": laboratory.model(server)}, tmp_path)
        assert server.count == 1
    with (
        FakeServer("READY", models=["other"]) as server,
        pytest.raises(UnreachableModelError, match=r"unknown model: .*tiny-1"),
    ):
        probe({"tiny": laboratory.model(server)}, tmp_path)
    with FakeServer(Answer(status=429)) as server:
        probe({"tiny": laboratory.model(server)}, tmp_path)
    for usage in (
        {},
        {"prompt_tokens": 0, "completion_tokens": -3},
        {"total_tokens": "many"},
    ):
        with FakeServer(Answer(text="READY", usage=usage)) as server:
            probe({"tiny": laboratory.model(server)}, tmp_path)
            with pytest.raises(
                OptionError, match="does not report the tokens of its replies"
            ):
                probe({"tiny": laboratory.model(server)}, tmp_path, counts=True)
    # A total alone counts as reply tokens, so that a budget is never exceeded
    # unnoticed.
    with FakeServer(Answer(text="READY", usage={"total_tokens": 99})) as server:
        probe({"tiny": laboratory.model(server)}, tmp_path, counts=True)


def test_all_attempts_of_the_probe_have_one_deadline(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    """A server that resets the first attempt and then hangs does not get a second
    timeout.
    """
    answers = [Answer(fault="reset"), Answer(fault="hang")]
    with (
        FakeServer(answers) as server,
        pytest.raises(UnreachableModelError, match="timeout") as error,
    ):
        probe({"tiny": laboratory.model(server)}, tmp_path, timeout=2.0)
    seconds = re.search(r"within ([0-9.]+) s", str(error.value))
    assert seconds is not None
    assert float(seconds[1]) < 1.5


def test_settings_are_checked_before_anything_runs(laboratory: Laboratory) -> None:
    with FakeServer(walk) as server:
        assert laboratory.model(server, history="2").settings["history"] == 2
        with pytest.raises(
            OptionError, match=r"no setting 'histroy'. Did you mean 'history'\?"
        ):
            laboratory.model(server, histroy=2)
        with pytest.raises(
            OptionError, match="history=two: expected a value such as 3"
        ):
            laboratory.model(server, history="two")
        refuses = ModelEntry(
            name="thinker",
            backend="openai",
            id="thinker-1",
            drops=("temperature", "seed"),
        )
        model = laboratory.model(server, refuses)
        assert model.settings["dropped"] == ["temperature", "seed"]
        assert model.settings["temperature"] is None
        with pytest.raises(
            OptionError,
            match=r"--temperature 0\.5: the model 'thinker' does not support it",
        ):
            laboratory.model(server, refuses, temperature=0.5)
        cells = laboratory.cells(model, subjects=1, names=("hall",))
        with laboratory.log("drops", cells) as log:
            with FakeServer("FF") as thinking:
                laboratory.run(log, laboratory.model(thinking, refuses), cells)
            assert not {"temperature", "seed"} & set(thinking.calls[0].body)


@pytest.fixture(autouse=True)
def no_threads_are_left() -> Iterator[None]:
    yield
    names = [thread.name for thread in threading.enumerate()]
    assert "cheesebench-session" not in names


def test_one_refusal_on_the_way_stops_nobody(
    laboratory: Laboratory, undisturbed: list[str]
) -> None:
    stray, refused = (
        (Answer(status=403), Answer(status=404), Answer(status=401)),
        set[int](),
    )

    def script(call: Call) -> Answer | str:
        if call.number not in (9, 20, 31) or call.body["seed"] in refused:
            # Never two refusals for one subject, because two would stop it.
            return walk(call)
        refused.add(call.body["seed"])
        return stray[call.number % 3]

    with FakeServer(script) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with laboratory.log("stray", cells) as log:
            assert laboratory.run(log, model, cells) == undisturbed


def test_a_server_that_lists_its_slots_gets_no_more_calls_than_it_has(
    laboratory: Laboratory,
) -> None:
    with FakeServer(walk, latency=0.01, facts={"/props": {"total_slots": 2}}) as server:
        model = laboratory.model(server)
        cells = laboratory.cells(model)
        with (
            laboratory.log("slots", cells) as log,
            laboratory.session(log, model, cells) as session,
        ):
            session.connect()
            session.finish()
            assert not any(record.missing for record in log.trials())
        assert server.peak == 2


def test_a_server_that_is_restarted_is_waited_for_like_a_busy_one(
    laboratory: Laboratory,
) -> None:
    laboratory.options = CallOptions(
        concurrency=1, patience=Patience(request=5.0, retries=3)
    )
    restarts: list[threading.Thread] = []

    def restart() -> None:
        server.stop()
        time.sleep(1.5)
        server.start()

    def script(call: Call) -> str:
        if call.number == 3 and not restarts:
            restarts.append(threading.Thread(target=restart))
            restarts[0].start()
        return walk(call)

    server = FakeServer(script)
    with server:
        model = laboratory.model(server)
        cells = laboratory.cells(model, subjects=1, names=("hall",))
        with laboratory.log("restarted", cells) as log:
            laboratory.run(log, model, cells)
            restarts[0].join()
            assert not any(record.missing for record in log.trials())
            assert not errors(log)


def test_what_a_subject_counted_in_a_trial_that_was_broken_off_is_kept(
    laboratory: Laboratory,
) -> None:
    def script(call: Call) -> Answer | str:
        return (
            Answer(status=400, error={"code": "content_filter"})
            if call.number == 5
            else "no action at all"
        )

    with FakeServer(script) as server:
        model = language_model(
            laboratory.plugins,
            ENTRY,
            settings={"patience": 0},
            base_url=server.base_url,
        )
        cells = laboratory.cells(model, subjects=1, names=("hall",))
        with laboratory.log("broken", cells) as log:
            laboratory.run(log, model, cells)
            made = log.select("SELECT count(*) FROM calls WHERE fault = ''")[0][0]
            (found,) = log.calls.by_cell().values()
    assert found.counts["calls"] == found.counts["unparsed"] == made == 5


def test_a_call_that_is_tried_again_is_told_once_a_minute() -> None:
    told: list[str] = []
    channel = ModelChannel(None, Limiter(4), told.append)
    channel.retrying("server: HTTP 500", 1, 6, 1.0)
    assert told == [], "nobody would notice"
    channel.retrying("server: HTTP 500", 2, 6, 20.4)
    channel.retrying("server: HTTP 500", 3, 6, 40.0)
    channel.retrying("rate limit: HTTP 429", 3, None, 40.0)
    assert told == ["server: HTTP 500; retry 2 of 6 in 20 s"]
