"""Scripts of replies: the matching line, its reply, and errors in a script."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from cheesebench import (
    BackendContext,
    ChatFaultError,
    ChatReply,
    ChatRequest,
    FileError,
    Message,
    Sampling,
)
from cheesebench.models import resolve_model
from cheesebench.plugin_manager import PluginManager

PLUGINS = PluginManager()


class Script:
    """A script in a file, connected as a run connects it."""

    def __init__(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        entry = resolve_model(PLUGINS, f"scripted:{path}")
        self.connection = PLUGINS.backend(entry.backend).connect(
            BackendContext(entry=entry, directory=path.parent)
        )

    def ask(
        self, text: str = "?", conversation: str = "a", **changes: Any
    ) -> ChatReply:
        request = ChatRequest(
            model="x", messages=(Message("user", (text,)),), conversation=conversation
        )
        return asyncio.run(
            self.connection.complete(dataclasses.replace(request, **changes))
        )

    def say(self, *texts: str, **changes: Any) -> list[str]:
        return [self.ask(text, **changes).text for text in texts]

    def fault(self, text: str = "?", **changes: Any) -> ChatFaultError:
        with pytest.raises(ChatFaultError) as error:
            self.ask(text, **changes)
        return error.value


def test_the_first_line_that_fits(tmp_path: Path) -> None:
    script = Script(
        tmp_path / "s.yaml", "replies: [{when: 'reward: [1-9]', say: more}, {say: on}]"
    )
    assert script.say("reward: 0", "step 3, reward: 2 so far", "") == [
        "on",
        "more",
        "on",
    ]


def test_one_after_the_other_for_each_conversation(tmp_path: Path) -> None:
    script = Script(tmp_path / "s.yaml", "replies: [{say: [one, two, three]}]")
    assert script.say(*"????", conversation="a") == ["one", "two", "three", "one"]
    assert script.say(*"??", conversation="b") == ["one", "two"]


def test_by_seed_the_same_question_has_the_same_answer(tmp_path: Path) -> None:
    text = "seed: {}\nreplies: [{{say: [F, L, R, S], choose: by_seed}}]"
    one, again, other = (
        Script(tmp_path / "s.yaml", text.format(seed)) for seed in (1, 1, 2)
    )
    questions = [f"question {i}" for i in range(40)]
    assert one.say(*questions) == again.say(*reversed(questions))[::-1]
    assert one.say(*questions) != other.say(*questions)
    assert set(one.say(*questions)) == set("FLRS")
    sampled = [one.ask("?", sampling=Sampling(seed=seed)).text for seed in range(20)]
    assert len(set(sampled)) > 1


def test_faults_a_number_of_times_and_by_share(tmp_path: Path) -> None:
    lines = """replies:
      - {fault: rate_limit, retry_after: 0.5, text: slow down, times: 2}
      - {fault: overload, share: 0.25}
      - {say: fine}
    """
    script = Script(tmp_path / "s.yaml", lines)
    first = script.fault()
    assert (first.kind, str(first), first.retry_after) == (
        "rate_limit",
        "slow down",
        0.5,
    )
    assert script.fault().kind == "rate_limit"
    kinds = []
    for _ in range(400):
        try:
            kinds.append(script.ask().text)
        except ChatFaultError as fault:
            kinds.append(fault.kind)
    assert set(kinds) == {"fine", "overload"}
    assert 70 < kinds.count("overload") < 130


def test_latency_and_time_out(tmp_path: Path) -> None:
    script = Script(tmp_path / "s.yaml", "replies: [{say: late, latency: [30, 60]}]")
    assert script.fault(timeout=0.01).kind == "timeout"


def test_thoughts_finish_and_tokens(tmp_path: Path) -> None:
    script = Script(
        tmp_path / "s.yaml", "replies: [{say: ABCDEFGH, think: hmmm, finish: length}]"
    )
    reply = script.ask("x" * 40)
    assert (reply.text, reply.reasoning, reply.finish, reply.model) == (
        "ABCDEFGH",
        "hmmm",
        "length",
        "s.yaml",
    )
    assert (reply.usage.prompt, reply.usage.completion, reply.usage.reasoning) == (
        11,
        4,
        1,
    )


def test_no_line_fits(tmp_path: Path) -> None:
    fault = Script(tmp_path / "s.yaml", "replies: [{when: never, say: x}]").fault()
    assert fault.kind == "bad_request"
    assert "No line of s.yaml matches" in str(fault)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("replies: []", "1:10: error E123"),
        (
            "replies: [{when: '(', say: x}]",
            "1:18: error E123: The value of 'when' does not fit: '('. Expected a regular",
        ),
        ("replies: [{say: 3}]", "Expected a string or a non-empty list of strings."),
        ("replies: [{say: []}]", "Expected a string or a non-empty list of strings."),
        ("replies: [{say: x, latency: [2, 1]}]", "the smaller number first"),
        (
            "replies: [{say: x, latency: soon}]",
            "Expected seconds, or a range of two numbers.",
        ),
        ("replies: [{say: x, fault: overload}]", "either 'say' or 'fault'"),
        ("replies: [{}]", "either 'say' or 'fault'"),
        ("replies: [{fault: overlord}]", "Expected one of 'rate_limit'"),
        ("replies: [{sai: x}]", "There is no key 'sai'"),
        ("", "A script of replies is a mapping of keys. Begin with 'replies:'."),
    ],
)
def test_mistakes(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FileError) as error:
        Script(tmp_path / "s.yaml", text)
    assert said in str(error.value)
    assert str(error.value).startswith(f"{tmp_path / 's.yaml'}:1:")


def test_no_file(tmp_path: Path) -> None:
    entry = resolve_model(PLUGINS, f"scripted:{tmp_path}/nothing.yaml")
    with pytest.raises(
        FileError, match=r"nothing\.yaml:1:1: error E101: The file cannot be read"
    ):
        PLUGINS.backend("scripted").connect(
            BackendContext(entry=entry, directory=tmp_path)
        )
