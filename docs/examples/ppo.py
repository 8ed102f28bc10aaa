"""PPO by stable-baselines3 (pip install 'pytest-cheesebench[sb3]'), on the characters
of the observation.

    # the two environments below, some 40 seconds on one core
    python ppo.py
    python ppo.py --environment cheesebench/OperantChamber-v1 --steps 160000
    # writes easy.TMaze-v1.ppo.zip: see conftest.py
    python ppo.py --save .
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import easy  # noqa: F401  # registers the environments, those of cheesebench included
import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from cheesebench.wrappers import OneHotCharacters

#: Environments, and steps that are enough.
ENVIRONMENTS = {"easy/TMaze-v1": 80_000, "easy/ShuttleBox-v1": 200_000}
#: Subjects that live at once, each with a lever or platform of its own; who trains on
#: one knows one.
SUBJECTS = 16
#: These learn small arenas quickly.
SETTINGS: dict[str, Any] = {
    "n_steps": 128,
    "batch_size": 256,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "ent_coef": 0.01,
    "policy_kwargs": {"net_arch": [64]},
    "device": "cpu",
}
#: Seeds from here on are for evaluation: no subject of theirs is trained on.
UNSEEN = 1_000_000


def life(name: str, subject: int) -> gymnasium.Env[Any, Any]:
    """Return the environment of one subject, as SB3 likes it."""
    environment = OneHotCharacters(gymnasium.make(name, subject=subject))
    monitored: gymnasium.Env[Any, Any] = Monitor(
        environment, info_keywords=("success",)
    )
    return monitored


def train(name: str, steps: int, seed: int) -> PPO:
    """Return a model that was trained for ``steps`` steps."""
    torch.set_num_threads(1)
    environments = DummyVecEnv(
        [partial(life, name, subject) for subject in range(SUBJECTS)]
    )
    model = PPO("MlpPolicy", environments, seed=seed, **SETTINGS)
    return model.learn(steps)


def rate(name: str, model: PPO | None, subjects: int, trials: int, seed: int) -> float:
    """Return the rate of success of new subjects; without a model they act at
    random.
    """
    environment = OneHotCharacters(gymnasium.make(name))
    environment.action_space.seed(seed)
    successes = []
    for subject in range(subjects):
        observation, _ = environment.reset(
            seed=UNSEEN + seed, options={"subject": subject}
        )
        for _ in range(trials):
            over = False
            while not over:
                action = (
                    environment.action_space.sample()
                    if model is None
                    else model.predict(observation)[0]
                )
                observation, _, terminated, truncated, info = environment.step(action)
                over = terminated or truncated
            successes.append(bool(info["success"]))
            observation, _ = environment.reset()
    return float(np.mean(successes))


def main() -> None:
    """Print how often new subjects succeed, before and after."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environment", action="append", help="may be repeated")
    parser.add_argument("--steps", type=int, help="instead of those that are enough")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--save", type=Path, metavar="DIR", help="write the models into this directory"
    )
    options = parser.parse_args()
    for name in options.environment or ENVIRONMENTS:
        model = train(
            name, options.steps or ENVIRONMENTS.get(name, 100_000), options.seed
        )
        at_random, learnt = (
            rate(name, one, subjects=10, trials=10, seed=options.seed)
            for one in (None, model)
        )
        print(
            f"{name}: at random {at_random:.1%}; after {model.num_timesteps} steps {learnt:.1%}"
        )
        if options.save:
            path = options.save / f"{name.replace('/', '.')}.ppo.zip"
            model.save(path)
            print(f"written: {path}")


if __name__ == "__main__":
    main()
