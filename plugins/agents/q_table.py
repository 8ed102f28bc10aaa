"""Q-learning over observations, shared by the learners."""

from __future__ import annotations

import hashlib
import random

from cheesebench import ACTIONS
from cheesebench.plugins.agents.transitions import Transitions

#: Observations longer than this are stored as a digest, to bound memory use.
LONGEST_KEY = 8192


class QTable:
    """Numbers states from 0 in order of appearance, in step with a map of transitions, and holds their action values.

    An observation *is* its state: its text is the key, so that no two observations can collide in a hash, and
    nothing depends on the process's hash seed.
    """

    def __init__(self, transitions: Transitions, discount: float) -> None:
        self._numbers: dict[str, int] = {}
        self._values: list[list[float]] = []
        self._transitions = transitions
        self._discount = discount

    def __len__(self) -> int:
        return len(self._values)

    def state(self, observation: str) -> int:
        """Return the number of the state, a new one (also on the map) for an observation never met before."""
        if len(observation) > LONGEST_KEY:
            observation = hashlib.sha256(observation.encode("utf-8", "surrogatepass")).hexdigest()
        number = self._numbers.get(observation)
        if number is None:
            number = self._numbers[observation] = self._transitions.new_state()
            self._values.append([0.0] * len(ACTIONS))
        return number

    def learn(self, state: int, action: int, reward: float, following: int, ended: bool, rate: float) -> None:
        """Move a value towards the reward and the discounted best value of what followed (none if the trial ended)."""
        future = 0.0 if ended else self._discount * max(self._values[following])
        values = self._values[state]
        values[action] += rate * (reward + future - values[action])

    def greedy(self, state: int, chance: random.Random) -> int:
        """Return an action of the highest value; ``chance`` breaks ties."""
        values = self._values[state]
        best = max(values)
        return chance.choice([action for action, value in enumerate(values) if value == best])
