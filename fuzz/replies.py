"""Campaign of odd answers of a model server, with odd replies in them. Each must become
a reply or a fault without delay.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from typing import Any

from cheesebench.chat import ChatFaultError, ChatReply, ModelAgent, ModelAgentContext
from cheesebench.plugin_manager import installed_plugins
from cheesebench.plugins.backends.replies import read_reply

PIECES = (
    *(
        "ACTIONS: ",
        "FORWARD",
        "STAY, ",
        "LEARNINGS: ",
        "<think>",
        "</think>",
        "<thinking>",
        "\n",
        " ",
        ",",
        "x" * 999,
    ),
    *("\x00", "\x1b[31m", "\u202e", "\ud800", "🐁", "```", "**", "->", "\\", '"'),
    *("=" * 300 + ">", "-" * 3000, "(" * 500),
    *(
        "ACTION",
        "ROTATE_LEFT",
        "forward forward",
        "1. ",
        "{",
        "}",
        "[" * 800,
        "answer: ",
        "yes",
        "<" * 2000,
        "&nbsp;",
    ),
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1e308,
        10**30,
        "",
        "x",
        [],
        {},
        [None],
        [{"type": "text", "text": "ACTIONS: STAY"}],
    ),
    *(
        [{"type": "text", "text": 5}],
        [[]],
        {"text": "x"},
        "length",
        "content_filter",
        "error",
        {"message": "no"},
    ),
)


class Replies:
    """Cases are bodies of answers."""

    name = "replies"

    def __init__(self) -> None:
        spec = installed_plugins().model_agent("llm")
        context = ModelAgentContext(seed=1, view="ascii_2d", settings=spec.settings)
        self._create: Callable[[], ModelAgent] = lambda: spec.create(context)
        self.check(b"{}")

    def draw(self, chance: random.Random) -> bytes:
        """Return an answer with an odd text, an odd shape, or broken bytes."""
        text = "".join(chance.choice(PIECES) for _ in range(chance.randrange(30)))
        usage = {
            "prompt_tokens": 9,
            "completion_tokens": chance.choice((0, 3)),
            "total_tokens": 12,
        }
        message: dict[str, Any] = {"role": "assistant", "content": text}
        choice: dict[str, Any] = {
            "index": 0,
            "message": message,
            "finish_reason": "stop",
        }
        answer: dict[str, Any] = {"model": "m", "choices": [choice], "usage": usage}
        for _ in range(chance.choice((0, 0, 1, 2))):
            where = chance.choice((message, choice, answer, usage))
            where[
                chance.choice(
                    (*where, "tool_calls", "refusal", "reasoning_content", "error")
                )
            ] = chance.choice(VALUES)
        body = bytearray(json.dumps(answer).encode())
        if chance.random() < 0.2:
            for _ in range(chance.randint(1, 5)):
                body[chance.randrange(len(body))] = chance.randrange(256)
        if chance.random() < 0.1:
            del body[chance.randrange(len(body)) :]
        return bytes(body)

    def check(self, case: bytes) -> None:
        """Read the answer. An agent must accept the reply, and go on."""
        with contextlib.suppress(ChatFaultError):
            reply = read_reply(case)
            # This checks that the reply can be written.
            (reply.text + reply.reasoning).encode()
            assert (
                min(reply.usage.prompt, reply.usage.completion, reply.usage.cached) >= 0
            ), reply.usage
            self._take(reply)

    def _take(self, reply: ChatReply) -> None:
        agent = self._create()
        agent.begin_trial("###")
        agent.prompt()
        actions = agent.read(reply)
        assert all(action in range(4) for action in actions), actions
        for action in actions:
            agent.observe(action, 0.0, "###", False)
        for message in agent.prompt():
            message.text.encode()  # This checks that the message can be sent.
        assert all(count >= 0 for count in agent.tally().values())
