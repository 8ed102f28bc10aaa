"""Tabular-QL: Q-learning over observations, and paths to reward through the transitions seen so far.

After the CheeseBench paper's baseline of this name.
"""

from __future__ import annotations

import random

from cheesebench import ACTIONS, AgentContext
from cheesebench.plugins.agents.q_table import QTable
from cheesebench.plugins.agents.transitions import Transitions

_COUNT = len(ACTIONS)

#: Discount per step.
GAMMA = 0.9
#: Learning rate in the first trial; divided by the square root of the trial's number after that.
ALPHA = 0.5
#: Share of random actions in the first trial, its factor from trial to trial, and its minimum.
EPSILON, EPSILON_DECAY, EPSILON_FLOOR = 0.3, 0.98, 0.05


class TabularQL:
    """Explores with probability epsilon; else follows the shortest known way to reward; else is greedy in Q.

    A step that was once rewarded but now gives nothing is not aimed at again before the next trial: bait that
    has been eaten is not sought twice, but is sought again when the apparatus may have been baited anew.
    """

    def __init__(self, context: AgentContext) -> None:
        self._random = random.Random(context.seed)
        self._transitions = Transitions(_COUNT)
        self._table = QTable(self._transitions, GAMMA)
        #: Steps (state, action) that were rewarded, in that order; and those that disappointed in this trial.
        self._rewarded: dict[tuple[int, int], None] = {}
        self._disappointing: set[tuple[int, int]] = set()
        self._trial = 0
        self._here = 0

    def begin_trial(self, observation: str) -> None:
        """Start a trial: the rates decay, and every place where reward was found counts again."""
        self._trial += 1
        self._alpha = ALPHA / self._trial**0.5
        self._epsilon = max(EPSILON_FLOOR, EPSILON * EPSILON_DECAY ** (self._trial - 1))
        self._disappointing.clear()
        self._transitions.aim(self._rewarded)
        self._here = self._table.state(observation)

    def act(self, observation: str) -> tuple[int]:
        """Return one action."""
        if self._random.random() < self._epsilon:
            return (self._random.randrange(_COUNT),)
        step = self._transitions.step_towards_aim(self._here)
        if step is not None:
            return (step,)
        return (self._table.greedy(self._here, self._random),)

    def observe(self, action: int, reward: float, observation: str, ended: bool) -> None:
        """Learn from one step (also from a step that the runner waited through)."""
        here, there = self._here, self._table.state(observation)
        self._table.learn(here, action, reward, there, ended, self._alpha)
        self._transitions.add(here, action, there)
        self._remember_reward((here, action), reward)
        self._here = there

    def _remember_reward(self, step: tuple[int, int], reward: float) -> None:
        if reward > 0:
            if step in self._rewarded and step not in self._disappointing:
                return
            self._rewarded[step] = None
            self._disappointing.discard(step)
        elif step in self._rewarded and step not in self._disappointing:
            self._disappointing.add(step)
        else:
            return
        self._transitions.aim([known for known in self._rewarded if known not in self._disappointing])
