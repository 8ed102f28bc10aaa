"""A real vLLM on the CPU behind our backends. The model is tiny and random, and its
replies mean nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import recipe  # type: ignore[import-not-found]
from living import family, parents, wait_for  # type: ignore[import-not-found]

from cheesebench import (
    BackendContext,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    Message,
    ModelEntry,
    Sampling,
)
from cheesebench.plugins.backends.vllm import VLLM

pytestmark = pytest.mark.vllm

#: A model with readable replies: the engine forces the format, while the tokens are
#: still its own.
CONFTEST = """
from cheesebench import ModelEntry

def cheesebench_models():
    word = "(FORWARD|ROTATE_LEFT|ROTATE_RIGHT)"
    served = {{"structured_outputs": {{"regex": f"ACTIONS: {{word}}(, {{word}}){{{{3}}}}"}}}}
    return [ModelEntry(name="tiny", backend="vllm", id={model!r}, served=served, max_tokens=40)]
"""
Ask = Callable[..., list[ChatReply | BaseException]]


@pytest.fixture
def ask(kept: Any, vllm: Any, tmp_path: Path) -> Ask:
    """Send requests to the server, all at once."""

    async def send(requests: Sequence[ChatRequest]) -> list[ChatReply | BaseException]:
        entry = ModelEntry(name="tiny", backend="vllm", id=str(vllm.model))
        connection = VLLM.connect(
            BackendContext(entry=entry, directory=tmp_path, base_url=kept.base_url)
        )
        try:
            return await asyncio.gather(
                *map(connection.complete, requests), return_exceptions=True
            )
        finally:
            await connection.close()

    return lambda *requests: asyncio.run(send(requests))


@pytest.fixture
def request_(vllm: Any) -> ChatRequest:
    return ChatRequest(
        model=str(vllm.model),
        messages=(
            Message("system", ("You are an animal.",)),
            Message("user", ("which way?",)),
        ),
        sampling=Sampling(temperature=0.7, max_tokens=12, seed=5),
    )


def only(answers: list[ChatReply | BaseException]) -> ChatReply:
    [reply] = answers
    assert isinstance(reply, ChatReply), reply
    return reply


def test_a_reply_and_what_it_took(ask: Ask, request_: ChatRequest) -> None:
    reply = only(ask(request_))
    assert reply.text
    assert reply.model == request_.model
    assert reply.finish == "length"
    assert reply.usage.completion == 12
    assert 20 < reply.usage.prompt < 200


def test_the_same_seed_says_the_same_and_another_one_something_else(
    ask: Ask, request_: ChatRequest
) -> None:
    texts = [only(ask(request_)).text for _ in range(3)]
    assert len(set(texts)) == 1
    others = {
        only(
            ask(replace(request_, sampling=replace(request_.sampling, seed=seed)))
        ).text
        for seed in (6, 2**63 - 1)
    }
    assert len({*texts, *others}) == 3


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"messages": (Message("user", ("\u0001" * 9000,)),)}, "context_too_long"),
        ({"model": "no-such-model"}, "unknown_model"),
        ({"extra": {"top_p": 7}}, "bad_request"),
        ({"messages": (Message("user", ("look", b"no picture")),)}, "bad_request"),
    ],
    ids=["context", "model", "setting", "picture"],
)
def test_what_the_server_refuses(
    ask: Ask, request_: ChatRequest, changes: dict[str, Any], kind: str
) -> None:
    [fault] = ask(replace(request_, **changes))
    assert isinstance(fault, ChatFaultError)
    assert fault.kind == kind


def test_what_was_read_before_is_not_read_again(
    ask: Ask, request_: ChatRequest
) -> None:
    messages: tuple[Message, ...] = (
        Message("system", ("Be careful with walls. " * 20,)),
    )
    cached = []
    for turn in range(4):
        messages += (Message("user", (f"The wall is ahead in turn {turn}. " * 10,)),)
        usage = only(ask(replace(request_, messages=messages))).usage
        cached.append(usage.cached / usage.prompt)
        messages += (Message("assistant", ("ACTIONS: FORWARD",)),)
    assert cached[0] == 0
    assert min(cached[1:]) > 0.5


def test_64_at_once(ask: Ask, request_: ChatRequest) -> None:
    sampling = Sampling(temperature=0.7, max_tokens=32)
    requests = [
        replace(request_, conversation=str(n), sampling=replace(sampling, seed=n))
        for n in range(64)
    ]
    answers = ask(*requests)
    assert all(isinstance(answer, ChatReply) for answer in answers)
    assert (
        len({answer.text for answer in answers if isinstance(answer, ChatReply)}) > 60
    )


def test_the_engine_in_this_process(found: dict[str, list[dict[str, Any]]]) -> None:
    [once], [again] = found["once"], found["again"]
    assert once["text"] == again["text"] != ""
    assert once["usage"]["completion"] == 12
    assert once["usage"]["cached"] == 0
    assert again["usage"]["cached"] > 0.5 * again["usage"]["prompt"]
    faults = {name: answers[0].get("fault") for name, answers in found.items()}
    assert {name: fault for name, fault in faults.items() if fault} == {
        "too_long": "context_too_long",
        "unknown_setting": "bad_request",
        "bad_setting": "bad_request",
        "late": "timeout",
    }
    assert found["served"][0]["usage"]["completion"] == 3
    assert found["cut"][0]["finish"] == "length"
    assert len({answer["text"] for answer in found["many"]}) > 60


ROOM = """
version: 1
paradigm: room
title: A room with one way out
dimension: spatial learning
arena:
  map: |
    #######
    #.....#
    #.....#
    #..S..#
    #.....#
    #....E#
    #######
  legend: {S: box, E: out}
start: {at: box, face: N}
trial:
  limit: 24
  start: run
  states:
    run:
      rules:
        - {enter: out, reward: 1, end: found}
schedule:
  only: {sessions: 1, trials: 2}
success: last == found
reference:
  - {measure: success, value: 0.5, source: nobody, status: made up}
"""


def pytest_command(*options: str) -> list[str]:
    always = ["-p", "no:cacheprovider", "-p", "no:randomly", "--cheese-exit-zero", "-s"]
    return [sys.executable, "-m", "pytest", *always, *options]


def run_pytest(directory: Path, *options: str, code: int = 0) -> str:
    """Run pytest and return its output; ``code`` is the expected exit code."""
    done = subprocess.run(
        pytest_command(*options),
        cwd=directory,
        env=recipe.environment(),
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_a_smoke_design_with_a_server_of_its_own(vllm: Any, tmp_path: Path) -> None:
    options = {
        **recipe.ENGINE,
        "python": str(vllm.python),
        "startup_timeout": str(recipe.STARTUP_TIMEOUT),
    }
    said = run_pytest(
        tmp_path,
        *(
            "--model",
            f"vllm/{vllm.model}",
            "--design",
            "smoke",
            "--cheese-run-id",
            "smoke",
            "--seed",
            "0",
        ),
        *("--cheese-reply-tokens", "16", "--cheese-agent-option", "unparsed=end-trial"),
        *(f"--cheese-backend-option={name}={value}" for name, value in options.items()),
        code=1,
    )
    assert "vLLM serves" in said
    assert "NO REPLY NAMED AN ACTION" in said, "weights drawn at random say nothing"
    assert re.search(r"Calls: \d+ calls", said)
    assert " 0 of 9 protocols passed" in said
    run = tmp_path / "results" / "smoke"
    assert (run / "report.md").exists()
    [log] = run.glob("vllm-*.log")
    processes = {
        int(number)
        for number in re.findall(r"\(\w+ pid=(\d+)\)", log.read_text(encoding="utf-8"))
    }
    assert len(processes) > 1
    assert not processes & parents().keys()


def test_64_subjects_killed_resumed_replayed(
    kept: Any, vllm: Any, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        CONFTEST.format(model=str(vllm.model)), encoding="utf-8"
    )
    (tmp_path / "room.protocol.yaml").write_text(ROOM, encoding="utf-8")
    given = (
        "room.protocol.yaml",
        "--design",
        "smoke",
        "--subjects",
        "64",
        "--actions",
        "4",
    )
    joined = ("--model", "tiny", "--base-url", kept.base_url)

    with subprocess.Popen(
        pytest_command(*given, *joined, "--cheese-run-id", "first"),
        cwd=tmp_path,
        env=recipe.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        wait_for(
            lambda: len(calls(tmp_path, "first")) > 100 or process.poll() is not None
        )
        process.kill()
    before = calls(tmp_path, "first")
    assert len(before) > 100

    asked = metric(kept, "vllm:request_success_total")
    resumed = run_pytest(tmp_path, *given, *joined, "--resume", "first")
    after = calls(tmp_path, "first")
    # No recorded call was repeated: the server has answered only new calls and the
    # probe.
    assert after.items() >= before.items()
    assert (
        metric(kept, "vllm:request_success_total") - asked
        <= len(after) - len(before) + 1
    )
    assert len({life for life, *_ in after}) == 64
    assert "64 subjects;" in resumed
    # The share read from the cache is reported, and agrees with the server's own
    # figures.
    prompt = sum(prompt for prompt, _ in after.values())
    cached = sum(cached for _, cached in after.values())
    assert cached > 0.4 * prompt
    assert f"{100 * cached / prompt:.1f} % cached" in resumed
    hits, queries = (
        metric(kept, "vllm:prefix_cache_hits_total"),
        metric(kept, "vllm:prefix_cache_queries_total"),
    )
    print(
        f"{len(after)} calls, {cached / prompt:.1%} of the prompt cached; the server says {hits / queries:.1%}"
    )

    run_pytest(tmp_path, *given, "--model", "replay:first", "--cheese-run-id", "again")
    assert trials(tmp_path, "again") == trials(tmp_path, "first")


def read(directory: Path, run: str, query: str) -> list[tuple[Any, ...]]:
    path = directory / "results" / run / "run.sqlite"
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(path)) as log:
        try:
            return log.execute(query).fetchall()
        except sqlite3.OperationalError:  # its tables are being made
            return []


def calls(directory: Path, run: str) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Return the recorded calls: subject, trial, call, reply -> prompt tokens, and
    cached ones.
    """
    rows = read(
        directory,
        run,
        "SELECT subject, trial, call, reply, prompt_tokens, cached_tokens FROM calls",
    )
    return {row[:4]: row[4:] for row in rows}


def trials(directory: Path, run: str) -> list[tuple[Any, ...]]:
    return read(
        directory,
        run,
        "SELECT subject, trial, steps, outcome, reward FROM trials ORDER BY subject, trial",
    )


def metric(kept: Any, name: str) -> float:
    """Return the sum of a counter of the server."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(kept.base_url.removesuffix("/v1") + "/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return sum(
        float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}{{")
    )


def test_nothing_outlives_whoever_started_it(kept: Any) -> None:
    """This must be the last test, because it ends the server of the others."""
    processes = family(kept.keeper.pid)
    assert len(processes) > 3
    os.kill(kept.keeper.pid, signal.SIGKILL)
    kept.keeper.wait()
    wait_for(lambda: not processes & parents().keys())
