"""The opinion of stable-baselines3 on the environments, as JSON; run by test_ppo.py if
there is torch.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.wrappers import TransformObservation
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

import cheesebench  # noqa: F401  # registers the environments
from cheesebench.wrappers import OneHotCharacters

MAZE = "cheesebench/TMaze-v1"


def wrapped(subject: int = 0, **options: Any) -> gymnasium.Env[Any, Any]:
    """Return the T-maze in the form for a network."""
    return OneHotCharacters(gymnasium.make(MAZE, subject=subject, **options))


def picture() -> gymnasium.Env[Any, Any]:
    """Return the T-maze in the form for a convolution, as on the page."""
    return TransformObservation(
        gymnasium.make(MAZE, view="topdown_2d"),
        lambda observation: observation["picture"][::4, ::4],
        Box(0, 255, (112, 112, 3), np.uint8),
    )


def complaints(environment: gymnasium.Env[Any, Any]) -> list[str]:
    """Return the warnings of SB3's checker."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(environment)
        except Exception as error:  # the test compares any error
            return [f"{type(error).__name__}: {error}"]
    return [str(warning.message) for warning in caught if "stable" in warning.filename]


def seen(kind: type[DummyVecEnv | SubprocVecEnv]) -> list[Any]:
    """Return rewards and sums of observations of some steps."""
    environments = kind([partial(wrapped, subject) for subject in range(2)])
    environments.seed(3)
    found = [environments.reset().sum(axis=1).tolist()]
    for step in range(250):
        observations, rewards, over, _ = environments.step(
            np.array([step % 3, step % 2])
        )
        found.append(
            [observations.sum(axis=1).tolist(), rewards.tolist(), over.tolist()]
        )
    environments.close()
    return found


def weights(seed: int) -> float:
    """Return the sum of the weights after a little learning."""
    environments = make_vec_env(
        MAZE, n_envs=2, seed=seed, wrapper_class=OneHotCharacters
    )
    model = PPO(
        "MlpPolicy", environments, n_steps=64, batch_size=64, seed=seed, device="cpu"
    ).learn(256)
    return float(
        sum(parameter.detach().abs().sum() for parameter in model.policy.parameters())
    )


if __name__ == "__main__":
    views = ("ascii_2d", "ascii_2d_fpv", "ascii_3d")
    print(
        json.dumps(
            {
                "checked": {view: complaints(wrapped(view=view)) for view in views}
                | {"picture": complaints(picture())},
                "text": complaints(gymnasium.make(MAZE)),
                "in processes": seen(SubprocVecEnv) == seen(DummyVecEnv),
                "weights": [weights(1), weights(1), weights(2)],
            }
        )
    )
