"""What the scripts here have learnt, as agents, in this directory:

    pytest --model trained-q --protocols ./easy_t_maze.protocol.yaml --seed 100

They read ``*.policy.json``, ``*.ppo.zip`` and ``life_q.json`` from the working
directory, or from where LEARNT_IN says. The first two learn nothing more: what is
judged is the policy. The third one learns during each life.
"""

from __future__ import annotations

import json
import os
import random
from functools import cache
from pathlib import Path
from typing import Any

from cheesebench import Agent, AgentContext, AgentSpec, FileError, OptionError

#: The files are looked for here: the workers of a run inherit it.
LEARNT_IN = Path(os.environ.setdefault("LEARNT_IN", os.getcwd()))


@cache
def learnt(pattern: str) -> Path:
    """Return the one file that matches."""
    found = sorted(LEARNT_IN.glob(pattern))
    if len(found) != 1:
        remedy = (
            "Keep each in a folder of its own, and set LEARNT_IN to one of them."
            if found
            else "Train, with --save."
        )
        raise FileError(
            f"There must be one {pattern} in {LEARNT_IN}, and there are {len(found)}. {remedy}"
        )
    return found[0]


class TrainedQ:
    """Takes the best action that q_learning.py knows for a text, and a random one where
    it knows none.
    """

    def __init__(self, context: AgentContext) -> None:
        self._random = random.Random(context.seed)
        self._values: dict[str, list[float]] = json.loads(
            learnt("*.policy.json").read_text(encoding="utf-8")
        )

    def begin_trial(self, observation: str) -> None:
        """Nothing is kept from trial to trial."""

    def act(self, observation: str) -> list[int]:
        """Return an action."""
        values = self._values.get(observation)
        # Now and then a random one: a policy that nothing disturbs may walk in a circle
        # for ever (5 % as in training).
        if values is None or self._random.random() < 0.05:
            return [self._random.randrange(4)]
        return [values.index(max(values))]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Nothing is learnt."""


class TrainedPPO:
    """Asks the network of ppo.py."""

    def __init__(self, context: AgentContext) -> None:
        import easy  # noqa: F401  # registers the environments
        import gymnasium
        import torch
        from stable_baselines3 import PPO

        from cheesebench.wrappers import OneHotCharacters

        torch.set_num_threads(1)
        torch.manual_seed(context.seed)
        path = learnt("*.ppo.zip")
        self._model: Any = PPO.load(path, device="cpu")
        # Encodes as in training; nothing else of it is used.
        environment = gymnasium.make(
            "/".join(path.name.split(".")[:2]), view=context.view
        )
        if not context.view.startswith("ascii"):
            raise OptionError(
                f"The network was trained on text, and the view is {context.view}."
            )
        self._encode = OneHotCharacters(environment).observation

    def begin_trial(self, observation: str) -> None:
        """Nothing is kept from trial to trial."""

    def act(self, observation: str) -> list[int]:
        """Return an action."""
        return [int(self._model.predict(self._encode(observation))[0])]

    def observe(
        self, action: int, reward: float, observation: str, ended: bool
    ) -> None:
        """Nothing is learnt."""


def life_q(context: AgentContext) -> Agent:
    """Return the learner of life_q.py with the settings that were found for it."""
    from life_q import LifeQ

    return LifeQ(
        context, **json.loads(learnt("life_q.json").read_text(encoding="utf-8"))
    )


def cheesebench_agents() -> list[AgentSpec]:
    """Return the agents. ``memory`` says what they keep between trials; statistics go
    by subject in any case.
    """
    return [
        AgentSpec(
            "trained-q", TrainedQ, memory="none", summary="the table of q_learning.py"
        ),
        AgentSpec(
            "trained-ppo", TrainedPPO, memory="none", summary="the network of ppo.py"
        ),
        AgentSpec("life-q", life_q, memory="life", summary="the learner of life_q.py"),
    ]
