"""A learner with memory: its table is empty when a life begins, and it learns from
trial to trial, as the animal does.

    python life_q.py --save .                          # life_q.json: see conftest.py
    python life_q.py --environment easy/ShuttleBox-v1  # any other

Training does not fill the table. It looks for the learning rate and the exploration
with which whole lives go best.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

import easy  # noqa: F401  # registers the environments, those of cheesebench included
import gymnasium

from cheesebench import AgentContext
from cheesebench.wrappers import WholeLife

#: What a step costs: the value of the step after it counts for this much.
GAMMA = 0.9
#: What an untried action is worth: a little, so that each is tried.
HOPE = 0.2
#: ``CANDIDATES`` is the number of pairs of settings that are tried, ``LIVES`` the
#: number of lives in which each is tried.
CANDIDATES, LIVES = 12, 8


class LifeQ:
    """Q-learning over texts, from the first step of a life to its last.

    Args:
        context: what CheeseBench gives an agent; only its seed is used.
        rate: learning rate, from 0 to 1.
        exploration: share of random actions in the first trial; it falls with the root
            of the number of trials.
    """

    def __init__(self, context: AgentContext, rate: float, exploration: float) -> None:
        self._random = random.Random(context.seed)
        self._rate, self._exploration = rate, exploration
        self._values: dict[str, list[float]] = {}
        self._trials = 0
        self._seen = ""
        self._steps: list[tuple[str, int, float, str | None]] = []

    def begin_trial(self, observation: str) -> None:
        """Begin a trial; what was learnt in those before it stays."""
        self._trials += 1
        self._seen = observation

    def act(self, observation: str) -> list[int]:
        """Return the action that is worth most, or now and then a random one."""
        if self._random.random() < self._exploration / self._trials**0.5:
            return [self._random.randrange(4)]
        values = self._of(observation)
        best = max(values)
        return [
            self._random.choice(
                [action for action in range(4) if values[action] == best]
            )
        ]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Learn from a trial at its end, from the last step to the first."""
        self._steps.append((self._seen, action, reward, None if ended else observation))
        self._seen = observation
        while ended and self._steps:
            seen, action, reward, then = self._steps.pop()
            values = self._of(seen)
            future = 0.0 if then is None else max(self._of(then))
            values[action] += self._rate * (reward + GAMMA * future - values[action])

    def _of(self, observation: str) -> list[float]:
        return self._values.setdefault(observation, [HOPE] * 4)


def live(agent: LifeQ, environment: WholeLife, seed: int | None) -> float:
    """Live the next life (with a seed, the first one under it) and return the rate of
    success of its trials.
    """
    observation, info = environment.reset(seed=seed)
    agent.begin_trial(observation)
    successes: list[bool] = []
    over = False
    while not over:
        if info["trial_over"]:  # the step between two trials: its action is ignored
            observation, _, over, _, info = environment.step(0)
            agent.begin_trial(observation)
            continue
        [action] = agent.act(observation)
        observation, reward, over, _, info = environment.step(action)
        agent.observe(action, reward, observation, ended=info["trial_over"])
        if info["trial_over"]:
            successes.append(bool(info["success"]))
    return sum(successes) / len(successes)


def search(
    name: str, seed: int, candidates: int = CANDIDATES, lives: int = LIVES
) -> tuple[float, dict[str, Any]]:
    """Return the rate of success of the best settings among random ones, and these. All
    live the same lives.
    """
    environment = WholeLife(gymnasium.make(name))
    chance = random.Random(seed)
    found: list[tuple[float, dict[str, Any]]] = []
    for _ in range(candidates):
        settings = {
            "rate": round(chance.uniform(0.05, 1), 3),
            "exploration": round(chance.uniform(0, 0.6), 3),
        }
        rates = []
        for life in range(lives):
            agent = LifeQ(AgentContext(seed=life, view="ascii_2d"), **settings)
            rates.append(live(agent, environment, seed=None if life else seed))
        found.append((sum(rates) / lives, settings))
    return max(found, key=lambda one: one[0])


def main() -> None:
    """Print the settings that are best, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environment", default="cheesebench/OperantChamber-v1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--save",
        type=Path,
        metavar="DIR",
        help="write the settings into this directory",
    )
    options = parser.parse_args()
    rate, settings = search(options.environment, options.seed)
    print(f"{options.environment}: success {rate:.1%} with {settings}")
    if options.save:
        (options.save / "life_q.json").write_text(
            json.dumps(settings), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
