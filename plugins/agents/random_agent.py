"""The random agent, which ignores observations. It shows what can be had by chance."""

from __future__ import annotations

import random

from cheesebench import ACTIONS, AgentContext

_MOVES = tuple((action,) for action in range(len(ACTIONS)))


class RandomAgent:
    """An agent that draws every action uniformly and independently, from its own seed.
    It has no memory.
    """

    #: Number of actions drawn at a time. Drawing each by itself would dominate the run
    #: time.
    BATCH = 4096

    def __init__(self, context: AgentContext) -> None:
        self._random = random.Random(context.seed)
        self._drawn: list[tuple[int]] = []

    def begin_trial(self, observation: str) -> None:
        """Do nothing."""

    def act(self, observation: str) -> tuple[int]:
        if not self._drawn:
            self._drawn = self._random.choices(_MOVES, k=self.BATCH)
        return self._drawn.pop()

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Learn nothing."""
