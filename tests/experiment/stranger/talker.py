"""A small agent that asks a model: it shows the last observations, and reads letters of
actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cheesebench.chat import ChatReply, Message, ModelAgentContext, ModelAgentSpec
from cheesebench.interfaces import ACTION_LETTERS


class Talker:
    """Acts on every letter of F, L, R, S in a reply; waits after a
    reply without any.
    """

    def __init__(self, context: ModelAgentContext) -> None:
        self.shown: list[str] = []
        self.history = context.settings["history"]
        self.counts = {"calls": 0, "unparsed": 0}

    def begin_trial(self, observation: str) -> None:
        self.counts = {"calls": 0, "unparsed": 0}
        self.shown.append(observation)

    def prompt(self) -> tuple[Message, ...]:
        return (
            Message("system", ("Reply with letters.",)),
            Message("user", ("\n".join(self.shown[-self.history :]),)),
        )

    def read(self, reply: ChatReply) -> Sequence[int]:
        actions = [
            ACTION_LETTERS.index(letter)
            for letter in reply.text
            if letter in ACTION_LETTERS
        ]
        self.counts["calls"] += 1
        self.counts["unparsed"] += not actions
        return actions or [ACTION_LETTERS.index("S")]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        self.shown.append(f"{ACTION_LETTERS[action]} {reward:g} {ended}\n{observation}")

    def tally(self) -> Mapping[str, int]:
        return dict(self.counts)


TALKER = ModelAgentSpec(
    name="talker",
    create=Talker,
    settings={"history": 3, "temperature": 0.7, "max_tokens": 32},
    summary="for tests",
)
